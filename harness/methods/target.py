"""NUTS on the target itself, the baseline that tempering is compared with."""

from __future__ import annotations

from harness.compile import CompiledProgram
from harness.fit import Fit, build_fit
from harness.methods.common import compiled_variant, run_attributes
from harness.methods.method import Method
from harness.model import Model
from harness.nuts import NutsSettings, run_nuts

VARIANT = "target"


def sample_target(
    model: Model,
    *,
    nuts: NutsSettings | None = None,
    seed: int,
    compiled: CompiledProgram | None = None,
) -> Fit:
    """Run Stan's NUTS on a model's target density.

    Parameters
    ----------
    model
        Target density with its data.
    nuts
        Settings of NUTS; Stan's defaults if not given.
    seed
        Seed, 0 to 2^32 - 1; same seed, same draws.
    compiled
        The model's compiled ``target.stan``, if it is at hand.

    Returns
    -------
    Fit
        Without an ``extended`` group.
    """
    nuts = nuts or NutsSettings()
    compiled = compiled or compiled_variant(model, VARIANT)
    run = run_nuts(compiled, model.data, nuts, seed)
    return build_fit(
        posterior={name: run.variables[name] for name in model.parameters},
        extended=None,
        sample_stats=run.sample_stats,
        constant_data=model.data,
        attrs=run_attributes("target", model, compiled, run, {"nuts": nuts.identity()}, seed),
    )


TARGET = Method("target", VARIANT, sample_target)
