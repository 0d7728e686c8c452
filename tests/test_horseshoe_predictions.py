"""Condensed horseshoe fits: predictors, coefficients and predictive density, computed directly."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import log_softmax, softmax
from scipy.stats import bernoulli

from experiments.horseshoe import predictions
from experiments.horseshoe.predictions import condensed, held_out_density, within_budget
from harness.arrays import FloatArray
from harness.errors import DataError
from harness.fit import Fit, build_fit
from harness.models.horseshoe import Classification, coefficients, log_predictive_density

CHAINS, DRAWS, N, D, M = 2, 30, 3, 5, 4
RNG = np.random.default_rng(8)
HELD_OUT = Classification(RNG.normal(size=(M, D)), np.array([1, 0, 0, 1]))
SHOWN = (4, 0)


def drawn(*last: int) -> dict[str, FloatArray]:
    """Draws of every parameter, axes (chain, draw, parameter's own, pseudo-sample)."""
    shape = (CHAINS, DRAWS)
    return {
        "beta0": RNG.normal(size=(*shape, *last)),
        "z": RNG.normal(size=(*shape, D, *last)),
        "lambda": np.exp(RNG.normal(size=(*shape, D, *last))),
        "tau": np.exp(RNG.normal(size=(*shape, *last))),
        "c2": np.exp(RNG.normal(size=(*shape, *last))),
    }


def made(*, pseudo: bool) -> Fit:
    extended = drawn(N) if pseudo else None
    posterior = drawn() if extended is None else {k: v[..., 1] for k, v in extended.items()}
    if extended is not None:
        extended["log_weight"] = 200 + 3 * RNG.normal(size=(CHAINS, DRAWS, N))
        extended["inv_temp"] = RNG.uniform(size=(CHAINS, DRAWS, N))
    stats = {"n_steps": RNG.integers(1, 9, (CHAINS, DRAWS))}
    return build_fit(
        posterior=posterior,
        extended=extended,
        sample_stats=stats,
        constant_data={"X": HELD_OUT.x},
        attrs={"method": "pseudo_extended", "model": "m", "settings": {}},
    )


def slope(draws: Any, chain: int, t: int, *i: int) -> FloatArray:
    """Coefficients of one draw by the definition."""

    def one(name: str) -> FloatArray:
        value: FloatArray = draws[name].to_numpy()[chain, t][(..., *i)]
        return value

    local, tau, c2 = one("lambda"), one("tau"), one("c2")
    regularised = np.sqrt(c2 * local**2 / (c2 + tau**2 * local**2))
    value: FloatArray = one("z") * regularised * tau
    return value


def linear(draws: Any, chain: int, t: int, *i: int) -> FloatArray:
    """Linear predictors of one draw."""
    intercept = float(draws["beta0"].to_numpy()[chain, t][(..., *i)])
    value: FloatArray = intercept + HELD_OUT.x @ slope(draws, chain, t, *i)
    return value


@pytest.mark.parametrize("pseudo", [False, True])
@pytest.mark.parametrize("at_once", [1, 40, 10**6])
def test_condensed_fit_draw_by_draw(
    pseudo: bool, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(predictions, "_NUMBERS_AT_ONCE", at_once)
    fit = made(pseudo=pseudo)
    small = condensed(fit, HELD_OUT.x, SHOWN)
    assert set(small.posterior) == {"beta0", "tau", "c2", "eta", "beta"}
    assert "constant_data" not in small.tree
    groups: list[tuple[Any, Any, tuple[int, ...]]] = [(fit.posterior, small.posterior, ())]
    if pseudo:
        assert fit.extended is not None
        assert small.extended is not None
        assert small.extended["log_weight"].equals(fit.extended["log_weight"])
        groups += [(fit.extended, small.extended, (i,)) for i in range(N)]
    for whole, part, i in groups:
        for chain, t in ((0, 0), (0, 17), (1, DRAWS - 1)):
            beta = slope(whole, chain, t, *i)
            place = {"chain": chain, "draw": t} | ({"pseudo_sample": i[0]} if i else {})
            eta = float(whole["beta0"].isel(place)) + HELD_OUT.x @ beta
            np.testing.assert_allclose(part["eta"].isel(place), eta, rtol=1e-12)
            np.testing.assert_allclose(part["beta"].isel(place), beta[list(SHOWN)], rtol=1e-12)


@pytest.mark.parametrize("pseudo", [False, True])
def test_held_out_density_by_brute_force(pseudo: bool) -> None:
    fit = made(pseudo=pseudo)
    small = condensed(fit, HELD_OUT.x, SHOWN)
    h = np.empty((CHAINS, DRAWS, M))
    joint = np.empty((CHAINS, DRAWS))
    for chain, t in np.ndindex(CHAINS, DRAWS):
        share = np.ones(1)
        rows: list[tuple[int, ...]] = [()]
        whole = fit.posterior
        if pseudo:
            assert fit.extended is not None
            whole = fit.extended
            share = softmax(whole["log_weight"].to_numpy()[chain, t])
            rows = [(i,) for i in range(N)]
        p = np.array(
            [
                bernoulli.pmf(
                    HELD_OUT.y,
                    1 / (1 + np.exp(-linear(whole, chain, t, *i))),
                )
                for i in rows
            ]
        )
        h[chain, t], joint[chain, t] = share @ p, share @ p.prod(axis=1)
    pointwise, together = held_out_density(small, HELD_OUT)
    assert float(pointwise.value) == pytest.approx(np.log(h.mean(axis=(0, 1))).mean(), rel=1e-12)
    assert float(together.value) == pytest.approx(np.log(joint.mean()), rel=1e-12)
    # Independent draws: the bootstrap's spread, known from 2,000 samples to 1.6 %; the MCSE of
    # 60 draws itself to some 20 %.
    rng = np.random.default_rng(3)
    flat = h.reshape(-1, M)
    again = flat[rng.integers(len(flat), size=(2000, len(flat)))].mean(axis=1)
    assert float(pointwise.mcse) == pytest.approx(np.log(again).mean(axis=1).std(), rel=0.6)


def test_tiny_probabilities_do_not_underflow() -> None:
    """Predictions wrong by some 5,000 logits, against the function for coefficients at hand."""
    fit = made(pseudo=True)
    assert fit.extended is not None
    fit.tree["extended"]["beta0"] = fit.extended["beta0"] + 5000
    whole = fit.tree["extended"].to_dataset().transpose("chain", "draw", "pseudo_sample", ...)
    beta = coefficients(*(whole[name].to_numpy() for name in ("z", "lambda", "tau", "c2")))
    log_weight = whole["log_weight"].to_numpy()
    direct = log_predictive_density(
        whole["beta0"].to_numpy(),
        beta,
        HELD_OUT,
        log_weight=log_softmax(log_weight, axis=-1),
    )
    assert direct.joint < -9000
    pointwise, together = held_out_density(condensed(fit, HELD_OUT.x, SHOWN), HELD_OUT)
    assert float(together.value) == pytest.approx(direct.joint, rel=1e-12)
    assert float(pointwise.value) == pytest.approx(direct.pointwise.mean(), rel=1e-12)


def test_a_budget_pays_for_the_first_draws() -> None:
    fit = condensed(made(pseudo=True), HELD_OUT.x, SHOWN)
    steps = fit.sample_stats["n_steps"].to_numpy()
    budget = 3 * int(steps[:, :12].sum(axis=1).max())
    part = within_budget(fit, budget, 3)
    count = part.posterior.sizes["draw"]
    assert count >= 12 or count == min(
        np.searchsorted(3 * row.cumsum(), budget, side="right") for row in steps
    )
    spent = 3 * steps.cumsum(axis=1)
    assert spent[:, count - 1].max() <= budget < spent[:, count].max()
    assert part.posterior["eta"].equals(fit.posterior["eta"].isel(draw=slice(0, count)))
    assert within_budget(fit, 10**9).posterior.sizes["draw"] == DRAWS
    with pytest.raises(DataError, match="pays for 0 draws"):
        within_budget(fit, 0)


def test_bad_requests_are_refused() -> None:
    fit = made(pseudo=False)
    with pytest.raises(DataError, match="has 5 coefficients"):
        condensed(fit, HELD_OUT.x[:, 1:], SHOWN)
    with pytest.raises(DataError, match=r"lie in 0\.\.4; got"):
        condensed(fit, HELD_OUT.x, (5,))


def test_what_a_condensed_fit_holds_does_not_grow_with_d(tmp_path: Path) -> None:
    small = condensed(made(pseudo=True), HELD_OUT.x, SHOWN)
    small.save(tmp_path / "fit.nc")
    again = Fit.load(tmp_path / "fit.nc")
    assert again.extended is not None
    assert json.loads(again.tree.attrs["settings"]) == {}
    numbers = sum(v.size for v in again.extended.data_vars.values())
    # beta0, tau, c2, log_weight, inv_temp, m predictors and the coefficients shown.
    assert numbers == CHAINS * DRAWS * N * (5 + M + len(SHOWN))
