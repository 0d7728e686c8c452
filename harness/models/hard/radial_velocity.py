"""Planets in the radial velocities of a star: data and truth for ``stan/radial_velocity``.

References
----------
Nelson, B. E., Ford, E. B., Buchner, J. et al. (2020). Quantifying the Bayesian evidence for a
planet in radial velocity data. Astronomical Journal 159, 73: the data, the priors, and the
evidences that several teams submitted.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple

import numpy as np
from scipy.special import logsumexp

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.folders import shipped
from harness.model import Model, TrueValue, Truth
from harness.model.truth import UNKNOWN

Prior = Literal["wide", "narrow"]
"""Bounds of the periods: the same 1.25 to 10,000 days for every planet, or a range for each."""

EVIDENCE_OF_NARROW: Mapping[tuple[int, int], TrueValue[float]] = {
    (1, 1): TrueValue(-441.585, 0.012),
    (2, 1): TrueValue(-380.818, 0.012),
    (3, 1): TrueValue(-372.662, 0.012),
    (4, 1): TrueValue(-366.523, 0.012),
    (5, 1): TrueValue(-375.142, 0.012),
    (6, 1): TrueValue(-389.791, 0.012),
    (1, 2): TrueValue(-390.756, 0.03),
    (3, 2): TrueValue(-359.574, 0.03),
    (5, 2): TrueValue(-369.733, 0.03),
    (6, 2): TrueValue(-383.15, 0.03),
}
"""Log Z, in nats, under the narrow prior by data set and number of planets, computed once by
importance sampling.  With two planets the draws are those of one mode of the periods."""


class Velocities(NamedTuple):
    """Observations of a star, each of shape (N,)."""

    t: FloatArray
    """Times, in days."""
    v: FloatArray
    """Velocities, in m/s."""
    sigma: FloatArray
    """Standard errors of the velocities, in m/s."""


def load_velocities(data_set: int) -> Velocities:
    """Return the 200 simulated observations of data set 1 to 6.

    Raises
    ------
    DataError
        If there is no such data set.
    """
    if data_set not in range(1, 7):
        raise DataError(f"the data sets of radial velocities are 1 to 6; got {data_set}")
    path = shipped("data") / "hard" / "rv" / f"rvs_000{data_set}.txt"
    return Velocities(*np.loadtxt(path, unpack=True))


def period_bounds(data_set: int, prior: Prior, planets: int) -> FloatArray:
    """Return the bounds of the planets' periods, in days, shape (planets, 2).

    Raises
    ------
    DataError
        If there are no bounds for these.
    """
    path = shipped("data") / "hard" / "rv" / "prior_bounds.csv"
    lines = path.read_text(encoding="utf-8").splitlines()
    found = [
        (float(row["Pmin_day"]), float(row["Pmax_day"]))
        for row in csv.DictReader(line for line in lines if not line.startswith("#"))
        if (row["dataset"], row["prior"]) == (str(data_set), prior)
        and int(row["planet"]) <= planets
    ]
    if len(found) != planets:
        raise DataError(
            f"the {prior} prior of data set {data_set} has no bounds for {planets} planets"
        )
    return np.array(found).reshape(planets, 2)


@dataclass(frozen=True)
class Noise:
    """The noise of a star, diagonal but for what the jitter adds to the variances.

    Attributes
    ----------
    variance
        Eigenvalues without the jitter, shape (N,).
    one, v
        A vector of ones, and the velocities, in the eigenvectors, each (N,).
    """

    variance: FloatArray
    one: FloatArray
    v: FloatArray

    def log_likelihood(self, jitter: FloatArray) -> FloatArray:
        """Return the log likelihood with no planet, for jitters in m/s of any shape.

        The offset, uniform between -1000 and 1000 m/s, is integrated out over the whole line.
        """
        variance = self.variance + np.asarray(jitter)[..., None] ** 2
        precision = (self.one**2 / variance).sum(axis=-1)
        fit = (self.one * self.v / variance).sum(axis=-1)
        rest = (self.v**2 / variance).sum(axis=-1) - fit**2 / precision
        constant = (len(self.v) - 1) * math.log(2 * math.pi) + 2 * math.log(2000)
        log_scale = np.log(variance).sum(axis=-1) + np.log(precision)
        return np.asarray(-0.5 * (constant + log_scale + rest))


def noise_of(velocities: Velocities) -> Noise:
    """Return the noise: nearly periodic with 20 days, decaying over 50 days, of variance 3."""
    lag = velocities.t[:, None] - velocities.t
    exponent = np.sin(np.pi * lag / 20) ** 2 / 0.25 + lag**2 / 2500
    covariance = 3 * np.exp(-0.5 * exponent) + np.diag(velocities.sigma**2)
    eigenvalues, vectors = np.linalg.eigh(covariance)
    return Noise(eigenvalues, vectors.T @ np.ones(len(lag)), vectors.T @ velocities.v)


def _evidence_without_planets(data_set: int) -> TrueValue[float]:
    """Integrate over log(1 + jitter), which is uniform on (0, log 100)."""
    noise = noise_of(load_velocities(data_set))
    found = []
    for points in (400, 250):
        nodes, share = np.polynomial.legendre.leggauss(points)
        jitter = np.expm1(0.5 * (nodes + 1) * math.log(100))
        found.append(float(logsumexp(noise.log_likelihood(jitter), b=0.5 * share)))
    return TrueValue(found[0], abs(found[0] - found[1]))


def _recorded(data_set: int, planets: int) -> TrueValue[float]:
    return EVIDENCE_OF_NARROW[data_set, planets]


def _truth(data_set: int, planets: int, prior: Prior) -> Truth:
    if planets == 0:
        return Truth("quadrature over the jitter", partial(_evidence_without_planets, data_set))
    if prior == "narrow" and (data_set, planets) in EVIDENCE_OF_NARROW:
        one_mode = " of one mode of the periods" if planets > 1 else ""
        source = f"importance sampling{one_mode}, done once"
        return Truth(source, partial(_recorded, data_set, planets))
    return Truth("unknown; evidences that others computed are published")


def radial_velocity(
    data_set: int, planets: int, prior: Prior = "wide", *, eccentric: bool = True
) -> Model:
    """Return the posterior of a number of planets.

    Parameters
    ----------
    data_set
        1 to 6.
    planets
        Number of planets, 0 to 3.
    prior
        Bounds of the periods.  Planets are not ordered, so the wide prior has n! copies of every
        mode.
    eccentric
        Whether orbits are ellipses.  The truth is known for these only.

    Raises
    ------
    DataError
        If there is no such data set or there are no bounds for so many planets.
    """
    velocities = load_velocities(data_set)
    bounds = period_bounds(data_set, prior, planets)
    name = f"radial_velocity_{data_set}_n{planets}"
    if planets:
        name += f"_{prior}" if eccentric else f"_{prior}_circular"
    unit = ("jitter_quantile", "P_quantile", "K_quantile")[: 3 if planets else 1]
    points = ("longitude", "periastron")[: 1 + eccentric if planets else 0]
    return Model(
        name,
        shipped("stan") / "radial_velocity",
        {
            "N": len(velocities.t),
            **velocities._asdict(),
            "n": planets,
            "P_min": bounds[:, 0],
            "P_max": bounds[:, 1],
            "eccentric": int(eccentric),
        },
        unit + points,
        1 + (6 if eccentric else 4) * planets,
        bounds=dict.fromkeys(unit, (0.0, 1.0)),
        own_base="prior",
        truth=_truth(data_set, planets, prior) if eccentric else UNKNOWN,
    )
