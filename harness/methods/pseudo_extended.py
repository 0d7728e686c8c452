"""Pseudo-extended MCMC (Nemeth et al. 2019): N pseudo-samples, each at its own temperature."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from harness import weights
from harness.compile import CompiledProgram
from harness.errors import DataError
from harness.fit import Fit, build_fit
from harness.methods.common import compiled_variant, run_attributes
from harness.methods.method import Method
from harness.model import Model
from harness.nuts import NutsSettings, run_nuts
from harness.weights import FloatArray

VARIANT = "pseudo_extended"


def pseudo_extended_data(
    num_pseudo_samples: int, inv_temp: float | Sequence[float] | None
) -> dict[str, Any]:
    """Return the data that a pseudo-extended program takes besides the model's own.

    Parameters
    ----------
    num_pseudo_samples
        N, 1 or more.
    inv_temp
        None to sample the inverse temperatures, one value to fix all of them to it, or N
        values for a fixed ladder.

    Raises
    ------
    DataError
        If N < 1, a fixed value lies outside [0, 1], or a ladder has not N values.
    """
    if num_pseudo_samples < 1:
        raise DataError(
            f"pseudo-extended MCMC needs N >= 1 pseudo-samples; got N = {num_pseudo_samples}"
        )
    if inv_temp is None:
        ladder: FloatArray = np.empty(0)
    else:
        given = np.asarray(inv_temp, dtype=np.float64)
        if given.ndim > 1 or given.shape not in ((), (num_pseudo_samples,)):
            raise DataError(
                f"inv_temp is one inverse temperature or one for each of the "
                f"{num_pseudo_samples} pseudo-samples; got shape {given.shape}"
            )
        if not np.all((given >= 0) & (given <= 1)):
            raise DataError(f"fixed inverse temperatures lie in [0, 1]; got {inv_temp}")
        ladder = np.broadcast_to(given, num_pseudo_samples).copy()
    return {
        "N": num_pseudo_samples,
        "sample_inv_temp": int(inv_temp is None),
        "fixed_inv_temp": ladder,
    }


def sample_pseudo_extended(
    model: Model,
    *,
    num_pseudo_samples: int = 2,
    inv_temp: float | Sequence[float] | None = None,
    nuts: NutsSettings | None = None,
    seed: int,
    compiled: CompiledProgram | None = None,
) -> Fit:
    """Run Stan's NUTS on the pseudo-extended target of a model (paper, eq. 8).

    Parameters
    ----------
    model
        Target density with its data.
    num_pseudo_samples
        N; with N = 1 the target itself is sampled.
    inv_temp
        None to sample the inverse temperatures beta_1..N; one value to fix all to it; N
        values for a fixed ladder.
    nuts
        Settings of NUTS; Stan's defaults if not given.
    seed
        Seed, 0 to 2^32 - 1; same seed, same draws, the choice among pseudo-samples included.
    compiled
        The model's compiled ``pseudo_extended.stan``, if it is at hand.

    Returns
    -------
    Fit
        ``extended`` holds the pseudo-samples, ``inv_temp`` and ``log_weight`` with the last
        axis over pseudo-samples; ``posterior`` one pseudo-sample a draw, chosen with
        probability its weight.

    Raises
    ------
    DataError
        If a setting does not make sense; see :func:`pseudo_extended_data`.
    """
    nuts = nuts or NutsSettings()
    own_data = pseudo_extended_data(num_pseudo_samples, inv_temp)
    compiled = compiled or compiled_variant(model, VARIANT)
    run = run_nuts(compiled, {**model.data, **own_data}, nuts, seed)
    extended = {name: run.variables[name] for name in (*model.parameters, "inv_temp", "log_weight")}
    # A stream of its own: the sampler's chains use (seed, chain) in Stan's generator.
    index = weights.draw_index(extended["log_weight"], np.random.default_rng(seed))
    posterior = {name: _take(extended[name], index) for name in model.parameters}
    settings = {
        "num_pseudo_samples": num_pseudo_samples,
        "inv_temp": None if inv_temp is None else own_data["fixed_inv_temp"].tolist(),
        "nuts": nuts.identity(),
    }
    return build_fit(
        posterior=posterior,
        extended=extended,
        sample_stats=run.sample_stats,
        constant_data=model.data,
        attrs=run_attributes("pseudo_extended", model, compiled, run, settings, seed),
    )


def _take(pseudo_samples: FloatArray, index: np.ndarray) -> FloatArray:
    """Pick one pseudo-sample a draw: (chain, draw, ..., N), (chain, draw) -> (chain, draw, ...)."""
    shaped = index.reshape(*index.shape, *(1,) * (pseudo_samples.ndim - index.ndim))
    chosen: FloatArray = np.take_along_axis(pseudo_samples, shaped, axis=-1)[..., 0]
    return chosen


PSEUDO_EXTENDED = Method("pseudo_extended", VARIANT, sample_pseudo_extended)
