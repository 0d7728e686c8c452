"""The mixture experiment: modes, errors, seeds, published numbers, and claims both ways."""

from __future__ import annotations

import dataclasses
from importlib import import_module
from typing import Any, Never

import numpy as np
import pandas as pd
import pytest

from harness.arrays import FloatArray
from harness.fit import Fit, build_fit
from harness.models.gaussian_mixture import GaussianMixture, kou_mixture
from harness.plan import spec
from harness.plan.catalogue import load_experiment
from harness.plan.spec import (
    PROFILES,
    Cell,
    Claim,
    Profile,
    Results,
    Task,
    Verdict,
    task_seed,
    tasks_of,
)

EXPERIMENT = load_experiment("mixture")
MOMENTS = ("x1", "x2", "x1_squared", "x2_squared")


PARTS = [
    import_module(f"experiments.mixture.{name}")
    for name in ("grid", "measures", "frames", "differences", "claims")
]


def member(name: str) -> Any:
    """Return a function of the experiment's modules."""
    return next(getattr(part, name) for part in PARTS if hasattr(part, name))


def table_one(profile: Profile) -> list[Cell]:
    """Cells of HMC and PE in Table 1, in its order."""
    mine = [
        c
        for c in EXPERIMENT.grid(profile)
        if c.factors["part"] == "table 1" and c.factors["method"] in ("HMC", "PE")
    ]
    return sorted(mine, key=lambda c: (c.factors["scenario"], c.factors["N"]))


def draw(mixture: GaussianMixture, count: int, rng: np.random.Generator) -> FloatArray:
    component = rng.choice(len(mixture.weight), count, p=mixture.weight)
    noise = rng.normal(size=(count, mixture.mean.shape[1]))
    drawn: FloatArray = mixture.mean[component] + mixture.sd[component, None] * noise
    return drawn


# Grid


@pytest.mark.parametrize(
    ("profile", "pseudo_samples", "replications", "draws"),
    [
        ("smoke", [1, 2], 2, 500),
        ("quick", [1, 2, 5], 4, 4000),
        ("paper", [1, 2, 5, 10, 20], 20, 50_000),
    ],
)
def test_grid_of_each_profile(
    profile: Profile, pseudo_samples: list[int], replications: int, draws: int
) -> None:
    whole = EXPERIMENT.grid(profile)
    assert len({cell.key for cell in whole}) == len(whole)
    cells = table_one(profile)
    assert len(cells) == 2 * len(pseudo_samples)
    for scenario in "ab":
        mine = [cell for cell in cells if cell.factors["scenario"] == scenario]
        assert [cell.factors["N"] for cell in mine] == pseudo_samples
        assert [cell.method.name for cell in mine] == ["nuts"] + ["pseudo_extended"] * (
            len(mine) - 1
        )
        for cell in mine:
            assert cell.model.name == f"mixture-{scenario}"
            assert cell.replications == replications
            assert (cell.nuts.chains, cell.nuts.draws) == (1, draws)
            if cell.method.name == "pseudo_extended":
                assert cell.settings["num_pseudo_samples"] == cell.factors["N"]


# Seeds


def tasks(
    cells: tuple[Cell, ...], *, experiment: str = "mixture", program: str = "p", stan: str = "2.39"
) -> list[Task]:
    digests = {cell.program: program for cell in cells if cell.program is not None}
    return list(tasks_of(experiment, cells, digests, stan))


def all_seeds(profile: Profile) -> dict[str, int]:
    return {task.name: task.seed for task in tasks(EXPERIMENT.grid(profile))}


def test_seeds_are_distinct_and_in_range() -> None:
    seeds = all_seeds("paper")
    runs = sum(cell.replications for cell in EXPERIMENT.grid("paper"))
    assert len(set(seeds.values())) == len(seeds) == runs
    assert all(0 <= seed < 2**32 for seed in seeds.values())


def test_seeds_do_not_change_when_the_grid_grows() -> None:
    smoke, quick, paper = (all_seeds(profile) for profile in PROFILES)
    assert smoke.items() <= quick.items() <= paper.items()


def test_seeds_are_what_they_always_were() -> None:
    assert task_seed("mixture", "a-hmc", 0) == 225706305
    assert all_seeds("smoke")["mixture/b-pe-2/1"] == 654658116


def test_seeds_differ_between_experiments() -> None:
    assert task_seed("mixture", "a-hmc", 0) != task_seed("other", "a-hmc", 0)


def test_digest_depends_on_all_that_the_draws_depend_on() -> None:
    cell = table_one("smoke")[1]
    (first, second) = tasks((cell,))
    moved = dataclasses.replace(cell.model, data={**cell.model.data, "upper_bound": 21.0})
    longer = dataclasses.replace(cell.nuts, draws=cell.nuts.draws + 1)
    others = [
        tasks((cell,), program="other")[0],
        tasks((cell,), stan="2.40")[0],
        tasks((cell,), experiment="other")[0],  # has another seed
        tasks((dataclasses.replace(cell, settings={"num_pseudo_samples": 3}),))[0],
        tasks((dataclasses.replace(cell, model=moved),))[0],
        tasks((dataclasses.replace(cell, nuts=longer),))[0],
    ]
    digests = [first.digest, second.digest, *(other.digest for other in others)]
    assert len(set(digests)) == len(digests)
    # How many chains run at once, labels and the number of replications change no draw.
    same = dataclasses.replace(
        cell,
        label="another",
        replications=99,
        nuts=dataclasses.replace(cell.nuts, parallel_chains=2),
    )
    assert tasks((same,))[0].digest == first.digest


# Modes


def test_all_modes_are_visited_by_exact_draws() -> None:
    rng = np.random.default_rng(1)
    for scenario in ("a", "b"):
        mixture = kou_mixture("a" if scenario == "a" else "b")
        assert member("modes_visited")(mixture, draw(mixture, 5000, rng)[None]) == 20


def test_modes_without_a_fifth_of_their_share_do_not_count() -> None:
    mixture = GaussianMixture(
        np.array([0.5, 0.25, 0.25]), np.array([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]]), np.ones(3)
    )
    for count, expected in ((49, 2), (50, 3), (51, 3)):
        # A fifth of the share 0.25 is 50 of 1000 draws.
        x = np.repeat(mixture.mean, [500, count, 500 - count], axis=0)
        assert member("modes_visited")(mixture, x[None]) == expected
        assert member("modes_visited")(mixture, x.reshape(2, 500, 2)) == expected
    assert member("modes_visited")(mixture, np.zeros((1, 10, 2))) == 1


def test_a_draw_belongs_to_the_component_most_likely_to_have_made_it() -> None:
    mixture = GaussianMixture(
        np.array([0.5, 0.5]), np.array([[0.0, 0.0], [3.0, 0.0]]), np.array([0.1, 1.0])
    )
    # (1, 0) is nearer to the narrow component, which hardly reaches it; (0.3, 0) is more of its
    # standard deviations away than of the wide one's, and still more likely the narrow one's.
    for x, mine in (((1.0, 0.0), 1), ((0.3, 0.0), 0)):
        density = [
            w / sd**2 * np.exp(-0.5 * np.sum((np.array(x) - mu) ** 2) / sd**2)
            for w, mu, sd in zip(mixture.weight, mixture.mean, mixture.sd, strict=True)
        ]
        assert density[mine] > density[1 - mine]
        both = np.concatenate([np.tile(x, (10, 1)), np.tile(mixture.mean[1 - mine], (10, 1))])
        assert member("modes_visited")(mixture, both[None]) == 2
        with_its_own = np.concatenate([both[:10], np.tile(mixture.mean[mine], (10, 1))])
        assert member("modes_visited")(mixture, with_its_own[None]) == 1


# Metrics


def made_fit(x: FloatArray) -> Fit:
    return build_fit(
        posterior={"x": x},
        extended=None,
        sample_stats={"diverging": np.arange(x.shape[1])[None] < 3},
        constant_data={},
        attrs={"settings": {}},
    )


def test_measure_reports_the_moments_in_their_order() -> None:
    rng = np.random.default_rng(2)
    cell = table_one("smoke")[0]
    x = draw(kou_mixture("a"), 4000, rng)[None]
    measured = EXPERIMENT.measure(cell, made_fit(x))
    assert measured["x1"] == pytest.approx(x[..., 0].mean())
    assert measured["x2"] == pytest.approx(x[..., 1].mean())
    assert measured["x1_squared"] == pytest.approx((x[..., 0] ** 2).mean())
    assert measured["x2_squared"] == pytest.approx((x[..., 1] ** 2).mean())
    # Independent draws: the naive error, known to about 5 % (see test_weights).
    assert measured["x1_mcse"] == pytest.approx(x[..., 0].std() / np.sqrt(4000), rel=0.25)
    assert measured["modes_visited"] == 20
    assert measured["divergences"] == 3
    truth = member("exact_moments")("a")
    for name in MOMENTS:
        assert abs(measured[name] - truth[name]) < 5 * measured[f"{name}_mcse"]


def no_fit(cell: Cell, replication: int) -> Never:
    raise AssertionError(f"no fit of {cell.key}, {replication} is needed")


def synthetic(
    profile: Profile,
    rmse: dict[str, float],
    modes: dict[str, float],
    *,
    spread: float = 0.0,
    seed: int = 0,
) -> Results:
    """Return results whose every moment of a cell is off by the given RMSE, times 1 + spread."""
    rng = np.random.default_rng(seed)
    cells = EXPERIMENT.grid(profile)
    table = member("preprint")()
    table = table[(table["scenario"] == "b") & (table["method"].isin(["PE", "HMC"]))]
    printed = table.set_index(["N", "moment"])["mean"]
    rows = []
    for cell in cells:
        truth = member("exact_moments")(cell.factors["scenario"])
        for replication in range(cell.replications):
            error = {
                name: rmse[cell.key] * rng.choice([-1, 1]) * (1 + spread * rng.normal())
                for name in MOMENTS
            }
            rows.append(
                {
                    "cell": cell.key,
                    **cell.factors,
                    "replication": replication,
                    "seconds": float(cell.factors["N"] ** 2),
                    "seconds_before": 0.25 * cell.factors["N"] ** 2,
                    "gradients": 1000,
                    "evaluations": 1000.0,
                    "evaluations_before": 200.0,
                    "divergences": 0.0,
                    "modes_visited": modes[cell.key],
                    "log_z": rmse[cell.key],
                    "log_z_mcse": rmse[cell.key],
                    **{name: truth[name] + error[name] for name in MOMENTS},
                    **{f"{name}_mcse": 3.0 if replication % 2 else 4.0 for name in MOMENTS},
                    **{
                        f"{name}_{part}": truth[name] + size * error[name]
                        for name in ("x1", "x2")
                        for part, size in (("sixteenth", 4), ("quarter", 2))
                    },
                    **{f"{name}_mistaken": printed[cell.factors["N"], name] for name in MOMENTS},
                }
            )
    return Results(profile, cells, pd.DataFrame(rows), no_fit, planned=len(rows))


def constant(profile: Profile, value: float) -> dict[str, float]:
    return {cell.key: value for cell in EXPERIMENT.grid(profile)}


def test_rmse_of_known_errors() -> None:
    errors = {cell.key: 0.1 * (i + 1) for i, cell in enumerate(EXPERIMENT.grid("quick"))}
    frame = member("rmse")(synthetic("quick", errors, constant("quick", 20)))
    assert len(frame) == 4 * len(errors)
    for row in frame.itertuples():
        assert row.rmse == pytest.approx(errors[str(row.cell)], rel=1e-9)
        assert row.se == pytest.approx(0, abs=1e-9)  # every squared error is the same
        assert row.expected == pytest.approx(np.sqrt(12.5), rel=1e-9)


def test_standard_error_of_the_rmse() -> None:
    """For normal errors of known sd s the RMSE of R runs has error s / sqrt(2 R)."""
    cell = dataclasses.replace(table_one("smoke")[0], replications=2000)
    truth = member("exact_moments")("a")
    rng = np.random.default_rng(3)
    metrics = pd.DataFrame({name: truth[name] + rng.normal(0, 0.3, 2000) for name in MOMENTS})
    metrics = metrics.assign(**{f"{name}_mcse": 0.3 for name in MOMENTS})
    metrics["cell"] = cell.key
    metrics["replication"] = np.arange(2000)
    frame = member("rmse")(Results("smoke", (cell,), metrics, no_fit, planned=2000)).set_index(
        "moment"
    )
    # The standard deviation of a squared normal is known to sqrt((kurtosis - 1) / 4R) = 4 %,
    # with kurtosis 15 of chi-square(1): 12 / 1 + 3.
    assert frame["se"].to_numpy() == pytest.approx(0.3 / np.sqrt(4000), rel=5 * 0.042)
    assert np.all(np.abs(frame["rmse"] - 0.3) < 5 * frame["se"])
    for name in MOMENTS:
        squared = (metrics[name].to_numpy() - truth[name]) ** 2
        again = rng.choice(squared, (2000, len(squared)))
        bootstrap = np.sqrt(again.mean(axis=1)).std(ddof=1)
        # 2000 resamples know their spread to 1 / sqrt(4000) = 1.6 %.
        assert frame["se"][name] == pytest.approx(bootstrap, rel=0.08)


# Published numbers


def test_published_table() -> None:
    table = member("published")()
    assert len(table) == 16 * 4
    assert set(table["method"]) == {"RAM", "EE", "PT", "HMC", "PE"}
    keys = ["method", "N", "scenario", "moment"]
    assert not table.duplicated(keys).any()
    value = table.set_index(keys)["published"]
    assert value["HMC", 1, "a", "x1"] == 2.69
    assert value["HMC", 1, "b", "x2_squared"] == 4.80
    assert value["PE", 2, "a", "x1_squared"] == 1.11
    assert value["PE", 20, "b", "x2"] == 0.01
    assert value["PT", 1, "a", "x2_squared"] == 2.89


@pytest.mark.parametrize("profile", PROFILES)
def test_every_cell_meets_its_published_numbers(profile: Profile) -> None:
    results = synthetic(profile, constant(profile, 0.1), constant(profile, 20))
    joined = member("comparison")(results)
    mine = [cell for cell in results.cells if cell.factors["part"] == "table 1"]
    assert len(joined) == 4 * len(mine)
    assert joined["published"].notna().all()
    np.testing.assert_allclose(joined["ratio"] * joined["published"], 0.1)


# Claims


KEYS = [row[0].key for row in member("CLAIMS")]


def claims(results: Results) -> dict[str, Claim]:
    return {claim.key: claim for claim in EXPERIMENT.claims(results)}


def verdicts(results: Results) -> dict[str, Verdict]:
    return {key: claim.verdict for key, claim in claims(results).items()}


GOOD = {"hmc": 2.0, "pe-2": 0.04, "pe-5": 0.015, "pe-10": 0.012, "pe-20": 0.010}
GOOD |= {"ram": 0.03, "ee": 0.05, "pt": 0.08, "pe-2-narrow": 2.0, "pe-2-wide": 0.05}
GOOD |= {"pe-2-gaussian": 0.03, "pe-2-flat": 0.03, "cpe-2": 0.02, "smc": 0.05}
GOOD |= {"ct": 0.005, "fold": 0.001, "fold-is": 0.0005, "pt-hmc": 0.01}


def good(cell: Cell) -> float:
    """Error of a cell as it should be; of fixed inverse temperatures by scenario."""
    beta = cell.factors["inv_temp"]
    if beta is None:
        return GOOD[cell.key.split("-", 1)[1]]
    if cell.factors["scenario"] == "a":
        return 0.7 if beta == 0.1 else 2.5
    return 0.02 if beta == 0.1 else 0.3


def errors_like(profile: Profile, **changed: float) -> dict[str, float]:
    """RMSE by cell as the paper would have them; changes as ``b_hmc=0.3``."""
    table = {cell.key: good(cell) for cell in EXPERIMENT.grid(profile)}
    table["b-hmc"] = 0.5
    return table | {key.replace("_", "-"): value for key, value in changed.items()}


def modes_like(profile: Profile, **changed: float) -> dict[str, float]:
    table = {cell.key: 20.0 for cell in EXPERIMENT.grid(profile)} | {"a-hmc": 3.0}
    return table | {key.replace("_", "-"): value for key, value in changed.items()}


def test_claims_when_all_is_as_published() -> None:
    results = synthetic("paper", errors_like("paper"), modes_like("paper"))
    assert len(KEYS) == 16
    assert verdicts(results) == dict.fromkeys(KEYS, "reproduced")


@pytest.mark.parametrize(
    ("claim", "errors", "modes"),
    [
        ("modes-of-a", {}, {"a_hmc": 12.0}),
        ("modes-of-a", {}, {"a_pe_2": 15.0}),
        ("hmc-in-b", {"b_hmc": 2.5}, {}),
        ("hmc-in-b", {"b_hmc": 0.03}, {}),
        ("more-pseudo-samples", {"a_pe_5": 0.05}, {}),
        ("more-pseudo-samples", {"b_pe_5": 0.028, "b_pe_2": 0.025}, {}),
        ("table-1-pe", {"b_pe_20": 0.02}, {}),
        ("table-1-peers", {"b_ee": 0.2}, {}),
        ("pe-as-good-as-peers", {"a_ram": 0.02}, {}),
        ("best-number", {"a_pe_10": 0.002}, {}),
        ("table-2-b", {"b_pe_2_fixed_1": 0.06}, {}),
        ("table-2-a", {"a_pe_2_fixed_5": 0.9}, {}),
        ("range-of-beta", {"a_pe_2_narrow": 0.05}, {}),
        ("range-of-beta", {"a_pe_2_wide": 0.2}, {}),
        ("fold-above-pt", {"a_pt_hmc": 0.0008}, {}),
        ("importance-above-fold", {"b_fold_is": 0.002}, {}),
    ],
)
def test_each_claim_can_fail_alone(
    claim: str, errors: dict[str, float], modes: dict[str, float]
) -> None:
    results = synthetic("paper", errors_like("paper", **errors), modes_like("paper", **modes))
    expected: dict[str, Verdict] = dict.fromkeys(KEYS, "reproduced")
    assert claim in expected
    expected[claim] = "not reproduced"
    assert verdicts(results) == expected


def test_our_best_row_must_be_ten_times_the_papers() -> None:
    ours = ("ct", "cpe_2", "pe_2_flat", "pe_2_gaussian", "fold")
    # PE N=2 takes 4 seconds and so does what has N=2 here, the others 1: equal errors are a
    # factor 4, errors of 0.7 times a factor 4 / 0.49 = 8.2.
    for size, verdict in ((0.7, "not reproduced"), (0.6, "reproduced")):
        errors = errors_like("quick", **{f"b_{key}": size * 0.04 for key in ours})
        results = synthetic("quick", errors, modes_like("quick"))
        assert verdicts(results)["ten-times"] == verdict


def test_noise_beyond_the_published_factor_is_not_held_against_us() -> None:
    """Ten runs without error and ten with 2.4 times the published RMSE are 1.7 +- 0.19 of it."""
    published = member("published")()
    row = published[(published["method"] == "PE") & (published["N"] == 20)]
    known = row[(row["scenario"] == "b") & (row["moment"] == "x2")]["published"].iloc[0]
    results = synthetic("paper", errors_like("paper"), modes_like("paper"))
    one = (results.metrics["cell"] == "b-pe-20") & (results.metrics["replication"] % 2 == 0)
    truth = member("exact_moments")("b")["x2"]
    for size, verdict in ((2.4, "reproduced"), (3.6, "not reproduced")):
        results.metrics.loc[results.metrics["cell"] == "b-pe-20", "x2"] = truth
        results.metrics.loc[one, "x2"] = truth + size * known
        frame = member("comparison")(results).set_index(["cell", "moment"])
        assert frame["ratio"]["b-pe-20", "x2"] == pytest.approx(size / np.sqrt(2), rel=1e-6)
        assert verdicts(results)["table-1-pe"] == verdict


def test_claims_that_a_profile_cannot_judge_are_not_run() -> None:
    smoke = synthetic("smoke", errors_like("smoke"), modes_like("smoke"))
    assert verdicts(smoke) == dict.fromkeys(KEYS, "not run")
    quick = synthetic("quick", errors_like("quick"), modes_like("quick"))
    # The published rows take the paper's draws, the best N one with 10.
    waiting: dict[str, Verdict] = dict.fromkeys(("table-1-pe", "table-1-peers"), "undecided")
    waiting["best-number"] = "not run"
    assert set(waiting) < set(KEYS)
    assert verdicts(quick) == dict.fromkeys(KEYS, "reproduced") | waiting


def test_claims_whose_cells_are_missing_are_not_run() -> None:
    whole = synthetic("paper", errors_like("paper"), modes_like("paper"))
    for missing, lost in (
        ("a-hmc", {"modes-of-a", "hmc-in-b"}),
        ("b-pe-5", {"more-pseudo-samples", "table-1-pe", "best-number", "mistaken-weights"}),
        (
            "a-pe-2",
            {
                "modes-of-a",
                "more-pseudo-samples",
                "table-1-pe",
                "pe-as-good-as-peers",
                "best-number",
                "mistaken-weights",
                "range-of-beta",
                "ten-times",
            },
        ),
        ("b-ram", {"table-1-peers", "pe-as-good-as-peers"}),
        ("a-fold", {"ten-times", "fold-above-pt", "importance-above-fold"}),
    ):
        part = dataclasses.replace(
            whole,
            cells=tuple(cell for cell in whole.cells if cell.key != missing),
            metrics=whole.metrics[whole.metrics["cell"] != missing],
        )
        found = {key: claim for key, claim in claims(part).items() if claim.verdict == "not run"}
        assert set(found) == lost
        assert all(missing in claim.measured for claim in found.values())


def test_claims_state_what_was_measured() -> None:
    stated = claims(synthetic("paper", errors_like("paper"), modes_like("paper")))
    assert (
        "HMC found 3.0 of 20 modes, PE N=2 20.0 (20 runs of 50,000 draws)"
        in stated["modes-of-a"].measured
    )
    assert "HMC 2.00 in (a), 0.50 in (b); PE N=2 0.04 in (b)" in stated["hmc-in-b"].measured


@pytest.mark.parametrize("profile", PROFILES)
def test_tables_have_a_row_for_each_cell(profile: Profile) -> None:
    results = synthetic(profile, errors_like(profile), modes_like(profile), spread=0.1)
    made = {table.name: table for table in EXPERIMENT.tables(results)}
    labels = {cell.label for cell in results.cells}
    for name in ("found", "cost"):
        assert set(made[name].frame.index) == labels
    parts = {"table 1": "rmse", "table 2": "fixed", "ours": "ours"}
    for part, name in parts.items():
        wanted = [c.label for c in results.cells if c.factors["part"] == part]
        assert not wanted or set(wanted) <= set(made[name].frame.index)
    if profile != "smoke":
        rest = {"efficiency", "ranges", "weights", "printed-truth"}
        assert set(made) == {"found", "cost", *parts.values(), *rest}
        assert list(made["ours"].frame.index[-2:]) == ["the base alone (a)", "the base alone (b)"]
    for table in made.values():
        assert isinstance(table, spec.Table)
        assert table.frame.notna().all(axis=None)


def test_figures_are_drawn_from_metrics() -> None:
    results = synthetic("quick", errors_like("quick"), modes_like("quick"), spread=0.3)
    cells = tuple(cell for cell in results.cells if cell.key[2:] not in ("hmc", "pe-2"))
    drawn = EXPERIMENT.figures(dataclasses.replace(results, cells=cells))
    assert [figure.name for figure in drawn] == ["rmse-chart", "equal-cost"]
    for figure in drawn:
        assert len(figure.image) > 5000
        assert figure.caption
        assert figure.alt_text


# What explains differences


def test_the_printed_truth_takes_variances_for_standard_deviations() -> None:
    printed, narrow = member("printed_truth")(), member("narrow_truth")()
    for name in MOMENTS:
        assert narrow[name] == pytest.approx(printed[name], abs=6e-4)
    assert abs(printed["x2_squared"] - member("exact_moments")("b")["x2_squared"]) > 0.1


def test_moments_in_the_published_box_by_simulation() -> None:
    rng = np.random.default_rng(8)
    x = draw(kou_mixture("b"), 400_000, rng)
    inside = x[np.all(np.abs(x) < 10, axis=1)]
    boxed = member("boxed_truth")()
    both = np.concatenate([inside, inside**2], axis=1)
    error = both.std(axis=0) / np.sqrt(len(both))
    for name, mean, se in zip(MOMENTS, both.mean(axis=0), error, strict=True):
        assert abs(boxed[name] - mean) < 4.5 * se


def extended_fit(inv_temp: FloatArray, x: FloatArray) -> Fit:
    return build_fit(
        posterior={"x": x[..., 0]},
        extended={"x": x, "inv_temp": inv_temp, "log_weight": np.zeros(inv_temp.shape)},
        sample_stats={"diverging": np.zeros(inv_temp.shape[:2], dtype=bool)},
        constant_data={},
        attrs={
            "settings": {},
            "gradients_warmup": np.array([100]),
            "gradients_sampling": np.array([400]),
            "gradients_pilot": 50,
            "seconds_warmup": np.array([1.0]),
            "seconds_sampling": np.array([3.0]),
            "seconds_pilot": 0.5,
        },
    )


def test_mistaken_weights_by_hand() -> None:
    rng = np.random.default_rng(5)
    x, inv_temp = rng.normal(5, 0.3, (1, 12, 2, 3)), rng.uniform(size=(1, 12, 3))
    fit = extended_fit(inv_temp, x)
    expected = np.zeros(4)
    for t in range(12):
        weight = np.array(
            [
                np.exp(kou_mixture("a").log_density(x[0, t, :, i])) ** (1 - inv_temp[0, t, i])
                for i in range(3)
            ]
        )
        weight /= weight.sum()
        point = (weight * x[0, t]).sum(axis=1), (weight * x[0, t] ** 2).sum(axis=1)
        expected += np.concatenate(point) / 12
    np.testing.assert_allclose(member("mistaken_moments")(fit), expected, rtol=1e-10)


def test_cost_counts_every_pseudo_sample_and_the_pilot_once() -> None:
    rng = np.random.default_rng(5)
    fit = extended_fit(rng.uniform(size=(1, 12, 3)), rng.normal(size=(1, 12, 2, 3)))
    assert member("cost")(fit) == {
        "evaluations": 50 + 3 * 500,
        "evaluations_before": 50 + 3 * 100,
        "seconds_before": 1.5,
    }


def test_more_draws_for_less_error_is_a_better_efficiency() -> None:
    results = synthetic("quick", errors_like("quick"), modes_like("quick"))
    frame = member("efficiencies")(results).set_index("cell")
    # Var / error^2 / second, with two coordinates that are off by the same.
    variance = member("variance")("a")
    assert frame.loc["a-ct", "per_second"] == pytest.approx(variance / 0.005**2)
    assert frame.loc["a-pe-2", "per_second"] == pytest.approx(variance / 0.04**2 / 4)
    assert frame.loc["a-pe-2", "per_kilo"] == pytest.approx(variance / 0.04**2)
    curve = member("at_equal_cost")(results).set_index(["cell", "share"])
    early = curve.loc[("a-pe-2", 1 / 16)]
    assert early["rmse"] == pytest.approx(0.16)
    assert early["seconds"] == pytest.approx(1 + 3 / 16)
    assert early["evaluations"] == pytest.approx(200 + 50)
