"""Tempered runs from one of Stan's own approximations, and the bootstrap from run to run.

The base is made first, of the run's own seed, and is part of the run's cost.  Then the tempered
form runs from it; of a bootstrap once more, or until the bases have come to rest, each time from
the moments and the log Z that the run before has found (Graham and Storkey 2017, section 7.3).
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
from harness.forms.continuous_tempering import CollapsedTempering, ContinuousTempering
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

Approximation = Literal["mean_field", "full_rank", "pathfinder", "laplace"]
"""What the first base is: ADVI of one of two kinds, Pathfinder or Laplace."""

# Of Stan's ADVI at its defaults: five step sizes are tried before, by as many iterations each.
_STEP_SIZES_TRIED, _ITERATIONS_OF_EACH = 5, 50
# A tenth of Stan's own: at that a fit of a hierarchical model now and then ends tens of nats
# below its best, and a tempered run from such a base does not reach the target.
_TOLERANCE = 0.001
# One run in ten of the radon regression ends thousands of nats below the others, or with no step
# size that it can use.
_ADVI_RUNS = 3
# A base is at rest when two in succession differ by this many times what chance makes of them.
_AT_REST = 4.0


@dataclass(frozen=True)
class Bootstrap:
    """How often the base is made anew, and the runs that it is made from.

    Attributes
    ----------
    most_steps
        Steps after which the bootstrap ends, at rest or not.
    nuts
        Settings of every run but the last.
    until_rest
        Whether it ends as soon as two bases in succession differ by no more than four
        times what two from as many effective draws do by chance; else every step is taken.

    Raises
    ------
    DataError
        If the steps are fewer than 0.
    """

    most_steps: int = 1
    nuts: NutsSettings = field(default_factory=NutsSettings)
    until_rest: bool = False

    def __post_init__(self) -> None:
        if self.most_steps < 0:
            raise DataError(f"a bootstrap takes no fewer than 0 steps; got {self.most_steps}")


@dataclass(frozen=True)
class ApproximateBase:
    """A base, what it cost, and ADVI's account of the way to it.

    Attributes
    ----------
    base
        The base.
    gradients
        Gradient evaluations of the target; 0 of Pathfinder and Laplace, which do not tell.
    seconds
        Wall time.
    trace
        Iterations at which ADVI evaluated its bound and the values there, shape (2, n); n = 0
        of the others.
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

    ADVI runs three times, since now and then a run of it ends far below its best, and the fit
    with the greatest bound is taken.

    Parameters
    ----------
    model
        Target density with its data.
    approximation
        Which.
    seed
        Seed.
    compiled
        The model's compiled ``target.stan``, if it is at hand.

    Raises
    ------
    DataError
        If there is no such approximation, or its draws make no Gaussian.
    SamplingError
        If Stan does not finish.  ADVI fails only if all three of its runs do.
    """
    compiled = compiled or compiled_variant(model, "target")
    started = time.perf_counter()
    trace, gradients = np.empty((2, 0)), 0
    if approximation in ("mean_field", "full_rank"):
        fits = _advi_runs(model, approximation, seed, compiled)
        # All bounds are below log Z, so that the greatest is of the best fit.
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
    """Runs of ADVI that came to an end; what they return is never empty."""
    fits: list[Advi] = []
    failure: HarnessError | None = None
    for own in np.random.SeedSequence([seed, 4]).generate_state(_ADVI_RUNS):
        try:
            fits.append(
                advi(
                    model,
                    full_rank=approximation == "full_rank",
                    tolerance=_TOLERANCE,
                    seed=int(own),
                    compiled=compiled,
                )
            )
        except (SamplingError, DataError) as error:  # no end, or one that is no Gaussian
            failure = error
    if failure is not None and not fits:
        raise failure
    return fits


@dataclass(frozen=True)
class FromApproximation:
    """The path from a base by one of Stan's approximations; chains start at draws of the base.

    A fit's ``gradients_pilot`` and ``seconds_pilot`` have the cost of all that came before the last
    run.  Attributes: ``approximation_log_zeta``, the first base's guess at log Z, which is ADVI's
    bound; ``approximation_seconds``; ``elbo_iteration`` and ``elbo`` of ADVI; and of each step of a
    bootstrap ``bootstrap_log_zeta``, the new base's guess, ``bootstrap_seconds``, and
    ``bootstrap_divergence`` from the base before, in units of what chance makes of two such bases.

    Attributes
    ----------
    approximation
        What the first base is made by, which takes CmdStan.
    bootstrap
        Runs before the last one, each of which makes the next one's base; none if not given.
    base_metric
        Whether NUTS keeps the base's covariance as inverse metric and adapts its step size alone;
        of the collapsed form, and of a bootstrap the last run alone.
    """

    approximation: Approximation = "mean_field"
    bootstrap: Bootstrap | None = None
    base_metric: bool = False

    def find(self, model: Model, form: Form, run: Run) -> Found:
        """Make the base; the approximation and every run use streams of their own.

        Raises
        ------
        DataError
            If a setting does not make sense for the model or the form.
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
                "base_metric is for a collapsed run of unbounded parameters, which NUTS moves in "
                "the base's own coordinates: leave it out"
            )
        if run.compiled is None and run.engine != "stanli":
            run = replace(run, compiled=compiled_variant(model, form.program))
        seeds = (int(s) for s in np.random.SeedSequence([run.seed, 2]).generate_state(99))
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
    """Return the path from a base and a run that starts at its draws; count what that takes."""
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
    """Initial values of each chain, a draw of the base; the sampler chooses the temperature's.

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
        If no draw in a hundred lies within the model's bounds.
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
    """Divergence of two bases each from as many independent draws as the fit is worth.

    D (D + 3) / n for two Gaussians fitted to the same target by n draws each; see
    :func:`harness.path.symmetrised_divergence`.
    """
    worth = [np.ravel(fit.effective_draws(itemgetter(name))) for name in model.parameters]
    return model.dimension * (model.dimension + 3) / float(np.nanmean(np.concatenate(worth)))


_METHOD = partial(form_method, path=FromApproximation, suffix="_from_approximation")

CONTINUOUS_TEMPERING_FROM_APPROXIMATION = _METHOD(ContinuousTempering)
COLLAPSED_TEMPERING_FROM_APPROXIMATION = _METHOD(CollapsedTempering)
