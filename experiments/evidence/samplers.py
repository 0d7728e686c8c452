"""Runs of nested sampling and annealing on a target's batched Stan density, as fits."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray
from harness.evidence import LogEvidence, log_mean_weight
from harness.fit import Fit
from harness.forms.method import python_method
from harness.model import Model
from harness.model.python_target import target_of
from harness.path.gaussian import GaussianBase
from harness.samplers.geometric_path import GeometricPath
from harness.samplers.nested_particles import PriorAndLikelihood
from harness.samplers.nested_volumes import Removed
from harness.samplers.result import plain_fit

from .annealed import Anneal, annealed_runs, weighted_shares
from .nested import Nest, log_evidence_of, nested_runs, shares_of
from .targets import EVENTS, Events

_KEPT = 500
"""Draws of a run that its fit keeps."""


class _Prior:
    """A base with independent coordinates about zero, as those here have."""

    def __init__(self, precision: FloatArray) -> None:
        self._precision = precision
        self._highest = float(0.5 * np.log(precision / (2 * np.pi)).sum())

    def __call__(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        return self.values(points), -self._precision * points

    def values(self, points: FloatArray) -> FloatArray:
        return self._highest - 0.5 * (np.square(points) @ self._precision)


class _Target:
    """A target, its base, and the two as prior and likelihood."""

    def __init__(self, model: Model, base: GaussianBase) -> None:
        self.path = GeometricPath(target_of(model), base)
        self.base = base
        self._prior = _Prior(np.diag(base.covariance) ** -1.0)
        self.space = self.fresh()

    def fresh(self) -> PriorAndLikelihood:
        """Return prior and likelihood with a count of their own."""
        return PriorAndLikelihood(self._prior, self.path.target.log_density)

    def draws(self, rng: np.random.Generator, *shape: int) -> FloatArray:
        """Draw from the base, shape (*shape, D)."""
        return self.base.sample(rng, int(np.prod(shape))).reshape(*shape, -1)


def sample_nested(
    model: Model,
    *,
    base: GaussianBase,
    nest: Nest,
    runs: int = 1,
    events: Events | None = None,
    seed: int,
) -> Fit:
    """Run nested sampling as Murray (2007) does, several times side by side.

    Parameters
    ----------
    model, base
        Target and prior, the latter with independent coordinates about zero.
    nest
        Particles and steps.
    runs
        Independent runs.
    events
        What tells the target's modes apart.
    seed
        Seed; the same seed gives the same fit.

    Returns
    -------
    Fit
        Each run is a chain.  Attributes, of each run, shape (R,): ``run_log_z``, its error
        ``run_error``, and ``run_evaluations`` of the likelihood; ``shares`` and ``share_errors``
        of the events, from volumes alone, shape (R M,).
    """
    rng = np.random.default_rng([seed, 1])
    target = _Target(model, base)
    removed, part = nested_runs(target.space, target.draws(rng, runs, nest.particles), nest, rng)
    answers = [log_evidence_of(run, rng) for run in removed]
    points = np.stack(
        [
            run.particles.points[_chosen(weight, rng)]
            for run, (_, _, weight) in zip(removed, answers, strict=True)
        ]
    )
    found: dict[str, Any] = {}
    if events is not None:
        shares = [shares_of(run, EVENTS[events](run.particles.points), rng) for run in removed]
        found = _shares(np.stack(shares))
    return _fit(
        "nested_by_sweeps",
        target,
        points,
        np.array([answer[:2] for answer in answers]),
        target.space.evaluations * part,
        {"nest": [nest.particles, nest.steps], "runs": runs},
        found,
        seed,
    )


def sample_annealed(
    model: Model,
    *,
    base: GaussianBase,
    anneal: Anneal,
    runs: int = 1,
    events: Events | None = None,
    seed: int,
) -> Fit:
    """Run annealed importance sampling as Murray (2007) does, several times side by side.

    Parameters
    ----------
    model, base, runs, events, seed
        The same as for :func:`sample_nested`.
    anneal
        Chains and schedule; the runs share one schedule.

    Returns
    -------
    Fit
        As that of :func:`sample_nested`; ``ends`` are the shares of chains that end in each event,
        whatever their weights, and ``rungs`` is K.  The evaluations leave out those of the nested
        run that made the schedule, ``schedule_evaluations``.  The error of a single chain is NaN.
    """
    rng = np.random.default_rng([seed, 1])
    target = _Target(model, base)
    nested, spent = None, 0
    if anneal.schedule == "nest":
        nested, spent = _schedule_run(target, anneal.particles, rng)
    ladder = anneal.ladder(nested)
    count = anneal.repeats * anneal.chains
    end, log_weight = annealed_runs(
        target.space, target.draws(rng, runs * count), ladder, anneal.chains, rng
    )
    by_run = log_weight.reshape(runs, count)
    points = end.points.reshape(runs, count, -1)
    found: dict[str, Any] = {"rungs": len(ladder) - 2, "schedule_evaluations": spent}
    if events is not None:
        inside = EVENTS[events](points)
        pairs = zip(inside, by_run, strict=True)
        found |= _shares(np.stack([weighted_shares(*pair) for pair in pairs]))
        found["ends"] = inside.mean(axis=1).ravel()
    return _fit(
        "annealed_by_sweeps",
        target,
        np.stack([run[_chosen(w, rng)] for run, w in zip(points, by_run, strict=True)]),
        np.array([log_mean_weight(weight) for weight in by_run]),
        np.full(runs, target.space.evaluations / runs),
        {"anneal": repr(anneal), "runs": runs},
        found,
        seed,
    )


def _schedule_run(target: _Target, particles: int, rng: np.random.Generator) -> tuple[Removed, int]:
    """Run nested sampling with one step, for a schedule; return it and its evaluations."""
    space = target.fresh()
    removed, _ = nested_runs(space, target.draws(rng, 1, particles), Nest(particles), rng)
    return removed[0], space.evaluations


def _chosen(log_weight: FloatArray, rng: np.random.Generator) -> npt.NDArray[np.intp]:
    """Choose rows with probabilities in proportion to their weights."""
    weight = np.exp(log_weight - log_weight.max())
    return rng.choice(len(weight), _KEPT, p=weight / weight.sum())


def _shares(shares: FloatArray) -> dict[str, FloatArray]:
    """Return attributes of probabilities and errors (R, 2, M)."""
    return {"shares": shares[:, 0].ravel(), "share_errors": shares[:, 1].ravel()}


def _fit(
    method: str,
    target: _Target,
    points: FloatArray,
    answers: FloatArray,
    evaluations: FloatArray,
    settings: dict[str, Any],
    found: dict[str, Any],
    seed: int,
) -> Fit:
    target.path.cost.gradients = int(evaluations.sum())
    # Of all runs together: the mean, whose error is their spread's if there are several.
    runs = len(answers)
    spread = answers[:, 0].std(ddof=1) / np.sqrt(runs) if runs > 1 else answers[0, 1]
    return plain_fit(
        method,
        target.path,
        points,
        settings=settings,
        seed=seed,
        log_evidence=LogEvidence(float(answers[:, 0].mean()), float(spread)),
        found={
            "run_log_z": answers[:, 0],
            "run_error": answers[:, 1],
            "run_evaluations": evaluations,
            **found,
        },
    )


NESTED_BY_SWEEPS = python_method("nested_by_sweeps", sample_nested)
ANNEALED_BY_SWEEPS = python_method("annealed_by_sweeps", sample_annealed)
