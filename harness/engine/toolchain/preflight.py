"""Say, before anything is downloaded, what prevents assembling CmdStan here."""

from __future__ import annotations

import os
import platform
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from harness.engine.toolchain import wheels
from harness.engine.toolchain.tools import find_compiler, find_make
from harness.errors import ToolchainError
from harness.folders import cache_root

# The headers take 150 MB, the wheels 50 and the precompiled header 800.
MEGABYTES_NEEDED = 1100
_OLDEST_GLIBC = (2, 28)


def obstacles() -> Iterator[ToolchainError]:
    """Yield each obstacle to assembling CmdStan, in the order in which it would be met."""
    root = cache_root()
    for check in (_platform, _writable, _path_for_make, _room):
        problem = check(root)
        if problem is not None:
            yield ToolchainError(problem)
    for find in (find_make, find_compiler):
        try:
            find()
        except ToolchainError as error:
            yield error
    store = root / "wheels"
    if not wheels.has_pip() and not all(wheels.is_cached(w, store) for w in wheels.WHEELS):
        yield ToolchainError(wheels.NO_PIP)


def _platform(root: Path) -> str | None:
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


def _room(root: Path) -> str | None:
    try:
        free = shutil.disk_usage(_nearest(root)).free // 1_000_000
    except OSError:
        return None  # the check of the folder itself reports whatever is wrong there
    if free >= MEGABYTES_NEEDED:
        return None
    return (
        f"Assembling CmdStan needs {MEGABYTES_NEEDED} MB in {root}; {free} MB are free there.\n"
        "Free some, or set HARNESS_CACHE to a folder on a larger disk."
    )


def _nearest(path: Path) -> Path:
    """Return the path itself or the nearest of its parents that exists."""
    return next(place for place in (path, *path.parents) if place.exists())
