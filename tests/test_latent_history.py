"""Latent histories: kernels by enumeration of short pasts, frequencies against a posterior."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
import pytest

from harness.arrays import FloatArray
from harness.errors import DataError, SamplingError
from harness.intractable import IntractableProblem, latent_history
from harness.intractable.latent_history import LatentHistory, Mask, Rule, States
from harness.intractable.run import _step

PRIOR = np.array([0.5, 0.2, 0.3])
PROPOSE = np.array([[0.1, 0.6, 0.3], [0.5, 0.2, 0.3], [0.25, 0.45, 0.3]])
PAIRS = np.array(list(product((0, 1), repeat=2)))
"""The four states of two bits."""


def problem(observed: FloatArray, dimension: int = 1) -> IntractableProblem:
    """Make one with a prior on three values of theta, and no likelihood that could be called."""

    def never(*arguments: Any) -> FloatArray:
        raise AssertionError("neither log f nor the simulator is needed")

    return IntractableProblem(
        "pairs",
        observed,
        dimension,
        log_prior=lambda theta: np.log(PRIOR[theta[:, 0].astype(int)]),
        log_factor=never,
        simulate=never,
    )


# Enumeration.  A bit a_t is 1 if u < FIRST[theta] and b_t if u' < SECOND[theta, a_{t-1}], with u
# and u' uniform on {0, 1, 2, 3}.  The chain is not reversible, x_t depends on two steps' numbers,
# and all pasts of the length that can matter are enumerated: errors are those of rounding.

LEVELS = 4
FIRST = np.array([1, 2, 3])
SECOND = np.array([[1, 3], [2, 1], [3, 2]])
OBSERVED = (1, 0)


def bit(below: Any, value: Any) -> Any:
    """Probability of a bit that is 1 if a number is below a level."""
    return np.where(np.asarray(value) == 1, below, LEVELS - np.asarray(below)) / LEVELS


def move_probability(theta: int, before: Any, after: Any) -> float:
    return float(bit(FIRST[theta], after[0]) * bit(SECOND[theta, before[0]], after[1]))


STATIONARY = np.array(
    [
        [bit(FIRST[i], a) * sum(bit(FIRST[i], c) * bit(SECOND[i, c], b) for c in (0, 1))
         for a, b in PAIRS]
        for i in range(3)
    ]
)  # fmt: skip
CHANCE = PRIOR * STATIONARY[:, PAIRS.tolist().index(list(OBSERVED))]
POSTERIOR = CHANCE / CHANCE.sum()


def reverse(theta: int, before: Any, after: Any) -> float:
    at = [PAIRS.tolist().index(list(each)) for each in (before, after)]
    return float(
        STATIONARY[theta, at[0]] * move_probability(theta, before, after) / STATIONARY[theta, at[1]]
    )


def forward(theta: int, before: Any, after: Any) -> float:
    """What is wrong to use in its place."""
    return move_probability(theta, after, before)


def pasts(theta: int, rule: Rule, draw: Any) -> list[tuple[float, list[Any]]]:
    """All pasts of y: probabilities, and (x_{t-1}, u_t) of each step, the newest first.

    Maps need u_0 and u_{-1} with rule "a"; u_{-1} and u_{-2} with rule "b", and any u_0.
    """
    found: list[tuple[float, list[Any]]] = [(1.0, [])]
    for step in range(2 if rule == "a" else 3):
        longer = []
        for weight, path in found:
            after = path[-1][0] if path else OBSERVED
            for before in product((0, 1), repeat=2):
                below = (FIRST[theta], SECOND[theta, before[0]])
                ranges = [
                    range(level) if value else range(level, LEVELS)
                    for level, value in zip(below, after, strict=True)
                ]
                numbers = list(product(*ranges))[: 1 if rule == "b" and step == 0 else None]
                chance = weight * draw(theta, before, after)
                longer += [(chance / len(numbers), [*path, (before, u)]) for u in numbers]
        found = longer
    return found


@dataclass
class Scripted:
    """The chain of two bits whose pasts are given; a point is theta and the row of its past."""

    paths: list[list[Any]]
    depth: dict[int, int] = field(default_factory=dict)

    def back(self, states: States, points: FloatArray, rng: Any) -> tuple[States, States]:
        found = []
        for row in points[:, 1].astype(int):
            at = self.depth.get(row, 0)
            self.depth[row] = at + 1
            found.append(self.paths[row][at])
        return np.array([x for x, _ in found]), np.array([u for _, u in found])

    def unknown(self, count: int) -> States:
        return np.broadcast_to(PAIRS, (count, 4, 2)).copy()

    def forward(self, summary: States, numbers: States, points: FloatArray) -> States:
        theta = points[:, 0].astype(int)
        below = np.stack(
            [np.broadcast_to(FIRST[theta][:, None], summary.shape[:2]),
             SECOND[theta[:, None], summary[..., 0]]], axis=2,
        )  # fmt: skip
        moved: States = (numbers[:, None] < below).astype(int)
        return moved

    def state(self, summary: States) -> tuple[States, Mask]:
        return summary[:, 0], (summary == summary[:, :1]).all(axis=(1, 2))

    def possible(self, summary: States, states: States) -> Mask:
        found: Mask = (summary == states[:, None]).all(axis=2).any(axis=1)
        return found

    def log_transition(self, before: States, after: States, points: FloatArray) -> FloatArray:
        rows = zip(points[:, 0].astype(int), before, after.astype(int), strict=True)
        return np.log([move_probability(theta, x.astype(int), y) for theta, x, y in rows])


def stationary_error(rule: Rule, draw: Any = reverse) -> float:
    """Return the largest change of the posterior in a step of the library's own kernel."""
    rows, paths = [], []
    for i in range(3):
        for weight, path in pasts(i, rule, draw):
            if weight > 0:
                rows += [(i, j, weight) for j in range(3)]
                paths += [path] * 3
    number = np.arange(len(rows))
    here, there = (
        np.column_stack([[row[k] for row in rows], number]).astype(float) for k in (0, 1)
    )
    log_ratio = np.array([np.log(PROPOSE[j, i] / PROPOSE[i, j]) for i, j, _ in rows])
    pairs = problem(np.array(OBSERVED, dtype=float), 2)
    target = IntractableProblem(
        "pairs", pairs.observed, 2, pairs.log_prior, lambda t, y: np.zeros(len(t)), pairs.simulate
    )
    chance = _step(
        target,
        LatentHistory(Scripted(paths), rule),
        lambda at, rng: (there, log_ratio),
        here.copy(),
        target.prior(here),
        np.zeros(len(rows)),
        np.random.default_rng(0),
    )
    matrix = np.zeros((3, 3))
    for (i, j, weight), accepted in zip(rows, chance, strict=True):
        matrix[i, j] += PROPOSE[i, j] * weight * accepted
        matrix[i, i] += PROPOSE[i, j] * weight * (1 - accepted)
    np.testing.assert_allclose(matrix.sum(axis=1), 1.0, atol=1e-13)
    return float(np.abs(POSTERIOR @ matrix - POSTERIOR).max())


@pytest.mark.parametrize("rule", ["a", "b"])
def test_both_rules_keep_the_posterior(rule: Rule) -> None:
    """Up to the rounding of sums of some 10,000 probabilities."""
    assert stationary_error(rule) < 1e-12


@pytest.mark.parametrize("rule", ["a", "b"])
def test_a_past_by_the_forward_operator_is_wrong(rule: Rule) -> None:
    assert stationary_error(rule, forward) > 1e-3


# Long runs.  Two spins with a coupling and a field, swept by heat-bath updates in a fixed order.

SPINS = 2.0 * PAIRS - 1
STRENGTH = np.array([0.2, 0.9, 0.5])
FIELD = np.array([-0.4, 0.3, 0.8])


class HeatBath:
    """Sweeps of two spins: the first given the second, then the second given the first."""

    def up(self, other: States, points: FloatArray) -> FloatArray:
        theta = points[:, 0].astype(int)
        pull = STRENGTH[theta] * other.T + FIELD[theta]
        chance: FloatArray = (1 / (1 + np.exp(-2 * pull))).T
        return chance

    def back(
        self, states: States, points: FloatArray, rng: np.random.Generator
    ) -> tuple[States, States]:
        before, numbers = np.array(states), np.empty((len(states), 2))
        for site in (1, 0):
            up = self.up(before[:, 1 - site], points)
            low = np.where(before[:, site] > 0, 0.0, up)
            high = np.where(before[:, site] > 0, up, 1.0)
            numbers[:, site] = rng.uniform(low, high)
            before[:, site] = np.where(rng.random(len(states)) < up, 1, -1)
        return before, numbers

    def unknown(self, count: int) -> States:
        return np.broadcast_to(SPINS, (count, 4, 2)).copy()

    def forward(self, summary: States, numbers: States, points: FloatArray) -> States:
        moved = summary.copy()
        for site in (0, 1):
            up = self.up(moved[..., 1 - site], points)
            moved[..., site] = np.where(numbers[:, site, None] < up, 1, -1)
        return moved

    def state(self, summary: States) -> tuple[States, Mask]:
        return summary[:, 0], (summary == summary[:, :1]).all(axis=(1, 2))

    def possible(self, summary: States, states: States) -> Mask:
        found: Mask = (summary == states[:, None]).all(axis=2).any(axis=1)
        return found

    def log_transition(self, before: States, after: States, points: FloatArray) -> FloatArray:
        one, two = self.up(before[:, 1], points), self.up(after[:, 0], points)
        both = [np.where(after[:, k] > 0, up, 1 - up) for k, up in enumerate((one, two))]
        return np.log(both[0]) + np.log(both[1])


def another(points: FloatArray, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Propose any of the three values with the probabilities of the table."""
    i = points[:, 0].astype(int)
    j = (rng.random((len(i), 1)) > PROPOSE[i].cumsum(axis=1)).sum(axis=1)
    return j[:, None].astype(float), np.log(PROPOSE[j, i] / PROPOSE[i, j])


OPTIONS: dict[str, Any] = {"proposal": another, "draws": 300, "warmup": 30, "chains": 100}


@pytest.mark.parametrize("rule", ["a", "b"])
def test_frequencies_of_two_spins(rule: Rule) -> None:
    """Within 4 standard errors from the spread over 100 independent chains.

    With three values that fails by chance in 2e-4 of seeds.
    """
    y = np.array([1.0, -1.0])
    fit = latent_history(problem(y), HeatBath(), [0.0], seed=1, rule=rule, **OPTIONS)
    energy = STRENGTH[:, None] * SPINS.prod(axis=1) + FIELD[:, None] * SPINS.sum(axis=1)
    likelihood = np.exp(energy) / np.exp(energy).sum(axis=1, keepdims=True)
    truth = PRIOR * likelihood[:, 2]  # of (1, -1)
    truth /= truth.sum()
    draws = fit.posterior["theta"].to_numpy()[..., 0]
    for theta, expected in enumerate(truth):
        each = (draws == theta).mean(axis=1)
        assert abs(each.mean() - expected) < 4 * each.std(ddof=1) / 10
    assert fit.tree.attrs["steps"] > 2 * 100 * 300


def test_rule_b_accepts_more() -> None:
    """And both accept every move to where the chain already is."""
    short = OPTIONS | {"draws": 50}
    y = np.array([1.0, -1.0])
    fits = {
        rule: latent_history(problem(y), HeatBath(), [0.0], seed=1, rule=rule, **short)
        for rule in ("a", "b")
    }
    rates = {rule: fit.tree.attrs["acceptance"] for rule, fit in fits.items()}
    assert rates["a"] < rates["b"]
    for rule in ("a", "b"):
        still = latent_history(
            problem(y), HeatBath(), [1.0], seed=2, rule=rule,
            **short | {"proposal": lambda at, rng: (at.copy(), np.zeros(len(at)))},
        )  # fmt: skip
        assert still.tree.attrs["acceptance"] == pytest.approx(1.0, abs=1e-12)


def test_what_a_user_gets_wrong_is_said() -> None:
    class Forgetless(HeatBath):
        def forward(self, summary: States, numbers: States, points: FloatArray) -> States:
            return summary

    class Impossible(HeatBath):
        def log_transition(self, before: Any, after: Any, points: FloatArray) -> FloatArray:
            return np.full(len(points), -np.inf)

    class Short(HeatBath):
        def log_transition(self, before: Any, after: Any, points: FloatArray) -> FloatArray:
            return np.zeros(1)

    def run(coupling: Any, **changes: Any) -> None:
        latent_history(problem(np.ones(2)), coupling, [0.0], seed=1, **OPTIONS | changes)

    with pytest.raises(SamplingError, match="100 of 100 latent histories still depend"):
        run(Forgetless(), longest=8)
    with pytest.raises(DataError, match="calls impossible"):
        run(Impossible())
    with pytest.raises(DataError, match="must be 100 numbers of at most 0"):
        run(Short())
    with pytest.raises(DataError, match="rule 'a' or 'b'"):
        run(HeatBath(), rule="c")
