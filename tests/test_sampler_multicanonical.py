"""Multicanonical sampling: weights, histograms and log Z of a Gaussian against closed forms."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

import numpy as np
import pytest
from calibration import few_and_many, mean_square_bounds
from log_gaussian import log_gaussian
from scipy.integrate import quad
from scipy.stats import chi2, norm, t

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.evidence import log_evidence_between_chains
from harness.fit import Fit
from harness.model.python_target import Target, function_target
from harness.path import gaussian_base
from harness.samplers.band_weights import BandWeights, Flat, nested_weights
from harness.samplers.geometric_path import GeometricPath
from harness.samplers.kernels import Hmc
from harness.samplers.multicanonical import (
    MULTICANONICAL,
    MulticanonicalPath,
    multicanonical,
)

DIMENSION, SD = 3, 3.0
BASE = gaussian_base(np.zeros(DIMENSION), SD**2 * np.eye(DIMENSION), log_zeta=0.5)
LOG_Z = 0.5 * DIMENSION * np.log(2 * np.pi)
# The log likelihood is that at the mode minus SHRINK r^2 / 2, where r^2 / SD^2 is chi-square.
SHRINK = 1 - SD**-2
HIGHEST = DIMENSION * np.log(SD) + LOG_Z - BASE.log_zeta


def gaussian() -> Target:
    """A standard Gaussian without its constant."""
    return function_target("gaussian", lambda x: (-0.5 * np.square(x).sum(axis=1), -x), DIMENSION)


def mass_above(log_likelihood: Any) -> Any:
    """The base's mass above log likelihoods."""
    return chi2.cdf(2 * (HIGHEST - np.asarray(log_likelihood)) / SHRINK / SD**2, DIMENSION)


def exact_weights(bands: int, flat: Flat) -> BandWeights:
    """Weights from a nested run with next to no error: its volumes are the true ones."""
    log_volume = -np.arange(1, 100_000) / 12_000
    quantile = chi2.ppf(np.exp(log_volume), DIMENSION)
    value = HIGHEST - 0.5 * SHRINK * SD**2 * quantile
    return nested_weights(value, log_volume, bands=bands, flat=flat, last=1000)


def shares(weights: BandWeights) -> FloatArray:
    """Share of each band in the multicanonical density, by quadrature over the log likelihood."""

    def density(value: float) -> float:
        height = float(weights.height(np.array([value]))[0])
        scale = SHRINK * SD**2 / 2
        return float(chi2.pdf((HIGHEST - value) / scale, DIMENSION) / scale * np.exp(height))

    middle = (weights.edge[1:] + weights.edge[:-1]) / 2
    ends = np.concatenate([[HIGHEST - 200], weights.edge[1:-1], [HIGHEST]])
    mass = np.array(
        [
            quad(density, low, high, points=[m] if low < m < high else None, limit=200)[0]
            for low, high, m in zip(ends[:-1], ends[1:], middle, strict=True)
        ]
    )
    return np.asarray(mass / mass.sum())


# Weights


@pytest.mark.parametrize("flat", get_args(Flat))
def test_weights_are_those_of_the_true_masses(flat: Flat) -> None:
    weights = exact_weights(12, flat)
    assert weights.share.size == 12
    ends = np.concatenate([[1.0], mass_above(weights.edge[1:-1]), [0.0]])
    # A band ends at a particle, whose volume is known to one part in 12,000.
    expected = np.log(weights.share) - np.log(-np.diff(ends))
    assert weights.log_weight == pytest.approx(expected, abs=2e-3)
    steps = -np.diff(np.log(ends[:-1]))
    assert steps == pytest.approx(np.full(11, steps.mean()), abs=2e-3)
    if flat == "energy":
        assert weights.share == pytest.approx(
            np.diff(weights.edge) / (weights.edge[-1] - weights.edge[0])
        )
        assert mass_above(weights.edge[0]) == pytest.approx(0.95, abs=1e-3)
    else:
        assert weights.share == pytest.approx(np.full(12, 1 / 12))


@pytest.mark.parametrize("flat", get_args(Flat))
def test_with_true_masses_the_histogram_is_flat_but_for_the_shape_within_bands(flat: Flat) -> None:
    """Far less uneven than without weights, and less so with more bands."""
    weights, finer = exact_weights(12, flat), exact_weights(60, flat)
    without = replace(weights, log_weight=np.zeros(12))
    # Next to the first and the last band, in which h is constant, the histogram is less even.
    none, some, more = (
        np.ptp(np.log(shares(each) / each.share)[2:-2]) for each in (without, weights, finer)
    )
    assert some < none / 20
    assert more < some


def test_log_weights_between_and_beyond_the_middles() -> None:
    weights = BandWeights(
        np.array([0.0, 2.0, 3.0, 5.0]), np.full(3, 1 / 3), np.array([1.0, 4.0, 3.0]), np.ones(2)
    )
    at = np.array([-np.inf, -7.0, 1.0, 1.75, 2.5, 3.25, 4.0, 90.0])
    assert weights.height(at) == pytest.approx([1.0, 1.0, 1.0, 2.5, 4.0, 3.5, 3.0, 3.0])
    between = np.array([-np.inf, -7.0, 0.9, 1.75, 2.4, 3.25, 4.5])
    assert weights.slope(between) == pytest.approx([0, 0, 0, 2, 2, -2 / 3, 0])
    assert weights.band(np.array([-np.inf, 0.5, 2.0, 2.9, 3.0, 8.0])).tolist() == [0, 0, 1, 1, 2, 2]
    assert weights.counts(np.array([[0.5, 2.5], [2.6, 9.0]])).tolist() == [1, 2, 1]


def test_a_histogram_corrects_weights_of_nothing_at_once() -> None:
    """If the density within a band is the base's, counts are masses times weights."""
    mass, share = np.array([0.9, 0.09, 0.01]), np.array([0.2, 0.3, 0.5])
    weights = BandWeights(np.arange(4.0), share, np.zeros(3), np.zeros(2))
    better = weights.after(1e6 * mass)
    assert np.diff(better.log_weight) == pytest.approx(np.diff(np.log(share / mass)))
    # Another histogram, which is as wished, changes nothing but what is known.
    again = better.after(1e3 * share)
    assert again.log_weight == pytest.approx(better.log_weight)
    assert np.all(again.known > better.known)


def test_histograms_count_by_the_inverse_variance_of_their_ratios() -> None:
    """Berg (1996): the mean of all estimates of a difference, weighted by n m / (n + m)."""
    share, mass = np.full(2, 0.5), np.array([0.7, 0.3])
    rng = np.random.default_rng(1)
    weights = BandWeights(np.arange(3.0), share, np.zeros(2), np.zeros(1))
    estimate, behind = [], []
    for size in (200, 50, 1000):
        tilted = mass * np.exp(weights.log_weight)
        counts = rng.multinomial(size, tilted / tilted.sum()).astype(float)
        estimate.append(np.diff(weights.log_weight)[0] - np.log(counts[1] / counts[0]))
        behind.append(counts[0] * counts[1] / counts.sum())
        weights = weights.after(counts)
        expected = np.average(estimate, weights=behind)
        assert np.diff(weights.log_weight)[0] == pytest.approx(expected)
        assert weights.known == pytest.approx([sum(behind)])


def test_bands_that_nobody_has_seen() -> None:
    weights = BandWeights(np.arange(5.0), np.full(4, 0.25), np.zeros(4), np.zeros(3))
    better = weights.after(np.array([8.0, 2.0, 0.0, 0.0]))
    assert np.diff(better.log_weight) == pytest.approx([np.log(4), 0, 0])
    assert better.known == pytest.approx([16 / 10, 0, 0])


@pytest.mark.parametrize(
    ("value", "bands"), [(np.zeros(50), 5), (np.arange(50.0), 1), (np.full(50, -np.inf), 5)]
)
def test_bands_that_cannot_be_made(value: FloatArray, bands: int) -> None:
    with pytest.raises(DataError, match=r"bands"):
        nested_weights(value, -np.arange(1, 51) / 10, bands=bands)


def test_weights_that_are_refused() -> None:
    good: dict[str, FloatArray] = {
        "edge": np.arange(3.0),
        "share": np.full(2, 0.5),
        "log_weight": np.zeros(2),
        "known": np.zeros(1),
    }
    BandWeights(**good)
    for bad in (
        {"edge": np.arange(2.0)},
        {"edge": np.zeros(3)},
        {"share": np.array([0.5, 0.4])},
        {"log_weight": np.array([0.0, np.inf])},
        {"known": np.zeros(2)},
    ):
        with pytest.raises(DataError):
            BandWeights(**(good | bad))


# Log Z from weights


def test_log_z_between_chains_and_its_error() -> None:
    """Draws of three states: estimates scatter around the sum over states as their errors say."""
    rng = np.random.default_rng(3)
    gamma, base, density = np.array([0.2, 3.0, 1.0]), np.array([0.6, 0.3, 0.1]), np.full(3, 1 / 3)
    runs, value, error = 500, [], []
    for _ in range(runs):
        state = rng.choice(3, p=density, size=(10, 60))
        found = log_evidence_between_chains(
            np.log(gamma)[state] - 0.7, np.log(base)[state], log_zeta=0.7
        )
        value.append(found.value)
        error.append(found.mcse)
    spread = np.var(value)
    assert abs(np.mean(value) - np.log(gamma.sum())) < 4 * np.sqrt(spread / runs) + spread
    # The variance of 500 values has a relative error of sqrt(2 / 500), the mean of their squared
    # errors one of sqrt(2 / 9 / 500); together 0.067, of which 4 are allowed.
    assert abs(np.mean(np.square(error)) / spread - 1) < 0.27


def test_weights_of_which_no_log_z_can_be_made() -> None:
    good = np.zeros((2, 5))
    for one, zero in (
        (good[:1], good[:1]),
        (good, good[:, :4]),
        (np.full((2, 5), -np.inf), good),
        (np.full((2, 5), np.nan), good),
    ):
        with pytest.raises(DataError):
            log_evidence_between_chains(one, zero)


# The sampler


def test_the_density_has_the_gradient_that_it_says() -> None:
    path = MulticanonicalPath(gaussian(), BASE)
    path.weights = exact_weights(12, "energy")
    rng = np.random.default_rng(2)
    points = rng.standard_normal((40, DIMENSION)) * np.geomspace(0.1, 4, 40)[:, None]
    state = path.state(points)
    assert isinstance(path, GeometricPath)
    rise = path.log_density(state, 1.0) - state.log_base
    assert rise == pytest.approx(path.weights.height(-path.delta(state)))
    step = 1e-6
    for axis in range(DIMENSION):
        shift = step * np.eye(DIMENSION)[axis]
        ends = [path.log_density(path.state(points + sign * shift), 1.0) for sign in (1, -1)]
        numeric = (ends[0] - ends[1]) / (2 * step)
        assert path.gradient(state, 1.0)[:, axis] == pytest.approx(numeric, abs=1e-6, rel=1e-6)


QUICK: dict[str, Any] = {
    "bands": 15, "particles": 100, "pilots": 2, "pilot_draws": 40, "draws": 200, "warmup": 50
}  # fmt: skip


@few_and_many(3, 40)
@pytest.mark.parametrize("flat", get_args(Flat))
def test_log_z_and_moments_of_a_gaussian(flat: Flat, runs: int) -> None:
    z, moments = [], []
    for seed in range(runs):
        fit = multicanonical(gaussian(), BASE, flat=flat, seed=seed, **QUICK)
        score = (fit.log_evidence.value - LOG_Z) / fit.log_evidence.mcse
        # With ten chains the error is that of Student's t with 9 degrees of freedom.
        z.append(norm.ppf(t.cdf(score, 9)))
        square = fit.expectation(lambda draws: draws["x"] ** 2)
        moments.append((square.value - 1) / square.mcse)
    low, high = mean_square_bounds(runs)
    assert low < np.mean(np.square(z)) < high
    assert abs(np.mean(z)) < 4 / np.sqrt(runs)
    assert np.abs(np.mean(moments, axis=0)).max() < 4.5 / np.sqrt(runs)


def test_bands_are_visited_as_the_weights_say() -> None:
    """Against quadrature with the weights that were found, which are flat as far as they can be."""
    fit = multicanonical(gaussian(), BASE, flat="volume", seed=2, **QUICK | {"draws": 1000})
    weights = found_weights(fit)
    expected = shares(weights)
    value = fit.sample_stats["log_likelihood"].to_numpy()
    by_chain = np.array([weights.counts(row) / row.size for row in value])
    error = by_chain.std(axis=0, ddof=1) / np.sqrt(len(value))
    # The largest of 15 scores of Student's t with 9 degrees of freedom: 1e-4 is beyond.
    assert np.abs((by_chain.mean(axis=0) - expected) / error).max() < t.isf(1e-4 / 30, 9)
    assert fit.tree.attrs["band_visited"] == pytest.approx(by_chain.mean(axis=0))
    # A log weight has an error of at most sqrt(H / N), with H near 1.9 and N = 100 particles.
    error_of_weights = np.sqrt(1.9 / 100)
    centred = np.log(expected / weights.share)[1:-1]
    assert np.abs(centred - centred.mean()).max() < 4 * error_of_weights + 0.3


def found_weights(fit: Fit) -> BandWeights:
    found = fit.tree.attrs
    edge, share = np.array(found["band_edge"]), np.array(found["band_wanted"])
    return BandWeights(edge, share, np.array(found["band_log_weight"]), np.zeros(share.size - 1))


def test_histograms_alone_find_the_weights() -> None:
    """From no weights at all, where the last bands are never seen at first."""
    edge = exact_weights(8, "volume").edge
    path = MulticanonicalPath(gaussian(), BASE)
    path.weights = BandWeights(edge, np.full(8, 1 / 8), np.zeros(8), np.zeros(7))
    rng = np.random.default_rng(5)
    state = path.state(BASE.sample(rng, 50))
    kernel = Hmc(leapfrog_steps=3)
    assert shares(path.weights)[-1] < 2e-3
    for _ in range(12):
        counts = np.zeros(8)
        for iteration in range(40):
            state = kernel.move(path, state, 1.0, 0.4, rng).state
            if iteration >= 20:
                counts += path.weights.counts(path.log_likelihood(state))
        path.weights = path.weights.after(counts)
    found = shares(path.weights)
    assert found.min() > 0.5 / 8
    assert found.max() < 2 / 8


def test_a_target_that_is_zero_on_half_of_the_base() -> None:
    """Its log Z is that of the half, with no correction for the base's lost mass."""

    def half(x: FloatArray) -> tuple[FloatArray, FloatArray]:
        inside = x[:, 0] > 0
        value = np.where(inside, -0.5 * np.square(x).sum(axis=1), -np.inf)
        return value, np.where(inside[:, None], -x, np.nan)

    longer = QUICK | {"draws": 400, "pilot_draws": 80}
    fit = multicanonical(function_target("half", half, DIMENSION), BASE, seed=1, **longer)
    error = fit.log_evidence.value - (LOG_Z - np.log(2))
    assert abs(error) < t.isf(5e-5, 9) * fit.log_evidence.mcse
    assert fit.log_evidence.mcse < 0.15  # so that a base cut by half, log 2, would be noticed
    assert float(fit.posterior["x"][..., 0].min()) > 0


def test_given_weights_are_used_unchanged_and_seeds_are_kept() -> None:
    weights = exact_weights(10, "volume")

    def run(seed: int) -> Fit:
        return multicanonical(
            gaussian(), BASE, weights=weights, chains=4, draws=20, warmup=5,
            kernel=Hmc(leapfrog_steps=2), seed=seed,
        )  # fmt: skip

    fit = run(1)
    assert np.array_equal(fit.tree.attrs["band_log_weight"], weights.log_weight)
    assert fit.gradients == 4 * (1 + 25 * 2)
    draws = [each.tree["extended"]["log_w1"].to_numpy() for each in (fit, run(1), run(2))]
    assert np.array_equal(draws[0], draws[1])
    assert not np.array_equal(draws[0], draws[2])


def test_an_experiment_runs_it_on_a_model() -> None:
    model, truth = log_gaussian()
    fit = MULTICANONICAL.sample(
        model, nuts=None, seed=1, compiled=None,
        base=gaussian_base(truth.mean + 0.3, 2 * truth.covariance),
        bands=5, particles=40, pilots=1, pilot_draws=5, chains=3, draws=20, warmup=5,
    )  # fmt: skip
    assert set(fit.posterior) == {"x", "scale"}
    assert float(fit.posterior["scale"].min()) > 0


def test_bad_input_is_one_clear_error() -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"chains": 1}, "2 chains"),
        ({"draws": 0}, "draw"),
        ({"pilots": -1}, "pilot"),
        ({"step_size": 0.0}, "step size"),
        ({"bands": 1}, "bands"),
        ({"flat": "entropy"}, "energy or volume"),
    ]
    for bad, message in cases:
        with pytest.raises(DataError, match=message):
            multicanonical(gaussian(), BASE, seed=1, **(QUICK | {"particles": 10} | bad))
