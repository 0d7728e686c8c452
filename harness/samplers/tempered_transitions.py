"""Tempered transitions: a chain at the target whose proposals pass through the base.

There are three ways to propose and accept, all of which leave the target invariant:

- ``paired`` (Neal 1996): up to the base by the reversals of the transitions, and down again by the
  transitions themselves.
- ``forward``: in both directions by the transitions, or in both directions by their reversals; a
  fair coin decides for each proposal.  Murray (2007, section 2.5.4.1) uses the transitions alone.
  That leaves the target invariant only if they are reversible: he shows that the two operators
  mirror each other in what they accept, but they differ in what they reject.  The mixture of the
  two satisfies detailed balance.
- ``single_pass`` (Murray 2007, section 2.5.4.2): there is no way up.  The state of the chain is a
  whole annealing run, and the next run is accepted with the ratio of their weights.

References
----------
Neal, R. M. (1996). Sampling from multimodal distributions using tempered transitions. Statistics
and Computing 6, 353-366.

Murray, I. (2007). Advances in Markov chain Monte Carlo methods. PhD thesis, University College
London.
"""

from __future__ import annotations

from typing import Literal, TypeVar, get_args

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.evidence import resample
from harness.fit import Fit
from harness.forms.method import python_method
from harness.model import Model
from harness.model.python_target import Target, target_of
from harness.path.gaussian import GaussianBase
from harness.samplers.annealing import (
    AnnealingKernel,
    BoolArray,
    Chains,
    PathWalk,
    Walk,
    anneal,
    anneal_back,
    require_reversal,
    step_sizes,
)
from harness.samplers.geometric_path import GeometricPath, State
from harness.samplers.kernels import Hmc
from harness.samplers.ladders import checked_ladder
from harness.samplers.result import plain_fit

METHOD = "tempered_transitions"
Variant = Literal["paired", "forward", "single_pass"]
S = TypeVar("S")


def tempered_transitions(
    what: Model | Target,
    base: GaussianBase,
    *,
    ladder: npt.ArrayLike,
    variant: Variant = "paired",
    chains: int = 8,
    draws: int = 500,
    warmup: int = 50,
    moves: int = 1,
    kernel: AnnealingKernel | None = None,
    step_size: float | None = None,
    seed: int,
) -> Fit:
    """Sample a target by tempered transitions.

    Parameters
    ----------
    what
        Model or target.
    base
        Base of the path; exact draws of it replace a transition at beta = 0.
    ladder
        Inverse temperatures, ascending from 0 to 1.
    variant
        How to propose; see the module's documentation.
    chains, draws
        Number of chains, which run side by side, and of draws in each.
    warmup
        Iterations before the draws.  Chains start from the ends of annealing runs that are
        resampled by their weights, so they are already near the target.
    moves
        Ordinary transitions at beta = 1 after each tempered one.  The single pass makes none,
        because its state is more than a point.
    kernel
        Transition at each rung: Hmc (the default), RandomWalk, Slice in random order or PartialHmc.
        PartialHmc, whose momenta are drawn afresh for each proposal, is not reversible.  With the
        others, ``paired`` and ``forward`` are the same.
    step_size
        Step size in units of the base's standard deviations; tuned along the ladder if not given.
    seed
        Seed; the same seed gives the same fit.

    Returns
    -------
    Fit
        A fit with unweighted draws.  ``sample_stats`` holds which proposals were ``accepted``, and
        the attribute ``rung_step_size`` each rung's step size.

    Raises
    ------
    DataError
        If the ladder is unusable, a setting is out of its range, the base does not have the
        target's dimension, or the target's density is not usable at draws of the base.
    """
    points_of = checked_ladder(ladder)
    if variant not in get_args(Variant):
        raise DataError(
            f"the variant must be one of {', '.join(get_args(Variant))}; got {variant!r}"
        )
    if chains < 1 or draws < 1 or warmup < 0 or moves < 0:
        raise DataError(
            f"tempered transitions need one chain and one draw or more, and no negative number of "
            f"warm-up iterations or moves; got {chains}, {draws}, {warmup} and {moves}"
        )
    kernel = kernel or Hmc()
    require_reversal(kernel)
    path = GeometricPath(target_of(what), base)
    rng = np.random.default_rng(seed)
    size = step_sizes(path, points_of, kernel, step_size, rng)
    walk = PathWalk(path, points_of, kernel, size, rng)
    if variant == "single_pass":
        states, accepted = _single_passes(walk, points_of, chains, warmup + draws, rng)
    else:
        states, accepted = _excursions(walk, points_of, variant, chains, warmup + draws, moves, rng)
    kept = states[warmup:]
    return plain_fit(
        METHOD,
        path,
        np.stack([state.points for state in kept], axis=1),
        settings={
            "inverse_temperatures": points_of.tolist(),
            "variant": variant,
            "warmup": warmup,
            "moves": moves,
            "kernel": repr(kernel),
            "step_size": step_size,
            "log_zeta": base.log_zeta,
        },
        seed=seed,
        stats={
            "accepted": np.stack(accepted[warmup:], axis=1).astype(np.float64),
            "lp": np.stack([state.log_gamma for state in kept], axis=1),
        },
        found={"rung_step_size": size},
    )


TEMPERED_TRANSITIONS = python_method(METHOD, tempered_transitions)


def excursion(
    walk: Walk[S], ladder: FloatArray, chains: S, variant: Variant, mirrored: BoolArray
) -> tuple[S, FloatArray]:
    """Propose through the base; return the proposals and the logs of their acceptance ratios.

    Parameters
    ----------
    walk, ladder
        How chains move, and the inverse temperatures beta_0 = 0 < ... < beta_K = 1.  At rung 0
        there is a transition on the way up and one on the way down.
    chains
        n chains at the target.
    variant
        ``paired`` or ``forward``.
    mirrored
        Which chains swap the roles of each transition and its reversal, shape (n,).

    Returns
    -------
    tuple
        The chains at the end; and the log of the product over k of
        p_k(u_k) p_{k+1}(d_k) / (p_{k+1}(u_k) p_k(d_k)), shape (n,).  Here u_k is the state before
        the transition of rung k on the way up, and d_k the state after it on the way down
        (Murray 2007, eq. 2.25).
    """
    top, up = anneal_back(walk, ladder, chains, mirrored if variant == "forward" else ~mirrored)
    top = walk.move(top, 0, mirrored if variant == "forward" else ~mirrored)
    top = walk.move(top, 0, mirrored)
    end, down = anneal(walk, ladder, top, mirrored)
    return end, down - up


def _excursions(
    walk: PathWalk,
    ladder: FloatArray,
    variant: Variant,
    chains: int,
    iterations: int,
    moves: int,
    rng: np.random.Generator,
) -> tuple[list[State], list[BoolArray]]:
    """Run chains by such proposals; return states and acceptances of all iterations."""
    never = np.zeros(chains, dtype=np.bool_)
    started, log_weight = anneal(walk, ladder, walk.base(chains), never)
    state = started.state.take(_by_weight(log_weight, rng))
    states, accepted = [], []
    for _ in range(iterations):
        # Paired transitions need no coin; the forward ones do.
        mirrored = rng.random(chains) < 0.5 if variant == "forward" else never
        proposed, log_ratio = excursion(walk, ladder, walk.at(state), variant, mirrored)
        accept = np.log(rng.random(chains)) < log_ratio
        state = proposed.state.where(accept, state)
        for _ in range(moves):
            state = walk.move(walk.at(state), len(ladder) - 1, never).state
        states.append(state)
        accepted.append(accept)
    return states, accepted


def _single_passes(
    walk: PathWalk, ladder: FloatArray, chains: int, iterations: int, rng: np.random.Generator
) -> tuple[list[State], list[BoolArray]]:
    """Run chains of whole annealing runs; return states and acceptances of all iterations."""

    def propose() -> tuple[Chains, FloatArray]:
        return anneal(walk, ladder, walk.base(chains), np.zeros(chains, dtype=np.bool_))

    started, log_weight = propose()
    row = _by_weight(log_weight, rng)
    state, log_weight = started.state.take(row), log_weight[row]
    states, accepted = [], []
    for _ in range(iterations):
        proposed, proposed_log_weight = propose()
        accept = np.log(rng.random(chains)) < proposed_log_weight - log_weight
        state = proposed.state.where(accept, state)
        log_weight = np.where(accept, proposed_log_weight, log_weight)
        states.append(state)
        accepted.append(accept)
    return states, accepted


def _by_weight(log_weight: FloatArray, rng: np.random.Generator) -> npt.NDArray[np.intp]:
    """Resample chains by their weights.

    Raises
    ------
    DataError
        If no chain has a positive weight.
    """
    if not np.any(np.isfinite(log_weight)):
        raise DataError(
            "no draw of the base that chains start from lies within the target's support: choose "
            "a base inside it, or more chains"
        )
    rows: npt.NDArray[np.intp] = resample(log_weight[None], rng)[0]
    return rows
