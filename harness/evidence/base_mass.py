"""The share of a base's mass that a path reaches, which corrects log Z along the path.

A path cannot reach those parts of its base where the target's density is zero or its program
rejects the point.  It then starts from the rest of the base.  The ratio of normalising constants
along it is Z / (s Z_0), where s is the share of the base's mass Z_0 that is left.  Without a
correction log Z is too high by -log s, and nothing at either end of the path shows it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from harness.errors import DataError
from harness.evidence.estimates import expectation
from harness.evidence.evidence import LogEvidence

NEARLY_WHOLE = 0.999
"""Share of a base's mass above which the rest is negligible; the threshold is our choice."""

_ROUNDING = 1e-9  # error of a logarithm that should be 0


@dataclass(frozen=True)
class LogMass:
    """Log of a share of a base's mass, in nats, and its standard error.

    Attributes
    ----------
    value
        Log of the share; 0 if the path reaches all of the base.
    mcse
        Monte Carlo standard error of ``value``.

    Raises
    ------
    DataError
        If the value is not the log of a share above zero, or the error is not a valid one.
    """

    value: float = 0.0
    mcse: float = 0.0

    def __post_init__(self) -> None:
        if not -math.inf < self.value <= _ROUNDING:
            raise DataError(
                "the log of the share of a base's mass must be finite and at most 0; "
                f"got {self.value}"
            )
        if not 0 <= self.mcse < math.inf:
            raise DataError(
                "the standard error of a base's mass must be finite and not negative; "
                f"got {self.mcse}"
            )

    @property
    def share(self) -> float:
        """The share itself, between 0 and 1."""
        return min(1.0, math.exp(self.value))

    @property
    def nearly_whole(self) -> bool:
        """Whether the share is so near 1 that the rest is negligible."""
        return self.share > NEARLY_WHOLE

    def added_to(self, estimate: LogEvidence) -> LogEvidence:
        """Correct an estimate of log Z that assumed that the path reaches all of the base.

        The two errors are assumed to be independent.
        """
        return LogEvidence(estimate.value + self.value, float(np.hypot(estimate.mcse, self.mcse)))


WHOLE_BASE = LogMass()
"""The path reaches all of the base."""


def log_base_mass(reached: npt.ArrayLike) -> LogMass:
    """Estimate the share of a base's mass that a path reaches, from draws of the base.

    Parameters
    ----------
    reached
        Whether the path reaches each draw of the whole base, shape (chains, draws).

    Raises
    ------
    DataError
        If the shape is a different one, no draw is reached, or only some are and there are fewer
        than 4 draws per chain.
    """
    inside = np.asarray(reached, dtype=np.float64)
    if inside.ndim != 2 or inside.size == 0:
        raise DataError(
            f"the mass of a base needs draws (chains, draws) of it; got shape {inside.shape}"
        )
    share = float(inside.mean())
    if share == 0:
        raise DataError(
            f"the path reaches none of {inside.size} draws of its base: choose a base that "
            "overlaps with where the target's density is above zero"
        )
    if share == 1:
        return WHOLE_BASE
    error = float(expectation(inside).mcse)
    return LogMass(math.log(share), error / share)
