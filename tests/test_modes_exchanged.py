"""Parameters and entries that change places together, compared with all exchanges."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from test_modes import Plain

from harness.arrays import FloatArray
from harness.engine.batched import BatchedDensity
from harness.engine.program import StanProgram
from harness.modes.exchanged import ExchangedEntries, exchanged_together
from harness.modes.group import Group, generated_group
from harness.modes.symmetries import find_symmetries
from harness.modes.target import Target

SIZE = 6
LETTERS = ("a", "h", "p", "v", "kappa", "sigma")
"""Names that do not tell what belongs together."""


def waves(orders: Sequence[Sequence[int]], rng: np.random.Generator) -> Plain:
    """A density that some orders of six numbers leave: a function of the numbers in each order."""
    rates, phases = rng.uniform(0.5, 1.5, (3, SIZE)), rng.uniform(0, 6, 3)

    def density(points: FloatArray) -> tuple[FloatArray, FloatArray]:
        value = np.zeros(len(points))
        gradient = np.zeros_like(points)
        for order in orders:
            there = points[:, order]
            angle = there @ rates.T + phases
            value += np.sin(angle).sum(axis=1) - 0.1 * (there**2 @ rates[0])
            slope = np.cos(angle) @ rates - 0.2 * there * rates[0]
            gradient[:, order] += slope
        return value, gradient

    return Plain(density, dict.fromkeys(LETTERS, ()))


def exchange(pairs: Sequence[tuple[int, int]]) -> tuple[int, ...]:
    order = list(range(SIZE))
    for i, j in pairs:
        order[i], order[j] = j, i
    return tuple(order)


def all_exchanges(left: tuple[int, ...] = tuple(range(SIZE))) -> Iterator[list[tuple[int, int]]]:
    """All ways in which some of the numbers change places two by two, with that of none."""
    if len(left) < 2:
        yield []
        return
    first, *others = left
    yield from all_exchanges(tuple(others))
    for other in others:
        for rest in all_exchanges(tuple(each for each in others if each != other)):
            yield [(first, other), *rest]


def group_of(target: Target, dimension: int) -> Group:
    points = 0.5 * np.random.default_rng(4).normal(size=(12, dimension))
    group = generated_group(find_symmetries(target, points, most_seconds=np.inf))
    assert group is not None
    return group


def orders_of(group: Group) -> set[tuple[int, ...]]:
    assert np.all(group.sign == 1)
    return {tuple(each) for each in group.order.tolist()}


def test_there_are_as_many_exchanges_as_involutions() -> None:
    assert len(list(all_exchanges())) == 76


@pytest.mark.parametrize("pairs", [each for each in all_exchanges() if each])
def test_every_exchange_of_six_numbers_is_found(pairs: list[tuple[int, int]]) -> None:
    """And no other order leaves the density, so the group has two elements."""
    order = exchange(pairs)
    target = waves([range(SIZE), order], np.random.default_rng([3, *order]))
    assert orders_of(group_of(target, SIZE)) == {tuple(range(SIZE)), order}


def test_two_exchanges_that_have_nothing_in_common() -> None:
    one, other = exchange([(0, 2), (1, 3)]), exchange([(4, 5)])
    both = exchange([(0, 2), (1, 3), (4, 5)])
    target = waves([range(SIZE), one, other, both], np.random.default_rng(5))
    assert orders_of(group_of(target, SIZE)) == {tuple(range(SIZE)), one, other, both}


def test_three_things_with_two_numbers_each() -> None:
    """The pairs (0, 1), (2, 3) and (4, 5) in any order."""
    every = [(0, 1, 2, 3, 4, 5), (2, 3, 0, 1, 4, 5), (4, 5, 2, 3, 0, 1)]
    every += [(0, 1, 4, 5, 2, 3), (2, 3, 4, 5, 0, 1), (4, 5, 0, 1, 2, 3)]
    target = waves(every, np.random.default_rng(6))
    assert orders_of(group_of(target, SIZE)) == set(every)


def test_nothing_is_exchanged_without_a_symmetry() -> None:
    target = waves([range(SIZE)], np.random.default_rng(7))
    points = np.random.default_rng(8).normal(size=(2, SIZE))
    assert list(exchanged_together(target, points, {})) == []
    assert len(group_of(target, SIZE)) == 1


def test_entries_take_the_values_of_each_other() -> None:
    change = ExchangedEntries(((("x", 1), ("y", 0)), (("x", 2), ("x", 3))))
    values = {"x": np.arange(8.0).reshape(2, 2, 2), "y": np.array([8.0, 9.0]), "z": np.zeros(2)}
    after = change(values)
    assert after["x"].tolist() == [[[0, 8], [3, 2]], [[4, 9], [7, 6]]]
    assert after["y"].tolist() == [1, 5]
    assert change.parameters == ("x", "y")
    assert values["x"].ravel().tolist() == list(range(8))


DECAY = """
data {{ int N; vector[N] t; vector[N] y; }}
parameters {{ {declared} }}
model {{
  {prior}
  for (n in 1 : N) y[n] ~ normal({mean}, 0.1);
}}
"""
T = np.linspace(0.1, 4, 12)
PROGRAMS = {
    "scalars": (
        "real<lower=0> a, b, c, d; real<lower=0> noise;",
        "a + c + b + d + noise ~ normal(0, 9); noise ~ normal(0, 1);",
        "a * exp(-b * t[n]) + c * exp(-d * t[n]) + 0.01 * noise",
        2,
    ),
    "a vector": (
        "vector<lower=0>[4] theta;",
        "theta ~ lognormal(0, 1);",
        "theta[1] * exp(-theta[2] * t[n]) + theta[3] * exp(-theta[4] * t[n])",
        2,
    ),
    "a share of the first": (
        "real<lower=0> fast, slow; real<lower=0, upper=1> share;",
        "fast + slow ~ normal(0, 9); share ~ beta(2, 2);",
        "share * exp(-fast * t[n]) + (1 - share) * exp(-slow * t[n])",
        2,
    ),
    "other bounds": (
        "real<lower=0> a; real<lower=0> b; real<lower=0, upper=9> c; real<lower=0> d;",
        "a + c + b + d ~ normal(0, 9);",
        "a * exp(-b * t[n]) + c * exp(-d * t[n])",
        1,
    ),
    "simplexes": (
        "simplex[3] first; simplex[3] second; real<lower=0> p; real<lower=0> q;",
        "first ~ dirichlet([1, 2, 3]'); second ~ dirichlet([1, 2, 3]'); p + q ~ normal(0, 9);",
        "first[1] * exp(-p * t[n]) + second[1] * exp(-q * t[n])",
        2,
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_copies_of_programs(name: str, tmp_path: Path) -> None:
    declared, prior, mean, copies = PROGRAMS[name]
    path = tmp_path / "decay.stan"
    path.write_text(DECAY.format(declared=declared, prior=prior, mean=mean), encoding="utf-8")
    density = BatchedDensity(StanProgram(path), {"N": len(T), "t": T, "y": np.exp(-T)})
    assert len(group_of(density, density.dimension)) == copies
