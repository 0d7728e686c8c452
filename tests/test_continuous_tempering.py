"""Continuous tempering, compiled and run, joint and collapsed: moments, log Z, honest errors."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from calibration import few_and_many, mean_square_bounds
from scipy.stats import norm

from harness.arrays import FloatArray
from harness.engine.compile import CompiledProgram, compile_programs
from harness.engine.nuts import NutsSettings
from harness.engine.toolchain import require_cmdstan
from harness.errors import DataError
from harness.evidence import LogG, expectation, log_evidence, weighted_expectation
from harness.fit import Fit
from harness.forms.continuous_tempering import (
    COLLAPSED_TEMPERING,
    JOINT_TEMPERING,
    tempering_data,
)
from harness.forms.nuts import PLAIN_NUTS
from harness.forms.pseudo_extended import PSEUDO_EXTENDED
from harness.models.gaussian_mixture import GaussianMixture
from harness.path import gaussian_base
from harness.path.data import UNIFORM

MIXTURE = GaussianMixture(np.array([0.7, 0.3]), np.array([[-3.0], [3.0]]), np.array([0.5, 0.25]))
MODEL = MIXTURE.model("two modes", lower=-25, upper=25)
# Mean and variance matched to the target's; log zeta is wrong on purpose, for log Z = 0.
LOG_ZETA = 0.3
MEAN = float(MIXTURE.truth.expected("x")[0])
VARIANCE = float(MIXTURE.truth.expected("x_squared")[0]) - MEAN**2
BASE = gaussian_base([MEAN], [[VARIANCE]], log_zeta=LOG_ZETA)
KNOTTED: LogG = ((0.0, 0.2), (0.4, -0.3), (1.0, 0.5))

NUTS = NutsSettings(chains=4, warmup=500, draws=20_000, parallel_chains=2)
SHORT = NutsSettings(chains=3, warmup=50, draws=60, parallel_chains=2)
VARIANTS = ("target", "pseudo_extended", "joint_tempering", "collapsed_tempering")
BOTH = pytest.mark.parametrize("collapsed", [False, True], ids=["joint", "collapsed"])


@pytest.fixture(scope="module")
def programs(quiet_cmdstanpy: None, cmdstan_home: Path) -> dict[str, CompiledProgram]:
    """Compile the four programs, once."""
    variants = {name: MODEL.program(name) for name in VARIANTS}
    assert cmdstan_home.is_dir()
    compiled = compile_programs(variants.values(), require_cmdstan())
    return {name: compiled[program] for name, program in variants.items()}


def sample(
    programs: dict[str, CompiledProgram],
    collapsed: bool,
    nuts: NutsSettings,
    seed: int,
    log_g: LogG = UNIFORM,
) -> Fit:
    run = COLLAPSED_TEMPERING.sample if collapsed else JOINT_TEMPERING.sample
    return run(
        MODEL,
        base=BASE,
        log_g=log_g,
        nuts=nuts,
        seed=seed,
        compiled=programs["collapsed_tempering" if collapsed else "joint_tempering"],
    )


def extended_of(fit: Fit) -> xr.Dataset:
    assert fit.extended is not None
    return fit.extended


def moments(parameters: xr.Dataset) -> xr.DataArray:
    x = parameters["x"]
    return xr.concat([x, x**2], dim="x_dim_0")


SECOND = VARIANCE + MEAN**2


def in_gap(parameters: xr.Dataset) -> xr.DataArray:
    return (abs(parameters["x"]) < 1.5).astype(float)


def between(mean: Any, sd: Any) -> FloatArray:
    """P(|x| < 1.5) of a Gaussian."""
    return np.asarray(norm.cdf(1.5, mean, sd) - norm.cdf(-1.5, mean, sd), dtype=np.float64)


@pytest.mark.compiled
@BOTH
@pytest.mark.parametrize("log_g", [UNIFORM, KNOTTED], ids=["uniform", "knotted"])
def test_moments_and_evidence_within_their_errors(
    programs: dict[str, CompiledProgram], collapsed: bool, log_g: LogG
) -> None:
    """Eight estimates a run, four runs: 32 two-sided tests at 4.3 errors, 5e-4 in all."""
    fit = sample(programs, collapsed, NUTS, seed=40, log_g=log_g)
    log_z = fit.log_evidence
    assert abs(log_z.value) < 4.3 * log_z.mcse
    assert 0 < log_z.mcse < 0.1
    # Base and target have the same first two moments: the base is matched.
    for estimate in (fit.expectation(moments), fit.base_expectation(moments)):
        assert np.all(np.abs(estimate.value - [MEAN, SECOND]) < 4.3 * estimate.mcse)
        # In the base's tails w0 grows with Delta, so that its second moment is the noisiest.
        assert np.all(estimate.mcse < [0.3, 1.2])
    # The gap between the modes tells them apart: almost nothing there under the target.
    for estimate, gap in (
        (fit.expectation(in_gap), MIXTURE.weight @ between(MIXTURE.mean[:, 0], MIXTURE.sd)),
        (fit.base_expectation(in_gap), between(MEAN, np.sqrt(VARIANCE))),
    ):
        assert abs(float(estimate.value[0]) - gap) < 4.3 * float(estimate.mcse[0]) + 1e-4
        assert estimate.mcse[0] < 0.05
    # Unweighted draws of the target, resampled within each chain.
    x = fit.posterior["x"].to_numpy()
    assert x.shape == (4, 20_000, 1)
    extended = extended_of(fit)["x"].to_numpy()
    assert all(np.isin(mine, his).all() for mine, his in zip(x, extended, strict=True))
    value, mcse = fit.expectation(lambda p: p["x"])
    assert abs(x.mean() - value[0]) < 4.3 * mcse[0]
    # Beta's density at its two ends is w0 and w1 on average; it lies between the ends.
    inv_temp = extended_of(fit)["inv_temp"].to_numpy()
    assert inv_temp.shape == (4, 20_000)
    assert np.all((inv_temp > 0) & (inv_temp < 1))


@pytest.mark.compiled
def test_joint_and_collapsed_draw_the_same_inverse_temperatures(
    programs: dict[str, CompiledProgram],
) -> None:
    """Moments of (x, beta) agree: NUTS on both, and the exact conditional given x."""
    functions: tuple[Callable[[FloatArray, FloatArray], FloatArray], ...] = (
        lambda x, beta: beta,
        lambda x, beta: beta**2,
        lambda x, beta: x * beta,
        lambda x, beta: (x - MEAN) ** 2 * beta,
    )
    extended = [
        extended_of(sample(programs, c, NUTS, seed=41, log_g=KNOTTED)) for c in (False, True)
    ]
    for f in functions:
        one, other = (
            expectation(f(e["x"].to_numpy()[..., 0], e["inv_temp"].to_numpy())) for e in extended
        )
        assert abs(one.value - other.value) < 4 * np.hypot(one.mcse, other.mcse)


@pytest.mark.compiled
@BOTH
@few_and_many(10, 40)
def test_errors_are_honest(
    programs: dict[str, CompiledProgram], collapsed: bool, runs: int
) -> None:
    """Z-scores of independent runs, each with its own estimated error, have variance one."""
    # The joint chain changes modes every few hundred draws: an error needs many changes.
    nuts = NutsSettings(chains=runs, warmup=400, draws=12_000, parallel_chains=2)
    extended = extended_of(sample(programs, collapsed, nuts, seed=42))
    x, one, zero = (extended[name].to_numpy() for name in ("x", "log_w1", "log_w0"))
    z: dict[str, list[float]] = {"log Z": [], "mean": [], "square": [], "base": []}
    for r in range(runs):
        c = slice(r, r + 1)
        log_z = log_evidence(one[c], zero[c], log_zeta=LOG_ZETA)
        z["log Z"].append(log_z.value / log_z.mcse)
        for name, f, log_w, exact in (
            ("mean", x[c, :, 0], one[c], MEAN),
            ("square", (x[c, :, 0] - MEAN) ** 2, one[c], VARIANCE),
            ("base", x[c, :, 0], zero[c], MEAN),
        ):
            estimate = weighted_expectation(f, log_w)
            z[name].append(float((estimate.value - exact) / estimate.mcse))
    squares = {name: float(np.mean(np.square(scores))) for name, scores in z.items()}
    low, high = mean_square_bounds(runs)
    assert all(low < square < high for square in squares.values()), squares
    # The four are only weakly correlated: their mean varies less than any. Of 40: 0.59 to 1.67.
    low, high = mean_square_bounds(runs, below=0.02, above=0.005)
    assert low < np.mean(list(squares.values())) < high, squares
    assert all(abs(np.mean(scores)) < 4 / np.sqrt(runs) for scores in z.values()), z


@pytest.mark.compiled
@BOTH
@pytest.mark.parametrize("log_g", [UNIFORM, KNOTTED], ids=["uniform", "knotted"])
@pytest.mark.parametrize("gaussian", [False, True])
def test_stan_writes_the_log_weights_of_its_draws(
    programs: dict[str, CompiledProgram], collapsed: bool, log_g: LogG, gaussian: bool
) -> None:
    run = COLLAPSED_TEMPERING.sample if collapsed else JOINT_TEMPERING.sample
    fit = run(
        MODEL,
        base=BASE if gaussian else None,
        log_zeta=-1.1,
        log_g=log_g,
        nuts=SHORT,
        seed=43,
        compiled=programs["collapsed_tempering" if collapsed else "joint_tempering"],
    )
    extended = extended_of(fit)
    x = extended["x"].to_numpy()
    log_base = norm.logpdf(x[..., 0], MEAN, np.sqrt(VARIANCE)) if gaussian else -np.log(50)
    zeta = LOG_ZETA if gaussian else -1.1
    delta = log_base + zeta - MIXTURE.log_density(x)
    np.testing.assert_allclose(extended["delta"].to_numpy(), delta, rtol=1e-9, atol=1e-9)
    # The integral over beta, by quadrature on each piece of log g.
    nodes, share = np.polynomial.legendre.leggauss(60)
    knot, value = np.array(log_g).T
    beta = np.concatenate([a + (b - a) * (nodes + 1) / 2 for a, b in pairwise(knot)])
    log_share = np.concatenate([np.log((b - a) / 2 * share) for a, b in pairwise(knot)])
    terms = np.interp(beta, knot, value) + log_share - beta * delta[..., None]
    log_integral = np.logaddexp.reduce(terms, axis=-1)
    for name, expected in (("log_w1", value[-1] - delta), ("log_w0", value[0] + 0 * delta)):
        ours = extended[name].to_numpy()
        near = np.abs(delta) < 60  # where the quadrature is exact
        assert near.mean() > 0.5
        np.testing.assert_allclose(
            ours[near], (expected - log_integral)[near], rtol=1e-8, atol=1e-8
        )
        assert np.all(np.isfinite(ours))


def draws_of(fit: Fit) -> dict[str, FloatArray]:
    extended = extended_of(fit)
    return {name: extended[name].to_numpy() for name in ("x", "inv_temp")}


@pytest.mark.compiled
@BOTH
def test_the_seed_makes_the_draws(programs: dict[str, CompiledProgram], collapsed: bool) -> None:
    first, again, other = (sample(programs, collapsed, SHORT, seed) for seed in (5, 5, 6))
    for group in ("posterior", "extended"):
        xr.testing.assert_identical(first.tree[group].to_dataset(), again.tree[group].to_dataset())
    assert first.gradients == again.gradients
    one, two = draws_of(first), draws_of(other)
    for name in one:
        # Every chain of either seed is its own; a rejected proposal repeats only itself.
        both = np.concatenate([one[name], two[name]]).reshape(6, 60)
        for i in range(6):
            for j in range(i):
                assert not np.isclose(both[i], both[j], rtol=1e-9, atol=0).any(), name


@pytest.mark.compiled
def test_generated_inverse_temperatures_are_independent_across_chains(
    programs: dict[str, CompiledProgram],
) -> None:
    """The uniform numbers behind the collapsed program's beta differ from chain to chain."""
    extended = extended_of(sample(programs, True, NUTS, seed=44))
    beta, delta = extended["inv_temp"].to_numpy(), extended["delta"].to_numpy()
    delta = np.where(np.abs(delta) < 1e-6, 1e-6, delta)
    # Its conditional distribution function, eq. 17 integrated, makes it uniform.
    uniform = np.expm1(-beta * delta) / np.expm1(-delta)
    assert abs(uniform.mean() - 0.5) < 4.5 * np.sqrt(1 / 12 / uniform.size)
    correlation = np.corrcoef(uniform) - np.eye(4)
    assert np.all(np.abs(correlation) < 4.5 / np.sqrt(uniform.shape[1]))


@pytest.mark.compiled
def test_expectations_go_by_the_kind_of_fit(programs: dict[str, CompiledProgram]) -> None:
    plain = PLAIN_NUTS.sample(MODEL, nuts=SHORT, seed=7, compiled=programs["target"])
    pseudo = PSEUDO_EXTENDED.sample(
        MODEL, num_pseudo_samples=2, nuts=SHORT, seed=7, compiled=programs["pseudo_extended"]
    )
    tempered = sample(programs, True, SHORT, seed=7)
    for fit in (plain, pseudo):
        expected = expectation(fit.series(moments).to_numpy())
        for ours, his in zip(fit.expectation(moments), expected, strict=True):
            assert np.array_equal(ours, his)
    with pytest.raises(DataError, match="no draws along a path"):
        _ = plain.log_evidence
    with pytest.raises(DataError, match="no draws along a path"):
        plain.base_expectation(moments)
    with pytest.raises(DataError, match="normalised base"):
        _ = pseudo.log_evidence
    with pytest.raises(DataError, match="weighs draws against each other"):
        tempered.series(moments)
    extended = extended_of(tempered)
    f = moments(extended).transpose("chain", "draw", ...).to_numpy()
    for got, name in ((tempered.expectation, "log_w1"), (tempered.base_expectation, "log_w0")):
        weight = np.exp(extended[name].to_numpy())[..., None]
        by_hand = (weight * f).sum(axis=(0, 1)) / weight.sum()
        np.testing.assert_allclose(got(moments).value, by_hand, rtol=1e-10)


@pytest.mark.compiled
@BOTH
def test_a_saved_fit_keeps_its_estimates(
    programs: dict[str, CompiledProgram], collapsed: bool, tmp_path: Path
) -> None:
    fit = sample(programs, collapsed, SHORT, seed=8, log_g=KNOTTED)
    fit.save(tmp_path / "fit.nc")
    loaded = Fit.load(tmp_path / "fit.nc")
    assert loaded.log_evidence == fit.log_evidence
    assert loaded.settings == fit.settings
    assert loaded.tree.attrs["method"].startswith("collapsed" if collapsed else "joint")
    assert loaded.settings["log_zeta"] == LOG_ZETA
    assert np.array_equal(loaded.settings["log_g"], np.array(KNOTTED))
    assert np.array_equal(loaded.expectation(moments).value, fit.expectation(moments).value)
    # Every second draw still has its weights.
    assert extended_of(loaded.thinned(30)).sizes["draw"] == 30
    assert np.isfinite(loaded.thinned(30).log_evidence.value)
    # log g(1) / g(0), 0.3 here, is taken off.
    raw = [extended_of(fit)[name].to_numpy() for name in ("log_w1", "log_w0")]
    by_hand = LOG_ZETA + np.log(np.exp(raw[0]).mean() / np.exp(raw[1]).mean()) - 0.3
    assert fit.log_evidence.value == pytest.approx(by_hand, rel=1e-10, abs=1e-12)


def test_methods_name_their_programs() -> None:
    assert JOINT_TEMPERING.variant == "joint_tempering"
    assert COLLAPSED_TEMPERING.variant == "collapsed_tempering"
    for method in (JOINT_TEMPERING, COLLAPSED_TEMPERING):
        assert MODEL.program(str(method.variant)).path.is_file()


def test_data_of_the_two_kinds_of_base() -> None:
    own = tempering_data(MODEL, None, 0.4, KNOTTED)
    assert own["B"] == 0
    assert own["base_mean"].shape == (0,)
    assert own["base_cholesky"].shape == (0, 0)
    assert own["log_zeta"] == 0.4
    assert own["G"] == 3
    gaussian = tempering_data(MODEL, BASE, 0.4, UNIFORM)
    assert gaussian["B"] == 1
    assert gaussian["log_zeta"] == LOG_ZETA  # the base's own
    assert np.array_equal(gaussian["base_cholesky"], BASE.cholesky)


@pytest.fixture
def no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make any attempt to compile fail the test."""

    def compile_now(*_: object) -> None:
        pytest.fail("compiled before the settings were checked")

    monkeypatch.setattr("harness.forms.common.compiled_variant", compile_now)


PLANE = gaussian_base([0, 0], np.eye(2))


@pytest.mark.usefixtures("no_compiler")
@pytest.mark.parametrize("run", [JOINT_TEMPERING.sample, COLLAPSED_TEMPERING.sample])
@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"log_g": ()}, "two knots"),
        ({"log_g": ((0, 0),)}, "two knots"),
        ({"log_g": (0.0, 1.0)}, "two knots"),
        ({"log_g": ((0, 0, 0), (1, 1, 1))}, "two knots"),
        ({"log_g": ((0.1, 0), (1, 0))}, "must start at beta = 0"),
        ({"log_g": ((0, 0), (0.9, 0))}, "ascend from 0 or above to 1"),
        ({"log_g": ((0, 0), (0.5, 0), (0.5, 1), (1, 0))}, "ascend from 0 or above to 1"),
        ({"log_g": ((0, 0), (0.7, 0), (0.5, 1), (1, 0))}, "ascend from 0 or above to 1"),
        ({"log_g": ((0, 0), (np.nan, 0), (1, 0))}, "ascend from 0 or above to 1"),
        ({"log_g": ((0, 0), (1, np.nan))}, "finite values"),
        ({"log_g": ((0, -np.inf), (1, 0))}, "finite values"),
        ({"log_zeta": np.nan}, "log zeta"),
        ({"log_zeta": np.inf}, "log zeta"),
        ({"base": PLANE}, "dimension|shape"),
    ],
)
def test_bad_settings_are_refused_before_compiling(
    run: Any, setting: dict[str, Any], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        run(MODEL, seed=1, **setting)


@pytest.mark.compiled
@pytest.mark.parametrize("seed", [-1, 2**32])
@BOTH
def test_seeds_out_of_range_are_refused(
    programs: dict[str, CompiledProgram], collapsed: bool, seed: int
) -> None:
    with pytest.raises(Exception, match="seed"):
        sample(programs, collapsed, SHORT, seed)
