"""Write files whole or not at all."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
import time
from pathlib import Path

from harness.errors import StoreError

_UNFINISHED = re.compile(r"\..+-[a-z0-9_]{8}")
"""The name under which :func:`write_bytes` begins a file."""
_SECONDS_TO_LEAVE = 3600.0


def refuse_unwritable(path: Path) -> None:
    """Refuse a path at which :func:`write_bytes` could not write a file.

    Nothing is left behind: the folders are not made yet.

    Raises
    ------
    StoreError
        If it is a folder or a device, or no file can be made in its folder.
    """
    try:
        if path.exists() and not path.is_file():
            kind = "a folder" if path.is_dir() else "no ordinary file"
            raise StoreError(f"cannot write {path}: it is {kind}")
        folder = next(each for each in path.absolute().parents if each.exists())
        if not folder.is_dir():
            raise StoreError(f"cannot write {path}: {folder} is no folder")
        with tempfile.NamedTemporaryFile(prefix=f".{path.name}-", dir=folder):
            pass
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror or error}") from error


def sweep_unfinished(folder: Path) -> None:
    """Remove what killed processes left of files that they wrote, in a folder and below it.

    A file has its temporary name for a moment only, so what is an hour old is left over.
    Symbolic links are not followed.
    """
    for parent, _, names in os.walk(folder):
        for name in filter(_UNFINISHED.fullmatch, names):
            path = Path(parent) / name
            with contextlib.suppress(OSError):
                if time.time() - path.lstat().st_mtime > _SECONDS_TO_LEAVE:
                    path.unlink()


def write_text(path: Path, text: str) -> None:
    """Write a text file; see :func:`write_bytes`."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes | memoryview) -> None:
    """Write a file beside its place and rename it; folders are made as needed.

    Raises
    ------
    StoreError
        If it cannot be written; what was there before is untouched.
    """
    beside: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
        beside = Path(name)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        beside.chmod(0o644)
        beside.replace(path)
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        if beside is not None:
            beside.unlink(missing_ok=True)
