"""The matrix B that is the same at every point: none, any given one, or one of low rank."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol, Self

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray
from harness.errors import SamplingError

Flags = npt.NDArray[np.bool_]


class Root(Protocol):
    """The matrix B at the places of n walkers, with the derivatives that a step needs."""

    def times(self, p: FloatArray) -> FloatArray:
        """Return B p of each walker, shape (n, D)."""

    def transposed_times(self, g: FloatArray) -> FloatArray:
        """Return B^T g of each walker, shape (n, D)."""

    def divergence(self) -> FloatArray | None:
        """Return div(B^T)_i = sum_j d_j B_ji, shape (n, D); None if B is constant."""

    def log_determinant(self, step: FloatArray, p: FloatArray) -> FloatArray | None:
        """Return log|det(I + step A(q, p))| with A_ij = sum_k d_j B_ik p_k, shape (..., n).

        Steps (..., n, 1) and momenta (..., n, D) may be stacked.  None if B is constant, so that it
        is 0.
        """


class Midpoint(NamedTuple):
    """Where the implicit half step ends."""

    q: FloatArray
    """Shape (n, D)."""
    root: Root
    """B there."""
    solved: Flags | None
    """Of each walker, whether it was found; None if nothing was to be solved."""


class Preconditioner(Protocol):
    """B as a function of the place, while the other groups are frozen."""

    def root(self, q: FloatArray) -> Root:
        """Return B at points (n, D)."""

    def midpoint(self, q: FloatArray, p: FloatArray, step: FloatArray, root: Root) -> Midpoint:
        """Solve x = q + step B(x) p, given B at q; ``step`` has the shape (n, 1)."""

    def returns(
        self, q: FloatArray, p: FloatArray, step: FloatArray, root: Root, midpoint: Midpoint
    ) -> Flags | None:
        """Whether the same solution from q with momentum p is a midpoint that is already known.

        None if it always is.
        """

    def choose(self, chosen: Flags, new: Root, old: Root) -> Root:
        """Return the new B of the walkers that are chosen, and the old one of the others."""


class _Constant:
    """What a B that does not depend on the place need not compute, for a class that is a Root."""

    def root(self, q: FloatArray) -> Self:
        """Return B, which is the same at every point."""
        return self

    def divergence(self) -> None:
        """Return None: it is 0."""

    def log_determinant(self, step: FloatArray, p: FloatArray) -> None:
        """Return None: it is 0."""

    def midpoint(self, q: FloatArray, p: FloatArray, step: FloatArray, root: Root) -> Midpoint:
        """Return q + step B p, which needs no solving."""
        return Midpoint(q + step * root.times(p), root, None)

    def returns(
        self, q: FloatArray, p: FloatArray, step: FloatArray, root: Root, midpoint: Midpoint
    ) -> None:
        """Return None: the step back always ends where the step began."""

    def choose(self, chosen: Flags, new: Root, old: Root) -> Self:
        """Return B, which is the same everywhere."""
        return self


@dataclass(frozen=True)
class FixedRoot(_Constant):
    """A constant B; None is the identity, with which the step is that of plain Langevin dynamics.

    Attributes
    ----------
    matrix
        Shape (D, D), any square root of the covariance that the target is scaled by.
    """

    matrix: FloatArray | None = None

    def times(self, p: FloatArray) -> FloatArray:
        """Return B p, shape (n, D)."""
        return p if self.matrix is None else p @ self.matrix.T

    def transposed_times(self, g: FloatArray) -> FloatArray:
        """Return B^T g, shape (n, D)."""
        return g if self.matrix is None else g @ self.matrix


@dataclass(frozen=True)
class LowRankRoot(_Constant):
    """B = I + V c V^T with orthonormal columns V, symmetric: a product costs O(D K).

    Attributes
    ----------
    directions
        V, shape (D, r).
    stretch
        c, shape (r,).
    """

    directions: FloatArray
    stretch: FloatArray

    def times(self, p: FloatArray) -> FloatArray:
        """Return B p, shape (n, D)."""
        return p + (p @ self.directions * self.stretch) @ self.directions.T

    def transposed_times(self, g: FloatArray) -> FloatArray:
        """Return B^T g, which is B g, shape (n, D)."""
        return self.times(g)


def covariance_root(
    others: FloatArray, eta: float, *, low_rank: bool = False
) -> FixedRoot | LowRankRoot:
    """Return a square root of I + eta C, with C the covariance of all other walkers (lam = 0).

    Parameters
    ----------
    others
        Positions of the K other walkers, shape (K, D).  C is normalised by 1 / K.
    eta
        Weight of the covariance.
    low_rank
        Use I + V (sqrt(1 + s^2) - 1) V^T with the singular values s of sqrt(eta / K) (Q - mean),
        which takes O(D K^2), in place of the lower Cholesky factor.

    Raises
    ------
    SamplingError
        If the walkers are so far apart that I + eta C has no Cholesky factor in double precision.
    """
    scaled = (others - others.mean(axis=0)) * np.sqrt(eta / len(others))
    if low_rank:
        _, singular, directions = np.linalg.svd(scaled, full_matrices=False)
        return LowRankRoot(np.ascontiguousarray(directions.T), np.sqrt(1 + np.square(singular)) - 1)
    matrix = scaled.T @ scaled
    matrix[np.diag_indices_from(matrix)] += 1
    try:
        return FixedRoot(np.linalg.cholesky(matrix))
    except np.linalg.LinAlgError:
        raise SamplingError(
            f"the walkers are too far apart for eta = {eta:g}: the largest distance from their "
            f"mean is {np.abs(others - others.mean(axis=0)).max():.3g}; rescale the parameters"
        ) from None
