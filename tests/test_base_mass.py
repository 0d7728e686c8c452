"""The share of a base's mass that a path reaches: measured, cut by boxes, counted in log Z."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import chi2, multivariate_normal, norm, truncnorm

from harness.arrays import FloatArray
from harness.diagnosis import Finding, Severity, diagnose
from harness.errors import DataError
from harness.evidence import (
    WHOLE_BASE,
    LogEvidence,
    LogMass,
    draw_inv_temp,
    inv_temp_log_conditionals,
    log_base_mass,
    log_evidence,
    log_path_weight,
    resample,
    times_delta,
    two_sided_log_evidence,
)
from harness.fit import Fit, build_fit
from harness.path import gaussian_base
from harness.path.cut import cut_to_box

RUNS = 60
# Of RUNS squares of standard normals, the mean lies outside with probability 1e-4.
BOUNDS = np.asarray(chi2.ppf([5e-5, 1 - 5e-5], RUNS)) / RUNS

# The base is standard normal, the likelihood exp(-x) where x > CUT and zero elsewhere.
CUT = 0.6
MASS = float(norm.logsf(CUT))
RUNG = np.array([0.0, 0.02, 0.1, 0.3, 0.6, 1.0])


def log_z(beta: npt.ArrayLike) -> FloatArray:
    """Log of the integral of the base times likelihood^beta, for beta > 0."""
    b = np.asarray(beta, dtype=np.float64)
    return np.asarray(b**2 / 2 + norm.logsf(CUT + b))


# log Z is -1.6; the ladder visits its rungs about evenly.
LADDER = [(float(b), -float(log_z(max(b, 1e-9)))) for b in RUNG]
LOG_ZETA = 0.0


def path_draws(
    rng: np.random.Generator, shape: tuple[int, int], *, cut: bool
) -> tuple[FloatArray, FloatArray]:
    """Exact draws of x and a rung; at beta = 0 of the whole base, or of what is above the cut."""
    log_c = np.array([h for _, h in LADDER]) + log_z(RUNG)
    if not cut:
        log_c[0] = LADDER[0][1]
    share = np.exp(log_c - np.logaddexp.reduce(log_c))
    rung = rng.choice(len(RUNG), p=share, size=shape)
    # Normal with mean -beta and variance 1 above the cut, by inversion.
    beta = RUNG[rung]
    below = np.where(cut | (rung > 0), norm.cdf(CUT + beta), 0.0)
    x = norm.ppf(below + (1 - below) * rng.random(shape)) - beta
    delta = np.where(x > CUT, x, np.inf)  # log b + log zeta - log gamma
    return x, delta


def path_fit(
    seed: int, *, cut: bool, draws: int = 1000, outside: float = 0.0, **settings: Any
) -> Fit:
    """A fit of exact draws, with R-hat and the like in order; a share is put below the cut."""
    rng = np.random.default_rng(seed)
    x, delta = path_draws(rng, (4, draws), cut=cut)
    moved = rng.random(x.shape) < outside
    x = np.where(moved, norm.ppf(norm.cdf(CUT) * rng.random(x.shape)), x)
    delta = np.where(moved, np.inf, delta)
    log_w1, log_w0 = inv_temp_log_conditionals(delta, LADDER, ladder=True)
    index = resample(log_w1, rng)
    return build_fit(
        posterior={"x": x[np.arange(4)[:, None], index]},
        extended={
            "x": x,
            "delta": delta,
            "inv_temp": draw_inv_temp(delta, LADDER, rng, ladder=True),
            "log_w1": log_w1,
            "log_w0": log_w0,
        },
        sample_stats={"lp": rng.normal(size=(4, draws))},
        constant_data={},
        attrs={
            "method": "collapsed_tempering",
            "seed": seed,
            "settings": {
                "base": None,
                "normalised_base": True,
                "log_zeta": LOG_ZETA,
                "log_g": LADDER,
                "ladder": True,
            }
            | settings,
        },
        pseudo_samples=False,
    )


def of_mass(fit: Fit) -> list[Finding]:
    return [each for each in diagnose(fit) if "starts from that part alone" in each.sentence]


# Evidence on a ladder whose rung at 0 has draws with a likelihood of zero


@pytest.mark.parametrize("outside", [0.1, 0.9])
def test_how_often_chains_pass_the_edge_of_the_likelihood_does_not_matter(outside: float) -> None:
    """Only what is above it counts with ``positive_only``.  The right share outside would be .31.

    A run whose chains had hardly passed an edge had a log Z that was 2.6 too high.
    """
    exact = float(log_z(1.0))
    errors = []
    for seed in range(RUNS):
        fit = path_fit(seed, cut=True, outside=outside, base_mass=[MASS, 0.0], positive_only=True)
        both = fit.two_sided_log_evidence
        assert both is not None
        estimates = (fit.log_evidence, both.forward, both.backward)
        errors.append([(each.value - exact) / each.mcse for each in estimates])
        under_the_base = fit.base_expectation(lambda draws: draws["x"])
        mean = float(truncnorm(CUT, np.inf).mean())
        assert abs(under_the_base.value - mean) < 4.5 * under_the_base.mcse
    squares = np.square(errors).mean(axis=0)
    assert np.all((BOUNDS[0] < squares) & (squares < BOUNDS[1]))
    naive = path_fit(1, cut=True, outside=outside).log_evidence
    assert abs(naive.value - exact) > 4 * naive.mcse


@pytest.mark.parametrize("cut", [False, True])
def test_log_z_of_a_cut_base(cut: bool) -> None:
    """All of the base is reached: log Z as it is.  A cut one: too high by -log of its mass."""
    exact = float(log_z(1.0))
    settings: dict[str, Any] = {"base_mass": [MASS, 0.0]} if cut else {}
    errors = []
    for seed in range(RUNS):
        fit = path_fit(seed, cut=cut, **settings)
        both = fit.two_sided_log_evidence
        assert both is not None
        estimates = (fit.log_evidence, both.forward, both.backward)
        errors.append([(each.value - exact) / each.mcse for each in estimates])
        assert abs(float(both.gap.value)) < 4.5 * float(both.gap.mcse)
    squares = np.square(errors).mean(axis=0)
    assert np.all((BOUNDS[0] < squares) & (squares < BOUNDS[1]))


def test_what_a_fit_without_a_mass_says() -> None:
    """Fits of before count as those of a whole base; of a cut one log Z was too high by 1.3."""
    fit = path_fit(1, cut=True)
    assert fit.tempered.base_mass == WHOLE_BASE
    estimate = fit.log_evidence
    assert abs(estimate.value + MASS - float(log_z(1.0))) < 4 * estimate.mcse


def test_the_mass_moves_every_log_z_and_adds_its_error() -> None:
    plain, fit = path_fit(2, cut=True), path_fit(2, cut=True, base_mass=[MASS, 0.02])
    one, two = plain.log_evidence, fit.log_evidence
    assert two.value == one.value + MASS
    assert two.mcse == pytest.approx(np.hypot(one.mcse, 0.02), rel=1e-12)
    before, after = plain.two_sided_log_evidence, fit.two_sided_log_evidence
    assert before is not None
    assert after is not None
    for side in ("forward", "backward"):
        old, new = getattr(before, side), getattr(after, side)
        assert new.value == old.value + MASS
        assert new.mcse == pytest.approx(np.hypot(old.mcse, 0.02), rel=1e-12)
    assert after.gap == before.gap
    parts = fit.tempered.log_evidence_by_parts() - plain.tempered.log_evidence_by_parts()
    np.testing.assert_allclose(parts, MASS, rtol=1e-12)


def test_a_cut_base_is_told() -> None:
    assert not of_mass(path_fit(3, cut=True))
    assert not of_mass(path_fit(3, cut=True, base_mass=[np.log(0.9995), 0.0]))
    (found,) = of_mass(path_fit(3, cut=True, base_mass=[MASS, 0.01]))
    assert found.severity == Severity.FINE
    assert found.sentence.startswith("27 % of the prior has a likelihood above zero")
    assert "-1.29, standard error 0.01" in found.sentence
    (rough,) = of_mass(path_fit(3, cut=True, base_mass=[MASS, 0.3]))
    assert rough.severity == Severity.WARNING
    base = [[0.0], [[1.0]]]
    (gaussian,) = of_mass(path_fit(3, cut=True, base_mass=[MASS, 0.0], base=base, base_mean=None))
    assert gaussian.sentence.startswith("27 % of the base lies where")


def test_base_moments_are_compared_with_what_is_left_of_the_base() -> None:
    """A cut base has another mean: known, it is the one to be held against; else none is."""

    def told(**settings: Any) -> list[Finding]:
        base = [[0.0], [[1.0]]]
        fit = path_fit(4, cut=True, base=base, base_mass=[MASS, 0.0], **settings)
        return [each for each in diagnose(fit) if "means under the base" in each.sentence]

    mean = float(truncnorm(CUT, np.inf).mean())
    assert [each.severity for each in told(base_mean=[mean])] == [Severity.FINE]
    assert [each.severity for each in told()] == [Severity.PROBLEM]
    assert not told(base_mean=None)


def test_conditionals_where_the_likelihood_is_zero() -> None:
    far = np.array([0.3, np.inf])
    log_w1, log_w0 = inv_temp_log_conditionals(far, LADDER, ladder=True)
    height = np.array([h - b * 0.3 for b, h in LADDER])
    total = np.logaddexp.reduce(height)
    np.testing.assert_allclose(log_w1, [height[-1] - total, -np.inf], rtol=1e-12)
    np.testing.assert_allclose(log_w0, [height[0] - total, 0.0], rtol=1e-12)
    assert log_path_weight(np.inf, 0.3, LADDER, ladder=True) == -np.inf
    drawn = draw_inv_temp(np.full(100, np.inf), LADDER, np.random.default_rng(1), ladder=True)
    assert np.all(drawn == 0)
    product = times_delta(np.array([-0.5, 0.0, 2.0]), np.array([3.0, np.inf]))
    assert np.array_equal(product, [[-1.5, 0.0, 6.0], [-np.inf, 0.0, np.inf]])
    for refused in (
        lambda: inv_temp_log_conditionals(np.inf),
        lambda: draw_inv_temp([np.inf], [(0.0, 0.0), (1.0, 0.0)], np.random.default_rng(1)),
    ):
        with pytest.raises(DataError, match="must be finite"):
            refused()


def test_a_rung_at_zero_that_has_seen_no_likelihood_above_zero() -> None:
    delta = np.where(np.arange(400).reshape(2, 200) % 2, np.inf, 0.5)
    beta = np.where(np.isinf(delta), 0.0, 1.0)
    both = two_sided_log_evidence(
        delta, beta, log_zeta=0.0, log_g=[(0.0, 0.0), (1.0, 0.0)], ladder=True
    )
    assert both is not None
    assert both.forward.value == both.backward.value == -np.inf


def test_log_evidence_of_weights_of_zero() -> None:
    one = np.array([[-np.inf, 0.0, np.log(2.0), -np.inf, np.log(3.0)]])
    estimate = log_evidence(one, np.zeros((1, 5)), log_zeta=0.4)
    assert estimate.value == pytest.approx(0.4 + np.log(6 / 5), rel=1e-12)


# The mass itself


def test_log_base_mass_of_independent_draws() -> None:
    reached = np.random.default_rng(5).random((4, 5000)) < 0.3
    mass = log_base_mass(reached)
    assert mass.value == pytest.approx(np.log(reached.mean()), rel=1e-14)
    assert mass.mcse == pytest.approx(np.sqrt(0.7 / 0.3 / reached.size), rel=0.15)
    assert mass.share == pytest.approx(reached.mean())
    assert not mass.nearly_whole


def test_log_base_mass_of_a_chain_has_the_chains_error() -> None:
    """Ten copies of each draw are worth one: the error is sqrt(10) larger."""
    reached = np.random.default_rng(6).random((4, 1000)) < 0.3
    slow = log_base_mass(np.repeat(reached, 10, axis=1))
    assert slow.mcse == pytest.approx(log_base_mass(reached).mcse, rel=0.2)


def test_log_base_mass_of_all_and_of_none() -> None:
    assert log_base_mass(np.ones((2, 8), dtype=bool)) == WHOLE_BASE == LogMass(0.0, 0.0)
    assert WHOLE_BASE.nearly_whole
    with pytest.raises(DataError, match="none of 16 draws"):
        log_base_mass(np.zeros((2, 8), dtype=bool))
    for shape in ((8,), (2, 0), (1, 8, 1)):
        with pytest.raises(DataError, match="needs draws"):
            log_base_mass(np.ones(shape))
    with pytest.raises(DataError, match="4 draws or more"):
        log_base_mass([[True, False, True]])


@pytest.mark.parametrize(
    ("value", "mcse"), [(0.1, 0.0), (np.nan, 0.0), (-np.inf, 0.0), (-1.0, -0.1), (-1.0, np.nan)]
)
def test_no_mass_is_refused(value: float, mcse: float) -> None:
    with pytest.raises(DataError, match="base"):
        LogMass(value, mcse)


def test_mass_added_to_an_estimate() -> None:
    added = LogMass(-2.0, 0.3).added_to(LogEvidence(1.5, 0.4))
    assert added.value == -0.5
    assert added.mcse == pytest.approx(0.5)


# Gaussian bases cut by a box


@pytest.mark.parametrize("sides", [(-1.0, 0.5), (2.0, 3.5), (-9.0, -6.0), (7.0, np.inf)])
def test_a_diagonal_base_in_a_box(sides: tuple[float, float]) -> None:
    base = gaussian_base([0.3, -1.0, 4.0], np.diag([1.0, 4.0, 0.25]))
    lower, upper = np.array([sides[0], -2.0, -np.inf]), np.array([sides[1], 0.5, np.inf])
    cut = cut_to_box(base, lower, upper)
    sd = np.sqrt(np.diag(base.covariance))
    exact = truncnorm((lower - base.mean) / sd, (upper - base.mean) / sd, base.mean, sd)
    np.testing.assert_allclose(cut.mean, exact.mean(), rtol=1e-7)
    # The density is higher by one over the mass.
    inside = cut.mean
    log_mass = float(np.sum(norm.logpdf(inside, base.mean, sd) - exact.logpdf(inside)))
    assert cut.mass.value == pytest.approx(log_mass, rel=1e-9, abs=1e-12)
    assert cut.mass.mcse == 0


def test_a_correlated_base_in_a_box() -> None:
    base = gaussian_base([0.5, -0.2], [[1.0, 0.7], [0.7, 2.0]])
    lower, upper = np.array([-1.0, -0.5]), np.array([1.2, 1.5])
    cut = cut_to_box(base, lower, upper)
    normal = multivariate_normal(base.mean, base.covariance)
    exact = np.log(float(normal.cdf(upper, lower_limit=lower)))
    assert 0 < cut.mass.mcse <= 0.003
    assert abs(cut.mass.value - exact) < 4 * cut.mass.mcse
    nodes, share = np.polynomial.legendre.leggauss(60)
    grid = [low + (high - low) * (nodes + 1) / 2 for low, high in zip(lower, upper, strict=True)]
    place = np.stack(np.meshgrid(*grid, indexing="ij"), axis=-1)
    weight = normal.pdf(place) * np.multiply.outer(share, share)
    mean = (weight[..., None] * place).sum(axis=(0, 1)) / weight.sum()
    np.testing.assert_allclose(cut.mean, mean, atol=4 * 1.0 / np.sqrt(40_000))
    again = cut_to_box(base, lower, upper)
    assert again.mass == cut.mass


def test_a_base_outside_its_box_is_refused() -> None:
    for covariance in (np.eye(2), np.array([[1.0, 0.5], [0.5, 1.0]])):
        base = gaussian_base([0.0, 0.0], covariance)
        with pytest.raises(DataError, match="hardly any of the base"):
            cut_to_box(base, np.full(2, 60.0), np.full(2, 61.0))
    with pytest.raises(DataError, match="as many"):
        cut_to_box(gaussian_base([0.0], [[1.0]]), np.zeros(2), np.ones(2))
