"""Runs on the funnel: Metropolis, and population Monte Carlo in four variants."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.arrays import FloatArray
from harness.fit import Fit
from harness.forms.method import python_method
from harness.model import Model
from harness.proposals import (
    Chance,
    GaussianSteps,
    Widths,
    evaluated,
    metropolis,
    move_population,
    start_population,
)

from .runs import fit_of_runs, thinning, watched
from .targets import log_funnel

WIDTHS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 4.0, 8.0, 10.0, 12.0, 14.0, 16.0)
"""Standard deviations of the proposals, as printed."""
EDGES = np.linspace(-20, 20, 401)
"""Of the bins in which v is counted; what lies beyond counts in the last ones."""
METROPOLIS_NAME, POPULATION_NAME = "proposals_funnel_metropolis", "proposals_funnel_population"


def counted(v: FloatArray, weight: FloatArray | None = None) -> FloatArray:
    """Return the weight of values of v in each bin."""
    index = np.clip(np.floor((v - EDGES[0]) / (EDGES[1] - EDGES[0])), 0, EDGES.size - 2)
    return np.bincount(index.astype(int), weight, EDGES.size - 1).astype(np.float64)


def start(number: int) -> FloatArray:
    """Return v = 0 and x = 1 for each of some chains or particles."""
    return np.tile([0.0, 1.0, 1.0, 1.0, 1.0], (number, 1))


def sample_metropolis(model: Model, *, runs: int, steps: int, seed: int) -> Fit:
    """Run Metropolis chains with proposals of all widths; the fit has the bins' ``mass`` of v."""
    what, chance = watched(model), Chance(np.random.default_rng(seed))
    density, proposal = what.counted(log_funnel), GaussianSteps(WIDTHS)
    chains = evaluated(density, start(runs))
    mass, points, accepted = np.zeros(EDGES.size - 1), [], 0.0
    for step in range(steps):
        made = metropolis(density, proposal, chains, chance)
        chains = made.after
        accepted += float(made.acceptance.mean())
        mass += counted(chains.points[:, 0])
        if step % thinning(steps) == 0:
            points.append(chains.points)
    found = {"mass": mass / mass.sum(), "largest": 1 / mass.sum(), "acceptance": accepted / steps}
    return fit_of_runs(
        METROPOLIS_NAME, what, points, found, settings={"runs": runs, "steps": steps}, seed=seed
    )


def sample_population(
    model: Model, *, particles: int, steps: int, adapted: bool, combined: bool, seed: int
) -> Fit:
    """Run a population; the fit has the bins' weighted ``mass`` of v before it is drawn anew.

    ``resampled`` is the same of the populations that were drawn, ``largest`` the share of all
    weight that a single proposal has.
    """
    rng, what = np.random.default_rng(seed), watched(model)
    density = what.counted(log_funnel)
    widths = Widths(WIDTHS, adapted=adapted, combined=combined)
    population = start_population(start(particles), widths)
    mass, resampled, points = np.zeros(EDGES.size - 1), np.zeros(EDGES.size - 1), []
    largest = -np.inf  # of the log weights so far, in whose unit the masses are
    for step in range(steps):
        made = move_population(density, widths, population, rng)
        population = made.after
        top = max(largest, float(made.log_weight.max()))
        mass *= np.exp(largest - top)
        largest = top
        mass += counted(made.proposed[:, 0], np.exp(made.log_weight - top))
        resampled += counted(population.points[:, 0])
        if step % thinning(steps) == 0:
            points.append(population.points)
    found: dict[str, Any] = {"mass": mass / mass.sum(), "largest": 1 / mass.sum()}
    found["resampled"] = resampled / resampled.sum()
    settings = {"particles": particles, "steps": steps, "adapted": adapted, "combined": combined}
    return fit_of_runs(POPULATION_NAME, what, points, found, settings=settings, seed=seed)


FUNNEL_METROPOLIS = python_method(METROPOLIS_NAME, sample_metropolis)
FUNNEL_POPULATION = python_method(POPULATION_NAME, sample_population)
