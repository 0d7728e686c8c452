"""Repelling-attracting Metropolis: proposals that first go down in density and then up again.

A proposal consists of two forced Metropolis moves.  The first prefers lower density, which repels
the chain from its mode.  The second prefers higher density, which may attract it to another mode.
An auxiliary point, proposed down from the new one, makes the intractable constants of the two
cancel.  There is no gradient and no path: the base only starts the chains and scales proposals.

References
----------
Tak, H., Meng, X.-L. and van Dyk, D. A. (2018). A repelling-attracting Metropolis algorithm for
multimodality. Journal of Computational and Graphical Statistics 27, 479-490.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray
from harness.errors import DataError, SamplingError
from harness.fit import Fit
from harness.forms.method import python_method
from harness.model import Model
from harness.model.python_target import Target, target_of
from harness.path.gaussian import GaussianBase
from harness.samplers.geometric_path import GeometricPath
from harness.samplers.result import plain_fit

# Added to every density, so that ratios are defined even if a density is zero.  It is the smallest
# power of ten in double precision, as in the paper.
_LOG_EPSILON = -308 * np.log(10)
_MOST_TRIES = 100_000  # proposals of one forced move

METHOD = "repelling_attracting"


def repelling_attracting(
    what: Model | Target,
    base: GaussianBase,
    *,
    scale: float,
    chains: int = 16,
    draws: int = 5000,
    warmup: int = 2500,
    seed: int,
) -> Fit:
    """Sample a target by repelling-attracting Metropolis (Tak et al. 2018).

    Nothing adapts, and the draws of warm-up are only left out.  The fit's ``sample_stats`` hold the
    number of ``proposals`` that each draw took, each with one evaluation of the density.

    Parameters
    ----------
    what
        Model, which is evaluated by its Stan program, or target.
    base
        Gaussian from which chains start, inside the target's support.
    scale
        Standard deviation of the Gaussian proposals, in units of the base's standard deviations.
        About the distance between modes is a good start.  For isotropic proposals use an isotropic
        base.
    chains
        Number of independent chains.
    draws, warmup
        Iterations that are kept, and those before.
    seed
        Seed.

    Raises
    ------
    DataError
        If the scale or a count is out of range, or hardly any of the base lies within the target's
        support.
    SamplingError
        If a forced move finds nothing to accept in 100,000 proposals.
    """
    if not (np.isfinite(scale) and scale > 0):
        raise DataError(f"the scale of proposals must be positive and finite; got {scale}")
    if chains < 1 or draws < 4 or warmup < 0:
        raise DataError(
            f"repelling-attracting Metropolis needs 1 chain, 4 draws and 0 iterations of warm-up "
            f"or more; got {chains}, {draws} and {warmup}"
        )
    path = GeometricPath(target_of(what), base)
    rng = np.random.default_rng(seed)
    started = path.start_at_base(rng, chains)
    # The auxiliary point starts at the same place as its chain, as in the paper.
    place = Place(started.points, started.log_gamma, started.log_gamma)
    points = np.empty((chains, draws, base.mean.size))
    stats = {name: np.empty((chains, draws)) for name in ("lp", "acceptance_rate", "proposals")}
    step = scale * base.cholesky.T
    for t in range(-warmup, draws):
        made = down_up(path.log_gamma, place, step, rng)
        place = made.place
        if t >= 0:
            points[:, t] = place.points
            stats["lp"][:, t] = place.log_gamma
            stats["acceptance_rate"][:, t] = made.acceptance
            stats["proposals"][:, t] = made.proposals
    return plain_fit(
        METHOD,
        path,
        points,
        settings={"scale": scale, "chains": chains, "draws": draws, "warmup": warmup},
        seed=seed,
        stats=stats,
    )


class Place(NamedTuple):
    """The places of n chains."""

    points: FloatArray
    """Shape (n, D)."""
    log_gamma: FloatArray
    """Log density there, shape (n,)."""
    log_auxiliary: FloatArray
    """Log density at their auxiliary points, shape (n,); the points themselves do not matter."""


class DownUp(NamedTuple):
    """Chains after a transition."""

    place: Place
    acceptance: FloatArray
    """Acceptance probability of each chain, shape (n,)."""
    proposals: FloatArray
    """Number of proposals that each chain's three forced moves took, shape (n,)."""


def down_up(
    log_gamma: Callable[[FloatArray], FloatArray],
    place: Place,
    step: FloatArray,
    rng: np.random.Generator,
) -> DownUp:
    """Propose down and up, draw the auxiliary point, and accept or stay (Tak et al. 2018).

    Parameters
    ----------
    log_gamma
        Function that returns log densities (n,) at points (n, D).
    place
        Places of the chains.
    step
        Proposals add z @ step to a point, where z is standard normal; shape (D, D).
    rng
        Source of randomness.

    Raises
    ------
    SamplingError
        If a forced move finds nothing to accept.
    """
    low = _forced(log_gamma, place.points, place.log_gamma, step, rng, sign=-1)
    high = _forced(log_gamma, low.points, low.log_gamma, step, rng, sign=1)
    back = _forced(log_gamma, high.points, high.log_gamma, step, rng, sign=-1)
    log_ratio = (
        high.log_gamma
        - place.log_gamma
        + np.minimum(0.0, _padded(place.log_gamma) - _padded(place.log_auxiliary))
        - np.minimum(0.0, _padded(high.log_gamma) - _padded(back.log_gamma))
    )
    acceptance = np.exp(np.minimum(0.0, log_ratio))
    accept = rng.random(len(acceptance)) < acceptance
    return DownUp(
        Place(
            np.where(accept[:, None], high.points, place.points),
            np.where(accept, high.log_gamma, place.log_gamma),
            np.where(accept, back.log_gamma, place.log_auxiliary),
        ),
        acceptance,
        low.proposals + high.proposals + back.proposals,
    )


class _Forced(NamedTuple):
    """Chains after a move that is proposed until it is accepted."""

    points: FloatArray
    log_gamma: FloatArray
    proposals: FloatArray


def _forced(
    log_gamma: Callable[[FloatArray], FloatArray],
    points: FloatArray,
    height: FloatArray,
    step: FloatArray,
    rng: np.random.Generator,
    *,
    sign: int,
) -> _Forced:
    """Propose until accepted with min(1, ratio^sign), where the ratio is of padded densities."""
    moved, reached = np.empty_like(points), np.empty(len(points))
    proposals = np.zeros(len(points))
    waiting: npt.NDArray[np.intp] = np.arange(len(points))
    padded = _padded(height)
    for _ in range(_MOST_TRIES):
        proposed = points[waiting] + rng.standard_normal((len(waiting), points.shape[1])) @ step
        value = log_gamma(proposed)
        proposals[waiting] += 1
        rise = sign * (_padded(value) - padded[waiting])
        accept = np.log1p(-rng.random(len(waiting))) < rise
        done = waiting[accept]
        moved[done], reached[done] = proposed[accept], value[accept]
        waiting = waiting[~accept]
        if not len(waiting):
            return _Forced(moved, reached, proposals)
    raise SamplingError(
        f"{len(waiting)} chains found no point to move {'up' if sign > 0 else 'down'} to in "
        f"{_MOST_TRIES:,} proposals: choose another scale"
    )


def _padded(log_gamma: FloatArray) -> FloatArray:
    """Return log(gamma + epsilon)."""
    value: FloatArray = np.logaddexp(log_gamma, _LOG_EPSILON)
    return value


REPELLING_ATTRACTING = python_method(METHOD, repelling_attracting)
