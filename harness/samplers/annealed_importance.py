"""Annealed importance sampling, forward and in reverse, and the bounds on log Z that they give.

References
----------
Neal, R. M. (2001). Annealed importance sampling. Statistics and Computing 11, 125-139.

Sohl-Dickstein, J. and Culpepper, B. J. (2012). Hamiltonian annealed importance sampling for
partition function estimation. arXiv:1205.1925.

Grosse, R. B., Ghahramani, Z. and Adams, R. P. (2015). Sandwiching the marginal likelihood using
bidirectional Monte Carlo. arXiv:1511.02543.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.evidence import LogEvidence, log_base_mass, log_mean_weight
from harness.fit import Fit, chain_evidence_attributes
from harness.forms.method import python_method
from harness.model import Model
from harness.model.python_target import Target, target_of
from harness.path.gaussian import GaussianBase
from harness.samplers.annealing import (
    AnnealingKernel,
    PathWalk,
    anneal,
    anneal_back,
    require_reversal,
    step_sizes,
)
from harness.samplers.geometric_path import GeometricPath, Metric
from harness.samplers.kernels import Hmc
from harness.samplers.ladders import checked_ladder
from harness.samplers.result import weighted_fit

METHOD = "annealed_importance"


class Sandwich(NamedTuple):
    """Stochastic bounds on log Z from both ends of the path, in nats.

    Each is an estimate of log Z whose mean lies on its own side of log Z.  The probability that it
    lies on the wrong side by more than c nats is below exp(-c) (Grosse et al. 2015).
    """

    lower: LogEvidence
    """From passes up from the base: the log of an unbiased estimate of Z."""
    upper: LogEvidence
    """From passes down from exact draws of the target: minus the log of an estimate of 1/Z.

    That estimate is unbiased.  If the target's support cuts the base, it is corrected for the share
    that is left of the base, which the passes up have estimated.
    """
    forward: Fit
    """The fit of the passes up; its cost includes that of the passes down."""
    log_weight_down: FloatArray
    """Log weights of the passes down, shape (n,), in the order of the exact draws."""

    @property
    def gap(self) -> float:
        """Upper minus lower bound; its mean is at least the mean error of either."""
        return self.upper.value - self.lower.value


def annealed_importance(
    what: Model | Target,
    base: GaussianBase,
    *,
    ladder: npt.ArrayLike,
    chains: int = 1000,
    populations: int = 1,
    kernel: AnnealingKernel | None = None,
    step_size: float | None = None,
    metric: Metric = "base",
    seed: int,
) -> Fit:
    """Sample a target by annealed importance sampling.

    Each chain starts from the base and passes along the ladder once, with one transition at each
    rung between its ends.  Its weight has the mean Z / zeta, whatever the transitions do.

    Parameters
    ----------
    what
        Model or target.
    base
        Base from which chains start, with the guess zeta at Z.
    ladder
        Inverse temperatures, ascending from 0 to 1.
    chains
        Number of chains of each population.
    populations
        Number of independent runs that are made side by side, each with an estimate of its own.
    kernel
        Transition at each rung, by default :class:`~harness.samplers.kernels.Hmc`.  With
        :class:`~harness.samplers.kernels.PartialHmc`, which carries momenta along, this is
        Hamiltonian annealed importance sampling.
    step_size
        Step size in units of the metric; if not given, it is tuned along the ladder in a separate
        pass, which all populations share.
    metric
        ``base``, in which moves have the base's shape, or ``unit``, in which they are isotropic.
    seed
        Seed; the same seed gives the same fit.

    Returns
    -------
    Fit
        The chains are independent, and those of a population become the draws of a single chain of
        the fit: ``extended`` holds the ends of all chains and ``log_w1``, their log weights.  Log Z
        is log zeta plus the log of the mean weight.  Its error is the relative error of the mean
        weight, to first order.
        It is too small if a few weights dominate; the diagnosis warns of that by Pareto's k.  The
        attribute ``rung_step_size`` holds each rung's step size.  With several populations there is
        an estimate of log Z from each, in the attribute ``chain_log_evidence``.

    Raises
    ------
    DataError
        If the ladder is unusable, there are fewer than 2 chains or no population, the base does not
        have the target's dimension, or the target's density is not usable at draws of the base.
    """
    if populations < 1:
        raise DataError(f"annealed importance sampling needs a population; got {populations}")
    run = _Run(what, base, ladder, chains, kernel or Hmc(), step_size, seed, metric)
    return run.forward(populations)


def bidirectional(
    what: Model | Target,
    base: GaussianBase,
    exact: FloatArray,
    *,
    ladder: npt.ArrayLike,
    chains: int | None = None,
    kernel: AnnealingKernel | None = None,
    step_size: float | None = None,
    seed: int,
) -> Sandwich:
    """Bound log Z from both sides, by annealing up from the base and down from the target.

    Parameters
    ----------
    exact
        Exact, independent draws of the target in base coordinates, shape (n, D); one chain goes
        down from each of them.
    chains
        Number of chains that go up; n if not given.
    what, base, ladder, kernel, step_size, seed
        The same as for :func:`annealed_importance`.  The kernel must be Hmc, RandomWalk,
        PartialHmc or Slice in random order, because their reversal is known.

    Raises
    ------
    DataError
        For the same reasons as in :func:`annealed_importance`, or if the exact draws are unusable.
    """
    kernel = kernel or Hmc()
    require_reversal(kernel)
    if np.ndim(exact) != 2 or not len(exact):
        raise DataError(f"exact draws of the target have shape (n, D); got {np.shape(exact)}")
    up = len(exact) if chains is None else chains
    run = _Run(what, base, ladder, up, kernel, step_size, seed)
    fit = run.forward()
    log_weight = run.reverse(exact)
    down = log_mean_weight(-log_weight)
    # Passes down end only in that part of the base which the target's support leaves, so they
    # estimate Z divided by the base's mass there.
    mass = log_base_mass(np.isfinite(fit.tree["extended"]["log_w1"].to_numpy()))
    upper = mass.added_to(LogEvidence(base.log_zeta - down.value, down.mcse))
    fit.tree.attrs |= run.cost()
    return Sandwich(fit.log_evidence, upper, fit, log_weight)


ANNEALED_IMPORTANCE = python_method(METHOD, annealed_importance)


class _Run:
    """The path, ladder and tuned transitions of one run."""

    def __init__(
        self,
        what: Model | Target,
        base: GaussianBase,
        ladder: npt.ArrayLike,
        chains: int,
        kernel: AnnealingKernel,
        step_size: float | None,
        seed: int,
        metric: Metric = "base",
    ) -> None:
        self._ladder = checked_ladder(ladder)
        if chains < 2:
            raise DataError(f"annealed importance sampling needs 2 chains or more; got {chains}")
        self._chains, self._seed = chains, seed
        self._path = GeometricPath(target_of(what), base, metric)
        rng = np.random.default_rng(seed)
        self._step_size = step_sizes(self._path, self._ladder, kernel, step_size, rng)
        self._walk = PathWalk(self._path, self._ladder, kernel, self._step_size, rng)
        self._settings = {
            "inverse_temperatures": self._ladder.tolist(),
            "kernel": repr(kernel),
            "step_size": step_size,
            "metric": metric,
            "log_zeta": base.log_zeta,
        }

    def forward(self, populations: int = 1) -> Fit:
        shape = populations, self._chains
        number = populations * self._chains
        start = self._walk.base(number)
        end, log_weight = anneal(self._walk, self._ladder, start, np.zeros(number, bool))
        if not np.any(np.isfinite(log_weight)):
            raise DataError(
                "no draw of the base lies within the target's support: choose a base inside it"
            )
        log_zeta = LogEvidence(self._path.base.log_zeta, 0.0)
        found: dict[str, Any] = {"rung_step_size": self._step_size}
        if populations > 1:
            each = [log_zeta.plus(log_mean_weight(of)) for of in log_weight.reshape(shape)]
            found |= chain_evidence_attributes(each)
        acceptance = end.acceptance / max(1, len(self._ladder) - 2)
        return weighted_fit(
            METHOD,
            self._path,
            end.state.points.reshape(*shape, -1),
            {"log_w1": log_weight.reshape(shape)},
            settings=self._settings,
            seed=self._seed,
            stats={
                "acceptance_rate": acceptance.reshape(shape),
                "lp": end.state.log_gamma.reshape(shape),
            },
            log_evidence=log_zeta.plus(log_mean_weight(log_weight)),
            found=found,
        )

    def reverse(self, exact: FloatArray) -> FloatArray:
        """Return log weights of passes down from exact draws, shape (n,)."""
        start = self._walk.at(self._path.start(exact))
        return anneal_back(self._walk, self._ladder, start, np.ones(len(exact), bool))[1]

    def cost(self) -> dict[str, Any]:
        """Return the cost so far, as attributes of a fit."""
        cost = self._path.cost
        return {
            "gradients_sampling": np.array([float(cost.gradients)]),
            "seconds_sampling": np.array([cost.seconds]),
            "seconds_processor": cost.processor_seconds,
        }
