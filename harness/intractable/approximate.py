"""Approximations of log Z for Boltzmann machines: a mean-field bound and the Bethe free energy.

    f(s) = exp(sum_i b_i s_i + sum_(i<j) W_ij s_i s_j),   s_i in {0, 1}.

Used for log Z in :func:`harness.intractable.known_constant.metropolis` they give the mean-field and
loopy Metropolis algorithms of Murray (2007), section 5.2.2.  These are not recommended: the draws
are of another posterior.

References
----------
Murray, I. (2007). Advances in Markov chain Monte Carlo methods. PhD thesis, University College
London.

Yedidia, J. S., Freeman, W. T. and Weiss, Y. (2005). Constructing free-energy approximations and
generalized belief propagation algorithms. IEEE Transactions on Information Theory 51, 2282-2312.
"""

from __future__ import annotations

import numpy as np

from harness.arrays import FloatArray
from harness.errors import DataError

_TOLERANCE = 1e-5
"""Largest change in an iteration at which a fixed point counts as found.

Both values are stationary there, so that their errors are of the order of its square."""


def log_mean_field(bias: FloatArray, weights: FloatArray, *, most: int = 200) -> FloatArray:
    """Return a local maximum of the naive mean-field lower bound on log Z, shape (n,).

    Coordinate ascent from q_i = 1/2.  It ends after ``most`` sweeps also without convergence; the
    value is a lower bound all the same.

    Parameters
    ----------
    bias
        b, shape (n, N).
    weights
        W, symmetric with a zero diagonal, shape (n, N, N).

    Raises
    ------
    DataError
        If the shapes do not fit.
    """
    _check(bias, weights)
    units = bias.shape[1]
    # Units first: each update then works on a few contiguous rows.
    mean, fields = np.full((units, len(bias)), 0.5), bias.T.copy()
    rows = np.ascontiguousarray(weights.transpose(1, 2, 0))
    for _ in range(most):
        before = mean.copy()
        for i in range(units):
            fields[i] = bias[:, i] + (rows[i] * mean).sum(axis=0)
            mean[i] = 1 / (1 + np.exp(-fields[i]))
        if np.abs(mean - before).max() < _TOLERANCE:
            break
    mean, field = mean.T, fields.T
    energy = (bias * mean).sum(axis=1) + 0.5 * np.einsum("ni,nij,nj->n", mean, weights, mean)
    entropy = np.logaddexp(0, field) - field * mean
    total: FloatArray = energy + entropy.sum(axis=1)
    return total


def log_bethe(
    bias: FloatArray, weights: FloatArray, *, most: int = 500, damping: float = 0.25
) -> FloatArray:
    """Return the Bethe approximation of log Z at a fixed point of belief propagation, shape (n,).

    It is exact on trees.  Messages i to j are log odds, updated all at once from zero.  It ends
    after ``most`` updates also without convergence.

    Parameters
    ----------
    bias, weights
        As for :func:`log_mean_field`.
    most
        Largest number of updates.
    damping
        Weight of the old messages in each update.

    Raises
    ------
    DataError
        If the shapes do not fit.
    """
    _check(bias, weights)
    message = np.zeros(weights.shape)
    for _ in range(most):
        cavity = (bias + message.sum(axis=1))[:, :, None] - message.swapaxes(1, 2)
        fresh = np.logaddexp(0, cavity + weights) - np.logaddexp(0, cavity)
        change = (1 - damping) * (fresh - message)
        message = message + change
        if np.abs(change).max() < _TOLERANCE:
            break
    field = bias + message.sum(axis=1)
    cavity = field[:, :, None] - message.swapaxes(1, 2)
    units = bias.shape[1]
    i, j = np.triu_indices(units, 1)
    one, other = cavity[:, i, j], cavity[:, j, i]
    pairs = np.logaddexp(np.logaddexp(0, one), np.logaddexp(other, one + other + weights[:, i, j]))
    # A pair without an edge has messages of zero and adds what is taken away for it.
    single = (2 - units) * np.logaddexp(0, field)
    total: FloatArray = single.sum(axis=1) + pairs.sum(axis=1)
    return total


def _check(bias: FloatArray, weights: FloatArray) -> None:
    if bias.ndim != 2 or weights.shape != (*bias.shape, bias.shape[-1]):
        raise DataError(
            f"biases need shape (n, N) and weights (n, N, N); got {bias.shape}, {weights.shape}"
        )
