"""The equi-energy sampler, which jumps between points of nearly the same energy.

Level i of K has the density gamma_i(x) = exp(-max(h(x), H_i) / T_i), where h = -log gamma is the
energy.  It is hotter than the target and flat below H_i.  Each level moves by random-walk
Metropolis.  From time to time it instead proposes a point that the level above it has visited, from
the energy ring that the chain is in.  Level 0 is the target.

References
----------
Kou, S. C., Zhou, Q. and Wong, W. H. (2006). Equi-energy sampler with applications in statistical
inference and statistical mechanics. Annals of Statistics 34, 1581-1619.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.fit import Fit
from harness.forms.method import python_method
from harness.model import Model
from harness.model.python_target import Target, target_of
from harness.path.gaussian import GaussianBase
from harness.samplers.geometric_path import GeometricPath
from harness.samplers.result import plain_fit

MIXTURE_TEMPERATURES = (1.0, 2.8, 7.7, 21.6, 60.0)
"""Temperatures of five levels that suit the mixture of 20 Gaussians; they are the usual choice."""
MIXTURE_ENERGIES = (0.2, 2.0, 6.3, 20.0, 63.2)
"""Energies H_i of these five levels, for the normalised density."""

METHOD = "equi_energy"


def equi_energy(
    what: Model | Target,
    base: GaussianBase,
    *,
    scale: float,
    temperatures: npt.ArrayLike = MIXTURE_TEMPERATURES,
    energies: npt.ArrayLike = MIXTURE_ENERGIES,
    jump_probability: float = 0.1,
    chains: int = 16,
    draws: int = 5000,
    warmup: int = 2500,
    seed: int,
) -> Fit:
    """Sample a target by the equi-energy sampler (Kou et al. 2006).

    Levels run one after the other, the hottest first.  Each finishes its warm-up and draws before
    the one below it starts, so that rings do not change while they are used.  (In the paper a level
    starts when the one above it has filled its rings, and all levels go on running.)  Every chain
    has its own levels and rings, so chains are independent.  The level of the target itself is
    never flattened: its density is gamma, whatever H_0 is.

    Parameters
    ----------
    what
        Model, which is evaluated by its Stan program, or target.
    base
        Gaussian from which every level starts, inside the target's support.
    scale
        Standard deviation of the target's random-walk proposals, in units of the base's standard
        deviations; that of level i is sqrt(T_i) times as large.  The mixture of 20 Gaussians takes
        0.25 units of x; use an isotropic base for that.
    temperatures
        T_i, ascending from 1.
    energies
        H_i, ascending, one for each temperature.  They also bound the rings, of which the last has
        no upper bound.
    jump_probability
        Probability of proposing a jump instead of a random-walk step.  If a chain's ring is empty,
        it takes the step.
    chains
        Number of independent samplers.
    draws, warmup
        Iterations of each level that are kept, and those before.
    seed
        Seed.

    Raises
    ------
    DataError
        If a setting is out of range, the levels do not ascend, or hardly any of the base lies
        within the target's support.
    """
    temperature, energy = _levels(temperatures, energies)
    if not (np.isfinite(scale) and scale > 0):
        raise DataError(f"the scale of proposals must be positive and finite; got {scale}")
    if not 0 <= jump_probability < 1:
        raise DataError(f"the probability of a jump must lie in [0, 1); got {jump_probability}")
    if chains < 1 or draws < 4 or warmup < 0:
        raise DataError(
            f"the equi-energy sampler needs 1 chain, 4 draws and 0 iterations of warm-up or more; "
            f"got {chains}, {draws} and {warmup}"
        )
    path = GeometricPath(target_of(what), base)
    rng = np.random.default_rng(seed)
    above: Rings | None = None
    rates = []
    for level in reversed(range(len(temperature))):
        kept = _run(
            path,
            Level(
                path,
                temperature[level],
                energy[level] if level else -np.inf,
                scale * np.sqrt(temperature[level]) * base.cholesky.T,
                jump_probability if above is not None else 0.0,
                above,
            ),
            chains=chains,
            draws=draws,
            warmup=warmup,
            rng=rng,
        )
        rates.append(float(kept.acceptance.mean()))
        above = Rings(kept.points, kept.log_gamma, energy, temperature[level], energy[level])
    return plain_fit(
        METHOD,
        path,
        kept.points,
        settings={
            "scale": scale,
            "temperatures": temperature.tolist(),
            "energies": energy.tolist(),
            "jump_probability": jump_probability,
            "chains": chains,
            "draws": draws,
            "warmup": warmup,
        },
        seed=seed,
        stats={
            "lp": kept.log_gamma,
            "acceptance_rate": kept.acceptance,
            "jumped": kept.jumped.astype(np.float64),
        },
        found={"acceptance_of_levels": np.array(rates[::-1])},
    )


class Rings:
    """The points that a level visited, sorted by energy ring, for each chain.

    Parameters
    ----------
    points, log_gamma
        The level's draws, shapes (chains, T, D) and (chains, T).
    energies
        Bounds of the rings: [H_1, H_2), ..., [H_K, inf).  The first ring, number 0, lies below H_1.
    temperature, floor
        The level's own T and H.
    """

    def __init__(
        self,
        points: FloatArray,
        log_gamma: FloatArray,
        energies: FloatArray,
        temperature: float,
        floor: float,
    ) -> None:
        self._bounds = energies[1:]
        self._temperature, self._floor = temperature, floor
        ring = self.number(log_gamma)
        order = np.argsort(ring, axis=1, kind="stable")
        self._points = np.take_along_axis(points, order[..., None], axis=1)
        self._log_gamma = np.take_along_axis(log_gamma, order, axis=1)
        count = np.stack([(ring == j).sum(axis=1) for j in range(len(energies))], axis=1)
        self._first = np.cumsum(count, axis=1) - count
        self._count = count

    def number(self, log_gamma: FloatArray) -> npt.NDArray[np.intp]:
        """Return the ring of each log density."""
        return np.searchsorted(self._bounds, -log_gamma, side="right")

    def size(self, chain: npt.NDArray[np.intp], log_gamma: FloatArray) -> npt.NDArray[np.intp]:
        """Return how many points are in the rings of chains with these log densities."""
        return np.asarray(self._count[chain, self.number(log_gamma)], dtype=np.intp)

    def draw(
        self, chain: npt.NDArray[np.intp], log_gamma: FloatArray, rng: np.random.Generator
    ) -> tuple[FloatArray, FloatArray]:
        """Draw a point with its log density from each chain's ring, which must not be empty."""
        ring = self.number(log_gamma)
        count = self._count[chain, ring]
        place = self._first[chain, ring] + (rng.random(len(chain)) * count).astype(np.intp)
        return self._points[chain, place], self._log_gamma[chain, place]

    def log_density(self, log_gamma: FloatArray) -> FloatArray:
        """Return the log density of the level, given that of the target."""
        return flattened(log_gamma, self._temperature, self._floor)


def flattened(log_gamma: FloatArray, temperature: float, floor: float) -> FloatArray:
    """Return the log density of a level, -max(h, H) / T with h = -log gamma (Kou et al. 2006)."""
    value: FloatArray = -np.maximum(-log_gamma, floor) / temperature
    return value


class Level:
    """The transition of one level.

    Parameters
    ----------
    path
        The path, which evaluates the target.
    temperature, floor
        T and H of the level.
    step
        Proposals add z @ step to a point, where z is standard normal; shape (D, D).
    jump_probability
        Probability of proposing a jump.
    above
        Rings of the next hotter level; None for the hottest.
    """

    def __init__(
        self,
        path: GeometricPath,
        temperature: float,
        floor: float,
        step: FloatArray,
        jump_probability: float,
        above: Rings | None,
    ) -> None:
        self._path = path
        self._temperature, self._floor = temperature, floor
        self._step = step
        self._jump_probability = jump_probability
        self._above = above

    def move(self, points: FloatArray, log_gamma: FloatArray, rng: np.random.Generator) -> Moved:
        """Move chains once: points (n, D), with the log densities of the target there, (n,)."""
        count = len(points)
        jump = rng.random(count) < self._jump_probability
        chain = np.arange(count)
        if self._above is not None:
            jump[jump] = self._above.size(chain[jump], log_gamma[jump]) > 0
        proposed, value = np.empty_like(points), np.empty(count)
        log_ratio = np.zeros(count)
        if self._above is not None and jump.any():
            proposed[jump], value[jump] = self._above.draw(chain[jump], log_gamma[jump], rng)
            # The level above proposes a point with a probability proportional to its own density.
            log_ratio[jump] = self._above.log_density(log_gamma[jump]) - self._above.log_density(
                value[jump]
            )
        walk = ~jump
        if walk.any():
            noise = rng.standard_normal((int(walk.sum()), points.shape[1]))
            proposed[walk] = points[walk] + noise @ self._step
            value[walk] = self._path.log_gamma(proposed[walk])
        log_ratio += self._log_density(value) - self._log_density(log_gamma)
        acceptance = np.exp(np.minimum(0.0, log_ratio))
        accept = rng.random(count) < acceptance
        return Moved(
            np.where(accept[:, None], proposed, points),
            np.where(accept, value, log_gamma),
            acceptance,
            accept & jump,
        )

    def _log_density(self, log_gamma: FloatArray) -> FloatArray:
        return flattened(log_gamma, self._temperature, self._floor)


class Moved(NamedTuple):
    """Chains after a transition; if they hold draws, all shapes begin with (chains, draws)."""

    points: FloatArray
    """Shape (n, D)."""
    log_gamma: FloatArray
    """The target's log density there, shape (n,)."""
    acceptance: FloatArray
    """Acceptance probability, shape (n,)."""
    jumped: npt.NDArray[np.bool_]
    """Whether an equi-energy jump was made, shape (n,)."""


def _run(
    path: GeometricPath,
    level: Level,
    *,
    chains: int,
    draws: int,
    warmup: int,
    rng: np.random.Generator,
) -> Moved:
    """Run one level, with all chains."""
    started = path.start_at_base(rng, chains)
    points, log_gamma = started.points, started.log_gamma
    kept = Moved(
        np.empty((chains, draws, points.shape[1])),
        np.empty((chains, draws)),
        np.empty((chains, draws)),
        np.empty((chains, draws), dtype=np.bool_),
    )
    for t in range(-warmup, draws):
        made = level.move(points, log_gamma, rng)
        points, log_gamma = made.points, made.log_gamma
        if t >= 0:
            for series, now in zip(kept, made, strict=True):
                series[:, t] = now
    return kept


def _levels(temperatures: npt.ArrayLike, energies: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    temperature = np.asarray(temperatures, dtype=np.float64)
    energy = np.asarray(energies, dtype=np.float64)
    if temperature.ndim != 1 or not temperature.size or temperature.shape != energy.shape:
        raise DataError(
            f"the equi-energy sampler needs as many temperatures as energies, one level or more; "
            f"got shapes {temperature.shape} and {energy.shape}"
        )
    if not (np.all(np.isfinite(temperature)) and np.all(np.isfinite(energy))):
        raise DataError("temperatures and energies must be finite")
    if temperature[0] != 1 or np.any(np.diff(temperature) <= 0) or np.any(np.diff(energy) <= 0):
        raise DataError(
            f"temperatures must ascend from 1 and energies must ascend; got "
            f"{temperature.tolist()} and "
            f"{energy.tolist()}"
        )
    return temperature, energy


EQUI_ENERGY = python_method(METHOD, equi_energy)
