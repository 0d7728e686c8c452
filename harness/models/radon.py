"""Radon in the homes of Minnesota: data for ``stan/radon``, a hierarchical regression.

    log_radon_i ~ N(alpha_c(i) + floor_i beta_1 + log_uranium_i beta_2, eps),
    alpha_c = mu_a + sigma_a n_c,  beta = mu_b + sigma_b m,
    mu_a, mu_b, n_c, m_1, m_2 ~ N(0, 1),  sigma_a, sigma_b, eps ~ half-Cauchy(2.5).

Its true evidence and moments are made in :mod:`harness.models.radon_exact`.

References
----------
Graham, M. M. and Storkey, A. J. (2017). Continuously tempered Hamiltonian Monte Carlo.
Uncertainty in Artificial Intelligence 33, section 7.3.
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.folders import shipped
from harness.model import Model, Truth
from harness.models.radon_density import CentredRadonDensity, RadonDensity
from harness.models.radon_exact import exact_expectations, exact_log_evidence

PARAMETERS = ("mu_a", "mu_b", "sigma_a", "sigma_b", "eps", "n", "m")
"""Parameters in the order of their declaration; ``n`` has an entry per county, ``m`` has two.

The unconstrained space has the same order, with log sigma_a, log sigma_b and log eps.
"""

_SHA256 = "bd2e21fd84c482071c1acb8e91d8b9c3e160d7eb1a54db4363de3a9a44b85f99"


@dataclass(frozen=True)
class RadonData:
    """Measurements in H homes of J counties.

    Attributes
    ----------
    log_radon
        Log of the measured radon, in pCi/l, shape (H,).
    first_floor
        1 if it was measured on the first floor, 0 if in the basement, shape (H,).
    log_uranium
        Log of the uranium in the soil of the home's county, shape (H,).
    county
        Index of each home's county, 0 to J - 1, shape (H,).
    county_names
        Names of the J counties.

    Raises
    ------
    DataError
        If shapes do not match, a number is not finite, a county index is not a whole number
        or is out of range, or a county has no home.
    """

    log_radon: FloatArray
    first_floor: FloatArray
    log_uranium: FloatArray
    county: npt.NDArray[np.intp]
    county_names: tuple[str, ...]

    def __post_init__(self) -> None:
        shape = self.log_radon.shape
        if len(shape) != 1 or shape[0] == 0:
            raise DataError(f"log_radon must have shape (H,), one value per home; got {shape}")
        for name in ("first_floor", "log_uranium", "county"):
            if getattr(self, name).shape != shape:
                raise DataError(
                    f"{name} must have one value for each of the {shape[0]} homes; "
                    f"got shape {getattr(self, name).shape}"
                )
        for name in ("log_radon", "first_floor", "log_uranium"):
            bad = np.flatnonzero(~np.isfinite(getattr(self, name)))
            if bad.size:
                raise DataError(
                    f"{name} is not finite for {bad.size} homes, the first at index {bad[0]}; "
                    f"leave those homes out"
                )
        if not np.issubdtype(self.county.dtype, np.integer):
            raise DataError(f"county must hold whole numbers; got {self.county.dtype}")
        count = len(self.county_names)
        if self.county.min() < 0 or self.county.max() >= count:
            raise DataError(
                f"county indices must lie between 0 and {count - 1}, for {count} county names; "
                f"got {self.county.min()} to {self.county.max()}"
            )
        homes = np.bincount(self.county, minlength=count)
        if not np.all(homes):
            empty = self.county_names[int(np.argmin(homes))]
            raise DataError(f"county {empty} has no home; leave it out")

    def subset(self, counties: Sequence[str]) -> RadonData:
        """Return the homes of some counties, with new indices in the given order.

        Raises
        ------
        DataError
            If a name belongs to no county, or is given twice.
        """
        unknown = sorted(set(counties) - set(self.county_names))
        if unknown or len(set(counties)) != len(counties) or not counties:
            raise DataError(
                f"a subset needs counties of the data, each of them once; got {list(counties)}"
                + (f", of which there is no {', '.join(unknown)}" if unknown else "")
            )
        position = np.full(len(self.county_names), -1)
        position[[self.county_names.index(name) for name in counties]] = np.arange(len(counties))
        index = position[self.county]
        kept = index >= 0
        return RadonData(
            self.log_radon[kept],
            self.first_floor[kept],
            self.log_uranium[kept],
            index[kept],
            tuple(counties),
        )

    def model(self, name: str, *, centred: bool = False) -> Model:
        """Return the posterior of these data as a model, with J + 7 parameters.

        Its normalising constant is the evidence: likelihood and prior keep their constants.

        Parameters
        ----------
        name
            Name of the model.
        centred
            Whether its last parameter is ``beta`` = mu_b + sigma_b m in place of ``m``.  This
            changes neither the distribution nor the evidence.  If the data determine beta well but
            sigma_b poorly, m lies on a ridge that no Gaussian follows, whereas beta does not.  Such
            a model has the variants ``target`` and ``collapsed_tempering``.
        """
        data: dict[str, Any] = {
            "H": len(self.log_radon),
            "J": len(self.county_names),
            "county": self.county + 1,
            "first_floor": self.first_floor,
            "log_uranium": self.log_uranium,
            "log_radon": self.log_radon,
        }
        coefficients = "beta" if centred else "m"
        parameters = (*PARAMETERS[:-1], coefficients)
        return Model(
            name,
            shipped("stan") / ("radon_centred" if centred else "radon"),
            data,
            parameters,
            len(self.county_names) + 7,
            transforms={"sigma_a": "log", "sigma_b": "log", "eps": "log"},
            own_base="prior",
            log_density=CentredRadonDensity(self.log_density) if centred else self.log_density,
            shapes=dict.fromkeys(parameters, ())
            | {"n": (len(self.county_names),), coefficients: (2,)},
            labels={"n": self.county_names, coefficients: ("first_floor", "log_uranium")},
            truth=self.truth,
        )

    @property
    def truth(self) -> Truth:
        """Log evidence; ``NAME`` and ``NAME_squared`` of the parameters of both parametrisations.

        And those of ``alpha`` = mu_a + sigma_a n; see :mod:`harness.models.radon_exact`.
        """
        return Truth(
            "quadrature over the three scales, all else integrated out in closed form",
            partial(exact_log_evidence, self),
            partial(exact_expectations, self),
        )

    @property
    def log_density(self) -> RadonDensity:
        """The posterior's log density at many points at once, equal to that of the Stan program."""
        home = np.column_stack(
            [self.first_floor, self.log_uranium, self.log_radon, np.ones(len(self.log_radon))]
        )
        totals = np.zeros((len(self.county_names), 4))
        np.add.at(totals, self.county, home)
        return RadonDensity(home.T @ home, totals)


def load_radon() -> RadonData:
    """Return the 919 homes in 85 counties of Minnesota (Price, Nero and Gelman 1996).

    Raises
    ------
    DataError
        If the data file is missing or is not the one that was shipped.
    """
    path = shipped("data") / "radon" / "radon.csv"
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}; install harness again") from error
    # Git may have changed line ends on Windows.
    if hashlib.sha256(content.replace(b"\r\n", b"\n")).hexdigest() != _SHA256:
        raise DataError(f"{path} is not the file that came with harness; install it again")
    rows = list(csv.DictReader(content.decode("ascii").splitlines()))
    names = tuple(dict.fromkeys(row["county"] for row in rows))
    number = {name: index for index, name in enumerate(names)}
    return RadonData(
        np.array([float(row["log_radon"]) for row in rows]),
        np.array([float(row["floor"]) for row in rows]),
        np.array([float(row["log_uranium"]) for row in rows]),
        np.array([number[row["county"]] for row in rows]),
        names,
    )


def radon(*, centred: bool = False) -> Model:
    """Return the posterior of :func:`load_radon`, in 92 dimensions.

    Parameters
    ----------
    centred
        See :meth:`RadonData.model`.
    """
    return load_radon().model("radon_centred" if centred else "radon", centred=centred)
