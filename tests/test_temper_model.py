"""Fits of tempered programs: exact evidence and moments, in the program's own names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from stan_density import stanli

from harness.engine.nuts import NutsSettings
from harness.engine.stanli_nuts import run_stanli_nuts
from harness.errors import DataError
from harness.fit import Fit
from harness.forms.common import Run
from harness.forms.continuous_tempering import (
    COLLAPSED_TEMPERING,
    JOINT_TEMPERING,
    CollapsedTempering,
)
from harness.forms.form import Form, sample
from harness.forms.from_pilot import FromPilot
from harness.forms.nuts import PLAIN_NUTS
from harness.forms.pseudo_extended import COLLAPSED_PSEUDO_EXTENDED, PSEUDO_EXTENDED, PseudoExtended
from harness.model import Model
from harness.path import gaussian_base
from harness.temper import tempered_model

assert stanli is not None

# A regression with known noise: mean delta and slopes beta are Gaussian given y.  Parameters and
# data have names that our programs use themselves.
PROGRAM = """
data { int N; matrix[N, 2] X; vector[N] log_g; }
parameters { real delta; vector[2] beta; }
model {
  delta ~ normal(1, 2);
  beta ~ normal(0, 1.5);
  log_g ~ normal(delta + X * beta, 0.5);
}
"""
RNG = np.random.default_rng(11)
X = RNG.normal(size=(12, 2))
Y = 0.4 + X @ [1.0, -0.5] + RNG.normal(0, 0.5, 12)
DESIGN = np.column_stack([np.ones(12), X])
PRIOR_MEAN, PRIOR_VARIANCE = np.array([1.0, 0, 0]), np.diag([4.0, 2.25, 2.25])
MARGINAL = DESIGN @ PRIOR_VARIANCE @ DESIGN.T + 0.25 * np.eye(12)
LOG_EVIDENCE = float(multivariate_normal(DESIGN @ PRIOR_MEAN, MARGINAL).logpdf(Y))
COVARIANCE = np.linalg.inv(np.linalg.inv(PRIOR_VARIANCE) + DESIGN.T @ DESIGN / 0.25)
MEAN = COVARIANCE @ (np.linalg.solve(PRIOR_VARIANCE, PRIOR_MEAN) + DESIGN.T @ Y / 0.25)

NUTS = NutsSettings(chains=2, warmup=500, draws=1500)
SAMPLERS: dict[str, Callable[..., Fit]] = {
    "pseudo_extended": PSEUDO_EXTENDED.sample,
    "collapsed_pseudo_extended": COLLAPSED_PSEUDO_EXTENDED.sample,
    "joint_tempering": JOINT_TEMPERING.sample,
    "collapsed_tempering": COLLAPSED_TEMPERING.sample,
}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    path = tmp_path_factory.mktemp("regression") / "regression.stan"
    path.write_text(PROGRAM)
    return tempered_model(path, {"N": 12, "X": X, "log_g": Y})


def check_posterior(fit: Fit) -> None:
    """Means within 4 standard errors at the least plausible effective sample size, 100."""
    found = fit.tree["posterior"]
    means = [found["delta"].mean(), *found["beta"].mean(("chain", "draw"))]
    bound = 4 * np.sqrt(np.diag(COVARIANCE) / 100)
    assert np.all(np.abs(np.array(means, dtype=float) - MEAN) < bound)
    assert found["beta"].shape == (2, 1500, 2)


def test_names(model: Model) -> None:
    assert model.parameters == ("delta", "beta")
    assert model.aliases["pseudo_extended"] == {"N": "N_2", "log_g": "log_g_2", "delta": "delta_2"}
    assert model.own_base == "prior"
    assert model.log_prior_integral == 0
    assert model.dimension == 3


@pytest.mark.parametrize(
    ("prior", "base", "integral"),
    [
        ("mu ~ normal(0, 1);", "prior", 1.0),
        ("mu ~ normal(0, 1); s ~ student_t(3, 0, tau[1]); tau ~ cauchy(0, 1);", "prior", 1 / 8),
        ("mu ~ normal(0, 1); target += log(2);", "prior", None),
        ("mu[1] ~ normal(0, 1);", "improper", None),
        ("target += -square(mu[2] - mu[1]);", "improper", None),
    ],
)
def test_what_is_said_of_the_prior(
    prior: str, base: str, integral: float | None, tmp_path: Path
) -> None:
    path = tmp_path / "program.stan"
    more = "real<lower=0> s; vector<lower=0>[2] tau;" if "tau" in prior else ""
    head = f"data {{ vector[3] y; }} parameters {{ vector[2] mu; {more} }}"
    path.write_text(f"{head} model {{ {prior} y ~ normal(sum(mu), 1); }}")
    found = tempered_model(path, {"y": [0.1, 0.2, 0.3]})
    known = found.log_prior_integral
    assert found.own_base == base
    assert known == (None if integral is None else pytest.approx(np.log(integral)))


def test_draws_of_the_prior_alone(model: Model) -> None:
    """By NUTS on the variant ``prior``: 4 standard errors at 100 effective draws, of 3,000."""
    run = run_stanli_nuts(model.program("prior"), model.data, NUTS, 6)
    draws = np.concatenate(
        [run.variables["delta"].reshape(-1, 1), run.variables["beta"].reshape(-1, 2)], axis=1
    )
    spread = np.sqrt(np.diag(PRIOR_VARIANCE))
    assert np.all(np.abs(draws.mean(0) - PRIOR_MEAN) < 4 * spread / 10)
    # The standard error of a standard deviation is about its value over sqrt(2 n).
    assert np.all(np.abs(draws.std(0) / spread - 1) < 4 / np.sqrt(200))
    assert set(run.variables) == {"delta", "beta"}


@pytest.mark.parametrize("name", SAMPLERS)
def test_evidence_and_posterior(name: str, model: Model) -> None:
    fit = SAMPLERS[name](model, log_zeta=LOG_EVIDENCE + 1, nuts=NUTS, seed=3, engine="stanli")
    found = fit.log_evidence
    assert found.mcse < 0.4
    assert abs(found.value - LOG_EVIDENCE) < 4 * found.mcse
    check_posterior(fit)
    extended = fit.tree["extended"]
    assert {"delta", "delta_parameter", "beta"} <= set(extended)
    own = extended["delta_parameter"].to_numpy()
    assert not np.allclose(own, extended["delta"].to_numpy())


def test_target(model: Model) -> None:
    check_posterior(PLAIN_NUTS.sample(model, nuts=NUTS, seed=4, engine="stanli"))


def test_from_a_pilot(model: Model) -> None:
    """The pilot's base, rungs and starting points, which go by the parameters' names."""
    path = FromPilot(gaussian_base(PRIOR_MEAN, PRIOR_VARIANCE))
    forms: tuple[Form, ...] = (CollapsedTempering(), PseudoExtended())
    for form in forms:
        fit = sample(model, form, path, Run(seed=5, nuts=NUTS, engine="stanli"))
        found = fit.log_evidence
        assert found.mcse < 0.5  # so that 2 nats would show
        assert abs(found.value - LOG_EVIDENCE) < 4 * found.mcse
        # The pilot's own, on the same density with the same constants.
        assert abs(fit.tree.attrs["pilot_log_evidence"] - LOG_EVIDENCE) < 0.5
        check_posterior(fit)


def test_a_base_that_a_flat_prior_leaves_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "flat.stan"
    path.write_text("data { real y; } parameters { real m; } model { y ~ normal(m, 1); }")
    flat = tempered_model(path, {"y": 0.3})
    assert flat.own_base == "improper"
    with pytest.raises(DataError, match="infinite mass"):
        COLLAPSED_TEMPERING.sample(flat, seed=1, engine="stanli")
