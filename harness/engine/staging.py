"""Folders that exist for a while: where something is built before its place, and temporary ones.

What a killed process leaves in them is removed by the next one.  A lock that the operating system
releases at the end of its process tells whether anybody still works there.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from filelock import BaseFileLock, FileLock, Timeout

from harness.errors import ToolchainError
from harness.folders import cannot_write

_STAGING = ".staging-"
_TEMPORARY = "harness-"
_OWNER = ".in-use"
_SECONDS_A_WAIT = 0.5
_REMOVALS, _SECONDS_TO_REMOVAL = 10, 0.1


def made_once(
    wanted: Path,
    build: Callable[[Path], None],
    *,
    check: Callable[[], None] = lambda: None,
) -> None:
    """Build a file with whatever lies beside it, unless it is there: completely or not at all.

    It is built in a folder beside the final one, which is then renamed into place.  If two
    processes want the same, one waits and finds it made.

    Parameters
    ----------
    wanted
        The file; its folder is made from nothing and belongs to it alone.
    build
        Makes the file, under the same name, in the folder that it is given.
    check
        Called while another process holds the lock; may raise to give up.

    Raises
    ------
    ToolchainError
        If the operating system refuses to write there.
    """
    final = wanted.parent
    try:
        with _holding(_lock_of(final), check):
            if wanted.is_file():
                return
            _sweep_beside(final)
            staging = Path(tempfile.mkdtemp(prefix=f"{_STAGING}{final.name}-", dir=final.parent))
            try:
                build(staging)
                # A folder without the file is no one's work: somebody has removed the file alone.
                shutil.rmtree(final, ignore_errors=True)
                staging.rename(final)
            finally:
                shutil.rmtree(staging, ignore_errors=True)
    except OSError as error:
        raise cannot_write(final, error) from error


@contextlib.contextmanager
def temporary_folder() -> Iterator[Path]:
    """Make a folder for a block, in the system's folder for such things, and remove it afterwards.

    Folders that killed processes left there are removed first.

    Raises
    ------
    ToolchainError
        If no folder can be made.
    """
    where = Path(tempfile.gettempdir())
    try:
        _sweep_temporary(where)
        while True:
            folder = Path(tempfile.mkdtemp(prefix=_TEMPORARY, dir=where))
            lock = FileLock(folder / _OWNER)
            # Another process may sweep the folder before it is locked: then there is no folder to
            # lock any more, or the lock is of a file that is gone.
            with contextlib.suppress(FileNotFoundError):
                lock.acquire()
                if (folder / _OWNER).exists():
                    break
            lock.release()
    except OSError as error:
        raise ToolchainError(
            f"cannot make a temporary folder in {where}: {error.strerror or error}; free some "
            "space there, or set TMPDIR to another folder"
        ) from error
    try:
        yield folder
    finally:
        lock.release()
        _remove(folder)


def _remove(folder: Path) -> None:
    """Remove a folder, again if a process that is just ending has written something meanwhile."""
    for _ in range(_REMOVALS):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(_SECONDS_TO_REMOVAL)


def _is_our_own(folder: Path) -> bool:
    """Whether a folder is this user's; in others a lock's name could be a link to our file."""
    try:
        found = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and (os.name == "nt" or found.st_uid == os.geteuid())


def _lock_of(final: Path) -> Path:
    return final.with_name(f".{final.name}.lock")


@contextlib.contextmanager
def _holding(path: Path, check: Callable[[], None]) -> Iterator[None]:
    lock = FileLock(path)
    while not lock.is_locked:
        with contextlib.suppress(Timeout):
            lock.acquire(timeout=_SECONDS_A_WAIT)
        if not lock.is_locked:
            check()
    try:
        yield
    finally:
        lock.release()


def _sweep_beside(final: Path) -> None:
    """Remove what killed processes were building, for this folder and for others beside it."""
    for left in final.parent.glob(f"{_STAGING}*-*"):
        name = left.name.removeprefix(_STAGING).rpartition("-")[0]
        if name == final.name:  # we hold its lock
            shutil.rmtree(left, ignore_errors=True)
            continue
        with _if_free(FileLock(_lock_of(final.with_name(name)))) as free:
            if free:
                shutil.rmtree(left, ignore_errors=True)


def _sweep_temporary(where: Path) -> None:
    for folder in where.glob(f"{_TEMPORARY}*"):
        # Others sweep at the same time, and owners remove their own: what is gone is swept.
        with contextlib.suppress(OSError):
            if _is_our_own(folder) and (folder / _OWNER).exists():
                with _if_free(FileLock(folder / _OWNER)) as free:
                    if free:
                        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _if_free(lock: BaseFileLock) -> Iterator[bool]:
    """Hold a lock in a block if nobody else does; say whether that is so."""
    try:
        lock.acquire(timeout=0)
    except (Timeout, OSError):  # somebody works there, or it is another user's
        yield False
        return
    try:
        yield True
    finally:
        lock.release()
