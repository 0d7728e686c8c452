"""Short runs of NUTS for pilots: by stanli without a compiler, or by CmdStan if stanli cannot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from harness.engine.compile import compile_programs
from harness.engine.cores import cores
from harness.engine.nuts import NutsRun, NutsSettings, run_nuts
from harness.engine.program import StanProgram
from harness.engine.stan_source import compiling_helps
from harness.engine.stanli_nuts import run_stanli_nuts
from harness.engine.stanli_package import stanli_is_installed
from harness.engine.toolchain import require_cmdstan
from harness.errors import DataError, SamplingError


def run_short_nuts(
    program: StanProgram,
    data: Mapping[str, Any],
    settings: NutsSettings,
    seed: int,
    *,
    inits: Sequence[Mapping[str, Any]] | None = None,
) -> NutsRun:
    """Run NUTS; the program is compiled only if stanli is missing or cannot read it.

    The parameters are those of :func:`harness.engine.nuts.run_nuts`.

    Raises
    ------
    ToolchainError, CompileError
        If the program must be compiled, but cannot be.
    DataError, SamplingError
        If the program or its data are refused, or the run does not finish.
    """
    settings = replace(settings, parallel_chains=min(settings.parallel_chains, cores()))
    if stanli_is_installed():
        try:
            return run_stanli_nuts(program, data, settings, seed, inits=inits)
        except (DataError, SamplingError) as error:
            if not compiling_helps(error):
                raise
    compiled = compile_programs([program], require_cmdstan())[program]
    return run_nuts(compiled, data, settings, seed, inits=inits)
