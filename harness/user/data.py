"""Data of a user's program, from a file or a mapping, checked against its declarations."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from harness.engine.compile import Declared
from harness.engine.program import StanProgram
from harness.engine.stanli_package import stan_model
from harness.errors import DataError


def read_data(given: Path | str | Mapping[str, Any] | None) -> tuple[dict[str, Any], str]:
    """Return data by name, and how messages refer to them.

    Parameters
    ----------
    given
        A JSON file with one object, or the data; None for a program without data.

    Raises
    ------
    DataError
        If the file is missing or does not hold a JSON object.
    """
    if given is None:
        return {}, "the data"
    if isinstance(given, Mapping):
        return dict(given), "the data"
    path = Path(given)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"cannot read the data {path}: {error.strerror}") from error
    except ValueError as error:
        raise DataError(f"{path} is not JSON: {error}") from error
    if not isinstance(content, dict):
        raise DataError(f"{path} must hold one JSON object, with data by name: {{...}}")
    return content, str(path)


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


def accepted_by_stanli(program: StanProgram, data: Mapping[str, Any], where: str) -> None:
    """Let stanli check the sizes and bounds of the data, which needs no compiler.

    Parameters
    ----------
    program
        The program.
    data
        Its data, from :func:`checked_data`.
    where
        How messages refer to the data.

    Raises
    ------
    ToolchainError
        If stanli is not installed.
    DataError
        If it refuses the data, or the program.
    """
    try:
        stan_model(program, data)
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
