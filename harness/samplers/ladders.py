"""Ladders of inverse temperatures."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from harness.errors import DataError
from harness.weights import FloatArray


def checked_ladder(ladder: npt.ArrayLike) -> FloatArray:
    """Return a ladder as an array.

    Raises
    ------
    DataError
        If it does not ascend from 0 to 1.
    """
    rung = np.array(ladder, dtype=np.float64)
    if rung.ndim != 1 or rung.size < 2 or rung[0] != 0 or rung[-1] != 1:
        raise DataError(f"a ladder ascends from 0 to 1; got {rung.tolist()}")
    if not np.all(np.diff(rung) > 0):
        raise DataError(f"a ladder ascends from 0 to 1; got {rung.tolist()}")
    return rung
