"""Read the draws of a CmdStan run, every double as CmdStan wrote it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from harness.arrays import FloatArray

EXACT: dict[str, Any] = (
    {}
    if tuple(map(int, pd.__version__.split(".")[:2])) >= (3, 1)
    else {"float_precision": "round_trip"}
)
"""Option of pandas that reads every double exactly; from 3.1 on it always does."""

_COMMENT = b"#"


def read_chain(path: Path, warmup_column: str) -> tuple[FloatArray, FloatArray]:
    """Read one chain's CSV file, with one column only of its warm-up.

    Most of the time that a wide program takes outside CmdStan goes into this (see
    ``tests/bench/reading.py``): pandas is the fastest exact reader among our dependencies, and
    warm-up draws are as many as those that count.

    Parameters
    ----------
    path
        File that CmdStan's sampler wrote.
    warmup_column
        Name of the column to read of the warm-up draws, if they were saved.

    Returns
    -------
    tuple
        Draws, shape (draws, columns), and the column of the warm-up draws, shape (warm-up draws,).
    """
    warmup = []
    with path.open("rb") as file:
        header = next(line for line in file if not line.startswith(_COMMENT))
        index = header.rstrip().split(b",").index(warmup_column.encode())
        for line in file:
            if line.startswith(_COMMENT):  # where adaptation ends
                break
            warmup.append(float(line.split(b",", index + 1)[index]))
        draws = pd.read_csv(
            file,
            header=None,
            comment=_COMMENT.decode(),
            dtype=np.float64,
            low_memory=False,
            **EXACT,
        )
    return draws.to_numpy(), np.array(warmup)
