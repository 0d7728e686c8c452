"""Transitions that leave a density on the tempered path invariant, for many chains at once.

A kernel moves every chain of a :class:`~harness.samplers.path.State` at its own inverse
temperature.  What adapts does so in warm-up only: a step size is a value that is handed in, so
that a kernel has no memory of its own.

References
----------
Neal, R. M. (2011). MCMC using Hamiltonian dynamics. Handbook of Markov Chain Monte Carlo, 113-162.

Hoffman, M. D. and Gelman, A. (2014). The No-U-Turn sampler. Journal of Machine Learning Research
15, 1593-1623 (section 3.2, dual averaging).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from harness.errors import DataError
from harness.samplers.path import Path, State
from harness.weights import FloatArray


class Moved(NamedTuple):
    """Chains after a transition."""

    state: State
    acceptance: FloatArray
    """Acceptance probability of each chain, shape (n,)."""


class Kernel(Protocol):
    """A transition whose step size is given anew each time."""

    target_acceptance: float
    """Mean acceptance probability that warm-up aims at."""

    def move(
        self,
        path: Path,
        state: State,
        inv_temp: npt.ArrayLike,
        step_size: npt.ArrayLike,
        rng: np.random.Generator,
    ) -> Moved:
        """Move every chain once.

        Parameters
        ----------
        inv_temp, step_size
            Of each chain, (n,), or one for all.  Step sizes are in units of the base's standard
            deviations.
        """


@dataclass(frozen=True)
class Hmc:
    """Hamiltonian Monte Carlo with jittered step sizes, whitened by the base.

    Attributes
    ----------
    leapfrog_steps
        Leapfrog steps of each trajectory.
    jitter
        Each chain's step size is drawn between (1 - jitter) and (1 + jitter) times the given
        one, so that no trajectory length is a period of the target.
    target_acceptance
        Mean acceptance probability that warm-up aims at.

    Raises
    ------
    DataError
        If a setting is out of its range.
    """

    leapfrog_steps: int = 5
    jitter: float = 0.2
    target_acceptance: float = 0.8

    def __post_init__(self) -> None:
        if self.leapfrog_steps < 1:
            raise DataError(f"HMC needs a leapfrog step or more; got {self.leapfrog_steps}")
        if not 0 <= self.jitter < 1:
            raise DataError(f"the jitter lies in [0, 1); got {self.jitter}")
        if not 0 < self.target_acceptance < 1:
            raise DataError(f"target_acceptance lies between 0 and 1; got {self.target_acceptance}")

    def move(
        self,
        path: Path,
        state: State,
        inv_temp: npt.ArrayLike,
        step_size: npt.ArrayLike,
        rng: np.random.Generator,
    ) -> Moved:
        """Draw momenta, follow Hamilton's equations, accept or stay."""
        count, dimension = state.points.shape
        jitter = rng.uniform(1 - self.jitter, 1 + self.jitter, size=count)
        step = (np.asarray(step_size, dtype=np.float64) * jitter)[:, None]
        momentum = rng.standard_normal((count, dimension))
        cholesky = path.base.cholesky
        before = path.log_density(state, inv_temp) - 0.5 * np.square(momentum).sum(axis=1)
        place = state
        # A trajectory that has gone astray overflows, and is refused.
        with np.errstate(over="ignore", invalid="ignore"):
            momentum = momentum + 0.5 * step * (path.gradient(state, inv_temp) @ cholesky)
            for left in reversed(range(self.leapfrog_steps)):
                place = path.state(place.points + step * (momentum @ cholesky.T))
                kick = step if left else 0.5 * step
                momentum = momentum + kick * (path.gradient(place, inv_temp) @ cholesky)
            after = path.log_density(place, inv_temp) - 0.5 * np.square(momentum).sum(axis=1)
            acceptance = np.exp(np.minimum(0.0, after - before))
        acceptance = np.where(np.isfinite(acceptance), acceptance, 0.0)
        return Moved(place.where(rng.random(count) < acceptance, state), acceptance)


class StepSizes:
    """Step sizes that warm-up tunes, one a group of chains, by dual averaging.

    Parameters
    ----------
    groups
        Number of groups; chains of a group, say those near one inverse temperature, share a
        step size.
    initial
        Step size to start from.
    target_acceptance
        Mean acceptance probability to reach.
    """

    # Hoffman and Gelman (2014), section 3.2.1.
    _SHRINKAGE = 0.05
    _STABILISER = 10.0
    _FORGETTING = 0.75

    def __init__(self, groups: int, initial: float, target_acceptance: float) -> None:
        if not (groups >= 1 and np.isfinite(initial) and initial > 0):
            raise DataError(f"a step size must be positive and finite; got {initial}")
        self._target = target_acceptance
        self._centre = np.log(10 * initial)
        self._log_step = np.full(groups, np.log(initial))
        self._log_average = np.full(groups, np.log(initial))
        self._error = np.zeros(groups)
        self._count = np.zeros(groups)

    def current(self, group: npt.NDArray[np.intp]) -> FloatArray:
        """Step size of each chain in warm-up, given its group, shape (n,)."""
        return np.asarray(np.exp(self._log_step[group]), dtype=np.float64)

    def tuned(self, group: npt.NDArray[np.intp]) -> FloatArray:
        """Step size of each chain after warm-up, given its group, shape (n,)."""
        return np.asarray(np.exp(self._log_average[group]), dtype=np.float64)

    def learn(self, group: npt.NDArray[np.intp], acceptance: FloatArray) -> None:
        """Take in acceptance probabilities (n,) of chains in their groups (n,)."""
        groups = len(self._log_step)
        number = np.bincount(group, minlength=groups)
        seen = number > 0
        mean = np.bincount(group, weights=acceptance, minlength=groups)[seen] / number[seen]
        self._count[seen] += 1
        count = self._count[seen]
        share = 1 / (count + self._STABILISER)
        self._error[seen] += share * (self._target - mean - self._error[seen])
        self._log_step[seen] = self._centre - np.sqrt(count) / self._SHRINKAGE * self._error[seen]
        recent = count**-self._FORGETTING
        self._log_average[seen] += recent * (self._log_step[seen] - self._log_average[seen])
