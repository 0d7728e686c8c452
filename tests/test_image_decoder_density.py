"""Every variant of the image decoder against NumPy, and the evidence of an image by quadrature."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.special import expit, logsumexp, xlog1py, xlogy
from scipy.stats import bernoulli, multivariate_normal, norm
from stan_density import StanDensity, into_box, log_box_jacobian, stanli

from harness.arrays import FloatArray
from harness.evidence import LogG
from harness.forms.continuous_tempering import tempering_data
from harness.model import Model
from harness.models.images import ImageDecoder, IntArray, Layer, digits_autoencoder
from harness.path import GaussianBase, gaussian_base
from harness.path.data import UNIFORM

KNOTTED: LogG = ((0.0, 1.0), (0.2, -0.5), (0.7, 0.4), (1.0, 2.0))
RUNGS: LogG = ((0.0, -0.4), (0.1, 0.8), (0.45, 0.1), (1.0, -1.2))
LOG_ZETA = -4.3
IMAGE = np.array([1, 0, 0, 1, 1, 0, 1])


def decoder_in(dimension: int, scale: float = 1.0) -> ImageDecoder:
    """A decoder of 7 pixels with random weights."""
    rng = np.random.default_rng(20 + dimension)
    sizes = ((dimension, 4), (4, 3), (3, 7))
    return ImageDecoder(
        tuple(Layer(scale * rng.normal(0, 1.1, (a, b)), rng.normal(0, 0.6, b)) for a, b in sizes)
    )


def base_in(dimension: int) -> GaussianBase:
    root = np.tril(np.array([[0.9, 0, 0], [0.4, 0.7, 0], [-0.3, 0.2, 1.1]]))
    root = root[:dimension, :dimension]
    return gaussian_base(np.array([0.5, -0.8, 0.2])[:dimension], root @ root.T, log_zeta=-5.1)


def log_prior(z: FloatArray) -> FloatArray:
    """Log N(z | 0, I) at points (..., L), by SciPy."""
    return np.asarray(np.asarray(norm.logpdf(z)).sum(axis=-1), dtype=np.float64)


def log_gamma(decoder: ImageDecoder, image: IntArray, z: FloatArray) -> FloatArray:
    """Log p(y | z) N(z | 0, I) at points (..., L), by SciPy, unit by unit."""
    (w1, b1), (w2, b2), (w3, b3) = decoder.layers
    h1 = np.tanh(np.einsum("...i,ij->...j", z, w1) + b1)
    h2 = np.tanh(np.einsum("...i,ij->...j", h1, w2) + b2)
    odds = np.einsum("...i,ij->...j", h2, w3) + b3
    pixels = np.asarray(bernoulli.logpmf(image, expit(odds)), dtype=np.float64)
    return np.asarray(pixels.sum(axis=-1) + log_prior(z), dtype=np.float64)


def log_base(base: GaussianBase | None, z: FloatArray) -> FloatArray:
    """Log density of the base at points (..., L): a Gaussian, or the prior."""
    if base is None:
        return log_prior(z)
    value = multivariate_normal(base.mean, base.covariance).logpdf(z)
    return np.asarray(value, dtype=np.float64).reshape(z.shape[:-1])


def log_inv_temp(
    inv_temp: npt.ArrayLike, log_g: LogG, shape: tuple[float, float] = (1.0, 1.0)
) -> FloatArray:
    """Log of the piecewise-linear part times beta^(a - 1) (1 - beta)^(b - 1)."""
    beta = np.asarray(inv_temp, dtype=np.float64)
    a, b = shape
    value = np.interp(beta, *np.array(log_g).T) + xlogy(a - 1, beta) + xlog1py(b - 1, -beta)
    return np.asarray(value, dtype=np.float64)


def tempered_mass(one: FloatArray, zero: FloatArray, log_g: LogG, *, ladder: bool) -> FloatArray:
    """Log of the integral of g(beta) exp(beta one + (1 - beta) zero), or the sum over rungs."""
    knot, value = np.array(log_g).T
    if ladder:
        beta, log_share = knot, value
    else:
        nodes, share = np.polynomial.legendre.leggauss(80)
        half = np.diff(knot)[:, None] / 2
        beta = (knot[:-1, None] + half * (nodes + 1)).ravel()
        log_share = np.log((half * share).ravel()) + np.interp(beta, knot, value)
    log_path = np.multiply.outer(one, beta) + np.multiply.outer(zero, 1 - beta)
    return np.asarray(logsumexp(log_path + log_share, axis=-1), dtype=np.float64)


def check(density: StanDensity, expected: Callable[[FloatArray], float], seed: int) -> None:
    """Compare value and gradient at random points."""
    for u in np.random.default_rng(seed).normal(-0.1, 0.9, (6, density.dimension)):
        value, slope = density(u)
        assert value == pytest.approx(expected(u), rel=1e-11, abs=1e-11)
        step = 1e-5 * np.eye(len(u))
        numerical = [(expected(u + each) - expected(u - each)) / 2e-5 for each in step]
        # Rounding of the values, about 1e-13, over the step; curvature over the step squared.
        np.testing.assert_allclose(slope, numerical, rtol=1e-6, atol=1e-6)


def bases(dimension: int) -> list[GaussianBase | None]:
    return [None, base_in(dimension)]


def image_model(decoder: ImageDecoder) -> Model:
    return decoder.model(IMAGE, "seven-pixels")


@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_target(dimension: int) -> None:
    decoder = decoder_in(dimension)
    model = image_model(decoder)
    density = StanDensity(model.program("target"), model.data)
    assert density.dimension == model.dimension == dimension
    check(density, lambda u: float(log_gamma(decoder, IMAGE, u)), dimension)


@pytest.mark.parametrize("log_g", [UNIFORM, KNOTTED], ids=["uniform", "knotted"])
@pytest.mark.parametrize("gaussian", [False, True])
@pytest.mark.parametrize("dimension", [1, 3])
@pytest.mark.parametrize("inv_temp", [None, 0.0, 0.35, 1.0])
def test_joint_tempering(
    log_g: LogG, gaussian: bool, dimension: int, inv_temp: float | None
) -> None:
    decoder, base = decoder_in(dimension), base_in(dimension) if gaussian else None
    model = image_model(decoder)
    data = {**model.data, **tempering_data(model, base, LOG_ZETA, log_g)}
    fixed = np.empty(0) if inv_temp is None else np.array([inv_temp])
    data |= {"sample_inv_temp": int(inv_temp is None), "fixed_inv_temp": fixed}
    density = StanDensity(model.program("joint_tempering"), data)
    assert density.dimension == dimension + (inv_temp is None)
    zeta = LOG_ZETA if base is None else base.log_zeta

    def expected(u: FloatArray) -> float:
        z = u[:dimension]
        beta, jacobian = inv_temp, 0.0
        if beta is None:
            beta = float(into_box(u[dimension], 0, 1))
            jacobian = log_box_jacobian(u[dimension], 0, 1)
        one = float(log_gamma(decoder, IMAGE, z)) - zeta
        path = beta * one + (1 - beta) * float(log_base(base, z))
        return path + float(log_inv_temp(beta, log_g)) + jacobian

    check(density, expected, dimension)


@pytest.mark.parametrize("ladder", [False, True])
@pytest.mark.parametrize("log_g", [UNIFORM, KNOTTED, RUNGS], ids=["uniform", "knotted", "rungs"])
@pytest.mark.parametrize("gaussian", [False, True])
@pytest.mark.parametrize("dimension", [1, 3])
def test_collapsed_tempering(log_g: LogG, gaussian: bool, dimension: int, ladder: bool) -> None:
    decoder, base = decoder_in(dimension), base_in(dimension) if gaussian else None
    model = image_model(decoder)
    data = {**model.data, **tempering_data(model, base, LOG_ZETA, log_g), "ladder": int(ladder)}
    density = StanDensity(model.program("collapsed_tempering"), data)
    zeta = LOG_ZETA if base is None else base.log_zeta

    def expected(u: FloatArray) -> float:
        one = log_gamma(decoder, IMAGE, u) - zeta
        return float(tempered_mass(one, log_base(base, u), log_g, ladder=ladder))

    assert density.dimension == dimension
    check(density, expected, dimension)


@pytest.mark.parametrize("variant", ["target", "collapsed_tempering"])
def test_far_out_nothing_overflows(variant: str) -> None:
    """Log odds in the thousands: SciPy's probabilities round to 0 and 1, Stan's do not."""
    decoder = decoder_in(2, scale=30.0)
    model = image_model(decoder)
    data = dict(model.data)
    if variant != "target":
        data |= {**tempering_data(model, base_in(2)), "ladder": 0}
    density = StanDensity(model.program(variant), data)
    for u in np.random.default_rng(2).normal(0, 20, (10, 2)):
        value, slope = density(u)
        assert np.isfinite(value)
        assert np.all(np.isfinite(slope))
        if variant == "target":
            wrong = (2 * IMAGE - 1) * decoder.log_odds(u)
            exact = -np.logaddexp(0, -wrong).sum() + float(log_prior(u))
            assert value == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("dimension", [1, 2])
def test_evidence_of_stans_density_by_quadrature(dimension: int) -> None:
    """Stan's target integrates to p(y): by Gauss-Legendre panels, not as the model does it."""
    decoder = decoder_in(dimension)
    model = image_model(decoder)
    density = StanDensity(model.program("target"), model.data)
    nodes, share = np.polynomial.legendre.leggauss(20)
    centre = np.arange(-8.25, 9, 1.5)
    line = (centre[:, None] + 0.75 * nodes).ravel()
    mesh = np.meshgrid(*[line] * dimension, indexing="ij")
    log_line = np.tile(np.log(0.75 * share), centre.size)
    log_share = np.sum(np.meshgrid(*[log_line] * dimension, indexing="ij"), axis=0)
    log_value = [density.value(z) for z in np.stack(mesh, axis=-1).reshape(-1, dimension)]
    total = float(logsumexp(np.array(log_value) + np.ravel(log_share)))
    # The tanh layers have poles near the real line, which cost panels more than trapezoids.
    assert total == pytest.approx(decoder.log_evidence(IMAGE), abs=1e-6)


@pytest.mark.parametrize("gaussian", [False, True])
def test_importance_sampling_from_the_base_agrees_with_quadrature(gaussian: bool) -> None:
    """E_b[exp(-Delta)] is Z / zeta; densities by Stan at beta = 1 and beta = 0, L = 2."""
    decoder = decoder_in(2)
    base = gaussian_base([0.3, -0.2], [[1.7, 0.4], [0.4, 1.3]], log_zeta=-5) if gaussian else None
    model = image_model(decoder)
    shared = {**model.data, **tempering_data(model, base, LOG_ZETA), "sample_inv_temp": 0}
    program = model.program("joint_tempering")
    target, below = (StanDensity(program, shared | {"fixed_inv_temp": [b]}) for b in (1.0, 0.0))
    noise = np.random.default_rng(31).standard_normal((6000, 2))
    z = noise if base is None else base.mean + noise @ base.cholesky.T
    zeta = LOG_ZETA if base is None else base.log_zeta
    ratio = np.exp([target.value(each) - below.value(each) + zeta for each in z])
    error = ratio.std(ddof=1) / np.sqrt(len(ratio))
    truth = np.exp(decoder.log_evidence(IMAGE))
    assert error < 0.1 * truth
    assert abs(ratio.mean() - truth) < 4 * error


def generated(model: Model, variant: str, data: Mapping[str, Any]) -> dict[str, FloatArray]:
    """Draws with the generated quantities of a variant, by stanli's sampler."""
    program = model.program(variant)
    sampler = stanli.Model(
        str(program.path),
        data={name: np.asarray(value).tolist() for name, value in data.items()},
        include_paths=[str(path) for path in program.include_paths],
    )
    fit = sampler.sample(chains=1, warmup=50, samples=12, seed=5, refresh=0)
    names = ("z", "inv_temp", "delta", "log_weight")
    return {name: np.asarray(fit[name], dtype=np.float64) for name in names}


@pytest.mark.parametrize("gaussian", [False, True])
@pytest.mark.parametrize("variant", ["joint_tempering", "collapsed_tempering"])
def test_log_weights_of_continuous_tempering(variant: str, gaussian: bool) -> None:
    """Delta and the conditional densities of beta = 1 and beta = 0 given z (paper, eq. 17)."""
    decoder, base = decoder_in(2), base_in(2) if gaussian else None
    model = image_model(decoder)
    data = {**model.data, **tempering_data(model, base, LOG_ZETA, KNOTTED), "ladder": 0}
    if variant == "joint_tempering":
        del data["ladder"]
        data |= {"sample_inv_temp": 1, "fixed_inv_temp": np.empty(0)}
    draws = generated(model, variant, data)
    zeta = LOG_ZETA if base is None else base.log_zeta
    one, zero = log_gamma(decoder, IMAGE, draws["z"]) - zeta, log_base(base, draws["z"])
    np.testing.assert_allclose(draws["delta"], zero - one, rtol=1e-10, atol=1e-10)
    total = tempered_mass(one, zero, KNOTTED, ladder=False)
    expected = np.stack([KNOTTED[-1][1] + one - total, KNOTTED[0][1] + zero - total], axis=-1)
    np.testing.assert_allclose(draws["log_weight"], expected, rtol=1e-9, atol=1e-9)
    assert np.all((draws["inv_temp"] > 0) & (draws["inv_temp"] < 1))
    assert len(np.unique(draws["delta"])) > 1


@pytest.mark.parametrize("variant", ["target", "joint_tempering"])
def test_shipped_decoder(variant: str) -> None:
    """The digits' decoder, 10 latent dimensions and 64 pixels, with the encoder's base."""
    autoencoder = digits_autoencoder()
    decoder = autoencoder.decoder
    rng = np.random.default_rng(3)
    image = decoder.generate(rng, 1).image[0]
    model = decoder.model(image, "digit")
    base = autoencoder.encode(image, rng)
    data: dict[str, Any] = dict(model.data)
    if variant != "target":
        data |= {**tempering_data(model, base), "sample_inv_temp": 0, "fixed_inv_temp": [0.25]}
    density = StanDensity(model.program(variant), data)

    def expected(u: FloatArray) -> float:
        one = float(log_gamma(decoder, image, u))
        if variant == "target":
            return one
        return 0.25 * (one - base.log_zeta) + 0.75 * float(log_base(base, u))

    check(density, expected, 6)
