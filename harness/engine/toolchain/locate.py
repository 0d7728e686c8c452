"""Find CmdStan: in ``$CMDSTAN``, in ``~/.cmdstan`` (the newest), or the assembled one."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from harness.engine.toolchain.assemble import (
    copies,
    find_assembled,
    is_complete,
    is_copy,
    is_ours,
)
from harness.engine.toolchain.tools import output_of
from harness.errors import ToolchainError

Source = Literal["environment", "home", "assembled"]

_RELEASE = re.compile(r"cmdstan-(\d+)\.(\d+)\.(\d+)(?:-rc(\d+))?")
_OLDEST = (2, 32)
"""The oldest CmdStan with all the methods that harness calls, of which Laplace's came last."""
_FINAL = 1_000_000  # sorts a release after all of its release candidates


@dataclass(frozen=True)
class CmdStan:
    """A usable CmdStan: its folder, its version and how it was found."""

    path: Path
    version: str
    source: Source

    @property
    def stanc(self) -> Path:
        """Its compiler of Stan programs."""
        return _stanc_of(self.path)


@dataclass(frozen=True)
class Search:
    """What :func:`search` found, and remarks on the folders that it skipped."""

    found: CmdStan | None
    notes: tuple[str, ...] = ()


def search() -> Search:
    """Look for CmdStan in all three places, without making or downloading anything.

    Raises
    ------
    ToolchainError
        If ``$CMDSTAN`` is set but there is no CmdStan; it is never skipped silently.
    """
    chosen = os.environ.get("CMDSTAN")
    if chosen:
        return Search(_from_environment(Path(chosen).expanduser()))
    notes: list[str] = []
    for folder in _releases_at_home():
        missing = _what_is_missing(folder)
        if missing is None:
            return Search(CmdStan(folder, version_of(folder), "home"), tuple(notes))
        notes.append(f"{folder} was skipped: {missing}.")
    assembled = find_assembled()
    if assembled is None:
        notes += [f"{folder} was skipped: {_COPIED}." for folder in copies()]
        return Search(None, tuple(notes))
    broken = _what_is_broken(assembled)
    if broken is not None:
        raise ToolchainError(
            f"The CmdStan in {assembled} cannot be used: {broken}.\n"
            "`harness doctor --clear-cache --build` assembles it again."
        )
    return Search(CmdStan(assembled, version_of(assembled), "assembled"), tuple(notes))


def version_of(folder: Path) -> str:
    """Return the version that a CmdStan's makefile states, as CmdStanPy reads it."""
    text = (folder / "makefile").read_text(encoding="utf-8", errors="replace")
    found = re.search(r"^CMDSTAN_VERSION := (\S+)", text, re.MULTILINE)
    return found.group(1) if found else "unknown"


def _from_environment(folder: Path) -> CmdStan:
    missing = _what_is_missing(folder)
    if missing is not None:
        raise ToolchainError(
            f"CMDSTAN is set to {folder}, but {missing}.\n"
            "Correct CMDSTAN, or unset it and let harness find or assemble one."
        )
    # We and CmdStanPy export $CMDSTAN once a CmdStan is chosen; it then still counts as before.
    source: Source = "environment"
    if is_complete(folder):
        source = "assembled"
    elif _is_in(folder, _home_folder()):
        source = "home"
    return CmdStan(folder, version_of(folder), source)


def _home_folder() -> Path:
    return Path("~/.cmdstan").expanduser()


def _is_in(folder: Path, parent: Path) -> bool:
    return folder.resolve().parent == parent.resolve()


def _releases_at_home() -> list[Path]:
    """Return the folders ``~/.cmdstan/cmdstan-*`` that name a release, newest first."""
    home = _home_folder()
    if not home.is_dir():
        return []
    found = []
    for folder in home.iterdir():
        match = _RELEASE.fullmatch(folder.name)
        if match and folder.is_dir():
            major, minor, patch, candidate = match.groups()
            order = (int(major), int(minor), int(patch), int(candidate or _FINAL))
            found.append((order, folder))
    return [folder for _, folder in sorted(found, reverse=True)]


def _stanc_of(folder: Path) -> Path:
    """Return where a CmdStan has its compiler of Stan programs; on Windows it has a suffix."""
    windows = folder / "bin" / "stanc.exe"
    return windows if windows.is_file() else folder / "bin" / "stanc"


def _what_is_missing(folder: Path) -> str | None:
    if not folder.is_dir():
        return "there is no such folder"
    if not (folder / "makefile").is_file():
        return "it has no makefile"
    if not _stanc_of(folder).is_file():
        return "it has no bin/stanc (it was not built)"
    if is_copy(folder):
        return _COPIED
    if is_ours(folder) and not is_complete(folder):
        return "its assembly was not finished"
    return _what_is_broken(folder)


_COPIED = (
    "it was copied or moved from where harness assembled it, and works only there (`harness doctor "
    "--build` assembles one here)"
)


def _what_is_broken(folder: Path) -> str | None:
    """Say why Stan's compiler in a CmdStan cannot be used: it does not run, or is too old."""
    stanc = _stanc_of(folder)
    if not os.access(stanc, os.X_OK):
        return f"{stanc} is not executable"
    told = output_of([str(stanc), "--version"])
    found = re.search(r"v(\d+)\.(\d+)", told)
    if found is None:
        return f"{stanc} does not run here: `--version` printed {told.strip()[:60]!r}"
    stated = re.match(r"(\d+)\.(\d+)", version_of(folder))
    for version in (found, stated):
        if version is not None and tuple(map(int, version.groups())) < _OLDEST:
            return (
                f"its version is {version[1]}.{version[2]}, and harness needs "
                f"{_OLDEST[0]}.{_OLDEST[1]} or newer"
            )
    return None
