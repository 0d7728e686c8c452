"""Draws of priors that NUTS does not draw well: with several modes, a spike, or no end."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from harness.diagnosis import Severity
from harness.engine.batched import BatchedDensity
from harness.evidence import LogEvidence, effective_draws, expectation
from harness.temper import tempered_model
from harness.user import draw_prior, sample
from harness.user.draw_prior import DriftingPriorError, prior_draws
from harness.user.evidence import rough_integral
from harness.user.prior import PriorDraws

TWO = """data {
  int<lower=0> N;
  vector[N] y;
}
parameters {
  real x;
  real<lower=0> s;
}
model {
  real left = log(0.3) + normal_lpdf(x | -10, 0.5);
  real right = log(0.7) + normal_lpdf(x | 10, 1);
  target += log_sum_exp(left, right);
  s ~ exponential(1);
  y ~ normal(x, s);
}
"""
DATA = {"N": 2, "y": [1.0, -3.0]}
SPIKE = """data {
  real y;
}
parameters {
  real b;
}
model {
  real spike = log(0.5) + normal_lpdf(b | 0, 0.01);
  real slab = log(0.5) + normal_lpdf(b | 0, 3);
  target += log_sum_exp(spike, slab);
  y ~ normal(b, 1);
}
"""
"""Stated so that the text does not show that it is a mixture, which could be simulated."""
ENDLESS = """data {
  vector[3] y;
}
parameters {
  real m;
  real<lower=0> s;
}
model {
  m ~ normal(0, 3);
  s ~ exponential(1);
  target += -3 * log(s);
  target += normal_lpdf((y - m) / s | 0, 1);
}
"""
"""With a likelihood that is standardised by hand, so that a part of it looks like the prior's."""
CENSORED = """data {
  int N;
  int M;
  vector[N] y;
  real most;
}
parameters {
  real mu;
  real<lower=0> sigma;
  vector<lower=most>[M] censored;
}
model {
  mu ~ normal(0, 10);
  sigma ~ normal(0, 5);
  y ~ normal(mu, sigma);
  censored ~ normal(mu, sigma);
}
"""
"""A funnel: NUTS and pilots do not get to small values of ``sigma`` in its prior."""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "two.stan"
    path.write_text(TWO, encoding="utf-8")
    return path


def exact() -> tuple[float, float]:
    """Log Z, and the probability of x < 0, on a grid of x and log s."""
    x, log_s = np.linspace(-16, 16, 3201), np.linspace(-4, 4, 801)
    prior = 0.3 * stats.norm(-10, 0.5).pdf(x) + 0.7 * stats.norm(10, 1).pdf(x)
    s = np.exp(log_s)
    seen = np.prod([stats.norm.pdf(y, x[:, None], s) for y in (1.0, -3.0)], axis=0)
    height = prior[:, None] * np.exp(-s) * s * seen
    total = height.sum()
    area = (x[1] - x[0]) * (log_s[1] - log_s[0])
    return float(np.log(total * area)), float(height[x < 0].sum() / total)


def test_a_mode_of_the_prior_that_nuts_lacks_is_drawn(program: Path) -> None:
    drawn = prior_draws(tempered_model(program, DATA), seed=1, most_seconds=120)
    below = (drawn.points[:, :, :1] < 0).astype(np.float64)
    effective = float(effective_draws(below, np.zeros(below.shape[:2]))[0])
    assert abs(below.mean() - 0.3) < 4 * np.sqrt(0.21 / effective)
    assert drawn.reliable
    assert drawn.log_integral is not None  # of a prior that is normalised
    assert abs(drawn.log_integral.value) < 4 * drawn.log_integral.mcse < 0.1


def test_draws_disagree_where_replicas_do_not_reach_all_modes(
    program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ValueError

    monkeypatch.setattr(draw_prior, "_replicas", fail)
    drawn = prior_draws(tempered_model(program, DATA), seed=1, most_seconds=120)
    assert not drawn.reliable
    assert drawn.log_integral is None
    assert np.mean(drawn.points[:, :, 0] < 0) == pytest.approx(0.25)


@pytest.mark.parametrize("seed", [1, 2])
def test_a_spike_that_nuts_walks_past_is_drawn(tmp_path: Path, seed: int) -> None:
    path = tmp_path / "spike.stan"
    path.write_text(SPIKE, encoding="utf-8")
    drawn = prior_draws(tempered_model(path, {"y": 0.5}), seed=seed, most_seconds=120)
    inside = (np.abs(drawn.points) < 0.03).astype(np.float64)
    exact = 0.5 * (1 - 2 * stats.norm.sf(3)) + 0.5 * (1 - 2 * stats.norm.sf(0.01))
    found = expectation(inside[..., 0])
    assert abs(found.value - exact) < 4 * found.mcse < 0.2
    assert drawn.reliable
    assert drawn.log_integral is not None
    assert abs(drawn.log_integral.value) < 4 * drawn.log_integral.mcse < 0.2


def test_draws_of_a_density_without_end_are_not_taken_for_a_prior(tmp_path: Path) -> None:
    """They agree with each other at the smallest numbers that there are, 1e-308."""
    path = tmp_path / "endless.stan"
    path.write_text(ENDLESS, encoding="utf-8")
    data = {"y": [0.5, 1.2, -0.1]}
    with pytest.raises(DriftingPriorError, match="improper"):
        prior_draws(tempered_model(path, data), seed=1)
    result = sample(
        path,
        data,
        seed=1,
        engine="stanli",
        method="parallel_tempering",
        progress=False,
    )
    m, log_s = np.linspace(-15, 15, 1501), np.linspace(-7, 5, 1201)
    s = np.exp(log_s)
    height = stats.norm(0, 3).pdf(m)[:, None] * np.exp(-s) * s
    height = height * np.prod([stats.norm.pdf(y, m[:, None], s) for y in data["y"]], axis=0)
    truth = np.log(height.sum() * (m[1] - m[0]) * (log_s[1] - log_s[0]))
    assert result.log_evidence is not None
    assert abs(result.log_evidence.value - truth) < 4 * result.log_evidence.mcse < 0.2
    told = [each.sentence for each in result.diagnosis if each.severity == Severity.WARNING]
    assert any("Draws of the prior drift to infinity" in each for each in told)
    assert any("`target += - 3 * log(s);`" in each and "temper: yes" in each for each in told)


def test_a_prior_whose_mass_is_cut_by_parameters_is_divided_by_it(tmp_path: Path) -> None:
    path = tmp_path / "censored.stan"
    path.write_text(CENSORED, encoding="utf-8")
    y, most, missing = np.array([1.1, 3.4, 2.2, -0.3, 3.9, 0.8]), 4.0, 6
    data = {"N": len(y), "M": missing, "y": y, "most": most}
    mu, log_sigma = np.linspace(-60, 60, 6001)[:, None], np.linspace(-9, 4, 1301)
    sigma = np.exp(log_sigma)
    prior = stats.norm.logpdf(mu, 0, 10) + stats.norm.logpdf(sigma, 0, 5) + log_sigma
    prior = prior + missing * stats.norm.logsf(most, mu, sigma)
    both = prior + sum(stats.norm.logpdf(each, mu, sigma) for each in y)
    cell = np.log((mu[1, 0] - mu[0, 0]) * (log_sigma[1] - log_sigma[0]))
    integral, divisor = (float(logsumexp(each) + cell) for each in (both, prior))
    result = sample(path, data, seed=1, engine="stanli", progress=False)
    assert result.log_evidence is not None
    assert result.log_integral is not None
    for found, exact in (
        (result.log_evidence, integral - divisor),
        (result.log_integral, integral),
    ):
        assert abs(found.value - exact) < 4 * found.mcse < 0.2
    assert not result.troubles()


@pytest.mark.parametrize(
    ("independent", "r_hat", "error", "rough"),
    [(False, 1.08, 0.1, True), (False, 1.02, 0.1, False), (True, 1.08, 0.1, False),
     (False, 1.08, 0.0, False)],
)  # fmt: skip
def test_an_integral_from_chains_that_hardly_mix_is_rough(
    independent: bool, r_hat: float, error: float, rough: bool
) -> None:
    density = cast(BatchedDensity, None)
    drawn = PriorDraws(np.zeros((2, 2, 1)), density, r_hat, 0, independent)
    told = rough_integral(drawn, LogEvidence(-2.0, error))
    assert [each.severity for each in told] == [Severity.WARNING] * rough


@pytest.mark.slow
def test_what_starts_from_such_a_prior_is_right(program: Path) -> None:
    fit = sample(
        program, DATA, seed=1, engine="stanli", method="parallel_tempering", progress=False
    )
    log_z, below = exact()
    assert fit.log_evidence is not None
    assert abs(fit.log_evidence.value - log_z) < 4 * fit.log_evidence.mcse < 0.2
    found = fit.fit.expectation(lambda draws: draws["x"] < 0)
    assert abs(float(found.value) - below) < 4 * float(found.mcse) < 0.2


def test_without_data_log_z_is_that_of_the_constant(program: Path) -> None:
    """A program that is run for its prior, as users of brms do with ``sample_prior = "only"``."""
    program.write_text(
        "data { int<lower=0> N; vector[N] y; }\n"
        "parameters { real mu; real<lower=0> s; }\n"
        "model { mu ~ normal(0, 3); s ~ exponential(1); y ~ normal(mu, s); }\n",
        encoding="utf-8",
    )
    fit = sample(program, {"N": 0, "y": []}, seed=1, engine="stanli", progress=False)
    assert fit.log_evidence is not None
    assert fit.log_evidence.text == "0.000 ± 0.000"
    assert not fit.troubles()
