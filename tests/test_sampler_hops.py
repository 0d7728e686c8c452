"""Hops from mode to mode by wide slices: invariant, found where they help, and not elsewhere."""

from __future__ import annotations

import numpy as np
import wells

from harness import evidence
from harness.arrays import FloatArray
from harness.path import gaussian_base
from harness.samplers.hops import Hops, Trials
from harness.samplers.non_reversible import non_reversible_tempering
from harness.samplers.rung_path import Densities, Places, Reference, Rungs
from harness.samplers.tempering_run import TemperingSettings

PAIRS = 3
BASE = gaussian_base(np.zeros(2 * PAIRS), 4 * np.eye(2 * PAIRS))
REFERENCE = Reference(
    lambda points: (BASE.log_density(points), BASE.log_density_gradient(points)), BASE.sample
)
AT_TARGET = np.array([1.0, 0.0])


def at_wells(rng: np.random.Generator, count: int) -> tuple[Densities, Places]:
    densities = Densities(wells.wells, [REFERENCE])
    return densities, densities(wells.exact_draws(rng, count, PAIRS))


def test_sweeps_leave_the_target_invariant() -> None:
    """Exact draws stay exact: shares of sides and mean squares after twenty sweeps of each."""
    rng, count = np.random.default_rng(1), 8000
    densities, places = at_wells(rng, count)
    everywhere = np.ones((2, 2 * PAIRS), dtype=np.bool_)
    everywhere[0] = False
    hops = Hops(everywhere, np.full((2, 2 * PAIRS), 5.0))
    rungs = Rungs([[0, 1]])
    reference = BASE.sample(rng, count)
    both = densities(np.concatenate([reference, places.points]))
    for _ in range(20):
        hops.sweep(densities, both, rungs, rng)
    np.testing.assert_array_equal(both.points[:count], reference)
    moved = both.points[count:]
    right = moved[:, :PAIRS] > 0
    error = np.sqrt(wells.P_RIGHT * (1 - wells.P_RIGHT) / count)
    assert np.all(np.abs(right.mean(axis=0) - wells.P_RIGHT) < 4 * error)
    assert np.all(np.abs(np.square(moved[:, PAIRS:]).mean(axis=0) - 1) < 4 * np.sqrt(2 / count))
    # They did move: draws twenty sweeps apart agree on their sides no more than chance has it.
    before = places.points[:, :PAIRS] > 0
    chance = wells.P_RIGHT**2 + (1 - wells.P_RIGHT) ** 2
    assert np.all(np.abs((right == before).mean(axis=0) - chance) < 4 * np.sqrt(0.25 / count))
    np.testing.assert_array_equal(densities(both.points).values, both.values)


def test_trials_see_hops_along_wells_alone() -> None:
    rng = np.random.default_rng(2)
    densities, places = at_wells(rng, 500)
    trials = Trials(2 * PAIRS, rng)
    powers = np.tile(AT_TARGET, (500, 1))
    reach = np.tile(np.ptp(places.points, axis=0), (500, 1))
    moved, hopped = trials.made(densities, places, powers, reach=reach, number=2 * PAIRS)
    crossed = np.sign(moved.points) != np.sign(places.points)
    assert not np.any(hopped & ~crossed)
    # But for those that begin or end on a slope so near the top that there is no valley.
    assert hopped.sum() > 0.95 * crossed[:, :PAIRS].sum()
    assert hopped[:, :PAIRS].any(axis=0).all()
    assert not hopped[:, PAIRS:].any()


def test_trials_see_no_hop_in_long_tails_nor_along_a_ridge() -> None:
    """A slice may go far there, but through no valley."""

    def cauchy_and_ridge(points: FloatArray) -> tuple[FloatArray, FloatArray]:
        t, x, y = points.T
        gap = (y - x) / 0.1
        value = -np.log1p(t**2) - 0.5 * x**2 - 0.5 * gap**2
        slope = [-2 * t / (1 + t**2), -x + gap / 0.1, -gap / 0.1]
        return value, np.stack(slope, axis=1)

    rng = np.random.default_rng(3)
    base = gaussian_base(np.zeros(3), np.eye(3))
    densities = Densities(cauchy_and_ridge, [Reference(base.log_density_and_gradient)])
    x = rng.standard_normal(400)
    points = np.stack([rng.standard_cauchy(400), x, x + 0.1 * rng.standard_normal(400)], axis=1)
    _, hopped = Trials(3, rng).made(
        densities,
        densities(points),
        np.tile(AT_TARGET, (400, 1)),
        reach=np.tile(np.ptp(points, axis=0), (400, 1)),
        number=12,
    )
    assert not hopped.any()


def test_slices_that_are_far_too_wide_end_and_leave_the_target_invariant() -> None:
    """After 60 shrinks a point stays: from 1e30 widths to one takes about 140 of them."""
    rng = np.random.default_rng(7)
    densities, places = at_wells(rng, 4000)
    everywhere = np.ones((1, 2 * PAIRS), dtype=np.bool_)
    rungs = Rungs([[0, 1]])
    both = densities(np.concatenate([BASE.sample(rng, 4000), places.points]))
    hops = Hops(np.concatenate([~everywhere, everywhere]), np.full((2, 2 * PAIRS), 1e30))
    hops.sweep(densities, both, rungs, rng)
    shares = (both.points[4000:, :PAIRS] > 0).mean(axis=0)
    error = np.sqrt(wells.P_RIGHT * (1 - wells.P_RIGHT) / 4000)
    assert np.all(np.abs(shares - wells.P_RIGHT) < 4 * error)
    assert (both.points[4000:] == places.points).mean() > 0.99


def test_all_coordinates_are_tried_equally_often() -> None:
    trials = Trials(5, np.random.default_rng(4))
    chosen = [axis for number in (3, 1, 4, 2) for axis in trials._next(number)]
    assert np.bincount(chosen).tolist() == [2] * 5
    assert trials.affordable(4, 10.0) == 0  # an early round is too short
    assert trials.affordable(10_000, 10.0) == 20  # four of each are enough


def test_hops_are_made_at_neighbouring_rungs_and_take_half_as_much_as_all_else() -> None:
    hopped = np.zeros((5, 4), dtype=np.bool_)
    hopped[2, 1] = True
    seen = Hops.none(5, 4).seen(hopped)
    np.testing.assert_array_equal(seen.along[:, 1], [False, True, True, True, False])
    assert seen.along.sum() == 3
    # Three slices of ten evaluations each, against ten evaluations at each of five rungs.
    assert Hops.within(seen.along, seen.reach, 10.0).every == 1
    # Sixty against fifty: a sweep in two scans or three.
    doubled = np.concatenate([seen.along, seen.along], axis=1)
    assert Hops.within(doubled, np.ones((5, 8)), 10.0).every == 2
    assert not Hops.none(5, 4).due(0)


def test_a_run_on_wells_finds_where_to_hop_and_has_the_right_shares() -> None:
    """Along one ladder; shares of the sides within errors from the chains themselves."""
    rng = np.random.default_rng(6)
    run = non_reversible_tempering(
        wells.wells,
        [REFERENCE],
        [BASE.sample(rng, 2000)],
        settings=TemperingSettings(chains=4, draws=600, warmup=300),
        seed=5,
    )
    hops = run.ladders[0].hops
    assert np.all(hops[-1, :PAIRS])
    assert not hops[:, PAIRS:].any()
    right = run.points[..., :PAIRS] > 0
    found = [evidence.expectation(right[..., k].astype(float)) for k in range(PAIRS)]
    z = [(each.value - wells.P_RIGHT) / each.mcse for each in found]
    assert np.max(np.abs(z)) < 4
    along = run.ladders[0].evidence
    assert along is not None
    gap = along.log_evidence.value - wells.log_z(PAIRS)
    assert abs(gap) < 4 * along.log_evidence.mcse
