"""A wide and a narrow mode with a transition between them: data and truth of ``unequal_wells``.

References
----------
Woodard, D. B., Schmidler, S. C. and Huber, M. (2009). Sufficient conditions for torpid mixing of
parallel and simulated tempering. Electronic Journal of Probability 14: modes of unequal width.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import xarray as xr
from scipy.special import logsumexp, ndtr

from harness.arrays import FloatArray
from harness.folders import shipped
from harness.model import Model, ModeTest, TrueValue, Truth
from harness.model.truth import Expectations, without_error

PRIOR_SD = 5.0
"""Standard deviation of every coordinate under the prior, which the program states."""


@dataclass(frozen=True)
class UnequalWells:
    """x ~ N(0, 5^2 I); the likelihood is the mean of N(y_1 | x, s_1^2 I) and N(y_2 | x, s_2^2 I).

    Either measurement is right with probability 1/2.  At the inverse temperature beta the narrow
    mode's mass is about (s_2 / s_1)^(D (1 - beta)) times the wide one's: they are as large as each
    other at beta = 1 only, and a little below it the narrow one has next to nothing.

    Attributes
    ----------
    dimension
        D.
    centre
        Each coordinate of y_1 is -centre, and of y_2 centre.
    wide, narrow
        Standard errors s_1 and s_2.
    """

    dimension: int
    centre: float = 2.0
    wide: float = 1.0
    narrow: float = 0.3

    @property
    def _sd(self) -> FloatArray:
        return np.array([self.wide, self.narrow])

    @property
    def _y(self) -> FloatArray:
        return np.array([-self.centre, self.centre])

    @property
    def _log_masses(self) -> FloatArray:
        """Log of the evidence of either measurement, times 1/2, shape (2,)."""
        variance = self._sd**2 + PRIOR_SD**2
        each = -0.5 * (np.log(2 * np.pi * variance) + self._y**2 / variance)
        return np.asarray(self.dimension * each - math.log(2))

    @property
    def _conditional(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Share of either mode, and the mean and sd of each coordinate in it, each (2,)."""
        log_mass = self._log_masses
        shrink = PRIOR_SD**2 / (PRIOR_SD**2 + self._sd**2)
        return np.exp(log_mass - logsumexp(log_mass)), shrink * self._y, np.sqrt(shrink) * self._sd

    @property
    def truth(self) -> Truth:
        """Log Z; ``x`` and ``x_squared``, (D,); whether a draw is on the narrow mode's side."""
        share, mean, sd = self._conditional
        # The mean of the coordinates is normal in either mode.
        positive = float(share @ ndtr(mean / sd * math.sqrt(self.dimension)))
        return Truth(
            "closed form",
            self._log_evidence,
            self._expectations,
            ModeTest(
                ("wide mode", "narrow mode"),
                sides,
                without_error(np.array([1 - positive, positive])),
                exclusive=True,
            ),
            self.draw,
        )

    def _log_evidence(self) -> TrueValue[float]:
        return TrueValue(float(logsumexp(self._log_masses)), 0.0)

    def _expectations(self) -> Expectations:
        share, mean, sd = self._conditional
        ones = np.ones(self.dimension)
        return {
            "x": without_error(ones * (share @ mean)),
            "x_squared": without_error(ones * (share @ (mean**2 + sd**2))),
        }

    def draw(self, count: int, rng: np.random.Generator) -> FloatArray:
        """Return exact draws, shape (count, D)."""
        share, mean, sd = self._conditional
        mode = rng.choice(2, size=count, p=share)[:, None]
        return np.asarray(mean[mode] + sd[mode] * rng.normal(size=(count, self.dimension)))


def sides(draws: xr.Dataset) -> xr.DataArray:
    """Return whether the mean of a draw's coordinates is negative, and whether it is positive."""
    positive = draws["x"].to_numpy().mean(axis=-1) > 0
    either = np.stack([~positive, positive], axis=-1)
    return xr.DataArray(either, dims=("chain", "draw", "event")).astype(float)


def unequal_wells(dimension: int) -> Model:
    """Return the target in 10, 25 or any other number of dimensions."""
    made = UnequalWells(dimension)
    ones = np.ones(dimension)
    return Model(
        f"unequal_wells_{dimension}",
        shipped("stan") / "unequal_wells",
        {
            "D": dimension,
            "y": np.stack([-made.centre * ones, made.centre * ones]),
            "sigma": np.array([made.wide, made.narrow]),
        },
        ("x",),
        dimension,
        own_base="prior",
        truth=made.truth,
    )
