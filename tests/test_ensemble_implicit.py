"""The ensemble's implicit half step: what it solves, when it gives up, and how precise B is."""

from __future__ import annotations

import numpy as np
import pytest
from ensemble_banana import ETA, LAM, OTHERS, banana_preconditioner, exact_draws

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.samplers.ensemble import FixedRoot, LocalPreconditioner
from harness.samplers.ensemble.implicit import HalfStep

SELECTED = (None, (0, 1), (2, 0))


def directly(
    q: FloatArray, others: FloatArray, eta: float, lam: float, chosen: list[int]
) -> FloatArray:
    """B of one walker in the order of its coordinates, from section 3's equations."""
    weight = np.exp(-lam / 2 * np.square((others - q)[:, chosen]).sum(axis=1))
    weight /= weight.sum()
    about = others - weight @ others
    covariance = (weight[:, None] * about).T @ about
    rest = [i for i in range(q.size) if i not in chosen]
    order = np.array([*chosen, *rest])
    factor = np.linalg.cholesky((np.eye(q.size) + eta * covariance)[np.ix_(order, order)])
    back = np.argsort(order)
    return np.asarray(factor[np.ix_(back, back)])


@pytest.mark.parametrize("select", SELECTED)
def test_what_is_found_solves_the_equation(select: tuple[int, ...] | None) -> None:
    """To the tolerance, 1e-11 of 1 + |q|."""
    rng, count = np.random.default_rng(1), 200
    preconditioner, chosen = banana_preconditioner(2, select), list(select or range(3))
    others = exact_draws(OTHERS, np.random.default_rng(2))
    q, p, step = exact_draws(count, rng), rng.standard_normal((count, 3)), np.full((count, 1), 0.2)
    found = preconditioner.midpoint(q, p, step, preconditioner.root(q))
    assert found.solved is not None
    assert found.solved.mean() > 0.9
    for w in np.flatnonzero(found.solved):
        x, reach = found.q[w], 1 + np.abs(q[w]).max()
        miss = q[w] + 0.2 * directly(x, others, ETA, LAM, chosen) @ p[w] - x
        # The tolerance holds where B was evaluated, before the last move.
        assert np.abs(miss).max() < 3e-11 * reach
    with np.errstate(invalid="raise", over="raise"):
        stays = preconditioner.midpoint(q, 0 * p, step, preconditioner.root(q))
    np.testing.assert_allclose(stays.q, q, rtol=1e-15)


def half_step(linear: FloatArray, bend: FloatArray) -> HalfStep:
    """Solve shift = linear + bend shift^2 of one coordinate each, from 0 with J = 1."""
    push = linear[:, None]

    def moves(shift: FloatArray) -> FloatArray:
        return push + bend[:, None] * np.square(shift)

    jacobian, reach = np.zeros((len(push), 1, 1)), np.ones_like(push)
    with np.errstate(over="ignore", invalid="ignore"):
        return HalfStep(push, moves(0 * push), jacobian, reach, moves)


class Block:
    """What stands for B: a factor that makes B p the right-hand side."""

    def __init__(self, linear: FloatArray, bend: FloatArray, shift: FloatArray) -> None:
        self.leading = ((linear + bend * shift[:, 0] ** 2) / linear)[:, None, None]
        self.shift = shift


def test_a_walker_without_a_solution_fails_alone() -> None:
    """Of x = a + b x^2: (1 -+ sqrt(1 - 4 a b)) / (2 b), or none where 4 a b > 1."""
    linear, bend = np.array([0.1, 0.2, 1.0, 0.1, np.nan]), np.array([1.0, 0.5, 1.0, 0.0, 1.0])
    with np.errstate(over="ignore", invalid="ignore"):
        at, solved = half_step(linear, bend).solve(lambda shift: Block(linear, bend, shift))
        alone, _ = half_step(linear[:2], bend[:2]).solve(
            lambda shift: Block(linear[:2], bend[:2], shift)
        )
    np.testing.assert_array_equal(solved, [True, True, False, True, False])
    expected = (1 - np.sqrt(1 - 4 * linear[:2] * bend[:2])) / (2 * bend[:2])
    np.testing.assert_allclose(at.shift[:2, 0], expected, atol=1e-11)
    np.testing.assert_array_equal(at.shift[:2], alone.shift)
    np.testing.assert_array_equal(at.shift[2:, 0], [0, 0.1, 0])  # back at the start


def test_a_known_solution_counts_only_if_the_way_leads_there() -> None:
    linear, bend = np.full(3, 0.1), np.ones(3)
    low, high = (1 - np.sqrt(0.6)) / 2, (1 + np.sqrt(0.6)) / 2
    known = np.array([[low], [high], [low + 1e-6]])
    same = half_step(linear, bend).ends_at(known)
    np.testing.assert_array_equal(same, [True, False, False])
    nowhere = np.ones(1)
    with np.errstate(over="ignore", invalid="ignore"):
        assert not half_step(nowhere, nowhere).ends_at(np.array([[0.5]])).any()


@pytest.mark.parametrize("apart", [1.0, 50.0, 200.0, 600.0, 1e5])
def test_b_is_precise_however_far_apart_the_modes_are(apart: float) -> None:
    """About the mean of all, or of each walker's own where that loses more than ten digits."""
    rng, eta, lam = np.random.default_rng(3), 10.0, 0.1
    others = rng.standard_normal((24, 4))
    others[12:] += apart * np.array([0.5, 0.3, 1.0, 0.2])
    q = others[[0, 20]] + 0.3
    found = LocalPreconditioner(others, eta, lam, (0, 2)).root(q)
    for row, factor in zip(q, found.factor, strict=True):
        expected = directly(row, others, eta, lam, [0, 2])
        np.testing.assert_allclose(factor, expected, rtol=1e-10, atol=1e-10)


def test_without_scaling_there_is_no_local_root() -> None:
    with pytest.raises(DataError, match="positive eta"):
        LocalPreconditioner(np.eye(3), 0.0, 1.0)
    q = np.zeros((1, 3))
    with pytest.raises(TypeError, match="its own matrix"):
        LocalPreconditioner(np.eye(3), 1.0, 1.0).midpoint(q, q, np.ones((1, 1)), FixedRoot())
