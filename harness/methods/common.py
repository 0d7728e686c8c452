"""What every method does before and after it samples."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from harness.compile import CompiledProgram, compile_programs
from harness.model import Model
from harness.nuts import NutsRun
from harness.toolchain import require_cmdstan


def compiled_variant(model: Model, variant: str) -> CompiledProgram:
    """Return a compiled variant of a model, from the cache or compiled now."""
    program = model.program(variant)
    return compile_programs([program], require_cmdstan())[program]


def run_attributes(
    method: str,
    model: Model,
    compiled: CompiledProgram,
    run: NutsRun,
    settings: Mapping[str, Any],
    seed: int,
) -> dict[str, Any]:
    """Attributes of a fit: what was run, with what, at what cost.

    Gradient evaluations and seconds have one entry a chain.
    """
    return {
        "method": method,
        "model": model.name,
        "program": compiled.program.name,
        "program_sha256": compiled.digest,
        "settings": dict(settings),
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
