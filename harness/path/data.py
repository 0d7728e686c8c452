"""The tempered path that every method shares: base, guess at log Z, and densities of beta."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from harness.errors import DataError
from harness.evidence import WHOLE_BASE, LogEvidence, LogG, LogMass
from harness.model import Model
from harness.model.coordinates import Shapes, StanCoordinates
from harness.path.cut import cut_to_box
from harness.path.gaussian import GaussianBase
from harness.path.normalisation import log_factor, written_integral

UNIFORM: LogG = ((0.0, 0.0), (1.0, 0.0))
"""g(beta) = 1."""


def path_data(
    model: Model,
    base: GaussianBase | None = None,
    log_zeta: float = 0.0,
    log_g: LogG = UNIFORM,
) -> dict[str, Any]:
    """Return the data of ``stan/path``, the base and g, which every tempered program takes.

    Parameters
    ----------
    model
        The model that is tempered.
    base
        Gaussian base, or None for the model's own.
    log_zeta
        Guess at log Z, used with the model's own base; a Gaussian base carries its own.
    log_g
        Knots of log g.

    Raises
    ------
    DataError
        If the base does not have the model's dimension, the model takes no Gaussian base, log zeta
        is not finite, or the knots are unusable.
    """
    if base is not None and model.no_gaussian_base is not None:
        raise DataError(f"{model.name} takes no Gaussian base: {model.no_gaussian_base}")
    if base is not None and base.mean.size != model.dimension:
        raise DataError(
            f"the base has dimension {base.mean.size}, but the model {model.name} has "
            f"{model.dimension}"
        )
    zeta = log_zeta if base is None else base.log_zeta
    if not np.isfinite(zeta):
        raise DataError(f"log zeta must be finite; got {zeta}")
    knot, value = knots(log_g, "log g")
    return {
        "B": 0 if base is None else base.mean.size,
        "base_mean": np.empty(0) if base is None else base.mean,
        "base_cholesky": np.empty((0, 0)) if base is None else base.cholesky,
        "log_zeta": zeta,
        "G": len(knot),
        "g_knot": knot,
        "log_g": value,
    }


def require_finite_mass(
    model: Model, base: GaussianBase | None, lowest: float, power: float = 0.0
) -> None:
    """Refuse pure tempering with infinite mass near inverse temperature 0.

    If x is unbounded and gamma has tails like those of a Gaussian in D dimensions, the mass of
    gamma^beta grows like beta^(-D / 2) as beta goes to 0.

    Parameters
    ----------
    lowest
        Lowest possible inverse temperature.
    power
        g behaves like beta^(power - 1) at 0.  Use 0 for a single value, or if the base itself
        counts.

    Raises
    ------
    DataError
        If the mass is infinite.
    """
    bare = model.own_base == "improper" and base is None
    if bare and lowest <= 0 and power <= model.dimension / 2:
        raise DataError(
            f"x of {model.name} is not bounded, so it has infinite mass when it is tempered down "
            "to beta = 0: give a Gaussian base, or keep the knots of log g (and fixed inverse "
            "temperatures) above 0"
        )


def knots(log_density: LogG, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Check the knots of a log density, and return them and its values there.

    Raises
    ------
    DataError
        If there are fewer than two, they do not ascend from within [0, 1) to 1, or a value is
        not finite.
    """
    table = np.asarray(log_density, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] != 2 or len(table) < 2:
        raise DataError(f"{name} needs two knots (beta, {name}) or more")
    beta, value = table.T
    ascending = beta[0] >= 0 and beta[-1] == 1 and np.all(np.diff(beta) > 0)
    if not (ascending and np.all(np.isfinite(value))):
        raise DataError(f"the knots of {name} must ascend from 0 or above to 1, with finite values")
    return beta, value


@dataclass(frozen=True)
class TemperedPath:
    """The path from a base to the target: log gamma_beta = beta log gamma + (1 - beta) log b.

    Attributes
    ----------
    base
        Gaussian base, or None for the model's own, which is often pure tempering.
    log_zeta
        Guess at log Z, used with the model's own base; a Gaussian base carries its own.
    log_g
        Knots (beta, log g(beta)) up to 1.  If None, log g is flat over the form's inverse
        temperatures.
    ladder
        Whether beta takes only the values of the knots, so that its integral is a sum.  The values
        of log g there are then log weights (from a pilot, -log Z(beta_k)).  Only collapsed forms
        can use a ladder.
    base_mass
        Share of the base's mass that the path reaches, which corrects log Z: see
        :mod:`harness.evidence.base_mass`.  None means all of it, except for a Gaussian base in a
        model with bounds, where it means the share that lies within the bounds.
    log_factor
        Log of a factor that log Z counts beyond the ratio of normalising constants along the path
        from its normalised base, and its error.  None means what follows from the model: along a
        path from a Gaussian, log Z is divided by what the text says that the prior integrates to;
        if all of a program is tempered from its own flat base, the base's integral has to be given
        here, or there is no estimate.
    positive_only
        Whether ``base_mass`` is the share where the target's density is above zero although the
        form's ladder has a rung at 0, whose draws lie elsewhere, too.  Those do not count, so that
        log Z does not depend on how often chains pass between the two parts.
    """

    base: GaussianBase | None = None
    log_zeta: float = 0.0
    log_g: LogG | None = None
    ladder: bool = False
    base_mass: LogMass | None = None
    log_factor: LogEvidence | None = None
    positive_only: bool = False

    def knots(self, lowest: float = 0.0) -> LogG:
        """Return the knots of log g; a flat log g starts at the lowest inverse temperature."""
        return ((lowest, 0.0), (1.0, 0.0)) if self.log_g is None else self.log_g

    def data(self, model: Model, lowest: float = 0.0) -> dict[str, Any]:
        """Return the path's part of a program's data; see :func:`path_data`.

        Raises
        ------
        DataError
            If the path does not fit the model; see :func:`path_data`.
        """
        return path_data(model, self.base, self.log_zeta, self.knots(lowest))

    def settings(self, model: Model, lowest: float = 0.0) -> dict[str, Any]:
        """Return what a fit records about the path, as plain values."""
        base = self.base
        return {
            # With shared scales, what is tempered has a prior that is conditional on the scales.
            "normalised_base": base is not None or (model.own_base == "prior" and not model.shared),
            "base": None if base is None else [base.mean.tolist(), base.cholesky.tolist()],
            "log_zeta": self.log_zeta if base is None else base.log_zeta,
            "log_g": np.asarray(self.knots(lowest), dtype=np.float64).tolist(),
        }

    def reached(self, model: Model, shapes: Shapes) -> dict[str, Any]:
        """Return what a fit records about the part of the base that the path reaches.

        Parameters
        ----------
        model
            The model.
        shapes
            Shape of each of its parameters.

        Returns
        -------
        dict
            ``base_mass``, its log and the standard error of that; ``log_factor`` likewise;
            ``positive_only``; and
            ``base_mean``, the mean of the part of a Gaussian base that is reached, None if it is
            not known.

        Raises
        ------
        DataError
            If hardly any of a Gaussian base lies within the model's bounds.
        """
        base, mass = self.base, self.base_mass
        mean = None if base is None else base.mean
        if mass is not None:
            # The mean of the reached part equals that of the whole only if hardly anything is lost.
            mean = mean if mass.nearly_whole else None
        elif base is not None and model.bounds:
            cut = cut_to_box(base, *StanCoordinates(model, shapes).box)
            mass, mean = cut.mass, cut.mean
        mass = mass or WHOLE_BASE
        factor = self.log_factor or self._factor_of(model)
        return {
            "base_mass": [mass.value, mass.mcse],
            "log_factor": None if factor is None else [*factor],
            "positive_only": self.positive_only,
            "base_mean": None if mean is None else mean.tolist(),
        }

    def _factor_of(self, model: Model) -> LogEvidence | None:
        """Return the factor that follows from the model; None if it is not known."""
        integral = None if model.tempered_whole else written_integral(model)
        return log_factor(model, integral, from_own_base=self.base is None)
