"""A user's program with its data: read, checked, tempered, compiled and run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from harness.arrays import FloatArray
from harness.engine.compile import CompiledProgram, Declared, compile_programs, declarations
from harness.engine.nuts import NutsSettings
from harness.engine.program import StanProgram
from harness.engine.toolchain import require_cmdstan
from harness.errors import DataError, HarnessError, ToolchainError
from harness.files import write_text
from harness.fit import Fit, build_fit
from harness.folders import cache_folder
from harness.forms.common import (
    Engine,
    Run,
    chosen_engine,
    run_attributes,
    run_variant,
    variant_data,
)
from harness.forms.continuous_tempering import CollapsedTempering
from harness.forms.form import Form, sample
from harness.forms.pseudo_extended import PseudoExtended
from harness.model import Model
from harness.path.data import TemperedPath
from harness.temper import What, tempered_model
from harness.temper.program import self_contained
from harness.user.agreement import disagreement
from harness.user.clock import Clock
from harness.user.data import accepted_by_stanli, checked_data, read_data
from harness.user.generated import ORIGINAL, kept_names, with_generated
from harness.user.scout import Path as SearchPath
from harness.user.scout import starting_values

Tempered = Literal["pe", "ct"]
"""Methods that temper; see :data:`harness.user.sample.Method`."""


@dataclass
class Job:
    """A program with its data and everything that is made from it.

    Attributes
    ----------
    path
        The program.
    model
        Its tempered forms and the program itself; only the latter if it cannot be tempered.
    why_not_tempered
        Why it cannot be tempered or why that was not tried; None if it can.
    engine
        What runs NUTS.
    names, left_out
        Transformed parameters and generated quantities that the results keep, and those that they
        cannot hold.
    compiled
        Compiled programs by variant.
    """

    path: Path
    model: Model
    why_not_tempered: str | None
    engine: Engine
    names: list[str]
    left_out: list[str]
    generates: bool
    compiled: dict[str, CompiledProgram]

    @contextmanager
    def named_errors(self) -> Iterator[None]:
        """Name the program in errors by its own name, not by that of a folder in the cache."""
        try:
            yield
        except HarnessError as error:
            named = str(error).replace(f"{self.model.folder.name}-", f"{self.path.name}, form ")
            raise type(error)(named) from error

    def compile(self, variants: Iterable[str], clock: Clock) -> None:
        """Compile variants that are not compiled yet, several at once, if the engine is CmdStan."""
        programs = {
            self.model.program(each): each for each in variants if each not in self.compiled
        }
        if self.engine != "cmdstan" or not programs:
            return
        with clock.step("compiling", "compile"):
            made = compile_programs(programs, require_cmdstan())
        self.compiled |= {programs[program]: each for program, each in made.items()}

    def disagreement(self, seed: int) -> str | None:
        """Say how stanli's density of the original differs from the compiled program's.

        Returns None if they agree, and also if nothing is compiled.
        """
        compiled = self.compiled.get(ORIGINAL)
        if compiled is None or self.why_not_tempered is not None:
            return None
        return disagreement(compiled, self.model.program("target"), self.model.data, seed=seed)

    def tempered_disagreement(
        self, method: Tempered, path: SearchPath, seed: int, num: int
    ) -> str | None:
        """Say the same of a tempered form, along the search's path."""
        form, along = tempered_form(method, path, num), tempered_path(method, path)
        compiled = self.compiled.get(form.program)
        if compiled is None:
            return None
        everything = variant_data(self.model, form.program, form.data(self.model, along))
        return disagreement(compiled, self.model.program(form.program), everything, seed=seed)

    def plain(self, nuts: NutsSettings, seed: int) -> Fit:
        """Run NUTS on the original program."""
        compiled = self.compiled.get(ORIGINAL)
        run = Run(seed=seed, nuts=nuts, compiled=compiled, engine=self.engine)
        ran = run_variant(self.model, ORIGINAL, {}, run)
        later = [name for name in self.names if name in ran.run.variables]
        names = [*self.model.parameters, *later]
        return build_fit(
            posterior={name: ran.run.variables[name] for name in names},
            extended=None,
            sample_stats=ran.run.sample_stats,
            constant_data=self.model.data,
            attrs=run_attributes("target", self.model, ran, {}, seed)
            | {"parameters": json.dumps(list(self.model.parameters))},
        )

    def tempered(
        self,
        method: Tempered,
        path: SearchPath,
        starts: Mapping[str, FloatArray],
        nuts: NutsSettings,
        seed: int,
        num: int,
    ) -> Fit:
        """Run a tempered form along the search's path, its chains from the starting points."""
        form = tempered_form(method, path, num)
        run = Run(
            seed=seed,
            nuts=nuts,
            inits=starting_values(starts, nuts.chains, form.points),
            compiled=self.compiled.get(form.program),
            engine=self.engine,
        )
        return sample(self.model, form, tempered_path(method, path), run)

    def programs(self, fit: Fit) -> list[tuple[str, str]]:
        """Return names and texts of the original program and of the form that made a fit."""
        variant = fit.tree.attrs["program"].rpartition("-")[2]
        kept = {ORIGINAL: self.path.name}
        if variant != ORIGINAL:
            kept[variant] = f"{self.path.stem}-{variant}.stan"
        return [
            (name, self.model.program(each).path.read_text(encoding="utf-8"))
            for each, name in kept.items()
        ]

    def generated(self, fit: Fit, seed: int) -> Fit:
        """Add the original's transformed parameters and generated quantities."""
        # CmdStan refuses to generate quantities if a program has none.
        compiled = self.compiled.get(ORIGINAL) if self.generates else None
        return with_generated(fit, self.model, self.names, compiled=compiled, seed=seed)


def tempered_form(method: Tempered, path: SearchPath, num: int) -> Form:
    """Return the form that a method runs along the search's path, with N pseudo-samples."""
    if method == "pe":
        return PseudoExtended(num)
    return CollapsedTempering(zero_likelihood=path.zero_likelihood)


def tempered_path(method: Tempered, path: SearchPath) -> TemperedPath:
    """Return the search's path as the method's form takes it."""
    pseudo_extended = method == "pe"
    return TemperedPath(
        base=path.base,
        log_zeta=path.found.base.log_zeta,
        log_g=path.found.log_g_by_rung if pseudo_extended else path.ladder,
        ladder=not pseudo_extended,
        base_mass=path.positive if pseudo_extended else path.reached,
    )


def prepare(
    path: Path,
    data: Path | str | Mapping[str, Any] | None,
    what: What,
    include_paths: tuple[Path, ...],
    engine: Engine,
    *,
    tempered: Literal["no", "if possible", "yes"],
) -> Job:
    """Read, check and temper a program; nothing is compiled yet.

    Parameters
    ----------
    path, data, what, include_paths, engine
        As for :func:`harness.user.sample`.
    tempered
        Whether the program's tempered forms are needed.  If they are not, neither stanli nor a
        statement to temper is needed either.

    Raises
    ------
    CompileError
        If the program is not valid Stan.
    DataError, ToolchainError
        If the data do not fit the program, a tool is missing that is needed, or the program cannot
        be tempered and ``tempered`` is ``"yes"``.
    """
    given, where = read_data(data)
    program = StanProgram(path, (*include_paths, path.parent))
    blocks = declarations(program, require_cmdstan())
    _refuse(path, blocks["parameters"])
    kept, left_out = kept_names(blocks)
    chosen = chosen_engine(engine)
    checked = checked_data(blocks["inputs"], given, where)
    model = original_model(path, checked, blocks["parameters"], include_paths)
    reason: str | None = "only plain NUTS was asked for"
    if chosen == "stanli" or tempered == "yes":
        accepted_by_stanli(program, checked, where)
    if tempered != "no":
        try:
            model = tempered_model(path, checked, what=what, include_paths=include_paths)
            reason = None
        except (DataError, ToolchainError) as error:
            if tempered == "yes":
                raise
            reason = str(error)
    generates = bool(blocks["generated quantities"])
    return Job(path, model, reason, chosen, kept, left_out, generates, {})


def original_model(
    path: Path,
    data: Mapping[str, Any],
    parameters: Mapping[str, Declared],
    include_paths: tuple[Path, ...],
) -> Model:
    """Return a model whose only variant is the program itself, with its includes written out."""
    text = self_contained(path, include_paths=include_paths)
    digest = hashlib.sha256(text.encode()).hexdigest()
    folder = cache_folder("original") / digest[:32]
    if not (folder / f"{ORIGINAL}.stan").is_file():
        write_text(folder / f"{ORIGINAL}.stan", text)
    # The dimension is not needed to run the program itself.
    return Model(path.stem, folder, data, tuple(parameters), dimension=0)


def _refuse(path: Path, parameters: Mapping[str, Declared]) -> None:
    strange = [name for name, each in parameters.items() if each.type != "real"]
    if strange:
        raise DataError(
            f"{path}: results cannot hold the parameter {strange[0]}, which is a complex number or "
            "a tuple; declare its parts as separate parameters"
        )
