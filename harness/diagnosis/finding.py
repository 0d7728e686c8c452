"""A finding: one sentence of the diagnosis, how bad it is, and what to try."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

BETTER_PATH = (
    "Try a base nearer to the target, a better guess at log Z, a g with more mass where the path "
    "has few draws, or starting points in every mode. Then try a longer run."
)
"""What to try if the path itself is at fault."""
NO_PATH = (
    "Take a longer warm-up and more draws. If the chains still disagree, NUTS does not move "
    "between modes: temper the target."
)
"""What to try if chains of plain NUTS, which follow no path, disagree."""


class Severity(IntEnum):
    """How bad a finding is; larger is worse."""

    FINE = 0
    """The draws show nothing wrong."""
    WARNING = 1
    """Estimates are less precise than they look, or their errors are."""
    PROBLEM = 2
    """Estimates must not be used."""


@dataclass(frozen=True)
class Finding:
    """One thing that the draws show.

    Attributes
    ----------
    severity
        How bad it is.
    sentence
        What is wrong and how it shows, in a plain sentence.
    what_to_try
        What may help; empty if nothing is wrong.
    """

    severity: Severity
    sentence: str
    what_to_try: str = ""

    def __str__(self) -> str:
        return f"{self.sentence} {self.what_to_try}".rstrip()
