"""Replications that share a fit: its parts, their cost, thinning, and how results count them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from known_targets import one_dimensional_mixture, ten_dimensional_gaussian
from scipy.special import logsumexp

from harness.engine.nuts import NutsSettings
from harness.engine.toolchain import CmdStan
from harness.errors import DataError
from harness.evidence import inv_temp_log_conditionals
from harness.experiment.results import read_results
from harness.experiment.run import Plan, run_plan
from harness.experiment.store import Store
from harness.experiment.workers import LocalWorkers
from harness.fit import Fit, build_fit, chains_of, part_of
from harness.forms.method import python_method
from harness.model import Model
from harness.plan.spec import Cell, Experiment, Task, tasks_of
from harness.samplers.annealed_importance import annealed_importance
from harness.samplers.geometric_path import GeometricPath
from harness.samplers.gibbs_tempering import gibbs_tempering
from harness.samplers.joint_hmc import joint_hmc
from harness.samplers.kernels import Hmc
from harness.samplers.ladders import uniform_ladder
from harness.samplers.simulated_tempering import simulated_tempering

KNOWN = one_dimensional_mixture()
FIXED: dict[str, Any] = {"warmup": 0, "step_size": 0.5, "seed": 3}


def tempered(name: str, **settings: Any) -> Fit:
    if name == "gibbs":
        return gibbs_tempering(KNOWN.target, KNOWN.base, **FIXED | settings)
    if name == "joint":
        return joint_hmc(KNOWN.target, KNOWN.base, **FIXED | settings)
    ladder = uniform_ladder(9)
    return simulated_tempering(
        KNOWN.target, KNOWN.base, ladder=ladder, log_weights=0 * ladder, **FIXED | settings
    )


# Parts of a fit


@pytest.mark.parametrize("name", ["gibbs", "joint", "simulated"])
def test_a_part_is_a_fit_of_its_chains_alone(name: str) -> None:
    """Estimates are those of a fit that is built from these chains' arrays and nothing else."""
    fit = tempered(name, chains=6, draws=40)
    part = part_of(fit, 1, 3)
    extended = fit.extended
    assert extended is not None
    alone = build_fit(
        posterior={"x": fit.posterior["x"].to_numpy()[2:4]},
        extended={str(key): value.to_numpy()[2:4] for key, value in extended.items()},
        sample_stats={str(k): v.to_numpy()[2:4] for k, v in fit.sample_stats.items()},
        constant_data={},
        attrs={"method": "m", "settings": fit.settings},
        weighting="across draws",
        pseudo_samples=False,
    )
    assert part.log_evidence == alone.log_evidence
    for f in (lambda p: p["x"], lambda p: p["x"] ** 2):
        for one, other in zip(part.expectation(f), alone.expectation(f), strict=True):
            np.testing.assert_array_equal(one, other)
    assert part.settings["chains"] == 2
    assert list(part.posterior["chain"]) == [0, 1]
    assert part.log_evidence != fit.log_evidence


def test_parts_share_the_cost() -> None:
    fit = tempered("gibbs", chains=6, draws=10)
    parts = [part_of(fit, index, 3) for index in range(3)]
    for each in parts:
        assert each.gradients == fit.gradients // 3
        assert each.seconds == pytest.approx(fit.seconds / 3)
        processor = fit.tree.attrs["seconds_processor"]
        assert each.tree.attrs["seconds_processor"] == pytest.approx(processor / 3)
    pilot = fit.tree.attrs["gradients_pilot"] = 90
    assert part_of(fit, 0, 3).gradients == (fit.gradients - pilot) // 3 + 30


def test_a_part_survives_save_and_load(tmp_path: Path) -> None:
    part = part_of(tempered("joint", chains=4, draws=12, thin=3), 1, 2)
    part.save(tmp_path / "fit.nc")
    assert Fit.load(tmp_path / "fit.nc").log_evidence == part.log_evidence


def test_what_cannot_be_divided_is_refused() -> None:
    fit = tempered("gibbs", chains=6, draws=4)
    assert part_of(fit, 0, 1) is fit
    with pytest.raises(DataError, match="6 chains have no part 0 of 4 equal ones"):
        part_of(fit, 0, 4)
    with pytest.raises(DataError, match="none of 6 chains"):
        chains_of(fit, slice(6, 9))
    fit.tree.attrs |= {"log_evidence": 1.0, "log_evidence_mcse": 0.1}
    with pytest.raises(DataError, match="has estimated log Z from all 6 chains together"):
        part_of(fit, 0, 2)
    fit.tree.attrs["chains_interact"] = 1
    with pytest.raises(DataError, match="depend on each other"):
        part_of(fit, 0, 2)


# Annealing


def test_populations_of_annealing_are_runs_of_their_own() -> None:
    """The same particles as one run of all, with each population's own mean weight."""
    settings: dict[str, Any] = {"ladder": uniform_ladder(6), "step_size": 0.4, "seed": 8}
    whole = annealed_importance(KNOWN.target, KNOWN.base, chains=21, **settings)
    fit = annealed_importance(KNOWN.target, KNOWN.base, chains=7, populations=3, **settings)
    log_w = whole.log_weight.reshape(3, 7)
    np.testing.assert_array_equal(fit.log_weight, log_w)
    assert fit.log_evidence == whole.log_evidence
    for index in range(3):
        part = part_of(fit, index, 3)
        weight = np.exp(log_w[index])
        assert part.log_evidence.value == pytest.approx(1.0 + np.log(weight.mean()))
        relative = weight.std(ddof=1) / np.sqrt(7) / weight.mean()
        assert part.log_evidence.mcse == pytest.approx(relative)
        x = fit.raw["x"].to_numpy()[index]
        assert float(part.expectation(lambda p: p["x"]).value[0]) == pytest.approx(
            float(weight @ x[:, 0] / weight.sum())
        )
    two = chains_of(fit, slice(2)).log_evidence
    assert two.value == pytest.approx(1.0 + logsumexp(log_w[:2]) - np.log(14))
    with pytest.raises(DataError, match="needs a population"):
        annealed_importance(KNOWN.target, KNOWN.base, populations=0, **settings)


# Thinning, and weights of the draws that it leaves out


@pytest.mark.parametrize("name", ["gibbs", "joint", "simulated"])
def test_thinning_keeps_every_kth_draw_and_all_weights(name: str) -> None:
    whole = tempered(name, chains=3, draws=30)
    thin = tempered(name, chains=3, draws=30, thin=5)
    for key in ("x", "delta", "log_w1", "log_w0"):
        np.testing.assert_array_equal(
            thin.tree["extended"][key].to_numpy(), whole.tree["extended"][key].to_numpy()[:, 4::5]
        )
    assert thin.log_evidence.value == pytest.approx(whole.log_evidence.value, abs=1e-12)
    first = thin.first_draws(4).log_evidence.value
    assert first == pytest.approx(whole.first_draws(20).log_evidence.value, abs=1e-12)
    assert (thin.settings["draws"], thin.settings["thin"]) == (30, 5)
    assert thin.gradients == whole.gradients
    with pytest.raises(DataError, match="30 draws cannot be thinned to every 4th"):
        tempered(name, chains=3, draws=30, thin=4)


def test_end_weights_of_a_ladder_are_normalised_heights() -> None:
    rung, log_weight = np.linspace(0, 1, 7), np.arange(7.0) / 3
    delta = np.array([-800.0, -3.0, 0.0, 2.0, 900.0, np.inf])
    log_g = np.column_stack([rung, log_weight])
    log_w1, log_w0 = inv_temp_log_conditionals(delta, log_g, ladder=True)
    height = log_weight - np.multiply.outer(delta[:-1], rung)
    total = logsumexp(height, axis=1)
    np.testing.assert_allclose(log_w1[:-1], height[:, -1] - total, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(log_w0[:-1], height[:, 0] - total, rtol=1e-12, atol=1e-12)
    assert (log_w1[-1], log_w0[-1]) == (-np.inf, 0.0)


# The metric


def test_a_unit_metric_has_an_identity_mass() -> None:
    """Against the leapfrog integrator of Neal (2011), written out for the target itself."""
    known = ten_dimensional_gaussian()
    path = GeometricPath(known.target, known.base, "unit")
    start = path.start(known.base.sample(np.random.default_rng(1), 5))
    moved = Hmc(3, jitter=0.0).move(path, start, 1.0, 0.05, np.random.default_rng(2))
    rng = np.random.default_rng(2)
    rng.uniform(size=5)  # the jitter
    x, p, density = start.points, rng.standard_normal((5, 10)), known.target.log_density
    before = density(x)[0] - 0.5 * np.square(p).sum(axis=1)
    for _ in range(3):
        p = p + 0.025 * density(x)[1]
        x = x + 0.05 * p
        p = p + 0.025 * density(x)[1]
    change = density(x)[0] - 0.5 * np.square(p).sum(axis=1) - before
    np.testing.assert_allclose(moved.acceptance, np.exp(np.minimum(0, change)), rtol=1e-9)
    accepted = rng.random(5) < moved.acceptance
    assert accepted.any()
    np.testing.assert_allclose(moved.state.points[accepted], x[accepted], rtol=1e-9)
    with pytest.raises(DataError, match="the metric is base or unit; got 'euclidean'"):
        GeometricPath(known.target, known.base, "euclidean")  # type: ignore[arg-type]


# Experiments


def sample(model: Model, *, seed: int, chains: int) -> Fit:
    """Draw from a normal."""
    rng = np.random.default_rng(seed)
    return build_fit(
        posterior={"x": rng.normal(size=(chains, 8, 2))},
        extended=None,
        sample_stats={"lp": np.zeros((chains, 8))},
        constant_data={},
        attrs={
            "method": "normal",
            "settings": {"chains": chains},
            "gradients_sampling": np.full(chains, 5.0),
            "seconds_sampling": np.full(chains, 0.5),
        },
    )


CELL = Cell(
    key="normal",
    label="Normal",
    factors={"method": "normal"},
    model=Model("m", Path(), {}, ("x",), 2),
    method=replace(python_method("normal", sample), driven_by="cmdstan"),  # in threads
    settings={"chains": 6},
    nuts=NutsSettings(),
    replications=6,
    batch=3,
)


def experiment(**functions: Any) -> Experiment:
    return Experiment(
        name="e", title="E", source="", summary="", reductions={},
        grid=lambda _: (CELL,),
        measure=lambda _, fit: {
            "mean": float(fit.posterior["x"].mean()), "chains": fit.posterior.sizes["chain"]
        },
        tables=lambda _: [], figures=lambda _: [], claims=lambda _: [], **functions,
    )  # fmt: skip


def tasks(cell: Cell = CELL) -> tuple[Task, ...]:
    return tuple(tasks_of("e", (cell,), {}, "2.39"))


def test_a_task_is_a_batch() -> None:
    batches = tasks()
    assert [list(task.replications) for task in batches] == [[0, 1, 2], [3, 4, 5]]
    single = tasks(replace(CELL, batch=1))
    assert [task.seed for task in batches] == [single[0].seed, single[3].seed]
    assert batches[0].digest != single[0].digest  # what is measured on them differs


def test_cells_without_batches_have_the_digests_that_they_had() -> None:
    assert "batch" not in replace(CELL, batch=1).content()


def test_batches_that_do_not_divide_replications_are_refused() -> None:
    with pytest.raises(DataError, match="6 replications of normal cannot be run in batches of 4"):
        replace(CELL, batch=4)
    with pytest.raises(DataError, match="share a model"):
        replace(CELL, models=(CELL.model,) * 6)


def test_results_have_a_row_for_every_replication(tmp_path: Path) -> None:
    def whole(_: Cell, fit: Fit) -> list[dict[str, float]]:
        return [{"whole": float(fit.posterior["x"].sizes["chain"] + k)} for k in range(3)]

    plan = Plan(experiment(measure_batch=whole), "smoke", tasks())
    store = Store(tmp_path / "store")
    with LocalWorkers(1) as workers:
        counts = run_plan(plan, store, CmdStan(tmp_path, "2.39.0", "home"), workers)
    assert counts["finished"] == 2
    results = read_results(plan, store)
    assert results.complete
    assert results.planned == 6
    assert results.replications(CELL) == [0, 1, 2, 3, 4, 5]
    metrics = results.metrics
    assert list(metrics["chains"]) == [2] * 6
    assert list(metrics["whole"]) == [6, 7, 8] * 2
    assert metrics["mean"].nunique() == 6
    # Six chains of 5 gradients and half a second, for three replications.
    assert list(metrics["gradients"]) == [10.0] * 6
    assert list(metrics["seconds"]) == [1.0] * 6
    for replication in range(6):
        x = results.load(CELL, replication).posterior["x"]
        assert metrics["mean"][replication] == float(x.mean())
        np.testing.assert_array_equal(results.target_draws(CELL, replication)["x"], x)
