"""Narrow peaks within draws: those that the draws lack are found, and no others."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import multivariate_normal

from harness.arrays import FloatArray
from harness.evidence import LogEvidence
from harness.modes.local_mass import local_gaussian
from harness.user import narrow_peaks
from harness.user.bridged import bridged_in_time
from harness.user.narrow_peaks import WalkedPast, walked_past
from harness.user.neighbourhood import Neighbourhood

SHAPE = (4, 500)


class SpikeInSlab:
    """A spike of width ``narrow`` in a slab of width 1, in some dimensions; its integral is 1."""

    def __init__(self, weight: float, narrow: float, dimension: int) -> None:
        self.weight, self.scale = weight, np.array([narrow, 1.0])
        self.dimension = dimension

    def __call__(self, points: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
        x = np.asarray(points, dtype=np.float64)
        each = np.stack(
            [
                multivariate_normal(np.zeros(self.dimension), s**2).logpdf(x) + np.log(w)
                for s, w in zip(self.scale, (self.weight, 1 - self.weight), strict=True)
            ]
        ).reshape(2, -1)
        value = np.logaddexp.reduce(each, axis=0)
        share = np.exp(each - value)
        return value, -x * (share / self.scale[:, None] ** 2).sum(axis=0)[:, None]

    def drawn(self, weight: float, seed: int) -> FloatArray:
        """Return draws of which the spike has a share."""
        rng = np.random.default_rng(seed)
        scale = np.where(rng.random(SHAPE) < weight, *self.scale)
        return np.asarray(scale[..., None] * rng.standard_normal((*SHAPE, self.dimension)))


def found(density: SpikeInSlab, points: FloatArray, total: LogEvidence | None = None) -> WalkedPast:
    flat = points.reshape(-1, density.dimension)
    peak = local_gaussian(np.zeros(density.dimension), density, scale=flat.std(axis=0))
    assert peak is not None
    return walked_past(
        [peak],
        points,
        Neighbourhood(flat),
        density,
        others=np.empty((0, density.dimension)),
        of_draws=density,
        at_least=np.log(0.01),
        total=total,
        most_seconds=10.0,
        seed=3,
    )


@pytest.mark.parametrize("dimension", [1, 5])
@pytest.mark.parametrize("narrow", [0.1, 0.003])
def test_a_spike_that_draws_lack_is_found(dimension: int, narrow: float) -> None:
    density = SpikeInSlab(0.5, narrow, dimension)
    past = found(density, density.drawn(0.0, seed=dimension))
    assert len(past.peaks) == 1
    assert past.log_mass < -0.3  # what is left of an integral of 1


@pytest.mark.parametrize("dimension", [1, 5])
@pytest.mark.parametrize("weight", [0.02, 0.5, 0.98])
def test_a_spike_with_its_share_of_the_draws_is_not(dimension: int, weight: float) -> None:
    density = SpikeInSlab(weight, 0.05, dimension)
    assert not found(density, density.drawn(weight, seed=dimension)).peaks


def test_a_wide_mode_that_draws_come_near_to_is_found() -> None:
    """Some draws are on the way to it, but none is within half of its mass.

    Of the density's mass, which is 1, a Gaussian of width 1 at (6, 0) has 0.05.
    """
    places, shares = np.array([[0.0, 0.0], [6.0, 0.0]]), np.array([0.95, 0.05])

    def density(points: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
        apart = np.asarray(points)[None] - places[:, None]
        each = np.log(shares)[:, None] - 0.5 * np.square(apart).sum(axis=2) - np.log(2 * np.pi)
        value = np.logaddexp.reduce(each, axis=0)
        return value, -(np.exp(each - value)[..., None] * apart).sum(axis=0)

    def past(points: FloatArray) -> WalkedPast:
        peak = local_gaussian(places[1], density, scale=np.ones(2))
        assert peak is not None
        return walked_past(
            [peak],
            *(points, Neighbourhood(points.reshape(-1, 2)), density),
            others=np.empty((0, 2)),
            of_draws=density,
            at_least=np.log(0.01),
            total=None,
            most_seconds=10.0,
            seed=3,
        )

    rng = np.random.default_rng(2)
    points = rng.standard_normal((*SHAPE, 2))
    points[:, :: SHAPE[1] // 4] = [4.7, 0.0]  # 1.3 standard deviations from the peak
    assert len(past(points).peaks) == 1
    both = rng.standard_normal((*SHAPE, 2)) + np.where(rng.random((*SHAPE, 1)) < 0.05, [6, 0], 0)
    assert not past(both).peaks


def test_what_is_not_narrow_or_does_not_matter_is_left_out() -> None:
    wide, tiny = SpikeInSlab(0.5, 0.6, 2), SpikeInSlab(0.002, 0.01, 2)
    assert not found(wide, wide.drawn(0.0, seed=1)).peaks
    assert not found(tiny, tiny.drawn(0.0, seed=1)).peaks


def test_a_bridge_that_there_is_serves_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    density = SpikeInSlab(0.5, 0.1, 2)
    points = density.drawn(0.0, seed=1)
    expected = found(density, points)
    total, other = (
        bridged_in_time(
            density, points, most_seconds=10.0, seed=3, draws_alone=alone
        ).bridges.log_evidence
        for alone in (True, False)
    )
    monkeypatch.setattr(narrow_peaks, "bridged_in_time", None)
    given = found(density, points, total)
    assert [each.log_mass for each in given.peaks] == [each.log_mass for each in expected.peaks]
    assert len(given.peaks) == 1
    assert given.log_mass == expected.log_mass
    # More draws of the proposal reach more of the spike, whose log integral is log(1/2).
    assert np.log(0.5) < total.value < other.value < 0
    assert len(found(density, points, other).peaks) == 1
