"""Groups of walkers that move in turn, each preconditioned by the others (algorithm 1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray, LogDensity
from harness.errors import DataError
from harness.samplers.ensemble.preconditioner import LocalPreconditioner, selected_coordinates
from harness.samplers.ensemble.roots import FixedRoot, Flags, Preconditioner, covariance_root
from harness.samplers.ensemble.settings import EnsembleSettings
from harness.samplers.ensemble.step import Place, decide, with_root

Preconditioning = Callable[[FloatArray], Preconditioner]
"""Positions (K, D) of all walkers of other groups to the preconditioner that they make."""


@dataclass(frozen=True)
class EnsembleRun:
    """What L walkers did.

    Attributes
    ----------
    points
        Positions after each decision, shape (L, decisions, D).  Row t of a sweep holds the t-th
        decision of every group's own turn.
    log_density
        There, shape (L, decisions).
    acceptance
        Acceptance probability of each decision, shape (L, decisions).
    invalid
        Whether a step could not be taken or taken back, or ended where the density is zero, shape
        (L, decisions).
    gradients
        Evaluations of the gradient over all walkers, with those of the start.
    """

    points: FloatArray
    log_density: FloatArray
    acceptance: FloatArray
    invalid: Flags
    gradients: int


def preconditioning(settings: EnsembleSettings) -> Preconditioning:
    """Return how the settings make B from the other walkers."""
    if settings.eta == 0:
        return lambda others: FixedRoot()
    if settings.lam == 0:
        return lambda others: covariance_root(others, settings.eta, low_rank=settings.low_rank)
    return lambda others: LocalPreconditioner(
        others, settings.eta, settings.lam, settings.select, settings.scale
    )


def walker_streams(seed: int, walkers: int) -> list[np.random.Generator]:
    """Return a stream of random numbers for each walker."""
    return [np.random.default_rng(each) for each in np.random.SeedSequence(seed).spawn(walkers)]


def run_ensemble(
    log_density: LogDensity,
    starts: npt.ArrayLike,
    settings: EnsembleSettings,
    sweeps: int,
    streams: Sequence[np.random.Generator],
    *,
    precondition: Preconditioning | None = None,
) -> EnsembleRun:
    """Move all groups of walkers in turn.

    Momenta persist from one turn to the next.  Each walker has its own stream of random numbers, so
    results do not depend on the order of walkers within a group.

    Parameters
    ----------
    log_density
        Log density and gradient of the target.
    starts
        Shape (L, D); group g is the g-th part of the rows.
    settings
        What to do.
    sweeps
        Turns of each group.
    streams
        Streams of random numbers, one a walker.
    precondition
        Makes B from the other walkers; by default as the settings say.

    Raises
    ------
    DataError
        If the walkers do not divide into groups, are too few or all at one point, or start where
        the density is zero or its gradient is not finite.
    """
    q = np.array(starts, dtype=np.float64)
    if q.ndim != 2 or q.shape[1] < 1:
        raise DataError(f"walkers start at points of shape (walkers, D); got {q.shape}")
    walkers, dimension = q.shape
    settings.check_walkers(walkers, dimension)
    if settings.select is not None:
        selected_coordinates(settings.select, dimension)
    if len(streams) != walkers:
        raise DataError(f"{walkers} walkers need as many streams; got {len(streams)}")
    if sweeps < 1:
        raise DataError(f"a run has 1 sweep or more; got {sweeps}")
    value, gradient = _checked_start(log_density, q, settings)
    p = np.stack([stream.standard_normal(dimension) for stream in streams])
    precondition = precondition or preconditioning(settings)
    number = settings.decisions
    points = np.empty((walkers, sweeps * number, dimension))
    kept = np.empty((walkers, sweeps * number))
    ratio = np.empty((walkers, sweeps * number))
    accepted = np.empty((walkers, sweeps * number), dtype=np.bool_)
    members = np.split(np.arange(walkers), settings.groups)
    for sweep in range(sweeps):
        for mine in members:
            rows = slice(int(mine[0]), int(mine[-1]) + 1)
            others = np.concatenate([q[: rows.start], q[rows.stop :]])
            frozen = precondition(others)
            noise = _Noise(streams[rows], settings, dimension)
            place = Place(q[rows], p[rows], value[rows], gradient[rows], FixedRoot())
            place = with_root(place, frozen)
            for t in range(number):
                at = sweep * number + t
                if noise.momenta is not None:
                    place = Place(
                        place.q, noise.momenta[t], place.log_density, place.gradient, place.root
                    )
                made = decide(
                    place,
                    noise.of_decision(t),
                    noise.exponential[t],
                    noise.dt[t],
                    settings,
                    frozen,
                    log_density,
                )
                place = made.place
                points[rows, at], kept[rows, at] = place.q, place.log_density
                ratio[rows, at], accepted[rows, at] = made.log_ratio, made.accepted
            q[rows], p[rows] = place.q, place.p
            value[rows], gradient[rows] = place.log_density, place.gradient
    invalid, gradients = ratio == -np.inf, walkers * (1 + sweeps * settings.steps)
    acceptance = np.exp(np.minimum(ratio, 0)) if settings.metropolis else accepted.astype(float)
    return EnsembleRun(points, kept, acceptance, invalid, gradients)


def _checked_start(
    log_density: LogDensity, q: FloatArray, settings: EnsembleSettings
) -> tuple[FloatArray, FloatArray]:
    """Return log density and gradient where the walkers start.

    Raises
    ------
    DataError
        If a walker cannot start there, or the covariance of all of them is zero.
    """
    if not np.isfinite(q).all():
        raise DataError("a walker's starting point is not finite")
    if settings.interacting and np.ptp(q, axis=0).max() == 0:
        raise DataError(
            "all walkers start at one point, so that they have no covariance: start them apart"
        )
    value, gradient = (np.array(each, dtype=np.float64) for each in log_density(q))
    for fault, what in (
        (~np.isfinite(value), "the log density is not finite"),
        (~np.isfinite(gradient).all(axis=1), "the gradient of the log density is not finite"),
    ):
        if fault.any():
            raise DataError(
                f"{what} where walker {int(np.flatnonzero(fault)[0])} starts, and at the starts of "
                f"{np.count_nonzero(fault)} of {len(q)} walkers: start inside the support"
            )
    return value, gradient


class _Noise:
    """The random numbers of a group's turn, each walker's from its own stream."""

    def __init__(
        self,
        streams: Sequence[np.random.Generator],
        settings: EnsembleSettings,
        dimension: int,
    ) -> None:
        count, each = settings.decisions, settings.steps_per_decision
        self._each = each
        # A walker's stream gives its numbers in a fixed order, whoever else is in the group.
        turn = np.empty((len(streams), settings.steps, dimension)) if settings.gamma > 0 else None
        momenta = np.empty((len(streams), count, dimension)) if settings.refresh else None
        exponential = np.empty((len(streams), count))
        self.dt = np.full((count, len(streams), 1), settings.dt)
        for w, stream in enumerate(streams):
            if turn is not None:
                stream.standard_normal(out=turn[w])
            if momenta is not None:
                stream.standard_normal(out=momenta[w])
            stream.standard_exponential(out=exponential[w])
            if settings.jitter > 0:
                low, high = 1 - settings.jitter, 1 + settings.jitter
                self.dt[:, w, 0] *= stream.uniform(low, high, count)
        # From here on steps come first.
        self.exponential = np.ascontiguousarray(exponential.T)
        self._turn = None if turn is None else np.ascontiguousarray(turn.transpose(1, 0, 2))
        self.momenta = None if momenta is None else momenta.transpose(1, 0, 2)

    def of_decision(self, t: int) -> FloatArray | None:
        """Return R of a decision's steps, shape (steps, n, D); None if gamma is 0."""
        return None if self._turn is None else self._turn[t * self._each : (t + 1) * self._each]
