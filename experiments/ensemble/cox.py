"""Samplers of the log-Gaussian Cox process by blocks: x given theta, then theta given x.

An iteration moves the log intensities x by some steps and then theta = (log sigma2, log range) by
one (Leimkuhler, Matthews and Weare 2018, section 4.2).  EQN and Langevin dynamics keep the momenta
of both blocks from one iteration to the next.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray, LogDensity
from harness.errors import DataError
from harness.fit import Fit
from harness.forms.method import python_method
from harness.model import Model
from harness.model.python_target import Target
from harness.models.log_gaussian_cox import TRUE_RANGE, TRUE_SIGMA2, LogGaussianCox
from harness.samplers.ensemble.roots import FixedRoot, Preconditioner, covariance_root
from harness.samplers.ensemble.settings import EnsembleSettings
from harness.samplers.ensemble.step import Place, decide
from harness.samplers.result import plain_fit

from .riemannian import move_hyper, move_latent
from .walkers import path_of, times_of

METHOD = "cox_by_blocks"
Scheme = Literal["eqn", "langevin", "hmc", "rmhmc"]
QUANTITIES = ("log sigma2", "log range", "largest of seven cells")
_KEPT = 200
_CELLS = 7  # whose log intensities are watched


@dataclass(frozen=True)
class Blocks:
    """How both blocks move.

    Attributes
    ----------
    scheme
        ``eqn``, ``langevin``, ``hmc`` (unit metric) or ``rmhmc``.
    dt_latent, dt_hyper
        Step sizes of x and of theta.
    steps
        Steps of x in an iteration; theta takes one.
    metropolis
        Whether moves are accepted or rejected.
    eta_latent, eta_hyper
        Weights of the other walkers' covariances, of EQN.
    gamma
        Friction of EQN and Langevin dynamics.
    """

    scheme: Scheme
    dt_latent: float
    dt_hyper: float
    steps: int = 50
    metropolis: bool = True
    eta_latent: float = 7.0
    eta_hyper: float = 1.0
    gamma: float = 1.0

    @property
    def settings(self) -> tuple[EnsembleSettings, EnsembleSettings]:
        """Settings of a decision of x and of theta."""
        hmc = self.scheme == "hmc"
        common = EnsembleSettings(
            dt=self.dt_latent,
            gamma=0.0 if hmc else self.gamma,
            eta=0.0,
            groups=1,
            metropolis=self.metropolis,
            steps=self.steps,
            steps_per_decision=self.steps if hmc else 1,
            refresh=hmc,
            jitter=0.2 if hmc else 0.0,
        )
        return common, replace(common, dt=self.dt_hyper, steps=1, steps_per_decision=1)


def process_of(model: Model) -> LogGaussianCox:
    """Return the process of a model."""
    data = model.data
    side = int(data["n"])
    return LogGaussianCox(
        np.asarray(data["points"]).reshape(side, side),
        "unit_square" if data["unit_square"] else "cells",
        float(data["field_mean"]),
    )


def sample_by_blocks(
    model: Model,
    *,
    blocks: Blocks,
    walkers: int,
    groups: int,
    iterations: int,
    warmup: int,
    seed: int,
) -> Fit:
    """Run walkers on the centred posterior, block by block; a group's turn is one iteration.

    Parameters
    ----------
    model
        A centred model of :meth:`harness.models.log_gaussian_cox.LogGaussianCox.model`.
    blocks
        How they move.
    walkers, groups
        Number of walkers, and of groups that move in turn.
    iterations, warmup
        Iterations of every walker, and how many of the first are dropped.
    seed
        Seed; the same seed gives the same fit.

    Returns
    -------
    Fit
        Some of the draws.  Attributes: ``iat`` of :data:`QUANTITIES` in iterations and what else
        :func:`experiments.ensemble.walkers.times_of` returns; the acceptance of both blocks.

    Raises
    ------
    DataError
        If the model is not centred, or walkers do not divide into groups.
    """
    if "x" not in model.parameters:
        raise DataError("blocks are those of the centred model, whose parameters have x")
    if walkers % groups or groups < 2 or not 0 <= warmup < iterations:
        raise DataError(
            f"{walkers} walkers in {groups} groups, two or more of equal size, need more "
            f"iterations than the {warmup} of the warm-up; got {iterations}"
        )
    process, rng = process_of(model), np.random.default_rng(seed)
    target = Target(model.name, model.dimension, process.log_density, _parameters, model.data)
    path = path_of(target)
    state = _start(process, walkers, rng)
    members = np.split(np.arange(walkers), groups)
    kept = np.empty((walkers, iterations - warmup, process.size + 2))
    acceptance = np.zeros(2)
    move = move_riemannian if blocks.scheme == "rmhmc" else move_ensemble
    for iteration in range(iterations):
        for mine in members:
            accepted = move(process, blocks, state, mine, rng)
            if iteration >= warmup:
                acceptance += accepted * len(mine)
        if iteration >= warmup:
            kept[:, iteration - warmup] = np.hstack([state.theta, state.x])
    path.cost.gradients = walkers * iterations * (blocks.steps + 1)
    cells = 2 + np.linspace(0, process.size - 1, _CELLS).astype(int)
    times = times_of(kept[..., [0, 1, *cells]], 1)
    watched = {name: _worst_cell(value) for name, value in times.items() if "iat" in name}
    every = max(1, kept.shape[1] // _KEPT)
    points = kept[:, ::every]
    return plain_fit(
        METHOD,
        path,
        points,
        settings={
            "scheme": blocks.scheme,
            "walkers": walkers,
            "groups": groups,
            "iterations": iterations,
            "warmup": warmup,
            "blocks": repr(blocks),
        },
        seed=seed,
        found={
            **watched,
            "mean": times["mean"][:2],
            "mcse": times["mcse"][:2],
            "acceptance_latent": float(acceptance[0] / (walkers * (iterations - warmup))),
            "acceptance_hyper": float(acceptance[1] / (walkers * (iterations - warmup))),
        },
    )


def _worst_cell(value: FloatArray) -> FloatArray:
    """Reduce the cells, which follow the two scales, to the largest of their values."""
    return np.append(value[:2], value[2:].max())


def _parameters(points: FloatArray) -> dict[str, FloatArray]:
    return {
        "sigma2": np.exp(points[..., 0]),
        "range": np.exp(points[..., 1]),
        "x": points[..., 2:],
    }


@dataclass
class State:
    """Of all walkers: x and its momentum (W, N), theta and its momentum (W, 2)."""

    x: FloatArray
    x_momentum: FloatArray
    theta: FloatArray
    theta_momentum: FloatArray


def _start(process: LogGaussianCox, walkers: int, rng: np.random.Generator) -> State:
    """Start near the truth that the points were drawn at, with fields that smooth the points."""
    theta = np.log([TRUE_SIGMA2, TRUE_RANGE]) + 0.3 * rng.standard_normal((walkers, 2))
    x = np.empty((walkers, process.size))
    density = np.log((process.counts + 0.3) * process.size)
    for w in range(walkers):
        field = process.field(theta[w])
        # Posterior mean of a Gaussian field whose cells are measured with variance 1 each.
        gain = field.covariance @ np.linalg.inv(field.covariance + np.eye(process.size))
        x[w] = process.field_mean + gain @ (density - process.field_mean)
        x[w] += 0.3 * rng.standard_normal(process.size)
    return State(x, rng.standard_normal(x.shape), theta, rng.standard_normal(theta.shape))


def move_ensemble(
    process: LogGaussianCox,
    blocks: Blocks,
    state: State,
    mine: npt.NDArray[np.intp],
    rng: np.random.Generator,
) -> FloatArray:
    """Move a group by one iteration; returns the acceptance of both blocks."""
    of_x, of_theta = blocks.settings
    rest = np.setdiff1d(np.arange(len(state.x)), mine)
    frozen: tuple[Preconditioner, Preconditioner] = (FixedRoot(), FixedRoot())
    if blocks.scheme == "eqn":
        frozen = (
            covariance_root(state.x[rest], blocks.eta_latent, low_rank=True),
            covariance_root(state.theta[rest], blocks.eta_hyper),
        )
    precision = np.stack([process.precision(theta) for theta in state.theta[mine]])
    latent: LogDensity = partial(process.latent_log_density, precision=precision)
    state.x[mine], state.x_momentum[mine], first = _decisions(
        latent, state.x[mine], state.x_momentum[mine], of_x, frozen[0], rng
    )
    hyper: LogDensity = partial(process.hyper_log_density, x=state.x[mine])
    state.theta[mine], state.theta_momentum[mine], second = _decisions(
        hyper, state.theta[mine], state.theta_momentum[mine], of_theta, frozen[1], rng
    )
    return np.array([first, second])


def _decisions(
    density: LogDensity,
    q: FloatArray,
    p: FloatArray,
    settings: EnsembleSettings,
    preconditioner: Preconditioner,
    rng: np.random.Generator,
) -> tuple[FloatArray, FloatArray, float]:
    """Return positions and momenta after the decisions of a turn, and their acceptance."""
    value, gradient = density(q)
    place = Place(q, p, value, gradient, preconditioner.root(q))
    accepted = np.empty(settings.decisions)
    each = settings.steps_per_decision
    for t in range(settings.decisions):
        if settings.refresh:
            place = replace(place, p=rng.standard_normal(q.shape))
        noise = rng.standard_normal((each, *q.shape)) if settings.gamma > 0 else None
        low, high = 1 - settings.jitter, 1 + settings.jitter
        dt = settings.dt * rng.uniform(low, high, (len(q), 1))
        made = decide(
            place, noise, rng.standard_exponential(len(q)), dt, settings, preconditioner, density
        )
        place = made.place
        accepted[t] = np.exp(np.minimum(made.log_ratio, 0)).mean()
    return place.q, place.p, float(accepted.mean())


def move_riemannian(
    process: LogGaussianCox,
    blocks: Blocks,
    state: State,
    mine: npt.NDArray[np.intp],
    rng: np.random.Generator,
) -> FloatArray:
    """Move a group by one iteration of Riemannian HMC."""
    accepted = np.zeros(2)
    for w in mine:
        x = move_latent(process, state.x[w], state.theta[w], blocks.dt_latent, blocks.steps, rng)
        state.x[w] = x.q
        theta = move_hyper(process, state.theta[w], x.q, blocks.dt_hyper, 1, rng)
        state.theta[w] = theta.q
        accepted += x.acceptance, theta.acceptance
    return accepted / len(mine)


COX_BY_BLOCKS = python_method(METHOD, sample_by_blocks)
