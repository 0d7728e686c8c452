"""What pilots find out about a user's program: further modes, log Z, and a path to temper along.

Two kinds of pilot look at the posterior from different sides.  The *search* starts from the prior
or, if that is flat, from a wide Gaussian.  It may find modes that NUTS misses, and tempered runs
follow its path.  The *near* leg starts from a Gaussian that is fitted to draws of NUTS, so it needs
few rungs, however vague the prior is.  Both estimate log Z, so that a failure of one shows.  Bridge
sampling from the draws adds an estimate that is often the most precise, if no transition of NUTS
was divergent, and takes the near leg's place if that does not reach the posterior in time.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import NamedTuple

import numpy as np

from harness import evidence
from harness.arrays import Counted, FloatArray
from harness.diagnosis import R_HAT_WARNING
from harness.engine.patience import NeverReturned
from harness.errors import FAILURES, one_line
from harness.evidence import WHOLE_BASE, LogEvidence
from harness.model import Model
from harness.path import GaussianBase
from harness.path.normalisation import divisor, log_factor, written_integral
from harness.seeds import derived_seeds
from harness.user.bridged import bridged_in_time
from harness.user.compare import Population, compare
from harness.user.draw_prior import PRIOR_SHARE, DriftingPriorError, prior_draws
from harness.user.legs import CLOSE, NEAR, WIDER, Leg, fitted_gaussians, run_leg
from harness.user.one_copy import InOneCopy, density_of
from harness.user.prior import PriorDraws, over_prior, own_base, starts_from_prior
from harness.user.prior_constant import prior_constant
from harness.user.scouted import BRIDGE, FoundPath, Scouted
from harness.user.settled import settles
from harness.user.short import ShortRuns

BUDGET = 120.0
"""Seconds that the pilots of a program may take by default."""
_SEARCH, _SEARCH_ALONE, _OTHER = 0.35, 0.6, 0.2
"""Shares of it for the search, for the search of a run that needs its path (there is no fit of NUTS
to fall back to), and for each of the other legs."""
_ALL, _ALL_ALONE, _LEAST = 0.6, 0.9, 0.05
"""Shares of it for everything together, likewise, and that each other leg has in any case."""
_NO_BRIDGE = 1.05
"""R-hat of chains above which there is no bridge from their draws.  At less, but above what is
usual, it tells what log Z is at least."""
_FEWEST_EACH = 100
"""Effective draws of each chain, in its slowest coordinate, from which on R-hat may be chance."""
_NEAR = "a Gaussian fitted to draws of NUTS"


def scout_program(
    model: Model,
    *,
    draws: Mapping[str, FloatArray] | None = None,
    in_one_copy: InOneCopy | None = None,
    divergent: bool = True,
    budget: float = BUDGET,
    seed: int,
) -> Scouted:
    """Run both legs on a tempered program; a failure of a leg is recorded, not raised.

    Parameters
    ----------
    model
        From :func:`harness.temper.tempered_model`.
    draws
        NUTS's draws by parameter, shape (chains, draws, ...), for the near leg, which otherwise
        makes short runs of its own.
    in_one_copy
        If they are spread over copies of the posterior: the same draws in one copy, for the bridge.
    divergent
        Whether transitions of NUTS were divergent.  The draws may then lack the neck of a funnel,
        where a bridge would be too sure of itself.
    budget
        Seconds of wall time for all pilots.  A leg that exceeds its share gives up.
    seed
        Seed.  The same seed gives the same pilots unless a leg runs out of time, or has fewer
        particles because the density is slow.

    Raises
    ------
    ToolchainError
        If stanli is not installed, which evaluates the densities.
    """
    return _Scout(model, draws, in_one_copy, divergent, budget, seed).scouted()


class _Bridge(NamedTuple):
    """Log Z by bridge sampling from NUTS's draws."""

    log_evidence: LogEvidence
    agree: bool
    """Whether the chains agree as they should for an estimate."""


class _Scout:
    def __init__(
        self,
        model: Model,
        draws: Mapping[str, FloatArray] | None,
        in_one_copy: InOneCopy | None,
        divergent: bool,
        budget: float,
        seed: int,
    ) -> None:
        self._model, self._draws, self._budget = model, draws, budget
        self._in_one_copy, self._divergent = in_one_copy, divergent
        self._seeds = derived_seeds(6, seed, 2)
        self._use_new_density()
        self._began = time.perf_counter()
        self._gradients = 0
        self._drifts = False
        self._failures: dict[str, str] = {}
        self._estimates: dict[str, tuple[LogEvidence, ...]] = {}
        self._prior: PriorDraws | None = None
        self._settled = False

    def _use_new_density(self) -> None:
        """Take a density that has not been evaluated yet, at the beginning or if one is stuck."""
        self._density = density_of(self._model)
        self._short = ShortRuns(
            self._model,
            self._density,
            most_seconds=_OTHER * self._budget,
            seed=self._seeds[2],
            far_seed=self._seeds[5],
        )

    def scouted(self) -> Scouted:
        search: Leg | None = None
        path: FoundPath | None = None
        origin = own_base(self._model) if starts_from_prior(self._model) else "a wide Gaussian"
        try:
            prior = self._prior = self._drawn_prior()
            if prior is not None:
                positive = prior.share_with(self._density)
                self._gradients += prior.points.shape[0] * prior.points.shape[1]
                halves = (slice(None, None, 2), slice(1, None, 2))
                bases: Sequence[GaussianBase] = [prior.base(half) for half in halves]
            else:
                origin, positive = "a wide Gaussian", WHOLE_BASE
                bases = fitted_gaussians(self._short.wide, WIDER)
            with self._counted() as density:
                search = run_leg(
                    density,
                    bases,
                    origin=origin,
                    most_seconds=(_SEARCH_ALONE if self._draws is None else _SEARCH) * self._budget,
                    seed=self._seeds[1],
                    enough=self._settles,
                )
            self._remember(search)
            base = None if prior is not None else search.pilots[0].base
            if prior is not None or self._model.no_gaussian_base is None:
                path = FoundPath(search.pilots[0], base, positive, prior, self._log_factor)
        except FAILURES as error:
            self._failures["search"] = one_line(error).rstrip(".")
            if isinstance(error, NeverReturned):
                self._gradients += self._short.gradients
                self._use_new_density()
        base_integral = self._base_integral
        bridge = self._bridge  # before the near leg, which would leave it no time
        near = None if self._settled else self._near()
        at_least = None
        if bridge is not None:
            if bridge.agree and (near is None or not self._divergent):
                self._estimates[BRIDGE] = (bridge.log_evidence,)
            else:
                at_least = bridge.log_evidence
        chosen = self._values(search), self._values(near)
        return Scouted(
            search=chosen[0],
            near=chosen[1],
            path=path,
            origin=origin,
            estimates=self._estimates,
            constant=divisor(self._model, base_integral),
            prior=self._prior,
            failures=self._failures,
            gradients=self._gradients + self._short.gradients,
            seconds=time.perf_counter() - self._began,
            starts={} if search is None else self._starts(search),
            drifts=self._drifts,
            infinite=0.0 if search is None else search.infinite / search.gradients,
            base_integral=base_integral,
            at_least=at_least,
        )

    @property
    def _for_another(self) -> float:
        """Seconds for a leg that is not the search, or for a bridge."""
        most = _ALL_ALONE if self._draws is None else _ALL
        left = most * self._budget - (time.perf_counter() - self._began)
        return min(_OTHER * self._budget, max(left, _LEAST * self._budget))

    def _drawn_prior(self) -> PriorDraws | None:
        """Return draws of the prior; None if the search starts from a wide Gaussian."""
        if not starts_from_prior(self._model):
            return None
        try:
            drawn = prior_draws(
                self._model, self._seeds[0], most_seconds=PRIOR_SHARE * self._budget
            )
        except DriftingPriorError:
            self._drifts = True
            return None
        self._gradients += drawn.gradients
        return drawn

    def _settles(self, search: Leg) -> bool:
        """Whether the search's pilots agree with NUTS and with a bridge from its draws."""
        reliable = self._prior is None or self._prior.reliable
        if self._draws is None or self._divergent or not reliable:
            return False
        bridge, constant = self._bridge, divisor(self._model, self._base_integral)
        if bridge is None or not bridge.agree:
            return False
        found, estimates = self._values(search), self._log_z(search)
        if constant is None or found is None or not estimates:
            return False
        paths = evidence.combined_log_evidence(estimates).estimate
        whole = over_prior(bridge.log_evidence, constant)
        self._settled = settles(compare(self._draws, found), paths, whole)
        return self._settled

    @cached_property
    def _base_integral(self) -> LogEvidence | None:
        """Log of the integral of the prior as the program writes it; None if it is not known."""
        if self._prior is None:
            shown = self._model.own_base != "prior" or self._model.log_prior_integral is not None
            if shown or self._drifts:  # a prior that drifts is taken for an improper one
                return written_integral(self._model)
            self._failures["constant"] = self._failures.get("search", "it could not be drawn from")
            return None
        try:
            found = prior_constant(
                self._model,
                self._prior,
                most_seconds=self._for_another,
                seed=self._seeds[3],
            )
        except FAILURES as error:
            self._failures["constant"] = one_line(error).rstrip(".")
            return None
        self._gradients += found.gradients
        return found.log_integral

    def _near(self) -> Leg | None:
        try:
            points = self._short.near if self._draws is None else self._points
            with self._counted() as density:
                leg = run_leg(
                    density,
                    fitted_gaussians(points, NEAR),
                    origin=_NEAR,
                    most_seconds=self._for_another,
                    seed=self._seeds[4],
                    gradients=CLOSE,
                )
        except FAILURES as error:
            self._failures["near"] = one_line(error).rstrip(".")
            return None
        self._remember(leg)
        return leg

    @cached_property
    def _bridge(self) -> _Bridge | None:
        """Log Z by bridge sampling from NUTS's draws; None if that is not reliable.

        It takes a fraction of a leg's gradients and works in more dimensions.  But it needs chains
        that agree, and sees nothing of what lies around the draws.
        """
        if self._draws is None:
            return None
        chains = len(next(iter(self._draws.values())))
        in_one_copy = self._in_one_copy
        try:
            if in_one_copy is None:
                points = np.reshape(self._points, (chains, -1, self._density.dimension))
            else:
                points = in_one_copy.points
            r_hat = evidence.largest_r_hat(points)
            largest = _largest_r_hat_by_chance(points)
            if r_hat > max(largest, _NO_BRIDGE):
                self._failures["bridge"] = (
                    f"chains that disagree (R-hat {r_hat:.2f}) give no bridge"
                )
                return None
            bridges, evaluations = bridged_in_time(
                self._density if in_one_copy is None else in_one_copy,
                points,
                most_seconds=self._for_another,
                seed=self._seeds[4],
            )
        except FAILURES as error:
            self._failures["bridge"] = one_line(error).rstrip(".")
            return None
        self._gradients += evaluations
        if not bridges.sound:
            self._failures["bridge"] = (
                f"the bridge from NUTS's draws is not sound: {bridges.problems[0]}"
            )
            return None
        whole = bridges if in_one_copy is None else bridges.times(in_one_copy.copies)
        return _Bridge(whole.log_evidence, agree=not r_hat > largest)

    @contextmanager
    def _counted(self) -> Iterator[Counted]:
        """Lend the density to a leg, and count its gradients, also if the leg fails."""
        counted = Counted(self._density)
        try:
            yield counted
        finally:
            self._gradients += counted.gradients

    def _remember(self, leg: Leg) -> None:
        near = leg.origin == _NEAR
        self._estimates[leg.origin] = tuple(leg.estimates) if near else self._log_z(leg)

    @property
    def _log_factor(self) -> LogEvidence | None:
        """What is added to log ratios along the search's path."""
        prior, whole = self._prior is not None, self._model.tempered_whole
        integral = self._base_integral if whole or not prior else None  # it may take pilots
        return log_factor(self._model, integral, from_own_base=prior)

    def _log_z(self, search: Leg) -> tuple[LogEvidence, ...]:
        """Return the search's estimates of log Z; empty if these need an integral, not known."""
        factor = self._log_factor
        return () if factor is None else tuple(each.plus(factor) for each in search.estimates)

    @cached_property
    def _points(self) -> FloatArray:
        """The points (n, D) of NUTS's draws."""
        draws = self._draws or {}
        flat = {name: each.reshape(-1, *each.shape[2:]) for name, each in draws.items()}
        return self._density.unconstrain_draws(flat)

    def _values(self, leg: Leg | None) -> Population | None:
        if leg is None:
            return None
        particles = leg.particles
        flat = self._density.constrain(particles.reshape(-1, particles.shape[2]))
        shape = particles.shape[:2]
        values = {name: flat[name].reshape(*shape, *flat[name].shape[1:]) for name in flat}
        if self._in_one_copy is not None:  # NUTS's draws are spread over all copies, too
            values = self._in_one_copy.spread(values, self._seeds[0])
        return Population(values, leg.log_weight)

    def _starts(self, leg: Leg) -> dict[str, FloatArray]:
        """Return equally weighted particles of the search by parameter, pilot after pilot."""
        return self._density.constrain(np.concatenate([each.points for each in leg.pilots]))


def _largest_r_hat_by_chance(points: FloatArray) -> float:
    """Return the R-hat up to which chains (chains, draws, D) count as agreeing.

    Of a thousand coordinates, some have an R-hat above the usual limit by chance.
    """
    chains, draws, dimension = points.shape
    if dimension <= evidence.LOOKED_AT or draws < _FEWEST_EACH:
        return R_HAT_WARNING
    equal = np.zeros((chains, draws))
    some = points[..., evidence.slowest(points, equal)]
    each = min(evidence.effective_draws(one, equal) for one in np.moveaxis(some, -1, 0)) / chains
    if not each >= _FEWEST_EACH:
        return R_HAT_WARNING
    by_chance = evidence.r_hat_by_chance(chains, min(int(each), draws), dimension)
    return max(R_HAT_WARNING, by_chance)
