"""Turn draws of a sampler that Python drives into the same kind of fit as a run of Stan's NUTS."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import Any, NamedTuple, Protocol

import numpy as np

from harness import evidence
from harness.arrays import FloatArray
from harness.evidence import LogEvidence
from harness.fit import Fit, build_fit, evidence_attributes, target_draws
from harness.samplers.cost import Cost


class Named(Protocol):
    """What a fit records of a target, such as :class:`harness.model.python_target.Target`."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def data(self) -> Mapping[str, Any]:
        """Its data."""

    @property
    def engine(self) -> str:
        """What evaluates it."""

    @property
    def parameters(self) -> Callable[[FloatArray], Mapping[str, FloatArray]]:
        """Turns coordinates (..., D) into parameters by name, each (..., *shape)."""


class Sampled(Protocol):
    """What was sampled and what that cost, such as a path."""

    @property
    def target(self) -> Named:
        """The target."""

    @property
    def cost(self) -> Cost:
        """Evaluations so far."""


class Spent(NamedTuple):
    """A target, and what sampling it has cost, where no path knows both."""

    target: Named
    cost: Cost


def plain_fit(
    method: str,
    path: Sampled,
    points: FloatArray,
    *,
    settings: Mapping[str, Any],
    seed: int,
    stats: Mapping[str, FloatArray] | None = None,
    log_evidence: LogEvidence | None = None,
    found: Mapping[str, Any] | None = None,
) -> Fit:
    """Return a fit of unweighted draws of the target.

    Parameters
    ----------
    method
        Name of the method.
    path
        The path that was sampled, or a target alone, which also knows what the run cost.
    points
        Draws in base coordinates, shape (chains, draws, D).
    settings
        Everything that the draws depend on, as plain values.
    seed
        Seed of the run.
    stats
        Statistics of the sampler, each (chains, draws).
    log_evidence
        The method's own estimate of log Z, if it has one.
    found
        Other results of the run, for the fit's attributes: numbers, strings and vectors.
    """
    return build_fit(
        posterior={name: np.asarray(v) for name, v in path.target.parameters(points).items()},
        extended=None,
        sample_stats=dict(stats or {"lp": np.zeros(points.shape[:2])}),
        constant_data=path.target.data,
        attrs=_attributes(method, path, points.shape[0], settings, seed)
        | evidence_attributes(log_evidence)
        | dict(found or {}),
    )


def weighted_fit(
    method: str,
    path: Sampled,
    points: FloatArray,
    extended: Mapping[str, FloatArray],
    *,
    settings: Mapping[str, Any],
    seed: int,
    stats: Mapping[str, FloatArray] | None = None,
    log_evidence: LogEvidence | None = None,
    found: Mapping[str, Any] | None = None,
    populations: bool = False,
) -> Fit:
    """Return a fit of draws that their weights turn into draws of the target.

    Parameters
    ----------
    extended
        ``log_w1``, shape (chains, draws).  If the draws follow the path, also ``log_w0``,
        ``inv_temp`` and ``delta``: the fit can then be read like one of continuous tempering, and
        ``settings`` must hold ``log_zeta``, ``log_g``, ``ladder`` and ``normalised_base``.
    populations
        Whether chains are populations of particles, which their weights compare.  Draws are then
        resampled from all chains together instead of chain by chain.
    method, path, points, settings, seed, stats, log_evidence, found
        The same as for :func:`plain_fit`.
    """
    parameters = {name: np.asarray(v) for name, v in path.target.parameters(points).items()}
    rng, log_w1 = np.random.default_rng(seed), extended["log_w1"]
    if populations:
        # In random order, so that every chain of the posterior holds draws of every population.
        pooled = rng.permutation(evidence.resample(log_w1.reshape(1, -1), rng)[0])
        chain, index = np.divmod(pooled.reshape(log_w1.shape), log_w1.shape[1])
        posterior = {name: value[chain, index] for name, value in parameters.items()}
    else:
        posterior = target_draws(parameters, log_w1, "across draws", rng)
    return build_fit(
        posterior=posterior,
        extended={**parameters, **extended},
        sample_stats=dict(stats or {"lp": np.zeros(points.shape[:2])}),
        constant_data=path.target.data,
        attrs=_attributes(method, path, points.shape[0], settings, seed)
        | evidence_attributes(log_evidence)
        | dict(found or {}),
        weighting="across draws",
        pseudo_samples=False,
    )


def pseudo_sample_fit(
    method: str,
    path: Sampled,
    points: FloatArray,
    extended: Mapping[str, FloatArray],
    *,
    settings: Mapping[str, Any],
    seed: int,
    stats: Mapping[str, FloatArray],
    found: Mapping[str, Any] | None = None,
) -> Fit:
    """Return a fit of pseudo-samples, of which one is chosen in each draw.

    Parameters
    ----------
    points
        Pseudo-samples in base coordinates, shape (chains, draws, N, D).
    extended
        ``log_weight``, ``inv_temp`` and ``delta``, each (chains, draws, N).
    method, path, settings, seed, stats, found
        The same as for :func:`plain_fit`; a gradient counts as one of all N pseudo-samples.
    """
    parameters = {
        name: np.moveaxis(np.asarray(value), 2, -1)
        for name, value in path.target.parameters(points).items()
    }
    rng = np.random.default_rng(seed)
    return build_fit(
        posterior=target_draws(parameters, extended["log_weight"], "within draws", rng),
        extended={**parameters, **extended},
        sample_stats=dict(stats),
        constant_data=path.target.data,
        attrs=_attributes(method, path, points.shape[0], settings, seed) | dict(found or {}),
        weighting="within draws",
    )


def _attributes(
    method: str, path: Sampled, chains: int, settings: Mapping[str, Any], seed: int
) -> dict[str, Any]:
    """Return a fit's attributes; the cost of all chains is divided equally among them."""
    share = np.full(chains, 1 / chains)
    return {
        "method": method,
        "engine": path.target.engine,
        "model": path.target.name,
        "program": path.target.name,
        "settings": dict(settings),
        "seed": seed,
        "gradients_warmup": np.zeros(chains),
        "gradients_sampling": share * path.cost.gradients,
        "densities": path.cost.densities,
        "seconds_warmup": np.zeros(chains),
        "seconds_sampling": share * path.cost.seconds,
        "seconds_processor": path.cost.processor_seconds,
        "harness_version": version("harness"),
    }
