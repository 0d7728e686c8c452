"""Runs with overrelaxation and pivots: a correlated Gaussian, and a uniform density; the pillar."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from harness.arrays import FloatArray
from harness.evidence import autocorrelation_times
from harness.fit import Fit
from harness.forms.method import python_method
from harness.model import Model
from harness.proposals import (
    Chance,
    GaussianStep,
    Pair,
    Sizes,
    evaluated,
    metropolis,
    ordered_overrelaxation,
    pivot_metropolis,
    pivot_persistence,
    pivot_transition,
)

from .runs import fit_of_runs, thinning, watched
from .targets import CORRELATION, PILLAR, log_gaussian, log_pillar, log_uniform

OVERRELAXATION_NAME, PERSISTENCE_NAME = "proposals_overrelaxation", "proposals_persistence"
PILLAR_NAME = "proposals_pillar"
Base = Literal["gibbs", "slice", "metropolis"]
Update = Callable[[FloatArray, Chance], FloatArray]

_SD = float(np.sqrt(1 - CORRELATION**2))  # of a coordinate given the other
_METROPOLIS_SD = 2.4 * _SD


def component(base: Base, axis: int, density: Any) -> Update:
    """Return the update of one coordinate: by Gibbs, slice sampling or Metropolis.

    The slice of a Gaussian is an interval that is known, so no bracket is searched for.
    """

    def update(points: FloatArray, chance: Chance) -> FloatArray:
        mean = CORRELATION * points[:, 1 - axis]
        moved = points.copy()
        if base == "gibbs":
            moved[:, axis] = mean + _SD * chance.rng.standard_normal(len(points))
        elif base == "slice":
            level = chance.rng.standard_exponential(len(points))
            half = np.sqrt(np.square(points[:, axis] - mean) + 2 * _SD**2 * level)
            moved[:, axis] = mean + half * chance.rng.uniform(-1, 1, len(points))
        else:
            moved[:, axis] += _METROPOLIS_SD * chance.rng.standard_normal(len(points))
            before = evaluated(density, points)
            after = evaluated(density, moved)
            with np.errstate(over="ignore"):
                ratio = np.exp(after.log_density - before.log_density)
            return after.where(chance.happens(np.minimum(1, ratio)), before).points
        return moved

    return update


def sample_overrelaxed(
    model: Model,
    *,
    base: Base,
    size: int | Sizes | None,
    reflect: bool = False,
    chains: int,
    steps: int,
    seed: int,
) -> Fit:
    """Update both coordinates in turn, plainly or to the opposite of several draws.

    Parameters
    ----------
    model
        The correlated Gaussian.
    base
        The update of a coordinate.
    size
        Number of draws from which the opposite one is taken; None for the plain update.
    reflect
        Whether to propose from the pivot without accepting each, and to use the reflect move; then
        the base is Metropolis's proposal.
    chains, steps
        Number of chains, and of updates of both coordinates.
    seed
        Seed of the run.
    """
    what, rng = watched(model), np.random.default_rng(seed)
    chance, density = Chance(rng), what.counted(log_gaussian)
    root = np.linalg.cholesky(np.array([[1, CORRELATION], [CORRELATION, 1]]))
    points = rng.standard_normal((chains, 2)) @ root.T
    series, kept, draws = np.empty((chains, steps)), [], 0.0
    updates = [component(base, axis, density) for axis in (0, 1)]
    for step in range(steps):
        for axis, update in enumerate(updates):
            if size is None:
                points, made = update(points, chance), 1.0
            elif reflect:
                points, made = reflected(points, axis, density, size, chance), float(_fixed(size))
            else:
                points, made = overrelaxed(points, axis, update, base, size, chance)
            draws += made
        series[:, step] = points.sum(axis=1)
        if step % thinning(steps) == 0:
            kept.append(points)
    settings: dict[str, Any] = {"base": base, "size": str(size), "reflect": reflect}
    settings |= {"chains": chains, "steps": steps}
    found = _times(series) | {"draws": draws / steps}
    return fit_of_runs(OVERRELAXATION_NAME, what, kept, found, settings=settings, seed=seed)


def _fixed(size: int | Sizes) -> int:
    return size if isinstance(size, int) else size.most


def overrelaxed(
    points: FloatArray, axis: int, update: Update, base: Base, size: int | Sizes, chance: Chance
) -> tuple[FloatArray, float]:
    """Move to the opposite of draws by Gibbs, or of updates from a pivot; and the mean of K."""

    def key(points: FloatArray) -> FloatArray:
        return points[:, axis]

    if base == "gibbs":
        moved = ordered_overrelaxation(
            lambda rows, chance: update(points[rows], chance), key, points, chance, size
        )
    else:
        moved = pivot_transition(update, update, key, points, chance, size=size)
    return moved.points, float(moved.draws.mean())


def reflected(
    points: FloatArray, axis: int, density: Any, size: int | Sizes, chance: Chance
) -> FloatArray:
    """Propose along one axis from a pivot, and reflect."""
    other = points[:, 1 - axis]
    number = _fixed(size)

    def along(x: FloatArray) -> FloatArray:
        rest = other if len(x) == len(other) else np.repeat(other, len(x) // len(other))
        pair = np.column_stack([x[:, 0], rest] if axis == 0 else [rest, x[:, 0]])
        value: FloatArray = density(pair)
        return value

    step = GaussianStep(_METROPOLIS_SD)
    line = evaluated(along, points[:, axis : axis + 1])
    after = pivot_metropolis(along, step, step, lambda x: x[:, 0], line, chance, size=number)
    moved = points.copy()
    moved[:, axis] = after.points[:, 0]
    return moved


def _times(series: FloatArray) -> dict[str, Any]:
    """Return the autocorrelation time of all chains with its error."""
    time = autocorrelation_times(series).own
    return {
        "iat": float(time.value),
        "iat_error": float(time.error),
        "iat_closed": float(time.closed),
    }


def crossings(series: FloatArray) -> int:
    """Return how often chains (n, draws) cross from below 0.1 to above 0.9, or back."""
    total = 0
    for one in series:
        ends = one[(one < 0.1) | (one > 0.9)] > 0.5
        total += int(np.count_nonzero(np.diff(ends)))
    return total


def sample_uniform(
    model: Model, *, sd: float, size: int | None, chains: int, steps: int, seed: int
) -> Fit:
    """Explore Uniform[0, 1] by Metropolis or, with a size, by persistent motion with pivots."""
    what, rng = watched(model), np.random.default_rng(seed)
    chance, density = Chance(rng), what.counted(log_uniform)
    proposal = GaussianStep(sd)

    def update(points: FloatArray, chance: Chance) -> FloatArray:
        return metropolis(density, proposal, evaluated(density, points), chance).after.points

    first = rng.random((chains, 1))
    pair = Pair(first, update(first, chance))
    series, kept = np.empty((chains, steps)), []
    for step in range(steps):
        if size is None:
            pair = Pair(update(pair.first, chance), pair.second)
        else:
            pair = pivot_persistence(update, update, lambda x: x[:, 0], pair, chance, size=size)
        series[:, step] = pair.first[:, 0]
        if step % thinning(steps) == 0:
            kept.append(pair.first)
    found = _times(series) | {
        "draws": 1.0 if size is None else 2.0 * size,
        "crossings": float(crossings(series)),
        "path": series[0, :200],
    }
    settings = {"sd": sd, "size": size or 0, "chains": chains, "steps": steps}
    return fit_of_runs(PERSISTENCE_NAME, what, kept, found, settings=settings, seed=seed)


def sample_pillar(model: Model, *, sd: float, chains: int, steps: int, seed: int) -> Fit:
    """Count moves that are proposed from the pillar to the plateau, and how many are accepted."""
    what, rng = watched(model), np.random.default_rng(seed)
    chance, density = Chance(rng), what.counted(log_pillar)
    inside = rng.random((chains, 1)) < 0.5
    low, high = np.where(inside, 0.0, PILLAR), np.where(inside, PILLAR, 1.0)
    state = evaluated(density, low + (high - low) * rng.random((chains, 1)))
    proposed, accepted, kept = 0, 0, []
    for step in range(steps):
        made = metropolis(density, GaussianStep(sd), state, chance)
        there = made.proposed.points[:, 0]
        leaves = (state.points[:, 0] < PILLAR) & (there > PILLAR) & (there < 1)
        proposed += int(leaves.sum())
        accepted += int((leaves & (made.after.points[:, 0] == there)).sum())
        state = made.after
        if step % thinning(steps) == 0:
            kept.append(state.points)
    found = {"proposed": float(proposed), "accepted": float(accepted)}
    settings = {"sd": sd, "chains": chains, "steps": steps}
    return fit_of_runs(PILLAR_NAME, what, kept, found, settings=settings, seed=seed)


OVERRELAXATION = python_method(OVERRELAXATION_NAME, sample_overrelaxed)
PERSISTENCE = python_method(PERSISTENCE_NAME, sample_uniform)
PILLARS = python_method(PILLAR_NAME, sample_pillar)
