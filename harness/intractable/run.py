"""The Metropolis loop of this room, over many chains at once, and the fit that comes of it.

All samplers here accept with the probability min(1, a),

    log a = log [p(theta') f(y; theta')] - log [p(theta) f(y; theta)]
            + log [q(theta | theta') / q(theta' | theta)] + correction,

and differ only in the correction, which stands for log Z(theta) - log Z(theta').
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.fit import Fit
from harness.intractable.problem import IntractableProblem
from harness.intractable.proposals import Proposal, Walk
from harness.samplers.cost import Cost
from harness.samplers.result import plain_fit

Starts = npt.ArrayLike | Mapping[str, Any] | Sequence[Mapping[str, Any]]
"""A point (D,), one for each chain (chains, D), or parameters by name in the same two ways."""

_WANTED = 0.3
"""Acceptance that warm-up aims at, below the 0.44 of one exact coordinate, as ratios are noisy."""


class Correction(Protocol):
    """What stands for the ratio of unknown constants."""

    def start(
        self, problem: IntractableProblem, points: FloatArray, rng: np.random.Generator
    ) -> FloatArray:
        """Return what each of the first points (n, D) must remember, shape (n,)."""

    def __call__(
        self,
        problem: IntractableProblem,
        points: FloatArray,
        proposed: FloatArray,
        memory: FloatArray,
        rng: np.random.Generator,
    ) -> tuple[FloatArray, FloatArray]:
        """Return corrections (n,) of moves to ``proposed``, and what moves remember, (n,)."""


@dataclass(frozen=True)
class Recorded:
    """Draws of all chains.

    Attributes
    ----------
    points
        Shape (chains, draws, D).
    log_density
        log [p(theta) f(y; theta)], without Z(theta): (chains, draws).
    acceptance
        Mean over a draw's iterations of min(1, a): (chains, draws).
    width_factor
        What the widths were multiplied by in warm-up.
    """

    points: FloatArray
    log_density: FloatArray
    acceptance: FloatArray
    width_factor: float


def starting_points(problem: IntractableProblem, starts: Starts, chains: int) -> FloatArray:
    """Return the first points of all chains, (chains, D).

    Raises
    ------
    DataError
        If they have another shape, have names that the problem does not know, or are impossible.
    """
    if chains < 1:
        raise DataError(f"a run needs 1 chain or more; got {chains}")
    named = (
        isinstance(starts, Sequence) and len(starts) > 0 and isinstance(starts[0], Mapping)
    ) or isinstance(starts, Mapping)
    if named:
        if problem.point_of is None:
            raise DataError(f"{problem.name} has no parameters by name: give starts as an array")
        each: Any = [starts] if isinstance(starts, Mapping) else starts
        points = np.stack([problem.point_of(values) for values in each])
        if len(points) == 1:
            points = np.repeat(points, chains, axis=0)
    else:
        points = np.asarray(starts, dtype=np.float64)
        if points.shape == (problem.dimension,):
            points = np.tile(points, (chains, 1))
    if points.shape != (chains, problem.dimension):
        raise DataError(
            f"{problem.name} needs starts of shape ({problem.dimension},) or "
            f"({chains}, {problem.dimension}); got {points.shape}"
        )
    return points


def run_chains(
    problem: IntractableProblem,
    correction: Correction,
    starts: Starts,
    *,
    proposal: Proposal | npt.ArrayLike,
    draws: int,
    chains: int,
    warmup: int,
    thin: int,
    adapt: bool,
    rng: np.random.Generator,
) -> Recorded:
    """Run all chains; see :func:`harness.intractable.exchange.exchange` for the parameters.

    Raises
    ------
    DataError
        If the lengths are too small, or the observed data are impossible at a start.
    """
    if min(draws, thin) < 1 or warmup < 0:
        raise DataError(
            f"a run needs draws and thin of 1 or more, warmup of 0 or more; got draws {draws}, "
            f"thin {thin}, warmup {warmup}"
        )
    move: Proposal = proposal if callable(proposal) else Walk(proposal)
    points = starting_points(problem, starts, chains)
    log_prior = problem.prior(points)
    if np.isneginf(log_prior).any():
        raise DataError(f"a start of {problem.name} lies outside the prior's support")
    value = log_prior + problem.likelihood(points)
    if np.isneginf(value).any():
        raise DataError(
            f"log f of the observed data of {problem.name} is -inf at a start: y lies outside the "
            "model's support, or the start is impossible"
        )
    memory = correction.start(problem, points, rng)
    factor, base = 0.0, move
    kept = np.empty((draws, chains, problem.dimension))
    density, accepted = np.empty((draws, chains)), np.zeros((draws, chains))
    for step in range(-warmup, draws * thin):
        chance = _step(problem, correction, move, points, value, memory, rng)
        if step < 0:
            if adapt and isinstance(base, Walk):
                rate = (warmup + step + 1) ** -0.6
                factor += 2 * rate * (float(chance.mean()) - _WANTED)
                move = base.scaled(float(np.exp(factor)))
            continue
        index, within = divmod(step, thin)
        accepted[index] += chance / thin
        if within == thin - 1:
            kept[index], density[index] = points, value
    return Recorded(kept.swapaxes(0, 1), density.T, accepted.T, float(np.exp(factor)))


def _step(
    problem: IntractableProblem,
    correction: Correction,
    move: Proposal,
    points: FloatArray,
    value: FloatArray,
    memory: FloatArray,
    rng: np.random.Generator,
) -> FloatArray:
    """Move all chains once, in place; return the probabilities of acceptance, (n,)."""
    proposed, log_ratio = move(points, rng)
    log_prior = problem.prior(proposed)
    # Nobody simulates where the prior is zero: it could take for ever.
    possible = np.flatnonzero(log_prior > -np.inf)
    chance, luck = np.zeros(len(points)), rng.random(len(points))
    if possible.size == 0:
        return chance
    there, here = proposed[possible], points[possible]
    found = log_prior[possible] + problem.likelihood(there)
    extra, remembered = correction(problem, here, there, memory[possible], rng)
    log_a = found - value[possible] + log_ratio[possible] + extra
    chance[possible] = np.exp(np.minimum(log_a, 0.0))
    moved = luck[possible] < chance[possible]
    to = possible[moved]
    points[to], value[to], memory[to] = there[moved], found[moved], remembered[moved]
    return chance


class Counted:
    """A problem that is sampled, and what that has cost."""

    def __init__(self, problem: IntractableProblem) -> None:
        self.target = problem
        self.cost = Cost()


def sampled(
    method: str,
    problem: IntractableProblem,
    correction: Correction,
    starts: Starts,
    *,
    proposal: Proposal | npt.ArrayLike,
    draws: int,
    chains: int,
    warmup: int | None,
    thin: int,
    adapt: bool,
    seed: int,
    settings: Mapping[str, Any],
) -> Fit:
    """Run all chains and return a fit; see :func:`harness.intractable.exchange.exchange`.

    Its attributes have ``acceptance``, the mean probability, and ``width_factor``.
    """
    counted = Counted(problem)
    length = draws // 2 if warmup is None else warmup
    run = run_chains(
        problem,
        correction,
        starts,
        proposal=proposal,
        draws=draws,
        chains=chains,
        warmup=length,
        thin=thin,
        adapt=adapt,
        rng=np.random.default_rng(seed),
    )
    counted.cost.densities = (length + draws * thin) * chains
    options = {"draws": draws, "warmup": length, "thin": thin, "adapt": adapt, **settings}
    return plain_fit(
        method,
        counted,
        run.points,
        settings=options,
        seed=seed,
        stats={"lp": run.log_density, "acceptance_rate": run.acceptance},
        found={"acceptance": float(run.acceptance.mean()), "width_factor": run.width_factor},
    )
