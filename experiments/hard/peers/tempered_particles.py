"""blackjax's adaptive tempered SMC on a target's density in JAX.

References
----------
Del Moral, P., Doucet, A. and Jasra, A. (2006). Sequential Monte Carlo samplers. Journal of the
Royal Statistical Society B 68, 411-436.

Buchholz, A., Chopin, N. and Jacob, P. E. (2021). Adaptive tuning of Hamiltonian Monte Carlo within
sequential Monte Carlo. Bayesian Analysis 16, 745-771: a mass matrix from the particles.

Cabezas, A., Corenflos, A., Lao, J. and Louf, R. (2024). BlackJAX: composable Bayesian inference in
JAX. arXiv:2402.10797.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from harness.arrays import FloatArray
from harness.diagnosis import Finding, Severity, remember
from harness.engine.batched import BatchedDensity
from harness.errors import SamplingError
from harness.evidence import log_mean_weight
from harness.fit import Fit
from harness.model import Model
from harness.model.python_target import Target
from harness.samplers.cost import Cost
from harness.samplers.result import Spent, weighted_fit
from harness.temper import What, tempered_model

from ..sampled import parameters_of
from .jax_runs import BEFORE, compiled, double_precision, load

if TYPE_CHECKING:
    from .jax_densities import JaxDensity

METHOD = "blackjax_tempered_smc"
POPULATIONS = 8
"""As many as our own tempered SMC has."""
_FEWEST = 8
"""Particles of a population."""
_ESS = 0.9
"""Effective sample size from one inverse temperature to the next, as a share of the particles: that
of our own tempered SMC."""
_MOVES, _LEAPFROG_STEPS = 5, 8
"""HMC transitions at each inverse temperature, and leapfrog steps of each transition."""
_ACCEPTANCE = 0.8
"""Mean acceptance rate that the step sizes aim at."""
_MOST_HALVINGS = 1000
"""Of the step that is left on the ladder, to find the next.  With blackjax's default of 100 the
ladder never leaves 0 where much of the prior has log likelihoods below -1e30, as that of mrna."""
_MOST_STEPS = 1000
"""Inverse temperatures after which it gives up."""
_DONE = 1 - 1e-9
"""Inverse temperature that counts as 1: sums of increments are rounded."""


class _Moved(NamedTuple):
    """What a transition leaves for the tuning of the next ones, each for every particle."""

    acceptance: Any
    step_size: Any


class _Particles(NamedTuple):
    """What a run returns.

    Attributes
    ----------
    points
        Shape (populations, each, D).
    log_weight
        Of each particle, with its population's estimate of Z, shape (populations, each).
    log_z
        Of each population, shape (populations,).
    inv_temp
        Lowest inverse temperature that a population has reached.
    evaluations
        Points at which the likelihood was evaluated.
    started
        Processor time at its first step.
    """

    points: FloatArray
    log_weight: FloatArray
    log_z: FloatArray
    inv_temp: float
    evaluations: int
    started: float


def sample_by_tempered_particles(
    model: Model,
    *,
    particles: int,
    most_seconds: float = math.inf,
    most_evaluations: float = math.inf,
    what: What = "likelihood",
    seed: int,
) -> Fit:
    """Sample a target by blackjax's adaptive tempered SMC with HMC, from draws of the prior.

    Eight populations share nothing: each has its own ladder, its own step sizes and masses, and its
    estimate of Z, the product of the mean weights along its ladder.  As for our own tempered SMC,
    log Z is the log of the populations' mean, and its error comes from their spread.

    The masses are the inverse variances of the weighted particles, the step sizes follow their
    acceptance rates, and each transition shortens its step by a random factor, from 1/2 to 1, so
    that no trajectory returns to its start.

    Parameters
    ----------
    model
        A target whose program has a density in :mod:`.jax_densities`.
    particles
        Number of particles, rounded up to a multiple of 8 populations.
    most_seconds, most_evaluations
        Processor time, with that of compiling, and evaluations of the likelihood after which it
        stops.  The last particles are then weighted for the target.
    what
        What is tempered elsewhere; here it is the likelihood.
    seed
        Seed.

    Returns
    -------
    Fit
        Each population is a chain of ``extended``, with the log weights of its particles; draws of
        ``posterior`` are resampled from all of them.  A PROBLEM says if it stopped at the budget.
        Its gradients are evaluations of the likelihood, most of them with the gradient, and the
        attribute ``seconds_before`` has the processor seconds before its first step.

    Raises
    ------
    DataError
        If the program has no density in JAX.
    SamplingError
        If the particles do not reach the target in 1,000 steps, or a log likelihood is not finite.
    ToolchainError
        If blackjax is not installed.
    """
    load()
    began, cost = time.process_time(), Cost()
    tempered = tempered_model(model.program("target").path, model.data, what=what)
    each = max(_FEWEST, -(-particles // POPULATIONS))
    found = _run(model, each, began + most_seconds, most_evaluations, seed)
    cost.gradients = found.evaluations
    density = BatchedDensity(tempered.program("target"), tempered.data)
    parameters = parameters_of(density, tempered.parameters)
    fit = weighted_fit(
        METHOD,
        Spent(Target(model.name, density.dimension, density, parameters, tempered.data), cost),
        found.points,
        {"log_w1": found.log_weight},
        settings={"particles": each * POPULATIONS, "populations": POPULATIONS},
        seed=seed,
        log_evidence=log_mean_weight(found.log_z),
        found={BEFORE: found.started - began},
        populations=True,
    )
    if found.inv_temp < _DONE:
        sentence = (
            "blackjax's tempered SMC was stopped at the budget, before it had finished: particles "
            f"are at an inverse temperature of {found.inv_temp:.2g}, and weighted for the target."
        )
        remember(fit, [Finding(Severity.PROBLEM, sentence)])
    return fit


def _run(model: Model, each: int, until: float, most_evaluations: float, seed: int) -> _Particles:
    """Run all populations, side by side, until the last one has arrived or the budget is spent."""
    import jax

    from .jax_densities import jax_density

    with double_precision():
        density = jax_density(model)
        start = density.draw_prior(np.random.default_rng(seed), POPULATIONS * each)
        state, step = _algorithm(density, start.reshape(POPULATIONS, each, -1))
        key = jax.random.key(seed)
        step = compiled(step, key, state)
        started = time.process_time()
        log_z, evaluations, arrived = np.zeros(POPULATIONS), 0, False
        for _ in range(_MOST_STEPS):
            key, state, rise = step(key, state)
            log_z += np.asarray(rise)
            # The ladder and the weights take a likelihood each, and so does the first gradient.
            evaluations += POPULATIONS * each * (3 + _MOVES * _LEAPFROG_STEPS)
            inv_temp = np.asarray(state.sampler_state.tempering_param)
            if not np.all(np.isfinite(log_z)):
                raise SamplingError(
                    f"blackjax's tempered SMC met a log likelihood of {model.name} that is not "
                    f"finite, near an inverse temperature of {inv_temp.min():.2g}"
                )
            # The last step moves the particles of the target itself.
            if arrived or time.process_time() > until or evaluations > most_evaluations:
                break
            arrived = bool(np.all(inv_temp >= _DONE))
        else:
            raise SamplingError(
                f"blackjax's tempered SMC has not reached {model.name} in {_MOST_STEPS} steps (it "
                f"is at an inverse temperature of {inv_temp.min():.2g})"
            )
        points, weights = (np.asarray(part) for part in state.sampler_state[:2])
        with np.errstate(divide="ignore"):
            log_weight = np.log(weights * each)
        if np.any(inv_temp < _DONE):
            likelihood = np.asarray(jax.vmap(jax.vmap(density.log_likelihood))(points))
            log_weight += (1 - inv_temp[:, None]) * likelihood
            evaluations += POPULATIONS * each
    log_weight += log_z[:, None]
    log_z = np.logaddexp.reduce(log_weight, axis=1) - math.log(each)
    return _Particles(points, log_weight, log_z, float(inv_temp.min()), evaluations, started)


def _algorithm(
    density: JaxDensity, start: FloatArray
) -> tuple[Any, Callable[[Any, Any], tuple[Any, Any, Any]]]:
    """Return the first state of populations (populations, each, D), and their step.

    The step takes a key and the state, and returns the next ones and what is added to each
    population's log Z.
    """
    import blackjax
    import jax
    import jax.numpy as jnp
    from blackjax.smc.resampling import systematic
    from blackjax.smc.solver import dichotomy
    from blackjax.smc.tuning.from_kernel_info import update_scale_from_acceptance_rate

    transition = blackjax.hmc.build_kernel()

    def move(
        key: Any, state: Any, log_density: Any, step_size: Any, inverse_mass_matrix: Any
    ) -> tuple[Any, _Moved]:
        of_length, of_move = jax.random.split(key)
        shorter = step_size * jax.random.uniform(of_length, minval=0.5)
        moved, info = transition(
            of_move, state, log_density, shorter, inverse_mass_matrix, _LEAPFROG_STEPS
        )
        return moved, _Moved(info.acceptance_rate, step_size)

    def tuned(_: Any, state: Any, info: Any) -> dict[str, Any]:
        moved, share = info.update_info, state.weights[:, None]
        step_size = update_scale_from_acceptance_rate(
            moved.step_size[:, -1], moved.acceptance.mean(axis=1), _ACCEPTANCE
        )
        mean = (share * state.particles).sum(axis=0)
        variance = (share * (state.particles - mean) ** 2).sum(axis=0)
        return {"step_size": step_size, "inverse_mass_matrix": variance[None]}

    kernel = blackjax.inner_kernel_tuning.build_kernel(
        blackjax.adaptive_tempered_smc,
        density.log_prior,
        density.log_likelihood,
        move,
        blackjax.hmc.init,
        systematic,
        tuned,
        num_mcmc_steps=_MOVES,
        target_ess=_ESS,
        root_solver=partial(dichotomy, max_iter=_MOST_HALVINGS),
    )

    def step(key: Any, state: Any) -> tuple[Any, Any, Any]:
        key, *keys = jax.random.split(key, 1 + POPULATIONS)
        following, info = jax.vmap(kernel)(jnp.stack(keys), state)
        return key, following, info.log_likelihood_increment

    def first(points: Any) -> Any:
        parameters = {
            "step_size": jnp.full(len(points), density.dimension**-0.25),
            "inverse_mass_matrix": points.var(axis=0)[None],
        }
        return blackjax.inner_kernel_tuning.init(
            blackjax.adaptive_tempered_smc.init, points, parameters
        )

    init = compiled(jax.vmap(first), start)
    return init(start), step
