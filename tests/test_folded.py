"""The folded target: its Stan program by NumPy, and runs of both methods against closed form."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import norm
from stan_density import StanDensity

from harness.arrays import FloatArray
from harness.diagnosis import diagnose
from harness.engine.nuts import NutsSettings
from harness.errors import DataError
from harness.fit import Fit
from harness.forms.folded import FOLD_IMPORTANCE, FOLDED, FOLDED_FROM_PILOT
from harness.models.gaussian_mixture import GaussianMixture, kou_mixture
from harness.path import PilotSettings, gaussian_base
from harness.path.fold import Fold

BASE = gaussian_base([5.0, 5.0], 9 * np.eye(2))
PILOT = PilotSettings(particles=1024, moves=2, leapfrog_steps=4)
NUTS = NutsSettings(chains=4, warmup=150, draws=400, max_treedepth=4)
MIXTURE = kou_mixture("b")
MODEL = MIXTURE.model("mixture-b", lower=-5.5, upper=15.5)


def fold_in(dimension: int, shared: bool) -> Fold:
    rng = np.random.default_rng(dimension)
    return Fold(
        np.array([0.25, 0.35, 0.4]),
        rng.normal(size=(3, dimension)),
        rng.normal(size=(1 if shared else 3, dimension, dimension)) + 2 * np.eye(dimension),
        np.array([1.0, -1.0, -1.0]),
    )


@pytest.mark.parametrize("dimension", [1, 2, 3])
@pytest.mark.parametrize("shared", [False, True])
def test_stan_density_and_weights_match_numpy(dimension: int, shared: bool) -> None:
    rng = np.random.default_rng(10 + dimension)
    mixture = GaussianMixture(
        np.array([0.6, 0.4]), rng.normal(size=(2, dimension)), np.array([0.7, 1.1])
    )
    model, fold = mixture.model("m", lower=-30, upper=30), fold_in(dimension, shared)
    density = StanDensity(model.program("folded"), {**model.data, **fold.data()})
    for y in rng.normal(size=(5, dimension)):
        log_weight = fold.log_weight(y[None], mixture.log_density_and_gradient)[0]
        expected = norm.logpdf(y).sum() + logsumexp(log_weight)
        assert density.value(y) == pytest.approx(expected, rel=1e-11, abs=1e-11)


def errors(fit: Fit) -> FloatArray:
    """Errors of the four moments and log Z, in their own standard errors."""
    first = fit.expectation(lambda draws: draws["x"])
    second = fit.expectation(lambda draws: draws["x"] ** 2)
    return np.concatenate(
        [
            (first.value - MIXTURE.truth.expected("x")) / first.mcse,
            (second.value - MIXTURE.truth.expected("x_squared")) / second.mcse,
            np.array([fit.log_evidence.value / fit.log_evidence.mcse]),
        ]
    )


def test_nuts_on_the_folded_mixture() -> None:
    fit = FOLDED_FROM_PILOT.sample(
        MODEL, base=BASE, settings=PILOT, nuts=NUTS, seed=3, engine="stanli"
    )
    assert np.all(np.abs(errors(fit)) < 4.5)
    number = len(fit.settings["fold"]["weight"])
    assert fit.tree["extended"]["x"].shape == (4, 400, 2, number)
    assert 0 < fit.log_evidence.mcse < 0.05
    mean = fit.expectation(lambda draws: draws["x"])
    # Averaged over places it is worth more than as many independent draws.
    spread = np.sqrt(MIXTURE.truth.expected("x_squared") - MIXTURE.truth.expected("x") ** 2)
    assert np.all(mean.mcse < spread / np.sqrt(1600))
    # One place a draw is a draw of the target.
    plain = fit.posterior["x"].to_numpy().reshape(-1, 2)
    assert np.all(
        np.abs(plain.mean(axis=0) - MIXTURE.truth.expected("x")) < 5 * spread / np.sqrt(1600)
    )
    attrs = fit.tree.attrs
    assert fit.gradients == attrs["gradients_pilot"] + np.sum(
        attrs["gradients_warmup"] + attrs["gradients_sampling"]
    )
    assert isinstance(diagnose(fit), list)
    assert np.all(attrs["gradients_sampling"] > 250)  # the bridge's share of 1000 draws


def test_importance_sampling_from_the_same_mixture() -> None:
    fit = FOLD_IMPORTANCE.sample(
        MODEL, base=BASE, settings=PILOT, draws=100, nuts=None, compiled=None, seed=3
    )
    assert np.all(np.abs(errors(fit)) < 4.5)
    assert fit.posterior["x"].shape == (16, 100, 2)
    plain = fit.posterior["x"].to_numpy().reshape(-1, 2)
    spread = np.sqrt(MIXTURE.truth.expected("x_squared") - MIXTURE.truth.expected("x") ** 2)
    assert np.all(
        np.abs(plain.mean(axis=0) - MIXTURE.truth.expected("x")) < 5 * spread / np.sqrt(1600)
    )
    assert fit.gradients == fit.tree.attrs["gradients_pilot"] + 1600


def test_same_seed_same_fit() -> None:
    first, again, other = (
        FOLD_IMPORTANCE.sample(MODEL, base=BASE, settings=PILOT, draws=20, seed=seed)
        for seed in (1, 1, 2)
    )
    assert first.tree["extended"].to_dataset().equals(again.tree["extended"].to_dataset())
    assert first.log_evidence == again.log_evidence != other.log_evidence


def test_bad_input_is_refused_before_any_work() -> None:
    with pytest.raises(DataError, match="dimension"):
        FOLDED.sample(MODEL, fold=fold_in(3, shared=True), seed=1)
    with pytest.raises(DataError, match="4 draws"):
        FOLDED.sample(MODEL, fold=fold_in(2, shared=True), bridge_draws=3, seed=1)
    with pytest.raises(DataError, match="1 group"):
        FOLD_IMPORTANCE.sample(MODEL, base=BASE, groups=0, seed=1)
