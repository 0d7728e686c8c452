"""Climbs from known modes with some elements anew: they find what no other start leads to."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats
from scipy.integrate import quad

from harness.arrays import FloatArray
from harness.engine.batched import BatchedDensity
from harness.modes.climb import climb, everywhere
from harness.modes.local_mass import LocalGaussian, local_gaussian
from harness.temper import tempered_model
from harness.user.climbs import Climbs, Peaks
from harness.user.from_known_modes import from_known_modes
from harness.user.neighbourhood import Neighbourhood
from harness.user.other_modes import other_modes
from harness.user.partly_anew import PartlyAnew
from harness.user.peaked_lengths import PeakedLengths
from harness.user.race import HURDLES, Race

NEEDLES = """data {
  int n;
  vector[n] place;
}
parameters {
  vector[n] x;
}
model {
  x ~ normal(0, 3);
  target += 16 * sum(exp(-0.5 * square((x - place) / 0.005)));
}
"""
"""Each element has a needle, which has nearly all of the mass, and a plain around it."""
PLACES = np.array([1.0, -2.0, 1.5, -0.5, 0.2, 1.8])


def needles(folder: Path) -> BatchedDensity:
    path = folder / "needles.stan"
    path.write_text(NEEDLES)
    model = tempered_model(path, {"n": len(PLACES), "place": PLACES.tolist()})
    return BatchedDensity(model.program("target"), model.data)


def draws_in_the_first_needle(width: float = 0.005 / 4) -> FloatArray:
    """Draws (4, 250, n) that are on the plain in all elements but the first."""
    rng = np.random.default_rng(3)
    draws = rng.normal(0, 3, (4, 250, len(PLACES)))
    near = np.abs(draws - PLACES) < 0.2
    draws = np.where(near, draws + 0.4, draws)
    draws[..., 0] = PLACES[0] + width * rng.standard_normal((4, 250))
    return draws


def test_all_needles_are_found_one_after_the_other(tmp_path: Path) -> None:
    """No climb from a point at random finds more than three of the six."""
    density = needles(tmp_path)
    points = draws_in_the_first_needle()
    search = Climbs(PeakedLengths(density), points, [], None)
    rng = np.random.default_rng(5)
    flat = points.reshape(-1, len(PLACES))
    anew = rng.normal(0, 3, (2000, len(PLACES)))
    log_mass = float(density.values(flat).max())
    ordinary = search.peaks(anew, bold=True, several=True).points
    needled = np.abs(ordinary - PLACES) < 0.005
    assert needled.sum(axis=1).max() < len(PLACES) - 2
    found = from_known_modes(
        *(search, density, anew, flat, ordinary),
        log_mass=log_mass,
        several=True,
        most_seconds=np.inf,
        seed=1,
    )
    best = found[np.argmax(density.values(found))]
    assert best == pytest.approx(PLACES, abs=1e-3)


def test_other_modes_have_the_mass_of_all_needles(tmp_path: Path) -> None:
    density = needles(tmp_path)
    path = tmp_path / "needles.stan"
    model = tempered_model(path, {"n": len(PLACES), "place": PLACES.tolist()})
    points = draws_in_the_first_needle()
    found = other_modes(
        model, density, {"x": points}, points, log_mass=0.0, most_seconds=10.0, seed=1
    )
    largest = found.modes[0]
    assert largest.local.peak == pytest.approx(PLACES, abs=1e-3)
    each = quad(lambda z: np.exp(16 * np.exp(-0.5 * z * z) - 16) * 0.005, -6, 6)[
        0
    ]  # around a needle, where the normal prior does not change
    exact = float(stats.norm.logpdf(PLACES, 0, 3).sum()) + len(PLACES) * (16 + np.log(each))
    assert largest.log_mass == pytest.approx(exact, abs=0.3)  # its Gaussian's, or a better one


HEAVY_TAILS = """parameters {
  vector[2] x;
}
model {
  target += log_mix(0.5, std_normal_lpdf(x),
                    multi_student_t_lpdf(x | 3, [30, 0]', identity_matrix(2)));
}
"""
"""Half of the mass is around 0, and half around (30, 0), beside which nothing is concave."""


@pytest.mark.parametrize(("first", "there_is_one"), [(33.0, True), (5.0, False)])
def test_a_climb_that_ended_beside_a_maximum_has_found_a_mode_if_nuts_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, first: float, there_is_one: bool
) -> None:
    path = tmp_path / "heavy_tails.stan"
    path.write_text(HEAVY_TAILS)
    model = tempered_model(path, {}, what="all")
    density = BatchedDensity(model.program("target"), model.data)
    draws = np.random.default_rng(4).standard_normal((4, 250, 2))
    nothing = Peaks(np.empty((0, 2)), np.empty(0, dtype=np.intp), 1)
    monkeypatch.setattr(Climbs, "peaks", lambda *_, **__: nothing)
    beside = np.array([[first, 0.5]])
    assert local_gaussian(beside[0], density, scale=np.ones(2)) is None
    monkeypatch.setattr("harness.user.other_modes.from_known_modes", lambda *_, **__: beside)
    found = other_modes(
        model, density, {"x": draws}, draws, log_mass=float(np.log(0.5)), most_seconds=20.0, seed=1
    )
    if not there_is_one:
        assert not found.modes
        return
    [mode] = found.modes
    assert mode.drawn is not None
    # Of a bridge from a short run, whose error is about 0.02.
    assert mode.log_mass == pytest.approx(np.log(0.5), abs=0.1)


def test_where_there_is_no_maximum_a_gaussian_is_as_wide_as_the_scale() -> None:
    def saddle(points: FloatArray) -> tuple[FloatArray, FloatArray]:
        bends = np.array([-1e4, 2.0])
        return 0.5 * (np.square(points) * bends).sum(axis=1), points * bends

    assert local_gaussian(np.zeros(2), saddle, scale=np.ones(2)) is None
    rough = local_gaussian(np.zeros(2), saddle, scale=np.ones(2), flattest=1.0)
    assert rough is not None
    assert rough.widths == pytest.approx([0.01, 1.0], rel=1e-6)


GROUPS = """data {
  int K;
}
parameters {
  simplex[3] share;
  vector[3] mean_of;
  array[3] vector<lower=0>[2] width;
  real shift;
}
model {
  share ~ dirichlet(rep_vector(2, 3));
  mean_of ~ normal(0, K);
  for (k in 1 : 3)
    width[k] ~ exponential(1);
  shift ~ std_normal();
}
"""


def test_elements_anew_are_a_group_an_element_or_a_parameter(tmp_path: Path) -> None:
    path = tmp_path / "groups.stan"
    path.write_text(GROUPS)
    model = tempered_model(path, {"K": 2}, what="all")
    density = BatchedDensity(model.program("target"), model.data)
    rng = np.random.default_rng(2)
    anew, known = rng.standard_normal((2, 500, density.dimension))
    before = density.constrain(known[:1])
    kinds = PartlyAnew(density, anew)(np.repeat(known[:1], 300, axis=0), rng)
    patterns: list[set[tuple[tuple[bool, ...], ...]]] = []
    for starts in kinds:
        after = density.constrain(starts)
        changed = {
            name: np.abs(after[name] - before[name]).reshape(len(starts), -1) > 1e-9
            for name in before
        }
        names = ("share", "mean_of", "width", "shift")
        patterns.append(
            {
                tuple(tuple(changed[name][row].tolist()) for name in names)
                for row in range(len(starts))
            }
        )
    no3, no6, all3, all6 = (False,) * 3, (False,) * 6, (True,) * 3, (True,) * 6
    one = [tuple(k == each for k in range(3)) for each in range(3)]
    groups: set[tuple[tuple[bool, ...], ...]]
    groups = {(no3, which, tuple(which[k // 2] for k in range(6)), (False,)) for which in one}
    elements: set[tuple[tuple[bool, ...], ...]]
    elements = {(no3, which, no6, (False,)) for which in one}
    elements |= {(no3, no3, tuple(k == each for k in range(6)), (False,)) for each in range(6)}
    whole: set[tuple[tuple[bool, ...], ...]] = {
        (all3, no3, no6, (False,)),
        (no3, all3, no6, (False,)),
        (no3, no3, all6, (False,)),
        (no3, no3, no6, (True,)),
    }
    assert sum(map(len, kinds)) == 300
    assert patterns == [groups, elements, whole]  # an element of a simplex is not alone


def test_new_elements_are_those_of_one_point_or_each_of_another(tmp_path: Path) -> None:
    """Those of point k are all 100 k here, and others are between two of these."""
    density = needles(tmp_path)
    anew = 100.0 * np.arange(1, 21)[:, None] + np.zeros(len(PLACES))
    known = np.zeros((600, len(PLACES)))
    started = np.concatenate(PartlyAnew(density, anew)(known, np.random.default_rng(1)))
    new = started != 0
    assert set(new.sum(axis=1).tolist()) == {1, len(PLACES)}
    assert np.all((started[new] >= 100) & (started[new] <= 2000))
    of_one = np.all((started % 100 == 0), axis=1)
    assert 200 < of_one.sum() < 400  # half of them, with a standard error of 12
    assert np.all(
        np.ptp(np.where(new, started, np.nanmax(started, axis=1)[:, None])[of_one], axis=1) == 0
    )
    whole = ~of_one & (new.sum(axis=1) > 1)
    assert np.all(np.ptp(started[whole], axis=1) > 0)
    assert set(started[of_one].max(axis=1)) == set(anew[:, 0])
    # In between they are uniform, as the given ones are.
    assert (
        stats.kstest(started[~of_one & ~whole].max(axis=1), stats.uniform(100, 1900).cdf).pvalue
        > 1e-3
    )


def test_a_race_goes_on_with_the_highest_that_are_not_among_the_draws() -> None:
    draws = np.random.default_rng(1).standard_normal((1000, 2))
    race = Race(Neighbourhood(draws), (-10.0, 0.0))
    points = np.concatenate([np.zeros((300, 2)), np.full((300, 2), 50.0)])
    height = np.concatenate([np.linspace(-20, 5, 300), np.linspace(-30, -10, 300)])
    first = min(set(HURDLES) - {0})
    assert np.all(race(first - 1, points, height))
    goes_on = race(first, points, height)
    left = np.flatnonzero(goes_on)
    assert len(left) == 600 // HURDLES[first]
    alike = (np.arange(600) < 300) & (height >= -10) & (height <= 0)
    assert not np.any(goes_on & alike)
    dropped = ~goes_on & ~alike
    assert height[dropped].max() <= height[left].min()


def test_at_the_last_hurdle_climbs_that_return_to_a_known_mode_are_given_up() -> None:
    """Its Gaussian need not explain how high they are, but they must not be higher."""
    mode = LocalGaussian(np.zeros(2), 0.0, np.ones(2), np.eye(2))
    race = Race(Neighbourhood(50 + np.zeros((100, 2))), (-1.0, 0.0), [mode])
    points = np.array([[4.0, 0.0], [4.0, 0.0], [4.0, 0.0], [60.0, 0.0]])
    height = np.array([-8.0, -3.0, 1.0, -20.0])
    early, late = sorted(set(HURDLES) - {0})
    assert race(early, points, height).tolist() == [True, True, True, True]
    assert race(late, points, height).tolist() == [False, False, True, True]
    near = np.array([[2.0, 0.0], [2.0, 0.0]])
    assert race(early, near, np.array([-2.0, -1.0])).tolist() == [False, True]


def test_a_climb_that_is_given_up_stays_where_it_was() -> None:
    def bowl(points: FloatArray) -> tuple[FloatArray, FloatArray]:
        return -0.5 * np.square(points).sum(axis=1), -points

    start = np.array([[30.0, 0.0], [40.0, 0.0], [50.0, 0.0]])
    seen: list[int] = []

    def goes_on(steps: int, points: FloatArray, height: FloatArray) -> npt.NDArray[np.bool_]:
        seen.append(len(points))
        assert height == pytest.approx(bowl(points)[0])
        return points[:, 0] < 45 - 1e-9 if steps == 0 else points[:, 0] < 1e9

    found = climb(start, bowl, scale=np.ones(2), box=everywhere(2), goes_on=goes_on)
    assert seen[:2] == [3, 2]
    assert found.arrived.tolist() == [True, True, False]
    assert not np.any(found.unfinished)
    assert found.points[2].tolist() == [50.0, 0.0]
    assert found.points[:2] == pytest.approx(np.zeros((2, 2)), abs=1e-3)


def test_no_race_is_begun_that_there_is_no_time_for(tmp_path: Path) -> None:
    density = needles(tmp_path)
    points = draws_in_the_first_needle()
    search = Climbs(PeakedLengths(density), points, [], None)
    before = search.gradients
    assert 1 < search.racers(1.0) < np.inf
    assert search.racers(2.0) == pytest.approx(2 * search.racers(1.0))
    anew = np.random.default_rng(4).normal(0, 3, (100, len(PLACES)))
    flat = points.reshape(-1, len(PLACES))
    found = from_known_modes(
        search, density, anew, flat, flat[:0], log_mass=0.0, several=True, most_seconds=0.0, seed=1
    )
    assert len(found) == 0
    assert search.gradients == before


def test_each_start_is_one_draw_but_for_what_is_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts: list[FloatArray] = []

    def raced(_: Climbs, start: FloatArray, *__: object, most_seconds: float) -> FloatArray:
        starts.append(start)
        return start[:0]

    monkeypatch.setattr(Climbs, "raced", raced)
    density = needles(tmp_path)
    points = draws_in_the_first_needle()
    search = Climbs(PeakedLengths(density), points, [], None)
    size = len(PLACES)
    draws, anew = (np.tile(np.arange(low, low + 50.0)[:, None], size) for low in (0, 1000))
    none = draws[:0]
    from_known_modes(
        search, density, anew, draws, none, log_mass=0.0, several=False, most_seconds=1e6, seed=1
    )
    assert len(starts) == 3  # one group or element, which is the same here, or the parameter
    start = np.concatenate(starts)
    old = np.where(start < 999, start, np.nan)
    kept = ~np.all(np.isnan(old), axis=1)
    assert 0.5 < kept.mean() < 0.8  # a third have all elements anew, because they are one parameter
    assert set(np.isnan(old[kept]).sum(axis=1).tolist()) == {1}
    assert np.all(np.nanmax(old[kept], axis=1) - np.nanmin(old[kept], axis=1) < 1e-9)


def test_many_dimensions_have_smaller_races(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = []

    def raced(_: Climbs, start: FloatArray, *__: object, most_seconds: float) -> FloatArray:
        sizes.append(start.shape)
        return start[:0]

    monkeypatch.setattr(Climbs, "raced", raced)
    path = tmp_path / "many.stan"
    path.write_text("parameters { vector[1000] x; } model { x ~ std_normal(); }")
    density = BatchedDensity(tempered_model(path, {}, what="all").program("target"), {})
    points = np.random.default_rng(4).standard_normal((4, 50, 1000))
    search, flat = Climbs(PeakedLengths(density), points, [], None), points.reshape(-1, 1000)
    from_known_modes(
        search, density, flat, flat, flat[:0], log_mass=0.0, several=True, most_seconds=1e6, seed=1
    )
    kinds = 3
    rounds = [sizes[k : k + kinds] for k in range(0, len(sizes), kinds)]
    assert [sum(count for count, _ in each) for each in rounds] == [1000] * 5


@pytest.mark.parametrize(("several", "at_least"), [(False, 2000), (True, 16_000)])
def test_one_small_round_where_one_mode_is_known(
    tmp_path: Path, several: bool, at_least: int
) -> None:
    """Without a further mode there are one or two rounds."""
    path = tmp_path / "plain.stan"
    path.write_text("parameters { vector[3] x; } model { x ~ std_normal(); }")
    model = tempered_model(path, {}, what="all")
    density = BatchedDensity(model.program("target"), model.data)
    rng = np.random.default_rng(8)
    points = rng.standard_normal((4, 250, 3))
    search = Climbs(PeakedLengths(density), points, [], None)
    before = search.gradients
    found = from_known_modes(
        *(search, density, 10 * rng.standard_normal((500, 3)), points.reshape(-1, 3)),
        np.zeros((1, 3)),
        log_mass=0.0,
        several=several,
        most_seconds=np.inf,
        seed=1,
    )
    assert len(found) == 0
    assert at_least < search.gradients - before < 5 * 2 * at_least
