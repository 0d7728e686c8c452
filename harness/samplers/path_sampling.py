"""Path sampling, which estimates log Z by integrating over a continuous inverse temperature.

A chain draws x given beta by HMC and beta given x exactly, in turn, from
b(x) exp(-beta Delta(x)) g(beta).  With U = -Delta, the derivative of log gamma_beta with respect to
beta, log Z = log zeta + int E[U | beta] dbeta, whatever g is.  Warm-up brings g close to the
density for which the error of the integral is smallest.

References
----------
Gelman, A. and Meng, X.-L. (1998). Simulating normalizing constants: from importance sampling to
bridge sampling to path sampling. Statistical Science 13, 163-185.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from harness import evidence
from harness.arrays import FloatArray
from harness.errors import DataError
from harness.evidence import LogEvidence, LogG, LogMass
from harness.fit import Fit, evidence_attributes
from harness.forms.method import python_method
from harness.model import Model
from harness.model.python_target import Target, target_of
from harness.path.gaussian import GaussianBase
from harness.samplers.geometric_path import GeometricPath
from harness.samplers.kernels import Hmc, StepSizes
from harness.samplers.path_chains import Draws, PathChains, path_fit

# Shares of warm-up after which g is renewed; the rest of it only tunes the step sizes.
_ROUNDS = (1 / 16, 1 / 16, 1 / 8, 1 / 4)
_LEAST_IN_A_BAND = 20  # draws, of all chains
_INITIAL_STEP = 0.1

METHOD = "path_sampling"


def path_sampling(
    what: Model | Target,
    base: GaussianBase,
    *,
    bands: int = 20,
    log_g: LogG = ((0.0, 0.0), (1.0, 0.0)),
    adapt_g: bool = True,
    chains: int = 16,
    draws: int = 2000,
    warmup: int = 1000,
    kernel: Hmc | None = None,
    seed: int,
) -> Fit:
    """Sample a target and the path to it from a Gaussian base, and integrate along it.

    The fit holds draws along the path, like a fit of continuous tempering; its log Z comes from
    path sampling.  (Path sampling averaged over beta given x becomes the ratio of weights that the
    fit's ``tempered`` draws give: Graham and Storkey 2017, eq. 20.)

    Parameters
    ----------
    what
        Model, which is evaluated by its Stan program, or target.
    base
        Base at beta = 0, which is cut to the target's support.
    bands
        Number of intervals of beta with equally many draws; in each, E[U | beta] is fitted by a
        line.  The chains use as many bands of knots of g, each with its own step size.
    log_g
        Knots of log g to start from, linear between them, from beta = 0 to 1.
    adapt_g
        Whether warm-up renews g, so that beta's density becomes about proportional to the standard
        deviation of U given beta (Gelman and Meng 1998, for a U centred at its mean).
    chains
        Number of independent chains.
    draws, warmup
        Iterations that are kept, and those before; each is one HMC trajectory and one draw of beta.
    kernel
        HMC; by default :class:`Hmc` with its own defaults.
    seed
        Seed.

    Raises
    ------
    DataError
        If a count is too small, the knots do not ascend from 0 to 1, or hardly any of the base
        lies within the target's support.
    """
    if chains < 1 or warmup < 0 or bands < 1 or draws < 4:
        raise DataError(
            f"path sampling needs 1 chain, 4 draws, 0 iterations of warm-up and 1 band or more; "
            f"got {chains}, {draws}, {warmup} and {bands}"
        )
    if chains * draws < _LEAST_IN_A_BAND * bands:
        raise DataError(
            f"{chains} chains of {draws} draws are too few for {bands} bands of "
            f"{_LEAST_IN_A_BAND} draws each: take more draws or fewer bands"
        )
    hmc = kernel or Hmc()
    path = GeometricPath(target_of(what), base)
    rng = np.random.default_rng(seed)
    runs = PathChains(
        path,
        hmc,
        log_g=np.asarray(log_g, dtype=np.float64),
        ladder=False,
        bands=bands,
        step_size=_INITIAL_STEP,
        starts=None,
        chains=chains,
        rng=rng,
    )
    _warm_up(runs, warmup, adapt_g)
    kept = runs.sample(draws)
    mass = path.base_mass(seed, chains, ladder=False)
    return path_fit(
        METHOD,
        runs,
        kept,
        mass,
        settings={
            "initial_log_g": np.asarray(log_g, dtype=np.float64).tolist(),
            "adapt_g": adapt_g,
            "warmup": warmup,
        },
        seed=seed,
        found=evidence_attributes(_log_evidence(path, kept, bands, mass)),
    )


class Curve(NamedTuple):
    """E[U | beta], as a line in each band of beta."""

    edges: FloatArray
    """Ends of the bands, from 0 to 1, shape (B + 1,)."""
    height: FloatArray
    """Value of the line in the middle of each band, shape (B,)."""
    spread: FloatArray
    """Standard deviation of U about the line, shape (B,)."""
    residual: FloatArray
    """A series of the shape of the draws, whose mean has the same error as the integral."""

    @property
    def integral(self) -> FloatArray:
        """Integral of the curve from 0 to each edge, shape (B + 1,)."""
        return np.append(0.0, np.cumsum(np.diff(self.edges) * self.height))


def integrand(slope: FloatArray, inv_temp: FloatArray, bands: int) -> Curve:
    """Fit E[U | beta] by a line in each of several bands with equally many draws.

    Parameters
    ----------
    slope
        U = -Delta of each draw, of any shape.
    inv_temp
        The beta at which it was drawn, of the same shape.
    bands
        Number of bands B.
    """
    inner = np.quantile(inv_temp, np.arange(1, bands) / bands)
    edges = np.unique(np.concatenate([[0.0], inner, [1.0]]))
    count = len(edges) - 1
    band = np.clip(np.searchsorted(edges, inv_temp.ravel(), side="right") - 1, 0, count - 1)

    def mean(values: FloatArray) -> FloatArray:
        """Return the mean of each band."""
        total = np.bincount(band, weights=values, minlength=count)
        return np.asarray(total / number, dtype=np.float64)

    number = np.maximum(np.bincount(band, minlength=count), 1)
    u, beta = slope.ravel(), inv_temp.ravel()
    centre, average = mean(beta), mean(u)
    off = beta - centre[band]
    squared = mean(off**2)
    rise = mean(off * u) / np.where(squared > 0, squared, 1)
    residual = u - average[band] - rise[band] * off
    width = np.diff(edges)
    middle = (edges[1:] + edges[:-1]) / 2
    return Curve(
        edges,
        average + rise * (middle - centre),
        np.sqrt(mean(residual**2)),
        ((width / number)[band] * u.size * residual).reshape(slope.shape),
    )


def flattening(curve: Curve, knots: int) -> FloatArray:
    """Return knots of the log g that makes beta's density about proportional to the spread of U.

    That is log g = -log Z(beta) + log sd(U | beta), up to a constant.  The knots are placed so that
    the integral of the spread between neighbours is the same everywhere.

    Parameters
    ----------
    curve
        What is known about the path so far.
    knots
        Number of knots.

    Returns
    -------
    FloatArray
        Rows (beta, log g(beta)), shape (knots, 2).
    """
    spread = np.maximum(curve.spread, 1e-3 * curve.spread.max() + np.finfo(float).tiny)
    length = np.append(0.0, np.cumsum(np.diff(curve.edges) * spread))
    place = np.interp(np.linspace(0, length[-1], knots), length, curve.edges)
    place[0], place[-1] = 0.0, 1.0
    middle = (curve.edges[1:] + curve.edges[:-1]) / 2
    log_z = np.interp(place, curve.edges, curve.integral)
    return np.column_stack([place, np.interp(place, middle, np.log(spread)) - log_z])


def _warm_up(runs: PathChains, warmup: int, adapt_g: bool) -> None:
    """Tune step sizes, and renew g and the bands between rounds."""
    enough = _LEAST_IN_A_BAND * runs.bands / len(runs.inv_temp)
    rounds = [int(warmup * share) for share in _ROUNDS] if adapt_g else []
    rounds = [length for length in rounds if length >= enough]
    band = np.arange(runs.bands)
    for length in rounds:
        delta = runs.warm_up(length)
        # Not all bands are visited from the start, so what is known about them is renewed.
        beta = evidence.draw_inv_temp(delta, runs.log_g, runs.rng)
        old = _middles(runs)
        runs.log_g = flattening(integrand(-delta, beta, runs.bands), runs.bands + 1)
        log_step = np.interp(np.log(_middles(runs)), np.log(old), np.log(runs.steps.tuned(band)))
        runs.steps = StepSizes(runs.bands, np.exp(log_step), runs.kernel.target_acceptance)
    runs.warm_up(warmup - sum(rounds))


def _middles(runs: PathChains) -> FloatArray:
    """Return the inverse temperature in the middle of each band, in the order of the knots."""
    knot = runs.log_g[:, 0]
    place = (np.arange(runs.bands) + 0.5) / runs.bands
    return np.interp(place, np.linspace(0, 1, len(knot)), knot)


def _log_evidence(path: GeometricPath, kept: Draws, bands: int, mass: LogMass) -> LogEvidence:
    """Integrate the fitted curve, and correct for the base's mass outside the target's support."""
    curve = integrand(-kept.delta, kept.inv_temp, bands)
    value = path.base.log_zeta + curve.integral[-1]
    return mass.added_to(LogEvidence(float(value), evidence.standard_error(curve.residual)))


PATH_SAMPLING = python_method(METHOD, path_sampling)
