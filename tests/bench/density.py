"""Log densities of Stan programs in Python: time of a gradient, and of samplers that ask for it."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

from harness.engine.batched import BatchedDensity
from harness.fit import Fit
from harness.model import Model
from harness.model.density import StanDensity, TargetDensity
from harness.model.python_target import Target
from harness.models.boltzmann import generate, relax
from harness.models.boltzmann_mean_field import mean_field_base
from harness.models.gaussian_mixture import kou_mixture
from harness.models.radon import radon
from harness.path import gaussian_base
from harness.samplers.annealed_importance import annealed_importance
from harness.samplers.gibbs_tempering import gibbs_tempering
from harness.samplers.kernels import Hmc
from harness.samplers.parallel_tempering import parallel_tempering

_POINTS, _MANY = 64, 4096
_NATIVE = f"{_MANY} points"
_GRADIENTS = 8192
"""Of each way in a round."""
_UNITS = (12, 28, 64)
"""Of the relaxations that are timed."""

Timed = tuple[Callable[[], object], int]
"""Work, and the gradients that it takes."""


def _microseconds(ways: dict[str, Timed], rounds: int) -> dict[str, float]:
    """Least wall time a gradient of each way over rounds in which they take turns.

    The least, because whatever else the machine does only adds to it.
    """
    least = dict.fromkeys(ways, np.inf)
    calls = {name: -(-_GRADIENTS // gradients) for name, (_, gradients) in ways.items()}
    for _ in range(rounds):
        for name, (work, gradients) in ways.items():
            started = time.perf_counter()
            for _ in range(calls[name]):
                work()
            taken = time.perf_counter() - started
            least[name] = min(least[name], 1e6 * taken / calls[name] / gradients)
    return least


def _ways(model: Model) -> dict[str, Timed]:
    """Ways to evaluate a model's target, the first of which is nearly all the compiled loop's."""
    program = model.program("target")
    one, two = (BatchedDensity(program, model.data, threads=t) for t in (1, 2))
    python = BatchedDensity(program, model.data, native=False)
    single = StanDensity(program, model.data)
    points = np.random.default_rng(1).normal(scale=0.5, size=(_MANY, model.dimension))
    few = points[:_POINTS].copy()
    return {
        _NATIVE: (lambda: one(points), _MANY),
        f"{_POINTS} points": (lambda: one(few), _POINTS),
        f"{_POINTS} points, no compiler": (lambda: python(few), _POINTS),
        f"{_POINTS} points, one by one": (lambda: [single(p) for p in few], _POINTS),
        f"{_MANY} points, two threads": (lambda: two(points), _MANY),
        f"{_POINTS} points, two threads": (lambda: two(few), _POINTS),
    }


def _print_gradients(model: Model, rounds: int) -> None:
    least = _microseconds(_ways(model), rounds)
    print(f"\n{model.name}, {model.dimension} dimensions, least wall time of {rounds} rounds:")
    for name, microseconds in least.items():
        print(
            f"  {name:28} {microseconds:8.2f} µs a gradient, {microseconds / least[_NATIVE]:6.2f}"
        )


Sampler = Callable[[Model | Target], Fit]


def _samplers() -> dict[str, tuple[Model, Sampler]]:
    """Three samplers at settings of ``samplers``, for less long."""
    mixture = kou_mixture("a").model("mixture-a", lower=-5.5, upper=15.5)
    wide = gaussian_base([5.0, 5.0], 9 * np.eye(2))
    rungs = np.concatenate([[0.0], np.geomspace(1e-3, 1.0, 7)])
    rng = np.random.default_rng(1)
    relaxation = relax(generate(28, rng))
    boltzmann, base = relaxation.model("boltzmann-28"), mean_field_base(relaxation, rng)
    return {
        "parallel tempering, mixture (a)": (
            mixture,
            lambda what: parallel_tempering(
                what,
                wide,
                ladder=rungs,
                chains=32,
                draws=400,
                warmup=100,
                kernel=Hmc(3),
                seed=1,
            ),
        ),
        "annealed importance, relaxation": (
            boltzmann,
            lambda what: annealed_importance(
                what, base, ladder=np.linspace(0, 1, 100), chains=1000, kernel=Hmc(5), seed=1
            ),
        ),
        "Gibbs tempering, relaxation": (
            boltzmann,
            lambda what: gibbs_tempering(
                what, base, chains=64, warmup=100, draws=400, kernel=Hmc(8), seed=1
            ),
        ),
    }


def _through_stan(model: Model, threads: int) -> Target:
    density = TargetDensity(model, threads=threads)
    return Target(model.name, model.dimension, density, density.parameters, engine="stanli")


def _print_samplers(rounds: int) -> None:
    print(f"\nsamplers, least wall time of {rounds} rounds; ratio to the NumPy density:")
    for name, (model, run) in _samplers().items():
        variants: tuple[Model | Target, ...] = (model, *(_through_stan(model, t) for t in (1, 2)))
        least = np.full(len(variants), np.inf)
        for _ in range(rounds):
            for way, what in enumerate(variants):
                started = time.perf_counter()
                run(what)
                least[way] = min(least[way], time.perf_counter() - started)
        print(
            f"  {name:32} NumPy {least[0]:5.2f} s, Stan program {least[1]:5.2f} s, "
            f"{least[1] / least[0]:.2f}; two threads {least[2]:5.2f} s, {least[2] / least[0]:.2f}"
        )


def print_density(options: argparse.Namespace) -> None:
    """Print the time of a gradient of several targets, and of samplers, with their targets."""
    for units in _UNITS:
        relaxation = relax(generate(units, np.random.default_rng(1)))
        _print_gradients(relaxation.model(f"boltzmann-{units}"), options.rounds)
    _print_gradients(radon(), options.rounds)
    _print_samplers(max(1, options.rounds // 3))
    print(
        f"\ntargets: {_POINTS} points 1.5 or less, two threads .6 or less where there is work for "
        "them; samplers 1.3 or less"
    )
