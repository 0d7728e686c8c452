"""Doubly intractable posteriors: kernels by enumeration, estimates against known posteriors."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp

from harness.arrays import FloatArray
from harness.diagnosis import diagnose
from harness.errors import DataError, SamplingError
from harness.intractable import (
    IntractableProblem,
    Walk,
    auxiliary_variables,
    exchange,
    exponential_family,
    metropolis,
    one_at_a_time,
)
from harness.intractable.approximate import log_bethe, log_mean_field
from harness.intractable.auxiliary import AuxiliaryVariables
from harness.intractable.bridging import Bridge
from harness.intractable.exchange import Exchange
from harness.intractable.known_constant import KnownConstant
from harness.intractable.langevin import langevin
from harness.intractable.run import Correction, _step
from harness.report import FitReport

# A tiny model: two spins in {-1, 1}, theta one of three values of (J, h), all priors and proposals
# uneven.  Every random choice is enumerated, so that errors are those of rounding.
STATES = np.array(list(product((-1.0, 1.0), repeat=2)))
FEATURES = np.column_stack([STATES[:, 0] * STATES[:, 1], STATES @ [1.0, 0.5]])
THETA = np.array([[0.2, -0.4], [0.9, 0.3], [-0.5, 1.1]])
PRIOR = np.array([0.5, 0.2, 0.3])
PROPOSE = np.array([[0.1, 0.6, 0.3], [0.5, 0.2, 0.3], [0.25, 0.45, 0.3]])
OBSERVED = 2
LOG_F = THETA @ FEATURES.T
LIKELIHOOD = np.exp(LOG_F - logsumexp(LOG_F, axis=1, keepdims=True))
POSTERIOR = PRIOR * LIKELIHOOD[:, OBSERVED]
POSTERIOR /= POSTERIOR.sum()
ESTIMATE = np.array([0.4, 0.6])

Operator = Callable[[FloatArray], FloatArray]
"""Probabilities of the four states to a transition matrix, [from, to]."""


def index(theta: FloatArray) -> Any:
    return np.abs(theta[:, None] - THETA).sum(axis=2).argmin(axis=1)


def heat_bath(p: FloatArray, site: int) -> FloatArray:
    step = np.zeros((4, 4))
    for i, j in product(range(4), repeat=2):
        if STATES[i, 1 - site] == STATES[j, 1 - site]:
            step[i, j] = p[j] / p[STATES[:, 1 - site] == STATES[i, 1 - site]].sum()
    return step


def random_order(p: FloatArray) -> FloatArray:
    one, two = heat_bath(p, 0), heat_bath(p, 1)
    return 0.5 * (one @ two + two @ one)


def fixed_order(p: FloatArray) -> FloatArray:
    return heat_bath(p, 0) @ heat_bath(p, 1)


def between(start: FloatArray, end: FloatArray, share: float) -> FloatArray:
    log_p = ((1 - share) * start + share * end) @ FEATURES.T
    p: FloatArray = np.exp(log_p - logsumexp(log_p))
    return p


def path_probability(
    path: tuple[int, ...], start: FloatArray, end: FloatArray, operator: Operator
) -> float:
    levels = len(path) - 1
    chance = float(between(start, end, 0.0)[path[0]])
    for k in range(1, levels + 1):
        chance *= operator(between(start, end, k / (levels + 1)))[path[k - 1], path[k]]
    return chance


def scripted(paths: list[tuple[int, ...]]) -> tuple[IntractableProblem, Any]:
    """Make the problem whose draws and transitions follow given paths, a row each."""
    at = np.array(paths)

    def log_factor(theta: FloatArray, data: FloatArray) -> FloatArray:
        features = np.column_stack([data[:, 0] * data[:, 1], data @ [1.0, 0.5]])
        total: FloatArray = (theta * features).sum(axis=1)
        return total

    def transition(
        data: FloatArray, start: FloatArray, end: FloatArray, share: float, rng: Any
    ) -> FloatArray:
        level = round(share * at.shape[1])
        np.testing.assert_array_equal(data, STATES[at[:, level - 1]])
        following: FloatArray = STATES[at[:, level]]
        return following

    problem = IntractableProblem(
        "two-spins",
        STATES[OBSERVED],
        2,
        log_prior=lambda theta: np.log(PRIOR[index(theta)]),
        log_factor=log_factor,
        simulate=lambda theta, rng: STATES[at[:, 0]],
    )
    return problem, transition


def acceptance(
    problem: IntractableProblem,
    correction: Correction,
    here: list[int],
    there: list[int],
    memory: FloatArray,
) -> FloatArray:
    """Return the library's own acceptance probabilities of moves between values of theta."""
    points, proposed = THETA[here].copy(), THETA[there]
    log_ratio = np.log(PROPOSE[there, here]) - np.log(PROPOSE[here, there])
    value = problem.prior(points) + problem.likelihood(points)
    rng = np.random.default_rng(0)

    def move(at: FloatArray, rng: Any) -> tuple[FloatArray, FloatArray]:
        return proposed, log_ratio

    return _step(problem, correction, move, points, value, memory, rng)


def exchange_error(levels: int, operator: Operator, bridge: type[Bridge] = Bridge) -> float:
    """Return the largest difference between the posterior before and after a step."""
    moves = [(i, j, path) for i, j in product(range(3), repeat=2)
             for path in product(range(4), repeat=levels + 1)]  # fmt: skip
    problem, transition = scripted([path for *_, path in moves])
    correction = Exchange(bridge(levels, transition))
    here, there = [i for i, *_ in moves], [j for _, j, _ in moves]
    chance = acceptance(problem, correction, here, there, np.zeros(len(moves)))
    matrix = np.zeros((3, 3))
    for (i, j, path), accepted in zip(moves, chance, strict=True):
        weight = PROPOSE[i, j] * path_probability(path, THETA[j], THETA[i], operator)
        matrix[i, j] += weight * accepted
        matrix[i, i] += weight * (1 - accepted)
    np.testing.assert_allclose(matrix.sum(axis=1), 1.0, atol=1e-14)
    return float(np.abs(POSTERIOR @ matrix - POSTERIOR).max())


@pytest.mark.parametrize("levels", [0, 1, 2])
def test_exchange_keeps_the_posterior(levels: int) -> None:
    assert exchange_error(levels, random_order) < 1e-15


class Misprinted(Bridge):
    """The product of the thesis's (5.26), which ends at K - 1."""

    def log_ratio(self, *arguments: Any) -> FloatArray:
        problem, start, end, rng = arguments
        data, _ = problem.draw(start, rng)
        share = 1 / (self.levels + 1)
        total = np.zeros(len(start))
        for k in range(self.levels):
            total += share * (problem.likelihood(end, data) - problem.likelihood(start, data))
            assert self.transition is not None
            data = self.transition(data, start, end, (k + 1) * share, rng)
        return total


def test_what_the_thesis_misprints_is_wrong() -> None:
    """A product to K - 1; and transitions in a fixed order, which are not reversible."""
    assert exchange_error(0, random_order, Misprinted) > 0.03
    assert exchange_error(1, random_order, Misprinted) > 0.03
    assert exchange_error(2, fixed_order) > 1e-5


def auxiliary_error(levels: int, operator: Operator) -> float:
    """Return the largest change of the law of theta and its auxiliary data in a step."""
    paths = list(product(range(4), repeat=levels + 1))
    stationary = np.zeros((3, len(paths)))
    forward = np.zeros((3, len(paths)))
    for i, (m, path) in product(range(3), enumerate(paths)):
        forward[i, m] = path_probability(path, THETA[i], ESTIMATE, operator)
        chance = between(THETA[i], ESTIMATE, 1.0)[path[-1]]
        for k in range(levels, 0, -1):  # backwards, by reversed operators
            p = between(THETA[i], ESTIMATE, k / (levels + 1))
            step = operator(p)[path[k - 1], path[k]]
            chance *= step * p[path[k - 1]] / p[path[k]]
        stationary[i, m] = POSTERIOR[i] * chance
    assert stationary.sum() == pytest.approx(1, abs=1e-14)
    rows = list(product(range(3), range(len(paths)), range(3), range(len(paths))))
    old, transition = scripted([paths[m] for _, m, _, _ in rows])
    here = THETA[[i for i, *_ in rows]]
    own = AuxiliaryVariables(ESTIMATE, Bridge(levels, transition))
    memory = own.start(old, here, np.random.default_rng(0))
    new, transition = scripted([paths[n] for *_, n in rows])
    correction = AuxiliaryVariables(ESTIMATE, Bridge(levels, transition))
    there = [j for _, _, j, _ in rows]
    chance = acceptance(new, correction, [i for i, *_ in rows], there, memory)
    after = np.zeros_like(stationary)
    for (i, m, j, n), accepted in zip(rows, chance, strict=True):
        weight = stationary[i, m] * PROPOSE[i, j] * forward[j, n]
        after[j, n] += weight * accepted
        after[i, m] += weight * (1 - accepted)
    return float(np.abs(after - stationary).max())


def test_auxiliary_variables_keep_the_posterior() -> None:
    """With bridges also if their transitions are not reversible."""
    assert auxiliary_error(0, random_order) < 1e-15
    assert auxiliary_error(1, random_order) < 1e-15
    assert auxiliary_error(1, fixed_order) < 1e-15


def test_a_known_constant_keeps_the_posterior() -> None:
    moves = list(product(range(3), repeat=2))
    problem, _ = scripted([(0,) for _ in moves])
    log_z = logsumexp(LOG_F, axis=1)
    correction = KnownConstant(lambda theta: log_z[index(theta)])
    here, there = [i for i, _ in moves], [j for _, j in moves]
    memory = correction.start(problem, THETA[here], np.random.default_rng(0))
    chance = acceptance(problem, correction, here, there, memory)
    matrix = np.diag(np.ones(3))
    for (i, j), accepted in zip(moves, chance, strict=True):
        matrix[i, j] += PROPOSE[i, j] * accepted
        matrix[i, i] -= PROPOSE[i, j] * accepted
    assert np.abs(POSTERIOR @ matrix - POSTERIOR).max() < 1e-15


# A Gaussian precision with Gamma(1, 1) as its prior and one observation, 1: Gamma(1.5, 1.5).


def precision(**changes: Any) -> IntractableProblem:
    settings: dict[str, Any] = {
        "name": "precision",
        "observed": np.ones(1),
        "dimension": 1,
        "log_prior": lambda theta: np.where(theta[:, 0] > 0, -theta[:, 0], -np.inf),
        "log_factor": lambda theta, y: -0.5 * theta[:, 0] * y[:, 0] ** 2,
        "simulate": lambda theta, rng: rng.normal(0, 1 / np.sqrt(theta)),
    }
    return IntractableProblem(**(settings | changes))


def exact_between(
    data: FloatArray, start: FloatArray, end: FloatArray, share: float, rng: np.random.Generator
) -> FloatArray:
    return rng.standard_normal(data.shape) / np.sqrt((1 - share) * start + share * end)


OPTIONS: dict[str, Any] = {"proposal": 1.0, "draws": 400, "warmup": 100, "chains": 100}


@pytest.mark.parametrize("method", ["exchange", "bridged", "SAVM", "MAVM", "known"])
def test_moments_of_a_known_posterior(method: str) -> None:
    """E[theta] = 1 and E[log theta], within 4.5 errors from the spread over chains.

    By chance that fails in 1e-5 of seeds; chains are independent.
    """
    starts = np.random.default_rng(1).gamma(1.5, 1 / 1.5, (100, 1))
    bridges: dict[str, Any] = {"bridges": 3, "transition": exact_between}
    problem = precision()
    if method in ("exchange", "bridged"):
        fit = exchange(
            problem, starts, seed=2, **OPTIONS, **(bridges if method == "bridged" else {})
        )
    elif method in ("SAVM", "MAVM"):
        extra = bridges if method == "MAVM" else {}
        fit = auxiliary_variables(problem, starts, estimate=[1.0], seed=2, **OPTIONS, **extra)
    else:
        fit = metropolis(
            problem, starts, log_constant=lambda t: -0.5 * np.log(t[:, 0]), seed=2, **OPTIONS
        )
    draws = fit.posterior["theta"].to_numpy()[..., 0]
    for values, truth in ((draws, 1.0), (np.log(draws), 0.03648997 - np.log(1.5))):
        each = values.mean(axis=1)
        assert abs(each.mean() - truth) < 4.5 * each.std(ddof=1) / 10
    assert 0.2 < fit.tree.attrs["acceptance"] < 0.9


def test_small_steps() -> None:
    """Exchange accepts nearly all of them; SAVM, with another party in the swap, does not."""
    starts = np.random.default_rng(1).gamma(1.5, 1 / 1.5, (200, 1)) + 0.1
    options: dict[str, Any] = {"proposal": 1e-4, "draws": 50, "chains": 200, "adapt": False}
    ours = exchange(precision(), starts, seed=1, **options)
    theirs = auxiliary_variables(precision(), starts, estimate=[1.0], seed=1, **options)
    assert ours.tree.attrs["acceptance"] > 0.999
    assert theirs.tree.attrs["acceptance"] < 0.9


def test_a_run_repeats_adapts_and_is_diagnosed(tmp_path: Path) -> None:
    options: dict[str, Any] = {"draws": 500, "chains": 4, "seed": 5}
    fits = [exchange(precision(), [1.0], proposal=1e-3, **options) for _ in range(2)]
    np.testing.assert_array_equal(fits[0].posterior["theta"], fits[1].posterior["theta"])
    assert fits[0].tree.attrs["width_factor"] > 100
    assert 0.15 < fits[0].tree.attrs["acceptance"] < 0.5
    assert diagnose(fits[0])
    FitReport(fits[0]).save(tmp_path / "page.html")
    assert (tmp_path / "page.html").stat().st_size > 1000
    thinned = exchange(precision(), [1.0], proposal=1.0, thin=7, **options)
    assert thinned.posterior["theta"].shape == (4, 500, 1)


def test_what_a_user_gets_wrong_is_said() -> None:
    def run(problem: IntractableProblem, starts: Any = (1.0,), **changes: Any) -> None:
        exchange(problem, starts, seed=1, **{"proposal": 1.0, "draws": 20, **changes})

    cases: list[tuple[dict[str, Any], str]] = [
        ({"simulate": lambda t, rng: np.zeros(3)}, r"shape \(3,\) for . points; it must return"),
        ({"simulate": lambda t, rng: np.full((len(t), 1), np.nan)}, "not finite"),
        ({"log_factor": lambda t, y: np.zeros((2, 2))}, r"log f of precision has shape \(2, 2\)"),
        ({"log_factor": lambda t, y: np.full(len(t), -np.inf)}, "y lies outside the model's"),
        ({"log_factor": lambda t, y: np.full(len(t), np.nan)}, "is NaN or infinite"),
        ({"log_factor": lambda t, y: np.where(y[:, 0] == 1, 0.0, -np.inf)}, "different models"),
    ]
    for changes, message in cases:
        with pytest.raises(DataError, match=message):
            run(precision(**changes))
    for settings, message in (
        ({"proposal": -1.0}, "width of a walk must be a positive finite number"),
        ({"proposal": np.inf}, "width of a walk must be a positive finite number"),
        ({"proposal": [1.0, 2.0]}, "the walk has 2 widths, but there are 1 coordinates"),
        ({"bridges": 2}, "needs a transition"),
        ({"bridges": -1}, "0 levels or more"),
        ({"draws": 0}, "needs draws and thin of 1 or more"),
        ({"chains": 0}, "1 chain or more"),
    ):
        with pytest.raises(DataError, match=message):
            run(precision(), **settings)
    for starts, message in (
        ([-1.0], "outside the prior's support"),
        ([1.0, 2.0], "needs starts of shape"),
        ({"theta": 1.0}, "no parameters by name"),
    ):
        with pytest.raises(DataError, match=message):
            run(precision(), starts)
    with pytest.raises(DataError, match="must be finite"):
        precision(observed=np.array([np.inf]))
    with pytest.raises(DataError, match="estimate for precision must be 1 finite"):
        auxiliary_variables(precision(), [1.0], estimate=[1.0, 2.0], proposal=1.0, draws=5, seed=1)
    with pytest.raises(DataError, match="log Z of precision must be a finite number"):
        metropolis(precision(), [1.0], log_constant=lambda t: t, proposal=1.0, draws=5, seed=1)


def test_nobody_simulates_where_the_prior_is_zero() -> None:
    """A walk that leaves the support would otherwise ask for draws of impossible parameters."""
    asked = []

    def simulate(theta: FloatArray, rng: np.random.Generator) -> FloatArray:
        asked.append(theta.min())
        return rng.normal(0, 1 / np.sqrt(theta))

    exchange(precision(simulate=simulate), [0.2], proposal=5.0, draws=100, adapt=False, seed=1)
    assert min(asked) > 0


def test_one_at_a_time() -> None:
    many = one_at_a_time(lambda theta, rng: [theta[0], 2.0])
    np.testing.assert_array_equal(many(np.array([[1.0], [3.0]]), np.random.default_rng(1)),
                                  [[1.0, 2.0], [3.0, 2.0]])  # fmt: skip
    ragged = one_at_a_time(lambda theta, rng: np.zeros(int(theta[0])))
    with pytest.raises(DataError, match="different shapes"):
        ragged(np.array([[1.0], [3.0]]), np.random.default_rng(1))
    walk = Walk(0.5, one_at_a_time=True)
    moved, _ = walk(np.zeros((50, 3)), np.random.default_rng(1))
    np.testing.assert_array_equal((moved != 0).sum(axis=1), 1)


# Stan programs

SPINS = """
data {
  vector[2] s;
  real<lower=0> scale;
}
parameters {
  real<lower=0, upper=2> J;
  real h;
}
model {
  h ~ normal(0, scale);
  target += J * s[1] + h * s[2];
}
"""
QUADRATIC = SPINS.replace("J * s[1]", "-J * square(s[1])")


def spin_statistics(data: FloatArray) -> FloatArray:
    return np.column_stack([data[:, 0] * data[:, 1], data.sum(axis=1)])


def draw_spins(values: dict[str, Any], rng: np.random.Generator) -> FloatArray:
    """Exact, by a sum over four states."""
    log_p = spin_statistics(STATES) @ [values["J"], values["h"]]
    spins: FloatArray = STATES[rng.choice(4, p=np.exp(log_p - logsumexp(log_p)))]
    return spins


def spins(folder: Path, text: str = SPINS, **changes: Any) -> IntractableProblem:
    program = folder / "spins.stan"
    program.write_text(text, encoding="utf-8")
    settings: dict[str, Any] = {
        "statistic": "s",
        "statistics": spin_statistics,
        "simulate": draw_spins,
    }
    return exponential_family(program, {"scale": 1.0}, np.array([1.0, 1.0]), **(settings | changes))


def test_a_stan_program_gives_its_posterior(tmp_path: Path) -> None:
    """E[J] and E[h] against sums over a grid, within 4.5 errors from the spread over chains."""
    problem = spins(tmp_path)
    starts = [{"J": 0.2 + 0.05 * k, "h": 0.1 * k} for k in range(20)]
    fit = exchange(problem, starts, proposal=[2.0, 1.5], draws=300, chains=20, adapt=False, seed=3)
    assert set(fit.posterior) == {"J", "h"}
    assert (fit.posterior["J"] > 0).all()
    assert (fit.posterior["J"] < 2).all()
    j, h = np.meshgrid(np.linspace(0, 2, 401)[1:-1], np.linspace(-6, 6, 601), indexing="ij")
    features = spin_statistics(STATES)
    log_z = logsumexp(j[..., None] * features[:, 0] + h[..., None] * features[:, 1], axis=-1)
    weight = np.exp(j + 2 * h - log_z - h**2 / 2)
    for name, at in (("J", j), ("h", h)):
        each = fit.posterior[name].to_numpy().mean(axis=1)
        truth = (weight * at).sum() / weight.sum()
        assert abs(each.mean() - truth) < 4.5 * each.std(ddof=1) / np.sqrt(20), name


def test_a_stan_program_is_evaluated_for_any_data(tmp_path: Path) -> None:
    """Differences between data sets are those of J and h, and priors those of the program."""
    problem = spins(tmp_path)
    points = np.array([[0.3, -0.2], [-1.0, 1.5]])
    values = problem.parameters(points)
    np.testing.assert_allclose(values["J"], 2 / (1 + np.exp(-points[:, 0])))
    log_f = problem.likelihood(points, np.array([[1.0, -1.0], [-1.0, -1.0]]))
    np.testing.assert_allclose(log_f, [-values["J"][0], values["J"][1] - 2 * values["h"][1]])
    jacobian = np.log(values["J"] * (2 - values["J"]) / 2)
    prior = jacobian - 0.5 * values["h"] ** 2
    difference = problem.prior(points) - prior
    np.testing.assert_allclose(difference, difference[0], atol=1e-12)


def test_wrong_stan_problems_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="not affine in its data 's'"):
        spins(tmp_path, QUADRATIC, statistics=lambda y: np.full((len(y), 2), 2.0))
    with pytest.raises(DataError, match=r"must have shape \(1, number\)"):
        spins(tmp_path, statistics=lambda y: np.zeros(2))
    wrong = spins(tmp_path, simulate=lambda values, rng: np.zeros(3))
    with pytest.raises(DataError, match=r"data of shape \(3,\); y has \(2,\)"):
        exchange(wrong, {"J": 0.5, "h": 0.0}, proposal=1.0, draws=3, seed=1)


# Approximations


def machines(edges: list[tuple[int, int]], count: int = 5) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(4)
    bias, weights = rng.normal(size=(count, 4)), np.zeros((count, 4, 4))
    for i, j in edges:
        weights[:, i, j] = weights[:, j, i] = rng.normal(0, 1.5, size=count)
    return bias, weights


def exact_constant(bias: FloatArray, weights: FloatArray) -> FloatArray:
    states = np.array(list(product((0.0, 1.0), repeat=4)))
    energy = states @ bias.T + 0.5 * np.einsum("si,nij,sj->sn", states, weights, states)
    return np.asarray(logsumexp(energy, axis=0))


def test_bethe_is_exact_on_trees_and_mean_field_is_a_bound() -> None:
    tree = machines([(0, 1), (1, 2), (1, 3)])
    np.testing.assert_allclose(log_bethe(*tree), exact_constant(*tree), atol=1e-8)
    loops = machines([(0, 1), (1, 2), (2, 3), (0, 3), (0, 2)])
    gap = exact_constant(*loops) - log_mean_field(*loops)
    assert np.all(gap > 0)
    assert np.all(gap < 1)
    assert np.abs(log_bethe(*loops) - exact_constant(*loops)).max() > 1e-6
    free = machines([])
    np.testing.assert_allclose(log_mean_field(*free), exact_constant(*free), rtol=1e-12)
    with pytest.raises(DataError, match="biases need shape"):
        log_bethe(np.zeros((2, 3)), np.zeros((2, 3, 4)))


def test_langevin_with_an_exact_gradient() -> None:
    """N(3, 1), whose stationary variance is 1 / (1 - step^2 / 4); within 4.5 errors over chains."""
    problem = precision(log_prior=lambda t: -0.5 * (t[:, 0] - 3) ** 2)
    step = 0.8
    fit = langevin(problem, [3.0], gradient=lambda t, rng: 3 - t, step=step, draws=200, chains=200,
                   warmup=50, seed=1)  # fmt: skip
    draws = fit.posterior["theta"].to_numpy()[..., 0]
    for values, truth in ((draws, 3.0), ((draws - 3) ** 2, 1 / (1 - step**2 / 4))):
        each = values.mean(axis=1)
        assert abs(each.mean() - truth) < 4.5 * each.std(ddof=1) / np.sqrt(200)
    with pytest.raises(DataError, match="must be positive and finite"):
        langevin(problem, [3.0], gradient=lambda t, rng: t, step=0.0, draws=5, seed=1)
    with pytest.raises(SamplingError, match="ran away"), np.errstate(all="ignore"):
        langevin(problem, [3.0], gradient=lambda t, rng: t**9, step=9.0, draws=50, seed=1)
