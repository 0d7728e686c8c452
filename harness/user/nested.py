"""Nested sampling of a user's program: draws of its prior, the run, its fit, what to say of it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import version

import numpy as np

from harness.diagnosis import Finding, Severity, remember
from harness.diagnosis.path import FALSE_ALARM
from harness.engine.batched import BatchedDensity
from harness.engine.cores import cores
from harness.errors import DataError
from harness.fit import SEPARATE, Fit, build_fit, evidence_attributes
from harness.model import Model
from harness.samplers.nested_particles import PriorAndLikelihood
from harness.samplers.nested_run import NestedRun, NestedSettings, Summary, nested_run, summary
from harness.samplers.nested_sampling import METHOD, run_attributes
from harness.samplers.nested_volumes import weighted_chains
from harness.seeds import derived_seeds
from harness.user.draw_prior import PRIOR_SHARE, DriftingPriorError, prior_draws
from harness.user.evidence import unknown_integral, written_prior
from harness.user.prior import PRIOR, PriorDraws, known_integral, prior_attributes

_LEAST_SHARE = 0.25
"""Share of the time for the run itself, whatever the draws of the prior take."""
_REFUSED = 0.8
"""Share of moves that leave a particle where it was, from which on particles hardly move."""
_A_DIMENSION = 5
"""Particles a parameter; with 2 in 20 dimensions log Z was 2.4 standard errors too high on average.
"""
_APART = 0.3
"""Standard deviations over which means of populations spread, from which on it matters."""


def refuse_without_prior(model: Model) -> None:
    """Raise an error for a program that has no proper prior of its own to draw from.

    Raises
    ------
    DataError
        If that is so.
    """
    if model.tempered_whole:
        raise DataError(
            "nested sampling climbs a likelihood from a prior, and no statement of this program "
            "gives data a density: mark the likelihood's with // temper: yes, or use --method "
            "parallel_tempering"
        )
    if model.own_base == "improper":
        where = f" (it is flat in {', '.join(model.flat[:5])})" if model.flat else ""
        raise DataError(
            f"nested sampling needs a proper prior, and this one is improper{where}: give every "
            "parameter a proper prior, or use --method parallel_tempering"
        )


def nested_sampling(
    model: Model,
    settings: NestedSettings,
    *,
    seed: int,
    begin_round: Callable[[str], None],
) -> Fit:
    """Sample a tempered program by nested sampling; the fit has findings about the run.

    Parameters
    ----------
    model
        From :func:`harness.temper.tempered_model`.
    settings
        Settings of the run; its time is that of everything here.
    seed
        Seed.
    begin_round
        Is given a few words as each step begins.

    Raises
    ------
    DataError
        If the prior is improper, there are too few particles for the dimension, or the likelihood
        is zero at all draws of the prior.
    SamplingError, ToolchainError
        If NUTS does not run on the prior, its draws drift to infinity, or stanli is missing.
    """
    began = time.perf_counter()
    refuse_without_prior(model)
    settings.refuse_too_few(model.dimension)
    seeds = derived_seeds(3, seed, 14)
    rng = np.random.default_rng(seeds[0])
    begin_round("draws of the prior")
    try:
        prior = prior_draws(model, seeds[1], most_seconds=PRIOR_SHARE * settings.most_seconds)
    except DriftingPriorError as error:
        raise DriftingPriorError(
            f"{error}: nested sampling cannot start from it; use --method parallel_tempering"
        ) from None
    threads = cores()
    target = BatchedDensity(model.program("target"), model.data, threads=threads)
    space = PriorAndLikelihood(
        BatchedDensity(model.program(PRIOR), model.data, threads=threads), target
    )
    stock = prior.points.reshape(-1, prior.points.shape[2])
    wanted = settings.populations * settings.particles
    chosen = rng.choice(len(stock), size=wanted, replace=wanted > len(stock))
    spent = time.perf_counter() - began
    left = max(settings.most_seconds - spent, _LEAST_SHARE * settings.most_seconds)
    run = nested_run(
        space,
        stock[chosen].reshape(settings.populations, settings.particles, -1),
        replace(settings, most_seconds=left),
        mix_first=True,
        begin_round=begin_round,
        seed=seeds[2],
    )
    said = summary(run, seeds[2])
    seconds = time.perf_counter() - began
    fit = _fit(model, target, settings, run, said, prior.gradients, seconds, seed, rng)
    fit.tree.attrs |= prior_attributes(known_integral(model, prior))
    remember(fit, _findings(model, prior, run, said))
    return fit


def _fit(
    model: Model,
    target: BatchedDensity,
    settings: NestedSettings,
    run: NestedRun,
    said: Summary,
    prior_gradients: int,
    seconds: float,
    seed: int,
    rng: np.random.Generator,
) -> Fit:
    rows, log_weight = weighted_chains(said.whole, said.found.log_weight, rng)
    particles = said.whole.particles
    chains = len(rows)
    values = {
        name: value.reshape(*rows.shape, *value.shape[1:])
        for name, value in target.constrain(particles.points[rows.ravel()]).items()
    }
    share = np.full(chains, 1 / chains)
    return build_fit(
        posterior=values,
        extended=values | {"log_w1": log_weight},
        sample_stats={"lp": (particles.log_prior + particles.log_likelihood)[rows]},
        constant_data=model.data,
        attrs={
            "method": METHOD,
            "engine": target.engine,
            "model": model.name,
            "program": model.program("target").name,
            "settings": {
                "particles": settings.particles,
                "populations": settings.populations,
                "explorer": settings.explorer,
                "steps": run.steps,
            },
            "seed": seed,
            "parameters": json.dumps(list(model.parameters)),
            "gradients_warmup": share * prior_gradients,
            "gradients_sampling": share * run.evaluations,
            "seconds_warmup": np.zeros(chains),
            "seconds_sampling": share * seconds,
            "harness_version": version("harness"),
            SEPARATE: 1,
        }
        | evidence_attributes(said.found.log_evidence)
        | run_attributes(run, said),
        weighting="across draws",
        pseudo_samples=False,
    )


def _findings(model: Model, prior: PriorDraws, run: NestedRun, said: Summary) -> list[Finding]:
    log_likelihood = said.whole.particles.log_likelihood
    found = []
    known = known_integral(model, prior)
    found += [unknown_integral()] if known is None else written_prior(known)
    if not prior.reliable:
        found.append(
            Finding(
                Severity.WARNING,
                "Log Z may be wrong, because draws of the prior disagree, from which particles "
                f"start: R-hat is {prior.r_hat:.2f}. The prior may be very vague, or have several "
                "modes or a funnel.",
                "Parametrise the prior so that it is easy to draw from.",
            )
        )
    if log_likelihood[0] == log_likelihood[-1]:
        found.append(
            Finding(
                Severity.WARNING,
                "The likelihood is the same at all draws of the prior, so the posterior is the "
                "prior, and log Z is the log of that constant.",
                "Check that the program's likelihood depends on its parameters.",
            )
        )
        return found
    if not run.finished:
        found.append(_out_of_time(run))
    values = " and ".join(each.text for each in said.by_population)
    if said.disagreement < FALSE_ALARM:
        found.append(
            Finding(
                Severity.PROBLEM,
                "Log Z is unreliable, because independent populations of particles disagree about "
                f"it: {values}. Some of them may have missed a mode, or have too few particles in "
                "it.",
                f"Take more particles (--draws), {_OTHER}",
            )
        )
    particles = int(run.removed[0].alive[0])
    if particles < _A_DIMENSION * model.dimension:
        found.append(
            Finding(
                Severity.WARNING,
                "Log Z may be biased by more than its error, because there are few particles for "
                f"the dimension: {particles} in each population, for {model.dimension} parameters.",
                f"Take {_A_DIMENSION} or more a parameter (--draws is 4 times that), {_OTHER}",
            )
        )
    apart = _apart(said)
    if apart > _APART:
        found.append(
            Finding(
                Severity.WARNING,
                "Probabilities of modes may be wrong, because populations of particles disagree "
                "about the posterior, as they do if few particles are in each mode: their means "
                f"spread over {apart:.2f} of its standard deviations.",
                f"Take more particles (--draws), {_OTHER}",
            )
        )
    if run.refused > _REFUSED:
        found.append(
            Finding(
                Severity.WARNING,
                "New particles hardly move, so they may not be independent of those that they are "
                f"clones of: {100 * run.refused:.0f} % of their moves are refused.",
                f"Move them by slice sampling (--explorer slice), {_OTHER}",
            )
        )
    if run.p_value < FALSE_ALARM:
        found.append(
            Finding(
                Severity.WARNING,
                "Log Z may be biased, because new particles are not distributed like those that "
                "they join: their ranks are not uniform (p = "
                f"{run.p_value:.1g}).",
                f"Take more particles (--draws), move them in another way (--explorer), {_OTHER}",
            )
        )
    found.append(
        Finding(
            Severity.FINE,
            f"Nested sampling gained {said.found.information:.1f} nats of information with "
            f"{said.found.effective:,.0f} effective draws of the posterior; log Z of the "
            f"populations: {values}.",
        )
    )
    return found


def _apart(said: Summary) -> float:
    """Return the largest spread of the populations' means, in standard deviations of the whole."""
    points, weight = said.whole.particles.points, np.exp(said.found.log_weight)
    mean = weight @ points / weight.sum()
    sd = np.sqrt(weight @ np.square(points - mean) / weight.sum())
    own = [weight * (said.whole.run == each) for each in np.unique(said.whole.run)]
    means = np.array([each @ points / each.sum() for each in own if each.sum() > 0])
    if len(means) < 2:
        return 0.0
    return float((means.std(axis=0, ddof=1) / np.where(sd > 0, sd, 1.0)).max())


_OTHER = "and compare with --method parallel_tempering."


def _out_of_time(run: NestedRun) -> Finding:
    return Finding(
        Severity.PROBLEM,
        "The time ran out before nested sampling had finished, so log Z and the draws are only "
        f"what it had by then: what was left could add up to {100 * run.left:.2g} % of Z, or more "
        "where the likelihood still rises.",
        "Give the run more time (--budget), or take fewer particles (--draws).",
    )
