"""The extended Hamiltonian: its functions of u, its density, the plateau's law, and a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from calibration import few_and_many, mean_square_bounds
from form_data import extended_hamiltonian_data
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, norm
from stan_density import StanDensity, into_box, log_box_jacobian, stanli

from harness.arrays import FloatArray
from harness.engine.compile import CompiledProgram, compile_programs
from harness.engine.nuts import NutsRun, NutsSettings
from harness.engine.toolchain import require_cmdstan
from harness.errors import DataError, SamplingError
from harness.evidence import LogG, expectation
from harness.fit import Fit
from harness.folders import shipped
from harness.forms.extended_hamiltonian import EXTENDED_HAMILTONIAN
from harness.models.gaussian_mixture import GaussianMixture
from harness.path import GaussianBase, gaussian_base

THETA = (0.7, 1.9)
LOWEST = 0.15
LOWER, UPPER = -9.0, 12.0
MIXTURE = GaussianMixture(
    np.array([0.2, 0.5, 0.3]),
    np.array([[0.0, 1.0], [2.5, -0.5], [1.0, 3.0]]),
    np.array([0.4, 0.7, 0.25]),
)
KNOTTED: LogG = ((LOWEST, -1.0), (0.4, 0.6), (0.8, 0.1), (1.0, 2.0))
INCLUDE = "functions {\n#include tempering.stanfunctions\n}\n"
STAN = [str(shipped("stan"))]


def inv_temp(u: float, theta: tuple[float, float] = THETA, lowest: float = LOWEST) -> float:
    """Beta(u), by the integral of the bump t^2 (1 - t)^2 that its slope is made of."""
    t = float(np.clip((abs(u) - theta[0]) / (theta[1] - theta[0]), 0, 1))
    bump = np.polynomial.Polynomial([0, 0, 1]) * np.polynomial.Polynomial([1, -1]) ** 2
    integral = bump.integ()
    return 1 - (1 - lowest) * float(integral(t) / integral(1))


def wall(u: float, theta: tuple[float, float] = THETA) -> float:
    """Log of a Gaussian's ordinate beyond theta_2, relative to its centre."""
    beyond = max(abs(u) - theta[1], 0)
    centre, sd = 0, (theta[1] - theta[0]) / 4
    return float(norm.logpdf(beyond, centre, sd) - norm.logpdf(0, centre, sd))


def test_inv_temp_is_flat_on_the_plateau_and_smooth_at_its_joins() -> None:
    program = stanli.Model(
        stan_code=f"{INCLUDE}data {{ vector[2] theta; real s; }} parameters {{ real u; }} "
        "model { target += plateau_inv_temp(u, theta, s); }",
        data={"theta": list(THETA), "s": LOWEST},
        include_paths=STAN,
    )

    def beta(u: float) -> tuple[float, float]:
        value, slope = program.log_prob_grad(np.array([u]))
        return float(value), float(slope[0])

    for u in (0.0, 0.3, -0.5, THETA[0], -THETA[0]):
        assert beta(u) == (1, 0)
    for u in (THETA[1], -THETA[1], 2.5, -40.0):
        assert beta(u)[0] == pytest.approx(LOWEST, rel=1e-14)
        assert beta(u)[1] == 0
    between = np.linspace(*THETA, 41)[1:-1]
    for u in [*between, *-between]:
        value, slope = beta(u)
        assert value == pytest.approx(inv_temp(u), rel=1e-13)
        assert slope == pytest.approx((inv_temp(u + 1e-6) - inv_temp(u - 1e-6)) / 2e-6, rel=1e-6)
        assert LOWEST < value < 1
        assert slope * u < 0  # it falls away from the plateau
        assert beta(-u) == (value, -slope)
    # At each join value, slope and the slope's slope have one limit from both sides.
    width = THETA[1] - THETA[0]
    for join in THETA:
        for step in (1e-3, 1e-4):
            (v0, d0), (v1, d1) = beta(join - step), beta(join + step)
            t = step / width
            assert abs(v1 - v0) <= 10.1 * t**3
            assert abs(d1 - d0) <= 30.1 * t**2 / width


@pytest.mark.parametrize("u", [0.0, 1.9, -1.9, 1.95, -2.2, 5.0])
def test_confining_potential(u: float) -> None:
    potential = stanli.Function("confining_potential", stan_code=INCLUDE, include_paths=STAN)
    assert potential(u=u, theta=list(THETA)) == pytest.approx(-wall(u), rel=1e-13, abs=1e-15)


def test_only_draws_on_the_plateau_have_weight() -> None:
    weight = stanli.Function("plateau_log_weight", stan_code=INCLUDE, include_paths=STAN)
    for u in (0.0, 0.69, -0.7):
        assert weight(u=u, theta=list(THETA)) == 0
    for u in (0.71, -0.71, 1.0, -3.0):
        assert weight(u=u, theta=list(THETA)) == -np.inf


def log_gamma(mixture: GaussianMixture, x: FloatArray) -> float:
    component = np.asarray(norm.logpdf(x, mixture.mean, mixture.sd[:, None])).sum(axis=-1)
    return float(logsumexp(component + np.log(mixture.weight)))


def base_in(dimension: int) -> GaussianBase:
    root = np.array([[1.6, 0], [0.7, 1.2]])[:dimension, :dimension]
    return gaussian_base([0.8, 1.1][:dimension], root @ root.T, log_zeta=1.3)


@pytest.mark.parametrize("gaussian", [False, True])
@pytest.mark.parametrize("log_g", [None, KNOTTED], ids=["flat", "knotted"])
@pytest.mark.parametrize("dimension", [1, 2])
def test_density_and_gradient(gaussian: bool, log_g: LogG | None, dimension: int) -> None:
    mixture = GaussianMixture(MIXTURE.weight, MIXTURE.mean[:, :dimension], MIXTURE.sd)
    model = mixture.model("mixture", lower=LOWER, upper=UPPER)
    base = base_in(dimension) if gaussian else None
    zeta = 1.3 if gaussian else -0.4
    data = extended_hamiltonian_data(
        model, theta=THETA, lowest_inv_temp=LOWEST, base=base, log_zeta=-0.4, log_g=log_g
    )
    density = StanDensity(model.program("extended_hamiltonian"), {**model.data, **data})
    assert density.dimension == dimension + 1

    def expected(point: FloatArray) -> float:
        x, u = into_box(point[:-1], LOWER, UPPER), float(point[-1])
        beta = inv_temp(u)
        log_base = 0.0
        if base is not None:
            log_base = float(multivariate_normal(base.mean, base.covariance).logpdf(x))
        bias = 0.0 if log_g is None else float(np.interp(beta, *np.array(log_g).T))
        path = beta * (log_gamma(mixture, x) - zeta) + (1 - beta) * log_base
        return path + bias + wall(u) + log_box_jacobian(point[:-1], LOWER, UPPER)

    rng = np.random.default_rng(dimension)
    for u in (0.2, -0.69, 0.75, 1.1, -1.3, 1.6, -1.85, 2.0, -2.6):
        point = np.append(rng.normal(-0.2, 0.7, dimension), u)
        value, slope = density(point)
        assert value == pytest.approx(expected(point), rel=1e-10, abs=1e-10)
        step = 1e-5 * np.eye(len(point))
        numerical = [(expected(point + each) - expected(point - each)) / 2e-5 for each in step]
        np.testing.assert_allclose(slope, numerical, rtol=1e-6, atol=1e-5)


LINE = GaussianMixture(np.array([0.3, 0.7]), np.array([[-0.8], [1.6]]), np.array([0.45, 0.8]))


@pytest.mark.parametrize("gaussian", [False, True])
@pytest.mark.parametrize("log_g", [None, KNOTTED], ids=["flat", "knotted"])
def test_on_the_plateau_x_has_the_law_of_the_target(gaussian: bool, log_g: LogG | None) -> None:
    """Stan's density integrated over |u| <= theta_1 is the target; over all u it is not."""
    model = LINE.model("line", lower=LOWER, upper=UPPER)
    base = base_in(1) if gaussian else None
    data = extended_hamiltonian_data(
        model, theta=THETA, lowest_inv_temp=LOWEST, base=base, log_g=log_g
    )
    density = StanDensity(model.program("extended_hamiltonian"), {**model.data, **data})
    nodes, share = np.polynomial.legendre.leggauss(200)
    t, share = (nodes + 1) / 2, share / 2
    logit = np.log(t / (1 - t))
    x = into_box(logit, LOWER, UPPER)
    jacobian = np.array([log_box_jacobian(v, LOWER, UPPER) for v in logit])
    target = np.exp([log_gamma(LINE, each) for each in x[:, None]]) * share
    target /= target.sum()

    def marginal(lowest: float, highest: float) -> FloatArray:
        rule, portion = np.polynomial.legendre.leggauss(24)
        middle, half = (lowest + highest) / 2, (highest - lowest) / 2
        values = [[density.value([v, middle + half * r]) for r in rule] for v in logit]
        mass = np.exp(np.array(values) - jacobian[:, None]) @ (half * portion) * share
        return np.asarray(mass, dtype=np.float64)

    plateau = marginal(-THETA[0], THETA[0])
    np.testing.assert_allclose(plateau / plateau.sum(), target, rtol=1e-9, atol=1e-14)
    everywhere = plateau + 2 * marginal(*THETA) + 2 * marginal(THETA[1], THETA[1] + 2)
    everywhere /= everywhere.sum()
    assert np.abs(everywhere - target).sum() > 0.05


def test_the_method_names_its_program() -> None:
    assert EXTENDED_HAMILTONIAN.variant == "extended_hamiltonian"
    assert LINE.model("line", lower=-9, upper=12).program("extended_hamiltonian").path.is_file()


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"theta": (0.0, 1.0)}, "0 < theta_1 < theta_2"),
        ({"theta": (1.0, 1.0)}, "0 < theta_1 < theta_2"),
        ({"theta": (2.0, 1.0)}, "0 < theta_1 < theta_2"),
        ({"theta": (1.0, np.inf)}, "0 < theta_1 < theta_2"),
        ({"theta": (np.nan, 1.0)}, "0 < theta_1 < theta_2"),
        ({"theta": (1.0,)}, "two thresholds"),
        ({"theta": (1.0, 2.0, 3.0)}, "two thresholds"),
        ({"lowest_inv_temp": 0.0}, "between 0 and 1"),
        ({"lowest_inv_temp": 1.0}, "between 0 and 1"),
        ({"lowest_inv_temp": np.nan}, "between 0 and 1"),
        ({"log_g": ((0.0, 0.0), (1.0, 0.0))}, "start at the lowest inverse temperature, 0.1"),
        ({"log_g": ((0.1, 0.0), (1.0, np.nan))}, "finite values"),
        ({"log_zeta": np.inf}, "log zeta"),
        ({"base": base_in(2)}, "dimension 2"),
    ],
)
def test_bad_settings_are_refused_before_compiling(
    monkeypatch: pytest.MonkeyPatch, setting: dict[str, Any], message: str
) -> None:
    def run_now(*_: object, **__: object) -> None:
        pytest.fail("ran before the settings were checked")

    monkeypatch.setattr("harness.forms.form.run_variant", run_now)
    with pytest.raises(DataError, match=message):
        EXTENDED_HAMILTONIAN.sample(LINE.model("line", lower=LOWER, upper=UPPER), seed=1, **setting)


# Modes that pure tempering joins within few draws; unequal weights and widths.
MODES = GaussianMixture(np.array([0.7, 0.3]), np.array([[-1.5], [1.5]]), np.array([0.5, 0.3]))
MODEL = MODES.model("two modes", lower=-8, upper=8)
MEAN, SQUARE = float(MODES.truth.expected("x")[0]), float(MODES.truth.expected("x_squared")[0])
BOTTOM = 0.05
NUTS = NutsSettings(chains=4, warmup=500, draws=15_000, target_accept=0.95, parallel_chains=2)


def evening_bias() -> LogG:
    """-log Z(beta) at knots, by a sum over the box: u is then spread evenly."""
    beta = np.append(np.geomspace(BOTTOM, 1, 12)[:-1], 1)
    log_density = MODES.log_density(np.linspace(-8, 8, 8001)[:, None])
    log_z = [float(logsumexp(b * log_density) + np.log(16 / 8000)) for b in beta]
    return tuple((float(b), -z) for b, z in zip(beta, log_z, strict=True))


@pytest.fixture(scope="module")
def program(quiet_cmdstanpy: None, cmdstan_home: Path) -> CompiledProgram:
    """Compile the mixture's program, once."""
    source = MODEL.program("extended_hamiltonian")
    assert cmdstan_home.is_dir()
    return compile_programs([source], require_cmdstan())[source]


def moments(parameters: xr.Dataset) -> xr.DataArray:
    x = parameters["x"]
    return xr.concat([x, x**2], dim="x_dim_0")


def sample(program: CompiledProgram, log_g: LogG | None, nuts: NutsSettings, seed: int) -> Fit:
    return EXTENDED_HAMILTONIAN.sample(
        MODEL, lowest_inv_temp=BOTTOM, log_g=log_g, nuts=nuts, seed=seed, compiled=program
    )


@pytest.fixture(scope="module")
def fit(program: CompiledProgram) -> Fit:
    return sample(program, None, NUTS, seed=60)


@pytest.mark.compiled
def test_moments_within_their_errors(fit: Fit) -> None:
    value, mcse = fit.expectation(moments)
    assert np.all(np.abs(value - [MEAN, SQUARE]) < 4 * mcse)
    assert np.all(mcse < 0.1)
    right = fit.expectation(lambda p: (p["x"] > 0).astype(float))
    assert abs(right.value[0] - 0.3) < 4 * right.mcse[0]


@pytest.mark.compiled
def test_only_the_plateau_counts(fit: Fit) -> None:
    extended = fit.extended
    assert extended is not None
    x, u = extended["x"].to_numpy()[..., 0], extended["u"].to_numpy()
    inside = np.abs(u) <= 1
    assert 0.05 < inside.mean() < 0.95
    assert np.array_equal(extended["log_w1"].to_numpy(), np.where(inside, 0, -np.inf))
    assert fit.expectation(lambda p: p["x"]).value[0] == pytest.approx(x[inside].mean(), rel=1e-12)
    np.testing.assert_allclose(
        extended["inv_temp"].to_numpy().ravel()[:500],
        [inv_temp(each, (1.0, 2.0), BOTTOM) for each in u.ravel()[:500]],
        rtol=1e-12,
    )
    posterior = fit.posterior["x"].to_numpy()[..., 0]
    for mine, his, on in zip(posterior, x, inside, strict=True):
        # Fewer than there are draws, each of them is resampled, about equally often.
        times = np.unique(mine, return_counts=True)[1]
        assert set(mine) == set(his[on])
        assert (
            times.max()
            <= np.ceil(len(mine) / on.sum()) * np.unique(his[on], return_counts=True)[1].max()
        )


@pytest.mark.compiled
def test_a_bias_spreads_u(program: CompiledProgram, fit: Fit) -> None:
    """With -log Z(beta) u is uniform up to theta_2, with the wall's half Gaussians beyond."""
    even = sample(program, evening_bias(), NUTS, seed=62)
    value, mcse = even.expectation(moments)
    assert np.all(np.abs(value - [MEAN, SQUARE]) < 4 * mcse)
    mass = 2 + 0.25 * np.sqrt(np.pi / 2)
    for threshold in (0.5, 1.0, 1.5, 2.0):
        assert even.extended is not None
        below = (np.abs(even.extended["u"].to_numpy()) <= threshold).astype(float)
        share = expectation(below)
        # Between knots log Z(beta) is not quite linear: 1e-2 of the density at most.
        assert abs(share.value - threshold / mass) < 4 * share.mcse + 1e-2


@pytest.mark.compiled
@few_and_many(10, 40)
def test_errors_are_honest(program: CompiledProgram, runs: int) -> None:
    """Z-scores of independent runs, each with its own estimated error, have variance one."""
    nuts = NutsSettings(chains=runs, warmup=400, draws=5000, target_accept=0.95, parallel_chains=2)
    fit = sample(program, None, nuts, seed=61)
    z = []
    for r in range(runs):
        one = Fit(fit.tree.isel(chain=slice(r, r + 1)))
        value, mcse = one.expectation(lambda p: p["x"])
        z.append(float((value[0] - MEAN) / mcse[0]))
    # Of 40 runs: 0.43 to 1.77.
    low, high = mean_square_bounds(runs, below=1e-3, above=2e-3)
    assert low < np.mean(np.square(z)) < high, z
    assert abs(np.mean(z)) < 4 / np.sqrt(runs)


@pytest.mark.compiled
def test_a_fit_is_saved_and_has_no_evidence(fit: Fit, tmp_path: Path) -> None:
    fit.save(tmp_path / "fit.nc")
    loaded = Fit.load(tmp_path / "fit.nc")
    assert np.array_equal(loaded.expectation(moments).mcse, fit.expectation(moments).mcse)
    assert loaded.settings["theta"] == [1.0, 2.0]
    assert loaded.settings["log_g"] == [[BOTTOM, 0.0], [1.0, 0.0]]
    with pytest.raises(DataError, match="extended_hamiltonian fit"):
        _ = loaded.log_evidence
    with pytest.raises(DataError, match="extended_hamiltonian fit"):
        loaded.base_expectation(moments)


def test_a_chain_off_the_plateau_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """The run is made up, so that nothing compiles: the second chain never gets there."""
    shape = (3, 5)
    log_weight = np.zeros(shape)
    log_weight[0, 2:] = -np.inf
    log_weight[1] = -np.inf
    run = NutsRun(
        {"x": np.zeros((*shape, 1)), "u": np.zeros(shape), "inv_temp": np.ones(shape)}
        | {"log_weight": log_weight},
        {},
        np.ones(3),
        np.ones((3, 2)),
        np.ones((3, 2)),
        "2.39.0",
    )

    class Ran:
        def __init__(self) -> None:
            self.run = run

    monkeypatch.setattr("harness.forms.form.run_variant", lambda *_, **__: Ran())
    with pytest.raises(SamplingError, match="no draw of chain 2 is on the plateau"):
        EXTENDED_HAMILTONIAN.sample(MODEL, seed=1)
