"""The five distributions of Table 4.2 with their Gaussian bases, and a sixth as the text prints it.

Table 4.2's numbers for the t distribution are not of the target that the text describes.  The truth
that it prints, 9.69, is that of a product of ten univariate t distributions; the multivariate t has
6.52.  And its errors and evaluations are those of a base with a standard deviation of about 4, not
of 10: with 10 the errors of nested sampling are half as large again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from harness.arrays import FloatArray
from harness.model import Model
from harness.models.evidence_targets import (
    deceptive,
    gaussian_kernel,
    quadrants,
    sides,
    student_product,
    two_widths,
)
from harness.path.gaussian import GaussianBase, gaussian_base

Events = Literal["quadrants", "sides"]
EVENTS: dict[Events, Callable[[FloatArray], FloatArray]] = {"quadrants": quadrants, "sides": sides}
"""What tells the modes of a target apart, by points (..., D)."""


@dataclass(frozen=True)
class Distribution:
    """A target and its base.

    Attributes
    ----------
    key
        For names of cells.
    make
        Makes the target.
    base_sd
        Standard deviation of the base in each coordinate.
    events
        What tells its modes apart, if it has several.
    """

    key: str
    make: Callable[[], Model]
    base_sd: float
    events: Events | None = None

    def base(self) -> GaussianBase:
        """Return the base, about zero."""
        dimension = self.make().dimension
        return gaussian_base(np.zeros(dimension), self.base_sd**2 * np.eye(dimension))


GAUSSIAN_A, GAUSSIAN_B, STUDENT = "Gaussian (a)", "Gaussian (b)", "t"
TWO_MODES, DECEPTIVE, AS_PRINTED = "Two modes", "Deceptive", "t (base as printed)"
DISTRIBUTIONS: dict[str, Distribution] = {
    GAUSSIAN_A: Distribution("gaussian-a", gaussian_kernel, 10.0),
    GAUSSIAN_B: Distribution("gaussian-b", gaussian_kernel, 100.0),
    STUDENT: Distribution("t", student_product, 4.0),
    TWO_MODES: Distribution("two-modes", two_widths, 1.0, "sides"),
    DECEPTIVE: Distribution("deceptive", deceptive, 25.0, "quadrants"),
    AS_PRINTED: Distribution("t-printed", student_product, 10.0),
}
