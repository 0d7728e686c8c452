"""Latent history Metropolis-Hastings: the data are the end of a Markov chain that never began.

The data are declared to be the last state of an infinite chain x_t = tau(x_{t-1}, u_t, theta) with
the stationary law p(y | theta).  Each iteration draws the chain's past given y and theta, as far
back as it is needed, keeps its random numbers u_t, and asks by coupling from the past where they
lead under the proposed theta'.  The chain of the data need not be reversible.  Rule "a" accepts
only if they lead to y.  Rule "b" asks for the state before the last, x'_{-1}, and accepts with the
ratio of T(y | x'_{-1}; theta') to T(y | x_{-1}; theta), which is accepted more often.

This is slower than :func:`harness.intractable.exchange.exchange`, which only needs exact draws.

References
----------
Murray, I. (2007). Advances in Markov chain Monte Carlo methods. PhD thesis, University College
London: section 5.7 and Algorithm 5.7.  In (5.46) the products must include u_0 and x_{-1}, and the
law of u_t given x_t and x_{t-1} depends on theta.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, get_args

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray
from harness.errors import DataError, SamplingError
from harness.fit import Fit
from harness.intractable.problem import IntractableProblem
from harness.intractable.proposals import Proposal
from harness.intractable.run import Starts, sampled

METHOD = "latent_history"
Rule = Literal["a", "b"]
"""What is identified: the last state (a), or the one before (b)."""
States = npt.NDArray[Any]
"""Data, random numbers or summaries of n chains, with n as the first axis."""
Mask = npt.NDArray[np.bool_]


class Coupling(Protocol):
    """A Markov chain of the data that random numbers drive, for n chains at once.

    Its stationary law at theta is p(y | theta).  What is known of a state when a run begins in the
    unknown past is a summary, any array with n as its first axis: the images of all states, for
    instance, or a lower and an upper bound.
    """

    def back(
        self, states: States, points: FloatArray, rng: np.random.Generator
    ) -> tuple[States, States]:
        """Draw one step of the past at points (n, D).

        Returns x_{t-1} from the reverse transition, p(x_{t-1} | x_t, theta), shape (n, *S), and
        random numbers u_t from their law given x_t, x_{t-1} and theta, (n, *U).
        """

    def unknown(self, count: int) -> States:
        """Return summaries (count, *R) of states of which nothing is known."""

    def forward(self, summary: States, numbers: States, points: FloatArray) -> States:
        """Move summaries (n, *R) by one step of the map with numbers (n, *U)."""

    def state(self, summary: States) -> tuple[States, Mask]:
        """Return states (n, *S) and whether each is known for certain, (n,)."""

    def possible(self, summary: States, states: States) -> Mask:
        """Return whether each summary leaves a state possible, (n,); True if in doubt."""

    def log_transition(self, before: States, after: States, points: FloatArray) -> FloatArray:
        """Return log T(after | before; theta), shape (n,); only rule "b" asks for it."""


class Past:
    """The past of n chains given their last states, drawn as far back as it has been asked for.

    Parameters
    ----------
    coupling
        The chain.
    states, points
        Last states (n, *S) and the parameters (n, D) under which they came about.
    rng
        Random numbers.
    """

    def __init__(
        self, coupling: Coupling, states: States, points: FloatArray, rng: np.random.Generator
    ) -> None:
        self._coupling, self._points, self._rng = coupling, points, rng
        self._oldest = np.array(states)
        self._numbers: list[States] = []
        self.before = self._oldest
        """States at time -1, (n, *S), once the past has been asked for."""

    @property
    def length(self) -> int:
        """Number of steps drawn so far."""
        return len(self._numbers)

    def extend(self, rows: npt.NDArray[np.intp], length: int) -> int:
        """Draw the past of some chains until it has a length; return how many steps that took.

        Chains that are left out once must not be asked for later.
        """
        taken = 0
        while self.length < length:
            earlier, numbers = self._coupling.back(
                self._oldest[rows], self._points[rows], self._rng
            )
            whole = np.zeros((len(self._points), *numbers.shape[1:]), dtype=numbers.dtype)
            whole[rows] = numbers
            self._numbers.append(whole)
            self._oldest[rows] = earlier
            if self.length == 1:
                self.before = self._oldest.copy()
            taken += len(rows)
        return taken

    def numbers(self, rows: npt.NDArray[np.intp], oldest: int, newest: int) -> Iterator[States]:
        """Yield the numbers of the steps from time -``oldest`` to -``newest``, the oldest first."""
        for age in range(oldest, newest - 1, -1):
            yield self._numbers[age][rows]


@dataclass
class LatentHistory:
    """The correction of latent histories; nothing is remembered.

    It is for problems whose log f is zero: the chain of the data stands for the whole likelihood.

    Attributes
    ----------
    coupling
        The chain of the data.
    rule
        Which acceptance rule.
    longest
        How far back coupling from the past may begin.
    steps
        Steps of the chain that were made so far, of all chains, backward and forward.

    Raises
    ------
    DataError
        If there is no such rule, or ``longest`` is below 1.
    """

    coupling: Coupling
    rule: Rule = "b"
    longest: int = 2**14
    steps: int = 0

    def __post_init__(self) -> None:
        if self.rule not in get_args(Rule) or self.longest < 1:
            raise DataError(
                "latent histories take rule 'a' or 'b' and a longest past of 1 step or more; got "
                f"{self.rule!r} and {self.longest}"
            )

    def start(
        self, problem: IntractableProblem, points: FloatArray, rng: np.random.Generator
    ) -> FloatArray:
        """See :class:`harness.intractable.run.Correction`."""
        return np.zeros(len(points))

    def __call__(
        self,
        problem: IntractableProblem,
        points: FloatArray,
        proposed: FloatArray,
        memory: FloatArray,
        rng: np.random.Generator,
    ) -> tuple[FloatArray, FloatArray]:
        """See :class:`harness.intractable.run.Correction`."""
        y = np.broadcast_to(problem.observed, (len(points), *problem.observed.shape))
        past = Past(self.coupling, y, points, rng)
        if self.rule == "a":
            ends, reached = self._ends(past, y, proposed, 0)
            same = reached & (ends == y).reshape(len(y), -1).all(axis=1)
            return np.where(same, 0.0, -np.inf), memory
        ends, _ = self._ends(past, y, proposed, 1)
        there = self._log_transition(problem.name, ends, y, proposed)
        here = self._log_transition(problem.name, past.before, y, points)
        if np.isneginf(here).any():
            raise DataError(
                f"the coupling of {problem.name} came to y by a step that its own transition "
                "probability calls impossible"
            )
        return there - here, memory

    def _ends(self, past: Past, y: States, points: FloatArray, newest: int) -> tuple[States, Mask]:
        """Return the states (n, *S) at time -``newest`` under other parameters, by coupling.

        At time 0, a chain is given up as soon as it cannot end in y; the second array (n,) has
        which ones were not.
        """
        ends = np.array(y)
        reached = np.zeros(len(points), dtype=np.bool_)
        left, length = np.arange(len(points)), 1
        while len(left):
            if length > self.longest:
                raise SamplingError(
                    f"{len(left)} of {len(points)} latent histories still depend on their start "
                    f"after {length // 2} steps; narrow the prior to where the chain of the data "
                    "forgets its start sooner, or raise 'longest'"
                )
            self.steps += past.extend(left, newest + length)
            summary = self.coupling.unknown(len(left))
            for numbers in past.numbers(left, newest + length - 1, newest):
                summary = self.coupling.forward(summary, numbers, points[left])
            self.steps += length * len(left)
            states, known = self.coupling.state(summary)
            ends[left[known]], reached[left[known]] = states[known], True
            open_ = ~known
            if newest == 0:
                open_ &= self.coupling.possible(summary, y[left])
            left, length = left[open_], 2 * length
        return ends, reached

    def _log_transition(
        self, name: str, before: States, after: States, points: FloatArray
    ) -> FloatArray:
        values = np.asarray(self.coupling.log_transition(before, after, points), dtype=np.float64)
        if values.shape != (len(points),) or np.isnan(values).any() or (values > 1e-9).any():
            raise DataError(
                f"the log transition of the coupling of {name} must be {len(points)} numbers "
                "of at most 0"
            )
        return values


def latent_history(
    problem: IntractableProblem,
    coupling: Coupling,
    starts: Starts,
    *,
    proposal: Proposal | npt.ArrayLike,
    draws: int,
    seed: int,
    chains: int = 4,
    warmup: int | None = None,
    thin: int = 1,
    adapt: bool = True,
    rule: Rule = "b",
    longest: int = 2**14,
) -> Fit:
    """Sample a doubly intractable posterior by latent history Metropolis-Hastings.

    Parameters
    ----------
    problem
        Prior and data; neither log f nor the simulator is used.
    coupling
        A Markov chain of the data, driven by random numbers, that coalesces.
    rule
        Which acceptance rule; "a" does not need transition probabilities.
    longest
        How many steps ago coupling from the past may begin.
    starts, proposal, draws, seed, chains, warmup, thin, adapt
        The same as for :func:`harness.intractable.exchange.exchange`.

    Returns
    -------
    Fit
        Unweighted draws of the posterior.  ``lp`` in the sample statistics is the log prior; the
        attribute ``steps`` has all steps of the chain of the data, backward and forward.

    Raises
    ------
    DataError
        If a setting does not fit the problem, or a function returns what it must not.
    SamplingError
        If a past of length ``longest`` still depends on its start.
    """
    correction = LatentHistory(coupling, rule, longest)
    fit = sampled(
        METHOD,
        replace(problem, log_factor=lambda points, data: np.zeros(len(points))),
        correction,
        starts,
        proposal=proposal,
        draws=draws,
        chains=chains,
        warmup=warmup,
        thin=thin,
        adapt=adapt,
        seed=seed,
        settings={"rule": rule, "longest": longest},
    )
    fit.tree.attrs["steps"] = correction.steps
    return fit
