"""Slices with auxiliary data: moments of a known posterior, and what a user gets wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.intractable import IntractableProblem, slice_auxiliary

# A Gaussian precision with Gamma(1, 1) as its prior and one observation, 1: Gamma(1.5, 1.5).


def precision(**changes: Any) -> IntractableProblem:
    settings: dict[str, Any] = {
        "name": "precision",
        "observed": np.ones(1),
        "dimension": 1,
        "log_prior": lambda theta: np.where(theta[:, 0] > 0, -theta[:, 0], -np.inf),
        "log_factor": lambda theta, y: -0.5 * theta[:, 0] * y[:, 0] ** 2,
        "simulate": lambda theta, rng: rng.normal(0, 1 / np.sqrt(theta)),
    }
    return IntractableProblem(**(settings | changes))


def between(
    data: FloatArray, start: FloatArray, end: FloatArray, share: float, rng: np.random.Generator
) -> FloatArray:
    return rng.standard_normal(data.shape) / np.sqrt((1 - share) * start + share * end)


@pytest.mark.parametrize("bridges", [0, 3])
def test_moments_of_a_known_posterior(bridges: int) -> None:
    """E[theta] = 1 and E[log theta], within 4.5 errors from the spread over 200 chains.

    Steps that give up at 20 trials are part of it.
    """
    starts = np.random.default_rng(1).gamma(1.5, 1 / 1.5, (200, 1))
    fit = slice_auxiliary(
        precision(), starts, estimate=[1.0], width=3.0, draws=300, warmup=100, chains=200, seed=2,
        bridges=bridges, transition=between, most_trials=20,
    )  # fmt: skip
    draws = fit.posterior["theta"].to_numpy()[..., 0]
    for values, truth in ((draws, 1.0), (np.log(draws), 0.03648997 - np.log(1.5))):
        each = values.mean(axis=1)
        assert abs(each.mean() - truth) < 4.5 * each.std(ddof=1) / np.sqrt(200)
    assert 1 < fit.tree.attrs["trials"] < 20
    assert 0 < fit.tree.attrs["stayed"] < 0.2


def test_what_a_user_gets_wrong_is_said() -> None:
    def run(problem: IntractableProblem | None = None, **changes: Any) -> None:
        settings: dict[str, Any] = {"estimate": [1.0], "width": 1.0, "draws": 20, "seed": 1}
        slice_auxiliary(problem or precision(), [1.0], **(settings | changes))

    for changes, message in (
        ({"estimate": [1.0, 2.0]}, "must be 1 finite numbers"),
        ({"width": 0.0}, "width of a slice must be a positive"),
        ({"draws": 0}, "draws and most_trials of 1 or more"),
    ):
        with pytest.raises(DataError, match=message):
            run(**changes)
    with pytest.raises(DataError, match="a start of precision is impossible"):
        run(precision(log_prior=lambda theta: np.full(len(theta), -np.inf)))
