"""Six risk factors of heart disease as a Boltzmann machine: data for ``stan/heart_disease``.

Each of 1841 men has six binary properties s_i, and

    p(s) = exp(sum_i b_i s_i + sum_(i<j) W_ij s_i s_j) / Z(b, W),

with all 21 parameters unknown and independent normal priors.  Z is a sum over 64 states: the
posterior is that of :mod:`harness.intractable` with the constant known.

References
----------
Edwards, D. and Havranek, T. (1985). A fast procedure for model search in multidimensional
contingency tables. Biometrika 72(2), 339-351: the data.

Murray, I. (2007). Advances in Markov chain Monte Carlo methods. PhD thesis, University College
London: section 5.2.4.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations

import numpy as np
import pandas as pd

from harness.arrays import FloatArray
from harness.folders import shipped
from harness.model import Model

FACTORS = ("smoke", "mental", "phys", "systol", "protein", "family")
"""Smoking, strenuous mental and physical work, systolic blood pressure, ratio of beta and alpha
lipoproteins, family history of heart disease."""
PAIRS = tuple(combinations(range(len(FACTORS)), 2))
NAMES = (*FACTORS, *(f"{FACTORS[i]}:{FACTORS[j]}" for i, j in PAIRS))
"""Names of the parameters: biases, then weights."""
PRIOR_SD = 10.0
"""The thesis does not say which prior it used.  That its mean-field chains went ever farther away
means that it was a wide one."""


@cache
def load_heart_disease() -> tuple[FloatArray, FloatArray]:
    """Return products s_i and s_i s_j of the 64 states, (64, 21), and the men in each, (64,)."""
    table = pd.read_csv(shipped("data") / "heart_disease" / "counts.csv")
    states = table[list(FACTORS)].to_numpy(dtype=np.float64)
    pairs = np.stack([states[:, i] * states[:, j] for i, j in PAIRS], axis=1)
    return np.hstack([states, pairs]), table["count"].to_numpy(dtype=np.float64)


def heart_disease(prior_sd: float = PRIOR_SD) -> Model:
    """Return the exact posterior, with all priors N(0, prior_sd^2)."""
    features, counts = load_heart_disease()
    data = {
        "M": len(counts), "D": features.shape[1], "features": features, "counts": counts,
        "prior_sd": prior_sd,
    }  # fmt: skip
    folder = shipped("stan") / "heart_disease"
    return Model(
        "heart-disease", folder, data, ("w",), features.shape[1], own_base="prior",
        labels={"w": NAMES},
    )  # fmt: skip
