"""Measure a sampler of one's own against the suite: a function of a batched density."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pandas as pd

from harness.arrays import FloatArray
from harness.diagnosis import Finding, Severity, remember
from harness.engine.batched import BatchedDensity
from harness.errors import DataError, HarnessError
from harness.evidence import LogEvidence
from harness.fit import Fit, build_fit, evidence_attributes
from harness.model import Model
from harness.models.hard import TARGETS
from harness.temper import tempered_model

from .grid import what_of
from .measure import measured
from .right import NO_ANSWER, OUTCOMES


class CountedDensity:
    """Log density and gradient of a target at many points, counted.

    Attributes
    ----------
    dimension
        Number D of unconstrained parameters.
    evaluations
        Points at which it was evaluated.
    """

    def __init__(self, density: BatchedDensity) -> None:
        self._density = density
        self.dimension = density.dimension
        self.evaluations = 0

    def __call__(self, points: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Return log densities (n,) and gradients (n, D) at points (n, D).

        Raises
        ------
        DataError
            If the points have another shape.
        """
        value, gradient = self._density(points)
        self.evaluations += len(value)
        return value, gradient


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


class Sampler(Protocol):
    """A sampler: draws of a density, which it evaluates at many points in one call."""

    def __call__(self, density: CountedDensity, *, seed: int) -> Sampled:
        """Return draws, and what else the sampler says."""


def measure_sampler(
    sampler: Sampler | Callable[..., Sampled],
    *,
    targets: Iterable[str] | None = None,
    seeds: Iterable[int] = range(5),
) -> pd.DataFrame:
    """Run a sampler on targets of the suite and measure it as the benchmark does.

    Parameters
    ----------
    sampler
        The sampler; see :class:`Sampler`.  The density lives on Stan's unconstrained space, with
        the Jacobian and all constants.
    targets
        Names, by default all of :data:`harness.models.hard.TARGETS`.
    seeds
        Seeds of the runs on each target.

    Returns
    -------
    DataFrame
        A row for each run: ``target``, ``seed``, ``outcome`` in words, ``seconds`` of processor
        time, ``evaluations``, and what :func:`experiments.hard.measure.measured` returns.  Of a
        run that ended with a HarnessError there is only the outcome, ``no answer``.

    Raises
    ------
    DataError
        If there is no target of a name, or draws have another shape or are not finite.
    """
    rows: list[dict[str, object]] = []
    chosen = tuple(seeds)
    for name in TARGETS if targets is None else targets:
        if name not in TARGETS:
            raise DataError(f"there is no target '{name}'; there are: {', '.join(TARGETS)}")
        model = TARGETS[name]()
        # The program with all constants, also those that ~ leaves out.
        path = model.program("target").path
        written = tempered_model(path, model.data, what=what_of(model))
        density = BatchedDensity(written.program("target"), written.data)
        constant = written.log_prior_integral or 0.0
        for seed in chosen:
            found = _run(sampler, model, density, constant, seed)
            rows.append({"target": name, "seed": seed} | found)
    return pd.DataFrame(rows)


def _run(
    sampler: Callable[..., Sampled],
    model: Model,
    density: BatchedDensity,
    constant: float,
    seed: int,
) -> dict[str, object]:
    counted = CountedDensity(density)
    began = time.process_time()
    try:
        made = sampler(counted, seed=seed)
    except HarnessError as error:
        return {"outcome": NO_ANSWER, "said": str(error)}
    if made.log_evidence is not None:
        # Of a prior that is written without its constant, as half-normal ones are.
        made = replace(made, log_evidence=made.log_evidence.minus(LogEvidence(constant, 0.0)))
    seconds = time.process_time() - began
    fit = _fit(made, model, density, counted.evaluations, seconds, seed)
    numbers = measured(model, fit)
    words = OUTCOMES[int(numbers["outcome"])]
    return numbers | {"outcome": words, "said": made.problem, "seconds": seconds}


def _fit(
    made: Sampled,
    model: Model,
    density: BatchedDensity,
    evaluations: int,
    seconds: float,
    seed: int,
) -> Fit:
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
            "method": "own_sampler",
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
