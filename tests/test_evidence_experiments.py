"""The experiments radon, images and shapes on made-up results: claims can hold, and can fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Never

import numpy as np
import pandas as pd
import pytest

from experiments._curves import curve, curve_of
from harness.evidence import log_evidence_by_parts, part_shares
from harness.fit import build_fit
from harness.models.shapes import Banana, Flower
from harness.plan.catalogue import load_experiment
from harness.plan.spec import PROFILES, Cell, Experiment, Profile, Results

RADON, IMAGES, SHAPES = (load_experiment(name) for name in ("radon", "images", "shapes"))
EXACT = -1043.8352870538  # by quadrature; see test_radon


def no_fit(cell: Cell, replication: int) -> Never:
    raise AssertionError(f"no fit of {cell.key}, {replication} is needed")


def results(
    experiment: Experiment, profile: Profile, row: Callable[[Cell, int], dict[str, float]]
) -> Results:
    cells = experiment.grid(profile)
    rows: list[dict[str, Any]] = [
        {
            "cell": cell.key,
            **cell.factors,
            "replication": replication,
            "seconds": 2.0,
            "gradients": 1000,
            "divergences": 0.0,
            **row(cell, replication),
        }
        for cell in cells
        for replication in range(cell.replications)
    ]
    return Results(profile, cells, pd.DataFrame(rows), no_fit, planned=len(rows))


@pytest.mark.parametrize("experiment", [RADON, IMAGES, SHAPES], ids=lambda e: str(e.name))
def test_grids(experiment: Experiment) -> None:
    for profile in PROFILES if experiment is not IMAGES else PROFILES[:2]:
        cells = experiment.grid(profile)
        assert len({cell.key for cell in cells}) == len(cells)
        assert all(cell.replications >= 2 for cell in cells)
        assert all(cell.content() for cell in cells)  # plain data, arrays, dataclasses


def test_without_results_no_claim_is_judged() -> None:
    for experiment in (RADON, IMAGES, SHAPES):
        empty = Results("quick", (), pd.DataFrame(columns=["cell"]), no_fit, planned=9)
        assert {claim.verdict for claim in experiment.claims(empty)} == {"not run"}


# Radon


def radon_results(error: dict[str, float], profile: Profile = "quick") -> Results:
    def row(cell: Cell, replication: int) -> dict[str, float]:
        size = error.get(cell.key, error["all"]) * (-1) ** replication
        return {"log_evidence": EXACT + size, "mcse": 0.1, "bound": EXACT - 9}

    return results(RADON, profile, row)


def test_radon_claims_hold_and_fail() -> None:
    good = {"all": 0.04, "joint": 0.15}
    assert {claim.verdict for claim in RADON.claims(radon_results(good))} == {"reproduced"}
    smoke = RADON.claims(radon_results(good, "smoke"))
    assert {claim.verdict for claim in smoke} == {"not run"}
    for changed, key in (
        ({"joint": 5.0}, "above-the-bound"),
        ({"joint-bootstrap": 0.3}, "bootstrap-step"),
        ({"collapsed-bootstrap": 0.06}, "collapsed-exact"),
        ({"joint": 0.31}, "honest-errors"),
    ):
        found = {claim.key: claim for claim in RADON.claims(radon_results(good | changed))}
        assert found[key].verdict == "not reproduced"


def test_radon_tables_have_every_run_beside_the_exact_evidence() -> None:
    made = radon_results({"all": 0.04, "joint": 0.15})
    tables = {table.name: table.frame for table in RADON.tables(made)}
    assert list(tables["evidence"].columns) == ["log_evidence", "mcse", "exact"]
    assert len(tables["evidence"]) == len(made.metrics)
    assert np.all(tables["evidence"]["exact"] == f"{EXACT:.4f}")
    assert tables["errors"].loc["Joint CT", "mean |error|"] == 0.15


# Images


def image_results(error: dict[str, float], seconds: dict[str, float]) -> Results:
    def row(cell: Cell, replication: int) -> dict[str, float]:
        method = cell.factors["method"]
        size = error.get(method, 0.2) * (-1) ** replication
        values = {"log_evidence": -400 + size, "mcse": abs(size) + 1e-9}
        values["seconds"] = seconds.get(method, 2.0)
        if method == "bdmc":
            values |= {"log_evidence": -400.1, "upper": -399.9}
        elif method != "ais":
            values |= curve_of(np.linspace(-405, -400, 12), 0.5, 2.0)
        return values

    return results(IMAGES, "quick", row)


def test_image_claims_hold_and_fail() -> None:
    good = image_results({"collapsed": 0.1}, {"joint": 3.0, "st": 3.0})
    assert {claim.verdict for claim in IMAGES.claims(good)} == {"reproduced"}
    bad = image_results(
        {"collapsed": 0.4, "ais": 1.0, "joint": 0.1, "st": 0.1}, {"joint": 1.0, "st": 1.0}
    )
    verdicts = {claim.key: claim.verdict for claim in IMAGES.claims(bad)}
    assert verdicts.pop("sandwich-digits") == "reproduced"
    assert list(verdicts.values()) == ["not reproduced"] * 4
    assert len(IMAGES.figures(good)) == 1
    assert len(IMAGES.tables(good)[0].frame) == len(good.cells) - 1


def test_other_folders_have_no_decoders(tmp_path: Any) -> None:
    (tmp_path / "cancer").mkdir()
    assert IMAGES.user_grid is not None
    assert IMAGES.user_grid("smoke", tmp_path) == ()


# Shapes


def test_shapes_are_measured_on_exact_draws() -> None:
    rng = np.random.default_rng(1)
    cells = {cell.key: cell for cell in SHAPES.grid("smoke")}
    first = rng.normal(0, 10, 40_000)
    banana = np.stack([first, 0.1 * (first**2 - 100) + rng.normal(size=40_000)], axis=-1)
    angle = (rng.integers(6, size=40_000) * 2 * np.pi / 6) + rng.uniform(-0.3, 0.3, 40_000)
    flower = 10 * np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    assert np.bincount(Flower().petal(flower)).min() > 6000

    def measured(key: str, x: Any) -> dict[str, float]:
        return SHAPES.measure(
            cells[key],
            build_fit(
                posterior={"x": x[None]},
                extended=None,
                sample_stats={"diverging": np.zeros((1, len(x)), bool)},
                constant_data={},
                attrs={"settings": {}},
            ),
        )

    found = measured("banana-hmc", banana)
    # Binomial: 1 % of 40,000 draws is known to 5 %.
    assert found["tail"] == pytest.approx(0.01, rel=0.25)
    assert found["x2_high"] == pytest.approx(Banana().quantile_x2(0.99), rel=0.1)
    whole = measured("flower-hmc", flower)
    assert whole["petals_visited"] == 6
    # Shares are known to sqrt(5 / 36 / 40,000) = 0.0019.
    assert whole["distance"] < 6 * 0.0019
    half = measured("flower-hmc", flower[Flower().petal(flower) < 3])
    assert half["petals_visited"] == 3
    assert half["distance"] == pytest.approx(0.5, abs=0.01)


def shape_results(pe_petals: float, hmc_tail: float) -> Results:
    def row(cell: Cell, replication: int) -> dict[str, float]:
        hmc = cell.factors["method"] == "hmc"
        wobble = 0.001 * (-1) ** replication
        shares = {f"petal_{k}": 1 / 6 for k in range(6)}
        quantiles = {"x1_low": -25.0, "x1_high": 25.0, "x2_high": 55.0}
        return {
            "petals_visited": 4.0 if hmc else pe_petals,
            "distance": 0.3 if hmc else 0.05,
            "changes": 9.0,
            "tail": (hmc_tail if hmc else 0.0101) + wobble,
            **shares,
            **quantiles,
        }

    return results(SHAPES, "quick", row)


def test_shape_claims_hold_and_fail() -> None:
    assert [c.verdict for c in SHAPES.claims(shape_results(6, 0.004))] == ["reproduced"] * 2
    assert [c.verdict for c in SHAPES.claims(shape_results(5, 0.01))] == ["not reproduced"] * 2
    assert len(SHAPES.tables(shape_results(6, 0.004))) == 2


# Curves


def test_parts_of_a_run() -> None:
    rng = np.random.default_rng(2)
    log_w1, log_w0 = rng.normal(size=(2, 3, 640))
    parts = log_evidence_by_parts(log_w1, log_w0, log_zeta=-7.0, log_g_ratio=0.5)
    assert parts.shape == part_shares().shape == (12,)
    for index, kept in ((11, 640), (9, 320), (7, 160)):
        expected = np.log(np.exp(log_w1[:, :kept]).sum() / np.exp(log_w0[:, :kept]).sum()) - 7.5
        assert parts[index] == pytest.approx(expected, rel=1e-12)


def test_a_curve_is_the_mean_over_runs() -> None:
    rows = [curve_of(np.full(12, value), 1.0, 3.0) for value in (1.0, 2.0, 6.0)]
    line = curve(pd.DataFrame(rows))
    assert np.all(line["mean"] == 3.0)
    np.testing.assert_allclose(line["se"], np.sqrt(7.0 / 3))
    assert line["seconds"].iloc[-1] == 3.0
    assert line["seconds"].iloc[-3] == 2.0
