"""Parts of priors that are Gaussian given the rest: their draws, and the prior's integral."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from stan_density import stanli

from harness.arrays import FloatArray
from harness.engine.batched import BatchedDensity
from harness.errors import DataError
from harness.model import Model
from harness.temper.model import tempered_model
from harness.user import gaussian_part
from harness.user.draw_prior import prior_draws
from harness.user.gaussian_part import GaussianPart
from harness.user.prior import PRIOR, PriorDraws
from harness.user.simulated import simulated_prior

assert stanli is not None

FAR = 1.95
"""Distance of Kolmogorov and Smirnov, times the root of the number of draws: exceeded with
probability .001."""
# A ring of four regions: eigenvalues of its adjacency are 2, 0, 0, -2, and each has two neighbours.
RING = np.array([[0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]], dtype=np.float64)
FUNCTIONS = """
functions {
  real car_lpdf(vector phi, real tau, real alpha, matrix W) {
    int N = rows(phi);
    matrix[N, N] precision = tau * (add_diag(-alpha * W, 2));
    return 0.5 * (log_determinant(precision) - quad_form(precision, phi));
  }
}
"""
LOG_TWO_PI = np.log(2 * np.pi)


def model_of(
    folder: Path, parameters: str, prior: str, *, functions: str = FUNCTIONS, y: str = "0"
) -> Model:
    """Return the model of a program with a prior, and a number that has a mean y."""
    path = folder / "program.stan"
    path.write_text(
        f"{functions} data {{ matrix[4, 4] W; real z; }} parameters {{ {parameters} }} "
        f"model {{ {prior} z ~ normal({y}, 1); }}",
        encoding="utf-8",
    )
    return tempered_model(path, {"W": RING, "z": 0.3})


def drawn(model: Model, seed: int = 3) -> tuple[PriorDraws, dict[str, FloatArray]]:
    found = prior_draws(model, seed)
    flat = found.points.reshape(-1, found.points.shape[2])
    return found, found.density.constrain(flat)


def check(values: FloatArray, law: Any) -> None:
    """Whether independent draws have a law."""
    ordered = np.sort(values.ravel())
    n = len(ordered)
    share = law.cdf(ordered)
    distance = max(np.max(np.arange(1, n + 1) / n - share), np.max(share - np.arange(n) / n))
    assert np.sqrt(n) * distance < FAR


CAR = (
    "real<lower=0, upper=1> alpha; real<lower=0> tau; vector[4] phi; real b;",
    "tau ~ gamma(2, 2); b ~ normal(0, 3); phi ~ car(tau, alpha, W);",
)


def test_a_conditional_autoregression(tmp_path: Path) -> None:
    """The integral is known, exactly, and so are the laws of what is drawn, given the rest."""
    model = model_of(tmp_path, *CAR, y="b + sum(phi)")
    assert model.not_simulated == ("phi",)
    assert model.log_prior_integral is None
    found, values = drawn(model)
    assert found.independent
    assert found.log_integral is not None
    # The function leaves out (2 pi)^(-4/2).
    assert found.log_integral.value == pytest.approx(2 * LOG_TWO_PI, abs=1e-9)
    assert found.log_integral.mcse == 0.0
    check(values["tau"], stats.gamma(2, scale=0.5))
    check(values["alpha"], stats.uniform(0, 1))
    check(values["b"], stats.norm(0, 3))
    # Along an eigenvector with eigenvalue l, phi has the precision tau (2 - alpha l).
    _, vectors = np.linalg.eigh(RING)
    for size, vector in zip(np.linalg.eigvalsh(RING), vectors.T, strict=True):
        along = values["phi"] @ vector
        check(along * np.sqrt(values["tau"] * (2 - values["alpha"] * size)), stats.norm())
    again, _ = drawn(model)
    assert np.array_equal(found.points, again.points)
    assert not np.array_equal(found.points, drawn(model, seed=4)[0].points)


INTEGRALS: dict[str, tuple[str, str, float]] = {
    "a sum that is nearly zero": (
        "vector[3] phi;",
        "target += -0.5 * dot_self(phi[1 : 2] - phi[2 : 3]); sum(phi) ~ normal(0, 0.01);",
        # Orthogonal to 1 the precision has the eigenvalues 1 and 3, and the mean times sqrt(3) a
        # normal density of its own, of which sqrt(3) is the scale.
        LOG_TWO_PI - 0.5 * np.log(3) - 0.5 * np.log(3),
    ),
    "another multiple of a density": (
        "real a;",
        "target += 2 * normal_lpdf(a | 1, 3);",
        -LOG_TWO_PI - 2 * np.log(3) + 0.5 * (LOG_TWO_PI + np.log(9 / 2)),
    ),
    "one depends on another": (
        "vector[2] u; real b; real<lower=0> s;",
        "s ~ exponential(1); target += -0.5 * dot_self(u); b ~ normal(u[1], s);",
        LOG_TWO_PI,
    ),
    "a sum that is zero": (
        "sum_to_zero_vector[4] u;",
        "target += -0.5 * dot_self(u);",
        1.5 * LOG_TWO_PI,
    ),
    "a density of numbers whose sum is zero": (
        "sum_to_zero_vector[3] u;",
        "u ~ normal(0, 1);",
        -0.5 * LOG_TWO_PI,
    ),
    "an array of vectors": (
        "array[2] vector[3] u; real m;",
        "m ~ normal(0, 2); for (k in 1 : 2) target += -0.5 * dot_self(u[k] - m);",
        3 * LOG_TWO_PI,
    ),
    "in one statement with a density": (
        "real u; real<lower=0> s;",
        "target += exponential_lpdf(s | 1) - 0.5 * square(u / s) - log(s);",
        0.5 * LOG_TWO_PI,
    ),
}


@pytest.mark.parametrize("case", INTEGRALS)
def test_integrals(case: str, tmp_path: Path) -> None:
    parameters, prior, exact = INTEGRALS[case]
    found, _ = drawn(model_of(tmp_path, parameters, prior))
    assert found.independent
    assert found.log_integral is not None
    assert found.log_integral.value == pytest.approx(exact, abs=1e-8)
    assert found.log_integral.mcse == 0.0


REFUSED: dict[str, tuple[str, str, str]] = {
    "not quadratic": ("vector[2] u;", "target += -sum(u^4);", "not quadratic in u"),
    "two humps": (
        "real u;",
        "target += log_sum_exp(-square(u - 3), -square(u + 3));",
        "not quadratic in u",
    ),
    "the integral depends on the rest": (
        "real u; real<lower=0> s;",
        "s ~ exponential(1); target += -0.5 * square(u / s);",
        "not that of the prior",
    ),
    "no integral": ("vector[2] u;", "target += -square(u[1] + u[2]);", "no finite integral"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_gaussian_with_one_integral(case: str, tmp_path: Path) -> None:
    parameters, prior, said = REFUSED[case]
    model = model_of(tmp_path, parameters, prior)
    density = BatchedDensity(model.program(PRIOR), model.data)
    with pytest.raises(DataError, match=said):
        simulated_prior(model, density, 64, seed=3)


def test_nuts_draws_what_is_no_gaussian(tmp_path: Path) -> None:
    found, values = drawn(model_of(tmp_path, "real u;", "target += -u^4;"))
    assert not found.independent
    # E u^2 = Gamma(3/4) / Gamma(1/4); its error from the effective draws, at least a quarter.
    square = values["u"] ** 2
    assert abs(square.mean() - 0.337989) < 4 * square.std() / np.sqrt(len(square) / 4)


def test_too_many_gradients(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_of(tmp_path, *CAR)
    density = BatchedDensity(model.program(PRIOR), model.data)
    part = GaussianPart(density, ["phi"], np.random.default_rng(1))
    points = np.zeros((100, density.dimension))
    monkeypatch.setattr(gaussian_part, "_MOST_GRADIENTS", 499)
    points[:, 1] = np.linspace(-1, 1, 100)
    with pytest.raises(DataError, match="too many gradients"):
        part.drawn(points, np.random.default_rng(2))
    # One precision for all takes few.
    points[:, 1] = 0.5
    assert part.drawn(points, np.random.default_rng(2)).gradients == 8 * 5 + 100
