"""The horseshoe experiment: splits, equal cost, predictive density, claims both ways, sizes."""

from __future__ import annotations

import math
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any, Never

import numpy as np
import pandas as pd
import pytest

from experiments.horseshoe.cancer import golub_leukemia
from harness.errors import DataError
from harness.fit import build_fit
from harness.models.horseshoe import Classification, log_predictive_density
from harness.plan.catalogue import load_experiment
from harness.plan.spec import PROFILES, Cell, Claim, Profile, Results, Verdict

EXPERIMENT = load_experiment("horseshoe")


def part(name: str) -> Any:
    """Return a module of the experiment's package."""
    return import_module(f"experiments.horseshoe.{name}")


cells, measures, small, tables = (part(n) for n in ("cells", "measures", "small", "tables"))
predictions = part("predictions")
BOUNDED = float(small.small_model("full").truth.expected("bounded"))
TINY = Classification(np.random.default_rng(1).normal(size=(15, 9)), np.arange(15) % 2)


def tiny_cells(monkeypatch: pytest.MonkeyPatch, profile: Profile = "quick") -> tuple[Cell, ...]:
    """Cells of a small data set, so that no test needs thousands of coefficients."""
    monkeypatch.setitem(cells.RELEVANT, "tiny", 2)
    found: tuple[Cell, ...] = cells.data_cells("tiny", TINY, profile)
    return found


# Grid


@pytest.mark.parametrize("profile", PROFILES)
def test_all_methods_see_the_same_splits(profile: Profile, monkeypatch: pytest.MonkeyPatch) -> None:
    found = tiny_cells(monkeypatch, profile)
    sizes = cells.PROFILES[profile]
    assert len({cell.key for cell in found}) == len(found) == len(cells.ROWS[profile])
    for cell in found:
        assert cell.replications == len(cell.models) == sizes.splits
        for split, (first, mine) in enumerate(zip(found[0].models, cell.models, strict=True)):
            assert mine.name == f"tiny-{split}"
            np.testing.assert_array_equal(mine.data["X"], first.data["X"])
            held_out = cell.extras["held_out"][mine.name]
            assert len(held_out.y) == 3
            # Training and held-out observations are all of them: no class is lost or doubled.
            assert mine.data["y"].sum() + held_out.y.sum() == TINY.y.sum()
        shared = cell.factors["form"] == "shared_scales"
        assert bool(cell.model.shared) == shared


def test_splits_differ_and_stay_when_the_grid_grows() -> None:
    first, again, other = (cells.split_of("tiny", TINY, split)[0] for split in (0, 0, 1))
    np.testing.assert_array_equal(first.x, again.x)
    assert not np.array_equal(first.x, other.x)
    assert not np.array_equal(first.x, cells.split_of("other", TINY, 0)[0].x)


@pytest.mark.parametrize("profile", ["quick", "paper"])
def test_every_row_is_planned_at_the_same_cost(
    profile: Profile, monkeypatch: pytest.MonkeyPatch
) -> None:
    for cell in tiny_cells(monkeypatch, profile):
        planned = cell.factors["N"] * cells.STEPS * cell.nuts.draws
        # Shared scales make trajectories shorter: with more draws the budget is spent all the same.
        more = 1.7 if cell.factors["form"] == "shared_scales" else 1.0
        assert planned == pytest.approx(more * cell.extras["budget"], rel=0.02)
        warmup = cell.factors["N"] * cell.nuts.warmup
        assert warmup == pytest.approx(cells.PROFILES[profile].warmup, rel=0.01)


def test_the_profile_paper_has_the_published_length() -> None:
    """10,000 iterations of HMC (section 4.3), which RStan halves; and Stan's own depth of trees."""
    sizes = cells.PROFILES["paper"]
    assert sizes.warmup == sizes.draws == 5000
    assert (sizes.splits, sizes.max_treedepth) == (20, 10)
    assert {row.inv_temp for row in cells.ROWS["paper"]} == {None, 0.25, 0.5, 0.75}
    assert {row.pseudo_samples for row in cells.ROWS["paper"]} == {1, 2, 5}


def test_the_shipped_data_are_always_there() -> None:
    found = EXPERIMENT.grid("smoke")
    assert {cell.factors["data"] for cell in found} == {"golub", "exact"}
    data = golub_leukemia()
    assert found[0].model.data["X"].shape == (30, data.x.shape[1])


def test_the_users_data_are_read_from_a_folder(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="none of colon"):
        cells.user_grid("smoke", tmp_path)
    rng = np.random.default_rng(4)
    for name, d in (("colon", 30), ("leukemia", 80), ("prostate", 250)):
        np.savez(tmp_path / f"{name}.npz", X=rng.normal(size=(20, d)), Y=1 + np.arange(20) % 2)
    found = cells.user_grid("smoke", tmp_path)
    assert {cell.factors["data"] for cell in found} == {"colon", "leukemia", "prostate"}
    assert len({cell.key for cell in (*found, *EXPERIMENT.grid("smoke"))}) == len(found) + 9
    # p0 / (d - p0) * 2 / sqrt(n) with 16 training observations.
    prostate = next(cell for cell in found if cell.factors["data"] == "prostate")
    assert prostate.model.data["scale_global"] == pytest.approx(200 / 50 * 2 / 4)


def test_shown_coefficients_are_some_at_random_and_the_most_correlated() -> None:
    shown = cells.shown_coefficients("tiny", TINY)
    assert len(set(shown)) == len(shown) == 6
    correlation = [abs(np.corrcoef(column, TINY.y)[0, 1]) for column in TINY.x.T]
    assert list(shown[3:]) == sorted(range(9), key=lambda j: -correlation[j])[:3]


# Measures


def made_fit(cell: Cell, rng: np.random.Generator) -> Any:
    """Make up draws of the cell's first split, of NUTS on the target or with pseudo-samples."""
    num, draws = cell.factors["N"], cell.nuts.draws
    last = () if num == 1 else (num,)
    shape = (1, draws)
    arrays = {
        "beta0": rng.normal(size=(*shape, *last)),
        "z": rng.normal(size=(*shape, 9, *last)),
        "lambda": np.exp(rng.normal(size=(*shape, 9, *last))),
        "tau": np.exp(rng.normal(size=(*shape, *last))),
        "c2": np.exp(rng.normal(size=(*shape, *last))),
    }
    extended = None
    if last:
        extended = arrays | {"log_weight": rng.normal(size=(*shape, num))}
        arrays = {name: values[..., 0] for name, values in arrays.items()}
    return build_fit(
        posterior=arrays,
        extended=extended,
        sample_stats={
            "n_steps": np.full(shape, cells.STEPS),
            "diverging": np.arange(draws)[None] < 2,
        },
        constant_data={},
        attrs={"model": cell.models[0].name, "settings": {}, "gradients_warmup": np.array([700])},
    )


@pytest.mark.parametrize("row", ["hmc", "pe-2-full"])
def test_measure_is_the_density_of_the_held_out_data(
    row: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell = next(c for c in tiny_cells(monkeypatch) if c.factors["row"] == row)
    fit = made_fit(cell, np.random.default_rng(7))
    measured = EXPERIMENT.measure(cell, measures.condense(cell, fit))
    held_out = cell.extras["held_out"]["tiny-0"]
    whole = fit.posterior if fit.extended is None else fit.extended
    axes = ("chain", "draw", *(["pseudo_sample"] if fit.extended is not None else []))
    value = {n: whole[n].transpose(*axes, ...).to_numpy() for n in whole}
    t, c2 = value["tau"][..., None], value["c2"][..., None]
    beta = value["z"] * t * np.sqrt(c2 * value["lambda"] ** 2 / (c2 + t**2 * value["lambda"] ** 2))
    log_weight = None
    if fit.extended is not None:
        raw = value["log_weight"]
        log_weight = raw - np.logaddexp.reduce(raw, axis=-1, keepdims=True)
    direct = log_predictive_density(value["beta0"], beta, held_out, log_weight=log_weight)
    assert measured["lpd"] == pytest.approx(direct.pointwise.mean(), rel=1e-12)
    assert measured["joint_lpd"] == pytest.approx(direct.joint, rel=1e-12)
    ones = float(cell.model.data["y"].mean())
    chance = np.log(np.where(held_out.y == 1, ones, 1 - ones)).mean()
    assert measured["base_rate"] == pytest.approx(chance)
    assert measured["share_of_budget"] == pytest.approx(1, rel=0.01)
    assert measured["warmup_likelihood_gradients"] == 700 * cell.factors["N"]
    assert measured["divergences"] == 2


def test_draws_beyond_the_budget_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    cell = tiny_cells(monkeypatch)[0]
    fit = measures.condense(cell, made_fit(cell, np.random.default_rng(7)))
    fit.tree["sample_stats"]["n_steps"] = 2 * fit.sample_stats["n_steps"]
    measured = EXPERIMENT.measure(cell, fit)
    assert measured["draws_used"] == cell.nuts.draws // 2
    assert measured["share_of_budget"] == pytest.approx(1)


@pytest.mark.parametrize("row", ["hmc", "pe-2-full"])
def test_shares_of_the_budget_are_measured_on_the_first_draws(
    row: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of the draws give what a run of half the length gives; nothing beyond what was spent."""
    cell = next(c for c in tiny_cells(monkeypatch) if c.factors["row"] == row)
    fit = measures.condense(cell, made_fit(cell, np.random.default_rng(7)))
    measured = EXPERIMENT.measure(cell, fit)
    assert measured["lpd_100"] == measured["lpd"]
    assert measured["draws_50"] == cell.nuts.draws // 2
    half = predictions.within_budget(fit, cell.extras["budget"] / 2, cell.factors["N"])
    assert measured["lpd_50"] == pytest.approx(EXPERIMENT.measure(cell, half)["lpd"], rel=1e-12)
    short = EXPERIMENT.measure(cell, half)
    assert short["lpd_50"] == measured["lpd_50"]
    assert all(math.isnan(short[f"lpd_{percent}"]) for percent in (60, 70, 80, 90, 100))
    # Trajectories so long that two or three make up a share: costs would differ too much.
    fit.tree["sample_stats"]["n_steps"] = 30 * fit.sample_stats["n_steps"]
    long = EXPERIMENT.measure(cell, fit)
    assert (
        math.isnan(long["lpd_20"])
        or 30 * cells.STEPS * cell.factors["N"] * long["draws_20"]
        >= 0.95 * 0.2 * cell.extras["budget"]
    )


def test_modes_of_a_density() -> None:
    rng = np.random.default_rng(2)
    spike = rng.standard_t(2, 4000)
    assert measures.unimodal_at_zero(spike)
    assert not measures.unimodal_at_zero(0.2 * spike + 30)
    two = np.concatenate([rng.normal(-3, 1, 2000), rng.normal(3, 1, 2000)])
    low, high = measures.modes_of(two)
    assert abs(low + 3) < 0.4
    assert abs(high - 3) < 0.4
    grid, density = measures.density_estimate(two)
    assert np.trapezoid(density, grid) == pytest.approx(1, abs=0.01)


# Tables and claims


def no_fit(cell: Cell, replication: int) -> Never:
    raise AssertionError(f"no fit of {cell.key}, {replication} is needed")


GOOD: dict[str, float] = {"hmc": -0.32, "pe-2-full-25": -0.25, "pe-2-full-75": -0.36}
"""Held-out densities that agree with all claims; rows that are not named have -0.3."""


def synthetic(
    monkeypatch: pytest.MonkeyPatch,
    changed: dict[str, float] | None = None,
    *,
    profile: Profile = "quick",
) -> Results:
    """Make results with the held-out densities of GOOD, but for what is changed.

    Beside rows, ``bias`` of the small problem, the ``share`` of the budget that PE with N = 5 and
    shared scales spends, and ``unimodal`` can be changed.  Splits differ by far more than methods
    do, as they do in truth.
    """
    lpd = GOOD | (changed or {})
    bias, share, unimodal = lpd.get("bias", 0.0), lpd.get("share", 1.0), lpd.get("unimodal", 1.0)
    found = (*tiny_cells(monkeypatch, profile), *cells.exact_cells(profile))
    rows = []
    for cell in found:
        for split in range(cell.replications):
            row: dict[str, Any] = {"cell": cell.key, **cell.factors, "replication": split}
            row |= {"seconds": 1.0, "gradients": 1000}
            if cell.factors["data"] == "exact":
                form = cell.factors["inv_temp"]
                form = None if form == "sampled" else form
                shared = cell.factors["form"] == "shared_scales"
                truth = small.expected_in_shared_form(form) if shared else BOUNDED
                row |= {"bounded": truth + bias + 0.001 * split, "bounded_mcse": 0.004}
            else:
                level = lpd.get(cell.factors["row"], -0.3)
                shorter = share if cell.factors["row"] == "pe-5-shared" else 1.0
                noise = 0.002 * np.sin(7.0 * split + len(cell.key))
                row |= {
                    "lpd": level - 0.5 * split + noise,
                    **{
                        f"{name}_{percent}": value if percent <= 100 * shorter else math.nan
                        for percent in measures.SHARES
                        for name, value in (
                            ("lpd", level - 0.5 * split + noise),
                            ("lpd_mcse", 0.01),
                            ("joint_lpd", -2.0),
                            ("draws", percent),
                        )
                    },
                    "lpd_mcse": 0.01,
                    "joint_lpd": -2.0,
                    "joint_lpd_mcse": 0.01,
                    "base_rate": -0.7 - 0.5 * split,
                    "draws_used": 100.0,
                    "likelihood_gradients": 6300.0,
                    "share_of_budget": shorter,
                    "warmup_likelihood_gradients": 3000.0,
                    "unimodal_at_zero": unimodal,
                    "divergences": 0.0,
                }
            rows.append(row)
    return Results(profile, found, pd.DataFrame(rows), no_fit, planned=len(rows))


def claims(results: Results) -> dict[str, Claim]:
    return {claim.key: claim for claim in EXPERIMENT.claims(results)}


def verdicts(results: Results) -> dict[str, Verdict]:
    return {key: claim.verdict for key, claim in claims(results).items()}


def all_but(changed: dict[str, Verdict], rest: Verdict = "reproduced") -> dict[str, Verdict]:
    """Verdicts of all six claims, all alike but for some."""
    keys = [claim.key for claim, _ in part("claims").CLAIMS]
    assert len(keys) == 6
    assert set(changed) <= set(keys)
    return dict.fromkeys(keys, rest) | changed


def test_claims_when_all_is_as_published(monkeypatch: pytest.MonkeyPatch) -> None:
    results = synthetic(monkeypatch)
    assert verdicts(results) == all_but({})
    said = claims(results)["shared-scales-biased"].measured
    shift = small.expected_in_shared_form(1.0) - BOUNDED
    assert f"β=1, shared {shift + 0.0005:+.3f} ± 0.003 (derived {shift:+.3f})" in said
    smoke = synthetic(monkeypatch, profile="smoke")
    assert verdicts(smoke) == all_but({}, "not run")


@pytest.mark.parametrize(
    ("failing", "changed"),
    [
        ("pe-above-hmc", {"pe-2-shared": -0.33}),
        ("exact-pe-above-hmc", {"pe-5-full": -0.43}),
        ("hmc-strong", {"pe-5-full": -0.1}),
        ("fixed-beta", {"pe-2-full-25": -0.35, "pe-2-full-50": -0.35}),
        ("fixed-beta", {"pe-2-full-50": -0.27, "pe-2-full-75": -0.27}),
        ("unimodal", {"unimodal": 0.5}),
        ("shared-scales-biased", {"bias": 0.03}),
        ("shared-scales-biased", {"bias": -0.03}),
    ],
)
def test_each_claim_can_fail_alone(
    failing: str, changed: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert verdicts(synthetic(monkeypatch, changed)) == all_but({failing: "not reproduced"})


def test_all_are_compared_at_the_cost_that_all_have_reached(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    results = synthetic(monkeypatch, {"share": 0.62})
    assert verdicts(results) == all_but({})
    assert tables.common_share(results, "tiny") == 60
    said = claims(results)["pe-above-hmc"].measured
    assert "tiny at 60 % of the budget: N=2" in said
    assert "4 splits, better" in said
    density = EXPERIMENT.tables(results)[0].frame
    assert set(density["compared at"]) == {"60 % of the budget"}
    assert set(density["draws"]) == {60}
    # A run that has spent next to nothing has no cost in common with the others.
    nothing = synthetic(monkeypatch, {"share": 0.1})
    assert tables.common_share(nothing, "tiny") is None
    assert verdicts(nothing)["pe-above-hmc"] == "undecided"


def test_a_fixed_inverse_temperature_may_differ_on_one_data_set_in_one_direction(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One data set where it is better, and another where it is worse: that is what can happen."""
    monkeypatch.setitem(cells.RELEVANT, "other", 2)
    first = synthetic(monkeypatch, {"pe-2-full-75": -0.3})
    assert verdicts(first)["fixed-beta"] != "reproduced"
    second = synthetic(monkeypatch, {"pe-2-full-25": -0.3})
    others = tuple(
        replace(
            cell, key=cell.key.replace("tiny", "other"), factors={**cell.factors, "data": "other"}
        )
        for cell in second.cells
        if cell.factors["data"] == "tiny"
    )
    metrics = second.metrics[second.metrics["data"] == "tiny"].assign(data="other")
    metrics["cell"] = metrics["cell"].str.replace("tiny", "other")
    both = Results(
        "quick",
        (*first.cells, *others),
        pd.concat([first.metrics, metrics]),
        no_fit,
        planned=99,
    )
    assert verdicts(both)["fixed-beta"] == "reproduced"


def test_claims_without_their_cells_are_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    results = synthetic(monkeypatch)
    few = Results("quick", results.cells[:1], results.metrics, no_fit, planned=99)
    assert verdicts(few) == all_but({"unimodal": "reproduced"}, "not run")
    none = Results("quick", (), results.metrics.iloc[:0], no_fit, planned=99)
    assert verdicts(none) == all_but({}, "not run")
    assert EXPERIMENT.tables(none) == []
    assert EXPERIMENT.figures(none) == []


def test_differences_are_paired_by_split(monkeypatch: pytest.MonkeyPatch) -> None:
    results = synthetic(monkeypatch)
    found = tables.difference(results, "tiny", "pe-2-full", "hmc")
    runs = {row: tables.runs_of(results, "tiny", row)["lpd"] for row in ("pe-2-full", "hmc")}
    each = (runs["pe-2-full"] - runs["hmc"]).to_numpy()
    np.testing.assert_allclose(found, each)
    assert found.std() / 2 < 0.01 < runs["hmc"].std()
    # A split that one of the two lacks does not count.
    lacking = (results.metrics["cell"] == "tiny-hmc") & (results.metrics["replication"] == 0)
    fewer = Results("quick", results.cells, results.metrics[~lacking], no_fit, planned=99)
    np.testing.assert_allclose(tables.difference(fewer, "tiny", "pe-2-full", "hmc"), each[1:])


def test_tables_show_every_row(monkeypatch: pytest.MonkeyPatch) -> None:
    results = synthetic(monkeypatch)
    density, cost, exact = EXPERIMENT.tables(results)
    assert len(density.frame) == len(cost.frame) == len(cells.ROWS["quick"])
    assert len(exact.frame) == len(cells.EXACT_ROWS)
    shown = density.frame["minus HMC"].to_dict()["tiny", "PE N=2, β=0.25"]
    assert float(str(shown).split(" ")[0]) == pytest.approx(0.07, abs=0.004)


def test_figures_from_condensed_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    results = synthetic(monkeypatch)
    fits: dict[str, Any] = {
        cell.key: measures.condense(cell, made_fit(cell, np.random.default_rng(1)))
        for cell in results.cells
        if cell.factors["data"] == "tiny"
    }
    shown = Results(
        "quick", results.cells, results.metrics, lambda cell, _: fits[cell.key], planned=99
    )
    names = [figure.name for figure in EXPERIMENT.figures(shown)]
    assert names == ["densities-tiny", "marginals-tiny", "scales"]


@pytest.mark.compiled
def test_a_fit_of_thousands_of_coefficients_stays_small(tmp_path: Path, cmdstan_home: Path) -> None:
    """Two methods on the shipped data, for a few iterations: what is kept is small."""
    assert cmdstan_home.is_dir()
    found = {cell.factors["row"]: cell for cell in EXPERIMENT.grid("smoke")[:3]}
    for row in ("hmc", "pe-2-shared"):
        cell = found[row]
        fit = cell.method.sample(cell.models[1], nuts=cell.nuts, seed=1, **cell.settings)
        wide = sum(values.size for values in fit.posterior.values())
        assert wide == cell.nuts.draws * (2 * 3051 + 3)
        small = measures.condense(cell, fit)
        small.save(tmp_path / f"{row}.nc")
        assert (tmp_path / f"{row}.nc").stat().st_size < 200_000
        measured = EXPERIMENT.measure(cell, small)
        # Predictions at a share of the budget that the run has not spent are NaN.
        of_shares = {name for name in measured if name.rpartition("_")[2].isdigit()}
        assert all(math.isfinite(measured[name]) for name in measured.keys() - of_shares)
        assert any(math.isfinite(measured[name]) for name in of_shares)
