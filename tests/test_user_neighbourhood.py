"""What counts as near draws, and the Gaussian that has their moments."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from harness.user.neighbourhood import Neighbourhood


@pytest.mark.parametrize("count", [25, 400], ids=["standard deviations", "covariance"])
def test_the_gaussian_has_the_moments_of_the_draws(count: int) -> None:
    """The whole covariance if there are ten draws or more for each of three dimensions."""
    rng = np.random.default_rng(1)
    factor = np.array([[2.0, 0, 0], [1.5, 0.5, 0], [0, 0.1, 0.02]])
    draws = np.array([100.0, 0, -3]) + rng.standard_normal((count, 3)) @ factor.T
    points, log_density = Neighbourhood(draws).gaussian(20_000, rng)
    covariance = np.cov(draws, rowvar=False, bias=count < 30)
    if count < 30:
        covariance = np.diag(np.diag(covariance))
    expected = stats.multivariate_normal(draws.mean(axis=0), covariance)
    np.testing.assert_allclose(log_density, expected.logpdf(points), rtol=0, atol=0.02)
    # Five standard errors of 20,000 draws.
    error = 5 * np.sqrt(np.diag(covariance) / len(points))
    assert np.all(np.abs(points.mean(axis=0) - draws.mean(axis=0)) < error)


def test_draws_of_the_same_distribution_are_near_few_draws_in_many_dimensions() -> None:
    """With a covariance of 210 draws in 200 dimensions all of them would be far away."""
    rng = np.random.default_rng(2)
    near = Neighbourhood(rng.standard_normal((210, 200)))
    assert near.holds(rng.standard_normal((50, 200))).all()
    assert near.holds(np.zeros((1, 200))).all()
    assert not near.holds(np.full((1, 200), 4.0)).any()
