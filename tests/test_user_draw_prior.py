"""Draws of a prior that has several modes itself, of which NUTS sees one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from harness.evidence import effective_draws
from harness.temper import tempered_model
from harness.user import draw_prior, sample
from harness.user.draw_prior import prior_draws

TWO = """data {
  int<lower=0> N;
  vector[N] y;
}
parameters {
  real x;
  real<lower=0> s;
}
model {
  target += log_mix(0.3, normal_lpdf(x | -10, 0.5), normal_lpdf(x | 10, 1));
  s ~ exponential(1);
  y ~ normal(x, s);
}
"""
DATA = {"N": 2, "y": [1.0, -3.0]}


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
    drawn = prior_draws(tempered_model(program, DATA), seed=1)
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
    drawn = prior_draws(tempered_model(program, DATA), seed=1)
    assert not drawn.reliable
    assert drawn.log_integral is None
    assert np.mean(drawn.points[:, :, 0] < 0) == pytest.approx(0.25)


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
