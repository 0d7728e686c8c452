"""Compile executables and libraries of Stan programs side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from harness.engine.compile import CompiledProgram, compile_programs
from harness.engine.program import StanProgram
from harness.engine.program_library import program_library
from harness.engine.threads import in_threads
from harness.engine.toolchain import CmdStan


def compile_together(
    cmdstan: CmdStan,
    *,
    executables: Sequence[StanProgram] = (),
    libraries: Sequence[StanProgram] = (),
) -> dict[StanProgram, CompiledProgram]:
    """Compile programs, as many at once as there are cores, and return the executables.

    Parameters
    ----------
    cmdstan
        CmdStan to compile with.
    executables
        Programs that CmdStan is to run.
    libraries
        Programs that are to be evaluated in Python, whose libraries
        :func:`harness.engine.stan_source.stan_instance` finds.

    Raises
    ------
    CompileError, ToolchainError
        For the first program that fails, once the others are compiled.
    """
    made: dict[StanProgram, CompiledProgram] = {}

    def executable(program: StanProgram) -> None:
        made.update(compile_programs([program], cmdstan))

    def library(program: StanProgram) -> None:
        program_library(program, cmdstan)

    works: list[Callable[[], None]] = [partial(executable, each) for each in executables]
    works += [partial(library, each) for each in libraries]
    in_threads(lambda number, _: works[number](), len(works), each=1, processes=True)
    return made
