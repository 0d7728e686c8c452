"""Data of a Stan program as every engine takes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np


def plain_data(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return data as numbers and arrays, that CmdStanPy's JSON writer and stanli's both take.

    Lists and tuples become arrays: CmdStanPy's writer goes through a list number by number, and
    takes a tuple for Stan's type of that name.
    """
    return {name: _plain(value) for name, value in data.items()}


def _plain(value: Any) -> Any:
    array = np.asarray(value)
    # JSON's true and false are no integers to Stan.
    return array.astype(np.int64) if array.dtype == np.bool_ else array
