"""A user's program and its data are read, checked and tempered."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal

from harness.engine.compile import CompiledProgram
from harness.engine.program import StanProgram
from harness.engine.stan_source import is_compiled
from harness.engine.stanc import Declared, declarations
from harness.engine.together import compile_together
from harness.engine.toolchain import require_cmdstan, require_stanc
from harness.errors import DataError, RewriteError, ToolchainError
from harness.files import write_text
from harness.fit import reserved_names
from harness.folders import folder_of_programs
from harness.forms.common import Engine, chosen_engine
from harness.model import Model
from harness.temper import NoLikelihoodError, What
from harness.temper.model import WrittenForms, written_forms
from harness.temper.program import self_contained
from harness.user.clock import Clock
from harness.user.data import accepted, accepted_by_stanli, checked_data, read_data
from harness.user.generated import ORIGINAL, kept_names
from harness.user.program import UserProgram


def prepare(
    path: Path,
    data: Path | str | Mapping[str, Any] | None,
    what: What,
    include_paths: tuple[Path, ...],
    engine: Engine,
    clock: Clock,
    *,
    tempered: Literal["no", "if possible", "yes"],
    edited: Path | None = None,
    nuts_first: bool = False,
) -> UserProgram:
    """Read, check and temper a program.

    Nothing is compiled but the density that its tempered forms have at their target's end, if they
    are needed and stanli does not read it.

    Parameters
    ----------
    path, data, what, include_paths, engine
        As for :func:`harness.user.sample`.  If only the likelihood is to be tempered and there is
        none, everything is.
    clock
        Where the time goes.
    tempered
        Whether the program's tempered forms are needed.  If they are not, neither stanli nor a
        statement to temper is needed either.
    edited
        A tempered program that is run in place of ours; see
        :func:`harness.temper.model.written_forms`.
    nuts_first
        Whether NUTS runs the program itself before anything else: where the density is compiled,
        CmdStan's executable is compiled beside it.

    Raises
    ------
    CompileError
        If the program is not valid Stan.
    DataError, ToolchainError
        If the data do not fit the program, a tool is missing that is needed, or the program cannot
        be tempered and ``tempered`` is ``"yes"``.
    """
    with clock.step("reading and tempering", "temper"):
        given, where = read_data(data)
        program = StanProgram(path, (*include_paths, path.parent))
        blocks = declarations(program, require_stanc())
        kept, left_out = kept_names(blocks)
        _refuse(path, blocks, kept)
        chosen = chosen_engine(engine)
        checked = checked_data(blocks["inputs"], given, where)
        model = _original_model(path, checked, blocks["parameters"], include_paths)
        numbers = len(blocks["parameters"])
        if chosen == "stanli":
            numbers = accepted_by_stanli(program, checked, where)
        elif tempered == "yes":
            accepted(program, checked, where)
        reason: str | None = "only plain NUTS was asked for"
        forms: WrittenForms | None = None
        if tempered != "no":
            try:
                forms, reason = _forms(path, checked, what, include_paths, edited), None
            except (DataError, RewriteError, ToolchainError) as error:
                if tempered == "yes":
                    raise
                reason = str(error)
    compiled: dict[str, CompiledProgram] = {}
    if forms is not None:
        try:
            if chosen == "cmdstan":
                compiled = _compiled(forms, clock, nuts_first=nuts_first)
            with clock.timed("temper"):
                model = forms.model()
        except (DataError, ToolchainError) as error:
            if tempered == "yes":
                said = str(error).removeprefix(f"{forms.target.name}: ")
                raise type(error)(said if said == str(error) else f"{where}: {said}") from error
            reason = str(error)
    later = {**blocks["transformed parameters"], **blocks["generated quantities"]}
    return UserProgram(
        path=path,
        model=model,
        why_not_tempered=reason,
        without_likelihood=forms is not None and forms.what != what,
        engine=chosen,
        names=kept,
        containers=frozenset(name for name in kept if later[name].dimensions),
        left_out=left_out,
        transforms=any(name in blocks["transformed parameters"] for name in kept),
        generates=bool(blocks["generated quantities"]),
        numbers=numbers,
        compiled=compiled,
    )


def _forms(
    path: Path,
    data: Mapping[str, Any],
    what: What,
    include_paths: tuple[Path, ...],
    edited: Path | None,
) -> WrittenForms:
    """Write the tempered forms; a program without a likelihood is tempered whole."""
    temper = partial(written_forms, path, data, include_paths=include_paths, edited=edited)
    try:
        return temper(what=what)
    except NoLikelihoodError:
        return temper(what="all")


def _compiled(forms: WrittenForms, clock: Clock, *, nuts_first: bool) -> dict[str, CompiledProgram]:
    """Compile the target's density if stanli does not read it, and beside it what NUTS runs."""
    if not is_compiled(forms.target, forms.data):
        return {}
    original = StanProgram(forms.folder / f"{ORIGINAL}.stan")
    with clock.step("compiling", "compile"):
        made = compile_together(
            require_cmdstan(),
            executables=[original] if nuts_first else [],
            libraries=[forms.target],
        )
    return {ORIGINAL: made[original]} if nuts_first else {}


def _original_model(
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
