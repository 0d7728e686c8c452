"""Log Z from draws at every rung of a ladder of inverse temperatures.

At rung k the draws follow gamma_beta(x) = b(x) exp(-beta Delta(x)) with beta = beta_k, and
Delta = log b + log zeta - log gamma.  Where the target's support cuts the base off, Z_0 is the
base's mass within it, estimated by the share of its draws that fall there.

References
----------
Xie, W., Lewis, P. O., Fan, Y., Kuo, L. and Chen, M.-H. (2011). Improving marginal likelihood
estimation for Bayesian phylogenetic model selection. Systematic Biology 60, 150-160.

Gelman, A. and Meng, X.-L. (1998). Simulating normalizing constants: from importance sampling to
bridge sampling to path sampling. Statistical Science 13, 163-185.

Friel, N., Hurn, M. and Wyse, J. (2014). Improving power posterior estimation of statistical
evidence. Statistics and Computing 24, 709-723.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray
from harness.evidence import LogEvidence, standard_error


class SteppingStones(NamedTuple):
    """Log Z by the ratios of neighbouring rungs' normalising constants."""

    log_evidence: LogEvidence
    """Mean of the two below: their biases, of one order, have opposite signs."""
    forward: LogEvidence
    """Each ratio from the draws below it: an estimate of Z."""
    backward: LogEvidence
    """Each ratio from the draws above it: an estimate of 1/Z."""


class Integral(NamedTuple):
    """Log Z by thermodynamic integration."""

    log_evidence: LogEvidence
    """With its Monte Carlo error alone."""
    correction: float
    """End correction in it: what the quadrature still lacks is about as large at most."""


def stepping_stones(
    delta: FloatArray, ladder: FloatArray, log_zeta: float, inside: npt.NDArray[np.bool_]
) -> SteppingStones:
    """Estimate log Z by stepping stones up a ladder and down it (Xie et al. 2011).

    Parameters
    ----------
    delta
        Delta of each draw at each of K rungs, shape (draws, K, chains).
    ladder
        Inverse temperatures, shape (K,).
    log_zeta
        The guess at log Z in Delta.
    inside
        Whether independent draws of the base lie within the support, shape (draws, chains).

    Returns
    -------
    SteppingStones
        With errors that take autocorrelation into account, all rungs of an iteration together.
    """
    step = np.diff(ladder)[:, None]
    up, log_up = _linearised(-step * delta[:, :-1])
    down, log_down = _linearised(step * delta[:, 1:])
    share, log_share = _share(inside)
    at_base = log_zeta + log_share
    forward, backward = (up + share).T, (share - down).T
    value_up, value_down = at_base + log_up, at_base - log_down
    return SteppingStones(
        LogEvidence((value_up + value_down) / 2, standard_error((forward + backward) / 2)),
        LogEvidence(value_up, standard_error(forward)),
        LogEvidence(value_down, standard_error(backward)),
    )


def thermodynamic_integration(
    delta: FloatArray, ladder: FloatArray, log_zeta: float, inside: npt.NDArray[np.bool_]
) -> Integral:
    """Estimate log Z by integrating E_beta[-Delta] over the ladder (Gelman and Meng 1998).

    By the trapezoidal rule with its end correction, since the variance of Delta is the slope of
    the integrand (Friel et al. 2014).  What a coarse ladder makes of the integral is
    not in the error.

    Parameters
    ----------
    delta, ladder, log_zeta, inside
        As for :func:`stepping_stones`.
    """
    step = np.diff(ladder)
    weight = (np.append(step, 0) + np.append(0, step)) / 2
    mean, slope = -delta.mean(axis=(0, 2)), delta.var(axis=(0, 2))
    share, log_share = _share(inside)
    correction = -float(np.sum(step**2 * np.diff(slope)) / 12)
    value = log_zeta + log_share + weight @ mean + correction
    series = share - np.einsum("k,tkc->tc", weight, delta + mean[:, None])
    return Integral(LogEvidence(float(value), standard_error(series.T)), correction)


def _linearised(log_w: FloatArray) -> tuple[FloatArray, float]:
    """Series sum_k (w_k / mean w_k - 1), shape (draws, chains), and sum_k log mean w_k.

    Parameters
    ----------
    log_w
        Shape (draws, K, chains).
    """
    largest = log_w.max(axis=(0, 2), keepdims=True)
    weight = np.exp(log_w - largest)
    mean = weight.mean(axis=(0, 2), keepdims=True)
    return (weight / mean - 1).sum(axis=1), float((largest + np.log(mean)).sum())


def _share(inside: npt.NDArray[np.bool_]) -> tuple[FloatArray, float]:
    """Series of the base's mass within the support, and its logarithm."""
    # Chains start within the support, so that the mass is not zero; of no hit, half a one.
    mean = max(float(inside.mean()), 0.5 / inside.size)
    return inside / mean - 1, float(np.log(mean))
