"""The preconditioner inside continuous tempering: walkers on the joint density of x and beta.

The width of x grows by orders of magnitude as the inverse temperature beta falls, so that no one
metric suits all temperatures.  Walkers that are weighted by their distance in u = logit(beta) alone
make one that depends on the temperature.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.arrays import FloatArray
from harness.fit import Fit
from harness.forms.method import python_method
from harness.model import Model
from harness.model.python_target import function_target, target_of
from harness.models.gaussian_mixture import GaussianMixture
from harness.path.gaussian import GaussianBase, gaussian_base
from harness.samplers.ensemble.settings import EnsembleSettings
from harness.samplers.ensemble.walkers import run_ensemble, walker_streams
from harness.samplers.geometric_path import GeometricPath
from harness.samplers.joint_hmc import joint_density

from .walkers import fit_of_walkers, path_of

METHOD = "tempered_walkers"
DIMENSION = 2
MIXTURE = GaussianMixture(
    weight=np.array([0.7, 0.3]),
    mean=np.array([[-1.5, 0.0], [1.5, 0.0]]),
    sd=np.array([0.1, 0.1]),
)
BASE_SD = 2.0
QUANTITIES = ("inverse temperature", "right mode")


def base() -> GaussianBase:
    """Return the base at beta = 0, 20 times as wide as a mode, with the true log Z = 0."""
    return gaussian_base(np.zeros(DIMENSION), BASE_SD**2 * np.eye(DIMENSION))


def two_modes() -> Model:
    """Return the two modes in a box that is far away."""
    return MIXTURE.model("two-modes", lower=-30, upper=30)


def watched(x: FloatArray, inv_temp: FloatArray) -> FloatArray:
    """Return :data:`QUANTITIES` of x (..., D) and beta (...), shape (..., 2)."""
    return np.stack([inv_temp, (x[..., 0] > 0).astype(np.float64)], axis=-1)


def right_at_the_target(x: FloatArray, path: GeometricPath) -> float:
    """Estimate P(x_1 > 0) under the target from draws of the joint density.

    Draws are weighted by the density of beta = 1 given x, exp(rise) / integral exp(beta rise).
    """
    points = x.reshape(-1, DIMENSION)
    state = path.state(points)
    rise = state.log_gamma - path.base.log_zeta - state.log_base
    # integral of exp(beta rise) over (0, 1), by its logarithm.
    size = np.maximum(np.abs(rise), 1e-12)
    log_integral = np.maximum(rise, 0) + np.log(-np.expm1(-size)) - np.log(size)
    log_weight = rise - log_integral
    weight = np.exp(log_weight - log_weight.max())
    return float(weight[points[:, 0] > 0].sum() / weight.sum())


def sample_tempered(
    model: Model,
    *,
    walkers: int,
    sweeps: int,
    warmup: int,
    seed: int,
    **settings: Any,
) -> Fit:
    """Run walkers on (x, u), u = logit(beta), with g = 1.

    Parameters
    ----------
    model
        :func:`two_modes`.
    walkers, sweeps, warmup
        The same as for :func:`experiments.ensemble.walkers.sample_stamps`.
    seed
        Seed; the same seed gives the same fit.
    **settings
        Of :class:`harness.samplers.ensemble.settings.EnsembleSettings`; coordinate D is u.

    Returns
    -------
    Fit
        Some of the draws of x at their temperatures, with u as parameter ``x[D]``.  Attributes as
        those of :func:`experiments.ensemble.walkers.fit_of_walkers`, and ``right``, the estimate of
        P(x_1 > 0) under the target.
    """
    options, rng = EnsembleSettings(**settings), np.random.default_rng([seed, 1])
    path = GeometricPath(target_of(model), base())
    joint = path_of(
        function_target("two-modes-tempered", joint_density(path.target.log_density, path),
                        DIMENSION + 1)
    )  # fmt: skip
    u = np.clip(rng.logistic(size=walkers), -6, 6)
    cold = rng.random(walkers) < 1 / (1 + np.exp(-u))
    mode = rng.choice(2, walkers, p=MIXTURE.weight)
    near = MIXTURE.mean[mode] + 0.1 * rng.standard_normal((walkers, DIMENSION))
    x = np.where(cold[:, None], near, BASE_SD * rng.standard_normal((walkers, DIMENSION)))
    run = run_ensemble(
        joint.target.log_density,
        np.column_stack([x, u]),
        options,
        sweeps,
        walker_streams(seed, walkers),
    )
    dropped = warmup * options.decisions
    points = run.points[:, dropped:]
    beta = 1 / (1 + np.exp(-points[..., -1]))
    return fit_of_walkers(
        METHOD,
        joint,
        run,
        dropped,
        watched(points[..., :-1], beta),
        options.steps_per_decision,
        seed,
        {**settings, "walkers": walkers, "sweeps": sweeps, "warmup": warmup},
        {"right": right_at_the_target(points[..., :-1], path)},
    )


TEMPERED_WALKERS = python_method(METHOD, sample_tempered)
