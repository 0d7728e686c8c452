"""What a value in a program is made of: data, and elements of parameters.

Data reach a value in four ways, which count differently when a statement is classified: their own
values flow into it, they decide in a condition whether something is done, they choose (as an index,
a range, a loop's bound or a size), or they are a single number that switches something.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from harness.temper.elements import Affine, Frame, Piece

CONSTANT = ""
"""The name, among those of data, for a number in the program that is given a density."""

DENSITIES = ("_lpdf", "_lpmf", "_lupdf", "_lupmf", "_log")
CUMULATIVE = ("_lcdf", "_lccdf")

Names = frozenset[str]
_NONE: Names = frozenset()


@dataclass(frozen=True)
class Value:
    """What is known about an expression's value.

    Attributes
    ----------
    data
        Data whose values flow into it.
    conditions
        Data that decide, in a condition, whether something of it was done.
    choices
        Data that choose: by an index, a range, a loop's bound or a size.
    hints
        Single numbers among data that appear in a condition or as an index.
    touched
        Elements of parameters that flow into it.
    given
        Elements of parameters behind the bars of densities in it.
    summed
        Parameters whose sum or mean is in it.
    slopes
        For a parameter, by how much the value grows if 1 is added to all of its elements.  It is
        not known for parameters that flow into the value and are not listed here.
    itself
        Elements of parameters that it is, unchanged, one after the other; None if it is not.
    number
        Which whole number it is, if the text tells.
    """

    data: Names = _NONE
    conditions: Names = _NONE
    choices: Names = _NONE
    hints: Names = _NONE
    touched: frozenset[Piece] = frozenset()
    given: frozenset[Piece] = frozenset()
    summed: Names = _NONE
    slopes: frozenset[tuple[str, float]] = frozenset()
    itself: tuple[Piece, ...] | None = None
    number: Affine | None = None

    @property
    def parameters(self) -> Names:
        """Names of the parameters that flow into it."""
        return frozenset(each.parameter for each in self.touched)

    @property
    def control(self) -> Value:
        """What reaches a value that depends on this one only by a condition."""
        return Value(
            conditions=self.conditions,
            choices=self.choices,
            hints=self.hints,
            touched=self.touched,
            given=self.given,
        )

    def slope(self, name: str) -> float | None:
        """By how much it grows if 1 is added to a parameter; None if that is not known."""
        return dict(self.slopes).get(name, None if name in self.parameters else 0.0)

    def scaled(self, factor: float) -> Value:
        """Return a number times it."""
        slopes = frozenset((name, factor * slope) for name, slope in self.slopes)
        return replace(self, slopes=slopes, itself=None, number=None)

    def over(self, frame: Frame) -> Value:
        """Return what is left of it after a turn of a loop, for all turns."""
        if not any(each.uses(frame.symbol) for each in self.touched | self.given):
            moving = self.number is not None and self.number.symbol == frame.symbol
            return replace(self, number=None) if moving else self
        return replace(
            self,
            touched=frozenset(each.over([frame])[0] for each in self.touched),
            given=frozenset(each.over([frame])[0] for each in self.given),
            itself=None,
            number=None,
        )


NOTHING = Value()


def union(values: Iterable[Value]) -> Value:
    """Return what a function of some values is made of."""
    given = list(values)
    # It does not change if none of its arguments changes.
    return _combined(given, lambda name: 0.0 if all(v.slope(name) == 0 for v in given) else None)


def added(left: Value, right: Value, sign: float = 1.0) -> Value:
    """Return what a sum is made of, or, with the sign -1, a difference."""

    def slope(name: str) -> float | None:
        one, other = left.slope(name), right.slope(name)
        return None if one is None or other is None else one + sign * other

    return _combined([left, right], slope)


def joined(left: Value, right: Value) -> Value:
    """Return what a value is made of that is one or the other of two."""
    if left == right:
        return left

    def slope(name: str) -> float | None:
        one, other = left.slope(name), right.slope(name)
        return one if one == other else None

    return replace(
        _combined([left, right], slope),
        itself=left.itself if left.itself == right.itself else None,
        number=left.number if left.number == right.number else None,
    )


def reached(value: Value, other: Value) -> Value:
    """Return what a value is made of that another one reaches by an index or a condition."""
    if other == NOTHING:
        return value
    both = union([value, other])
    if other.touched:
        return both
    return replace(both, slopes=value.slopes, itself=value.itself, number=value.number)


_MANY = 40
"""Pieces of one parameter in a value, beyond which they are no longer told apart."""


def _few(pieces: frozenset[Piece]) -> frozenset[Piece]:
    if len(pieces) <= _MANY:
        return pieces
    return frozenset(Piece(each.parameter, (None,) * len(each.box)) for each in pieces)


def _combined(values: list[Value], slope: Callable[[str], float | None]) -> Value:
    touched = _few(frozenset[Piece]().union(*(each.touched for each in values)))
    slopes = {name: slope(name) for name in {each.parameter for each in touched}}
    return Value(
        data=_NONE.union(*(each.data for each in values)),
        conditions=_NONE.union(*(each.conditions for each in values)),
        choices=_NONE.union(*(each.choices for each in values)),
        hints=_NONE.union(*(each.hints for each in values)),
        touched=touched,
        given=_few(frozenset[Piece]().union(*(each.given for each in values))),
        summed=_NONE.union(*(each.summed for each in values)),
        slopes=frozenset((name, each) for name, each in slopes.items() if each is not None),
    )
