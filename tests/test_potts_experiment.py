"""The experiment on Potts lattices: its grid, tables and claims, and that its claims can fail."""

from __future__ import annotations

import math
from typing import Any, Never

import numpy as np
import pandas as pd
import pytest

from experiments.potts.grid import SIZES, TABLE
from experiments.potts.lattices import (
    CRITICAL,
    DISORDERED,
    ISING,
    MIXED,
    ORDERED,
    POTTS,
    lattice_model,
    log_z_at_low_temperature,
    truth,
)
from experiments.potts.samplers import both_starts, passage
from experiments.potts.tables import published
from harness.lattice.graph import torus
from harness.lattice.transfer import enumerated_log_z, kaufman_log_z
from harness.plan.catalogue import load_experiment
from harness.plan.spec import PROFILES, Cell, Profile, Results

EXPERIMENT = load_experiment("potts")


def no_fit(cell: Cell, replication: int) -> Never:
    raise AssertionError(f"no fit of {cell.key}, {replication} is needed")


def test_grids() -> None:
    for profile in PROFILES:
        cells = EXPERIMENT.grid(profile)
        assert len({cell.key for cell in cells}) == len(cells)
        assert all(cell.replications >= 2 for cell in cells)
        assert all(cell.content() for cell in cells)
    paper = SIZES["paper"]
    # As printed.
    assert (paper.side, paper.runs, paper.couplings) == (16, 100, 10_000)
    assert (paper.particles, paper.updates) == (100, 100)
    assert EXPERIMENT.on_request


def test_truths() -> None:
    ising = truth(ISING, 16)
    assert ising is not None
    assert ising.value == pytest.approx(7.29621, abs=5e-6)
    # The printed numbers fit the torus.
    assert abs(published()["ising"]["Swendsen-Wang AIS"] - ising.value) < 2 * 0.1
    assert truth(POTTS, 4) is None
    # Disordered and ordered phases have the mean energy of the self-dual point.
    assert pytest.approx(1.0, abs=1e-5) == DISORDERED + ORDERED
    assert math.exp(CRITICAL) == pytest.approx(1 + math.sqrt(10))
    assert np.all(np.diff([DISORDERED, *MIXED, ORDERED]) > 0)


def test_low_temperatures() -> None:
    """Two nodes that differ together cost 6 J: the error is some E e^(-6 J), 2e-8 at J = 4."""
    exact = kaufman_log_z(8, 8, 4.0)
    assert log_z_at_low_temperature(torus(8, 8), 2, 4.0) == pytest.approx(exact, abs=2e-8)
    exact = enumerated_log_z(torus(3, 3), 3, 5.0)
    assert log_z_at_low_temperature(torus(3, 3), 3, 5.0) == pytest.approx(exact, abs=1e-9)


GOOD: dict[tuple[str, str], float] = {
    (POTTS, "Gibbs AIS"): -11.0,
    (POTTS, "Swendsen-Wang AIS"): -10.0,
    (POTTS, "Swendsen-Wang AIS, equal steps"): -2.0,
    (ISING, "Gibbs, deleted particle"): 9.0,
    (ISING, "Random cluster, deleted particle"): -9.0,
}


def results(
    changed: dict[tuple[str, str], float],
    *,
    crossed: float = 0.0,
    effective: float = 20.0,
    mixed: float = 30,
    profile: Profile = "quick",
) -> Results:
    """Results with log Z this far off the truth, each run with an error of 1."""
    rows: list[dict[str, Any]] = []
    cells = EXPERIMENT.grid(profile)
    for cell in cells:
        name, row = cell.factors["model"], cell.factors["row"]
        exact = truth(name, 16)
        assert exact is not None
        for replication in range(cell.replications):
            made = {"cell": cell.key, **cell.factors, "replication": replication}
            if cell.factors["part"] == TABLE:
                off = (GOOD | changed).get((name, row), 0.1)
                made |= {"log_z": exact.value + off, "log_z_mcse": 1.0}
                made |= {"effective": effective} if "AIS" in row else {}
            elif cell.key == "both-starts":
                made |= {"ordered": ORDERED, "disordered": DISORDERED, "crossed": crossed}
            else:
                made |= {"mixed": mixed}
            rows.append(made)
    return Results(profile, cells, pd.DataFrame(rows), no_fit, planned=len(rows))


def verdicts(made: Results) -> dict[str, str]:
    return {claim.key: claim.verdict for claim in EXPERIMENT.claims(made)}


def test_claims_hold_and_fail() -> None:
    assert set(verdicts(results({})).values()) == {"reproduced"}
    for changed, key in (
        ({(ISING, "Gibbs AIS"): 3.0}, "ising"),
        ({(POTTS, "Gibbs AIS"): -1.0}, "annealing-fails"),
        ({(POTTS, "Random-cluster nested sampling"): 4.0}, "nested-right"),
        ({(POTTS, "Acceptance ratio"): -4.0}, "acceptance-ratio"),
        ({(POTTS, "Acceptance ratio from J = 6"): 4.0}, "down"),
        ({(ISING, "Gibbs, deleted particle"): 1.0}, "deleted"),
        ({(ISING, "Gibbs, surviving particle"): 9.0}, "deleted"),
        ({(POTTS, "Swendsen-Wang AIS, equal steps"): -9.0}, "equal-steps"),
    ):
        assert verdicts(results(changed))[key] == "not reproduced", key
    # One run that has all of the weight is of no use, wherever it lies.
    lucky = results({(POTTS, "Gibbs AIS"): -1.0}, effective=1.2)
    assert verdicts(lucky)["annealing-fails"] == "reproduced"
    assert verdicts(results({}, crossed=0.5))["hysteresis"] == "not reproduced"
    assert verdicts(results({}, mixed=1))["passes"] == "not reproduced"


def test_without_results_no_claim_is_judged() -> None:
    empty = Results("quick", (), pd.DataFrame(columns=["cell"]), no_fit, planned=9)
    assert set(verdicts(empty).values()) == {"not run"}
    assert EXPERIMENT.tables(empty) == []
    assert [figure.name for figure in EXPERIMENT.figures(empty)] == ["one-step"]


def test_tables_have_the_published_numbers_beside_ours() -> None:
    tables = {table.name: table.frame for table in EXPERIMENT.tables(results({}))}
    potts = tables["table-4-4-potts"]
    assert potts["published"]["Random-cluster nested sampling"] == "14.1 ± 1.8"
    assert potts["errors off, published"]["Random-cluster nested sampling"] == 1.6
    assert potts["verdict"]["Gibbs AIS"] == "wrong"
    assert potts["verdict"]["Acceptance ratio"] == "right"
    assert potts["published"]["Acceptance ratio from J = 6"] == ""
    ising = tables["table-4-4-ising"]
    assert ising["truth"]["Gibbs AIS"] == "7.2962"
    assert list(tables["transition"].index) == [
        "Swendsen-Wang from both starts",
        "Nested sampling through the transition",
    ]


@pytest.mark.parametrize("name", [ISING, POTTS])
def test_every_method_gives_a_fit(name: str) -> None:
    """All cells of the smoke profile; where 4 x 4 nodes can be summed, log Z is near the truth."""
    exact = kaufman_log_z(4, 4, 1.0)
    for cell in EXPERIMENT.grid("smoke"):
        if cell.factors["model"] != name or cell.factors["part"] != TABLE:
            continue
        fit = cell.method.sample(cell.model, nuts=None, seed=1, compiled=None, **cell.settings)
        found = EXPERIMENT.measure(cell, fit)
        assert np.isfinite(found["log_z"])
        share = fit.posterior["agreeing"].to_numpy()
        assert share.ndim == 2
        assert share.min() >= 0
        if name == ISING and "deleted" not in cell.key:
            # Four of the run's own errors, and one nat: those of so short runs are poor themselves.
            assert abs(found["log_z"] - exact) < 4 * found["log_z_mcse"] + 1


def test_the_transition_on_a_small_lattice() -> None:
    model = lattice_model(8, 10, 1.5)
    starts = both_starts(model, lattices=3, sweeps=20, offsets=(-0.4, 0.0, 0.4), seed=1)
    attrs = starts.tree.attrs
    # Far below the transition both starts agree; above it an ordered state stays ordered.
    assert attrs["ordered"][0] == pytest.approx(attrs["disordered"][0], abs=0.1)
    assert attrs["ordered"][2] > ORDERED
    again = both_starts(model, lattices=3, sweeps=20, offsets=(-0.4, 0.0, 0.4), seed=1)
    assert np.array_equal(again.posterior["agreeing"], starts.posterior["agreeing"])
    found = passage(model, particles=8, updates=2, seed=1).tree.attrs
    assert np.all(np.diff(found["path"]) >= 0)
    assert np.all(np.diff(found["mean"]) > 0)
    assert found["mixed"] > 0
    assert len(found["state"]) == 64
