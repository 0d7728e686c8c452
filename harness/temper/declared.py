"""What a program declares: kinds of data, and the elements of parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from harness.temper.constraints import constraint_of
from harness.temper.elements import Affine
from harness.temper.flow import Value
from harness.temper.parameters import Parameter, parameters
from harness.temper.syntax import Syntax
from harness.temper.tree import (
    Node,
    declared_names,
    expr,
    field,
    items,
    literal,
    name_of,
    names,
    stmt,
    tag,
)

_TYPES = {
    "SVector": 1,
    "SRowVector": 1,
    "SMatrix": 2,
    "SComplexVector": 1,
    "SComplexRowVector": 1,
    "SComplexMatrix": 2,
}

_LOWER, _UPPER = ("Lower", "LowerUpper"), ("Upper", "LowerUpper")


@dataclass(frozen=True)
class Declared:
    """What a program's text says about the names that it declares.

    Attributes
    ----------
    dimensioned
        Data that are more than one number.
    counts
        Data that are a single whole number, and such numbers among transformed data.
    sizes
        Those of them that the sizes of parameters depend on.
    given
        Data.
    fixed
        Data and transformed data.
    least, upper
        Lower and upper bounds that whole numbers among data are declared with.
    parameters
        Parameters by name.
    """

    dimensioned: frozenset[str]
    counts: frozenset[str]
    sizes: frozenset[str]
    given: frozenset[str]
    fixed: frozenset[str]
    least: Mapping[str, int]
    upper: Mapping[str, int]
    parameters: dict[str, Parameter]

    def data(self) -> dict[str, Value]:
        """Return what the variables of the data block are made of, by name."""
        return {
            name: Value(
                data=frozenset([name]),
                number=Affine(name, 0) if name in self.counts else None,
            )
            for name in self.given
        }

    def bounded(self, name: str) -> bool:
        """Whether a parameter's constraint bounds it on all sides."""
        return _is_bounded(self.parameters[name].transformation)


def declared(syntax: Syntax) -> Declared:
    """Read what a program declares."""
    dimensioned, counts, given, fixed = set(), set(), set(), set()
    least: dict[str, int] = {}
    upper: dict[str, int] = {}
    for block in ("data", "transformeddata"):
        for node in syntax.blocks[block]:
            if tag(stmt(node)) != "VarDecl":
                continue
            kind = tag(field(stmt(node), "decl_type"))
            fixed.update(declared_names(node))
            if block == "data":
                given.update(declared_names(node))
            if kind == "SInt":
                counts.update(declared_names(node))
                bounds = field(stmt(node), "transformation")
                for ends, kinds, place in ((least, _LOWER, 1), (upper, _UPPER, -1)):
                    number = literal(items(bounds)[place]) if tag(bounds) in kinds else None
                    if number is not None:
                        ends |= dict.fromkeys(declared_names(node), int(number))
            elif kind != "SReal" and block == "data":
                dimensioned.update(declared_names(node))
    found = {each.name: each for each in parameters(syntax)}
    sizes = set[str]().union(*(names(each.kind) for each in found.values())) & counts
    made = _made_of(syntax)
    waiting = list(sizes)
    while waiting:
        new = made.get(waiting.pop(), set()) & counts - sizes
        sizes |= new
        waiting += new
    return Declared(
        frozenset(dimensioned),
        frozenset(counts),
        frozenset(sizes),
        frozenset(given),
        frozenset(fixed),
        least,
        upper,
        found,
    )


def _made_of(syntax: Syntax) -> dict[str, set[str]]:
    """Names in what transformed data are declared with."""
    made: dict[str, set[str]] = {}
    for node in syntax.blocks["transformeddata"]:
        if tag(stmt(node)) == "VarDecl":
            for each in items(field(stmt(node), "variables")):
                name = name_of(field(each, "identifier"))
                made[name] = names(field(each, "initial_value"))
    return made


def sizes_of(kind: Node) -> list[Node] | None:
    """Return the sizes of a declared type's axes, outer ones first; None for a tuple."""
    sizes = []
    while tag(kind) == "SArray":
        _, kind, size = items(kind)
        sizes.append(size)
    if tag(kind) == "STuple":
        return None
    if tag(kind) in _TYPES:
        sizes += list(items(kind)[-_TYPES[tag(kind)] :])
    return sizes


def limit(size: Node, upper: Mapping[str, int]) -> int | None:
    """Return the largest number that a size can be, if the text tells.

    Parameters
    ----------
    size
        The size.
    upper
        Upper bounds that data are declared with.
    """
    form = expr(size)
    kind = tag(form)
    number = literal(size)
    if number is not None:
        return int(number)
    if kind == "Variable":
        return upper.get(name_of(items(form)[1]))
    if kind == "Paren":
        return limit(items(form)[1], upper)
    if kind == "TernaryIf":
        both = [limit(each, upper) for each in items(form)[2:]]
        known = [each for each in both if each is not None]
        return max(known) if len(known) == 2 else None
    if kind == "BinOp" and tag(items(form)[2]) in _LOGICAL:
        return 1
    if kind == "BinOp" and tag(items(form)[2]) == "Times":
        both = [limit(items(form)[1], upper), limit(items(form)[3], upper)]
        return both[0] * both[1] if both[0] is not None and both[1] is not None else None
    return None


_LOGICAL = ("Less", "Leq", "Greater", "Geq", "Equals", "NEquals", "And", "Or")


def _is_bounded(transformation: Node) -> bool:
    if tag(transformation) == "TupleTransformation":
        return all(map(_is_bounded, items(items(transformation)[1])))
    return constraint_of(transformation).bounded
