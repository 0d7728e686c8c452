"""Data of a Stan program, in a form that every engine accepts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np


def plain_data(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return data as numbers and arrays, which both CmdStanPy's JSON writer and stanli's accept.

    Lists and tuples become arrays, because CmdStanPy's writer would go through a list number by
    number, and would write a tuple as Stan's tuple type.
    """
    return {name: _plain(value) for name, value in data.items()}


def _plain(value: Any) -> Any:
    array = np.asarray(value)
    # Stan does not accept JSON's true and false as integers.
    return array.astype(np.int64) if array.dtype == np.bool_ else array
