"""The small problem: six observations whose scales have a posterior that quadrature gives."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import xarray as xr

from harness.arrays import FloatArray
from harness.model import Model, TrueValue, Truth
from harness.model.truth import Expectations
from harness.models.horseshoe import Classification, Form

from .exact import exact_expectation

# Six observations of one predictor, separated by it but for their number: the scales then have a
# posterior that quadrature gives, and the data that are counted twice move it.
SMALL = Classification(
    np.array([[1.5], [0.8], [2.0], [-1.1], [-0.4], [-1.7]]), np.array([1, 1, 1, 0, 0, 0])
)
SMALL_SCALES = {"scale_global": 0.1, "scale_icept": 1.0, "slab_scale": 2.0, "slab_df": 5.0}


def bounded_scale(parameters: xr.Dataset) -> xr.DataArray:
    """Return tau / (tau_0 + tau): 1/2 at the median of its prior; tau itself has no mean there."""
    tau = parameters["tau"]
    value: xr.DataArray = tau / (SMALL_SCALES["scale_global"] + tau)
    return value


@cache
def expected_in_shared_form(inv_temp: float | None) -> float:
    """Expectation of :func:`bounded_scale` that the shared form has in place of the true one."""
    return exact_expectation(_bounded, SMALL, shared_inv_temp=inv_temp, **SMALL_SCALES)


def small_model(form: Form) -> Model:
    """Return the posterior of the six observations; its truth has the expectation ``bounded``."""
    model = SMALL.model("six-observations", form=form, **SMALL_SCALES)
    truth = Truth("quadrature over the scales", find_expectations=_expectations)
    return replace(model, truth=truth)


@cache
def _expectations() -> Expectations:
    fine, coarse = (
        np.array(exact_expectation(_bounded, SMALL, step=step, **SMALL_SCALES))
        for step in (0.25, 0.5)
    )
    return {"bounded": TrueValue(fine, np.abs(fine - coarse))}


def _bounded(local: FloatArray, tau: FloatArray, c2: FloatArray) -> FloatArray:
    value: FloatArray = tau / (SMALL_SCALES["scale_global"] + tau)
    return value
