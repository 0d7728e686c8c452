"""Gibbs continuous tempering: exact draws of the inverse temperature, HMC for x given it.

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
from harness.samplers.kernels import Hmc, Kernel
from harness.samplers.path import Path
from harness.samplers.path_chains import PathChains, path_fit


def gibbs_tempering(
    what: Model | Target,
    base: GaussianBase,
    *,
    log_g: LogG = ((0.0, 0.0), (1.0, 0.0)),
    chains: int = 64,
    draws: int = 1000,
    warmup: int = 500,
    kernel: Kernel | None = None,
    bands: int = 16,
    step_size: float = 0.1,
    starts: FloatArray | None = None,
    seed: int,
) -> Fit:
    """Sample (x, beta) by moves of x given beta and exact draws of beta given x.

    Given x, beta is a truncated exponential (their eq. 17).  Given beta, x moves by HMC with the
    step size of beta's band, tuned in warm-up: a share of 1/2 of it takes chains up and down the
    path, so that every band is tuned, and the rest lets beta go free.

    Parameters
    ----------
    what
        Model, through its Stan program, or target.
    base
        Base at beta = 0, and guess at log Z.
    log_g
        Knots of log g from beta = 0 to 1, linear between them; a pilot's make beta even.
    chains, draws, warmup
        Chains, which run side by side, and their iterations to keep and before.
    kernel
        Moves of x; by default :class:`~harness.samplers.kernels.Hmc`.
    bands
        Bands of inverse temperatures, with equally many intervals of log g in each (with two
        knots, equally wide).
    step_size
        Where the tuning starts, in the base's standard deviations; of a kernel without tuning,
        its width.
    starts
        Where chains start, (chains, D) in base coordinates; by default draws of the base.
    seed
        Seed.

    Returns
    -------
    Fit
        As of a continuously tempered run: ``extended`` holds x, ``inv_temp``, ``delta``,
        ``log_w1`` and ``log_w0``.  Log Z accounts for a base that the target's support cuts off.
        The attribute ``band_step_size`` has each band's step size.

    Raises
    ------
    DataError
        If a count is too small, the knots do not ascend from 0 to 1, or a starting point has no
        density.
    """
    if draws < 1 or warmup < 0:
        raise DataError(
            f"this needs a draw or more, and no negative warm-up; got {draws}, {warmup}"
        )
    runs = PathChains(
        Path(target_of(what), base),
        kernel or Hmc(),
        log_g=np.array(log_g, dtype=np.float64),
        ladder=False,
        bands=bands,
        step_size=step_size,
        starts=starts,
        chains=chains,
        rng=np.random.default_rng(seed),
    )
    runs.tour(warmup // 2)
    runs.warm_up(warmup - warmup // 2)
    return path_fit(
        "gibbs_tempering",
        runs,
        runs.sample(draws),
        runs.path.base_mass(seed, chains, ladder=False),
        settings={
            "warmup": warmup,
            "step_size": step_size,
            "starts": None if starts is None else starts.tolist(),
        },
        seed=seed,
        found={},
    )


GIBBS_TEMPERING = python_method("gibbs_tempering", gibbs_tempering)
