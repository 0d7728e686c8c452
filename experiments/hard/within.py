"""Sample a program as a user would, with as many draws as a budget allows.

A short trial shows what a draw costs; then the whole run follows, with draws for what is left.  The
trial counts.  If what is left buys no run twice as long, the trial is the run.

``auto`` and parallel tempering keep to a budget of seconds by themselves, plain NUTS at the
beginning of ``auto`` excepted, whose time a trial of NUTS alone foretells.

The seconds that there are, or those that the trial says the evaluations take, are also the budget
of ``harness sample``, since parallel tempering goes on until its draws are enough.  That budget is
in wall time, so a busy machine changes answers.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from harness.engine.cores import at_most_cores
from harness.fit import Fit
from harness.forms.method import python_method
from harness.model import Model
from harness.seeds import derived_seeds
from harness.user import UserFit, sample
from harness.user.scout import BUDGET

from .particles import sample_by_particles
from .peers import sample_by_dynesty, sample_by_nested_slices, sample_by_tempered_particles
from .peers.jax_runs import BEFORE, load

CHAINS = 4
_TRIAL_SECONDS = 20.0
"""Budget of a trial, if there is more."""
TRIAL_WARMUP, TRIAL_DRAWS = 300, 150
MOST_WARMUP = 1000
MOST_DRAWS = 4000
"""Of each chain."""
_USUAL_DRAWS = 1000
"""Draws of each chain where the method keeps to a budget by itself, as users ask for."""
_NUTS_SHARE = 0.3
"""Most of the seconds that plain NUTS may take at the beginning of ``auto``."""
_DRAWS_A_PARTICLE = 2
"""Iterations that other methods are asked for, over particles of tempered SMC."""
_DRAWS_A_LIVE_POINT = 40
"""Iterations that other methods are asked for, over live points: from 45 to 500 of these."""
_DRAWS_A_SLICED_POINT = 4
"""The same for nested slices, whose points are evaluated side by side: from 450 to 5,000."""
_SLACK = 1.5
"""Cost at which a run is stopped, over what was foreseen: a trial foresees it only roughly."""


class Spent(NamedTuple):
    """What a run has cost."""

    seconds: float
    """Processor time of the process, over all threads."""
    evaluations: float
    """Evaluations of the target's density with its gradient, one for each pseudo-sample."""


UNLIMITED = Spent(math.inf, math.inf)


@dataclass(frozen=True)
class Asked:
    """What one run is asked for.

    Attributes
    ----------
    warmup, draws
        Iterations of each chain.
    seed
        Seed.
    most
        What it may cost before it is stopped, if it can be stopped.
    budget
        Budget of ``harness sample``, in seconds.
    """

    warmup: int
    draws: int
    seed: int
    most: Spent = UNLIMITED
    budget: float = BUDGET


@dataclass(frozen=True)
class Made:
    """A fit and its cost.

    Attributes
    ----------
    fit
        The fit, with the findings about it.
    gradients
        Gradients of everything that led to it, as the fit counts them.
    evaluations
        The same in evaluations of the target.
    growing
        Share of the cost that grows in proportion to iterations.
    once
        Share of the cost that a further run in this process does not have.
    """

    fit: Fit
    gradients: float
    evaluations: float
    growing: float
    once: float = 0.0


def sample_within(
    model: Model,
    *,
    row: str,
    options: Mapping[str, Any],
    seconds: float | None,
    evaluations: float | None,
    program: str,
    seed: int,
) -> Fit:
    """Sample a target's program within a budget, on one core.

    Parameters
    ----------
    model
        A target with its ``target.stan``.
    row
        How: ``user`` calls :func:`harness.user.sample`, ``particles`` runs tempered SMC, the
        others are :data:`.peers.installed.PEERS`.
    options
        Options of that call.
    seconds, evaluations
        The budget: of processor time, of evaluations of the target, or None.
    program
        Digest of the program, so that the name of a task depends on it.
    seed
        Seed.

    Returns
    -------
    Fit
        Its seconds are processor time, and they and its gradients include the trial, pilots and
        fits that were not chosen.  The attribute ``evaluations`` counts those of the target.

    Raises
    ------
    HarnessError
        If there is no fit.
    """
    first, second = derived_seeds(2, seed, 1)
    run = RUNS[row]
    began = time.process_time()
    with at_most_cores(1):
        if seconds is not None and options.get("method") in ("auto", "parallel_tempering"):
            made = _within_its_own(model, seconds, options, first, second)
            return _charged(made, time.process_time() - began, model, trial_only=False)
        budget = Spent(seconds or math.inf, evaluations or math.inf)
        time_there_is = min(budget.seconds, _TRIAL_SECONDS)
        trial = Asked(TRIAL_WARMUP, TRIAL_DRAWS, first, _stop(budget), time_there_is)
        made = [run(model, trial, options)]
        spent = Spent(time.process_time() - began, made[0].evaluations)
        iterations = affordable(spent, made[0].growing, budget, made[0].once)
        if iterations >= 2 * (TRIAL_WARMUP + TRIAL_DRAWS):
            warmup = min(MOST_WARMUP, iterations // 3)
            draws = min(MOST_DRAWS, iterations - warmup)
            left = Spent(*(whole - part for whole, part in zip(budget, spent, strict=True)))
            rate = spent.seconds / spent.evaluations if spent.evaluations else math.inf
            time_there_is = min(left.seconds, rate * left.evaluations, BUDGET)
            asked = Asked(warmup, draws, second, _stop(left), time_there_is)
            made.append(run(model, asked, options))
    return _charged(made, time.process_time() - began, model, trial_only=len(made) == 1)


def _within_its_own(
    model: Model, seconds: float, options: Mapping[str, Any], first: int, second: int
) -> list[Made]:
    """Run a method that keeps to a budget by itself, after a trial of plain NUTS if it makes one.

    Its budget is what plain NUTS leaves of the seconds.
    """
    warmup, draws, budget = MOST_WARMUP, _USUAL_DRAWS, seconds
    made: list[Made] = []
    if options["method"] == "auto":
        began = time.process_time()
        asked = Asked(TRIAL_WARMUP, TRIAL_DRAWS, first)
        made.append(_by_user(model, asked, {**options, "method": "nuts"}))
        trial = time.process_time() - began
        whole = trial * (warmup + draws) / (TRIAL_WARMUP + TRIAL_DRAWS)
        share = min(1.0, _NUTS_SHARE * seconds / whole)
        warmup, draws = int(share * warmup), int(share * draws)
        budget = max(seconds - trial - share * whole, _NUTS_SHARE * seconds)
    return [*made, _by_user(model, Asked(warmup, draws, second, budget=budget), options)]


def _stop(budget: Spent) -> Spent:
    """Return at what cost a run is stopped that a trial foresaw to cost so much."""
    return Spent(*(_SLACK * each for each in budget))


def affordable(spent: Spent, growing: float, budget: Spent, once: float = 0.0) -> int:
    """Return the iterations of each chain that the rest of a budget pays for.

    Parameters
    ----------
    spent
        Cost of the trial.
    growing
        Share of it that grows in proportion to iterations.
    budget
        The whole budget; infinite where there is none.
    once
        Share of it that the run does not have.
    """
    left = min((whole - part) / part for whole, part in zip(budget, spent, strict=True) if part > 0)
    again = 1 - growing - once
    if growing <= 0 or not left > again:
        return 0
    trial = TRIAL_WARMUP + TRIAL_DRAWS
    most = MOST_WARMUP + MOST_DRAWS
    return int(min(trial * (left - again) / growing, most))


def _by_user(model: Model, asked: Asked, options: Mapping[str, Any]) -> Made:
    # Nested sampling has no warm-up: its particles are in proportion to its draws.
    nested = options["method"] == "nested_sampling"
    result = sample(
        model.program("target").path,
        model.data,
        engine="stanli",
        chains=CHAINS,
        warmup=asked.warmup,
        draws=asked.draws + nested * asked.warmup,
        seed=asked.seed,
        budget=asked.budget,
        progress=False,
        **options,
    )
    return _of_user(result)


def _of_user(result: UserFit) -> Made:
    counted = result.gradients
    moving = counted["warmup"] + counted["sampling"]
    more = (result.fit.pseudo_samples - 1) * moving
    evaluations = float(counted["total"] + more)
    growing = (moving + more) / evaluations if evaluations else 0.0
    return Made(result.fit, float(counted["total"]), evaluations, growing)


def _by_particles(model: Model, asked: Asked, options: Mapping[str, Any]) -> Made:
    fit, before = sample_by_particles(
        model,
        particles=CHAINS * (asked.warmup + asked.draws) // _DRAWS_A_PARTICLE,
        most_seconds=BUDGET,
        seed=asked.seed,
        **options,
    )
    gradients = float(fit.gradients)
    return Made(fit, gradients, gradients, 1 - before / gradients)


def _by_dynesty(model: Model, asked: Asked, options: Mapping[str, Any]) -> Made:
    fit = sample_by_dynesty(
        model,
        live_points=CHAINS * (asked.warmup + asked.draws) // _DRAWS_A_LIVE_POINT,
        most_seconds=asked.most.seconds,
        most_evaluations=asked.most.evaluations,
        seed=asked.seed,
        **options,
    )
    evaluations = float(fit.gradients)
    return Made(fit, evaluations, evaluations, 1.0)


def _by_blackjax_smc(model: Model, asked: Asked, options: Mapping[str, Any]) -> Made:
    began, loading = time.process_time(), load()
    fit = sample_by_tempered_particles(
        model,
        particles=CHAINS * (asked.warmup + asked.draws) // _DRAWS_A_PARTICLE,
        most_seconds=asked.most.seconds,
        most_evaluations=asked.most.evaluations,
        seed=asked.seed,
        **options,
    )
    return _of_compiled(fit, asked, loading, time.process_time() - began)


def _by_blackjax_nested(model: Model, asked: Asked, options: Mapping[str, Any]) -> Made:
    began, loading = time.process_time(), load()
    fit = sample_by_nested_slices(
        model,
        live_points=CHAINS * (asked.warmup + asked.draws) // _DRAWS_A_SLICED_POINT,
        most_seconds=asked.most.seconds,
        most_evaluations=asked.most.evaluations,
        seed=asked.seed,
        **options,
    )
    return _of_compiled(fit, asked, loading, time.process_time() - began)


def _of_compiled(fit: Fit, asked: Asked, loading: float, seconds: float) -> Made:
    """Return a run of which compiling takes the same seconds, however much it is asked for."""
    evaluations = float(fit.gradients)
    if math.isinf(asked.most.seconds):
        return Made(fit, evaluations, evaluations, growing=1.0)
    once, before = loading / seconds, float(fit.tree.attrs[BEFORE]) / seconds
    return Made(fit, evaluations, evaluations, 1 - once - before, once)


RUNS: Mapping[str, Callable[[Model, Asked, Mapping[str, Any]], Made]] = {
    "user": _by_user,
    "particles": _by_particles,
    "dynesty": _by_dynesty,
    "blackjax_smc": _by_blackjax_smc,
    "blackjax_nested": _by_blackjax_nested,
}


def _charged(made: list[Made], seconds: float, model: Model, *, trial_only: bool) -> Fit:
    """Return the last fit with the cost of everything, and the target's name."""
    fit = made[-1].fit
    attrs = fit.tree.attrs

    def own(kind: str) -> float:
        return float(sum(np.sum(attrs.get(f"{kind}_{part}", 0)) for part in ("warmup", "sampling")))

    # The method's own seconds are wall time; of processor time it has no more than there was.
    share = min(1.0, seconds / own("seconds")) if own("seconds") else 0.0
    for part in ("warmup", "sampling"):
        attrs[f"seconds_{part}"] = share * np.asarray(attrs[f"seconds_{part}"], dtype=np.float64)
    attrs |= {
        "model": model.name,
        "seconds_pilot": seconds - own("seconds"),
        "gradients_pilot": sum(each.gradients for each in made) - own("gradients"),
        "seconds_modes": 0.0,
        "gradients_modes": 0,
        "evaluations": sum(each.evaluations for each in made),
        "trial_only": int(trial_only),
    }
    return fit


WITHIN = python_method("within_budget", sample_within)
