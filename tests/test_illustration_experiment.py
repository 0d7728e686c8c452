"""The illustrations: exact answers, densities for pictures, claims both ways."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Never

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from harness.arrays import FloatArray
from harness.fit import Fit, build_fit
from harness.plan.catalogue import load_experiment
from harness.plan.spec import PROFILES, Cell, Profile, Results, Verdict

EXPERIMENT = load_experiment("illustration")
targets: Any = import_module("experiments.illustration.targets")


def density(half: str, x: float) -> float:
    """Density of a mixture, written out."""
    if half == "pe":
        parts = (norm.pdf(x, -1, np.sqrt(0.1)), norm.pdf(x, 1, np.sqrt(0.02)))
        return float(0.5 * parts[0] + 0.5 * parts[1])
    return float(0.35 * norm.pdf(x, -4, 0.6) + 0.65 * norm.pdf(x, 4, 0.4))


@pytest.mark.parametrize("half", ["pe", "ct"])
def test_exact_answers_by_quadrature(half: str) -> None:
    points = np.array([-4.5, -1.2, 0.0, 0.9, 4.1])
    found = targets.distribution(targets.MIXTURES[half], points)
    for x, value in zip(points, found, strict=True):
        known = quad(lambda t: density(half, t), -12, x, points=[-4, -1, 1, 4], limit=200)[0]
        assert value == pytest.approx(known, abs=1e-7)
    assert targets.exact_right(half) == pytest.approx({"pe": 0.5, "ct": 0.65}[half], abs=1e-3)


def test_bases_are_the_papers() -> None:
    base = targets.bases()
    assert float(base["pe"].covariance[0, 0]) == pytest.approx(2)
    mean = quad(lambda t: t * density("ct", t), -9, 9, points=[-4, 4])[0]
    square = quad(lambda t: t**2 * density("ct", t), -9, 9, points=[-4, 4])[0]
    assert float(base["ct"].mean[0]) == pytest.approx(mean)
    assert float(base["ct"].covariance[0, 0]) == pytest.approx(square - mean**2)
    assert base["ct"].log_zeta == 0


def test_extended_density_and_potential() -> None:
    x1, x2 = np.array([[-1.0, 0.3]]), np.array([[1.0, -2.0]])
    found = targets.extended_density(x1, x2)
    for a, b, value in zip(x1.flat, x2.flat, found.flat, strict=True):
        q = [norm.pdf(x, 0, np.sqrt(2)) for x in (a, b)]
        expected = 0.5 * (density("pe", a) * q[1] + density("pe", b) * q[0])
        assert value == pytest.approx(expected, rel=1e-10)
    base = targets.bases()["ct"]
    for x, u in ((-4.0, 1.0), (0.5, -2.0)):
        beta = 1 / (1 + np.exp(-u))
        log_base = norm.logpdf(x, base.mean[0], base.cholesky[0, 0])
        expected = -beta * np.log(density("ct", x)) - (1 - beta) * log_base
        expected -= np.log(beta * (1 - beta))
        assert targets.potential(np.array(x), np.array(u)) == pytest.approx(expected, rel=1e-9)


def test_the_trajectory_conserves_energy_and_passes_between_the_modes() -> None:
    momentum = np.array([1.2, -2.5])
    path = targets.trajectory(-4.0, 1.0, tuple(momentum))
    start = float(targets.potential(*path[0])) + 0.5 * float(momentum @ momentum)
    # Momenta at the points between, from central differences of the path; the first step apart.
    speed = (path[2:] - path[:-2]) / (2 * 0.02)
    energy = targets.potential(path[1:-1, 0], path[1:-1, 1]) + 0.5 * np.square(speed).sum(axis=1)
    # Leapfrog's error in energy is of the order of the step squared times the curvature, 1 / 0.6^2.
    assert np.abs(energy - start).max() < 0.05
    assert path[:, 0].min() < -3
    assert path[:, 0].max() > 3


@pytest.mark.parametrize("profile", PROFILES)
def test_grid(profile: Profile) -> None:
    cells = EXPERIMENT.grid(profile)
    assert [cell.key for cell in cells] == [
        *("pe-hmc", "pe-static", "pe-pe"),
        *("ct-hmc", "ct-static", "ct-ct"),
    ]
    assert cells[2].settings["inv_temp"] == 0
    assert profile == "smoke" or cells[0].nuts.draws == 10_000


def exact_draws(half: str, count: int, rng: np.random.Generator) -> FloatArray:
    mixture = targets.MIXTURES[half]
    component = rng.choice(2, count, p=mixture.weight)
    drawn: FloatArray = mixture.mean[component, 0] + mixture.sd[component] * rng.normal(size=count)
    return drawn


def plain(x: FloatArray) -> Fit:
    return build_fit(
        posterior={"x": x[None, :, None]},
        extended=None,
        sample_stats={"diverging": np.zeros((1, len(x)), bool)},
        constant_data={},
        attrs={"settings": {}},
    )


@pytest.mark.parametrize("half", ["pe", "ct"])
def test_measure_of_exact_draws_and_of_one_mode(half: str) -> None:
    rng = np.random.default_rng(3)
    cell = next(c for c in EXPERIMENT.grid("quick") if c.key == f"{half}-hmc")
    x = exact_draws(half, 4000, rng)
    found = EXPERIMENT.measure(cell, plain(x))
    assert found["right"] == pytest.approx((x > 0).mean())
    # Kolmogorov's distance exceeds 1.95 / sqrt(n) once in a thousand samples.
    assert found["distance"] < 1.95 / np.sqrt(4000)
    stuck = EXPERIMENT.measure(cell, plain(np.abs(x)))
    assert stuck["right"] == 1
    assert stuck["distance"] == pytest.approx(1 - targets.exact_right(half), abs=0.02)


def test_measure_weighs_pseudo_samples() -> None:
    """Draws that are all wrong but for their weights."""
    rng = np.random.default_rng(4)
    cell = next(c for c in EXPERIMENT.grid("quick") if c.key == "pe-pe")
    good, bad = exact_draws("pe", 3000, rng), np.full(3000, 3.0)
    fit = build_fit(
        posterior={"x": good[None, :, None]},
        extended={
            "x": np.stack([good, bad], axis=-1)[None, :, None],
            "log_weight": np.tile([0.0, -800.0], (1, 3000, 1)),
        },
        sample_stats={},
        constant_data={},
        attrs={"settings": {}},
    )
    assert EXPERIMENT.measure(cell, fit)["right"] == pytest.approx((good > 0).mean())


def no_fit(cell: Cell, replication: int) -> Never:
    raise AssertionError(f"no fit of {cell.key}, {replication} is needed")


def synthetic(changed: dict[str, float] | None = None, profile: Profile = "quick") -> Results:
    """Make results as the papers would have them, but for ``CELL METRIC`` that are changed."""
    cells = EXPERIMENT.grid(profile)
    rows = []
    for cell in cells:
        half = str(cell.factors["half"])
        truth = targets.exact_right(half)
        stuck = cell.factors["method"] in ("HMC", "static")
        row: dict[str, Any] = {
            "right": 1.0 if stuck else truth + 0.002,
            "distance": 0.5 if stuck else 0.01,
            "right_mcse": 0.005,
            "log_z": 0.01,
            "log_z_mcse": 0.01,
            "weight_below_half": 0.3,
            "gradients": 50_000,
        }
        for key, value in (changed or {}).items():
            name, metric = key.split(" ")
            if name == cell.key:
                row[metric] = value
        rows += [
            {"cell": cell.key, **cell.factors, "replication": r, **row}
            for r in range(cell.replications)
        ]
    return Results(profile, cells, pd.DataFrame(rows), no_fit, planned=len(rows))


KEYS = [row[0].key for row in import_module("experiments.illustration.claims").CLAIMS]


def verdicts(results: Results) -> dict[str, Verdict]:
    return {claim.key: claim.verdict for claim in EXPERIMENT.claims(results)}


@pytest.mark.parametrize(
    ("failing", "key", "value"),
    [
        ("pe-hmc-one-mode", "pe-static right", 0.9),
        ("pe-nuts-one-mode", "pe-hmc right", 0.9),
        ("pe-both-modes", "pe-pe distance", 0.2),
        ("pe-both-modes", "pe-pe right", 0.57),
        ("ct-hmc-one-mode", "ct-static right", 0.6),
        ("ct-nuts-one-mode", "ct-hmc right", 0.6),
        ("ct-both-modes", "ct-ct distance", 0.2),
        ("cold-draws-count", "ct-ct weight_below_half", 0.02),
        ("evidence-of-ct", "ct-ct log_z", 0.2),
    ],
)
def test_each_claim_can_fail_alone(failing: str, key: str, value: float) -> None:
    expected: dict[str, Verdict] = dict.fromkeys(KEYS, "reproduced")
    assert verdicts(synthetic()) == expected
    assert failing in expected
    expected[failing] = "not reproduced"
    assert verdicts(synthetic({key: value})) == expected


def test_claims_without_cells_or_in_smoke_are_not_run() -> None:
    assert verdicts(synthetic(profile="smoke")) == dict.fromkeys(KEYS, "not run")
    results = synthetic()
    none = Results("quick", (), results.metrics.iloc[:0], no_fit, planned=9)
    assert verdicts(none) == dict.fromkeys(KEYS, "not run")
    assert EXPERIMENT.tables(none) == []
    assert EXPERIMENT.figures(none) == []
    assert len(EXPERIMENT.tables(results)[0].frame) == 6
