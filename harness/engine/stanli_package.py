"""The optional package stanli, which runs Stan programs with no C++ compile.

Everything that we know about the package itself is here: which of its passes are faulty, and
where its library is.
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import os
from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path
from textwrap import shorten
from typing import Any

import numpy as np

from harness.engine.compile import source_digest
from harness.engine.memory import within_memory
from harness.engine.program import StanProgram
from harness.engine.stan_data import plain_data
from harness.engine.stan_library import (
    DATA_SEED,
    StanSource,
    lacks_memory,
    load_library,
    needs_memory,
)
from harness.engine.toolchain.tools import HOW_TO_INSTALL_STANLI
from harness.errors import CompileError, DataError, NotEnoughMemory, ToolchainError

FAULTY_PASSES = ("STANLI_NO_REROLL", "STANLI_NO_PARTITION")
"""Environment variables that make stanli skip passes that compute wrong densities.

stanli 0.24 turns terms of one form, such as the iterations of a loop, into one operation on
vectors.  If five or more of them (fewer, if each adds twice) are continuous densities of one whole
vector of data, all but the first and the last read single entries of the vector.  The value is then
wrong, or stanli says that an argument is out of its domain.  Without these passes gradients take
the same time, except for some long loops over scalars, which take up to five times as long.
"""

_COMPILES = "stanli compile:"
_LONGEST = 200
"""Characters of a message: some hold a part of the program, as the compiler sees it."""
_UNSUPPORTED = (_COMPILES, "mir:", "unsupported")
"""What stanli's message has one of if it does not support something that the program uses."""


def is_unsupported(message: str) -> bool:
    """Whether stanli refuses a program for itself, and not for its data."""
    return any(each in message for each in _UNSUPPORTED)


def what_is_unsupported(message: str) -> str:
    """Return what such a message says about the program; the rest of a long one is left out."""
    return shorten(message.replace(_COMPILES, ""), _LONGEST, placeholder=" ...")


def stanli_is_installed() -> bool:
    """Whether the package is installed; it is not imported."""
    return importlib.util.find_spec("stanli") is not None


def require_stanli() -> Any:
    """Return the stanli module, which skips its faulty passes from now on.

    Raises
    ------
    ToolchainError
        If it is not installed.
    """
    try:
        import stanli
    except ImportError:
        raise ToolchainError(
            "this runs Stan programs in Python, through the optional package stanli: install it "
            f"with {HOW_TO_INSTALL_STANLI}"
        ) from None
    for name in FAULTY_PASSES:  # read again for each model; stanli offers no other way
        os.environ.setdefault(name, "1")
    _drop_prints(_library(stanli))
    return stanli


def _library(stanli: Any) -> Path:
    """Return the file of the package's library."""
    return next((Path(stanli.__file__).parent / "_bin").glob("*stanli.*"))


@cache
def _drop_prints(path: Path) -> object:
    """Drop what programs print, as CmdStan's own output is not shown either.

    Returns
    -------
    object
        What the library calls instead, which must be there as long as the library is.
    """
    dropped = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_size_t)(lambda _text, _size: None)
    ctypes.CDLL(str(path)).bs_set_print_callback(dropped, None)
    return dropped


def stan_model(program: StanProgram, data: Mapping[str, Any]) -> Any:
    """Return stanli's model of a program with its data.

    Raises
    ------
    ToolchainError
        If stanli is not installed.
    NotEnoughMemory
        If they need more memory than there is.
    DataError
        If stanli refuses the program or its data; the message is its own.
    """
    stanli = require_stanli()
    try:
        mir, numbers = _compiled(program), plain_data(data)
        with within_memory() as most:
            return stanli.Model(mir=mir, data=numbers, seed=DATA_SEED)
    except (RuntimeError, ValueError) as error:
        if lacks_memory(str(error)):
            raise NotEnoughMemory(f"{program.name}: {needs_memory(most)}") from error
        raise DataError(f"{program.name}: {error}") from error


def stanli_source(program: StanProgram, data: Mapping[str, Any]) -> StanSource:
    """Return a program with its data for stanli's library, with BridgeStan's C functions.

    Raises
    ------
    ToolchainError
        If stanli is not installed.
    DataError
        If stanli refuses the program, with its own message, or cannot take the data.
    """
    stanli = require_stanli()
    try:
        mir = _compiled(program)
        # The library reads the program under this name, which no variable of Stan's can have.
        own = {"build_id": stanli.build_id(), "mir": mir, "name": program.path.stem}
        document = json.dumps({**plain_data(data), "__stanli": own}, default=plain_json)
    except (RuntimeError, ValueError, TypeError) as error:
        raise DataError(f"{program.name}: {error}") from error
    library = load_library(_library(stanli))
    return StanSource(library, document.encode(), program.name, "stanli")


def _compiled(program: StanProgram) -> str:
    """Return a program as stanli's compiler writes it, compiled once while its text stays the same.

    Compiling takes longer than everything else that a model with other data needs.
    """
    try:
        digest = source_digest(program)
    except CompileError:  # stanli may find the file, or says itself that it is missing
        return _compile(program)
    return _compile_text(program, digest)


@lru_cache(maxsize=64)
def _compile_text(program: StanProgram, digest: str) -> str:
    """Compile a program whose text and includes have this digest."""
    return _compile(program)


def _compile(program: StanProgram) -> str:
    compiled: str = require_stanli().stan_to_mir(
        program.path.read_text(encoding="utf-8"),
        [str(path) for path in (*program.include_paths, program.path.parent)],
    )
    return compiled


def plain_json(value: Any) -> Any:
    """Return what JSON has for a value of data that is an array or one of its numbers."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise TypeError(f"stanli takes no data of type {type(value).__name__}")


def column_major(values: Mapping[str, Any]) -> dict[str, list[float]]:
    """Return parameter values in stanli's order: the first index runs fastest."""
    return {name: np.ravel(value, order="F").tolist() for name, value in values.items()}
