"""What the values of Stan's own functions are made of; some hand elements of parameters on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from harness.temper.elements import ONE, Affine, Index, Interval, Piece, add
from harness.temper.flow import NOTHING, Value, union

SIZES = {"size", "num_elements", "rows", "cols", "dims", "rank"}
_FILLED = {"rep_vector", "rep_row_vector", "rep_matrix", "rep_array"}
_SAME = {"to_vector", "to_row_vector", "to_matrix", "to_array_1d", "to_array_2d", "reverse"}
_JOINED = {"append_row", "append_col", "append_array"}
_SOME = {"block", "sub_row", "sub_col", "diagonal"}
_REDUCED = {"sum", "mean"}


def called(name: str, values: list[Value], bound: Callable[[Value], Value]) -> Value:
    """Return what the value of a function is made of, given its arguments'.

    Parameters
    ----------
    name
        The function's name.
    values
        What its arguments are made of.
    bound
        Gives what reaches a value by a size or a place.
    """
    if name in _FILLED:
        return union([values[0], *map(bound, values[1:])])
    if name in _JOINED:
        return together(values)
    value = union(values)
    first = values[0] if values else NOTHING
    if name in _REDUCED:
        summed = value.summed | (first.parameters if first.itself else frozenset())
        kept = first.slopes if name == "mean" else value.slopes
        return replace(value, summed=summed, slopes=kept)
    if first.itself is None:
        return value
    pieces: tuple[Piece, ...] | None = None
    if name in _SAME:
        pieces = tuple(each.flattened() for each in first.itself)
    elif name in _SOME:
        pieces = tuple(replace(p, box=(None,) * len(p.box), open=None) for p in first.itself)
    elif len(first.itself) == 1:
        index = _part(name, [each.number for each in values[1:]], first.itself[0])
        pieces = None if index is None else (first.itself[0].indexed(index),)
    if pieces is None:
        return value
    places = values[1:] if name not in _SAME else []
    return replace(
        union([first, *map(bound, places)]),
        touched=frozenset(pieces),
        slopes=first.slopes,
        itself=pieces,
    )


def size(name: str, values: list[Value], data: frozenset[str]) -> Value:
    """Return what a size is made of, given which data are more than one number.

    Sizes of data choose; those of parameters are known from their declaration.
    """
    chosen = values[0].data & data if values else frozenset[str]()
    number = None
    if values and values[0].itself and len(values[0].itself) == 1:
        piece = values[0].itself[0]
        axes = piece.open or ()
        wanted = {"cols": 1, "rows": 0, "size": 0}.get(name, 0 if len(axes) == 1 else 9)
        if wanted < len(axes):
            axis = piece.box[axes[wanted]]
            number = None if axis is None else axis.length
    return Value(choices=chosen, number=number)


def together(values: list[Value]) -> Value:
    """Return values one after the other."""
    pieces: list[Piece] = []
    for each in values:
        if each.itself is None:
            return union(values)
        pieces += (piece.flattened() for piece in each.itself)
    shared = {each.parameter for each in pieces}
    slopes = {}
    for name in shared:
        of_each = {each.slope(name) for each in values}
        if len(of_each) == 1:
            slopes[name] = of_each.pop()
    return replace(
        union(values),
        itself=tuple(pieces),
        slopes=frozenset((name, each) for name, each in slopes.items() if each is not None),
    )


def _part(name: str, numbers: list[Affine | None], piece: Piece) -> list[Index] | None:
    """Return the indices that a function of Stan's stands for, or None."""
    unknown: Index = ("many", None, None)
    every: Index = ("all", None, None)
    if name in ("row", "col") and len(numbers) == 1:
        point: Index = ("point", numbers[0], None)
        return [point] if name == "row" else [every, point]
    if name in ("head", "tail", "segment"):
        axis = piece.box[piece.open[0]] if piece.open else None
        if None in numbers or axis is None:
            return [unknown]
        if name == "segment":
            first, last = numbers[0], add(add(numbers[0], numbers[1]), ONE, -1)
        elif name == "head":
            first, last = ONE, numbers[0]
        else:
            size = axis.length
            first, last = add(add(size, numbers[0], -1), ONE), size
        return [unknown if first is None or last is None else ("range", first, last)]
    return None


def full(name: str, axes: list[Affine] | None) -> Piece:
    """All of a parameter, whose axes have these sizes; None for one that is a tuple."""
    if axes is None:
        return Piece(name, (None,), None)
    box = tuple(Interval(ONE, each) for each in axes)
    return Piece(name, box, tuple(range(len(axes))))
