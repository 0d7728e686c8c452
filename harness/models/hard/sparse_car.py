"""Lip cancer in Scotland: data for ``stan/sparse_car``, a conditional autoregression, its truth.

    y_n ~ Poisson(E_n exp(intercept + slope x_n + phi_n)),  phi ~ N(0, [tau (D - alpha W)]^-1),
    alpha ~ U(0, 1),  tau ~ Gamma(2, rate 2),  slope, intercept ~ N(0, 1),

where W says which counties are neighbours, and D has the numbers of these.

References
----------
Clayton, D. and Kaldor, J. (1987). Empirical Bayes estimates of age-standardized relative risks for
use in disease mapping. Biometrics 43, 671-681.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from harness.folders import shipped
from harness.model import Model, TrueValue, Truth
from harness.model.truth import Expectations
from harness.models.hard.files import read_json


def sparse_car() -> Model:
    """Return the posterior of lip cancer in the 56 counties of Scotland.

    The density of phi is normalised; published programs leave out the determinant of D, so that
    their log Z is smaller by half its log, 37.879228.  The truth has the expectations of ``alpha``,
    ``tau``, ``slope`` and ``intercept``.
    """
    found = read_json("scotland_lip_cancer.json")
    data = {
        "N": found["n"],
        "y": found["y"],
        "E": found["E"],
        "x": found["x"],
        "num_edges": found["n_edges"],
        "edge": found["edges"],
    }
    source = "quadrature over alpha and tau, importance sampling of the rest at each node"
    return Model(
        "sparse_car",
        shipped("stan") / "sparse_car",
        data,
        ("alpha", "tau", "slope", "intercept", "phi"),
        len(found["y"]) + 4,
        own_base="prior",
        truth=Truth(source, partial(TrueValue, -168.114, 0.004), _expectations),
    )


def _expectations() -> Expectations:
    mean = {"alpha": 0.933, "tau": 1.644, "slope": 0.2715, "intercept": -0.009}
    return {name: TrueValue(np.array(x), np.array(0.005)) for name, x in mean.items()}
