"""The benchmark on hard posteriors: what is right, what is measured, and made-up runs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Never

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy.stats import norm
from stan_density import stanli

from experiments import hard
from experiments.hard import own_sampler, within
from experiments.hard.distance import distance, sliced_wasserstein
from experiments.hard.frames import outcomes
from experiments.hard.grid import EVALUATIONS, QUICK_TARGETS, ROWS, SECONDS
from experiments.hard.grid import cell as cell_of
from experiments.hard.measure import measured
from experiments.hard.right import (
    FALSE_ALARM,
    FINE,
    LEGEND,
    NO_ANSWER,
    OUTCOMES,
    SAID,
    SILENT,
    Answer,
    log_z_answer,
    mean_answer,
    outcome,
    probability_answer,
)
from harness.arrays import FloatArray
from harness.diagnosis import Finding, Severity, remember
from harness.engine.batched import BatchedDensity
from harness.errors import DataError, SamplingError
from harness.evidence import LogEvidence
from harness.experiment.job import Job, perform
from harness.fit import Fit, build_fit
from harness.model import Model, ModeTest, TrueValue, Truth
from harness.model.truth import without_error
from harness.plan.spec import PROFILES, Failure, Marks, Results
from harness.report.experiment_page import CellRow, build_section, render_experiment_page
from harness.report.site import count_fit_pages, write_tables

assert stanli is not None

EXPERIMENT = hard.EXPERIMENT

# Two wells on a line: N(-3, 1) with weight .3 and N(3, 1) with weight .7, times exp(2).
PROGRAM = """parameters {
  real x;
}
model {
  target += 2 + log_mix(0.3, normal_lpdf(x | -3, 1), normal_lpdf(x | 3, 1));
}
"""
SHARES, LOG_Z = np.array([0.3, 0.7]), 2.0
MEAN = float(SHARES @ [-3.0, 3.0])
SD = math.sqrt(10 - MEAN**2)


def wells(draws: xr.Dataset) -> xr.DataArray:
    return xr.concat([draws["x"] < 0, draws["x"] >= 0], dim="event").astype(float).transpose(
        "chain", "draw", "event"
    )  # fmt: skip


def exact(count: int, rng: np.random.Generator) -> FloatArray:
    centre = rng.choice([-3.0, 3.0], size=count, p=SHARES)
    return np.asarray((centre + rng.normal(size=count))[:, None])


def two_wells(folder: Path) -> Model:
    (folder / "target.stan").write_text(PROGRAM)
    truth = Truth(
        "closed form",
        lambda: TrueValue(LOG_Z, 0.0),
        lambda: {"x": without_error(np.array(MEAN)), "x_squared": without_error(np.array(10.0))},
        ModeTest(("left", "right"), wells, without_error(SHARES), exclusive=True),
        exact,
    )
    return Model("two_wells", folder, {}, ("x",), 1, own_base="improper", truth=truth)


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Model:
    return two_wells(tmp_path_factory.mktemp("two_wells"))


def fit_of(draws: FloatArray, log_z: tuple[float, float] | None = None, problem: str = "") -> Fit:
    """A fit of unweighted draws, shape (chains, draws), with 1,000 evaluations a chain."""
    chains = len(draws)
    found = {} if log_z is None else {"log_evidence": log_z[0], "log_evidence_mcse": log_z[1]}
    fit = build_fit(
        posterior={"x": draws},
        extended=None,
        sample_stats={"lp": np.zeros(draws.shape)},
        constant_data={},
        attrs={
            "method": "nuts",
            "settings": {},
            "seed": 1,
            "gradients_warmup": np.zeros(chains),
            "gradients_sampling": np.full(chains, 1000.0),
            "seconds_warmup": np.zeros(chains),
            "seconds_sampling": np.full(chains, 0.5),
        }
        | found,
    )
    if problem:
        remember(fit, [Finding(Severity.PROBLEM, problem)])
    return fit


def drawn(seed: int, left: float, count: int = 1000) -> FloatArray:
    """Independent draws of four chains with another weight of the left well."""
    rng = np.random.default_rng(seed)
    centre = rng.choice([-3.0, 3.0], size=(4, count), p=[left, 1 - left])
    return np.asarray(centre + rng.normal(size=centre.shape))


# What is right


@pytest.mark.parametrize(
    ("answer", "right", "vague"),
    [
        (log_z_answer(0.09, 0.001), True, False),  # below the tolerance, at 90 errors
        (log_z_answer(0.11, 0.001), False, False),
        (log_z_answer(0.39, 0.1), True, False),
        (log_z_answer(-0.41, 0.1), False, False),
        (log_z_answer(0.39, 0.001, 0.1), True, False),  # the truth's own error counts
        (log_z_answer(0.09, 0.6), True, True),
        (log_z_answer(1.0, 0.6), False, True),  # two errors, but such an error is no answer
        (log_z_answer(0.11, math.nan), False, False),
        (probability_answer(0.54, 0.0001, 0.5, 0, 1e4), True, False),
        (probability_answer(0.56, 0.0001, 0.5, 0, 1e4), False, False),
        (probability_answer(0.65, 0.04, 0.5, 0, 100), True, False),
        (probability_answer(0.1, 0.2, 0.5, 0, 4), False, True),
        # A lost mode of 1/40, whose own standard error is 0.
        (probability_answer(0.0, 0.0, 0.025, 0, 1e4), False, False),
        (probability_answer(0.0, 0.0, 0.025, 0, 160), True, False),
        (probability_answer(1e-25, 1e-26, 0.025, 0, 160), True, False),
        (probability_answer(1e-25, 1e-26, 0.025, 0, 1e4), False, False),
        (mean_answer(0.09, 0.001), True, False),
        (mean_answer(0.15, 0.02), False, False),
    ],
)
def test_an_answer(answer: Answer, right: bool, vague: bool) -> None:
    assert (answer.right, answer.vague) == (right, vague)


def test_outcomes_of_several_answers() -> None:
    good, bad, vague = log_z_answer(0, 0.1), log_z_answer(9, 0.1), log_z_answer(9, 3.0)
    assert outcome([good], problem=False) == FINE
    assert outcome([good], problem=True) == FALSE_ALARM
    assert outcome([good, bad], problem=True) == SAID
    assert outcome([good, bad], problem=False) == SILENT
    # Right by luck, with an error that says that there is no answer.
    lucky = log_z_answer(0.05, 3.0)
    assert outcome([good, lucky], problem=True) == SAID
    assert outcome([good, lucky], problem=False) == FINE
    # A large standard error says of that number only that it is none.
    assert outcome([good, vague], problem=False) == SAID
    assert outcome([vague, bad], problem=False) == SILENT
    assert [mark.words for mark in LEGEND] == list(OUTCOMES)
    assert len({mark.symbol for mark in LEGEND}) == len({mark.tone for mark in LEGEND}) == 5


def test_z_of_an_answer_that_claims_to_be_exact() -> None:
    assert log_z_answer(0.2, 0.0).z == math.inf
    assert log_z_answer(-0.2, 0.1).z == pytest.approx(-2)
    assert log_z_answer(0.0, 0.0).z == 0


# What is measured


def test_a_sound_run(target: Model) -> None:
    draws = drawn(1, 0.3)
    found = measured(target, fit_of(draws, (LOG_Z + 0.05, 0.04)))
    assert OUTCOMES[int(found["outcome"])] == FINE
    assert found["judged"] == 1 + 2 + 2
    assert found["log_z_error"] == pytest.approx(0.05)
    assert found["log_z_z"] == pytest.approx(1.25)
    share = float(np.mean(draws < 0))
    assert abs(found["mode_error"]) == pytest.approx(abs(share - 0.3))
    errors = np.array([(draws.mean() - MEAN) / SD, (np.square(draws).mean() - 10) / exact_spread()])
    assert found["mean_error"] == pytest.approx(errors[np.abs(errors).argmax()], rel=0.1)
    assert 0.9 < found["coverage"] < 1.1
    # 1,000 independent draws each: shares of the wells differ by .0205 (one sd), and the wells are
    # 2.05 sd apart.  Three of these, and .03 for the shapes within the wells.
    assert max(found["distance"], found["exact_distance"]) < 3 * 0.0205 * 2.05 + 0.03
    assert found["evaluations"] == 4000
    assert math.isnan(found["trips"])


def exact_spread() -> float:
    """Standard deviation of X^2 in closed form: both wells have the same X^2."""
    return math.sqrt(2 + 4 * 9)


def test_a_lost_well_is_wrong_and_fine_or_said(target: Model) -> None:
    lost = np.random.default_rng(2).normal(3, 1, size=(4, 1000))
    found = measured(target, fit_of(lost, (LOG_Z + math.log(0.7), 0.01)))
    assert OUTCOMES[int(found["outcome"])] == SILENT
    assert found["coverage"] < 0.05
    # The lost share, .3, is 2.05 sd away; the sampling error of the shares is as above.
    assert found["distance"] > 0.3 * 2.05 - 0.16
    said = measured(target, fit_of(lost, problem="A mode is missing."))
    assert OUTCOMES[int(said["outcome"])] == SAID
    assert math.isnan(said["log_z_error"])
    alarm = measured(target, fit_of(drawn(3, 0.3), problem="A mode is missing."))
    assert OUTCOMES[int(alarm["outcome"])] == FALSE_ALARM


def test_pseudo_samples_are_weighted(target: Model) -> None:
    """Two pseudo-samples, of which one has all the weight."""
    good, bad = drawn(4, 0.3), drawn(5, 0.9)
    fit = build_fit(
        posterior={"x": good},
        extended={
            "x": np.stack([good, bad], axis=-1),
            "log_weight": np.broadcast_to([0.0, -1e3], (*good.shape, 2)).copy(),
        },
        sample_stats={"lp": np.zeros(good.shape)},
        constant_data={},
        attrs={str(k): v for k, v in fit_of(good).tree.attrs.items()}
        | {"method": "pseudo_extended"},
    )
    found, plain = measured(target, fit), measured(target, fit_of(good))
    for name in ("mode_error", "coverage", "mean_error"):
        assert found[name] == pytest.approx(plain[name])


def test_the_sliced_distance_of_shifted_normals() -> None:
    """Along u the shift is |u . s|, whose mean over the circle is 2 |s| / pi."""
    rng = np.random.default_rng(6)
    points = rng.normal(size=(5000, 2))
    angle = (np.arange(64) + 0.5) * np.pi / 64
    directions = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    shifted = sliced_wasserstein(points, points + np.array([0.6, 0.8]), directions)
    assert shifted == pytest.approx(2 / np.pi, rel=1e-3)  # 64 points of a smooth rule
    two, three = rng.normal(size=(2, 2000, 2))
    found = distance(points + np.array([0.6, 0.8]), two, three, effective=2000)
    # Random directions: sd of |cos| is .31, so their mean has an error of .04; five of them.
    assert found.value == pytest.approx(2 / np.pi, abs=0.2)
    # The mean gap of two normal samples: sd of F_n - F_m at x, times sqrt(2/pi), over x.
    x = np.linspace(-6, 6, 2001)
    gap = np.trapezoid(np.sqrt(2 / np.pi * norm.cdf(x) * norm.sf(x) * (1 / 1000 + 1 / 2000)), x)
    assert 0.5 * gap < found.yardstick < 2 * gap
    assert distance(points, two, three, effective=20).yardstick > 2 * found.yardstick


# The budget


def test_iterations_that_a_budget_pays_for() -> None:
    trial = within.TRIAL_WARMUP + within.TRIAL_DRAWS
    infinite = within.Spent(math.inf, math.inf)
    # Half of the trial's cost grows: of 3 times its cost, .5 is fixed, so 2.5 / .5 as many.
    spent = within.Spent(1.0, 1000.0)
    assert within.affordable(spent, 0.5, within.Spent(4.0, math.inf)) == 5 * trial
    assert within.affordable(spent, 0.5, within.Spent(math.inf, 4000.0)) == 5 * trial
    assert within.affordable(spent, 0.5, within.Spent(1.4, math.inf)) == 0
    assert within.affordable(spent, 0.0, infinite) == 0
    # A quarter is not paid again: of 3 times the cost, .25 is fixed, so 2.75 / .5 as many.
    more = within.affordable(spent, 0.5, within.Spent(4.0, math.inf), once=0.25)
    assert more == int(5.5 * trial)
    assert within.affordable(spent, 1.0, infinite) == within.MOST_WARMUP + within.MOST_DRAWS


def test_runs_of_two_methods_within_a_budget(target: Model) -> None:
    """NUTS as a worker runs it, and particles; both count what they spend."""
    row = {row.key: row for row in ROWS}
    nuts = cell_of("two_wells", target, "abc", row["nuts"], 2, evaluations=50_000.0)
    made = perform(Job("test", target, nuts.method, nuts.settings, nuts.nuts, seed=1, program=None))
    assert made.failure is None
    assert made.fit is not None
    attrs = made.fit.tree.attrs
    assert attrs["model"] == "two_wells"
    assert attrs["evaluations"] == made.fit.gradients > 0
    assert made.fit.seconds > 0
    assert not attrs["trial_only"]
    assert made.fit.posterior.sizes["draw"] > within.TRIAL_DRAWS
    smc = cell_of("two_wells", target, "abc", row["smc"], 2, evaluations=1.0)
    fit = smc.method.sample(target, nuts=None, seed=1, **smc.settings)
    assert fit.tree.attrs["trial_only"]
    found = measured(target, fit)
    assert OUTCOMES[int(found["outcome"])] == FINE
    assert found["mode_error"] != 0
    # The populations' spread is the error; eight of them leave it rough, so six and not four.
    assert abs(found["log_z_z"]) < 6


def test_a_program_that_cannot_be_run_has_a_clear_error(target: Model, tmp_path: Path) -> None:
    (tmp_path / "target.stan").write_text("parameters { real x; } model { x ~ normal(0 1); }")
    wrong = replace(target, folder=tmp_path)
    row = next(row for row in ROWS if row.key == "auto")
    cell = cell_of("two_wells", wrong, "abc", row, 2, seconds=0.1)
    made = perform(
        Job(
            "test",
            wrong,
            cell.method,
            cell.settings,
            cell.nuts,
            seed=1,
            program=None,
        )
    )
    assert made.fit is None
    assert "unexpected error" not in str(made.failure)


# A sampler of one's own


def test_measuring_a_sampler_of_ones_own(target: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_sampler, "TARGETS", {"two-wells": lambda: target})

    def honest(density: hard.CountedDensity, *, seed: int) -> hard.Sampled:
        assert density.dimension == 1
        value, gradient = density(np.zeros((7, 1)))
        assert value[0] == pytest.approx(2 + math.log(math.exp(-4.5) / math.sqrt(2 * math.pi)))
        assert gradient.shape == (7, 1)
        return hard.Sampled(drawn(seed, 0.3)[..., None], LogEvidence(LOG_Z, 0.01))

    def blind(density: hard.CountedDensity, *, seed: int) -> hard.Sampled:
        return hard.Sampled(np.random.default_rng(seed).normal(3, 1, size=(4, 500, 1)))

    def failing(density: hard.CountedDensity, *, seed: int) -> hard.Sampled:
        raise SamplingError("nothing found")

    good = hard.measure_sampler(honest, seeds=[3, 4])
    assert list(good["outcome"]) == [FINE, FINE]
    assert list(good["evaluations"]) == [7, 7]
    assert list(good["seed"]) == [3, 4]
    assert list(hard.measure_sampler(blind, seeds=[1])["outcome"]) == [SILENT]
    assert list(hard.measure_sampler(failing, seeds=[1])["outcome"]) == [NO_ANSWER]
    with pytest.raises(DataError, match="there is no target 'three'"):
        hard.measure_sampler(honest, targets=["three"])
    with pytest.raises(DataError, match=r"\(chains, draws, 1\)"):
        hard.measure_sampler(lambda density, *, seed: hard.Sampled(np.zeros((4, 9, 2))))
    with pytest.raises(DataError, match="not finite"):
        hard.measure_sampler(lambda density, *, seed: hard.Sampled(np.full((4, 9, 1), np.nan)))


# Made-up runs: the matrix, tables, figures and claims


def no_fit(cell: Any, replication: int) -> Never:
    raise AssertionError(f"no fit of {cell.key}, {replication} is needed")


def results(
    outcome_of: Callable[[str, str, int], str] = lambda target, row, run: FINE,
    *,
    failing: tuple[str, ...] = (),
) -> Results:
    cells = EXPERIMENT.grid("quick")
    rows: list[dict[str, Any]] = []
    failures = []
    for cell in cells:
        for run in range(cell.replications):
            if cell.key in failing:
                failures.append(Failure(cell.label, run, "it found no path"))
                continue
            words = outcome_of(cell.factors["target"], cell.factors["method"], run)
            size = 0.02 if words in (FINE, FALSE_ALARM) else 0.6
            names = ("log_z_error", "mode_error", "mean_error", "scaled_error", "distance")
            rows.append(
                {"cell": cell.key, **cell.factors, "replication": run, "seed": run}
                | {"seconds": 6.0, "gradients": 1e5, "evaluations": 1e5}
                | dict.fromkeys(names, size)
                | dict.fromkeys(("log_z_z", "mode_z", "mean_z"), size / 0.02)
                | {"log_z_mcse": 0.02, "coverage": 1.0, "exact_distance": 0.02}
                | {"trips": 0.5 if cell.factors["method"] == "pt-2" else np.nan, "barrier": 3.0}
                | {"outcome": float(OUTCOMES.index(words)), "effective": 400.0, "problem": 0.0}
            )
    kept = tuple(cell for cell in cells if cell.key not in failing)
    return Results(
        "quick", kept, pd.DataFrame(rows), no_fit, len(rows) + len(failures), tuple(failures)
    )


def expected(target: str, row: str, run: int) -> str:
    """What should come out, but for one silent run of joint tempering."""
    if target == "unequal-wells-25" and row not in ("auto", "nuts"):
        return SAID
    if row == "nuts" and target == "phi-four-field":
        return SILENT
    if (target, row, run) == ("product", "joint", 3):
        return SILENT
    return FINE


def test_grids_have_keys_of_their_own_and_plain_settings() -> None:
    for profile in PROFILES:
        cells = EXPERIMENT.grid(profile)
        assert len({cell.key for cell in cells}) == len({cell.label for cell in cells})
        assert len({cell.key for cell in cells}) == len(cells) > 0
        assert all(cell.replications >= 2 for cell in cells)
        assert all(cell.content() for cell in cells)
    quick = EXPERIMENT.grid("quick")
    assert len({cell.factors["target"] for cell in quick}) == len(QUICK_TARGETS)
    assert {cell.factors["budget"] for cell in EXPERIMENT.grid("paper")} == {
        SECONDS,
        EVALUATIONS,
    }


def test_the_matrix_has_a_mark_for_each_run_also_for_those_that_failed() -> None:
    made = results(expected, failing=("phi-four-field-pe-5",))
    (table,) = [each for each in EXPERIMENT.tables(made) if each.first]
    assert list(table.frame.index) == list(QUICK_TARGETS)
    entry: Any = table.frame.loc["product", "joint CT"]
    assert isinstance(entry, Marks)
    assert [mark.words for mark in entry] == [FINE, FINE, FINE, SILENT, FINE]
    assert [mark.tone for mark in entry] == ["good"] * 3 + ["bad", "good"]
    assert str(entry) == f"4 {FINE}, 1 {SILENT}"
    failed: Any = table.frame.loc["phi-four-field", "PE N=5"]
    assert str(failed) == f"5 {NO_ANSWER}"


def page_with_marks(href: str) -> str:
    """The page of made-up runs with every outcome; the first cell's first run leads to a page."""

    def various(target: str, row: str, run: int) -> str:
        return OUTCOMES[(len(target) + len(row) + run) % 4]

    made = results(various, failing=("phi-four-field-pe-5",))
    fine = Finding(Severity.FINE, "Fine.")
    section = build_section(EXPERIMENT, replace(made, cells=()))
    return render_experiment_page(section, [CellRow(made.cells[0], 5, fine, fine, [(0, href)])], [])


def test_tables_are_written_and_the_page_links_to_fits(tmp_path: Path) -> None:
    made = results(expected, failing=("phi-four-field-pe-5",))
    tables = EXPERIMENT.tables(made)
    write_tables(tmp_path, tables)
    matrix = pd.read_csv(tmp_path / "matrix.csv", index_col="target")
    assert matrix.loc["product", "joint CT"] == f"4 {FINE}, 1 {SILENT}"
    counts = pd.read_csv(tmp_path / "outcomes.csv", index_col="method")
    assert counts.loc["PE N=5", NO_ANSWER] == 5
    assert int(counts.to_numpy().sum()) == made.planned
    page = page_with_marks("page-0.html")
    assert page.index('class="marks') < page.index("<h2>Claims")
    assert 'href="page-0.html" title=' in page
    assert page.count('<span class="mark ') >= made.planned - 1


def test_runs_that_are_wrong_and_fine_get_a_page() -> None:
    made = results(expected)
    section = build_section(EXPERIMENT, replace(made, cells=()))
    silent = [mark for table in section.tables for mark in table.marks if mark.tone == "bad"]
    nuts = [f"phi-four-field-nuts/{run}" for run in range(5)]
    assert {f"{mark.cell}/{mark.replication}" for mark in silent} == {"product-joint/3", *nuts}
    # Of each cell the first run, and of these two cells 1 and 4 more.
    whole = replace(section, results=made)
    assert count_fit_pages(whole) == len(made.cells) + 1 + 4
    assert count_fit_pages(whole, "all") == len(made.metrics)


def test_errors_are_costed_and_round_trips_stand_beside_mode_errors() -> None:
    frame = {table.name: table.frame for table in EXPERIMENT.tables(results(expected))}["costs"]
    row = frame.loc["product, PT, 2 references"]
    # neff = 1 / .02^2 draws in 6 seconds and 100,000 evaluations.
    assert row["neff per second"] == pytest.approx(2500 / 6)
    assert row["neff per 1,000 evaluations"] == pytest.approx(25)
    assert row["round trips per 1,000 evaluations"] == 0.5
    assert row["modes: RMSE"] == pytest.approx(0.02)


def test_the_figure_has_a_panel_for_each_target() -> None:
    (figure,) = EXPERIMENT.figures(results(expected))
    assert all(name in figure.image.decode() for name in QUICK_TARGETS)
    assert EXPERIMENT.figures(replace(results(), cells=())) == []


def verdicts(made: Results) -> dict[str, str]:
    return {claim.key: claim.verdict for claim in EXPERIMENT.claims(made)}


def test_claims_hold_and_fail() -> None:
    assert set(verdicts(results(expected)).values()) == {"reproduced"}
    for wrong, key in (
        (lambda target, row, run: SILENT if row == "auto" and run == 4 else FINE, "auto-is-honest"),
        (lambda target, row, run: SAID if target == "product" else FINE, "right-somewhere"),
        (lambda target, row, run: FINE, "nuts-misses-modes"),
        (lambda target, row, run: FINE, "first-order"),
        (lambda target, row, run: SAID, "silent-somewhere"),
    ):
        assert verdicts(results(wrong))[key] == "not reproduced", key
    empty = Results("quick", (), pd.DataFrame(columns=["cell"]), no_fit, 9)
    assert set(verdicts(empty).values()) == {"not run"}
    smoke = replace(results(expected), profile="smoke")
    assert set(verdicts(smoke).values()) == {"not run"}


def test_runs_that_failed_count_as_outcomes() -> None:
    made = results(expected, failing=("product-auto",))
    cell = next(cell for cell in EXPERIMENT.grid("quick") if cell.key == "product-auto")
    assert list(outcomes(made, cell).values()) == [NO_ANSWER] * 5
    assert verdicts(made)["auto-is-honest"] == "reproduced"


def test_it_runs_on_request_only() -> None:
    assert EXPERIMENT.on_request


def test_truth_of_the_made_up_target(target: Model) -> None:
    """The program and the truth agree, by a sum over a grid."""
    x = np.linspace(-12, 12, 4001)
    value = BatchedDensity(target.program("target"), {})(x[:, None])[0]
    step = x[1] - x[0]
    assert np.log(np.exp(value).sum() * step) == pytest.approx(LOG_Z, abs=1e-9)
    assert np.exp(value[x < 0]).sum() * step / math.exp(LOG_Z) == pytest.approx(
        0.3 + 0.4 * 0.00134990, abs=1e-3
    )
