"""Base coordinates of a program's parameters, if a Gaussian base can live on them.

They are those of :mod:`harness.model.coordinates`: a parameter itself, or its logarithm if it is
declared positive.  Constraints that remove a degree of freedom, such as a simplex, have no such
coordinates.  If a parameter's constraint depends on others, or the parameter is an array of
vectors, our coordinates are not Stan's, so there are none either.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from harness.model import Transform
from harness.temper.syntax import Syntax
from harness.temper.tree import Node, declared_names, expr, field, items, stmt, tag, walk

_PLAIN = {"SReal", "SVector", "SRowVector", "SMatrix"}


@dataclass(frozen=True)
class BaseCoordinates:
    """How the parameters of a program become base coordinates.

    Attributes
    ----------
    transforms
        By parameter, in the program's order.
    numbers
        Parameters that are one number each.
    reason
        Why there are none; None if there are.
    """

    transforms: Mapping[str, Transform]
    numbers: frozenset[str] = frozenset()
    reason: str | None = None


def base_coordinates(syntax: Syntax) -> BaseCoordinates:
    """Return base coordinates of a program's parameters, or why it has none."""
    transforms: dict[str, Transform] = {}
    numbers: set[str] = set()
    for node in syntax.blocks["parameters"]:
        form = stmt(node)
        kind, constraint = field(form, "decl_type"), field(form, "transformation")
        names = declared_names(node)
        transform = _transform(kind, constraint)
        if transform is None:
            reason = f"its parameter {names[0]} is neither a free nor a positive number or matrix"
            return BaseCoordinates({}, reason=reason)
        if tag(kind) == "SReal":
            numbers |= set(names)
        transforms |= dict.fromkeys(names, transform)
    if any(is_jacobian(each) for each in walk(syntax.blocks["transformedparameters"])):
        return BaseCoordinates({}, reason="it changes variables by functions of Stan's")
    return BaseCoordinates(transforms, frozenset(numbers))


def _transform(kind: Node, constraint: Node) -> Transform | None:
    if tag(kind) == "SArray":
        kind = items(kind)[1]
        if tag(kind) != "SReal":
            return None
    if tag(kind) not in _PLAIN:
        return None
    if tag(constraint) == "Identity":
        return "identity"
    if tag(constraint) == "Lower":
        bound = expr(items(constraint)[1])
        if tag(bound) in ("IntNumeral", "RealNumeral") and float(tag(items(bound)[1])) == 0:
            return "log"
    return None


def is_jacobian(node: Node) -> bool:
    """Whether a constructor calls one of Stan's functions that add a Jacobian to the target."""
    return not isinstance(node, str) and len(node) == 4 and node[1] == ("StanLib", "FnJacobian")


GAUSSIAN_NAMES = (
    "B",
    "whitened_mean",
    "whiten",
    "base_constant",
    "gaussian_base_lpdf",
    "at",
    "last",
    "gaussian",
)
"""Names that :func:`gaussian_base` uses."""


def gaussian_base(coordinates: BaseCoordinates, named: Mapping[str, str]) -> str:
    """Text that declares ``gaussian``, the log density of a Gaussian base at a point.

    Parameters
    ----------
    coordinates
        The program's.
    named
        What the program calls each of :data:`GAUSSIAN_NAMES`.
    """
    size, mean, whiten, constant, density, at, last, gaussian = (
        named[name] for name in GAUSSIAN_NAMES
    )
    rows = [f"vector[{size}] {at};", f"int {last} = 0;", f"real {gaussian} = 0;"]
    for name, transform in coordinates.transforms.items():
        value = f"log({name})" if transform == "log" else name
        if name in coordinates.numbers:
            rows.append(f"{at}[{last} + 1] = {value};\n{last} += 1;")
        else:
            count = f"num_elements({name})"
            rows.append(f"{at}[{last} + 1 : {last} + {count}] = to_vector({value});")
            rows.append(f"{last} += {count};")
        if transform == "log":
            # The Jacobian, by which Stan's density of the parameter differs from ours.
            total = value if name in coordinates.numbers else f"sum({value})"
            rows.append(f"{gaussian} -= {total};")
    rows.append(f"{gaussian} += {density}({at} | {mean}, {whiten}, {constant});")
    return "\n".join(rows)
