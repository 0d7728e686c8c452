"""Put statements into an order in which each reads only what the ones before it have settled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Uses:
    """Names that a statement uses.

    Attributes
    ----------
    reads
        Variables that it reads.
    writes
        Variables that it declares or assigns to.  Statements that use the same of these keep their
        order.
    draws
        Variables that it draws.  Statements that read these come behind all that draw them.
    """

    reads: frozenset[str]
    writes: frozenset[str]
    draws: frozenset[str]


def in_sequence(statements: Sequence[Uses]) -> list[int] | None:
    """Return the order of statements, by their numbers; None if there is none.

    A statement that can stay where it is stays there.
    """
    before: list[set[int]] = [set() for _ in statements]
    for later, own in enumerate(statements):
        for number, other in enumerate(statements):
            if number == later:
                continue
            if other.draws & own.reads:
                before[later].add(number)
            shared = other.writes & (own.reads | own.writes) or other.reads & own.writes
            if number < later and shared:
                before[later].add(number)
    order: list[int] = []
    left = list(range(len(statements)))
    while left:
        done = set(order)
        following = next((each for each in left if before[each] <= done), None)
        if following is None:
            return None
        order.append(following)
        left.remove(following)
    return order
