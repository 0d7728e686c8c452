"""Data sets between two parameter settings: the estimate that a bridge makes of Z's ratio.

With beta_k = k / (K + 1), the densities between them are

    f_k = f(.; start)^(1 - beta_k) f(.; end)^beta_k.

From x_0, an exact draw at the start, x_k comes from x_(k-1) by a transition that leaves f_k
invariant, and

    prod_(k=0)^K f_(k+1)(x_k) / f_k(x_k)

is an unbiased estimate of Z(end) / Z(start).  With K = 0 it is f(x_0; end) / f(x_0; start).  The
thesis (Murray 2007, (5.26)) prints the product to K - 1, which is a misprint.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.intractable.problem import IntractableProblem


class Transition(Protocol):
    """A Markov transition on data between two parameter settings.

    It leaves f(y; start)^(1 - share) f(y; end)^share invariant.  For the exchange algorithm it must
    also be reversible: a Gibbs sweep in a fixed order is not, one in a random order is.
    """

    def __call__(
        self,
        data: FloatArray,
        start: FloatArray,
        end: FloatArray,
        share: float,
        rng: np.random.Generator,
        /,
    ) -> FloatArray:
        """Return new data (n, *S) from data (n, *S), with points start and end (n, D)."""


@dataclass(frozen=True)
class Bridge:
    """K intermediate densities and the transitions between them.

    Attributes
    ----------
    levels
        K, 0 for none.
    transition
        Needed if K is above 0.

    Raises
    ------
    DataError
        If K is negative, or above 0 without a transition.
    """

    levels: int = 0
    transition: Transition | None = None

    def __post_init__(self) -> None:
        if self.levels < 0:
            raise DataError(f"a bridge has 0 levels or more; got {self.levels}")
        if self.levels > 0 and self.transition is None:
            raise DataError(f"a bridge with {self.levels} levels needs a transition on the data")

    def log_ratio(
        self,
        problem: IntractableProblem,
        start: FloatArray,
        end: FloatArray,
        rng: np.random.Generator,
    ) -> FloatArray:
        """Return the log of the product above, (n,), from fresh exact draws at ``start`` (n, D)."""
        data, log_start = problem.draw(start, rng)
        share = 1 / (self.levels + 1)
        total = share * (problem.likelihood(end, data) - log_start)
        for k in range(1, self.levels + 1):
            assert self.transition is not None  # noqa: S101 - checked when it was made
            data = self.transition(data, start, end, k * share, rng)
            total += share * (problem.likelihood(end, data) - problem.likelihood(start, data))
        return total
