"""Our forms on the same path: the base of Table 4.2, a ladder from a pilot, and NUTS."""

from __future__ import annotations

from typing import Literal

from harness.engine.nuts import NutsSettings
from harness.fit import Fit
from harness.forms.common import Run
from harness.forms.continuous_tempering import CollapsedTempering, JointTempering
from harness.forms.form import Form, sample
from harness.forms.from_pilot import FromPilot
from harness.forms.method import python_method
from harness.model import Model
from harness.path import PilotSettings
from harness.path.gaussian import GaussianBase
from harness.temper import tempered_model

FormName = Literal["collapsed", "joint"]
_FORMS: dict[FormName, type[CollapsedTempering] | type[JointTempering]] = {
    "collapsed": CollapsedTempering,
    "joint": JointTempering,
}


def sample_tempered(
    model: Model,
    *,
    form: FormName,
    base: GaussianBase,
    particles: int,
    warmup: int,
    draws: int,
    seed: int,
) -> Fit:
    """Sample a target by continuous tempering from a base, with all of the density tempered.

    Parameters
    ----------
    model
        The target; its tempered program is written for it.
    form
        ``collapsed`` or ``joint``.
    base
        Where the path starts; the pilot guesses log Z.
    particles
        Of each of the pilot's four populations.
    warmup, draws
        Of each of four chains.
    seed
        Seed; the same seed gives the same fit.
    """
    written = tempered_model(model.program("target").path, model.data, what="all")
    made: Form = _FORMS[form]()
    path = FromPilot(base, PilotSettings(particles=particles, populations=4))
    nuts = NutsSettings(chains=4, warmup=warmup, draws=draws)
    return sample(written, made, path, Run(seed=seed, nuts=nuts, engine="stanli"))


TEMPERED = python_method("tempered_by_nuts", sample_tempered)
