"""Transitions that leave a density on the tempered path invariant, for many chains at once.

A kernel moves every chain of a :class:`~harness.samplers.geometric_path.State` at its own inverse
temperature.  What adapts does so in warm-up only: a step size is a value that is handed in, so
that a kernel has no memory of its own.

References
----------
Neal, R. M. (2011). MCMC using Hamiltonian dynamics. Handbook of Markov Chain Monte Carlo, 113-162.

Neal, R. M. (2003). Slice sampling. Annals of Statistics 31, 705-767.

Murray, I. (2007). Advances in Markov chain Monte Carlo methods. PhD thesis, University College
London, section 4.7.1.

Horowitz, A. M. (1991). A generalized guided Monte Carlo algorithm. Physics Letters B 268, 247-252.

Roberts, G. O., Gelman, A. and Gilks, W. R. (1997). Weak convergence and optimal scaling of random
walk Metropolis algorithms. Annals of Applied Probability 7, 110-120.

Roberts, G. O. and Rosenthal, J. S. (1998). Optimal scaling of discrete approximations to Langevin
diffusions. Journal of the Royal Statistical Society B 60, 255-268.

Hoffman, M. D. and Gelman, A. (2014). The No-U-Turn sampler. Journal of Machine Learning Research
15, 1593-1623 (section 3.2, dual averaging).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.path.slices import slice_along_lines
from harness.samplers.geometric_path import GeometricPath, State

Rows = npt.NDArray[np.intp]


class Moved(NamedTuple):
    """Chains after a transition."""

    state: State
    acceptance: FloatArray
    """Acceptance probability of each chain, shape (n,)."""


class Kernel(Protocol):
    """A transition whose step size is given anew each time."""

    @property
    def target_acceptance(self) -> float:
        """Mean acceptance probability that warm-up aims at; 1 where nothing is to be tuned."""

    def move(
        self,
        path: GeometricPath,
        state: State,
        inv_temp: npt.ArrayLike,
        step_size: npt.ArrayLike,
        rng: np.random.Generator,
    ) -> Moved:
        """Move every chain once.

        Parameters
        ----------
        inv_temp, step_size
            Of each chain, (n,), or one for all.  Step sizes are in units of the path's metric, by
            default the base's standard deviations.
        """


def _check_target_acceptance(target: float) -> None:
    if not 0 < target < 1:
        raise DataError(f"target_acceptance lies between 0 and 1; got {target}")


@dataclass(frozen=True)
class Hmc:
    """Hamiltonian Monte Carlo with jittered step sizes, in the path's metric.

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
        _check_target_acceptance(self.target_acceptance)

    def move(
        self,
        path: GeometricPath,
        state: State,
        inv_temp: npt.ArrayLike,
        step_size: npt.ArrayLike,
        rng: np.random.Generator,
    ) -> Moved:
        """Draw momenta, follow Hamilton's equations, accept or stay."""
        step = self.jittered(step_size, len(state.points), rng)
        momentum = rng.standard_normal(state.points.shape)
        end = _trajectory(path, state, momentum, inv_temp, step, self.leapfrog_steps)
        accepted = rng.random(len(step)) < end.acceptance
        return Moved(end.state.where(accepted, state), end.acceptance)

    def jittered(
        self, step_size: npt.ArrayLike, count: int, rng: np.random.Generator
    ) -> FloatArray:
        """Draw each chain's step size, shape (n,), around the given one."""
        jitter = rng.uniform(1 - self.jitter, 1 + self.jitter, size=count)
        return np.asarray(np.asarray(step_size, dtype=np.float64) * jitter, dtype=np.float64)


def mala() -> Hmc:
    """Metropolis-adjusted Langevin algorithm: HMC with one leapfrog step.

    Its step size s is that of the leapfrog integrator: the proposal drifts by s^2 / 2 times the
    gradient and adds noise of standard deviation s (Roberts and Rosenthal 1998, whose optimal
    acceptance probability warm-up aims at).
    """
    return Hmc(leapfrog_steps=1, jitter=0.0, target_acceptance=0.574)


class MovedWithMomentum(NamedTuple):
    """Chains with momenta after a transition."""

    state: State
    momentum: FloatArray
    """Shape (n, D), standard normal under what the kernel leaves invariant."""
    acceptance: FloatArray
    """Acceptance probability of each chain, shape (n,)."""


@dataclass(frozen=True)
class PartialHmc:
    """HMC that keeps part of its momenta from one transition to the next (Horowitz 1991).

    It leaves x and momenta, which are standard normal whatever the inverse temperature,
    invariant together, so that the inverse temperature may change between transitions.

    Attributes
    ----------
    hmc
        Leapfrog steps, jitter and target acceptance probability.
    persistence
        Share alpha of the momentum that is kept, alpha p + sqrt(1 - alpha^2) n with n standard
        normal; 0 is HMC.

    Raises
    ------
    DataError
        If the persistence is not within [0, 1).
    """

    hmc: Hmc = Hmc(leapfrog_steps=1, target_acceptance=0.9)
    persistence: float = 0.9

    def __post_init__(self) -> None:
        if not 0 <= self.persistence < 1:
            raise DataError(f"the momentum's persistence lies in [0, 1); got {self.persistence}")

    def start(self, state: State, rng: np.random.Generator) -> FloatArray:
        """Draw momenta to start from, shape (n, D)."""
        return rng.standard_normal(state.points.shape)

    def move(
        self,
        path: GeometricPath,
        state: State,
        momentum: FloatArray,
        inv_temp: npt.ArrayLike,
        step_size: npt.ArrayLike,
        rng: np.random.Generator,
        *,
        backward: npt.NDArray[np.bool_] | None = None,
    ) -> MovedWithMomentum:
        """Refresh momenta in part, follow Hamilton's equations, accept or turn round.

        The transition T is not reversible.  Its reversal T', p(x, v) T(y, u | x, v) =
        p(y, u) T'(x, v | y, u), takes the same steps, each reversible, in the opposite order.

        Parameters
        ----------
        momentum
            What the last transition returned, or :meth:`start` did, shape (n, D).
        backward
            Chains that move by the reversal, shape (n,); none if not given.
        path, state, inv_temp, step_size, rng
            As for :meth:`Kernel.move`.
        """
        step = self.hmc.jittered(step_size, len(state.points), rng)
        back = np.zeros(len(step), dtype=np.bool_) if backward is None else backward
        start = self._refreshed(momentum, ~back, rng)
        start = np.where(back[:, None], -start, start)
        end = _trajectory(path, state, start, inv_temp, step, self.hmc.leapfrog_steps)
        accepted = rng.random(len(step)) < end.acceptance
        # The trajectory with its momentum turned is the reversible proposal; turned once more
        # after either outcome, an accepted one goes on and a refused one goes back.
        after = np.where(accepted[:, None], end.momentum, -start)
        after = np.where(back[:, None], -after, after)
        return MovedWithMomentum(
            end.state.where(accepted, state), self._refreshed(after, back, rng), end.acceptance
        )

    def _refreshed(
        self, momentum: FloatArray, chosen: npt.NDArray[np.bool_], rng: np.random.Generator
    ) -> FloatArray:
        """Refresh the momenta of some chains in part."""
        if not chosen.any():
            return momentum
        noise = rng.standard_normal(momentum.shape)
        refreshed = self.persistence * momentum + np.sqrt(1 - self.persistence**2) * noise
        return np.where(chosen[:, None], refreshed, momentum)


def _trajectory(
    path: GeometricPath,
    state: State,
    momentum: FloatArray,
    inv_temp: npt.ArrayLike,
    step_size: FloatArray,
    leapfrog_steps: int,
) -> MovedWithMomentum:
    """Follow Hamilton's equations in the path's metric; acceptance is that of the end."""
    step = step_size[:, None]
    before = path.log_density(state, inv_temp) - 0.5 * np.square(momentum).sum(axis=1)
    place = state
    # A trajectory that has gone astray overflows, and is refused.
    with np.errstate(over="ignore", invalid="ignore"):
        momentum = momentum + 0.5 * step * path.force(path.gradient(state, inv_temp))
        for left in reversed(range(leapfrog_steps)):
            place = path.state(place.points + step * path.moved_by(momentum))
            kick = step if left else 0.5 * step
            momentum = momentum + kick * path.force(path.gradient(place, inv_temp))
        after = path.log_density(place, inv_temp) - 0.5 * np.square(momentum).sum(axis=1)
        change = after - before  # from outside the support to outside it: not a number
    return MovedWithMomentum(place, momentum, _acceptance(change))


def _acceptance(log_ratio: FloatArray) -> FloatArray:
    """Metropolis acceptance probabilities; none where the ratio is not a number."""
    probability = np.exp(np.minimum(0.0, np.where(np.isnan(log_ratio), -np.inf, log_ratio)))
    return np.asarray(probability, dtype=np.float64)


@dataclass(frozen=True)
class RandomWalk:
    """Random-walk Metropolis with Gaussian proposals of the shape of the path's metric.

    Attributes
    ----------
    target_acceptance
        Mean acceptance probability that warm-up aims at; by default the optimum in many
        dimensions (Roberts, Gelman and Gilks 1997).

    Raises
    ------
    DataError
        If it is not between 0 and 1.
    """

    target_acceptance: float = 0.234

    def __post_init__(self) -> None:
        _check_target_acceptance(self.target_acceptance)

    def move(
        self,
        path: GeometricPath,
        state: State,
        inv_temp: npt.ArrayLike,
        step_size: npt.ArrayLike,
        rng: np.random.Generator,
    ) -> Moved:
        """Propose x + step L n, n standard normal and L the metric's Cholesky factor."""
        step = np.asarray(step_size, dtype=np.float64)[..., None]
        noise = rng.standard_normal(state.points.shape)
        proposed = path.state(state.points + step * path.moved_by(noise))
        acceptance = _acceptance(
            path.log_density(proposed, inv_temp) - path.log_density(state, inv_temp)
        )
        accepted = rng.random(len(acceptance)) < acceptance
        return Moved(proposed.where(accepted, state), acceptance)


@dataclass(frozen=True)
class Slice:
    """Univariate slice sampling along the metric's axes, one after the other (Neal 2003).

    The interval is stepped out at random from either end, at most ``most_widths`` in all, and
    shrunk until a point on the slice is found.  Every move is accepted: its step size, the
    interval's first width, needs no tuning.

    In a random order a sweep is reversible.  In a fixed one it is not, and chains that are not in
    equilibrium, such as those of annealing, have ends whose axes differ although the target's do
    not (Murray 2007, section 4.7.1).

    Attributes
    ----------
    most_widths
        Largest interval, in widths (m in Neal's figure 3).
    order
        ``random``: each chain takes the axes in an order of its own, drawn afresh for each sweep;
        ``fixed``: the first axis first.

    Raises
    ------
    DataError
        If a setting is out of its range.
    """

    most_widths: int = 8
    target_acceptance: float = 1.0
    order: Literal["random", "fixed"] = "random"

    def __post_init__(self) -> None:
        if self.most_widths < 1:
            raise DataError(f"a slice needs a width or more; got {self.most_widths}")
        if self.order not in ("random", "fixed"):
            raise DataError(f"the order of a sweep is random or fixed; got {self.order!r}")

    def move(
        self,
        path: GeometricPath,
        state: State,
        inv_temp: npt.ArrayLike,
        step_size: npt.ArrayLike,
        rng: np.random.Generator,
    ) -> Moved:
        """Update every whitened coordinate of every chain once."""
        count, dimension = state.points.shape
        beta = np.broadcast_to(np.asarray(inv_temp, dtype=np.float64), (count,))
        width = np.broadcast_to(np.asarray(step_size, dtype=np.float64), (count,))
        axes = np.tile(np.arange(dimension), (count, 1))
        if self.order == "random":
            axes = rng.permuted(axes, axis=1)
        directions = path.axes
        for axis in axes.T:
            state = self._along(path, state, directions[axis], beta, width, rng)
        return Moved(state, np.ones(count))

    def _along(
        self,
        path: GeometricPath,
        state: State,
        direction: FloatArray,
        beta: FloatArray,
        width: FloatArray,
        rng: np.random.Generator,
    ) -> State:
        """Move each chain along a direction of its own."""
        moved, level = state, path.log_density(state, beta) - rng.standard_exponential(len(beta))

        def on_slice(rows: Rows, shift: FloatArray) -> tuple[State, npt.NDArray[np.bool_]]:
            place = path.state(state.points[rows] + shift[:, None] * direction[rows])
            return place, path.log_density(place, beta[rows]) >= level[rows]

        def move(rows: Rows, place: State, found: Rows) -> None:
            nonlocal moved
            moved = moved.put(rows, place.take(found))

        slice_along_lines(on_slice, move, width, self.most_widths, rng)
        return moved


class StepSizes:
    """Step sizes that warm-up tunes, one a group of chains, by dual averaging.

    Parameters
    ----------
    groups
        Number of groups; chains of a group, say those near one inverse temperature, share a
        step size.
    initial
        Step size to start from, one for all or of each group.
    target_acceptance
        Mean acceptance probability to reach.
    """

    # Hoffman and Gelman (2014), section 3.2.1.
    _SHRINKAGE = 0.05
    _STABILISER = 10.0
    _FORGETTING = 0.75

    def __init__(self, groups: int, initial: npt.ArrayLike, target_acceptance: float) -> None:
        start = np.asarray(initial, dtype=np.float64)
        if not (groups >= 1 and np.all(np.isfinite(start)) and np.all(start > 0)):
            raise DataError(f"a step size must be positive and finite; got {start.tolist()}")
        self._target = target_acceptance
        self._log_step = np.log(np.broadcast_to(start, (groups,)))
        self._centre = self._log_step + np.log(10)
        self._log_average = self._log_step.copy()
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
        if self._target >= 1:  # a kernel that never refuses has nothing to tune
            return
        groups = len(self._log_step)
        number = np.bincount(group, minlength=groups)
        seen = number > 0
        mean = np.bincount(group, weights=acceptance, minlength=groups)[seen] / number[seen]
        self._count[seen] += 1
        count = self._count[seen]
        share = 1 / (count + self._STABILISER)
        self._error[seen] += share * (self._target - mean - self._error[seen])
        self._log_step[seen] = (
            self._centre[seen] - np.sqrt(count) / self._SHRINKAGE * self._error[seen]
        )
        recent = count**-self._FORGETTING
        self._log_average[seen] += recent * (self._log_step[seen] - self._log_average[seen])
