"""The matrix B(q) = chol(I + eta C(q)), C the covariance of the other walkers as seen from q.

Coordinates that enter the distance come first, so that B is a lower Cholesky factor in that order.
The implicit half step, the divergence and the determinants then only need the leading block of B,
and that block is all that the solver evaluates.

With W_kj = d_j w_k and a_k = B^-1 X_k, the derivative of B along the weight of walker k is
eta B Phi(a_k a_k^T), where Phi keeps the strictly lower part and half the diagonal
(Leimkuhler, Matthews and Weare 2018, section 3, where "strictly" is missing).  Its products with a
vector need sums over the coordinates before each, and no derivative of B is ever formed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.samplers.ensemble.implicit import HalfStep, cholesky_or_nan, identity
from harness.samplers.ensemble.roots import Flags, Midpoint, Root

Selected = slice | npt.NDArray[np.intp]
"""Indices of the selected coordinates, as a slice if they are the first ones."""

_MOST_PRODUCTS = 2_000_000  # of coordinates of the other walkers that are kept
_LARGEST_SPREAD = 1e6  # of squares about the mean of all for which sums of products are precise
_LARGEST_HEIGHT = 1e4  # lam/2 |S Q|^2 about the mean of all, so that no exponential overflows


@dataclass
class LocalRoot:
    """B at the places of n walkers.

    Attributes
    ----------
    factor
        B in the coordinates' own order, shape (n, D, D).
    leading
        Its block of the s selected coordinates, shape (n, s, s), lower triangular.
    reduced
        a_k = sqrt(eta) B^-1 X_k of the selected coordinates, shape (n, s, K).
    slope
        d_j w_k, shape (n, s, K).
    weight
        w_k, shape (n, K).
    selected
        Of the preconditioner.
    """

    factor: FloatArray
    leading: FloatArray
    reduced: FloatArray
    slope: FloatArray
    weight: FloatArray
    selected: Selected

    def times(self, p: FloatArray) -> FloatArray:
        """Return B p of each walker, shape (n, D)."""
        product: FloatArray = (self.factor @ p[:, :, None])[:, :, 0]
        return product

    def transposed_times(self, g: FloatArray) -> FloatArray:
        """Return B^T g of each walker, shape (n, D)."""
        product: FloatArray = (g[:, None, :] @ self.factor)[:, 0]
        return product

    def divergence(self) -> FloatArray:
        """Return div(B^T)_i = sum_j d_j B_ji, shape (n, D)."""
        # r_k = sum_j d_j w_k B_j., so that the divergence is sum_k r_k Phi(a_k a_k^T).
        part = self.leading.transpose(0, 2, 1) @ self.slope
        part *= self.reduced
        after = _phi(part.shape[1]).T @ part
        whole = np.zeros((len(part), self.factor.shape[1]))
        whole[:, self.selected] = np.vecdot(after, self.reduced)
        return whole

    def jacobian(self, p: FloatArray) -> FloatArray:
        """Return A_ij = sum_k d_j B_ik p_k for selected i and j, shape (..., n, s, s)."""
        return self.selected_jacobian(p[..., self.selected])

    def selected_jacobian(self, p: FloatArray) -> FloatArray:
        """Return the same for the selected coordinates of p, shape (..., n, s)."""
        product: FloatArray = self.leading @ (self._turned(p) @ self.slope.transpose(0, 2, 1))
        return product

    def log_determinant(self, step: FloatArray, p: FloatArray) -> FloatArray:
        """Return log|det(I + step A)|, shape (..., n), for momenta p (..., n, D).

        Only the selected columns of A are not zero, so the determinant is that of the selected
        block, V W; if there are fewer other walkers than selected coordinates, it is computed as
        det(I + step W V) (Sylvester).
        """
        pushed = step * p[..., self.selected]
        if self.slope.shape[1] <= self.slope.shape[2]:
            matrix = self.selected_jacobian(pushed)
        else:
            matrix = self.slope.transpose(0, 2, 1) @ (self.leading @ self._turned(pushed))
        matrix += identity(matrix.shape[-1])
        logarithm: FloatArray = np.linalg.slogdet(matrix)[1]
        return logarithm

    def _turned(self, p: FloatArray) -> FloatArray:
        """Return Phi(a_k a_k^T) p of every other walker k, shape (..., n, s, K).

        B times this, in the selected coordinates, is the derivative of B p along the weight w_k.
        """
        part = self.reduced * p[..., None]
        turned: FloatArray = _phi(part.shape[-2]) @ part
        turned *= self.reduced
        return turned


@cache
def _phi(size: int) -> FloatArray:
    """Return the matrix that sums what comes before an entry, and half of the entry itself."""
    return np.tri(size, k=-1) + 0.5 * np.eye(size)


class _Roots:
    """Weighted means and roots of covariances of the other walkers.

    The Cholesky factor of sum_k v_k y_k y_k^T, with y_k = (1, x_k) and weights v_k of any sum W, is
    sqrt(W) times [[1, 0], [m, chol(C)]] with the mean m and the covariance C: one product and one
    factorisation give both.  What is to be added to C is added to each x_k x_k^T.

    Parameters
    ----------
    places
        Coordinates of the other walkers about their common mean, shape (K, m).
    added
        What is added to the covariance, shape (m, m).
    precise
        Whether sums of products about the common mean are precise.  Otherwise they are those about
        the weighted mean.
    """

    def __init__(self, places: FloatArray, added: FloatArray, precise: bool) -> None:
        count, size = places.shape
        self._places, self._precise = places, precise
        self._with_one = np.concatenate([np.ones((count, 1)), places], axis=1)
        self._added = np.zeros((size + 1, size + 1))
        self._added[1:, 1:] = added
        if precise:
            products = self._with_one[:, :, None] * self._with_one[:, None] + self._added
            self._products = products.reshape(count, -1)

    def __call__(self, weight: FloatArray) -> FloatArray:
        """Return the lower Cholesky factors, shape (n, 1 + m, 1 + m), NaN where there is none.

        Parameters
        ----------
        weight
            Of each other walker, shape (n, K).
        """
        size = self._with_one.shape[1]
        if self._precise:
            return cholesky_or_nan((weight @ self._products).reshape(-1, size, size))
        whole = weight.sum(axis=1)
        mean = weight @ self._places / whole[:, None]
        centred = np.tile(self._with_one, (len(weight), 1, 1))
        centred[:, :, 1:] -= mean[:, None]
        matrix = (centred * weight[:, :, None]).transpose(0, 2, 1) @ centred
        matrix += whole[:, None, None] * self._added
        factor = cholesky_or_nan(matrix)
        factor[:, 1:, 0] = mean * factor[:, :1, 0]
        return factor


class LocalPreconditioner:
    """B(q) from the other walkers, weighted by their distance from q (eqs. 9 to 11).

    Parameters
    ----------
    others
        Positions of the K walkers of all other groups, shape (K, D); they stay frozen.
    eta
        Weight of the covariance in I + eta C(q), positive.
    lam
        Sharpness of the weights w_k propto exp(-lam/2 |S (Q_k - q)|^2), in inverse squares of the
        coordinates' units; positive.
    select
        Indices of the coordinates that enter the distance; by default all.
    scale
        Factors of these coordinates in the distance, one each; by default 1, as in eq. 11.

    Raises
    ------
    DataError
        If eta is not positive, there are no coordinates, or a factor is missing.
    """

    def __init__(
        self,
        others: FloatArray,
        eta: float,
        lam: float,
        select: Sequence[int] | None = None,
        scale: npt.ArrayLike | None = None,
    ) -> None:
        count, dimension = others.shape
        chosen, order = _coordinates(None if select is None else tuple(select), dimension)
        if not eta > 0:
            raise DataError(f"a local preconditioner needs a positive eta; got {eta}")
        size = self._size = chosen.size
        factors = np.ones(size) if scale is None else np.asarray(scale, dtype=np.float64)
        if factors.shape != chosen.shape:
            raise DataError(
                f"scale needs a factor for each of the {size} coordinates that enter the "
                f"distance; got shape {factors.shape}"
            )
        self.selected: Selected = slice(size) if order is None else chosen
        self._back = None if order is None else np.argsort(order)
        mean = others.mean(axis=0)
        self._centre = mean[self.selected]
        self._squares = lam * np.square(factors)
        # The selected coordinates come first, and as many columns of zeros last.
        places = np.zeros((count, dimension + size))
        np.subtract(others, mean, out=places[:, :dimension])
        if order is not None:
            places[:, :dimension] = places[:, order]
        self._near = np.ascontiguousarray(places[:, :size].T)  # (s, K)
        self._pull = self._squares[:, None] * self._near
        self._height = -0.5 * (self._pull * self._near).sum(axis=0)
        precise = (
            eta * float(np.square(places).max()) < _LARGEST_SPREAD
            and -float(self._height.min()) < _LARGEST_HEIGHT
            and count * (1 + dimension + size) ** 2 < _MOST_PRODUCTS
        )
        self._precise = precise
        places *= np.sqrt(eta)
        self._scaled = np.ascontiguousarray(places[:, :size].T)
        self._steepness = self._squares[:, None] / np.sqrt(eta)
        self._all = _Roots(places, _bordered(dimension, size), precise)
        self._leading = _Roots(places[:, :size], identity(size), precise)

    def _weights(self, x: FloatArray) -> FloatArray:
        """Return weights of the other walkers, the largest of which is 1, shape (n, K).

        Parameters
        ----------
        x
            Selected coordinates minus their mean over the other walkers, shape (n, s).
        """
        weight: FloatArray
        if self._precise:  # the logarithm up to a constant of each walker
            weight = x @ self._pull
            weight += self._height
        else:
            apart = self._near - x[:, :, None]
            weight = -0.5 * (self._squares @ np.square(apart))
        weight -= np.maximum.reduce(weight, axis=1, keepdims=True)
        return np.exp(weight, out=weight)

    def _moved_weights(self, root: LocalRoot, shift: FloatArray, start: FloatArray) -> FloatArray:
        """Return the weights at start + shift, but for a factor, given B at start."""
        if not self._precise:
            return self._weights(start + shift)
        weight: FloatArray = shift @ self._pull
        np.exp(weight, out=weight)
        weight *= root.weight
        return weight

    def root(self, q: FloatArray) -> LocalRoot:
        """Return B with its derivatives at points (n, D)."""
        return self._root(self._weights(q[:, self.selected] - self._centre))

    def _root(self, weight: FloatArray) -> LocalRoot:
        """Return B, given weights that need not be normalised, shape (n, K)."""
        size, root = self._size, self._all(weight)
        share = 1 / root[:, :1, 0]
        root *= share[:, :, None]
        weight *= np.square(share)
        end = root.shape[1] - size
        leading = root[:, 1 : 1 + size, 1 : 1 + size]
        centred = self._scaled - root[:, 1 : 1 + size, :1]  # (n, s, K)
        reduced = root[:, end:, 1 : 1 + size].transpose(0, 2, 1) @ centred
        centred *= weight[:, None]
        centred *= self._steepness
        factor = root[:, 1:end, 1:end]
        if self._back is not None:
            factor = factor[:, self._back[:, None], self._back]
        return LocalRoot(factor, leading, reduced, centred, weight, self.selected)

    def midpoint(self, q: FloatArray, p: FloatArray, step: FloatArray, root: Root) -> Midpoint:
        """Solve x = q + step B(x) p (eq. 13b).

        Raises
        ------
        TypeError
            If B at q is not a local one.
        """
        with np.errstate(over="ignore", invalid="ignore"):  # where a walker runs away
            half, weights = self._half_step(q, p, step, root)
            at, solved = half.solve(lambda shift: self._root(weights(shift)))
        return Midpoint(q + step * at.times(p), at, solved)

    def returns(
        self, q: FloatArray, p: FloatArray, step: FloatArray, root: Root, midpoint: Midpoint
    ) -> Flags:
        """Whether the solution from q with momentum p is the midpoint, to 1e-8.

        The selected coordinates decide, because B depends on no others.  The solver goes the way of
        the reversed step, whose own solution this is: to stop as soon as it comes near would let
        steps pass whose reverse fails.
        """
        known = midpoint.q[:, self.selected] - q[:, self.selected]
        with np.errstate(over="ignore", invalid="ignore"):
            half, _ = self._half_step(q, p, step, root)
            return half.ends_at(known)

    def choose(self, chosen: Flags, new: Root, old: Root) -> Root:
        """Return the new B of the walkers that are chosen, and the old one of the others."""
        if chosen.all():
            return new
        if not (isinstance(new, LocalRoot) and isinstance(old, LocalRoot)):
            raise TypeError("a local preconditioner chooses between its own matrices")
        rows = np.flatnonzero(~chosen)
        for name in ("factor", "leading", "reduced", "slope", "weight"):
            getattr(new, name)[rows] = getattr(old, name)[rows]
        return new

    def _half_step(
        self, q: FloatArray, p: FloatArray, step: FloatArray, root: Root
    ) -> tuple[HalfStep, Callable[[FloatArray], FloatArray]]:
        """Return the equation to be solved, and the weights as a function of where q moves."""
        if not isinstance(root, LocalRoot):
            raise TypeError("a local preconditioner needs its own matrix at q")
        start, push = q[:, self.selected] - self._centre, step * p[:, self.selected]
        column = push[:, :, None]

        def weights(shift: FloatArray) -> FloatArray:
            return self._moved_weights(root, shift, start)

        def moves(shift: FloatArray) -> FloatArray:
            factor = self._leading(weights(shift))
            moved: FloatArray = (factor[:, 1:, 1:] @ column)[:, :, 0]
            moved /= factor[:, :1, 0]
            return moved

        reach = 1 + np.maximum.reduce(np.abs(q), axis=1, keepdims=True)
        first = (root.leading @ column)[:, :, 0]
        return HalfStep(push, first, root.selected_jacobian(push), reach, moves), weights


def selected_coordinates(select: Sequence[int] | None, dimension: int) -> npt.NDArray[np.intp]:
    """Return the indices of the coordinates that enter the distance, by default all.

    Raises
    ------
    DataError
        If there are none, or an index is not one of a coordinate.
    """
    chosen = np.arange(dimension) if select is None else np.asarray(list(select), dtype=np.intp)
    known = np.isin(chosen, np.arange(dimension)).all()
    if not (chosen.size and known and np.unique(chosen).size == chosen.size):
        raise DataError(
            f"different coordinates from 0 to {dimension - 1}, one or more, go into select; "
            f"got {chosen.tolist()}"
        )
    return chosen


@cache
def _coordinates(
    select: tuple[int, ...] | None, dimension: int
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp] | None]:
    """Return the selected coordinates, and all with these first; None if they come first anyway."""
    chosen = selected_coordinates(select, dimension)
    order = np.concatenate([chosen, np.setdiff1d(np.arange(dimension), chosen)])
    return chosen, None if (order == np.arange(dimension)).all() else order


@cache
def _bordered(dimension: int, size: int) -> FloatArray:
    """Return the identity, bordered so that the Cholesky factor of M holds an inverse besides.

    With E the first columns of the identity, that of [[M, E], [E^T, 2 I]] holds E^T B^-T in its
    last rows, the inverse of the leading block of B.  M is at least the identity, so that the
    bordered matrix is positive definite.
    """
    matrix = np.diag(np.repeat([1.0, 2.0], [dimension, size]))
    matrix[dimension:, :size] = matrix[:size, dimension:] = np.eye(size)
    return matrix
