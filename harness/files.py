"""Write files whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from harness.errors import StoreError


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
