"""Say, before anything is downloaded, what prevents assembling CmdStan here."""

from __future__ import annotations

import os
import platform
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from harness.engine.toolchain import wheels
from harness.engine.toolchain.tools import find_compiler, find_make
from harness.errors import ToolchainError
from harness.folders import cache_root

# The headers take 150 MB, the wheels 50 and the precompiled header 800.
MEGABYTES_NEEDED = 1100
# Of the wheels, one is needed, and stanc takes 30.
_MEGABYTES_OF_STANC = 100
_OLDEST_GLIBC = (2, 28)


def obstacles() -> Iterator[ToolchainError]:
    """Yield each obstacle to assembling CmdStan, in the order in which it would be met."""
    root = cache_root()
    yield from _errors(
        *(_platform(), _writable(root), _path_for_make(root)),
        _room(root, "Assembling CmdStan", MEGABYTES_NEEDED),
    )
    for find in (find_make, find_compiler):
        try:
            find()
        except ToolchainError as error:
            yield error
    yield from _no_pip(root, wheels.WHEELS)


def obstacles_to_stanc() -> Iterator[ToolchainError]:
    """Yield each obstacle to having stanc alone, in the order in which it would be met."""
    root = cache_root()
    room = _room(root, "Stan's compiler", _MEGABYTES_OF_STANC)
    yield from _errors(_platform(), _writable(root), room)
    yield from _no_pip(root, (wheels.stanc_alone(),))


def _errors(*problems: str | None) -> Iterator[ToolchainError]:
    """Yield an error for each problem that there is."""
    yield from (ToolchainError(problem) for problem in problems if problem is not None)


def _no_pip(root: Path, needed: Sequence[wheels.Wheel]) -> Iterator[ToolchainError]:
    store = root / "wheels"
    if not wheels.has_pip() and not all(wheels.is_cached(each, store) for each in needed):
        yield ToolchainError(wheels.NO_PIP)


def _platform() -> str | None:
    library, number = platform.libc_ver()
    here = f"{platform.system()} {platform.machine()}"
    if platform.system() == "Linux" and platform.machine() in ("x86_64", "AMD64"):
        digits = tuple(int(part) for part in re.findall(r"\d+", number)[:2])
        if library == "glibc" and digits >= _OLDEST_GLIBC:
            return None
        here = f"{here} with {library or 'another C library than glibc'} {number}".rstrip()
    return (
        f"CmdStan can be assembled only on Linux x86_64 with glibc 2.28 or newer; this is {here}.\n"
        "Run `harness doctor --install`, or set CMDSTAN to the folder of a CmdStan."
    )


def _writable(root: Path) -> str | None:
    parent = _nearest(root)
    if parent.is_dir() and os.access(parent, os.W_OK | os.X_OK):
        return None
    reason = "it may not be written" if parent.is_dir() else "it is not a folder"
    return (
        f"The cache folder {root} cannot be used: {parent}: {reason}.\n"
        "Set HARNESS_CACHE to a folder that you can write in."
    )


def _path_for_make(root: Path) -> str | None:
    # make sees the physical path ($(CURDIR)), so a link with a clean name does not help.
    for path in (root, root.resolve()):
        bad = sorted(set(re.findall(r"[^\w@+,./~-]", str(path))))
        if bad:
            return (
                f"The path of the cache folder, '{path}', holds {' '.join(map(repr, bad))}, which "
                "make cannot handle.\nSet HARNESS_CACHE to a folder whose path has only letters, "
                "digits and any of ._-+@,~"
            )
    return None


def _room(root: Path, what: str, megabytes: int) -> str | None:
    try:
        free = shutil.disk_usage(_nearest(root)).free // 1_000_000
    except OSError:
        return None  # the check of the folder itself reports whatever is wrong there
    if free >= megabytes:
        return None
    return (
        f"{what} needs {megabytes} MB in {root}; {free} MB are free there.\n"
        "Free some, or set HARNESS_CACHE to a folder on a larger disk."
    )


def _nearest(path: Path) -> Path:
    """Return the path itself or the nearest of its parents that exists."""
    return next(place for place in (path, *path.parents) if place.exists())
