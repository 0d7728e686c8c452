"""Files that a command is asked to write: checked before anything runs.

An output never replaces one of the command's inputs, and replaces another file only if it is one
that the command could have written itself, or if that is asked for.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.engine.compile import source_files
from harness.engine.program import StanProgram
from harness.errors import CompileError, StoreError
from harness.files import refuse_unwritable
from harness.fit import is_fit

_BEGINNING = 4096
_PAGE = re.compile(rb'<meta name="generator" content="harness">')
_COMPARED = re.compile(rb"\Avariable,value,model,log_evidence,")
_TEMPERED = re.compile(rb"written by\n//   harness temper ")


@dataclass(frozen=True)
class Output:
    """A file to write.

    Attributes
    ----------
    option
        Option of the command line that names it.
    path
        Where it is written.
    kind
        What it will be, in words.
    is_ours
        Tells whether a file is of this kind.
    """

    option: str
    path: Path
    kind: str
    is_ours: Callable[[Path], bool]


def fit_output(option: str, path: Path) -> Output:
    """Return a fit that is to be written."""
    return Output(option, path, "a fit that harness wrote", is_fit)


def page_output(option: str, path: Path) -> Output:
    """Return a page about a fit that is to be written."""
    return Output(option, path, "a page that harness wrote", lambda each: _begins(each, _PAGE))


def program_output(option: str, path: Path) -> Output:
    """Return a tempered program that is to be written."""
    return Output(
        option,
        path,
        "a tempered program that harness wrote",
        lambda each: _begins(each, _TEMPERED),
    )


def table_output(option: str, path: Path) -> Output:
    """Return a table of compared models that is to be written."""
    return Output(option, path, "a table that harness wrote", lambda each: _begins(each, _COMPARED))


def check_outputs(outputs: Sequence[Output], inputs: Iterable[Path], *, force: bool) -> None:
    """Refuse outputs that cannot be written, or that would replace something of value.

    Parameters
    ----------
    outputs
        What is to be written.
    inputs
        Files that the command reads.
    force
        Whether outputs may replace files that are not ours; inputs are never replaced.

    Raises
    ------
    StoreError
        For the first output that is refused, with the reason.
    """
    read = list(inputs)
    for number, output in enumerate(outputs):
        path = output.path
        for other in read:
            if _same(path, other):
                raise StoreError(
                    f"{output.option} {path} would replace the input {other}: choose another name"
                )
        for earlier in outputs[:number]:
            if _same(path, earlier.path):
                raise StoreError(
                    f"{earlier.option} and {output.option} name the same file, {path}: choose two"
                )
        refuse_unwritable(path)
        if path.exists() and path.stat().st_size and not force and not output.is_ours(path):
            raise StoreError(
                f"{output.option} {path} exists and is not {output.kind}: choose another name, or "
                "replace it with --force"
            )


def program_inputs(path: Path, include_paths: Iterable[Path]) -> list[Path]:
    """Return a program's file and the files that it includes, as far as they can be found."""
    try:
        return source_files(StanProgram(path, (*include_paths, path.parent)))
    except CompileError:  # reported when the program is read
        return [path]


def _same(one: Path, other: Path) -> bool:
    """Whether two paths name one file, also through links; the file need not exist."""
    try:
        if one.samefile(other):
            return True
    except OSError:
        pass
    return Path(os.path.realpath(one)) == Path(os.path.realpath(other))


def _begins(path: Path, sign: re.Pattern[bytes]) -> bool:
    try:
        with path.open("rb") as file:
            return sign.search(file.read(_BEGINNING)) is not None
    except OSError:
        return False
