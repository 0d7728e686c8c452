"""Independent estimates of one log Z, combined: by hand, and by their coverage."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2

from harness.errors import DataError
from harness.evidence import LogEvidence, combined_log_evidence


def test_estimates_that_agree_are_weighted_by_their_precision() -> None:
    made = combined_log_evidence([LogEvidence(1.0, 0.1), LogEvidence(1.1, 0.2)])
    weight = np.array([100.0, 25.0])
    assert made.estimate.value == pytest.approx((weight @ [1.0, 1.1]) / weight.sum())
    assert made.estimate.mcse == pytest.approx(1 / np.sqrt(weight.sum()))
    assert made.between == 0
    q = 100 * (1.0 - 1.02) ** 2 + 25 * (1.1 - 1.02) ** 2
    assert made.p_value == pytest.approx(chi2.sf(q, 1))


def test_one_estimate_stays_as_it_is() -> None:
    alone = LogEvidence(-3.0, 0.25)
    made = combined_log_evidence([alone])
    assert made.estimate == pytest.approx(alone)
    assert (made.between, made.p_value) == (0.0, 1.0)


def test_estimates_that_disagree_by_far_have_the_error_of_their_spread() -> None:
    """With errors of next to nothing what is left is the plain mean and its standard error."""
    values = np.array([-5.0, -3.0, -1.0, 3.0])
    made = combined_log_evidence([LogEvidence(float(each), 1e-4) for each in values])
    assert made.estimate.value == pytest.approx(values.mean(), abs=1e-6)
    assert made.between == pytest.approx(values.std(ddof=1), rel=1e-6)
    assert made.estimate.mcse == pytest.approx(values.std(ddof=1) / 2, rel=1e-6)
    assert made.p_value < 1e-10


def test_the_error_covers_a_spread_that_the_estimates_do_not_admit() -> None:
    """Errors too small by a factor of three: z of four estimates would have variance 9."""
    rng = np.random.default_rng(8)
    runs = 2000
    z, naive = np.empty(runs), np.empty(runs)
    for run in range(runs):
        values = rng.normal(0.0, 0.3, size=4)
        made = combined_log_evidence([LogEvidence(float(v), 0.1) for v in values])
        z[run] = made.estimate.value / made.estimate.mcse
        naive[run] = values.mean() / (0.1 / 2)
    assert naive.var() == pytest.approx(9, abs=4 * 9 * np.sqrt(2 / runs))
    # A between-variance of four estimates is rough, so that z has the tails of Student's t.
    assert np.mean(np.abs(z) > 3) < 0.1 < np.mean(np.abs(naive) > 3)


@pytest.mark.parametrize(
    "estimates",
    [[], [LogEvidence(np.nan, 0.1)], [LogEvidence(0.0, np.inf)], [LogEvidence(0.0, -0.1)]],
)
def test_what_cannot_be_combined_is_refused(estimates: list[LogEvidence]) -> None:
    with pytest.raises(DataError, match="to combine"):
        combined_log_evidence(estimates)


def test_products_and_ratios_of_independent_estimates() -> None:
    """A variance of log X + log Y or log X - log Y is the sum of both: checked on draws."""
    rng = np.random.default_rng(8)
    one, other = LogEvidence(2.0, 0.3), LogEvidence(-1.0, 0.4)
    x, y = rng.normal(one.value, one.mcse, 40_000), rng.normal(other.value, other.mcse, 40_000)
    for found, draws in ((one.plus(other), x + y), (one.minus(other), x - y)):
        # Standard errors of a mean and of a standard deviation of 40,000 normal draws.
        assert abs(found.value - draws.mean()) < 4 * found.mcse / 200
        assert abs(found.mcse / draws.std() - 1) < 4 / np.sqrt(80_000)


def test_exact_estimates_count_for_all_and_keep_an_error_of_rounding() -> None:
    """Where the likelihood is constant, a path from the prior makes no error at all."""
    made = combined_log_evidence([LogEvidence(0.0, 0.0), LogEvidence(0.0, 0.0)])
    assert made.estimate.value == 0
    assert 0 < made.estimate.mcse <= 1e-9
    assert made.p_value == 1
    made = combined_log_evidence([LogEvidence(2.0, 0.0), LogEvidence(2.02, 0.02)])
    assert made.estimate.value == pytest.approx(2.0, abs=1e-9)
    assert made.estimate.text == "2.000 ± 0.000"


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (-1e-12, 1e-10, "0.000 ± 0.000"),
        (-0.0001, 0.2, "0.000 ± 0.200"),
        (1.23456789, 1.2e-5, "1.234568 ± 0.000012"),
        (-12.3456, 0.0123, "-12.346 ± 0.012"),
        (1.5, float("nan"), "1.500 ± nan"),
    ],
)
def test_estimates_are_shown_with_two_digits_of_their_errors(
    value: float, error: float, text: str
) -> None:
    assert LogEvidence(value, error).text == text
