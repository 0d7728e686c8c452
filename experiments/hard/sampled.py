"""What a sampler that knows nothing of our fits returns, and the fit that is made of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.metadata import version

import numpy as np

from harness.arrays import FloatArray
from harness.diagnosis import Finding, Severity, remember
from harness.engine.batched import BatchedDensity
from harness.errors import DataError
from harness.evidence import LogEvidence
from harness.fit import Fit, build_fit, evidence_attributes
from harness.model import Model

_CHAINS = 4
_LEAST_DRAWS, _MOST_DRAWS = 4, 4000
"""Of each chain, where weighted points become draws."""


@dataclass(frozen=True)
class Sampled:
    """What a sampler returns.

    Attributes
    ----------
    points
        Draws on the unconstrained space, shape (chains, draws, D).
    log_evidence
        Log of the integral of the density, with its standard error; None if it has no estimate.
    problem
        What the sampler says is wrong; empty if nothing.
    """

    points: FloatArray
    log_evidence: LogEvidence | None = None
    problem: str = ""


def parameters_of(
    density: BatchedDensity, names: Iterable[str]
) -> Callable[[FloatArray], dict[str, FloatArray]]:
    """Return the map from points (..., D) to a program's parameters, each (..., *shape)."""
    chosen = tuple(names)

    def parameters(points: FloatArray) -> dict[str, FloatArray]:
        flat = density.constrain(points.reshape(-1, points.shape[-1]))
        return {
            name: flat[name].reshape(*points.shape[:-1], *flat[name].shape[1:]) for name in chosen
        }

    return parameters


def resampled(points: FloatArray, share: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return draws (4, n, D) with replacement, as many as weighted points (N, D) are worth.

    Parameters
    ----------
    points
        The points.
    share
        Their weights, shape (N,); they sum to 1.
    rng
        Source of random numbers.
    """
    effective = 1 / float(np.sum(share**2))
    draws = int(np.clip(effective // _CHAINS, _LEAST_DRAWS, _MOST_DRAWS))
    chosen = rng.choice(len(share), size=(_CHAINS, draws), p=share)
    return np.asarray(points[chosen])


def fit_of(
    made: Sampled,
    model: Model,
    density: BatchedDensity,
    evaluations: int,
    seconds: float,
    seed: int,
    method: str = "own_sampler",
) -> Fit:
    """Return a fit of what a sampler returned.

    Parameters
    ----------
    made
        What it returned.
    model
        The target.
    density
        Its density, on the space of the draws.
    evaluations, seconds
        What it spent.
    seed
        Its seed.
    method
        Name of the sampler.

    Raises
    ------
    DataError
        If draws have another shape or are not finite.
    """
    points = np.asarray(made.points, dtype=np.float64)
    if points.ndim != 3 or points.shape[2] != density.dimension:
        raise DataError(
            f"a sampler returns draws of shape (chains, draws, {density.dimension}) of "
            f"{model.name}; got {points.shape}"
        )
    if not np.all(np.isfinite(points)):
        raise DataError(f"a sampler returned draws of {model.name} that are not finite")
    chains = len(points)
    values = density.constrain(points.reshape(-1, density.dimension))
    fit = build_fit(
        posterior={
            name: value.reshape(chains, -1, *value.shape[1:]) for name, value in values.items()
        },
        extended=None,
        sample_stats={"lp": np.zeros(points.shape[:2])},
        constant_data=model.data,
        attrs={
            "method": method,
            "model": model.name,
            "settings": {},
            "seed": seed,
            "gradients_warmup": np.zeros(chains),
            "gradients_sampling": np.full(chains, evaluations / chains),
            "seconds_warmup": np.zeros(chains),
            "seconds_sampling": np.full(chains, seconds / chains),
            "harness_version": version("harness"),
        }
        | evidence_attributes(made.log_evidence),
    )
    if made.problem:
        remember(fit, [Finding(Severity.PROBLEM, made.problem)])
    return fit
