"""One-dimensional illustrations of both papers: two Gaussian modes, HMC and a tempered method.

Nemeth et al. (2019), B.1: pseudo-extended MCMC with two pseudo-samples, whose instrumental
distribution is a base at a fixed inverse temperature of 0.  Graham and Storkey (2017), 7.1:
continuous tempering.  Truth is the closed form.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from harness.engine.nuts import NutsSettings
from harness.evidence import normalised_weights
from harness.fit import Fit
from harness.forms.continuous_tempering import JOINT_TEMPERING
from harness.forms.method import Method
from harness.forms.nuts import PLAIN_NUTS
from harness.forms.pseudo_extended import PSEUDO_EXTENDED
from harness.plan.spec import Cell, Experiment, Profile
from harness.samplers.ensemble_quasi_newton import HMC_UNIT

from .claims import claims, tables
from .figures import figures
from .targets import BOX, MIXTURES, bases, distribution

RUNS: dict[Profile, tuple[int, int]] = {
    "smoke": (2, 400),
    "quick": (20, 10_000),
    "paper": (20, 10_000),
}
"""Replications, and draws of each; both papers show one run."""

STATIC = {
    "pe": {"dt": 0.1, "leapfrog_steps": 10},
    "ct": {"dt": 0.3, "leapfrog_steps": 10},
}
"""Step sizes of static HMC, some 0.7 of the narrowest standard deviation; neither paper has its."""


def grid(profile: Profile) -> tuple[Cell, ...]:
    """NUTS and static HMC on either mixture, and the method that the paper shows beside it."""
    replications, draws = RUNS[profile]
    nuts = NutsSettings(chains=1, warmup=1000, draws=draws)
    base = bases()
    rows: list[tuple[str, str, Method, dict[str, Any]]] = [
        ("pe", "HMC", PLAIN_NUTS, {}),
        ("pe", "static", HMC_UNIT, _static("pe", nuts)),
        (
            "pe",
            "PE",
            PSEUDO_EXTENDED,
            {"num_pseudo_samples": 2, "inv_temp": 0.0, "base": base["pe"]},
        ),
        ("ct", "HMC", PLAIN_NUTS, {}),
        ("ct", "static", HMC_UNIT, _static("ct", nuts)),
        ("ct", "CT", JOINT_TEMPERING, {"base": base["ct"]}),
    ]
    return tuple(
        Cell(
            key=f"{half}-{name.lower()}",
            label=f"{LABELS[name]} ({'pseudo-extended' if half == 'pe' else 'tempering'} example)",
            factors={"half": half, "method": name},
            model=MIXTURES[half].model(
                f"illustration-{half}", lower=BOX[half][0], upper=BOX[half][1]
            ),
            method=method,
            settings=settings,
            nuts=nuts,
            replications=replications,
        )
        for half, name, method, settings in rows
    )


LABELS = {"HMC": "NUTS", "static": "HMC", "PE": "PE", "CT": "CT"}


def _static(half: str, nuts: NutsSettings) -> dict[str, Any]:
    """Settings of static HMC, one chain from a draw of the base, a fifth as long as NUTS's."""
    return {
        **STATIC[half],
        "base": bases()[half],
        "walkers": 1,
        "draws": nuts.draws // 5,
        "warmup": nuts.warmup // 5,
    }


def measure(cell: Cell, fit: Fit) -> dict[str, float]:
    """Mass of the right mode, distance to the exact distribution, and what weights tell."""
    mixture = MIXTURES[cell.factors["half"]]
    low, high = mixture.mean[:, 0] - 4 * mixture.sd, mixture.mean[:, 0] + 4 * mixture.sd
    places = xr.DataArray(np.append(np.linspace(low.min(), high.max(), 80), 0.0), dims="place")

    def below(parameters: xr.Dataset) -> xr.DataArray:
        return (parameters["x"].isel(x_dim_0=0) <= places).astype(float)

    value, mcse = fit.expectation(below)
    exact = distribution(mixture, places.to_numpy())
    found = {
        "right": 1 - float(value[-1]),
        "right_mcse": float(mcse[-1]),
        "distance": float(np.abs(value - exact).max()),
    }
    if cell.factors["method"] == "CT" and fit.extended is not None:
        log_z = fit.log_evidence
        weight = normalised_weights(fit.log_weight.ravel())
        cold = fit.extended["inv_temp"].to_numpy().ravel() < 0.5
        found |= {
            "log_z": float(log_z.value),
            "log_z_mcse": float(log_z.mcse),
            "weight_below_half": float(weight[cold].sum()),
        }
    return found


EXPERIMENT = Experiment(
    name="illustration",
    title="One-dimensional illustrations",
    source="Nemeth et al. (2019), B.1, Figures 1 and 6; Graham and Storkey (2017), 7.1, Figure 1",
    summary=(
        "Two Gaussian modes on a line, one example a paper. Pseudo-extended: N(-1, 0.1) + "
        "N(1, 0.02) by variances, two pseudo-samples, instrumental distribution N(0, 2). "
        "Continuous tempering: 0.35 N(-4, 0.6²) + 0.65 N(4, 0.4²), whose constants are ours as "
        "the paper prints none; the base has its mean and variance, and ζ is the true Z. HMC has "
        "trajectories of ten steps from a draw of the base; Stan's NUTS stands beside it. Truth is "
        "the closed form."
    ),
    reductions={
        "smoke": "2 runs of 400 draws: it shows that everything works, not more.",
        "quick": "",
        "paper": "",
    },
    grid=grid,
    measure=measure,
    tables=tables,
    figures=figures,
    claims=claims,
    processor_seconds={"smoke": 70, "quick": 300, "paper": 300},
)
