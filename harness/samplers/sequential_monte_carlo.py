"""Adaptive tempered sequential Monte Carlo as a method: a pilot that is itself the run.

References
----------
Del Moral, P., Doucet, A. and Jasra, A. (2006). Sequential Monte Carlo samplers. Journal of the
Royal Statistical Society B 68, 411-436.

Zhou, Y., Johansen, A. M. and Aston, J. A. D. (2016). Toward automatic model comparison: an
adaptive sequential Monte Carlo approach. Journal of Computational and Graphical Statistics 25,
701-726.
"""

from __future__ import annotations

from dataclasses import asdict

import numpy as np

from harness.fit import Fit
from harness.forms.method import python_method
from harness.model import Model
from harness.model.python_target import Target, target_of
from harness.path.gaussian import GaussianBase
from harness.path.pilot import pilot_of_density
from harness.path.pilot_result import PilotSettings
from harness.samplers.geometric_path import GeometricPath
from harness.samplers.result import weighted_fit

METHOD = "sequential_monte_carlo"


def sequential_monte_carlo(
    what: Model | Target,
    base: GaussianBase,
    *,
    settings: PilotSettings | None = None,
    seed: int,
) -> Fit:
    """Sample a target by adaptive tempered sequential Monte Carlo.

    Parameters
    ----------
    what
        Model or target.
    base
        Base from which particles start.
    settings
        Number of particles and of populations, and how particles move; see
        :class:`~harness.path.pilot_result.PilotSettings`.
    seed
        Seed; the same seed gives the same fit.

    Returns
    -------
    Fit
        Each population is a chain, and its particles are the chain's draws.  ``extended`` holds
        them with their population's log weight, ``log_w1``; ``posterior`` holds draws that are
        resampled from all of them.  The error of log Z comes from the spread of the populations.
        The attribute ``inverse_temperatures`` holds the ladder, and ``move_acceptance`` the mean
        acceptance rate at each rung after the first.

    Raises
    ------
    DataError, SamplingError
        For the same reasons as in :func:`~harness.path.pilot.pilot_of_density`, or if the base
        does not have the target's dimension.
    """
    settings = settings or PilotSettings()
    path = GeometricPath(target_of(what), base)
    found = pilot_of_density(path.target.log_density, base, settings=settings, seed=seed)
    path.cost.gradients = found.gradients
    each = found.particles.shape[1]
    return weighted_fit(
        METHOD,
        path,
        found.particles,
        {"log_w1": np.repeat(found.population_log_weight[:, None], each, axis=1)},
        settings=asdict(settings) | {"log_zeta": base.log_zeta},
        seed=seed,
        log_evidence=found.log_evidence,
        found={"inverse_temperatures": found.inv_temp, "move_acceptance": found.acceptance},
        populations=True,
    )


SEQUENTIAL_MONTE_CARLO = python_method(METHOD, sequential_monte_carlo)
