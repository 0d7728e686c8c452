"""The equi-energy sampler: rings, detailed balance of jumps, invariance, errors, the mixture."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from known_targets import one_dimensional_mixture, ten_dimensional_gaussian
from log_gaussian import log_gaussian
from scipy.stats import chi2, kstest, norm

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.model.python_target import function_target
from harness.models.gaussian_mixture import kou_mixture
from harness.path import gaussian_base
from harness.samplers.equi_energy import EQUI_ENERGY, Level, Rings, equi_energy, flattened
from harness.samplers.geometric_path import GeometricPath

ENERGIES = np.array([0.0, 2.0, 5.0])
TEMPERATURES = np.array([1.0, 3.0, 9.0])


def mixture_draws(rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    noise = rng.standard_normal(shape)
    return np.where(rng.random(shape) < 0.3, -3 + 0.4 * noise, 2 + 1.2 * noise)


def test_rings_hold_what_the_level_visited() -> None:
    rng = np.random.default_rng(0)
    points = rng.normal(0, 3, (3, 400, 1))
    log_gamma = -0.5 * points[..., 0] ** 2
    rings = Rings(points, log_gamma, ENERGIES, 3.0, 2.0)
    own = np.digitize(-log_gamma, [2.0, 5.0])
    chain = np.repeat(np.arange(3), 9000)
    asked = np.tile(np.repeat([-1.0, -3.0, -40.0], 3000), 3)
    drawn, value = rings.draw(chain, asked, rng)
    np.testing.assert_array_equal(value, -0.5 * drawn[:, 0] ** 2)
    for c in range(3):
        for ring, log_density in enumerate((-1.0, -3.0, -40.0)):
            members = points[c, own[c] == ring, 0]
            here = drawn[(chain == c) & (asked == log_density), 0]
            assert rings.size(np.array([c]), np.array([log_density]))[0] == len(members)
            assert set(here) <= set(members)
            # Each of m members is as likely: chi-squared with m - 1 degrees of freedom.
            number = np.array([np.count_nonzero(here == member) for member in members])
            expected = len(here) / len(members)
            statistic = np.sum((number - expected) ** 2 / expected)
            assert chi2.sf(statistic, len(members) - 1) > 0.01 / 9


def test_jumps_are_in_detailed_balance() -> None:
    """Six points in two rings, jumps alone: the flow between any two is equal both ways."""
    energy = np.array([0.3, 0.8, 1.7, 2.4, 3.1, 4.9])
    points, log_gamma = np.arange(6.0)[:, None], -energy
    bounds = np.array([0.0, 2.0])
    # A record in exact proportion to the level above: its own density, in 20,000 draws.
    hot = np.exp(flattened(log_gamma, 3.0, 2.0))
    visits = np.rint(2_000_000 * hot / hot.sum()).astype(int)
    record = np.repeat(np.arange(6), visits)
    path = GeometricPath(
        function_target("none", lambda x: (x[:, 0], x), 1), gaussian_base([0.0], [[1.0]])
    )
    chains, rng = 200_000, np.random.default_rng(6)
    rings = Rings(points[record][None], log_gamma[record][None], bounds, 3.0, 2.0)
    target = np.exp(log_gamma) / np.exp(log_gamma).sum()
    start = rng.choice(6, size=chains, p=target)

    class OneRecord(Rings):
        """The same record for every chain."""

        def __init__(self) -> None:
            self.__dict__ = rings.__dict__

        def draw(
            self, chain: np.ndarray, log_gamma: FloatArray, rng: np.random.Generator
        ) -> tuple[FloatArray, FloatArray]:
            return rings.draw(0 * chain, log_gamma, rng)

        def size(self, chain: np.ndarray, log_gamma: FloatArray) -> np.ndarray:
            return rings.size(0 * chain, log_gamma)

    level = Level(path, 1.0, -np.inf, np.eye(1), 1.0, OneRecord())
    made = level.move(points[start], log_gamma[start], rng)
    end = made.points[:, 0].astype(int)
    flow = np.zeros((6, 6))
    np.add.at(flow, (start, end), 1)
    assert made.jumped.mean() > 0.5
    assert np.all(flow[:3, 3:] == 0)  # never out of the ring
    difference, total = flow - flow.T, flow + flow.T
    # Fifteen pairs, of which six can have a flow: 3.5 standard errors.
    assert np.all(np.abs(difference) <= 3.5 * np.sqrt(total))
    assert np.all(flow[:3, :3] > 0)


def test_exact_draws_stay_exact() -> None:
    """Walk and jumps, given exact draws of the level above in each chain's rings."""
    known, rng = one_dimensional_mixture(), np.random.default_rng(2)
    chains, record = 20_000, 60
    # Level above: T = 1 and no flat part, the target itself, whose exact draws are at hand.
    above = mixture_draws(rng, (chains, record))[..., None]
    value = known.target.log_density(above.reshape(-1, 1))[0].reshape(chains, record)
    rings = Rings(above, value, np.array([-2.0, 0.5, 1.5]), 1.0, -np.inf)
    level = Level(
        GeometricPath(known.target, known.base), 1.0, -np.inf, np.array([[0.8]]), 0.5, rings
    )
    points = mixture_draws(rng, (chains, 1))
    log_gamma = known.target.log_density(points)[0]
    jumped = 0.0
    for _ in range(2):
        made = level.move(points, log_gamma, rng)
        points, log_gamma = made.points, made.log_gamma
        jumped += made.jumped.mean() / 2
    assert jumped > 0.3
    share = 0.3 * norm.cdf(points[:, 0], -3, 0.4) + 0.7 * norm.cdf(points[:, 0], 2, 1.2)
    assert kstest(share, "uniform").pvalue > 0.01


def test_levels_are_hot_and_flat() -> None:
    """Below H the density is constant, above it exp(-h / T)."""
    log_gamma = -np.array([1.0, 1.9, 2.0, 3.5, np.inf])
    expected = [-2 / 4, -2 / 4, -2 / 4, -3.5 / 4, -np.inf]
    np.testing.assert_array_equal(flattened(log_gamma, 4.0, 2.0), expected)


@pytest.mark.slow
def test_mean_with_honest_errors() -> None:
    known = one_dimensional_mixture()
    z = np.empty(40)
    for seed in range(40):
        fit = equi_energy(
            known.target,
            known.base,
            scale=0.4,
            temperatures=TEMPERATURES,
            energies=ENERGIES,
            jump_probability=0.2,
            chains=12,
            draws=300,
            warmup=60,
            seed=seed,
        )
        mean = fit.expectation(lambda draws: draws["x"])
        z[seed] = float((mean.value - known.mean)[0] / mean.mcse[0])
    # Mean squares of 40 z scores: chi^2_40 / 40 lies outside with 0.8% and 0.1%.
    assert chi2.cdf(40 * 0.5, 40) < 0.01
    assert chi2.sf(40 * 1.8, 40) < 0.01
    assert 0.5 < np.mean(z**2) < 1.8


def test_the_mixture_of_twenty_modes() -> None:
    mixture = kou_mixture("a")
    target = function_target("mixture", mixture.log_density_and_gradient, 2)
    base = gaussian_base(np.full(2, 5.0), 9 * np.eye(2))
    fit = equi_energy(target, base, scale=0.25 / 3, chains=40, draws=2500, warmup=500, seed=1)
    mean = fit.expectation(lambda draws: draws["x"])
    assert np.all(mean.mcse < 0.15)
    assert np.all(np.abs(mean.value - mixture.truth.expected("x")) < 4 * mean.mcse)
    points = fit.posterior["x"].to_numpy()
    nearest = np.linalg.norm(points[..., None, :] - mixture.mean, axis=-1).argmin(axis=-1)
    assert len(np.unique(nearest)) == 20
    # Without jumps every chain stays near the mode that it fell into.
    alone = equi_energy(
        target,
        base,
        scale=0.25 / 3,
        jump_probability=0,
        chains=40,
        draws=300,
        warmup=200,
        seed=1,
    )
    spread = alone.posterior["x"].std("draw").mean().item()
    assert spread < 0.4 * fit.posterior["x"].std("draw").mean().item()


def test_moments_of_a_gaussian() -> None:
    known = ten_dimensional_gaussian()
    fit = equi_energy(
        known.target,
        known.base,
        scale=0.25,
        temperatures=[1, 2, 4],
        energies=[5, 8, 14],
        chains=60,
        draws=800,
        warmup=400,
        seed=2,
    )
    mean = fit.expectation(lambda draws: draws["x"])
    assert np.all(np.abs(mean.value - known.mean) < 4.5 * mean.mcse)
    assert np.all(mean.mcse < 0.3)


def test_same_seed_same_draws_and_cost() -> None:
    known = one_dimensional_mixture()

    def run(seed: int) -> FloatArray:
        fit = equi_energy(
            known.target,
            known.base,
            scale=0.5,
            temperatures=[1.0, 4.0],
            energies=[0.0, 2.0],
            chains=5,
            draws=60,
            warmup=20,
            seed=seed,
        )
        # The start of each level: a density to find it within the support, a gradient.  Then a
        # density an iteration, but for jumps.
        assert fit.gradients == 2 * 5
        assert 5 * (80 * 2) * 0.9 < fit.tree.attrs["densities"] < 5 * (80 * 2) + 2 * 5
        assert fit.tree.attrs["acceptance_of_levels"].shape == (2,)
        return np.asarray(fit.posterior["x"])

    first = run(8)
    np.testing.assert_array_equal(first, run(8))
    assert not np.array_equal(first, run(9))


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"temperatures": []}, "one level"),
        ({"temperatures": [1, 2]}, "as many"),
        ({"temperatures": [2.0, 3.0, 9.0]}, "ascend"),
        ({"energies": [0.0, 5.0, 2.0]}, "ascend"),
        ({"energies": [0.0, 5.0, np.inf]}, "finite"),
        ({"scale": 0.0}, "positive"),
        ({"jump_probability": 1.0}, "jump"),
        ({"chains": 0}, "1 chain"),
        ({"draws": 2}, "4 draws"),
        ({"warmup": -1}, "warm-up"),
    ],
)
def test_bad_settings_are_one_clear_error(settings: dict[str, Any], says: str) -> None:
    known = one_dimensional_mixture()
    given: dict[str, Any] = {"temperatures": TEMPERATURES, "energies": ENERGIES}
    given |= {"scale": 1.0, "seed": 1} | settings
    with pytest.raises(DataError, match=says):
        equi_energy(known.target, known.base, **given)


def test_an_experiment_runs_it_on_a_model() -> None:
    pytest.importorskip("stanli", reason="stanli, which evaluates Stan programs, is missing")
    model, truth = log_gaussian()
    base = gaussian_base(truth.mean + 0.3, 2 * truth.covariance)
    fit = EQUI_ENERGY.sample(
        model,
        nuts=None,
        seed=1,
        compiled=None,
        base=base,
        scale=0.5,
        temperatures=TEMPERATURES,
        energies=10 + ENERGIES,
        chains=8,
        draws=400,
        warmup=200,
    )
    assert fit.tree.attrs["method"] == EQUI_ENERGY.name
    assert set(fit.posterior) == {"x", "scale"}
    mean = fit.expectation(lambda draws: draws["x"])
    exact = truth.mean[:4].reshape(2, 2).T  # column-major
    # 4 standard errors of four coordinates, and a quarter for what they are known to.
    assert np.all(np.abs(mean.value - exact) < 5 * mean.mcse)
    assert np.all(mean.mcse < 0.3)
