"""Starting points of climbs to modes of a posterior, in places that its draws do not suggest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from harness.arrays import FloatArray
from harness.engine.batched import BatchedDensity
from harness.engine.nuts import ADAPTS_METRIC, NutsSettings
from harness.engine.short_nuts import run_short_nuts
from harness.errors import HarnessError
from harness.model import Model
from harness.user.one_copy import unconstrained_within
from harness.user.prior import PRIOR
from harness.user.simulated import simulated_prior

_OF_PRIOR, _RANDOM, _AROUND, _EQUAL, _PERMUTED = 1024, 2048, 512, 256, 8
"""Points of each kind; the last for each length of a first axis."""
_RADIUS = 2.0
_FAR = (3.0, 10.0, 30.0)
"""Standard deviations of the points around the draws."""
_PRIOR = NutsSettings(chains=4, warmup=ADAPTS_METRIC, draws=16)


class Starts(NamedTuple):
    """Where climbs begin."""

    origin: list[str]
    """Where each point is from, in words."""
    points: FloatArray
    """Shape (m, D)."""
    anew: FloatArray
    """Points (n, D) that have nothing to do with the draws: half of the prior, half at random."""


def starting_points(
    model: Model,
    density: BatchedDensity,
    draws: Mapping[str, FloatArray],
    points: FloatArray,
    seed: int,
) -> Starts:
    """Return starting points of all kinds, each part of them with some of each kind.

    Parameters
    ----------
    model
        From :func:`harness.temper.tempered_model`.
    density
        Its density.
    draws
        Draws by parameter, shape (chains, draws, ...).
    points
        The same on the unconstrained space, shape (n, D).
    seed
        Seed.
    """
    rng = np.random.default_rng([seed, 22])
    prior, scattered = _of_prior(model, density, seed), _random(rng, points.shape[1])
    around = _around(rng, points)
    half = _EQUAL // 2
    wide = np.concatenate([(prior if len(prior) else scattered)[:half], around[:half]])
    origin, start = _mixed(
        rng,
        {
            "a draw of the prior": prior,
            "a random starting point": scattered,
            "a point with equal elements": _equal(rng, density, wide),
            "a point far from the draws": around,
            "a draw with its elements in another order": _permuted(rng, density, draws),
        },
    )
    return Starts(origin, start, np.concatenate([prior, scattered[: len(prior) or None]]))


def _mixed(
    rng: np.random.Generator, starts: Mapping[str, FloatArray]
) -> tuple[list[str], FloatArray]:
    """Return starting points of all kinds in such an order that each part has some of each kind."""
    origin = [name for name, points in starts.items() for _ in points]
    ranks = [(np.arange(len(each)) + rng.random()) / max(len(each), 1) for each in starts.values()]
    order = np.argsort(np.concatenate(ranks), kind="stable")
    return [origin[k] for k in order], np.concatenate(list(starts.values()))[order]


def _random(rng: np.random.Generator, dimension: int) -> FloatArray:
    """Points as Stan starts from them."""
    return rng.uniform(-_RADIUS, _RADIUS, (_RANDOM, dimension))


def _around(rng: np.random.Generator, flat: FloatArray) -> FloatArray:
    mean, spread = flat.mean(axis=0), flat.std(axis=0)
    far = np.resize(_FAR, _AROUND)[:, None]
    points: FloatArray = mean + far * spread * rng.standard_normal((_AROUND, len(mean)))
    return points


def _of_prior(model: Model, density: BatchedDensity, seed: int) -> FloatArray:
    """Return draws of the prior; none if it has no program or cannot be sampled."""
    none = np.empty((0, density.dimension))
    if model.own_base != "prior":
        return none
    try:
        points = simulated_prior(
            model, BatchedDensity(model.program(PRIOR), model.data), _OF_PRIOR, seed
        ).points
    except HarnessError:
        points = _sampled_prior(model, density, seed)
    return points[np.all(np.isfinite(points), axis=1)]


def _sampled_prior(model: Model, density: BatchedDensity, seed: int) -> FloatArray:
    """Return a few draws of the prior by NUTS; none if that fails."""
    try:
        run = run_short_nuts(model.program(PRIOR), model.data, _PRIOR, seed)
        return density.unconstrain_draws(
            {
                name: run.variables[name].reshape(-1, *run.variables[name].shape[2:])
                for name in density.shapes
            }
        )
    except HarnessError:
        return np.empty((0, density.dimension))


def _equal(rng: np.random.Generator, density: BatchedDensity, points: FloatArray) -> FloatArray:
    """Return points at which each parameter has one value for all of its elements.

    In many dimensions hardly any random point is near a mode where all elements are large, say.
    Parameters whose constraint forbids equal elements stay as they are, and points far out where
    rounding takes a parameter out of its support are left out.
    """
    values = density.constrain(points, rejected="nan")
    point, known = unconstrained_within(density, values)
    values = {name: each[known] for name, each in values.items()}
    point = point[known]
    for name, each in values.items():
        size = each[0].size if len(each) else 0
        if size < 2:
            continue
        flat = each.reshape(len(each), -1)
        chosen = flat[np.arange(len(flat)), rng.integers(size, size=len(flat))]
        equal = np.repeat(chosen, size).reshape(each.shape)
        moved, allowed = unconstrained_within(density, values | {name: equal})
        point[allowed], each[allowed] = moved[allowed], equal[allowed]
    return point


def _permuted(
    rng: np.random.Generator, density: BatchedDensity, draws: Mapping[str, FloatArray]
) -> FloatArray:
    """Return draws in which the elements along first axes of one length have changed places.

    Parameters whose first axes have the same length change together, as groups of a mixture do.
    """
    lengths = {value.shape[2] for value in draws.values() if value.ndim > 2 and value.shape[2] > 1}
    chains, count = next(iter(draws.values())).shape[:2]
    made: list[dict[str, FloatArray]] = []
    for length in sorted(lengths):
        for _ in range(_PERMUTED):
            order = rng.permutation(length)
            if np.array_equal(order, np.arange(length)):
                order = np.roll(order, 1)
            chain, draw = int(rng.integers(chains)), int(rng.integers(count))
            changed = {
                name: value[chain, draw][order]
                if value.ndim > 2 and value.shape[2] == length
                else value[chain, draw]
                for name, value in draws.items()
            }
            made.append(changed)
    if not made:
        return np.empty((0, density.dimension))
    values = {name: np.stack([each[name] for each in made]) for name in draws}
    points, allowed = unconstrained_within(density, values)
    return points[allowed]  # a constraint may forbid an order
