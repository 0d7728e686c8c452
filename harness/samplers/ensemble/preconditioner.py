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
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.samplers.ensemble.roots import Flags, Midpoint, Root

Selected = slice | npt.NDArray[np.intp]
"""Indices of the selected coordinates, as a slice if they are the first ones."""

_TOLERANCE = 1e-11  # of the implicit solution, relative to 1 + |q|
_MOST_ROUNDS = 60
_PATIENCE = 8  # rounds in which the solution must come ten times nearer
_SAME = 1e-8  # distance of two solutions that count as the same, relative to 1 + |q|
_MOST_PRODUCTS = 2_000_000  # of coordinates of the other walkers that are kept
_LARGEST_SPREAD = 1e6  # of squares about the mean of all for which sums of products are precise


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
        a_k = B^-1 X_k of the selected coordinates, shape (n, s, K).
    slope
        d_j w_k, shape (n, s, K).
    eta, selected
        Of the preconditioner.
    """

    factor: FloatArray
    leading: FloatArray
    reduced: FloatArray
    slope: FloatArray
    eta: float
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
        # r_k = sum_j d_j w_k B_j., so that the divergence is eta sum_k r_k Phi(a_k a_k^T).
        part = self.leading.transpose(0, 2, 1) @ self.slope
        part *= self.reduced
        after = _phi(part.shape[1]).T @ part
        after *= self.reduced
        whole = np.zeros((len(part), self.factor.shape[1]))
        whole[:, self.selected] = self.eta * after.sum(axis=2)
        return whole

    def along_weights(self, p: FloatArray) -> FloatArray:
        """Return the derivatives of (B p)[selected] along the weights w_k, shape (..., n, s, K)."""
        part = self.reduced * p[..., self.selected, None]
        before = _phi(part.shape[-2]) @ part
        before *= self.reduced
        before *= self.eta
        product: FloatArray = self.leading @ before
        return product

    def jacobian(self, p: FloatArray) -> FloatArray:
        """Return A_ij = sum_k d_j B_ik p_k for selected i and j, shape (..., n, s, s)."""
        product: FloatArray = self.along_weights(p) @ self.slope.transpose(0, 2, 1)
        return product

    def log_determinant(self, step: FloatArray, p: FloatArray) -> FloatArray:
        """Return log|det(I + step A)|, shape (..., n), for momenta p (..., n, D).

        Only the selected columns of A are not zero, so the determinant is that of the selected
        block, V W; if there are fewer other walkers than selected coordinates, it is computed as
        det(I + step W V) (Sylvester).
        """
        along, slope = self.along_weights(p), self.slope.transpose(0, 2, 1)
        small = self.slope.shape[1] <= self.slope.shape[2]
        matrix = along @ slope if small else slope @ along
        matrix *= step[..., None]
        matrix += _identity(matrix.shape[-1])
        logarithm: FloatArray = np.linalg.slogdet(matrix)[1]
        return logarithm


@cache
def _identity(size: int) -> FloatArray:
    return np.eye(size)


@cache
def _phi(size: int) -> FloatArray:
    """Return the matrix that sums what comes before an entry, and half of the entry itself."""
    return np.tri(size, k=-1) + 0.5 * np.eye(size)


class LocalPreconditioner:
    """B(q) from the other walkers, weighted by their distance from q (eqs. 9 to 11).

    Parameters
    ----------
    others
        Positions of the K walkers of all other groups, shape (K, D); they stay frozen.
    eta
        Weight of the covariance in I + eta C(q), at least 0.
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
        If there are no coordinates, or a factor is missing.
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
        self.eta, self.lam = eta, lam
        chosen = selected_coordinates(select, dimension)
        factors = np.ones(chosen.size) if scale is None else np.asarray(scale, dtype=np.float64)
        if factors.shape != chosen.shape:
            raise DataError(
                f"scale needs a factor for each of the {chosen.size} coordinates that enter the "
                f"distance; got shape {factors.shape}"
            )
        order = np.concatenate([chosen, np.setdiff1d(np.arange(dimension), chosen)])
        natural = bool((order == np.arange(dimension)).all())
        self._size = chosen.size
        self.selected: Selected = slice(chosen.size) if natural else chosen
        self._back = None if natural else np.argsort(order)
        self._centre = others.mean(axis=0)[chosen]
        self._squares = lam * np.square(factors)
        places = others[:, order] - others[:, order].mean(axis=0)
        self._near = np.ascontiguousarray(places[:, : chosen.size].T)  # (s, K)
        self._pull = self._squares[:, None] * self._near
        self._height = -0.5 * (self._pull * self._near).sum(axis=0)
        # Scaled by sqrt(eta), all coordinates and the selected ones.
        self._places = places * np.sqrt(eta)
        self._leading = np.ascontiguousarray(self._places[:, : chosen.size])
        spread = max(eta, self._squares.max()) * float(np.square(places).max(initial=0.0))
        precise = spread < _LARGEST_SPREAD and count * dimension**2 < _MOST_PRODUCTS
        self._products = _products(self._places) if precise else None
        self._leading_products = _products(self._leading) if precise else None

    def weights(self, x: FloatArray) -> FloatArray:
        """Return the weights w_k of the other walkers, shape (n, K), through log-sum-exp.

        Parameters
        ----------
        x
            Selected coordinates minus their mean over the other walkers, shape (n, s).
        """
        if self._products is None:
            apart = self._near - x[:, :, None]
            weight = -0.5 * (self._squares @ np.square(apart))
        else:  # the same up to a constant of each walker
            weight = x @ self._pull
            weight += self._height
        weight -= weight.max(axis=1, keepdims=True)
        np.exp(weight, out=weight)
        weight /= weight.sum(axis=1, keepdims=True)
        return weight

    def root(self, q: FloatArray) -> LocalRoot:
        """Return B with its derivatives at points (n, D)."""
        return self._root(q[:, self.selected] - self._centre)

    def _root(self, x: FloatArray) -> LocalRoot:
        """Return B where the selected coordinates are, relative to the centre, x (n, s)."""
        weight, size = self.weights(x), self._size
        factor = self._cholesky(weight, self._places, self._products)
        leading = np.ascontiguousarray(factor[:, :size, :size])
        centred = self._near - (weight @ self._near.T)[:, :, None]  # (n, s, K)
        reduced = _inverse(leading) @ centred
        centred *= weight[:, None]
        centred *= self._squares[:, None]
        if self._back is not None:
            factor = factor[:, self._back[:, None], self._back]
        return LocalRoot(factor, leading, reduced, centred, self.eta, self.selected)

    def midpoint(self, q: FloatArray, p: FloatArray, step: FloatArray, root: Root) -> Midpoint:
        """Solve x = q + step B(x) p (eq. 13b).

        Raises
        ------
        TypeError
            If B at q is not a local one.
        """
        x, solved = self._solve(q, p, step, root, None)
        at = self._root(x)
        return Midpoint(q + step * at.times(p), at, solved)

    def returns(
        self, q: FloatArray, p: FloatArray, step: FloatArray, root: Root, midpoint: Midpoint
    ) -> Flags:
        """Whether the solution from q with momentum p is the midpoint, to 1e-8.

        The selected coordinates decide, because B depends on no others.  The solver runs to its
        end as in the reversed step, whose own solution this is: to stop as soon as it comes near
        would let steps pass whose reverse fails.
        """
        return self._solve(q, p, step, root, midpoint.q[:, self.selected] - self._centre)[1]

    def choose(self, chosen: Flags, new: Root, old: Root) -> Root:
        """Return the new B of the walkers that are chosen, and the old one of the others."""
        if chosen.all():
            return new
        if not (isinstance(new, LocalRoot) and isinstance(old, LocalRoot)):
            raise TypeError("a local preconditioner chooses between its own matrices")
        for name in ("factor", "leading", "reduced", "slope"):
            getattr(new, name)[~chosen] = getattr(old, name)[~chosen]
        return new

    def _solve(
        self, q: FloatArray, p: FloatArray, step: FloatArray, root: Root, known: FloatArray | None
    ) -> tuple[FloatArray, Flags]:
        """Iterate x + J (q + step B(x) p - x) with J = (I - step A(q, p))^-1, from x = q.

        The matrix J, of the start, makes each round gain some three digits where the plain
        fixed-point iteration gains one; the solution is the same.

        Only the leading block of B is evaluated.  A walker that is done keeps its place, so that
        its result does not depend on the others of its group.

        Returns
        -------
        tuple
            Selected coordinates relative to the centre, (n, s), q's own where there is no solution;
            and whether there is one or, if a solution is ``known``, whether it is that.
        """
        if not isinstance(root, LocalRoot):
            raise TypeError("a local preconditioner needs its own matrix at q")
        start = q[:, self.selected] - self._centre
        push = (step * p[:, self.selected])[:, :, None]
        jacobian = root.jacobian(p)
        jacobian *= -step[:, :, None]
        jacobian += _identity(self._size)
        inverse = _inverse(jacobian)
        reach = 1 + np.abs(q).max(axis=1, keepdims=True)
        x = start + (inverse @ (root.leading @ push))[:, :, 0]
        done = None
        failed, before = np.zeros((len(x), 1), dtype=np.bool_), np.full((len(x), 1), np.inf)
        for turn in range(1, _MOST_ROUNDS + 1):
            leading = self._cholesky(self.weights(x), self._leading, self._leading_products)
            miss = (leading @ push)[:, :, 0]
            miss += start
            miss -= x
            moved = (inverse @ miss[:, :, None])[:, :, 0]
            moved += x
            x = moved if done is None else np.where(done, x, moved)
            size = np.abs(miss).max(axis=1, keepdims=True)
            # What is NaN is done too.
            near = ~(size > _TOLERANCE * reach)
            if turn % _PATIENCE == 0:
                stuck = ~near & (size > 0.1 * before)
                if done is not None:
                    stuck &= ~done
                failed, near, before = failed | stuck, near | stuck, size
            if near.all():
                done = near
                break
            if done is not None:
                done |= near
                if done.all():
                    break
            elif near.any():
                done = near
        solved = np.isfinite(x).all(axis=1, keepdims=True)
        solved &= np.False_ if done is None else done & ~failed
        if known is not None:
            solved &= np.abs(x - known).max(axis=1, keepdims=True) <= _SAME * reach
        if not solved.all():
            x = np.where(solved, x, start)
        return x, solved[:, 0]

    def _cholesky(
        self, weight: FloatArray, places: FloatArray, products: FloatArray | None
    ) -> FloatArray:
        """Return the lower Cholesky factors of I + eta C of some coordinates, (n, m, m)."""
        size = places.shape[1]
        mean = weight @ places
        if products is None:
            centred = places - mean[:, None]
            matrix = (centred * weight[:, :, None]).transpose(0, 2, 1) @ centred
            matrix += _identity(size)
        else:
            matrix = (weight @ products).reshape(-1, size, size)
            matrix -= mean[:, :, None] * mean[:, None]
        return _cholesky_or_nan(matrix)


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


def _products(places: FloatArray) -> FloatArray:
    """Return I plus the products of every walker's coordinates, (K, m^2); weights sum to 1."""
    products = places[:, :, None] * places[:, None] + np.eye(places.shape[1])
    return products.reshape(len(places), -1)


def _cholesky_or_nan(matrices: FloatArray) -> FloatArray:
    """Return lower Cholesky factors, NaN of those that are not positive definite in rounding."""
    try:
        return np.asarray(np.linalg.cholesky(matrices), dtype=np.float64)
    except np.linalg.LinAlgError:
        return _one_by_one(np.linalg.cholesky, matrices)


def _inverse(matrices: FloatArray) -> FloatArray:
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
