"""Log Z of pseudo-extended runs, compiled and run: within its error, and the error is honest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.diagnosis import Severity, diagnose
from harness.engine.compile import CompiledProgram, compile_programs
from harness.engine.nuts import NutsSettings
from harness.engine.toolchain import require_cmdstan
from harness.evidence import complement_log_weight, inv_temp_log_conditionals, log_evidence
from harness.fit import Fit
from harness.forms.pseudo_extended import COLLAPSED_PSEUDO_EXTENDED, PSEUDO_EXTENDED
from harness.models.gaussian_mixture import GaussianMixture
from harness.path import gaussian_base

MIXTURE = GaussianMixture(np.array([0.7, 0.3]), np.array([[-2.0], [1.5]]), np.array([0.5, 0.35]))
MODEL = MIXTURE.model("two modes", lower=-25, upper=25)
MEAN = float(MIXTURE.truth.expected("x")[0])
LOG_ZETA = 0.4  # wrong on purpose: log Z is 0
BASE = gaussian_base(
    [MEAN], [[float(MIXTURE.truth.expected("x_squared")[0]) - MEAN**2]], log_zeta=LOG_ZETA
)
NUTS = NutsSettings(chains=4, warmup=500, draws=5000, parallel_chains=2)
VARIANTS = ("pseudo_extended", "collapsed_pseudo_extended")
LADDER = [(beta, 0.2 - 0.5 * beta) for beta in (0.0, 0.1, 0.3, 0.6, 1.0)]


@pytest.fixture(scope="module")
def programs(quiet_cmdstanpy: None, cmdstan_home: Path) -> dict[str, CompiledProgram]:
    """Compile both programs, once."""
    variants = {name: MODEL.program(name) for name in VARIANTS}
    assert cmdstan_home.is_dir()
    compiled = compile_programs(variants.values(), require_cmdstan())
    return {name: compiled[program] for name, program in variants.items()}


def sample(programs: dict[str, CompiledProgram], nuts: NutsSettings, **settings: Any) -> Fit:
    variant = VARIANTS["ladder" in settings]
    run: Any = COLLAPSED_PSEUDO_EXTENDED.sample if "ladder" in settings else PSEUDO_EXTENDED.sample
    fit: Fit = run(MODEL, base=BASE, nuts=nuts, seed=50, compiled=programs[variant], **settings)
    return fit


@pytest.mark.compiled
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"num_pseudo_samples": 4},
        {"log_g": ((0.0, 0.3), (0.4, -0.2), (1.0, 0.5)), "pi_shape": (2.0, 1.0)},
        {"log_g": ((0.05, 0.0), (1.0, 1.0))},
        {"g_shape": (1.3, 0.8)},
        {"ladder": False},
        {"ladder": True, "log_g": LADDER},
    ],
)
def test_log_z_and_base_within_their_errors(
    programs: dict[str, CompiledProgram], settings: dict[str, Any]
) -> None:
    """Three estimates a run, seven runs: 21 two-sided tests at 4.3 errors, 4e-4 in all."""
    fit = sample(programs, NUTS, **settings)
    log_z = fit.log_evidence
    assert abs(log_z.value) < 4.3 * log_z.mcse
    assert 0 < log_z.mcse < 0.1
    for estimate in (fit.base_expectation(lambda p: p["x"]), fit.expectation(lambda p: p["x"])):
        assert abs(float(estimate.value[0]) - MEAN) < 4.3 * float(estimate.mcse[0])
        assert 0 < float(estimate.mcse[0]) < 0.2
    both = fit.two_sided_log_evidence
    assert both is not None
    for side in (both.forward, both.backward):
        assert abs(side.value) < 4.3 * side.mcse < 0.6
    assert all(each.severity < Severity.PROBLEM for each in diagnose(fit))


@pytest.mark.compiled
def test_the_error_of_log_z_is_honest(programs: dict[str, CompiledProgram]) -> None:
    """Every chain a run of its own: z-scores have variance one."""
    runs = 40
    fit = sample(programs, NutsSettings(chains=runs, warmup=250, draws=1000, parallel_chains=2))
    assert fit.extended is not None
    delta, log_weight = (fit.extended[name].to_numpy() for name in ("delta", "log_weight"))
    complement = complement_log_weight(log_weight)
    one, zero = (complement + log_w for log_w in inv_temp_log_conditionals(delta))
    z = []
    for r in range(runs):
        estimate = log_evidence(one[r : r + 1], zero[r : r + 1], log_zeta=LOG_ZETA)
        z.append(estimate.value / estimate.mcse)
    assert 0.6 < np.mean(np.square(z)) < 1.6, z
    assert abs(np.mean(z)) < 4 / np.sqrt(runs)
