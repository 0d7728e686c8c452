"""Build the loop over rows in C++, ``native/rows.cpp``, once; it is never required."""

from __future__ import annotations

import ctypes
import hashlib
import logging
import os
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path

from harness.engine.staging import made_once
from harness.engine.toolchain.tools import Compiler, find_compiler
from harness.errors import ToolchainError
from harness.folders import cache_folder

SOURCE = Path(__file__).resolve().parent / "native" / "rows.cpp"
_FLAGS = ("-O2", "-std=c++17", "-shared", "-fPIC", "-pthread")
_SECONDS = 120.0
"""Seconds that a build may take; it takes about one."""

_log = logging.getLogger(__name__)

RowLoop = Callable[..., None]
"""``harness_rows``: two functions, models, how many, rows, dimension, and three arrays."""


@cache
def row_loop() -> RowLoop | None:
    """Return the loop, and build it first if necessary; None if there is no way to get it.

    A missing compiler is not an error, because callers have a slower way.  A build that fails is
    logged as a warning.
    """
    try:
        compiler = find_compiler()
    except ToolchainError as error:
        _log.info("densities are evaluated row by row from Python: %s", error)
        return None
    try:
        return _load(built(compiler))
    except (ToolchainError, OSError, AttributeError, subprocess.SubprocessError) as error:
        _log.warning(
            "The loop over rows could not be built, so densities in Python are up to twice as "
            "slow as they could be: %s",
            error,
        )
        return None


def built(compiler: Compiler) -> Path:
    """Return the loop's shared library, addressed by its source and its compiler.

    Raises
    ------
    ToolchainError
        If it does not compile, or the cache folder cannot be written.
    OSError, subprocess.SubprocessError
        If the compiler does not run or does not finish.
    """
    source = SOURCE.read_bytes()
    made_of = [compiler.identity.encode(), " ".join(_FLAGS).encode(), source]
    digest = hashlib.sha256(b"\0".join(made_of)).hexdigest()
    library = cache_folder("native") / f"rows-{digest[:16]}" / "rows.so"
    if not library.is_file():
        made_once(library, lambda staging: _compile(compiler, staging / library.name))
    return library


def _compile(compiler: Compiler, library: Path) -> None:
    done = subprocess.run(
        [*compiler.words, *_FLAGS, "-o", str(library), str(SOURCE)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=_SECONDS,
        check=False,
        env={**os.environ, "TMPDIR": str(library.parent)},
    )
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if "error" in line] or [done.stderr]
        raise ToolchainError(f"{compiler.command} says of {SOURCE}: {lines[0].strip()}")


def _load(library: Path) -> RowLoop:
    loop = ctypes.CDLL(str(library)).harness_rows
    loop.restype = None
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    loop.argtypes = [*[pointer] * 3, *[number] * 3, *[pointer] * 3]
    return loop
