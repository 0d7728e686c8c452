"""Parameters of a program, and how arrays of them are declared."""

from __future__ import annotations

from dataclasses import dataclass

from harness.temper.constraints import constraint_of
from harness.temper.syntax import Syntax
from harness.temper.text import StanText
from harness.temper.tree import (
    Node,
    declared_names,
    field,
    has_field,
    is_container,
    items,
    names,
    stmt,
    tag,
    type_of,
)


@dataclass(frozen=True)
class Parameter:
    """A parameter of the original program."""

    name: str
    kind: Node
    transformation: Node
    depends: bool
    """Whether its constraint cannot be declared for an array: it depends on other parameters, or
    its bounds are an array."""

    @property
    def bounds(self) -> tuple[Node, ...]:
        """Expressions of its lower and upper bounds."""
        kind = self.transformation
        return items(kind)[1:] if tag(kind) in ("Lower", "Upper", "LowerUpper") else ()


def parameters(syntax: Syntax) -> list[Parameter]:
    """Return the parameters that a program declares, in its order."""
    found: list[Parameter] = []
    own: set[str] = set()
    for node in syntax.blocks["parameters"]:
        form = stmt(node)
        transformation = field(form, "transformation")
        depends = bool(names(transformation) & own) or _has_arrays(transformation)
        for name in declared_names(node):
            found.append(Parameter(name, field(form, "decl_type"), transformation, depends))
            own.add(name)
    return found


def _has_arrays(transformation: Node) -> bool:
    """Whether a bound is an array."""
    if not constraint_of(transformation).arguments:
        return False
    return any(
        tag(type_of(each)) == "UArray"
        for each in items(transformation)[1:]
        if has_field(each, "expr")
    )


def is_checked(transformation: Node) -> bool:
    """Whether Stan checks a constraint of a transformed parameter, or of a part of a tuple."""
    if tag(transformation) == "TupleTransformation":
        return any(map(is_checked, items(items(transformation)[1])))
    return not constraint_of(transformation).free


class Repeated(StanText):
    """Writes declarations of arrays, whose bounds are one number or arrays as well."""

    def __init__(self, size: str) -> None:
        self._size = size

    def bound(self, node: Node) -> str:
        """Text of a bound, for each pseudo-sample where it is a vector or a matrix."""
        text = self.expression(node)
        return f"rep_array({text}, {self._size})" if is_container(node) else text
