"""Log of the mean weight of populations whose logs are normal: log Z is 0 by construction."""

from __future__ import annotations

import numpy as np
import pytest

from harness.evidence import log_mean_of_populations, log_mean_weight

RUNS = 2000


@pytest.mark.parametrize("populations", [8, 16])
@pytest.mark.parametrize("spread", [0.3, 1.3, 3.0, 4.5])
def test_errors_are_honest_however_far_populations_spread(populations: int, spread: float) -> None:
    """Estimates farther off than three errors are no more than a variance by n draws makes.

    With n - 1 degrees of freedom a t distribution has 0.020 (n = 8) or 0.009 (n = 16) beyond 3, and
    where the variance itself is part of the estimate there are about three times as many.  The
    share of 2,000 runs has a standard error of 0.006 or less.
    """
    rng = np.random.default_rng([41, populations, int(10 * spread)])
    logs = rng.normal(-0.5 * spread**2, spread, size=(RUNS, populations))
    found = [log_mean_of_populations(each) for each in logs]
    far = float(np.mean([abs(each.value) > 3 * each.mcse for each in found]))
    assert far < 3 * 0.020 + 4 * 0.006
    if spread > 2:  # what the delta method says there
        before = [log_mean_weight(each) for each in logs]
        assert np.mean([abs(each.value) > 3 * each.mcse for each in before]) > 0.3


def test_the_mean_of_weights_where_they_are_alike() -> None:
    """Also if one population has lost all its weight, or there are too few to tell a variance."""
    alike = np.array([0.1, -0.4, 0.3, 0.0, 0.2, -0.1])
    assert log_mean_of_populations(alike) == log_mean_weight(alike)
    lost = np.array([0.0, -np.inf, -3.0, 2.0])
    assert log_mean_of_populations(lost) == log_mean_weight(lost)
    few = np.array([0.0, -5.0, 3.0])
    assert log_mean_of_populations(few) == log_mean_weight(few)


def test_populations_that_are_stuck_tell_that_the_mean_is_not_known() -> None:
    """As of a prior whose neck is infinitely narrow: log Z is -51, and not 7,000 with an error."""
    stuck = np.array([-55.0, -59.7, -380.0, -51.2, -52.0, -310.0, -53.3, -190.0])
    found = log_mean_of_populations(stuck)
    assert found.value == log_mean_weight(stuck).value
    assert found.mcse == pytest.approx(4 * stuck.std(ddof=1))


def test_the_error_grows_as_populations_move_apart() -> None:
    """Also where another rule begins to hold."""
    unit = np.linspace(-1, 1, 8)
    unit /= unit.std(ddof=1)
    errors = [log_mean_of_populations(spread * unit).mcse for spread in np.linspace(0.5, 12, 200)]
    assert np.all(np.diff(errors) > 0)
