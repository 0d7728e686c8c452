"""Exact expectations of a horseshoe regression with one predictor, by quadrature.

With d = 1 the likelihood depends on the scales s = (lambda, tau, c^2) only through the
coefficient's prior standard deviation w.  So C_b(s), the integral of p(beta0, z) L(beta0, w z)^b,
is a function of one variable.  The scales are then integrated out over a grid.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.models.horseshoe import Classification, coefficients

_LOG_WIDTH = np.arange(-9.0, 8.0, 0.1)
"""Grid of log w.  Below it the likelihood is nearly constant in w; above it is no prior mass."""

ScalesFunction = Callable[[FloatArray, FloatArray, FloatArray], FloatArray]


def tempered_evidence(
    data: Classification, power: FloatArray, log_width: FloatArray, scale_icept: float
) -> FloatArray:
    """Integrate p(beta0, z) L(beta0, w z)^b over beta0 ~ N(0, s^2) and z ~ N(0, 1).

    This uses Gauss-Hermite quadrature in beta0, which only shifts the logits, and the trapezoidal
    rule in z, in which the likelihood is steep if w is large.

    Parameters
    ----------
    data
        Observations of one predictor.
    power
        Powers b, shape (B,).
    log_width
        Values of log w, shape (K,).
    scale_icept
        Standard deviation s of the intercept.

    Returns
    -------
    FloatArray
        Shape (B, K).
    """
    node, share = np.polynomial.hermite_e.hermegauss(24)
    z = np.linspace(-7.5, 7.5, 301)
    mass = np.exp(-np.square(z) / 2)
    weight = np.outer(share / share.sum(), mass / mass.sum())
    sign = 1 - 2 * data.y
    result = np.empty((len(power), len(log_width)))
    for k, width in enumerate(np.exp(log_width)):
        log_likelihood = np.zeros_like(weight)
        for x, s in zip(data.x[:, 0], sign, strict=True):
            eta = scale_icept * node[:, None] + width * x * z
            log_likelihood -= np.logaddexp(0, s * eta)
        for i, b in enumerate(power):
            result[i, k] = np.sum(weight * np.exp(b * log_likelihood))
    return result


def exact_expectation(
    f: ScalesFunction,
    data: Classification,
    *,
    scale_global: float,
    scale_icept: float,
    slab_scale: float,
    slab_df: float,
    shared_inv_temp: float | str | None = "none",
    step: float = 0.25,
) -> float:
    """Return an expectation of the scales under the posterior, or under the shared form.

    Parameters
    ----------
    f
        Function of lambda, tau and c^2, which are arrays.
    data
        Observations of one predictor.
    scale_global, scale_icept, slab_scale, slab_df
        The same as for :meth:`harness.models.horseshoe.Classification.model`.
    shared_inv_temp
        ``"none"``: the posterior, p(s) C_1(s) up to a constant.  Other values select the density
        that two pseudo-samples have if they share their scales, p(s) C_1(s) C_b(s): a number fixes
        the inverse temperature to b, and None averages C_b(s) over a uniformly sampled b.  See
        ``stan/horseshoe/pseudo_extended_shared.stan``.
    step
        Step of the trapezoidal rule in the logarithms of the scales.

    Raises
    ------
    DataError
        If the data have more than one predictor.
    """
    if data.x.shape[1] != 1:
        raise DataError(f"quadrature needs a single predictor; got {data.x.shape[1]}")
    # The logarithm of a half-Cauchy variable has a density like sech, and that of an inverse gamma
    # variable falls exponentially on one side, so the trapezoidal rule is exact to many digits.
    log_local = np.arange(-30, 30, step)[:, None, None]
    log_ratio = np.arange(-30, 30, step)[None, :, None]
    log_c2 = np.arange(-4, 24, step)[None, None, :] + 2 * math.log(slab_scale)
    shape, rate = slab_df / 2, slab_df * slab_scale**2 / 2
    log_prior = -np.logaddexp(log_local, -log_local) - np.logaddexp(log_ratio, -log_ratio)
    log_prior = log_prior - shape * log_c2 - rate * np.exp(-log_c2)
    local, c2 = np.exp(log_local), np.exp(log_c2)
    tau = scale_global * np.exp(log_ratio)
    width = coefficients(np.ones(1), local[..., None], tau, c2)[..., 0]

    power, share = np.ones(1), np.ones(1)
    if shared_inv_temp is None:
        node, weight = np.polynomial.legendre.leggauss(12)
        power, share = np.append(1.0, (node + 1) / 2), np.append(1.0, weight / 2)
    elif shared_inv_temp != "none":
        power, share = np.array([1.0, float(shared_inv_temp)]), np.ones(2)
    table = tempered_evidence(data, power, _LOG_WIDTH, scale_icept)
    per_width = table[0] * (share[1:] @ table[1:] if len(power) > 1 else 1.0)
    mass = np.exp(log_prior) * np.interp(np.log(width), _LOG_WIDTH, per_width)
    return float(np.sum(mass * f(local, tau, c2)) / mass.sum())
