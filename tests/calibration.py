"""What the slow suite does more of: runs whose z scores are judged, and engines."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2

from harness.arrays import FloatArray


def few_and_many(few: int, many: int) -> pytest.MarkDecorator:
    """Give a test its number of ``runs``: few, and in the slow suite many."""
    return pytest.mark.parametrize("runs", [few, pytest.param(many, marks=pytest.mark.slow)])


BOTH_ENGINES = pytest.mark.parametrize(
    "engine",
    ["stanli", pytest.param("cmdstan", marks=[pytest.mark.compiled, pytest.mark.slow])],
)
"""For what is not about the engine: CmdStan, which compiles first, only in the slow suite."""


def mean_square_bounds(runs: int, *, below: float = 5e-5, above: float = 5e-5) -> FloatArray:
    """Bounds of the mean of so many squares of independent standard normals.

    It lies below the lower one and above the upper one with these probabilities: fewer runs have
    wider bounds, and fail as rarely.
    """
    return np.asarray(chi2.ppf([below, 1 - above], runs)) / runs
