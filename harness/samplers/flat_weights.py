"""Log weights that warm-up adapts until a chain spends given shares of its time in given parts.

Used for the density g of the inverse temperature, where metadynamics is the counterpart (Graham
and Storkey 2017, section 4), and for pseudo-samples with densities of their own.  The adaptation
vanishes, and it ends with warm-up: what is sampled afterwards is a fixed density, for which the
usual weights are exact.

References
----------
Tan, Z. (2017). Optimally adjusted mixture sampling and locally weighted histogram analysis.
Journal of Computational and Graphical Statistics 26, 54-65.
"""

from __future__ import annotations

import numpy as np

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.evidence import inv_temp_interval_masses

_FAST = 0.6  # exponent of the gain in the first stage, t^-0.6
_LARGEST_STEP = 1.0  # nats


class FlatWeights:
    """Log weights, one a part, that learn from the probabilities of the parts given x.

    The density with part k in it is multiplied by exp(``value[k]``).  At the fixed point the
    expected probability of each part is its share.  Probabilities given x, in place of the part
    that a chain is in, take the noise of that choice away.

    Parameters
    ----------
    share
        Share of each part, positive with a sum of one, shape (K,).
    iterations
        Number of iterations to come.  The gain is one until every part has been seen, with a total
        probability of its share; then it falls like t^-0.6 in the first half, so that weights that
        are far off get near, and like 1 / t after it (Tan 2017, eq. 12).  No step exceeds one nat.

    Attributes
    ----------
    value
        Log weights, shape (K,), 0 for the first part.
    """

    def __init__(self, share: FloatArray, iterations: int) -> None:
        if not (share.size and np.all(share > 0) and np.isclose(share.sum(), 1)):
            raise DataError(f"shares are positive and add up to one; got {share.tolist()}")
        self._share = share
        self._first = iterations // 2
        self._done = self._falling = 0  # iterations, and those in which the gain fell
        self._seen = np.zeros(share.size)
        self.value = np.zeros(share.size)

    def learn(self, probability: FloatArray) -> None:
        """Take in the probabilities of the parts given each chain's x, shape (n, K)."""
        mean = probability.mean(axis=0)
        self._seen += mean
        step = self._gain() * (mean / self._share - 1)
        step *= _LARGEST_STEP / max(_LARGEST_STEP, float(np.abs(step).max()))
        self.value = self.value - step
        self.value = self.value - self.value[0]

    def _gain(self) -> float:
        """Gain of this iteration."""
        self._done += 1
        if np.any(self._seen < self._share):
            return 1.0
        self._falling += 1
        slow = min(max(0, self._done - self._first), self._falling)
        return float(1 / (slow + (self._falling - slow) ** _FAST))


class FlatInvTemp:
    """A log g, linear between knots, that learns until beta's marginal density is flat.

    Parameters
    ----------
    log_g
        Knots to start from, shape (J, 2), with beta from 0 to 1.
    intervals
        Number of intervals between the adapted knots, which are evenly spaced.
    iterations
        Number of iterations to come.

    Raises
    ------
    DataError
        If there are fewer than 2 intervals.
    """

    def __init__(self, log_g: FloatArray, intervals: int, iterations: int) -> None:
        if intervals < 2:
            raise DataError(f"an adapted log g has 2 intervals or more; got {intervals}")
        self._knot = np.linspace(0, 1, intervals + 1)
        self._start = np.interp(self._knot, *log_g.T)
        # The share of a knot is that of a hat function: half of each interval beside it.
        self._weights = FlatWeights(_around(np.full(intervals, 1 / intervals)), iterations)

    @property
    def log_g(self) -> FloatArray:
        """The knots now, shape (K, 2)."""
        return np.column_stack([self._knot, self._start + self._weights.value])

    def learn(self, delta: FloatArray) -> None:
        """Take in Delta of each chain, shape (n,); those that are not finite tell nothing."""
        finite = delta[np.isfinite(delta)]
        if finite.size:
            self._weights.learn(_around(inv_temp_interval_masses(finite, self.log_g)))


def _around(mass: FloatArray) -> FloatArray:
    """Share the masses of intervals (..., K - 1) between the knots (..., K) at their ends."""
    nothing = np.zeros((*mass.shape[:-1], 1))
    left = np.concatenate([nothing, mass], axis=-1)
    right = np.concatenate([mass, nothing], axis=-1)
    shared: FloatArray = 0.5 * (left + right)
    return shared
