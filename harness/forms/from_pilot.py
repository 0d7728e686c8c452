"""Tempered runs along a path that a pilot finds: its base, ladder, g and starting points (ours)."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, replace
from functools import partial

import numpy as np

from harness.errors import DataError
from harness.evidence import LogG
from harness.forms.base_mass import MeasuredMass, measured_base_mass
from harness.forms.common import Run
from harness.forms.continuous_tempering import (
    CollapsedTempering,
    JointTempering,
    tempering_data,
)
from harness.forms.form import Form, Found
from harness.forms.from_approximation import Approximation, approximate
from harness.forms.method import form_method
from harness.forms.pseudo_extended import CollapsedPseudoExtended, PseudoExtended
from harness.model import Model
from harness.model.numpy_density import target_density
from harness.path import (
    GaussianBase,
    Pilot,
    PilotSettings,
    particles_by_parameter,
    pilot,
    starting_values,
)
from harness.path.data import TemperedPath
from harness.seeds import derived_seed, derived_seeds

_NEGLIGIBLE = 20.0
"""How much rarer than the others, in logs, a rung at 1 is if the ladder stops below it."""


@dataclass(frozen=True)
class PilotRun:
    """A pilot and what it cost.

    Attributes
    ----------
    found
        The pilot.
    gradients
        Gradient evaluations of the target, including those of a first pilot from a cruder base.
    seconds
        Wall time.
    """

    found: Pilot
    gradients: int
    seconds: float


def scout(
    model: Model,
    base: GaussianBase,
    *,
    settings: PilotSettings | None = None,
    refine: bool = False,
    seed: int,
) -> PilotRun:
    """Run one pilot, or two: the second starts from the base that the first has refined.

    Parameters
    ----------
    model, base, settings
        The same as for :func:`harness.path.pilot`.
    refine
        Whether to run the second pilot.
    seed
        Seed; the pilots use their own streams.

    Raises
    ------
    ToolchainError, DataError, SamplingError
        For the same reasons as in :func:`harness.path.pilot`.
    """
    started = time.perf_counter()
    first, second = derived_seeds(2, seed, 1)
    found = pilot(model, base, settings=settings, seed=first)
    gradients = found.gradients
    if refine:
        found = pilot(model, found.refined_base, settings=settings, seed=second)
        gradients += found.gradients
    return PilotRun(found, gradients, time.perf_counter() - started)


def scouted_ladder(found: Pilot, *, rungs: int | None = None, highest: float = 1.0) -> LogG:
    """Return a ladder with log weights that make a run visit its rungs evenly.

    Parameters
    ----------
    found
        A pilot.
    rungs
        Number of rungs, spread evenly over the pilot's own rungs, which are about equally far from
        each other in the thermodynamic sense.  None for all of them.
    highest
        Rungs lie at or below this inverse temperature.  If the ladder stops below 1, draws reach
        the target only through their weights, which are still exact.  A rung at 1 that is hardly
        ever visited then completes the ladder.

    Raises
    ------
    DataError
        If fewer than two rungs are left.
    """
    last = int(np.searchsorted(found.inv_temp, highest, side="right")) - 1
    kept = np.arange(last + 1)
    if rungs is not None and rungs < len(kept):
        kept = np.unique(np.round(np.linspace(0, last, rungs)).astype(int))
    if len(kept) < 2:
        raise DataError(
            f"a ladder needs two rungs or more, but rungs={rungs} and highest={highest:g} leave "
            f"{len(kept)} of the pilot's rungs"
        )
    ladder = [found.log_g[k] for k in kept]
    if ladder[-1][0] < 1:
        beta, log_weight = found.log_g[-1]
        ladder.append((beta, log_weight - _NEGLIGIBLE))
    return tuple(ladder)


@dataclass(frozen=True)
class FromPilot:
    """A path that a pilot finds; chains start at the pilot's particles.

    A collapsed form takes its inverse temperatures from the pilot's rungs and visits them evenly.
    For other forms, log g is linear between the rungs, and the marginal of beta is nearly even.

    A fit's cost includes the pilot's, as ``gradients_pilot`` and ``seconds_pilot``.  Its attribute
    ``pilot_log_evidence`` is the pilot's own estimate of log Z.

    Attributes
    ----------
    base
        The base that the pilot starts from; or the name of one of Stan's approximations, which then
        makes that base, and whose cost counts as the pilot's
        (:func:`harness.forms.from_approximation.approximate`).
    settings
        Settings of the pilot.
    refine
        Whether a second pilot starts from the base that the first has found.
    rungs, highest
        For collapsed forms; see :func:`scouted_ladder`.
    base_metric
        Whether NUTS keeps the base's covariance as its inverse metric and adapts only the step
        size.  This is the same as sampling in coordinates that the base whitens.
    """

    base: GaussianBase | Approximation
    settings: PilotSettings | None = None
    refine: bool = False
    rungs: int | None = None
    highest: float = 1.0
    base_metric: bool = False

    def find(self, model: Model, form: Form, run: Run) -> Found:
        """Run the pilot; the pilot and the run use their own streams.

        Raises
        ------
        DataError
            If a setting makes no sense for the form.
        ToolchainError, SamplingError
            For the same reasons as in :func:`harness.path.pilot`.
        """
        seed, base = run.seed, self.base
        if not form.has_ladder and (self.rungs is not None or self.highest != 1.0):
            raise DataError(f"{form.label} has no ladder: leave rungs and highest out")
        if self.base_metric and model.bounds:
            raise DataError(
                f"{model.name} is bounded, so NUTS does not move in the coordinates of the base: "
                "leave base_metric out"
            )
        gradients, seconds = 0, 0.0
        if isinstance(base, str):
            made = approximate(model, base, seed=derived_seed(seed, 2))
            base, gradients, seconds = made.base, made.gradients, made.seconds
        scouted = scout(model, base, settings=self.settings, refine=self.refine, seed=seed)
        found = scouted.found
        log_g: LogG = found.log_g
        if form.has_ladder:
            log_g = scouted_ladder(found, rungs=self.rungs, highest=self.highest)
        measured = _base_mass(model, found, log_g if form.has_ladder else None, seed)
        starts = starting_values(
            particles_by_parameter(model, found),
            chains=run.nuts.chains,
            num_pseudo_samples=form.points,
        )
        metric = found.base.covariance if self.base_metric else None
        return Found(
            path=TemperedPath(
                base=found.base, log_g=log_g, ladder=form.has_ladder, base_mass=measured.mass
            ),
            run=replace(run, inits=starts, inv_metric=metric),
            attributes={
                "gradients_pilot": gradients + scouted.gradients + measured.gradients,
                "seconds_pilot": seconds + scouted.seconds + measured.seconds,
                "pilot_log_evidence": found.log_evidence.value,
                "pilot_log_evidence_mcse": found.log_evidence.mcse,
                "pilot_rungs": len(found.inv_temp),
            },
            settings={
                "pilot": asdict(self.settings or PilotSettings()),
                "refine": self.refine,
                "base_metric": self.base_metric,
            },
        )


def _base_mass(model: Model, found: Pilot, ladder: LogG | None, seed: int) -> MeasuredMass:
    """Return the share of the pilot's base that a run reaches, on a ladder if one is given."""
    if found.log_normaliser[0] == 0:  # the pilot has met nothing that is out of reach
        return MeasuredMass(None, 0, 0.0)
    data = None
    if ladder is not None:
        data = tempering_data(model, found.base, log_g=ladder) | {"ladder": 1}
    return measured_base_mass(model, found.base, target_density(model), ladder=data, seed=seed)


_METHOD = partial(form_method, path=FromPilot, suffix="_from_pilot", driven_by="python")

JOINT_TEMPERING_FROM_PILOT = _METHOD(JointTempering)
COLLAPSED_TEMPERING_FROM_PILOT = _METHOD(CollapsedTempering)
PSEUDO_EXTENDED_FROM_PILOT = _METHOD(PseudoExtended)
COLLAPSED_PSEUDO_EXTENDED_FROM_PILOT = _METHOD(CollapsedPseudoExtended)
