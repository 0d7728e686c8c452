"""Published evidences of planets: what is provable about them, and periods from draws."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from experiments.hard.velocities import OTHERS, Known, Published, evidences, known, periods
from harness.fit import Fit, build_fit
from harness.models.hard.radial_velocity import EVIDENCE_OF_NARROW

PAGE = Path(__file__).parents[1] / "docs" / "hard" / "radial_velocity.md"

# Sums of log10[ln 8000 / ln(P_max / P_min)] over planets, computed by hand from the narrow bounds.
CORRECTIONS = {(1, 1): 1.8924, (1, 2): 3.7849, (3, 1): 1.5122, (3, 2): 3.4047, (5, 2): 4.1037}


@pytest.mark.parametrize(("star", "planets"), CORRECTIONS)
def test_a_wide_evidence_is_bounded_by_the_narrow_one(star: int, planets: int) -> None:
    narrow = known(star, planets, "narrow")
    wide = known(star, planets, "wide")
    assert narrow is not None
    assert wide is not None
    assert narrow.value == EVIDENCE_OF_NARROW[star, planets].value / math.log(10)
    assert narrow.exact == (planets == 1)
    assert not wide.exact
    copies = math.log10(math.factorial(planets))
    expected = narrow.value - CORRECTIONS[star, planets] + copies
    assert wide.value == pytest.approx(expected, abs=1e-4)


def test_without_planets_the_evidence_is_known() -> None:
    found = known(1, 0, "wide")
    assert found is not None
    assert found.exact
    assert found.value == pytest.approx(-211.9774, abs=1e-4)  # by quadrature
    assert known(1, 3, "wide") is None


def test_what_is_off_beyond_doubt() -> None:
    exact, bound = Known(-100, 0.005, exact=True), Known(-100, 0.005, exact=False)
    assert exact.disproves(Published(-100.03, 0.0))
    assert exact.disproves(Published(-99.97, 0.0))
    assert not exact.disproves(Published(-100.015, 0.0))  # it does not matter
    assert not exact.disproves(Published(-100.3, 0.1))  # within four of its errors
    assert bound.disproves(Published(-100.03, 0.0))
    assert not bound.disproves(Published(-90.0, 0.0))


def fit_with_periods(draws: np.ndarray) -> Fit:
    """Return a fit of two planets with periods of shape (chains, draws, 2)."""
    shape = draws.shape[:2]
    return build_fit(
        posterior={"P_quantile": np.zeros_like(draws), "P": draws},
        extended=None,
        sample_stats={"lp": np.zeros(shape)},
        constant_data={},
        attrs={
            "method": "made up",
            "settings": {},
            "seed": 1,
            "gradients_warmup": np.zeros(shape[0], dtype=int),
            "gradients_sampling": np.zeros(shape[0], dtype=int),
            "seconds_warmup": np.zeros(shape[0]),
            "seconds_sampling": np.zeros(shape[0]),
        },
    )


def test_the_most_probable_period_of_each_planet() -> None:
    rng = np.random.default_rng(1)
    first = np.where(rng.random((4, 250)) < 0.8, 12.0, 17.0) * np.exp(rng.normal(0, 1e-3, (4, 250)))
    second = 40 * np.exp(rng.normal(0, 1e-3, (4, 250)))
    draws = np.stack([first, second], axis=-1)
    draws[::2] = draws[::2, :, ::-1]  # in two chains the planets have traded places
    found = periods(fit_with_periods(draws))
    assert found["period_1"] == pytest.approx(12, rel=1e-3)
    assert found["period_1_probability"] == np.mean(first < 14)
    assert found["period_2"] == pytest.approx(40, rel=1e-3)
    assert found["period_2_probability"] == 1


def test_the_page_has_the_table() -> None:
    frame = evidences()
    rows = [
        f"| {star} | {planets} | {prior} | " + " | ".join(map(str, values)) + " |"
        for (star, planets, prior), values in zip(frame.index, frame.to_numpy(), strict=True)
    ]
    page = PAGE.read_text(encoding="utf-8")
    head = "| set | planets | prior | known | " + " | ".join(OTHERS) + " |"
    assert "\n".join([head, "|" + "---|" * (4 + len(OTHERS)), *rows]) in page
