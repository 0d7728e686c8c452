"""Gibbs continuous tempering: exact draws of the inverse temperature, and HMC for x given it.

References
----------
Graham, M. M. and Storkey, A. J. (2017). Continuously tempered Hamiltonian Monte Carlo.
Uncertainty in Artificial Intelligence, section 5.
"""

from __future__ import annotations

import numpy as np

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.evidence import LogG
from harness.fit import Fit
from harness.forms.method import python_method
from harness.model import Model
from harness.model.python_target import Target, target_of
from harness.path.gaussian import GaussianBase
from harness.samplers.flat_weights import FlatInvTemp
from harness.samplers.geometric_path import GeometricPath, Metric
from harness.samplers.kernels import Hmc, Kernel
from harness.samplers.path_chains import PathChains, path_fit
from harness.samplers.simulated_tempering import integrated_log_weights


def gibbs_tempering(
    what: Model | Target,
    base: GaussianBase,
    *,
    log_g: LogG = ((0.0, 0.0), (1.0, 0.0)),
    chains: int = 64,
    draws: int = 1000,
    warmup: int = 500,
    thin: int = 1,
    kernel: Kernel | None = None,
    bands: int = 16,
    step_size: float = 0.1,
    metric: Metric = "base",
    starts: FloatArray | None = None,
    flat_intervals: int = 0,
    seed: int,
) -> Fit:
    """Sample (x, beta), alternating moves of x given beta with exact draws of beta given x.

    Given x, beta is a truncated exponential (their eq. 17).  Given beta, x moves by HMC with the
    step size of the band that beta is in, which warm-up tunes.  The first half of warm-up takes
    chains up and down the path, so that every band is tuned; in the rest beta moves freely.

    Parameters
    ----------
    what
        Model, which is evaluated by its Stan program, or target.
    base
        Base at beta = 0, with a guess at log Z.
    log_g
        Knots of log g from beta = 0 to 1, linear between them; those of a pilot give beta an even
        marginal.
    chains, draws, warmup
        Number of chains, which run side by side, iterations that are kept, and those before.
    thin
        Keep every k-th of the draws only, which saves memory.  Log Z is estimated from the weights
        of all of them.
    kernel
        Moves of x; by default :class:`~harness.samplers.kernels.Hmc`.
    bands
        Number of bands of inverse temperatures.  Each holds equally many intervals between knots of
        log g; with only two knots, the bands are equally wide.
    step_size
        Where tuning starts, in units of the metric.  For a kernel without tuning this is its width,
        and without warm-up the step size.
    metric
        ``base``, in which moves have the base's shape, or ``unit``, in which they are isotropic.
    starts
        Starting points of chains, (chains, D) in base coordinates; by default draws of the base.
    flat_intervals
        If positive, warm-up adapts log g on so many even intervals until beta's marginal density
        is flat (:mod:`harness.samplers.flat_weights`); it starts from an integral over the tour,
        not from ``log_g``, and stays fixed after warm-up.
    seed
        Seed.

    Returns
    -------
    Fit
        A fit like that of a continuously tempered run: ``extended`` holds x, ``inv_temp``,
        ``delta``, ``log_w1`` and ``log_w0``.  Log Z takes into account that the target's support
        may cut the base.  The attribute ``band_step_size`` holds each band's step size.

    Raises
    ------
    DataError
        If a count is too small, draws cannot be thinned so, the knots do not ascend from 0 to 1, or
        the density is zero at a starting point.
    """
    if draws < 1 or warmup < 0:
        raise DataError(
            f"this needs one draw or more, and no negative warm-up; got {draws}, {warmup}"
        )
    runs = PathChains(
        GeometricPath(target_of(what), base, metric),
        kernel or Hmc(),
        log_g=np.array(log_g, dtype=np.float64),
        ladder=False,
        bands=bands,
        step_size=step_size,
        starts=starts,
        chains=chains,
        rng=np.random.default_rng(seed),
    )
    tour, free = runs.tour(warmup // 2), warmup - warmup // 2
    flat = None
    if flat_intervals:
        knot = np.linspace(0, 1, flat_intervals + 1)
        start = np.column_stack([knot, integrated_log_weights(knot, tour)])
        flat = FlatInvTemp(start, flat_intervals, free)
        runs.log_g = flat.log_g
    runs.warm_up(free, flat)
    return path_fit(
        "gibbs_tempering",
        runs,
        runs.sample(draws, thin),
        runs.path.base_mass(seed, chains, ladder=False),
        settings={
            "warmup": warmup,
            "draws": draws,
            "thin": thin,
            "step_size": step_size,
            "metric": metric,
            "starts": None if starts is None else starts.tolist(),
            "flat_intervals": flat_intervals,
        },
        seed=seed,
        found={},
    )


GIBBS_TEMPERING = python_method("gibbs_tempering", gibbs_tempering)
