"""Evaluations that never return are left behind, and the others are what they were."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from stan_density import stanli

from harness.arrays import FloatArray
from harness.engine.batched import BatchedDensity
from harness.engine.patience import NeverReturned, may_not_return
from harness.engine.patient_rows import PatientRows
from harness.engine.program import StanProgram
from harness.engine.stan_library import StanInstance

assert stanli is not None

PROGRAM = """
parameters {{ vector[2] x; }}
model {{
  real s = 0;
  {loop} (s < 1) {{ s += 1; }}
  x ~ normal(s, 2);
}}
"""


class Circling:
    """Computes sums of squares; does not come back from a coordinate above 5 until it may."""

    def __init__(self) -> None:
        self.may_return, self.rows = threading.Event(), 0

    def __call__(
        self,
        instances: Sequence[StanInstance],
        points: FloatArray,
        value: FloatArray,
        gradient: FloatArray | None,
    ) -> None:
        del instances
        if (points > 5).any():
            self.may_return.wait()
        self.rows += len(points)
        value[:] = (points**2).sum(axis=1)
        if gradient is not None:
            gradient[:] = 2 * points


class _TooMany(Circling):
    def __call__(
        self,
        instances: Sequence[StanInstance],
        points: FloatArray,
        value: FloatArray,
        gradient: FloatArray | None,
    ) -> None:
        super().__call__(instances, np.zeros((2, 1)), value, gradient)


def test_an_evaluation_that_does_not_return_is_given_up() -> None:
    circling = Circling()
    rows = PatientRows(circling, patience=0.2)
    points = np.array([[1.0, 2.0], [0.5, 6.0], [3.0, 1.0]])
    value, gradient = np.zeros(3), np.zeros((3, 2))
    with pytest.raises(NeverReturned, match=r"did not end within 0\.2 s"):
        rows((), points, value, gradient)
    before = value.copy(), gradient.copy()
    # From now on nothing is asked of it, since its thread still works.
    with pytest.raises(NeverReturned):
        rows((), points[:1], value, None)
    assert circling.rows == 1
    # What it writes when it does come back is not written into the caller's arrays.
    circling.may_return.set()
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and thread.daemon:
            thread.join(2.0)
    np.testing.assert_array_equal(value, before[0])
    np.testing.assert_array_equal(gradient, before[1])


def test_evaluations_that_return_are_all_there() -> None:
    points = np.random.default_rng(1).uniform(-4, 4, (501, 3))
    value, gradient = np.zeros(501), np.zeros((501, 3))
    circling = Circling()
    PatientRows(circling, patience=30)((), points, value, gradient)
    np.testing.assert_array_equal(value, (points**2).sum(axis=1))
    np.testing.assert_array_equal(gradient, 2 * points)
    assert circling.rows == 501


def test_what_an_evaluation_raises_is_raised() -> None:
    with pytest.raises(ValueError, match="broadcast"):  # no room for two values
        PatientRows(_TooMany())((), np.zeros((1, 1)), np.zeros(1), None)


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("while (x > 1) x -= 1;", True),
        ("y = solve_newton_tol(f, x0, 1e-3, 1e-3, 100, a);", True),
        ("y = ode_rk45(f, y0, 0, t, a);", True),
        ("y = integrate_1d(f, 0, 1, {a}, r, i);", True),
        ("meanwhile = model_ode + daedalus;", False),
        ("for (n in 1 : N) x[n] ~ normal(0, 1);", False),
    ],
)
def test_programs_with_loops_and_solvers_are_known(
    statement: str, expected: bool, tmp_path: Path
) -> None:
    path = tmp_path / "target.stan"
    path.write_text(f"model {{ {statement} }}", encoding="utf-8")
    assert may_not_return(StanProgram(path)) is expected


def test_a_program_with_a_loop_has_the_density_of_the_same_without(tmp_path: Path) -> None:
    points = np.random.default_rng(2).normal(size=(70, 2))
    found = []
    for loop in ("while", "if"):
        path = tmp_path / loop / "target.stan"
        path.parent.mkdir()
        path.write_text(PROGRAM.format(loop=loop), encoding="utf-8")
        found.append(BatchedDensity(StanProgram(path), {}, threads=2)(points))
    exact = -0.125 * ((points - 1) ** 2).sum(axis=1)
    for value, gradient in found:
        np.testing.assert_allclose(value - value[0], exact - exact[0], rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(gradient, -0.25 * (points - 1), rtol=1e-12)
