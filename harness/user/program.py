"""A user's program with its data: its forms compiled, and itself run by NUTS."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from harness.diagnosis import Finding, Severity, remember
from harness.engine.batched import BatchedDensity
from harness.engine.compile import CompiledProgram, compile_programs, source_digest
from harness.engine.nuts import NutsSettings
from harness.engine.program import StanProgram
from harness.engine.restarts import started_anew
from harness.engine.stan_source import is_compiled
from harness.engine.stanli_package import is_unsupported
from harness.engine.together import compile_together
from harness.engine.toolchain import require_cmdstan
from harness.errors import (
    DataError,
    HarnessError,
    SamplingError,
)
from harness.fit import Fit, build_fit
from harness.forms.common import (
    Engine,
    Inits,
    Run,
    VariantRun,
    run_attributes,
    run_variant,
)
from harness.model import Model
from harness.temper.model import CHANGE_OF_VARIABLES, PRIOR_SIMULATION
from harness.user.agreement import disagreement
from harness.user.clock import Clock
from harness.user.data import (
    NOTHING_TO_SAMPLE,
    unsupported,
)
from harness.user.generated import (
    ORIGINAL,
    WITHOUT_GENERATED,
    generate,
    program_without_generated,
    with_generated,
)
from harness.user.prior import PRIOR, starts_from_prior
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
    transforms
        Whether the results keep transformed parameters.
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
    transforms: bool
    generates: bool
    numbers: int
    compiled: dict[str, CompiledProgram]
    _libraries: set[StanProgram] = field(default_factory=set)
    """Programs of which a library is there, if they need one."""

    @cached_property
    def unit_vectors(self) -> tuple[slice, ...]:
        """Unconstrained coordinates behind each unit vector; empty if nothing evaluates a density.

        See :mod:`harness.engine.unit_vectors`.
        """
        if self.why_not_tempered is not None:
            return ()
        return BatchedDensity(self.model.program("target"), self.model.data).unit_vectors

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

    def compile(
        self,
        variants: Iterable[str],
        clock: Clock,
        densities: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        """Compile what NUTS is to run and is not compiled yet, if the engine is CmdStan.

        Parameters
        ----------
        variants
            The variants.
        clock
            Where the time goes.
        densities
            Variants that are then evaluated in Python, with their data: their libraries are
            compiled beside the others, where stanli does not support the program.
        """
        programs = {
            self.model.program(each): each for each in variants if each not in self.compiled
        }
        if self.engine != "cmdstan" or not programs:
            return
        with clock.step("compiling", "compile"):
            made = compile_together(
                require_cmdstan(),
                executables=list(programs),
                libraries=self._missing(densities or {}),
            )
        self.compiled |= {programs[program]: each for program, each in made.items()}

    def compile_densities(self, clock: Clock) -> None:
        """Compile libraries for what is evaluated in Python, where stanli does not support it.

        What evaluates them later then spends its own time only, which budgets count.  That of the
        target is there already, since the program has been tempered.
        """
        if self.why_not_tempered is not None or not starts_from_prior(self.model):
            return
        needed = [PRIOR]
        if can_be_simulated(self.model):
            needed += [PRIOR_SIMULATION, CHANGE_OF_VARIABLES]
        missing = self._missing(dict.fromkeys(needed, self.model.data))
        if missing:  # an error shows again where the density is needed
            with clock.step("compiling densities", "compile"), suppress(HarnessError):
                compile_together(require_cmdstan(), libraries=missing)

    def _missing(self, data: Mapping[str, Mapping[str, Any]]) -> list[StanProgram]:
        """Return the variants, given with their data, whose densities have to be compiled."""
        if self.engine != "cmdstan" or not data:
            return []
        if not is_compiled(self.model.program("target"), self.model.data):
            return []
        return [self.model.program(name) for name, each in data.items() if self._lacks(name, each)]

    def _lacks(self, variant: str, data: Mapping[str, Any]) -> bool:
        """Whether a variant's density has to be compiled; an error shows where it is needed."""
        with suppress(HarnessError):
            return is_compiled(self.model.program(variant), data)
        return False

    def disagreement(self, seed: int) -> str | None:
        """Say how stanli's density of the original differs from the compiled program's.

        Returns None if they agree, and also if nothing is compiled.
        """
        compiled = self.compiled.get(ORIGINAL)
        if compiled is None or self.why_not_tempered is not None:
            return None
        return disagreement(compiled, self.model.program("target"), self.model.data, seed=seed)

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

    def plain(self, nuts: NutsSettings, seed: int, clock: Clock, inits: Inits = None) -> Fit:
        """Run NUTS on the original program; generated quantities cannot disturb its draws.

        If some chains do not get on from where they start, all start anew, and a finding says so.
        ``clock`` is told how far the run is, and ``inits`` has starting points, which are random
        otherwise.
        """
        ran, failed = started_anew(lambda each: self._plain(nuts, each, clock, inits), seed)
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
            remember(fit, [chains_failed(failed)])
        return fit

    def _plain(self, nuts: NutsSettings, seed: int, clock: Clock, inits: Inits) -> VariantRun:
        if self.engine == "stanli" and self.generates:
            # stanli gives no parameters either where a generated quantity is rejected.
            return self._apart(nuts, seed, clock, inits)
        try:
            return self._ran(ORIGINAL, self.compiled.get(ORIGINAL), nuts, seed, clock, inits)
        except SamplingError:
            # CmdStan ends at errors of generated quantities that are no rejections, such as an
            # index out of range.  An error of the other blocks shows again, and is raised.
            if not self.generates:
                raise
            return self._apart(nuts, seed, clock, inits)

    def _ran(
        self,
        variant: str,
        compiled: CompiledProgram | None,
        nuts: NutsSettings,
        seed: int,
        clock: Clock,
        inits: Inits,
    ) -> VariantRun:
        run = Run(
            seed=seed,
            nuts=nuts,
            compiled=compiled,
            engine=self.engine,
            follow=clock.share,
            inits=inits,
        )
        return run_variant(self.model, variant, {}, run)

    def _apart(self, nuts: NutsSettings, seed: int, clock: Clock, inits: Inits) -> VariantRun:
        """Run the program without its generated quantities, and then these for each draw.

        Parameters
        ----------
        nuts, seed, clock, inits
            Settings, seed and starting points of the run, which counts as a run of the original,
            and what is told how far it is.
        """
        program = program_without_generated(self.model)
        compiled = None
        if self.engine == "cmdstan":
            compiled = compile_programs([program], require_cmdstan())[program]
        ran = self._ran(WITHOUT_GENERATED, compiled, nuts, seed, clock, inits)
        found = ran.run.variables
        clock.say("plain NUTS: generated quantities")
        made = generate(self.model, found, compiled=None, seed=seed, follow=clock.share)
        original = self.model.program(ORIGINAL)
        return replace(
            ran,
            run=replace(ran.run, variables=made | found),
            program=original.name,
            digest=source_digest(original),
        )

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

    def generated(self, fit: Fit, seed: int, clock: Clock) -> Fit:
        """Add the original's transformed parameters and generated quantities.

        ``clock`` is told how far this is.
        """
        if self.transforms:
            self._compile_transformed(clock)
        # CmdStan refuses to generate quantities if a program has none.
        compiled = self.compiled.get(ORIGINAL) if self.generates else None
        with clock.step("generated quantities", "generate"):
            return with_generated(
                fit, self.model, self.names, compiled=compiled, seed=seed, follow=clock.share
            )

    def _compile_transformed(self, clock: Clock) -> None:
        """Compile the library that computes transformed parameters, if none is there.

        A program that CmdStan runs writes only its generated quantities for given draws.
        """
        earlier = program_without_generated(self.model)
        if earlier in self._libraries:
            return
        missing = self._missing({earlier.path.stem: self.model.data})
        if missing:  # an error shows again where the library is needed
            with clock.step("compiling", "compile"), suppress(HarnessError):
                compile_together(require_cmdstan(), libraries=missing)
        self._libraries.add(earlier)


def chains_failed(why: str) -> Finding:
    """Report that chains started anew because some ended, and why."""
    return Finding(
        Severity.FINE,
        "Some chains ended with an error where they had started, so all started anew elsewhere: "
        f"{why.rstrip('.')}.",
    )
