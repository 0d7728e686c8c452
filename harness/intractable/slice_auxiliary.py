"""Slice sampling of a doubly intractable posterior with bridged auxiliary variables.

The state has auxiliary data X of its own, as in :mod:`harness.intractable.auxiliary`.  With

    H(X, theta) = f(y; theta) p(theta) prod_k f_{k+1}(x_k) / f_k(x_k)

a height h is uniform on [0, H], and each theta' that is tried gets fresh data X'; it is accepted if
H(X', theta') is h or more.  Fresh data may be refused however close theta' is to theta, so that
intervals shrink more than those of an ordinary slice.  Where H is not bounded, the expected number
of trials can be infinite: a step therefore gives up after some trials and the state stays.  This
keeps detailed balance, as a move and its reverse take the same number of trials.

References
----------
Murray, I. (2007). Advances in Markov chain Monte Carlo methods. PhD thesis, University College
London: (5.48) to (5.50).

Neal, R. M. (2003). Slice sampling. Annals of Statistics 31, 705-767.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.fit import Fit
from harness.intractable.auxiliary import AuxiliaryVariables
from harness.intractable.bridging import Bridge, Transition
from harness.intractable.problem import IntractableProblem
from harness.intractable.run import Counted, Starts, starting_points
from harness.samplers.result import plain_fit

METHOD = "slice_auxiliary"


def slice_auxiliary(
    problem: IntractableProblem,
    starts: Starts,
    *,
    estimate: npt.ArrayLike,
    width: npt.ArrayLike,
    draws: int,
    seed: int,
    chains: int = 4,
    warmup: int | None = None,
    bridges: int = 0,
    transition: Transition | None = None,
    most_trials: int = 100,
) -> Fit:
    """Sample a posterior by slices along one coordinate at a time, chosen at random.

    An interval of a fixed width is placed at random around the current value and shrinks to it
    whenever a trial is refused.

    Parameters
    ----------
    width
        Width of the first interval, a number or one for each coordinate.
    most_trials
        Trials of a step after which the state stays.
    problem, starts, estimate, draws, seed, chains, warmup, bridges, transition
        The same as for :func:`harness.intractable.auxiliary.auxiliary_variables`.

    Returns
    -------
    Fit
        Unweighted draws.  The attribute ``trials`` is the mean number of trials of a step, and
        ``stayed`` the share of steps that gave up, both with those of warm-up.

    Raises
    ------
    DataError
        If a setting does not fit the problem, or one of its functions returns what it must not.
    """
    at = np.asarray(estimate, dtype=np.float64)
    widths = np.asarray(width, dtype=np.float64)
    if at.shape != (problem.dimension,) or not np.isfinite(at).all():
        raise DataError(
            f"the estimate for {problem.name} must be {problem.dimension} finite numbers; got "
            f"shape {at.shape}"
        )
    if widths.shape not in ((), at.shape) or not (np.isfinite(widths) & (widths > 0)).all():
        raise DataError(
            "the width of a slice must be a positive finite number, or one for each of "
            f"{problem.dimension} coordinates; got {widths.tolist()}"
        )
    length = draws // 2 if warmup is None else warmup
    if min(draws, most_trials) < 1 or length < 0:
        raise DataError(
            "a run needs draws and most_trials of 1 or more, warmup of 0 or more; got draws "
            f"{draws}, most_trials {most_trials}, warmup {length}"
        )
    rng = np.random.default_rng(seed)
    counted, auxiliary = Counted(problem), AuxiliaryVariables(at, Bridge(bridges, transition))
    points = starting_points(problem, starts, chains)
    heights = _log_heights(problem, auxiliary, points, rng)
    if np.isneginf(heights).any():
        raise DataError(f"a start of {problem.name} is impossible under its prior or its data")
    spread = np.broadcast_to(widths, at.shape)
    kept, log_heights = np.empty((draws, chains, len(at))), np.empty((draws, chains))
    trials = stayed = 0
    for step in range(-length, draws):
        taken, refused = _step(problem, auxiliary, points, heights, spread, most_trials, rng)
        trials, stayed = trials + taken, stayed + refused
        if step >= 0:
            kept[step], log_heights[step] = points, heights
    counted.cost.densities = trials
    steps = chains * (length + draws)
    return plain_fit(
        METHOD,
        counted,
        kept.swapaxes(0, 1),
        settings={
            "draws": draws,
            "warmup": length,
            "bridges": bridges,
            "estimate": at.tolist(),
            "width": widths.tolist(),
            "most_trials": most_trials,
        },
        seed=seed,
        stats={"log_height": log_heights.T},
        found={"trials": trials / steps, "stayed": stayed / steps},
    )


def _log_heights(
    problem: IntractableProblem,
    auxiliary: AuxiliaryVariables,
    points: FloatArray,
    rng: np.random.Generator,
) -> FloatArray:
    """Return log H (n,) at points (n, D) with fresh data; nobody simulates where p(theta) is 0."""
    heights = problem.prior(points)
    inside = np.flatnonzero(heights > -np.inf)
    if inside.size:
        there = points[inside]
        heights[inside] += problem.likelihood(there) + auxiliary.fresh(problem, there, rng)
    return heights


def _step(
    problem: IntractableProblem,
    auxiliary: AuxiliaryVariables,
    points: FloatArray,
    heights: FloatArray,
    widths: FloatArray,
    most_trials: int,
    rng: np.random.Generator,
) -> tuple[int, int]:
    """Move all chains once, in place; return the numbers of trials and of chains that stayed."""
    count, dimension = points.shape
    axis = np.asarray(rng.integers(dimension, size=count))
    centre = points[np.arange(count), axis]
    level = heights - rng.exponential(size=count)
    low = centre - widths[axis] * rng.random(count)
    high = low + widths[axis]
    left: npt.NDArray[np.intp] = np.arange(count)
    trials = 0
    for _ in range(most_trials):
        tried = points[left].copy()
        value = rng.uniform(low[left], high[left])
        tried[np.arange(len(left)), axis[left]] = value
        found = _log_heights(problem, auxiliary, tried, rng)
        trials += len(left)
        taken = found >= level[left]
        points[left[taken]], heights[left[taken]] = tried[taken], found[taken]
        left, value = left[~taken], value[~taken]
        if not left.size:
            break
        below = value < centre[left]
        low[left] = np.where(below, value, low[left])
        high[left] = np.where(below, high[left], value)
    return trials, len(left)
