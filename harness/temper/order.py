"""Whether densities have an order in which each one depends only on elements before it."""

from __future__ import annotations

from collections.abc import Container, Sequence

from harness.temper.additions import Addition, Notes
from harness.temper.elements import Affine, Interval, Piece, add
from harness.temper.tree import (
    Node,
    expr,
    is_container,
    is_data_only,
    items,
    name_of,
    names,
    stan_call,
    tag,
)

_EACH = {"exp", "log", "sqrt", "square", "inv", "tanh", "inv_logit", "logit", "log1p", "expm1"}
"""Functions of Stan's that act on each element by itself."""


def ordered(additions: Sequence[Addition], notes: Notes) -> bool:
    """Whether densities of elements have an order in which none depends on a later one.

    Parameters
    ----------
    additions
        Densities of elements of parameters.
    notes
        What the program adds and declares.
    """
    pieces = [each.pieces() or () for each in additions]
    needs = [_needed(each, notes) for each in additions]
    before: list[set[int]] = []
    for number, (addition, needed) in enumerate(zip(additions, needs, strict=True)):
        found = {
            other
            for other, theirs in enumerate(pieces)
            if any(not mine.disjoint(each) for mine in theirs for each in needed)
        }
        if number in found and _lagged(addition, notes.wholes):
            found.remove(number)
        before.append(found)
    done: set[int] = set()
    while len(done) < len(additions):
        ready = {n for n, some in enumerate(before) if n not in done and some <= done}
        if not ready:
            return False
        done |= ready
    return True


def _needed(addition: Addition, notes: Notes) -> list[Piece]:
    """Return what a density depends on, except the elements that it is a density of."""
    context = addition.context
    raw = addition.given.touched | addition.given.given | context.value.touched
    found = [each.over(context.loops)[0] for each in raw]
    for each in addition.pieces() or ():
        parameter = notes.declared.parameters[each.parameter]
        for name in names(parameter.transformation) & set(notes.wholes):
            found.append(Piece(name, notes.wholes[name]))
    return found


def _lagged(addition: Addition, parameters: Container[str]) -> bool:
    """Whether a density of some elements depends, for each, only on the elements before it."""
    if addition.density is None or len(addition.value.itself or ()) != 1:
        return False
    mine = (addition.value.itself or ())[0]
    others = [
        each
        for each in addition.given.touched | addition.context.value.touched
        if each.parameter == mine.parameter
    ]
    each = all(_by_element(arg, parameters) for arg in addition.density.args[1:])
    for axis, here in enumerate(mine.box if others else ()):
        if here is None:
            continue
        turn = here.low == here.high and _is_loop(here.low)
        shifts = [_shift(here, other.box[axis]) for other in others]
        known = [shift for shift in shifts if shift is not None]
        if len(known) < len(shifts) or not (turn or each):
            continue
        # A vector's elements are taken one by one only where both vectors are as long.
        if not turn and any(low != high for low, high in known):
            continue
        if all(high < 0 for _, high in known) or all(low > 0 for low, _ in known):
            return True
    return False


def _shift(here: Interval, there: Interval | None) -> tuple[int, int] | None:
    """How far the ends of one interval are from those of another, if that is a number."""
    if there is None:
        return None
    low, high = add(there.low, here.low, -1), add(there.high, here.high, -1)
    if low is None or high is None or low.symbol or high.symbol:
        return None
    return low.offset, high.offset


def _is_loop(position: Affine) -> bool:
    return "@" in position.symbol


def _by_element(node: Node, parameters: Container[str]) -> bool:
    """Whether each element of an expression is made of one element of each vector in it."""
    if is_data_only(node):
        return True
    form = expr(node)
    kind = tag(form)
    if kind in ("Paren", "PrefixOp"):
        return _by_element(items(form)[-1], parameters)
    if kind == "Indexed":
        return _by_element(items(form)[1], parameters)
    if kind == "Variable":  # a local may be made of any elements
        return name_of(items(form)[1]) in parameters
    if kind == "BinOp":
        _, left, operator, right = items(form)
        mixes = tag(operator) not in ("Plus", "Minus", "EltTimes", "EltDivide")
        if mixes and is_container(left) and is_container(right):
            return False
        return _by_element(left, parameters) and _by_element(right, parameters)
    name, args = stan_call(form)
    return name in _EACH and all(_by_element(each, parameters) for each in args)
