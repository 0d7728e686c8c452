"""The base, which is what a program leaves untempered, and whether it is normalised.

There are four verdicts.  ``normalised``: each element of each parameter has exactly one density,
whose name says that it integrates to 1 over the element's support, and there is an order in which
the densities can be multiplied; an element without a density lies between two numbers that are 1
apart.  ``halved``: the same, but the constraints of some parameters cut their densities exactly in
half, so that the integral is 1/2 for each of their elements.  ``improper``: an element has no
density and its constraint does not bound it on all sides, or the densities do not change if all
elements of a parameter move together.  ``unknown_constant``: everything else.  The base may be
proper, but the text does not show its integral.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from harness.temper.additions import Cell, Notes
from harness.temper.constraints import constraint_of
from harness.temper.elements import Box, Piece, told
from harness.temper.entries import Entry, Kept, entries, settled
from harness.temper.order import ordered
from harness.temper.ranges import may_cut
from harness.temper.supports import volume
from harness.temper.syntax import Syntax

BaseVerdict = Literal["normalised", "halved", "unknown_constant", "improper"]
"""What is known about the base's integral: it is 1, a power of 1/2, unknown, or infinite."""


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
    halved
        Parameters of which each element contributes 1/2 to the integral, which is their product.
    """

    verdict: BaseVerdict
    why: str
    flat: tuple[str, ...]
    uncovered: tuple[str, ...]
    halved: tuple[str, ...] = ()


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


class _Judge:
    def __init__(self, syntax: Syntax, notes: Notes, kept: tuple[Kept, ...]) -> None:
        self._syntax = syntax
        self._notes = notes
        self._entries = [each for some in kept for each in entries(notes, some)]
        self._settled = settled(self._entries)

    def base(self) -> Base:
        flat: list[str] = []
        uncovered: list[str] = []
        said = [each.problem for each in self._settled if each.problem is not None]
        problems: list[str] = []
        # Parameters without elements, such as a vector of length 0, need no density.
        names = [name for name in self._notes.wholes if self._notes.has_elements(name)]
        for name in names:
            missing, more = self._missing(name)
            problems += more
            if missing:
                uncovered.append(name)
                if not self._notes.declared.bounded(name):
                    flat += told(name, self._notes.whole(name), missing)
        moving = [name for name in names if self._moves(name, flat)]
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
        halves = tuple(dict.fromkeys(name for each in self._settled for name in each.halved))
        if halves:
            cut = f"the constraint cuts the density of each element of {', '.join(halves)} in half"
            return Base("halved", cut, (), tuple(uncovered), halves)
        return Base("normalised", why_not, (), tuple(uncovered))

    # Elements

    def _missing(self, name: str) -> tuple[list[Box], list[str]]:
        """Return the elements that nothing touches, and why the text does not tell all of them."""
        whole = self._notes.whole(name)
        parameter = self._notes.declared.parameters[name]
        touched = [p for each in self._settled for p in self._touched(each) if p.parameter == name]
        if not touched:
            if not self._notes.declared.bounded(name) or volume(parameter) == 1:
                return [whole], []
            return [whole], [f"{name}: no density, so that the volume of its support counts"]
        cells: list[Cell] | None = None
        if not constraint_of(parameter.transformation).together:
            cells = self._notes.cells(name, [each.box for each in touched])
        none = [each for each in cells or () if each.count == 0]
        missing = [each.box for each in none if each.certain]
        perhaps = told(name, whole, [each.box for each in none if not each.certain])
        if perhaps and volume(parameter) != 1:
            return missing, [f"{', '.join(perhaps)}: no density, if there are such elements"]
        dense = [
            piece.box
            for each in self._settled
            for piece in each.pieces or ()
            if piece.parameter == name
        ]
        counts = self._notes.cells(name, dense)
        if counts is None:
            return missing, [f"{name}: the text does not tell which elements have a density"]
        if any(each.count > 1 for each in counts):
            return missing, [f"{name}: an element has more than one density"]
        if any(each.count == 0 for each in counts) and volume(parameter) != 1:
            return missing, [f"{name}: not each element has one density"]
        return missing, []

    def _touched(self, entry: Entry) -> list[Piece]:
        """Elements that something in the base depends on, but for what stands behind bars."""
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

    def _again(self, entry: Entry) -> bool:
        """Whether another density is, or may be, of the same elements."""
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
        if not constraint_of(parameter.transformation).moving or name in flat:
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
