"""Runs that test a prior before the likelihood, and count how often each is evaluated."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from harness.arrays import FloatArray
from harness.evidence import autocorrelation_times
from harness.fit import Fit
from harness.forms.method import python_method
from harness.model import Model
from harness.proposals import (
    Chance,
    Factored,
    GaussianStep,
    factored,
    two_factor_slice,
    two_stage,
    value_of,
)

from .runs import fit_of_runs, thinning, watched
from .targets import Spherical

METHOD = "proposals_factors"
Scheme = Literal["M-H", "two stages", "slice", "two-factor slice"]


def sample_factors(model: Model, *, scheme: Scheme, chains: int, steps: int, seed: int) -> Fit:
    """Run chains on a prior times a likelihood; the fit says how often each was evaluated.

    Proposals have 1.7 and brackets 10 standard deviations of the posterior.
    """
    what, rng = watched(model), np.random.default_rng(seed)
    sds = float(model.data["prior_sd"]), float(model.data["likelihood_sd"])
    sd = float((sds[0] ** -2 + sds[1] ** -2) ** -0.5)
    prior, likelihood = (value_of(Spherical(each)) for each in sds)
    if scheme in ("M-H", "slice"):  # one factor, which is all of the density
        prior, likelihood = _nothing, value_of(Spherical(sd))
    state = factored([prior, likelihood], sd * rng.standard_normal((chains, 2)))
    series, kept, calls = np.empty((chains, steps)), [], 0
    chance, proposal = Chance(rng), GaussianStep(1.7 * sd)
    for step in range(steps):
        if scheme in ("M-H", "two stages"):
            made = two_stage([prior, likelihood], proposal, state, chance)
            state, calls = made.after, calls + made.calls[1]
        else:
            direction = np.zeros((chains, 2))
            direction[:, step % 2] = 10 * sd
            moved = two_factor_slice(prior, likelihood, state.points, direction, rng)
            # The value where a point stands is known, and need not be computed again.
            calls += moved.likelihood_calls - chains
            state = Factored(moved.points, state.log_factors)
        series[:, step] = state.points.sum(axis=1)
        if step % thinning(steps) == 0:
            kept.append(state.points)
    what.cost.densities = calls
    time = autocorrelation_times(series).own
    found: dict[str, Any] = {
        "iat": float(time.value),
        "iat_error": float(time.error),
        "iat_closed": float(time.closed),
        "calls": calls / (chains * steps),
    }
    settings = {"scheme": scheme, "chains": chains, "steps": steps}
    return fit_of_runs(METHOD, what, kept, found, settings=settings, seed=seed)


def _nothing(points: FloatArray) -> FloatArray:
    return np.zeros(len(points))


FACTORS = python_method(METHOD, sample_factors)
