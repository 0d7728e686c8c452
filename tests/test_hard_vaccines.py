"""Vaccines: the density from its definition."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hard_target import Parts
from scipy.special import expit
from scipy.stats import binom, norm

from harness.models.hard.vaccines import vaccines

POINTS: list[dict[str, Any]] = [
    {
        "eff_m": 2.1,
        "eff_d": 1.0,
        "inc_m": -3.5,
        "inc_d": 0.3,
        "e": [1.0, 3.0, 2.8, -0.2],
        "i": [-3.4, -3.9, -3.6, -2.8],
    },
    {
        "eff_m": -40.0,
        "eff_d": -60.0,
        "inc_m": 30.0,
        "inc_d": 90.0,
        "e": [-30.0, 30.0, 0.0, -12.0],
        "i": [5.0, -25.0, 10.0, -2.0],
    },
]


def log_parts(data: Mapping[str, Any], values: dict[str, Any]) -> tuple[float, float]:
    """Log prior and log likelihood from the definition."""
    e, i = np.array(values["e"]), np.array(values["i"])
    control = expit(i) * (expit(-0.0) if data["half_in_control"] else 1)
    likelihood = np.sum(
        binom.logpmf(data["cases_vaccinated"], data["n_vaccinated"], expit(i) * expit(-e))
    ) + np.sum(binom.logpmf(data["cases_control"], data["n_control"], control))
    hyper = [values[name] for name in ("eff_m", "eff_d", "inc_m", "inc_d")]
    prior = np.sum(norm(0, np.sqrt(1000)).logpdf(hyper))
    prior += np.sum(norm(values["eff_m"], np.sqrt(np.logaddexp(0, values["eff_d"]))).logpdf(e))
    prior += np.sum(norm(values["inc_m"], np.sqrt(np.logaddexp(0, values["inc_d"]))).logpdf(i))
    return float(prior), float(likelihood)


@pytest.mark.parametrize("half", [True, False])
def test_density(half: bool, tmp_path: Path) -> None:
    model = vaccines(half_in_control=half)
    parts = Parts(model, tmp_path)
    for values in POINTS:
        expected_prior, expected = log_parts(model.data, values)
        log_prior, likelihood = parts.at(values)
        assert log_prior == pytest.approx(expected_prior, rel=1e-9)
        # It is the difference of two sums, of which the prior may be the larger one by far.
        assert likelihood == pytest.approx(expected, rel=1e-9, abs=1e-14 * abs(log_prior))
