"""Whether the errors of log Z that ``auto`` reports are right: z scores over many seeds."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from calibration import mean_square_bounds
from scipy.integrate import quad
from scipy.stats import multivariate_normal, norm
from stan_density import stanli
from test_user_parallel import TWO_MODES, two_modes_truth
from test_user_sample import BIMODAL, BIMODAL_DATA, EIGHT_SCHOOLS, bimodal_truth

from harness.models.hard import TARGETS
from harness.user import sample

assert stanli is not None

RUNS = 40


class Case(NamedTuple):
    """A program, its data, and its log Z."""

    program: str
    data: dict[str, Any]
    log_evidence: float


def hard(name: str) -> Case:
    model = TARGETS[name]()
    text = (model.folder / "target.stan").read_text(encoding="utf-8")
    return Case(text, dict(model.data), float(model.truth.log_evidence.value))


def two_modes(dimension: int) -> Case:
    return Case(TWO_MODES, {"D": dimension}, two_modes_truth(dimension)[0])


def regression() -> Case:
    """Ten coefficients with vague priors, and a known scale: y is Gaussian with a known matrix."""
    rng = np.random.default_rng(4)
    x = rng.standard_normal((50, 10))
    y = x @ rng.standard_normal(10) + rng.standard_normal(50)
    program = """
    data { int N; matrix[N, 10] x; vector[N] y; }
    parameters { vector[10] b; }
    model { b ~ normal(0, 10); y ~ normal(x * b, 1); }
    """
    exact = multivariate_normal(np.zeros(50), np.eye(50) + 100 * x @ x.T).logpdf(y)
    return Case(program, {"N": 50, "x": x, "y": y}, float(exact))


def eight_schools() -> Case:
    """Given tau, y is Gaussian around a mean that all schools have in common."""
    y = np.array([28.0, 8, -3, 7, -1, 1, 18, 12])
    sigma = np.array([15.0, 10, 16, 11, 9, 11, 10, 18])

    def height(tau: float) -> float:
        covariance = np.diag(sigma**2 + tau**2) + 25.0
        return float(2 * norm.pdf(tau, 0, 5) * multivariate_normal(np.zeros(8), covariance).pdf(y))

    ends = [0, 1, 5, 20, 100, np.inf]
    total = sum(quad(height, a, b)[0] for a, b in itertools.pairwise(ends))
    return Case(EIGHT_SCHOOLS, {"J": 8, "y": y, "sigma": sigma}, float(np.log(total)))


def asymmetric_wells() -> Case:
    """Without a prior: log Z is the integral of the program's density."""
    program = """
    parameters { vector[2] x; }
    model { target += 0.3 * x[1] - square(square(x[1]) - 9) / 8 - dot_self(x[2 : 2]); }
    """
    integral = quad(lambda x: np.exp(0.3 * x - (x**2 - 9) ** 2 / 8), -12, 12, points=[-3, 3])[0]
    return Case(program, {}, float(np.log(integral * np.sqrt(np.pi))))


def vague_scale() -> Case:
    """The mean and the log of the standard deviation of a few observations, vaguely known."""
    y = np.array([2.1, 3.4, 1.9, 2.7, 3.1])
    program = """
    data { int N; vector[N] y; }
    parameters { real mu; real log_s; }
    model { mu ~ normal(0, 100); log_s ~ normal(0, 5); y ~ normal(mu, exp(log_s)); }
    """

    def height(log_s: float) -> float:
        covariance = np.exp(2 * log_s) * np.eye(5) + 1e4
        return float(norm.pdf(log_s, 0, 5) * multivariate_normal(np.zeros(5), covariance).pdf(y))

    ends = [-4, -2, 0, 2, 5, 12, 30]  # below them the likelihood is below exp(-1000)
    total = sum(quad(height, a, b)[0] for a, b in itertools.pairwise(ends))
    return Case(program, {"N": 5, "y": y}, float(np.log(total)))


CASES: dict[str, Callable[[], Case]] = {
    "bimodal": lambda: Case(BIMODAL, BIMODAL_DATA, bimodal_truth()[0]),
    "two-modes-2": lambda: two_modes(2),
    "two-modes-5": lambda: two_modes(5),
    "regression": regression,
    "eight-schools": eight_schools,
    "wells": asymmetric_wells,
    "vague-scale": vague_scale,
    "product": lambda: hard("product"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_errors_of_log_z_are_honest(name: str, tmp_path: Path) -> None:
    case = CASES[name]()
    program = tmp_path / "program.stan"
    program.write_text(case.program, encoding="utf-8")
    scores = []
    for seed in range(1, RUNS + 1):
        fit = sample(program, case.data, seed=seed, engine="stanli", progress=False)
        found = fit.log_evidence
        assert found is not None
        scores.append((found.value - case.log_evidence) / found.mcse)
    square = float(np.mean(np.square(scores)))
    print(f"{name}: mean z {np.mean(scores):+.2f}, mean square {square:.2f}")
    low, high = mean_square_bounds(RUNS)
    assert low < square < high
