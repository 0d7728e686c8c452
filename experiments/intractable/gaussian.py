"""The precision of a Gaussian, whose constant is pretended unknown (Murray 2007, section 5.6).

One observation y = 1 of N(0, 1 / theta) and a prior Gamma(1, 1) give the posterior Gamma(1.5, 1.5).
Bridges draw exactly from their intermediate Gaussians.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from harness.arrays import FloatArray
from harness.fit import Fit
from harness.folders import shipped
from harness.forms.method import python_method
from harness.intractable import (
    IntractableProblem,
    Proposal,
    Walk,
    exchange,
    metropolis,
)
from harness.intractable.auxiliary import METHOD as AUXILIARY
from harness.intractable.auxiliary import AuxiliaryVariables
from harness.intractable.bridging import Bridge
from harness.intractable.run import sampled
from harness.model import Model

METHOD = "unknown_precision"
SHAPE = RATE = 1.5
"""Of the posterior, a Gamma density."""
WIDTH = 0.1
"""Of the walk of Figure 5.10c."""
_KEPT = 4


def model() -> Model:
    """Return the observation."""
    folder = shipped("experiments") / "intractable"
    return Model("gaussian-precision", folder, {"y": np.ones(1)}, ("theta",), 1)


def problem(y: FloatArray) -> IntractableProblem:
    """Return f(y; theta) = exp(-theta sum y^2 / 2) with the prior Gamma(1, 1)."""
    return IntractableProblem(
        "gaussian-precision",
        y,
        1,
        log_prior=lambda theta: np.where(theta[:, 0] > 0, -theta[:, 0], -np.inf),
        log_factor=lambda theta, data: -0.5 * theta[:, 0] * np.square(data).sum(axis=1),
        simulate=lambda theta, rng: rng.standard_normal((len(theta), len(y))) / np.sqrt(theta),
        data={"y": y},
    )


def between(
    data: FloatArray, start: FloatArray, end: FloatArray, share: float, rng: np.random.Generator
) -> FloatArray:
    """Draw exactly from the density between two precisions."""
    precision = (1 - share) * start + share * end
    return rng.standard_normal(data.shape) / np.sqrt(precision)


def log_constant(theta: FloatArray) -> FloatArray:
    """Return log Z(theta) of one observation, up to a constant."""
    return -0.5 * np.log(theta[:, 0])


@dataclass(frozen=True)
class FromPosterior:
    """Proposals that are exact draws of the posterior, as in Figures 5.10a and b."""

    def __call__(
        self, points: FloatArray, rng: np.random.Generator
    ) -> tuple[FloatArray, FloatArray]:
        """See :class:`harness.intractable.Proposal`."""
        proposed = rng.gamma(SHAPE, 1 / RATE, size=points.shape)
        there, here = ((SHAPE - 1) * np.log(at) - RATE * at for at in (proposed, points))
        return proposed, (here - there)[:, 0]


@dataclass(frozen=True)
class FromEquilibrium(AuxiliaryVariables):
    """MAVM whose auxiliary data begin in their stationary law.

    With a poor estimate a chain sits for very long on data with a large product, which a start
    elsewhere would not see.  As :func:`between` forgets its data, x_k is a draw of the density at
    level k + 1, and x_K one of the estimate's.
    """

    def start(
        self, problem: IntractableProblem, points: FloatArray, rng: np.random.Generator
    ) -> FloatArray:
        """See :class:`harness.intractable.run.Correction`."""
        end = np.broadcast_to(self.estimate, points.shape)
        share, total = 1 / (self.bridge.levels + 1), np.zeros(len(points))
        for k in range(self.bridge.levels + 1):
            data = between(np.empty_like(points), points, end, (k + 1) * share, rng)
            total += share * (problem.likelihood(end, data) - problem.likelihood(points, data))
        return total


def sample_precision(
    model: Model,
    *,
    scheme: str,
    levels: int,
    estimate: float,
    local: bool,
    walkers: int,
    iterations: int,
    seed: int,
) -> Fit:
    """Run many short chains from the posterior and return a few of them with what all found.

    Parameters
    ----------
    scheme
        ``exchange``, ``MAVM`` or ``exact``.
    levels
        Bridges, K.
    estimate
        MAVM's fixed estimate of theta.
    local
        Whether proposals are a walk instead of draws of the posterior.
    walkers, iterations
        Number of chains, and their iterations after half as many without record.

    Returns
    -------
    Fit
        Attributes ``acceptance`` and ``acceptance_error``, the mean of min(1, a) and its standard
        error from the differences between chains; ``mean`` and ``mean_error``, E[theta].
    """
    target = problem(np.asarray(model.data["y"]))
    proposal: Proposal = Walk(WIDTH) if local else FromPosterior()
    starts = np.random.default_rng([seed, 1]).gamma(SHAPE, 1 / RATE, size=(walkers, 1))
    common: dict[str, Any] = {
        "proposal": proposal, "draws": iterations, "chains": walkers, "seed": seed,
        "warmup": iterations // 2, "adapt": False,
    }  # fmt: skip
    if scheme == "exchange":
        fit = exchange(target, starts, **common, bridges=levels, transition=between)
    elif scheme == "MAVM":
        correction = FromEquilibrium(np.array([estimate]), Bridge(levels, between))
        settings = {"bridges": levels, "estimate": estimate}
        fit = sampled(AUXILIARY, target, correction, starts, **common, thin=1, settings=settings)
    else:
        fit = metropolis(target, starts, log_constant=log_constant, **common)
    found: dict[str, float] = {}
    for name, values in (
        ("acceptance", fit.sample_stats["acceptance_rate"]),
        ("mean", fit.posterior["theta"][..., 0]),
    ):
        each = values.transpose("chain", "draw").to_numpy().mean(axis=1)
        found |= {name: float(each.mean())}
        found |= {f"{name}_error": float(each.std(ddof=1) / np.sqrt(walkers))}
    return few_chains(fit, found)


def few_chains(fit: Fit, found: dict[str, float]) -> Fit:
    """Return the first chains of a fit, with the cost of all and what all of them found."""
    tree = fit.tree.isel(chain=slice(0, _KEPT), missing_dims="ignore")
    tree.attrs = fit.tree.attrs | found
    for name in ("gradients_warmup", "gradients_sampling", "seconds_warmup", "seconds_sampling"):
        whole = np.asarray(tree.attrs[name])
        tree.attrs[name] = np.full(_KEPT, whole.sum() / _KEPT)
    return Fit(tree)


PRECISION = python_method(METHOD, sample_precision)
