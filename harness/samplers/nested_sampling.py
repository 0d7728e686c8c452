"""Nested sampling of a target whose prior is a Gaussian base: log Z without a path.

Particles are drawn from the prior and climb the likelihood, so that no inverse temperature is
needed, and a target whose energy jumps along the tempered path is no harder than others.

References
----------
Skilling, J. (2006). Nested sampling for general Bayesian computation. Bayesian Analysis 1, 833-859.

Murray, I. (2007). Advances in Markov chain Monte Carlo methods. PhD thesis, University College
London, section 4.4.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from harness.arrays import FloatArray
from harness.fit import Fit
from harness.forms.method import python_method
from harness.model import Model
from harness.model.python_target import Target, target_of
from harness.path.gaussian import GaussianBase
from harness.samplers.geometric_path import GeometricPath
from harness.samplers.nested_moves import NestedExplorer
from harness.samplers.nested_particles import PriorAndLikelihood
from harness.samplers.nested_run import (
    NestedRun,
    NestedSettings,
    Summary,
    default_particles,
    nested_run,
    summary,
)
from harness.samplers.nested_volumes import weighted_chains
from harness.samplers.result import weighted_fit

METHOD = "nested_sampling"


def nested_sampling(
    what: Model | Target,
    base: GaussianBase,
    *,
    particles: int | None = None,
    populations: int = 4,
    explorer: NestedExplorer = "slice",
    steps: int | None = None,
    seed: int,
) -> Fit:
    """Sample a target by nested sampling, with a Gaussian base as the prior.

    The likelihood is the target's density divided by the base's; it is zero where the target's
    density is.

    Parameters
    ----------
    what
        Model, through its Stan program, or target.
    base
        The prior; its guess at log Z is not used.
    particles
        In each population; None for :func:`~harness.samplers.nested_run.default_particles`.
    populations, explorer, steps
        See :class:`~harness.samplers.nested_run.NestedSettings`.
    seed
        Seed.  The same seed gives the same fit.

    Returns
    -------
    Fit
        Each population is a chain.  ``extended`` holds its particles, all that were removed and
        those that were left, with their log weights ``log_w1``; ``posterior`` holds draws that are
        resampled from them.  Log Z has its error from sampled prior volumes.  Attributes hold
        :func:`run_attributes`.

    Raises
    ------
    DataError
        If a setting is out of its range, there are too few particles for the dimension, the base
        does not have the target's dimension, or the target's density is zero at all draws of the
        base.
    """
    path = GeometricPath(target_of(what), base)
    particles = default_particles(path.target.dimension) if particles is None else particles
    settings = NestedSettings(particles, populations, explorer, steps)
    rng = np.random.default_rng([seed, 3])
    run = run_from_base(path, settings, rng, seed=seed)
    said = summary(run, seed)
    rows, log_weight = weighted_chains(said.whole, said.found.log_weight, rng)
    return weighted_fit(
        METHOD,
        path,
        said.whole.particles.points[rows],
        {"log_w1": log_weight},
        settings={
            "particles": particles,
            "populations": populations,
            "explorer": explorer,
            "steps": run.steps,
        },
        seed=seed,
        log_evidence=said.found.log_evidence,
        found=run_attributes(run, said),
        populations=True,
    )


def run_from_base(
    path: GeometricPath, settings: NestedSettings, rng: np.random.Generator, *, seed: int
) -> NestedRun:
    """Run nested sampling with a path's base as the prior, and count its cost.

    Parameters
    ----------
    path
        Base and target.
    settings
        Settings of the run.
    rng
        Source of the particles that the run starts from.
    seed
        Seed of the run.

    Raises
    ------
    DataError
        For the same reasons as in :func:`~harness.samplers.nested_run.nested_run`.
    """
    base = path.base
    settings.refuse_too_few(path.target.dimension)
    start = base.sample(rng, settings.populations * settings.particles)
    run = nested_run(
        PriorAndLikelihood(_Prior(base), path.target.log_density),
        start.reshape(settings.populations, settings.particles, -1),
        settings,
        seed=seed,
    )
    path.cost.gradients += run.evaluations
    return run


@dataclass(frozen=True)
class _Prior:
    """A base as a :data:`harness.arrays.LogDensity`."""

    base: GaussianBase

    def __call__(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        return self.base.log_density(points), self.base.log_density_gradient(points)

    @cached_property
    def _highest(self) -> float:
        return float(self.base.log_density(self.base.mean))

    def values(self, points: FloatArray) -> FloatArray:
        z = self.base.whiten(points)
        value: FloatArray = self._highest - 0.5 * np.einsum("nd,nd->n", z, z)
        return value


def run_attributes(run: NestedRun, said: Summary) -> dict[str, Any]:
    """Return what a fit keeps of a run.

    - ``information``, H in nats;
    - ``nested_effective_draws``, the effective number of posterior draws;
    - ``nested_log_evidence``, log Z of each population alone, and ``..._mcse``, its error;
    - ``nested_iterations``; ``nested_left``, the largest share that what was left could add to Z;
    - ``nested_refused``, the share of moves that left a particle where it was;
    - ``nested_rank_p_value``, that the ranks of new particles are uniform.
    """
    return {
        "information": said.found.information,
        "nested_effective_draws": said.found.effective,
        "nested_log_evidence": np.array([each.value for each in said.by_population]),
        "nested_log_evidence_mcse": np.array([each.mcse for each in said.by_population]),
        "nested_iterations": run.iterations,
        "nested_left": run.left,
        "nested_refused": run.refused,
        "nested_rank_p_value": run.p_value,
    }


NESTED_SAMPLING = python_method(METHOD, nested_sampling)
