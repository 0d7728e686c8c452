"""Compare NUTS's draws with those of other methods, in one call of :mod:`harness.user.auto`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from harness.arrays import FloatArray
from harness.diagnosis import Finding
from harness.errors import FAILURES, DataError
from harness.evidence import NEGLIGIBLE_AT_MOST, LogEvidence
from harness.fit import Fit
from harness.user.compare import (
    Comparison,
    Population,
    Region,
    compare,
    parameters_of,
    unconstrained,
)
from harness.user.confirm import nuts_stays
from harness.user.judge import missed_by_tempered
from harness.user.mode_findings import right_by_masses
from harness.user.modes import fewest_effective
from harness.user.one_copy import InOneCopy, density_of
from harness.user.result import UserFit
from harness.user.scouted import Scouted
from harness.user.steps import Steps
from harness.user.stuck import about_low, about_stuck, share_at_most, stuck_chains


class AgainstNuts:
    """Compares NUTS with the search, and with each fit that may take its place.

    Parameters
    ----------
    steps
        Of this call.
    """

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._said_stuck = False

    def population(
        self,
        draws: Mapping[str, FloatArray],
        other: Population,
        log_z: LogEvidence | None,
        scouted: Scouted,
    ) -> tuple[Comparison, list[Finding]]:
        """Compare NUTS with other draws, which do not miss a region if it has no probability.

        Parameters
        ----------
        draws
            NUTS's, by parameter.
        other
            What they are compared with.
        log_z
            Log Z by the others' method; None if it tells none.
        scouted
            What the pilots found.

        Returns
        -------
        Comparison, list
            The comparison, and what is new about chains that are stuck.
        """
        compared = compare(draws, other)
        if compared.missed_by_other is None or log_z is None or scouted.constant is None:
            return compared, []
        stuck = stuck_chains(self._steps.program.model, draws, log_z.plus(scouted.constant))
        if stuck is None:
            return compared, []
        chains = len(next(iter(draws.values())))
        counts = [each for each in range(chains) if each not in stuck.chains]
        rest = {name: each[counts] for name, each in draws.items()}
        missed = compare(rest, other).missed_by_other if counts else None
        told = [] if self._said_stuck else [about_stuck(stuck, chains)]
        self._said_stuck = True
        return replace(compared, missed_by_other=missed), told

    def fit(self, plain: Fit, fit: Fit, scouted: Scouted) -> tuple[Comparison, list[Finding]]:
        """Compare NUTS's draws with those of a tempered fit, as :meth:`population` does."""
        try:
            log_z = fit.log_evidence
        except DataError:  # a fit without one
            log_z = None
        return self.population(parameters_of(plain), as_population(fit), log_z, scouted)

    def without_low(
        self, compared: Comparison, scouted: Scouted, in_one_copy: InOneCopy | None
    ) -> tuple[Comparison, list[Finding]]:
        """Leave out a region that NUTS missed if hardly any probability can be there.

        The search's particles may have ended in a mode far below those that NUTS is in, as where a
        component of a mixture stands for two clusters.  How high the density is at them, and how
        far they spread, tells what that mode has at most.

        Parameters
        ----------
        compared
            NUTS against the search.
        scouted
            What the pilots found.
        in_one_copy
            The copy of the posterior that NUTS's draws were spread from, if they were.
        """
        region, search, total = compared.missed_by_nuts, scouted.search, scouted.by_bridge
        if region is None or search is None or total is None:
            return compared, []
        model = self._steps.program.model
        held = region.holds(search.values)
        inside = {name: each[held][:, None] for name, each in search.values.items()}
        try:
            points = unconstrained(inside, 2, density_of(model))[:, 0]
            share = share_at_most(model, points, total, in_one_copy)
        except FAILURES:  # it counts then
            return compared, []
        if share >= NEGLIGIBLE_AT_MOST:
            return compared, []
        return replace(compared, missed_by_nuts=None), [about_low(region, share)]

    def stays(self, region: Region | None, seen: Population) -> bool:
        """Whether NUTS stays in a region that it missed, if there is one, when it starts there."""
        if region is None:
            return False
        with self._steps.clock.step("NUTS in what it missed", "confirm"):
            return nuts_stays(self._steps.program.model, region, seen, self._steps.seed)

    def missed(self, compared: Comparison, scouted: Scouted, result: UserFit) -> Finding | None:
        """Report the region that NUTS has visited and a tempered run has missed, if there is one.

        Where chains of NUTS are stuck, their shares of draws tell nothing; the masses of the modes
        that they are in do.
        """
        missed = missed_by_tempered(compared, scouted)
        if missed is None or not right_by_masses(self._steps.modes.added_to(result).modes):
            return missed
        return None


def as_population(fit: Fit) -> Population:
    """Return the draws of a tempered fit, each chain as a population."""
    chains = fit.posterior.sizes["chain"]
    return Population(parameters_of(fit), np.zeros(chains), fewest_effective(fit))
