"""Evidence by tempered programs against exact answers, with honest errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from calibration import few_and_many, mean_square_bounds
from conjugate import CONJUGATE, log_evidence
from corpus_data import corpus_data
from corpus_oracle import CORPUS

from harness.engine.nuts import NutsSettings
from harness.fit import Fit
from harness.forms.continuous_tempering import COLLAPSED_TEMPERING, JOINT_TEMPERING
from harness.forms.pseudo_extended import PSEUDO_EXTENDED
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
    sample, settings = METHODS[method]
    errors = []
    for seed in range(runs):
        fit = sample(
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
