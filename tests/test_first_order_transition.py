"""A path with a first-order transition, on which tempering fails: the diagnosis must say so.

A narrow tall mode with nearly all the mass lies inside a wide low one, in 25 dimensions.  At
inverse temperatures a little below 1 the wide mode has all the mass, and between the two states
there is next to nothing at any inverse temperature.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.arrays import FloatArray
from harness.diagnosis import Severity, diagnose
from harness.engine.compile import CompiledProgram, compile_programs
from harness.engine.nuts import NutsSettings
from harness.engine.toolchain import require_cmdstan
from harness.fit import Fit
from harness.forms.continuous_tempering import JOINT_TEMPERING
from harness.forms.pseudo_extended import PSEUDO_EXTENDED
from harness.models.gaussian_mixture import GaussianMixture
from harness.path import gaussian_base

DIM, SHARE = 25, 0.95
NUTS = NutsSettings(chains=4, warmup=300, draws=500, parallel_chains=2)
VARIANTS = ("joint_tempering", "pseudo_extended")
BASE = gaussian_base(np.zeros(DIM), 1.5 * np.eye(DIM))  # a little wider than the wide mode


def mixture(narrow_sd: float) -> GaussianMixture:
    """The wide mode at the origin, the narrow one at distance 2 from it."""
    mean = np.stack([np.zeros(DIM), np.full(DIM, 2 / np.sqrt(DIM))])
    return GaussianMixture(np.array([1 - SHARE, SHARE]), mean, np.array([1.0, narrow_sd]))


@pytest.fixture(scope="module")
def programs(quiet_cmdstanpy: None, cmdstan_home: Path) -> dict[str, CompiledProgram]:
    """Compile both programs, once; they are those of every mixture."""
    model = mixture(0.1).model("first order", lower=-25, upper=25)
    variants = {name: model.program(name) for name in VARIANTS}
    assert cmdstan_home.is_dir()
    compiled = compile_programs(variants.values(), require_cmdstan())
    return {name: compiled[program] for name, program in variants.items()}


def sample(
    programs: dict[str, CompiledProgram], variant: str, narrow_sd: float, *, inits: Any = None
) -> Fit:
    model = mixture(narrow_sd).model("first order", lower=-25, upper=25)
    if variant == "joint_tempering":
        run: Any = JOINT_TEMPERING.sample
    else:
        run = PSEUDO_EXTENDED.sample
    fit: Fit = run(model, base=BASE, nuts=NUTS, seed=1, inits=inits, compiled=programs[variant])
    return fit


def starts_in_both_modes(variant: str, narrow_sd: float) -> list[dict[str, Any]]:
    """Two chains from the wide mode and two from the narrow one."""
    made, rng = mixture(narrow_sd), np.random.default_rng(1)
    num = () if variant == "joint_tempering" else (2,)

    def start(mode: int) -> dict[str, Any]:
        noise: FloatArray = rng.normal(size=(DIM, *num))
        centre = made.mean[mode].reshape(DIM, *(1,) * len(num))
        return {
            "x": (centre + made.sd[mode] * noise).tolist(),
            "free_inv_temp": [0.5] * (num[0] if num else 1),
        }

    return [start(mode) for mode in (0, 1, 0, 1)]


@pytest.mark.compiled
@pytest.mark.parametrize("variant", VARIANTS)
def test_chains_from_both_modes_disagree(
    programs: dict[str, CompiledProgram], variant: str
) -> None:
    """Neither method finds from one mode to the other, and the diagnosis says so first."""
    fit = sample(programs, variant, 0.1, inits=starts_in_both_modes(variant, 0.1))
    findings = diagnose(fit)
    assert findings[0].severity is Severity.PROBLEM
    assert "chains disagree" in findings[0].sentence
    assert "starting points in every mode" in findings[0].what_to_try
    if variant == "joint_tempering":
        stuck = [each for each in findings if "makes no round trip" in each.sentence]
        assert [each.severity for each in stuck] == [Severity.PROBLEM]
        assert "in 2 of 4 chains" in stuck[0].sentence
    # And rightly: log Z, 0, is far off.
    assert abs(fit.log_evidence.value) > 1


@pytest.mark.compiled
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_transition_that_chains_cross_now_and_then(
    programs: dict[str, CompiledProgram], variant: str
) -> None:
    """From Stan's own starts, with a barrier that is crossed a few times a chain."""
    fit = sample(programs, variant, 0.5)
    seen = [each for each in diagnose(fit) if each.severity > Severity.FINE]
    assert any("R-hat" in each.sentence for each in seen), seen


@pytest.mark.compiled
def test_a_mode_that_no_chain_has_visited_is_not_seen(
    programs: dict[str, CompiledProgram],
) -> None:
    """The limit of all of this: log Z is the wide mode's alone, and only the last line warns."""
    fit = sample(programs, "joint_tempering", 0.2)
    assert fit.log_evidence.value == pytest.approx(np.log(1 - SHARE), abs=0.5)
    findings = diagnose(fit)
    assert not any(each.severity is Severity.PROBLEM for each in findings)
    assert "no chain has visited" in findings[-1].sentence
    assert "different places" in findings[-1].what_to_try
