"""A leg: a few independent pilots from one kind of base to a density, and what they agree on.

The populations of one pilot share its base's draws, its ladder and its moves, so their spread does
not show a failure that they have in common.  The pilots of a leg share only the kind of base, and
two legs differ in that as well.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from harness.arrays import FloatArray, LogDensity
from harness.engine.timed import seconds_a_point
from harness.errors import DataError, SamplingError
from harness.evidence import LogEvidence, log_mean_weight
from harness.path import GaussianBase, Pilot, PilotSettings, gaussian_base, pilot_of_density
from harness.path.pilot import fewest_particles
from harness.seeds import derived_seeds

POPULATIONS = 8
_PARTICLES = (512, 256, 128)
"""Particles of a pilot: fewer where a density is so slow that more would not arrive in time."""
FAR, CLOSE = 400, 150
"""Gradients that a particle takes on its way from the prior, or from a Gaussian fitted to draws of
the target, roughly: 30 or 10 rungs of two to three trajectories, in up to :data:`_FEW` dimensions.
In more, rungs grow as their square root.
"""
_FEW = 100
_SECONDS_A_COORDINATE = 1e-8
"""Time of a leapfrog step's own arithmetic, for each coordinate of a particle."""
_HOPELESS = 3.0
"""Multiple of the time that there is for pilots from which on they are not even begun.  One that is
late takes longer steps, which saves a factor of 2.6."""
_TIMED, _TIMES = 16, 2
"""Points at which a density is evaluated to see how long it takes, and how often."""
_MOVES, _MOST_MOVES, _LEAPFROG_STEPS = 1, 12, 5
"""Of a rung.  Particles that have left their places need no further moves: with three moves of
eight steps at least, pilots of posteriors with one mode took three to four times as long."""
_RIDGE = 1e-9
"""Share of each variance that is added to it, in case all draws lie in a plane."""
WIDER, NEAR = (2.0, 3.0), (1.2, 2.0)
"""How much wider than draws of NUTS the Gaussian bases are, for the search and for the near leg.

The pilots of a leg have bases of two widths, and so two ladders.  Their spread then includes the
errors that depend on base and ladder.
"""


@dataclass(frozen=True)
class Leg:
    """Pilots from one kind of base.

    Attributes
    ----------
    origin
        Where they start, in words.
    pilots
        One or more, independent of each other.
    timed
        Gradients before them, which showed how long one takes.
    """

    origin: str
    pilots: tuple[Pilot, ...]
    timed: int = 0

    @property
    def estimates(self) -> list[LogEvidence]:
        """Each pilot's own estimate of log Z."""
        return [each.log_evidence for each in self.pilots]

    @property
    def particles(self) -> FloatArray:
        """Particles of all populations at beta = 1, shape (populations, each, D)."""
        return np.concatenate([each.particles for each in self.pilots])

    @property
    def log_weight(self) -> FloatArray:
        """Log weight of each of those populations, shape (populations,)."""
        return np.concatenate([each.population_log_weight + _offset(each) for each in self.pilots])

    @property
    def gradients(self) -> int:
        """Gradient evaluations of all pilots, and before them."""
        return self.timed + sum(each.gradients for each in self.pilots)

    @property
    def infinite(self) -> int:
        """At how many of them the log density was +inf."""
        return sum(each.infinite for each in self.pilots)


def _offset(found: Pilot) -> float:
    """What a pilot's population weights are short of on the scale of log Z.

    That is their own mean's: if they spread so far that log Z is by how they spread, it says
    nothing about the weight that the particles of this pilot have beside another's.
    """
    return found.base.log_zeta - log_mean_weight(found.population_log_weight).value


def run_leg(
    density: LogDensity,
    bases: Sequence[GaussianBase],
    *,
    origin: str,
    most_seconds: float,
    seed: int,
    gradients: int = FAR,
    enough: Callable[[Leg], bool] | None = None,
) -> Leg:
    """Run a pilot from each of some bases, one after the other.

    Where the density is slow, they have fewer particles and then fewer rungs: a rough search is
    better than one that does not arrive.  A pilot that is late may take the time of the next ones.

    Parameters
    ----------
    density
        Log density of the target and its gradient, all its constants included.
    bases
        Bases of one kind, which share no draws.
    origin
        What they are, in words.
    most_seconds
        Seconds of wall time of all pilots together, after which they give up.
    seed
        Seed; each pilot's own is derived from it.
    gradients
        That a particle probably takes.
    enough
        Whether those pilots that have run are enough; by default all of them run.

    Raises
    ------
    DataError, SamplingError
        If the first pilot fails (see :func:`harness.path.pilot_of_density`), or would take many
        times as long as there is time.
    """
    dimension = bases[0].mean.size
    seconds = most_seconds / len(bases)
    *seeds, own_timing = derived_seeds(len(bases) + 1, seed, 5)
    some = bases[0].sample(np.random.default_rng(own_timing), _TIMED)
    took = seconds_a_point(density, some, times=_TIMES) + _beside(bases[0], own_timing)
    particle = gradients * max(1.0, math.sqrt(dimension / _FEW)) * took
    shortest = _PARTICLES[-1] * particle
    if shortest > _HOPELESS * most_seconds:
        raise SamplingError(
            f"a pilot in {dimension} dimensions would take some {shortest:.0f} s, and there are "
            f"{most_seconds:.0f} s for it"
        )
    wanted = _particles(seconds / particle)
    each = max(wanted // POPULATIONS, -(-fewest_particles(dimension) // POPULATIONS))
    settings = PilotSettings(
        particles=each * POPULATIONS,
        populations=POPULATIONS,
        moves=_MOVES,
        most_moves=_MOST_MOVES,
        leapfrog_steps=_LEAPFROG_STEPS,
    )
    pilots: list[Pilot] = []
    left = most_seconds
    for base, own in zip(bases, seeds, strict=True):
        began = time.monotonic()
        try:
            timed = replace(settings, in_seconds=min(seconds, left), most_seconds=left)
            pilots.append(pilot_of_density(density, base, settings=timed, seed=own))
        except (DataError, SamplingError):
            if not pilots:  # one pilot that finished is worth more than none
                raise
        else:
            if enough is not None and enough(Leg(origin, tuple(pilots))):
                break
            needed = time.monotonic() - began
            left -= needed
            if left < needed:  # the next pilot would not arrive
                break
    return Leg(origin, tuple(pilots), _TIMES * _TIMED)


def _beside(base: GaussianBase, seed: int) -> float:
    """Return the seconds that each gradient of a pilot takes besides the target's density."""
    points = base.sample(np.random.default_rng(seed), _PARTICLES[-1])
    took = seconds_a_point(base.log_density_and_gradient, points, times=_TIMES)
    return took + _SECONDS_A_COORDINATE * base.mean.size


def _particles(most: float) -> int:
    """Return the particles of a pilot, of which so many probably arrive in time."""
    return next((number for number in _PARTICLES if number <= most), _PARTICLES[-1])


def fitted_gaussian(points: FloatArray, *, widened: float) -> GaussianBase:
    """Fit a Gaussian base to draws on the unconstrained space, and widen it.

    Draws on the very edge of a constraint, of which a coordinate is infinite, are left out: chains
    that are stuck far from everything else end there.

    Parameters
    ----------
    points
        Shape (..., D).
    widened
        Factor by which its standard deviations exceed those of the draws.

    Raises
    ------
    DataError
        If there are fewer than D + 2 draws, or fewer whose coordinates are all finite.
    SamplingError
        If a coordinate does not move at all.
    """
    flat = points.reshape(-1, points.shape[-1])
    given = len(flat)
    flat = flat[np.all(np.isfinite(flat), axis=1)]
    if len(flat) < flat.shape[1] + 2:
        raise DataError(
            f"a Gaussian in {flat.shape[1]} dimensions needs {flat.shape[1] + 2} finite draws or "
            f"more; got {len(flat)} among {given}"
        )
    covariance = np.atleast_2d(np.cov(flat, rowvar=False))
    spread = np.diag(covariance)
    if not np.all(spread > 0):
        raise SamplingError("a Gaussian cannot be fitted to draws that do not move")
    covariance = covariance + np.diag(_RIDGE * spread)
    return gaussian_base(flat.mean(axis=0), widened**2 * 0.5 * (covariance + covariance.T))


def fitted_gaussians(points: FloatArray, widths: Iterable[float]) -> list[GaussianBase]:
    """Return such Gaussians of several widths."""
    return [fitted_gaussian(points, widened=width) for width in widths]
