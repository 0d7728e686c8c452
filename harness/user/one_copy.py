"""Draws in one of the copies of a posterior, with the density that is zero in the others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from harness import evidence
from harness.arrays import FloatArray
from harness.diagnosis import R_HAT_PROBLEM
from harness.engine.batched import BatchedDensity
from harness.engine.cores import cores
from harness.errors import HarnessError
from harness.evidence import LogEvidence
from harness.fit import Fit
from harness.model import Model
from harness.modes.labels import AnyCopy, AnyGroup, copy_around
from harness.modes.permutations import Values
from harness.modes.symmetries import equal
from harness.user.compare import parameters_of

COPIES = "copies"
"""Attribute of a fit whose draws are spread over copies: their number."""


@dataclass(frozen=True)
class InOneCopy:
    """A density on one copy only, with draws there.

    Attributes
    ----------
    density
        The program's.
    copy
        Which copy.
    draws
        Draws in it by parameter, shape (chains, draws, ...).
    points
        The same on the unconstrained space, shape (chains, draws, D).
    r_hat
        Largest R-hat of these.
    """

    density: BatchedDensity
    copy: AnyCopy
    draws: Values
    points: FloatArray
    r_hat: float

    def __call__(self, points: npt.ArrayLike, /) -> tuple[FloatArray, FloatArray]:
        """Return log densities (n,), -inf in other copies, and gradients (n, D)."""
        at = np.asarray(points, dtype=np.float64)
        value, gradient = self.density(at)
        return self.within(value, at), gradient

    def values(self, points: npt.ArrayLike, /) -> FloatArray:
        """Return log densities (n,) alone."""
        at = np.asarray(points, dtype=np.float64)
        return self.within(self.density.values(at), at)

    def within(self, log_density: FloatArray, points: FloatArray, /) -> FloatArray:
        """Return log densities (n,) at points (n, D), with -inf in other copies."""
        finite = np.isfinite(log_density)
        rows = self.copy.group.rows(self.density.constrain(points[finite]))
        value = np.full_like(log_density, -np.inf)
        value[finite] = np.where(self.copy.holds(rows), log_density[finite], -np.inf)
        return value

    @property
    def copies(self) -> int:
        """Number of copies, in each of which the density has the same integral."""
        return len(self.copy.group)

    def spread(self, values: Values, seed: int) -> dict[str, FloatArray]:
        """Return other draws, or particles, spread over all copies.

        Parameters
        ----------
        values
            By parameter, shape (chains, draws, ...).
        seed
            Seed of the choice among copies.
        """
        rows = self.copy.brought(self.copy.group.rows(flattened(values)))
        spread = spread_rows(self.copy.group, rows, shape_of(values), seed)
        return {name: spread[name].reshape(each.shape) for name, each in values.items()}

    def part_of(self, whole: LogEvidence) -> LogEvidence:
        """Return the log integral in this copy, given that of the density in all of them."""
        return whole.minus(LogEvidence(float(np.log(self.copies)), 0.0))

    def whole_of(self, part: LogEvidence) -> LogEvidence:
        """Return the log integral in all copies, given that in this one."""
        return part.plus(LogEvidence(float(np.log(self.copies)), 0.0))

    def brought(self, points: FloatArray) -> FloatArray:
        """Return other points of the unconstrained space, shape (..., D), brought to this copy.

        One that lies at the edge of the support, so that it has no image, stays where it is.
        """
        brought = points.reshape(-1, points.shape[-1]).copy()
        group = self.copy.group
        rows = group.rows(self.density.constrain(brought))
        images = self.copy.brought(rows)
        elsewhere = np.flatnonzero(np.any(images != rows, axis=1))
        if elsewhere.size:
            values = group.values(images[elsewhere])
            brought[elsewhere] = unconstrained_or(self.density, values, brought[elsewhere])
        return brought.reshape(points.shape)


def unconstrained_or(
    density: BatchedDensity, values: Mapping[str, FloatArray], otherwise: FloatArray
) -> FloatArray:
    """Return the points of draws (n, ...) by parameter; others (n, D) where there are none.

    There is none for a draw outside the support, or at its edge.  The vectors behind unit vectors
    have the length one.
    """
    try:
        found = density.unconstrain_draws(values, lengths="one")
    except HarnessError:
        if len(otherwise) == 1:
            return otherwise
        each = [
            unconstrained_or(
                density, {name: v[k : k + 1] for name, v in values.items()}, point[None]
            )
            for k, point in enumerate(otherwise)
        ]
        return np.concatenate(each)
    return np.where(np.all(np.isfinite(found), axis=1)[:, None], found, otherwise)


def unconstrained_within(
    density: BatchedDensity, values: Mapping[str, FloatArray]
) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
    """Return the points (n, D) of n draws, and which of them are within the support."""
    nowhere = np.full((len(next(iter(values.values()))), density.dimension), np.nan)
    points = unconstrained_or(density, values, nowhere)
    within: npt.NDArray[np.bool_] = np.all(np.isfinite(points), axis=1)
    return points, within


def brought_to_one_copy(model: Model, fit: Fit, group: AnyGroup) -> InOneCopy | None:
    """Bring draws to one copy; None if there are no others, or the chains disagree in it.

    Parameters
    ----------
    model
        The tempered model.
    fit
        Unweighted draws.
    group
        Leaves the model's density.
    """
    if len(group) < 2:
        return None
    density = density_of(model)
    draws = all_drawn(fit, density)
    shape, flat = shape_of(draws), flattened(draws)
    rows, height = group.rows(flat), heights(density, flat)
    copy = copy_around(group, rows, rows[height.argmax()])
    brought = copy.brought(rows)
    r_hat = evidence.largest_r_hat(brought.reshape(*shape, -1))
    one = group.values(brought)
    if not (r_hat <= R_HAT_PROBLEM and equal(height, heights(density, one))):
        return None
    return InOneCopy(
        density,
        copy,
        {name: each.reshape(draws[name].shape) for name, each in one.items()},
        density.unconstrain_draws(one).reshape(*shape, -1),
        r_hat,
    )


def spread_rows(
    group: AnyGroup, in_one_copy: FloatArray, shape: tuple[int, int], seed: int
) -> dict[str, FloatArray]:
    """Return rows (n, M), each moved to a copy that is chosen at random, by parameter."""
    return group.values(group.at_random(in_one_copy, shape, seed))


def heights(density: BatchedDensity, values: Values) -> FloatArray:
    """Return log densities of draws (n, ...) by parameter, with lengths 1 behind unit vectors."""
    return density.values(density.unconstrain_draws(values, lengths="one"))


def density_of(model: Model, variant: str = "target") -> BatchedDensity:
    """Return the density of a variant of a program, with its data."""
    return BatchedDensity(model.program(variant), model.data, threads=cores())


def all_drawn(fit: Fit, density: BatchedDensity) -> dict[str, FloatArray]:
    """Return all parameters of a fit, shape (chains, draws, ...), with those without entries."""
    return _with_empty(parameters_of(fit), density)


def all_raw(fit: Fit, density: BatchedDensity) -> dict[str, FloatArray]:
    """Return all parameters of a fit's raw draws, in the same way."""
    raw = fit.raw
    drawn = {n: raw[n].transpose("chain", "draw", ...).to_numpy() for n in fit.parameters}
    return _with_empty(drawn, density)


def _with_empty(drawn: Mapping[str, FloatArray], density: BatchedDensity) -> dict[str, FloatArray]:
    leading = shape_of(drawn)
    return {
        name: drawn.get(name, np.empty((*leading, *size))) for name, size in density.shapes.items()
    }


def flattened(values: Values) -> dict[str, FloatArray]:
    """Return draws (chains, draws, ...) one after the other, shape (n, ...)."""
    return {name: each.reshape(-1, *each.shape[2:]) for name, each in values.items()}


def shape_of(values: Values) -> tuple[int, int]:
    """Return the numbers of chains and of draws in each."""
    chains, draws = next(iter(values.values())).shape[:2]
    return chains, draws
