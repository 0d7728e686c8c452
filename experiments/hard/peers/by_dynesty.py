"""dynesty's static nested sampling on a target's program.

References
----------
Speagle, J. S. (2020). dynesty: a dynamic nested sampling package for estimating Bayesian posteriors
and evidences. Monthly Notices of the Royal Astronomical Society 493, 3132-3158.
"""

from __future__ import annotations

import math
import time
import warnings
from typing import Any

import numpy as np

from harness.engine.batched import BatchedDensity
from harness.errors import SamplingError
from harness.evidence import LogEvidence
from harness.fit import Fit
from harness.model import Model
from harness.temper import What, tempered_model
from harness.user import UnitCube

from ..sampled import Sampled, fit_of, resampled
from .installed import require

_ENOUGH = 0.01
"""What the live points may still add to log Z in the end.  dynesty's own limit grows with their
number, and so would the part of its error that more of them do not reduce."""

_PLATEAU = "dynesty gave up on a plateau of the likelihood, before it had finished."


def sample_by_dynesty(
    model: Model,
    *,
    live_points: int,
    explorer: str = "auto",
    most_seconds: float = math.inf,
    most_evaluations: float = math.inf,
    what: What = "likelihood",
    seed: int,
) -> Fit:
    """Sample a target's program by dynesty's static nested sampling.

    It stops by its own criterion, or at the budget.  Its draws are resampled with replacement, as
    many as they are worth, and put into 4 chains.

    Parameters
    ----------
    model
        A target with its ``target.stan``, whose parameters are independent a priori.
    live_points
        Number of live points; more, if there are not 2 a dimension.
    explorer
        How dynesty finds new points (its ``sample``); ``auto`` leaves it to dynesty.
    most_seconds, most_evaluations
        Processor time and likelihood evaluations after which it stops.
    what
        What is tempered elsewhere; the prior needs ``likelihood``.
    seed
        Seed.

    Returns
    -------
    Fit
        With dynesty's log Z and its error, and a PROBLEM if it stopped at the budget.  Its
        gradients are likelihood evaluations.

    Raises
    ------
    DataError
        If the program has no prior that quantiles can draw; see :class:`harness.user.UnitCube`.
    SamplingError
        If dynesty ends with an error.
    ToolchainError
        If dynesty is not installed.
    """
    require("dynesty")
    began = time.process_time()
    tempered = tempered_model(model.program("target").path, model.data, what=what)
    cube = UnitCube(tempered)
    rng = np.random.default_rng(seed)
    try:
        found, said = _run(
            cube,
            max(live_points, 2 * cube.dimension + 2),
            explorer,
            began + most_seconds,
            most_evaluations,
            rng,
        )
    except (RuntimeError, ValueError) as error:
        raise SamplingError(f"dynesty ended with an error on {model.name}: {error}") from error
    drawn = resampled(found.samples_u, found.importance_weights(), rng)
    points = cube.points(drawn.reshape(-1, cube.dimension)).reshape(*drawn.shape[:2], -1)
    # If the text does not show the prior's integral, harness sample leaves it in log Z.
    constant = cube.log_prior_integral if tempered.log_prior_integral is None else 0.0
    log_z = LogEvidence(constant + float(found.logz[-1]), float(found.logzerr[-1]))
    made = Sampled(points, log_z, said)
    density = BatchedDensity(tempered.program("target"), tempered.data)
    seconds = time.process_time() - began
    return fit_of(made, model, density, cube.evaluations, seconds, seed, method="dynesty")


def _run(
    cube: UnitCube,
    live_points: int,
    explorer: str,
    until: float,
    most_evaluations: float,
    rng: np.random.Generator,
) -> tuple[Any, str]:
    """Return dynesty's results, and what is wrong with them."""
    import dynesty

    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        sampler = dynesty.NestedSampler(
            lambda u: float(cube.log_likelihood(u[None])[0]),
            np.copy,
            cube.dimension,
            nlive=live_points,
            sample=explorer,
            rstate=rng,
        )
        said = ""
        for step in sampler.sample(dlogz=_ENOUGH):
            if time.process_time() > until or cube.evaluations > most_evaluations:
                said = (
                    "dynesty was stopped at the budget, before it had finished: what is left of "
                    f"the prior could add {step.delta_logz:.2g} to log Z."
                )
                break
        # Where all live points have one likelihood it gives up, and nothing else tells.
        said = said or next((_PLATEAU for each in warned if "plateau" in str(each.message)), "")
        # It only adds the live points.
        sampler.run_nested(maxiter=-1, print_progress=False)
    return sampler.results, said
