"""The pilot: a short run of adaptive tempered SMC that explores the path before a long run.

It provides a ladder of inverse temperatures, log Z along the ladder (and so a g that makes the
marginal of the inverse temperature even), a refined base, starting points, and an estimate of log Z
with its error.

References
----------
Del Moral, P., Doucet, A. and Jasra, A. (2006). Sequential Monte Carlo samplers. Journal of the
Royal Statistical Society B 68, 411-436.

Zhou, Y., Johansen, A. M. and Aston, J. A. D. (2016). Toward automatic model comparison: an
adaptive sequential Monte Carlo approach. Journal of Computational and Graphical Statistics 25,
701-726.

Buchholz, A., Chopin, N. and Jacob, P. E. (2021). Adaptive tuning of Hamiltonian Monte Carlo within
sequential Monte Carlo. Bayesian Analysis 16, 745-771.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray, LogDensity, values_of
from harness.errors import DataError, SamplingError
from harness.evidence import (
    LogEvidence,
    LogMass,
    log_base_mass,
    log_mean_weight,
    normalised_weights,
    resample,
)
from harness.model import Model
from harness.model.coordinates import Shapes
from harness.model.numpy_density import target_density
from harness.path.gaussian import GaussianBase
from harness.path.moments import weighted_base
from harness.path.moves import MOST_DENSE, HmcMoves
from harness.path.slices import slice_along_differences

_LEAST_OVERLAP = 1e-3
_BISECTIONS = 60
_SMALLEST_STEP = 1e-300
_HURRIED = 0.5
"""Conditional effective sample size of a pilot that would be late: its steps are 2.6 times as long
as those with 0.9."""
_PACE, _PACE_SHARE, _LATE = 4, 0.2, 1.25
"""Rungs that show a pilot's pace, or share of the time that does where a rung takes long, and
multiple of the time from which it counts as late: what else the machine does for a moment should
change nothing."""
_RUNG_SHARE = 0.1
"""Share of the time after which a rung makes no more moves than it has to."""
_CORRELATION = 0.5
"""Correlation with their places at the start of a rung below which particles have moved enough."""
_FEWEST = 100
"""Particles that tell variances within 14 per cent."""
_PATIENCE, _FALLS = 4, 0.02
"""Further moves are worth making if the correlation falls by this much within this many moves."""


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


def pilot(
    model: Model, base: GaussianBase, *, settings: PilotSettings | None = None, seed: int
) -> Pilot:
    """Run a pilot from a Gaussian base to a model's target.

    Parameters
    ----------
    model
        The model.
    base
        Where the path starts, in base coordinates.
    settings
        Settings; the defaults if not given.
    seed
        Seed.  The same seed gives the same pilot.

    Raises
    ------
    ToolchainError
        If the model's density needs its Stan program, and there is neither the optional package
        stanli nor a C++ compiler to evaluate it.
    DataError, SamplingError
        For the same reasons as in :func:`pilot_of_density`.
    """
    settings = settings or PilotSettings()
    _refuse(base, settings, model.dimension, model.name)
    density = target_density(model)
    found = pilot_of_density(density, base, settings=settings, seed=seed)
    return replace(found, shapes=density.shapes)


def pilot_of_density(
    log_density: LogDensity,
    base: GaussianBase,
    *,
    settings: PilotSettings | None = None,
    seed: int,
) -> Pilot:
    """Run a pilot from a Gaussian base to a target that is given by a function.

    Outside the target's support the path has no mass: the base is cut to the support and not
    renormalised, as in a program whose parameters are bounded.

    Parameters
    ----------
    log_density
        Log density of the target with all its constants, and its gradient; see
        :data:`harness.arrays.LogDensity`.
    base, settings, seed
        The same as for :func:`pilot`.

    Raises
    ------
    DataError
        If the density does not have the base's dimension, there are fewer particles than
        :func:`fewest_particles`, or hardly any of the base's mass is within the target's support.
    SamplingError
        If the ladder does not reach the target.
    """
    settings = settings or PilotSettings()
    _refuse(base, settings, _dimension(log_density, base), "the target")
    began = time.monotonic()
    rng = np.random.default_rng(seed)
    path = _Path(log_density, base)
    points, overlap = _start(path, settings, rng)
    count, each = settings.populations, settings.particles // settings.populations
    moves = HmcMoves(base.mean.size, settings.leapfrog_steps, count)
    ladder, acceptance = [0.0], []
    log_z = np.zeros((1, count))  # for each population, at each rung

    def refuse_to_be_late() -> None:
        if time.monotonic() - began > settings.most_seconds:
            raise SamplingError(
                f"the pilot has not finished in {settings.most_seconds:.3g} s (it is at "
                f"beta = {ladder[-1]:.3g} after {len(ladder) - 1} rungs)"
            )

    while ladder[-1] < 1:
        if len(ladder) > settings.most_rungs:
            raise SamplingError(
                f"the pilot has not reached the target in {settings.most_rungs} rungs (it is at "
                f"beta = {ladder[-1]:.3g}); start from a base nearer to the target"
            )
        log_ratio = path.log_ratio(points).reshape(count, each)
        share = normalised_weights(log_z[-1])  # for each population
        step = _next_step(log_ratio, share, 1 - ladder[-1], settings.conditional_ess)
        made, taken = len(ladder) - 1, time.monotonic() - began
        arrives = taken + _rungs_left(ladder[-1], step) * taken / max(made, 1)
        paced = made >= _PACE or taken > _PACE_SHARE * settings.in_seconds
        late = paced and arrives > _LATE * settings.in_seconds
        if late:
            hurried = min(_HURRIED, settings.conditional_ess)
            step = _next_step(log_ratio, share, 1 - ladder[-1], hurried)
        beta = 1.0 if step >= 1 - ladder[-1] else ladder[-1] + step
        if not beta > ladder[-1]:
            raise SamplingError(
                f"the pilot's ladder makes no progress at beta = {ladder[-1]:.3g}: the target is "
                f"too far from the base"
            )
        log_weight = (beta - ladder[-1]) * log_ratio
        rise = np.logaddexp.reduce(log_weight, axis=1) - np.log(each)
        log_z = np.vstack([log_z, log_z[-1] + rise])
        ladder.append(beta)
        chosen = resample(log_weight, rng) + each * np.arange(count)[:, None]
        points = points[chosen.ravel()]
        particle_share = np.repeat(normalised_weights(log_z[-1]) / each, each)
        moves.adapt_to(points, particle_share)
        until = began + taken + (0.0 if late else _RUNG_SHARE * settings.in_seconds)
        points, rate = _moved(
            moves, path.at(beta), points, settings, rng, refuse_to_be_late, until=until
        )
        acceptance.append(rate)
    return _summary(path, points, np.array(ladder), log_z, overlap, acceptance, rng)


class _Path:
    """The geometric path; it counts the evaluations of the target's density."""

    def __init__(self, log_density: LogDensity, base: GaussianBase) -> None:
        self._log_density, self._log_values = log_density, values_of(log_density)
        self.base = base
        self.gradients = self.infinite = 0

    def target(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the target's log density and gradient; NaN counts as outside the support."""
        self.gradients += len(points)
        value, gradient = self._log_density(points)
        value = self._usable(value)
        usable = np.isfinite(value)[:, None] & np.isfinite(gradient)
        return value, np.where(usable, gradient, 0.0)

    def values(self, points: FloatArray) -> FloatArray:
        """Return the target's log density, in less time than with its gradient."""
        self.gradients += len(points)
        return self._usable(self._log_values(points))

    def _usable(self, value: FloatArray) -> FloatArray:
        """Return log densities with -inf for NaN and for +inf, which is counted."""
        self.infinite += int(np.count_nonzero(value == np.inf))
        usable: FloatArray = np.where(value < np.inf, value, -np.inf)
        return usable

    def log_ratio(self, points: FloatArray) -> FloatArray:
        """Return log gamma minus log zeta and log b, the path's derivative in beta."""
        ratio: FloatArray = self.values(points) - self.base.log_zeta - self.base.log_density(points)
        return ratio

    def at(self, beta: float) -> _Rung:
        """Return the log density and gradient at an inverse temperature."""
        return _Rung(self, beta)


class _Rung:
    """The path's log density and gradient at one inverse temperature."""

    def __init__(self, path: _Path, beta: float) -> None:
        self._path, self._beta = path, beta

    def __call__(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        value, gradient = self._path.target(points)
        base, slope = self._path.base.log_density_and_gradient(points)
        tempered, inside = self._tempered(value, base)
        slope = np.where(inside[:, None], slope, 0.0)
        return tempered, self._beta * gradient + (1 - self._beta) * slope

    def values(self, points: FloatArray) -> FloatArray:
        """Return the log density without its gradient."""
        return self._tempered(self._path.values(points), self._path.base.log_density(points))[0]

    def _tempered(
        self, value: FloatArray, base: FloatArray
    ) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
        """Return the log density, by those of target and base, and whether the base has any."""
        inside = np.isfinite(base)  # elsewhere every density of the path is zero
        weighted = np.where(inside, (1 - self._beta) * np.where(inside, base, 0.0), -np.inf)
        return self._beta * (value - self._path.base.log_zeta) + weighted, inside


def _refuse(base: GaussianBase, settings: PilotSettings, dimension: int, name: str) -> None:
    if base.mean.size != dimension:
        raise DataError(f"the base has dimension {base.mean.size}, but {name} has {dimension}")
    fewest = fewest_particles(dimension)
    if settings.particles < fewest:
        raise DataError(
            f"a pilot in {dimension} dimensions needs {fewest} particles or more to estimate their "
            f"covariance; got {settings.particles}"
        )


def fewest_particles(dimension: int) -> int:
    """Return how many particles a pilot needs for the metric of its moves.

    They are fewer in more than :data:`~harness.path.moves.MOST_DENSE` dimensions, where only
    variances are estimated.
    """
    return 5 * dimension if dimension <= MOST_DENSE else _FEWEST


def _dimension(log_density: LogDensity, base: GaussianBase) -> int:
    """Return the dimension of a density, found by evaluating it at the base's mean."""
    try:
        value, gradient = log_density(base.mean[None, :])
    except ValueError as error:
        raise DataError(
            f"the log density does not take points of the base's dimension, {base.mean.size}: "
            f"{error}"
        ) from error
    if np.shape(value) != (1,) or np.ndim(gradient) != 2 or len(gradient) != 1:
        raise DataError(
            f"a log density takes points (n, D) and returns values (n,) and gradients (n, D); with "
            f"n = 1 it returned shapes {np.shape(value)} and {np.shape(gradient)}"
        )
    return int(np.shape(gradient)[1])


def _start(
    path: _Path, settings: PilotSettings, rng: np.random.Generator
) -> tuple[FloatArray, LogMass]:
    """Draw particles of the base within the target's support, and estimate its mass there."""
    accepted: list[FloatArray] = []
    reached: list[npt.NDArray[np.bool_]] = []
    found = tried = 0
    while found < settings.particles:
        proposed = path.base.sample(rng, settings.particles)
        inside = np.isfinite(path.values(proposed))
        tried += len(inside)
        found += int(inside.sum())
        accepted.append(proposed[inside])
        reached.append(inside)
        if found < _LEAST_OVERLAP * tried:
            raise DataError(
                "hardly any of the base lies within the target's support (its log density is "
                "not finite at almost every draw of the base); choose a base inside it"
            )
    overlap = log_base_mass(np.concatenate(reached)[None])
    return np.concatenate(accepted)[: settings.particles], overlap


def _next_step(log_ratio: FloatArray, share: FloatArray, most: float, ess: float) -> float:
    """Return the step in beta at which the conditional effective sample size falls to ``ess``.

    The size is taken as a share of the particles.  With W_i their normalised weights and w_i the
    increments, it is (sum W_i w_i)^2 / sum W_i w_i^2 (Zhou et al. 2016, eq. 10, divided by the
    number of particles).
    """
    with np.errstate(divide="ignore"):  # a population may have lost all its weight
        log_share = np.log(share / log_ratio.shape[1])[:, None]

    def enough(step: float) -> bool:
        first = np.logaddexp.reduce(log_share + step * log_ratio, axis=None)
        second = np.logaddexp.reduce(log_share + 2 * step * log_ratio, axis=None)
        return bool(2 * first - second >= np.log(ess))

    if enough(most):
        return most
    low, high = 0.0, most
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if enough(middle) else (low, middle)
    if low > 0:
        return low
    # Log likelihoods of -1e40, which vague priors produce, need a step that is equally small, so
    # the bisection continues in the logarithm of the step.
    log_low, log_high = np.log(_SMALLEST_STEP), np.log(high)
    for _ in range(_BISECTIONS):
        log_middle = 0.5 * (log_low + log_high)
        if enough(float(np.exp(log_middle))):
            log_low = log_middle
        else:
            log_high = log_middle
    return float(np.exp(log_low))


def _rungs_left(beta: float, step: float) -> float:
    """Return how many rungs there are to beta = 1 if inverse temperatures grow at one rate."""
    if beta == 0 or step >= 1 - beta:
        return 0.0
    return math.log(1 / beta) / math.log1p(step / beta)


def _moved(
    moves: HmcMoves,
    log_density: LogDensity,
    points: FloatArray,
    settings: PilotSettings,
    rng: np.random.Generator,
    before_each: Callable[[], None],
    *,
    until: float,
) -> tuple[FloatArray, float]:
    """Move particles as often as the settings ask; return them and the mean acceptance rate.

    No further moves begin after a time, but those that it makes in any case.
    """

    def has_time() -> bool:
        return time.monotonic() < until

    began = points
    rates: list[float] = []
    correlations: list[float] = []
    while len(rates) < settings.moves or (
        len(rates) < settings.most_moves and _still_leaving(correlations) and has_time()
    ):
        before_each()
        made = moves.move(log_density, points, rng)
        points = made.points
        rates.append(made.acceptance)
        correlations.append(_largest_correlation(began, points))
    rate = float(np.mean(rates))
    if settings.most_moves and correlations[-1] > _CORRELATION:
        correlations, guides = [], points
        while (
            len(correlations) < settings.most_moves
            and has_time()
            and (not correlations or _still_leaving(correlations))
        ):
            before_each()
            points = slice_along_differences(log_density, points, guides, settings.populations, rng)
            correlations.append(_largest_correlation(began, points))
    return points, rate


def _still_leaving(correlations: list[float]) -> bool:
    """Whether the correlation with the places at a rung's start is large and still falling."""
    if correlations[-1] <= _CORRELATION:
        return False
    return len(correlations) < _PATIENCE or correlations[-_PATIENCE] - correlations[-1] > _FALLS


def _largest_correlation(began: FloatArray, points: FloatArray) -> float:
    """Return the largest correlation over coordinates between two places of the same particles."""
    one, other = began - began.mean(axis=0), points - points.mean(axis=0)
    scale = np.sqrt(np.square(one).sum(axis=0) * np.square(other).sum(axis=0))
    return float(np.max((one * other).sum(axis=0) / np.where(scale > 0, scale, np.inf)))


def _summary(
    path: _Path,
    points: FloatArray,
    ladder: FloatArray,
    log_z: FloatArray,
    overlap: LogMass,
    acceptance: list[float],
    rng: np.random.Generator,
) -> Pilot:
    base, populations = path.base, log_z.shape[1]
    along = overlap.value + np.logaddexp.reduce(log_z, axis=1) - np.log(populations)
    # The populations average Z itself.
    rise = overlap.added_to(log_mean_weight(log_z[-1]))
    found = rise.plus(LogEvidence(base.log_zeta, 0.0))
    log_weight = np.repeat(log_z[-1], len(points) // populations)
    chosen = resample(log_weight[None, :], rng)[0]
    return Pilot(
        base=replace(base, log_zeta=float(along[-1] + base.log_zeta)),
        inv_temp=ladder,
        # A new zeta divides gamma_beta by (new / old)^beta.
        log_normaliser=along - ladder * along[-1],
        points=points[rng.permutation(chosen)],
        log_evidence=found,
        particles=points.reshape(populations, -1, points.shape[1]),
        population_log_weight=log_z[-1] - log_z[-1].max(),
        acceptance=np.array(acceptance),
        gradients=path.gradients,
        infinite=path.infinite,
    )
