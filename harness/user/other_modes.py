"""Look for modes of a posterior that given draws do not know: climb from many starting points.

A bridge sees only the modes in its draws; one that no chain has visited makes log Z too low, and
nothing in the draws shows it.  So climbs start at places that the draws do not suggest: Stan's own
random starts, points far around the draws, draws of the prior, and draws whose elements have
changed places (labels of groups).  Where a climb ends at a mode without draws nearby, the Gaussian
that fits there (Laplace's approximation) tells its mass.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.spatial import cKDTree

from harness.arrays import FloatArray
from harness.engine.batched import BatchedDensity
from harness.engine.nuts import NutsSettings
from harness.engine.short_nuts import run_short_nuts
from harness.errors import HarnessError
from harness.model import Model
from harness.user.prior import PRIOR

LEAST_SHARE = 0.01
"""Mass of a mode, as a share of that of the draws, from which on it matters."""
_RANDOM, _AROUND, _PERMUTED, _KNOWN = 12, 12, 6, 8
"""Climbs from each kind of starting point; the known modes are where climbs from draws end."""
_RADIUS = 2.0
_FAR = (3.0, 10.0, 30.0)
"""Standard deviations of the points around the draws."""
_STEPS = 200
_ARRIVED = 0.5
"""Largest height in nats that a Newton step could still gain at a mode."""
_EXAMINED = 5
_NEAR = 1.5
"""Multiple of the distances between draws within which a mode counts as visited."""
_DRAWS_TO_COMPARE = 1500
_DIFFERENCE = 1e-4
_SHOWN = 3
_PRIOR = NutsSettings(chains=4, warmup=100, draws=4)


@dataclass(frozen=True)
class OtherMode:
    """A mode without draws nearby.

    Attributes
    ----------
    share
        Its mass by Laplace's approximation, as a share of the mass that the draws stand for.
    origin
        Where the climb to it began, in words.
    where
        Values of a few parameters there, in words.
    """

    share: float
    origin: str
    where: str

    def __str__(self) -> str:
        return (
            f"the draws miss a mode: a climb from {self.origin} ended at {self.where}, where there "
            f"are no draws, and the mode there has {_times(self.share)} the mass that the draws "
            "stand for"
        )


def _times(share: float) -> str:
    return f"about {share:.2g} times" if share < 100 else "more than 100 times"


def other_mode(
    model: Model,
    density: BatchedDensity,
    draws: Mapping[str, FloatArray],
    points: FloatArray,
    log_mass: float,
    *,
    seed: int,
) -> OtherMode | None:
    """Return the largest mode that the draws do not know, if there is one that matters.

    Parameters
    ----------
    model
        From :func:`harness.temper.tempered_model`.
    density
        Its density with all constants.
    draws
        Draws by parameter, shape (chains, draws, ...).
    points
        The same on the unconstrained space, shape (chains, draws, D).
    log_mass
        Log of the mass that the draws stand for.
    seed
        Seed of the starting points.  The same seed gives the same answer.
    """
    search = _Search(density, points)
    rng = np.random.default_rng([seed, 21])
    flat = points.reshape(-1, points.shape[2])
    known = [search.climb(flat[row]) for row in rng.integers(len(flat), size=_KNOWN)]
    seen = [end for end in known if end is not None]
    found: list[tuple[float, str, FloatArray]] = []
    starts = [
        *(("a random starting point", row) for row in _random(rng, flat.shape[1])),
        *(("a point far from the draws", row) for row in _around(rng, flat)),
        *(("a draw of the prior", row) for row in _of_prior(model, density, seed)),
        *(
            ("a draw with its elements in another order", row)
            for row in _permuted(rng, density, draws)
        ),
    ]
    for origin, start in starts:
        end = search.climb(start)
        if end is None or any(search.same(end, each) for each in seen):
            continue
        seen.append(end)
        if not search.visited(end):
            found.append((search.height(end), origin, end))
    modes = []
    for _, origin, end in sorted(found, key=lambda each: -each[0])[:_EXAMINED]:
        mass = search.log_mass(end)
        if mass is not None and mass - log_mass > np.log(LEAST_SHARE):
            share = float(np.exp(min(mass - log_mass, 50.0)))
            modes.append(OtherMode(share, origin, _described(density, end, flat)))
    return max(modes, key=lambda each: each.share, default=None)


class _Search:
    """Climbs in coordinates in which the draws have mean 0 and standard deviation 1."""

    def __init__(self, density: BatchedDensity, points: FloatArray) -> None:
        flat = points.reshape(-1, points.shape[2])
        self._density = density
        self._mean, self._spread = flat.mean(axis=0), np.maximum(flat.std(axis=0), 1e-12)
        scaled = (flat - self._mean) / self._spread
        value, vector = np.linalg.eigh(np.atleast_2d(np.cov(scaled, rowvar=False)))
        self._root = vector / np.sqrt(np.maximum(value, 1e-10))
        step = max(1, len(flat) // _DRAWS_TO_COMPARE)
        self._tree = cKDTree(scaled[::step] @ self._root)
        apart = np.asarray(self._tree.query(self._tree.data, k=2)[0])[:, 1]
        self._near = _NEAR * float(np.quantile(apart, 0.99))

    def climb(self, start: FloatArray) -> FloatArray | None:
        """Return where a climb from a point ends, or None if it does not get anywhere."""

        def downhill(z: FloatArray) -> tuple[float, FloatArray]:
            value, slope = self._density((self._mean + self._spread * z)[None])
            if not np.isfinite(value[0]):
                return 1e100, np.zeros(z.shape)
            return -float(value[0]), -slope[0] * self._spread

        z = (start - self._mean) / self._spread
        if not np.isfinite(self.height(start)):
            return None
        ended = minimize(
            downhill, z, jac=True, method="L-BFGS-B", options={"maxiter": _STEPS, "maxcor": 20}
        )
        point: FloatArray = self._mean + self._spread * ended.x
        return point if np.all(np.isfinite(point)) else None

    def height(self, point: FloatArray) -> float:
        """Log density at a point."""
        return float(self._density(point[None])[0][0])

    def same(self, one: FloatArray, other: FloatArray) -> bool:
        """Whether two ends are one mode."""
        return bool(np.linalg.norm(self._whitened(one) - self._whitened(other)) < 1e-1)

    def visited(self, point: FloatArray) -> bool:
        """Whether there are draws near a point."""
        return float(np.asarray(self._tree.query(self._whitened(point))[0])) <= self._near

    def log_mass(self, point: FloatArray) -> float | None:
        """Log mass of a mode by Laplace's approximation; None if it is no mode."""
        dimension = len(point)
        shift = np.diag(_DIFFERENCE * self._spread)
        value, slope = self._density(np.concatenate([point[None], point + shift, point - shift]))
        if not np.all(np.isfinite(value)):
            return None
        up, down = slope[1 : dimension + 1], slope[dimension + 1 :]
        bent = -(up - down) / (2 * np.diag(shift))[:, None]
        bent = 0.5 * (bent + bent.T)
        sign, log_det = np.linalg.slogdet(bent)
        if sign <= 0 or np.linalg.eigvalsh(bent * np.outer(self._spread, self._spread))[0] <= 0:
            return None
        if 0.5 * float(slope[0] @ np.linalg.solve(bent, slope[0])) > _ARRIVED:
            return None
        return float(value[0] + 0.5 * dimension * np.log(2 * np.pi) - 0.5 * log_det)

    def _whitened(self, point: FloatArray) -> FloatArray:
        whitened: FloatArray = ((point - self._mean) / self._spread) @ self._root
        return whitened


def _random(rng: np.random.Generator, dimension: int) -> FloatArray:
    """Points as Stan starts from them."""
    return rng.uniform(-_RADIUS, _RADIUS, (_RANDOM, dimension))


def _around(rng: np.random.Generator, flat: FloatArray) -> FloatArray:
    mean, spread = flat.mean(axis=0), flat.std(axis=0)
    far = np.resize(_FAR, _AROUND)[:, None]
    points: FloatArray = mean + far * spread * rng.standard_normal((_AROUND, len(mean)))
    return points


def _of_prior(model: Model, density: BatchedDensity, seed: int) -> FloatArray:
    """Return a few draws of the prior; none if it has no program or cannot be sampled."""
    none = np.empty((0, density.dimension))
    if model.own_base != "prior":
        return none
    try:
        run = run_short_nuts(model.program(PRIOR), model.data, _PRIOR, seed)
        flat = {
            name: run.variables[name].reshape(-1, *run.variables[name].shape[2:])
            for name in density.shapes
        }
        points = density.unconstrain_draws(flat)
    except HarnessError:
        return none
    return points[np.all(np.isfinite(points), axis=1)]


def _permuted(
    rng: np.random.Generator, density: BatchedDensity, draws: Mapping[str, FloatArray]
) -> FloatArray:
    """Return draws in which the elements along first axes of one length have changed places.

    Parameters whose first axes have the same length change together, as groups of a mixture do.
    """
    lengths = {value.shape[2] for value in draws.values() if value.ndim > 2 and value.shape[2] > 1}
    chains, count = next(iter(draws.values())).shape[:2]
    points = []
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
            try:
                points.append(density.unconstrain(changed))
            except HarnessError:  # an order that a constraint forbids
                continue
    return np.array(points) if points else np.empty((0, density.dimension))


def _described(density: BatchedDensity, point: FloatArray, flat: FloatArray) -> str:
    """Return the values of the parameters that are farthest from the draws, in words."""
    try:
        values = density.constrain(np.stack([point, flat.mean(axis=0)]))
        spread = density.constrain(flat[:: max(1, len(flat) // 200)])
    except HarnessError:
        return "another place"
    told: list[tuple[float, str]] = []
    for name, both in values.items():
        deviation = np.maximum(spread[name].std(axis=0), 1e-300)
        score = np.abs(both[0] - both[1]) / deviation
        for index in np.ndindex(both.shape[1:]):
            inner = ",".join(str(i + 1) for i in index)
            label = f"{name}[{inner}]" if index else name
            told.append((float(score[index]), f"{label} = {float(both[0][index]):.3g}"))
    return _listed(text for _, text in sorted(told, key=lambda each: -each[0])[:_SHOWN])


def _listed(texts: Iterable[str]) -> str:
    return ", ".join(texts)
