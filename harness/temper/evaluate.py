"""Evaluate expressions: what their values are made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import replace

from harness.temper.declared import Declared
from harness.temper.elements import Affine, Index, add
from harness.temper.flow import (
    CONSTANT,
    CUMULATIVE,
    DENSITIES,
    NOTHING,
    Value,
    added,
    union,
)
from harness.temper.standard import SIZES, called, size, together
from harness.temper.text import as_text
from harness.temper.tree import (
    Node,
    expr,
    has_field,
    is_container,
    is_data_only,
    items,
    literal,
    name_of,
    tag,
    type_of,
    variables,
)

State = Mapping[str, Value]
Inline = Callable[[str, tuple[Value, ...], bool], Value]
"""Evaluates a call of a function of the program's own: its name, its arguments, and whether it
adds to the target."""


class Expressions:
    """Evaluates expressions of a program in a state, the values that its variables have.

    Parameters
    ----------
    declared
        What the program declares.
    inline
        Evaluates calls of functions of the program's own.
    """

    def __init__(self, declared: Declared, inline: Inline) -> None:
        self.declared = declared
        self._inline = inline
        self.settled: State = {}
        """Data and transformed data, once they are known."""
        self.sizes: Set[str] = frozenset()
        """What sizes of parameters are counted from."""

    def of(self, node: Node, state: State) -> Value:
        """Evaluate an expression."""
        form = expr(node)
        kind = tag(form)
        if kind == "GetTarget":
            return NOTHING
        method = getattr(self, f"_of_{kind}", None)
        value: Value = method(form, state) if method else self._of_parts(form, state)
        if value.number is None and tag(type_of(node)) == "UInt" and not value.touched:
            known = variables(node)
            if known and all(
                each in state and state[each] is self.settled.get(each) for each in known
            ):
                return replace(value, number=Affine(as_text(node), 0))
        return value

    def each(self, nodes: Node, state: State) -> list[Value]:
        """Evaluate several."""
        return [self.of(node, state) for node in items(nodes)]

    def position(self, value: Value) -> Value:
        """Return what reaches a value by an index that has this value.

        Parameters are as many as their sizes say, so that what counts from these chooses nothing.
        """
        if value.number is not None and value.number.symbol in self.sizes:
            return NOTHING
        data = value.data & self.declared.dimensioned
        return Value(
            choices=data | value.choices | value.conditions,
            hints=(value.data - data) | value.hints,
            touched=value.touched,
        )

    def bound(self, value: Value) -> Value:
        """Return what reaches a value by a bound of a loop or a range that has this value."""
        if value.number is not None and value.number.symbol in self.sizes:
            return NOTHING
        counts = value.data & self.declared.counts - self.declared.sizes
        return union([self.position(value), Value(choices=counts)])

    def condition(self, value: Value) -> Value:
        """Return what reaches a value by a condition that has this value."""
        data = value.data & self.declared.dimensioned
        hints = value.data - data
        return union([value.control, Value(conditions=data, hints=hints)])

    # Kinds of expressions

    def _of_parts(self, form: Node, state: State) -> Value:
        return union(self.of(each, state) for each in _inner(items(form)[1:]))

    def _of_Variable(self, form: Node, state: State) -> Value:
        return state.get(name_of(items(form)[1]), NOTHING)

    def _of_IntNumeral(self, form: Node, _: State) -> Value:
        return Value(number=Affine("", int(tag(items(form)[1]).replace("_", ""))))

    def _of_Paren(self, form: Node, state: State) -> Value:
        return self.of(items(form)[1], state)

    def _of_PrefixOp(self, form: Node, state: State) -> Value:
        _, sign, inner = items(form)
        value = self.of(inner, state)
        if tag(sign) == "PPlus":
            return value
        if tag(sign) != "PMinus":
            return union([value])
        number = value.number
        if number is not None:
            number = None if number.symbol else Affine("", -number.offset)
        return replace(value.scaled(-1), number=number)

    def _of_PostfixOp(self, form: Node, state: State) -> Value:
        return self.of(items(form)[1], state)

    def _of_BinOp(self, form: Node, state: State) -> Value:
        _, left, operator, right = items(form)
        one, other = self.of(left, state), self.of(right, state)
        kind = tag(operator)
        if kind in ("Plus", "Minus"):
            sign = 1 if kind == "Plus" else -1
            number = add(one.number, other.number, sign)
            return replace(added(one, other, sign), number=number)
        if kind in ("Times", "EltTimes", "Divide", "EltDivide"):
            factors = literal(left), literal(right)
            if factors[1]:
                return one.scaled(factors[1] if "Times" in kind else 1 / factors[1])
            if factors[0] and "Times" in kind:
                return other.scaled(factors[0])
        return union([one, other])

    def _of_TernaryIf(self, form: Node, state: State) -> Value:
        _, condition, *values = items(form)
        tested = self.of(condition, state)
        # In the expression itself it counts like a number that is written there.
        decides = replace(self.condition(tested), data=tested.data & self.declared.dimensioned)
        return union([decides, *(self.of(each, state) for each in values)])

    def _of_Indexed(self, form: Node, state: State) -> Value:
        _, base, given = items(form)
        value = self.of(base, state)
        indices: list[Index] = []
        chosen: list[Value] = []
        for index in items(given):
            kind, ends = tag(index), [] if isinstance(index, str) else list(items(index)[1:])
            values = [self.of(each, state) for each in ends]
            numbers = [each.number for each in values]
            if kind == "Single":
                one = not is_container(ends[0])
                chosen += map(self.position, values)
                indices.append(("point", numbers[0], None) if one else ("many", None, None))
                continue
            chosen += map(self.bound, values)
            if kind == "All":
                indices.append(("all", None, None))
            elif None in numbers:
                indices.append(("many", None, None))
            else:
                low = None if kind == "Downfrom" else numbers[0]
                high = None if kind == "Upfrom" else numbers[-1]
                indices.append(("range", low, high))
        itself = value.itself
        if itself is not None:
            itself = tuple(each.indexed(indices) for each in itself) if len(itself) == 1 else None
        if itself is not None:
            value = replace(value, touched=frozenset(itself))
        both = union([value, *chosen])
        moving = value.parameters - frozenset[str]().union(*(each.parameters for each in chosen))
        slopes = {name: value.slope(name) for name in moving}
        return replace(
            both,
            itself=itself,
            slopes=frozenset((name, each) for name, each in slopes.items() if each is not None),
        )

    def _of_TupleProjection(self, form: Node, state: State) -> Value:
        value = self.of(items(form)[1], state)
        return replace(value, number=None)

    def _of_RowVectorExpr(self, form: Node, state: State) -> Value:
        return together(self.each(items(form)[1], state))

    _of_ArrayExpr = _of_RowVectorExpr

    def _of_CondDistApp(self, form: Node, state: State) -> Value:
        _, _, identifier, args = items(form)
        return self._density(name_of(identifier), items(args), state)

    def _of_FunApp(self, form: Node, state: State) -> Value:
        _, kind, identifier, given = items(form)
        name, args = name_of(identifier), items(given)
        if name.endswith(CUMULATIVE) or name.endswith(DENSITIES):
            return self._density(name, args, state)
        if tag(kind) == "UserDefined":
            return self.call(form, state)
        values = self.each(given, state)
        if name in SIZES:
            return size(name, values, self.declared.dimensioned)
        return called(name, values, self.bound)

    def call(self, form: Node, state: State) -> Value:
        """Evaluate a call of a function of the program's own."""
        _, kind, identifier, args = items(form)
        adds = items(kind)[1] in ("FnTarget", "FnJacobian")
        return self._inline(name_of(identifier), tuple(self.each(args, state)), adds)

    def _density(self, name: str, args: tuple[Node, ...], state: State) -> Value:
        """What is given a density counts, but not what stands behind its bar."""
        if not args or all(map(is_data_only, args)):
            return NOTHING  # a constant, as that of a truncated prior
        variate = self.of(args[0], state)
        of_data = is_data_only(args[0]) or (variate.data and not variate.touched)
        if of_data and (variate.data or not name.endswith(CUMULATIVE)):
            variate = replace(variate, data=variate.data | {CONSTANT})
        given = union(self.of(each, state) for each in args[1:])
        value = union([variate])
        return replace(value, given=value.given | given.touched | given.given)


def _inner(parts: object) -> list[Node]:
    """Return the expressions among the parts of a constructor, and in lists among them."""
    found: list[Node] = []
    for part in parts if isinstance(parts, tuple | list) else ():
        if has_field(part, "expr"):
            found.append(part)
        elif not isinstance(part, str):
            found += _inner(part)
    return found
