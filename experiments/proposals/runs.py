"""What every part's runs have in common: chains of many runs at once, and the fit made of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from harness.arrays import FloatArray
from harness.fit import Fit
from harness.model import Model
from harness.model.python_target import Target, target_of
from harness.proposals import Density
from harness.samplers.cost import Cost
from harness.samplers.result import plain_fit

SHOWN = 4
"""Chains whose draws the fit keeps; what is measured is of all of them."""
_KEPT = 500


@dataclass
class Watched:
    """A target, and what its runs cost."""

    target: Target
    cost: Cost = field(default_factory=Cost)

    def counted(self, density: Density) -> Density:
        """Return a density that counts its evaluations."""

        def counting(points: FloatArray) -> FloatArray:
            self.cost.densities += len(points)
            return density(points)

        return counting


def watched(model: Model) -> Watched:
    """Return what is sampled; its clock starts now."""
    return Watched(target_of(model))


def thinning(steps: int) -> int:
    """Return of how many steps the fit keeps one."""
    return max(1, steps // _KEPT)


def fit_of_runs(
    method: str,
    what: Watched,
    points: list[FloatArray],
    found: dict[str, Any],
    *,
    settings: dict[str, Any],
    seed: int,
) -> Fit:
    """Return a fit of some chains' draws, with what was measured on all of them.

    Parameters
    ----------
    points
        The kept steps' points, (n, D) each.
    found
        Numbers and vectors for the fit's attributes.
    method, what, settings, seed
        For the fit.
    """
    kept = np.stack([each[:SHOWN] for each in points], axis=1)
    return plain_fit(method, what, kept, settings=settings, seed=seed, found=found)
