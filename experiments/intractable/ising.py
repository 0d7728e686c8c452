"""An Ising model on a torus of 10 x 30 spins, with exact draws from the past (Murray 2007, 5.6.1).

The prior is uniform on |h| < 1 and 0 < J < 0.4.  A transition between two settings is a Gibbs sweep
with colours in random order, which is reversible.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from harness.arrays import FloatArray
from harness.evidence.autocorrelation import autocorrelation_times
from harness.fit import Fit
from harness.folders import shipped
from harness.forms.method import python_method
from harness.intractable import (
    IntractableProblem,
    Walk,
    auxiliary_variables,
    exchange,
    latent_history,
)
from harness.intractable.latent_history import Rule
from harness.lattice.coupling import IsingTorus, Spins
from harness.model import Model

from .gaussian import few_chains
from .sweeps import EvenThenOdd

METHOD = "unknown_constant_of_lattice"
ROWS, COLUMNS = 10, 30
TRUE = (0.3, 0.0)
LARGEST_J, LARGEST_H = 0.4, 1.0
_SEED = 20075
_BEFORE: dict[str, Any] = {"proposal": Walk(0.08), "draws": 60, "warmup": 0}
"""Exchange before latent histories, some ten times its autocorrelation time."""


@cache
def observed() -> Spins:
    """Return our exact draw at J = 0.3 and h = 0, as the thesis's data are not printed."""
    rng = np.random.default_rng(_SEED)
    coupling, field = (np.array([each]) for each in TRUE)
    spins: Spins = IsingTorus(ROWS, COLUMNS).exact(coupling, field, rng).spins[0]
    return spins


def model() -> Model:
    """Return the data."""
    folder = shipped("experiments") / "intractable"
    return Model("ising", folder, {"y": observed()}, ("theta",), 2)


def pseudo_likelihood(spins: Spins) -> FloatArray:
    """Return J and h of largest pseudo-likelihood, a logistic regression on neighbours' sums."""
    torus = IsingTorus(*spins.shape)
    sums = torus.neighbour_sums(spins).ravel().astype(np.float64)
    predictors, up = 2 * np.stack([sums, np.ones_like(sums)], axis=1), spins.ravel() > 0
    at = np.zeros(2)
    for _ in range(30):
        share = 1 / (1 + np.exp(-(predictors @ at)))
        curvature = predictors.T @ ((share * (1 - share))[:, None] * predictors)
        at = at + np.linalg.solve(curvature, predictors.T @ (up - share))
    return at


class Lattice:
    """The problem and its transition, with a count of the sweeps that they make."""

    def __init__(self, spins: Spins) -> None:
        self.torus, self.sweeps = IsingTorus(*spins.shape), 0
        self.problem = IntractableProblem(
            "ising",
            spins.astype(np.float64),
            2,
            log_prior=_log_prior,
            log_factor=lambda theta, data: np.einsum("nd,nd->n", theta, self._statistics(data)),
            simulate=self._simulate,
            data={"y": spins},
        )

    def transition(
        self,
        data: FloatArray,
        start: FloatArray,
        end: FloatArray,
        share: float,
        rng: np.random.Generator,
    ) -> FloatArray:
        """Make one Gibbs sweep at parameters between the two."""
        at = (1 - share) * start + share * end
        self.sweeps += len(data)
        spins = self.torus.sweep(data.astype(np.int8), at[:, 0], at[:, 1], rng)
        return spins.astype(np.float64)

    def _simulate(self, theta: FloatArray, rng: np.random.Generator) -> FloatArray:
        drawn = self.torus.exact(theta[:, 0], theta[:, 1], rng)
        self.sweeps += int(drawn.sweeps.sum())
        return drawn.spins.astype(np.float64)

    def _statistics(self, data: FloatArray) -> FloatArray:
        return self.torus.statistics(data.astype(np.int8))


def _log_prior(theta: FloatArray) -> FloatArray:
    inside = (theta[:, 0] > 0) & (theta[:, 0] < LARGEST_J) & (np.abs(theta[:, 1]) < LARGEST_H)
    return np.where(inside, 0.0, -np.inf)


def sample_lattice(
    model: Model,
    *,
    scheme: str,
    levels: int,
    width: float,
    chains: int,
    iterations: int,
    seed: int,
) -> Fit:
    """Sample J and h, with what an effective draw costs in Gibbs sweeps.

    Parameters
    ----------
    scheme
        ``exchange``, ``MAVM``, or ``history a`` or ``history b`` for the rules of latent histories.
    levels
        Bridges, K; latent histories have none.
    width
        Of the Gaussian walk.
    chains, iterations
        Number of chains and their iterations, after a quarter of them without record; latent
        histories, which mix slowly, start from draws of exchange instead.

    Returns
    -------
    Fit
        Attributes ``sweeps`` for each iteration of a chain, ``tau_J`` and ``tau_h`` in iterations
        with their errors, whether the run is long enough for them (``closed``), and ``efficiency``,
        effective draws of J for each sweep.  For latent histories a step back is a sweep as well,
        and ``bound`` is at least their efficiency, see :func:`first_lag`.
    """
    spins = np.asarray(model.data["y"])
    lattice, at = Lattice(spins), pseudo_likelihood(spins)
    rng = np.random.default_rng([seed, 1])
    starts = np.clip(
        at + 0.03 * rng.standard_normal((chains, 2)), [0.05, -0.2], [LARGEST_J - 0.01, 0.2]
    )
    warmup = iterations // 4
    common: dict[str, Any] = {
        "proposal": Walk(width), "draws": iterations, "chains": chains, "seed": seed,
        "warmup": warmup, "adapt": False,
    }  # fmt: skip
    bridges: dict[str, Any] = {"bridges": levels, "transition": lattice.transition}
    if scheme == "exchange":
        fit = exchange(lattice.problem, starts, **common, **bridges)
    elif scheme == "MAVM":
        fit = auxiliary_variables(lattice.problem, starts, estimate=at, **common, **bridges)
    else:
        rule: Rule = "a" if scheme.endswith("a") else "b"
        before = exchange(lattice.problem, starts, **common | _BEFORE)
        starts = before.posterior["theta"].transpose("chain", "draw", ...).to_numpy()[:, -1]
        warmup = common["warmup"] = 0
        gibbs = EvenThenOdd(*spins.shape)
        fit = latent_history(lattice.problem, gibbs, starts, rule=rule, **common)
        lattice.sweeps = int(fit.tree.attrs["steps"])
    draws = fit.posterior["theta"].transpose("chain", "draw", ...).to_numpy()
    tau = autocorrelation_times(draws).own
    sweeps = lattice.sweeps / (chains * (iterations + warmup))
    found = {
        "sweeps": sweeps,
        "efficiency": float(1 / (tau.value[0] * sweeps)),
        "efficiency_error": float(tau.error[0] / (tau.value[0] ** 2 * sweeps)),
        "efficiency_h": float(1 / (tau.value[1] * sweeps)),
        "tau_J": float(tau.value[0]),
        "tau_h": float(tau.value[1]),
        "closed": float(tau.closed.all()),
        "mean": float(draws[..., 0].mean()),
        "mean_error": float(draws[..., 0].mean(axis=1).std(ddof=1) / np.sqrt(chains)),
    }
    if scheme.startswith("history"):
        least, error = first_lag(draws[..., 0])
        found |= {"bound": 1 / (least * sweeps), "bound_error": error / (least**2 * sweeps)}
    return few_chains(fit, found)


def first_lag(values: FloatArray) -> tuple[float, float]:
    """Return what an autocorrelation time is at least, with a standard error.

    Of a reversible chain with the autocorrelation rho of neighbours, tau is at least
    (1 + rho) / (1 - rho), as the time is the mean of a convex function of the chain's eigenvalues
    whose mean is rho (Jensen).  It needs much shorter runs than tau.  With e the mean squared step
    and v the variance it is 4 v / e - 1; the error is that of e and v between chains.

    Parameters
    ----------
    values
        Shape (chains, draws), of independent chains in equilibrium.
    """
    steps = np.square(np.diff(values, axis=1)).mean(axis=1)
    spread = np.square(values - values.mean()).mean(axis=1)
    step, variance = float(steps.mean()), float(spread.mean())
    if step == 0:
        return np.inf, np.nan
    relative = spread / variance - steps / step
    error = 4 * variance / step * float(relative.std(ddof=1)) / np.sqrt(len(values))
    return 4 * variance / step - 1, error


LATTICE = python_method(METHOD, sample_lattice)
