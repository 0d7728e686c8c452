"""Langevin dynamics without a decision, from gradients that may be noisy or biased.

    theta' = theta + (e^2 / 2) g(theta) + e n,   n ~ N(0, I)

(Murray 2007, (5.10)).  If g comes from a few Gibbs sweeps that start at the data, this is brief
Langevin (section 5.2.2).  Nothing corrects for the step, nor for what is wrong with g, so that its
draws are of another posterior; it is here to compare with.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from harness.arrays import FloatArray
from harness.errors import DataError, SamplingError
from harness.fit import Fit
from harness.intractable.problem import IntractableProblem
from harness.intractable.run import Counted, Starts, starting_points
from harness.samplers.result import plain_fit

METHOD = "uncorrected_langevin"

NoisyGradient = Callable[[FloatArray, np.random.Generator], FloatArray]
"""Points (n, D) and a generator to estimates of the gradient of the log posterior, (n, D)."""


def langevin(
    problem: IntractableProblem,
    starts: Starts,
    *,
    gradient: NoisyGradient,
    step: float,
    draws: int,
    seed: int,
    chains: int = 4,
    warmup: int | None = None,
    thin: int = 1,
) -> Fit:
    """Run uncorrected Langevin dynamics.

    Parameters
    ----------
    gradient
        Estimates of the gradient of the log posterior.
    step
        e, positive.
    problem, starts, draws, seed, chains, warmup, thin
        The same as for :func:`harness.intractable.exchange.exchange`; prior, log f and simulator
        are not used.

    Raises
    ------
    DataError
        If a setting does not fit the problem.
    SamplingError
        If a chain runs away to infinity.
    """
    if not (np.isfinite(step) and step > 0):
        raise DataError(f"the step of Langevin dynamics must be positive and finite; got {step}")
    if min(draws, thin) < 1:
        raise DataError(f"a run needs draws and thin of 1 or more; got {draws} and {thin}")
    counted = Counted(problem)
    rng = np.random.default_rng(seed)
    points = starting_points(problem, starts, chains)
    length = draws // 2 if warmup is None else warmup
    kept = np.empty((draws, chains, problem.dimension))
    for t in range(-length, draws * thin):
        noise = rng.standard_normal(points.shape)
        points = points + 0.5 * step**2 * gradient(points, rng) + step * noise
        if t >= 0 and (t + 1) % thin == 0:
            if not np.isfinite(points).all():
                raise SamplingError(f"a chain of {problem.name} ran away: take a shorter step")
            kept[t // thin] = points
    counted.cost.gradients = (length + draws * thin) * chains
    settings = {"step": step, "draws": draws, "warmup": length, "thin": thin}
    return plain_fit(METHOD, counted, kept.swapaxes(0, 1), settings=settings, seed=seed)
