"""Turn weighted draws into unweighted ones: choose pseudo-samples, or resample each chain."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.evidence.estimates import effective_number, normalised_weights


def draw_index(log_weight: npt.ArrayLike, rng: np.random.Generator) -> npt.NDArray[np.intp]:
    """Draw one pseudo-sample index per draw, with the normalised weights as probabilities.

    The chosen pseudo-samples are unweighted draws of the target: given the extended draw, the index
    of the pseudo-sample that is distributed as the target is categorical, with the weights as
    probabilities (paper, proof of Theorem 2.1).

    Parameters
    ----------
    log_weight
        Shape (..., N).
    rng
        Source of randomness; one uniform number per draw is taken from it.

    Returns
    -------
    NDArray[intp]
        Indices in 0..N-1, shape (...).
    """
    cumulative = normalised_weights(log_weight).cumsum(axis=-1)
    cumulative /= cumulative[..., -1:]  # exactly 1 at the end, so that no weight of 0 is chosen
    uniform = rng.random(cumulative.shape[:-1])
    index: npt.NDArray[np.intp] = (uniform[..., None] >= cumulative).sum(axis=-1)
    return index


def effective_pseudo_samples(log_weight: npt.ArrayLike) -> FloatArray:
    """Return the effective number of pseudo-samples in each draw, 1 / sum_i w_i^2, from 1 to N.

    If it is close to 1 everywhere, one pseudo-sample has nearly all the weight of each draw.  If it
    is close to N, the instrumental distribution is nearly the target itself.
    """
    return effective_number(log_weight)


def complement_log_weight(log_weight: npt.ArrayLike) -> FloatArray:
    """Return log(1 - w_i), the log probability that a pseudo-sample is not the chosen one.

    Given that index i is not chosen, (x_i, beta_i) follows the instrumental density q, so
    that E_q[h] = E[sum_i (1 - w_i) h(x_i, beta_i)] / (N - 1) under the pseudo-extended target.

    Parameters
    ----------
    log_weight
        The same as for :func:`~harness.evidence.normalised_weights`, shape (..., N), N >= 2.

    Returns
    -------
    FloatArray
        Shape (..., N); precise even if w_i is close to 1.

    Raises
    ------
    DataError
        If N < 2 or the log weights are not usable.
    """
    log_w = np.asarray(log_weight, dtype=np.float64)
    normalised_weights(log_w)  # raises an error for log weights that are not usable
    num = log_w.shape[-1]
    if num < 2:
        raise DataError("with a single pseudo-sample, every one is chosen: take N >= 2")
    # The sum of the other weights, because 1 - w would lose digits by cancellation.
    others = [np.logaddexp.reduce(np.delete(log_w, i, axis=-1), axis=-1) for i in range(num)]
    return np.stack(others, axis=-1) - np.logaddexp.reduce(log_w, axis=-1, keepdims=True)


def resample(log_weight: npt.ArrayLike, rng: np.random.Generator) -> npt.NDArray[np.intp]:
    """Resample the draws of each chain with probabilities proportional to their weights.

    Systematic resampling, chain by chain, so that chains that disagree still disagree afterwards.

    Parameters
    ----------
    log_weight
        Log weights up to a constant, shape (chains, draws).
    rng
        Source of randomness; one uniform number per chain is taken from it.

    Returns
    -------
    NDArray[intp]
        Indices of draws, ascending within each chain, shape (chains, draws).

    Raises
    ------
    DataError
        If the shape is different, or a chain's weights are not usable.
    """
    log_w = np.asarray(log_weight, dtype=np.float64)
    if log_w.ndim != 2:
        raise DataError(f"log weights to resample need shape (chains, draws); got {log_w.shape}")
    cumulative = normalised_weights(log_w).cumsum(axis=-1)
    cumulative /= cumulative[:, -1:]
    chains, draws = cumulative.shape
    points = (rng.random((chains, 1)) + np.arange(draws)) / draws
    points = np.minimum(points, np.nextafter(1, 0))  # rounding may reach 1
    rows = [np.searchsorted(c, p, side="right") for c, p in zip(cumulative, points, strict=True)]
    return np.array(rows, dtype=np.intp)
