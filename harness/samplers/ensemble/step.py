"""One step of preconditioned Langevin dynamics, and the Metropolis decision after some of them.

Equations 13a to 13g of Leimkuhler, Matthews and Weare (2018), with h = dt / 2 and
alpha = exp(-gamma dt).  The map (q, p, R) -> (q', -p', R') with the noise R of the reversed step
is an involution, and the logarithm of its Jacobian determinant is
log|det(I + h A(qm, p3))| - log|det(I - h A(qm, p1))|; so the acceptance ratio is that of
:attr:`Stepped.log_ratio` plus the change of log density.  The paper's appendix 2 has misprints:
see ``docs/mathematics.md``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from harness.arrays import FloatArray, LogDensity
from harness.samplers.ensemble.roots import Flags, Preconditioner, Root
from harness.samplers.ensemble.settings import EnsembleSettings


@dataclass(frozen=True)
class Place:
    """Where n walkers are.

    Attributes
    ----------
    q, p
        Positions and momenta, shape (n, D).
    log_density, gradient
        At q, shapes (n,) and (n, D).
    root
        B at q.
    """

    q: FloatArray
    p: FloatArray
    log_density: FloatArray
    gradient: FloatArray
    root: Root


class Stepped(NamedTuple):
    """Walkers after one step, before it is accepted."""

    place: Place
    log_ratio: FloatArray
    """Log acceptance ratio without the change of log density, shape (n,).

    Half of |p|^2 - |p2|^2 + |ph|^2 - |p'|^2, and the log determinants.  Nothing is divided by
    1 - alpha^2, so that gamma may be 0.
    """
    valid: Flags
    """Of each walker, whether the step can be taken and taken back, and ends where the density is
    positive and has a finite gradient.  A walker for which this is false stays where it was."""


def one_step(
    place: Place,
    noise: FloatArray | None,
    dt: FloatArray,
    settings: EnsembleSettings,
    preconditioner: Preconditioner,
    log_density: LogDensity,
) -> Stepped:
    """Take one step (13a to 13g).

    Parameters
    ----------
    place
        Where the walkers are.
    noise
        R, standard normal, shape (n, D); None if gamma is 0.
    dt
        Step sizes, shape (n, 1).
    settings
        What to do; its own ``dt`` is not used.
    preconditioner
        B as a function of the place.
    log_density
        Log density and gradient of the target.
    """
    q, p, half = place.q, place.p, 0.5 * dt
    p1 = p + half * place.root.transposed_times(place.gradient)  # 13a
    middle = preconditioner.midpoint(q, p1, half, place.root)  # 13b
    root = middle.root
    pull = root.divergence() if settings.divergence else None
    if pull is not None:
        pull *= half
    p2 = p1 if pull is None else p1 + pull  # 13c
    if noise is None:
        turned = p2
    else:
        kept = np.exp(-settings.gamma * dt)
        turned = kept * p2 + np.sqrt(1 - kept * kept) * noise  # 13d
    p3 = turned if pull is None else turned + pull  # 13e
    end = middle.q + half * root.times(p3)  # 13f
    valid: Flags = np.asarray(np.isfinite(end).all(axis=1))
    if middle.solved is not None:
        valid &= middle.solved
    if not valid.all():
        end = np.where(valid[:, None], end, q)
    value, gradient = log_density(end)
    valid &= np.isfinite(value) & np.isfinite(gradient).all(axis=1)
    if not valid.all():
        end = np.where(valid[:, None], end, q)
        value = np.where(valid, value, place.log_density)
        gradient = np.where(valid[:, None], gradient, place.gradient)
    at_end = preconditioner.root(end)
    if settings.reverse_check:
        back = preconditioner.returns(end, -p3, half, at_end, middle)
        if back is not None:
            valid &= back
    last = p3 + half * at_end.transposed_times(gradient)  # 13g
    ratio = np.zeros(len(q))
    if settings.metropolis:
        ratio = _halved(p, p2) + _halved(turned, last)
        both = root.log_determinant(np.array([half, -half]), np.array([p3, p1]))
        if both is not None:
            ratio += both[0] - both[1]
        valid &= np.isfinite(ratio)
    return Stepped(Place(end, last, value, gradient, at_end), ratio, valid)


def _halved(one: FloatArray, other: FloatArray) -> FloatArray:
    """Return (|one|^2 - |other|^2) / 2 of each walker, without cancellation."""
    halved: FloatArray = 0.5 * np.vecdot(one - other, one + other)
    return halved


class Decided(NamedTuple):
    """Walkers after a Metropolis decision."""

    place: Place
    accepted: Flags
    """Shape (n,)."""
    log_ratio: FloatArray
    """Log acceptance ratio, -inf where a step could not be taken, shape (n,)."""


def decide(
    place: Place,
    noise: FloatArray | None,
    exponential: FloatArray,
    dt: FloatArray,
    settings: EnsembleSettings,
    preconditioner: Preconditioner,
    log_density: LogDensity,
) -> Decided:
    """Take ``steps_per_decision`` steps and accept them, or go back and reverse the momentum.

    Parameters
    ----------
    noise
        Shape (steps, n, D), or None if gamma is 0.
    exponential
        Standard exponential, shape (n,): a walker accepts if the log ratio is above minus this.
    place, dt, settings, preconditioner, log_density
        The same as for :func:`one_step`.
    """
    first, now = place, place
    log_ratio, valid = np.zeros(len(place.q)), np.ones(len(place.q), dtype=np.bool_)
    with np.errstate(over="ignore", invalid="ignore"):
        for t in range(settings.steps_per_decision):
            made = one_step(
                now, None if noise is None else noise[t], dt, settings, preconditioner, log_density
            )
            valid &= made.valid
            log_ratio += made.log_ratio
            now = made.place
        log_ratio = np.where(valid, log_ratio + now.log_density - first.log_density, -np.inf)
    accepted = valid & (log_ratio > -exponential) if settings.metropolis else valid
    if accepted.all():
        return Decided(now, accepted, log_ratio)
    column = accepted[:, None]
    chosen = Place(
        np.where(column, now.q, first.q),
        np.where(column, now.p, -first.p),
        np.where(accepted, now.log_density, first.log_density),
        np.where(column, now.gradient, first.gradient),
        preconditioner.choose(accepted, now.root, first.root),
    )
    return Decided(chosen, accepted, log_ratio)


def with_root(place: Place, preconditioner: Preconditioner) -> Place:
    """Return the same place with B of another preconditioner, when other groups have moved."""
    return replace(place, root=preconditioner.root(place.q))
