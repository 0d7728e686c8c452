"""Failures of space launches: data for ``stan/rockets`` and their truth.

failures_i ~ BetaBinomial(launches_i, log(1 + exp(p_1)), log(1 + exp(p_2))),  p ~ N(0, 10^2 I).
"""

from __future__ import annotations

from functools import partial

import numpy as np

from harness.folders import shipped
from harness.model import Model, TrueValue, Truth
from harness.model.truth import Expectations
from harness.models.hard.files import read_numbers


def rockets() -> Model:
    """Return the posterior of 5,667 launches of 367 types of launch vehicles.

    Its truth has the expectation of ``p``, shape (2,).
    """
    launches = read_numbers("rockets.csv", "launches").astype(int)
    data = {
        "N": len(launches),
        "launches": launches,
        "failures": read_numbers("rockets.csv", "failures").astype(int),
    }
    truth = Truth("quadrature", partial(TrueValue, -475.5135694, 1e-6), _expectations)
    return Model(
        "rockets", shipped("stan") / "rockets", data, ("p",), 2, own_base="prior", truth=truth
    )


def _expectations() -> Expectations:
    return {"p": TrueValue(np.array([0.0239009, 4.8825526]), np.full(2, 1e-6))}
