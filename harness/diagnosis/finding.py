"""A finding: one sentence of the diagnosis, how bad it is, and what to try."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


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
