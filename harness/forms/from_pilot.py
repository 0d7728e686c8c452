"""Tempered runs whose path a pilot has scouted: its base, ladder, g and starting points (ours)."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from harness.engine.compile import CompiledProgram
from harness.engine.nuts import NutsSettings
from harness.errors import DataError
from harness.evidence import LogG
from harness.fit import Fit
from harness.forms.base_mass import MeasuredMass, measured_base_mass
from harness.forms.common import Engine
from harness.forms.continuous_tempering import (
    COLLAPSED_TEMPERING,
    CONTINUOUS_TEMPERING,
    sample_collapsed_tempered,
    sample_continuously_tempered,
    tempering_data,
)
from harness.forms.from_approximation import Approximation, approximate
from harness.forms.method import Method
from harness.forms.pseudo_extended import (
    COLLAPSED_PSEUDO_EXTENDED,
    PSEUDO_EXTENDED,
    sample_collapsed_pseudo_extended,
    sample_pseudo_extended,
)
from harness.model import Model
from harness.model.numpy_density import target_density
from harness.path import GaussianBase, Pilot, PilotSettings, pilot, starting_values

Form = Literal[
    "continuous_tempering",
    "collapsed_tempering",
    "pseudo_extended",
    "collapsed_pseudo_extended",
]
"""What runs after the pilot."""

_SAMPLE: dict[Form, Callable[..., Fit]] = {
    "continuous_tempering": sample_continuously_tempered,
    "collapsed_tempering": sample_collapsed_tempered,
    "pseudo_extended": sample_pseudo_extended,
    "collapsed_pseudo_extended": sample_collapsed_pseudo_extended,
}

_NEGLIGIBLE = 20.0
"""Log of how much rarer than the others the rung at 1 is on a ladder that stops below it."""


@dataclass(frozen=True)
class Scouted:
    """A pilot and what it cost.

    Attributes
    ----------
    found
        The pilot.
    gradients
        Gradient evaluations of the target, a pilot from a cruder base included.
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
) -> Scouted:
    """Run a pilot, or two: the second from the base with the target's moments by the first.

    Parameters
    ----------
    model, base, settings
        As for :func:`harness.path.pilot`.
    refine
        Whether to run the second.
    seed
        Seed; the pilots use streams of their own.

    Raises
    ------
    ToolchainError, DataError, SamplingError
        As :func:`harness.path.pilot`.
    """
    started = time.perf_counter()
    first, second = (int(s) for s in np.random.SeedSequence([seed, 1]).generate_state(2))
    found = pilot(model, base, settings=settings, seed=first)
    gradients = found.gradients
    if refine:
        found = pilot(model, found.refined_base, settings=settings, seed=second)
        gradients += found.gradients
    return Scouted(found, gradients, time.perf_counter() - started)


def scouted_ladder(found: Pilot, *, rungs: int | None = None, highest: float = 1.0) -> LogG:
    """Return a ladder with log weights under which its rungs are visited evenly.

    Parameters
    ----------
    found
        A pilot.
    rungs
        Number of rungs, evenly spread over the pilot's own, which are about as far from each
        other in the thermodynamic sense; all of them if None.
    highest
        Rungs lie at or below this inverse temperature.  On a ladder that stops below 1 draws
        come to the target by their weights alone, which are still exact; a rung at 1 that is
        hardly ever visited closes the ladder.

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
            f"a ladder needs two rungs or more; with rungs={rungs} and highest={highest:g} the "
            f"pilot's leave {len(kept)}"
        )
    ladder = [found.log_g[k] for k in kept]
    if ladder[-1][0] < 1:
        beta, log_weight = found.log_g[-1]
        ladder.append((beta, log_weight - _NEGLIGIBLE))
    return tuple(ladder)


def sample_from_pilot(
    model: Model,
    *,
    form: Form,
    base: GaussianBase | Approximation,
    settings: PilotSettings | None = None,
    refine: bool = False,
    rungs: int | None = None,
    highest: float = 1.0,
    base_metric: bool = False,
    num_pseudo_samples: int | None = None,
    nuts: NutsSettings | None = None,
    seed: int,
    compiled: CompiledProgram | None = None,
    engine: Engine = "auto",
) -> Fit:
    """Run a pilot, then one of the tempered forms along the path that it found.

    Chains start at the pilot's particles.  The inverse temperature of a collapsed form takes the
    pilot's rungs, evenly visited; that of the others has log g linear between them, which is
    nearly flat.

    Parameters
    ----------
    model
        Target density with its data.
    form
        What runs after the pilot.
    base
        Where the pilot starts; or by which of Stan's approximations that is found first, at the
        pilot's cost (:func:`harness.forms.from_approximation.approximate`).
    settings
        Settings of the pilot.
    refine
        Whether a second pilot starts from the base that the first found.
    rungs, highest
        Of a collapsed form: see :func:`scouted_ladder`.
    base_metric
        Whether NUTS keeps the base's covariance as inverse metric, which is the same as sampling
        whitened by the base, and adapts its step size alone.
    num_pseudo_samples
        N of a pseudo-extended form; 2 if not given.
    nuts, compiled, engine
        As for the form.
    seed
        Seed, 0 to 2^32 - 1; the pilot and the run use streams of their own.

    Returns
    -------
    Fit
        The form's fit; its cost includes the pilot's, as ``gradients_pilot`` and
        ``seconds_pilot``, and the attribute ``pilot_log_evidence`` has the pilot's own log Z.

    Raises
    ------
    DataError
        If a setting does not make sense for the form.
    ToolchainError, SamplingError
        As :func:`harness.path.pilot`.
    """
    collapsed, extended = form.startswith("collapsed"), form.endswith("pseudo_extended")
    if num_pseudo_samples is not None and not extended:
        raise DataError(f"{form} has no pseudo-samples; leave num_pseudo_samples out")
    if not collapsed and (rungs is not None or highest != 1.0):
        raise DataError(f"{form} has no ladder; leave rungs and highest out")
    if base_metric and model.bounds:
        raise DataError(
            f"{model.name} is bounded, so that NUTS moves in coordinates other than the base's: "
            "leave base_metric out"
        )
    gradients, seconds = 0, 0.0
    if isinstance(base, str):
        (own_seed,) = (int(s) for s in np.random.SeedSequence([seed, 2]).generate_state(1))
        made = approximate(model, base, seed=own_seed)
        base, gradients, seconds = made.base, made.gradients, made.seconds
    scouted = scout(model, base, settings=settings, refine=refine, seed=seed)
    found = scouted.found
    nuts = nuts or NutsSettings()
    own: dict[str, Any] = {"ladder": True} if collapsed else {}
    if extended:
        num_pseudo_samples = num_pseudo_samples or 2
        own["num_pseudo_samples"] = num_pseudo_samples
    log_g = scouted_ladder(found, rungs=rungs, highest=highest) if collapsed else found.log_g
    measured = _base_mass(model, found, log_g if collapsed else None, seed)
    fit = _SAMPLE[form](
        model,
        base=found.base,
        log_g=log_g,
        base_mass=measured.mass,
        nuts=nuts,
        seed=seed,
        inits=starting_values(
            model, found, chains=nuts.chains, num_pseudo_samples=num_pseudo_samples
        ),
        inv_metric=found.base.covariance if base_metric else None,
        compiled=compiled,
        engine=engine,
        **own,
    )
    fit.tree.attrs |= {
        "gradients_pilot": gradients + scouted.gradients + measured.gradients,
        "seconds_pilot": seconds + scouted.seconds + measured.seconds,
        "pilot_log_evidence": found.log_evidence.value,
        "pilot_log_evidence_mcse": found.log_evidence.mcse,
        "pilot_rungs": len(found.inv_temp),
    }
    return fit.with_settings(
        pilot=asdict(settings or PilotSettings()), refine=refine, base_metric=base_metric
    )


def _base_mass(model: Model, found: Pilot, ladder: LogG | None, seed: int) -> MeasuredMass:
    """Return the share of the pilot's base that a run on a ladder, or on none, reaches."""
    if found.log_normaliser[0] == 0:  # the pilot has come upon nothing that is out of reach
        return MeasuredMass(None, 0, 0.0)
    data = None
    if ladder is not None:
        data = tempering_data(model, found.base, log_g=ladder) | {"ladder": 1}
    return measured_base_mass(model, found.base, target_density(model), ladder=data, seed=seed)


def _from_pilot(form: Form, variant: str | None) -> Method:
    return Method(
        f"{form}_from_pilot", variant, partial(sample_from_pilot, form=form), driven_by="python"
    )


CONTINUOUS_TEMPERING_FROM_PILOT = _from_pilot("continuous_tempering", CONTINUOUS_TEMPERING.variant)
COLLAPSED_TEMPERING_FROM_PILOT = _from_pilot("collapsed_tempering", COLLAPSED_TEMPERING.variant)
PSEUDO_EXTENDED_FROM_PILOT = _from_pilot("pseudo_extended", PSEUDO_EXTENDED.variant)
COLLAPSED_PSEUDO_EXTENDED_FROM_PILOT = _from_pilot(
    "collapsed_pseudo_extended", COLLAPSED_PSEUDO_EXTENDED.variant
)
