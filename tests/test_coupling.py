"""Coupling from the past on a torus: exact draws by enumeration, and what makes them wrong."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest
from scipy.stats import chi2

from harness.arrays import FloatArray
from harness.errors import DataError, SamplingError
from harness.lattice.coupling import IsingTorus, PastNoise, Spins


class Doubling(IsingTorus):
    """Begins one sweep ago, so that most draws take several attempts."""

    first_sweeps = 1


SMALL = Doubling(3, 3)
STATES: Spins = np.array(list(product((-1, 1), repeat=9)), dtype=np.int8).reshape(-1, 3, 3)


def probabilities(coupling: float, field: float) -> FloatArray:
    """Of the 512 states, with neighbours written out site by site."""
    log_p = np.zeros(len(STATES))
    for r, c in product(range(3), repeat=2):
        here = STATES[:, r, c].astype(float)
        log_p += coupling * here * (STATES[:, (r + 1) % 3, c] + STATES[:, r, (c + 1) % 3])
        log_p += field * here
    weight = np.exp(log_p)
    total: FloatArray = weight / weight.sum()
    return total


def chi_square(spins: Spins, expected: FloatArray) -> float:
    """P value of the counts of states; rare states are put together into one class."""
    number = (spins.reshape(-1, 9) > 0) @ (1 << np.arange(9)[::-1])
    counts, mean = np.bincount(number, minlength=512), expected * len(spins)
    rare = mean < 10
    seen = np.append(counts[~rare], counts[rare].sum())
    mean = np.append(mean[~rare], mean[rare].sum())
    score = float((np.square(seen - mean) / mean)[mean > 0].sum())
    return float(chi2.sf(score, (mean > 0).sum() - 1))


def draw(torus: IsingTorus, coupling: float, field: float, number: int) -> Spins:
    rng = np.random.default_rng(1)
    return torus.exact(np.full(number, coupling), np.full(number, field), rng).spins


@pytest.mark.parametrize(("coupling", "field"), [(0.3, 0.0), (0.25, -0.2), (-0.3, 0.1)])
def test_draws_are_exact(coupling: float, field: float) -> None:
    """A sound sampler fails this once in 10,000 seeds."""
    assert chi_square(draw(SMALL, coupling, field, 20_000), probabilities(coupling, field)) > 1e-4


class FreshNoise(PastNoise):
    """New numbers whenever they are asked for, which is the known way to do it wrong."""

    def sweeps(self) -> Iterator[FloatArray]:
        self._seed += 1
        return super().sweeps()


class FreshTorus(Doubling):
    noise = FreshNoise


def test_fresh_random_numbers_are_wrong() -> None:
    """Numbers that leave a spin open are thrown away, so that spins follow the field too often.

    That shows most where many draws end at the first attempts: with a weak negative J and a field.
    """
    assert chi_square(draw(FreshTorus(3, 3), -0.2, 1.0, 20_000), probabilities(-0.2, 1.0)) < 1e-6
    assert chi_square(draw(SMALL, -0.2, 1.0, 20_000), probabilities(-0.2, 1.0)) > 1e-4


def test_draws_together_or_alone() -> None:
    """Models of different J in one call do not disturb each other: means of the pair statistic.

    Within 4.3 standard errors, which the enumerated variance gives; and a repeated seed repeats.
    """
    coupling = np.tile([0.05, 0.2, 0.35], 6000)
    rng = np.random.default_rng(2)
    drawn = SMALL.exact(coupling, np.zeros(len(coupling)), rng)
    pairs, all_pairs = SMALL.statistics(drawn.spins)[:, 0], SMALL.statistics(STATES)[:, 0]
    for each in np.unique(coupling):
        p = probabilities(each, 0.0)
        mean, square = p @ all_pairs, p @ all_pairs**2
        error = np.sqrt((square - mean**2) / 6000)
        assert abs(pairs[coupling == each].mean() - mean) < 4.3 * error
    assert drawn.sweeps[coupling == 0.05].mean() < drawn.sweeps[coupling == 0.35].mean()
    again = SMALL.exact(coupling, np.zeros(len(coupling)), np.random.default_rng(2))
    np.testing.assert_array_equal(drawn.spins, again.spins)


@pytest.mark.parametrize("shape", [(3, 3), (4, 6)])
def test_a_sweep_leaves_the_model_invariant(shape: tuple[int, int]) -> None:
    """Exact draws, a sweep of each: paired changes of both statistics are 0 within 4.3 errors."""
    torus, number = IsingTorus(*shape), 8000
    coupling, field = np.full(number, 0.2), np.full(number, 0.1)
    rng = np.random.default_rng(3)
    before = torus.exact(coupling, field, rng).spins
    after = torus.sweep(before, coupling, field, rng)
    assert (before != after).mean() > 0.2
    changed = torus.statistics(after) - torus.statistics(before)
    score = changed.mean(axis=0) / (changed.std(axis=0, ddof=1) / np.sqrt(number))
    assert np.all(np.abs(score) < 4.3)


def test_neighbours() -> None:
    spins = np.ones((4, 5), dtype=np.int8)
    spins[0, 0] = -1
    sums = IsingTorus(4, 5).neighbour_sums(spins)
    assert sorted(zip(*np.nonzero(sums == 2), strict=True)) == [(0, 1), (0, 4), (1, 0), (3, 0)]
    np.testing.assert_array_equal(IsingTorus(4, 5).statistics(spins), [40 - 8, 20 - 2])


def test_refused() -> None:
    with pytest.raises(DataError, match="3 rows and columns or more"):
        IsingTorus(2, 5)
    torus, rng = IsingTorus(8, 8), np.random.default_rng(1)
    with pytest.raises(DataError, match="one shape"):
        torus.exact(np.zeros(2), np.zeros(3), rng)
    with pytest.raises(DataError, match="must be finite"):
        torus.exact(np.array([np.nan]), np.zeros(1), rng)
    with pytest.raises(SamplingError, match="narrow the prior of J"):
        torus.exact(np.array([2.0]), np.zeros(1), rng, most_sweeps=64)
