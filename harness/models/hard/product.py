"""Two probabilities of which the data tell only the product: data and truth for ``stan/product``.

References
----------
Surjanovic, N., Biron-Lattes, M., Tiede, P., Syed, S., Campbell, T. and Bouchard-Côté, A. (2023).
Pigeons.jl: distributed sampling from intractable distributions. arXiv:2308.09769: the example.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import xarray as xr
from scipy.special import psi

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.folders import shipped
from harness.model import Model, ModeTest, TrueValue, Truth
from harness.model.truth import Expectations, without_error

_QUARTERS = 4


@dataclass(frozen=True)
class Product:
    """x, y ~ U(0, 1) and k ~ Binomial(n, xy).

    Attributes
    ----------
    n
        Number of trials.
    k
        Number of successes, from 1 to n.

    Raises
    ------
    DataError
        If there are no successes, or more than trials.
    """

    n: int = 100_000
    k: int = 50_000

    def __post_init__(self) -> None:
        if not 1 <= self.k <= self.n:
            raise DataError(f"there must be between 1 and n = {self.n} successes; got {self.k}")

    @property
    def truth(self) -> Truth:
        """Log Z, ``x``, ``y`` and their squares in closed form, and four equally likely events.

        The product u = xy has a density proportional to u^k (1 - u)^(n - k) (-log u), and given u,
        log x is uniform on (log u, 0).  So log x / log(xy) is uniform on (0, 1), whatever the data,
        and the mode test asks in which quarter it lies: at which part of the curve xy = k / n a
        draw is.
        """
        return Truth(
            "closed form",
            self._log_evidence,
            self._expectations,
            ModeTest(
                tuple(f"quarter {i + 1} of the curve" for i in range(_QUARTERS)),
                quarter_of_curve,
                without_error(np.full(_QUARTERS, 1 / _QUARTERS)),
                exclusive=True,
            ),
            self.draw,
        )

    @property
    def _mean_log(self) -> float:
        """E[-log u] for u ~ Beta(k + 1, n - k + 1)."""
        return float(psi(self.n + 2) - psi(self.k + 1))

    def _log_evidence(self) -> TrueValue[float]:
        """The binomial coefficient times B(k + 1, n - k + 1) is 1 / (n + 1)."""
        return TrueValue(float(-np.log(self.n + 1) + np.log(self._mean_log)), 0.0)

    def _expectations(self) -> Expectations:
        """E[x | u] = (1 - u) / (-log u) and E[x^2 | u] = (1 - u^2) / (-2 log u)."""
        n, k = self.n, self.k
        first = (n - k + 1) / (n + 2) / self._mean_log
        second = (1 - (k + 1) * (k + 2) / ((n + 2) * (n + 3))) / (2 * self._mean_log)
        found = {"x": first, "y": first, "x_squared": second, "y_squared": second}
        return {name: without_error(np.array(value)) for name, value in found.items()}

    def draw(self, count: int, rng: np.random.Generator) -> FloatArray:
        """Return exact draws of (x, y), shape (count, 2).

        The product is drawn by rejection from Beta(k, n - k + 1): the ratio of the densities is
        -u log u up to a constant, which is at most 1 / e.
        """
        kept = np.empty(0)
        while len(kept) < count:
            u = rng.beta(self.k, self.n - self.k + 1, size=count)
            kept = np.append(kept, u[rng.random(count) < -math.e * u * np.log(u)])
        log_product = np.log(kept[:count])
        log_x = rng.random(count) * log_product
        return np.exp(np.stack([log_x, log_product - log_x], axis=1))


def quarter_of_curve(draws: xr.Dataset) -> xr.DataArray:
    """Return in which quarter of (0, 1) log x / log(xy) lies."""
    x, y = (np.log(draws[name].to_numpy()) for name in ("x", "y"))
    # At the corner (1, 1) it does not matter.
    share = np.divide(x, x + y, out=np.zeros_like(x), where=x + y != 0)
    quarter = np.minimum((share * _QUARTERS).astype(int), _QUARTERS - 1)
    each = quarter[..., None] == np.arange(_QUARTERS)
    return xr.DataArray(each, dims=("chain", "draw", "event")).astype(float)


def product() -> Model:
    """Return the target with 50,000 successes in 100,000 trials."""
    made = Product()
    return Model(
        "product",
        shipped("stan") / "product",
        {"n": made.n, "k": made.k},
        ("x", "y"),
        2,
        bounds={"x": (0.0, 1.0), "y": (0.0, 1.0)},
        own_base="prior",
        truth=made.truth,
    )
