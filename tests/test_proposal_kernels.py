"""Kernels of multiple proposals leave their targets invariant, by exact sums over every outcome."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from every_outcome import Matrix, Script, States, state, transition_matrix

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.proposals import (
    Chains,
    Chance,
    GaussianStep,
    GaussianSteps,
    Pair,
    Sizes,
    Tries,
    evaluated,
    factored,
    metropolis,
    multiple_try,
    ordered_overrelaxation,
    pivot_metropolis,
    pivot_persistence,
    pivot_transition,
    reflect_probabilities,
    two_factor_slice,
    two_stage,
    value_of,
)

P = np.array([1.0, 2.0, 3.0]) / 6
Q = np.array([[0.1, 0.6, 0.3], [0.5, 0.3, 0.2], [0.3, 0.3, 0.4]])
SYMMETRIC = np.array([[0.2, 0.5, 0.3], [0.5, 0.1, 0.4], [0.3, 0.4, 0.3]])
EXACT = 1e-14
"""A hundred rounding errors of numbers below 1, which are sums of up to some thousand terms."""

Kernel = Callable[[FloatArray, Chance], FloatArray]


def not_stationary(matrix: FloatArray, target: FloatArray = P) -> float:
    np.testing.assert_allclose(matrix.sum(axis=1), 1, rtol=0, atol=1e-13)
    return float(np.abs(target @ matrix - target).max())


def not_reversible(matrix: FloatArray, target: FloatArray = P) -> float:
    flow = target[:, None] * matrix
    return float(np.abs(flow - flow.T).max())


def reversal(matrix: FloatArray, target: FloatArray = P) -> FloatArray:
    reverse: FloatArray = matrix.T * target / target[:, None]
    return reverse


def cyclic() -> FloatArray:
    """Transitions that are not reversible and leave P invariant: flows of a circle and a swap."""
    flow = np.array([[0.0, 1, 0], [0, 1, 1], [1, 0, 2]]) / 6
    assert not_stationary(flow / P[:, None]) < EXACT < not_reversible(flow / P[:, None])
    matrix: FloatArray = flow / P[:, None]
    return matrix


def key(points: FloatArray) -> FloatArray:
    return points[:, 0]


# Metropolis, in one stage and in two


def one_stage(proposal: Matrix) -> Kernel:
    def kernel(points: FloatArray, chance: Chance) -> FloatArray:
        return metropolis(States(P), proposal, evaluated(States(P), points), chance).after.points

    return kernel


def in_stages(proposal: Matrix, factors: list[States]) -> Kernel:
    def kernel(points: FloatArray, chance: Chance) -> FloatArray:
        return two_stage(factors, proposal, factored(factors, points), chance).after.points

    return kernel


@pytest.mark.parametrize("matrix", [Q, SYMMETRIC])
def test_metropolis(matrix: FloatArray) -> None:
    """The matrix is that of the equation."""
    found = transition_matrix(3, one_stage(Matrix(matrix)))
    ratio = P * matrix.T / (P[:, None] * matrix)
    expected = matrix * np.minimum(1, ratio)
    np.fill_diagonal(expected, 0)
    np.fill_diagonal(expected, 1 - expected.sum(axis=1))
    np.testing.assert_allclose(found, expected, rtol=0, atol=EXACT)
    assert not_stationary(found) < EXACT


@pytest.mark.parametrize("matrix", [Q, SYMMETRIC])
def test_two_stages_accept_less_often(matrix: FloatArray) -> None:
    """Equation 2.7, and off the diagonal never more than Metropolis-Hastings (Peskun's order)."""
    prior = np.array([0.5, 0.3, 0.2])
    found = transition_matrix(3, in_stages(Matrix(matrix), [States(prior), States(P / prior)]))
    first = np.minimum(1, prior * matrix.T / (prior[:, None] * matrix))
    likelihood = P / prior
    expected = matrix * first * np.minimum(1, likelihood / likelihood[:, None])
    np.fill_diagonal(expected, 0)
    np.fill_diagonal(expected, 1 - expected.sum(axis=1))
    np.testing.assert_allclose(found, expected, rtol=0, atol=EXACT)
    assert max(not_stationary(found), not_reversible(found)) < EXACT
    off = ~np.eye(3, dtype=bool)
    whole = transition_matrix(3, one_stage(Matrix(matrix)))
    assert np.all(found[off] <= whole[off] + EXACT)
    assert np.any(found[off] < whole[off] - 0.01)


def test_three_stages() -> None:
    parts = [np.array([0.5, 0.3, 0.2]), np.array([2.0, 1.0, 4.0])]
    parts.append(P / (parts[0] * parts[1]))
    found = transition_matrix(3, in_stages(Matrix(Q), [States(part) for part in parts]))
    assert max(not_stationary(found), not_reversible(found)) < EXACT


def test_the_likelihood_is_called_only_where_the_prior_passes() -> None:
    seen: list[int] = []

    def likelihood(points: FloatArray) -> FloatArray:
        seen.append(len(points))
        return np.zeros(len(points))

    def prior(points: FloatArray) -> FloatArray:
        return np.where(np.abs(points[:, 0]) < 1, 0.0, -np.inf)

    chains = factored([prior, likelihood], np.zeros((1000, 1)))
    seen.clear()
    step = two_stage(
        [prior, likelihood], GaussianStep(1.0), chains, Chance(np.random.default_rng(1))
    )
    assert step.calls == (1000, sum(seen))
    # Of normal steps 0.683 are within 1; the error of a share of 1000 is 0.015.
    assert abs(step.calls[1] / 1000 - 0.683) < 4 * 0.015
    assert step.accepted.sum() == step.calls[1]
    assert np.all(np.abs(step.after.points) < 1)


# Multiple-try Metropolis


def tries_kernel(proposal: Matrix, weighting: Any, tries: int) -> Kernel:
    def kernel(points: FloatArray, chance: Chance) -> FloatArray:
        return multiple_try(
            States(P), proposal, evaluated(States(P), points), chance,
            tries=tries, weighting=weighting,
        ).after.points  # fmt: skip

    return kernel


def by_hand(q: FloatArray, weight: FloatArray, *, printed: bool = False) -> FloatArray:
    """Algorithm 3.2 with K = 2 as sums; w(a, b) = weight[a, b]; as printed, chosen by w(x, x_k)."""
    matrix = np.zeros((3, 3))
    for x, one, two in itertools.product(range(3), repeat=3):
        for chosen in (one, two):
            select = (weight[x, [one, two]] if printed else weight[[one, two], x]).sum()
            mine = weight[x, chosen] if printed else weight[chosen, x]
            for other in range(3):
                forward = weight[one, x] + weight[two, x]
                accept = min(1.0, forward / (weight[other, chosen] + weight[x, chosen]))
                share = q[x, one] * q[x, two] * mine / select * q[chosen, other]
                matrix[x, chosen] += share * accept
                matrix[x, x] += share * (1 - accept)
    return matrix


@pytest.mark.parametrize("tries", [1, 2, 3])
@pytest.mark.parametrize(("matrix", "weighting"), [(Q, "I"), (SYMMETRIC, "I"), (SYMMETRIC, "II")])
def test_multiple_try(matrix: FloatArray, weighting: str, tries: int) -> None:
    found = transition_matrix(3, tries_kernel(Matrix(matrix), weighting, tries))
    assert max(not_stationary(found), not_reversible(found)) < EXACT
    weight = P[:, None] * (matrix if weighting == "I" else np.ones((3, 3)))
    if tries == 2:
        np.testing.assert_allclose(found, by_hand(matrix, weight), rtol=0, atol=EXACT)
    if tries == 1:
        whole = transition_matrix(3, one_stage(Matrix(matrix)))
        np.testing.assert_allclose(found, whole, rtol=0, atol=EXACT)


def test_the_printed_choice_is_wrong() -> None:
    """Erratum: with w(x, x_k) in place of w(x_k, x) the target is not invariant."""
    assert not_stationary(by_hand(Q, P[:, None] * Q)) < EXACT
    assert not_stationary(by_hand(Q, P[:, None] * Q, printed=True)) > 0.02


def test_weights_two_need_a_symmetric_proposal() -> None:
    with pytest.raises(DataError, match="symmetric"):
        transition_matrix(3, tries_kernel(Matrix(Q), "II", 2))
    with pytest.raises(DataError, match="a try or more"):
        transition_matrix(3, tries_kernel(Matrix(SYMMETRIC), "II", 0))


def test_kept_proposals() -> None:
    """The law of x and the set of its proposals is invariant if a next step keeps them."""
    sets = list(itertools.combinations_with_replacement(range(3), 2))
    law = np.zeros((3, len(sets)))
    for x, one, two in itertools.product(range(3), repeat=3):
        law[x, sets.index((min(one, two), max(one, two)))] += P[x] * Q[x, one] * Q[x, two]
    after = np.zeros_like(law)
    for x, (number, kept) in itertools.product(range(3), enumerate(sets)):
        points = np.array(kept, dtype=np.float64).reshape(1, 2, 1)

        def move(
            chance: Chance, x: int = x, points: FloatArray = points
        ) -> tuple[int, tuple[int, int]]:
            start = evaluated(States(P), state(x))
            tries = Tries(points, States(P)(points[0])[None])
            step = multiple_try(
                States(P), Matrix(Q), start, chance, tries=2, weighting="I", kept=tries
            )
            low, high = np.sort(step.kept.points.ravel()).astype(int)
            return int(step.after.points[0, 0]), (int(low), int(high))

        for (there, found), probability in Script().run(move):
            after[there, sets.index(found)] += law[x, number] * probability
    assert np.abs(after - law).max() < EXACT


def test_impossible_proposals_are_refused() -> None:
    """All tries outside the support: the chain stays."""
    target = np.array([1.0, 0.0, 0.0])

    def kernel(points: FloatArray, chance: Chance) -> FloatArray:
        chains = evaluated(States(target), points)
        return multiple_try(States(target), Matrix(SYMMETRIC), chains, chance, tries=2).after.points

    for there, _ in Script().run(lambda chance: kernel(state(0), chance)):
        assert there[0, 0] == 0


# Overrelaxation


@pytest.mark.parametrize("size", [1, 2, 3, Sizes(2, 3)])
def test_ordered_overrelaxation(size: int | Sizes) -> None:
    """Draws are from the target itself, which is the full conditional of one coordinate."""

    def kernel(points: FloatArray, chance: Chance) -> FloatArray:
        def draw(rows: Any, chance: Chance) -> FloatArray:
            return chance.choose(np.log(np.tile(P, (rows.size, 1))))[:, None].astype(np.float64)

        return ordered_overrelaxation(draw, key, points, chance, size).points

    found = transition_matrix(3, kernel)
    assert max(not_stationary(found), not_reversible(found)) < EXACT
    if size == 1:  # always the new point
        np.testing.assert_allclose(found, np.tile(P, (3, 1)), rtol=0, atol=EXACT)
    if size == 3:  # away from where the chain is
        assert found[0, 2] > P[2] + 0.1


@pytest.mark.parametrize("below", [0.05, 0.5, 0.8])
def test_how_many_draws_a_self_sized_population_has(below: float) -> None:
    """P(K <= k) is that of 1 or more binomial successes on either side; the rest is at K_max."""
    sizes = Sizes(2, 5)

    def number(chance: Chance) -> int:
        def draw(rows: Any, chance: Chance) -> FloatArray:
            row = np.log([[below, 1 - below]])
            side = chance.choose(np.repeat(row, rows.size, axis=0))
            return np.where(side > 0, 2.0, 0.0)[:, None]

        return int(ordered_overrelaxation(draw, key, state(1), chance, sizes).draws[0])

    share = np.zeros(6)
    script = Script(sorted_ties=True)  # there are none
    for draws, probability in script.run(number):
        share[draws] += probability
    expected = np.array([0 if k < 2 else 1 - below**k - (1 - below) ** k for k in range(6)])
    expected[5] = 1
    np.testing.assert_allclose(share.cumsum(), expected, rtol=0, atol=EXACT)


def test_few_draws_near_the_median_and_many_at_the_edges() -> None:
    rng = np.random.default_rng(3)
    points = np.array([[0.0], [3.5]]).repeat(500, axis=0)
    found = ordered_overrelaxation(
        lambda rows, chance: chance.rng.standard_normal((rows.size, 1)), key, points,
        Chance(rng), Sizes(4, 40),
    )  # fmt: skip
    assert found.draws[:500].mean() < 8  # 5.5 on average: until both sides have 2
    assert np.all(found.draws[500:] >= 4)
    assert found.draws[500:].mean() > 39  # 40 draws reach 3.5 twice with probability 4e-5
    assert np.all(found.points[500:] < 0)


def test_sizes_are_checked() -> None:
    for fewest, most in ((1, 5), (6, 5)):
        with pytest.raises(DataError, match="fewest <= most"):
            Sizes(fewest, most)
    with pytest.raises(DataError, match="a draw or more"):
        ordered_overrelaxation(
            lambda rows, chance: np.zeros((rows.size, 1)), key, state(0),
            Chance(np.random.default_rng(1)), 0,
        )  # fmt: skip


# Pivots


def pivot_kernel(forward: FloatArray, size: int | Sizes) -> Kernel:
    def kernel(points: FloatArray, chance: Chance) -> FloatArray:
        back = Matrix(reversal(forward))
        return pivot_transition(Matrix(forward), back, key, points, chance, size=size).points

    return kernel


@pytest.mark.parametrize("size", [1, 2, 3, Sizes(2, 3)])
def test_pivot_transition_of_what_is_not_reversible(size: int | Sizes) -> None:
    found = transition_matrix(3, pivot_kernel(cyclic(), size))
    assert max(not_stationary(found), not_reversible(found)) < EXACT


@pytest.mark.parametrize("size", [1, 2])
def test_ties_must_not_know_the_current_point(size: int) -> None:
    """Erratum: "break ties arbitrarily" is wrong if the current point comes first."""
    error = not_stationary(transition_matrix(3, pivot_kernel(cyclic(), size), sorted_ties=True))
    assert (error > 0.05) if size == 2 else (error < EXACT)  # with one draw it is always chosen


@pytest.mark.parametrize("size", [1, 2])
def test_pivot_persistence(size: int) -> None:
    """The law of the pair is invariant, and the two tend to leap over each other."""
    forward, back = cyclic(), reversal(cyclic())
    law = P[:, None] * back
    after = np.zeros((3, 3))
    for one, two in itertools.product(range(3), repeat=2):

        def move(chance: Chance, one: int = one, two: int = two) -> tuple[int, int]:
            pair = pivot_persistence(
                Matrix(forward), Matrix(back), key, Pair(state(one), state(two)), chance, size=size
            )
            return int(pair.first[0, 0]), int(pair.second[0, 0])

        if law[one, two] > 0:
            for there, probability in Script().run(move):
                after[there] += law[one, two] * probability
    assert np.abs(after - law).max() < EXACT


@pytest.mark.parametrize("move", ["weights", "reflect"])
@pytest.mark.parametrize("size", [1, 2])
def test_pivot_metropolis(move: Any, size: int) -> None:
    """The pivot's proposal and the one from it are not related."""

    def kernel(points: FloatArray, chance: Chance) -> FloatArray:
        return pivot_metropolis(
            States(P), Matrix(SYMMETRIC), Matrix(Q), key, evaluated(States(P), points), chance,
            size=size, move=move,
        ).points  # fmt: skip

    found = transition_matrix(3, kernel)
    assert max(not_stationary(found), not_reversible(found)) < EXACT
    with pytest.raises(DataError, match="a proposal or more"):
        pivot_metropolis(
            States(P), Matrix(Q), Matrix(Q), key, evaluated(States(P), state(0)),
            Chance(np.random.default_rng(1)), size=0,
        )  # fmt: skip


def test_reflect_move() -> None:
    """Detailed balance, and the overlaps of the thesis's picture by hand."""
    rng = np.random.default_rng(4)
    for size in (1, 2, 5):
        probability = rng.dirichlet(np.ones(size))
        matrix = reflect_probabilities(np.tile(probability, (size, 1)), np.arange(size))
        assert not_reversible(matrix, probability) < EXACT
    ends = reflect_probabilities(np.array([[0.2, 0.5, 0.3]]), np.array([0]))
    np.testing.assert_allclose(ends, [[0, 0, 1]], atol=EXACT)  # [0, 0.2] becomes [0.8, 1]
    middle = reflect_probabilities(np.array([[0.2, 0.5, 0.3]]), np.array([1]))
    np.testing.assert_allclose(middle, [[0, 0.8, 0.2]], atol=EXACT)  # [0.2, 0.7]: [0.3, 0.8]


# Many chains at once, on densities of real numbers

SD = np.array([1.0, 0.5])


def gaussian(points: FloatArray) -> FloatArray:
    value: FloatArray = -0.5 * np.square(points / SD).sum(axis=1)
    return value


def prior(points: FloatArray) -> FloatArray:
    value: FloatArray = -0.1 * np.square(points).sum(axis=1)
    return value


def likelihood(points: FloatArray) -> FloatArray:
    return gaussian(points) - prior(points)


STEP, STEPS = GaussianStep(0.8), GaussianSteps([0.3, 2.0])


def from_metropolis(points: FloatArray, chance: Chance) -> FloatArray:
    return metropolis(gaussian, STEP, evaluated(gaussian, points), chance).after.points


def from_first(rows: Any, chance: Chance) -> FloatArray:
    """The full conditional of the first coordinate, of points that share the other."""
    return np.column_stack([chance.rng.standard_normal(rows.size), np.zeros(rows.size)])


def sliced(points: FloatArray, chance: Chance) -> FloatArray:
    direction = np.tile([1.0, 0.7], (len(points), 1))
    return two_factor_slice(prior, likelihood, points, direction, chance.rng).points


VECTORS: dict[str, Kernel] = {
    "metropolis": from_metropolis,
    "widths": lambda x, c: metropolis(gaussian, STEPS, evaluated(gaussian, x), c).after.points,
    "two stages": lambda x, c: (
        two_stage([prior, likelihood], STEP, factored([prior, likelihood], x), c).after.points
    ),
    "two-factor slice": sliced,
    "multiple try": lambda x, c: (
        multiple_try(
            gaussian, STEPS, evaluated(gaussian, x), c, tries=4, weighting="I"
        ).after.points
    ),
    "pivot": lambda x, c: (
        pivot_transition(from_metropolis, from_metropolis, key, x, c, size=6).points
    ),
    "pivot, self-sized": lambda x, c: (
        pivot_transition(from_metropolis, from_metropolis, key, x, c, size=Sizes(2, 8)).points
    ),
    "pivot Metropolis": lambda x, c: (
        pivot_metropolis(gaussian, STEP, STEPS, key, evaluated(gaussian, x), c, size=6).points
    ),
}


@pytest.mark.parametrize("name", VECTORS)
def test_exact_draws_stay_exact(name: str) -> None:
    """Paired changes of five means over 4000 chains are 0 within 4.2 errors.

    For eight kernels together that fails by chance with probability 1e-3.
    """
    rng = np.random.default_rng(11)
    before = SD * rng.standard_normal((4000, 2))
    after = VECTORS[name](before, Chance(rng))

    def functions(points: FloatArray) -> FloatArray:
        return np.column_stack([points, points**2, points[:, 0] * points[:, 1]])

    change = functions(after) - functions(before)
    score = change.mean(axis=0) / (change.std(axis=0, ddof=1) / np.sqrt(len(change)))
    assert np.all(np.abs(score) < 4.2), score
    assert np.mean(np.any(after != before, axis=1)) > 0.3


def test_two_factor_slice_saves_calls_of_the_likelihood() -> None:
    """Its counts are those of the functions; with a prior that vetoes much it calls L less."""
    counts = {"prior": 0, "likelihood": 0}

    def counted(name: str, density: Callable[[FloatArray], FloatArray]) -> Any:
        def call(points: FloatArray) -> FloatArray:
            counts[name] += len(points)
            return density(points)

        return call

    rng = np.random.default_rng(5)
    points = SD * rng.standard_normal((500, 2))
    step = two_factor_slice(
        counted("prior", gaussian), counted("likelihood", prior), points,
        np.full((500, 2), 8.0), rng,
    )  # fmt: skip
    assert (step.prior_calls, step.likelihood_calls) == (counts["prior"], counts["likelihood"])
    assert step.likelihood_calls < 0.6 * step.prior_calls
    moved = step.points - points
    np.testing.assert_allclose(moved[:, 0], moved[:, 1], atol=1e-12)  # along the direction


def test_overrelaxation_moves_a_quantile_to_its_opposite() -> None:
    """With many draws, x goes nearly to -x under a standard normal."""
    rng = np.random.default_rng(6)
    points = np.column_stack([rng.standard_normal(400), np.zeros(400)])
    after = ordered_overrelaxation(from_first, key, points, Chance(rng), 501).points
    # The opposite order statistic of 501 draws scatters by at most 0.06 within 1.5 of the middle.
    near = np.abs(points[:, 0]) < 1.5
    assert np.abs(after[near, 0] + points[near, 0]).std() < 3 * 0.06 * np.sqrt(2)


def test_gaussian_proposals() -> None:
    """Densities against the formula; settings are checked; values alone of a log density."""
    rng = np.random.default_rng(7)
    here, there = rng.normal(size=(5, 3)), rng.normal(size=(5, 3))

    def normal(sd: float) -> FloatArray:
        value: FloatArray = np.prod(
            np.exp(-0.5 * ((there - here) / sd) ** 2) / (sd * np.sqrt(2 * np.pi)), axis=1
        )
        return value

    np.testing.assert_allclose(STEP.log_density(there, here), np.log(normal(0.8)), rtol=1e-12)
    mixed = np.log(0.5 * normal(0.3) + 0.5 * normal(2.0))
    np.testing.assert_allclose(STEPS.log_density(there, here), mixed, rtol=1e-12)
    for wrong in (0.0, -1.0, np.inf):
        with pytest.raises(DataError, match="positive"):
            GaussianStep(wrong)
        with pytest.raises(DataError, match="positive"):
            GaussianSteps([1.0, wrong])
    density = value_of(lambda points: (gaussian(points), -points))
    np.testing.assert_array_equal(density(here[:, :2]), gaussian(here[:, :2]))
    with pytest.raises(DataError, match="a factor"):
        two_stage([], STEP, factored([prior], here), Chance(rng))
    assert isinstance(evaluated(gaussian, here[:, :2]), Chains)
