"""What the weights of the paper's public program estimate, by independent draws in place of runs.

Given which pseudo-sample is the target's, the pseudo-extended target has independent parts: that
one is a draw of the target, the others are draws of the tempered density.  So any weights that a
program gives to its draws can be tried without a Markov chain.

Two traits of the public program are tried.  Its weights leave out the density's constant
1 / (2 pi), which is in its Stan programs, so that they are off by (2 pi)^(1 - beta_i), which
differs between pseudo-samples: it is tried in scenario (b).  And its loop over fixed inverse
temperatures weights scenario (b) with scenario (a)'s density.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from harness.arrays import FloatArray
from harness.evidence import normalised_weights
from harness.models.gaussian_mixture import Scenario, kou_mixture

BOX = (-100.0, 100.0)
"""Sides of the program's box, in both coordinates."""

BOX_OF_A_IN_2019 = (-10.0, 10.0)
"""Sides in scenario (a) in the program of 2019, the only one with another box."""

LOWEST_OF_2019 = 0.001
"""Lowest inverse temperature in the program of 2019; that of 2017 starts at 0."""

_DRAWS, _DRAWS_FIXED = 20_000, 8000
# Inverse temperatures of the tempered draws, close to each other where they are low.
_EDGES = np.concatenate([[0.0], np.geomspace(1e-5, 1.0, 60)])
_INNER, _CELL = (-3.0, 13.0), 0.08


@dataclass(frozen=True)
class Shift:
    """What wrong weights add to the estimates of E[x] and E[x^2].

    Attributes
    ----------
    value
        Expected difference of the four moments, shape (4,).
    se
        Monte Carlo standard error of each.
    """

    value: FloatArray
    se: FloatArray


@cache
def missing_constant(num_pseudo_samples: int) -> Shift:
    """Shift in scenario (b) by weights without the constant, with sampled inverse temperatures.

    Parameters
    ----------
    num_pseudo_samples
        Number N of pseudo-samples.
    """
    x, inv_temp = _sampled(num_pseudo_samples)
    log_ratio = (1 - inv_temp) * _log_gamma("b", x)
    return _shift(x, log_ratio, log_ratio + (1 - inv_temp) * np.log(2 * np.pi))


@cache
def foreign_density(inv_temp: float, num_pseudo_samples: int) -> Shift:
    """Shift in scenario (b) by weights with (a)'s density, at a fixed inverse temperature.

    Parameters
    ----------
    inv_temp
        Inverse temperature beta of every pseudo-sample.
    num_pseudo_samples
        Number N of pseudo-samples.
    """
    x = _fixed(inv_temp, num_pseudo_samples)
    right, wrong = ((1 - inv_temp) * _log_gamma(scenario, x) for scenario in ("b", "a"))
    return _shift(x, right, wrong)


def _shift(x: FloatArray, right: FloatArray, wrong: FloatArray) -> Shift:
    """Difference of means by two log weights (T, N); the first one's mean is the truth."""
    both = np.concatenate([x, x**2], axis=-1)
    weight = normalised_weights(wrong) - normalised_weights(right)
    off = (weight[..., None] * both).sum(axis=1)
    return Shift(off.mean(axis=0), off.std(axis=0, ddof=1) / np.sqrt(len(off)))


def _log_gamma(scenario: Scenario, x: FloatArray) -> FloatArray:
    """Log density of the Stan program, whose weights in (b), 1 / r_j, do not sum to one."""
    mixture = kou_mixture(scenario)
    total = np.log((1 / np.linalg.norm(mixture.mean - 5, axis=1)).sum()) if scenario == "b" else 0.0
    density: FloatArray = mixture.log_density(x) + total
    return density


def _sampled(num: int) -> tuple[FloatArray, FloatArray]:
    """Pseudo-samples (T, N, 2) with inverse temperatures (T, N); the target's comes first."""
    rng = np.random.default_rng(num)
    grid, middle, mass = _grid(), (_EDGES[1:] + _EDGES[:-1]) / 2, _masses()
    count = rng.multinomial(_DRAWS * (num - 1), mass / mass.sum())
    tempered = np.concatenate(
        [grid.draw(beta, n, rng) for beta, n in zip(middle, count, strict=True)]
    )
    order = rng.permutation(len(tempered))
    inv_temp = np.repeat(middle, count)[order].reshape(_DRAWS, num - 1)
    own = rng.uniform(0, 1, (_DRAWS, 1))
    x = tempered[order].reshape(_DRAWS, num - 1, 2)
    return _with_target(x, rng), np.concatenate([own, inv_temp], axis=1)


def _fixed(inv_temp: float, num: int) -> FloatArray:
    """Pseudo-samples at one inverse temperature, (T, N, 2); the target's comes first."""
    rng = np.random.default_rng(num)
    x = _grid().draw(inv_temp, _DRAWS_FIXED * (num - 1), rng)
    return _with_target(x.reshape(_DRAWS_FIXED, num - 1, 2), rng)


def _with_target(x: FloatArray, rng: np.random.Generator) -> FloatArray:
    mixture = kou_mixture("b")
    which = rng.choice(len(mixture.weight), len(x), p=mixture.weight)
    noise = rng.standard_normal((len(x), 2))
    own = mixture.mean[which] + mixture.sd[which, None] * noise
    return np.concatenate([own[:, None], x], axis=1)


class _Grid:
    """Scenario (b), tempered, as constant on cells that fill the box, fine where the modes are."""

    def __init__(self) -> None:
        fine = np.arange(_INNER[0], _INNER[1], _CELL)
        left, right = np.linspace(BOX[0], fine[0], 120), np.linspace(fine[-1], BOX[1], 120)
        self._edges = np.concatenate([left[:-1], fine, right[1:]])
        centre = (self._edges[1:] + self._edges[:-1]) / 2
        self._log_gamma = np.concatenate(
            [_log_gamma("b", np.stack(np.broadcast_arrays(x, centre), axis=-1)) for x in centre]
        )
        width = np.diff(self._edges)
        self._area = np.outer(width, width).ravel()

    def mass(self, inv_temp: float) -> FloatArray:
        """Mass of gamma^beta in every cell, cells in one row."""
        found: FloatArray = self._area * np.exp(inv_temp * self._log_gamma)
        return found

    def draw(self, inv_temp: float, count: int, rng: np.random.Generator) -> FloatArray:
        """Independent draws (count, 2), uniform within a cell."""
        total = np.cumsum(self.mass(inv_temp))
        cell = np.searchsorted(total, rng.uniform(0, total[-1], count))
        place = np.stack(np.divmod(cell, len(self._edges) - 1), axis=-1)
        drawn: FloatArray = rng.uniform(self._edges[place], self._edges[place + 1])
        return drawn


@cache
def _grid() -> _Grid:
    return _Grid()


@cache
def _masses() -> FloatArray:
    """Mass of the tempered density between neighbouring inverse temperatures."""
    grid, middle = _grid(), (_EDGES[1:] + _EDGES[:-1]) / 2
    found: FloatArray = np.array([grid.mass(beta).sum() for beta in middle]) * np.diff(_EDGES)
    return found
