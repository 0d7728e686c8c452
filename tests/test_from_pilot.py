"""Runs along a pilot's path: exact whatever its ladder, at the pilot's cost as well."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from harness.engine.nuts import NutsSettings
from harness.errors import DataError
from harness.fit import Fit
from harness.forms.common import Run
from harness.forms.continuous_tempering import CollapsedTempering, JointTempering
from harness.forms.extended_hamiltonian import ExtendedHamiltonian
from harness.forms.form import Form, sample
from harness.forms.from_pilot import (
    COLLAPSED_TEMPERING_FROM_PILOT,
    FromPilot,
    scout,
    scouted_ladder,
)
from harness.forms.nuts import Nuts
from harness.forms.pseudo_extended import CollapsedPseudoExtended, PseudoExtended
from harness.models.boltzmann import generate, relax
from harness.models.gaussian_mixture import GaussianMixture
from harness.path import PilotSettings, gaussian_base, pilot
from harness.path.data import TemperedPath

pytest.importorskip(
    "stanli", reason="stanli, which evaluates Stan programs with no compile, is not installed"
)

# Unequal in weight and width, 13 standard deviations of the wider one apart.
MIXTURE = GaussianMixture(np.array([0.7, 0.3]), np.array([[-3.0], [3.5]]), np.array([0.5, 0.2]))
MODEL = MIXTURE.model("two-modes", lower=-12, upper=12)
BASE = gaussian_base([0.5], [[9.0]])
SETTINGS = PilotSettings(particles=256)
NUTS = NutsSettings(chains=4, warmup=300, draws=5000)


def check(fit: Fit) -> None:
    """Mean and log Z within four of their own errors."""
    mean = fit.expectation(lambda parameters: parameters["x"])
    assert abs(mean.value[0] - MIXTURE.truth.expected("x")[0]) < 4 * mean.mcse[0]
    assert mean.mcse[0] < 0.75  # a quarter of the standard deviation: no run that is stuck
    if fit.tree.attrs["method"] != "pseudo_extended":
        log_z = fit.log_evidence
        assert abs(log_z.value) < 4 * log_z.mcse


@pytest.mark.parametrize(
    ("form", "own"),
    [
        (CollapsedTempering(), {}),
        (CollapsedTempering(), {"rungs": 5}),
        (CollapsedTempering(), {"highest": 0.4}),
        (CollapsedTempering(), {"refine": True}),
        (JointTempering(), {}),
        (PseudoExtended(3), {}),
        (CollapsedPseudoExtended(), {}),
    ],
)
def test_every_form_finds_both_modes(form: Form, own: dict[str, Any]) -> None:
    path = FromPilot(BASE, SETTINGS, **own)
    fit = sample(MODEL, form, path, Run(seed=5, nuts=NUTS, engine="stanli"))
    check(fit)
    attrs = fit.tree.attrs
    assert fit.gradients == attrs["gradients_pilot"] + np.sum(
        attrs["gradients_warmup"] + attrs["gradients_sampling"]
    )
    assert fit.seconds > attrs["seconds_pilot"] > 0
    assert fit.settings["pilot"]["particles"] == 256


def test_rungs_are_chosen_evenly_and_the_last_is_the_target() -> None:
    found = pilot(MODEL, BASE, settings=SETTINGS, seed=1)
    assert scouted_ladder(found) == found.log_g
    five = scouted_ladder(found, rungs=5)
    assert [beta for beta, _ in five][:: len(five) - 1] == [0.0, 1.0]
    assert set(five) <= set(found.log_g)
    short = scouted_ladder(found, highest=0.4)
    assert short[-1] == (1.0, found.log_g[-1][1] - 20)
    assert short[:-1] == tuple(rung for rung in found.log_g if rung[0] <= 0.4)
    with pytest.raises(DataError, match="two rungs"):
        scouted_ladder(found, highest=found.inv_temp[1] / 2)


def test_a_second_pilot_starts_from_the_moments_of_the_first() -> None:
    once = scout(MODEL, gaussian_base([0.0], [[30.0]]), settings=SETTINGS, seed=3)
    twice = scout(MODEL, gaussian_base([0.0], [[30.0]]), settings=SETTINGS, refine=True, seed=3)
    assert twice.gradients > once.gradients
    np.testing.assert_array_equal(twice.found.base.mean, once.found.refined_base.mean)


def test_what_makes_no_sense_is_refused() -> None:
    run = Run(seed=1, engine="stanli")
    with pytest.raises(DataError, match="takes no num_pseudo_samples; its settings are: base, "):
        COLLAPSED_TEMPERING_FROM_PILOT.sample(MODEL, base=BASE, num_pseudo_samples=2, seed=1)
    with pytest.raises(DataError, match="no ladder"):
        sample(MODEL, PseudoExtended(), FromPilot(BASE, rungs=4), run)
    with pytest.raises(DataError, match="no ladder"):
        sample(MODEL, PseudoExtended(), TemperedPath(BASE, ladder=True), run)
    with pytest.raises(DataError, match="bounded"):
        sample(MODEL, CollapsedTempering(), FromPilot(BASE, base_metric=True), run)
    with pytest.raises(DataError, match="all the way"):
        sample(MODEL, ExtendedHamiltonian(), FromPilot(BASE), run)
    with pytest.raises(DataError, match="follows no path"):
        sample(MODEL, Nuts(), TemperedPath(BASE), run)


@pytest.mark.compiled
def test_the_bases_covariance_is_the_metric_that_cmdstan_keeps() -> None:
    relaxation = relax(generate(8, np.random.default_rng(3)))
    truth = relaxation.exact()
    size = relaxation.q.shape[1]
    fit = COLLAPSED_TEMPERING_FROM_PILOT.sample(
        relaxation.model("relaxation"),
        base=gaussian_base(np.zeros(size), 8 * np.eye(size)),
        refine=True,
        base_metric=True,
        nuts=NutsSettings(chains=4, warmup=200, draws=2000, max_treedepth=5),
        seed=7,
        compiled=None,
    )
    mean = fit.expectation(lambda parameters: parameters["x"])
    # The largest of `size` normal scores: beyond 4.5 once in 10^4 runs.
    assert np.all(np.abs(mean.value - truth.expected_x) < 4.5 * mean.mcse)
    assert abs(fit.log_evidence.value - truth.log_z) < 4 * fit.log_evidence.mcse
    assert fit.settings["base_metric"] is True
