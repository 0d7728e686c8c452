"""The tables of modes that one call makes: one for each result, each from what is known by then.

A table knows what the search and earlier climbs have found.  Where the masses of its modes are
known better than their shares of the draws, they weigh these; where they are not, short runs in
each mode tell what the shares should be.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from harness.diagnosis import Finding, forget, remember
from harness.engine.nuts import NutsSettings
from harness.evidence import LogEvidence
from harness.fit import Fit
from harness.modes import FoundModes, ModeTable
from harness.modes.table import NEGLIGIBLE
from harness.user.clock import Clock
from harness.user.compare import Population
from harness.user.faults import tolerate
from harness.user.in_modes import beside_masses
from harness.user.mode_findings import mode_findings, no_modes
from harness.user.modes import found_by_climbs, mode_table, still_elsewhere
from harness.user.one_copy import InOneCopy
from harness.user.other_modes import OtherMode, OtherModes, no_other_mode
from harness.user.program import UserProgram
from harness.user.result import UserFit
from harness.user.weigh import (
    Weighed,
    log_evidence_by_mass,
    weighed_by_mass,
    weighed_by_points,
    with_small_modes,
)

MODES_SHARE = 0.1
"""Share of the budget after which a table of modes is given up."""
_CHECK_SHARE = 0.1
"""Share of the budget for short runs that tell the masses of modes."""


@dataclass
class ModeTables:
    """What the tables of a call are made with, and what they have found.

    Attributes
    ----------
    program, clock, nuts, budget, seed
        Of this call.
    search
        What a search for further modes has found, as far as one has been made.
    by_bridge
        Log of the integral of the density by a bridge from the draws of plain NUTS; None if there
        is none.
    one_of_many
        Draws in one copy of the posterior, if there are too many copies to list the modes in each.
    other_nuts
        Runs of plain NUTS whose draws are not the result; but where they were counts.
    elsewhere
        Modes where climbs from other starting points ended and no method had draws, once the first
        table has been made.
    found
        The modes of the result that the last table was made of, in each of which NUTS can run;
        those of one copy if there are many.
    """

    program: UserProgram
    clock: Clock
    nuts: NutsSettings
    budget: float
    seed: int
    search: Population | None = None
    by_bridge: LogEvidence | None = None
    one_of_many: InOneCopy | None = None
    other_nuts: list[Fit] = field(default_factory=list)
    elsewhere: OtherModes | None = None
    found: FoundModes | None = None
    _are_of: tuple[Fit | None, ...] = ()
    _told: list[tuple[Fit, Sequence[Finding]]] = field(default_factory=list)
    """What tables have said of each fit: another one may number its modes otherwise."""

    def added_to(self, result: UserFit) -> UserFit:
        """Add a table, and what it says, to a result that has none yet; the draws may be weighed.

        Nothing is done where the program cannot be evaluated outside CmdStan.
        """
        if self.program.why_not_tempered is not None or self._have(result):
            return result
        self.made_of(result)
        self.found = None
        for fit, said in self._told:
            if fit is result.fit:
                forget(fit, said)
        before, began = self.elsewhere, self.clock.seconds.get("modes", 0.0)
        try:
            with self.clock.step("the table of modes", "modes"):
                found, elsewhere = self._made(result)
                self.elsewhere = elsewhere
                if isinstance(found, Exception):
                    left = still_elsewhere(
                        self.program.model, result.fit, elsewhere, self.one_of_many
                    )
                    self._tell(result.fit, [no_modes(found), *found_by_climbs(left)])
                    return result
        except Exception as error:  # a fault of ours must not cost the draws either
            tolerate(error, "The table of modes failed.")
            self._tell(result.fit, [no_modes(error)])
            return result
        table, told = found.table, []
        self.found = found
        weighed = self._weighed(result.fit, found)
        if weighed is not None:
            result = replace(result, fit=weighed.fit)
            self.made_of(result)
            table, told = weighed.table, [weighed.finding, *log_evidence_by_mass(weighed)]
        elif result.method != "nuts" and not weighed_by_points(found):
            table = self._beside_masses(found)
        climbs = 0 if elsewhere is before else elsewhere.gradients
        attrs = result.fit.tree.attrs
        attrs |= {  # each fit has what its own tables took
            "modes": table.as_json(),
            "gradients_modes": attrs.get("gradients_modes", 0) + table.gradients + climbs,
            "seconds_modes": attrs.get("seconds_modes", 0.0) + self.clock.seconds["modes"] - began,
        }
        known = {each.sentence for each in result.diagnosis}
        told += [
            *mode_findings(table, by_masses=weighed is not None),
            *self.about_climbs(),
            *with_small_modes(result.fit, table),
        ]
        self._tell(result.fit, [each for each in told if each.sentence not in known])
        return result

    def _tell(self, fit: Fit, said: Sequence[Finding]) -> None:
        """Keep what a table says of a fit."""
        remember(fit, said)
        self._told.append((fit, said))

    def about_climbs(self) -> list[Finding]:
        """Return what climbs from other starting points say, if there were any."""
        return [] if self.elsewhere is None else no_other_mode(self.elsewhere)

    def only_climbs_found(self) -> list[OtherMode]:
        """Return the modes of some weight where climbs ended and no method had draws."""
        return [] if self.elsewhere is None else self.elsewhere.that_matter()

    @property
    def others_are_negligible(self) -> bool:
        """Whether a mode that only climbs found makes all that the draws stand for negligible."""
        return self.elsewhere is not None and bool(self.elsewhere.that_matter(1 / NEGLIGIBLE))

    def made_of(self, result: UserFit) -> None:
        """Note that a result has its table."""
        self._are_of = _fits(result)

    def _have(self, result: UserFit) -> bool:
        fits = _fits(result)
        return len(self._are_of) == len(fits) and all(map(operator.is_, fits, self._are_of))

    def _made(self, result: UserFit) -> tuple[FoundModes | Exception, OtherModes]:
        """Make the table, or return why there is none, and where climbs ended."""
        return mode_table(
            self.program.model,
            result.fit,
            [each for each in (result.nuts, result.tempered) if each is not None],
            self.search,
            self.elsewhere,
            other_nuts=self.other_nuts,
            total=self.by_bridge if result.method == "nuts" else None,
            in_one_copy=self.one_of_many,
            most_seconds=MODES_SHARE * self.budget,
            seed=self.seed,
        )

    def _weighed(self, fit: Fit, found: FoundModes) -> Weighed | None:
        """Weigh a fit's modes by their masses; None if that is impossible or no better."""
        try:
            with self.clock.timed("modes"):
                return weighed_by_mass(
                    self.program.model,
                    fit,
                    found,
                    in_one_copy=self.one_of_many,
                    seed=self.seed,
                )
        except Exception as error:  # the draws and the table are there even so
            tolerate(error, "Modes could not be weighed.")
            return None

    def _beside_masses(self, found: FoundModes) -> ModeTable:
        """Return the table of modes with their masses by short runs in each, if these succeed."""
        try:
            with self.clock.timed("modes"):
                return beside_masses(
                    *(self.program.model, found, self.nuts),
                    in_one_copy=self.one_of_many,
                    most_seconds=_CHECK_SHARE * self.budget,
                    seed=self.seed,
                )
        except Exception as error:  # a fault of ours must not cost the table
            tolerate(error, "The masses of modes were not compared.")
            return found.table


def _fits(result: UserFit) -> tuple[Fit | None, ...]:
    return result.fit, result.nuts, result.tempered
