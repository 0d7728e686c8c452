"""Radon in six counties, as somebody would write the program, against quadrature."""

from __future__ import annotations

from functools import cache
from operator import itemgetter
from typing import Any

import numpy as np
import pytest
from conjugate import log_evidence
from corpus_data import corpus_data
from corpus_oracle import CORPUS
from scipy.stats import chi2

from harness.diagnosis import Severity, diagnose
from harness.evidence import z_scores
from harness.forms.continuous_tempering import COLLAPSED_TEMPERING
from harness.models.radon import RadonData, load_radon
from harness.models.radon_exact import exact_log_evidence, exact_posterior
from harness.temper import tempered_model
from harness.user import Method, UserFit, sample

PROGRAM = CORPUS / "radon_homes.stan"
RUNS = 20
# Of RUNS squares of standard normals, the sum lies outside with probability 1e-4.
BOUNDS = np.asarray(chi2.ppf([5e-5, 1 - 5e-5], RUNS))


@cache
def six_counties() -> RadonData:
    """73 homes: the first six counties of the data."""
    data = load_radon()
    return data.subset(data.county_names[:6])


@cache
def exact() -> float:
    """Log evidence, whose prior and likelihood are those of the user's program."""
    found = exact_log_evidence(six_counties())
    assert found.error < 1e-8
    return found.value


def run(method: Method, seed: int) -> UserFit:
    data = dict(six_counties().model("radon").data)
    return sample(PROGRAM, data, method=method, seed=seed, engine="stanli", progress=False)


def score(result: UserFit, truth: float) -> float:
    found = result.log_evidence
    assert found is not None
    return (found.value - truth) / found.mcse


@pytest.mark.parametrize(
    "method",
    ["auto", "collapsed_tempering", pytest.param("pseudo_extended", marks=pytest.mark.slow)],
)
def test_evidence_and_means(method: Method) -> None:
    result = run(method, seed=1)
    assert result.log_evidence is not None
    assert result.log_evidence.mcse < 0.5
    assert abs(score(result, exact())) < 4
    truth = exact_posterior(six_counties())
    for name in ("mu_a", "eps", "alpha", "beta"):
        found = result.fit.expectation(itemgetter(name))
        # 10 means in all, of which one beyond 4 errors has a probability of 6e-4.
        assert np.max(np.abs(z_scores(found, truth.mean[name]))) < 4, name


@pytest.mark.slow
@pytest.mark.parametrize("method", ["collapsed_tempering", "pseudo_extended"])
def test_errors_are_honest(method: Method) -> None:
    scores = [score(run(method, seed), exact()) for seed in range(RUNS)]
    assert np.max(np.abs(scores)) < 4
    assert BOUNDS[0] < np.sum(np.square(scores)) < BOUNDS[1]


@pytest.mark.slow
@pytest.mark.parametrize("method", ["collapsed_tempering", "pseudo_extended"])
def test_errors_of_a_conjugate_regression_are_honest(method: Method) -> None:
    name = "conjugate_regression"
    scores = [
        score(
            sample(
                CORPUS / f"{name}.stan",
                corpus_data(name),
                method=method,
                seed=seed,
                engine="stanli",
                progress=False,
            ),
            log_evidence(name),
        )
        for seed in range(RUNS)
    ]
    assert np.max(np.abs(scores)) < 4
    assert BOUNDS[0] < np.sum(np.square(scores)) < BOUNDS[1]


@pytest.mark.parametrize("log_zeta", [0.0, -87.0])
def test_a_run_without_a_pilot_is_called_off(log_zeta: float) -> None:
    """With g = 1 draws gather at one end of the path: estimates are off, and are said to be."""
    data: dict[str, Any] = dict(six_counties().model("radon").data)
    model = tempered_model(PROGRAM, data)
    for seed in range(1, 4):
        fit = COLLAPSED_TEMPERING.sample(model, log_zeta=log_zeta, seed=seed, engine="stanli")
        worst = diagnose(fit)[0]
        assert worst.severity == Severity.PROBLEM, (seed, worst)
        if log_zeta == 0:
            assert abs(fit.log_evidence.value - exact()) > 1
