"""Settings of a pilot, and its results: a ladder, starting points, and log Z along the path."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.evidence import LogEvidence
from harness.model.coordinates import Shapes
from harness.path.gaussian import GaussianBase
from harness.path.moments import weighted_base


@dataclass(frozen=True)
class PilotSettings:
    """Settings of a pilot.

    Attributes
    ----------
    particles
        Number of particles, shared evenly among the populations.
    populations
        Number of populations.  Each is resampled on its own, so that their estimates of Z are
        independent, except that they share the ladder and the step size, and that each moves with
        the metric of the others.  Their spread gives the error of log Z.
    conditional_ess
        Conditional effective sample size from one rung of the ladder to the next, as a share of
        the particles (Zhou et al. 2016, eq. 10); closer to 1 makes more rungs.
    moves
        Smallest number of HMC transitions at each rung.
    most_moves
        Largest number of HMC transitions at each rung.  They are repeated until the particles have
        moved away from their places at the rung's start, which shows as a correlation below 1/2 in
        every coordinate (as in Buchholz et al. 2021), or until the correlation no longer falls, as
        happens with separate modes.  The default, 0, always makes ``moves`` transitions.
    leapfrog_steps
        Leapfrog steps of each transition.
    most_rungs
        Number of rungs after which the pilot gives up.
    in_seconds
        Seconds of wall time in which it should arrive.  While it would not at its pace so far, it
        takes longer steps, with a conditional effective sample size of 1/2, and makes no more than
        ``moves`` transitions at a rung; nor does it at a rung that takes a tenth of the time.
    most_seconds
        Seconds of wall time after which it gives up, at the end of a move.
    """

    particles: int = 1024
    populations: int = 16
    conditional_ess: float = 0.9
    moves: int = 3
    most_moves: int = 0
    leapfrog_steps: int = 8
    most_rungs: int = 1000
    in_seconds: float = math.inf
    most_seconds: float = math.inf

    def __post_init__(self) -> None:
        for name in ("moves", "leapfrog_steps", "most_rungs"):
            if getattr(self, name) < 1:
                raise DataError(f"a pilot needs {name} of 1 or more; got {getattr(self, name)}")
        if self.populations < 4:
            raise DataError(
                f"a pilot's error comes from the spread of its populations: it needs 4 or more; "
                f"got {self.populations}"
            )
        if self.particles % self.populations or self.particles < 8 * self.populations:
            raise DataError(
                f"a pilot shares its particles evenly among {self.populations} populations, with 8 "
                f"or more in each; got {self.particles}"
            )
        if not min(self.in_seconds, self.most_seconds) > 0:
            raise DataError(
                f"a pilot needs more than 0 seconds; got {min(self.in_seconds, self.most_seconds)}"
            )
        if not 0 < self.conditional_ess < 1:
            raise DataError(f"conditional_ess must lie between 0 and 1; got {self.conditional_ess}")


@dataclass(frozen=True)
class Pilot:
    """The results of a pilot.

    Attributes
    ----------
    base
        The base that the path starts from, with the pilot's estimate of log Z as log zeta.
    inv_temp
        Ladder of inverse temperatures beta_k, ascending from 0 to 1, shape (K,).
    log_normaliser
        log Z(beta_k) of gamma_beta = (gamma / zeta)^beta b^(1 - beta) with this base and its
        zeta, shape (K,).  It is 0 at beta = 1, and at beta = 0 it is the log of the base's mass
        within the target's support.
    points
        Starting points: the particles at beta = 1 resampled to equal weights, in random order
        and in base coordinates, shape (particles, D).
    log_evidence
        Estimate of log Z; its standard error comes from the spread of the populations.
    particles
        The particles at beta = 1 by population, before they are resampled to ``points``, shape
        (populations, particles each, D).
    population_log_weight
        Log weight of each population's particles: its estimate of log Z up to a constant, shape
        (populations,).
    acceptance
        Mean acceptance rate of the moves at each rung after the first, shape (K - 1,).
    gradients
        Number of evaluations of the target's density and gradient.
    infinite
        At how many of them the log density was +inf, because a term overflowed there or the density
        has no upper bound.  These places count as outside the support.
    shapes
        Shape of each of the model's parameters, for starting values; None if the pilot was given a
        function.
    """

    base: GaussianBase
    inv_temp: FloatArray
    log_normaliser: FloatArray
    points: FloatArray
    log_evidence: LogEvidence
    particles: FloatArray
    population_log_weight: FloatArray
    acceptance: FloatArray
    gradients: int
    infinite: int = 0
    shapes: Shapes | None = None

    @property
    def refined_base(self) -> GaussianBase:
        """Gaussian with the mean and covariance of the particles at the target.

        Its log zeta is that of ``base``.  The ladder does not belong to a path that starts from it.

        Raises
        ------
        DataError
            If there are too few particles, or their weights are too uneven, for a covariance.
        """
        flat = self.particles.reshape(-1, self.particles.shape[2])
        log_weight = np.repeat(self.population_log_weight, self.particles.shape[1])
        return weighted_base(flat, log_weight, log_zeta=self.base.log_zeta)

    @property
    def log_g(self) -> tuple[tuple[float, float], ...]:
        """Knots (beta_k, -log Z(beta_k)) of a log g under which beta has an even marginal.

        On the discrete ladder the marginal is exactly even, up to the pilot's error.  With a log g
        that is linear between the knots it is nearly even.
        """
        return tuple(
            (float(beta), -float(log_z))
            for beta, log_z in zip(self.inv_temp, self.log_normaliser, strict=True)
        )

    @property
    def log_g_by_rung(self) -> tuple[tuple[float, float], ...]:
        """Knots of a log g under which beta is near each rung equally often.

        Rungs are close together where the tempered density changes quickly, mostly near the base.
        An even marginal of beta (:attr:`log_g`) puts few draws there.  But the weights of the base
        are large there, so log Z would depend on those few draws.
        """
        edge = np.concatenate([[0.0], (self.inv_temp[1:] + self.inv_temp[:-1]) / 2, [1.0]])
        log_density = -self.log_normaliser - np.log(np.diff(edge))
        return tuple(zip(self.inv_temp.tolist(), log_density.tolist(), strict=True))
