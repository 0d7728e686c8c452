"""What flows into the value of each variable and expression of a program: data, and parameters.

Indices and sizes do not count, since ``theta[county]`` is no data.
"""

from __future__ import annotations

from collections.abc import Iterable

from harness.temper.syntax import Syntax
from harness.temper.tree import (
    Node,
    declared_names,
    expr,
    field,
    has_field,
    is_data_only,
    items,
    name_of,
    stmt,
    tag,
    walk,
)

CONSTANT = ""
"""Stands among names of data for a number in the program that is given a density."""

DENSITIES = ("_lpdf", "_lpmf", "_lupdf", "_lupmf", "_log")
CUMULATIVE = ("_lcdf", "_lccdf")
_SIZES = {"size", "num_elements", "rows", "cols", "dims", "rank"}
_FILLED = {"rep_vector", "rep_row_vector", "rep_matrix", "rep_array"}


class Flow:
    """Names that flow into the value of each variable: of data, and of parameters."""

    def __init__(self, syntax: Syntax) -> None:
        self.dimensioned: set[str] = set()
        self.counts: set[str] = set()
        self.parameters: set[str] = set()
        self._into: dict[str, frozenset[str]] = {}
        for node in syntax.blocks["data"]:
            for name in declared_names(node):
                kind = tag(field(stmt(node), "decl_type"))
                if kind not in ("SInt", "SReal"):
                    self.dimensioned.add(name)
                elif kind == "SInt":
                    self.counts.add(name)
                self._into[name] = frozenset([name])
        for node in syntax.blocks["parameters"]:
            for name in declared_names(node):
                self.parameters.add(name)
                self._into[name] = frozenset([name])
        while self._pass(syntax):
            pass

    def of(self, expression: Node) -> frozenset[str]:
        """Names that flow into an expression's value."""
        form = expr(expression)
        kind = tag(form)
        if kind == "GetTarget":
            return frozenset()
        parts = items(form)[1:]
        if kind == "Variable":
            return self._into.get(name_of(parts[0]), frozenset())
        if kind == "Indexed":
            return self.of(parts[0])
        if kind in ("CondDistApp", "FunApp"):
            _, _, identifier, given = items(form)
            name, args = name_of(identifier), items(given)
            if name.endswith(CUMULATIVE) or name.endswith(DENSITIES):
                return self.of_density(name, args)
            if name in _SIZES:
                return frozenset()
            if name in _FILLED:
                args = args[:1]
            return self.any_of(args)
        return self.any_of(_inner(parts))

    def of_density(self, name: str, args: tuple[Node, ...]) -> frozenset[str]:
        """Names that flow into what is given a density, by a call of it."""
        if all(map(is_data_only, args)):
            return frozenset()  # a constant, as that of a truncated prior
        flows = self.of(args[0])
        if not flows and is_data_only(args[0]) and not name.endswith(CUMULATIVE):
            return frozenset([CONSTANT])
        return flows

    def any_of(self, expressions: Iterable[Node]) -> frozenset[str]:
        """Names that flow into any of some expressions."""
        return frozenset().union(*map(self.of, expressions))

    def data(self, flows: frozenset[str], *, counts: bool = False) -> list[str]:
        """Names of data among those that flow; numbers only where they count something."""
        known = self.dimensioned | {CONSTANT} | (self.counts if counts else set())
        return sorted(flows & known)

    def _pass(self, syntax: Syntax) -> bool:
        before = dict(self._into)
        for block in ("transformeddata", "transformedparameters", "model"):
            for node in walk(syntax.blocks[block]):
                self._follow(node)
        return self._into != before

    def _follow(self, node: Node) -> None:
        kind = tag(node) if not isinstance(node, str) and node and isinstance(node[0], str) else ""
        if kind == "Assignment":
            flows = self.of(field(node, "assign_rhs"))
            for each in walk(field(node, "assign_lhs")):
                if not isinstance(each, str) and each and each[0] == "LVariable":
                    self._add(name_of(each[1]), flows)
        elif kind == "VarDecl":
            for each in items(field(node, "variables")):
                initial = items(field(each, "initial_value"))
                if initial:
                    self._add(name_of(field(each, "identifier")), self.of(initial[0]))
        elif kind == "ForEach":
            self._add(name_of(items(node)[1]), self.of(items(node)[2]))

    def _add(self, name: str, flows: frozenset[str]) -> None:
        self._into[name] = self._into.get(name, frozenset()) | flows


def _inner(parts: Iterable[Node]) -> list[Node]:
    """Return the expressions among the parts of a constructor, and in lists among them."""
    found = []
    for part in parts:
        if has_field(part, "expr"):
            found.append(part)
        elif not isinstance(part, str):
            found += _inner(part)
    return found
