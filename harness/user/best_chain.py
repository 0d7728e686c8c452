"""Plain NUTS once more from the draws of its best chain, where others are stuck far below it.

Chains that start in different modes stay there, and in many dimensions no method moves between
them.  Often one of the modes has nearly all of the probability.  If the chains that start there
agree, a bridge tells what their draws stand for, and the height of the density where the others
are stuck tells what they have at most.
"""

from __future__ import annotations

import numpy as np

from harness import evidence
from harness.arrays import FloatArray
from harness.diagnosis import R_HAT_PROBLEM, Finding, Severity
from harness.errors import FAILURES, one_line
from harness.evidence import LogEvidence, shares_at_most
from harness.modes.labels import copy_around
from harness.modes.permutations import Values
from harness.modes.symmetries import Symmetries
from harness.modes.table import MATTERS, NEGLIGIBLE
from harness.user.compare import largest_r_hat, parameters_of
from harness.user.mode_alone import mass_by_bridge
from harness.user.nuts_draws import NutsDraws, saying, seconds_of_nuts
from harness.user.one_copy import density_of, flattened, shape_of
from harness.user.steps import LEAST_SHARE, Steps
from harness.user.stuck import ChainsOfNuts, chains_of_nuts, far_below, in_words
from harness.user.symmetrise import group_between

_BRIDGE_SHARE = 0.1
"""Share of the budget for a bridge."""


def from_best_chain(steps: Steps, plain: NutsDraws) -> NutsDraws:
    """Return plain NUTS's draws, or those of a run from its best chain if all others are stuck.

    Nothing is done if the chains agree, none of them is clearly below another, or there is no time.

    Parameters
    ----------
    steps
        Of this call.
    plain
        The first run.
    """
    if plain.r_hat <= R_HAT_PROBLEM or plain.seconds > LEAST_SHARE * steps.budget:
        return plain
    draws = parameters_of(plain.fit)
    chains = chains_of_nuts(steps.program.model, draws)
    if chains is None:
        return plain
    most = chains.log_mass_at_most()
    best = int(np.where(np.isfinite(most), most, -np.inf).argmax())
    below = far_below(most)
    others = {name: each[~below] for name, each in draws.items()}
    if not np.any(below) or not _agree_in_one_copy(others, steps.symmetries, steps.seed):
        return plain
    how = f"from the draws of chain {best + 1}"
    before = seconds_of_nuts(steps)
    try:
        made = steps.plain_restarted(plain.fit, best, how)
    except FAILURES as error:
        return _in_vain(plain, how, one_line(error).rstrip("."))
    again = NutsDraws(*steps.in_all_copies(made), seconds=seconds_of_nuts(steps) - before)
    try:
        found = _compared(steps, chains, again, best)
    except FAILURES as error:
        found = one_line(error).rstrip(".")
    if isinstance(found, str):
        plain.fit.count_as_warmup(made)
        return _in_vain(plain, how, found)
    again.fit.count_as_warmup(plain.fit)
    return again._replace(said=(*plain.said, found))


def _compared(steps: Steps, chains: ChainsOfNuts, again: NutsDraws, best: int) -> Finding | str:
    """Return what is said of the chains of the first run, or why the second one has not helped."""
    if not again.r_hat <= R_HAT_PROBLEM:
        return "its chains disagree, too"
    whole = _mass(steps, again)
    if whole is None:
        return "no bridge tells what its draws stand for"
    points, one = _points(steps, again), again.in_one_copy
    at = chains.points if one is None else one.brought(chains.points)
    like = points.reshape(-1, points.shape[2])
    shares = shares_at_most(chains.log_mass_at_most(at, like), whole)
    elsewhere = [k for k, each in enumerate(at) if not _agree_with(points, each)]
    left = np.array(elsewhere, dtype=np.intp)
    if np.any(shares[left] > MATTERS):
        return f"the mode of chain {int(left[shares[left].argmax()]) + 1} may matter"
    return _helped(elsewhere, shares, best)


def _agree(points: FloatArray) -> bool:
    """Whether chains (chains, n, D) agree; a single one does."""
    return len(points) < 2 or bool(evidence.largest_r_hat(points) <= R_HAT_PROBLEM)


def _agree_in_one_copy(draws: Values, symmetries: Symmetries | None, seed: int) -> bool:
    """Whether chains agree, each parameter (chains, n, ...), if all draws are in one copy."""
    flat, shape = flattened(draws), shape_of(draws)
    if shape[0] < 2:
        return True
    group = None if symmetries is None else group_between(symmetries, draws, seed)
    if group is None:
        return largest_r_hat(draws)[0] <= R_HAT_PROBLEM
    rows = group.rows(flat)
    brought = copy_around(group, rows, rows[0]).brought(rows)
    return _agree(brought.reshape(*shape, -1))


def _agree_with(points: FloatArray, chain: FloatArray) -> bool:
    """Whether a chain (n, D) agrees with others (chains, n, D)."""
    count = min(points.shape[1], len(chain))
    return _agree(np.concatenate([_thinned(points, count), _thinned(chain[None], count)]))


def _thinned(points: FloatArray, count: int) -> FloatArray:
    """Return so many draws of each chain (chains, n, D), evenly spread."""
    chosen = np.linspace(0, points.shape[1] - 1, count).round().astype(np.intp)
    return points[:, chosen]


def _points(steps: Steps, draws: NutsDraws) -> FloatArray:
    """Return some draws on the unconstrained space, (chains, n, D), in one copy of several."""
    if draws.in_one_copy is not None:
        return draws.in_one_copy.points
    return ChainsOfNuts(steps.program.model, parameters_of(draws.fit)).points


def _mass(steps: Steps, draws: NutsDraws) -> LogEvidence | None:
    """Return the log of what the density integrates to where draws are, in all copies."""
    one, most_seconds = draws.in_one_copy, _BRIDGE_SHARE * steps.budget
    if one is None:
        density = density_of(steps.program.model)
        points = _points(steps, draws)
        return mass_by_bridge(density, points, most_seconds=most_seconds, seed=steps.seed)[0]
    mass = mass_by_bridge(one, one.points, most_seconds=most_seconds, seed=steps.seed)[0]
    return None if mass is None else one.whole_of(mass)


def _in_vain(plain: NutsDraws, how: str, why: str) -> NutsDraws:
    """Return the first draws, with what a run from one of its chains came to."""
    told = f"Plain NUTS ran once more {how}, because others are stuck below it"
    return saying(plain, plain, f"{told}. That did not help: {why}.")


def _helped(elsewhere: list[int], shares: FloatArray, best: int) -> Finding:
    """Say which chains were stuck, and how much of the posterior may be where they were.

    Parameters
    ----------
    elsewhere
        Their numbers, from 0.
    shares
        What each chain's part of the posterior has at most, shape (chains,).
    best
        The chain from whose draws all started anew.
    """
    told = f"NUTS ran once more with all chains from the draws of chain {best + 1}, and they agree"
    if not elsewhere:
        return Finding(Severity.FINE, f"{told}, also with those of the first run.")
    who, _, _ = in_words(tuple(elsewhere), len(shares))
    several = len(elsewhere) > 1
    stuck = "were stuck in other modes, which have" if several else "was stuck in a mode that has"
    share = float(shares[elsewhere].sum())
    little = share < NEGLIGIBLE
    return Finding(
        Severity.FINE if little else Severity.WARNING,
        f"{who} of plain NUTS {stuck} a probability of at most {share:.1g}, by the height of the "
        f"density there. {told}.",
        "" if little else "Compare with --method parallel_tempering.",
    )
