"""Errors of one fit against the exact answers, after growing shares of its draws."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.fit import Fit, chains_of
from harness.fit.tempered import PSEUDO_SAMPLE
from harness.model import Truth
from harness.path import GaussianBase
from harness.plan.spec import Cell

SHARES = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)
"""Shares of the draws after which errors are taken."""

ERRORS = {
    "log_z": "log Z",
    "mean": "E[x]",
    "second": "E[xx′]",
    "covariance": "cov[x]",
}
"""What is estimated; an error of several numbers is their root mean square."""

_PARTICLES = ("annealed_importance", "sequential_monte_carlo")
"""Methods whose draws are particles of one pass, not iterations.

Those of annealed importance sampling are independent, so that a share of them is a shorter run; of
the pass that tunes its step sizes the same share is counted, as if fewer chains had tuned them,
which favours it.  In the continuous-tempering half its runs differ in their ladders instead.
"""


@dataclass(frozen=True)
class Cost:
    """What a run took up to a share of its draws.

    Attributes
    ----------
    gradients
        Gradients of the target: a pseudo-extended one takes N.
    seconds
        Seconds of all chains together, pilot and warm-up included; of the processor if the run has
        counted them.
    """

    gradients: float
    seconds: float


def measure(cell: Cell, fit: Fit) -> dict[str, float]:
    """Errors and costs by name, those after share k of the draws with the suffix ``_k``.

    ``log_z``, ``mean``, ``second``, ``covariance`` are absolute errors, root mean squares over
    entries; ``base_...`` the base's own; ``variance`` is Var[x] averaged over coordinates;
    ``work`` and ``seconds`` what it took.  What a method does not estimate is left out.
    """
    truth = cell.model.truth
    found = {"variance": float(np.diag(true_covariance(truth)).mean())}
    base = cell.settings.get("base")
    if base is not None:
        found |= {f"base_{name}": error for name, error in base_errors(base, truth).items()}
    for share in _shares(cell, fit.tree.attrs["method"]):
        suffix = "" if share == 1 else f"_{SHARES.index(share)}"
        cost = cost_of(fit, share)
        part = fit.first_draws(max(1, round(share * fit.posterior.sizes["draw"])))
        if not _has_weight(part):
            continue
        errors = moment_errors(*moments(part), truth)
        log_z = log_z_of(part) if share == 1 or "log_evidence" not in fit.tree.attrs else None
        if log_z is not None:
            errors["log_z"] = abs(log_z - truth.log_evidence.value)
        found |= {f"{name}{suffix}": error for name, error in errors.items()}
        found |= {f"work{suffix}": cost.gradients, f"time{suffix}": cost.seconds}
    if "diverging" in fit.sample_stats:
        found["divergences"] = float(fit.sample_stats["diverging"].sum())
    return found


def pooled_as_plotted(cell: Cell, fit: Fit) -> list[dict[str, float]]:
    """Errors of the authors' pooled chains for each replication of a batch, as ``pooled_...``.

    Their loop over replications r takes chains r to 10 (r + 1) of the batch, so that it pools
    10 + 9 r chains that other replications share.  Costs are those of 10.  Particles of annealing
    they divide properly, so there is nothing here for those.
    """
    if fit.tree.attrs["method"] in _PARTICLES:
        return [{} for _ in range(cell.batch)]
    chains = fit.posterior.sizes["chain"] // cell.batch
    found = []
    for replication in range(cell.batch):
        pooled = chains_of(fit, slice(replication, chains * (replication + 1)))
        found.append(
            {
                f"pooled_{name}": value
                for name, value in measure(cell, pooled).items()
                if name.partition("_")[0] in ("log", "mean", "covariance")
            }
        )
    return found


def _shares(cell: Cell, method: str) -> tuple[float, ...]:
    independent = method == _PARTICLES[0] and str(cell.factors.get("half")).startswith("PE")
    return SHARES if independent or method not in _PARTICLES else SHARES[-1:]


def base_errors(base: GaussianBase, truth: Truth) -> dict[str, float]:
    """Errors of a base's own moments and of its guess at log Z."""
    second = base.covariance + np.outer(base.mean, base.mean)
    return {
        "log_z": abs(base.log_zeta - truth.log_evidence.value),
        **moment_errors(base.mean, second, truth),
    }


def true_covariance(truth: Truth) -> FloatArray:
    """Covariance of x, shape (d, d)."""
    mean = truth.expected("x")
    covariance: FloatArray = truth.expected("x_outer") - np.outer(mean, mean)
    return covariance


def moment_errors(mean: FloatArray, second: FloatArray, truth: Truth) -> dict[str, float]:
    """Root mean square errors over coordinates of E[x], and over entries of E[xx'] and cov[x]."""
    covariance = second - np.outer(mean, mean)
    return {
        "mean": _rms(mean - truth.expected("x")),
        "second": _rms(second - truth.expected("x_outer")),
        "covariance": _rms(covariance - true_covariance(truth)),
    }


def moments(fit: Fit) -> tuple[FloatArray, FloatArray]:
    """Estimate E[x] and E[xx'] as :meth:`harness.fit.Fit.expectation` does, without errors."""
    extended = fit.extended
    points = fit.posterior["x"] if extended is None else extended["x"]
    axes = ["chain", "draw", *([PSEUDO_SAMPLE] if PSEUDO_SAMPLE in points.dims else [])]
    array = points.transpose(*axes, ...).to_numpy()
    flat = array.reshape(-1, array.shape[-1])
    weight = _weights(fit.log_weight)
    mean: FloatArray = weight @ flat
    return mean, (flat * weight[:, None]).T @ flat


def _has_weight(fit: Fit) -> bool:
    """Whether any draw counts: an extended Hamiltonian's first may all be off the plateau."""
    return bool(np.any(np.isfinite(fit.log_weight)))


def _weights(log_weight: FloatArray) -> FloatArray:
    """Weights that add up to one, flat: pseudo-samples' compare within each draw only."""
    if log_weight.ndim == 3:
        within: FloatArray = np.exp(log_weight - log_weight.max(axis=-1, keepdims=True))
        within = within / within.sum(axis=-1, keepdims=True)
        return np.asarray(within.ravel() / np.prod(log_weight.shape[:2]))
    weight = np.exp(log_weight.ravel() - log_weight.max())
    return np.asarray(weight / weight.sum())


def log_z_of(fit: Fit) -> float | None:
    """Log Z of a fit, or None if its draws follow no path from a normalised base."""
    try:
        return float(fit.log_evidence.value)
    except DataError:
        return None


def cost_of(fit: Fit, share: float) -> Cost:
    """What a run took up to a share of its draws.

    Iterations of Python-driven samplers are alike, and their cost counts as sampling: of it
    (warm-up + share draws) / (warm-up + draws) is taken.
    """
    settings = {"warmup": 0, "pilots": 0, "pilot_draws": 0} | fit.settings
    before = float(settings["warmup"] + settings["pilots"] * settings["pilot_draws"])
    draws = float(settings.get("draws", fit.posterior.sizes["draw"]))
    part = (before + share * draws) / (before + draws)

    def total(kind: str, factor: int) -> float:
        pilot, warmup, sampling = (
            float(np.sum(fit.tree.attrs.get(f"{kind}_{phase}", 0)))
            for phase in ("pilot", "warmup", "sampling")
        )
        return pilot + factor * (warmup + part * sampling)

    processor = fit.tree.attrs.get("seconds_processor")
    seconds = total("seconds", 1) if processor is None else part * float(np.sum(processor))
    return Cost(total("gradients", fit.pseudo_samples), seconds)


def _rms(errors: FloatArray) -> float:
    return float(np.sqrt(np.mean(np.square(errors))))
