"""The summary that a result prints, against NumPy, and how much of it is computed."""

from __future__ import annotations

import numpy as np
import pytest
from test_diagnosis import attrs_of, pseudo_fit, settings_of, stats_of, tempered_fit

from harness import evidence
from harness.arrays import FloatArray
from harness.fit import Fit, build_fit
from harness.user.result import UserFit


def several(rng: np.random.Generator) -> tuple[Fit, dict[str, FloatArray]]:
    """A fit with a number, a matrix and a long vector."""
    draws = {
        "mu": rng.normal(size=(4, 1000)),
        "a": rng.normal(size=(4, 1000, 2, 3)),
        "log_lik": rng.normal(size=(4, 1000, 50)),
    }
    fit = build_fit(
        posterior=draws,
        extended=None,
        sample_stats=stats_of(rng),
        constant_data={},
        attrs=attrs_of("nuts", settings_of()),
    )
    return fit, draws


def test_the_summary_is_that_of_each_entry() -> None:
    fit, draws = several(np.random.default_rng(1))
    rows = UserFit(fit, "nuts").summary()
    assert list(rows)[:8] == [
        "mu",
        *(f"a[{i},{j}]" for i in (1, 2) for j in (1, 2, 3)),
        "log_lik[1]",
    ]
    assert len(rows) == 57
    for name, x in (
        ("mu", draws["mu"]),
        ("a[2,1]", draws["a"][..., 1, 0]),
        ("log_lik[50]", draws["log_lik"][..., 49]),
    ):
        low, middle, high = np.quantile(x, [0.05, 0.5, 0.95])
        assert rows[name] == pytest.approx(
            {
                "mean": x.mean(),
                "mcse": float(evidence.expectation(x).mcse),
                "sd": x.std(),
                "q5": low,
                "q50": middle,
                "q95": high,
                "r_hat": float(evidence.r_hat(x)),
            },
            rel=1e-12,
        )


@pytest.mark.parametrize("most", [0, 1, 5, 7, 30, 57, 100])
def test_the_first_rows_of_a_summary_are_those_of_the_whole(most: int) -> None:
    result = UserFit(several(np.random.default_rng(2))[0], "nuts")
    whole = list(result.summary().items())
    assert list(result.summary(most).items()) == whole[:most]


@pytest.mark.parametrize("fit", [tempered_fit(), pseudo_fit()], ids=["tempered", "pseudo-extended"])
def test_the_means_of_a_summary_are_those_of_the_weighted_draws(fit: Fit) -> None:
    rows = UserFit(fit, "tempered").summary(2)
    estimate = fit.expectation(lambda p: p["x"])
    assert list(rows) == ["x[1]", "x[2]"]
    for k, row in enumerate(rows.values()):
        assert row["mean"] == pytest.approx(estimate.value[k], rel=1e-12)
        assert row["mcse"] == pytest.approx(estimate.mcse[k], rel=1e-9)


def test_few_rows_are_printed_and_the_others_are_counted() -> None:
    text = UserFit(several(np.random.default_rng(3))[0], "nuts").as_text()
    assert "log_lik[33]" in text
    assert "log_lik[34]" not in text
    assert "and 17 more; see --json or the saved fit" in text
