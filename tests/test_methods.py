"""NUTS on the target and pseudo-extended MCMC, compiled and run: exact moments, honest errors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cmdstanpy
import numpy as np
import pytest
import xarray as xr
from form_data import pseudo_extended_data
from scipy.stats import ks_2samp
from stan_density import StanDensity

from harness.arrays import FloatArray
from harness.engine.compile import CompiledProgram, compile_programs
from harness.engine.nuts import NutsSettings, run_nuts
from harness.engine.toolchain import require_cmdstan
from harness.errors import DataError, SamplingError
from harness.evidence import expectation, normalised_weights
from harness.fit import Fit
from harness.forms.nuts import PLAIN_NUTS
from harness.forms.pseudo_extended import PSEUDO_EXTENDED
from harness.model import Model
from harness.models.gaussian_mixture import GaussianMixture

# Unequal weights and widths, modes a few standard deviations apart: NUTS itself moves between.
LINE = GaussianMixture(np.array([0.35, 0.65]), np.array([[-1.2], [1.4]]), np.array([0.7, 1.0]))
PLANE = GaussianMixture(
    np.array([0.3, 0.7]), np.array([[-0.8, 0.5], [1.2, -1.0]]), np.array([0.6, 0.9])
)
# A narrow box for the pseudo-samples at low temperature: less for short runs to explore.
MODELS = {
    "line": (LINE, LINE.model("line", lower=-12, upper=12)),
    "plane": (PLANE, PLANE.model("plane", lower=-11, upper=11)),
}
NUTS = NutsSettings(chains=2, warmup=500, draws=4000, parallel_chains=2)
SHORT = NutsSettings(chains=3, warmup=50, draws=60, parallel_chains=2)


@pytest.fixture(scope="module")
def programs(quiet_cmdstanpy: None, cmdstan_home: Path) -> dict[str, CompiledProgram]:
    """Compile both programs, once; they are the same for every mixture."""
    model = MODELS["line"][1]
    variants = {name: model.program(name) for name in ("target", "pseudo_extended")}
    assert cmdstan_home.is_dir()
    compiled = compile_programs(variants.values(), require_cmdstan())
    return {name: compiled[program] for name, program in variants.items()}


def sample(
    programs: dict[str, CompiledProgram],
    model: Model,
    num: int | None,
    nuts: NutsSettings,
    seed: int,
    inv_temp: float | Sequence[float] | None = None,
) -> Fit:
    """Run the target (``num`` None) or N pseudo-samples."""
    if num is None:
        return PLAIN_NUTS.sample(model, nuts=nuts, seed=seed, compiled=programs["target"])
    return PSEUDO_EXTENDED.sample(
        model,
        num_pseudo_samples=num,
        inv_temp=inv_temp,
        nuts=nuts,
        seed=seed,
        compiled=programs["pseudo_extended"],
    )


def moments(parameters: xr.Dataset) -> xr.DataArray:
    x = parameters["x"]
    return xr.concat([x, x**2], dim="x_dim_0")


def exact(mixture: GaussianMixture) -> FloatArray:
    return np.concatenate([mixture.truth.expected("x"), mixture.truth.expected("x_squared")])


@pytest.mark.compiled
@pytest.mark.parametrize("name", ["line", "plane"])
@pytest.mark.parametrize(
    ("num", "inv_temp"),
    [(None, None), (1, None), (2, None), (4, None), (2, 0.3), (3, (0.1, 0.5, 1.0)), (2, 0.0)],
)
def test_moments_are_exact_within_their_errors(
    programs: dict[str, CompiledProgram],
    name: str,
    num: int | None,
    inv_temp: float | Sequence[float] | None,
) -> None:
    mixture, model = MODELS[name]
    fit = sample(programs, model, num, NUTS, seed=20, inv_temp=inv_temp)
    value, mcse = fit.expectation(moments)
    assert np.all(np.abs(value - exact(mixture)) < 4 * mcse)
    assert np.all(mcse < 0.25)
    # The posterior group holds unweighted draws of the target.
    value, mcse = expectation(moments(fit.posterior).transpose("chain", "draw", ...).to_numpy())
    assert np.all(np.abs(value - exact(mixture)) < 4 * mcse)


@pytest.mark.compiled
@pytest.mark.parametrize("num", [None, 2])
def test_errors_are_honest(programs: dict[str, CompiledProgram], num: int | None) -> None:
    """Z-scores of independent runs, each with its own estimated error, have variance one."""
    mixture, model = MODELS["plane"]
    runs = 80
    nuts = NutsSettings(chains=runs, warmup=300, draws=2000, parallel_chains=2)
    fit = sample(programs, model, num, nuts, seed=21)
    # Every chain is a run of its own.
    series = fit.series(lambda p: p["x"]).to_numpy()
    estimates = [expectation(series[c : c + 1]) for c in range(runs)]
    z = np.array([(e.value - mixture.truth.expected("x")) / e.mcse for e in estimates])
    # The variance of 80 standard normals has standard deviation 0.16; the two coordinates are
    # correlated, so together they know it hardly better.
    assert 0.6 < np.mean(z**2) < 1.6
    assert np.all(np.abs(z.mean(axis=0)) < 4 / np.sqrt(runs))


@pytest.mark.compiled
@pytest.mark.parametrize("num", [None, 2])
def test_the_seed_makes_the_draws(programs: dict[str, CompiledProgram], num: int | None) -> None:
    model = MODELS["plane"][1]
    first, again, other = (sample(programs, model, num, SHORT, seed) for seed in (5, 5, 6))
    for group in ("posterior", "extended"):
        if group in first.tree:
            xr.testing.assert_identical(
                first.tree[group].to_dataset(), again.tree[group].to_dataset()
            )
    assert first.gradients == again.gradients
    x = np.concatenate([first.posterior["x"].to_numpy(), other.posterior["x"].to_numpy()])
    for i in range(len(x)):
        for j in range(i):
            assert not np.isclose(x[i], x[j], rtol=1e-6).all(axis=-1).any()


@pytest.mark.compiled
def test_parallel_chains_do_not_change_draws(programs: dict[str, CompiledProgram]) -> None:
    model = MODELS["line"][1]
    one = NutsSettings(chains=3, warmup=50, draws=60, parallel_chains=1)
    at_once, in_turn = (sample(programs, model, 2, nuts, 5) for nuts in (SHORT, one))
    xr.testing.assert_identical(at_once.posterior, in_turn.posterior)
    assert at_once.settings == in_turn.settings


@pytest.mark.compiled
@pytest.mark.parametrize("inv_temp", [None, 0.3, (0.0, 0.4, 1.0)])
def test_stan_writes_the_log_weights_of_its_draws(
    programs: dict[str, CompiledProgram], inv_temp: float | Sequence[float] | None
) -> None:
    mixture, model = MODELS["plane"]
    fit = sample(programs, model, 3, SHORT, seed=7, inv_temp=inv_temp)
    assert fit.extended is not None
    x = fit.extended["x"].transpose("chain", "draw", "pseudo_sample", "x_dim_0").to_numpy()
    beta = fit.extended["inv_temp"].to_numpy()
    assert x.shape == (3, 60, 3, 2)
    assert np.all((beta >= 0) & (beta <= 1))
    if inv_temp is not None:
        assert np.all(beta == np.asarray(inv_temp))
    expected = (1 - beta) * mixture.log_density(x)
    np.testing.assert_allclose(
        fit.extended["log_weight"].to_numpy(), expected, rtol=1e-8, atol=1e-8
    )
    # Every draw of the posterior is one of its pseudo-samples, and one of positive weight.
    chosen = (x == fit.posterior["x"].to_numpy()[:, :, None]).all(axis=-1)
    assert np.all(chosen.sum(axis=-1) == 1)
    assert np.all(normalised_weights(expected)[chosen] > 0)


@pytest.mark.compiled
@pytest.mark.parametrize("inv_temp", [None, 0.2])
def test_one_pseudo_sample_draws_from_the_target(
    programs: dict[str, CompiledProgram], inv_temp: float | None
) -> None:
    model = MODELS["line"][1]
    target = sample(programs, model, None, NUTS, seed=8).posterior["x"].to_numpy()
    fit = sample(programs, model, 1, NUTS, seed=9, inv_temp=inv_temp)
    one = fit.posterior["x"].to_numpy()
    # Thinned to about independent draws: 400 on either side.
    test = ks_2samp(target[:, ::20].ravel(), one[:, ::20].ravel())
    assert test.pvalue > 1e-4
    if inv_temp is None:
        assert fit.extended is not None
        value, mcse = expectation(fit.extended["inv_temp"].to_numpy()[..., 0])
        assert abs(float(value) - 0.5) < 4 * float(mcse)


@pytest.mark.compiled
@pytest.mark.parametrize("num", [None, 2])
def test_cost_counts_the_steps_of_every_chain(
    programs: dict[str, CompiledProgram], num: int | None
) -> None:
    fit = sample(programs, MODELS["line"][1], num, SHORT, seed=10)
    steps = fit.sample_stats["n_steps"]
    assert steps.shape == (3, 60)
    sampling: Any = fit.tree.attrs["gradients_sampling"]
    warmup: Any = fit.tree.attrs["gradients_warmup"]
    assert np.array_equal(sampling, steps.sum("draw"))
    # Warm-up takes one step or more an iteration.
    assert np.all(np.asarray(warmup) >= 50)
    assert fit.gradients == int(np.sum(sampling) + np.sum(warmup))


@pytest.mark.compiled
@pytest.mark.parametrize("variant", ["target", "pseudo_extended"])
def test_cmdstan_and_stanli_agree(programs: dict[str, CompiledProgram], variant: str) -> None:
    model = MODELS["plane"][1]
    data = dict(model.data)
    rng = np.random.default_rng(11)
    if variant == "pseudo_extended":
        data |= pseudo_extended_data(model, 3)
    density = StanDensity(model.program(variant), data)
    cmdstan = cmdstanpy.CmdStanModel(exe_file=str(programs[variant].exe))
    for _ in range(3):
        values: dict[str, Any] = {"x": rng.normal(0, 2, 2)}
        if variant == "pseudo_extended":
            values = {"x": rng.normal(0, 2, (2, 3)), "free_inv_temp": rng.random(3)}
        plain = {name: value.tolist() for name, value in values.items()}
        row = cmdstan.log_prob(plain, data=data, jacobian=True, sig_figs=17).to_numpy()[0]
        value, gradient = density(density.unconstrain(values))
        assert value == pytest.approx(row[0], rel=1e-12)
        np.testing.assert_allclose(gradient, row[1:], rtol=1e-9, atol=1e-11)


@pytest.fixture
def no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make any attempt to compile fail the test."""

    def compile_now(*_: object) -> None:
        pytest.fail("compiled before the settings were checked")

    monkeypatch.setattr("harness.forms.common.compiled_variant", compile_now)


@pytest.mark.usefixtures("no_compiler")
@pytest.mark.parametrize(
    ("num", "inv_temp", "message"),
    [
        (0, None, "N >= 1"),
        (-1, 0.5, "N >= 1"),
        (2, -0.1, r"lie in \[0, 1\]"),
        (2, 1.1, r"lie in \[0, 1\]"),
        (2, np.nan, r"lie in \[0, 1\]"),
        (2, (0.5, 1.5), r"lie in \[0, 1\]"),
        (2, (0.5,), "one for each of the 2"),
        (2, (0.1, 0.2, 0.3), "one for each of the 2"),
        (2, (), "one for each of the 2"),
    ],
)
def test_bad_settings_are_refused_before_compiling(
    num: int, inv_temp: float | Sequence[float] | None, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        PSEUDO_EXTENDED.sample(MODELS["line"][1], num_pseudo_samples=num, inv_temp=inv_temp, seed=1)


@pytest.mark.parametrize(
    "setting",
    [
        {"chains": 0},
        {"draws": 0},
        {"warmup": 19},
        {"warmup": 0},
        {"max_treedepth": 0},
        {"parallel_chains": 0},
        {"target_accept": 0.0},
        {"target_accept": 1.0},
        {"target_accept": np.nan},
    ],
)
def test_bad_nuts_settings_are_refused(setting: dict[str, Any]) -> None:
    with pytest.raises(DataError, match=next(iter(setting)).replace("warmup", "warm-up")):
        NutsSettings(**setting)


@pytest.mark.compiled
@pytest.mark.usefixtures("cmdstan_home")
@pytest.mark.parametrize("seed", [-1, 2**32])
def test_seeds_out_of_range_are_refused(programs: dict[str, CompiledProgram], seed: int) -> None:
    with pytest.raises((DataError, SamplingError), match="seed"):
        sample(programs, MODELS["line"][1], 2, SHORT, seed)


@pytest.mark.compiled
@pytest.mark.parametrize("seed", [0, 2**32 - 1])
def test_first_and_last_seed_work(programs: dict[str, CompiledProgram], seed: int) -> None:
    assert sample(programs, MODELS["line"][1], 2, SHORT, seed).posterior.sizes["draw"] == 60


@pytest.mark.compiled
@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"weight": None}, "weight"),
        ({"weight": np.array([0.5, 0.6])}, "not a valid simplex"),
        ({"mu": np.zeros((1, 3))}, "dims declared"),
        ({"D": 0}, "greater than or equal to 1"),
        ({"sigma": np.array([-1.0, 1.0])}, "sigma"),
        ({"upper_bound": -20.0}, "upper_bound"),
    ],
)
def test_data_that_do_not_fit_are_explained_in_stans_words(
    programs: dict[str, CompiledProgram], changed: dict[str, Any], said: str
) -> None:
    data = {**MODELS["line"][1].data, **changed}
    data = {name: value for name, value in data.items() if value is not None}
    with pytest.raises(SamplingError) as caught:
        run_nuts(programs["target"], data, SHORT, 3)
    message = str(caught.value)
    assert "gaussian_mixture-target" in message
    assert "seed 3" in message
    assert said in message
    assert len(message.splitlines()) <= 2


@pytest.mark.compiled
def test_a_start_of_zero_density_is_a_sampling_error(programs: dict[str, CompiledProgram]) -> None:
    with pytest.raises(SamplingError) as caught:
        run_nuts(programs["target"], MODELS["line"][1].data, SHORT, 3, inits={"x": [99.0]})
    assert len(str(caught.value).splitlines()) <= 2
    assert "initialization failed" in str(caught.value)
