"""Walkers preconditioned by each other's covariance, and the two methods that this contains.

The ensemble quasi-Newton sampler moves walkers by Langevin dynamics, scaled by the covariance of
the other walkers, near by or all of them.  Without that scaling it is Langevin dynamics (BAOAB),
and without friction, with fresh momenta, HMC with a unit metric.  Step sizes are given and nothing
adapts.  The algorithm is in :mod:`harness.samplers.ensemble`.

References
----------
Leimkuhler, B., Matthews, C. and Weare, J. (2018). Ensemble preconditioning for Markov chain Monte
Carlo simulation. Statistics and Computing 28, 277-290.

Leimkuhler, B. and Matthews, C. (2013). Rational construction of stochastic numerical methods for
molecular sampling. Applied Mathematics Research eXpress 2013, 34-56 (BAOAB).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.fit import CHAINS_INTERACT, Fit
from harness.forms.method import python_method
from harness.model import Model
from harness.model.python_target import Target, target_of
from harness.path.gaussian import GaussianBase
from harness.samplers.cost import Cost
from harness.samplers.ensemble.settings import EnsembleSettings
from harness.samplers.ensemble.walkers import run_ensemble, walker_streams
from harness.samplers.geometric_path import GeometricPath
from harness.samplers.result import plain_fit

QUASI_NEWTON = "ensemble_quasi_newton"
LANGEVIN = "langevin"
HMC = "hmc"


def ensemble_quasi_newton(
    what: Model | Target,
    base: GaussianBase | None = None,
    *,
    dt: float,
    gamma: float = 1.0,
    eta: float = 100.0,
    lam: float = 0.0,
    select: Sequence[int] | None = None,
    scale: Sequence[float] | None = None,
    groups: int = 4,
    steps: int = 10,
    metropolis: bool = True,
    divergence: bool = True,
    reverse_check: bool = True,
    steps_per_decision: int = 1,
    low_rank: bool = False,
    starts: npt.ArrayLike | None = None,
    walkers: int = 64,
    draws: int = 2000,
    warmup: int = 1000,
    seed: int,
) -> Fit:
    """Sample a target with walkers that precondition each other (Leimkuhler et al. 2018).

    The fit's chains are the walkers.  They depend on each other, so the fit's errors come from the
    series of their means.

    Parameters
    ----------
    what
        Model, which is evaluated by its Stan program, or target.
    base
        Gaussian that walkers start from, inside the target's support; or give ``starts``.
    dt, gamma, eta, lam, select, scale, groups, steps, metropolis, divergence, reverse_check
        See :class:`~harness.samplers.ensemble.settings.EnsembleSettings`; so too
        ``steps_per_decision`` and ``low_rank``.  Distances are in the target's base coordinates.
    starts
        Where walkers start, in base coordinates, shape (walkers, D).
    walkers
        Number of walkers that start from the base.
    draws, warmup
        Metropolis decisions that are kept of each walker, and those before; without
        ``metropolis``, every ``steps_per_decision`` steps.
    seed
        Seed.

    Raises
    ------
    DataError
        If a setting or a count is out of range, walkers are too few or all at one point, or one
        starts where the density is zero or its gradient is not finite.
    SamplingError
        If the walkers' covariance overflows.
    """
    settings = EnsembleSettings(
        dt=dt,
        gamma=gamma,
        eta=eta,
        lam=lam,
        select=select,
        scale=scale,
        groups=groups,
        steps=steps,
        metropolis=metropolis,
        divergence=divergence,
        reverse_check=reverse_check,
        steps_per_decision=steps_per_decision,
        low_rank=low_rank,
    )
    return _sampled(QUASI_NEWTON, what, base, settings, starts, walkers, draws, warmup, seed)


def langevin(
    what: Model | Target,
    base: GaussianBase | None = None,
    *,
    dt: float,
    gamma: float = 1.0,
    steps_per_decision: int = 20,
    metropolis: bool = True,
    starts: npt.ArrayLike | None = None,
    walkers: int = 16,
    draws: int = 2000,
    warmup: int = 1000,
    seed: int,
) -> Fit:
    """Sample a target by Langevin dynamics with a unit metric, as BAOAB steps.

    After a rejection the momentum is reversed.  With a decision at every step this destroys it
    again and again, so the default is a decision every 20 steps.

    Parameters
    ----------
    dt, gamma, steps_per_decision, metropolis
        See :class:`~harness.samplers.ensemble.settings.EnsembleSettings`.
    walkers
        Number of independent chains.
    what, base, starts, draws, warmup, seed
        The same as for :func:`ensemble_quasi_newton`.

    Raises
    ------
    DataError
        For the same reasons as :func:`ensemble_quasi_newton`.
    """
    settings = EnsembleSettings(
        dt=dt,
        gamma=gamma,
        eta=0.0,
        groups=1,
        steps=steps_per_decision,
        steps_per_decision=steps_per_decision,
        metropolis=metropolis,
    )
    return _sampled(LANGEVIN, what, base, settings, starts, walkers, draws, warmup, seed)


def hmc(
    what: Model | Target,
    base: GaussianBase | None = None,
    *,
    dt: float,
    leapfrog_steps: int = 20,
    jitter: float = 0.2,
    starts: npt.ArrayLike | None = None,
    walkers: int = 16,
    draws: int = 2000,
    warmup: int = 1000,
    seed: int,
) -> Fit:
    """Sample a target by HMC with a unit metric and fresh momenta for every trajectory.

    Parameters
    ----------
    dt
        Step size of the leapfrog integrator.
    leapfrog_steps
        Leapfrog steps of a trajectory.
    jitter
        Each trajectory's step size is drawn between (1 - jitter) dt and (1 + jitter) dt.
    walkers
        Number of independent chains.
    what, base, starts, draws, warmup, seed
        The same as for :func:`ensemble_quasi_newton`.

    Raises
    ------
    DataError
        For the same reasons as :func:`ensemble_quasi_newton`.
    """
    settings = EnsembleSettings(
        dt=dt,
        gamma=0.0,
        eta=0.0,
        groups=1,
        steps=leapfrog_steps,
        steps_per_decision=leapfrog_steps,
        refresh=True,
        jitter=jitter,
    )
    return _sampled(HMC, what, base, settings, starts, walkers, draws, warmup, seed)


@dataclass(frozen=True)
class _Sampled:
    """What was sampled and what that cost, without a path."""

    target: Target
    cost: Cost = field(default_factory=Cost)


def _sampled(
    method: str,
    what: Model | Target,
    base: GaussianBase | None,
    settings: EnsembleSettings,
    starts: npt.ArrayLike | None,
    walkers: int,
    draws: int,
    warmup: int,
    seed: int,
) -> Fit:
    """Run walkers and return their fit."""
    if draws < 4 or warmup < 0:
        raise DataError(
            f"{method} needs 4 draws and 0 decisions of warm-up or more; got {draws} and {warmup}"
        )
    target = target_of(what)
    sampled, start = _Sampled(target), _starts(target, base, settings, starts, walkers, seed)
    sweeps = -(-(warmup + draws) // settings.decisions)
    streams = walker_streams(seed, len(start))
    run = run_ensemble(target.log_density, start, settings, sweeps, streams)
    sampled.cost.gradients = run.gradients
    kept = slice(warmup, warmup + draws)
    chosen = {key: value for key, value in asdict(settings).items() if value is not None}
    return plain_fit(
        method,
        sampled,
        run.points[:, kept],
        settings=chosen | {"walkers": len(start), "draws": draws, "warmup": warmup},
        seed=seed,
        stats={
            "lp": run.log_density[:, kept],
            "acceptance_rate": run.acceptance[:, kept],
            "refused": run.invalid[:, kept].astype(np.float64),
        },
        found={CHAINS_INTERACT: 1} if settings.interacting else None,
    )


def _starts(
    target: Target,
    base: GaussianBase | None,
    settings: EnsembleSettings,
    starts: npt.ArrayLike | None,
    walkers: int,
    seed: int,
) -> FloatArray:
    """Return where walkers start, (walkers, D).

    Raises
    ------
    DataError
        If neither or both of base and starts are given, or their dimension is not the target's.
    """
    if (base is None) == (starts is None):
        raise DataError("walkers start from a base or at starts: give one of the two")
    if base is not None:
        settings.check_walkers(walkers, target.dimension)
        # A stream of its own, which no walker has.
        rng = np.random.default_rng([seed, walkers])
        return GeometricPath(target, base).start_at_base(rng, walkers).points
    points = np.asarray(starts, dtype=np.float64)
    if points.ndim != 2 or points.shape[1] != target.dimension:
        raise DataError(
            f"walkers start at points of shape (walkers, {target.dimension}); got {points.shape}"
        )
    return points


ENSEMBLE_QUASI_NEWTON = python_method(QUASI_NEWTON, ensemble_quasi_newton)
LANGEVIN_DYNAMICS = python_method(LANGEVIN, langevin)
HMC_UNIT = python_method(HMC, hmc)
