"""Find the statements that a part of a program's log density needs, and leave out all others."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from harness.temper.tree import (
    Node,
    assigned,
    field,
    has_field,
    inner_statements,
    items,
    names,
    stmt,
    tag,
)

_COMPOUND = ("Block", "Profile", "For", "ForEach", "While", "IfThenElse")
_JUMPS = ("Break", "Continue")
_STOPS = ("Reject", "FatalError", "NRFunApp")


def needed(
    statements: Iterable[Node],
    adds: Callable[[Node], bool],
    no_stops: frozenset[int] = frozenset(),
) -> set[int]:
    """Return the identities of the statements that are needed.

    This follows names and not values, so it may keep more than is needed, but never less.

    Parameters
    ----------
    statements
        Statements one after another; nothing after them needs their results.
    adds
        Whether a simple statement adds something that is wanted.
    no_stops
        Identities of statements that need not be kept although they may reject the point.
    """
    return _Needed(list(statements), adds, no_stops).kept


class _Needed:
    def __init__(
        self, statements: list[Node], adds: Callable[[Node], bool], no_stops: frozenset[int]
    ) -> None:
        self.kept: set[int] = set()
        self._adds = adds
        self._no_stops = no_stops
        self._names: set[str] = set()
        before = -1
        while before != len(self.kept):
            before = len(self.kept)
            for each in reversed(statements):
                self._visit(each)

    def _visit(self, node: Node) -> bool:
        """Keep a statement if it is needed, and say whether it is."""
        form = stmt(node)
        kind = tag(form)
        if kind in _COMPOUND:
            inner = list(inner_statements(form))
            found = [self._visit(each) for each in reversed(inner)]
            needed = any(found) or self._adds(node)
            if needed:
                for each in inner:  # what leaves the loop decides what is kept
                    self._keep_jumps(each)
                self._keep(node, _head(form))
            return needed
        stops = kind in _STOPS and id(node) not in self._no_stops
        needed = stops or self._adds(node) or id(node) in self.kept
        if kind == "VarDecl":
            needed |= bool(self._names & _declares(form))
        elif kind == "Assignment":
            needed |= not self._names.isdisjoint(assigned(field(form, "assign_lhs")))
        if needed:
            self._keep(node, [form])
        return needed

    def _keep_jumps(self, node: Node) -> None:
        """Keep jumps and the conditions that they are under."""
        form = stmt(node)
        if not _jumps(node):
            return
        self._keep(node, _head(form) if tag(form) in _COMPOUND else [form])
        for each in inner_statements(form):
            self._keep_jumps(each)

    def _keep(self, node: Node, parts: Iterable[Node]) -> None:
        self.kept.add(id(node))
        for each in parts:
            self._names |= names(each)


def _head(form: Node) -> list[Node]:
    """Return the parts of a compound statement that are not statements in it."""
    found: list[Node] = []
    for part in items(form)[1:]:
        if has_field(part, "stmt"):
            continue
        if isinstance(part, str) or not any(has_field(each, "stmt") for each in part):
            found.append(part)
    return found


def _declares(form: Node) -> set[str]:
    return set().union(*(names(field(v, "identifier")) for v in items(field(form, "variables"))))


def _jumps(node: Node) -> bool:
    form = stmt(node)
    return tag(form) in _JUMPS or any(map(_jumps, inner_statements(form)))
