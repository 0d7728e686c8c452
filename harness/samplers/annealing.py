"""Passes up and down a ladder of inverse temperatures, and the weights that they earn.

A pass from the base to the target is an annealed importance sample; a pass back and one out again
is a tempered transition.  Both are written for any state that has a log density ratio and can be
moved at a rung, so that the arithmetic can be proved on a few discrete states.

References
----------
Neal, R. M. (2001). Annealed importance sampling. Statistics and Computing 11, 125-139.

Sohl-Dickstein, J. and Culpepper, B. J. (2012). Hamiltonian annealed importance sampling for
partition function estimation. arXiv:1205.1925.

Murray, I. (2007). Advances in Markov chain Monte Carlo methods. PhD thesis, University College
London.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.samplers.kernels import Hmc, Kernel, PartialHmc, RandomWalk, StepSizes
from harness.samplers.path import Path, State

BoolArray = npt.NDArray[np.bool_]
S = TypeVar("S")

# Warm-up of the step sizes: bands of the ladder with a step size each, updates of each, chains.
_BANDS, _UPDATES, _CHAINS = 16, 40, 64
_FIRST_STEP = 0.1


class Walk(Protocol[S]):
    """Chains that can be moved at the rungs of a ladder."""

    def ascent(self, chains: S) -> FloatArray:
        """D log gamma_beta / d beta = log gamma - log zeta - log b of each chain, shape (n,)."""

    def move(self, chains: S, rung: int, backward: BoolArray) -> S:
        """Apply the transition T of a rung, or where ``backward``, (n,), its reversal.

        T leaves the rung's density p invariant, and its reversal T' is the one with
        p(x) T(y | x) = p(y) T'(x | y).
        """


def anneal(
    walk: Walk[S], ladder: FloatArray, chains: S, backward: BoolArray
) -> tuple[S, FloatArray]:
    """Take chains from the base to the target; return them and their log weights.

    Parameters
    ----------
    walk
        How chains move.
    ladder
        Inverse temperatures beta_0 = 0 < ... < beta_K = 1.
    chains
        n draws of the base.
    backward
        Chains that move by the reversals, shape (n,).

    Returns
    -------
    tuple
        The chains after the transition of rung K - 1, and sum_k (beta_{k+1} - beta_k)
        (log gamma - log zeta - log b)(x_k), shape (n,), over k = 0, ..., K - 1, with x_k the
        state that rung k leaves (Murray 2007,
        eq. 2.24).
    """
    log_weight = np.zeros(backward.shape)
    for k, step in enumerate(np.diff(ladder)):
        if k:
            chains = walk.move(chains, k, backward)
        log_weight = log_weight + step * walk.ascent(chains)
    return chains, log_weight


def anneal_back(
    walk: Walk[S], ladder: FloatArray, chains: S, backward: BoolArray
) -> tuple[S, FloatArray]:
    """Take chains from the target to the base; return them and their log weights.

    The pass of :func:`anneal` in the opposite order: from draws of the target, with ``backward``
    everywhere true, states and log weight are distributed as those of annealed importance sampling
    are when each pass is weighted.
    """
    log_weight = np.zeros(backward.shape)
    steps = np.diff(ladder)
    for k in reversed(range(len(steps))):
        log_weight = log_weight + steps[k] * walk.ascent(chains)
        if k:
            chains = walk.move(chains, k, backward)
    return chains, log_weight


AnnealingKernel = Kernel | PartialHmc


class Chains(NamedTuple):
    """Chains on the path with what they carry along."""

    state: State
    momentum: FloatArray
    """In units of the base's whitened coordinates, shape (n, D)."""
    acceptance: FloatArray
    """Sum of the acceptance probabilities so far, shape (n,)."""


class PathWalk:
    """A :class:`Walk` along a tempered path by HMC, at rung 0 by exact draws of the base.

    Parameters
    ----------
    path, ladder, kernel
        The path, the inverse temperatures, shape (K + 1,), and how chains move.
    step_size
        Step size at each rung, shape (K + 1,).
    rng
        Source of all randomness.
    """

    def __init__(
        self,
        path: Path,
        ladder: FloatArray,
        kernel: AnnealingKernel,
        step_size: FloatArray,
        rng: np.random.Generator,
    ) -> None:
        self._path, self._ladder, self._kernel = path, ladder, kernel
        self._step_size, self._rng = step_size, rng

    def at(self, state: State) -> Chains:
        """Return chains at a state, with fresh momenta."""
        momentum = self._rng.standard_normal(state.points.shape)
        return Chains(state, momentum, np.zeros(len(momentum)))

    def base(self, count: int) -> Chains:
        """Draw chains from the base.

        Raises
        ------
        DataError
            If the target's log density is NaN or +inf at a draw.
        """
        state = self._path.state(self._path.base.sample(self._rng, count))
        if np.any(np.isnan(state.log_gamma) | (state.log_gamma == np.inf)):
            raise DataError(
                f"the log density of {self._path.target.name} is NaN or +inf at a draw of the "
                f"base; outside the target's support it must be -inf"
            )
        return self.at(state)

    def ascent(self, chains: Chains) -> FloatArray:
        """See :meth:`Walk.ascent`; -inf outside the target's support."""
        return -self._path.delta(chains.state)

    def move(self, chains: Chains, rung: int, backward: BoolArray) -> Chains:
        """See :meth:`Walk.move`."""
        if rung == 0:
            return self.base(len(backward))._replace(acceptance=chains.acceptance)
        return self.step(chains, rung, self._step_size[rung], backward)

    def step(
        self, chains: Chains, rung: int, step_size: npt.ArrayLike, backward: BoolArray
    ) -> Chains:
        """Move chains at a rung with some other step size."""
        kernel, beta = self._kernel, float(self._ladder[rung])
        if isinstance(kernel, PartialHmc):
            state, momentum, acceptance = kernel.move(
                self._path,
                chains.state,
                chains.momentum,
                beta,
                step_size,
                self._rng,
                backward=backward,
            )
            return Chains(state, momentum, chains.acceptance + acceptance)
        # A reversible kernel is its own reversal; require_reversal has seen to it.
        moved = kernel.move(self._path, chains.state, beta, step_size, self._rng)
        return Chains(moved.state, chains.momentum, chains.acceptance + moved.acceptance)


def require_reversal(kernel: AnnealingKernel) -> None:
    """Refuse a kernel whose reversal is not known.

    Raises
    ------
    DataError
        If the kernel is none of those here that are reversible or can go backward.
    """
    if not isinstance(kernel, Hmc | RandomWalk | PartialHmc):
        raise DataError(
            f"a pass from the target to the base needs the reversal of each transition: take Hmc, "
            f"RandomWalk or PartialHmc; got {type(kernel).__name__}"
        )


def step_sizes(
    path: Path,
    ladder: FloatArray,
    kernel: AnnealingKernel,
    given: float | None,
    rng: np.random.Generator,
) -> FloatArray:
    """Return the step size at each rung, shape (K + 1,): the given one, or tuned ones.

    Raises
    ------
    DataError
        If the given one is not positive and finite.
    """
    if given is None:
        return tuned_step_sizes(path, ladder, kernel, rng)
    if not (np.isfinite(given) and given > 0):
        raise DataError(f"a step size must be positive and finite; got {given}")
    return np.full(len(ladder), float(given))


def tuned_step_sizes(
    path: Path, ladder: FloatArray, kernel: AnnealingKernel, rng: np.random.Generator
) -> FloatArray:
    """Tune a step size for each rung in a pass of a few chains, and return them, shape (K + 1,).

    Rungs share a step size in at most 16 bands.  The weights of a later pass are unbiased only
    if its step sizes do not depend on it: so this is a pass of its own, whose chains are lost.
    """
    rungs = len(ladder)
    band = np.arange(rungs) * min(_BANDS, rungs) // rungs
    wanted = kernel.hmc if isinstance(kernel, PartialHmc) else kernel
    steps = StepSizes(band[-1] + 1, _FIRST_STEP, wanted.target_acceptance)
    walk = PathWalk(path, ladder, kernel, np.full(rungs, np.nan), rng)
    chains = walk.base(_CHAINS)
    # Chains that start outside the target's support tell nothing of a step size.
    possible = np.flatnonzero(np.isfinite(chains.state.log_gamma))
    if 0 < possible.size < _CHAINS:
        chains = walk.at(chains.state.take(np.resize(possible, _CHAINS)))
    forward = np.zeros(_CHAINS, dtype=np.bool_)
    for each in range(band[-1] + 1):
        members = np.flatnonzero(band == each)
        members = members[members > 0]  # rung 0 is drawn exactly
        if not members.size:
            continue
        group = np.full(_CHAINS, each)
        for rung in members[np.arange(_UPDATES) * members.size // _UPDATES]:
            before = chains.acceptance
            chains = walk.step(chains, int(rung), steps.current(group), forward)
            steps.learn(group, chains.acceptance - before)
    return steps.tuned(band)
