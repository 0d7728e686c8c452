"""Syntax trees as stanc prints them: S-expressions, read into nested tuples."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TypeAlias

Node: TypeAlias = "str | tuple[Node, ...]"
"""An atom, or the nodes between a pair of parentheses."""

_ATOM = re.compile(r'"(?:\\.|[^"\\])*"|[()]|[^\s()"]+', re.DOTALL)
_ESCAPE = re.compile(r"\\(\n\s*|\d{3}|.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b"}


def parse(text: str) -> Node:
    """Read one S-expression."""
    stack: list[list[Node]] = [[]]
    for match in _ATOM.finditer(text):
        atom = match[0]
        if atom == "(":
            stack.append([])
        elif atom == ")":
            done = tuple(stack.pop())
            stack[-1].append(done)
        else:
            stack[-1].append(_string(atom) if atom[0] == '"' else atom)
    return stack[0][0]


def _string(atom: str) -> str:
    """Return what an atom in quotes stands for; stanc writes UTF-8 byte by byte."""
    text = _ESCAPE.sub(_unescape, atom[1:-1])
    return text.encode("latin-1").decode("utf-8", errors="replace")


def _unescape(match: re.Match[str]) -> str:
    code = match[1]
    if code[0] == "\n":
        return ""  # a long string goes on in the next line
    return chr(int(code)) if code.isdigit() else _ESCAPES.get(code, code)


def tag(node: Node) -> str:
    """Name of a constructor: ``For`` of ``(For (loop_variable n) ...)``, ``Break`` of ``Break``.

    It is empty for an empty list.
    """
    while not isinstance(node, str):
        node = node[0] if node else ""
    return node


def items(node: Node) -> tuple[Node, ...]:
    """Nodes between a pair of parentheses."""
    if isinstance(node, str):
        raise TypeError(f"an atom of a syntax tree where a list belongs: {node}")
    return node


def field(node: Node, name: str) -> Node:
    """Value of a field of a record, ``(... (name value) ...)``."""
    for item in items(node):
        if not isinstance(item, str) and len(item) == 2 and item[0] == name:
            return item[1]
    raise KeyError(name)


def has_field(node: Node, name: str) -> bool:
    """Whether a record has a field."""
    return not isinstance(node, str) and any(
        not isinstance(item, str) and len(item) == 2 and item[0] == name for item in node
    )


def name_of(identifier: Node) -> str:
    """Name in an identifier's record."""
    return tag(field(identifier, "name"))


def walk(node: Node) -> Iterator[Node]:
    """Yield a node and all nodes within it, outer ones first."""
    waiting = [node]  # no recursion: a generator in each level is slow
    while waiting:
        each = waiting.pop()
        yield each
        if not isinstance(each, str):
            waiting.extend(reversed(each))


def names(node: Node) -> set[str]:
    """All identifiers within a node."""
    return {name_of(each) for each in walk(node) if has_field(each, "id_loc")}


def variables(node: Node) -> set[str]:
    """Names of the variables within a node."""
    return {
        name_of(each[1])
        for each in walk(node)
        if not isinstance(each, str) and len(each) == 2 and each[0] == "Variable"
    }


def expr(node: Node) -> Node:
    """Constructor of an expression, without the promotions that stanc has put around it."""
    inner = field(node, "expr")
    while tag(inner) == "Promotion":
        inner = field(items(inner)[1], "expr")
    return inner


def stmt(node: Node) -> Node:
    """Constructor of a statement."""
    return field(node, "stmt")


def type_of(expression: Node) -> Node:
    """Type of an expression before it was promoted, as ``UReal`` or ``(UArray UVector)``."""
    inner = expression
    while tag(field(inner, "expr")) == "Promotion":
        inner = items(field(inner, "expr"))[1]
    return field(field(inner, "emeta"), "type_")


def stan_call(form: Node) -> tuple[str, tuple[Node, ...]]:
    """Return the name and the arguments of a call of one of Stan's own functions.

    Anything else has no name: a program may give a function of its own the name of one of Stan's
    if its arguments have other types.
    """
    if tag(form) != "FunApp" or tag(items(form)[1]) == "UserDefined":
        return "", ()
    return name_of(items(form)[2]), items(items(form)[3])


def is_data_only(expression: Node) -> bool:
    """Whether stanc knows that an expression does not depend on parameters."""
    return field(field(expression, "emeta"), "ad_level") == "DataOnly"


def declared_names(statement: Node) -> list[str]:
    """Names that a declaration declares."""
    variables = items(field(stmt(statement), "variables"))
    return [name_of(field(each, "identifier")) for each in variables]


def is_container(expression: Node) -> bool:
    """Whether an expression has more than one value."""
    return tag(type_of(expression)) not in ("UReal", "UInt", "UComplex")


def inner_statements(form: Node) -> list[Node]:
    """Return the statements that a compound statement holds, in their order."""
    found: list[Node] = []
    for part in () if isinstance(form, str) else form[1:]:
        if has_field(part, "stmt"):
            found.append(part)
        elif not isinstance(part, str):
            found += [each for each in part if has_field(each, "stmt")]
    return found


def all_statements(nodes: tuple[Node, ...]) -> Iterator[Node]:
    """Yield statements and all statements in them."""
    for node in nodes:
        yield node
        yield from all_statements(tuple(inner_statements(stmt(node))))


def own_nodes(statement: Node) -> Iterator[Node]:
    """Yield the nodes of a statement, but for those of the statements in it, outer ones first."""
    waiting: list[Node] = [stmt(statement)]
    while waiting:
        each = waiting.pop()
        yield each
        if not isinstance(each, str):
            waiting += [part for part in reversed(each) if not has_field(part, "stmt")]


def assigned(left: Node) -> list[str]:
    """Names that are assigned to on the left side of an assignment."""
    return [
        name_of(each[1])
        for each in walk(left)
        if not isinstance(each, str) and each and each[0] == "LVariable"
    ]


def written(node: Node) -> set[str]:
    """Variables that a statement, or one in it, declares or assigns to."""
    return set[str]().union(*map(written_by, all_statements((node,))))


def written_by(node: Node) -> set[str]:
    """Variables that a simple statement declares or assigns to."""
    form = stmt(node)
    if tag(form) == "VarDecl":
        return set(declared_names(node))
    if tag(form) == "Assignment":
        return set(assigned(field(form, "assign_lhs")))
    return set()


def literal(expression: Node) -> float | None:
    """Value of a number that stands in the program, or None."""
    form = expr(expression)
    kind = tag(form)
    if kind in ("IntNumeral", "RealNumeral"):
        return float(tag(items(form)[1]))
    if kind == "Paren":
        return literal(items(form)[1])
    if kind == "PrefixOp" and tag(items(form)[1]) == "PMinus":
        value = literal(items(form)[2])
        return None if value is None else -value
    return None
