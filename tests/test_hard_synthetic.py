"""Hard posteriors with closed forms or one-dimensional integrals, against other ways to them."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
import xarray as xr
from scipy.integrate import dblquad, quad
from scipy.special import expit, logit, logsumexp
from scipy.stats import binom, gamma, multivariate_normal, norm
from stan_density import StanDensity

from harness.arrays import FloatArray
from harness.model import Model
from harness.model.density import TargetDensity
from harness.models.hard import TARGETS
from harness.models.hard.gaussian_mixture_40 import mixture_40
from harness.models.hard.phi_four import PhiFour, phi_four
from harness.models.hard.product import Product
from harness.models.hard.radiata_pine import Pine, load_boards
from harness.models.hard.unequal_wells import UnequalWells
from harness.temper import tempered_model
from harness.temper.classify import What

Density = Callable[[FloatArray], float]


def product(u: FloatArray) -> float:
    """The density of the logits."""
    x, y = expit(u)
    return float(binom.logpmf(50_000, 100_000, x * y) + np.log(x * (1 - x) * y * (1 - y)))


def many_wells(x: FloatArray) -> float:
    pairs = zip(x[:16], x[16:], strict=True)
    return sum(float(a / 2 + 6 * a**2 - a**4 - b**2 / 2) for a, b in pairs)


def gaussian_mixture_40(x: FloatArray) -> float:
    each = [multivariate_normal.logpdf(x, mean) for mean in mixture_40().mean]
    return float(logsumexp(each) - np.log(40))


def chain(x: FloatArray, field: float) -> float:
    sites, a, beta = len(x), 0.1, 20
    ends = [0.0, *x, 0.0]
    bonds = sum((right - left) ** 2 for left, right in pairwise(ends))
    wells = sum((1 - each**2) ** 2 for each in x)
    return float(field * sum(x) - beta * (a * sites / 2 * bonds + wells / (4 * a * sites)))


def pine(u: FloatArray, column: str) -> float:
    """The density of (alpha, beta, log tau)."""
    boards = load_boards()
    x, (alpha, beta, tau) = getattr(boards, column), (*u[:2], np.exp(u[2]))
    return float(
        gamma.logpdf(tau, 3, scale=1 / (2 * 300**2))
        + norm.logpdf(alpha, 3000, 1 / np.sqrt(0.06 * tau))
        + norm.logpdf(beta, 185, 1 / np.sqrt(6 * tau))
        + norm.logpdf(boards.y, alpha + beta * (x - x.mean()), 1 / np.sqrt(tau)).sum()
        + u[2]
    )


def wells(x: FloatArray) -> float:
    either = [norm.logpdf(x, -2, 1).sum(), norm.logpdf(x, 2, 0.3).sum()]
    return float(norm.logpdf(x, 0, 5).sum() + logsumexp(either) - np.log(2))


def exact_draws(model: Model, count: int, rng: np.random.Generator) -> FloatArray:
    assert model.truth.draw is not None
    return model.truth.draw(count, rng)


DENSITIES: dict[str, Density] = {
    "product": product,
    "many-wells": many_wells,
    "gaussian-mixture-40": gaussian_mixture_40,
    "phi-four": lambda x: chain(x, 0),
    "phi-four-field": lambda x: chain(x, 0.02),
    "radiata-pine-density": lambda u: pine(u, "x"),
    "radiata-pine-adjusted": lambda u: pine(u, "z"),
    "unequal-wells-10": wells,
    "unequal-wells-25": wells,
}


@pytest.mark.parametrize("name", DENSITIES)
def test_density_of_the_program_with_all_constants(name: str) -> None:
    """At exact draws, and farther away from the mass, with gradients by central differences."""
    model = TARGETS[name]()
    what: What = "all" if model.own_base == "improper" else "likelihood"
    written = tempered_model(model.folder / "target.stan", model.data, what=what)
    density = StanDensity(written.program("target"), model.data)
    assert density.dimension == written.dimension == model.dimension
    assert written.own_base == model.own_base
    rng = np.random.default_rng(4)
    for row in exact_draws(model, 6, rng):
        u = row.copy()
        if model.bounds:
            u = logit(u)
        for i, parameter in enumerate(model.parameters):
            if model.transforms.get(parameter) == "log":
                u[i] = np.log(u[i])
        for x in (u, u + rng.normal(size=len(u))):
            value, slope = density(x)
            assert value == pytest.approx(DENSITIES[name](x), rel=1e-10, abs=1e-9)
            scale = 1e-5 * np.maximum(1, np.abs(x))
            numerical = [
                (DENSITIES[name](x + step) - DENSITIES[name](x - step)) / (2 * step.max())
                for step in np.diag(scale)
            ]
            # Rounding of the values, 2e-13 of them, over the step; curvature over its square.
            rounding = 2e-13 * max(1, abs(value)) / scale
            assert np.all(np.abs(slope - numerical) < 1e-5 * np.abs(slope) + rounding)


@pytest.mark.parametrize("name", DENSITIES)
def test_exact_draws_have_the_known_moments_and_events(name: str) -> None:
    """Within 4.5 standard errors; 400 values are compared in all, and p is 7e-6 for each."""
    model, count = TARGETS[name](), 3000
    draws = exact_draws(model, count, np.random.default_rng(7))
    shapes = TargetDensity(model).shapes
    splits = np.cumsum([math.prod(shapes[each]) for each in model.parameters])[:-1]
    parts = dict(zip(model.parameters, np.split(draws, splits, axis=1), strict=True))
    for key, (expected, _) in model.truth.expectations.items():
        stem = key.removesuffix("_squared")
        values = parts[stem] ** (1 if stem == key else 2)
        error = values.std(axis=0) / np.sqrt(count)
        assert np.all(np.abs(values.mean(axis=0) - np.ravel(expected)) < 4.5 * error), key
    test = model.truth.mode_test
    if test is None:
        return
    data = {
        each: (("chain", "draw", *(f"{each}_dim_0" for _ in shapes[each])),
               part.reshape(1, count, *shapes[each]))
        for each, part in parts.items()
    }  # fmt: skip
    happens = test.happens(xr.Dataset(data))
    assert happens.dims == ("chain", "draw", "event")
    happened = happens.to_numpy()[0]
    assert happened.shape == (count, len(test.names))
    if test.exclusive:
        np.testing.assert_allclose(happened.sum(axis=1), 1)
        assert test.probabilities.value.sum() == pytest.approx(1)
    error = happened.std(axis=0) / np.sqrt(count)
    assert np.all(np.abs(happened.mean(axis=0) - test.probabilities.value) < 4.5 * error)


@pytest.mark.parametrize(
    ("n", "published"), [(100_000, -11.87944117), (1000, -7.27454769), (100, -4.97455187)]
)
def test_product_by_quadrature_over_the_product(n: int, published: float) -> None:
    """The product u of two uniform variables has density -log u."""
    truth = Product(n, n // 2).truth
    middle, reach = 0.5, 12 * 0.5 / np.sqrt(n)
    limits = max(0.0, middle - reach), min(1.0, middle + reach)

    def integral(f: Callable[[float], float]) -> float:
        found, error = quad(
            lambda u: binom.pmf(n // 2, n, u) * f(u), *limits, epsabs=0, epsrel=1e-11, limit=200
        )
        assert error < 1e-9 * abs(found)
        return float(found)

    mass = integral(lambda u: -np.log(u))
    assert truth.log_evidence.value == pytest.approx(np.log(mass), abs=1e-8)
    assert truth.log_evidence.value == pytest.approx(published, abs=1e-8)
    # log x is uniform between log u and 0.
    for name, power in (("x", 1), ("x_squared", 2)):
        found = integral(lambda u, power=power: (1 - u**power) / power) / mass  # type: ignore[misc]
        assert truth.expected(name) == pytest.approx(found, rel=1e-8)


def test_many_wells_by_adaptive_quadrature() -> None:
    truth = TARGETS["many-wells"]().truth

    def moment(f: Callable[[float], float]) -> float:
        # In two pieces, because the wells are far from each other.
        def integrand(a: float) -> float:
            return float(f(a) * np.exp(a / 2 + 6 * a**2 - a**4))

        return sum(float(quad(integrand, *each)[0]) for each in ((-6.0, 0.0), (0.0, 6.0)))

    mass = moment(lambda a: 1)
    assert mass == pytest.approx(11784.50926513, rel=1e-12)
    expected = 16 * (np.log(mass) + np.log(2 * np.pi) / 2)
    assert truth.log_evidence.value == pytest.approx(expected, abs=1e-9)
    assert truth.log_evidence.value == pytest.approx(164.695675, abs=1e-6)
    np.testing.assert_allclose(truth.expected("a"), moment(lambda a: a) / mass, rtol=1e-9)
    np.testing.assert_allclose(truth.expected("a_squared"), moment(lambda a: a**2) / mass)
    assert truth.mode_test is not None
    positive = truth.mode_test.probabilities.value
    np.testing.assert_allclose(positive, moment(lambda a: a > 0) / mass, rtol=1e-9)
    np.testing.assert_allclose(positive, 0.84430710, atol=1e-8)


def test_the_means_of_the_mixture_are_those_that_others_use() -> None:
    """The smallest distances between them, which the generator and its key decide."""
    mean = mixture_40().mean
    assert mean.shape == (40, 2)
    assert np.all(np.abs(mean) < 40)
    distance = np.sort(np.hypot(*(mean[:, None] - mean).T)[np.triu_indices(40, 1)])
    np.testing.assert_allclose(distance[:3], [1.78, 2.72, 2.79], atol=0.005)


@pytest.mark.parametrize(
    ("sites", "field", "log_z", "right"),
    [
        (32, 0.0, -59.49545768, 0.5),
        (32, 0.02, -59.36895247, 0.73579219),
        (32, 0.04, -59.04017036, 0.88578543),
        (64, 0.0, -119.87021424, 0.5),
    ],
)
def test_phi_four_as_computed_elsewhere(
    sites: int, field: float, log_z: float, right: float
) -> None:
    truth = PhiFour(field, sites).truth
    assert truth.log_evidence.value == pytest.approx(log_z, abs=1e-7)
    assert truth.log_evidence.error < 1e-9
    assert truth.mode_test is not None
    assert truth.mode_test.probabilities.value[0] == pytest.approx(right, abs=1e-7)


def test_two_sites_of_phi_four_by_quadrature_in_the_plane() -> None:
    truth = PhiFour(0.3, 2).truth

    def integral(f: Callable[[float, float], float]) -> float:
        found, _ = dblquad(
            lambda y, x: f(x, y) * np.exp(chain(np.array([x, y]), 0.3)), -1.9, 1.9, -1.9, 1.9
        )
        return float(found)

    mass = integral(lambda x, y: 1)
    assert truth.log_evidence.value == pytest.approx(np.log(mass), abs=1e-7)
    assert truth.expected("x")[1] == pytest.approx(integral(lambda x, y: y) / mass, abs=1e-7)
    # The program with other data.
    assert phi_four(0.3).data["h"] == 0.3


@pytest.mark.parametrize(
    ("column", "published"), [("x", -310.12829), ("z", -301.70460)], ids=["M1", "M2"]
)
def test_pine_by_quadrature_over_the_precision(column: str, published: float) -> None:
    """Given tau, y is Gaussian with the coefficients integrated out."""
    boards = load_boards()
    x = getattr(boards, column)
    design = np.column_stack([np.ones(len(x)), x - x.mean()])
    mean = design @ [3000, 185]
    scale = np.eye(len(x)) + design @ np.diag([1 / 0.06, 1 / 6]) @ design.T
    log_tau = np.linspace(-14, -9, 1001)
    log_density = np.array(
        [
            multivariate_normal.logpdf(boards.y, mean, scale / tau)
            + gamma.logpdf(tau, 3, scale=1 / 180_000)
            for tau in np.exp(log_tau)
        ]
    )
    log_z = logsumexp(log_density + log_tau) + np.log(log_tau[1] - log_tau[0])
    pine = Pine(boards.y, x)
    assert pine.log_evidence() == pytest.approx(log_z, abs=1e-8)
    assert pine.log_evidence() == pytest.approx(published, abs=1e-5)
    share = np.exp(log_density + log_tau)
    tau = share @ np.exp(log_tau) / share.sum()
    assert pine.truth.expected("tau") == pytest.approx(tau, rel=1e-8)


@pytest.mark.parametrize("dimension", [10, 25])
def test_unequal_wells_have_a_transition_just_below_one(dimension: int) -> None:
    """Masses of both modes along the path, coordinate by coordinate."""
    truth = UnequalWells(dimension).truth
    assert truth.mode_test is not None

    def log_masses(inv_temp: float) -> FloatArray:
        each = []
        for y, s in ((-2, 1), (2, 0.3)):
            reach = 12 * s / np.sqrt(inv_temp)
            x, step = np.linspace(y - reach, y + reach, 4001, retstep=True)
            power = norm.pdf(x, 0, 5) * norm.pdf(y, x, s) ** inv_temp
            each.append(dimension * np.log(power.sum() * step) - inv_temp * np.log(2))
        return np.array(each)

    assert truth.log_evidence.value == pytest.approx(logsumexp(log_masses(1)), abs=1e-9)
    narrow = np.exp(log_masses(1)[1] - logsumexp(log_masses(1)))
    assert truth.mode_test.probabilities.value[1] == pytest.approx(narrow, abs=1e-9)
    assert narrow > 0.5
    # At a half the narrow mode's share is about (.3)^(D / 2).
    early = log_masses(0.5)
    assert early[1] - early[0] < 0.4 * dimension * np.log(0.3)
