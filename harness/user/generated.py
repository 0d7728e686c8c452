"""Add the original program's transformed parameters and generated quantities to a tempered fit."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import cmdstanpy
import numpy as np
import pandas as pd
from stanio import parse_header

from harness.arrays import FloatArray
from harness.diagnosis import Finding, Severity
from harness.engine.batched import BatchedDensity
from harness.engine.compile import CompiledProgram
from harness.engine.iterations import Follow
from harness.engine.program import StanProgram
from harness.engine.staging import temporary_folder
from harness.engine.stan_csv import EXACT
from harness.engine.stan_data import plain_data
from harness.engine.stanc import Declared
from harness.engine.threads import in_threads
from harness.errors import SamplingError
from harness.files import write_text
from harness.fit import PSEUDO_SAMPLE, Fit, build_fit, in_extended, target_draws
from harness.fit.weighting import GENERATED
from harness.model import Model
from harness.seeds import derived_seeds

ORIGINAL = "original"
"""Variant of a tempered model that is the user's program itself."""

WITHOUT_GENERATED = "without_generated"
"""The same without its generated quantities, so that these cannot disturb the draws."""

_EXACT_DIGITS = 17
_NAMED = 5

_HIDDEN = re.compile(r'//[^\n]*|/\*.*?\*/|"[^"\n]*"', re.DOTALL)
_BLOCK = re.compile(r"\bgenerated\s+quantities\s*\{")


def without_generated(text: str) -> str:
    """Return a program's text, its includes written out, without its generated quantities.

    They are the last block that a program can have.
    """
    code = _HIDDEN.sub(lambda hidden: re.sub(r"[^\n]", " ", hidden[0]), text)
    block = _BLOCK.search(code)
    return text if block is None else text[: block.start()]


def program_without_generated(model: Model) -> StanProgram:
    """Return a user's program without its generated quantities, written beside the original.

    It is the original itself if that has none.
    """
    original = model.program(ORIGINAL)
    text = original.path.read_text(encoding="utf-8")
    shortened = without_generated(text)
    if shortened == text:
        return original
    path = model.folder / f"{WITHOUT_GENERATED}.stan"
    if not path.is_file():
        write_text(path, shortened)
    return StanProgram(path)


def kept_names(blocks: Mapping[str, Mapping[str, Declared]]) -> tuple[list[str], list[str]]:
    """Return transformed parameters and generated quantities that results keep, and the others.

    Results hold numbers and arrays of numbers, but neither complex numbers nor tuples.
    """
    declared = {**blocks["transformed parameters"], **blocks["generated quantities"]}
    kept = [name for name, each in declared.items() if each.type in ("int", "real")]
    return kept, [name for name in declared if name not in kept]


def not_numbers(fit: Fit, names: Iterable[str]) -> list[Finding]:
    """Report the transformed parameters and generated quantities that are NaN in some draws."""
    counts = {}
    for name in names:
        if name in fit.posterior:
            values = fit.posterior[name].transpose("chain", "draw", ...).to_numpy()
            missing = np.isnan(values).reshape(*values.shape[:2], -1).any(axis=2)
            counts[name] = int(missing.sum())
    found = [f"{name} in {count:,}" for name, count in counts.items() if count]
    if not found:
        return []
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    draws = fit.posterior.sizes["chain"] * fit.posterior.sizes["draw"]
    return [
        Finding(
            Severity.WARNING,
            f"Quantities are NaN in some of the {draws:,} draws, because the program rejects them "
            f"or computes NaN there: {', '.join(found[:_NAMED])}{more}. The parameters themselves "
            "are not affected.",
            "Look at what the program computes for such draws; means of these quantities are NaN.",
        )
    ]


def absent(
    fit: Fit, names: Iterable[str], containers: Container[str], left_out: Sequence[str]
) -> list[Finding]:
    """Report the transformed parameters and generated quantities that are not in the results.

    Parameters
    ----------
    fit
        The fit with all that could be added.
    names
        What it should have.
    containers
        Those of them that are no single numbers, so that they may have no values at all.
    left_out
        What results cannot hold.
    """
    found = []
    if left_out:
        sentence = f"Complex numbers and tuples are left out of the results: {', '.join(left_out)}."
        found.append(Finding(Severity.FINE, sentence))
    missing = [name for name in names if name not in fit.posterior]
    empty = [name for name in missing if name in containers]
    if empty:
        # A container that stanli could not evaluate would be here too; none is known.
        sentence = f"Not in the results, as they have no values: {', '.join(empty)}."
        found.append(Finding(Severity.FINE, sentence))
    unknown = ", ".join(name for name in missing if name not in containers)
    if unknown:
        sentence = f"Missing from the results, because stanli cannot evaluate them: {unknown}."
        found.append(Finding(Severity.WARNING, sentence, "Use --engine cmdstan."))
    return found


def with_generated(
    fit: Fit,
    model: Model,
    names: Iterable[str],
    *,
    compiled: CompiledProgram | None,
    seed: int,
    follow: Follow | None = None,
) -> Fit:
    """Add what the original program computes from its parameters to a fit.

    It is evaluated for every raw draw.  Where draws are weighted, the weights apply to it as to the
    parameters, and ``posterior`` is drawn again from the raw draws.

    Parameters
    ----------
    fit
        Fit of a tempered form, or of unweighted draws of the posterior.
    model
        From :func:`harness.temper.tempered_model`.
    names
        What to add, if the engine has it; see :func:`kept_names`.
    compiled
        The compiled original, for CmdStan's standalone generated quantities; None for stanli's.
    seed
        Seed of the run, from which each chain derives its own.
    follow
        Is told which share of the draws is done.
    """
    raw = fit.raw
    extended = fit.extended
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
        made = generate(model, rows, compiled=compiled, seed=seed, wanted=wanted, follow=follow)
        for name in [each for each in wanted if each in made]:
            array = made[name]
            if pseudo and extended is not None:
                shape = (len(array), -1, extended.sizes[PSEUDO_SAMPLE], *array.shape[2:])
                array = np.moveaxis(array.reshape(shape), 2, -1)
            values[name] = array
    rng = np.random.default_rng(fit.tree.attrs["seed"])
    order = ("chain", "draw")
    weighted = None
    if extended is not None:
        path = [name for name in GENERATED if name in extended]
        weighted = in_extended(values) | {
            name: extended[name].transpose(*order, ..., *last).to_numpy() for name in path
        }
    stats = fit.sample_stats
    return build_fit(
        posterior=target_draws(values, fit.log_weight, fit.weighting, rng),
        extended=weighted,
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
    model: Model,
    draws: Mapping[str, FloatArray],
    *,
    compiled: CompiledProgram | None,
    seed: int,
    wanted: Collection[str] = (),
    follow: Follow | None = None,
) -> dict[str, FloatArray]:
    """Evaluate the original program's later blocks at draws of its parameters.

    If the program rejects a draw, its generated quantities are NaN there.

    Parameters
    ----------
    model
        From :func:`harness.temper.tempered_model`.
    draws
        By parameter, shape (chain, draw, ...).
    compiled, seed, follow
        As for :func:`with_generated`.
    wanted
        What is asked for, among which CmdStan's run may lack something.

    Returns
    -------
    dict
        By name, shape (chain, draw, ...).
    """
    chains, length = next(iter(draws.values())).shape[:2]
    names = [name for name in model.parameters if name in draws]
    evaluation = _Evaluation(
        model,
        [{name: draws[name][c] for name in names} for c in range(chains)],
        length,
        seed,
        derived_seeds(chains, seed, 3),
        follow,
    )
    made = None
    if compiled is not None:
        # CmdStan gives up at some errors, such as an index out of range; others' are NaN then.
        with contextlib.suppress(SamplingError):
            made = evaluation.by_cmdstan(compiled)
    if made is None:
        made = evaluation.of_all_blocks()
    elif not made[0].keys() >= set(wanted):
        # CmdStan's standalone generated quantities do not include transformed parameters.
        transformed = evaluation.of_transformed_parameters()
        made = [one | more for one, more in zip(transformed, made, strict=True)]
    return {name: np.stack([each[name] for each in made]) for name in made[0]}


@dataclass(frozen=True)
class _Evaluation:
    """What the original program computes from draws, chain by chain.

    Attributes
    ----------
    model
        As for :func:`generate`.
    draws
        Of each chain, by parameter, shape (draw, ...).
    length
        Draws of each chain.
    seed, seeds
        Seed of the run, and of each chain's random numbers.
    follow
        Is told which share of the draws is done.
    """

    model: Model
    draws: Sequence[Mapping[str, FloatArray]]
    length: int
    seed: int
    seeds: Sequence[int]
    follow: Follow | None

    def of_transformed_parameters(self) -> list[dict[str, FloatArray]]:
        """Evaluate everything but generated quantities."""
        return self._by(self._earlier, self._earlier)

    def of_all_blocks(self) -> list[dict[str, FloatArray]]:
        """Evaluate everything, without CmdStan; what comes before a rejection is there."""
        earlier = self._earlier
        if program_without_generated(self.model) == self.model.program(ORIGINAL):
            return self._by(earlier, earlier)
        return self._by(self._density(self.model.program(ORIGINAL)), earlier)

    def _by(self, density: BatchedDensity, earlier: BatchedDensity) -> list[dict[str, FloatArray]]:
        """Evaluate a program, and one without its generated quantities where it rejects a draw."""

        def of_chain(chain: int, count: Callable[[], None]) -> dict[str, FloatArray]:
            # stanli evaluates generated quantities, which may take long, whenever there are any.
            points = earlier.unconstrain_draws(self.draws[chain])
            found = density.constrain(
                points,
                transformed=True,
                seed=self.seeds[chain],
                rejected="nan",
                after_each=count,
            )
            if density is not earlier and any(np.isnan(each).any() for each in found.values()):
                found |= earlier.constrain(points, transformed=True, rejected="nan")
            return found

        return in_threads(of_chain, len(self.draws), each=self.length, follow=self.follow)

    @cached_property
    def _earlier(self) -> BatchedDensity:
        return self._density(program_without_generated(self.model))

    def _density(self, program: StanProgram) -> BatchedDensity:
        # The run itself has seeded transformed data with its own seed.
        return BatchedDensity(program, self.model.data, data_seed=self.seed)

    def by_cmdstan(self, compiled: CompiledProgram) -> list[dict[str, FloatArray]]:
        """Run CmdStan's standalone generated quantities, one process per chain.

        Each has a seed of its own: CmdStan before 2.39 gave all chains of one call the same stream.

        Raises
        ------
        SamplingError
            If a process does not finish.
        """
        with temporary_folder() as folder:
            data = folder / "data.json"
            cmdstanpy.write_stan_json(str(data), plain_data(self.model.data))

            def of_chain(chain: int, count: Callable[[], None]) -> dict[str, FloatArray]:
                seed = self.seeds[chain]
                given, written = folder / f"draws_{chain}.csv", folder / f"generated_{chain}.csv"
                _write_draws(given, self.draws[chain])
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
                        f"generated quantities of {self.model.name} did not finish (seed {seed}): "
                        f"{said}"
                    )
                count()
                return _read_written(written)

            chains = len(self.draws)
            return in_threads(of_chain, chains, each=1, follow=self.follow, processes=True)


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
