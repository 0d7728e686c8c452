"""What the statements of a program add to its log density, and their context."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.temper.declared import Declared
from harness.temper.elements import Affine, Box, Frame, Interval, Piece, counted
from harness.temper.flow import NOTHING, Value, union
from harness.temper.sums import Density
from harness.temper.tree import Node

Branch = tuple[int, int]
"""A branch of the program: its condition's identity and 0 or 1; -1 stands for what follows a
condition that may have left a loop or a function."""


@dataclass(frozen=True)
class Context:
    """The context of a statement.

    Attributes
    ----------
    value
        What decides whether the statement is executed, and how often.
    loops
        Its loops, outer ones first.
    path
        Its branches, outer ones first.
    """

    value: Value = NOTHING
    loops: tuple[Frame, ...] = ()
    path: tuple[Branch, ...] = ()

    def under(self, value: Value, branch: Branch) -> Context:
        """Return the context of a branch here."""
        return Context(union([self.value, value]), self.loops, (*self.path, branch))

    def turning(self, value: Value, frame: Frame) -> Context:
        """Return the context of a loop's body here."""
        return Context(union([self.value, value]), (*self.loops, frame), self.path)

    def within(self, other: Context) -> Context:
        """Return this context, of a function's statement, where the function is called."""
        value = union([other.value, self.value])
        return Context(value, other.loops + self.loops, other.path + self.path)


@dataclass(frozen=True)
class Addition:
    """A term that a statement adds to the log density.

    Attributes
    ----------
    node
        The expression, or what stands before the ``~`` of a statement.
    sign
        Its sign.
    value
        What it is made of; for a density, what is given the density.
    density
        Which density it is, if it is one.
    given
        For a density, what stands behind the bar.
    context
        Its context.
    called
        Whether it is in a function of the program's own.
    jacobian
        Whether it belongs to a change of variables.
    """

    node: Node
    sign: str
    value: Value
    density: Density | None
    given: Value
    context: Context
    called: bool = False
    jacobian: bool = False

    def pieces(self) -> tuple[Piece, ...] | None:
        """Elements of parameters that it is a density of; None if it is of anything else."""
        if self.density is None or self.density.cumulative or self.value.itself is None:
            return None
        return tuple(each.over(self.context.loops)[0] for each in self.value.itself)

    def touched(self) -> frozenset[Piece]:
        """Elements of parameters that flow into it, in all turns of its loops."""
        return frozenset(each.over(self.context.loops)[0] for each in self.value.touched)


@dataclass(frozen=True)
class Notes:
    """What a program adds to its log density, and what it declares.

    Attributes
    ----------
    declared
        What it declares.
    wholes
        All elements of each parameter.
    limits
        The most elements that each axis of a parameter can have, None where the text does not tell.
    numbers
        Whole numbers among data that are known.
    additions
        What each statement adds, by the identity of its node; terms of a sum in their order.
    rejects
        Statements that reject points, or call a function that may, if no data decide it.
    data_rejects
        Identities of the other statements that do so.  What data reject has no likelihood.
    bounds
        Data in the bounds of parameters, by the parameter's name.
    """

    declared: Declared
    wholes: dict[str, Box]
    limits: dict[str, tuple[int | None, ...]]
    numbers: Mapping[str, int]
    additions: dict[int, list[Addition]]
    rejects: tuple[Node, ...]
    data_rejects: frozenset[int]
    bounds: Mapping[str, frozenset[str]]

    def whole(self, name: str) -> Box:
        """All elements of a parameter, with numbers for data that are known."""
        return known(self.wholes[name], self.numbers)

    def has_elements(self, name: str) -> bool:
        """Whether a parameter may have elements, as far as data that are known tell."""
        lengths = [each.length for each in self.whole(name) if each is not None]
        return not any(n is not None and not n.symbol and n.offset <= 0 for n in lengths)

    def cells(self, name: str, boxes: Sequence[Box]) -> list[Cell] | None:
        """Cut a parameter into cells, and count the boxes that each is in.

        Returns None if the text does not tell.
        """
        whole = self.whole(name)
        found = counted(whole, [known(each, self.numbers) for each in boxes])
        if found is None:
            return None
        return [
            Cell(box, count, self._certain(box, whole))
            for box, count in found
            if not self._empty(box, self.limits[name])
        ]

    def _empty(self, box: Box, limits: tuple[int | None, ...]) -> bool:
        """Whether a box begins behind the most elements that its axis can have."""
        return any(
            each is not None and most is not None and not each.low.symbol and each.low.offset > most
            for each, most in zip(box, limits, strict=True)
        )

    def _certain(self, box: Box, whole: Box) -> bool:
        """Whether there are elements in a box, whatever the sizes are."""
        for each, axis in zip(box, whole, strict=True):
            if each is None or axis is None or each == axis:
                continue
            if each.low.symbol == each.high.symbol:
                if each.low.offset > each.high.offset:
                    return False
                continue
            # A size is not negative, and may be declared to be more than that.
            least = max(-axis.high.offset, self.declared.least.get(each.high.symbol, -(10**9)))
            if each.low.symbol or each.low.offset > least + each.high.offset:
                return False
        return True


@dataclass(frozen=True)
class Cell:
    """Elements of a parameter that as many boxes hold; whether there are certainly some."""

    box: Box
    count: int
    certain: bool


def known(box: Box, numbers: Mapping[str, int]) -> Box:
    """Return a box with numbers for data that are known."""

    def position(at: Affine) -> Affine:
        return Affine("", numbers[at.symbol] + at.offset) if at.symbol in numbers else at

    return tuple(
        None if each is None else Interval(position(each.low), position(each.high)) for each in box
    )
