"""Conditional means in place of values: what is known about one coordinate given the others."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.evidence import normalised_weights
from harness.proposals.chains import Density, Function


def conditional_mean(
    density: Density,
    points: FloatArray,
    axis: int,
    nodes: npt.ArrayLike,
    function: Function,
    *,
    log_node_weight: npt.ArrayLike | None = None,
) -> FloatArray:
    """Return E[f(x) | all coordinates but one] at the points of chains.

    The mean over draws of the target is that of f (Murray 2007, eq. 2.10).  Over independent draws
    its variance is never larger (eq. 2.12), over a Markov chain's it can be.  It costs an
    evaluation of the density for each node and point.

    Parameters
    ----------
    density
        Log density of the target, up to a constant.
    points
        Shape (n, D).
    axis
        Which coordinate is summed or integrated over.
    nodes
        All of its values, or the nodes of a quadrature rule, shape (m,).
    function
        f, from points (n, D) to (n,).
    log_node_weight
        Log weights of the quadrature rule, shape (m,); 0 if not given, which is right for a sum.

    Returns
    -------
    FloatArray
        Shape (n,).

    Raises
    ------
    DataError
        If there is no such coordinate or no node.
    """
    place = np.asarray(nodes, dtype=np.float64)
    if place.ndim != 1 or not place.size:
        raise DataError(f"a conditional mean needs nodes of shape (m,); got {place.shape}")
    if not 0 <= axis < points.shape[1]:
        raise DataError(f"points of {points.shape[1]} coordinates have none numbered {axis}")
    everywhere = np.repeat(points, place.size, axis=0)
    everywhere[:, axis] = np.tile(place, len(points))
    shape = len(points), place.size
    log_weight = density(everywhere).reshape(shape)
    if log_node_weight is not None:
        log_weight = log_weight + np.asarray(log_node_weight, dtype=np.float64)
    value: FloatArray = (normalised_weights(log_weight) * function(everywhere).reshape(shape)).sum(
        1
    )
    return value
