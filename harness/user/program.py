"""A user's program with its data: read, checked, tempered, compiled and run."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, cast, get_args

import numpy as np

from harness.arrays import FloatArray
from harness.diagnosis import Finding, Severity, remember
from harness.engine.batched import BatchedDensity
from harness.engine.compile import CompiledProgram, compile_programs, source_digest
from harness.engine.nuts import NutsSettings
from harness.engine.program import StanProgram
from harness.engine.restarts import started_anew
from harness.engine.short_nuts import affordable
from harness.engine.stan_source import stan_instance
from harness.engine.stanc import Declared, declarations
from harness.engine.stanli_package import is_unsupported
from harness.engine.toolchain import require_cmdstan, require_stanc
from harness.errors import (
    DataError,
    HarnessError,
    RewriteError,
    SamplingError,
    ToolchainError,
)
from harness.files import write_text
from harness.fit import Fit, build_fit, reserved_names
from harness.folders import folder_of_programs
from harness.forms.common import (
    Engine,
    Run,
    VariantRun,
    chosen_engine,
    run_attributes,
    run_variant,
    variant_data,
)
from harness.forms.continuous_tempering import (
    ZERO_LIKELIHOOD,
    CollapsedTempering,
    JointTempering,
)
from harness.forms.form import Form, sample
from harness.forms.pseudo_extended import PseudoExtended
from harness.model import Model
from harness.path import starting_values
from harness.path.data import TemperedPath
from harness.temper import NoLikelihoodError, What, tempered_model
from harness.temper.edited import UNEDITED
from harness.temper.model import CHANGE_OF_VARIABLES, PRIOR_SIMULATION
from harness.temper.program import self_contained
from harness.user.agreement import difference_by_editing, disagreement
from harness.user.clock import Clock
from harness.user.data import (
    NOTHING_TO_SAMPLE,
    accepted,
    accepted_by_stanli,
    checked_data,
    read_data,
    unsupported,
)
from harness.user.generated import (
    ORIGINAL,
    WITHOUT_GENERATED,
    generate,
    kept_names,
    program_without_generated,
    with_generated,
)
from harness.user.prior import PRIOR
from harness.user.scout import FoundPath, starts_from_prior
from harness.user.simulated import can_be_simulated
from harness.user.unfinished import identity

_TEMPERED_COST = 2.0
"""Cost of a gradient of a tempered form, over that of the target."""
_PRIOR_DRAWS, _PRIOR_VARIANCE = 5, 1e-3
"""Stan's adaptation shrinks variances towards the second, with the weight of so many draws."""

Tempered = Literal["collapsed_tempering", "joint_tempering", "pseudo_extended"]
"""Methods that temper, each a form by its name; see :data:`harness.user.sample.Method`."""


@dataclass
class UserProgram:
    """A program with its data and everything that is made from it.

    Attributes
    ----------
    path
        The program.
    model
        Its tempered forms and the program itself; only the latter if it cannot be tempered.
    why_not_tempered
        Why it cannot be tempered or why that was not tried; None if it can.
    without_likelihood
        Whether everything is tempered, although only the likelihood was to be, because no
        statement gives data a density.
    engine
        What runs NUTS.
    names, left_out
        Transformed parameters and generated quantities that the results keep, and those that they
        cannot hold.
    containers
        Those of the former that are no single numbers, so that they may have no values at all.
    generates
        Whether the program has generated quantities.
    numbers
        How many numbers the program writes for each draw, or fewer if that is not known.
    compiled
        Compiled programs by variant.
    """

    path: Path
    model: Model
    why_not_tempered: str | None
    without_likelihood: bool
    engine: Engine
    names: list[str]
    containers: frozenset[str]
    left_out: list[str]
    generates: bool
    numbers: int
    compiled: dict[str, CompiledProgram]

    @contextmanager
    def named_errors(self) -> Iterator[None]:
        """Name the program in errors by its own name, not by that of a folder in the cache.

        If stanli does not support a form of it, say what to do.
        """
        try:
            yield
        except HarnessError as error:
            variants = "|".join(each.stem for each in self.model.folder.glob("*.stan"))
            ours = rf"\b{self.model.folder.name}-({variants})\b"
            form = re.search(rf"{ours}: ", str(error))
            if form is not None and is_unsupported(str(error)):
                what = f"the form {form[1]} of this program"
                said = unsupported(what, str(error)[form.end() :])
                raise DataError(f"{self.path}: {said}") from error
            named = re.sub(ours, lambda found: f"{self.path.name}, form {found[1]}", str(error))
            raise type(error)(named) from error

    def compile(self, variants: Iterable[str], clock: Clock) -> None:
        """Compile what NUTS is to run and is not compiled yet, if the engine is CmdStan.

        Parameters
        ----------
        variants
            The variants, of which several are compiled at once.
        clock
            Where the time goes.
        """
        programs = {
            self.model.program(each): each for each in variants if each not in self.compiled
        }
        if self.engine != "cmdstan" or not programs:
            return
        with clock.step("compiling", "compile"):
            made = compile_programs(programs, require_cmdstan())
        self.compiled |= {programs[program]: each for program, each in made.items()}

    def compile_densities(self, clock: Clock) -> None:
        """Compile libraries for what is evaluated in Python, where stanli does not support it.

        What evaluates them later then spends its own time only, which budgets count.  That of the
        target is there already, since the program has been tempered.
        """
        if self.engine != "cmdstan" or self.why_not_tempered is not None:
            return
        target = stan_instance(self.model.program("target"), self.model.data)
        if target.source.engine == "stanli" or not starts_from_prior(self.model):
            return
        needed = [PRIOR]
        if can_be_simulated(self.model):
            needed += [PRIOR_SIMULATION, CHANGE_OF_VARIABLES]
        with clock.step("compiling densities", "compile"):
            for each in needed:
                with suppress(HarnessError):  # shows again where the density is needed
                    stan_instance(self.model.program(each), self.model.data)

    @property
    def edited_method(self) -> Tempered | None:
        """The method that runs the edited tempered program; None if there is no such program.

        Raises
        ------
        DataError
            If no method runs it.
        """
        edited = self.model.edited
        if edited is None:
            return None
        for method in get_args(Tempered):
            if edited == method or (edited == ZERO_LIKELIHOOD and method == "collapsed_tempering"):
                return cast(Tempered, method)
        raise DataError(f"no method of harness sample runs a tempered program of the form {edited}")

    def form(self, method: Tempered, path: FoundPath, num: int) -> Form:
        """Return the form that a method runs along the search's path, with N pseudo-samples.

        Raises
        ------
        DataError
            If the edited program cannot pass through points where the likelihood is zero, and there
            are many.
        """
        match method:
            case "pseudo_extended":
                return PseudoExtended(num)
            case "joint_tempering":
                return JointTempering()
            case "collapsed_tempering":
                if path.zero_likelihood and self.model.edited == method:
                    raise DataError(
                        f"{self.path}: the likelihood is zero on a share of the prior, where the "
                        f"edited program cannot pass: edit the one of --method {ZERO_LIKELIHOOD}"
                    )
                zero_likelihood = path.zero_likelihood or self.model.edited == ZERO_LIKELIHOOD
                return CollapsedTempering(zero_likelihood=zero_likelihood)

    def disagreement(self, seed: int) -> str | None:
        """Say how stanli's density of the original differs from the compiled program's.

        Returns None if they agree, and also if nothing is compiled.
        """
        compiled = self.compiled.get(ORIGINAL)
        if compiled is None or self.why_not_tempered is not None:
            return None
        return disagreement(compiled, self.model.program("target"), self.model.data, seed=seed)

    def tempered_disagreement(
        self, method: Tempered, path: FoundPath, seed: int, num: int
    ) -> str | None:
        """Say the same of a tempered form, along the search's path."""
        form = self.form(method, path, num)
        compiled = self.compiled.get(form.program)
        if compiled is None:
            return None
        everything = self.tempered_data(method, path, num)
        return disagreement(compiled, self.model.program(form.program), everything, seed=seed)

    def difference_by_editing(
        self, method: Tempered, path: FoundPath, seed: int, num: int
    ) -> str | None:
        """Say how the density of an edited tempered program differs from the one we would write."""
        if self.model.edited != self.form(method, path, num).program:
            return None
        everything = self.tempered_data(method, path, num)
        unedited, edited = map(self.model.program, (UNEDITED, self.model.edited))
        return difference_by_editing(unedited, edited, everything, seed=seed)

    def tempered_data(self, method: Tempered, path: FoundPath, num: int) -> dict[str, Any]:
        """Return the data of a tempered form's program, along the search's path."""
        form, along = self.form(method, path, num), tempered_path(method, path)
        return variant_data(self.model, form.program, form.data(self.model, along))

    def identity(
        self,
        nuts: NutsSettings,
        seed: int,
        variant: str = ORIGINAL,
        data: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> str:
        """Return a digest of everything that decides which draws a run of a variant makes.

        ``data`` are the user's unless a variant is given more.
        """
        digest = source_digest(self.model.program(variant))
        given = self.model.data if data is None else data
        return identity(digest, given, nuts, seed, self.engine, options)

    def plain(self, nuts: NutsSettings, seed: int) -> Fit:
        """Run NUTS on the original program; generated quantities cannot disturb its draws.

        If some chains do not get on from where they start, all start anew, and a finding says so.
        """
        ran, failed = started_anew(lambda each: self._plain(nuts, each), seed)
        later = [name for name in self.names if name in ran.run.variables]
        # Parameters without values, such as a vector of length 0, are in no results.
        parameters = [name for name in self.model.parameters if name in ran.run.variables]
        if not parameters:
            raise DataError(f"{self.path}: {NOTHING_TO_SAMPLE}")
        names = [*parameters, *later]
        fit = build_fit(
            posterior={name: ran.run.variables[name] for name in names},
            extended=None,
            sample_stats=ran.run.sample_stats,
            constant_data=self.model.data,
            attrs=run_attributes("nuts", self.model, ran, {}, seed)
            | {"parameters": json.dumps(parameters)},
        )
        if failed:
            remember(fit, [_chains_failed(failed)])
        return fit

    def _plain(self, nuts: NutsSettings, seed: int) -> VariantRun:
        if self.engine == "stanli" and self.generates:
            # stanli gives no parameters either where a generated quantity is rejected.
            return self._apart(nuts, seed)
        try:
            return self._ran(ORIGINAL, self.compiled.get(ORIGINAL), nuts, seed)
        except SamplingError:
            # CmdStan ends at errors of generated quantities that are no rejections, such as an
            # index out of range.  An error of the other blocks shows again, and is raised.
            if not self.generates:
                raise
            return self._apart(nuts, seed)

    def _ran(
        self, variant: str, compiled: CompiledProgram | None, nuts: NutsSettings, seed: int
    ) -> VariantRun:
        run = Run(seed=seed, nuts=nuts, compiled=compiled, engine=self.engine)
        return run_variant(self.model, variant, {}, run)

    def _apart(self, nuts: NutsSettings, seed: int) -> VariantRun:
        """Run the program without its generated quantities, and then these for each draw.

        Parameters
        ----------
        nuts, seed
            Settings and seed of the run, which counts as a run of the original.
        """
        program = program_without_generated(self.model)
        compiled = None
        if self.engine == "cmdstan":
            compiled = compile_programs([program], require_cmdstan())[program]
        ran = self._ran(WITHOUT_GENERATED, compiled, nuts, seed)
        found = ran.run.variables
        made = generate(self.model, found, compiled=None, seed=seed)
        original = self.model.program(ORIGINAL)
        return replace(
            ran,
            run=replace(ran.run, variables=made | found),
            program=original.name,
            digest=source_digest(original),
        )

    def tempered(
        self,
        method: Tempered,
        path: FoundPath,
        starts: Mapping[str, FloatArray],
        nuts: NutsSettings,
        seed: int,
        num: int,
    ) -> Fit:
        """Run a tempered form along the search's path, its chains from the starting points.

        If some chains do not get on from there, all start anew from others of the points.
        """
        form = self.form(method, path, num)

        def run(each: int) -> Fit:
            chosen = starts if each == seed else _in_other_order(starts, each)
            inits = starting_values(chosen, chains=nuts.chains, num_pseudo_samples=form.points)
            settings = Run(
                seed=each,
                nuts=nuts,
                inits=inits,
                compiled=self.compiled.get(form.program),
                engine=self.engine,
            )
            return sample(self.model, form, tempered_path(method, path), settings)

        fit, failed = started_anew(run, seed)
        if failed:
            remember(fit, [_chains_failed(failed)])
        return fit

    def affordable(self, nuts: NutsSettings, most_seconds: float) -> NutsSettings:
        """Return settings of a tempered run by stanli, which nothing can stop, for the time left.

        Parameters
        ----------
        nuts
            Those that are wanted; CmdStan, which is quicker, takes them as they are.
        most_seconds
            Seconds that it may take, roughly.
        """
        if self.engine != "stanli":
            return nuts
        target = BatchedDensity(self.model.program("target"), self.model.data)
        return affordable(nuts, target, most_seconds, weight=_TEMPERED_COST)

    def continued(
        self, method: Tempered, path: FoundPath, fit: Fit, nuts: NutsSettings, seed: int
    ) -> Fit:
        """Go on with a tempered run that has no pseudo-samples, from its chains' last states.

        CmdStan keeps the metric of the run's draws and adapts the step size only; stanli, which
        takes no metric, adapts both, starting from those states.

        Parameters
        ----------
        method, path
            Those of the run.
        fit
            The run's last round.
        nuts
            Settings of the next one.
        seed
            Its seed.
        """
        form, raw = self.form(method, path, 1), fit.raw
        last = {
            name: raw[name].isel(draw=-1).transpose("chain", ...).to_numpy()
            for name in fit.parameters
        }
        run = Run(
            seed=seed,
            nuts=nuts,
            inits=starting_values(last, chains=nuts.chains),
            inv_metric=self._inv_metric(fit) if self.engine == "cmdstan" else None,
            compiled=self.compiled.get(form.program),
            engine=self.engine,
        )
        return sample(self.model, form, tempered_path(method, path), run)

    def _inv_metric(self, fit: Fit) -> FloatArray:
        """Return variances of a run's raw, unconstrained draws, shrunk as Stan does it."""
        raw = fit.raw
        flat = {
            name: raw[name].transpose("chain", "draw", ...).to_numpy() for name in fit.parameters
        }
        values = {name: each.reshape(-1, *each.shape[2:]) for name, each in flat.items()}
        density = BatchedDensity(self.model.program("target"), self.model.data)
        points = density.unconstrain_draws(values)
        share = len(points) / (len(points) + _PRIOR_DRAWS)
        shrunk: FloatArray = share * points.var(axis=0) + (1 - share) * _PRIOR_VARIANCE
        return shrunk

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


def _in_other_order(starts: Mapping[str, FloatArray], seed: int) -> dict[str, FloatArray]:
    """Return starting points by parameter, shape (n, ...), in a random order."""
    count = min(len(each) for each in starts.values())
    order = np.random.default_rng(seed).permutation(count)
    return {name: each[order] for name, each in starts.items()}


def _chains_failed(why: str) -> Finding:
    """Report that chains started anew because some ended, and why."""
    return Finding(
        Severity.FINE,
        "Some chains ended with an error where they had started, so all started anew elsewhere: "
        f"{why.rstrip('.')}.",
    )


def tempered_path(method: Tempered, path: FoundPath) -> TemperedPath:
    """Return the search's path as the method's form takes it."""
    on_ladder = method == "collapsed_tempering"
    return TemperedPath(
        base=path.base,
        log_zeta=path.found.base.log_zeta,
        log_g=path.ladder if on_ladder else path.found.log_g_by_rung,
        ladder=on_ladder,
        # Draws of the base tell this share better than chains do, which seldom pass its edge.
        base_mass=path.positive,
        positive_only=on_ladder,
    )


def prepare(
    path: Path,
    data: Path | str | Mapping[str, Any] | None,
    what: What,
    include_paths: tuple[Path, ...],
    engine: Engine,
    *,
    tempered: Literal["no", "if possible", "yes"],
    edited: Path | None = None,
) -> UserProgram:
    """Read, check and temper a program; nothing is compiled yet.

    Parameters
    ----------
    path, data, what, include_paths, engine
        As for :func:`harness.user.sample`.  If only the likelihood is to be tempered and there is
        none, everything is.
    tempered
        Whether the program's tempered forms are needed.  If they are not, neither stanli nor a
        statement to temper is needed either.
    edited
        A tempered program that is run in place of ours; see :func:`harness.temper.tempered_model`.

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
    blocks = declarations(program, require_stanc())
    kept, left_out = kept_names(blocks)
    _refuse(path, blocks, kept)
    chosen = chosen_engine(engine)
    checked = checked_data(blocks["inputs"], given, where)
    model = original_model(path, checked, blocks["parameters"], include_paths)
    numbers = len(blocks["parameters"])
    reason: str | None = "only plain NUTS was asked for"
    if chosen == "stanli":
        numbers = accepted_by_stanli(program, checked, where)
    elif tempered == "yes":
        accepted(program, checked, where)
    without_likelihood = False
    if tempered != "no":
        try:
            temper = partial(
                tempered_model, path, checked, include_paths=include_paths, edited=edited
            )
            try:
                model = temper(what=what)
            except NoLikelihoodError:
                model, without_likelihood = temper(what="all"), True
            reason = None
        except (DataError, RewriteError, ToolchainError) as error:
            if tempered == "yes":
                raise
            reason = str(error)
    generates = bool(blocks["generated quantities"])
    later = {**blocks["transformed parameters"], **blocks["generated quantities"]}
    containers = frozenset(name for name in kept if later[name].dimensions)
    return UserProgram(
        path,
        model,
        reason,
        without_likelihood,
        chosen,
        kept,
        containers,
        left_out,
        generates,
        numbers,
        {},
    )


def original_model(
    path: Path,
    data: Mapping[str, Any],
    parameters: Mapping[str, Declared],
    include_paths: tuple[Path, ...],
) -> Model:
    """Return a model whose only variant is the program itself, with its includes written out."""
    text = self_contained(path, include_paths=include_paths)
    digest = hashlib.sha256(text.encode()).hexdigest()
    folder = folder_of_programs("original", digest, path)
    if not (folder / f"{ORIGINAL}.stan").is_file():
        write_text(folder / f"{ORIGINAL}.stan", text)
    # The dimension is not needed to run the program itself.
    return Model(path.stem, folder, data, tuple(parameters), dimension=0)


def _refuse(path: Path, blocks: Mapping[str, Mapping[str, Declared]], kept: Iterable[str]) -> None:
    parameters = blocks["parameters"]
    if not parameters:
        raise DataError(f"{path} has no parameters, so that there is nothing to sample")
    declared = {name: each for block in blocks.values() for name, each in block.items()}
    for names in ([*parameters, *kept], blocks["inputs"]):
        for name in reserved_names({each: declared[each].dimensions for each in names}):
            raise DataError(
                f"{path}: an axis of the results has the name {name}, so no variable can have it; "
                "call the variable something else"
            )
    strange = [name for name, each in parameters.items() if each.type != "real"]
    if strange:
        raise DataError(
            f"{path}: results cannot hold the parameter {strange[0]}, which is a complex number or "
            "a tuple; declare its parts as separate parameters"
        )
