"""Data of a Stan program, in a form that every engine accepts.

A tuple of Stan's is a JSON object with the keys "1", "2" and so on, and an array of tuples is a
list of such objects; everything else is an array or a number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt


def plain_data(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return data as numbers, arrays and objects, which CmdStanPy's and stanli's writers accept.

    Lists and tuples of Python's become arrays, because CmdStanPy's writer would go through a list
    number by number, and would write a tuple as Stan's tuple type.
    """
    return {name: _plain(value) for name, value in data.items()}


def numbers_in(name: str, value: Any) -> Iterator[tuple[str, npt.NDArray[Any]]]:
    """Yield the arrays that a value of data consists of, as ``name``, ``name.1`` or ``name[1].1``.

    Parameters
    ----------
    name
        Name of the data.
    value
        Their value; only one that holds tuples consists of several arrays.
    """
    match value:
        case Mapping():
            for key, part in value.items():
                yield from numbers_in(f"{name}.{key}", part)
        case [*parts] if _holds_tuples(parts):
            for i, part in enumerate(parts, start=1):
                yield from numbers_in(f"{name}[{i}]", part)
        case _:
            yield name, np.asarray(value)


def _plain(value: Any) -> Any:
    match value:
        case Mapping():
            return plain_data(value)
        case [*parts] if _holds_tuples(parts):
            return [_plain(part) for part in parts]
    array = np.asarray(value)
    # Stan does not accept JSON's true and false as integers.
    return array.astype(np.int64) if array.dtype == np.bool_ else array


def _holds_tuples(parts: list[Any]) -> bool:
    """Whether a list is an array of tuples; its first entry tells, as all are of one type."""
    match parts:
        case [Mapping(), *_]:
            return True
        case [[*inner], *_]:
            return _holds_tuples(inner)
    return False
