"""The tiny experiment once more, under a name that comes after it and with fewer fits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from harness.plan.catalogue import load_file
from harness.plan.spec import Cell, Profile

TINY = load_file("tiny", Path(__file__).with_name("tiny.py"))


def grid(profile: Profile) -> tuple[Cell, ...]:
    """The first cell, twice."""
    return tuple(replace(cell, replications=2) for cell in TINY.grid(profile)[:1])


EXPERIMENT = replace(
    TINY,
    name="brief",
    title="Fewer fits",
    grid=grid,
    processor_seconds={"smoke": 1.0, "quick": 1.0, "paper": 1.0},
)
