"""Python-driven samplers: what they add to the density's own time, and their errors."""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, get_args

import numpy as np

from harness.arrays import FloatArray, LogDensity
from harness.engine.batched import BatchedDensity
from harness.fit import Fit
from harness.model import Model
from harness.model.density import TargetDensity
from harness.model.python_target import Target
from harness.models.boltzmann import BoltzmannRelaxation, generate, relax
from harness.models.boltzmann_mean_field import mean_field_base
from harness.models.gaussian_mixture import kou_mixture
from harness.path import GaussianBase, PilotSettings, gaussian_base, pilot
from harness.samplers.annealed_importance import annealed_importance
from harness.samplers.ensemble import EnsembleSettings, run_ensemble
from harness.samplers.ensemble.walkers import walker_streams
from harness.samplers.geometric_path import GeometricPath
from harness.samplers.gibbs_tempering import gibbs_tempering
from harness.samplers.kernels import Hmc
from harness.samplers.nested_moves import NestedExplorer
from harness.samplers.nested_particles import PriorAndLikelihood
from harness.samplers.nested_run import NestedSettings, nested_run
from harness.samplers.nested_sampling import run_from_base
from harness.samplers.parallel_tempering import parallel_tempering
from harness.temper import tempered_model

_RUNGS, _CHAINS, _LEAPFROG_STEPS = 8, 32, 3
_WARMUP, _DRAWS = 500, 2500

_Result = TypeVar("_Result")


def _timed(work: Callable[..., _Result], *args: object, **named: object) -> tuple[_Result, float]:
    """Return what work returns, and its processor time in seconds."""
    started = time.process_time()
    result = work(*args, **named)
    return result, time.process_time() - started


def plain_parallel_tempering(
    log_density: LogDensity,
    base: GaussianBase,
    ladder: FloatArray,
    step_size: FloatArray,
    rng: np.random.Generator,
) -> FloatArray:
    """Run the plainest batched parallel tempering there is: the yardstick of ours.

    No tuning, no estimates, no checks; even and odd swaps in turn.

    Parameters
    ----------
    ladder, step_size
        Inverse temperature and step size of each rung, shape (K,).

    Returns
    -------
    FloatArray
        Points at the last rung, shape (iterations, chains, D).
    """
    beta = np.repeat(ladder, _CHAINS)
    step = np.repeat(step_size, _CHAINS)[:, None]

    def tempered(x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        value, slope = log_density(x)
        log_base = base.log_density(x)
        log_ratio = value - log_base
        gradient = beta[:, None] * slope
        gradient += (1 - beta)[:, None] * base.log_density_gradient(x)
        return log_base + beta * log_ratio, log_ratio, gradient

    x = base.sample(rng, len(beta))
    kept = np.empty((_WARMUP + _DRAWS, _CHAINS, x.shape[1]))
    for t in range(len(kept)):
        value, log_ratio, gradient = tempered(x)
        p = rng.standard_normal(x.shape)
        new, energy = x, value - 0.5 * np.square(p).sum(axis=1)
        for _ in range(_LEAPFROG_STEPS):
            p = p + 0.5 * step * gradient
            new = new + step * p
            new_value, new_ratio, gradient = tempered(new)
            p = p + 0.5 * step * gradient
        accepted = np.log(rng.random(len(beta))) < (
            new_value - 0.5 * np.square(p).sum(axis=1) - energy
        )
        x = np.where(accepted[:, None], new, x)
        log_ratio = np.where(accepted, new_ratio, log_ratio)
        low = np.arange(len(beta) - _CHAINS).reshape(-1, _CHAINS)[t % 2 :: 2].ravel()
        high = low + _CHAINS
        swap = np.log(rng.random(len(low))) < (
            (beta[low] - beta[high]) * (log_ratio[high] - log_ratio[low])
        )
        low, high = low[swap], high[swap]
        x[np.concatenate([low, high])] = x[np.concatenate([high, low])]
        kept[t] = x[-_CHAINS:]
    return kept


def _parallel_tempering(rounds: int) -> None:
    """Ours on the mixture's NumPy density and on its Stan program, against the plainest form."""
    mixture = kou_mixture("a")
    model = mixture.model("mixture-a", lower=-5.5, upper=15.5)
    base = gaussian_base([5.0, 5.0], 9 * np.eye(2))
    stan = _through_stan(model)
    start = np.concatenate([[0.0], np.geomspace(1e-3, 1.0, _RUNGS - 1)])

    def ours(target: Model | Target, seed: int) -> Fit:
        return parallel_tempering(
            target,
            base,
            ladder=start,
            chains=_CHAINS,
            draws=_DRAWS,
            warmup=_WARMUP,
            kernel=Hmc(_LEAPFROG_STEPS),
            seed=seed,
        )

    taken, errors = np.empty((3, rounds)), []
    for r in range(rounds):
        fit, taken[1, r] = _timed(ours, model, r)
        errors.append(
            fit.posterior["x"].mean(("chain", "draw")).to_numpy() - mixture.truth.expected("x")
        )
        ladder = np.asarray(fit.tree.attrs["ladder"])
        step = 3.0 * np.concatenate([[1.0], fit.tree.attrs["step_size"]])
        _, taken[0, r] = _timed(
            plain_parallel_tempering,
            mixture.log_density_and_gradient,
            base,
            ladder,
            step,
            np.random.default_rng(r),
        )
        _, taken[2, r] = _timed(ours, stan, r)
    print(
        f"\nparallel tempering, mixture (a), {_CHAINS} chains of {_RUNGS} rungs, "
        f"{_WARMUP + _DRAWS:,} iterations of {_LEAPFROG_STEPS} leapfrog steps, {rounds} rounds, "
        f"processor time:"
    )
    for name, seconds in zip(("plainest form", "ours", "ours, Stan program"), taken, strict=True):
        print(
            f"  {name:22} {np.median(seconds):6.2f} s, ratio {np.median(seconds / taken[0]):5.2f}"
        )
    print(
        f"  RMSE of E[X] of ours: {np.sqrt(np.square(errors).mean()):.3f}\n"
        f"  targets: 1.5 for the NumPy density, 2 for the Stan program, RMSE 0.044 or so"
    )


def _through_stan(model: Model) -> Target:
    density = TargetDensity(model)
    return Target(model.name, model.dimension, density, density.parameters, engine="stanli")


def _relaxation() -> tuple[BoltzmannRelaxation, GaussianBase]:
    rng = np.random.default_rng(1)
    relaxation = relax(generate(28, rng))
    return relaxation, mean_field_base(relaxation, rng)


def _annealed_importance(rounds: int) -> None:
    """1,000 chains over 1,000 inverse temperatures, against its 5,000 density calls alone."""
    relaxation, base = _relaxation()
    model, points = relaxation.model("boltzmann-28"), base.sample(np.random.default_rng(2), 1000)

    def bare() -> None:
        for _ in range(5 * 999):
            relaxation.log_density_and_gradient(points)

    ladder = np.linspace(0, 1, 1000)
    seconds = np.empty((rounds, 2))
    for r in range(rounds):
        _, seconds[r, 0] = _timed(
            annealed_importance, model, base, ladder=ladder, chains=1000, kernel=Hmc(5), seed=r
        )
        _, seconds[r, 1] = _timed(bare)
    whole, density = np.median(seconds, axis=0)
    print(
        f"\nannealed importance sampling, d_b = 28, 1,000 chains, 1,000 inverse temperatures, 5 "
        f"leapfrog steps, {rounds} rounds, processor time:\n  {whole:.2f} s, "
        f"{np.median(seconds[:, 0] / seconds[:, 1]):.2f} times the {density:.2f} s of its density "
        "calls alone (target: 8 s)"
    )


def _gibbs_tempering(rounds: int) -> None:
    """Gibbs continuous tempering from a pilot."""
    relaxation, base = _relaxation()
    model, truth = relaxation.model("boltzmann-28"), relaxation.exact()
    errors, taken, pilots = [], [], []
    for seed in range(1, rounds + 1):
        found, seconds = _timed(
            pilot, model, base, settings=PilotSettings(particles=1024), seed=seed
        )
        pilots.append(seconds)
        fit, seconds = _timed(
            gibbs_tempering,
            model,
            found.base,
            log_g=found.log_g,
            chains=64,
            warmup=300,
            draws=2000,
            kernel=Hmc(8),
            starts=found.points[:64],
            seed=seed,
        )
        taken.append(seconds)
        errors.append(fit.expectation(lambda p: p["x"]).value - truth.expected_x)
    print(
        f"\nGibbs continuous tempering, d_b = 28, 64 chains of 2,300 iterations, {rounds} rounds: "
        f"{np.median(taken):.2f} s and {np.median(pilots):.2f} s of pilot, processor time; RMSE "
        f"of E[x] {np.sqrt(np.square(errors).mean()):.3f} (target: 0.10 in 3.75 s)"
    )


_LOGISTIC = """data {
  int<lower=1> n;
  int<lower=1> d;
  matrix[n, d] X;
  array[n] int<lower=0, upper=1> y;
}
parameters {
  real a;
  vector[d] b;
}
model {
  a ~ normal(0, 2);
  b ~ normal(0, 1);
  y ~ bernoulli_logit_glm(X, a, b);
}
"""


def _nested_sampling(rounds: int) -> None:
    """What an evaluation costs nested sampling, in gradients of the Stan program."""
    _nested_relaxation(rounds)
    rng = np.random.default_rng(1)
    data = {
        "n": 500,
        "d": 8,
        "X": rng.normal(size=(500, 8)).tolist(),
        "y": (rng.random(500) < 0.4).astype(int).tolist(),
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "logistic.stan"
        path.write_text(_LOGISTIC)
        model = tempered_model(path, data)
    prior, target = (BatchedDensity(model.program(each), data) for each in ("prior", "target"))
    start = rng.normal(size=(4, 250, 9)) * np.array([2.0, *[1.0] * 8])
    points = np.tile(start.reshape(-1, 9), (20, 1))
    _, plain = _timed(target, points)
    print("\nnested sampling of a logistic regression with 500 rows, 4 populations of 250:")
    for explorer in get_args(NestedExplorer):
        space = PriorAndLikelihood(prior, target)
        settings = NestedSettings(explorer=explorer)
        run, seconds = _timed(nested_run, space, start, settings, seed=1)
        each = seconds / run.evaluations / (plain / len(points))
        print(
            f"  {explorer}: {run.evaluations:,} evaluations in {seconds:.1f} s, {each:.2f} native "
            "gradients each (target: 1.5)"
        )


def _nested_relaxation(rounds: int) -> None:
    """The same from a Gaussian base, of a density that takes about a microsecond."""
    print("\nnested sampling of relaxations from a Gaussian base, 4 populations of 250, slices:")
    for units in (12, 28):
        machine = generate(units, np.random.default_rng(3), eigenvalue_scale=2.0)
        model = relax(machine).model("relaxation")
        density = TargetDensity(model)
        target = Target(model.name, model.dimension, density, density.parameters)
        base = gaussian_base(np.zeros(model.dimension), 4 * np.eye(model.dimension))
        points = base.sample(np.random.default_rng(1), 250)

        def gradients(density: TargetDensity = density, points: FloatArray = points) -> None:
            for _ in range(80):
                density(points)

        # It ends early, before populations do at different times.
        settings, plain, each = NestedSettings(remaining=0.9999), np.inf, np.inf
        for _ in range(rounds):
            path = GeometricPath(target, base)
            plain = min(plain, _timed(gradients)[1] / (80 * len(points)))
            start = np.random.default_rng(5)
            run, seconds = _timed(run_from_base, path, settings, start, seed=1)
            each = min(each, seconds / run.evaluations)
        print(
            f"  {model.dimension} dimensions: {1e6 * each:.2f} microseconds an evaluation, "
            f"{each / plain:.2f} native gradients of {1e6 * plain:.2f} (target: 1.5)"
        )


class _Watched:
    """A log density that notes when it was called and when it was done."""

    def __init__(self, log_density: LogDensity) -> None:
        self._log_density = log_density
        self.times: list[tuple[float, float]] = []

    def __call__(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        started = time.perf_counter()
        found = self._log_density(x)
        self.times.append((started, time.perf_counter()))
        return found


def _ensemble(rounds: int) -> None:
    """What a step of the ensemble quasi-Newton sampler adds to the density, per walker.

    The time of a step is that from one call of the density to the next.  Its 5% quantile is what a
    step takes undisturbed, the median what it takes on a machine with others on it.
    """
    walkers, dimension, sweeps = 64, 10, 10
    sd = np.geomspace(0.3, 3, dimension)
    starts = sd * np.random.default_rng(1).standard_normal((walkers, dimension))

    def log_density(x: FloatArray) -> tuple[FloatArray, FloatArray]:
        return -0.5 * np.square(x / sd).sum(axis=1), -x / sd**2

    print(
        f"\nensemble quasi-Newton, {walkers} walkers, {dimension} dimensions, {rounds} rounds, "
        f"load {os.getloadavg()[0]:.1f}; microseconds a walker's step, undisturbed and median:"
    )
    special: dict[str, Any]
    for name, special in (
        ("local, 3 coordinates, 4 groups", {"lam": 1.0, "select": (0, 1, 2)}),
        ("local, 3 coordinates, 2 groups", {"lam": 1.0, "select": (0, 1, 2), "groups": 2}),
        ("local, all coordinates, 4 groups", {"lam": 0.1}),
        ("one covariance, 4 groups", {}),
    ):
        settings = EnsembleSettings(dt=0.15, eta=3.0, **special)
        density = _Watched(log_density)
        for _ in range(rounds):
            run_ensemble(density, starts, settings, sweeps, walker_streams(1, walkers))
        # The start's call is for all walkers at once; a turn is a row.
        called = np.array(density.times).reshape(rounds, -1, 2)[:, 1:]
        turns = called.reshape(rounds, -1, settings.steps, 2)
        inside = turns[:, :, 1:, 0] - turns[:, :, :-1, 1]
        between = turns[:, 1:, 0, 0] - turns[:, :-1, -1, 1]
        each = 1e6 * settings.groups / walkers
        added, bare = [], []
        for level in (0.05, 0.5):
            share = 1 / settings.steps
            step = (1 - share) * np.quantile(inside, level) + share * np.quantile(between, level)
            added.append(each * step)
            bare.append(each * float(np.quantile(turns[..., 1] - turns[..., 0], level)))
        print(
            f"  {name:34} {added[0]:5.1f} and {added[1]:5.1f} beside {bare[0]:.2f} and "
            f"{bare[1]:.2f} of the density, ratio {added[0] / bare[0]:4.0f} (target: 20)"
        )


def print_samplers(options: argparse.Namespace) -> None:
    """Print all of them."""
    _ensemble(options.rounds)
    _parallel_tempering(options.rounds)
    _annealed_importance(max(1, options.rounds // 3))
    _gibbs_tempering(options.rounds)
    _nested_sampling(max(1, options.rounds // 3))
