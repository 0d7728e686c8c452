"""Assemble a CmdStan in the cache folder, once, and completely or not at all.

An installation is built where it will stay, not in a staging folder that is renamed: the
precompiled header and the run paths of the built files hold absolute paths, and a rename would
break them.  Instead of a rename, the marker file ``COMPLETE`` shows that an installation is
complete.  It is written last and in one step; the next assembly removes a folder without it.
The marker also names the folder, so that a moved cache is rebuilt instead of half working.

Everything happens under a lock: if two processes assemble at once, one waits and then uses the
other's work.  Make and its compilers inherit a second lock.  If we are killed outright, they keep
running, and the next assembly waits for them before it removes what they are writing.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from filelock import FileLock, Timeout

from harness.engine.cores import cores
from harness.engine.processes import children_end_with_us
from harness.engine.toolchain import wheels
from harness.engine.toolchain.preflight import obstacles
from harness.engine.toolchain.tools import (
    Compiler,
    Make,
    find_compiler,
    find_make,
    output_of,
    run_logged,
)
from harness.errors import ToolchainError
from harness.folders import cache_folder, cache_root, cannot_write, is_owned
from harness.progress import Steps

STAN_VERSION = "2.39.0"

# Raise this if the way of assembling changes but none of the files below does.
_LAYOUT = 1
_RECIPES = Path(__file__).resolve().parent / "assembly"
_MARKER = "COMPLETE"
_LOCK = ".lock"
_BUILDERS = ".builders"
LOCK_FILES = (_LOCK, _BUILDERS)
_ORPHANS_END_WITHIN = 180.0  # seconds; the longest single compile takes about half of that


def find_assembled() -> Path | None:
    """Return the assembled CmdStan that fits this harness and this compiler, if it is there."""
    try:
        folder = _folder_for(find_compiler(), _read_recipes())
    except ToolchainError:
        return None
    return folder if is_complete(folder) else None


def is_ours(folder: Path) -> bool:
    """Whether the folder is where we assemble, whatever its state."""
    return is_owned(folder.parent) and folder.parent.name == "cmdstan"


def is_complete(folder: Path) -> bool:
    """Whether the folder holds an assembled CmdStan that was completed, and completed there."""
    return _assembled_in(folder) == str(folder.resolve())


def is_copy(folder: Path) -> bool:
    """Whether the folder holds an assembled CmdStan that was completed in another place."""
    return _assembled_in(folder) not in (None, str(folder.resolve()))


def copies() -> list[Path]:
    """Return the copies in the cache folder, which cannot be used."""
    return [
        each.parent for each in cache_root().glob(f"cmdstan/*/{_MARKER}") if is_copy(each.parent)
    ]


def _assembled_in(folder: Path) -> str | None:
    """Return where an assembled CmdStan was completed; None if it never was."""
    try:
        marker = json.loads((folder / _MARKER).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return str(marker.get("path")) if isinstance(marker, dict) else None


def ensure_assembled() -> Path:
    """Return the folder of the assembled CmdStan, assembling it first if it is not there.

    Raises
    ------
    ToolchainError
        With what happened, where, and what to do about it.
    """
    done = find_assembled()
    if done is not None:
        return done
    for obstacle in obstacles():
        raise obstacle
    compiler, make = find_compiler(), find_make()
    # Read once, so that the folder's name fits what is compiled, even if somebody edits them.
    recipes = _read_recipes()
    folder = _folder_for(compiler, recipes)
    with assembly_lock() as builders, children_end_with_us():
        if is_complete(folder):  # whoever held the lock before us made it
            return folder
        try:
            with Steps(len(wheels.WHEELS) + 2) as steps:
                _assemble_in(folder, recipes, compiler, make, steps, builders)
        except OSError as error:
            raise cannot_write(folder, error) from error
    return folder


@contextlib.contextmanager
def assembly_lock(*, wait: bool = True) -> Iterator[int]:
    """Hold the right to change the assembly; yield a descriptor that builders inherit.

    Raises
    ------
    ToolchainError
        As :func:`one_at_a_time`.
    """
    with (
        one_at_a_time(wait=wait) as home,
        _builders_lock(home / _BUILDERS) as builders,
    ):
        yield builders


@contextlib.contextmanager
def one_at_a_time(*, wait: bool = True) -> Iterator[Path]:
    """Hold the right to fetch wheels and to assemble; yield the folder of what is assembled.

    Raises
    ------
    ToolchainError
        If another process holds it and ``wait`` is false, or if the lock cannot be made.
    """
    home = cache_folder("cmdstan")
    lock = FileLock(home / _LOCK)
    try:
        try:
            lock.acquire(timeout=0)
        except Timeout:
            if not wait:
                raise ToolchainError(
                    f"Another process is assembling CmdStan in {home}.\n"
                    "Try again when it has finished."
                ) from None
            _say(f"Another process is assembling CmdStan in {home}; waiting for it to end.")
            lock.acquire()
    except OSError as error:
        raise cannot_write(home, error) from error
    try:
        yield home
    finally:
        lock.release()


@contextlib.contextmanager
def _builders_lock(path: Path) -> Iterator[int]:
    if sys.platform == "win32":
        yield -1  # nothing is assembled there
        return
    import fcntl

    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        patience_ends = time.monotonic() + _ORPHANS_END_WITHIN
        said = False
        # With a time limit: a compiler cache's server may have inherited the descriptor and run on.
        while time.monotonic() < patience_ends:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if not said:
                    _say("A compiler of an interrupted assembly is still at work; waiting for it.")
                    said = True
                time.sleep(0.1)
        yield descriptor
    finally:
        os.close(descriptor)


def _assemble_in(
    folder: Path,
    recipes: dict[str, bytes],
    compiler: Compiler,
    make: Make,
    steps: Steps,
    builders: int,
) -> None:
    store = cache_folder("wheels")
    fetched = []
    for wheel in wheels.WHEELS:
        steps.begin(f"fetch {wheel.holds} ({wheel.name} {wheel.version}, {wheel.megabytes} MB)")
        fetched.append((wheels.fetch(wheel, store, steps.tick), wheel))
    steps.begin("unpack them")
    _remove(folder)
    try:
        folder.mkdir()
        for path, wheel in fetched:
            wheels.unpack(path, wheel, folder, steps.tick)
        _add_our_files(folder, recipes)
        check_stanc(folder / "bin" / "stanc")
        steps.begin("compile the front end and precompile Stan's headers (a minute or two)")
        _run_make(folder, compiler, make, steps, builders)
        _mark_complete(folder, compiler)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _add_our_files(folder: Path, recipes: dict[str, bytes]) -> None:
    (folder / "bin").mkdir(exist_ok=True)
    for name, target in wheels.LINKED_TOOLS.items():
        (folder / "bin" / name).symlink_to(Path("..") / target)
    (folder / "src").mkdir()
    for name, content in recipes.items():
        place = folder if name == "makefile" else folder / "src"
        (place / name).write_bytes(content)


def check_stanc(stanc: Path) -> None:
    """Raise ToolchainError if Stan's compiler does not run from where it is."""
    if "stanc" not in output_of([str(stanc), "--version"]):
        raise ToolchainError(
            f"{stanc} does not run on this machine (is its file system mounted noexec?).\n"
            "Set HARNESS_CACHE to a folder from which programs may run, or see "
            "`harness doctor --install`."
        )


def _run_make(folder: Path, compiler: Compiler, make: Make, steps: Steps, builders: int) -> None:
    log = folder.with_name(f"{folder.name}.log")
    # The flags of an outer make (a job server, -n) are not meant for this one.
    env = {name: value for name, value in os.environ.items() if name not in _OUTER_MAKE}
    env["CXX"] = compiler.command
    jobs = min(2, cores())
    command = [make.path, f"-j{jobs}", "build"]
    status = run_logged(command, log, tick=steps.tick, cwd=folder, env=env, keep_open=(builders,))
    if status != 0:
        cause = _last_error(log.read_text(encoding="utf-8", errors="replace"))
        raise ToolchainError(
            f"Building CmdStan's front end failed: {cause}\n"
            f"All that make printed is in {log}; `harness doctor` shows the compiler in use."
        )


_OUTER_MAKE = ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEFILES")


def _last_error(output: str) -> str:
    if re.search(r"\bKilled\b|out of memory|Cannot allocate memory|bad_alloc", output):
        return "the compiler was killed, probably because memory ran out (it needs about 2 GB)."
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    telling = [line for line in lines if re.search(r"\berror\b:|No space left", line)]
    return (telling or lines or ["make printed nothing."])[-1]


def _mark_complete(folder: Path, compiler: Compiler) -> None:
    marker = {"path": str(folder.resolve()), "stan": STAN_VERSION, "compiler": compiler.identity}
    beside = folder / f"{_MARKER}.new"
    beside.write_text(json.dumps(marker, indent=2) + "\n", encoding="utf-8")
    beside.replace(folder / _MARKER)


def _remove(folder: Path) -> None:
    """Remove an unfinished assembly, the marker first, so that it never looks finished."""
    (folder / _MARKER).unlink(missing_ok=True)
    if folder.exists():
        shutil.rmtree(folder)


def _folder_for(compiler: Compiler, recipes: dict[str, bytes]) -> Path:
    """Return where the CmdStan made from exactly these ingredients is assembled.

    The compiler is one of them: no other compiler can use its objects and precompiled header.
    """
    digest = hashlib.sha256()
    digest.update(json.dumps([_LAYOUT, *map(asdict, wheels.WHEELS)]).encode())
    for name, content in recipes.items():
        digest.update(f"\n{name}\n".encode() + content)
    digest.update(f"\n{compiler.identity}".encode())
    return cache_root() / "cmdstan" / f"{STAN_VERSION}-{digest.hexdigest()[:12]}"


def _read_recipes() -> dict[str, bytes]:
    files = [*_RECIPES.glob("*.cpp"), *_RECIPES.glob("*.hpp"), *_RECIPES.glob("makefile")]
    if not any(file.name == "makefile" for file in files):
        raise ToolchainError(
            f"This installation of harness lacks its files in {_RECIPES}.\nInstall harness again."
        )
    return {file.name: file.read_bytes() for file in sorted(files)}


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
