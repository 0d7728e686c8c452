"""Radial velocities: density against NumPy, quadrature, and importance sampling for one planet."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import expit, log_expit, logsumexp
from scipy.stats import multivariate_normal, norm, rayleigh
from stan_density import StanDensity

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.model import Model
from harness.models.hard.radial_velocity import (
    Velocities,
    load_velocities,
    noise_of,
    period_bounds,
    radial_velocity,
)
from harness.temper import tempered_model


def density_of(model: Model) -> StanDensity:
    written = tempered_model(model.folder / "target.stan", model.data)
    assert written.dimension == model.dimension
    assert written.own_base == model.own_base
    # The prior is known to be normalised.
    assert written.log_prior_integral == 0
    return StanDensity(written.program("target"), model.data)


def velocity(
    t: FloatArray, P: float, K: float, mean_longitude: float, e: float, w: float
) -> FloatArray:
    """The textbook form: anomalies from the periastron, and Kepler's equation by bisection."""
    anomaly = mean_longitude - w + 2 * np.pi * (t - 300) / P
    E = np.array(
        [brentq(lambda x, M=M: x - e * np.sin(x) - M, M - 2, M + 2, xtol=1e-14) for M in anomaly]
    )
    nu = 2 * np.arctan(np.sqrt((1 + e) / (1 - e)) * np.tan(E / 2))
    return np.asarray(K * (np.cos(nu + w) + e * np.cos(w)))


def log_likelihood(data: Velocities, predicted: FloatArray, jitter: float) -> float:
    """A dense covariance, and the offset by the trapezoidal rule between its bounds."""
    t = data.t
    covariance = np.array(
        [
            [
                3 * np.exp(-0.5 * (np.sin(np.pi * (a - b) / 20) ** 2 / 0.25 + (a - b) ** 2 / 2500))
                for a in t
            ]
            for b in t
        ]
    )
    covariance += np.diag(data.sigma**2 + jitter**2)
    inverse = np.linalg.inv(covariance)
    centre = (inverse @ (data.v - predicted)).sum() / inverse.sum()
    reach = 9 / np.sqrt(inverse.sum())
    assert abs(centre) + reach < 1000
    offset, step = np.linspace(centre - reach, centre + reach, 61, retstep=True)
    normal = multivariate_normal(np.zeros(len(t)), covariance)
    log_density = normal.logpdf(data.v - predicted - offset[:, None])
    return float(logsumexp(log_density) + np.log(step / 2000))


def expected(u: FloatArray, data: Velocities, bounds: FloatArray, *, eccentric: bool) -> float:
    """Log density at a point of Stan's unconstrained space."""
    n = len(bounds)
    quantiles = expit(u[: 1 + 2 * n])
    total = float(np.sum(log_expit(u[: 1 + 2 * n]) + log_expit(-u[: 1 + 2 * n])))
    total += float(norm.logpdf(u[1 + 2 * n :]).sum())
    longitude = u[1 + 2 * n : 1 + 4 * n].reshape(n, 2)
    periastron = u[1 + 4 * n :].reshape(-1, 2)
    predicted = np.zeros(len(data.t))
    for j, (low, high) in enumerate(bounds):
        P = low * (high / low) ** quantiles[1 + j]
        K = 1000 ** quantiles[1 + n + j] - 1
        e = w = 0.0
        if eccentric:
            w = np.arctan2(*periastron[j, ::-1])
            share = rayleigh.cdf(np.hypot(*periastron[j]))
            e = rayleigh.ppf(share * rayleigh.cdf(1, scale=0.2), scale=0.2)
        predicted += velocity(data.t, P, K, np.arctan2(*longitude[j, ::-1]), e, w)
    return total + log_likelihood(data, predicted, 100 ** quantiles[0] - 1)


@pytest.mark.parametrize(
    ("star", "planets", "eccentric"),
    [(1, 0, True), (2, 1, True), (3, 2, True), (4, 3, True), (5, 1, False)],
)
def test_density(star: int, planets: int, eccentric: bool) -> None:
    model = radial_velocity(star, planets, "narrow", eccentric=eccentric)
    density = density_of(model)
    data, bounds = load_velocities(star), period_bounds(star, "narrow", planets)
    rng = np.random.default_rng(star)
    for radius in (0.5, 2.0, 4.3):  # eccentricities up to .86
        u = rng.normal(size=model.dimension)
        if planets and eccentric:
            points = u[1 + 4 * planets :].reshape(planets, 2)
            points *= radius / np.hypot(*points.T)[:, None]
        value, slope = density(u)
        assert value == pytest.approx(expected(u, data, bounds, eccentric=eccentric), rel=1e-9)
        # Differences by Richardson's rule: their error is of fourth order in the step.
        for i in range(model.dimension):
            step = np.zeros(model.dimension)
            step[i] = 1e-5
            near, far = (
                (density.value(u + k * step) - density.value(u - k * step)) / (2e-5 * k)
                for k in (1, 2)
            )
            # Rounding: 1e-14 of the terms that are added up, over the step.
            rounding = 1e-14 * 10 * abs(value) / 1e-5
            assert abs(slope[i] - (4 * near - far) / 3) < rounding + 1e-6 * abs(slope[i])


def test_a_circle_is_no_special_point() -> None:
    """Nor is the origin of the plane of the periastron, where the direction is not defined."""
    model = radial_velocity(1, 1, "narrow")
    density = density_of(model)
    u = np.array([0.1, 0.2, -0.5, 1.0, 0.4, 0.0, 0.0])
    value, slope = density(u)
    assert np.all(np.isfinite(slope))
    circle = density_of(radial_velocity(1, 1, "narrow", eccentric=False)).value(u[:5])
    assert value == pytest.approx(circle + 2 * norm.logpdf(0), rel=1e-12)


@pytest.mark.parametrize(
    ("star", "published"),
    [
        (1, -211.9774),
        (2, -197.1098),
        (3, -169.6445),
        (4, -161.6224),
        (5, -167.0263),
        (6, -179.8554),
    ],
)
def test_evidence_without_planets(star: int, published: float) -> None:
    """By a sum over the program's own density, and as computed elsewhere, in powers of ten."""
    model = radial_velocity(star, 0)
    value, error = model.truth.log_evidence
    assert error < 1e-9
    assert value / np.log(10) == pytest.approx(published, abs=1e-4)
    if star == 1:
        density = density_of(model)
        u, step = np.linspace(-30, 30, 1201, retstep=True)
        total = logsumexp([density.value(each[None]) for each in u]) + np.log(step)
        assert value == pytest.approx(total, abs=1e-8)


@pytest.mark.parametrize("star", range(1, 7))
def test_the_offset_is_far_from_its_bounds(star: int) -> None:
    """Without planets, for any jitter: its mean is within 20 m/s, its sd below 10 m/s."""
    noise = noise_of(load_velocities(star))
    variance = noise.variance + np.linspace(0, 99, 100)[:, None] ** 2
    precision = (noise.one**2 / variance).sum(axis=1)
    mean = (noise.one * noise.v / variance).sum(axis=1) / precision
    assert np.all(np.abs(mean) < 20)
    assert np.all(precision**-0.5 < 10)


def test_what_does_not_exist_is_refused() -> None:
    with pytest.raises(DataError, match="data sets of radial velocities are 1 to 6; got 7"):
        radial_velocity(7, 0)
    with pytest.raises(DataError, match="wide prior of data set 2 has no bounds for 4 planets"):
        radial_velocity(2, 4)
    with pytest.raises(DataError, match="not known"):
        _ = radial_velocity(1, 2, "wide").truth.log_evidence
