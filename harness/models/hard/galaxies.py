"""Velocities of galaxies as a mixture of three normals: data for ``stan/galaxies``, its truth.

    y_i ~ sum_k q_k N(mu_k, s_k),  q ~ Dirichlet(1, 1, 1),  mu_k ~ N(20, 10^2),  s_k ~ IG(3, 20).

The components have no order, so the posterior has six modes of equal mass.

References
----------
Chib, S. (1995). Marginal likelihood from the Gibbs output. Journal of the American Statistical
Association 90, 1313-1321.

Neal, R. M. (1999). Erroneous results in "Marginal likelihood from the Gibbs output". University of
Toronto.
"""

from __future__ import annotations

from functools import partial
from itertools import permutations

import numpy as np
import xarray as xr

from harness.folders import shipped
from harness.model import Model, ModeTest, TrueValue, Truth
from harness.models.hard.events import one_of
from harness.models.hard.files import read_numbers

COMPONENTS = 3
ORDERS = tuple(permutations(range(COMPONENTS)))
"""Each lists the components by ascending mean; a mode of the posterior each."""


def galaxies() -> Model:
    """Return the posterior of 82 velocities with three components."""
    y = read_numbers("galaxies.csv", "velocity")
    names = tuple(" < ".join(f"mu[{k + 1}]" for k in order) for order in ORDERS)
    sixth = TrueValue(np.full(len(ORDERS), 1 / len(ORDERS)), np.zeros(len(ORDERS)))
    truth = Truth(
        "importance sampling and bridges, which agree with 10^8 draws of the prior; orders have "
        "equal probabilities by symmetry",
        partial(TrueValue, -226.80, 0.01),
        mode_test=ModeTest(names, _order, sixth, exclusive=True),
    )
    data = {"N": len(y), "K": COMPONENTS, "y": y}
    folder = shipped("stan") / "galaxies"
    return Model("galaxies", folder, data, ("q", "mu", "s"), 8, own_base="prior", truth=truth)


def _order(draws: xr.Dataset) -> xr.DataArray:
    mean = draws["mu"]
    axis = next(dim for dim in mean.dims if dim not in ("chain", "draw"))
    order = np.argsort(mean.transpose("chain", "draw", axis).to_numpy(), axis=-1)
    number = sum((order == each).all(axis=-1) * index for index, each in enumerate(ORDERS))
    return one_of(xr.DataArray(number, dims=("chain", "draw")), len(ORDERS))
