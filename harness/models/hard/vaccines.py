"""Efficacy of vaccines in four trials: data for ``stan/vaccines`` and their truth.

    e_t ~ N(eff_m, log(1 + exp(eff_d))),  i_t ~ N(inc_m, log(1 + exp(inc_d)))  (variances),
    cases ~ Binomial(n, p),  p = logit^-1(i_t) logit^-1(-e_t) with the vaccine,
    eff_m, eff_d, inc_m, inc_d ~ N(0, 1000).

The published program gives the control arm the probability of a vaccine with e = 0, which is half
the incidence.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import xarray as xr

from harness.folders import shipped
from harness.model import Model, ModeTest, TrueValue, Truth
from harness.model.truth import Expectations
from harness.models.hard.events import side_by_side
from harness.models.hard.files import read_table

SOUTH_AFRICA = 3
"""Index of the trial in which the vaccine hardly works."""


def vaccines(*, half_in_control: bool = True) -> Model:
    """Return the posterior of four trials of vaccines against COVID-19.

    Its truth has the expectations of ``eff_m`` and ``inc_m``.

    Parameters
    ----------
    half_in_control
        Whether the control arm's probability is half the incidence, as in the published program.
        With the incidence itself log Z alone is known.
    """
    table = read_table("vaccines.csv")
    number = {
        (column, arm): [
            int(value)
            for value, of_arm in zip(table[column], table["arm"], strict=True)
            if of_arm == arm
        ]
        for column in ("n", "cases")
        for arm in ("vaccinated", "control")
    }
    data = {
        "T": len(number["n", "control"]),
        "n_vaccinated": number["n", "vaccinated"],
        "cases_vaccinated": number["cases", "vaccinated"],
        "n_control": number["n", "control"],
        "cases_control": number["cases", "control"],
        "half_in_control": int(half_in_control),
    }
    if half_in_control:
        test = ModeTest(
            ("e[4] < -3", "e[4] < -10"),
            _tail,
            TrueValue(np.array([0.0697, 0.0065]), np.full(2, 5e-5)),
        )
        truth = Truth("quadrature", partial(TrueValue, -50.7491, 2e-4), _expectations, test)
    else:
        truth = Truth("quadrature", partial(TrueValue, -50.175, 5e-4))
    return Model(
        "vaccines" if half_in_control else "vaccines_full_control",
        shipped("stan") / "vaccines",
        data,
        ("eff_m", "eff_d", "inc_m", "inc_d", "e", "i"),
        12,
        own_base="prior",
        truth=truth,
    )


def _expectations() -> Expectations:
    mean = {"eff_m": 2.077, "inc_m": -3.490}
    return {name: TrueValue(np.array(x), np.array(5e-4)) for name, x in mean.items()}


def _tail(draws: xr.Dataset) -> xr.DataArray:
    effect = draws["e"]
    axis = next(dim for dim in effect.dims if dim not in ("chain", "draw"))
    worst = effect.isel({axis: SOUTH_AFRICA})
    return side_by_side(worst < -3, worst < -10)
