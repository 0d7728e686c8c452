"""Data of a user's program, from a file or a mapping, checked against its declarations."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from harness.engine.program import StanProgram
from harness.engine.stan_data import numbers_in
from harness.engine.stan_source import is_compiled
from harness.engine.stanc import Declared
from harness.engine.stanli_package import (
    is_unsupported,
    stan_model,
    stanli_source,
    what_is_unsupported,
)
from harness.engine.why_ended import ends_a_run
from harness.errors import DataError, NotEnoughMemory

NOTHING_TO_SAMPLE = "with these data no parameter has a value, so there is nothing to sample"


def read_data(given: Path | str | Mapping[str, Any] | None) -> tuple[dict[str, Any], str]:
    """Return data by name, and how messages refer to them.

    Parameters
    ----------
    given
        A JSON file with one object, or the data; None for a program without data.

    Raises
    ------
    DataError
        If the file is missing, does not hold a JSON object, or gives a name twice.
    """
    if given is None:
        return {}, "the data"
    if isinstance(given, Mapping):
        return dict(given), "the data"
    path = Path(given)
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"), object_pairs_hook=_once)
    except RecursionError:
        raise DataError(f"{path} is nested too deeply for data of a Stan program") from None
    except _TwiceError as error:
        raise DataError(f"{path} gives {error} twice: leave one of them out") from None
    except OSError as error:
        raise DataError(f"cannot read the data {path}: {error.strerror}") from error
    except ValueError as error:
        raise DataError(f"{path} is not JSON: {error}") from error
    if not isinstance(content, dict):
        raise DataError(f"{path} must hold one JSON object, with data by name: {{...}}")
    return content, str(path)


class _TwiceError(Exception):
    """A name that a JSON object has twice."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        names = [name for name, _ in pairs]
        raise _TwiceError(next(name for name in names if names.count(name) > 1))
    return content


def checked_data(
    inputs: Mapping[str, Declared], given: Mapping[str, Any], where: str
) -> dict[str, Any]:
    """Return the data that a program declares, as arrays and numbers.

    Whole numbers that are written with a decimal point in JSON become integers if the program
    declares integers.  Names that the program does not declare are left out.

    Parameters
    ----------
    inputs
        What the program declares as data.
    given, where
        What :func:`read_data` returned.

    Raises
    ------
    DataError
        If data are missing, or have another type or shape than declared.
    """
    return {name: _checked(name, declared, given, where) for name, declared in inputs.items()}


def unsupported(what: str, said: str) -> str:
    """Say that stanli does not support a program or a form of it, and what to do.

    Parameters
    ----------
    what
        Which, in words.
    said
        What stanli says, for which :func:`~harness.engine.stanli_package.is_unsupported` holds.
    """
    return (
        f"stanli does not support {what}; use --engine cmdstan. It says: "
        f"{what_is_unsupported(said)}"
    )


def accepted_by_stanli(program: StanProgram, data: Mapping[str, Any], where: str) -> int:
    """Let stanli, as the engine that runs NUTS, read the program and check its data.

    Parameters
    ----------
    program
        The program.
    data
        Its data, from :func:`checked_data`.
    where
        How messages refer to the data.

    Returns
    -------
    int
        How many numbers the program writes for each draw.

    Raises
    ------
    ToolchainError
        If stanli is not installed.
    DataError
        If it refuses the data, does not support something that the program uses, or has nothing to
        sample.
    """
    try:
        sampled = stan_model(program, data).n_unconstrained  # the model itself may be large
        instance = stanli_source(program, data).instance()
    except NotEnoughMemory as error:
        said = str(error).replace(program.name, str(program.path), 1)
        raise DataError(f"{said}; with --engine cmdstan it may need less") from error
    except DataError as error:
        said = str(error).removeprefix(f"{program.name}: ")
        if is_unsupported(said) and ends_a_run(said):
            raise DataError(
                f"{program.path}: with these data an index or a size is wrong: "
                f"{what_is_unsupported(said)} (if it is right, use --engine cmdstan)"
            ) from error
        if is_unsupported(said):
            raise DataError(f"{program.path}: {unsupported('this program', said)}") from error
        raise DataError(f"{where}: {said}") from error
    if not sampled:
        raise DataError(f"{program.path}: {NOTHING_TO_SAMPLE}")
    if instance.renamed:
        raise DataError(
            f"{program.path}: stanli cannot start from values of the parameter "
            f"{instance.renamed[0]}, whose name is a word of C++: call it something else, or use "
            "--engine cmdstan"
        )
    written = instance.variables(transformed=True, generated=True).values()
    return int(max(each.columns.stop for each in written))


def accepted(program: StanProgram, data: Mapping[str, Any], where: str) -> None:
    """Let stanli check the sizes and bounds of the data, where it reads the program.

    Where it does not, what is compiled for the density checks them.  Parameters are those of
    :func:`accepted_by_stanli`.

    Raises
    ------
    ToolchainError
        If there is neither stanli nor a compiler.
    DataError
        If the data are refused.
    """
    try:
        is_compiled(program, data)
    except DataError as error:
        said = str(error).removeprefix(f"{program.name}: ")
        raise DataError(f"{where}: {said}") from error


def _checked(name: str, declared: Declared, given: Mapping[str, Any], where: str) -> Any:
    if name not in given:
        has = ", ".join(map(str, given)) or "nothing"
        raise DataError(
            f"{where} has no {name}, which the program declares as {declared}; it has {has}"
        )
    value = given[name]
    if declared.type == "tuple":
        made = _objects(value)
        for part, numbers in numbers_in(name, made):
            if numbers.dtype.kind not in "biuf":
                raise DataError(f"{part} in {where} is not a number or an array of numbers")
            if np.any(np.isnan(numbers.astype(np.float64))):
                raise DataError(f"{part} in {where} holds NaN: correct it or leave it out")
        return made
    if declared.type not in ("int", "real"):
        return value
    try:
        array = np.asarray(value)
        numeric = array.dtype.kind in "biuf"
    except ValueError:
        raise DataError(
            f"{name} in {where} is ragged; the program declares it as {declared}"
        ) from None
    if not numeric:
        raise DataError(
            f"{name} in {where} holds something that is not a number; the program declares it as "
            f"{declared}"
        )
    if array.ndim != declared.dimensions and array.size:
        raise DataError(
            f"{name} in {where} has shape {array.shape}; the program declares it as {declared}"
        )
    if np.any(np.isnan(array.astype(np.float64))):
        raise DataError(f"{name} in {where} holds NaN: correct it or leave it out")
    if declared.type == "int":
        if np.any(array != np.floor(array)):
            raise DataError(
                f"{name} in {where} holds a number that is not an integer; the program declares it "
                f"as {declared}"
            )
        array = array.astype(np.int64)
    return array if array.ndim else array.item()


def _objects(value: Any) -> Any:
    """Turn tuples of Python's into what JSON has for tuples of Stan's: objects, counted from 1."""
    match value:
        case tuple():
            return {str(i): _objects(part) for i, part in enumerate(value, start=1)}
        case list():
            return [_objects(part) for part in value]
    return value
