"""Places that NUTS leaves are no modes, unless a method has many draws there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from test_modes import Plain, mixture, visits

from harness.arrays import FloatArray
from harness.diagnosis import Severity
from harness.evidence import LogEvidence
from harness.modes import ModeTable
from harness.modes import lacking as by_masses
from harness.modes.find import FoundModes, _without, find_modes
from harness.modes.table import Mode
from harness.modes.visits import Visits
from harness.user.mode_findings import mode_findings

PLACES = np.array([[0.0, 0.0], [12.0, 0.0], [0.0, 14.0], [-16.0, 3.0]])
SIZES = np.array([1.0, 0.8, 0.7, 0.6])  # so that none is a copy of another one


class Left:
    """Chains leave some places, and stay in others, whose mass is a tenth of that of the draws."""

    def __init__(self, *places: int) -> None:
        self._places = places
        self.asked: list[int] = []

    def of_draws(self) -> LogEvidence:
        return LogEvidence(3.0, 0.01)

    def of_mode(self, points: FloatArray, /) -> LogEvidence:
        place = int(np.linalg.norm(PLACES - points.mean(axis=0), axis=1).argmin())
        self.asked.append(place)
        if place in self._places:
            return LogEvidence(-np.inf, 0.0)
        return LogEvidence(3.0 + np.log(0.1), 0.01)


def table_of(masses: Left, shares: tuple[float, ...]) -> ModeTable:
    """Of final draws in the first place, and of a search with shares in the others."""
    rng = np.random.default_rng(1)
    final = rng.normal(size=(4, 250, 2))
    counts = [round(1000 * share) for share in shares]
    others = [
        at + size * rng.normal(size=(n, 2))
        for n, at, size in zip(counts, PLACES[1:], SIZES[1:], strict=False)
    ]
    rest = rng.normal(size=(1000 - sum(counts), 2))
    particles = np.concatenate([rest, *others])[None]
    target = Plain(mixture(np.full(4, 0.25), PLACES, SIZES), {"x": (2,)})
    return find_modes(
        [visits("nuts", final), Visits("search", particles, np.zeros((1, 1000)))],
        target,
        effective=1000,
        masses=masses,
        seed=1,
    ).table


@pytest.fixture(autouse=True)
def _no_gaussians(monkeypatch: pytest.MonkeyPatch) -> None:
    """No mode looks like a Gaussian, so that its mass has to come from chains in it."""
    monkeypatch.setattr(by_masses, "_by_peaks", lambda *_, **__: {})


def test_a_place_that_chains_leave_is_not_listed() -> None:
    table = table_of(Left(1), (0.03, 0.02))
    assert len(table.modes) == 2
    # The probability is 0.1 / 1.1, of the draws and the mode that is left.
    share, _ = table.modes[1].local or (0.0, 0.0)
    assert share == pytest.approx(0.1 / 1.1)
    assert table.left == 1
    assert table.left_share == pytest.approx(0.03)
    (said,) = [each for each in mode_findings(table) if "no mode" in each.sentence]
    assert said.severity == Severity.FINE
    assert "another method has up to 0.03 of its own" in said.sentence
    assert ModeTable.from_json(table.as_json()) == table
    # Masses of modes leave it out, whereas chains pass through it.
    (said,) = [
        each for each in mode_findings(table, by_masses=True) if "NUTS leaves" in each.sentence
    ]
    assert said.severity == Severity.WARNING
    assert "leave out a place that NUTS leaves" in said.sentence
    assert "up to 0.03 of its draws there, and log Z lacks what it has." in said.sentence
    hardly = replace(table, left_share=9e-4)
    assert all(
        each.severity < Severity.WARNING
        for each in mode_findings(hardly, by_masses=True)
        if "NUTS" in each.sentence and "leaves" in each.sentence
    )


def test_a_place_with_many_draws_is_listed_although_chains_leave_it() -> None:
    """It may be narrow, so that chains with steps of the usual size fall out of it."""
    table = table_of(Left(1), (0.06, 0.02))
    assert len(table.modes) == 3
    assert table.left == 0
    (lacking,) = [mode for mode in table.modes[1:] if mode.local is None]
    assert lacking.seen_by["search"] == pytest.approx(0.06)


def test_nothing_is_left_out_where_chains_stay() -> None:
    masses = Left()
    table = table_of(masses, (0.03, 0.02, 0.01))
    assert sorted(masses.asked) == [1, 2, 3]
    assert len(table.modes) == 4
    assert table.left == 0


def test_several_places_count_together() -> None:
    table = table_of(Left(1, 3), (0.03, 0.02, 0.01))
    assert len(table.modes) == 2
    assert table.left == 2
    assert table.left_share == pytest.approx(0.04)
    assert any("starts in 2 places without draws" in each.sentence for each in mode_findings(table))


def test_numbers_of_copies_stay_right() -> None:
    found = FoundModes(
        ModeTable(
            (
                Mode(1.0, 0.01, {"nuts": 1.0}, {}, 0.0, True),
                Mode(0.0, 0.01, {"search": 0.02}, {}, 0.0, True),
                Mode(0.0, 0.01, {"search": 0.02}, {}, 0.0, True),
                Mode(0.0, 0.01, {"search": 0.01}, {}, 0.0, True, copy_of=3),
            ),
            ("nuts", "search"),
        ),
        np.zeros((1, 1)),
        np.zeros(1, dtype=np.intp),
        np.ones(1),
        {},
        [np.zeros((1, 1)), np.ones((1, 1)), np.full((1, 1), 2.0), np.full((1, 1), 3.0)],
    )
    kept = _without(found, {1})
    assert [each.copy_of for each in kept.table.modes] == [None, None, 2]
    assert [float(each[0, 0]) for each in kept.inside] == [0.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("share", "error", "severity"),
    [
        (0.004, 0.003, Severity.FINE),  # it may as well be 0
        (0.008, 0.003, Severity.WARNING),
        (0.03, 0.02, Severity.PROBLEM),  # large enough to matter, whatever the error
    ],
)
def test_a_small_mode_that_may_have_no_probability_is_no_warning(
    share: float, error: float, severity: Severity
) -> None:
    drawn = Mode(1.0, 1e-4, {"nuts": 1.0}, {"x": 0.0}, 0.0, True)
    other = replace(drawn, probability=0.0, seen_by={"search": 0.01}, local=(share, error))
    (found,) = mode_findings(ModeTable((drawn, other), ("nuts", "search")))
    assert found.severity == severity
