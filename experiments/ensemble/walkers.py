"""Walkers on the stamps' posterior: EQN, Langevin dynamics and HMC, and their autocorrelation."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import minimize

from harness.arrays import FloatArray
from harness.evidence.autocorrelation import autocorrelation_times
from harness.fit import Fit
from harness.forms.method import python_method
from harness.model import Model
from harness.model.python_target import Target, target_of
from harness.models.stamps import (
    ORDERS,
    Stamps,
    from_raw,
    quantities,
    relabelled,
    to_raw,
)
from harness.path.gaussian import gaussian_base
from harness.samplers.ensemble.settings import EnsembleSettings
from harness.samplers.ensemble.walkers import EnsembleRun, run_ensemble, walker_streams
from harness.samplers.geometric_path import GeometricPath
from harness.samplers.result import plain_fit

METHOD = "ensemble_walkers"
_KEPT = 100  # draws of a walker that the fit keeps
_NEAR_THE_MODE = np.array([7.17, 7.9, 9.92, 34, 23.5, 0.54, 0.23, 0.34, 0.11])
_STEP = 1e-4  # of differences of gradients, in units of logarithms


def stamps_of(model: Model) -> Stamps:
    """Return the stamps of a model."""
    data = model.data
    return Stamps(np.asarray(data["thickness"]), np.asarray(data["stamps"]), int(data["K"]))


def gaussian_starts(
    stamps: Stamps, walkers: int, orders: int, rng: np.random.Generator
) -> FloatArray:
    """Draw (mu, lambda, z1, z2, rate) from a Gaussian about the mode, shape (walkers, 9).

    The Gaussian has the density's curvature at the mode in logarithms and logits.

    Parameters
    ----------
    orders
        Number of orders of the components, 1 to 6, one of which each walker starts in.
    """

    def falls(x: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = stamps.log_density(x[None])
        return -float(value[0]), -gradient[0]

    mode = minimize(falls, from_raw(_NEAR_THE_MODE), jac=True, method="BFGS").x
    beside = mode + _STEP * np.concatenate([np.eye(9), -np.eye(9)])
    gradient = stamps.log_density(beside)[1]
    curvature = (gradient[9:] - gradient[:9]) / (2 * _STEP)
    covariance = np.linalg.inv((curvature + curvature.T) / 2)
    raw = to_raw(rng.multivariate_normal(mode, covariance, size=walkers))
    label = rng.integers(0, orders, walkers)
    return np.stack([relabelled(x, ORDERS[k]) for x, k in zip(raw, label, strict=True)])


def sample_stamps(
    model: Model,
    *,
    walkers: int,
    sweeps: int,
    warmup: int,
    orders: int = 6,
    seed: int,
    **settings: Any,
) -> Fit:
    """Run walkers on the stamps' posterior, raw or not.

    Parameters
    ----------
    model
        A model of :meth:`harness.models.stamps.Stamps.model`.
    walkers, sweeps
        Number of walkers and of turns of each group.
    warmup
        Sweeps at the beginning that are dropped.
    orders
        Number of orders of the components that walkers start in.
    seed
        Seed; the same seed gives the same fit.
    **settings
        Of :class:`harness.samplers.ensemble.settings.EnsembleSettings`.

    Returns
    -------
    Fit
        Some of the draws.  Attributes, for the paper's four quantities: ``iat``, integrated
        autocorrelation times in gradients for each walker, ``iat_error`` and ``iat_closed``; those
        of the ensemble's mean, ``iat_ensemble``; ``mean`` and ``mcse`` from the ensemble's means.
        Also ``acceptance``, ``invalid``, and of the walkers' orders how many they start in,
        ``orders``, and how many walkers end in another one, ``changed_orders``.

    Raises
    ------
    DataError
        For the same reasons as in :func:`harness.samplers.ensemble.walkers.run_ensemble`.
    """
    options = EnsembleSettings(**settings)
    stamps, raw = stamps_of(model), "z" in model.parameters
    rng = np.random.default_rng([seed, 1])
    start = gaussian_starts(stamps, walkers, orders, rng)
    path = path_of(target_of(model))
    run = run_ensemble(
        path.target.log_density,
        start if raw else from_raw(start),
        options,
        sweeps,
        walker_streams(seed, walkers),
    )
    points = run.points[:, warmup * options.decisions :]
    natural = points if raw else to_raw(points)
    order = np.argsort(natural[:, [0, -1], :3], axis=-1)
    first = np.argsort(start[:, :3], axis=-1)
    return fit_of_walkers(
        METHOD,
        path,
        run,
        warmup * options.decisions,
        quantities(natural),
        options.steps_per_decision,
        seed,
        {**settings, "walkers": walkers, "sweeps": sweeps, "warmup": warmup, "orders": orders},
        {
            "orders": float(len(np.unique(first, axis=0))),
            "changed_orders": float((order[:, 1] != first).any(axis=1).sum()),
        },
    )


def path_of(target: Target) -> GeometricPath:
    """Return a path whose target is sampled; its base plays no part.  Its clock starts now."""
    dimension = target.dimension
    return GeometricPath(target, gaussian_base(np.zeros(dimension), np.eye(dimension)))


def fit_of_walkers(
    method: str,
    path: GeometricPath,
    run: EnsembleRun,
    warmup: int,
    watched: FloatArray,
    gradients_a_draw: int,
    seed: int,
    settings: dict[str, Any],
    found: dict[str, Any],
) -> Fit:
    """Return a fit of some of the draws, with the autocorrelation times of watched quantities.

    Parameters
    ----------
    path
        Of :func:`path_of`, made before the run.
    warmup
        Decisions at the beginning that are dropped.
    watched
        Quantities after these, shape (walkers, draws, Q).
    gradients_a_draw
        Gradients of a walker from one draw to the next.
    method, run, seed, settings, found
        For the fit.
    """
    points = run.points[:, warmup:]
    every = max(1, points.shape[1] // _KEPT)
    path.cost.gradients = run.gradients
    return plain_fit(
        method,
        path,
        points[:, ::every],
        settings=settings,
        seed=seed,
        stats={
            "lp": run.log_density[:, warmup:][:, ::every],
            "acceptance_rate": run.acceptance[:, warmup:][:, ::every],
        },
        found={
            **times_of(watched, gradients_a_draw),
            "acceptance": float(run.acceptance[:, warmup:].mean()),
            "invalid": float(run.invalid[:, warmup:].mean()),
            **found,
        },
    )


def times_of(watched: FloatArray, gradients_a_draw: float) -> dict[str, FloatArray]:
    """Return autocorrelation times in gradients, means and their errors, of (walkers, draws, Q)."""
    times = autocorrelation_times(watched)
    series = watched.mean(axis=0)
    spread = series.var(axis=0) * np.maximum(times.mean.value, 1) / len(series)
    return {
        "iat": times.own.value * gradients_a_draw,
        "iat_error": times.own.error * gradients_a_draw,
        "iat_closed": times.own.closed.astype(np.float64),
        "iat_ensemble": times.mean.value * gradients_a_draw,
        "mean": series.mean(axis=0),
        "mcse": np.sqrt(spread),
    }


STAMPS_WALKERS = python_method(METHOD, sample_stamps)
