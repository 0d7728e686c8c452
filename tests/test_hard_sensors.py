"""Sensors: the density from its definition, and on which side of a line they lie."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from hard_target import Parts
from scipy.stats import norm

from harness.arrays import FloatArray
from harness.folders import shipped
from harness.models.hard.sensors import sensors_8d, sensors_16d

FILE = json.loads((shipped("data") / "hard" / "sensors.json").read_text(encoding="utf-8"))
CASES = {"modified_8d": sensors_8d, "original_16d": sensors_16d}
RNG = np.random.default_rng(5)


def true_layout(entry: str) -> FloatArray:
    return np.array([FILE[entry]["true"][str(name)] for name in FILE[entry]["unknown"]])


def log_likelihood(x: FloatArray, found: dict[str, Any]) -> float:
    """Log likelihood at positions (S, 2), pair by pair."""
    at = dict(zip(found["unknown"], x, strict=True))
    at |= {int(name): np.array(place) for name, place in found["anchors"].items()}
    total = 0.0
    for first, second, y in found["observed"]:
        d = np.hypot(*(at[first] - at[second]))
        total += -(d**2) / (2 * 0.3**2) + norm(d, 0.02).logpdf(y)
    for first, second in found["unobserved"]:
        d = np.hypot(*(at[first] - at[second]))
        total += np.log(-np.expm1(-(d**2) / (2 * 0.3**2)))
    return total


@pytest.mark.parametrize("entry", CASES)
def test_density(entry: str, tmp_path: Path) -> None:
    parts = Parts(CASES[entry](), tmp_path)
    layout = true_layout(entry)
    for spread in (0.0, 0.3, 20.0):
        x = layout + spread * RNG.normal(size=layout.shape)
        log_prior, likelihood = parts.at({"x": x})
        prior = norm(0, 10).logpdf(x).sum() if entry == "modified_8d" else 0.0
        assert log_prior == pytest.approx(prior)
        assert likelihood == pytest.approx(log_likelihood(x, FILE[entry]))


def happens(entry: str, x: FloatArray) -> FloatArray:
    test = CASES[entry]().truth.mode_test
    assert test is not None
    draws = xr.Dataset({"x": (("chain", "draw", "sensor", "axis"), x[None, None])})
    return np.asarray(test.happens(draws)[0, 0], dtype=np.float64)


def test_the_true_layout_of_four_has_sides_011() -> None:
    found = happens("modified_8d", true_layout("modified_8d"))
    np.testing.assert_array_equal(found, np.arange(8) == 0b011)


def test_sides_of_eight_by_mirrors() -> None:
    """Reflect sensor 6 in the line from 5 to 9, and sensor 8 in that from 5 to 11."""
    x = true_layout("original_16d")
    before = happens("original_16d", x)
    mirrored = x.copy()
    for sensor, anchor in ((5, "9"), (7, "11")):
        along = np.array(FILE["original_16d"]["anchors"][anchor]) - x[4]
        along /= np.hypot(*along)
        away = x[sensor] - x[4]
        mirrored[sensor] = x[4] + 2 * (away @ along) * along - away
    np.testing.assert_array_equal(happens("original_16d", mirrored), 1 - before)
    # By hand: (a9 - s5) = (-.25, -.03), (s6 - s5) = (.02, .20): -.25 * .20 + .03 * .02 < 0;
    # (a11 - s5) = (.15, -.03), (s8 - s5) = (.30, .07): .15 * .07 + .03 * .30 > 0.
    assert before.tolist() == [0, 1]
