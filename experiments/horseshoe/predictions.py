"""What predictions and pictures need of a horseshoe fit, so that its wide draws can be dropped.

A draw of d standardised coefficients and local scales is 2 d numbers a pseudo-sample; the
linear predictors of held-out observations and a few coefficients are all that is read later.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.evidence import Estimate, expectation
from harness.fit import Fit
from harness.fit.tempered import PSEUDO_SAMPLE
from harness.models.horseshoe import Classification, coefficients

KEPT = ("beta0", "tau", "c2")
"""Parameters that a condensed fit keeps as they are."""

_NUMBERS_AT_ONCE = 2_000_000
"""Numbers in a block of coefficients: 16 MB, whatever the number of draws."""


def condensed(fit: Fit, x: FloatArray, shown: Sequence[int]) -> Fit:
    """Reduce a fit to its linear predictors at some points and a few of its coefficients.

    Parameters
    ----------
    fit
        Fit of a horseshoe model, of the target or pseudo-extended.
    x
        Predictors of m observations, shape (m, d), as held-out ones.
    shown
        Indices of the coefficients to keep.

    Returns
    -------
    Fit
        With ``eta``, the linear predictor beta0 + x beta of every draw and pseudo-sample, and
        ``beta``, the coefficients ``shown``, in place of ``z`` and ``lambda``, and without the
        model's data; weights, inverse temperatures and statistics are those of the fit.

    Raises
    ------
    DataError
        If the observations have not as many predictors as the fit has coefficients, or a
        coefficient to show is none of them.
    """
    d = fit.posterior.sizes["z_dim_0"]
    if x.ndim != 2 or x.shape[1] != d:
        raise DataError(f"the fit has {d} coefficients; got observations of shape {x.shape}")
    if any(not 0 <= index < d for index in shown):
        raise DataError(f"the coefficients shown lie in 0..{d - 1}; got {list(shown)}")
    groups = {"/sample_stats": fit.sample_stats}
    for name, draws in (("posterior", fit.posterior), ("extended", fit.extended)):
        if draws is not None:
            groups[f"/{name}"] = _reduced(draws, x, shown)
    tree = xr.DataTree.from_dict(groups)
    tree.attrs = dict(fit.tree.attrs)
    return Fit(tree)


def _reduced(draws: xr.Dataset, x: FloatArray, shown: Sequence[int]) -> xr.Dataset:
    """Reduce one group of draws, block by block: its coefficients never stand whole in memory."""
    last = [PSEUDO_SAMPLE] if PSEUDO_SAMPLE in draws.dims else []
    axes = ("chain", "draw", *last)
    beta0, tau, c2 = (draws[name].transpose(*axes).to_numpy() for name in KEPT)
    z, local = (draws[n].transpose(*axes, f"{n}_dim_0").to_numpy() for n in ("z", "lambda"))
    # Views: the axes of a draw are numbered through without a copy of z or lambda.
    eta = np.empty((*beta0.shape, len(x)))
    beta = np.empty((*beta0.shape, len(shown)))
    block = max(1, _NUMBERS_AT_ONCE // (z.shape[-1] * int(np.prod(z.shape[2:-1]))))
    for chain in range(len(z)):
        for start in range(0, z.shape[1], block):
            at = (chain, slice(start, start + block))
            slope = coefficients(z[at], local[at], tau[at], c2[at])
            eta[at] = beta0[at][..., None] + slope @ x.T
            beta[at] = slope[..., list(shown)]
    others = [n for n in draws.data_vars if n not in ("z", "lambda")]
    return draws[others].assign(eta=((*axes, "eta_dim_0"), eta), beta=((*axes, "beta_dim_0"), beta))


def within_budget(fit: Fit, gradients: float, each: int = 1) -> Fit:
    """Keep the first draws of every chain, as many as a budget of gradients pays for.

    Parameters
    ----------
    fit
        Fit by NUTS.
    gradients
        Budget of each chain's sampling.
    each
        Gradients of the likelihood in one leapfrog step, as N pseudo-samples have N.

    Raises
    ------
    DataError
        If it pays for fewer than four draws, which give no error.
    """
    spent = each * fit.sample_stats["n_steps"].cumsum("draw")
    count = int((spent <= gradients).sum("draw").min())
    if count < 4:
        raise DataError(f"a budget of {gradients:g} gradients pays for {count} draws")
    tree = xr.DataTree.from_dict(
        {
            f"/{name}": node.to_dataset().isel(draw=slice(0, count))
            for name, node in fit.tree.children.items()
        }
    )
    tree.attrs = dict(fit.tree.attrs)
    return Fit(tree)


def held_out_density(fit: Fit, held_out: Classification) -> tuple[Estimate, Estimate]:
    """Log predictive density of held-out observations, from a condensed fit's weighted draws.

    With h_tk the weighted mean over pseudo-samples of p(y_k | draw t), the estimate for
    observation k is log v_k with v_k the mean of h_tk over draws.  Standard errors are the delta
    method's: of the mean of log v_k that of the series sum_k h_tk / v_k / m.

    Parameters
    ----------
    fit
        Fit that :func:`condensed` made with ``held_out.x``.
    held_out
        The m observations.

    Returns
    -------
    tuple of Estimate
        Mean over observations of log p(y_k | training data), and log p(y_1, ..., y_m | training
        data), in nats.
    """

    def log_p(parameters: xr.Dataset) -> xr.DataArray:
        # log p(y) of a Bernoulli, -log(1 + exp(-eta)) for y = 1 and -log(1 + exp(eta)) for y = 0.
        signed = parameters["eta"] * xr.DataArray(1 - 2 * held_out.y, dims="eta_dim_0")
        p: xr.DataArray = -xr.apply_ufunc(np.logaddexp, 0, signed)
        return p

    draws = fit.posterior if fit.extended is None else fit.extended
    each, together = log_p(draws), log_p(draws).sum("eta_dim_0")
    axes = [axis for axis in each.dims if axis != "eta_dim_0"]
    # Shifts, so that small probabilities do not underflow.
    highest, highest_together = each.max(axes), float(together.max())

    def shifted(parameters: xr.Dataset) -> xr.DataArray:
        p: xr.DataArray = xr.apply_ufunc(np.exp, log_p(parameters) - highest)
        return p

    def shifted_product(parameters: xr.Dataset) -> xr.DataArray:
        total = log_p(parameters).sum("eta_dim_0")
        p: xr.DataArray = xr.apply_ufunc(np.exp, total - highest_together)
        return p

    h, joint = fit.series(shifted).to_numpy(), fit.series(shifted_product).to_numpy()
    v = h.mean(axis=(0, 1))
    pointwise = float(np.mean(np.log(v) + highest.to_numpy()))
    return (
        Estimate(np.array(pointwise), expectation((h / v).mean(axis=2)).mcse),
        Estimate(
            np.array(np.log(joint.mean()) + highest_together),
            expectation(joint / joint.mean()).mcse,
        ),
    )
