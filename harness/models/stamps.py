"""Thickness of the Hidalgo stamps: data and densities of a mixture of three Gaussians.

    y_i ~ sum_k z_k N(mu_k, 1 / lambda_k),  mu_k ~ N(mean(y), (r / 2)^2),  r = max(y) - min(y),
    lambda_k ~ Gamma(2, rate),  rate ~ Gamma(0.2, 10 / r^2),  z ~ Dirichlet(1, 1, 1),

with rates as second arguments.  Thickness is measured in hundredths of a millimetre.

References
----------
Izenman, A. J. and Sommer, C. J. (1988). Philatelic mixtures and multimodal densities. Journal of
the American Statistical Association 83, 941-953.
Leimkuhler, B., Matthews, C. and Weare, J. (2018). Ensemble preconditioning for Markov chain Monte
Carlo simulation. Statistics and Computing 28, 277-290, section 4.1 and appendix 3.
"""

from __future__ import annotations

import csv
import hashlib
import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from scipy.special import gammaln, logsumexp

from harness.arrays import FloatArray, LogDensity
from harness.errors import DataError
from harness.folders import shipped
from harness.model import Model, ModeTest, TrueValue, Truth
from harness.model.truth import Expectations

PARAMETERS = ("mu", "lambda", "logit_z", "rate")
"""Parameters of ``stan/stamps``; ``logit_z`` are the weights' logits against the last one."""

RAW_PARAMETERS = ("mu", "lambda", "z", "rate")
"""Parameters of ``stan/stamps_raw``; ``z`` are all weights but the last."""

_SHA256 = "9d3424d461ffa38d8e1770d8c33af3a437fdcc2a5d47c63cd0114508dcd9ad35"
_FILE = "hidalgo_stamps.csv"


@dataclass(frozen=True)
class Stamps:
    """Stamps of J different thicknesses, and a mixture of K Gaussians for them.

    Attributes
    ----------
    thickness
        Distinct thicknesses in hundredths of a millimetre, shape (J,).
    count
        Number of stamps of each, 1 or more, shape (J,).
    components
        Number K of Gaussians, 2 or more.

    Raises
    ------
    DataError
        If shapes do not match, a number is not finite, all thicknesses are equal, a count is not
        positive or there are fewer than two components.
    """

    thickness: FloatArray
    count: FloatArray
    components: int = 3

    def __post_init__(self) -> None:
        shape = self.thickness.shape
        if len(shape) != 1 or self.count.shape != shape:
            raise DataError(
                f"stamps need one count for each thickness; got shapes {shape} and "
                f"{self.count.shape}"
            )
        if not (np.isfinite(self.thickness).all() and np.all(self.count >= 1)):
            raise DataError("thicknesses must be finite, and counts 1 or more")
        if len(np.unique(self.thickness)) < 2:
            raise DataError("stamps of one thickness only make no mixture")
        if self.components < 2:
            raise DataError(f"a mixture needs two components or more; got {self.components}")

    @property
    def dimension(self) -> int:
        """Number of parameters, 3 K."""
        return 3 * self.components

    @property
    def centre(self) -> float:
        """Mean thickness."""
        return float(np.average(self.thickness, weights=self.count))

    @property
    def spread(self) -> float:
        """Largest thickness minus the smallest."""
        return float(np.ptp(self.thickness))

    def log_density(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return log posterior densities (n,) and gradients (n, 3 K), up to the evidence.

        Parameters
        ----------
        points
            mu, log lambda, logits of the weights against the last one, log rate, shape (n, 3 K).
        """
        k = self.components
        mu, log_lam, log_rate = points[:, :k], points[:, k : 2 * k], points[:, -1]
        logits = np.hstack([points[:, 2 * k : -1], np.zeros((len(points), 1))])
        log_z = logits - logsumexp(logits, axis=1, keepdims=True)
        with np.errstate(over="ignore", invalid="ignore"):
            value, slope = self._in_logs(mu, log_lam, log_z, log_rate)
            # As a density of logarithms and logits.
            value += log_lam.sum(axis=1) + log_rate + log_z.sum(axis=1)
            gradient = np.empty_like(points)
            gradient[:, :k] = slope["mu"]
            gradient[:, k : 2 * k] = slope["log_lambda"] + 1
            total = slope["log_z"] + 1
            z = np.exp(log_z)
            gradient[:, 2 * k : -1] = (total - z * total.sum(axis=1, keepdims=True))[:, :-1]
            gradient[:, -1] = slope["log_rate"] + 1
        return _finite_or_outside(value, gradient)

    def raw_log_density(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return log posterior densities (n,) and gradients (n, 3 K), up to the evidence.

        Parameters
        ----------
        points
            mu, lambda, all weights but the last, rate, shape (n, 3 K).  Outside of the support the
            log density is -inf and the gradient 0.
        """
        k = self.components
        mu, lam, rate = points[:, :k], points[:, k : 2 * k], points[:, -1]
        z = np.hstack([points[:, 2 * k : -1], 1 - points[:, 2 * k : -1].sum(axis=1, keepdims=True)])
        inside = (lam > 0).all(axis=1) & (z > 0).all(axis=1) & (rate > 0)
        log_density, gradient = np.full(len(points), -np.inf), np.zeros_like(points)
        if not inside.any():
            return log_density, gradient
        mu, lam, z, rate = mu[inside], lam[inside], z[inside], rate[inside]
        log_density[inside], slope = self._in_logs(mu, np.log(lam), np.log(z), np.log(rate))
        by_weight = slope["log_z"] / z
        gradient[inside] = np.column_stack(
            [
                slope["mu"],
                slope["log_lambda"] / lam,
                by_weight[:, :-1] - by_weight[:, -1:],
                slope["log_rate"] / rate,
            ]
        )
        return _finite_or_outside(log_density, gradient)

    def _in_logs(
        self, mu: FloatArray, log_lam: FloatArray, log_z: FloatArray, log_rate: FloatArray
    ) -> tuple[FloatArray, dict[str, FloatArray]]:
        """Return the density of (mu, lambda, z, rate), and its slope in mu and the logarithms."""
        lam, rate = np.exp(log_lam), np.exp(log_rate)
        y = self.thickness - self.centre
        offset = mu - self.centre
        square = np.square(y - offset[:, :, None])  # (n, K, J)
        height = log_z + 0.5 * (log_lam - np.log(2 * np.pi))
        share = height[:, :, None] - (0.5 * lam)[:, :, None] * square
        largest = share.max(axis=1, keepdims=True)
        share -= largest
        np.exp(share, out=share)
        total = share.sum(axis=1, keepdims=True)
        each = (np.log(total) + largest)[:, 0]
        share *= self.count / total
        weight = share.sum(axis=2)  # stamps of each component
        precision = 4 / self.spread**2
        k, tail = self.components, 10 / self.spread**2
        value = (
            each @ self.count
            - 0.5 * precision * (offset**2).sum(axis=1)
            + 0.5 * k * np.log(precision / (2 * np.pi))
            + (2 * log_rate[:, None] + log_lam - rate[:, None] * lam).sum(axis=1)
            + gammaln(k)
            + 0.2 * np.log(tail)
            - gammaln(0.2)
            - 0.8 * log_rate
            - tail * rate
        )
        slope = {
            "mu": lam * (share @ y - weight * offset) - precision * offset,
            "log_lambda": 0.5 * weight
            - 0.5 * lam * (share * square).sum(axis=2)
            + 1
            - rate[:, None] * lam,
            "log_z": weight,
            "log_rate": 2 * k - rate * lam.sum(axis=1) - 0.8 - tail * rate,
        }
        return value, slope

    def model(self, name: str, *, raw: bool = False, truth: Truth | None = None) -> Model:
        """Return the posterior as a model with 3 K parameters.

        Likelihood and prior keep their constants, so that its normalising constant is the evidence.

        Parameters
        ----------
        name
            Name of the model.
        raw
            Whether its parameters are mu, lambda, z and the rate themselves, with a density of -inf
            outside of their support.  Its tempered forms are cut there at every inverse
            temperature, at 0 as well: the prior is normalised on the support, a Gaussian base is
            not.  log Z from a path that starts at a Gaussian base therefore needs the share of the
            base that is inside (``TemperedPath(base_mass=...)``), which
            :class:`harness.forms.FromPilot` measures.
        truth
            What is known of the posterior.
        """
        k = self.components
        density: LogDensity = self.raw_log_density if raw else self.log_density
        data: dict[str, Any] = {
            "K": k,
            "n": len(self.thickness),
            "thickness": self.thickness,
            "stamps": self.count,
        }
        return Model(
            name,
            shipped("stan") / ("stamps_raw" if raw else "stamps"),
            data,
            RAW_PARAMETERS if raw else PARAMETERS,
            self.dimension,
            transforms={} if raw else {"lambda": "log", "rate": "log"},
            own_base="prior",
            log_density=density,
            shapes={"mu": (k,), "lambda": (k,), "z" if raw else "logit_z": (k - 1,), "rate": ()},
            truth=truth or Truth("unknown"),
        )


def _finite_or_outside(value: FloatArray, gradient: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Turn points whose density or slope overflows into points outside of the support."""
    bad = ~(np.isfinite(value) & np.isfinite(gradient).all(axis=1))
    value[bad], gradient[bad] = -np.inf, 0
    return value, gradient


def to_raw(points: FloatArray) -> FloatArray:
    """Turn (mu, log lambda, logits, log rate) of three components into (mu, lambda, z, rate).

    The leading axes are kept: shape (..., 9).
    """
    logits = np.concatenate([points[..., 6:8], np.zeros((*points.shape[:-1], 1))], axis=-1)
    z = np.exp(logits - logsumexp(logits, axis=-1, keepdims=True))
    return np.concatenate(
        [points[..., :3], np.exp(points[..., 3:6]), z[..., :2], np.exp(points[..., 8:])], axis=-1
    )


def from_raw(points: FloatArray) -> FloatArray:
    """Undo :func:`to_raw`."""
    z = points[..., 6:8]
    last = 1 - z.sum(axis=-1, keepdims=True)
    return np.concatenate(
        [points[..., :3], np.log(points[..., 3:6]), np.log(z / last), np.log(points[..., 8:])],
        axis=-1,
    )


def relabelled(raw: FloatArray, order: tuple[int, ...]) -> FloatArray:
    """Return points (..., 9) of (mu, lambda, z1, z2, rate) with the components in another order."""
    z = np.concatenate([raw[..., 6:8], 1 - raw[..., 6:8].sum(axis=-1, keepdims=True)], axis=-1)
    index = list(order)
    return np.concatenate(
        [raw[..., :3][..., index], raw[..., 3:6][..., index], z[..., index][..., :2], raw[..., 8:]],
        axis=-1,
    )


QUANTITIES = ("smallest weight", "largest precision", "smallest mean", "rate")
"""The four quantities of the paper's Table 1, which do not depend on the components' order."""


def quantities(raw: FloatArray) -> FloatArray:
    """Return :data:`QUANTITIES` (..., 4) of points (..., 9) of (mu, lambda, z1, z2, rate)."""
    z = raw[..., 6:8]
    least = np.minimum(z.min(axis=-1), 1 - z.sum(axis=-1))
    largest, lowest = raw[..., 3:6].max(axis=-1), raw[..., :3].min(axis=-1)
    return np.stack([least, largest, lowest, raw[..., 8]], axis=-1)


ORDERS = tuple(itertools.permutations(range(3)))
"""The six orders of three components; the k-th entry is the component with the k-th lowest mean."""


def _in_order(draws: xr.Dataset) -> xr.DataArray:
    mu = draws["mu"]
    order = np.argsort(mu.transpose("chain", "draw", ...).to_numpy(), axis=-1)
    happens = np.stack([(order == np.array(o)).all(axis=-1) for o in ORDERS], axis=-1)
    return xr.DataArray(happens.astype(float), dims=("chain", "draw", "order"))


LABEL_ORDERS = ModeTest(
    tuple("mu " + " < ".join(str(k + 1) for k in order) for order in ORDERS),
    _in_order,
    TrueValue(np.full(6, 1 / 6), np.zeros(6)),
    exclusive=True,
)
"""By symmetry, each order of three means has a posterior probability of 1/6."""


_MEANS = TrueValue(
    np.array([0.22741364, 38.287102, 7.1668198, 0.10927671]),
    np.array([8.4e-5, 3.1e-2, 1.2e-4, 1.1e-4]),
)


def _expectations() -> Expectations:
    return {"quantities": _MEANS}


STAMPS_TRUTH = Truth(
    "our own run of NUTS: 4 chains of 50,000 draws of stan/stamps with a dense metric, started in "
    "one order of the components",
    find_expectations=_expectations,
    mode_test=LABEL_ORDERS,
)
"""Posterior means ``quantities`` of :data:`QUANTITIES` with their standard errors, which no order
of the components changes, and the orders' probabilities, for the data of :func:`load_stamps`."""


def stamps(*, raw: bool = False) -> Model:
    """Return the posterior of :func:`load_stamps`, in 9 dimensions, with six equal modes.

    Parameters
    ----------
    raw
        See :meth:`Stamps.model`.
    """
    name = "stamps_raw" if raw else "stamps"
    return load_stamps().model(name, raw=raw, truth=STAMPS_TRUTH)


def load_stamps() -> Stamps:
    """Return the 486 stamps of the Hidalgo issue of 1872 with three components.

    The paper has 485 stamps; which of them it leaves out is not known.

    Raises
    ------
    DataError
        If the data file is missing or is not the one that was shipped.
    """
    path = shipped("data") / "stamps" / _FILE
    try:
        content = path.read_bytes().replace(b"\r\n", b"\n")
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}; install harness again") from error
    if hashlib.sha256(content).hexdigest() != _SHA256:
        raise DataError(f"{path} is not the file that came with harness; install it again")
    rows = csv.DictReader(content.decode("ascii").splitlines())
    pairs = [(100 * float(row["thickness_mm"]), float(row["count"])) for row in rows]
    thickness, count = np.array([pair for pair in pairs if pair[1] > 0]).T
    return Stamps(thickness, count)
