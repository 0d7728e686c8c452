"""The Boltzmann experiment: exact answers, errors, costs, equal-cost comparisons, claims."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable
from functools import cache
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from calibration import few_and_many
from scipy.special import logsumexp

from harness.engine.nuts import NutsSettings
from harness.errors import DataError
from harness.fit import Fit, build_fit
from harness.forms.nuts import PLAIN_NUTS
from harness.models.boltzmann import BoltzmannMachine, generate, relax
from harness.path import gaussian_base
from harness.plan.catalogue import load_experiment
from harness.plan.spec import PROFILES, Cell, Claim, Profile, Results, tasks_of
from harness.samplers.kernels import Hmc

EXPERIMENT = load_experiment("boltzmann")
RELAXATION = relax(
    BoltzmannMachine(generate(6, np.random.default_rng(4)).weights, np.linspace(-0.4, 0.6, 6))
)
MODEL = RELAXATION.model("boltzmann-6")
D = MODEL.dimension
ERRORS = ("log_z", "mean", "second", "covariance")


def part(module: str) -> Any:
    """Return a module of the experiment's package."""
    return import_module(f"experiments.boltzmann.{module}")


def cell_of(settings: dict[str, Any] | None = None) -> Cell:
    return Cell("c", "c", {"N": 1}, MODEL, PLAIN_NUTS, settings or {}, NutsSettings(), 2)


def fit_of(x: np.ndarray, extended: dict[str, np.ndarray] | None = None, **attrs: Any) -> Fit:
    return build_fit(
        posterior={"x": x if x.ndim == 3 else x[..., 0]},
        extended=None if extended is None else {"x": x, **extended},
        sample_stats={"lp": np.zeros(x.shape[:2])},
        constant_data={},
        attrs={"method": "nuts", "settings": {}, **attrs},
        pseudo_samples=x.ndim == 4,
    )


# Exact answers


def test_exact_answers_are_those_of_enumeration() -> None:
    """Over all 64 states one by one, and the mixture that they make of x."""
    q, biases, weights = RELAXATION.q, RELAXATION.machine.biases, RELAXATION.machine.weights
    states = np.array(list(product([-1.0, 1.0], repeat=6)))
    energy = np.array([s @ weights @ s / 2 + biases @ s for s in states])
    probability = np.exp(energy - logsumexp(energy))
    centre = states @ q
    truth = MODEL.truth
    constant = RELAXATION.diagonal.sum() / 2 + D / 2 * np.log(2 * np.pi) - 6 * np.log(2)
    log_z = logsumexp(energy) + constant
    assert truth.log_evidence.value == pytest.approx(log_z, abs=1e-7)
    mean = truth.expected("x")
    np.testing.assert_allclose(mean, probability @ centre, atol=1e-10)
    second = centre.T @ (probability[:, None] * centre) + np.eye(D)
    np.testing.assert_allclose(truth.expected("x_outer"), second, atol=1e-10)
    covariance = part("measure").true_covariance(truth)
    np.testing.assert_allclose(covariance, second - np.outer(mean, mean), atol=1e-10)
    np.testing.assert_allclose(part("instances").exact_relaxation(MODEL).covariance, covariance)
    instance = part("instances").pe_instance()
    assert instance.model.truth is instance.model.truth  # summed over the states only once


def test_published_recipe_of_the_instances() -> None:
    instances = part("instances")
    machines = [instances.pe_instance(), *(instances.ct_instance(k) for k in range(3))]
    assert [len(m.relaxation.machine.biases) for m in machines] == [28, 30, 30, 30]
    assert len({m.relaxation.machine.weights[0, 1] for m in machines}) == 4
    assert len({m.model.name for m in machines}) == 4


# Errors of one fit


def test_errors_of_known_estimates() -> None:
    measure, truth = part("measure"), MODEL.truth
    covariance = measure.true_covariance(truth) + 0.5 * np.eye(D)
    base = gaussian_base(truth.expected("x") + 0.3, covariance, log_zeta=2.0)
    found = measure.base_errors(base, truth)
    assert found["mean"] == pytest.approx(0.3)
    assert found["covariance"] == pytest.approx(0.5 / np.sqrt(D))
    assert found["log_z"] == pytest.approx(abs(2 - truth.log_evidence.value))
    moved = base.covariance + np.outer(base.mean, base.mean) - truth.expected("x_outer")
    assert found["second"] == pytest.approx(np.sqrt(np.mean(moved**2)))


@pytest.mark.parametrize("kind", ["plain", "weighted", "pseudo-samples"])
def test_moments_are_the_fits_own_expectations(kind: str) -> None:
    rng = np.random.default_rng(6)
    shape = (2, 50)
    if kind == "plain":
        fit = fit_of(rng.normal(size=(*shape, D)))
    elif kind == "weighted":
        fit = fit_of(rng.normal(size=(*shape, D)), {"log_w1": rng.normal(size=shape)})
    else:
        x = rng.normal(size=(*shape, D, 3))
        log_weight = rng.normal(size=(*shape, 3)) + 50 * rng.normal(size=(*shape, 1))
        fit = fit_of(x, {"log_weight": log_weight})
    mean, second = part("measure").moments(fit)
    np.testing.assert_allclose(mean, fit.expectation(lambda p: p["x"]).value, rtol=1e-10)
    square = fit.expectation(lambda p: p["x"] ** 2).value
    np.testing.assert_allclose(np.diag(second), square, rtol=1e-10)
    cross = fit.expectation(lambda p: p["x"].isel(x_dim_0=0) * p["x"].isel(x_dim_0=1))
    assert second[0, 1] == pytest.approx(float(cross.value), rel=1e-10)


@few_and_many(50, 200)
def test_errors_fall_with_the_draws_and_agree_with_their_theory(runs: int) -> None:
    """Exact draws: the squared error of E[x] is Var[x] / n, of 200 runs known to 10 %."""
    truth, measure = RELAXATION.exact(), part("measure")
    squared = []
    for seed in range(runs):
        x = truth.draw(160, np.random.default_rng(seed))[None]
        found = measure.measure(cell_of(), fit_of(x))
        squared.append([found["mean_0"] ** 2, found["mean"] ** 2])
    squared_mean = np.mean(squared, axis=0)
    variance = found["variance"]
    assert variance == pytest.approx(np.trace(truth.covariance) / D)
    for value, draws in zip(squared_mean, (10, 160), strict=True):
        spread = np.std([row[int(draws == 160)] for row in squared]) / np.sqrt(runs)
        assert abs(value - variance / draws) < 5 * spread
    assert "log_z" not in found
    assert "base_mean" not in found


def test_cost_counts_pilot_warmup_and_pseudo_samples() -> None:
    x = np.zeros((2, 8, D, 3))
    fit = fit_of(
        x, {"log_weight": np.zeros((2, 8, 3))},
        gradients_pilot=100, gradients_warmup=np.array([10, 20]),
        gradients_sampling=np.array([30, 50]), seconds_pilot=1.0,
        seconds_warmup=np.array([0.5, 0.5]), seconds_sampling=np.array([1.0, 3.0]),
    )  # fmt: skip
    cost_of = part("measure").cost_of
    assert cost_of(fit, 1.0).gradients == 100 + 3 * (30 + 80)
    assert cost_of(fit, 0.25).gradients == 100 + 3 * (30 + 20)
    assert cost_of(fit, 1.0).seconds == pytest.approx(6.0)
    assert cost_of(fit, 0.25).seconds == pytest.approx(3.0)


def test_cost_of_a_python_driven_run_includes_its_warmup() -> None:
    settings = {"warmup": 20, "pilots": 2, "pilot_draws": 10, "draws": 60}
    fit = fit_of(np.zeros((1, 60, D)), gradients_sampling=np.array([1000.0]), settings=settings)
    assert part("measure").cost_of(fit, 1.0).gradients == 1000
    assert part("measure").cost_of(fit, 0.5).gradients == pytest.approx(1000 * 70 / 100)


def test_time_is_the_processors_if_it_is_known() -> None:
    fit = fit_of(
        np.zeros((1, 60, D)), seconds_sampling=np.array([9.0]), seconds_processor=4.0,
        settings={"warmup": 20, "draws": 60},
    )  # fmt: skip
    assert part("measure").cost_of(fit, 1.0).seconds == 4
    assert part("measure").cost_of(fit, 0.5).seconds == pytest.approx(4 * 50 / 80)


def test_draws_without_weight_are_not_measured() -> None:
    """An extended Hamiltonian's first draws may all lie off the plateau."""
    log_w1 = np.full((1, 160), -np.inf)
    log_w1[0, 100:] = 0
    x = RELAXATION.exact().draw(160, np.random.default_rng(0))[None]
    found = part("measure").measure(cell_of(), fit_of(x, {"log_w1": log_w1}))
    assert "mean" in found
    assert "mean_0" not in found
    assert all(np.isfinite(value) for value in found.values())


# Grid


@pytest.mark.parametrize("profile", PROFILES)
def test_grid(profile: Profile) -> None:
    cells = EXPERIMENT.grid(profile)
    assert len({cell.key for cell in cells}) == len(cells)
    families = {cell.factors["method"] for cell in cells if cell.factors["half"] == "PE"}
    assert {"HMC", "PE", "PE fixed", "AIS", "ST", "CT", "PT", "fold", "collapsed CT"} <= families
    ct = [cell for cell in cells if cell.factors["half"] == "CT"]
    assert {"AIS", "H-AIS", "ST", "Gibbs CT", "joint CT", "joint HMC", "extended Hamiltonian"} <= {
        cell.factors["method"] for cell in ct
    }
    instances = {cell.factors["instance"] for cell in ct}
    assert len(instances) == {"smoke": 1, "quick": 3, "paper": 10}[profile]
    assert all(cell.content() for cell in cells[:3])


def test_paper_profile_is_as_published() -> None:
    cells = EXPERIMENT.grid("paper")
    pe = [c for c in cells if c.factors["half"] == "PE" and not c.factors["ours"]]
    assert [c.factors["N"] for c in pe if c.factors["method"] == "PE"] == [20, 15, 10, 5, 2]
    fixed = [c.settings["inv_temp"] for c in pe if c.factors["method"] == "PE fixed"]
    assert fixed == [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
    assert {c.replications for c in pe} == {10}
    for cell in pe:
        if cell.method.driven_by == "cmdstan":
            assert (cell.nuts.chains, cell.nuts.draws) == (1, 10_000)


def test_figure_two_has_the_settings_of_its_authors() -> None:
    """Identity mass, steps of 0.5, no warm-up; ten replications of ten chains side by side."""
    cells = [c for c in EXPERIMENT.grid("paper") if c.factors["half"] == "CT"]
    rows = [c for c in cells if not c.factors["ours"]]
    assert len(rows) == 90  # three ladders of both annealings, ST, both forms, ten instances
    assert {(c.replications, c.batch) for c in rows} == {(10, 10)}
    assert {c.settings["step_size"] for c in rows} == {0.5}
    assert {c.settings.get("metric", "unit") for c in rows} == {"unit"}
    assert len({len(list(tasks_of("boltzmann", (c,), {}, ""))) for c in rows}) == 1
    of = {c.key: c.settings for c in rows if c.factors["instance"] == "i3"}
    for name, draws, thin in (("st", 20_000, 20), ("gibbs", 30_000, 25), ("joint-hmc", 25_000, 20)):
        settings = of[f"i3-{name}"]
        assert (settings["chains"], settings["draws"], settings["warmup"]) == (100, draws, 0)
        assert settings["kernel"] == Hmc(20, jitter=0.0)
        # x twice, raw and resampled, and some ten numbers besides, at most 70 MB
        assert settings["thin"] == thin
        assert 100 * draws / thin * (2 * 30 + 10) * 8 <= 70e6
    assert len(of["i3-st"]["ladder"]) == 1000
    assert not np.any(of["i3-st"]["log_weights"])
    for rungs in (1000, 5000, 10_000):
        plain, partial = of[f"i3-ais-{rungs}"], of[f"i3-hais-{rungs}"]
        assert len(plain["ladder"]) == len(partial["ladder"]) == rungs
        assert plain["kernel"] == Hmc(10, jitter=0.0)
        assert (plain["chains"], partial["chains"]) == (100, 500)
        assert plain["populations"] == partial["populations"] == 10
        kernel = partial["kernel"]
        assert (kernel.hmc.leapfrog_steps, kernel.hmc.jitter) == (1, 0.0)
        # Momenta are refreshed once in theirs, with 1 - c^2 = 0.5^step, twice in ours.
        assert kernel.persistence**2 == pytest.approx(np.sqrt(0.5**0.5))


def test_pooling_of_the_authors_loop() -> None:
    """Replication r takes chains r to 10 (r + 1); exact draws, estimated by hand."""
    x = RELAXATION.exact().draw(3 * 10 * 32, np.random.default_rng(1)).reshape(30, 32, D)
    cell = dataclasses.replace(cell_of(), replications=3, batch=3)
    found = part("measure").pooled_as_plotted(cell, fit_of(x))
    assert len(found) == 3
    mean = MODEL.truth.expected("x")
    for r, (first, last) in enumerate([(0, 10), (1, 20), (2, 30)]):
        error = x[first:last].mean(axis=(0, 1)) - mean
        assert found[r]["pooled_mean"] == pytest.approx(np.sqrt(np.mean(error**2)))
        early = x[first:last, :8].mean(axis=(0, 1)) - mean
        assert found[r]["pooled_mean_2"] == pytest.approx(np.sqrt(np.mean(early**2)))
        assert all(name.startswith("pooled_") for name in found[r])
        assert "pooled_work" not in found[r]
    particles = fit_of(x, method="annealed_importance")
    assert part("measure").pooled_as_plotted(cell, particles) == [{}, {}, {}]


def test_users_instances(tmp_path: Path) -> None:
    grid = EXPERIMENT.user_grid
    assert grid is not None
    with pytest.raises(DataError, match="neither pe_paper"):
        grid("smoke", tmp_path)
    machine = generate(8, np.random.default_rng(1))
    np.savez(tmp_path / "params_and_moms_0.npz", weights=machine.weights, biases=machine.biases)
    cells = grid("smoke", tmp_path)
    assert {cell.factors["half"] for cell in cells} == {"CT authors"}
    assert {cell.factors["instance"] for cell in cells} == {"authors-i0"}
    assert cells[0].model.truth.log_evidence.value == pytest.approx(
        relax(machine).exact().log_z, abs=1e-6
    )
    file = tmp_path / "params_and_moms_0.npz"
    np.savez(file, weights=machine.weights)
    with pytest.raises(DataError, match="'weights' and 'biases'"):
        grid("smoke", tmp_path)
    file.write_text("nothing")
    with pytest.raises(DataError, match="params_and_moms_0"):
        grid("smoke", tmp_path)


def test_users_stored_relaxation(tmp_path: Path) -> None:
    """Its Q need not be the optimal one, and gives the same machine."""
    grid = EXPERIMENT.user_grid
    assert grid is not None
    relaxation = relax(generate(8, np.random.default_rng(1)))
    q = np.hstack([relaxation.q, 0.3 * np.eye(8)[:, :2]])
    file = tmp_path / "pe_paper_relaxations_d28.npz"
    np.savez(file, Q=q, b=relaxation.machine.biases)
    cells = grid("smoke", tmp_path)
    assert {cell.factors["half"] for cell in cells} == {"PE stored"}
    assert {cell.factors["instance"] for cell in cells} == {"authors-q28"}
    model = cells[0].model
    np.testing.assert_array_equal(model.data["Q"], q)
    x = relaxation.exact().draw(5, np.random.default_rng(0)) @ np.eye(
        relaxation.q.shape[1], q.shape[1]
    )
    y = x @ q.T + relaxation.machine.biases
    expected = np.log(np.cosh(y)).sum(axis=1) - np.square(x).sum(axis=1) / 2
    assert model.log_density is not None
    np.testing.assert_allclose(model.log_density(x)[0], expected, rtol=1e-10)
    np.savez(file, Q=q[:3], b=relaxation.machine.biases)
    with pytest.raises(DataError, match="has shape"):
        grid("smoke", tmp_path)
    np.savez(file, Q=q)
    with pytest.raises(DataError, match="'Q' and 'b'"):
        grid("smoke", tmp_path)


def test_rows_beside_the_papers() -> None:
    """The public range on the paper's terms; other moves at about equal cost."""
    cells = {cell.key: cell for cell in EXPERIMENT.grid("paper") if cell.factors["half"] == "PE"}
    for n in (2, 5):
        public, own = cells[f"d28-pe-public-{n}"], cells[f"d28-pe-{n}"]
        assert public.settings == {**own.settings, "highest_inv_temp": 0.9}
        assert (public.nuts, public.replications) == (own.nuts, own.replications)
    strata = cells["d28-pe-strata-2"].settings["ranges"]
    assert strata == ((0.1, pytest.approx(0.55)), (pytest.approx(0.55), 1.0))
    assert cells["d28-pe-ladder-2"].settings["ranges"] == ((0.2, 0.2), (0.6, 0.6))
    assert cells["d28-pe-walk-2"].settings["moves"] == 20
    assert cells["d28-gibbs-flat"].settings["flat_intervals"] == 32
    assert "flat_intervals" not in cells["d28-joint-g1"].settings


# Results

SHARES = ("_0", "_1", "_2", "_3", "")


def synthetic(
    profile: Profile,
    worse: dict[str, float] | None = None,
    *,
    error: float = 0.1,
    keys: Iterable[str] | None = None,
) -> Results:
    """Return results whose errors are ``error`` times a cell's or family's factor.

    Errors fall with the root of the cost, which is 1, 2, 4, 8 and 16 at the five shares, in
    seconds and in millions of gradients; those of the base are 0.5.
    """
    factor = worse or {}
    cells = tuple(c for c in EXPERIMENT.grid(profile) if keys is None or c.key in set(keys))
    rng = np.random.default_rng(0)
    rows = []
    for cell in cells:
        family = f"{cell.factors['half']}:{cell.factors['method']}"
        scale = error * factor.get(family, 1.0) * factor.get(cell.key, 1.0)
        for replication in range(cell.replications):
            row = {"cell": cell.key, **cell.factors, "replication": replication, "variance": 9.0}
            row |= {f"base_{name}": 0.5 for name in ERRORS}
            for k, suffix in enumerate(SHARES):
                cost = 2.0**k
                row |= {f"time{suffix}": cost, f"work{suffix}": 1e6 * cost}
                for name in ERRORS:
                    own = factor.get(f"{family}:{name}", 1.0)
                    noise = 1 + 0.01 * rng.normal()
                    row[f"{name}{suffix}"] = scale * own * noise * 4 / np.sqrt(cost)
            rows.append(row)
    truth = RELAXATION.exact()

    def load(cell: Cell, replication: int) -> Fit:
        x = np.zeros((1, 50, cell.model.dimension))
        x[..., :D] = truth.draw(50, np.random.default_rng(replication))
        return fit_of(x)

    return Results(profile, cells, pd.DataFrame(rows), load, planned=len(rows))


def test_curves_and_equal_cost() -> None:
    curves = part("curves")
    results = synthetic("quick", {"CT:ST": 3.0})
    gibbs, st = (curves.of_family(results, "CT", name) for name in ("Gibbs CT", "ST"))
    curve = curves.curve(results, gibbs, "mean", "work", relative=True)
    np.testing.assert_allclose(curve.cost, 1e6 * 2.0 ** np.arange(5))
    # 12 runs whose relative errors scatter by 1 %.
    np.testing.assert_allclose(curve.error, 0.8 / np.sqrt(2.0 ** np.arange(5)), rtol=0.02)
    assert np.all(curve.se < 0.01 * curve.error)
    # Instances do not differ here, so that their spread adds nothing to that of the runs.
    np.testing.assert_allclose(curve.within, curve.se, rtol=0.5)
    assert curve.at(3e6) == pytest.approx(0.8 / np.sqrt(3), rel=0.02)
    assert not curve.reaches(1e9)
    assert np.isnan(curve.at(1e9))
    assert np.isnan(curve.at(1e5))
    budget, (mine, theirs) = curves.equal_cost(results, [gibbs, st], "mean", "work")
    assert budget == pytest.approx(16e6)
    assert theirs / mine == pytest.approx(3, rel=0.02)


def test_errors_may_be_compared_at_either_end_of_what_both_reach() -> None:
    """A method whose error falls faster is behind at first, and ahead at last."""
    curves = part("curves")
    results = synthetic("quick")
    st = results.metrics["method"] == "ST"
    for k, suffix in enumerate(SHARES):
        results.metrics.loc[st, f"mean{suffix}"] *= 2.0 ** (2 - k)
    pair = tuple(curves.of_family(results, "CT", name) for name in ("ST", "Gibbs CT"))
    for cheapest, ratio in ((True, 4), (False, 0.25)):
        found = curves.ratio_at_equal_cost(results, pair, "mean", "work", cheapest=cheapest)
        assert found.value == pytest.approx(ratio, rel=0.05)


def test_equal_cost_is_that_of_the_cheapest() -> None:
    """A run four times as dear is cut to a quarter, where its error is twice as large."""
    curves = part("curves")
    results = synthetic("quick")
    dear = results.metrics["method"] == "ST"
    for suffix in SHARES:
        results.metrics.loc[dear, f"work{suffix}"] *= 4
    groups = [curves.of_family(results, "CT", name) for name in ("Gibbs CT", "ST")]
    budget, (gibbs, st) = curves.equal_cost(results, groups, "mean", "work")
    assert budget == pytest.approx(16e6)
    assert st / gibbs == pytest.approx(2, rel=0.02)


@pytest.mark.parametrize("profile", PROFILES)
def test_tables(profile: Profile) -> None:
    results = synthetic(profile)
    made = {table.name: table.frame for table in EXPERIMENT.tables(results)}
    assert set(made) == {
        "errors", "efficiency", "evidence", "relative", "relative-by-instance", "bounds"
    }  # fmt: skip
    pe = [cell.label for cell in results.cells if cell.factors["half"] == "PE"]
    alone = "Base alone, no sampling (ours)"
    assert list(made["errors"].index) == [*pe, alone]
    assert set(made["efficiency"].index) == {*pe, alone}
    assert made["efficiency"]["neff"][alone] == "36.0"  # 9 / 0.5^2
    # 9 / 0.1^2 = 900 draws for 16 seconds and 16,000 thousand gradients.
    assert float(made["efficiency"]["neff/s"][pe[0]]) == pytest.approx(900 / 16, rel=0.05)
    assert float(made["efficiency"]["neff/kgrad"][pe[0]]) == pytest.approx(0.056, rel=0.05)
    assert made["errors"]["E[x]"][alone] == "0.500"


def test_figures() -> None:
    results = synthetic("smoke")
    made = EXPERIMENT.figures(results)
    assert [figure.name for figure in made] == [
        "projection", "boxes", "efficiency", "cost", "relative", "exact"
    ]  # fmt: skip
    for figure in made:
        assert len(figure.image) > 5000
        assert figure.caption.endswith(".")
        assert figure.alt_text.endswith(".")


def test_errors_of_instances_that_differ_are_compared_within_them() -> None:
    """An instance three times as hard widens the band, but not the error of a comparison."""
    curves = part("curves")
    results = synthetic("quick")
    hard = (results.metrics["instance"] == "i1").to_numpy()
    results.metrics.loc[hard, "mean"] *= 3
    gibbs = curves.of_family(results, "CT", "Gibbs CT")
    curve = curves.curve(results, gibbs, "mean", "work", relative=True)
    assert curve.se[-1] > 0.15 * curve.error[-1]
    # 1 % of 1, 3 and 1 over a mean of 5 / 3, in nine runs.  Most of it comes from one instance's
    # two degrees of freedom: chi / sqrt(2) lies within these bounds with probability 0.99.
    expected = 0.01 * np.sqrt(11 / 3) / (5 / 3) / 3
    assert 0.1 < curve.within[-1] / curve.error[-1] / expected < 2.5


def test_pooled_chains_have_a_figure_of_their_own() -> None:
    results = synthetic("smoke")
    rows = results.metrics
    tempered = rows["method"].isin(["ST", "Gibbs CT", "joint HMC"])
    for suffix in SHARES:
        for name in ("log_z", "mean", "covariance"):
            rows.loc[tempered, f"pooled_{name}{suffix}"] = rows[f"{name}{suffix}"] / 2
    assert "relative-pooled" in [figure.name for figure in EXPERIMENT.figures(results)]
    curves = part("curves")
    for family, factor in (("Gibbs CT", 0.5), ("H-AIS", 1.0)):
        cells = curves.of_family(results, "CT", family)
        honest, pooled = (
            curves.curve(results, cells, "mean", "work", relative=True, pooled=each)
            for each in (False, True)
        )
        np.testing.assert_allclose(pooled.error, factor * honest.error)
        np.testing.assert_allclose(pooled.cost, honest.cost)


def test_nothing_there_is_no_error() -> None:
    results = synthetic("smoke", keys=("d28-hmc",))
    assert {claim.verdict for claim in EXPERIMENT.claims(results)} == {"not run"}
    assert [table.name for table in EXPERIMENT.tables(results)] == ["errors", "efficiency"]
    assert EXPERIMENT.figures(results)


# Claims

AS_CLAIMED = {
    "PE:HMC": 20.0, "PE:AIS": 10.0, "PE:CT": 10.0, "d28-pe-2": 8.0, "d28-pe-5": 7.0,
    "d28-pe-10": 4.0, "d28-pe-15": 3.9, "d28-pe-20": 3.8, "PE:ST": 3.0, "d28-fixed-50": 6.0,
    "d28-fixed-10": 20.0, "PE:PT": 1.0, "PE:fold": 0.5, "PE:fold:second": 4.0,
    "PE:fold:log_z": 4.0, "PE:collapsed CT": 1.6, "CT:AIS": 4.0, "CT:H-AIS": 4.0, "CT:ST": 3.0,
    "CT:Gibbs CT": 1.1, "CT:joint HMC": 1.0, "PE:PE base:log_z": 0.1,
}  # fmt: skip


@cache
def unchanged() -> dict[str, str]:
    return verdicts({})


def claims(results: Results) -> dict[str, Claim]:
    return {claim.key: claim for claim in EXPERIMENT.claims(results)}


def verdicts(changed: dict[str, float], profile: Profile = "quick") -> dict[str, str]:
    made = claims(synthetic(profile, AS_CLAIMED | changed))
    return {key: claim.verdict for key, claim in made.items()}


def test_claims_when_all_is_as_claimed() -> None:
    # MSE x seconds falls with N here, since all cells cost the same.
    found = unchanged()
    assert len(found) == 17
    assert [key for key, verdict in found.items() if verdict != "reproduced"] == ["best-number"]
    assert found["best-number"] == "not reproduced"
    assert set(verdicts({}, "smoke").values()) == {"not run"}


@pytest.mark.parametrize(
    ("claim", "changed"),
    [
        ("hmc-worst", {"PE:HMC": 5.0}),
        ("pe-and-st-best", {"PE:ST": 12.0}),
        ("fixed-beta-lowers", {"d28-fixed-50": 9.0, "d28-fixed-90": 9.0}),
        ("fixed-beta-raises", {"d28-fixed-10": 7.0}),
        ("more-pseudo-samples", {"d28-pe-10": 9.0}),
        ("best-number", {"d28-pe-5": 3.5}),
        ("ct-below-ais", {"CT:H-AIS": 1.05}),
        ("ct-below-ais", {"CT:H-AIS:log_z": 0.2}),
        ("ct-below-st", {"CT:ST": 1.05}),
        ("ct-at-equal-time", {"CT:ST": 1.05}),
        ("joint-above-gibbs", {"CT:joint HMC": 1.3}),
        ("joint-above-gibbs", {"CT:joint HMC": 0.4}),  # that is more than slightly
        ("collapsed-from-pilot", {"CT:collapsed CT": 5.0}),
        ("ten-times", {"d28-pe-2": 1.0}),
        ("fold-above-pt", {"PE:fold": 1.2}),
        ("fold-below-pt", {"PE:fold:second": 1.0}),
        ("collapsed-below-pt", {"PE:collapsed CT": 0.8}),
        ("base-alone", {"d28-pe-2": 4.0}),
        (
            "evidence-of-pe",
            {f"PE:{name}:log_z": 3.0 for name in ("PE base", "PE pilot", "collapsed PE")},
        ),
    ],
)
def test_each_claim_can_turn(claim: str, changed: dict[str, float]) -> None:
    turns = claim == "best-number"
    assert unchanged()[claim] == ("not reproduced" if turns else "reproduced")
    (judge,) = (row[-1] for row in part("claims").CLAIMS if row[0].key == claim)
    assert judge(synthetic("quick", AS_CLAIMED | changed))[1] is turns


def test_both_parts_of_a_claim_are_told_apart() -> None:
    """ST is ahead of AIS and CT, and PE is behind them."""
    found = claims(synthetic("quick", AS_CLAIMED | {"d28-pe-10": 12.0}))["pe-and-st-best"]
    assert found.verdict == "not reproduced"
    assert "PE N=10 no, largest ratio 1." in found.measured
    assert "; ST yes, largest ratio 0." in found.measured


def test_parts_of_the_particles_are_shorter_runs() -> None:
    """Those of annealed importance sampling are independent; not those of tempered SMC."""
    measure, truth = part("measure"), RELAXATION.exact()
    cell = dataclasses.replace(cell_of(), factors={"N": 1, "half": "PE"})
    attrs = {
        "gradients_sampling": np.array([1600.0]), "log_evidence": 1.0, "log_evidence_mcse": 0.1
    }  # fmt: skip
    x = truth.draw(160, np.random.default_rng(0))[None]
    weights = {"log_w1": np.random.default_rng(1).normal(size=(1, 160))}
    fit = fit_of(x, weights, method="annealed_importance", **attrs)
    found = measure.measure(cell, fit)
    assert [found[f"work{suffix}"] for suffix in SHARES] == [100, 200, 400, 800, 1600]
    w = np.exp(weights["log_w1"][0, :10])
    first = np.sqrt(np.mean(np.square(w @ x[0, :10] / w.sum() - truth.expected_x)))
    assert found["mean_0"] == pytest.approx(first)
    in_ct = dataclasses.replace(cell, factors={"N": 1, "half": "CT"})
    assert "mean_0" not in measure.measure(in_ct, fit)
    smc = fit_of(x, weights, method="sequential_monte_carlo", **attrs)
    assert "mean_0" not in measure.measure(cell, smc)


# Bounds on the density of the inverse temperature


def test_bounds_against_quadrature() -> None:
    """In one dimension: both divergences, and that the density of beta lies within the bounds."""
    relaxation = relax(BoltzmannMachine(np.array([[0.0, 1.7], [1.7, 0.0]]), np.array([0.3, -0.1])))
    assert relaxation.q.shape[1] == 1
    base = gaussian_base([0.2], [[2.5]], log_zeta=1.3)
    found = part("bounds").bounds(relaxation, base, np.random.default_rng(0))
    x = np.linspace(-30, 30, 60_001)
    log_gamma = relaxation.log_density_and_gradient(x[:, None])[0]
    log_b = -0.5 * ((x - 0.2) ** 2 / 2.5 + np.log(2 * np.pi * 2.5))
    log_z = np.log(np.trapezoid(np.exp(log_gamma), x))
    assert found.log_ratio == pytest.approx(log_z - 1.3, abs=1e-6)
    forward = np.trapezoid(np.exp(log_b) * (log_b - log_gamma + log_z), x)
    assert found.base_to_target == pytest.approx(forward, abs=1e-6)
    backward = np.trapezoid(np.exp(log_gamma - log_z) * (log_gamma - log_z - log_b), x)
    assert abs(found.target_to_base - backward) < 4.5 * found.target_to_base_se < 0.1
    beta = np.linspace(0, 1, 41)
    lower, upper = found.log_density(beta)
    mass = [np.exp(b * (log_gamma - 1.3) + (1 - b) * log_b) for b in beta]
    height = np.log(np.trapezoid(mass, x, axis=1))
    slack = 5 * found.target_to_base_se
    assert np.all(lower - slack <= height)
    assert np.all(height <= upper + 1e-9)
    assert (upper - lower).max() <= found.deepest
    assert (upper - lower).max() == pytest.approx(found.deepest, rel=0.05)


def test_claims_whose_cells_are_missing_are_not_run() -> None:
    whole = synthetic("quick", AS_CLAIMED)
    kept = tuple(cell for cell in whole.cells if cell.factors["method"] != "ST")
    metrics = whole.metrics[whole.metrics["method"] != "ST"]
    found = claims(dataclasses.replace(whole, cells=kept, metrics=metrics))
    lost = [key for key, claim in found.items() if claim.verdict == "not run"]
    assert lost == [
        *("hmc-worst", "pe-and-st-best"),
        *("ct-below-st", "ct-at-equal-time", "collapsed-from-pilot"),
    ]
    assert found["ct-below-st"].measured == "Not in these results: ST."


def test_claims_state_what_was_measured() -> None:
    found = claims(synthetic("quick", AS_CLAIMED))
    # Runs scatter by 1 %.
    hmc = re.search(r"HMC ([\d.]+) and ([\d.]+);", found["hmc-worst"].measured)
    assert hmc is not None
    assert [float(number) for number in hmc.groups()] == pytest.approx([2.0, 2.0], rel=0.02)
    assert "shares of its particles: PE N=10 yes, largest ratio 0." in (
        found["pe-and-st-best"].measured
    )
    assert "All are below 1 on 3 of 3 instances" in found["ct-below-ais"].measured
    assert "(3 runs a method, 3 instances.)" in found["ct-below-ais"].measured
    assert "Best: Folded target (ours)" in found["ten-times"].measured
    # Errors of 0.05 and 0.1 (give or take 1 %) of a variance of 9, after 16 s and 16 million
    # gradients; two decimals are shown.
    told = re.search(
        r"folded (\d+) \[.*parallel tempering (\d+) \[.*gradients ([\d.]+) and ([\d.]+), "
        r"at 1\.0 and 1\.0 μs each",
        found["fold-above-pt"].measured,
    )
    assert told is not None
    assert [float(number) for number in told.groups()] == pytest.approx(
        [225, 56.25, 0.225, 0.05625], rel=0.1
    )
