"""Probabilities of modes by their masses: against mixtures in which they are known exactly."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from calibration import mean_square_bounds
from test_modes import Plain, draws_of, mixture, table_of

from harness.arrays import FloatArray
from harness.diagnosis import Severity
from harness.evidence import LogEvidence
from harness.modes import Mode, ModeTable, Visits
from harness.modes.by_mass import shares_by_mass
from harness.modes.lacking import _that_hardly_count
from harness.modes.limited import Limited
from harness.modes.rows import Rows
from harness.user.mode_findings import (
    missed_by_nuts,
    mode_findings,
    problems_of_modes,
    right_by_masses,
)

MEANS = np.array([-8.0, 0.0, 10.0])[:, None] * np.ones(3) / np.sqrt(3)
WIDTHS = [1.0, 0.4, 1.5]
TRUE = np.array([0.5, 0.2, 0.3])


@pytest.mark.parametrize("drawn", [TRUE, [0.2, 0.7, 0.1]], ids=["right", "wrong"])
def test_masses_do_not_depend_on_the_draws(drawn: FloatArray) -> None:
    rng = np.random.default_rng(5)
    target = Plain(mixture(TRUE, MEANS, WIDTHS), {"x": (3,)})
    table = table_of(draws_of(rng, drawn, MEANS, WIDTHS), target)
    assert len(table.modes) == 3
    for mode in table.modes:
        which = int(np.argmin(np.linalg.norm(MEANS - np.array(mode.centre["x"]), axis=1)))
        assert mode.probability == pytest.approx(drawn[which], abs=0.05)
        assert mode.local is not None
        share, error = mode.local
        # 2,000 points around each peak are worth 1,000 or more, so that the errors of log masses
        # are .03 or less.
        assert 0 < error < 0.03
        assert abs(share - TRUE[which]) < 4 * error
    found = mode_findings(table)
    if np.array_equal(drawn, TRUE):
        assert found == []
        return
    (wrong,) = found
    assert wrong.severity is Severity.PROBLEM
    assert wrong.sentence.startswith("Mode 1 has a share of 0.6")
    assert problems_of_modes(table) == [wrong]
    (by_nuts,) = missed_by_nuts(table)
    assert by_nuts.severity is Severity.WARNING
    assert by_nuts.sentence.startswith("Plain NUTS moves too rarely between modes: mode 1 has a")


@pytest.mark.parametrize("copies", [False, True], ids=["alike", "copies"])
def test_masses_of_modes_alike_have_errors_of_their_own(copies: bool) -> None:
    """With the same points around both peaks they would have one error, and their sum, too.

    If they are known to be copies, they have equal masses, and the sum has the same error.
    """
    means = np.array([[-6.0, 0.0], [6.0, 0.0]])
    target = mixture([0.5, 0.5], means, [1.0, 1.0])
    draws = draws_of(np.random.default_rng(8), [0.5, 0.5], means, [1.0, 1.0]).reshape(-1, 2)
    runs, sums, errors = 200, [], []
    for seed in range(runs):
        found = shares_by_mass(
            dict(enumerate(means)),
            draws,
            (draws[:, 0] > 0).astype(np.intp),
            np.full(len(draws), 1 / len(draws)),
            target,
            scale=np.ones(2),
            error_of_sum=lambda values: 0.0,
            families=[[0, 1]] if copies else [],
            seed=seed,
        )
        one, other = (each.log_mass for each in found.values())
        assert (one.value == other.value) == copies
        assert (found[0].probability == found[1].probability == 0.5) == copies
        sums.append(float(np.logaddexp(one.value, other.value)))
        errors.append(0.5 * float(np.hypot(one.mcse, other.mcse)))
    # The points alone are random here; tails outside of the ellipsoids are those of the draws.
    scores = (np.array(sums) - np.mean(sums)) / np.array(errors)
    low, high = mean_square_bounds(runs)
    assert low < np.mean(np.square(scores)) < high


def test_a_bent_mode_is_not_weighed_by_its_peak() -> None:
    """Points around the peak of a crescent miss its arms, and with them half of its mass."""
    rng = np.random.default_rng(6)

    def crescent(x: FloatArray) -> tuple[FloatArray, FloatArray]:
        radius = np.linalg.norm(x, axis=1)
        angle = np.arctan2(x[:, 1], x[:, 0])
        value = (
            -0.5 * np.square((radius - 10) / 0.3) - 0.5 * np.square(angle / 0.7) - np.log(radius)
        )
        radial = -(radius - 10) / 0.09 - 1 / radius
        turn = -angle / 0.49 / radius
        unit = x / radius[:, None]
        return value, radial[:, None] * unit + turn[:, None] * np.stack(
            [-unit[:, 1], unit[:, 0]], axis=1
        )

    def both(x: FloatArray) -> tuple[FloatArray, FloatArray]:
        one, by_one = crescent(x)
        other = -0.5 * np.square(x + 20).sum(axis=1) + np.log(0.3 * 0.7)
        value = np.logaddexp(one, other)
        share = np.exp(one - value)[:, None]
        return value, share * by_one - (1 - share) * (x + 20)

    radius, angle = rng.normal(10, 0.3, (4, 500)), rng.normal(0, 0.7, (4, 500))
    bent = radius[..., None] * np.stack([np.cos(angle), np.sin(angle)], axis=2)
    points = np.concatenate([bent, rng.normal(-20, 1, (4, 500, 2))], axis=1)
    table = table_of(points, Plain(both, {"x": (2,)}))
    assert len(table.modes) == 2
    assert [each.local for each in table.modes] == [None, None]


def test_modes_that_overlap_are_not_weighed() -> None:
    rng = np.random.default_rng(7)
    mean = np.array([[-2.3], [2.3]])
    what = ([0.75, 0.25], mean, [1.0, 1.0])
    table = table_of(draws_of(rng, *what), Plain(mixture(*what)))
    assert len(table.modes) == 2
    assert [each.local for each in table.modes] == [None, None]


def test_small_differences_and_large_errors_are_no_problem() -> None:
    mode = Mode(0.6, 0.01, {"nuts": 0.6}, {"x": [0.0]}, 0.0, True, local=(0.5, 0.01))

    def problems(changed: Mode, unsure: float = 0.0) -> int:
        return len(problems_of_modes(ModeTable((changed, mode), ("nuts",), unsure=unsure)))

    quiet = replace(mode, local=(0.59, 0.001))
    for changed, expected in (
        (mode, 1),
        (replace(mode, local=(0.56, 0.001)), 0),
        (replace(mode, local=(0.5, 0.033)), 0),  # 2.9 standard errors
        (replace(mode, error=0.033), 0),
        (replace(mode, error=0.031), 1),  # 3.1
        (replace(mode, local=None), 0),
    ):
        table = ModeTable((changed, quiet), ("nuts",))
        assert len(problems_of_modes(table)) == expected
    assert problems(mode) == 1
    assert problems(mode, unsure=0.2) == 0


def test_masses_decide_whether_a_stuck_chain_or_a_tempered_run_is_right() -> None:
    """NUTS has 0.72 of its draws in one mode of 40, where three of its four chains are stuck."""
    stuck = Mode(0.02, 0.01, {"nuts": 0.72}, {"x": [0.0]}, 0.0, True, local=(0.025, 0.001))
    rest = Mode(0.98, 0.01, {"nuts": 0.28}, {"x": [9.0]}, 0.0, True, local=(0.975, 0.001))
    methods = ("parallel_tempering", "nuts")

    def right(*modes: Mode) -> bool:
        return right_by_masses(ModeTable(modes, methods))

    assert right(stuck, rest)
    assert right(replace(stuck, error=0.3), rest)
    # NUTS is right, and the tempered run hardly finds a narrow mode, as often as it is there.
    assert not right(replace(stuck, error=0.3, local=(0.7, 0.02)), replace(rest, local=(0.3, 0.02)))
    assert not right(replace(stuck, local=None), rest)
    assert not right(replace(stuck, probability=0.0), rest)
    assert not right_by_masses(None)


@pytest.mark.parametrize(("below", "counts"), [(75.0, False), (15.0, True)])
def test_places_with_few_points_each_are_weighed_together(below: float, counts: bool) -> None:
    """Twelve low modes in 20 dimensions, with 30 particles of a search in each.

    As many tell nothing of one place.  All of them together have 26 times the variance of one in
    the 11 directions between them, so that the bound is about 5.5 log(26) = 18 nats higher.
    """
    rng = np.random.default_rng(16)
    places = rng.normal(0, 2, size=(12, 20))
    inside = [np.zeros((1, 20)), *(place + 0.4 * rng.normal(size=(30, 20)) for place in places)]
    density = mixture(
        np.exp([0.0, *[-below] * 12]), np.vstack([np.full(20, 20.0), places]), [0.4] * 13
    )
    target = Limited(Plain(density), np.inf)
    points = np.concatenate(inside)
    rows = Rows([Visits("search", points[None], np.zeros((1, len(points))))], 100, rng)
    whole = LogEvidence(10 * np.log(2 * np.pi), 0.0)  # of the large mode, in these units
    found = _that_hardly_count(dict(enumerate(places, 1)), inside, whole, rows, target)
    assert set(found) == (set() if counts else set(range(1, 13)))
    # The bound on all of them is one on each.
    assert all(np.exp(-below) < share < 1e-4 for share in found.values())
