"""Continuously tempered HMC (Graham and Storkey 2017), joint or with the temperature collapsed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from harness import weights
from harness.bases import GaussianBase
from harness.compile import CompiledProgram
from harness.errors import DataError
from harness.fit import Fit, build_fit
from harness.methods.common import compiled_variant, run_attributes
from harness.methods.method import Method
from harness.model import Model
from harness.nuts import NutsSettings, run_nuts

JOINT_VARIANT = "continuously_tempered"
COLLAPSED_VARIANT = "collapsed_tempered"

LogG = Sequence[tuple[float, float]]
"""Knots (beta, log g(beta)) of a log g that is linear between them, from beta = 0 to 1."""

UNIFORM: LogG = ((0.0, 0.0), (1.0, 0.0))
"""g(beta) = 1."""


def tempering_data(base: GaussianBase | None, log_zeta: float, log_g: LogG) -> dict[str, Any]:
    """Return the data that a continuously tempered program takes besides the model's own.

    Parameters
    ----------
    base
        Gaussian base, or None for the model's own (for a bounded x, uniform).
    log_zeta
        Guess at log Z, used with the model's own base; a Gaussian base brings its own.
    log_g
        Knots of log g.

    Raises
    ------
    DataError
        If the knots do not ascend from 0 to 1 or a value is not finite.
    """
    knots = np.asarray(log_g, dtype=np.float64)
    if knots.ndim != 2 or knots.shape[1] != 2 or len(knots) < 2:
        raise DataError("log g needs two knots (beta, log g) or more")
    beta, value = knots.T
    ascending = beta[0] == 0 and beta[-1] == 1 and np.all(np.diff(beta) > 0)
    if not (ascending and np.all(np.isfinite(value))):
        raise DataError("the knots of log g must ascend from 0 to 1, with finite values")
    zeta = log_zeta if base is None else base.log_zeta
    if not np.isfinite(zeta):
        raise DataError(f"log zeta must be finite; got {zeta}")
    return {
        "gaussian_base": int(base is not None),
        "base_mean": np.empty(0) if base is None else base.mean,
        "base_cholesky": np.empty((0, 0)) if base is None else base.cholesky,
        "log_zeta": zeta,
        "G": len(knots),
        "g_knot": beta,
        "log_g": value,
    }


def sample_continuously_tempered(
    model: Model,
    *,
    base: GaussianBase | None = None,
    log_zeta: float = 0.0,
    log_g: LogG = UNIFORM,
    collapsed: bool = False,
    nuts: NutsSettings | None = None,
    seed: int,
    compiled: CompiledProgram | None = None,
) -> Fit:
    """Run Stan's NUTS on the continuously tempered target of a model (paper, eq. 16).

    Parameters
    ----------
    model
        Target density with its data.
    base, log_zeta, log_g
        See :func:`tempering_data`.
    collapsed
        Whether to integrate the inverse temperature out, so that NUTS moves in x alone; it is
        then drawn from its exact conditional given each x.
    nuts
        Settings of NUTS; Stan's defaults if not given.
    seed
        Seed, 0 to 2^32 - 1.
    compiled
        The model's compiled program, if it is at hand.

    Raises
    ------
    DataError
        If the base has not the model's dimension; see also :func:`tempering_data`.

    Returns
    -------
    Fit
        ``extended`` holds x, ``inv_temp``, ``delta`` and the log conditional densities
        ``log_w1`` and ``log_w0`` of beta = 1 and beta = 0; ``posterior`` draws resampled within
        each chain with probabilities proportional to w1.
    """
    nuts = nuts or NutsSettings()
    if base is not None and base.mean.size != model.dimension:
        raise DataError(
            f"the base has dimension {base.mean.size}, the model {model.name} {model.dimension}"
        )
    own_data = tempering_data(base, log_zeta, log_g)
    variant = COLLAPSED_VARIANT if collapsed else JOINT_VARIANT
    if not collapsed:
        own_data |= {"sample_inv_temp": 1, "fixed_inv_temp": np.empty(0)}
    compiled = compiled or compiled_variant(model, variant)
    run = run_nuts(compiled, {**model.data, **own_data}, nuts, seed)
    log_weight = run.variables["log_weight"]
    extended = {name: run.variables[name] for name in (*model.parameters, "inv_temp", "delta")}
    extended |= {"log_w1": log_weight[..., 0], "log_w0": log_weight[..., 1]}
    index = weights.resample(extended["log_w1"], np.random.default_rng(seed))
    chain = np.arange(nuts.chains)[:, None]
    settings = {
        "collapsed": collapsed,
        "log_zeta": own_data["log_zeta"],
        "log_g": np.asarray(log_g).tolist(),
        "base": None if base is None else [base.mean.tolist(), base.cholesky.tolist()],
        "nuts": nuts.identity(),
    }
    return build_fit(
        posterior={name: extended[name][chain, index] for name in model.parameters},
        extended=extended,
        sample_stats=run.sample_stats,
        constant_data=model.data,
        attrs=run_attributes("continuous_tempering", model, compiled, run, settings, seed),
        pseudo_samples=False,
    )


def sample_collapsed_tempered(model: Model, **settings: Any) -> Fit:
    """Run :func:`sample_continuously_tempered` with the inverse temperature integrated out."""
    return sample_continuously_tempered(model, collapsed=True, **settings)


CONTINUOUS_TEMPERING = Method("continuous_tempering", JOINT_VARIANT, sample_continuously_tempered)
COLLAPSED_TEMPERING = Method("collapsed_tempering", COLLAPSED_VARIANT, sample_collapsed_tempered)
