"""Take mixtures of densities apart: ``log_mix``, or ``log_sum_exp`` of weighted densities."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from harness.temper.sums import Density, density_call, terms
from harness.temper.text import as_text
from harness.temper.tree import Node, expr, items, stan_call, tag


@dataclass(frozen=True)
class Component:
    """A component of a mixture.

    Attributes
    ----------
    log_weight
        Text of the log of its weight; the weights of a mixture need not sum to 1.
    read
        Expressions that the weight is made of.
    density
        Its density.
    """

    log_weight: str
    read: tuple[Node, ...]
    density: Density

    def times(self, log_factor: str, *read: Node) -> Component:
        """Return the component with a weight that is so many times larger."""
        return Component(f"{log_factor} + {self.log_weight}", (*read, *self.read), self.density)


def mixture(term: Node) -> tuple[Component, ...] | None:
    """Return the components of a mixture of densities of one value; None if it is something else.

    Mixtures may have mixtures as components, and there may be one component only.
    """
    components = _components(term)
    if components is None:
        return None
    variates = {as_text(each.density.args[0]) for each in components}
    return components if len(variates) == 1 else None


def _components(term: Node) -> tuple[Component, ...] | None:
    form = expr(term)
    found = density_call(term)
    if found is not None:
        return (Component("0", (), found),)
    if tag(form) == "Paren":
        return _components(items(form)[1])
    if tag(form) == "BinOp" and tag(items(form)[2]) in ("Plus", "Minus"):
        return _weighted(term)
    name, args = stan_call(form)
    if name == "log_sum_exp" and len(args) == 2:
        return _joined(map(_components, args))
    if name == "log_mix" and len(args) == 3:
        share, *both = args
        text = as_text(share)
        first, second = map(_components, both)
        if first is None or second is None:
            return None
        return (
            *(each.times(f"log({text})", share) for each in first),
            *(each.times(f"log1m({text})", share) for each in second),
        )
    return None


def _weighted(term: Node) -> tuple[Component, ...] | None:
    """Return the components of a sum: a mixture and terms that are a weight."""
    known = [(sign, each, _components(each)) for sign, each in terms(term)]
    mixtures = [(sign, found) for sign, _, found in known if found is not None]
    if len(mixtures) != 1 or mixtures[0][0] == "-":
        return None
    components = mixtures[0][1]
    for sign, each, found in known:
        if found is None:
            components = tuple(
                one.times(f"{sign.removeprefix('+')}({as_text(each)})", each) for one in components
            )
    return components


def _joined(
    parts: Iterator[tuple[Component, ...] | None],
) -> tuple[Component, ...] | None:
    found: list[Component] = []
    for part in parts:
        if part is None:
            return None
        found += part
    return tuple(found)
