"""Z scores of independent runs: of a few by default, of many in the slow suite."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2

from harness.arrays import FloatArray


def few_and_many(few: int, many: int) -> pytest.MarkDecorator:
    """Give a test its number of ``runs``: few, and in the slow suite many."""
    return pytest.mark.parametrize("runs", [few, pytest.param(many, marks=pytest.mark.slow)])


def mean_square_bounds(runs: int, *, below: float = 5e-5, above: float = 5e-5) -> FloatArray:
    """Bounds of the mean of so many squares of independent standard normals.

    It lies below the lower one and above the upper one with these probabilities: fewer runs have
    wider bounds, and fail as rarely.
    """
    return np.asarray(chi2.ppf([below, 1 - above], runs)) / runs
