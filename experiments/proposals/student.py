"""Runs on Student's t: Metropolis-Hastings and multiple-try Metropolis, many at once."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from harness.arrays import FloatArray
from harness.evidence import autocorrelation_times
from harness.fit import Fit
from harness.forms.method import python_method
from harness.model import Model
from harness.proposals import (
    Chains,
    Chance,
    GaussianStep,
    WeightedMean,
    evaluated,
    importance_log_weights,
    metropolis,
    multiple_try,
    recycled,
    recycled_tries,
)

from .runs import fit_of_runs, thinning, watched
from .targets import FREEDOM, log_student_t

METHOD = "proposals_student_t"
Scheme = Literal["independent", "metropolis", "multiple try"]


def absolute(points: FloatArray) -> FloatArray:
    """|x|, whose mean is estimated."""
    return np.abs(points[:, 0])


def sample_student_t(
    model: Model,
    *,
    scheme: Scheme,
    sd: float,
    tries: int = 1,
    runs: int,
    steps: int,
    start: float | None = None,
    trace: bool = False,
    seed: int,
) -> Fit:
    """Run many chains and measure means of |x|, variances over runs, and effective samples.

    Parameters
    ----------
    model
        Student's t.
    scheme
        ``"independent"`` draws, or which kernel.
    sd
        Width of the Gaussian proposals.
    tries
        Proposals of a multiple-try step, which counts as 2 K proposals, as in the thesis.
    runs, steps
        Number of chains, and of steps of each.
    start
        Where all chains start; an exact draw each if not given.
    trace
        Whether to keep all of each chain and estimate its effective samples.
    seed
        Seed of the run.

    Returns
    -------
    Fit
        Its attributes have, of each run, the means of |x| over the chain (``plain``), with
        refused proposals (``recycled``) and by importance weights (``importance``); the variance
        over runs after every 2 K proposals, or every step of other schemes (``variance``);
        ``acceptance``; and effective samples for a proposal (``effective``).
    """
    rng, what = np.random.default_rng(seed), watched(model)
    chance, density = Chance(rng), what.counted(log_student_t)
    first = rng.standard_t(FREEDOM, (runs, 1)) if start is None else np.full((runs, 1), start)
    chains, proposal = evaluated(density, first), GaussianStep(sd)
    sums = {"plain": np.zeros(runs), "recycled": np.zeros(runs)}
    pool, accepted = WeightedMean(runs), 0.0
    variance, points = [float(first.var())], []
    kept = np.empty((runs, steps)) if trace else None
    for step in range(steps):
        chains, acceptance, salvaged = _step(density, scheme, proposal, tries, chains, chance, pool)
        sums["plain"] += absolute(chains.points)
        sums["recycled"] += salvaged
        accepted += float(acceptance.mean())
        variance.append(float(chains.points.var()))
        if step % thinning(steps) == 0:
            points.append(chains.points)
        if kept is not None:
            kept[:, step] = chains.points[:, 0]
    found: dict[str, Any] = {name: value / steps for name, value in sums.items()}
    found |= {"acceptance": accepted / steps, "variance": np.array(variance)}
    if scheme == "multiple try":
        found["importance"] = pool.value
    if kept is not None:
        found |= effective(kept, 2 * tries if scheme == "multiple try" else 1)
    settings = {"scheme": scheme, "sd": sd, "tries": tries, "runs": runs, "steps": steps}
    return fit_of_runs(METHOD, what, points, found, settings=settings, seed=seed)


def _step(
    density: Any,
    scheme: Scheme,
    proposal: GaussianStep,
    tries: int,
    chains: Chains,
    chance: Chance,
    pool: WeightedMean,
) -> tuple[Chains, FloatArray, FloatArray]:
    """Make a step; return the chains, acceptances and the recycled values of |x|."""
    if scheme == "independent":
        after = evaluated(density, chance.rng.standard_t(FREEDOM, chains.points.shape))
        return after, np.ones(len(after.points)), absolute(after.points)
    if scheme == "metropolis":
        step = metropolis(density, proposal, chains, chance)
        return step.after, step.acceptance, recycled(step, absolute)
    tried = multiple_try(density, proposal, chains, chance, tries=tries)
    log_weight = importance_log_weights(proposal, chains, tried.tries)
    pool.add(log_weight, np.abs(tried.tries.points[..., 0]))
    return tried.after, tried.acceptance, recycled_tries(tried, proposal, absolute)


def effective(series: FloatArray, each: int) -> dict[str, Any]:
    """Return effective samples for a proposal, 1 / tau over proposals of a step, and its error.

    tau is that of all runs (runs, draws) together.  ``own`` are those of each run by itself, whose
    mean is too large where runs are short for tau.
    """
    time = autocorrelation_times(series).own
    share = 1 / float(time.value)
    own = [1 / float(autocorrelation_times(one[None]).own.value) / each for one in series]
    return {
        "effective": share / each,
        "effective_error": float(time.error) * share**2 / each,
        "own": np.array(own),
    }


STUDENT_T = python_method(METHOD, sample_student_t)
