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
"""Option that makes pandas read every double exactly, as it always does from 3.1 on."""

_COMMENT = b"#"


def read_chain(path: Path, warmup_column: str) -> tuple[FloatArray, FloatArray]:
    """Read one chain's CSV file, and a single column of its warm-up.

    For wide programs, most of the time outside CmdStan is spent here (see
    ``tests/bench/reading.py``).  pandas is the fastest exact reader among our dependencies.  There
    are about as many warm-up draws as others, so we do not parse all of their columns.

    Parameters
    ----------
    path
        File that CmdStan's sampler wrote.
    warmup_column
        Name of the column to read from the warm-up draws, if they were saved.

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
