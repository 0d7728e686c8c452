"""Passes up and down a ladder of inverse temperatures, and the weights that they give to chains.

A pass from the base to the target is an annealed importance sample.  A pass back to the base
followed by one to the target is a tempered transition.  Both are written for any state that has a
log density ratio and can be moved at a rung, so that tests can check the arithmetic on a few
discrete states.

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
from harness.samplers.geometric_path import GeometricPath, State
from harness.samplers.kernels import Hmc, Kernel, PartialHmc, RandomWalk, Slice, StepSizes

BoolArray = npt.NDArray[np.bool_]
S = TypeVar("S")

# Tuning of the step sizes: bands of the ladder that share a step size, updates of each, and chains.
_BANDS, _UPDATES, _CHAINS = 16, 40, 64
_FIRST_STEP = 0.1


class Walk(Protocol[S]):
    """Chains that can be moved at the rungs of a ladder."""

    def ascent(self, chains: S) -> FloatArray:
        """Return d log gamma_beta / d beta = log gamma - log zeta - log b of each chain, (n,)."""

    def move(self, chains: S, rung: int, backward: BoolArray) -> S:
        """Apply the transition T of a rung, or its reversal to chains that go backward.

        ``backward``, shape (n,), says which chains do.  T leaves the rung's density p invariant;
        its reversal T' is defined by p(x) T(y | x) = p(y) T'(x | y).
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
        Which chains move by the reversals, shape (n,).

    Returns
    -------
    tuple
        The chains after the transition of rung K - 1; and their log weights, shape (n,),
        sum_k (beta_{k+1} - beta_k) (log gamma - log zeta - log b)(x_k) over k = 0, ..., K - 1,
        where x_k is the state after the transition of rung k (Murray 2007, eq. 2.24).
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

    This is the pass of :func:`anneal` in the opposite order.  If it starts from draws of the target
    and ``backward`` is true everywhere, its states and log weight are distributed like those of
    annealed importance sampling when each of its passes counts by its weight.
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
    """Chains on the path, with what they carry along."""

    state: State
    momentum: FloatArray
    """In units of the base's whitened coordinates, shape (n, D)."""
    acceptance: FloatArray
    """Sum of the acceptance probabilities so far, shape (n,)."""


class PathWalk:
    """A :class:`Walk` along a tempered path: a kernel at most rungs, exact base draws at rung 0.

    Parameters
    ----------
    path, ladder, kernel
        The path, the inverse temperatures, shape (K + 1,), and the kernel that moves chains.
    step_size
        Step size at each rung, shape (K + 1,).
    rng
        Source of all randomness.
    """

    def __init__(
        self,
        path: GeometricPath,
        ladder: FloatArray,
        kernel: AnnealingKernel,
        step_size: FloatArray,
        rng: np.random.Generator,
    ) -> None:
        self._path, self._ladder, self._kernel = path, ladder, kernel
        self._step_size, self._rng = step_size, rng

    def at(self, state: State) -> Chains:
        """Return chains at a state, with freshly drawn momenta."""
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
        """Move chains at a rung with a given step size."""
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
        # These kernels are reversible, so each is its own reversal; require_reversal checks that.
        moved = kernel.move(self._path, chains.state, beta, step_size, self._rng)
        return Chains(moved.state, chains.momentum, chains.acceptance + moved.acceptance)


def require_reversal(kernel: AnnealingKernel) -> None:
    """Raise an error for a kernel whose reversal is not known.

    Raises
    ------
    DataError
        If the kernel is neither one of the reversible kernels here nor one that can go backward.
    """
    sweeps = isinstance(kernel, Slice) and kernel.order == "random"
    if not (sweeps or isinstance(kernel, Hmc | RandomWalk | PartialHmc)):
        raise DataError(
            f"a pass from the target to the base needs the reversal of each transition: use Hmc, "
            f"RandomWalk, PartialHmc or Slice in random order; got {kernel!r}"
        )


def step_sizes(
    path: GeometricPath,
    ladder: FloatArray,
    kernel: AnnealingKernel,
    given: float | None,
    rng: np.random.Generator,
) -> FloatArray:
    """Return the step size at each rung, shape (K + 1,): the given one, or else tuned ones.

    Raises
    ------
    DataError
        If the given step size is not positive and finite.
    """
    if given is None:
        return tuned_step_sizes(path, ladder, kernel, rng)
    if not (np.isfinite(given) and given > 0):
        raise DataError(f"a step size must be positive and finite; got {given}")
    return np.full(len(ladder), float(given))


def tuned_step_sizes(
    path: GeometricPath, ladder: FloatArray, kernel: AnnealingKernel, rng: np.random.Generator
) -> FloatArray:
    """Tune a step size for each rung in a pass of a few chains; return them, shape (K + 1,).

    Rungs share step sizes in at most 16 bands.  The weights of a later pass are unbiased only if
    its step sizes do not depend on that pass.  So tuning takes a separate pass, whose chains are
    discarded.
    """
    rungs = len(ladder)
    band = np.arange(rungs) * min(_BANDS, rungs) // rungs
    wanted = kernel.hmc if isinstance(kernel, PartialHmc) else kernel
    steps = StepSizes(band[-1] + 1, _FIRST_STEP, wanted.target_acceptance)
    walk = PathWalk(path, ladder, kernel, np.full(rungs, np.nan), rng)
    chains = walk.base(_CHAINS)
    # Chains that start outside the target's support tell nothing about step sizes.
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
