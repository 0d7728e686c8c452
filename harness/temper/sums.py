"""Take sums apart into their terms, and find the densities among them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from harness.temper.flow import CUMULATIVE, DENSITIES
from harness.temper.text import as_text
from harness.temper.tree import Node, expr, items, name_of, tag, walk


@dataclass(frozen=True)
class Density:
    """A density, or the logarithm of a distribution function, that is called.

    Attributes
    ----------
    name
        Its name, including the suffix that says what it is.
    args
        The value that has the density, and what stands behind the bar.
    own
        Whether it is a function of the program's own.
    factor
        A number that it is multiplied by.
    truncation
        How it is truncated, in stanc's terms.
    """

    name: str
    args: tuple[Node, ...]
    own: bool = False
    factor: float = 1.0
    truncation: Node = "NoTruncate"

    @property
    def cumulative(self) -> bool:
        """Whether it is the logarithm of a distribution function."""
        return self.name.endswith(CUMULATIVE)

    @property
    def family(self) -> str:
        """Name of the distribution."""
        return self.name.rpartition("_")[0]


def terms(expression: Node, sign: str = "+") -> Iterable[tuple[str, Node]]:
    """Yield the terms of a sum with their signs."""
    form = expr(expression)
    kind = tag(form)
    if kind == "BinOp" and tag(items(form)[2]) in ("Plus", "Minus"):
        _, left, operator, right = items(form)
        yield from terms(left, sign)
        yield from terms(right, sign if tag(operator) == "Plus" else "-+"[sign == "-"])
    elif kind == "Paren":
        yield from terms(items(form)[1], sign)
    else:
        yield sign, expression


def signed(some: tuple[tuple[str, Node], ...]) -> str:
    """Text of some terms of a sum."""
    text = " ".join(f"{sign} {as_text(term)}" for sign, term in some)
    return text.removeprefix("+ ")


def density_call(expression: Node) -> Density | None:
    """Return the density that an expression is, perhaps times a number."""
    form = expr(expression)
    if tag(form) == "Paren":
        return density_call(items(form)[1])
    if tag(form) == "BinOp" and tag(items(form)[2]) == "Times":
        _, left, _, right = items(form)
        number = expr(left)
        found = density_call(right)
        if found is not None and tag(number) in ("IntNumeral", "RealNumeral"):
            factor = found.factor * float(tag(items(number)[1]))
            return Density(found.name, found.args, found.own, factor)
        return None
    if tag(form) in ("CondDistApp", "FunApp"):
        _, kind, identifier, args = items(form)
        name = name_of(identifier)
        if name.endswith(DENSITIES + CUMULATIVE) and items(args):
            return Density(name, items(args), own=tag(kind) == "UserDefined")
    return None


def one_distribution(one: Density, other: Density) -> bool:
    """Whether two densities, or masses, are of one distribution with the same parameters."""
    texts = [list(map(as_text, each.args[1:])) for each in (one, other)]
    return one.family == other.family and texts[0] == texts[1]


def densities_in(expression: Node) -> list[Node]:
    """Return what is given a density within an expression."""
    return [
        items(each[3])[0]
        for each in walk(expression)
        if not isinstance(each, str)
        and len(each) == 4
        and each[0] in ("CondDistApp", "FunApp")
        and name_of(each[2]).endswith(DENSITIES)
        and items(each[3])
    ]
