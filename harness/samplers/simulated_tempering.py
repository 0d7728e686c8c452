"""Simulated tempering with exact draws of the rung and Rao-Blackwellised estimates.

References
----------
Marinari, E. and Parisi, G. (1992). Simulated tempering: a new Monte Carlo scheme. Europhysics
Letters 19, 451-458.

Carlson, D., Stinson, P., Pakman, A. and Paninski, L. (2016). Partition functions from
Rao-Blackwellized tempered sampling. International Conference on Machine Learning, 2896-2905.

Graham, M. M. and Storkey, A. J. (2017). Continuously tempered Hamiltonian Monte Carlo.
Uncertainty in Artificial Intelligence, eqs 8, 9.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from harness import evidence
from harness.arrays import FloatArray
from harness.errors import DataError
from harness.fit import Fit
from harness.forms.method import python_method
from harness.model import Model
from harness.model.python_target import Target, target_of
from harness.path.gaussian import GaussianBase
from harness.samplers.geometric_path import GeometricPath, Metric
from harness.samplers.kernels import Hmc, Kernel
from harness.samplers.ladders import checked_ladder
from harness.samplers.path_chains import PathChains, Tour, path_fit

_BLOCK = 2**20  # numbers in a table of draws by rungs, 8 MB
_LARGEST_CHANGE = 20.0  # nats by which one pilot run may change a rung's log weight


def simulated_tempering(
    what: Model | Target,
    base: GaussianBase,
    *,
    ladder: npt.ArrayLike,
    log_weights: npt.ArrayLike | None = None,
    pilots: int = 5,
    pilot_draws: int = 100,
    chains: int = 10,
    draws: int = 1000,
    warmup: int = 500,
    thin: int = 1,
    kernel: Kernel | None = None,
    bands: int = 16,
    step_size: float = 0.1,
    metric: Metric = "base",
    starts: FloatArray | None = None,
    seed: int,
) -> Fit:
    """Sample x and a rung k of a ladder; p(x, k) is proportional to exp(h_k) gamma_{beta_k}(x).

    The rung is drawn from its exact conditional given x, proportional to
    exp(h_k - beta_k Delta(x)), and x moves given the rung.  Expectations under the target and log
    Z average these conditional probabilities instead of counting visits of rungs.

    The log weights h_k = -log Z_k make all rungs equally likely.  If none are given, warm-up finds
    them.  First, a tour takes chains up and down the ladder, and the mean of Delta along the ladder
    is integrated to log Z_k (thermodynamic integration).  Then each pilot run estimates the rungs'
    probabilities c_k under the weights so far, and h_k becomes h_k - log c_k.

    Parameters
    ----------
    what
        Model, which is evaluated by its Stan program, or target.
    base
        Base at beta = 0, with a guess at log Z.
    ladder
        Inverse temperatures, ascending from 0 to 1, shape (K,); see
        :mod:`harness.samplers.ladders`.
    log_weights
        h_k, shape (K,), which are used unchanged; None to find them in pilot runs.
    pilots, pilot_draws
        Number of pilot runs, and of iterations in each.
    chains, draws, warmup
        Number of chains, which run side by side, iterations that are kept, and those before.  Half
        of ``warmup`` is the tour; the rest comes after the pilot runs.
    thin
        Keep every k-th of the draws only, which saves memory.  Log Z is estimated from the weights
        of all of them.
    kernel
        Moves of x; by default :class:`~harness.samplers.kernels.Hmc`.
    bands
        Number of bands of the ladder.  Each holds equally many rungs and has its own step size.
        There are at most as many bands as rungs.
    step_size
        Where tuning starts, in units of the metric; without warm-up and pilot runs, the step size.
    metric
        ``base``, in which moves have the base's shape, or ``unit``, in which they are isotropic.
    starts
        Starting points of chains, (chains, D) in base coordinates; by default draws of the base.
    seed
        Seed.

    Returns
    -------
    Fit
        A fit like that of a collapsed continuously tempered run on a ladder.  Two attributes have
        an entry for each rung: ``rung_probability``, its probability averaged over the draws, which
        is the same for all rungs if the weights are good; and ``log_normaliser``, log c_k - h_k, an
        estimate of log Z(beta_k) up to a constant, 0 at the base (Carlson et al. 2016).  At
        beta = 1 it estimates log Z - log zeta.

    Raises
    ------
    DataError
        If the ladder does not ascend from 0 to 1, the log weights do not match it, a count is too
        small, draws cannot be thinned so, or the density is zero at a starting point.
    """
    rung = checked_ladder(ladder)
    if draws < 1 or min(warmup, pilots) < 0 or pilot_draws < 1:
        raise DataError(
            "simulated tempering needs one draw or more, also in a pilot run, and no negative "
            f"warm-up or number of pilot runs; got {draws}, {pilot_draws}, {warmup} and {pilots}"
        )
    given = None if log_weights is None else np.array(log_weights, dtype=np.float64)
    if given is not None and (given.shape != rung.shape or not np.all(np.isfinite(given))):
        raise DataError(
            f"there must be a finite log weight for each of {rung.size} rungs; got shape "
            f"{given.shape}"
        )
    runs = PathChains(
        GeometricPath(target_of(what), base, metric),
        kernel or Hmc(),
        log_g=np.column_stack([rung, np.zeros(rung.size) if given is None else given]),
        ladder=True,
        bands=min(bands, rung.size),
        step_size=step_size,
        starts=starts,
        chains=chains,
        rng=np.random.default_rng(seed),
    )
    tour = runs.tour(warmup // 2)
    if given is None:
        runs.log_g = np.column_stack([rung, integrated_log_weights(rung, tour)])
        for _ in range(pilots):
            delta = runs.warm_up(pilot_draws)
            log_c = log_rung_probabilities(delta, runs.log_g)
            change = np.clip(log_c.max() - log_c, 0, _LARGEST_CHANGE)
            better = runs.log_g[:, 1] + change
            runs.log_g = np.column_stack([rung, better - better[0]])
    runs.warm_up(warmup - warmup // 2)
    kept = runs.sample(draws, thin)
    log_c = log_rung_probabilities(kept.delta, runs.log_g)
    log_normaliser = log_c - runs.log_g[:, 1]
    return path_fit(
        "simulated_tempering",
        runs,
        kept,
        runs.path.base_mass(seed, chains, ladder=True),
        settings={
            "pilots": 0 if given is not None else pilots,
            "pilot_draws": pilot_draws,
            "warmup": warmup,
            "draws": draws,
            "thin": thin,
            "step_size": step_size,
            "metric": metric,
            "starts": None if starts is None else starts.tolist(),
        },
        seed=seed,
        found={
            "rung_probability": np.exp(log_c),
            "log_normaliser": log_normaliser - log_normaliser[0],
        },
    )


def log_rung_probabilities(delta: FloatArray, log_g: FloatArray) -> FloatArray:
    """Return log probabilities of the rungs given x, averaged over draws (Carlson et al. 2016).

    Parameters
    ----------
    delta
        Delta of the draws, of any shape; +inf if the target's density is zero there.
    log_g
        Rungs and their log weights, shape (K, 2).

    Returns
    -------
    FloatArray
        log c_k, shape (K,).
    """
    rung, log_weight = log_g.T
    total = np.full(rung.size, -np.inf)
    for block in np.array_split(delta.ravel(), -(-delta.size * rung.size // _BLOCK)):
        log_mass = log_weight - evidence.times_delta(rung, block)
        log_mass -= log_mass.max(axis=1, keepdims=True)
        log_mass -= np.log(np.exp(log_mass).sum(axis=1, keepdims=True))
        largest = log_mass.max(axis=0)
        log_sum = largest + np.log(np.exp(log_mass - largest).sum(axis=0))
        total = np.logaddexp(total, log_sum)
    mean: FloatArray = total - np.log(delta.size)
    return mean


def integrated_log_weights(rung: FloatArray, tour: Tour) -> FloatArray:
    """Return log weights -log Z(beta_k), by thermodynamic integration over a tour.

    d log Z / d beta = -E_beta[Delta] (Gelman and Meng 1998), which is integrated by the trapezoidal
    rule between the means of the tour.  Without a tour all log weights are 0.
    """
    if not tour.inv_temp.size:
        return np.zeros(rung.size)
    mean = np.interp(rung, tour.inv_temp, tour.delta)
    pieces = np.diff(rung) * (mean[1:] + mean[:-1]) / 2
    return np.concatenate([[0.0], np.cumsum(pieces)])


SIMULATED_TEMPERING = python_method("simulated_tempering", simulated_tempering)
