"""Elements of parameters, as far as a program's text shows them: numbers, ranges, whole axes.

A position is a whole number, or a name of data plus a whole number, such as ``K - 1``.  A box has
one interval of positions for each axis; None means that the text does not tell.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise


@dataclass(frozen=True)
class Affine:
    """A whole number ``symbol + offset``; the symbol is empty, or names data or a loop."""

    symbol: str
    offset: int

    def __str__(self) -> str:
        if not self.symbol:
            return str(self.offset)
        sign = "+" if self.offset > 0 else "-"
        return self.symbol + (f" {sign} {abs(self.offset)}" if self.offset else "")


ONE = Affine("", 1)


def add(left: Affine | None, right: Affine | None, sign: int = 1) -> Affine | None:
    """Return the sum or difference of two numbers; None if it does not have this form."""
    if left is None or right is None:
        return None
    if not right.symbol:
        return Affine(left.symbol, left.offset + sign * right.offset)
    if sign > 0 and not left.symbol:
        return Affine(right.symbol, left.offset + right.offset)
    if sign < 0 and left.symbol == right.symbol:
        return Affine("", left.offset - right.offset)
    return None


@dataclass(frozen=True)
class Interval:
    """Positions from ``low`` to ``high``, both included."""

    low: Affine
    high: Affine

    def __str__(self) -> str:
        return str(self.low) if self.low == self.high else f"{self.low} : {self.high}"

    @property
    def length(self) -> Affine | None:
        """Number of positions."""
        return add(add(self.high, self.low, -1), ONE)

    def disjoint(self, other: Interval) -> bool:
        """Whether two intervals certainly have no position in common."""
        return _before(self.high, other.low) or _before(other.high, self.low)


def _before(left: Affine, right: Affine) -> bool:
    return left.symbol == right.symbol and left.offset < right.offset


def interval(low: Affine | None, high: Affine | None) -> Interval | None:
    """Return the interval between two positions, or None if one of them is not known."""
    return None if low is None or high is None else Interval(low, high)


Box = tuple[Interval | None, ...]

Index = tuple[str, Affine | None, Affine | None]
"""``point``, ``range``, ``all`` or ``many``, the last of unknown positions, and their ends."""


@dataclass(frozen=True)
class Frame:
    """A loop: the symbol of its variable and its bounds, each None where they are not known."""

    symbol: str
    low: Affine | None = None
    high: Affine | None = None


@dataclass(frozen=True)
class Piece:
    """Elements of a parameter.

    Attributes
    ----------
    parameter
        Its name.
    box
        Which of them, with one interval for each axis.
    open
        Axes that the next indices refer to, in their order; None if they refer to no axis, as
        after ``to_vector``.
    """

    parameter: str
    box: Box
    open: tuple[int, ...] | None = ()

    def indexed(self, indices: Sequence[Index]) -> Piece:
        """Return what indices leave."""
        if self.open is None:
            return replace(self, box=(None,) * len(self.box))
        box, kept = list(self.box), []
        for axis, (kind, low, high) in zip(self.open, indices, strict=False):
            old = box[axis]
            if kind != "point":
                kept.append(axis)
            if kind == "all" or (kind == "range" and low is None and high is None):
                continue
            if old is None or kind == "many":
                box[axis] = None
                continue
            # Positions are counted from where the interval begins.
            first = add(add(old.low, low), ONE, -1) if low else old.low if kind == "range" else None
            last = add(add(old.low, high), ONE, -1) if high else old.high
            box[axis] = interval(first, first if kind == "point" else last)
        return replace(self, box=tuple(box), open=(*kept, *self.open[len(indices) :]))

    def flattened(self) -> Piece:
        """Return the same elements in another shape."""
        return replace(self, open=None) if self.open != () else self

    def over(self, frames: Iterable[Frame]) -> tuple[Piece, bool]:
        """Return the elements of all turns of loops, inner ones last in ``frames``.

        Returns
        -------
        tuple
            The piece, and whether turns have elements in common, or may have.
        """
        box, again = self.box, False
        for frame in reversed(tuple(frames)):
            using = [axis for axis, each in enumerate(box) if _uses(each, frame.symbol)]
            turns = interval(frame.low, frame.high)
            if not using:
                again |= turns is None or turns.length != ONE
                continue
            new = list(box)
            for axis in using:
                each = box[axis]
                single = each is not None and each.low == each.high and len(using) == 1
                new[axis] = None
                if single and each is not None and turns is not None:
                    shift = Affine("", each.low.offset)
                    new[axis] = interval(add(turns.low, shift), add(turns.high, shift))
                again |= new[axis] is None
            box = tuple(new)
        return replace(self, box=box), again

    def uses(self, symbol: str) -> bool:
        """Whether a loop's variable is among its positions."""
        return any(_uses(each, symbol) for each in self.box)

    def disjoint(self, other: Piece) -> bool:
        """Whether two pieces certainly have no element in common."""
        if self.parameter != other.parameter:
            return True
        return any(
            mine is not None and theirs is not None and mine.disjoint(theirs)
            for mine, theirs in zip(self.box, other.box, strict=True)
        )

    @property
    def known(self) -> bool:
        """Whether the text tells which elements these are."""
        return None not in self.box


def _uses(each: Interval | None, symbol: str) -> bool:
    return each is not None and symbol in (each.low.symbol, each.high.symbol)


def counted(whole: Box, boxes: Sequence[Box]) -> list[tuple[Box, int]] | None:
    """Cut a parameter into cells and count how many boxes each is in.

    Parameters
    ----------
    whole
        All of the parameter.
    boxes
        Boxes within it.

    Returns
    -------
    list or None
        Cells with their numbers, which fill the parameter; None where the text does not tell.
        Positions that count from the end of an axis are taken to lie behind those that count
        from its beginning.
    """
    if not whole:
        return [((), len(boxes))]
    first, rest = whole[0], whole[1:]
    if first is None:
        return None
    begins: dict[tuple[int, int], Affine] = {}
    spans = []
    for box in boxes:
        if box[0] is None:
            return None
        after = Affine(box[0].high.symbol, box[0].high.offset + 1)
        keys = _place(box[0].low, first.high.symbol), _place(after, first.high.symbol)
        if keys[0] is None or keys[1] is None:
            return None
        begins |= {keys[0]: box[0].low, keys[1]: after}
        spans.append((keys[0], keys[1]))
    end = Affine(first.high.symbol, first.high.offset + 1)
    low, high = _place(first.low, first.high.symbol), _place(end, first.high.symbol)
    assert low is not None  # noqa: S101 - an axis begins at 1
    assert high is not None  # noqa: S101 - and ends at its own size
    begins |= {low: first.low, high: end}
    cuts = sorted(key for key in begins if low <= key <= high)
    cells: list[tuple[Box, int]] = []
    for start, stop in pairwise(cuts):
        inside = [
            box[1:] for box, (a, b) in zip(boxes, spans, strict=True) if a <= start and stop <= b
        ]
        inner = counted(rest, inside)
        if inner is None:
            return None
        last = Affine(begins[stop].symbol, begins[stop].offset - 1)
        cells += [((Interval(begins[start], last), *cell), count) for cell, count in inner]
    return cells


def _place(position: Affine, size: str) -> tuple[int, int] | None:
    """Return what positions on an axis are sorted by."""
    if not position.symbol:
        return 0, position.offset
    return (1, position.offset) if position.symbol == size else None


_FEW = 4


def told(name: str, whole: Box, cells: Iterable[Box]) -> list[str]:
    """Name elements in cells, as ``mu[2]`` and ``mu[3 : K]``."""
    cells = list(cells)
    if cells == [whole]:
        return [name]
    found: list[str] = []
    for cell in cells:
        kept = len(cell)
        while kept and cell[kept - 1] == whole[kept - 1]:
            kept -= 1
        texts = [""]
        for each, full in zip(cell[:kept], whole[:kept], strict=True):
            texts = [f"{text}, {one}" for text in texts for one in _positions(each, full)]
        found += [f"{name}[{text.removeprefix(', ')}]" if text else name for text in texts]
    return found


def _positions(each: Interval | None, full: Interval | None) -> list[str]:
    if each == full or each is None:
        return [":"]
    count = each.length
    if each.low.symbol == "" and count is not None and not count.symbol and count.offset <= _FEW:
        return [str(each.low.offset + i) for i in range(count.offset)]
    return [str(each)]
