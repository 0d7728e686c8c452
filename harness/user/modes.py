"""The table of modes of a user's program, from all draws of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import itemgetter

import numpy as np

from harness import evidence
from harness.arrays import FloatArray
from harness.diagnosis import R_HAT_PROBLEM, Finding, Severity
from harness.engine.batched import BatchedDensity
from harness.engine.cores import cores
from harness.engine.timed import seconds_a_point
from harness.errors import FAILURES
from harness.evidence import LogEvidence
from harness.fit import Fit
from harness.fit.tempered import PSEUDO_SAMPLE
from harness.model import Model
from harness.modes import FoundModes, Visits, find_modes
from harness.modes.find import MOST_FINAL, MOST_OTHER
from harness.modes.table import NEGLIGIBLE
from harness.modes.visits import systems_left, thinning
from harness.modes.words import CLIMBS, OTHER_NUTS
from harness.user.compare import Population, parameters_of, unconstrained
from harness.user.mode_alone import ModesAlone
from harness.user.neighbourhood import Neighbourhood
from harness.user.one_copy import COPIES, InOneCopy
from harness.user.other_modes import OtherModes, other_modes
from harness.user.peaked_lengths import PeakedLengths

_CLIMBS_SHARE = 0.4
"""Share of the time after which no climbs begin that look for modes without draws."""
_TIMED = 32
"""Points at which a density is timed."""
_MORE_CLIMBS_SHARE, _MORE_GRADIENTS = 1.5, 300_000
"""The same if the chains disagree, so that there may well be more modes, for a density that is so
slow that these gradients take longer."""
_ALONE_SHARE = 0.2
"""Share of the time for each run that samples a mode by itself, and for each bridge."""


def mode_table(
    model: Model,
    fit: Fit,
    others: Sequence[Fit],
    search: Population | None,
    elsewhere: OtherModes | None,
    *,
    other_nuts: Sequence[Fit] = (),
    total: LogEvidence | None,
    in_one_copy: InOneCopy | None = None,
    most_seconds: float,
    seed: int,
) -> tuple[FoundModes | Exception, OtherModes]:
    """Find the modes that the draws of a run are in, and those where it has no draws at all.

    Parameters
    ----------
    model
        The tempered model.
    fit
        The final draws.
    others
        Fits that were made and not chosen, one of each method.
    search
        Particles of the search.
    elsewhere
        What climbs from other starting points found before an earlier table; None if there was
        none, so that they are made.
    other_nuts
        Further runs of plain NUTS.
    total
        Log of the integral of the density by a bridge from these draws, if there is one.
    in_one_copy
        A copy of the posterior, if it has more copies than the table shall list: the table is of
        that one, to which the draws of all methods are brought.
    most_seconds
        Seconds of wall time after which it gives up.
    seed
        Seed.

    Returns
    -------
    tuple
        The modes with their table, or why there is none, for example because it takes too long; and
        what climbs from other starting points found.

    Raises
    ------
    HarnessError
        If the draws are not in the density's support.
    """
    density = BatchedDensity(model.program("target"), model.data, threads=cores())
    # Thinned first: a tempered run in rounds may have a hundred times the draws that are looked at.
    draws, points = _drawn(fit, density, in_one_copy)
    peaked = PeakedLengths(density)
    visits = [_of_fit(fit, peaked, MOST_FINAL)]
    visits += [_of_fit(each, peaked, MOST_OTHER) for each in others]
    visits += [replace(_of_fit(each, peaked, MOST_OTHER), method=OTHER_NUTS) for each in other_nuts]
    if search is not None:
        values, every = _thinned(search.values, MOST_OTHER)
        particles = unconstrained(values, 2, peaked)
        log_weight = np.repeat(search.log_weight[:, None], particles.shape[1], axis=1)
        visits.append(Visits("search", particles, log_weight, every=every))
    if in_one_copy is not None:
        visits = [replace(each, points=in_one_copy.brought(each.points)) for each in visits]
        total = None if total is None else in_one_copy.part_of(total)
    if elsewhere is None:
        try:
            elsewhere = other_modes(
                model,
                density,
                draws,
                points,
                total=total,
                others=[each.points.reshape(-1, density.dimension) for each in visits[1:]],
                in_one_copy=in_one_copy,
                most_seconds=_seconds_for_climbs(density, points, most_seconds),
                seed=seed,
            )
        except FAILURES:  # the table is worth having without
            elsewhere = OtherModes((), None, 0, 0)
    climbed = elsewhere.that_matter(NEGLIGIBLE)
    peaks = np.array([each.local.peak for each in climbed]).reshape(-1, points.shape[2])
    if climbed:
        peaks = peaks if in_one_copy is None else in_one_copy.brought(peaks)
        visits.append(Visits(CLIMBS, peaks[None], np.zeros((1, len(peaks)))))
    alone = ModesAlone(
        model,
        density,
        points,
        in_one_copy=in_one_copy,
        most_seconds=_ALONE_SHARE * most_seconds,
        seed=seed,
    )
    try:
        found = find_modes(
            visits,
            peaked,
            effective=max(fewest_effective(fit), 1.0),
            masses=alone,
            in_one_copy=in_one_copy,
            cores=peaks[[each.within for each in climbed]],
            most_seconds=most_seconds,
            seed=seed,
        )
    except FAILURES as error:
        return error, elsewhere
    gradients = found.table.gradients + alone.gradients
    return replace(found, table=replace(found.table, gradients=gradients)), elsewhere


def _seconds_for_climbs(density: BatchedDensity, points: FloatArray, most_seconds: float) -> float:
    """Return the wall time after which no climbs begin, for draws (chains, n, D)."""
    least = _CLIMBS_SHARE * most_seconds
    if evidence.largest_r_hat(points) <= R_HAT_PROBLEM:
        return least
    some = points.reshape(-1, points.shape[2])
    each = seconds_a_point(density, some[:: max(1, len(some) // _TIMED)])
    return max(least, min(_MORE_CLIMBS_SHARE * most_seconds, each * _MORE_GRADIENTS))


def _drawn(
    fit: Fit, density: BatchedDensity, in_one_copy: InOneCopy | None
) -> tuple[dict[str, FloatArray], FloatArray]:
    """Return some draws by parameter, shape (chains, draws, ...), and on the unconstrained space.

    They are brought to a copy of the posterior, if one is given.
    """
    draws = _thinned(parameters_of(fit), MOST_FINAL)[0]
    points = unconstrained(draws, 2, density)
    if in_one_copy is None:
        return draws, points
    points = in_one_copy.brought(points)
    chains, count, dimension = points.shape
    flat = density.constrain(points.reshape(-1, dimension))
    draws = {name: each.reshape(chains, count, *each.shape[1:]) for name, each in flat.items()}
    return draws, points


def fewest_effective(fit: Fit) -> float:
    """Return the number of effective draws of the parameter that has the fewest."""
    numbers = [np.ravel(fit.effective_draws(itemgetter(name))) for name in fit.parameters]
    known = np.concatenate(numbers)
    known = known[np.isfinite(known)]
    return float(known.min()) if known.size else np.inf


def _of_fit(fit: Fit, density: PeakedLengths, most: int) -> Visits:
    """Return the raw draws of a fit with their weights, at most so many."""
    raw, log_weight = fit.raw, fit.log_weight
    last = (PSEUDO_SAMPLE,) if log_weight.ndim == 3 else ()
    values, every = _thinned(
        {
            name: raw[name].transpose("chain", "draw", *last, ...).to_numpy()
            for name in fit.parameters
        },
        most,
        leading=log_weight.ndim,
    )
    method = str(fit.tree.attrs["method"])
    points = unconstrained(values, log_weight.ndim, density)
    return Visits(
        *(method, points, log_weight[:, ::every]),
        # Draws that were spread over copies do not show that NUTS moves between them.
        chain=method == "nuts" and COPIES not in fit.tree.attrs,
        every=every,
        separate=fit.chains_are_separate_runs,
        systems=systems_left(fit.systems, fit.posterior.sizes["draw"], every),
    )


def _thinned(
    values: Mapping[str, FloatArray], most: int, leading: int = 2
) -> tuple[dict[str, FloatArray], int]:
    """Return every k-th draw by parameter, shape (chains, draws, ...), and k."""
    every = thinning(next(iter(values.values())).shape[:leading], most)
    return {name: value[:, ::every] for name, value in values.items()}, every


def still_elsewhere(
    model: Model, fit: Fit, elsewhere: OtherModes, in_one_copy: InOneCopy | None = None
) -> OtherModes:
    """Return what climbs found without the modes that a fit has draws in.

    Climbs are made once, beyond the draws that there were then.

    Parameters
    ----------
    model
        The tempered model.
    fit
        The final draws.
    elsewhere
        What climbs found beyond other draws.
    in_one_copy
        A copy of the posterior, if draws and climbs are to be compared there.
    """
    if not elsewhere.that_matter():
        return elsewhere
    density = BatchedDensity(model.program("target"), model.data, threads=cores())
    points = PeakedLengths(density).of_draws(_drawn(fit, density, in_one_copy)[1])
    flat = points.reshape(-1, points.shape[2])
    peaks = np.array([each.local.peak for each in elsewhere.modes])
    near = Neighbourhood(flat).holds(peaks if in_one_copy is None else in_one_copy.brought(peaks))
    left = [
        mode
        for mode, held in zip(elsewhere.modes, near, strict=True)
        # All draws around a narrow peak may be far from it.
        if not (mode.local.around(flat).any() if mode.within else held)
    ]
    return replace(elsewhere, modes=tuple(left))


def found_by_climbs(elsewhere: OtherModes) -> list[Finding]:
    """Report the largest mode that climbs found, where there is no table of modes to show it."""
    others = elsewhere.that_matter()
    if not others or elsewhere.log_mass is None:
        return []
    ratio = float(np.exp(others[0].log_mass - elsewhere.log_mass))
    return [
        Finding(
            Severity.PROBLEM,
            "The draws lack a mode, which climbs from other starting points found, with about "
            f"{ratio:.2g} times the mass of the draws' own largest mode.",
            "Give it more time (--budget) with --method auto, which starts in this mode, too.",
        )
    ]
