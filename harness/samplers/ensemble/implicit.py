"""The implicit half step x = q + h B(x) p, solved in the coordinates that B depends on.

Each round evaluates B once, and moves by J (q + h B(x) p - x), where J = (I - h A(q, p))^-1 is the
inverse of the Jacobian at the start: some three digits a round, where the plain fixed-point
iteration gains one.  From the second round on the last two moves are extrapolated (Anderson 1965),
which gains one to three more.

References
----------
Anderson, D. G. (1965). Iterative procedures for nonlinear integral equations. Journal of the ACM
12, 547-560.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Protocol, TypeVar

import numpy as np

from harness.arrays import FloatArray
from harness.samplers.ensemble.roots import Flags

_TOLERANCE = 1e-11  # of the solution, relative to 1 + |q|
_MOST_ROUNDS = 60
_FIRST_ROUNDS = 2  # which everybody needs, so that nothing is looked at before
_PATIENCE = 8  # rounds in which the solution must come ten times nearer
_MOST_EXTRAPOLATION = 0.25  # of a move; where more is due, two moves say too little
_EXPECTED = 10.0  # tolerances that an extrapolation may have for the solution to be likely
_SAME = 1e-8  # distance of two solutions that count as the same, relative to 1 + |q|
_TINY = 1e-300


class HasLeading(Protocol):
    """The whole matrix B at some places, of which the solver needs a block."""

    leading: FloatArray
    """The block of the s selected coordinates, shape (n, s, s)."""


_Whole = TypeVar("_Whole", bound=HasLeading)


class HalfStep:
    """One half step of n walkers, as the shift x - q of their s selected coordinates.

    A walker that is done keeps its place, so that its result does not depend on the others of its
    group.

    Parameters
    ----------
    push
        h p, shape (n, s).
    first
        h B(q) p, shape (n, s).
    jacobian
        h A(q, p), shape (n, s, s).
    reach
        What the tolerances are relative to, 1 + |q|, shape (n, 1).
    moves
        h B(x) p as a function of the shift, both of shape (n, s).
    """

    def __init__(
        self,
        push: FloatArray,
        first: FloatArray,
        jacobian: FloatArray,
        reach: FloatArray,
        moves: Callable[[FloatArray], FloatArray],
    ) -> None:
        self._push, self._reach, self._moves = push, reach, moves
        self._tolerance = _TOLERANCE * reach
        self._inverse = inverse_or_nan(identity(push.shape[1]) - jacobian)
        self._shift = self._newton(first)
        self._done = np.zeros((len(push), 1), dtype=np.bool_)
        self._failed = np.zeros((len(push), 1), dtype=np.bool_)
        self._before: FloatArray | float = np.inf
        self._wish = self._move = self._newton(self._miss())
        self._shift = self._shift + self._move
        for _ in range(1, _FIRST_ROUNDS):
            self._extrapolate(self._newton(self._miss()))
            self._shift = self._shift + self._move

    def solve(self, whole: Callable[[FloatArray], _Whole]) -> tuple[_Whole, Flags]:
        """Find where each walker goes.

        Parameters
        ----------
        whole
            The whole matrix as a function of the shift.  It is evaluated after the first rounds,
            and as soon as all are likely to be where they go; its block then confirms that.

        Returns
        -------
        tuple
            The matrix at the solution, or at the start where there is none; whether there is one,
            shape (n,).
        """
        at: _Whole | None = None
        for turn in range(_FIRST_ROUNDS + 1, _MOST_ROUNDS + 1):
            if turn == _FIRST_ROUNDS + 1 or self._likely():
                at = whole(self._shift)
                miss = (at.leading @ self._push[:, :, None])[:, :, 0]
                miss -= self._shift
            else:
                at, miss = None, self._miss()
            if self._judge(turn, miss):
                break
            self._go(self._newton(miss))
        if at is None or not self._done.all():
            at = whole(np.where(self._done, self._shift, 0.0))
        return at, self._done[:, 0]

    def ends_at(self, known: FloatArray) -> Flags:
        """Whether each walker goes to a solution that is known, shape (n,), to 1e-8.

        Within the tolerance of a known solution nothing has to be evaluated to see that the
        equation holds; but the way there is that of :meth:`solve`, whatever is known.

        Parameters
        ----------
        known
            A shift that solves the equation, shape (n, s).
        """
        for turn in range(_FIRST_ROUNDS + 1, _MOST_ROUNDS + 1):
            self._done |= (_largest(self._shift - known) <= self._tolerance) & ~self._failed
            if self._done.all():
                return self._done[:, 0]
            miss = self._miss()
            if self._judge(turn, miss):
                break
            self._go(self._newton(miss))
        same: Flags = self._done & (_largest(self._shift - known) <= _SAME * self._reach)
        return same[:, 0]

    def _miss(self) -> FloatArray:
        """Return q + h B(x) p - x."""
        miss = self._moves(self._shift)
        miss -= self._shift
        return miss

    def _newton(self, miss: FloatArray) -> FloatArray:
        """Return J times what is missing."""
        wish: FloatArray = (self._inverse @ miss[:, :, None])[:, :, 0]
        return wish

    def _go(self, wish: FloatArray) -> None:
        """Move everybody who is neither done nor failed."""
        self._extrapolate(wish)
        self._shift = self._shift + np.where(self._done | self._failed, 0.0, self._move)

    def _extrapolate(self, wish: FloatArray) -> None:
        """Say how to move, given what one round would do and what the last one did."""
        change = wish - self._wish
        share = np.vecdot(wish, change) / (np.vecdot(change, change) + _TINY)
        share = np.minimum(np.maximum(share, -_MOST_EXTRAPOLATION), _MOST_EXTRAPOLATION)
        change += self._move
        change *= share[:, None]
        self._extrapolated, self._wish = change, wish
        self._move = wish - change

    def _likely(self) -> bool:
        """Whether everybody's last extrapolation was small, which is larger than what is left."""
        small = _largest(self._extrapolated) <= _EXPECTED * self._tolerance
        return bool(small.all() or (small | self._done | self._failed).all())

    def _judge(self, turn: int, miss: FloatArray) -> bool:
        """Say who is done and who has failed, from what is missing; return whether all are."""
        size = _largest(miss)
        self._done |= (size <= self._tolerance) & ~self._failed
        if self._done.all():
            return True
        self._failed |= np.isnan(size)
        if turn % _PATIENCE == 0:
            self._failed |= ~self._done & (size > 0.1 * self._before)
            self._before = size
        return bool((self._done | self._failed).all())


def _largest(vectors: FloatArray) -> FloatArray:
    """Return the largest absolute value of each row, shape (n, 1)."""
    largest: FloatArray = np.maximum.reduce(np.abs(vectors), axis=1, keepdims=True)
    return largest


@cache
def identity(size: int) -> FloatArray:
    """Return the identity matrix, which nobody changes."""
    return np.eye(size)


def cholesky_or_nan(matrices: FloatArray) -> FloatArray:
    """Return lower Cholesky factors, NaN of those that are not positive definite in rounding."""
    try:
        return np.asarray(np.linalg.cholesky(matrices), dtype=np.float64)
    except np.linalg.LinAlgError:
        return _one_by_one(np.linalg.cholesky, matrices)


def inverse_or_nan(matrices: FloatArray) -> FloatArray:
    """Return inverses, NaN of singular matrices."""
    try:
        return np.asarray(np.linalg.inv(matrices), dtype=np.float64)
    except np.linalg.LinAlgError:
        return _one_by_one(np.linalg.inv, matrices)


def _one_by_one(function: Callable[[FloatArray], Any], matrices: FloatArray) -> FloatArray:
    """Apply a function to each matrix, with NaN where it fails."""
    result = np.full_like(matrices, np.nan)
    for row, matrix in zip(result, matrices, strict=True):
        try:
            row[:] = function(matrix)
        except np.linalg.LinAlgError:
            continue
    return result
