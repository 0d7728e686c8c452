"""What a fit says of itself: every finding, on draws made to show it, and after save and load."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from scipy.stats import norm

from harness.arrays import FloatArray
from harness.cli.sample import sample
from harness.diagnosis import Finding, Severity, diagnose, give_options
from harness.diagnosis.advice import OF_COMMAND, Advice
from harness.diagnosis.step_size import least_acceptance
from harness.errors import DataError
from harness.evidence import inv_temp_log_conditionals, largest_r_hat, r_hat, resample
from harness.fit import Fit, build_fit, pooled
from harness.model.python_target import function_target
from harness.path import gaussian_base
from harness.samplers.simple_monte_carlo import simple_monte_carlo

CHAINS, DRAWS, DIM = 4, 1000, 3
LOG_Z, LOG_ZETA = 1.5, 1.0
MEAN, SD = 0.5, 0.6  # of the target in each coordinate; the base is standard normal


def stats_of(rng: np.random.Generator, chains: int = CHAINS) -> dict[str, Any]:
    shape = (chains, DRAWS)
    return {
        "diverging": np.zeros(shape, dtype=bool),
        "energy": rng.normal(size=shape),
        "tree_depth": np.full(shape, 3),
        "n_steps": np.full(shape, 7),
    }


def settings_of(**more: Any) -> dict[str, Any]:
    base = [np.zeros(DIM).tolist(), np.eye(DIM).tolist()]
    return {
        "base": base,
        "normalised_base": True,
        "log_zeta": LOG_ZETA,
        "log_g": [[0.0, 0.0], [1.0, 0.0]],
        "nuts": {"max_treedepth": 10},
    } | more


def attrs_of(method: str, settings: dict[str, Any], chains: int = CHAINS) -> dict[str, Any]:
    costs = {
        f"{kind}_{phase}": np.ones(chains)
        for kind in ("gradients", "seconds")
        for phase in ("warmup", "sampling")
    }
    return {"method": method, "settings": settings, "seed": 1, **costs}


def path_draws(rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[FloatArray, FloatArray]:
    """Exact draws of the path between two Gaussians: beta by inversion, then x."""
    grid = np.linspace(0, 1, 20_001)
    precision = 1 + grid * (SD**-2 - 1)
    centre = grid * MEAN / SD**2 / precision
    # The integral of N(x | 0, 1)^(1 - beta) N(x | m, s^2)^beta in each coordinate.
    log_c = -grid * np.log(SD) - 0.5 * np.log(precision)
    log_c += 0.5 * precision * centre**2 - 0.5 * grid * MEAN**2 / SD**2
    mass = np.exp(DIM * log_c + grid * (LOG_Z - LOG_ZETA)).cumsum()
    beta = np.interp(rng.random(shape), mass / mass[-1], grid)
    inside = 1 + beta * (SD**-2 - 1)
    x = rng.normal(size=(*shape, DIM)) / np.sqrt(inside)[..., None]
    return x + (beta * MEAN / SD**2 / inside)[..., None], beta


def log_densities(x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Log target and log base at points (..., DIM)."""
    return LOG_Z + norm.logpdf(x, MEAN, SD).sum(axis=-1), norm.logpdf(x).sum(axis=-1)


def tempered_fit(
    seed: int = 1, x: FloatArray | None = None, beta: FloatArray | None = None, **settings: Any
) -> Fit:
    """Continuously tempered fit of exact draws, or of the given ones."""
    rng = np.random.default_rng(seed)
    exact = path_draws(rng, (CHAINS, DRAWS))
    x, beta = exact[0] if x is None else x, exact[1] if beta is None else beta
    log_gamma, log_base = log_densities(x)
    delta = log_base + LOG_ZETA - log_gamma
    log_w1, log_w0 = inv_temp_log_conditionals(delta)
    index = resample(log_w1, rng)
    return build_fit(
        posterior={"x": x[np.arange(len(x))[:, None], index]},
        extended={"x": x, "inv_temp": beta, "delta": delta, "log_w1": log_w1, "log_w0": log_w0},
        sample_stats=stats_of(rng, len(x)),
        constant_data={"D": DIM},
        attrs=attrs_of("joint_tempering", settings_of(**settings), len(x)),
        pseudo_samples=False,
    )


def pseudo_fit(seed: int = 1, num: int = 2, shape: Any = (1.0, 1.0), **settings: Any) -> Fit:
    """Pseudo-extended fit of exact draws, pi uniform, g uniform (weighed as if Beta(a, b))."""
    rng = np.random.default_rng(seed)
    x, beta = path_draws(rng, (CHAINS, DRAWS, num))
    chosen = rng.integers(0, num, (CHAINS, DRAWS, 1))
    target = rng.normal(MEAN, SD, (CHAINS, DRAWS, 1, DIM))
    np.put_along_axis(x, chosen[..., None], target, axis=2)
    np.put_along_axis(beta, chosen, rng.random((CHAINS, DRAWS, 1)), axis=2)
    log_gamma, log_base = log_densities(x)
    log_q = beta * (log_gamma - LOG_ZETA) + (1 - beta) * log_base
    extended = {
        "x": np.moveaxis(x, 2, -1),
        "inv_temp": beta,
        "delta": log_base + LOG_ZETA - log_gamma,
        "log_weight": log_gamma - log_q,
    }
    return build_fit(
        posterior={"x": target[:, :, 0]},
        extended=extended,
        sample_stats=stats_of(rng),
        constant_data={"D": DIM},
        attrs=attrs_of("pseudo_extended", settings_of(g_shape=list(shape), **settings)),
    )


def target_fit(draws: FloatArray, **stats: Any) -> Fit:
    rng = np.random.default_rng(0)
    made = stats_of(rng, len(draws)) | stats
    return build_fit(
        posterior={"x": draws},
        extended=None,
        sample_stats={name: value[:, : draws.shape[1]] for name, value in made.items()},
        constant_data={},
        attrs=attrs_of("nuts", {"nuts": {"max_treedepth": 10}}, len(draws)),
    )


def named(fit: Fit, words: str) -> Finding:
    """Return the one finding whose sentence has these words."""
    found = [each for each in diagnose(fit) if words in each.sentence]
    assert len(found) == 1, [str(each) for each in diagnose(fit)]
    return found[0]


@pytest.mark.parametrize("fit", [tempered_fit(), pseudo_fit(), pseudo_fit(num=3, seed=4)])
def test_a_sound_run_is_fine(fit: Fit) -> None:
    findings = diagnose(fit)
    for words in ("R-hat is", "R-hat of the extended", "base are within", "round trips", "log Z"):
        assert any(words in each.sentence for each in findings), words
    assert all(each.severity is Severity.FINE for each in findings), findings
    # Which is as far as draws can tell.
    assert "no chain has visited" in findings[-1].sentence
    log_z = fit.log_evidence
    assert abs(log_z.value - LOG_Z) < 4 * log_z.mcse < 0.3
    both = fit.two_sided_log_evidence
    assert both is not None
    for side in (both.forward, both.backward):
        assert abs(side.value - LOG_Z) < 4 * side.mcse
    x = fit.base_expectation(lambda p: p["x"])
    assert np.all(np.abs(x.value) < 4.5 * x.mcse)
    x = fit.expectation(lambda p: p["x"])
    assert np.all(np.abs(x.value - MEAN) < 4.5 * x.mcse)


@pytest.mark.parametrize("make", [tempered_fit, pseudo_fit])
def test_everything_survives_the_way_to_disk(make: Any, tmp_path: Path) -> None:
    fit = make()
    fit.save(tmp_path / "fit.nc")
    loaded = Fit.load(tmp_path / "fit.nc")
    assert diagnose(loaded) == diagnose(fit)
    assert loaded.log_evidence == fit.log_evidence
    assert loaded.two_sided_log_evidence == fit.two_sided_log_evidence
    assert loaded.settings == fit.settings
    for one, other in zip(
        fit.base_expectation(lambda p: p["x"]),
        loaded.base_expectation(lambda p: p["x"]),
        strict=True,
    ):
        assert np.array_equal(one, other)
    draws = fit.effective_draws(lambda p: p["x"])
    assert np.array_equal(draws, loaded.effective_draws(lambda p: p["x"]))
    # And so do those of a thinned fit.
    thin = fit.thinned(100)
    thin.save(tmp_path / "thin.nc")
    assert diagnose(Fit.load(tmp_path / "thin.nc")) == diagnose(thin)


def test_chains_that_disagree() -> None:
    x, beta = path_draws(np.random.default_rng(2), (CHAINS, DRAWS))
    x[3] += 1.5
    fit = tempered_fit(x=x, beta=beta)
    first = diagnose(fit)[0]
    assert first.severity is Severity.PROBLEM
    assert "chains disagree" in first.sentence
    assert first.what_to_try
    assert named(fit, "R-hat of the extended").severity is Severity.PROBLEM
    # Means under the base and both sides' log Z may agree within errors that are too small.
    sentences = " ".join(each.sentence for each in diagnose(fit))
    assert "within" not in sentences
    assert "log Z agree" not in sentences


def test_base_moments_that_are_off() -> None:
    """A base that the draws do not know: as from draws of another path."""
    wrong = [[0.3, 0.0, 0.0], np.eye(DIM).tolist()]
    for make in (tempered_fit, pseudo_fit):
        finding = named(make(base=wrong), "under the base")
        assert finding.severity is Severity.PROBLEM
        assert "away from its known mean" in finding.sentence


def test_a_base_of_logarithms_is_recognised() -> None:
    """Positive parameters have a Gaussian base on their logarithms."""
    fit = tempered_fit()
    for group in ("posterior", "extended"):
        dataset = fit.tree[group].to_dataset()
        fit.tree[group] = dataset.assign(x=np.exp(dataset["x"]))
    assert named(fit, "under the base").severity is Severity.FINE


def test_inverse_temperatures_that_do_not_travel() -> None:
    fit = tempered_fit()
    assert fit.extended is not None
    beta = fit.extended["inv_temp"].to_numpy()
    stuck = tempered_fit(beta=0.2 + 0.6 * beta)
    finding = named(stuck, "no round trip")
    assert finding.severity is Severity.PROBLEM
    assert "4 of 4 chains" in finding.sentence
    # Up, and up again: one round trip a chain.
    halves = beta.reshape(CHAINS, 2, -1)
    few = np.sort(halves, axis=-1).reshape(beta.shape)
    assert named(tempered_fit(beta=few), "round trip").severity is Severity.WARNING


def test_weights_that_few_draws_dominate() -> None:
    fit = tempered_fit()
    extended = fit.tree["extended"].to_dataset()
    rng = np.random.default_rng(3)
    heavy = extended["log_w1"].copy(data=np.log(rng.pareto(0.7, (CHAINS, DRAWS))))
    fit.tree["extended"] = extended.assign(log_w1=heavy)
    assert named(fit, "weights' Pareto k").severity is Severity.PROBLEM
    one = extended["log_w1"].copy(
        data=np.where(np.arange(DRAWS) % 500 == 7, 0.0, -30.0 + 0 * heavy)
    )
    fit.tree["extended"] = extended.assign(log_w1=one)
    assert named(fit, "effective draws").severity is Severity.PROBLEM


def test_one_draw_with_all_the_weight() -> None:
    """Var / MCSE^2 is then a ratio of rounding errors, and counted 5e55 effective draws."""
    target = function_target("narrow", lambda x: (-5000 * np.square(x).sum(1), -1e4 * x), 5)
    fit = simple_monte_carlo(target, gaussian_base(np.zeros(5), np.eye(5)), draws=500, seed=1)
    assert named(fit, "has all the weight").severity is Severity.PROBLEM
    assert "it rests on only 1 effective draws" in named(fit, "effective draws").sentence


def test_a_gap_between_the_two_sides() -> None:
    """Ends of the path that know different phases: see the first-order transition, compiled."""
    rng = np.random.default_rng(5)
    x, beta = path_draws(rng, (CHAINS, DRAWS))
    x = np.where((beta > 0.5)[..., None], x + 4, x)
    finding = named(tempered_fit(x=x, beta=beta), "two directions")
    assert finding.severity is Severity.PROBLEM
    assert "from the base's side" in finding.sentence


@pytest.mark.parametrize(
    ("count", "severity"), [(0, Severity.FINE), (3, Severity.WARNING), (400, Severity.PROBLEM)]
)
def test_divergences(count: int, severity: Severity) -> None:
    draws = np.random.default_rng(6).normal(size=(CHAINS, DRAWS))
    diverging = np.arange(CHAINS * DRAWS).reshape(CHAINS, DRAWS) < count
    finding = named(target_fit(draws, diverging=diverging), "divergent")
    assert finding.severity is severity
    assert f"{count} divergent transitions in 4,000 draws" in finding.sentence


DEEP = np.where(np.arange(DRAWS) < 5, 10, 3) * np.ones((CHAINS, 1), dtype=int)


def test_what_the_sampler_says() -> None:
    rng = np.random.default_rng(7)
    draws = rng.normal(size=(CHAINS, DRAWS))
    slow = rng.normal(size=(CHAINS, DRAWS)).cumsum(axis=1)
    assert named(target_fit(draws, energy=slow), "E-BFMI").severity is Severity.WARNING
    still = target_fit(draws, energy=np.zeros((CHAINS, DRAWS)))
    assert named(still, "E-BFMI is as low as 0.00").severity is Severity.WARNING
    finding = named(target_fit(draws, tree_depth=DEEP), "tree depth")
    assert finding.severity is Severity.WARNING
    assert "20 transitions" in finding.sentence


@pytest.mark.parametrize(
    ("nuts", "what"),
    [
        ({"warmup": 149, "metric": "diag_e"}, "Raise warmup to 150 or more"),
        ({"warmup": 150, "metric": "diag_e"}, "raise max_treedepth"),
        ({"warmup": 149, "metric": "unit_e"}, "raise max_treedepth"),
        ({}, "raise max_treedepth"),
    ],
)
def test_trees_are_deep_after_a_warm_up_that_adapts_no_metric(
    nuts: dict[str, Any], what: str
) -> None:
    fit = target_fit(np.random.default_rng(7).normal(size=(CHAINS, DRAWS)), tree_depth=DEEP)
    fit.tree.attrs["settings"] = json.dumps({"nuts": {"max_treedepth": 10} | nuts})
    assert what in named(fit, "tree depth").what_to_try


def with_stats(fit: Fit, stats: xr.Dataset) -> None:
    fit.tree["sample_stats"] = xr.DataTree(stats)


@pytest.mark.parametrize(
    ("near_target", "severity"),
    [(0.7, Severity.FINE), (0.4, Severity.WARNING), (0.2, Severity.PROBLEM)],
)
def test_steps_that_are_too_long_near_the_target(near_target: float, severity: Severity) -> None:
    fit = tempered_fit()
    inv_temp = fit.tempered.inv_temp
    hot = np.quantile(inv_temp, 0.9)
    rate = np.where(inv_temp < hot, 0.9, near_target)
    with_stats(fit, fit.sample_stats.assign(acceptance_rate=(("chain", "draw"), rate)))
    finding = named(fit, "of a trajectory")
    assert finding.severity is severity
    least = least_acceptance(fit)
    assert least is not None
    # The quantile lies between two draws.
    assert least.rate == pytest.approx(near_target, abs=0.9 / (CHAINS * DRAWS / 10))
    assert least.lowest == inv_temp[inv_temp >= hot].min()
    assert least.highest == inv_temp.max()


def test_acceptance_rates_that_are_not_of_nuts_on_a_path_are_not_compared() -> None:
    rate = {"acceptance_rate": np.full((CHAINS, DRAWS), 0.1)}
    assert least_acceptance(target_fit(np.zeros((CHAINS, DRAWS)), **rate)) is None
    fit = tempered_fit()
    assert least_acceptance(fit) is None
    rates = (("chain", "draw"), rate["acceptance_rate"])
    with_stats(fit, fit.sample_stats.assign(acceptance_rate=rates))
    assert least_acceptance(fit) is not None
    with_stats(fit, fit.sample_stats.drop_vars("tree_depth"))  # a random walk accepts less
    assert least_acceptance(fit) is None


def test_effective_draws_of_slow_chains() -> None:
    rng = np.random.default_rng(8)
    x = np.empty((CHAINS, DRAWS))
    x[:, 0] = rng.normal(size=CHAINS)
    for t in range(1, DRAWS):
        x[:, t] = 0.9 * x[:, t - 1] + np.sqrt(1 - 0.81) * rng.normal(size=CHAINS)
    finding = named(target_fit(x), "effective draws")  # about 210 of 4,000
    assert finding.severity is Severity.WARNING


@pytest.mark.parametrize(
    ("off", "severity"), [(0.0, Severity.FINE), (0.8, Severity.WARNING), (3.0, Severity.PROBLEM)]
)
def test_r_hat_of_many_quantities_counts_if_it_is_more_than_chance(
    off: float, severity: Severity
) -> None:
    """Of 3,000 independent ones with 100 draws in each chain the largest is 1.03."""
    rng = np.random.default_rng(15)
    fit = target_fit(rng.normal(size=(CHAINS, 100)))
    y_rep = rng.normal(size=(CHAINS, 100, 3000))
    y_rep[0, :, 5] += off
    with_quantity = fit.posterior.assign(y_rep=(("chain", "draw", "n"), y_rep))
    fit.tree["posterior"] = xr.DataTree(with_quantity)
    assert largest_r_hat(y_rep) > 1.02
    assert named(fit, "R-hat").severity >= Severity.WARNING  # as if they were parameters
    fit.tree.attrs["parameters"] = '["x"]'
    few = target_fit(fit.posterior["x"].to_numpy())
    few.tree["posterior"] = xr.DataTree(fit.posterior.isel(n=np.argsort(-r_hat(y_rep))[:60]))
    few.tree.attrs["parameters"] = '["x"]'
    assert named(few, "R-hat").severity >= Severity.WARNING  # few are not so large by chance
    finding = named(fit, "R-hat")
    assert finding.severity == severity
    assert ("chance explains it" in finding.sentence) is (severity == Severity.FINE)
    assert ("(y_rep)" in finding.sentence) is (severity != Severity.FINE)


@pytest.mark.parametrize("kind", ["target", "tempered", "pseudo-extended"])
def test_the_fewest_effective_draws_of_many_entries(kind: str) -> None:
    """Of 3 x 100 entries one is slow, and it is found; so are those of few entries."""
    rng = np.random.default_rng(12)
    plain = target_fit(rng.normal(size=(CHAINS, DRAWS, DIM)))
    fit = {"target": plain, "tempered": tempered_fit(), "pseudo-extended": pseudo_fit()}[kind]

    def wider(dataset: xr.Dataset) -> xr.Dataset:
        axes = [axis for axis in dataset["x"].dims if not str(axis).startswith("x_")]
        shape = [dataset.sizes[axis] for axis in axes]
        many = rng.normal(size=(*shape, 3, 100))
        slow = np.cumsum(rng.normal(size=(CHAINS, DRAWS)), axis=1) / 20
        many[..., 1, 60] += slow.reshape(CHAINS, DRAWS, *[1] * (len(shape) - 2))
        return dataset.assign(many=([*axes, "a", "b"], many))

    groups = ("posterior",) if kind == "target" else ("posterior", "extended")
    for group in groups:
        fit.tree[group] = xr.DataTree(wider(fit.tree[group].to_dataset()))
    every = fit.effective_draws(lambda p: p["many"])
    assert np.nanargmin(every) == 160
    assert fit.fewest_effective_draws("many") == np.nanmin(every)
    few = fit.effective_draws(lambda p: p["x"])
    assert fit.fewest_effective_draws("x") == np.nanmin(few)
    assert f"{np.nanmin(every):,.0f}" in named(fit, "effective draws").sentence


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("draws", [1, 3, 7, 30])
@pytest.mark.parametrize("chains", [1, 4])
def test_short_and_still_runs_are_told(draws: int, chains: int) -> None:
    moving = np.random.default_rng(9).normal(size=(chains, draws))
    assert diagnose(target_fit(moving))
    still = diagnose(target_fit(np.ones((chains, draws))))
    assert still[0].severity > Severity.FINE
    assert ("too few draws" if draws < 8 else "No chain has moved") in still[0].sentence


def test_findings_are_sentences_worst_first() -> None:
    x, beta = path_draws(np.random.default_rng(2), (CHAINS, DRAWS))
    x[3] += 1.5
    findings = diagnose(tempered_fit(x=x, beta=0.2 + 0.6 * beta))
    severities = [each.severity for each in findings]
    assert severities == sorted(severities, reverse=True)
    assert len({each.severity for each in findings}) > 1
    for each in findings:
        assert each.sentence.endswith(".")
        assert str(each).startswith(each.sentence)
        assert (each.severity is Severity.FINE) or each.what_to_try.endswith(".")


def test_fits_of_the_command_are_told_options_of_the_command() -> None:
    x, beta = path_draws(np.random.default_rng(2), (CHAINS, DRAWS))
    x[3] += 1.5
    fit = tempered_fit(x=x, beta=0.2 + 0.6 * beta)
    of_library = diagnose(fit)
    give_options(fit)
    of_command = diagnose(fit)
    assert [each.sentence for each in of_command] == [each.sentence for each in of_library]
    told = " ".join(each.what_to_try for each in of_command)
    assert "--budget" in told
    assert "base" not in told


def test_advice_names_options_that_there_are() -> None:
    there = {name for option in sample.params for name in option.opts}
    for each in fields(Advice):
        text = getattr(OF_COMMAND, each.name)
        assert text.endswith(".")
        assert set(re.findall(r"--[a-z-]+", text)) <= there
        # What only callers of the library choose.
        assert not re.search(r"\b(base|g|guess|target_accept|max_treedepth)\b", text)


@pytest.mark.parametrize(
    ("fit", "message"),
    [
        (pseudo_fit(base=None, normalised_base=False), "normalised base"),
        (pseudo_fit(inv_temp=[0.1, 1.0]), "fixed"),
        (tempered_fit(inv_temp=0.3), "fixed"),
        (pseudo_fit(g_correlation=-0.5), "tied to each other"),
        (pseudo_fit(num=1), "N >= 2"),
        (target_fit(np.zeros((2, 20))), "no draws along a path"),
    ],
)
def test_runs_without_log_z_say_why(fit: Fit, message: str) -> None:
    with pytest.raises(DataError, match=message):
        _ = fit.log_evidence
    with pytest.raises(DataError, match=message):
        _ = fit.two_sided_log_evidence
    assert diagnose(fit)


def test_the_shape_of_g_is_divided_out() -> None:
    """Draws of g = 1 that are told to come from Beta(1, 2) are off by what that says."""
    plain, shaped = pseudo_fit(), pseudo_fit(shape=(1.0, 2.0))
    weight = plain.tempered.log_weight - np.log1p(-plain.tempered.inv_temp)
    np.testing.assert_allclose(shaped.tempered.log_weight, weight, rtol=1e-12)


def test_pooled_fits_are_chains_of_one() -> None:
    fits = [tempered_fit(seed) for seed in (1, 2, 3)]
    together = pooled(fits)
    assert together.posterior.sizes["chain"] == 3 * CHAINS
    assert together.posterior["chain"].to_numpy().tolist() == list(range(3 * CHAINS))
    assert together.gradients == sum(fit.gradients for fit in fits)
    assert together.log_evidence.mcse < min(fit.log_evidence.mcse for fit in fits)
    assert all(each.severity is Severity.FINE for each in diagnose(together))
    alone = pooled(fits[:1])
    assert diagnose(alone) == diagnose(fits[0])
