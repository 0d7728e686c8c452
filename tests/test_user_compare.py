"""Where NUTS and other draws differ: what either misses, by draws of known distributions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from harness.arrays import FloatArray
from harness.engine.batched import BatchedDensity
from harness.engine.program import StanProgram
from harness.user.compare import (
    CHANCE,
    LEAST_SHARE,
    Population,
    Region,
    _Coordinate,
    compare,
    unconstrained,
)


def population(values: FloatArray, log_weight: FloatArray | None = None) -> Population:
    weight = np.zeros(len(values)) if log_weight is None else log_weight
    return Population({"x": values}, weight)


def two_modes(rng: np.random.Generator, shape: tuple[int, ...], left: float) -> FloatArray:
    sign = np.where(rng.random(shape) < left, -1.0, 1.0)
    return np.asarray(sign * 4 + rng.normal(size=shape), dtype=np.float64)


def test_draws_of_one_distribution_do_not_differ() -> None:
    rng = np.random.default_rng(3)
    found = compare({"x": rng.normal(size=(4, 500))}, population(rng.normal(size=(16, 32))))
    assert not found.chains_disagree
    assert found.missed_by_nuts is None
    assert found.missed_by_other is None
    assert found.differs is None
    assert found.coordinates == 1


def test_a_mode_that_nuts_has_not_visited() -> None:
    rng = np.random.default_rng(4)
    nuts = {"x": 4 + rng.normal(size=(4, 500))}
    found = compare(nuts, population(two_modes(rng, (16, 32), 0.4)))
    region = found.missed_by_nuts
    assert region is not None
    assert region.nuts < 0.01
    # 512 particles, half a standard error of which is 0.01.
    assert abs(region.other - 0.4) < 4 * np.sqrt(0.24 / 512)
    assert found.missed_by_other is None
    assert str(region).startswith("x < ")


def test_a_mode_that_the_other_draws_have_not_visited() -> None:
    """A narrow mode in the middle of a wide one, with four fifths of the probability."""
    rng = np.random.default_rng(5)
    wide = rng.normal(size=(4, 1000))
    nuts = {"x": np.where(rng.random(wide.shape) < 0.8, 0.5 + 0.01 * wide, wide)}
    found = compare(nuts, population(rng.normal(size=(16, 32))))
    region = found.missed_by_other
    assert region is not None
    assert region.nuts > 0.6  # but for cells that it shares with the wide mode
    assert region.other < 0.05
    assert found.missed_by_nuts is None
    values = {"x": np.array([[0.5, -2.0]])}
    np.testing.assert_array_equal(region.holds(values), [[True, False]])


def test_a_mode_between_two_others() -> None:
    rng = np.random.default_rng(6)
    outer = two_modes(rng, (4, 1000), 0.5)
    middle = rng.normal(0, 0.3, size=(16, 64))
    everything = np.where(rng.random(middle.shape) < 0.4, middle, two_modes(rng, (16, 64), 0.5))
    region = compare({"x": outer}, population(everything)).missed_by_nuts
    assert region is not None
    assert all(np.isfinite(interval).all() for interval in region.intervals)
    assert abs(region.other - 0.4) < 0.15
    assert region.nuts < 0.05


def test_both_modes_visited_in_other_proportions() -> None:
    rng = np.random.default_rng(7)
    found = compare(
        {"x": two_modes(rng, (4, 1000), 0.5)}, population(two_modes(rng, (16, 64), 0.2))
    )
    assert found.missed_by_nuts is None
    assert found.missed_by_other is None
    assert found.differs is not None
    assert abs(found.differs.nuts - 0.5) < 0.1
    assert abs(found.differs.other - 0.2) < 0.1


def test_a_difference_within_a_large_error_is_unsure() -> None:
    """Populations that found one mode or the other, by chance: 0.5 ± 0.13 below 0."""
    rng = np.random.default_rng(4)
    signs = np.where(np.arange(16) < 8, -1, 1)[:, None]
    particles = population(signs * np.abs(rng.normal(size=(16, 32))))
    found = compare({"x": np.abs(rng.normal(size=(4, 500)))}, particles)
    assert found.missed_by_nuts is not None  # a reason to look, not yet a verdict
    assert found.differs is None
    assert found.unsure is not None


@pytest.mark.parametrize("dimension", [1, 10])
def test_differences_of_note_are_as_rare_as_they_claim(dimension: int) -> None:
    """Many sound runs of few particles differ by 0.1 somewhere, and few more than by chance.

    At most ``CHANCE`` may, within three standard errors of 200 runs.  Of the 32 particles of
    each population four are independent, as after steps in which particles are drawn again.
    """
    rng = np.random.default_rng(5)
    runs, unsure, notable = 200, 0, 0
    for _ in range(runs):
        particles = population(rng.normal(size=(16, 4, dimension)).repeat(8, axis=1))
        found = compare({"x": rng.normal(size=(4, 250, dimension))}, particles)
        unsure += found.unsure is not None
        notable += found.notable is not None
    assert unsure > 3 * notable
    assert unsure > runs / 4
    assert notable / runs < CHANCE + 3 * np.sqrt(CHANCE / runs)


def test_other_proportions_are_of_note_though_populations_are_rough() -> None:
    """0.2 ± 0.05 below 0, where NUTS has 0.5: six errors, and chance makes 3.5 at most."""
    rng = np.random.default_rng(8)
    for _ in range(20):
        left = np.clip(0.2 + 0.2 * rng.standard_normal((16, 1)), 0, 1)
        sign = np.where(rng.random((16, 32)) < left, -1.0, 1.0)
        particles = population(4 * sign + rng.normal(size=sign.shape))
        found = compare({"x": two_modes(rng, (4, 1000), 0.5)}, particles)
        assert (found.notable or found.differs) is not None


def test_chains_that_disagree_and_elements_by_name() -> None:
    rng = np.random.default_rng(9)
    apart = rng.normal(size=(4, 500, 2, 3))
    apart[2:, :, 1, 2] += 5
    other = Population({"m": rng.normal(size=(16, 32, 2, 3))}, np.zeros(16))
    found = compare({"m": apart}, other)
    assert found.chains_disagree
    assert found.worst == "m"
    assert found.coordinates == 6
    assert found.missed_by_other is not None
    assert found.missed_by_other.label == "m[2,3]"


def test_a_region_that_few_draws_leave_empty_by_chance_is_not_missed() -> None:
    """Twenty independent draws, each forty times, against a mode with a tenth and more."""
    rng = np.random.default_rng(12)
    nuts = {"x": rng.normal(size=(4, 1000))}
    few = np.repeat(rng.normal(size=(4, 5)), 40, axis=1)
    taken_for_many = compare(nuts, population(few))
    known_to_be_few = compare(nuts, Population({"x": few}, np.zeros(4), effective=20.0))
    assert taken_for_many.missed_by_other is not None
    assert known_to_be_few.missed_by_other is None


def test_weights_of_populations_count() -> None:
    """Populations in a second mode, whose weights are next to nothing."""
    rng = np.random.default_rng(10)
    values = rng.normal(size=(16, 32))
    values[8:] += 10
    log_weight = np.where(np.arange(16) < 8, 0.0, -30.0)
    nuts = {"x": rng.normal(size=(4, 500))}
    assert compare(nuts, population(values, log_weight)).missed_by_nuts is None
    assert compare(nuts, population(values)).missed_by_nuts is not None


def test_a_sound_run_is_not_called_off() -> None:
    """One false alarm in 1,000 is meant; 3 of 200 would have probability 0.001."""
    rng = np.random.default_rng(5)
    alarms = 0
    for _ in range(200):
        nuts = {"x": rng.normal(size=(4, 100)), "y": rng.exponential(size=(4, 100, 2))}
        other = Population(
            {"x": rng.normal(size=(16, 16)), "y": rng.exponential(size=(16, 16, 2))},
            rng.normal(0, 0.3, size=16),
        )
        found = compare(nuts, other)
        alarms += any(
            each is not None
            for each in (found.missed_by_nuts, found.missed_by_other, found.differs)
        )
    assert alarms < 3


def test_a_value_on_its_bound_is_not_infinitely_far(tmp_path: Path) -> None:
    """Draws are rounded: 1 - 1e-17 is 1, and its logit would be infinite."""
    path = tmp_path / "bounds.stan"
    path.write_text(
        "parameters { vector<lower=0, upper=1>[2] p; real<lower=3> a; }\n"
        "model { p ~ beta(2, 2); a ~ normal(3, 1); }\n"
    )
    density = BatchedDensity(StanProgram(path), {})
    p = np.array([[[0.5, 1.0], [0.0, 1 - 2.0**-53]]])
    points = unconstrained({"p": p, "a": np.array([[3.0, 4.0]])}, 2, density)
    assert points.shape == (1, 2, 3)
    assert np.isfinite(points).all()
    assert points[0, 0, 0] == 0
    assert points[0, 0, 1] == pytest.approx(points[0, 1, 1], rel=1e-12)  # the number next to 1
    assert points[0, 1, 0] == -points[0, 0, 1]
    assert points[0, 1, 2] == 0
    assert np.isfinite(density(points[0])[0]).all()


def test_probabilities_below_thresholds_are_counted() -> None:
    """Draw by draw, for populations with different weights."""
    rng = np.random.default_rng(4)
    nuts, other = rng.normal(size=(4, 50)), rng.normal(0.4, 1.5, size=(3, 70))
    share = np.array([0.5, 0.3, 0.2])
    coordinate = _Coordinate("x", 0, (), nuts, other, share, float(len(share)))
    below = coordinate.below_thresholds()
    expected = [
        abs((nuts < each).mean() - share @ (other < each).mean(axis=1))
        for each in coordinate._thresholds
    ]
    np.testing.assert_allclose(below.sizes, expected, atol=1e-12)
    assert [each.size for each in below.apart] == pytest.approx(
        [each for each in expected if each > LEAST_SHARE]
    )
    for (low, high), of_nuts, of_other in zip(
        coordinate._cells, coordinate._in_nuts, coordinate._in_other, strict=True
    ):
        inside = (other >= low) & (other < high)
        assert of_nuts == pytest.approx(((nuts >= low) & (nuts < high)).mean())
        assert of_other == pytest.approx(share @ inside.mean(axis=1))


def test_a_region_in_words_leaves_out_what_has_no_width() -> None:
    def told(*intervals: tuple[float, float]) -> str:
        return str(Region("x", 0, "x[1]", intervals, 0.0, 0.01, 0.2, 0.01))

    gap = (-1.87101, -1.87099)
    assert told((-np.inf, -5.0), gap, (2.0, np.inf)) == "x[1] < -5 or x[1] >= 2"
    assert told(gap) == "-1.871 <= x[1] < -1.871"
