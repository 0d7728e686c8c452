"""NUTS on the target itself, the baseline that tempering is compared with."""

from __future__ import annotations

from harness.engine.compile import CompiledProgram
from harness.engine.nuts import NutsSettings
from harness.fit import Fit, build_fit
from harness.forms.common import Engine, Inits, Sampling, run_attributes, run_variant
from harness.forms.method import Method
from harness.model import Model

VARIANT = "target"


def sample_target(
    model: Model,
    *,
    nuts: NutsSettings | None = None,
    seed: int,
    inits: Inits = None,
    compiled: CompiledProgram | None = None,
    engine: Engine = "auto",
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
    inits
        Initial values as CmdStanPy takes them; Stan's own random ones if not given.
    compiled
        The model's compiled ``target.stan``, if it is at hand.
    engine
        What runs NUTS; see :data:`harness.forms.common.Engine`.

    Returns
    -------
    Fit
        Without an ``extended`` group.
    """
    ran = run_variant(model, VARIANT, {}, Sampling(nuts, seed, inits, compiled, engine))
    return build_fit(
        posterior={name: ran.run.variables[name] for name in model.parameters},
        extended=None,
        sample_stats=ran.run.sample_stats,
        constant_data=model.data,
        attrs=run_attributes("target", model, ran, {}, seed),
    )


TARGET = Method("target", VARIANT, sample_target)
