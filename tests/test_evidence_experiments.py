"""The experiments radon, images and shapes on made-up results: claims can hold, and can fail."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Never

import numpy as np
import pandas as pd
import pytest

from experiments._curves import curve, curve_of
from experiments.images.grid import PROFILES as IMAGE_SIZES
from experiments.images.joint_error import joint_error
from experiments.images.summary import Line
from harness.errors import DataError
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
    experiment: Experiment,
    profile: Profile,
    row: Callable[[Cell, int], dict[str, float]],
    runs: int | None = None,
) -> Results:
    cells = tuple(
        replace(cell, replications=runs or cell.replications) for cell in experiment.grid(profile)
    )
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
    for profile in PROFILES:
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


def image_results(
    spread: dict[str, float],
    gradients: dict[str, int],
    profile: Profile = "quick",
    runs: int | None = 20,
) -> Results:
    """Results whose errors of every group have the standard deviation that ``spread`` gives."""
    rng = np.random.default_rng(8)

    def row(cell: Cell, replication: int) -> dict[str, float]:
        method, images = cell.factors["method"], len(cell.model.data["y"])
        if method == "bdmc":
            bounds = {"log_evidence": -400.1, "upper": -399.9, "mcse": 0.1}
            for number in cell.extras["of"]:
                for name, value in (("lower", -40.01), ("upper", -39.99)):
                    bounds |= {f"{name}_{number}_{group}": value for group in range(10)}
            return bounds
        size = spread.get(method, 0.2)

        def groups(name: str) -> dict[str, float]:
            return {f"{name}_{g}": e for g, e in enumerate(-40 + size * rng.normal(size=10))}

        values = {"images_run": images, "mcse": size, "seconds": 2.0, **groups("group")}
        values["gradients"] = gradients.get(method, 1000)
        if method == "ais":
            # The cost of the first length is what Gibbs CT costs half-way.
            values["gradients"] = 700 if cell.key.endswith("-50") else 1000
            values["seconds"] = values["gradients"] / 500
        else:
            values |= curve_of(np.linspace(-405, -400, 12), 0.5, 2.0) | {"before": 0.2}
            for part in range(1, 13):
                values |= groups(f"part_{part}")
        return values

    return results(IMAGES, profile, row, runs)


def image_verdicts(
    spread: dict[str, float],
    gradients: dict[str, int],
    profile: Profile = "quick",
    runs: int | None = 20,
) -> dict[str, str]:
    found = IMAGES.claims(image_results(spread, gradients, profile, runs))
    return {claim.key.removesuffix("-digits"): claim.verdict for claim in found}


def test_image_claims_hold_and_fail() -> None:
    good = image_verdicts({"collapsed": 0.02, "joint-hmc": 2.0, "st-flat": 2.0, "st": 2.0}, {})
    assert good.pop("st-index") == "not reproduced"
    assert set(good.values()) == {"reproduced"}
    assert image_verdicts({}, {})["st-index"] == "reproduced"
    bad = image_verdicts(
        {"collapsed": 2.0, "ais": 2.0, "joint-hmc": 0.02, "st-flat": 0.02, "st": 0.02}, {}
    )
    assert bad.pop("sandwich") == "reproduced"
    assert set(bad.values()) == {"not reproduced"}
    # Better than AIS is no more similar than worse.
    for size in (0.02, 2.0):
        assert image_verdicts({"gibbs": size}, {})["gibbs-like-ais"] == "not reproduced"
    smoke = image_verdicts({}, {}, "smoke")
    assert set(smoke.values()) == {"not run"}


def test_image_claims_that_four_runs_do_not_decide() -> None:
    found = image_verdicts({"ais": 0.33}, {}, runs=None)
    assert found["gibbs-like-ais"] == "undecided"
    # As good as Gibbs CT: an interval about 1.
    assert found["joint-below-gibbs"] == found["st-below-gibbs"] == "undecided"
    # Gibbs CT has spent less before its first part ends than the other in all.
    apart = image_verdicts({"st-flat": 2.0, "ais": 0.2}, {"gibbs": 10_000_000})
    assert apart["st-index"] == apart["gibbs-like-ais"] == "undecided"
    assert apart["gibbs-like-ais-seconds"] == apart["st-below-gibbs"] == "reproduced"


def test_image_tables_and_figures() -> None:
    made = image_results({}, {})
    (table,) = IMAGES.tables(made)
    assert list(table.frame.index[:3]) == [
        "AIS, 50 temperatures",
        "AIS, 100 temperatures",
        "Simulated tempering",
    ]
    assert len(table.frame) == len(made.cells) - 1
    names = [figure.name for figure in IMAGES.figures(made)]
    assert names == ["figure-4-digits-20", "images-digits"]


def test_the_published_numbers_of_the_images_are_those_of_the_profile() -> None:
    """Of the paper's section 7.4, and of the authors' program where the paper is silent."""
    fifth, whole = IMAGE_SIZES["paper"]
    assert whole.images == 1000
    assert replace(fifth, images=1000, nuts_images=0) == whole
    assert whole.annealed == (50, 100, 200, 500, 1000, 2000)
    assert (whole.annealed_chains, whole.chains, whole.steps, whole.rungs) == (16, 2, 10, 1000)
    assert (whole.gibbs, whole.tempered, whole.joint, whole.runs) == (10_000, 3000, 7500, 10)
    assert whole.bounds[0] == 10_000
    assert 2 * whole.bounds[1] == 16  # in two runs
    assert (whole.annealed_step, whole.step) == (0.3, 0.25)


def test_images_are_measured_by_group() -> None:
    cell = next(c for c in IMAGES.grid("smoke") if c.key == "digits-gibbs")
    parts = np.arange(24.0).reshape(2, 12)  # two images, twelve parts
    fit = build_fit(
        posterior={"z": np.zeros((2, 5, 2, 3))},
        extended=None,
        sample_stats={"lp": np.zeros((2, 5))},
        constant_data={},
        attrs={
            "settings": {"warmup": 100, "draws": 300},
            "log_evidence": 34.0,
            "log_evidence_mcse": 0.1,
            "image_log_evidence": parts[:, -1],
            "part_log_evidence": parts.ravel(),
            "seconds_warmup": np.zeros(2),
            "seconds_sampling": np.full(2, 4.0),
        },
    )
    found = IMAGES.measure(cell, fit)
    assert [found[f"group_{g}"] for g in range(3)] == [11.0, 23.0, 0.0]
    assert [found["part_3_0"], found["part_3_1"]] == [2.0, 14.0]
    assert found["log_evidence_3"] == 16.0
    assert found["before"] == 0.25
    assert found["seconds_12"] == 8.0


def test_error_of_a_sum_over_groups() -> None:
    """Against its definition, over 400 experiments of five runs with a known bias and truth."""
    rng = np.random.default_rng(11)
    sd, bias = np.linspace(0.1, 0.5, 10), 0.05
    exact = np.square(sd).sum() + (10 * bias) ** 2
    estimates, covered, ratios = [], 0, 0
    for _ in range(400):
        truth = 0.1 * rng.normal(size=(2, 10))
        one, two = (joint_error(bias + sd * rng.normal(size=(5, 10)), truth) for _ in range(2))
        estimates.append(one.mean_square)
        covered += abs(one.mean_square - exact) < 1.96 * one.se
        low, high = one.over(two).interval()
        ratios += low < 1 < high
    # Squared biases below 0 count as 0, which adds a little: at most half the sd of B^2 - v.
    error = np.std(estimates) / np.sqrt(400)
    noise = np.square(sd).sum() / 5 + 10 * 0.01 / 2
    assert -4 * error < np.mean(estimates) - exact < 4 * error + noise / 2
    # 95 % of 400 is 380, give or take 4.4; intervals by the normal approximation lose a few.
    assert covered > 340
    assert ratios > 350
    with pytest.raises(DataError, match="two runs"):
        joint_error(np.zeros((1, 10)), np.zeros((2, 10)))


def test_a_line_is_read_between_its_points() -> None:
    estimates = np.stack([np.full((2, 10), level) for level in (0.0, 1.0, 4.0)])
    line = Line(
        "made up", np.array([1.0, 2.0, 8.0]), np.array([5.0, 6.0, 7.0]), estimates, True,
        np.zeros((1, 10)), np.zeros(1), 10,
    )  # fmt: skip
    middle = line.error_at(4.0, "gradients")  # half-way between 2 and 8 by the logarithm
    assert middle is not None
    assert middle.bias == pytest.approx(10 * 2.5)
    assert line.error_at(8.0, "gradients") == line.error()
    assert line.error_at(0.9, "gradients") is None
    assert line.error_at(7.1, "seconds") is None


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


def shape_results(
    pe_petals: float, hmc_tail: float, failing: tuple[int, ...] = (), profile: Profile = "quick"
) -> Results:
    def row(cell: Cell, replication: int) -> dict[str, float]:
        hmc = cell.factors["method"] == "hmc"
        wobble = 0.001 * (-1) ** replication
        shares = {f"petal_{k}": 1 / 6 for k in range(6)}
        quantiles = {"x1_low": -25.0, "x1_high": 25.0, "x2_high": 55.0}
        return {
            "petals_visited": 4.0 if hmc or replication in failing else pe_petals,
            "distance": 0.3 if hmc else 0.05,
            "changes": 9.0,
            "tail": (hmc_tail if hmc else 0.0101) + wobble,
            **shares,
            **quantiles,
        }

    return results(SHAPES, profile, row)


def test_shape_claims_hold_and_fail() -> None:
    assert [c.verdict for c in SHAPES.claims(shape_results(6, 0.003))] == ["reproduced"] * 2
    assert [c.verdict for c in SHAPES.claims(shape_results(5, 0.01))] == ["not reproduced"] * 2
    # Six of the eight runs of PE explore the flower: the interval contains a half.
    few = {c.key: c for c in SHAPES.claims(shape_results(6, 0.003, (0, 1)))}
    assert few["flower"].verdict == "undecided"
    assert "PE did in 6 of 8 runs, 75% [41%, 93%]" in few["flower"].measured
    many = SHAPES.claims(shape_results(6, 0.003, (0, 1), "paper"))
    assert [c.verdict for c in many] == ["reproduced"] * 2
    found = {table.name: table.frame for table in SHAPES.tables(shape_results(6, 0.003))}
    assert found["flower"].loc["HMC", "runs that visit all petals"] == "0 of 20"
    assert found["banana"].loc["PE N=3", "runs that reach the tails"] == "4 of 4"


def test_shapes_have_the_constants_of_the_public_program() -> None:
    assert (Banana().v, Banana().b, Flower().r, Flower().A) == (100.0, 0.1, 10.0, 6.0)
    assert (Flower().w, Flower().s) == (6, 1.0)
    cells = {cell.key: cell for cell in SHAPES.grid("paper")}
    assert cells["flower-pe"].settings["num_pseudo_samples"] == 2
    assert cells["banana-pe-3"].settings["num_pseudo_samples"] == 3
    for cell in cells.values():  # 10,000 iterations, half of them warm-up
        assert cell.nuts.warmup + cell.nuts.draws == 10_000
        assert cell.replications == 20


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
