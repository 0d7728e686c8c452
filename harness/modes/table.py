"""The table of modes: where they are, how probable, and which methods saw them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

NEGLIGIBLE, MATTERS = 1e-3, 0.01
"""Probabilities of a mode below which it hardly counts, and from which draws must not lack it."""


@dataclass(frozen=True)
class Mode:
    """A region of the posterior without barriers inside, and with barriers around.

    Attributes
    ----------
    probability, error
        Share of the final draws, given their weights, and its Monte Carlo standard error
        (:func:`harness.evidence.probability_error`), never below the share of one effective draw.
        If masses weigh the modes, these are by its mass.
    seen_by
        Share of each method's draws, by the method's name; methods that did not see it are absent.
    centre
        Mean of its draws, by parameter, as nested lists.
    height
        Log density at its peak on the unconstrained space, up to a constant.
    closed
        Whether the density has a maximum in it, as far as a climb can tell.  If not, it rises
        beyond the draws.
    local
        Probability that it has by its mass, with its standard error: by a sum over points around
        its peak or, if the final draws lack it, by a bridge from runs that start in it.  None if
        neither can be relied on.
    copy_of
        Number of the mode, from 1, that it is a copy of; None if it is no copy.
    permuted, order
        If it is a copy by the order of an index: the parameters that have it, and that order, from
        1.
    otherwise
        If it is a copy in another way: in which, in words.
    """

    probability: float
    error: float
    seen_by: Mapping[str, float]
    centre: Mapping[str, Any]
    height: float
    closed: bool
    local: tuple[float, float] | None = None
    copy_of: int | None = None
    permuted: tuple[str, ...] = ()
    order: tuple[int, ...] = ()
    otherwise: str = ""


@dataclass(frozen=True)
class ModeTable:
    """All modes, those with most of the final draws first.

    Attributes
    ----------
    modes
        At least one.
    methods
        Methods whose draws were looked at, the one of the final draws first.
    shown
        Names of the numbers that tell the modes apart best, ``mu[1]``, at most four.
    unseen
        In words, a copy of the first mode that no method saw, if there must be one by symmetry.
    unsure
        Share of the final draws whose mode is only that of the nearest draw.
    gradients
        Evaluations of the log density that the table took.
    left, left_share
        Number of places where some method has draws, the final draws have none, and NUTS that
        starts there does not stay, so that they are no modes; and the largest share of a method's
        draws that is there in all.
    copies
        Number of copies of the posterior in each of which these modes are; the table is of one.
    """

    modes: tuple[Mode, ...]
    methods: tuple[str, ...]
    shown: tuple[str, ...] = ()
    unseen: str = ""
    unsure: float = 0.0
    gradients: int = 0
    copies: int = 1
    left: int = 0
    left_share: float = 0.0

    def as_json(self) -> str:
        """Return the table as JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> ModeTable:
        """Return the table that :meth:`as_json` wrote."""
        plain = json.loads(text)
        modes = [
            Mode(
                **{
                    **each,
                    "local": None if each["local"] is None else tuple(each["local"]),
                    "permuted": tuple(each["permuted"]),
                    "order": tuple(each["order"]),
                }
            )
            for each in plain.pop("modes")
        ]
        methods, shown = (tuple(plain.pop(name)) for name in ("methods", "shown"))
        return cls(tuple(modes), methods, shown, **plain)

    @property
    def missing(self) -> tuple[int, ...]:
        """Numbers, from 1, of the modes that the final draws lack."""
        return tuple(k for k, each in enumerate(self.modes, 1) if each.probability == 0)

    def families(self) -> dict[int, list[int]]:
        """Return the numbers of each mode that has copies, together with those of its copies."""
        return families_of(self.modes)

    def place(self, mode: Mode) -> list[float]:
        """Return the numbers of a mode's centre that are shown."""
        return [number_at(mode.centre, name) for name in self.shown]


def families_of(modes: Iterable[Mode]) -> dict[int, list[int]]:
    """Return the numbers, from 1, of each mode that has copies, with those of its copies."""
    families: dict[int, list[int]] = {}
    for number, each in enumerate(modes, 1):
        if each.copy_of is not None:
            families.setdefault(each.copy_of, [each.copy_of]).append(number)
    return families


def number_at(centre: Mapping[str, Any], label: str) -> float:
    """Return a number of nested lists by its name, such as ``mu[1,2]``."""
    name, _, inner = label.partition("[")
    value = centre[name]
    for index in filter(None, inner.rstrip("]").split(",")):
        value = value[int(index) - 1]
    return float(value)


def labels_of(name: str, shape: Sequence[int]) -> list[str]:
    """Return the names of a parameter's numbers in C order, as Stan writes them."""
    if not shape:
        return [name]
    return [f"{name}[{','.join(str(i + 1) for i in index)}]" for index in np.ndindex(*shape)]
