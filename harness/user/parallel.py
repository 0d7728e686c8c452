"""Parallel tempering of a user's program: its references, the run, its fit and what to say of it.

One reference is the prior, or a wide Gaussian where there is no prior to draw from.  The other is a
Gaussian that is fitted to short runs of NUTS, and then a mixture of Gaussians that is fitted to the
run's own draws.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.metadata import version
from typing import Any, Literal

import numpy as np

from harness import evidence
from harness.arrays import FloatArray
from harness.diagnosis import R_HAT_PROBLEM, Finding, Severity, remember
from harness.engine.batched import BatchedDensity
from harness.engine.cores import cores
from harness.engine.timed import seconds_a_point
from harness.errors import DataError, SamplingError, one_line
from harness.evidence import NORMALISED, LogEvidence
from harness.fit import SYSTEMS, Fit, build_fit, evidence_attributes
from harness.model import Model
from harness.path.normalisation import divisor, log_factor, written_integral
from harness.samplers.non_reversible import non_reversible_tempering
from harness.samplers.parallel_tempering import METHOD
from harness.samplers.rung_path import Reference
from harness.samplers.tempering_run import Enough, TemperingRun, TemperingSettings
from harness.seeds import derived_seeds
from harness.user.bridged import bridged_in_time
from harness.user.draw_prior import PRIOR_SHARE, DriftingPriorError, prior_draws
from harness.user.evidence import (
    about_drifting_prior,
    about_improper_prior,
    rough_integral,
    unknown_integral,
    written_prior,
)
from harness.user.legs import NEAR, WIDER, fitted_gaussian
from harness.user.prior import PriorDraws, own_base, prior_attributes, starts_from_prior
from harness.user.prior_constant import prior_constant
from harness.user.references import Dealt, drawn_from, fitted_base, reference, refitted_base
from harness.user.short import ShortRuns

References = Literal[1, 2]
"""References that ladders start from: the prior, or the prior and Gaussians near the target."""

_CONSTANT_SHARE = 0.25
"""Share of the time for the integral of a prior that the program does not normalise."""
_SHORT_SHARE = 0.25
"""Share of the time for short runs of NUTS."""
_LEAST_SHARE = 0.5
"""Share of the time for the run itself, whatever its references take."""
_BRIDGE_SHARE = 0.1
"""Share of the time for a bridge from its draws."""
_HALF = 0.5
"""Share of the draws that were asked for, from which on it is enough that they suffice."""
_SYSTEMS = (4, 2)
_LONG_CALL, _USUAL_RUNGS = 800e-6, 30
"""Seconds of a call of the density for replicas at so many rungs, up to which there are several
systems of them: what Python does around a call takes 200 microseconds and more."""
_ROWS_TIMED, _TIMES_TIMED = 256, 3
_GAP_ERRORS, _GAP_MATTERS = 4.0, 0.3
"""Standard errors, and nats, by which two ladders' estimates of log Z differ if one is wrong."""


def parallel_tempering(
    model: Model,
    settings: TemperingSettings,
    *,
    references: References = 2,
    near: Mapping[str, FloatArray] | None = None,
    otherwise: Mapping[str, FloatArray] | None = None,
    prior: PriorDraws | None = None,
    seed: int,
    begin_round: Callable[[str], None],
) -> Fit:
    """Sample a tempered program by parallel tempering; the fit has findings about the run.

    Parameters
    ----------
    model
        From :func:`harness.temper.tempered_model`.
    settings
        Settings of the run; its time is that of everything here.
    references
        Whether there is one ladder, from the prior, or a second one from a Gaussian.
    near
        Points near the target by parameter, shape (n, ...), to which the Gaussian is fitted first;
        by default draws of short runs of NUTS.
    otherwise
        Such points for where these runs do not end in time.
    prior
        Draws of the prior, if there are some; what they cost has been counted before.
    seed
        Seed.
    begin_round
        Is given a few words as each step begins.

    Raises
    ------
    DataError, SamplingError, ToolchainError
        If stanli is missing, or there is nothing to start from.
    """
    run = _Parallel(model, settings, references, near, otherwise, prior, seed, begin_round)
    return run.result()


class _Parallel:
    def __init__(
        self,
        model: Model,
        settings: TemperingSettings,
        references: References,
        near: Mapping[str, FloatArray] | None,
        otherwise: Mapping[str, FloatArray] | None,
        prior: PriorDraws | None,
        seed: int,
        begin_round: Callable[[str], None],
    ) -> None:
        self._model, self._settings, self._begin = model, settings, begin_round
        self._wanted = references
        self._near, self._otherwise = near, otherwise
        self._known = np.empty((0, model.dimension))
        self._seeds = derived_seeds(4, seed, 9)
        self._seed = seed
        self._threads = cores()
        self._density = BatchedDensity(model.program("target"), model.data, threads=self._threads)
        self._gradients = 0
        self._prior = prior
        self._short = ShortRuns(
            model,
            self._density,
            most_seconds=_SHORT_SHARE * settings.most_seconds,
            seed=self._seeds[3],
            far_seed=self._seeds[2],
            begin=begin_round,
        )
        self._findings: list[Finding] = []

    def result(self) -> Fit:
        began = time.perf_counter()
        rng = np.random.default_rng(self._seeds[0])
        both = [self._first(rng)]
        if self._wanted == 2:
            try:
                both.append(self._second(rng))
            except (DataError, SamplingError) as error:
                # The prior is enough; its ladder is then longer.
                self._findings.append(_one_ladder(one_line(error).rstrip(".")))
        integral = self._base_integral()
        constant = divisor(self._model, integral)
        spent = time.perf_counter() - began
        most = self._settings.most_seconds
        left = max((1 - _BRIDGE_SHARE) * most - spent, _LEAST_SHARE * most)
        systems = self._systems(both[0][1])
        run = non_reversible_tempering(
            self._density,
            [reference for reference, _ in both],
            [points for _, points in both],
            settings=replace(self._settings, most_seconds=left, systems=systems),
            fitted=lambda draws: reference(
                refitted_base(draws, self._known, widened=NEAR[0], seed=self._seeds[2])
            ),
            begin_round=self._begin,
            seed=self._seeds[1],
        )
        found = self._log_evidence(run, integral, constant)
        if found is not None and constant is not None:
            self._begin("a bridge from the draws")
            found = self._or_by_bridge(run, found, constant)
        if len(run.ladders) < len(both):
            self._findings.append(_GIVEN_UP)
        if len(run.points[0]) < run.asked:
            self._findings.append(_out_of_time(run, self._settings.enough))
        fit = self._fit(run, found, spent)
        fit.tree.attrs |= prior_attributes(constant)
        remember(fit, self._findings)
        return fit

    def _systems(self, points: FloatArray) -> int:
        """Return the systems of replicas for each chain: several where a density takes no time."""
        some = np.resize(points, (_ROWS_TIMED, points.shape[1]))
        took = seconds_a_point(self._density, some, times=_TIMES_TIMED)
        self._gradients += _TIMES_TIMED * len(some)
        call = took * _USUAL_RUNGS * self._settings.chains
        return next((each for each in _SYSTEMS if each * call <= _LONG_CALL), 1)

    # References

    def _first(self, rng: np.random.Generator) -> tuple[Reference, FloatArray]:
        """Return the prior, or the wide Gaussian, and draws from it."""
        model = self._model
        if model.own_base == "improper":
            self._findings += about_improper_prior(model)
        if not starts_from_prior(model):
            return drawn_from(fitted_gaussian(self._short.wide, widened=WIDER[0]), rng)
        if self._prior is None:
            self._begin("draws of the prior")
            try:
                self._prior = prior_draws(
                    model,
                    self._seeds[2],
                    most_seconds=PRIOR_SHARE * self._settings.most_seconds,
                )
            except DriftingPriorError:
                self._findings += about_drifting_prior(model)
                return drawn_from(fitted_gaussian(self._short.wide, widened=WIDER[0]), rng)
            self._gradients += self._prior.gradients
        prior = self._prior
        density = BatchedDensity(model.program("prior"), model.data, threads=self._threads)
        points = prior.points.reshape(-1, prior.points.shape[2])
        candidates = points
        if not np.isfinite(self._density(points)[0]).any():
            # The likelihood is zero at all of them: replicas above have to start elsewhere.
            candidates = np.concatenate([points, self._short.near])
        if prior.reliable:
            return Reference(density, Dealt(points), prior.effective), candidates
        self._findings.append(
            Finding(
                Severity.WARNING,
                "Draws of the prior disagree, so the prior's end of the ladder moves step by step "
                f"like its other rungs: R-hat is {prior.r_hat:.2f}. The prior may be very vague, "
                "or have several modes or a funnel.",
                "Parametrise the prior so that it is easy to draw from, and look at the number of "
                "round trips.",
            )
        )
        return Reference(density), candidates

    def _second(self, rng: np.random.Generator) -> tuple[Reference, FloatArray]:
        """Return a Gaussian near the target, or a mixture of them, and draws from it."""
        points = self._near_target()
        # In random order, because the fit is judged by the last ones.
        self._known = rng.permutation(points[np.isfinite(points).all(axis=1)])
        return drawn_from(fitted_base(self._known[None], widened=NEAR[0], seed=self._seeds[2]), rng)

    def _near_target(self) -> FloatArray:
        """Return points near the target on the unconstrained space, shape (n, D)."""
        if self._near is not None:
            return self._density.unconstrain_draws(self._near)
        try:
            return self._short.near
        except SamplingError:
            if self._otherwise is None:
                raise
            return self._density.unconstrain_draws(self._otherwise)

    # Log Z

    def _base_integral(self) -> LogEvidence | None:
        """Return the log of the integral of the prior as written; None if it is not known."""
        if self._prior is None:
            written = written_integral(self._model)
            self._findings += written_prior(written)
            return written
        if self._model.log_prior_integral is None:
            self._begin("the integral of the prior")
        try:
            found = prior_constant(
                self._model,
                self._prior,
                most_seconds=_CONSTANT_SHARE * self._settings.most_seconds,
                seed=self._seeds[2],
            )
        except (DataError, SamplingError):
            self._findings.append(unknown_integral())
            return None
        self._gradients += found.gradients
        if not self._model.tempered_whole:
            self._findings += written_prior(found.log_integral)
            self._findings += rough_integral(self._prior, found.log_integral)
        return found.log_integral

    def _names(self) -> list[str]:
        first = own_base(self._model) if self._prior else "a wide Gaussian"
        return [first, "the fitted Gaussians"]

    def _log_evidence(
        self, run: TemperingRun, integral: LogEvidence | None, constant: LogEvidence | None
    ) -> LogEvidence | None:
        """Return log Z by the ladders, of which the first one may start from the prior."""
        start = integral if self._prior else NORMALISED
        factor = log_factor(self._model, integral, from_own_base=self._prior is not None)
        first, *others = (each.evidence for each in run.ladders)
        second = others[0] if others else None
        if second is not None and constant is not None:
            # Where replicas hardly travel along the first ladder, its estimate has not settled.
            if first is None or run.few_trips or start is None or factor is None:
                return second.log_evidence.minus(constant)
            joined = evidence.joined_evidence(first, second, start)
            gap, error = abs(float(joined.gap.value)), float(joined.gap.mcse)
            if gap > max(_GAP_ERRORS * error, _GAP_MATTERS):
                self._findings.append(_gap(first.log_evidence.plus(factor), gap, error))
            return joined.log_evidence.plus(factor)
        if first is not None:
            return None if factor is None else first.log_evidence.plus(factor)
        self._findings.append(
            Finding(
                Severity.PROBLEM,
                "There is no estimate of log Z: neighbouring rungs have no draws in common.",
                "Give the run more time (--budget, --warmup).",
            )
        )
        return None

    def _or_by_bridge(
        self, run: TemperingRun, found: LogEvidence, constant: LogEvidence
    ) -> LogEvidence:
        """Return the more precise of two estimates: by the ladders, and by a bridge from the draws.

        Modes with wrong shares of the draws hardly change a bridge, but the ladders see how
        replicas get to them.  So the two are compared as well.
        """
        try:
            if evidence.largest_r_hat(run.points) > R_HAT_PROBLEM:
                return found
            bridges, evaluations = bridged_in_time(
                self._density,
                run.points,
                most_seconds=_BRIDGE_SHARE * self._settings.most_seconds,
                seed=self._seeds[1],
            )
        except (DataError, SamplingError):  # too few draws, or too many dimensions
            return found
        self._gradients += evaluations
        if not bridges.sound:
            return found
        other = bridges.log_evidence.minus(constant)
        apart = found.minus(other)
        if abs(apart.value) > max(_GAP_ERRORS * apart.mcse, _GAP_MATTERS):
            self._findings.append(_bridge_differs(found, other))
            return found
        if other.mcse >= found.mcse:
            return found
        self._findings.append(_by_bridge(found, other))
        return other

    # The fit

    def _fit(self, run: TemperingRun, found: LogEvidence | None, spent: float) -> Fit:
        settings, chains = self._settings, len(run.points)
        flat = run.points.reshape(-1, run.points.shape[2])
        values = self._density.constrain(flat)
        share = np.full(chains, 1 / chains)
        program = self._model.program("target")
        return build_fit(
            posterior={
                name: value.reshape(chains, -1, *value.shape[1:]) for name, value in values.items()
            },
            extended=None,
            sample_stats={"lp": run.log_density, "acceptance_rate": run.acceptance},
            constant_data=self._model.data,
            attrs={
                "method": METHOD,
                "engine": self._density.engine,
                "model": self._model.name,
                "program": program.name,
                "settings": {
                    "chains": settings.chains,
                    "draws": settings.draws,
                    "warmup": settings.warmup,
                    "explorer": settings.explorer,
                },
                "seed": self._seed,
                "parameters": json.dumps(list(self._model.parameters)),
                "references": json.dumps(self._names()[: len(run.ladders)]),
                "gradients_warmup": share
                * (run.evaluations_warmup + self._gradients + self._short.gradients),
                "gradients_sampling": share * run.evaluations,
                "seconds_warmup": share * (run.seconds_warmup + spent),
                "seconds_sampling": share * run.seconds,
                "harness_version": version("harness"),
            }
            | evidence_attributes(found)
            | run_attributes(run),
        )


def run_attributes(run: TemperingRun) -> dict[str, Any]:
    """Return what a fit keeps of how the replicas travelled; the second ladder's as ``..._2``."""
    kept: dict[str, Any] = {
        "scans": run.scans,
        "scans_warmup": run.warmup,
        SYSTEMS: run.systems,
        "divergent_at_target": run.divergent,
    }
    for number, (each, trips) in enumerate(zip(run.ladders, run.round_trips, strict=True)):
        of = "" if number == 0 else f"_{number + 1}"
        kept |= {
            f"round_trips{of}": trips,
            f"ladder{of}": each.inv_temp,
            f"swap_rejection{of}": each.rejection,
            f"communication_barrier{of}": each.barrier,
            f"step_size{of}": each.step_size,
            f"sliced{of}": each.sliced.astype(np.int64),
            f"also_sliced{of}": each.also_sliced.astype(np.int64),
            f"hops{of}": each.hops.sum(axis=1),
        }
        if each.evidence is not None:
            for side in ("forward", "backward"):
                estimate = getattr(each.evidence, side)
                kept[f"log_evidence_{side}{of}"] = estimate.value
                kept[f"log_evidence_{side}{of}_mcse"] = estimate.mcse
    return kept


def _one_ladder(why: str) -> Finding:
    return Finding(
        Severity.WARNING,
        "Replicas have only one ladder, from the prior, because there are no draws to fit a "
        f"Gaussian to: {why}.",
        "Look at the number of round trips.",
    )


_GIVEN_UP = Finding(
    Severity.FINE,
    "The ladder from the fitted Gaussians took more rungs than the other one, and was given up.",
)


def _out_of_time(run: TemperingRun, enough: Enough) -> Finding:
    """Report a run that is shorter than asked for.

    It does not matter if it is half as long or longer, and its draws suffice.
    """
    suffices = len(run.points[0]) >= _HALF * run.asked and run.is_enough(enough)
    return Finding(
        Severity.FINE if suffices else Severity.WARNING,
        f"The time ran out, so there are only {len(run.points[0]):,} draws a chain of the "
        f"{run.asked:,} that were asked for, after {run.warmup:,} scans of warm-up.",
        "Give the run more time (--budget).",
    )


def _by_bridge(found: LogEvidence, other: LogEvidence) -> Finding:
    return Finding(
        Severity.FINE,
        "Log Z is by bridge sampling from the draws, which is more precise and agrees with the "
        f"ladders: {other.text} against {found.text}.",
    )


def _bridge_differs(found: LogEvidence, other: LogEvidence) -> Finding:
    return Finding(
        Severity.PROBLEM,
        "Log Z is unreliable, because the ladders and bridge sampling from the draws disagree: "
        f"{found.text} against {other.text}.",
        "Run longer (--draws, --warmup, --budget), and compare with --method collapsed_tempering.",
    )


def _gap(first: LogEvidence, gap: float, error: float) -> Finding:
    return Finding(
        Severity.PROBLEM,
        "Log Z is unreliable, because the two ladders disagree about it: they differ by "
        f"{gap:.2f}, with a standard error of {error:.2f} ({first.text} along the first).",
        "Run longer (--draws, --warmup), and compare with --method collapsed_tempering.",
    )
