"""The base, which is what a program leaves untempered, and whether it is normalised.

There are three verdicts.  ``normalised``: each element of each parameter has exactly one density,
whose name says that it integrates to 1 over the element's support, and there is an order in which
the densities can be multiplied; an element without a density lies between two numbers that are 1
apart.  ``improper``: an element has no density and its constraint does not bound it on all sides,
or the densities do not change if all elements of a parameter move together.
``unknown_constant``: everything else.  The base may be proper, but the text does not show its
integral.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from harness.temper.additions import Addition, Branch, Notes
from harness.temper.elements import Box, Piece, told
from harness.temper.order import ordered
from harness.temper.ranges import may_cut
from harness.temper.supports import Truncation, may_fail, problem, truncation, volume
from harness.temper.syntax import Syntax
from harness.temper.text import as_text, statement_text
from harness.temper.tree import Node, is_container, tag

BaseVerdict = Literal["normalised", "unknown_constant", "improper"]
"""What is known about the base's integral: it is 1, it is unknown, or it is infinite."""


@dataclass(frozen=True)
class Base:
    """The base of a program.

    Attributes
    ----------
    verdict
        Whether it is normalised.
    why
        Why, in a few words.
    flat
        Elements that have no density and are not bounded on all sides, for example ``mu[2]``.
    uncovered
        Parameters with an element that has no density.
    """

    verdict: BaseVerdict
    why: str
    flat: tuple[str, ...]
    uncovered: tuple[str, ...]


@dataclass(frozen=True)
class Kept:
    """What one statement adds to the base."""

    node: Node
    additions: tuple[Addition, ...]


def base_of(syntax: Syntax, notes: Notes, kept: Iterable[Kept]) -> Base:
    """Judge the base of a program.

    Parameters
    ----------
    syntax
        The program.
    notes
        What it adds to its log density.
    kept
        The part of that which is not tempered.
    """
    return _Judge(syntax, notes, tuple(kept)).base()


@dataclass(frozen=True)
class _Entry:
    """A density in the base, or another term that is added to it."""

    additions: tuple[Addition, ...]
    pieces: tuple[Piece, ...] | None
    path: tuple[Branch, ...]
    problem: str | None


_TOGETHER = ("Covariance", "CholeskyCov", "SumToZero")
"""Unbounded constraints whose elements are not free one by one."""

_MOVING = ("Identity", "Offset", "Multiplier", "OffsetMultiplier", "Lower", "Upper", "Ordered")


class _Judge:
    def __init__(self, syntax: Syntax, notes: Notes, kept: tuple[Kept, ...]) -> None:
        self._syntax = syntax
        self._notes = notes
        self._entries = [each for some in kept for each in self._read(some)]
        self._settled = _settled(self._entries)

    def base(self) -> Base:
        flat: list[str] = []
        uncovered: list[str] = []
        said = [each.problem for each in self._settled if each.problem is not None]
        problems: list[str] = []
        for name in self._notes.wholes:
            missing, more = self._missing(name)
            problems += more
            if missing:
                uncovered.append(name)
                if not self._notes.declared.bounded(name):
                    flat += told(name, self._notes.wholes[name], missing)
        moving = [name for name in self._notes.wholes if self._moves(name, flat)]
        if flat or moving:
            why = [f"{', '.join(flat)}: no statement that is not tempered gives a density"]
            if moving:
                why[len(flat) > 0 :] = [
                    f"{', '.join(moving)}: its density depends only on differences, and stays as "
                    "it is if all elements move together"
                ]
            return Base("improper", "; ".join(why), tuple(flat), tuple(uncovered))
        problems = (said or problems) + self._elsewhere()
        if problems:
            shown = "; ".join(dict.fromkeys(problems[:_SHOWN]))
            return Base("unknown_constant", shown, (), tuple(uncovered))
        why_not = "each parameter has one density that is normalised over its support"
        return Base("normalised", why_not, (), tuple(uncovered))

    # What statements add

    def _read(self, kept: Kept) -> list[_Entry]:
        """Return the densities of a statement, with the masses that they are divided by."""
        entries: list[_Entry] = []
        cut: dict[int, Truncation] = {}
        additions: list[Addition] = []
        for each in kept.additions:
            before = additions[-1] if additions else None
            mass = None if before is None else _mass(before, each, cut.get(id(before)))
            if before is not None and mass is not None:
                cut[id(before)] = mass
            else:
                additions.append(each)
        for each in additions:
            pieces = each.pieces()
            why = self._problem(each, pieces, cut.get(id(each)))
            if why is not None:
                line = self._syntax.line(kept.node)
                why = f"line {line.number}, `{statement_text(kept.node)}`: {why}"
            if why is not None or each.sign != "+":
                pieces = pieces if each.sign == "+" else None
            entries.append(_Entry((each,), pieces, each.context.path, why))
        return entries

    def _problem(
        self, addition: Addition, pieces: tuple[Piece, ...] | None, cut: Truncation | None
    ) -> str | None:
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
            return "the text does not tell which elements it is given to"
        raw = addition.value.itself or ()
        if any(each.over(addition.context.loops)[1] for each in raw):
            return "given to the same elements more than once"
        used = cut or truncation(density)
        if addition.called and used != Truncation():
            return "cut in a function"
        negative = may_fail(density, self._notes.declared.parameters)
        if negative is not None and not addition.called:
            return f"{density.family} rejects a negative {negative}"
        for each in pieces:
            parameter = self._notes.declared.parameters[each.parameter]
            whole = self._notes.wholes[each.parameter]
            found = problem(density, each, whole, parameter, used)
            if found is not None:
                return found
        return None

    # Elements

    def _missing(self, name: str) -> tuple[list[Box], list[str]]:
        """Return the elements that nothing touches, and why the text does not tell all of them."""
        whole = self._notes.wholes[name]
        parameter = self._notes.declared.parameters[name]
        touched = [p for each in self._settled for p in self._touched(each) if p.parameter == name]
        if not touched:
            size = volume(parameter)
            if not self._notes.declared.bounded(name) or size == 1:
                return [whole], []
            return [whole], [f"{name}: no density, so that the volume of its support counts"]
        dense = [
            piece.box
            for each in self._settled
            for piece in each.pieces or ()
            if piece.parameter == name
        ]
        unknown = f"{name}: the text does not tell which elements have a density"
        if tag(parameter.transformation) in _TOGETHER:
            cells = None
        else:
            cells = self._notes.cells(name, [each.box for each in touched])
        missing = [cell for cell, count in cells or () if count == 0]
        numbers = self._notes.cells(name, dense)
        if numbers is None:
            return missing, [unknown]
        several = any(count > 1 for _, count in numbers)
        some = any(count == 0 for _, count in numbers)
        if several:
            return missing, [f"{name}: an element has more than one density"]
        if some and volume(parameter) != 1:
            return missing, [f"{name}: not each element has one density"]
        return missing, []

    def _touched(self, entry: _Entry) -> list[Piece]:
        """Return elements that the base depends on, except those that only stand behind bars."""
        found: list[Piece] = []
        for each in entry.additions:
            found += [p.over(each.context.loops)[0] for p in each.context.value.touched]
            if entry.pieces is not None:
                found += entry.pieces
                if not self._again(entry):
                    continue
            found += each.touched()
            density = each.density
            of_data = density is not None and not each.value.touched
            if density is None or density.cumulative or of_data or entry.pieces is not None:
                behind = each.given.touched | each.value.given | each.given.given
                if density is not None or each.value.data:
                    found += [p.over(each.context.loops)[0] for p in behind]
        return found

    def _again(self, entry: _Entry) -> bool:
        """Whether another density is, or may be, one of the same elements."""
        return any(
            not mine.disjoint(theirs)
            for other in self._settled
            if other is not entry
            for theirs in other.pieces or ()
            for mine in entry.pieces or ()
        )

    def _moves(self, name: str, flat: Sequence[str]) -> bool:
        """Whether the base does not change if 1 is added to all elements of a parameter."""
        parameter = self._notes.declared.parameters[name]
        if tag(parameter.transformation) not in _MOVING or name in flat:
            return False
        depends = False
        for entry in self._entries:
            for each in entry.additions:
                around = each.context.value
                behind = {p.parameter for p in each.given.touched | each.value.given}
                if any(p.parameter == name for p in around.touched):
                    return False
                if name in behind and (entry.pieces is None or self._again(entry)):
                    return False
                if name in each.value.parameters:
                    depends = True
                    if each.value.slope(name) != 0:
                        return False
        return depends

    # The whole

    def _elsewhere(self) -> list[str]:
        """Return reasons that do not concern a single statement or parameter."""
        found = []
        additions = [each for entry in self._entries for each in entry.additions]
        if not ordered(additions, self._notes):
            found.append("densities depend on each other in a circle")
        for node in self._notes.rejects:
            found.append(f"line {self._syntax.line(node).number}: it may reject points")
        for name in may_cut(self._syntax):
            found.append(f"{name}: its constraint may cut off a part of the parameters' space")
        return found


_SHOWN = 2


def _mass(density: Addition, mass: Addition, cut: Truncation | None) -> Truncation | None:
    """Return the ends that a term cuts the density before it to, or None."""
    one, other = density.density, mass.density
    if one is None or other is None or cut is not None or one.cumulative or not other.cumulative:
        return None
    if tag(one.truncation) != "NoTruncate" or one.family != other.family or mass.sign != "-":
        return None
    same = list(map(as_text, one.args[1:])) == list(map(as_text, other.args[1:]))
    if not same or other.factor != 1 or any(map(is_container, (*one.args, *other.args))):
        return None
    at = other.args[0]
    return Truncation(low=at) if other.name.endswith("_lccdf") else Truncation(high=at)


def _settled(entries: Sequence[_Entry]) -> list[_Entry]:
    """Make one entry of those in two branches that are densities of the same elements."""
    settled = list(entries)
    while True:
        inner = max((each.path for each in settled), key=len, default=())
        if not inner:
            return settled
        prefix, condition = inner[:-1], inner[-1][0]
        here = [
            e for e in settled if e.path and (e.path[:-1], e.path[-1][0]) == (prefix, condition)
        ]
        settled = [e for e in settled if all(e is not each for each in here)]
        yes, no = ([e for e in here if e.path[-1][1] == number] for number in (0, 1))
        same = len(yes) + len(no) == len(here) and _elements(yes) == _elements(no) is not None
        why = None if same else "something is added under a condition only"
        if same:
            why = next((e.problem for e in here if e.problem), None)
        settled += [
            replace(e, path=prefix, problem=e.problem or why) for e in (yes if same else here)
        ]


def _elements(entries: Sequence[_Entry]) -> Counter[Piece] | None:
    """Return what entries are densities of; None if one is of anything else."""
    if not all(each.pieces for each in entries):
        return None
    return Counter(replace(piece, open=None) for each in entries for piece in each.pieces or ())
