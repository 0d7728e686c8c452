"""Rows that both halves of the experiment share: a method with its settings, to become a cell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.engine.nuts import NutsSettings
from harness.forms.method import Method
from harness.plan.spec import Cell

from .instances import Instance

OURS = " (ours)"
"""Mark of a row that is not in the papers."""


@dataclass(frozen=True)
class Row:
    """A method with its settings, on any instance.

    Attributes
    ----------
    key
        Part of the cell's key.
    label
        Name for tables and figures.
    family
        Factor ``method``: rows of one family differ in a number only.
    method, settings, nuts
        As of a cell; the base is added where ``needs_base``.
    number
        Factor ``N``: pseudo-samples, or rungs of a ladder; 1 where there is none.
    needs_base
        Whether the method takes the instance's base.
    ours
        Whether the row is not in the papers.
    together
        Whether all replications on an instance run in one fit; the settings then have the chains of
        all of them.
    """

    key: str
    label: str
    family: str
    method: Method
    settings: Mapping[str, Any] = field(default_factory=dict)
    nuts: NutsSettings = field(default_factory=NutsSettings)
    number: int = 1
    needs_base: bool = True
    ours: bool = False
    together: bool = False

    def cell(self, instance: Instance, half: str, replications: int) -> Cell:
        """Make the cell of this row on an instance."""
        base = {"base": instance.base} if self.needs_base else {}
        return Cell(
            key=f"{instance.name}-{self.key}",
            label=f"{self.label}{OURS if self.ours else ''}",
            factors={
                "half": half,
                "instance": instance.name,
                "method": self.family,
                "N": self.number,
                "ours": self.ours,
            },
            model=instance.model,
            method=self.method,
            settings={**self.settings, **base},
            nuts=self.nuts,
            replications=replications,
            batch=replications if self.together else 1,
        )
