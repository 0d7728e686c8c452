"""The two regressions of radiata pine, with their evidence by conjugacy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from doc_blocks import DOCS, save_stan
from scipy.special import gammaln

from harness.folders import shipped

_DATA = shipped("data") / "radiata_pine" / "radiata_pine.csv"


_EXPLAINED_BY = {"density": "x", "adjusted": "z"}


def pine_data() -> dict[str, Any]:
    """Return the data that both programs take."""
    table = pd.read_csv(_DATA)
    return {
        "N": len(table),
        "slope_precision": 6.0,
        **{name: table[name].tolist() for name in "yxz"},
    }


def pine_programs(folder: Path) -> dict[str, Path]:
    """Write the programs of the documentation; return them by their names."""
    saved = save_stan(DOCS / "evidence.md", folder)
    return {path.stem: path for path in saved if path.stem in _EXPLAINED_BY}


def pine_log_evidence(name: str, slope_precision: float = 6.0) -> float:
    """Normal prior given a gamma precision (Bernardo and Smith 1994, section 5.4)."""
    data = pine_data()
    y, x = np.array(data["y"], dtype=float), np.array(data[_EXPLAINED_BY[name]], dtype=float)
    n, a, b = len(y), 3.0, 180_000.0
    X = np.column_stack([np.ones(n), x - x.mean()])
    prior, mean = np.diag([0.06, slope_precision]), np.array([3000.0, 185.0])
    precision = X.T @ X + prior
    after = np.linalg.solve(precision, X.T @ y + prior @ mean)
    rest = float(y @ y + mean @ prior @ mean - after @ precision @ after)
    determinants = np.linalg.slogdet(prior)[1] - np.linalg.slogdet(precision)[1]
    return float(
        -0.5 * n * np.log(np.pi)
        + a * np.log(2 * b)
        + gammaln(n / 2 + a)
        - gammaln(a)
        + 0.5 * determinants
        - (n / 2 + a) * np.log(rest + 2 * b)
    )
