"""Choose what evaluates a program's density in Python: stanli if it can, or a compiled library.

stanli needs no compiler and is ready at once.  Compiling a library takes half a minute, but this
works for every program that CmdStan reads, and needs no optional package.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from harness.engine.program import StanProgram
from harness.engine.program_library import library_source
from harness.engine.stan_library import DATA_SEED, StanInstance
from harness.engine.stanli_package import (
    is_unsupported,
    stanli_is_installed,
    stanli_source,
)
from harness.engine.toolchain import require_cmdstan, why_no_compiler
from harness.engine.toolchain.tools import HOW_TO_INSTALL_STANLI
from harness.errors import DataError, NotEnoughMemory, ToolchainError

_log = logging.getLogger(__name__)


def stan_instance(
    program: StanProgram, data: Mapping[str, Any], *, data_seed: int = DATA_SEED
) -> StanInstance:
    """Return a program with its data, ready to be evaluated.

    Parameters
    ----------
    program
        The program.
    data
        All its data.
    data_seed
        Seed of random numbers in ``transformed data``.

    Raises
    ------
    ToolchainError
        If there is neither stanli nor a C++ compiler.
    CompileError
        If the program does not compile.
    DataError
        If the program or its data are refused; the message comes from whatever evaluates them.
    """
    by_stanli = _by_stanli(program, data, data_seed)
    return _compiled(program, data, data_seed) if by_stanli is None else by_stanli


def is_compiled(program: StanProgram, data: Mapping[str, Any]) -> bool:
    """Whether :func:`stan_instance` compiles a program, because stanli does not evaluate it.

    Raises
    ------
    ToolchainError, DataError
        For the same reasons as :func:`stan_instance`.
    """
    return _by_stanli(program, data, DATA_SEED) is None


def _by_stanli(
    program: StanProgram, data: Mapping[str, Any], data_seed: int
) -> StanInstance | None:
    """Return a program evaluated by stanli; None if it must be compiled, and can be."""
    # Compilers are looked for only where one is needed: each look starts two processes.
    if not stanli_is_installed():
        reason = why_no_compiler()
        if reason is not None:
            raise ToolchainError(
                f"{reason}\nWithout a compiler the density of a Stan program is evaluated by the "
                f"optional package stanli: {HOW_TO_INSTALL_STANLI}"
            )
        return None
    try:
        instance = replace(stanli_source(program, data), data_seed=data_seed).instance()
        # stanli cannot take values of parameters that it has renamed.
        if not instance.renamed or why_no_compiler() is not None:
            return instance
        _log.info("%s: compiled instead, for its parameter %s", program.name, instance.renamed[0])
    except DataError as error:
        if not compiling_helps(error):
            raise
        _log.info("%s: compiled instead, because stanli does not read it: %s", program.name, error)
    return None


def compiling_helps(error: Exception) -> bool:
    """Whether stanli does not support a program or lacks memory for it, and there is a compiler."""
    helps = isinstance(error, NotEnoughMemory) or is_unsupported(str(error))
    return helps and why_no_compiler() is None


def _compiled(program: StanProgram, data: Mapping[str, Any], data_seed: int) -> StanInstance:
    source = library_source(program, data, require_cmdstan())
    return replace(source, data_seed=data_seed).instance()
