"""Errors over runs, effect sizes with their intervals, and what they decide about a claim."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from math import ceil, exp, inf, isfinite, log
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray
from harness.errors import DataError

_ALPHA = 0.05
_MOST_RUNS = 10_000
"""Beyond this many runs a number of runs is no advice."""


@dataclass(frozen=True)
class Undecided:
    """These runs do not decide a claim.

    Attributes
    ----------
    needs
        What would decide it, as words that follow "To decide it would take".
    runs
        The number of runs that ``needs`` names, to compare parts of a claim; 0 if it names none.
    """

    needs: str
    runs: float = field(default=0.0, compare=False)


Decision = bool | Undecided
"""Whether a claim holds, or that these runs cannot say."""


@dataclass(frozen=True)
class Effect:
    """A difference or ratio that a claim is about, estimated from independent runs.

    Attributes
    ----------
    value
        The estimate, in the claim's unit.
    se
        Its standard error; of a ratio, that of its logarithm.
    runs
        How many runs it rests on; of two groups, the smaller number.
    ratio
        Whether it is a ratio, so that its interval is symmetric on the logarithmic scale.
    """

    value: float
    se: float
    runs: int
    ratio: bool = False

    def interval(self, of: int = 1) -> tuple[float, float]:
        """95 % interval by the normal approximation.

        Parameters
        ----------
        of
            How many intervals are to hold together; each is widened for it (Bonferroni).
        """
        reach = NormalDist().inv_cdf(1 - _ALPHA / 2 / of) * self.se
        if not isfinite(reach):
            return (0.0 if self.ratio else -inf), inf
        if self.ratio:
            return self.value * exp(-reach), self.value * exp(reach)
        return self.value - reach, self.value + reach

    def told(self, decimals: int = 2, sign: str = "") -> str:
        """Write the estimate with its interval, as ``1.26 [0.98, 1.61]``."""
        low, high = self.interval()
        return (
            f"{self.value:{sign},.{decimals}f} "
            f"[{low:{sign},.{decimals}f}, {high:{sign},.{decimals}f}]"
        )

    def lies(self, *, above: float = -inf, below: float = inf, of: int = 1) -> Decision:
        """Decide whether the true effect lies above one bound and below another.

        It does if the whole interval lies between the bounds, and does not if the whole interval
        lies beyond one of them.  Otherwise it is undecided, and the number of runs is estimated
        that would take the interval off the bound that it contains, as its width falls with the
        root of the number of runs.

        Parameters
        ----------
        above, below
            The bounds.
        of
            How many effects decide the claim together.
        """
        if not (isfinite(self.value) and isfinite(self.se)):
            return Undecided("two runs or more of every method")
        low, high = self.interval(of)
        if high <= above or low >= below:
            return False
        if low > above and high < below:
            return True
        crossed = [bound for bound in (above, below) if low <= bound <= high]
        return self._runs_to_leave(crossed, (high, low))

    def _runs_to_leave(self, bounds: list[float], interval: tuple[float, float]) -> Undecided:
        scale = log if self.ratio else float
        high, low = (scale(end) for end in interval)
        distance = min(abs(scale(bound) - scale(self.value)) for bound in bounds)
        runs = inf if distance == 0 else self.runs * ((high - low) / 2 / distance) ** 2
        if runs > _MOST_RUNS:
            words = "far more runs than anybody can afford: the effect is as large as the bound"
            return Undecided(words, inf)
        number = max(ceil(runs), self.runs + 1)
        return Undecided(f"some {number:,} runs where there are {self.runs}", number)


def mean_effect(values: npt.ArrayLike) -> Effect:
    """Mean over independent runs, with its standard error.

    Parameters
    ----------
    values
        One value a run, shape (R,).

    Raises
    ------
    DataError
        If there are no runs.
    """
    array = np.asarray(values, dtype=np.float64)
    if array.size == 0:
        raise DataError("a mean over runs needs runs; there are none")
    se = float(array.std(ddof=1) / np.sqrt(array.size)) if array.size > 1 else inf
    return Effect(float(array.mean()), se, array.size)


@dataclass(frozen=True)
class Rmse:
    """A root mean squared error over independent runs.

    Attributes
    ----------
    value
        The root mean squared error.
    se
        Its standard error; infinite if there is one run.
    runs
        How many runs it rests on.
    """

    value: float
    se: float
    runs: int

    @property
    def log_se(self) -> float:
        """Standard error of its logarithm; 0 of an error that is zero in two runs or more."""
        return self.se / self.value if self.value > 0 else self.se


def rmse(errors: npt.ArrayLike) -> Rmse:
    """Return the root mean squared error over runs, with its standard error by the delta method.

    With m the mean of R squared errors and s their standard deviation, the standard error is
    s / sqrt(R) / (2 sqrt(m)).

    Parameters
    ----------
    errors
        Estimate minus truth, shape (R,); or (R, K) for K coordinates, whose squared errors are
        averaged.

    Raises
    ------
    DataError
        If there are no runs.
    """
    squared = squared_errors(errors)
    root = float(np.sqrt(squared.mean()))
    if len(squared) < 2:
        return Rmse(root, inf, 1)
    if root == 0:
        return Rmse(0.0, 0.0, len(squared))
    return Rmse(root, float(squared.std(ddof=1) / np.sqrt(len(squared)) / (2 * root)), len(squared))


def squared_errors(errors: npt.ArrayLike) -> FloatArray:
    """Return the squared error of every run, averaged over its coordinates, shape (R,).

    Parameters
    ----------
    errors
        Estimate minus truth, shape (R,) or (R, K).

    Raises
    ------
    DataError
        If there are no runs.
    """
    array = np.asarray(errors, dtype=np.float64)
    if len(array) == 0:
        raise DataError("an error over runs needs runs; there are none")
    squared: FloatArray = np.square(array.reshape(len(array), -1)).mean(axis=1)
    return squared


def error_ratio(errors: npt.ArrayLike, reference: npt.ArrayLike) -> Effect:
    """Root mean squared error of one method over that of another, from independent runs of both.

    The logarithm of a root mean squared error has the standard error s / (2 m sqrt(R)), with m the
    mean of R squared errors and s their standard deviation (delta method); the two add in squares.

    Parameters
    ----------
    errors, reference
        Estimate minus truth in every run, shape (R,); or (R, K) for K coordinates, whose squared
        errors are averaged.

    Raises
    ------
    DataError
        If there are no runs.
    """
    one, two = rmse(errors), rmse(reference)
    runs = min(one.runs, two.runs)
    if two.value == 0:
        return Effect(inf if one.value else 1.0, inf, runs, ratio=True)
    return Effect(one.value / two.value, float(np.hypot(one.log_se, two.log_se)), runs, ratio=True)


def share(successes: int, runs: int) -> tuple[float, float, float]:
    """Share of runs in which something happened, with Wilson's 95 % interval.

    Parameters
    ----------
    successes, runs
        In how many of how many runs it happened.

    Returns
    -------
    tuple
        The share and the ends of its interval.

    Raises
    ------
    DataError
        If there are no runs, or more successes than runs.
    """
    if not 0 <= successes <= runs or runs == 0:
        raise DataError(f"{successes} of {runs} runs is no share")
    z = NormalDist().inv_cdf(1 - _ALPHA / 2)
    found = successes / runs
    middle = (found + z**2 / (2 * runs)) / (1 + z**2 / runs)
    reach = z / (1 + z**2 / runs) * np.sqrt(found * (1 - found) / runs + z**2 / (4 * runs**2))
    return found, float(max(0.0, middle - reach)), float(min(1.0, middle + reach))


def each_lies(
    effects: Sequence[Effect], *, above: float = -inf, below: float = inf
) -> list[Decision]:
    """Decide for each of several effects, for a claim that holds if all of them do.

    That all of them lie between the bounds is decided by each one's own interval: a claim about
    all of them is wrong only if it is wrong about one, so that intervals need not be widened
    (intersection-union test, Berger 1982).  That one of them lies beyond is decided by an interval
    that is widened for their number, because any of them may do so by chance.

    Parameters
    ----------
    effects
        The effects.
    above, below
        The bounds; see :meth:`Effect.lies`.

    Returns
    -------
    list
        A decision for each, for :func:`all_hold`.

    References
    ----------
    Berger, R. L. (1982). Multiparameter hypothesis testing and acceptance sampling. Technometrics
    24, 295-300.
    """

    def decide(effect: Effect) -> Decision:
        found = effect.lies(above=above, below=below)
        return effect.lies(above=above, below=below, of=len(effects)) if found is False else found

    return [decide(effect) for effect in effects]


def all_hold(decisions: Iterable[Decision]) -> Decision:
    """Decide a claim that holds if all its parts do.

    One part that does not hold settles it.  Otherwise every part that is undecided must be decided,
    so that the one counts that needs the most runs.
    """
    found = list(decisions)
    if any(each is False for each in found):
        return False
    return _undecided(found, max) or True


def any_holds(decisions: Iterable[Decision]) -> Decision:
    """Decide a claim that holds if one of its parts does.

    If it is undecided, the part counts that needs the fewest runs.
    """
    found = list(decisions)
    if any(each is True for each in found):
        return True
    return _undecided(found, min) or False


def _undecided(found: list[Decision], chosen: Callable[[list[float]], float]) -> Undecided | None:
    """What undecided parts need together: the chosen number of runs, and what is no number."""
    parts = [each for each in found if isinstance(each, Undecided)]
    if not parts:
        return None
    runs = chosen([each.runs for each in parts if each.runs] or [0.0])
    needs = [each.needs for each in parts if each.runs in (0.0, runs)]
    return Undecided("; ".join(dict.fromkeys(needs)), runs)
