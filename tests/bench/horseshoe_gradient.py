"""A gradient of the horseshoe's pseudo-extended program, as ratios inside one run."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import stanli

from harness.methods.pseudo_extended import pseudo_extended_data
from harness.models.horseshoe import Classification, global_scale
from harness.paths import shipped

FORMS = Path(__file__).parent / "horseshoe"
OBSERVATIONS = 30


def microseconds_per_gradient(
    rounds: int, predictors: int, num_pseudo_samples: int
) -> dict[str, np.ndarray]:
    """Time a gradient of the shipped program and of its alternatives, through stanli.

    The programs take turns within each round, so that a machine that slows down slows all;
    processor time, so that other processes count less.

    Returns
    -------
    dict
        Microseconds a gradient of each round, shape (rounds,), by program.

    Raises
    ------
    AssertionError
        If the programs do not have one density and one gradient.
    """
    rng = np.random.default_rng(1)
    x = rng.normal(size=(OBSERVATIONS, predictors))
    regression = Classification(x, rng.integers(0, 2, OBSERVATIONS))
    scale = global_scale(3, predictors, OBSERVATIONS)
    model = regression.model("horseshoe", scale_global=scale)
    data = {**model.data, **pseudo_extended_data(model, num_pseudo_samples)}
    plain = {name: np.asarray(value).tolist() for name, value in data.items()}
    paths = {
        "shipped (bernoulli_logit_glm)": model.program("pseudo_extended").path,
        "one matrix product": FORMS / "matrix_product.stan",
        "loop over observations": FORMS / "loop.stan",
    }
    include = [str(shipped("stan"))]
    programs = {
        name: stanli.Model(str(path), data=plain, include_paths=include)
        for name, path in paths.items()
    }
    point = rng.normal(0, 0.5, next(iter(programs.values())).n_unconstrained)
    value, slope = programs["shipped (bernoulli_logit_glm)"].log_prob_grad(point)
    times: dict[str, list[float]] = {name: [] for name in programs}
    for name, program in programs.items():
        other, other_slope = program.log_prob_grad(point)
        np.testing.assert_allclose(other, value, rtol=1e-10, err_msg=name)
        np.testing.assert_allclose(other_slope, slope, rtol=1e-7, atol=1e-7, err_msg=name)
    for _ in range(rounds):
        for name, program in programs.items():
            started = time.process_time()
            for _ in range(100):
                program.log_prob_grad(point)
            times[name].append(1e4 * (time.process_time() - started))
    return {name: np.array(values) for name, values in times.items()}


def print_horseshoe(options: argparse.Namespace) -> None:
    """Print microseconds a gradient and the ratios to the obvious form."""
    rounds: int = options.rounds
    for predictors, num_pseudo_samples in ((500, 2), (500, 5), (3051, 2)):
        times = microseconds_per_gradient(rounds, predictors, num_pseudo_samples)
        obvious = times["loop over observations"]
        print(
            f"\nhorseshoe, pseudo-extended, n = {OBSERVATIONS}, d = {predictors}, "
            f"N = {num_pseudo_samples}, {rounds} rounds:"
        )
        print(f"{'form':30} {'µs':>8} {'ratio':>7} {'[min, max]':>16}")
        for name, values in times.items():
            ratio = values / obvious
            print(
                f"{name:30} {np.median(values):8.1f} {np.median(ratio):7.2f} "
                f"{f'[{ratio.min():.2f}, {ratio.max():.2f}]':>16}"
            )
