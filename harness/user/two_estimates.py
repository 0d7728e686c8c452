"""Whether two estimates of one log Z agree, and an error that explains how far they are apart."""

from __future__ import annotations

from harness.evidence import LogEvidence

_ERRORS, _CLOSE = 3.0, 0.1
"""Difference in standard errors and in nats, up to which two estimates agree."""


def agree(one: LogEvidence, other: LogEvidence) -> bool:
    """Whether two estimates differ no more than their errors explain."""
    gap = one.minus(other)
    return bool(abs(gap.value) <= max(_ERRORS * gap.mcse, _CLOSE))


def explaining(kept: LogEvidence, other: LogEvidence) -> LogEvidence:
    """Return an estimate with an error that explains how far the other one is from it."""
    apart = abs(other.value - kept.value)
    return LogEvidence(kept.value, max(kept.mcse, apart / _ERRORS))
