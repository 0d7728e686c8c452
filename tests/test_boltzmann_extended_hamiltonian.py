"""The extended Hamiltonian of a Boltzmann machine relaxation against NumPy, and what it writes."""

from __future__ import annotations

import numpy as np
import pytest
from form_data import extended_hamiltonian_data
from scipy.stats import multivariate_normal
from stan_density import StanDensity, stanli

from harness.arrays import FloatArray
from harness.evidence import LogG
from harness.models.boltzmann import BoltzmannMachine, generate, relax
from harness.path import GaussianBase, gaussian_base

MACHINE = generate(6, np.random.default_rng(2))
RELAXATION = relax(BoltzmannMachine(MACHINE.weights, np.array([0.9, -0.4, 0.1, 0.0, -1.2, 0.5])))
MODEL = RELAXATION.model("boltzmann-6")
D = MODEL.dimension
THETA, LOWEST = (0.7, 1.9), 0.15
KNOTTED: LogG = ((LOWEST, -1.0), (0.4, 0.6), (0.8, 0.1), (1.0, 2.0))
ROOT = np.tril(np.full((D, D), 0.2)) + np.eye(D)


def inv_temp(u: float) -> float:
    t = float(np.clip((abs(u) - THETA[0]) / (THETA[1] - THETA[0]), 0, 1))
    return 1 - (1 - LOWEST) * (10 * t**3 - 15 * t**4 + 6 * t**5)


def reference(point: FloatArray, base: GaussianBase | None, log_g: LogG | None) -> float:
    """Minus eq. 13 of Graham and Storkey (2017) without momenta, phi that of their eq. 51."""
    x, u = point[:-1], float(point[-1])
    y = RELAXATION.q @ x + RELAXATION.machine.biases
    log_gamma = float(np.sum(np.logaddexp(y, -y) - np.log(2)) - x @ x / 2)
    zeta = -0.4 if base is None else base.log_zeta
    log_base = 0.0
    if base is not None:
        log_base = float(multivariate_normal(base.mean, base.covariance).logpdf(x))
    beta = inv_temp(u)
    bias = 0.0 if log_g is None else float(np.interp(beta, *np.array(log_g).T))
    beyond = max(abs(u) - THETA[1], 0) / ((THETA[1] - THETA[0]) / 4)
    return beta * (log_gamma - zeta) + (1 - beta) * log_base + bias - beyond**2 / 2


@pytest.mark.parametrize("gaussian", [False, True])
@pytest.mark.parametrize("log_g", [None, KNOTTED], ids=["flat", "knotted"])
def test_density_and_gradient(gaussian: bool, log_g: LogG | None) -> None:
    base = gaussian_base(np.linspace(-1, 1, D), ROOT @ ROOT.T, log_zeta=2.0) if gaussian else None
    data = extended_hamiltonian_data(
        MODEL, theta=THETA, lowest_inv_temp=LOWEST, base=base, log_zeta=-0.4, log_g=log_g
    )
    density = StanDensity(MODEL.program("extended_hamiltonian"), {**MODEL.data, **data})
    assert density.dimension == D + 1
    rng = np.random.default_rng(1)
    for u in (0.2, -0.69, 0.75, -1.3, 1.6, 2.0, -2.6):
        point = np.append(rng.normal(0, 1.5, D), u)
        value, slope = density(point)
        assert value == pytest.approx(reference(point, base, log_g), rel=1e-10, abs=1e-10)
        numerical = [
            (reference(point + each, base, log_g) - reference(point - each, base, log_g)) / 2e-5
            for each in 1e-5 * np.eye(D + 1)
        ]
        np.testing.assert_allclose(slope, numerical, rtol=1e-6, atol=1e-5)


def test_it_writes_inverse_temperature_and_weight() -> None:
    program = MODEL.program("extended_hamiltonian")
    data = extended_hamiltonian_data(MODEL, theta=THETA, lowest_inv_temp=LOWEST)
    plain = {name: np.asarray(value).tolist() for name, value in {**MODEL.data, **data}.items()}
    folders = [str(path) for path in program.include_paths]
    run = stanli.Model(str(program.path), data=plain, include_paths=folders).sample(
        chains=1, warmup=100, samples=300, seed=1, refresh=0
    )
    u = np.asarray(run["u"]).ravel()
    inside = np.abs(u) <= THETA[0]
    assert 0 < inside.sum() < len(u)
    assert np.array_equal(np.ravel(run["log_weight"]), np.where(inside, 0, -np.inf))
    np.testing.assert_allclose(np.ravel(run["inv_temp"]), [inv_temp(each) for each in u])
