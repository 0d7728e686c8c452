"""A tempered program that somebody has edited and gives back, in place of the one that we write."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.engine.program import StanProgram
from harness.engine.stanc import Declared, declarations
from harness.engine.toolchain import require_stanc
from harness.errors import DataError
from harness.temper.program import TemperedProgram
from harness.temper.templates import Variant

UNEDITED = "unedited"
"""Variant of a tempered model that is the program as we write it, where an edited one is run."""

_HEADER = re.compile(
    r"--method (?P<method>\w+) --temper (?P<what>\w+)\n// .*SHA-256\n// (?P<digest>\w+)\n"
)
_CALL = "harness temper"


@dataclass(frozen=True)
class EditedProgram:
    """A tempered program as somebody has edited it.

    Attributes
    ----------
    path
        Its file.
    form
        The form that it has, as its header says.
    text
        Its text.
    """

    path: Path
    form: Variant
    text: str


def read_edited(path: Path, programs: Mapping[Variant, TemperedProgram]) -> EditedProgram:
    """Read an edited program; it belongs to the original that other programs were written from.

    Parameters
    ----------
    path
        The edited program.  Its first lines still say what it was written from and how.
    programs
        What we write now, by form.

    Raises
    ------
    DataError
        If the file cannot be read, its header is missing, or it was written from another program or
        with another ``--temper``.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read as a tempered program: {error}") from error
    found = _HEADER.search(text)
    forms = {str(each): each for each in programs}
    if found is None or found["method"] not in forms:
        raise DataError(
            f"{path} does not say which form it has: keep the first lines that {_CALL} wrote"
        )
    form = forms[found["method"]]
    ours = programs[form]
    if found["digest"] != ours.digest:
        raise DataError(
            f"{path} was written from another version of {ours.source}: write it again with "
            f"{_CALL} {ours.source} --method {form}, and repeat your changes there"
        )
    if found["what"] != ours.what:
        raise DataError(f"{path} was written with --temper {found['what']}: give that option here")
    return EditedProgram(path, form, text)


def refuse_other_variables(edited: EditedProgram, ours: StanProgram) -> None:
    """Refuse an edited program that cannot be run in place of ours.

    Its data and parameters must be the same, and it must write what ours writes.

    Raises
    ------
    CompileError
        If it is not valid Stan.
    DataError
        If a variable differs or is missing; the message names it.
    """
    stanc = require_stanc()
    theirs = declarations(StanProgram(edited.path, (edited.path.parent,)), stanc)
    wanted = declarations(ours, stanc)
    for block, word in (("inputs", "data"), ("parameters", "parameters")):
        _refuse_difference(edited, word, theirs[block], wanted[block])
    written = {**theirs["transformed parameters"], **theirs["generated quantities"]}
    missing = [name for name in wanted["generated quantities"] if name not in written]
    if missing:
        raise DataError(
            f"{edited.path} no longer generates {missing[0]}, which weights and log Z are computed "
            "from: put it back"
        )


def _refuse_difference(
    edited: EditedProgram,
    block: str,
    theirs: Mapping[str, Declared],
    wanted: Mapping[str, Declared],
) -> None:
    for name in [*wanted, *theirs]:
        if theirs.get(name) != wanted.get(name):
            said = "lacks" if name not in theirs else "adds" if name not in wanted else "changes"
            raise DataError(
                f"{edited.path} {said} {name} among its {block}: they must stay as {_CALL} wrote "
                "them; to change them, edit the original program"
            )
