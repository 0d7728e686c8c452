"""Evidence by tempered programs against exact answers, with honest errors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from calibration import few_and_many, mean_square_bounds
from conjugate import CONJUGATE, log_evidence
from corpus_data import corpus_data
from corpus_oracle import CORPUS
from scipy.integrate import quad
from scipy.stats import cauchy, norm

from harness.engine.nuts import NutsSettings
from harness.errors import DataError
from harness.evidence import LogEvidence
from harness.fit import Fit
from harness.forms import CollapsedTempering, Run, sample
from harness.forms.continuous_tempering import COLLAPSED_TEMPERING, JOINT_TEMPERING
from harness.forms.pseudo_extended import PSEUDO_EXTENDED
from harness.path import gaussian_base
from harness.path.data import TemperedPath
from harness.temper import tempered_model

METHODS: dict[str, tuple[Callable[..., Fit], dict[str, Any]]] = {
    "pseudo_extended": (PSEUDO_EXTENDED.sample, {"num_pseudo_samples": 3}),
    "joint_tempering": (JOINT_TEMPERING.sample, {}),
    "collapsed_tempering": (COLLAPSED_TEMPERING.sample, {}),
}


@few_and_many(4, 20)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", CONJUGATE)
def test_evidence_of_conjugate_models(name: str, method: str, runs: int) -> None:
    model = tempered_model(CORPUS / f"{name}.stan", corpus_data(name))
    exact = log_evidence(name)
    method_sample, settings = METHODS[method]
    errors = []
    for seed in range(runs):
        fit = method_sample(
            model,
            log_zeta=float(round(exact)),
            seed=seed,
            engine="stanli",
            nuts=NutsSettings(chains=2, warmup=500, draws=1000),
            **settings,
        )
        found = fit.log_evidence
        errors.append((found.value - exact) / found.mcse)
    assert np.max(np.abs(errors)) < 4
    low, high = mean_square_bounds(runs)
    assert low < np.mean(np.square(errors)) < high


HALF = """
data { int N; vector[N] x; }
parameters { real<lower=0> s; }
model { s ~ cauchy(0, 5); x ~ normal(0, s); }
"""
BETWEEN = """
parameters { real<lower=0, upper=4> u; }
model { target += -square(u - 1); }
"""


def test_evidence_of_half_a_prior_from_both_bases(tmp_path: Path) -> None:
    """Log Z is for the prior divided by its integral, a half, wherever the path starts."""
    x = np.array([2.0, -3.0, 1.0, 0.5, 4.0, -1.0])
    path = tmp_path / "half.stan"
    path.write_text(HALF)
    model = tempered_model(path, {"N": len(x), "x": x})
    exact = np.log(quad(lambda s: 2 * cauchy.pdf(s, 0, 5) * norm.pdf(x, 0, s).prod(), 0, np.inf)[0])
    for base in (None, gaussian_base([1.0], [[1.0]])):  # of log s
        fit = COLLAPSED_TEMPERING.sample(
            model,
            base=base,
            log_zeta=float(round(exact)),
            seed=1,
            engine="stanli",
            nuts=NutsSettings(chains=4, warmup=500, draws=1000),
        )
        found = fit.log_evidence
        assert 0 < 4 * found.mcse < np.log(2)  # so that the half would be noticed
        assert abs(found.value - exact) < 4 * found.mcse


def test_evidence_from_a_flat_base_needs_its_integral(tmp_path: Path) -> None:
    path = tmp_path / "between.stan"
    path.write_text(BETWEEN)
    model = tempered_model(path, {}, what="all")
    exact = np.log(quad(lambda u: np.exp(-((u - 1) ** 2)), 0, 4)[0])
    run = Run(seed=1, nuts=NutsSettings(chains=4, warmup=500, draws=1000), engine="stanli")
    with pytest.raises(DataError, match="give the path its logarithm"):
        _ = sample(model, CollapsedTempering(), TemperedPath(), run).log_evidence
    known = TemperedPath(log_factor=LogEvidence(np.log(4), 0.0))
    found = sample(model, CollapsedTempering(), known, run).log_evidence
    assert 0 < found.mcse < 0.1
    assert abs(found.value - exact) < 4 * found.mcse
