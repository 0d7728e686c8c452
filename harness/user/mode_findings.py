"""What the table of modes says of the final draws: modes they lack or have a wrong share of."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from harness.diagnosis import Finding, Severity
from harness.errors import one_line
from harness.modes import Mode, ModeTable
from harness.modes.table import MATTERS, NEGLIGIBLE
from harness.modes.words import CLIMBS, OTHER_NUTS, listed, method_name
from harness.user.weigh import OFF, OFF_ERRORS

_SHOWS = 2.0
"""Standard errors from which on a small probability is more than 0."""
_APART = 4.0
"""Standard errors by which copies' probabilities differ if the draws are wrong."""
_WEIGHED = 0.95
"""Share of NUTS's draws whose modes must be weighed before their masses overrule NUTS's shares."""
_MORE = "Give it more time (--budget) or more draws (--draws, --warmup), and compare with --method "

_TOLD_ALONE = 3
"""Modes that the draws lack and that do not matter, up to which each is told by itself."""
_MANY = 0.25
"""Probability of modes together, by the search, whose absence makes the draws wrong."""


def mode_findings(table: ModeTable, *, by_masses: bool = False) -> list[Finding]:
    """Return what the table of modes says about the final draws.

    Parameters
    ----------
    table
        The table.
    by_masses
        Whether the draws are weighted by masses of modes, which leave out what is in none of them.
    """
    unknown = [n for n in table.missing if _expected(table.modes[n - 1], table) is None]
    together = unknown if len(unknown) > 1 else []
    alone = {number: _lacking(number, table) for number in table.missing if number not in together}
    small = [number for number, each in alone.items() if each.severity == Severity.FINE]
    if len(small) > _TOLD_ALONE:
        alone = {number: each for number, each in alone.items() if number not in small}
    found = list(alone.values())
    if len(small) > _TOLD_ALONE:
        found.append(_lacking_small(small, table))
    if together:
        found.insert(0, _lacking_together(together, table))
    left = _left_out(table) if by_masses else _left(table)
    return [*found, *_off_masses(table), *_copies(table), *_unseen(table), *left]


def problems_of_modes(table: ModeTable | None) -> list[Finding]:
    """Return the problems among these findings: modes that matter and that the draws lack."""
    found = [] if table is None else mode_findings(table)
    return [each for each in found if each.severity == Severity.PROBLEM]


def lacks_small_modes(table: ModeTable | None) -> bool:
    """Whether the draws lack modes that are small but not negligible, and known by their masses."""
    return any(
        mode.local is not None for mode, _ in _lacking_modes(table, severity=Severity.WARNING)
    )


def unweighed_modes(table: ModeTable | None) -> bool:
    """Whether the draws lack modes whose probabilities are not known."""
    if table is None:
        return False
    return any(_expected(table.modes[number - 1], table) is None for number in table.missing)


def missed_by_nuts(table: ModeTable | None) -> list[Finding]:
    """Say which modes plain NUTS misses or has wrong shares of, if its draws are not the result.

    Parameters
    ----------
    table
        Of NUTS's draws.
    """
    lacking = _lacking_modes(table)
    if len(lacking) > _TOLD_ALONE:
        shares = ", ".join(told.partition(" ")[0] for _, told in lacking)
        told = [
            f"Plain NUTS misses {len(lacking)} modes that other methods or climbs saw: their "
            f"probabilities are about {shares}."
        ]
    else:
        told = [
            f"Plain NUTS misses a mode, which {_who(mode)} saw: its probability is about {share}."
            for mode, share in lacking
        ]
    off = _off_mass(table) if table is not None else ""
    if off:
        told.append(f"Plain NUTS moves too rarely between modes: {off}.")
    advice = "Use tempered draws and not those of plain NUTS."
    return [Finding(Severity.WARNING, sentence, advice) for sentence in told]


def search_saw(table: ModeTable | None) -> bool:
    """Whether the search has particles in every mode that matters and that the draws lack."""
    return all("search" in mode.seen_by for mode, _ in _lacking_modes(table))


def _lacking_modes(
    table: ModeTable | None, *, severity: Severity = Severity.PROBLEM
) -> list[tuple[Mode, str]]:
    """Return the modes whose lack is so severe, with their probabilities in words."""
    if table is None:
        return []
    return [
        (table.modes[number - 1], _told(number, table))
        for number in table.missing
        if _lacking(number, table).severity == severity
    ]


def no_modes(error: Exception) -> Finding:
    """Report that there is no table of modes, and why."""
    said = one_line(error).rstrip(".")
    return Finding(Severity.FINE, f"There is no table of modes: {said}.")


def _expected(mode: Mode, table: ModeTable) -> tuple[float, float, str] | None:
    """Return the probability of a mode that the draws lack, its error, and where it is from."""
    if mode.local is not None:
        return *mode.local, "by its mass"
    if mode.copy_of is not None:
        original = table.modes[mode.copy_of - 1]
        told = f"because it is a copy of mode {mode.copy_of}"
        return original.probability, original.error, told
    shares = [share for method, share in mode.seen_by.items() if method != CLIMBS]
    largest = max(shares, default=1.0)
    if largest < MATTERS:
        return largest, largest, "by the draws of the method that saw it"
    return None


def _told(number: int, table: ModeTable) -> str:
    """Return the probability of a mode that the draws lack in words; empty if it is not known."""
    expected = _expected(table.modes[number - 1], table)
    if expected is None:
        return ""
    share, error, why = expected
    return f"{share:.2g} ± {error:.1g} {why}"


def _who(mode: Mode) -> str:
    """Return the methods that saw a mode in words."""
    alone = {
        "nuts": "NUTS",
        OTHER_NUTS: "another run of NUTS",
        CLIMBS: "climbs from other starting points",
    }
    return listed(alone.get(each, f"the {method_name(each)}") for each in mode.seen_by)


def _lacking(number: int, table: ModeTable) -> Finding:
    """Report a mode that some method saw and the final draws lack."""
    mode, method = table.modes[number - 1], table.methods[0]
    if set(mode.seen_by) == {CLIMBS}:
        what = "Give it more time (--budget) with --method auto, which starts in this mode, too."
    else:
        other = "collapsed" if method == "parallel_tempering" else "parallel"
        what = f"{_MORE}{other}_tempering."
    missing = f"mode {number}, which {_who(mode)} saw"
    expected = _expected(mode, table)
    if expected is None:
        return Finding(
            Severity.WARNING,
            f"The draws lack {missing}; its probability is not known.",
            what,
        )
    share, error, _ = expected
    told = f"its probability is about {_told(number, table)}"
    # So improbable, for so few effective draws, that it is no wonder; or not known to be there.
    perhaps = share < min(_SHOWS * error, MATTERS)
    if share + 3 * error < NEGLIGIBLE or share < min(3 * mode.error, MATTERS) or perhaps:
        return Finding(Severity.FINE, f"The draws lack {missing}, and {told}.")
    severity = Severity.PROBLEM if share >= MATTERS else Severity.WARNING
    return Finding(severity, f"The draws lack {missing}, although {told}.", what)


def _lacking_small(numbers: list[int], table: ModeTable) -> Finding:
    """Report modes that the final draws lack and that do not matter one by one."""
    known = [_expected(table.modes[number - 1], table) for number in numbers]
    share = sum(each[0] for each in known if each is not None)
    told = (
        f"The draws lack {len(numbers)} small modes that other methods saw, with a probability of "
        f"about {share:.2g} in all."
    )
    few = 3 * max(table.modes[number - 1].error for number in numbers)
    if share < max(MATTERS, few):
        return Finding(Severity.FINE, told)
    return Finding(Severity.WARNING, told, f"{_MORE}parallel_tempering.")


def _lacking_together(numbers: list[int], table: ModeTable) -> Finding:
    """Report modes that the final draws lack and whose probabilities are not known."""
    seen = [table.modes[number - 1].seen_by for number in numbers]
    share = sum(each.get("search", 0.0) for each in seen)
    other = "collapsed" if table.methods[0] == "parallel_tempering" else "parallel"
    known = any("search" in each for each in seen)
    told = (
        f"together they have probability {share:.2f} by the search's particles"
        if known
        else "their probabilities are not known"
    )
    return Finding(
        Severity.PROBLEM if share >= _MANY else Severity.WARNING,
        f"The draws lack {len(numbers)} modes that other methods saw ({listed(numbers)} of the "
        f"table); {told}.",
        f"{_MORE}{other}_tempering.",
    )


def _unseen(table: ModeTable) -> Iterable[Finding]:
    """Report a mode that must be there by symmetry."""
    if table.unseen:
        yield Finding(
            Severity.WARNING,
            "A mode was not seen by any method: the density is the same with "
            f"{table.unseen}, so there is a copy of mode 1, as probable as mode 1 itself.",
            "If the order of the index means nothing, give it one (an ordered vector), or treat "
            "the copies as one: log Z may lack them.",
        )


def _left(table: ModeTable) -> Iterable[Finding]:
    """Report places that are no modes."""
    if table.left:
        places, them = _places(table.left), "it" if table.left == 1 else "them"
        yield Finding(
            Severity.FINE,
            f"NUTS that starts in {places} without draws of the result, where another method has "
            f"up to {table.left_share:.2g} of its own, leaves {them}: that is no mode.",
        )


def _left_out(table: ModeTable) -> Iterable[Finding]:
    """Report such places where draws are weighted by masses, if they are not negligible.

    Chains of a whole posterior pass through them, but runs in a mode end at its border.
    """
    if table.left_share < NEGLIGIBLE:
        yield from _left(table)
        return
    places, have = _places(table.left), "it has" if table.left == 1 else "they have"
    yield Finding(
        Severity.WARNING,
        f"The masses of modes, by which draws are weighted, leave out {places} that NUTS leaves. "
        f"Another method has up to {table.left_share:.2g} of its draws there, and log Z lacks what "
        f"{have}.",
        f"{_MORE}parallel_tempering.",
    )


def _places(count: int) -> str:
    return "a place" if count == 1 else f"{count} places"


def _off_mass(table: ModeTable) -> str:
    """Say which mode's share of the draws is farthest from its probability by its mass, if any."""
    told, most = "", OFF
    for number, mode in enumerate(table.modes, 1):
        if mode.probability == 0 or mode.local is None:
            continue
        share, error = mode.local
        off = abs(mode.probability - share)
        # Draws whose mode is only that of the nearest draw may be in any.
        if off > max(OFF_ERRORS * float(np.hypot(mode.error, error)) + table.unsure, most):
            most = off
            told = (
                f"mode {number} has a share of {mode.probability:.3f} ± {mode.error:.3f} of the "
                f"draws, although its probability is about {share:.2g} ± {error:.1g} by its mass"
            )
    return told


def right_by_masses(table: ModeTable | None) -> bool:
    """Whether draws have the right shares, by their masses, of the modes that NUTS is in.

    Parameters
    ----------
    table
        Of draws that are not NUTS's.
    """
    agreed = 0.0
    for mode in [] if table is None else table.modes:
        if mode.local is None:
            continue
        share, error = mode.local
        if mode.probability == 0:  # a chain may be stuck in a mode that hardly counts
            agreed += mode.seen_by.get("nuts", 0.0) if share + 3 * error < NEGLIGIBLE else 0.0
            continue
        # However rough the draws' own share may be.
        if abs(mode.probability - share) > max(_APART * error, OFF):
            return False
        agreed += mode.seen_by.get("nuts", 0.0)
    return agreed >= _WEIGHED


def _off_masses(table: ModeTable) -> Iterable[Finding]:
    """Report a mode in which a wrong share of the draws is."""
    told = _off_mass(table)
    if told:
        other = "collapsed" if table.methods[0] == "parallel_tempering" else "parallel"
        yield Finding(
            Severity.PROBLEM, f"{told[0].upper()}{told[1:]}.", f"{_MORE}{other}_tempering."
        )


def _copies(table: ModeTable) -> Iterable[Finding]:
    """Report modes that are copies of each other, and whether their probabilities agree."""
    for family in table.families().values():
        modes = [table.modes[number - 1] for number in family]
        told = f"modes {listed(family)} are copies of each other, {_differing(modes)}"
        mean = sum(each.probability for each in modes) / len(modes)
        worst = max(modes, key=lambda each: abs(each.probability - mean) / each.error)
        if abs(worst.probability - mean) > _APART * worst.error:
            shares = listed(f"{each.probability:.3f}" for each in modes)
            yield Finding(
                Severity.WARNING,
                "Probabilities of modes are less precise than they look: "
                f"{told}, so they have the same probability, but by the draws it is {shares}.",
                f"{_MORE}parallel_tempering.",
            )
        else:
            yield Finding(Severity.FINE, f"{told[0].upper()}{told[1:]}.")


def _differing(copies: Iterable[Mode]) -> str:
    """Say what is different in copies."""
    names = sorted({name for each in copies for name in each.permuted})
    others = sorted({each.otherwise for each in copies if each.otherwise})
    said = []
    if names:
        said.append(f"in which the index of {listed(names)} has another order (label switching)")
    said += [f"with {each}" for each in others]
    return " or ".join(said)
