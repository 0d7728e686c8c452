"""Measure a sampler of one's own against the suite: a function of a batched density."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Protocol

import numpy.typing as npt
import pandas as pd

from harness.arrays import FloatArray
from harness.engine.batched import BatchedDensity
from harness.errors import DataError, HarnessError
from harness.evidence import LogEvidence
from harness.model import Model
from harness.models.hard import TARGETS
from harness.temper import tempered_model

from .grid import what_of
from .measure import measured
from .right import NO_ANSWER, OUTCOMES
from .sampled import Sampled, fit_of


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
    fit = fit_of(made, model, density, counted.evaluations, seconds, seed)
    numbers = measured(model, fit)
    words = OUTCOMES[int(numbers["outcome"])]
    return numbers | {"outcome": words, "said": made.problem, "seconds": seconds}
