"""Find data that a program draws at random, which are different for each seed."""

from __future__ import annotations

from collections.abc import Iterable

from harness.errors import DataError
from harness.temper.classify import Classification
from harness.temper.needed import needed
from harness.temper.syntax import Syntax
from harness.temper.tree import (
    Node,
    all_statements,
    has_field,
    name_of,
    names,
    own_nodes,
    written,
)


def refuse_random_data(syntax: Syntax, classification: Classification) -> None:
    """Refuse a program whose log density depends on numbers that it draws itself.

    NUTS, pilots and weights would then each be about a density of their own: a program draws its
    ``transformed data`` anew wherever it is loaded, from another seed or by another generator.

    Raises
    ------
    DataError
        If such numbers reach the parameters' declarations or a density.  Those that only
        transformed parameters and generated quantities use do no harm.
    """
    nodes = syntax.blocks["transformeddata"]
    drawn = _drawn(nodes)
    if not drawn:
        return
    body = (*syntax.blocks["transformedparameters"], *syntax.blocks["model"])
    kept = needed(body, lambda node: id(node) in classification.terms)
    used = names(syntax.blocks["parameters"]).union(
        *(_own_names(node) for node in all_statements(body) if id(node) in kept)
    )
    random = sorted(drawn & used)
    if random:
        first = next(each for each in all_statements(nodes) if _draws(each))
        raise DataError(
            f"{syntax.line(first)}: transformed data are drawn at random here, so that the density "
            f"({', '.join(random)}) is different for each seed and nothing can be compared with "
            "it; draw them once, and pass them as data"
        )


def _drawn(nodes: Iterable[Node]) -> set[str]:
    """Return the variables that random numbers reach, by their names."""
    listed = [(names(node), written(node), _draws(node)) for node in nodes]
    found = set[str]()
    before = -1
    while before != len(found):
        before = len(found)
        for uses, writes, draws in listed:
            if draws or not found.isdisjoint(uses - writes):
                found |= writes
    return found


def _own_names(node: Node) -> set[str]:
    return {name_of(each) for each in own_nodes(node) if has_field(each, "id_loc")}


def _draws(node: Node) -> bool:
    return any(name.endswith("_rng") for name in names(node))
