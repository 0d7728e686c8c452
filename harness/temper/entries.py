"""What is left of a program, statement by statement: densities of elements, and all else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from harness.temper.additions import Addition, Branch, Notes
from harness.temper.elements import Piece
from harness.temper.sums import one_distribution
from harness.temper.supports import BETWEEN, Truncation, halved, may_fail, problem, truncation
from harness.temper.tree import is_container, tag


@dataclass(frozen=True)
class Kept:
    """What one statement, or some terms of it, add to the base; where it is, and its text."""

    where: str
    additions: tuple[Addition, ...]


@dataclass(frozen=True)
class Entry:
    """A density in the base, or something else that is added to it.

    Attributes
    ----------
    additions
        What is added.
    pieces
        Elements of parameters that it is a density of; None if it is of anything else.
    path
        Branches of the program that it is in.
    problem
        Why the integral of their density is not known; None if it is.
    halved
        Parameters of which each element's density integrates to 1/2 instead of 1, because their
        constraint cuts it in half.
    """

    additions: tuple[Addition, ...]
    pieces: tuple[Piece, ...] | None
    path: tuple[Branch, ...]
    problem: str | None
    halved: tuple[str, ...] = ()


def entries(notes: Notes, kept: Kept) -> list[Entry]:
    """Return the densities of a statement, with the masses that they are divided by."""
    found: list[Entry] = []
    cut: dict[int, Truncation] = {}
    additions: list[Addition] = []
    for each in kept.additions:
        before = additions[-1] if additions else None
        mass = None if before is None else _mass(before, each)
        if before is not None and mass is not None and id(before) not in cut:
            cut[id(before)] = mass
        else:
            additions.append(each)
    for each in additions:
        pieces = each.pieces()
        why = _problem(notes, each, pieces, cut.get(id(each)))
        if why is not None:
            why = f"{kept.where}: {why}"
        halves = () if why else _halved(notes, each, pieces or (), cut.get(id(each)))
        if each.sign != "+":
            pieces = None
        found.append(Entry((each,), pieces, each.context.path, why, halves))
    return found


def _problem(
    notes: Notes, addition: Addition, pieces: tuple[Piece, ...] | None, cut: Truncation | None
) -> str | None:
    """Say why an addition is not a density of elements that is normalised, or None if it is."""
    density = addition.density
    if addition.jacobian:
        return "a change of variables"
    if density is None or density.cumulative:
        return "not a density that is known by name"
    if density.own:
        return "a density of the program's own"
    if addition.sign != "+" or density.factor != 1:
        return "a multiple of a density"
    if pieces is None:
        return "not a density of a parameter as it is declared"
    if not all(each.known for each in pieces):
        return "the text does not tell of which elements"
    raw = addition.value.itself or ()
    if any(each.over(addition.context.loops)[1] for each in raw):
        return "given to the same elements more than once"
    used = cut or truncation(density)
    if addition.called and (used != Truncation() or density.family in BETWEEN):
        return "its ends are told in a function"
    negative = may_fail(density, notes.declared.parameters)
    if negative is not None and not addition.called:
        return f"{density.family} rejects a negative {negative}"
    for each in pieces:
        parameter = notes.declared.parameters[each.parameter]
        whole = notes.wholes[each.parameter]
        why = problem(density, each, whole, parameter, used)
        if why is not None:
            return why
    return None


def _halved(
    notes: Notes, addition: Addition, pieces: tuple[Piece, ...], cut: Truncation | None
) -> tuple[str, ...]:
    """Return the parameters whose constraint cuts a density that is known in half."""
    density = addition.density
    if density is None:
        return ()
    used = cut or truncation(density)
    known = notes.declared.parameters
    return tuple(
        name
        for each in pieces
        for name in [each.parameter]
        if halved(density, each, notes.wholes[name], known[name], used)
    )


def _mass(density: Addition, mass: Addition) -> Truncation | None:
    """Return the ends that a term cuts the density before it to, or None."""
    one, other = density.density, mass.density
    if one is None or other is None or one.cumulative or not other.cumulative:
        return None
    cut = tag(one.truncation) != "NoTruncate"
    if cut or mass.sign != "-" or other.factor != 1 or not one_distribution(one, other):
        return None
    if any(map(is_container, (*one.args, *other.args))):
        return None
    at = other.args[0]
    return Truncation(low=at) if other.name.endswith("_lccdf") else Truncation(high=at)


def settled(entries: Sequence[Entry]) -> list[Entry]:
    """Make one entry of those in two branches that are densities of the same elements.

    What is in one branch alone is added under a condition.
    """
    left = list(entries)
    while True:
        inner = max((each.path for each in left), key=len, default=())
        if not inner:
            return left
        prefix, condition = inner[:-1], inner[-1][0]
        here = [e for e in left if e.path and (e.path[:-1], e.path[-1][0]) == (prefix, condition)]
        left = [e for e in left if all(e is not each for each in here)]
        yes, no = ([e for e in here if e.path[-1][1] == number] for number in (0, 1))
        same = len(yes) + len(no) == len(here) and _elements(yes) == _elements(no) is not None
        same = same and _all_halved(yes) == _all_halved(no)
        why = None if same else "something is added under a condition alone"
        if same:
            why = next((e.problem for e in here if e.problem), None)
        left += [replace(e, path=prefix, problem=e.problem or why) for e in (yes if same else here)]


def _all_halved(entries: Sequence[Entry]) -> Counter[str]:
    return Counter(name for each in entries for name in each.halved)


def _elements(entries: Sequence[Entry]) -> Counter[Piece] | None:
    """Return what entries are densities of; None if one is of anything else."""
    if not all(each.pieces for each in entries):
        return None
    return Counter(replace(piece, open=None) for each in entries for piece in each.pieces or ())
