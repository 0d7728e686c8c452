"""Quadrature of the horseshoe with one predictor, against draws of the scales' prior."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import invgamma, norm

from experiments.horseshoe.exact import ScalesFunction, exact_expectation, tempered_evidence
from harness.arrays import FloatArray
from harness.errors import DataError
from harness.models.horseshoe import Classification, coefficients

DATA = Classification(
    np.array([[1.5], [0.8], [2.0], [-1.1], [-0.4], [-1.7]]), np.array([1, 1, 1, 0, 0, 1])
)
SCALES = {"scale_global": 0.3, "scale_icept": 1.4, "slab_scale": 2.0, "slab_df": 5.0}


def test_tempered_evidence_by_plain_sums() -> None:
    """The integral over (beta0, z) as a Riemann sum over a fine square, b and w apart."""
    beta0 = np.linspace(-12, 12, 801)
    z = np.linspace(-8, 8, 801)
    density = np.outer(norm.pdf(beta0, 0, 1.4), norm.pdf(z))
    density /= density.sum()
    powers = np.array([0.3, 1.0])
    found = tempered_evidence(DATA, powers, np.log([0.01, 0.7, 6.0]), 1.4)
    for k, width in enumerate((0.01, 0.7, 6.0)):
        eta = beta0[:, None, None] + width * z[None, :, None] * DATA.x[:, 0]
        likelihood = np.prod(1 / (1 + np.exp(np.where(DATA.y == 1, -eta, eta))), axis=-1)
        for i, power in enumerate(powers):
            direct = np.sum(density * likelihood**power)
            assert found[i, k] == pytest.approx(direct, rel=2e-4)


@pytest.mark.parametrize("shared", ["none", 0.5, None])
def test_expectation_from_draws_of_the_prior(shared: float | str | None) -> None:
    """Importance sampling from the prior of all scales; C_b of each draw by its own quadrature."""
    rng = np.random.default_rng(5)
    count = 4000
    local, ratio = np.abs(rng.standard_cauchy((2, count)))
    tau = SCALES["scale_global"] * ratio
    c2 = invgamma.rvs(2.5, scale=10.0, size=count, random_state=rng)
    width = coefficients(np.ones((count, 1)), local[:, None], tau, c2)[:, 0]

    node, share = np.polynomial.hermite_e.hermegauss(16)
    mass = np.outer(share, share).ravel() / share.sum() ** 2
    beta0, z = (side.ravel() for side in np.meshgrid(1.4 * node, node, indexing="ij"))

    def evidence(power: float) -> FloatArray:
        log_likelihood = np.zeros((count, len(mass)))
        for x, y in zip(DATA.x[:, 0], DATA.y, strict=True):
            eta = beta0 + width[:, None] * x * z
            log_likelihood -= np.logaddexp(0, eta * (1 - 2 * y))
        value: FloatArray = np.exp(power * log_likelihood) @ mass
        return value

    weight = evidence(1.0)
    if shared is None:  # averaged over a uniform inverse temperature by the midpoint rule
        weight = weight * np.mean([evidence(b) for b in (0.125, 0.375, 0.625, 0.875)], axis=0)
    elif shared != "none":
        weight = weight * evidence(float(shared))
    functions: tuple[ScalesFunction, ...] = (
        lambda local, tau, c2: tau / (0.3 + tau),
        lambda local, tau, c2: local / (1 + local),
        lambda local, tau, c2: 1 / c2,
    )
    for f in functions:
        values = f(local, tau, c2)
        estimate = weight @ values / weight.sum()
        # Delta method: of a ratio of means over independent draws.
        error = np.sqrt(np.sum(np.square(weight / weight.sum() * (values - estimate))))
        exact = exact_expectation(f, DATA, shared_inv_temp=shared, **SCALES)
        assert abs(estimate - exact) < 4 * error < 0.06


def test_more_than_one_predictor_is_refused() -> None:
    two = Classification(np.ones((3, 2)), np.array([0, 1, 1]))
    with pytest.raises(DataError, match="needs a single predictor; got 2"):
        exact_expectation(lambda _, tau, __: tau, two, **SCALES)
