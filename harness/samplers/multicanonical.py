"""Multicanonical sampling: one density in which all bands of the likelihood are visited.

Chains sample b(x) exp(h(l(x))), where b is the base, l the log likelihood, which is the log ratio
of target and base, and h a log weight that spreads the draws over bands of l, from those typical of
the base to those typical of the target.  Importance weights turn the draws into draws of either,
and log Z is the log of the ratio of the two mean weights.

How even the spread is depends on the weights, but the estimates are consistent with any.  A density
that is flat in the energy spends little time where the target is if that is much narrower than the
base: the variance grows with the ratio of the precisions, however good the weights are.

References
----------
Berg, B. A. and Neuhaus, T. (1992). Multicanonical ensemble: a new approach to simulate first-order
phase transitions. Physical Review Letters 68, 9-12.

Murray, I. (2007). Advances in Markov chain Monte Carlo methods. PhD thesis, University College
London, sections 2.6, 4.3, 4.5.2 and 4.8.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.evidence import log_evidence_between_chains
from harness.fit import Fit
from harness.forms.method import python_method
from harness.model import Model
from harness.model.python_target import Target, target_of
from harness.path.gaussian import GaussianBase
from harness.samplers.band_weights import BandWeights, Flat, nested_weights
from harness.samplers.geometric_path import GeometricPath, State
from harness.samplers.kernels import Kernel, Slice, StepSizes
from harness.samplers.nested_run import NestedSettings
from harness.samplers.nested_sampling import run_from_base
from harness.samplers.nested_volumes import mean_log_volume, together
from harness.samplers.result import weighted_fit

METHOD = "multicanonical"
_FIRST_STEP = 1.0


def multicanonical(
    what: Model | Target,
    base: GaussianBase,
    *,
    weights: BandWeights | None = None,
    bands: int = 50,
    flat: Flat = "energy",
    particles: int = 250,
    pilots: int = 3,
    pilot_draws: int = 100,
    chains: int = 10,
    draws: int = 2000,
    warmup: int = 500,
    kernel: Kernel | None = None,
    step_size: float | None = None,
    seed: int,
) -> Fit:
    """Sample a target by the multicanonical ensemble.

    Parameters
    ----------
    what
        Model or target.
    base
        Base from which chains start, with a guess at log Z.
    weights
        Log weights over bands of the log likelihood log gamma - log zeta - log b, which are used
        unchanged; None to find them.
    bands, flat
        Number of bands, and what draws are spread over evenly; see
        :func:`~harness.samplers.band_weights.nested_weights`.
    particles
        Particles of the one population of nested sampling that finds the bands and first weights.
    pilots, pilot_draws
        Number of runs whose histograms then improve the weights, and of iterations in each, the
        second half of which counts.
    chains, draws, warmup
        Number of chains, of draws in each, and of iterations before them.  Chains start from the
        base.
    kernel
        Moves of x: :class:`~harness.samplers.kernels.Slice` by default, whose step size needs no
        tuning.
    step_size
        Step size in units of the base's standard deviations; None for 1 with Slice, and to tune it
        before the draws with other kernels.
    seed
        Seed; the same seed gives the same fit.

    Returns
    -------
    Fit
        ``extended`` holds all draws with their log weights for the target, ``log_w1``;
        ``posterior`` holds draws that are resampled from them.  The error of log Z comes from the
        differences of chains.  Attributes: ``band_edge`` and ``band_log_weight``, the weights;
        ``band_wanted`` and ``band_visited``, the shares of draws that bands should have and had.
        The cost includes that of nested sampling and of the pilot runs.

    Raises
    ------
    DataError
        If a setting is out of its range, the base does not have the target's dimension, the
        likelihood is constant, there are too few particles for the dimension, or no draw reaches
        the target's support.
    """
    if chains < 2 or draws < 1 or min(warmup, pilots) < 0 or pilot_draws < 1:
        raise DataError(
            "multicanonical sampling needs 2 chains or more, one draw or more, also in a pilot "
            f"run, and no negative warm-up or number of pilot runs; got {chains}, {draws}, "
            f"{pilot_draws}, {warmup} and {pilots}"
        )
    if step_size is not None and not (np.isfinite(step_size) and step_size > 0):
        raise DataError(f"a step size must be positive and finite; got {step_size}")
    path = MulticanonicalPath(target_of(what), base)
    rng = np.random.default_rng([seed, 4])
    if weights is None:
        path.weights = _from_nested_run(path, particles, bands, flat, rng, seed)
    else:
        path.weights, pilots = weights, 0
    runs = _Chains(path, kernel or Slice(), chains, step_size, rng)
    for _ in range(pilots):
        for _ in range(pilot_draws // 2):  # chains come to the weights that are new to them
            runs.move(learn=True)
        found = [path.log_likelihood(runs.move(learn=True)) for _ in range(-(-pilot_draws // 2))]
        path.weights = path.weights.after(path.weights.counts(np.concatenate(found)))
    for _ in range(warmup):
        runs.move(learn=True)
    points = np.empty((chains, draws, path.target.dimension))
    log_gamma, log_likelihood = np.empty((2, chains, draws))
    for draw in range(draws):
        state = runs.move(learn=False)
        points[:, draw], log_gamma[:, draw] = state.points, state.log_gamma
        log_likelihood[:, draw] = path.log_likelihood(state)
    height = path.weights.height(log_likelihood)
    log_w1 = log_likelihood - height
    if not np.isfinite(log_w1).any():
        raise DataError(
            "no draw lies within the target's support: take more draws, or a base inside it"
        )
    return weighted_fit(
        METHOD,
        path,
        points,
        {"log_w1": log_w1},
        settings={
            "weights": weights is not None,
            "bands": path.weights.share.size,
            "flat": flat,
            "particles": particles,
            "pilots": pilots,
            "pilot_draws": pilot_draws,
            "warmup": warmup,
            "kernel": repr(runs.kernel),
            "step_size": step_size,
            "log_zeta": base.log_zeta,
        },
        seed=seed,
        stats={"lp": log_gamma, "log_likelihood": log_likelihood},
        log_evidence=log_evidence_between_chains(log_w1, -height, log_zeta=base.log_zeta),
        found={
            "band_edge": path.weights.edge,
            "band_log_weight": path.weights.log_weight,
            "band_wanted": path.weights.share,
            "band_visited": path.weights.counts(log_likelihood) / log_likelihood.size,
        },
        populations=True,
    )


MULTICANONICAL = python_method(METHOD, multicanonical)


class MulticanonicalPath(GeometricPath):
    """Base and target with the density b exp(h(l)), whatever inverse temperature a kernel names.

    Its gradient is that of the tempered path at the inverse temperature dh / dl.

    Parameters
    ----------
    target, base
        As for :class:`~harness.samplers.geometric_path.GeometricPath`.

    Attributes
    ----------
    weights
        The log weights h, which are set before chains move, and may be changed later.
    """

    weights: BandWeights

    def log_likelihood(self, state: State) -> FloatArray:
        """Return l = log gamma - log zeta - log b of each chain, (n,); -inf if not finite."""
        usable = np.isfinite(state.log_gamma)
        rise = np.where(usable, state.log_gamma, 0.0) - self.base.log_zeta - state.log_base
        return np.where(usable, rise, -np.inf)

    def log_density(self, state: State, inv_temp: npt.ArrayLike) -> FloatArray:
        """Log density of each chain, (n,), up to a constant."""
        density: FloatArray = state.log_base + self.weights.height(self.log_likelihood(state))
        return density

    def gradient(self, state: State, inv_temp: npt.ArrayLike) -> FloatArray:
        """Gradient of :meth:`log_density`, shape (n, D)."""
        slope = self.weights.slope(self.log_likelihood(state))[:, None]
        # Outside the support h is constant, and the target's gradient need not be a number.
        rise = np.where(slope != 0, state.log_gamma_gradient - state.log_base_gradient, 0.0)
        gradient: FloatArray = state.log_base_gradient + slope * rise
        return gradient


class _Chains:
    """Chains of the ensemble, which share a step size."""

    def __init__(
        self,
        path: MulticanonicalPath,
        kernel: Kernel,
        chains: int,
        step_size: float | None,
        rng: np.random.Generator,
    ) -> None:
        self.kernel = kernel
        self._path, self._rng = path, rng
        self._given = step_size
        self._group = np.zeros(chains, dtype=np.intp)
        self._steps = StepSizes(1, step_size or _FIRST_STEP, kernel.target_acceptance)
        self._state = path.state(path.base.sample(rng, chains))

    def move(self, *, learn: bool) -> State:
        """Move all chains once, perhaps to tune the step size; return them."""
        steps = self._steps
        step = (steps.current if learn else steps.tuned)(self._group)
        if self._given is not None:
            step = np.full_like(step, self._given)
        moved = self.kernel.move(self._path, self._state, 1.0, step, self._rng)
        if learn:
            steps.learn(self._group, moved.acceptance)
        self._state = moved.state
        return self._state


def _from_nested_run(
    path: MulticanonicalPath,
    particles: int,
    bands: int,
    flat: Flat,
    rng: np.random.Generator,
    seed: int,
) -> BandWeights:
    """Make bands and weights from one population of nested sampling."""
    run = together(run_from_base(path, NestedSettings(particles, 1), rng, seed=seed).removed)
    log_likelihood = run.particles.log_likelihood - path.base.log_zeta
    volume = mean_log_volume(run.alive)
    return nested_weights(log_likelihood, volume, bands=bands, flat=flat, last=particles)
