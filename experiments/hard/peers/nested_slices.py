"""blackjax's nested slice sampling on a target's density in JAX.

References
----------
Yallup, D., Kroupa, N. and Handley, W. (2026). arXiv:2601.23252: nested slice sampling.

Skilling, J. (2006). Nested sampling for general Bayesian computation. Bayesian Analysis 1, 833-859.

Fowlie, A., Handley, W. and Su, L. (2021). Nested sampling with plateaus. Monthly Notices of the
Royal Astronomical Society 503, 1199-1205: volumes where several points go at once.
"""

from __future__ import annotations

import math
import time
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from harness.arrays import FloatArray
from harness.engine.batched import BatchedDensity
from harness.errors import SamplingError
from harness.evidence import LogEvidence
from harness.fit import Fit
from harness.model import Model
from harness.temper import What, tempered_model

from ..sampled import Sampled, fit_of, resampled
from .jax_runs import BEFORE, compiled, double_precision, load

METHOD = "blackjax_nested_slices"
_REPLACED = 10
"""Live points over those that are replaced at once."""
_ENOUGH = 0.01
"""What the live points may still add to log Z in the end, as for dynesty."""
_VOLUMES = 200
"""Simulated sequences of prior volumes."""


class _Run(NamedTuple):
    """What a run returns.

    Attributes
    ----------
    points
        All points, the last live ones among them, shape (N, D).
    log_likelihood
        Of each point, shape (N,).
    birth
        Log likelihood that each had to exceed, shape (N,); NaN for draws of the prior.
    left
        What the live points could still add to log Z.
    evaluations
        Points at which the likelihood was evaluated.
    started
        Processor time at its first step.
    """

    points: FloatArray
    log_likelihood: FloatArray
    birth: FloatArray
    left: float
    evaluations: int
    started: float


def sample_by_nested_slices(
    model: Model,
    *,
    live_points: int,
    most_seconds: float = math.inf,
    most_evaluations: float = math.inf,
    what: What = "likelihood",
    seed: int,
) -> Fit:
    """Sample a target by blackjax's nested sampling with slices, from draws of the prior.

    Directions of the slices have the live points' covariance.  A tenth of the live points is
    replaced at once, each by max(5, 2 D) slices, as blackjax's documentation asks for.  log Z is
    the mean, and its error the standard deviation, over simulated sequences of prior volumes: it is
    the error that perfect slices would leave.

    Parameters
    ----------
    model
        A target whose program has a density in :mod:`.jax_densities`.
    live_points
        Number of live points; more, if there are not 2 a dimension.
    most_seconds, most_evaluations
        Processor time, with that of compiling, and evaluations of the likelihood after which it
        stops.
    what
        What is tempered elsewhere; here it is the likelihood.
    seed
        Seed.

    Returns
    -------
    Fit
        Draws are resampled with replacement, as many as they are worth, and put into 4 chains.  A
        PROBLEM says if it stopped at the budget.  Its gradients are evaluations of the likelihood,
        without a gradient, and the attribute ``seconds_before`` has the processor seconds before
        its first step.

    Raises
    ------
    DataError
        If the program has no density in JAX.
    SamplingError
        If the live points collapse, so that there is no direction left for slices.
    ToolchainError
        If blackjax is not installed.
    """
    load()
    began = time.process_time()
    tempered = tempered_model(model.program("target").path, model.data, what=what)
    density = BatchedDensity(tempered.program("target"), tempered.data)
    live_points = max(live_points, 2 * density.dimension + 2)
    found = _run(model, live_points, began + most_seconds, most_evaluations, seed)
    rng = np.random.default_rng([seed, 1])
    share, log_z = weighed(found.log_likelihood, found.birth, rng)
    made = Sampled(
        resampled(found.points, share, rng),
        log_z,
        ""
        if found.left < _ENOUGH
        else "blackjax's nested sampling was stopped at the budget, before it had finished: the "
        f"live points could add {found.left:.2g} to log Z.",
    )
    seconds = time.process_time() - began
    fit = fit_of(made, model, density, found.evaluations, seconds, seed, method=METHOD)
    fit.tree.attrs[BEFORE] = found.started - began
    return fit


def _run(model: Model, live_points: int, until: float, most_evaluations: float, seed: int) -> _Run:
    """Run until the live points hardly add to log Z or the budget is spent."""
    import blackjax
    import jax
    import jax.numpy as jnp

    from .jax_densities import jax_density

    with double_precision():
        density = jax_density(model)
        slices, replaced = max(5, 2 * density.dimension), max(1, live_points // _REPLACED)
        sampler = blackjax.nss(
            density.log_prior, density.log_likelihood, slices, num_delete=replaced
        )
        start = density.draw_prior(np.random.default_rng(seed), live_points)
        state = compiled(sampler.init, start)(start)
        key = jax.random.key(seed)

        def step(key: Any, state: Any) -> tuple[Any, Any, Any, Any]:
            key, used = jax.random.split(key)
            following, info = sampler.step(used, state)
            # Both ends of a slice are evaluated once, besides its steps outwards and inwards.
            slices = info.update_info
            counted = jnp.sum(2 + slices.num_expansions + slices.num_shrink)
            return key, following, info.particles, counted

        step = compiled(step, key, state)
        started = time.process_time()
        gone, evaluations, left = [], live_points, math.inf
        while left >= _ENOUGH:
            key, state, particles, counted = step(key, state)
            gone.append(particles)
            evaluations += int(counted)
            sums = state.integrator
            if not np.isfinite(sums.logZ_live):
                raise SamplingError(
                    f"blackjax's nested sampling met log likelihoods of {model.name} that are not "
                    "finite"
                )
            left = float(np.logaddexp(0.0, sums.logZ_live - sums.logZ))
            if not np.all(np.isfinite(state.inner_kernel_params["covariance_factor"])):
                raise SamplingError(
                    f"blackjax's nested sampling of {model.name} cannot go on: its live points no "
                    "longer span all directions"
                )
            if time.process_time() > until or evaluations > most_evaluations:
                break
        every = jax.tree.map(lambda *parts: np.concatenate(parts), *gone, state.particles)
    return _Run(
        every.position,
        every.loglikelihood,
        every.loglikelihood_birth,
        left,
        evaluations,
        started,
    )


def weighed(
    log_likelihood: FloatArray, birth: FloatArray, rng: np.random.Generator
) -> tuple[FloatArray, LogEvidence]:
    """Return the shares of points in the posterior, shape (N,), and log Z with its error.

    Of n live points the one that goes leaves a volume that is smaller by a factor u^(1/n), with u
    uniform (Skilling 2006).  If several points go at once, n falls from one to the next (Fowlie et
    al. 2021).  Weights are likelihoods times volumes by the trapezoidal rule, as in blackjax's own
    ``log_weights``, which JAX would compile anew for every number of points.

    Parameters
    ----------
    log_likelihood
        Log likelihood of each point, the last live ones among them, shape (N,).
    birth
        Log likelihood that a point had to exceed when it was made; NaN for draws of the prior.
    rng
        Source of random numbers.
    """
    order = np.argsort(log_likelihood, kind="stable")
    value = log_likelihood[order]
    born = np.sort(np.where(np.isnan(birth), -np.inf, birth))
    live = np.maximum(np.searchsorted(born, value, side="left") - np.arange(len(value)), 1)
    log_z, share = np.empty(_VOLUMES), np.zeros(len(value))
    for k in range(_VOLUMES):
        volume = np.concatenate([[0.0], np.cumsum(-rng.exponential(size=len(value)) / live)])
        width = np.append(np.log(-np.expm1(volume[2:] - volume[:-2])), 0.0) + volume[:-1]
        log_weight = value + width - math.log(2)
        log_z[k] = logsumexp(log_weight)
        share[order] += np.exp(log_weight - log_z[k]) / _VOLUMES
    return share / share.sum(), LogEvidence(float(log_z.mean()), float(log_z.std(ddof=1)))
