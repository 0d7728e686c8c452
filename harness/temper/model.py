"""A model made from a user's Stan program, with tempered forms that we write for it."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from harness.engine.program import StanProgram
from harness.engine.stan_library import Variable
from harness.engine.stan_source import stan_instance
from harness.errors import DataError
from harness.files import write_text
from harness.folders import folder_of_programs
from harness.model import Model, OwnBase
from harness.temper.classify import What
from harness.temper.edited import UNEDITED, read_edited, refuse_other_variables
from harness.temper.program import TemperedProgram, temper_each
from harness.temper.simulate import LOG_PRIOR, LOG_SIMULATED
from harness.temper.templates import Variant

PRIOR_SIMULATION = "prior_simulation"
"""Variant of a model that has no parameters, and generates draws of the prior."""

CHANGE_OF_VARIABLES = "change_of_variables"
"""Variant of a model whose log density is that of Stan's change of variables alone."""


@dataclass(frozen=True)
class WrittenForms:
    """The forms of a program with its data, written to a folder; nothing is evaluated yet.

    Attributes
    ----------
    path, data, what
        The program, its data, and what of it is tempered.
    folder
        Where the forms are.
    programs
        What is known of each form that we write.
    aliases
        Names in each form's output, by what they are.
    edited
        The form whose program was given instead; None if there is none.
    """

    path: Path
    data: Mapping[str, Any]
    what: What
    folder: Path
    programs: Mapping[str, TemperedProgram]
    aliases: Mapping[str, Mapping[str, str]]
    edited: Variant | None

    @property
    def target(self) -> StanProgram:
        """The program with all constants of its density, whose evaluation :meth:`model` needs."""
        return StanProgram(self.folder / "target.stan")

    def model(self) -> Model:
        """Return the model, for every method that tempers.

        Raises
        ------
        DataError
            If the data are refused, or no parameter has a value with them.
        ToolchainError
            If there is neither stanli nor a compiler to count the unconstrained parameters with.
        """
        target = stan_instance(self.target, self.data)
        with_values = target.variables()
        if not with_values:
            raise DataError(f"{self.path}: with these data no parameter has a value")
        any_form = self.programs["pseudo_extended"]
        simulation = self.programs["prior"].simulation
        return Model(
            name=self.path.stem,
            folder=self.folder,
            data=self.data,
            parameters=tuple(name for name in any_form.parameters if name in with_values),
            dimension=target.dimension,
            transforms={
                name: each
                for name, each in any_form.coordinates.transforms.items()
                if name in with_values
            },
            own_base=_own_base(any_form),
            log_prior_integral=_log_integral(any_form, with_values),
            tempered_whole=self.what == "all",
            flat=any_form.flat,
            questions=any_form.questions,
            not_simulated=() if simulation is None else simulation.left_out,
            no_gaussian_base=any_form.coordinates.reason,
            aliases=self.aliases,
            edited=self.edited,
            pseudo_names=any_form.parameters,
            pseudo_axis="first",
        )


def tempered_model(
    path: Path,
    data: Mapping[str, Any],
    *,
    what: What = "likelihood",
    include_paths: Iterable[Path] = (),
    edited: Path | None = None,
) -> Model:
    """Return the model of a Stan program with its data: of the forms that are written for it.

    The parameters, and what is raised, are those of :func:`written_forms`;
    :meth:`WrittenForms.model` raises, too.
    """
    return written_forms(path, data, what=what, include_paths=include_paths, edited=edited).model()


def written_forms(
    path: Path,
    data: Mapping[str, Any],
    *,
    what: What = "likelihood",
    include_paths: Iterable[Path] = (),
    edited: Path | None = None,
) -> WrittenForms:
    """Write the forms of a Stan program to a folder in the cache.

    A hash of their text determines the folder.  The variant ``original`` is the program itself with
    its includes written out, for its transformed parameters and generated quantities; ``target``
    has its density with all constants; ``prior`` has the part of the density that is not tempered.
    If the prior can be simulated, ``prior_simulation`` draws from it and ``change_of_variables``
    has Stan's Jacobian alone.

    Parameters
    ----------
    path
        The program.
    data
        Its data.
    what
        What is tempered; see :func:`harness.temper.temper`.
    include_paths
        Folders in which ``#include`` lines are looked up, besides the program's own.
    edited
        A program that :func:`harness.temper.temper` wrote and that was edited since, to take the
        place of the one that it would write now.

    Raises
    ------
    CompileError
        If a program is not valid Stan.
    DataError
        If it cannot be tempered, or the edited program does not belong to it; see
        :mod:`harness.temper.edited`.
    """
    folders = tuple(include_paths)
    variants = get_args(Variant)
    written = temper_each(path, variants, what=what, include_paths=folders, data=data)
    programs = dict(zip(variants, written, strict=True))
    texts: dict[str, str] = {variant: each.text for variant, each in programs.items()}
    texts["original"] = written[0].original
    simulation = programs["prior"].simulation
    if simulation is not None:
        texts[PRIOR_SIMULATION] = simulation.text
        texts[CHANGE_OF_VARIABLES] = simulation.jacobian
    given = None if edited is None else read_edited(edited, programs)
    aliases: dict[str, Mapping[str, str]] = {form: each.names for form, each in programs.items()}
    if simulation is not None:
        kind = LOG_PRIOR if simulation.normalised else LOG_SIMULATED
        aliases[PRIOR_SIMULATION] = {kind: simulation.log_density}
    if given is not None:
        texts |= {given.form: given.text, UNEDITED: texts[given.form]}
        aliases[UNEDITED] = aliases[given.form]
    together = "\0".join(f"{name}\0{texts[name]}" for name in sorted(texts))
    digest = hashlib.sha256(together.encode()).hexdigest()
    folder = folder_of_programs("tempered", digest, path)
    for variant, text in texts.items():
        if not (folder / f"{variant}.stan").is_file():
            write_text(folder / f"{variant}.stan", text)
    if given is not None:
        refuse_other_variables(given, StanProgram(folder / f"{UNEDITED}.stan"))
    edited_form = None if given is None else given.form
    return WrittenForms(path, data, what, folder, programs, aliases, edited_form)


def _log_integral(program: TemperedProgram, variables: Mapping[str, Variable]) -> float | None:
    """Return the log of the base's integral, if the program's text shows it."""
    if program.base_verdict not in ("normalised", "halved"):
        return None
    return -math.log(2) * sum(
        math.prod(variables[name].shape) for name in program.halved if name in variables
    )


def _own_base(program: TemperedProgram) -> OwnBase:
    """Return the kind of base that a program's untempered statements make."""
    if program.base_verdict == "improper":
        return "improper"
    return "prior" if program.what == "likelihood" else "flat"
