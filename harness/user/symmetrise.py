"""Draws in copies of one mode, spread over all copies.

Where components have no names or factors no signs, the posterior has copies of each mode, and every
chain of NUTS stays in one of them; replicas and tempered chains may move between them too rarely.
The density is exactly the same in all, so an image of a draw under an element of the group is a
draw as well, with the same weight if draws have weights.
Each draw is brought to one copy, where the chains must agree, and then to a copy that is chosen at
random.

References
----------
Marin, J.-M., Mengersen, K. and Robert, C. P. (2005). Bayesian modelling and inference on mixtures
of distributions. Handbook of Statistics 25, 459-507.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from harness import evidence
from harness.arrays import FloatArray
from harness.diagnosis import R_HAT_WARNING, Finding, Severity
from harness.errors import DataError
from harness.fit import Fit, with_parameters
from harness.model import Model
from harness.modes.exchanged import ExchangedEntries
from harness.modes.labels import AnyGroup, group_of
from harness.modes.mirrored import MirroredEntries
from harness.modes.permutations import Exchange, Permutation, Values
from harness.modes.reflections import Reflection
from harness.modes.symmetries import Both, Symmetries, Symmetry, equal, find_symmetries
from harness.user.compare import parameters_of
from harness.user.one_copy import (
    COPIES,
    InOneCopy,
    all_drawn,
    all_raw,
    brought_to_one_copy,
    density_of,
    flattened,
    heights,
    shape_of,
    spread_rows,
)
from harness.user.prior import PRIOR
from harness.user.rounds import doubts_about_draws

_POINTS, _MANY_POINTS = 20, 400
"""Draws at which a change of parameters must leave the density: at first, and if that was not
enough."""
_HOLDING_SECONDS = 4.0
"""Seconds of wall time for this second look."""
_DRAWS, _MIXED = 1000, 1.05
"""Draws a chain that are compared with their images, and R-hat of both together up to which the
chains move between copies well enough: chance takes it beyond 1.01.  If more draws are needed
anyway, or some other copies are, that is the limit."""
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
    density = density_of(model)
    some = _some(all_drawn(fit, density), _POINTS)
    return find_symmetries(density, density.unconstrain_draws(some), most_seconds=most_seconds)


def symmetrised(
    model: Model, fit: Fit, symmetries: Symmetries, *, known: AnyGroup | None = None, seed: int
) -> Symmetrised | None:
    """Spread draws over all copies; None if there are none, or the chains move between them.

    Nothing is done either if the chains disagree when all are in one copy: then they miss more than
    copies; or if draws follow a path from a base that has not the same copies.

    Parameters
    ----------
    model
        The tempered model.
    fit
        Draws without weights, or along a path from the prior.
    symmetries
        What leaves its density.
    known
        Group that leaves the density, between whose copies other chains have not moved; by default,
        or if it is none of these draws, that of the symmetries between whose copies these chains do
        not move.
    seed
        Seed of the choice among copies.
    """
    if known is not None:
        made = _spread_over(model, fit, known, seed, before=True)
        if made is not None:
            return made
    draws, in_doubt = all_drawn(fit, density_of(model)), bool(doubts_about_draws(fit))
    needed = _needed(symmetries, draws, seed, in_doubt=in_doubt)
    made = _spread_over(model, fit, needed.group, seed)
    if made is not None or not needed.changes:
        return made
    # There may be draws where some changes, which held at a few others, do not.
    holding = _holding(model, fit, symmetries.changes)
    if len(holding) == len(symmetries.changes):
        return None
    needed = _needed(replace(symmetries, changes=holding), draws, seed, in_doubt=in_doubt)
    return _spread_over(model, fit, needed.group, seed)


def _spread_over(
    model: Model, fit: Fit, group: AnyGroup | None, seed: int, *, before: bool = False
) -> Symmetrised | None:
    """Spread draws over the copies that a group makes; None if they are no such copies."""
    one = None if group is None else brought_to_one_copy(model, fit, group)
    if group is None or one is None:
        return None
    raw, drawn = all_raw(fit, one.density), parameters_of(fit)
    rows, shape = group.rows(flattened(raw)), shape_of(raw)
    values = spread_rows(group, one.copy.brought(rows), shape, seed)
    if not _Copies(model, fit, flattened(raw)).include(values):
        return None
    spread = {name: values[name].reshape(raw[name].shape) for name in drawn}
    made = with_parameters(fit, spread, seed=seed)
    made.tree.attrs[COPIES] = len(group)
    return Symmetrised(made, one, _finding(group, one.r_hat, before=before))


class _Copies:
    """Places with the densities of some raw draws, and of the prior if these follow a path."""

    def __init__(self, model: Model, fit: Fit, values: Values) -> None:
        variants = ("target", PRIOR) if fit.follows_path else ("target",)
        self._densities = [density_of(model, each) for each in variants]
        self._heights = [heights(each, values) for each in self._densities]

    def include(self, images: Values) -> bool:
        """Whether images of the draws, in their order, are such places."""
        try:
            return all(
                equal(height, heights(density, images))
                for density, height in zip(self._densities, self._heights, strict=True)
            )
        except DataError:  # outside the support
            return False


def _holding(model: Model, fit: Fit, changes: Sequence[Symmetry]) -> tuple[Symmetry, ...]:
    """Return the changes that leave the density at many raw draws, as far as there is time."""
    until = time.monotonic() + _HOLDING_SECONDS
    some = _some(all_raw(fit, density_of(model)), _MANY_POINTS)
    copies, holding = _Copies(model, fit, some), []
    for each in changes:
        if time.monotonic() > until:
            break
        if copies.include(each(some)):
            holding.append(each)
    return tuple(holding)


def _some(draws: Values, count: int) -> dict[str, FloatArray]:
    """Return so many of the draws (chains, draws, ...), or a few more, one after the other."""
    every = max(1, math.prod(shape_of(draws)) // count)
    return {name: each[::every] for name, each in flattened(draws).items()}


class _Needed(NamedTuple):
    """Changes between whose copies chains do not move, and their group; None if it is too large."""

    changes: tuple[Symmetry, ...] = ()
    group: AnyGroup | None = None


def group_between(symmetries: Symmetries, draws: Values, seed: int) -> AnyGroup | None:
    """Return the group between whose copies chains that disagree do not move.

    None if it is too large.

    Parameters
    ----------
    symmetries
        What leaves the density.
    draws
        By parameter, shape (chains, draws, ...).
    seed
        Seed of the choice among copies on the way.
    """
    return _needed(symmetries, draws, seed, in_doubt=True).group


def _needed(symmetries: Symmetries, draws: Values, seed: int, *, in_doubt: bool) -> _Needed:
    """Return the changes between whose copies the chains do not move.

    Others of its kind count with each of them at once, unless the group becomes too large: chains
    that rarely swap two components rarely swap any.  What draws in all these copies do not need is
    left out, such as another order of shares that are all alike.
    """
    every = max(1, shape_of(draws)[1] // _DRAWS)
    thin = {name: each[:, ::every] for name, each in draws.items()}
    needed = _Needed()
    for each in symmetries.changes:
        most = R_HAT_WARNING if in_doubt or needed.changes else _MIXED
        # Chains that disagree for another reason do so after any change.
        if any(each is one for one in needed.changes) or _is_mixed(each, thin, most):
            continue
        alike = [one for one in symmetries.changes if _kind(one) == _kind(each)]
        for more in ((*needed.changes, *alike), (*needed.changes, each)):
            group = group_of(replace(symmetries, changes=more))
            if group is not None:
                break
        needed = _Needed(more, group)
        if group is None:
            break
        spread = spread_rows(group, group.rows(flattened(thin)), shape_of(thin), seed)
        thin = {name: spread[name].reshape(drawn.shape) for name, drawn in thin.items()}
    return needed


def _kind(change: Symmetry) -> tuple[object, ...]:
    """Return what changes of one kind have in common: what they do, and to which parameters."""
    match change:
        case Both():
            return _kind(change.places), _kind(change.besides)
        case Exchange():
            return type(change), change.parameters
        case Permutation():
            return type(change), change.axes, change.parts
        case Reflection():
            return type(change), change.axes
        case ExchangedEntries() | MirroredEntries():
            return (type(change),)


def _is_mixed(symmetry: Symmetry, draws: Mapping[str, FloatArray], most: float) -> bool:
    """Whether R-hat of draws (chains, draws, ...) and their images together is at most that.

    Only the entries that the symmetry changes are looked at.
    """
    flat, shape = flattened(draws), shape_of(draws)
    for name, after in symmetry(flat).items():
        before = flat[name].reshape(math.prod(shape), -1)
        images = after.reshape(before.shape)
        changed = np.any(images != before, axis=0)
        if not changed.any():
            continue
        both = [each[:, changed].reshape(*shape, -1) for each in (before, images)]
        if evidence.largest_r_hat(np.concatenate(both)) > most:
            return False
    return True


def moves_freely(in_one_copy: InOneCopy) -> Finding:
    """Report that log Z is by a bridge in one copy, although the draws are in all."""
    return Finding(
        Severity.FINE,
        f"The draws are in {in_one_copy.copies:,} copies of the posterior, which have the same "
        f"density: {_different(in_one_copy.copy.group)}. The bridge sees one of them, to which the "
        "draws were brought, and log Z counts all.",
    )


def _finding(group: AnyGroup, r_hat: float, *, before: bool) -> Finding:
    """Say what has been done, and what copies are; whether other chains have shown it before."""
    seen = "There are" if before else "The chains do not move freely between"
    return Finding(
        Severity.FINE if r_hat <= R_HAT_WARNING else Severity.WARNING,
        f"{seen} {len(group):,} copies of the posterior, which have the same density: "
        f"{_different(group)}. The draws were brought to one copy, where R-hat is at "
        f"most {r_hat:.3f}, and then each to one that was chosen at random.",
        "" if r_hat <= R_HAT_WARNING else "Take more draws.",
    )


def _different(group: AnyGroup) -> str:
    """Say what is different in the copies."""
    told = sorted(group.kinds, key=len)
    more = f", and {len(told) - _MOST_TOLD} more kinds" if len(told) > _MOST_TOLD else ""
    return " or ".join(f"with {each}" for each in told[:_MOST_TOLD]) + more
