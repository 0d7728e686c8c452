"""Tempered runs that start from one of Stan's own approximations, with or without a bootstrap.

The base is made first, with a seed derived from the run's own, and its cost is part of the run's.
Then the tempered form runs from it.  In a bootstrap it runs again, a given number of times or until
the bases have come to rest.  Each of these runs starts from the moments and the log Z that the run
before has found (Graham and Storkey 2017, section 7.3).
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter, itemgetter
from typing import Any, Literal

import numpy as np

from harness.arrays import FloatArray
from harness.engine.compile import CompiledProgram
from harness.engine.nuts import NutsSettings
from harness.errors import DataError, HarnessError, SamplingError
from harness.fit import Fit
from harness.forms.base_mass import measured_base_mass
from harness.forms.bootstrap import bootstrap_base
from harness.forms.common import Run, compiled_variant
from harness.forms.continuous_tempering import CollapsedTempering, JointTempering
from harness.forms.form import Form, Found, sample
from harness.forms.method import form_method
from harness.model import Model
from harness.model.coordinates import Shapes, unflatten
from harness.model.density import TargetDensity
from harness.model.numpy_density import NumpyDensity, target_density
from harness.path import (
    Advi,
    GaussianBase,
    advi,
    laplace_base,
    pathfinder_base,
    symmetrised_divergence,
)
from harness.path.data import TemperedPath
from harness.seeds import derived_seeds

Approximation = Literal["mean_field", "full_rank", "pathfinder", "laplace"]
"""How the first base is made: by one of two kinds of ADVI, by Pathfinder or by Laplace."""

# At its defaults, Stan's ADVI first tries five step sizes, for this many iterations each.
_STEP_SIZES_TRIED, _ITERATIONS_OF_EACH = 5, 50
# A tenth of Stan's own tolerance.  At Stan's, a fit of a hierarchical model sometimes ends tens of
# nats below its best, and a tempered run from such a base does not reach the target.
_TOLERANCE = 0.001
# One run in ten of the radon regression ends thousands of nats below the others, or finds no usable
# step size.
_ADVI_RUNS = 3
# Bases are at rest if two successive ones differ by at most this many times what chance explains.
_AT_REST = 4.0


@dataclass(frozen=True)
class Bootstrap:
    """How often the base is made anew, and by which runs.

    Attributes
    ----------
    most_steps
        Number of steps after which the bootstrap ends even if the bases have not come to rest.
    nuts
        Settings of every run except the last.
    until_rest
        Whether the bootstrap ends as soon as two successive bases differ by no more than four
        times what chance explains for two bases from as many effective draws.  If not, every step
        is taken.

    Raises
    ------
    DataError
        If the number of steps is negative.
    """

    most_steps: int = 1
    nuts: NutsSettings = field(default_factory=NutsSettings)
    until_rest: bool = False

    def __post_init__(self) -> None:
        if self.most_steps < 0:
            raise DataError(f"a bootstrap takes 0 steps or more; got {self.most_steps}")


@dataclass(frozen=True)
class ApproximateBase:
    """A base, what it cost, and the course of ADVI's optimisation.

    Attributes
    ----------
    base
        The base.
    gradients
        Gradient evaluations of the target; 0 for Pathfinder and Laplace, which do not report them.
    seconds
        Wall time.
    trace
        Iterations at which ADVI evaluated its bound, and the values there, shape (2, n); n = 0
        for the other approximations.
    """

    base: GaussianBase
    gradients: int
    seconds: float
    trace: FloatArray


def approximate(
    model: Model,
    approximation: Approximation,
    *,
    seed: int,
    compiled: CompiledProgram | None = None,
) -> ApproximateBase:
    """Make a base by one of Stan's approximations.

    ADVI is run three times, because a single run sometimes ends far below its best, and the fit
    with the largest bound is used.

    Parameters
    ----------
    model
        Target density with its data.
    approximation
        Which approximation to use.
    seed
        Seed.
    compiled
        The model's compiled ``target.stan``; it is compiled if not given.

    Raises
    ------
    DataError
        If there is no such approximation, or a Gaussian cannot be made from its draws.
    SamplingError
        If Stan does not finish.  ADVI fails only if all three of its runs fail.
    """
    compiled = compiled or compiled_variant(model, "target")
    started = time.perf_counter()
    trace, gradients = np.empty((2, 0)), 0
    if approximation in ("mean_field", "full_rank"):
        fits = _advi_runs(model, approximation, seed, compiled)
        # All bounds are below log Z, so the largest belongs to the best fit.
        best = max(fits, key=attrgetter("base.log_zeta"))
        base, trace = best.base, np.stack([best.iteration, best.elbo])
        gradients = sum(
            int(fit.iteration[-1]) + _STEP_SIZES_TRIED * _ITERATIONS_OF_EACH for fit in fits
        )
    elif approximation == "pathfinder":
        base = pathfinder_base(model, seed=seed, compiled=compiled)
    elif approximation == "laplace":
        base = laplace_base(model, seed=seed, compiled=compiled)
    else:
        raise DataError(
            "a base is approximated by mean_field, full_rank, pathfinder or laplace; got "
            f"'{approximation}'"
        )
    return ApproximateBase(base, gradients, time.perf_counter() - started, trace)


def _advi_runs(
    model: Model, approximation: Approximation, seed: int, compiled: CompiledProgram
) -> list[Advi]:
    """Return the runs of ADVI that finished; there is always at least one."""
    fits: list[Advi] = []
    failure: HarnessError | None = None
    for own in derived_seeds(_ADVI_RUNS, seed, 4):
        try:
            fits.append(
                advi(
                    model,
                    full_rank=approximation == "full_rank",
                    tolerance=_TOLERANCE,
                    seed=own,
                    compiled=compiled,
                )
            )
        except (SamplingError, DataError) as error:  # the run failed, or its draws give no Gaussian
            failure = error
    if failure is not None and not fits:
        raise failure
    return fits


@dataclass(frozen=True)
class FromApproximation:
    """A path from a base that one of Stan's approximations makes; chains start at its draws.

    A fit's ``gradients_pilot`` and ``seconds_pilot`` are the cost of everything before the last
    run.  The fit has these attributes: ``approximation_log_zeta``, the first base's guess at log Z
    (for ADVI its bound), ``approximation_seconds``, and ADVI's ``elbo_iteration`` and ``elbo``.
    For each step of a bootstrap it has ``bootstrap_log_zeta``, the new base's guess,
    ``bootstrap_seconds``, and ``bootstrap_divergence`` from the base before, as a multiple of what
    chance explains for two such bases.

    Attributes
    ----------
    approximation
        How the first base is made; this needs CmdStan.
    bootstrap
        Runs before the last one, each of which makes the base of the next; none if not given.
    base_metric
        Whether NUTS keeps the base's covariance as its inverse metric and adapts only the step
        size.  It is for the collapsed form; in a bootstrap it affects only the last run.
    """

    approximation: Approximation = "mean_field"
    bootstrap: Bootstrap | None = None
    base_metric: bool = False

    def find(self, model: Model, form: Form, run: Run) -> Found:
        """Make the base; the approximation and every run use their own streams.

        Raises
        ------
        DataError
            If a setting makes no sense for the model or the form.
        SamplingError
            If Stan does not finish.
        """
        if form.weighting != "across draws":
            raise DataError(
                f"{form.label} does not start from an approximation: only continuous tempering, "
                "joint or collapsed, does"
            )
        if self.base_metric and (model.bounds or not form.has_ladder):
            raise DataError(
                "base_metric is for a collapsed run of unbounded parameters, where NUTS moves in "
                "the base's own coordinates: leave it out"
            )
        if run.compiled is None and run.engine != "stanli":
            run = replace(run, compiled=compiled_variant(model, form.program))
        seeds = iter(derived_seeds(99, run.seed, 2))
        made = approximate(model, self.approximation, seed=next(seeds))
        density = target_density(model)
        base, gradients, seconds = made.base, made.gradients, made.seconds
        steps: list[tuple[float, float, float]] = []
        bootstrap = self.bootstrap or Bootstrap(0)
        for _ in range(bootstrap.most_steps):
            step = replace(run, nuts=bootstrap.nuts, seed=next(seeds), inv_metric=None)
            ready = _from_base(model, density, base, step)
            fit = sample(model, form, ready.path, ready.run)
            next_base = bootstrap_base(model, fit)
            divergence = symmetrised_divergence(base, next_base) / _chance(model, fit)
            gradients += fit.gradients + ready.attributes["gradients_pilot"]
            spent = fit.seconds + ready.attributes["seconds_pilot"]
            seconds += spent
            steps.append((next_base.log_zeta, spent, divergence))
            base = next_base
            if bootstrap.until_rest and divergence < _AT_REST:
                break
        inv_metric = base.covariance if self.base_metric else None
        last = replace(run, seed=next(seeds), inv_metric=inv_metric)
        ready = _from_base(model, density, base, last)
        names = ("bootstrap_log_zeta", "bootstrap_seconds", "bootstrap_divergence")
        return Found(
            path=ready.path,
            run=ready.run,
            attributes={
                "gradients_pilot": gradients + ready.attributes["gradients_pilot"],
                "seconds_pilot": seconds + ready.attributes["seconds_pilot"],
                "approximation_log_zeta": made.base.log_zeta,
                "approximation_seconds": made.seconds,
                **dict(zip(("elbo_iteration", "elbo"), made.trace, strict=True)),
                **{name: np.array([step[i] for step in steps]) for i, name in enumerate(names)},
            },
            settings={
                "approximation": self.approximation,
                "bootstrap": {
                    "most_steps": bootstrap.most_steps,
                    "until_rest": bootstrap.until_rest,
                    "nuts": bootstrap.nuts.identity(),
                },
                "base_metric": self.base_metric,
            },
        )


def _from_base(
    model: Model, density: NumpyDensity | TargetDensity, base: GaussianBase, run: Run
) -> Found:
    """Return the path from a base and a run that starts at its draws, with the cost of both."""
    measured = measured_base_mass(model, base, density, seed=run.seed)
    starts = draws_as_starts(model, base, density.shapes, chains=run.nuts.chains, seed=run.seed)
    return Found(
        path=TemperedPath(base=base, base_mass=measured.mass),
        run=replace(run, inits=starts),
        attributes={"gradients_pilot": measured.gradients, "seconds_pilot": measured.seconds},
    )


def draws_as_starts(
    model: Model, base: GaussianBase, shapes: Shapes, *, chains: int, seed: int
) -> list[dict[str, Any]]:
    """Draw initial values for each chain from the base; the sampler chooses inverse temperatures.

    Parameters
    ----------
    model, base, shapes
        The model, a base, and the shape of each of the model's parameters.
    chains
        Number of chains.
    seed
        Seed of the draws.

    Raises
    ------
    DataError
        If fewer than one draw in a hundred lie within the model's bounds.
    """
    points = base.sample(np.random.default_rng([seed, 3]), 100 * chains)
    values = unflatten(model, points, shapes)
    inside = np.ones(len(points), dtype=np.bool_)
    for name, (lower, upper) in model.bounds.items():
        value = values[name].reshape(len(points), -1)
        inside &= np.all((value > lower) & (value < upper), axis=1)
    kept = np.flatnonzero(inside)[:chains]
    if len(kept) < chains:
        raise DataError(f"hardly any of the base lies within the bounds of {model.name}")
    return [{name: value[i].tolist() for name, value in values.items()} for i in kept]


def _chance(model: Model, fit: Fit) -> float:
    """Return the divergence that chance explains between two bases, given a fit's effective draws.

    Two Gaussians, each fitted to n draws of the same target, differ by about D (D + 3) / n; see
    :func:`harness.path.symmetrised_divergence`.
    """
    worth = [np.ravel(fit.effective_draws(itemgetter(name))) for name in model.parameters]
    return model.dimension * (model.dimension + 3) / float(np.nanmean(np.concatenate(worth)))


_METHOD = partial(form_method, path=FromApproximation, suffix="_from_approximation")

JOINT_TEMPERING_FROM_APPROXIMATION = _METHOD(JointTempering)
COLLAPSED_TEMPERING_FROM_APPROXIMATION = _METHOD(CollapsedTempering)
