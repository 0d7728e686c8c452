"""Compiled tempered programs: log density, gradient and weights against the definitions.

Programs that stanli evaluates have their reference from there; those that it cannot, from the
program that somebody's marks make of the original, compiled.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import cmdstanpy
import numpy as np
import pandas as pd
import pytest
from corpus_data import corpus_data
from corpus_oracle import COMPILED_ONLY, CORPUS, NUM, Reference, reference_program
from scipy.special import expit, logit
from tempered_oracle import Expected, Parts, compare, expected, tempered_data

from harness.arrays import FloatArray
from harness.engine.compile import compile_programs
from harness.engine.program import StanProgram
from harness.engine.toolchain import require_cmdstan
from harness.temper import TemperedProgram, temper
from harness.temper.classify import What
from harness.temper.templates import Variant

pytestmark = [pytest.mark.compiled, pytest.mark.usefixtures("quiet_cmdstanpy")]

QUICK: dict[str, tuple[Variant, What]] = {
    "tuple_parameters": ("pseudo_extended", "likelihood"),
    "hmm_built_in": ("joint_tempering", "likelihood"),
    "truncated_both_ends": ("pseudo_extended", "all"),
}
SLOW: dict[str, tuple[Variant, What]] = {
    "complex_signal": ("joint_tempering", "likelihood"),
    "cormack_jolly_seber": ("pseudo_extended", "likelihood"),
    "jacobian_adjustment": ("collapsed_tempering", "likelihood"),
    "markov_rows": ("pseudo_extended", "likelihood"),
    "reduce_sum_poisson": ("joint_tempering", "likelihood"),
    "arrays_of_everything": ("pseudo_extended", "likelihood"),
    "dependent_bounds": ("pseudo_extended", "likelihood"),
    "eight_schools_centred": ("joint_tempering", "all"),
    "user_lp_likelihood": ("collapsed_pseudo_extended", "likelihood"),
}
"""How each program is tempered, and what of it."""

BETA = np.array([0.35, 0.65, 0.03, 0.96, 0.8])

Values = Mapping[str, Any]
"""Values of one point by name, tuples as such."""


class Slopes(NamedTuple):
    """Log prior density and log likelihood at points (n,), and their gradients (n, D)."""

    parts: Parts
    prior: FloatArray
    likelihood: FloatArray


class Compiled:
    """A compiled program with its data."""

    def __init__(self, text: str, stem: str, data: Mapping[str, Any], folder: Path) -> None:
        program = StanProgram(folder / f"{stem}.stan", (CORPUS,))
        program.path.write_text(text, encoding="utf-8")
        made = compile_programs([program], require_cmdstan())[program]
        self._model = cmdstanpy.CmdStanModel(exe_file=str(made.exe))
        self._folder, self._data = folder, dict(data)

    def draw(self, inits: Values | None, seed: int) -> dict[str, Any]:
        """Return all variables at a point: one that is given, or a random one of Stan's."""
        drawn = self._model.sample(
            self._data,
            chains=1,
            seed=seed,
            inits=None if inits is None else dict(inits),
            fixed_param=True,
            iter_sampling=1,
            sig_figs=18,
            show_progress=False,
            output_dir=self._folder,
        )
        return {name: value[0] for name, value in drawn.stan_variables().items()}

    def log_prob(self, values: Values, **more: int) -> pd.Series[float]:
        """Return the log density, Jacobian included, and its gradient, by Stan's names."""
        data = {**self._data, **more}
        table = self._model.log_prob(dict(values), data=data, jacobian=True, sig_figs=18)
        row: pd.Series[float] = table.iloc[0]
        return row


def points_and_parts(
    name: str, what: What, parameters: tuple[str, ...], folder: Path
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], Slopes]:
    """Return points where the density is finite, also unconstrained, and what it is there."""
    if name in COMPILED_ONLY:
        given = corpus_data(name)
        model = Compiled(reference_program(name), "ref", {**given, "with_likelihood": 1}, folder)
        drawn = [model.draw(None, seed) for seed in range(1, NUM + 1)]
        points = [{each: point[each] for each in parameters} for point in drawn]
        free: list[dict[str, Any]] = []
        base, joint = (
            np.array([model.log_prob(point, with_likelihood=switch) for point in points])
            for switch in (0, 1)
        )
    else:
        reference = Reference(name, folder)
        values = reference.points(parameters, NUM, seed=5)
        points, free = (
            [dict(zip(some, row, strict=True)) for row in zip(*some.values(), strict=True)]
            for some in (values, reference.free(values))
        )
        u = [reference.original.unconstrain(point) for point in points]
        densities = (reference.jacobian if what == "all" else reference.prior, reference.joint)
        base, joint = (
            np.array([np.concatenate([[value], slope]) for value, slope in map(density, u)])
            for density in densities
        )
    ratio = joint - base
    return points, free, Slopes(Parts(base[:, 0], ratio[:, 0]), base[:, 1:], ratio[:, 1:])


def stacked(values: list[Any]) -> Any:
    """Make an array of Stan's, its first index that of pseudo-samples; of tuples a list."""
    return values if isinstance(values[0], tuple) else np.stack(values)


def slopes_of_definition(
    method: Variant, parts: Parts, beta: FloatArray, setting: str
) -> FloatArray:
    """Derivatives by each log prior, each log likelihood and each logit of beta, shape (3, n).

    By differences over five points, whose error is a 30th of the step's fourth power times the
    fifth derivative, of order one: 1e-13, and that of rounding about 1e-11.
    """
    step, weight = 1e-3, {-2: 1 / 12, -1: -2 / 3, 1: 2 / 3, 2: -1 / 12}
    at = np.array([*parts, logit(beta)])
    slope = np.zeros(at.shape)
    for index in np.ndindex(at.shape):
        for steps, share in weight.items():
            moved = at.copy()
            moved[index] += steps * step
            value = expected(method, Parts(*moved[:2]), expit(moved[2]), setting).log_density
            slope[index] += share * value / step
    return slope


def expected_gradient(
    slope: FloatArray, slopes: Slopes, names: list[str], *, sampled: bool
) -> FloatArray:
    """Put the derivatives together as a tempered program has them, parameter by parameter.

    Parameters
    ----------
    slope
        From :func:`slopes_of_definition`.
    slopes
        The original's gradients, each (n, D).
    names
        Name of the parameter, in the tempered program, of each of its unconstrained ones.
    sampled
        Whether the inverse temperatures come last among these.
    """
    of_point = slope[0][:, None] * slopes.prior + slope[1][:, None] * slopes.likelihood
    num = len(of_point)
    names = names[:-num] if sampled else names
    sizes = [names.count(name) // num for name in dict.fromkeys(names)]
    blocks = np.split(of_point, np.cumsum(sizes)[:-1], axis=1)
    temperatures = [slope[2]] if sampled else []
    return np.concatenate([*(block.ravel() for block in blocks), *temperatures])


def values_of(
    program: TemperedProgram, points: list[dict[str, Any]], free: list[dict[str, Any]], *, one: bool
) -> dict[str, Any]:
    """Return points by the tempered program's names, where its bounds need it unconstrained."""
    declared = program.text.split("\nparameters {")[1].split("\n}")[0]
    values: dict[str, Any] = {}
    for name, called in program.parameters.items():
        unbounded = f" {name}_free;" in declared
        each = [point[name] for point in (free if unbounded else points)]
        values[f"{name}_free" if unbounded else called] = each[0] if one else stacked(each)
    return values


@pytest.mark.parametrize(
    "name", [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)]
)
def test_compiled_program_says_what_the_definition_says(name: str, tmp_path: Path) -> None:
    method, what = (QUICK | SLOW)[name]
    program = temper(CORPUS / f"{name}.stan", method=method, what=what, include_paths=(CORPUS,))
    points, free, slopes = points_and_parts(name, what, tuple(program.parameters), tmp_path)
    sampled = method in ("pseudo_extended", "joint_tempering")
    setting = "sampled" if sampled else "ladder"
    one = method in ("joint_tempering", "collapsed_tempering")
    size = 1 if one else NUM
    slopes = Slopes(
        Parts(*(each[:size] for each in slopes.parts)), *(each[:size] for each in slopes[1:])
    )
    data = {**corpus_data(name), **tempered_data(program, setting, np.empty(0), size)}
    tempered = Compiled(program.text, "tempered", data, tmp_path)
    values = values_of(program, points, free, one=one)
    beta = BETA[:size]
    if sampled:
        values[program.names.get("free_inv_temp", "free_inv_temp")] = beta
    row = tempered.log_prob(values)
    drawn = tempered.draw(values, seed=1)
    delta, log_weight = (
        np.atleast_1d(drawn[program.names.get(each, each)]) for each in ("delta", "log_weight")
    )
    wanted = expected(method, slopes.parts, beta, setting)
    compare(Expected(float(row.iloc[0]), delta, log_weight), wanted)
    names = [str(column).removeprefix("g_").split(".")[0].split(":")[0] for column in row.index[1:]]
    slope = slopes_of_definition(method, slopes.parts, beta, setting)
    gradient = expected_gradient(slope, slopes, names, sampled=sampled)
    scale = max(1.0, float(np.max(np.abs(gradient))))
    np.testing.assert_allclose(row.to_numpy()[1:], gradient, rtol=1e-8, atol=1e-8 * scale)
