"""Draws in copies of one mode, spread over all copies.

Where components have no names or factors no signs, the posterior has copies of each mode, and every
chain of NUTS stays in one of them; replicas may move between them too rarely.  The density is
exactly the same in all, so an image of a draw under an element of the group is a draw as well.
Each draw is brought to one copy, where the chains must agree, and then to a copy that is chosen at
random.

References
----------
Marin, J.-M., Mengersen, K. and Robert, C. P. (2005). Bayesian modelling and inference on mixtures
of distributions. Handbook of Statistics 25, 459-507.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from harness import evidence
from harness.arrays import FloatArray
from harness.diagnosis import R_HAT_PROBLEM, R_HAT_WARNING, Finding, Severity
from harness.engine.batched import BatchedDensity
from harness.engine.cores import cores
from harness.fit import Fit, with_parameters
from harness.model import Model
from harness.modes.copies import in_words
from harness.modes.group import Group, OneCopy, copy_around, generated_group
from harness.modes.permutations import Values
from harness.modes.symmetries import Symmetries, Symmetry, equal, find_symmetries
from harness.user.compare import parameters_of
from harness.user.rounds import doubts_about_draws

COPIES = "copies"
"""Attribute of a fit whose draws are spread over copies: their number."""
_POINTS = 20
"""Draws at which a change of parameters must leave the density."""
_DRAWS, _MIXED = 1000, 1.05
"""Draws a chain that are compared with their images, and R-hat of both together up to which the
chains move between copies well enough: chance takes it beyond 1.01.  If more draws are needed
anyway, that is the limit."""
_MOST_TOLD = 3
"""Elements of a group that are told in words."""


class Symmetrised(NamedTuple):
    """Draws in all copies.

    Attributes
    ----------
    fit
        The draws, without what the program computes from its parameters.
    in_one_copy
        The same draws in one copy.
    finding
        What has been done.
    """

    fit: Fit
    in_one_copy: InOneCopy
    finding: Finding


@dataclass(frozen=True)
class InOneCopy:
    """A density on one copy only, with draws there.

    Attributes
    ----------
    density
        The program's.
    copy
        Which copy.
    values
        Draws in it by parameter, shape (chains, draws, ...).
    points
        The same on the unconstrained space, shape (chains, draws, D).
    r_hat
        Largest R-hat of these.
    """

    density: BatchedDensity
    copy: OneCopy
    values: Values
    points: FloatArray
    r_hat: float

    def __call__(self, points: npt.ArrayLike, /) -> tuple[FloatArray, FloatArray]:
        """Return log densities (n,), -inf in other copies, and gradients (n, D)."""
        at = np.asarray(points, dtype=np.float64)
        value, gradient = self.density(at)
        finite = np.isfinite(value)
        rows = self.copy.group.rows(self.density.constrain(at[finite]))
        value[finite] = np.where(self.copy.nearest(rows) == 0, value[finite], -np.inf)
        return value, gradient

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
        shape = next(iter(values.values())).shape[:2]
        rows = self.copy.brought(self.copy.group.rows(_flat(values)))
        spread = _spread(self.copy.group, rows, shape, seed)
        return {name: spread[name].reshape(each.shape) for name, each in values.items()}

    def brought_values(self, values: Values) -> dict[str, FloatArray]:
        """Return other draws by parameter, shape (n, ...), each brought to this copy."""
        group = self.copy.group
        return group.values(self.copy.brought(group.rows(values)))

    def brought(self, points: FloatArray) -> FloatArray:
        """Return other points of the unconstrained space, shape (..., D), brought to this copy."""
        flat = points.reshape(-1, points.shape[-1])
        values = self.brought_values(self.density.constrain(flat))
        return self.density.unconstrain_draws(values, lengths="one").reshape(points.shape)


def symmetries_of(model: Model, fit: Fit, *, most_seconds: float) -> Symmetries:
    """Return the changes of parameters that leave a model's density, at some draws of it.

    Parameters
    ----------
    model
        The tempered model.
    fit
        Unweighted draws.
    most_seconds
        Seconds of wall time after which no further changes are tried.
    """
    density = _density(model)
    draws = _drawn(fit, density)
    chains, count = next(iter(draws.values())).shape[:2]
    every = max(1, chains * count // _POINTS)
    some = {name: each[::every] for name, each in _flat(draws).items()}
    return find_symmetries(density, density.unconstrain_draws(some), most_seconds=most_seconds)


def symmetrised(
    model: Model, fit: Fit, symmetries: Symmetries, *, known: Group | None = None, seed: int
) -> Symmetrised | None:
    """Spread draws over all copies; None if there are none, or the chains move between them.

    Nothing is done either if the chains disagree when all are in one copy: then they miss more than
    copies.

    Parameters
    ----------
    model
        The tempered model.
    fit
        Unweighted draws.
    symmetries
        What leaves its density.
    known
        Group that leaves the density, between whose copies other chains have not moved; by default,
        that of the symmetries between whose copies these chains do not move.
    seed
        Seed of the choice among copies.
    """
    density = _density(model)
    draws = _drawn(fit, density)
    shape = next(iter(draws.values())).shape[:2]
    flat = _flat(draws)
    group = known
    if group is None:
        most = R_HAT_WARNING if doubts_about_draws(fit) else _MIXED
        needed = Symmetries(
            tuple(each for each in symmetries.changes if not _is_mixed(each, draws, most)),
            symmetries.centres,
        )
        group = generated_group(needed) if needed.changes else None
    if group is None or len(group) < 2:
        return None
    rows = group.rows(flat)
    height = density(density.unconstrain_draws(flat, lengths="one"))[0]
    copy = copy_around(group, rows, rows[height.argmax()])
    in_one_copy = copy.brought(rows)
    r_hat = evidence.largest_r_hat(in_one_copy.reshape(*shape, -1))
    if not r_hat <= R_HAT_PROBLEM:
        return None
    values = _spread(group, in_one_copy, shape, seed)
    one = group.values(in_one_copy)
    before, after = (density(density.unconstrain_draws(v, lengths="one"))[0] for v in (one, values))
    if not equal(before, after):
        return None
    made = with_parameters(
        fit, {name: values[name].reshape(draws[name].shape) for name in parameters_of(fit)}
    )
    made.tree.attrs[COPIES] = len(group)
    kept = InOneCopy(
        density,
        copy,
        {name: each.reshape(draws[name].shape) for name, each in one.items()},
        density.unconstrain_draws(one).reshape(*shape, -1),
        r_hat,
    )
    return Symmetrised(made, kept, _finding(group, r_hat, before=known is not None))


def _density(model: Model) -> BatchedDensity:
    return BatchedDensity(model.program("target"), model.data, threads=cores())


def _drawn(fit: Fit, density: BatchedDensity) -> dict[str, FloatArray]:
    """Return all parameters of a fit, shape (chains, draws, ...), with those without entries."""
    drawn = parameters_of(fit)
    shape = next(iter(drawn.values())).shape[:2]
    return {
        name: drawn.get(name, np.empty((*shape, *size))) for name, size in density.shapes.items()
    }


def _flat(values: Values) -> dict[str, FloatArray]:
    """Return draws (chains, draws, ...) one after the other, shape (n, ...)."""
    return {name: each.reshape(-1, *each.shape[2:]) for name, each in values.items()}


def _spread(
    group: Group, in_one_copy: FloatArray, shape: tuple[int, ...], seed: int
) -> dict[str, FloatArray]:
    """Return rows of one copy, each moved to one that is chosen at random, by parameter."""
    return group.values(group.applied(_balanced(len(group), shape, seed), in_one_copy))


def _is_mixed(symmetry: Symmetry, draws: Mapping[str, FloatArray], most: float) -> bool:
    """Whether R-hat of draws (chains, draws, ...) and their images together is at most that."""
    count = next(iter(draws.values())).shape[1]
    every = max(1, count // _DRAWS)
    thin = {name: each[:, ::every] for name, each in draws.items()}
    flat = _flat(thin)
    for name, changed in symmetry(flat).items():
        if np.array_equal(changed, flat[name]):
            continue
        both = np.concatenate([thin[name], changed.reshape(thin[name].shape)])
        if evidence.largest_r_hat(both) > most:
            return False
    return True


def _balanced(count: int, shape: tuple[int, ...], seed: int) -> npt.NDArray[np.intp]:
    """Return a copy for each draw, every one as often in each chain as another, but for one."""
    rng = np.random.default_rng([seed, 17])
    chains, draws = shape
    copies = [
        rng.permutation(np.resize(rng.permutation(count), draws).astype(np.intp))
        for _ in range(chains)
    ]
    return np.concatenate(copies)


def _finding(group: Group, r_hat: float, *, before: bool) -> Finding:
    """Say what has been done, and what copies are; whether other chains have shown it before."""
    told = sorted({in_words(group, each) for each in range(1, len(group))}, key=len)
    more = f", and {len(told) - _MOST_TOLD} more kinds" if len(told) > _MOST_TOLD else ""
    how = " or ".join(f"with {each}" for each in told[:_MOST_TOLD])
    seen = "There are" if before else "The chains do not move freely between"
    return Finding(
        Severity.FINE if r_hat <= R_HAT_WARNING else Severity.WARNING,
        f"{seen} {len(group)} copies of the posterior, which have the same density: "
        f"{how}{more}. The draws were brought to one copy, where R-hat is at "
        f"most {r_hat:.3f}, and then each to one that was chosen at random.",
        "" if r_hat <= R_HAT_WARNING else "Take more draws.",
    )
