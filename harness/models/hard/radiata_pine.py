"""Regressions of the strength of radiata pine: data and truth for ``stan/radiata_pine``.

References
----------
Williams, E. J. (1959). Regression Analysis. Wiley: the boards.

Bernardo, J. M. and Smith, A. F. M. (1994). Bayesian Theory. Wiley: section 5.4, the conjugate
normal-gamma prior.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import gammaln

from harness.arrays import FloatArray
from harness.folders import shipped
from harness.model import Model, TrueValue, Truth
from harness.model.truth import Expectations, without_error

Explained = Literal["density", "adjusted"]
"""What explains the strength: density (M1), or density adjusted for resin content (M2)."""

_COLUMN: dict[Explained, str] = {"density": "x", "adjusted": "z"}
_PRIOR_MEAN = np.array([3000.0, 185.0])
_SHAPE, _RATE = 3.0, 180_000.0


class Boards(NamedTuple):
    """Columns of the table, each of shape (N,)."""

    y: FloatArray
    """Maximum compression strength parallel to the grain."""
    x: FloatArray
    """Density."""
    z: FloatArray
    """Density adjusted for resin content."""


def load_boards() -> Boards:
    """Return the 42 boards."""
    table = pd.read_csv(shipped("data") / "radiata_pine" / "radiata_pine.csv")
    return Boards(*(table[name].to_numpy(dtype=np.float64) for name in Boards._fields))


@dataclass(frozen=True)
class Pine:
    """y ~ N(alpha + beta (x - mean x), 1 / tau) under a conjugate prior.

    tau ~ Gamma(3, rate 180,000), alpha | tau ~ N(3000, 1 / (.06 tau)) and
    beta | tau ~ N(185, 1 / (p tau)).

    Attributes
    ----------
    y, x
        Strength and what explains it, each of shape (N,).
    slope_precision
        p, which is 6 in the program.
    """

    y: FloatArray
    x: FloatArray
    slope_precision: float = 6.0

    @property
    def _prior_precision(self) -> FloatArray:
        return np.diag([0.06, self.slope_precision])

    def _after(self) -> tuple[FloatArray, FloatArray, float, float]:
        """Return mean and precision (over tau) of the coefficients, and shape and rate of tau."""
        prior, y = self._prior_precision, self.y
        design = np.column_stack([np.ones(len(y)), self.x - self.x.mean()])
        precision = design.T @ design + prior
        mean = np.linalg.solve(precision, design.T @ y + prior @ _PRIOR_MEAN)
        rest = y @ y + _PRIOR_MEAN @ prior @ _PRIOR_MEAN - mean @ precision @ mean
        return mean, precision, _SHAPE + len(y) / 2, _RATE + float(rest) / 2

    def log_evidence(self) -> float:
        """Return log Z, in nats, by conjugacy."""
        _, precision, shape, rate = self._after()
        determinants = np.linalg.slogdet(self._prior_precision)[1] - np.linalg.slogdet(precision)[1]
        return float(
            -0.5 * len(self.y) * math.log(2 * math.pi)
            + 0.5 * determinants
            + gammaln(shape)
            - gammaln(_SHAPE)
            + _SHAPE * math.log(_RATE)
            - shape * math.log(rate)
        )

    def _log_evidence(self) -> TrueValue[float]:
        return TrueValue(self.log_evidence(), 0.0)

    @property
    def truth(self) -> Truth:
        """Log Z, and ``alpha``, ``beta``, ``tau`` and their squares in closed form."""
        return Truth(
            "closed form, by conjugacy",
            self._log_evidence,
            self._expectations,
            draw=self.draw,
        )

    def _expectations(self) -> Expectations:
        mean, precision, shape, rate = self._after()
        variance = rate / (shape - 1) * np.diag(np.linalg.inv(precision))
        found = {
            "alpha": mean[0],
            "beta": mean[1],
            "tau": shape / rate,
            "alpha_squared": mean[0] ** 2 + variance[0],
            "beta_squared": mean[1] ** 2 + variance[1],
            "tau_squared": shape * (shape + 1) / rate**2,
        }
        return {name: without_error(np.array(value)) for name, value in found.items()}

    def draw(self, count: int, rng: np.random.Generator) -> FloatArray:
        """Return exact draws of (alpha, beta, tau), shape (count, 3)."""
        mean, precision, shape, rate = self._after()
        tau = rng.gamma(shape, 1 / rate, size=(count, 1))
        root = np.linalg.cholesky(np.linalg.inv(precision))
        return np.hstack([mean + rng.normal(size=(count, 2)) @ root.T / np.sqrt(tau), tau])


def radiata_pine(explained: Explained) -> Model:
    """Return the regression on one of the two densities."""
    boards = load_boards()
    x = getattr(boards, _COLUMN[explained])
    return Model(
        f"radiata_pine_{explained}",
        shipped("stan") / "radiata_pine",
        {"N": len(boards.y), "y": boards.y, "x": x},
        ("alpha", "beta", "tau"),
        3,
        transforms={"tau": "log"},
        own_base="prior",
        truth=Pine(boards.y, x).truth,
    )
