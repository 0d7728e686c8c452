"""Add the original program's transformed parameters and generated quantities to a tempered fit."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import cmdstanpy
import numpy as np
import pandas as pd
from stanio import parse_header

from harness.arrays import FloatArray
from harness.engine.batched import BatchedDensity
from harness.engine.compile import CompiledProgram, Declared
from harness.engine.stan_csv import EXACT
from harness.engine.stan_data import plain_data
from harness.errors import SamplingError
from harness.fit import PSEUDO_SAMPLE, Fit, build_fit, in_extended, target_draws
from harness.fit.weighting import GENERATED
from harness.model import Model

ORIGINAL = "original"
"""Variant of a tempered model that is the user's program itself."""

_EXACT_DIGITS = 17


def kept_names(blocks: Mapping[str, Mapping[str, Declared]]) -> tuple[list[str], list[str]]:
    """Return transformed parameters and generated quantities that results keep, and the others.

    Results hold numbers and arrays of numbers, but neither complex numbers nor tuples.
    """
    declared = {**blocks["transformed parameters"], **blocks["generated quantities"]}
    kept = [name for name, each in declared.items() if each.type in ("int", "real")]
    return kept, [name for name in declared if name not in kept]


def with_generated(
    fit: Fit, model: Model, names: Iterable[str], *, compiled: CompiledProgram | None, seed: int
) -> Fit:
    """Add what the original program computes from its parameters to a tempered fit.

    It is evaluated for every raw draw, so that the weights apply to it as to the parameters, and
    ``posterior`` is drawn again from the raw draws.

    Parameters
    ----------
    fit
        Fit of a tempered form.
    model
        From :func:`harness.temper.tempered_model`.
    names
        What to add, if the engine has it; see :func:`kept_names`.
    compiled
        The compiled original, for CmdStan's standalone generated quantities; None for stanli's.
    seed
        Seed, from which each chain derives its own.

    Raises
    ------
    SamplingError
        If the original program rejects a draw.
    """
    raw = fit.raw
    extended = fit.tree["extended"].to_dataset()
    pseudo = fit.weighting == "within draws"
    last = (PSEUDO_SAMPLE,) if pseudo else ()
    values = {
        str(name): raw[name].transpose("chain", "draw", ..., *last).to_numpy() for name in raw
    }
    wanted = list(names)
    if wanted:
        # The draws of a chain one after another, the pseudo-samples of a draw side by side.
        rows = {
            name: _rows(np.moveaxis(value, -1, 2) if pseudo else value[:, :, None])
            for name, value in values.items()
        }
        made = generate(model, rows, compiled=compiled, seed=seed)
        for name in [each for each in wanted if each in made]:
            array = made[name]
            if pseudo:
                shape = (len(array), -1, extended.sizes[PSEUDO_SAMPLE], *array.shape[2:])
                array = np.moveaxis(array.reshape(shape), 2, -1)
            values[name] = array
    rng = np.random.default_rng(fit.tree.attrs["seed"])
    order = ("chain", "draw")
    path = {
        name: extended[name].transpose(*order, ..., *last).to_numpy()
        for name in GENERATED
        if name in extended
    }
    stats = fit.sample_stats
    return build_fit(
        posterior=target_draws(values, fit.log_weight, fit.weighting, rng),
        extended=in_extended(values) | path,
        sample_stats={str(n): stats[n].transpose(*order).to_numpy() for n in stats},
        constant_data=model.data,
        attrs={str(key): value for key, value in fit.tree.attrs.items()}
        | {"parameters": json.dumps(list(model.parameters))},
        weighting=fit.weighting,
        pseudo_samples=pseudo,
    )


def _rows(value: FloatArray) -> FloatArray:
    """(chain, draw, pseudo-sample, ...) to (chain, row, ...)."""
    return value.reshape(value.shape[0], -1, *value.shape[3:])


def generate(
    model: Model, draws: Mapping[str, FloatArray], *, compiled: CompiledProgram | None, seed: int
) -> dict[str, FloatArray]:
    """Evaluate the original program's later blocks at draws of its parameters.

    CmdStan's standalone generated quantities do not include transformed parameters, so these always
    come from stanli.

    Parameters
    ----------
    model
        From :func:`harness.temper.tempered_model`.
    draws
        By parameter, shape (chain, draw, ...).
    compiled, seed
        As for :func:`with_generated`.

    Returns
    -------
    dict
        By name, shape (chain, draw, ...).

    Raises
    ------
    SamplingError
        If a draw is rejected.
    """
    chains = len(next(iter(draws.values())))
    seeds = [int(s) for s in np.random.SeedSequence([seed, 3]).generate_state(chains)]
    by_chain = [{name: draws[name][c] for name in model.parameters} for c in range(chains)]
    made = [_by_stanli(model, one, s) for one, s in zip(by_chain, seeds, strict=True)]
    if compiled is not None:
        theirs = _by_cmdstan(model, by_chain, seeds, compiled)
        made = [ours | more for ours, more in zip(made, theirs, strict=True)]
    return {name: np.stack([each[name] for each in made]) for name in made[0]}


def _by_stanli(model: Model, draws: Mapping[str, FloatArray], seed: int) -> dict[str, FloatArray]:
    program = model.program(ORIGINAL)
    density = BatchedDensity(program, model.data)
    points = density.unconstrain_draws(draws)
    return density.constrain(points, transformed=True, seed=seed)


def _by_cmdstan(
    model: Model,
    by_chain: Sequence[Mapping[str, FloatArray]],
    seeds: Sequence[int],
    compiled: CompiledProgram,
) -> list[dict[str, FloatArray]]:
    """Run CmdStan's standalone generated quantities, one process per chain.

    Each has a seed of its own: CmdStan before 2.39 gave all chains of one call the same stream.
    """
    made = []
    with tempfile.TemporaryDirectory(prefix="harness-") as place:
        folder = Path(place)
        data = folder / "data.json"
        cmdstanpy.write_stan_json(str(data), plain_data(model.data))
        for chain, (draws, seed) in enumerate(zip(by_chain, seeds, strict=True)):
            given, written = folder / f"draws_{chain}.csv", folder / f"generated_{chain}.csv"
            _write_draws(given, draws)
            command = [
                str(compiled.exe),
                *("generate_quantities", f"fitted_params={given}"),
                *("data", f"file={data}", "random", f"seed={seed % 2**31}"),
                *("output", f"file={written}", f"sig_figs={_EXACT_DIGITS}"),
            ]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                said = " ".join((done.stderr.strip() or done.stdout.strip()).splitlines()[-3:])
                raise SamplingError(
                    f"generated quantities of {model.name} did not finish (seed {seed}): {said}"
                )
            made.append(_read_written(written))
    return made


def _write_draws(path: Path, draws: Mapping[str, FloatArray]) -> None:
    """Write draws under CmdStan's names, the first index running fastest."""
    columns, names = [], []
    for name, value in draws.items():
        shape = value.shape[1:]
        indices = [tuple(reversed(index)) for index in np.ndindex(*reversed(shape))]
        names += [".".join([name, *(str(i + 1) for i in index)]) for index in indices]
        columns += [value[(slice(None), *index)] for index in indices]
    table = pd.DataFrame(np.column_stack(columns), columns=names)
    table.to_csv(path, index=False, float_format="%.17g")


def _read_written(path: Path) -> dict[str, FloatArray]:
    with path.open() as file:
        header = next(line for line in file if not line.startswith("#")).strip()
        table = pd.read_csv(file, header=None, comment="#", dtype=np.float64, **EXACT).to_numpy()
    return {
        name: np.asarray(variable.extract_reshape(table), dtype=np.float64)
        for name, variable in parse_header(header).items()
        if variable.type.name == "SCALAR"
    }
