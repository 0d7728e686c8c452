"""Prior volumes of nested sampling, and what follows from them: log Z, information and weights.

When n particles are left and the lowest of them is removed, the prior volume above it is a fraction
t of the volume above the last one, with density n t^(n - 1), whatever the likelihood is; so -log t
is exponential with rate n.  If b particles are removed at once, the rates are n, n - 1, ...,
n - b + 1, and the others are draws of what remains.  The particles that are left in the end go on
with the rates n, ..., 1.  These laws are exact, so that log Z has its error from volumes that are
drawn many times for one run.

References
----------
Skilling, J. (2006). Nested sampling for general Bayesian computation. Bayesian Analysis 1, 833-859.

Murray, I. (2007). Advances in Markov chain Monte Carlo methods. PhD thesis, University College
London, section 4.4.

Higson, E., Handley, W., Hobson, M. and Lasenby, A. (2018). Sampling errors in nested sampling
parameter estimation. Bayesian Analysis 13, 873-896 (runs put together).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.evidence import LogEvidence, effective_number
from harness.samplers.nested_particles import Particles, joined

PATHS = 400
"""Sequences of volumes that are drawn."""
_NUMBERS = 2_000_000  # that are held at once while they are drawn
_NEGLIGIBLE = 1e-8  # share of the posterior that is left out of its draws


@dataclass(frozen=True)
class Removed:
    """The particles of a run in the order of their removal, up to the last one.

    Attributes
    ----------
    particles
        S of them, likelihood and key ascending.
    alive
        Number of particles just before each removal, itself included, shape (S,).
    """

    particles: Particles
    alive: npt.NDArray[np.intp]


@dataclass(frozen=True)
class Together(Removed):
    """Several runs as one.

    Attributes
    ----------
    run
        Which run each particle is from, shape (S,).
    """

    run: npt.NDArray[np.intp]


def together(runs: Sequence[Removed]) -> Together:
    """Put independent runs together, as one run with the particles of all.

    Just before a particle is removed, as many are alive as there are in all runs above the last
    one that was removed.
    """
    whole = joined([run.particles for run in runs])
    order = whole.order()
    # A particle's place in the common order, so that a pair of numbers needs no comparison.
    place = np.empty(len(order), dtype=np.intp)
    place[order] = np.arange(len(order))
    alive, first = np.zeros(len(order), dtype=np.intp), 0
    for run in runs:
        own = place[first : first + len(run.alive)]
        first += len(run.alive)
        following = np.searchsorted(own, np.arange(len(order)))
        alive += np.append(run.alive, 0)[following]
    source = np.repeat(np.arange(len(runs)), [len(run.alive) for run in runs])
    return Together(whole.take(order), alive, source[order])


class Integrated(NamedTuple):
    """What a run says, given many sequences of volumes."""

    log_evidence: LogEvidence
    """Mean and standard deviation of log Z over the sequences."""
    information: float
    """Information H in nats, the divergence of the posterior from the prior."""
    log_weight: FloatArray
    """Log posterior weights, which sum to 1, shape (S,): their means over the sequences."""

    @property
    def effective(self) -> float:
        """Effective number of posterior draws, 1 / sum w^2."""
        return float(effective_number(self.log_weight))


def integrate(run: Removed, rng: np.random.Generator, *, paths: int = PATHS) -> Integrated:
    """Estimate log Z, the information and posterior weights from sampled prior volumes.

    Parameters
    ----------
    run
        All particles.
    rng
        Source of randomness.
    paths
        Number of sequences of volumes, 2 or more.

    Raises
    ------
    DataError
        If no particle has a likelihood above zero, or there are fewer than 2 sequences.
    """
    log_likelihood, size = run.particles.log_likelihood, len(run.alive)
    if not np.isfinite(log_likelihood).any():
        raise DataError("the likelihood is zero at every particle")
    if paths < 2:
        raise DataError(f"an error needs 2 sequences of volumes or more; got {paths}")
    log_z, information = np.empty(paths), np.empty(paths)
    share = np.zeros(size)
    finite = np.where(np.isfinite(log_likelihood), log_likelihood, 0.0)
    at_once = max(1, _NUMBERS // size)
    for first in range(0, paths, at_once):
        some = slice(first, min(first + at_once, paths))
        spacing = rng.standard_exponential((some.stop - some.start, size)) / run.alive
        log_part = log_likelihood + log_widths(-np.cumsum(spacing, axis=1))
        highest = log_part.max(axis=1, keepdims=True)
        part = np.exp(log_part - highest)
        total = part.sum(axis=1, keepdims=True)
        log_z[some] = (highest + np.log(total))[:, 0]
        part /= total
        information[some] = part @ finite - log_z[some]
        share += part.sum(axis=0)
    with np.errstate(divide="ignore"):
        log_weight = np.log(share / paths)
    return Integrated(
        LogEvidence(float(log_z.mean()), float(log_z.std(ddof=1))),
        max(float(information.mean()), 0.0),
        log_weight,
    )


def log_widths(log_volume: FloatArray) -> FloatArray:
    """Return log widths of the trapezoidal rule, whose widths sum to 1.

    With x_0 = 2 - x_1 and x_{S+1} = -x_S the width of the s-th volume is (x_{s-1} - x_{s+1}) / 2
    (Murray 2007, eq. 4.22): the likelihood is constant beyond the first and the last.

    Parameters
    ----------
    log_volume
        Descending, 0 or below, shape (..., S).

    Returns
    -------
    FloatArray
        The same shape.
    """
    size = log_volume.shape[-1]
    log_width = np.empty_like(log_volume)
    if size == 1:
        return np.zeros_like(log_volume)
    with np.errstate(divide="ignore"):
        log_width[..., 1:-1] = (
            log_volume[..., :-2]
            + np.log(-np.expm1(log_volume[..., 2:] - log_volume[..., :-2]))
            - np.log(2)
        )
        log_width[..., 0] = np.log1p(-0.5 * (np.exp(log_volume[..., :2]).sum(axis=-1)))
    log_width[..., -1] = np.logaddexp(log_volume[..., -2], log_volume[..., -1]) - np.log(2)
    return log_width


def mean_log_volume(alive: npt.NDArray[np.intp]) -> FloatArray:
    """Return the mean of the log volume above each particle, -sum of 1 / n, shape (S,)."""
    return -np.cumsum(1 / alive)


def weighted_chains(
    run: Together, log_weight: FloatArray, rng: np.random.Generator
) -> tuple[npt.NDArray[np.intp], FloatArray]:
    """Arrange posterior draws as chains, each of one run's particles in random order.

    Particles with next to no weight are left out.  Runs with fewer particles than the others have
    repeated ones without weight in the end.

    Parameters
    ----------
    run
        Runs that were put together.
    log_weight
        Their particles' log weights, which sum to 1, shape (S,).
    rng
        Source of randomness.

    Returns
    -------
    tuple
        Rows of the particles, and log weights, each of shape (runs, draws).
    """
    kept = log_weight > np.log(_NEGLIGIBLE / len(log_weight))
    chains = [
        rng.permutation(np.flatnonzero(kept & (run.run == each)))
        for each in range(int(run.run.max()) + 1)
    ]
    # A run may have next to no weight as a whole.
    chains = [
        rows if rows.size else np.flatnonzero(run.run == each)[-1:]
        for each, rows in enumerate(chains)
    ]
    most = max(len(rows) for rows in chains)
    rows = np.stack([np.resize(each, most) for each in chains])
    given = np.arange(most) < np.array([len(each) for each in chains])[:, None]
    return rows, np.where(given, log_weight[rows], -np.inf)
