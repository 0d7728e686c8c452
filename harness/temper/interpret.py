"""Follow a program from its data on, and note what each statement adds to the log density."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from harness.temper.additions import Addition, Context, Notes
from harness.temper.declared import declared, limit, sizes_of
from harness.temper.elements import Affine
from harness.temper.evaluate import Expressions
from harness.temper.flow import NOTHING, Value, joined, union
from harness.temper.standard import full
from harness.temper.statements import Scope, Statements, Variables
from harness.temper.syntax import Syntax
from harness.temper.text import as_text
from harness.temper.tree import (
    Node,
    all_statements,
    field,
    items,
    name_of,
    own_nodes,
    stmt,
    tag,
    walk,
)


def notes(syntax: Syntax, numbers: Mapping[str, int]) -> Notes:
    """Follow a program's statements.

    Parameters
    ----------
    syntax
        The program.
    numbers
        Whole numbers among its data, as far as they are known.
    """
    return _Interpreter(syntax, numbers).notes()


class _Interpreter:
    def __init__(self, syntax: Syntax, numbers: Mapping[str, int]) -> None:
        self._syntax = syntax
        self._numbers = numbers
        self._declared = declared(syntax)
        self._statements = Statements(Expressions(self._declared, self._inline))
        self._functions: dict[str, list[Node]] = {}
        for node in syntax.blocks["function"]:
            form = stmt(node)
            if tag(stmt(field(form, "body"))) != "Skip":
                self._functions.setdefault(name_of(field(form, "funname")), []).append(form)
        self._known: dict[tuple[str, tuple[Value, ...]], _Called] = {}
        self._active: list[str] = []

    def notes(self) -> Notes:
        state = self._declared.data()
        follow = self._statements.follow
        for node in self._syntax.blocks["transformeddata"]:
            follow(node, state, Context(), Scope())
        self._settle(state)
        self._statements.expressions.settled = dict(state)
        wholes, limits = {}, {}
        for name, parameter in self._declared.parameters.items():
            sizes = sizes_of(parameter.kind)
            axes = None if sizes is None else [self._size(each, state) for each in sizes]
            piece = full(name, axes)
            wholes[name] = piece.box
            limits[name] = tuple(limit(each, self._declared.upper) for each in sizes or [])
            state[name] = Value(
                touched=frozenset([piece]), itself=(piece,), slopes=frozenset([(name, 1.0)])
            )
        self._statements.expressions.sizes = {
            each.high.symbol for box in wholes.values() for each in box if each and each.high.symbol
        }
        bounds = {
            name: union(self._statements.expressions.of(each, state) for each in parameter.bounds)
            for name, parameter in self._declared.parameters.items()
        }
        self._statements.additions.clear()
        for block in ("transformedparameters", "model"):
            context = Context()
            for node in self._syntax.blocks[block]:
                context = follow(node, state, context, Scope())
        rejects = list(self._rejects())
        by_data = frozenset(id(each) for each in rejects if self._by_data(each))
        return Notes(
            self._declared,
            wholes,
            limits,
            self._numbers,
            self._statements.additions,
            tuple(each for each in rejects if id(each) not in by_data),
            by_data,
            {name: value.data for name, value in bounds.items() if value.data},
        )

    def _size(self, node: Node, state: Variables) -> Affine:
        return self._statements.expressions.of(node, state).number or Affine(as_text(node), 0)

    def _settle(self, state: Variables) -> None:
        """Turn transformed data into data for later blocks, however they were computed."""
        known = self._declared
        for name in known.fixed:
            value = state[name]
            chosen = (value.conditions | value.choices) & known.dimensioned
            if name not in known.counts:
                state[name] = Value(data=value.data | chosen)
                continue
            depends = value.data | value.conditions | value.choices | value.hints
            number = value.number
            if number is None or number.symbol not in {"", *known.fixed}:
                number = Affine(name, 0)
            state[name] = Value(data=frozenset([name] if depends else []), number=number)

    def _rejects(self) -> Iterable[Node]:
        """Yield the statements that reject points, or call functions that may."""
        rejecting: set[str] = set()
        while new := {
            name
            for name, forms in self._functions.items()
            if name not in rejecting
            and any(_rejects(each, rejecting) for form in forms for each in walk(form))
        }:
            rejecting |= new
        for block in ("transformedparameters", "model"):
            for node in all_statements(self._syntax.blocks[block]):
                if any(_rejects(each, rejecting) for each in own_nodes(node)):
                    yield node

    def _by_data(self, node: Node) -> bool:
        """Whether data decide if a statement rejects the point."""
        found = [self._statements.stops.get(id(node), NOTHING)]
        # What is the likelihood's, rejects for it, whatever the function that it calls decides by.
        for each in self._statements.additions.get(id(node), []):
            found += [each.value, each.given, each.context.value]
        value = union(found)
        return bool(value.data | value.conditions | value.choices)

    def _inline(self, name: str, values: tuple[Value, ...], adds: bool) -> Value:
        """Evaluate a call; what it adds to the target goes to the statement that it is in."""
        forms = [
            each
            for each in self._functions.get(name, [])
            if len(items(field(each, "arguments"))) == len(values)
        ]
        if not forms or name in self._active:
            return union(values)  # a function that calls itself
        if (name, values) not in self._known:
            self._active.append(name)
            self._known[name, values] = self._body(forms, values)
            self._active.pop()
        found = self._known[name, values]
        if adds:
            jacobian = name.endswith("_jacobian")
            self._statements.called += [
                replace(each, called=True, jacobian=jacobian) for each in found.additions
            ]
        self._statements.stopped += found.stops
        return found.value

    def _body(self, forms: list[Node], values: tuple[Value, ...]) -> _Called:
        """Follow a function's body."""
        statements = Statements(self._statements.expressions)
        outside, self._statements = self._statements, statements
        returned: list[Value] = []
        for form in forms:
            arguments = map(items, items(field(form, "arguments")))
            state = {name_of(name): v for (_, _, name), v in zip(arguments, values, strict=True)}
            scope = Scope()
            statements.follow(field(form, "body"), state, Context(), scope)
            returned += scope.returned
        self._statements = outside
        value = returned[0] if returned else NOTHING
        for each in returned[1:]:
            value = joined(value, each)
        additions = [each for some in statements.additions.values() for each in some]
        return _Called(value, additions, list(statements.stops.values()))


class _Called(NamedTuple):
    """What a function returns and adds to the target, and what decides whether it rejects."""

    value: Value
    additions: list[Addition]
    stops: list[Value]


def _rejects(node: Node, functions: set[str]) -> bool:
    """Whether a constructor rejects the point, or calls one of some functions."""
    if isinstance(node, str) or len(node) < 2:
        return False
    if node[0] in ("Reject", "FatalError"):
        return True
    return node[0] in ("FunApp", "NRFunApp") and name_of(node[2]) in functions
