"""What every method does before and after it samples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from harness.compile import CompiledProgram, compile_programs
from harness.model import Model
from harness.nuts import NutsRun, NutsSettings, run_nuts
from harness.toolchain import require_cmdstan

Inits = Any
"""Initial values as CmdStanPy takes them: a number, or a mapping by name, for each chain or all."""


@dataclass(frozen=True)
class Sampling:
    """How a variant is sampled, the same for every method.

    Attributes
    ----------
    nuts
        Settings of NUTS; Stan's defaults if None.
    seed
        Seed, 0 to 2^32 - 1; same seed, same draws.
    inits
        Initial values; Stan's own random ones if None.
    compiled
        The variant's compiled program, if it is at hand.
    """

    nuts: NutsSettings | None
    seed: int
    inits: Inits = None
    compiled: CompiledProgram | None = None


@dataclass(frozen=True)
class VariantRun:
    """A run of a variant of a model, and which program made it."""

    run: NutsRun
    nuts: NutsSettings
    program: str
    digest: str


def run_variant(
    model: Model, variant: str, data: Mapping[str, Any], sampling: Sampling
) -> VariantRun:
    """Run NUTS on a variant of a model, compiled now or found in the cache.

    Parameters
    ----------
    data
        Data that the variant takes besides the model's own.
    """
    nuts = sampling.nuts or NutsSettings()
    compiled = sampling.compiled or compiled_variant(model, variant)
    everything = {**model.data, **data}
    run = run_nuts(compiled, everything, nuts, sampling.seed, inits=sampling.inits)
    return VariantRun(run, nuts, compiled.program.name, compiled.digest)


def compiled_variant(model: Model, variant: str) -> CompiledProgram:
    """Return a compiled variant of a model, from the cache or compiled now."""
    program = model.program(variant)
    return compile_programs([program], require_cmdstan())[program]


def run_attributes(
    method: str, model: Model, ran: VariantRun, settings: Mapping[str, Any], seed: int
) -> dict[str, Any]:
    """Attributes of a fit: what was run, with what, at what cost.

    Gradient evaluations and seconds have one entry a chain.
    """
    run = ran.run
    return {
        "method": method,
        "model": model.name,
        "program": ran.program,
        "program_sha256": ran.digest,
        "settings": {**settings, "nuts": ran.nuts.identity()},
        "seed": seed,
        "gradients_warmup": run.gradients[:, 0],
        "gradients_sampling": run.gradients[:, 1],
        "seconds_warmup": run.seconds[:, 0],
        "seconds_sampling": run.seconds[:, 1],
        "final_step_size": run.step_size,
        "stan_version": run.stan_version,
        "cmdstanpy_version": version("cmdstanpy"),
        "harness_version": version("harness"),
    }
