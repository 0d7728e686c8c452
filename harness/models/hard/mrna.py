"""Expression of a gene after mRNA is released in a cell: data for ``stan/mrna`` and its truth.

    y_i ~ N(f(t_i - t0), sigma^2),  f(u) = km0 (exp(-beta u) - exp(-delta u)) / (delta - beta).

The log10 of t0, km0, beta, delta and sigma are uniform on boxes.  The curve is the same if beta and
delta trade places, so there are two modes with probability 1/2 each.

References
----------
Ballnus, B. et al. (2017). Comprehensive benchmarking of Markov chain Monte Carlo
methods for dynamical systems. BMC Systems Biology 11, 63.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import xarray as xr

from harness.folders import shipped
from harness.model import Model, ModeTest, TrueValue, Truth
from harness.model.truth import Expectations
from harness.models.hard.events import side_by_side
from harness.models.hard.files import read_numbers

PARAMETERS = ("log10_t0", "log10_km0", "log10_beta", "log10_delta", "log10_sigma")
"""Parameters in the order of their declaration."""

LOWER, UPPER = np.array([-2.0, -5, -5, -5, -2]), np.array([1.0, 5, 5, 5, 2])
"""Box of the prior, in the order of the parameters."""


def mrna() -> Model:
    """Return the posterior of 52 simulated measurements, which do not stop before t0.

    Each of its two modes is very narrow against the prior.
    """
    test = ModeTest(
        ("beta > delta", "beta < delta"),
        _order,
        TrueValue(np.full(2, 0.5), np.zeros(2)),
        exclusive=True,
    )
    source = "importance sampling of one mode, doubled; probabilities by symmetry"
    truth = Truth(source, _log_evidence, _expectations, test)
    return _model("mrna", "mrna.csv", False, truth)


def mrna_m1a() -> Model:
    """Return the posterior of the 150 measurements of data set M1a, with no response before t0.

    The smaller rate is hardly bounded from below: its tail runs to the edge of the prior.
    """
    test = ModeTest(
        ("beta > delta", "log10 of the smaller rate < -3"),
        _order_and_tail,
        TrueValue(np.array([0.5, 0.172]), np.array([0.0, 0.001])),
    )
    source = "importance sampling of one mode, doubled; P(beta > delta) by symmetry"
    truth = Truth(source, partial(TrueValue, -370.677, 0.006), None, test)
    return _model("mrna-m1a", "mrna_m1a.csv", True, truth)


def _model(name: str, file: str, zero_before: bool, truth: Truth) -> Model:
    t, y = read_numbers(file, "t"), read_numbers(file, "y")
    data = {"N": len(t), "t": t, "y": y, "zero_before": int(zero_before)}
    return Model(name, shipped("stan") / "mrna", data, PARAMETERS, 5, own_base="prior", truth=truth)


def _log_evidence() -> TrueValue[float]:
    return TrueValue(19.2734, 0.0004)


def _expectations() -> Expectations:
    # The rates' order being open, each has the mean of both.
    mean = {
        "log10_t0": (0.3009328, 1.2e-6),
        "log10_km0": (0.7032101, 2.6e-6),
        "log10_beta": (-0.3948420, 4.2e-6),
        "log10_delta": (-0.3948420, 4.2e-6),
        "log10_sigma": (-1.027422, 4.8e-5),
    }
    return {name: TrueValue(np.array(x), np.array(error)) for name, (x, error) in mean.items()}


def _order(draws: xr.Dataset) -> xr.DataArray:
    faster = draws["log10_beta"] > draws["log10_delta"]
    return side_by_side(faster, ~faster)


def _order_and_tail(draws: xr.Dataset) -> xr.DataArray:
    beta, delta = draws["log10_beta"], draws["log10_delta"]
    return side_by_side(beta > delta, (beta < -3) | (delta < -3))
