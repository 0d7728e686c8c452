"""Points near the target, in all modes that are known, where parallel tempering starts.

Its second reference is fitted to them, so a mode in which there are few of them, or none, is hard
to reach.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from harness.arrays import FloatArray
from harness.engine.batched import BatchedDensity
from harness.engine.cores import cores
from harness.engine.nuts import NutsSettings
from harness.errors import HarnessError
from harness.model import Model
from harness.user.compare import unconstrained
from harness.user.judge import Judgement, from_both
from harness.user.mode_alone import walks
from harness.user.neighbourhood import Neighbourhood
from harness.user.other_modes import OtherMode
from harness.user.scouted import Scouted

_WALKS = NutsSettings(chains=8, warmup=150, draws=100, parallel_chains=2)


def near_target(
    model: Model,
    scouted: Scouted,
    draws: Mapping[str, FloatArray],
    judged: Judgement,
    elsewhere: Sequence[OtherMode],
    *,
    most_seconds: float,
    seed: int,
) -> dict[str, FloatArray] | None:
    """Return points near the target, of the search, of NUTS and of climbs.

    Chains of NUTS may be stuck far from everything, and particles of the search may have been left
    behind, so NUTS's draws are taken only if the search is not sound.  Particles may also cover a
    mode in part only: where plain NUTS has no draws, short runs that start from some of them go on.

    Parameters
    ----------
    model
        From :func:`harness.temper.tempered_model`.
    scouted
        What the pilots found.
    draws
        NUTS's draws by parameter, shape (chains, draws, ...).
    judged
        What is known of both.
    elsewhere
        Modes that only climbs found.
    most_seconds
        Seconds of wall time for the short runs, roughly.
    seed
        Seed.

    Returns
    -------
    dict or None
        By parameter, shape (n, ...); None if nothing is known besides NUTS's draws: parallel
        tempering then makes short runs of NUTS of its own.
    """
    density = BatchedDensity(model.program("target"), model.data, threads=cores())
    near = points_of_search(scouted, draws, judged)
    if near is not None:
        near = _with_walks(near, model, density, draws, most_seconds, seed)
    return _with_elsewhere(near, elsewhere, density, draws, seed)


def in_other_modes(
    model: Model, draws: Mapping[str, FloatArray], elsewhere: Sequence[OtherMode], *, seed: int
) -> dict[str, FloatArray] | None:
    """Return draws and points in modes that only climbs found; None if there are no such modes.

    Parameters
    ----------
    model, elsewhere, seed
        As for :func:`near_target`.
    draws
        By parameter, shape (chains, draws, ...).
    """
    density = BatchedDensity(model.program("target"), model.data, threads=cores())
    return _with_elsewhere(None, elsewhere, density, draws, seed)


def points_of_search(
    scouted: Scouted, draws: Mapping[str, FloatArray], judged: Judgement
) -> dict[str, FloatArray] | None:
    """Return the search's particles, and NUTS's draws as well if the search is not sound.

    Parameters
    ----------
    scouted, draws, judged
        As for :func:`near_target`.
    """
    if scouted.search is None:
        return None
    particles = {name: _flat(value) for name, value in scouted.search.values.items()}
    if judged.search_is_sound:
        return particles
    both = from_both(particles, draws)
    return {name: both[name] for name in particles}


def _with_walks(
    near: dict[str, FloatArray],
    model: Model,
    density: BatchedDensity,
    draws: Mapping[str, FloatArray],
    most_seconds: float,
    seed: int,
) -> dict[str, FloatArray]:
    """Add draws of NUTS that starts at points where plain NUTS has none."""
    points = density.unconstrain_draws(near)
    visited = Neighbourhood(unconstrained(draws, 2, density).reshape(-1, density.dimension))
    known = np.flatnonzero(np.isfinite(points).all(axis=1))
    outside = points[known[~visited.holds(points[known])]]
    if len(outside) < _WALKS.chains:
        return near
    try:
        walked = walks(model, density, outside, _WALKS, most_seconds=most_seconds, seed=seed).values
    except HarnessError:  # the points themselves are worth having
        return near
    return _joined(near, {name: _flat(walked[name]) for name in near})


def _with_elsewhere(
    near: dict[str, FloatArray] | None,
    modes: Sequence[OtherMode],
    density: BatchedDensity,
    draws: Mapping[str, FloatArray],
    seed: int,
) -> dict[str, FloatArray] | None:
    """Add points in modes that only climbs found, a third of all points."""
    if not modes:
        return near
    if near is None:
        near = {name: _flat(value) for name, value in draws.items()}
    each = -(-len(next(iter(near.values()))) // (2 * len(modes)))
    rng = np.random.default_rng([seed, 13])
    points = np.concatenate([mode.points(each, rng) for mode in modes])
    return _joined(near, density.constrain(points))


def _joined(
    one: Mapping[str, FloatArray], other: Mapping[str, FloatArray]
) -> dict[str, FloatArray]:
    return {name: np.concatenate([value, other[name]]) for name, value in one.items()}


def _flat(values: FloatArray) -> FloatArray:
    return values.reshape(-1, *values.shape[2:])
