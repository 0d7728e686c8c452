"""The phi-four chain with ends held at zero: data and truth for ``stan/phi_four``.

References
----------
Gabrié, M., Rotskoff, G. M. and Vanden-Eijnden, E. (2022). Adaptive Monte Carlo augmented with
normalizing flows. Proceedings of the National Academy of Sciences 119(10).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import xarray as xr

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.folders import shipped
from harness.model import Model, ModeTest, TrueValue, Truth
from harness.model.truth import Expectations

_REACH = 3.0
"""With the default constants the density of a site is below exp(-90) of its peak beyond this."""
_POINTS, _COARSE = 501, 301
_DRAW_POINTS = 2001


@dataclass(frozen=True)
class PhiFour:
    """The chain x_1, ..., x_N, with x_0 = x_{N+1} = 0.

    log density = h sum_i x_i - beta [(a N / 2) sum_i (x_{i+1} - x_i)^2
    + (1 / (4 a N)) sum_i (1 - x_i^2)^2], with i from 0 to N in the first sum of the bracket.

    Attributes
    ----------
    field
        h, which favours one sign.
    sites
        N, 2 or more.
    stiffness
        a.
    inv_temp
        beta.

    Raises
    ------
    DataError
        If there are fewer than 2 sites.
    """

    field: float = 0.0
    sites: int = 32
    stiffness: float = 0.1
    inv_temp: float = 20.0

    def __post_init__(self) -> None:
        if self.sites < 2:
            raise DataError(f"the chain needs 2 sites or more; got {self.sites}")

    @property
    def _bond(self) -> float:
        """Coefficient of the square of a difference between neighbours."""
        return 0.5 * self.inv_temp * self.stiffness * self.sites

    def _log_site(self, x: FloatArray) -> FloatArray:
        """Log density of a site without its bonds."""
        well = self.inv_temp / (4 * self.stiffness * self.sites)
        return np.asarray(self.field * x - well * (1 - x**2) ** 2)

    def _forward(self, points: int) -> tuple[FloatArray, float, list[FloatArray], list[float]]:
        """Integrate the sites out one after another, from the left.

        Returns the grid, its step, for each site i the density of x_i on the grid without the
        bonds to its right, each divided by its largest value, and the logs of these divisors.
        """
        grid, step = np.linspace(-_REACH, _REACH, points, retstep=True)
        site = np.exp(self._log_site(grid))
        kernel = np.exp(-self._bond * (grid[:, None] - grid) ** 2) * step
        message = np.exp(-self._bond * grid**2) * site
        messages, logs = [], []
        for i in range(self.sites):
            if i:
                message = site * (kernel @ message)
            logs.append(float(np.log(message.max())))
            message = message / message.max()
            messages.append(message)
        return grid, float(step), messages, logs

    def _solve(self, points: int) -> tuple[float, FloatArray, FloatArray, FloatArray]:
        """Return log Z, and E x_i, E x_i^2 and P(x_i > 0), each of shape (N,)."""
        grid, step, messages, logs = self._forward(points)
        end = np.exp(-self._bond * grid**2)
        log_z = sum(logs) + float(np.log(messages[-1] @ end * step))
        kernel = np.exp(-self._bond * (grid[:, None] - grid) ** 2)
        site = np.exp(self._log_site(grid))
        positive = np.where(grid == 0, 0.5, grid > 0)
        moments = []
        for message in reversed(messages):
            mass = message * end
            mass = mass / mass.sum()
            moments.append([mass @ grid, mass @ grid**2, mass @ positive])
            end = kernel @ (site * end)
            end = end / end.max()
        first, second, right = np.array(moments[::-1]).T
        return log_z, first, second, right

    @cached_property
    def _fine_and_coarse(self) -> tuple[tuple[float, FloatArray, FloatArray, FloatArray], ...]:
        return self._solve(_POINTS), self._solve(_COARSE)

    @property
    def middle(self) -> int:
        """Number of the site in the middle, counted from 1: N / 2, rounded down."""
        return self.sites // 2

    @property
    def truth(self) -> Truth:
        """Log Z; ``x`` and ``x_squared``, (N,); and whether the middle site is positive.

        The error is the difference from a coarser grid.
        """
        return Truth(
            "transfer matrix on a grid",
            self._log_evidence,
            self._expectations,
            self._mode_test(),
            self.draw,
        )

    def _log_evidence(self) -> TrueValue[float]:
        fine, coarse = self._fine_and_coarse
        return TrueValue(fine[0], abs(fine[0] - coarse[0]))

    def _expectations(self) -> Expectations:
        (_, first, second, _), (_, coarse_first, coarse_second, _) = self._fine_and_coarse
        return {
            "x": TrueValue(first, np.abs(first - coarse_first)),
            "x_squared": TrueValue(second, np.abs(second - coarse_second)),
        }

    def _mode_test(self) -> ModeTest:
        site = self.middle - 1
        (right, coarse) = (each[3][site] for each in self._fine_and_coarse)
        probabilities = np.array([right, 1 - right])
        error = np.full(2, abs(right - coarse))

        names = (f"x[{self.middle}] > 0", f"x[{self.middle}] < 0")
        known = TrueValue(probabilities, error)
        return ModeTest(names, partial(signs, site), known, exclusive=True)

    def draw(self, count: int, rng: np.random.Generator) -> FloatArray:
        """Return independent draws, shape (count, N), from the right end to the left.

        Given x_{i+1}, the density of x_i is known on a grid with a step of .003, between whose
        points it is taken as linear.
        """
        grid, _, messages, _ = self._forward(_DRAW_POINTS)
        step = grid[1] - grid[0]
        x = np.empty((count, self.sites + 1))
        x[:, -1] = 0
        for some in np.array_split(np.arange(count), max(1, count // 500)):
            for i in range(self.sites - 1, -1, -1):
                after = x[some, i + 1, None]
                density = messages[i] * np.exp(-self._bond * (grid - after) ** 2)
                x[some, i] = _draw_from_grid(grid[0], step, density, rng.random(len(some)))
        return x[:, :-1]


def signs(site: int, draws: xr.Dataset) -> xr.DataArray:
    """Return whether a site, counted from 0, is positive, and whether it is negative."""
    positive = draws["x"].to_numpy()[..., site] > 0
    either = np.stack([positive, ~positive], axis=-1)
    return xr.DataArray(either, dims=("chain", "draw", "event")).astype(float)


def _draw_from_grid(start: float, step: float, density: FloatArray, u: FloatArray) -> FloatArray:
    """Invert the distribution functions of densities (n, points), linear between points, at u."""
    cells = np.cumsum(0.5 * (density[:, 1:] + density[:, :-1]), axis=1)
    wanted = u * cells[:, -1]
    cell = (cells < wanted[:, None]).sum(axis=1)
    rows = np.arange(len(u))
    before = np.where(cell > 0, cells[rows, np.maximum(cell - 1, 0)], 0.0)
    left, right = density[rows, cell], density[rows, cell + 1]
    # The mass between the point and t steps beyond it is left t + (right - left) t^2 / 2.
    rest = wanted - before
    root = np.sqrt(np.maximum(left**2 + 2 * (right - left) * rest, 0))
    return np.asarray(start + step * (cell + np.clip(2 * rest / (left + root), 0, 1)))


def phi_four(field: float = 0.0) -> Model:
    """Return the chain of 32 sites with a = .1 and beta = 20; it is not normalised."""
    made = PhiFour(field)
    return Model(
        f"phi_four_{field:g}",
        shipped("stan") / "phi_four",
        {"N": made.sites, "a": made.stiffness, "beta": made.inv_temp, "h": field},
        ("x",),
        made.sites,
        own_base="improper",
        truth=made.truth,
    )
