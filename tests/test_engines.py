"""Two engines, one kind of fit: every program runs in stanli, and agrees with CmdStan."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import cmdstanpy
import numpy as np
import pytest
import xarray as xr
from calibration import few_and_many, mean_square_bounds
from form_data import pseudo_extended_data
from scipy.stats import chi2, norm

from harness import evidence
from harness.arrays import FloatArray
from harness.engine.nuts import NutsSettings
from harness.engine.stan_data import plain_data
from harness.errors import DataError, SamplingError, ToolchainError
from harness.fit import Fit
from harness.folders import shipped
from harness.forms.common import compiled_variant
from harness.forms.continuous_tempering import (
    COLLAPSED_TEMPERING,
    JOINT_TEMPERING,
    tempering_data,
)
from harness.forms.nuts import PLAIN_NUTS
from harness.forms.pseudo_extended import COLLAPSED_PSEUDO_EXTENDED, PSEUDO_EXTENDED
from harness.model import Model
from harness.model.density import StanDensity
from harness.models.boltzmann import BoltzmannRelaxation, generate, relax
from harness.models.boltzmann_mean_field import mean_field_base
from harness.models.evidence_targets import EVIDENCE_TARGETS
from harness.models.gaussian_mixture import GaussianMixture
from harness.models.hard import TARGETS
from harness.models.heart_disease import heart_disease
from harness.models.horseshoe import Classification
from harness.models.images import digits_autoencoder
from harness.models.log_gaussian_cox import generate as draw_points
from harness.models.radon import load_radon
from harness.models.shapes import Banana, Flower
from harness.models.stamps import Stamps
from harness.path import GaussianBase, gaussian_base
from harness.path.data import path_data

Sample = Callable[..., Fit]

SHORT = NutsSettings(chains=2, warmup=60, draws=40)


class Case(NamedTuple):
    """A model and a base that suits it; None for the model's own."""

    model: Model
    base: GaussianBase | None


@cache
def relaxation() -> BoltzmannRelaxation:
    return relax(generate(8, np.random.default_rng(5)))


@cache
def relaxation_base() -> GaussianBase:
    return mean_field_base(relaxation(), np.random.default_rng(1), starts=100)


@cache
def cases() -> dict[str, Case]:
    line = GaussianMixture(np.array([0.7, 0.3]), np.array([[-2.0], [2.0]]), np.array([0.6, 0.4]))
    rng = np.random.default_rng(3)
    predictors = rng.normal(size=(12, 3))
    classes = (predictors[:, 0] + 0.5 * rng.normal(size=12) > 0).astype(int)
    digits = digits_autoencoder()
    image = digits.decoder.generate(rng, 1).image[0]
    return {
        "gaussian_mixture": Case(
            line.model("line", lower=-20, upper=20), gaussian_base([-0.8], [[4.0]], log_zeta=0.2)
        ),
        "boltzmann": Case(relaxation().model("boltzmann-8"), relaxation_base()),
        "horseshoe": Case(
            Classification(predictors, classes).model("horseshoe", scale_global=0.5), None
        ),
        "banana": Case(Banana(v=4.0).model("banana"), Banana(v=4.0).base()),
        "flower": Case(Flower().model("flower"), Flower().base()),
        "radon": Case(load_radon().subset(load_radon().county_names[:4]).model("radon-4"), None),
        "image_decoder": Case(
            digits.decoder.model(image, "digit"),
            digits.encode(image, np.random.default_rng(2)),
        ),
        # So few stamps that their two orders are one mode.
        "stamps": Case(
            Stamps(np.array([7.0, 8.0, 10.0]), np.ones(3), 2).model("stamps-3"),
            gaussian_base([8.0, 8, 0, 0, 0, 0], np.diag([4.0, 4, 2, 2, 3, 4])),
        ),
        "log_gaussian_cox": Case(draw_points(3, "unit_square").model("cox-3"), None),
        "heart_disease": Case(heart_disease(), None),
        "log_gaussian_cox_centred": Case(
            draw_points(3, "unit_square").model("cox-3-centred", centred=True), None
        ),
        "stamps_raw": Case(
            Stamps(np.array([7.0, 8.0, 10.0]), np.ones(3), 2).model("stamps-3-raw", raw=True), None
        ),
    }


SAMPLERS: dict[str, Sample] = {
    "target": PLAIN_NUTS.sample,
    "pseudo-extended": PSEUDO_EXTENDED.sample,
    "collapsed pseudo-extended": COLLAPSED_PSEUDO_EXTENDED.sample,
    "continuously tempered": JOINT_TEMPERING.sample,
    "collapsed tempered": COLLAPSED_TEMPERING.sample,
}
OTHER_PARAMETRISATIONS = {"log_gaussian_cox_centred", "radon_centred", "stamps_raw"}
ORDINARY = {make().folder.name for make in {**TARGETS, **EVIDENCE_TARGETS}.values()}
"""Programs that have no tempered variants until they are written for them."""
MODELS = sorted(
    {path.parent.name for path in shipped("stan").glob("*/target.stan")}
    - OTHER_PARAMETRISATIONS
    - ORDINARY
)
"""Every shipped model, by its folder; each has a case."""


def run(model: str, sampler: str, **settings: Any) -> Fit:
    case = cases()[model]
    path: dict[str, Any] = {} if sampler == "target" else {"base": case.base}
    if model in STARTS:
        start = STARTS[model]
        if sampler == "pseudo-extended":
            start = {name: np.stack([value] * 2, axis=-1) for name, value in start.items()}
            start["free_inv_temp"] = np.array([0.4, 0.7])
        elif sampler == "continuously tempered":
            start = start | {"free_inv_temp": np.array([0.4])}
        settings = {"inits": start} | settings
    return SAMPLERS[sampler](case.model, **path, **settings)


VARIANTS = {
    "target": "target",
    "pseudo-extended": "pseudo_extended",
    "collapsed pseudo-extended": "collapsed_pseudo_extended",
    "continuously tempered": "joint_tempering",
    "collapsed tempered": "collapsed_tempering",
}
STARTS: dict[str, dict[str, Any]] = {
    "stamps_raw": {"mu": [7.5, 9.0], "lambda": [1.0, 1.5], "z": [0.4], "rate": 1.0},
}
"""Where Stan's own random starts are likely to be outside of the support."""
ALSO_RUN = {"log_gaussian_cox_centred", "stamps_raw"}
"""Other parametrisations with programs for every form."""
PROGRAMS = [
    (model, sampler)
    for model in sorted({*MODELS, *ALSO_RUN})
    for sampler, variant in VARIANTS.items()
    if (shipped("stan") / model / f"{variant}.stan").is_file()
]


def test_every_shipped_model_has_a_case() -> None:
    folders = {case.model.folder.name for case in cases().values()}
    assert folders - ALSO_RUN == set(MODELS) == set(AGREEMENT)
    assert all(case.model.folder.name == name for name, case in cases().items())


@pytest.mark.parametrize(("model", "sampler"), PROGRAMS)
def test_every_program_runs_in_stanli(model: str, sampler: str) -> None:
    fit = run(model, sampler, nuts=SHORT, seed=1, engine="stanli")
    again = run(model, sampler, nuts=SHORT, seed=1, engine="stanli")
    other = run(model, sampler, nuts=SHORT, seed=2, engine="stanli")
    facts = fit.provenance()
    assert facts["engine"] == "stanli"
    assert facts["stanli_version"].startswith("0.24.")
    assert facts["stan_version"] == "2.40.0"
    assert "cmdstanpy_version" not in facts
    assert set(fit.posterior) == set(cases()[model].model.parameters)
    assert fit.gradients >= 2 * 100
    assert fit.seconds > 0
    assert set(fit.sample_stats) == {
        "lp", "acceptance_rate", "step_size", "tree_depth", "n_steps", "diverging", "energy"
    }  # fmt: skip
    for name, value in fit.posterior.items():
        assert value.dims[:2] == ("chain", "draw")
        assert value.shape[:2] == (2, 40)
        assert np.all(np.isfinite(value)), name
        np.testing.assert_array_equal(value, again.posterior[name])
        assert not np.allclose(value, other.posterior[name])
        assert not np.allclose(value[0], value[1])
    if sampler == "target":
        assert fit.extended is None
        return
    assert fit.extended is not None
    xr.testing.assert_identical(fit.extended, again.tree["extended"].to_dataset())
    names = {"log_weight"} if "pseudo" in sampler else {"log_w1", "log_w0"}
    for name in {"inv_temp", "delta"} | names:
        assert np.all(np.isfinite(fit.extended[name])), name


AGREEMENT = {
    "gaussian_mixture": "collapsed pseudo-extended",
    "boltzmann": "collapsed tempered",
    "horseshoe": "collapsed tempered",
    "banana": "pseudo-extended",
    "flower": "collapsed tempered",
    "radon": "collapsed tempered",
    "image_decoder": "continuously tempered",
    "stamps": "collapsed tempered",
    "log_gaussian_cox": "target",
    "heart_disease": "target",
}


@pytest.mark.compiled
@pytest.mark.usefixtures("quiet_cmdstanpy")
@pytest.mark.parametrize("model", MODELS)
def test_engines_agree(model: str, cmdstan_home: Path) -> None:
    """Means of every parameter and of beta, and log Z, within their Monte Carlo errors."""
    assert cmdstan_home.is_dir()
    nuts = NutsSettings(chains=4, warmup=1000, draws=2000, parallel_chains=2, target_accept=0.9)
    fits = [
        run(model, AGREEMENT[model], nuts=nuts, seed=seed, engine=engine)
        for seed, engine in ((11, "cmdstan"), (12, "stanli"))
    ]
    z = []
    for name in cases()[model].model.parameters:
        # Horseshoe scales have no mean: their logarithms do.
        positive = bool((fits[0].posterior[name] > 0).all())

        def f(draws: xr.Dataset, name: str = name, positive: bool = positive) -> xr.DataArray:
            return xr.DataArray(np.log(draws[name])) if positive else draws[name]

        one, two = (fit.expectation(f) for fit in fits)
        z.append(((one.value - two.value) / np.hypot(one.mcse, two.mcse)).ravel())
    if fits[0].extended is not None:
        one, two = (
            evidence.expectation(fit.tempered.inv_temp.reshape(4, 2000, -1).mean(axis=2))
            for fit in fits
        )
        z.append(np.atleast_1d((one.value - two.value) / np.hypot(one.mcse, two.mcse)))
        first, second = (fit.log_evidence for fit in fits)
        difference = first.value - second.value
        z.append(np.array([difference / np.hypot(first.mcse, second.mcse)]))
    scores = np.concatenate(z)
    # Two-sided, 1e-4 over all of them by Bonferroni; heavy tails of short runs get a fifth more.
    assert np.max(np.abs(scores)) < 1.2 * norm.isf(0.5e-4 / len(scores)), scores


def program_of(model: str) -> tuple[str, dict[str, Any]]:
    """Variant that the engines are compared on, and its data besides the model's own."""
    case, sampler = cases()[model], AGREEMENT[model]
    joint = {"sample_inv_temp": 1, "fixed_inv_temp": np.empty(0)}
    match sampler:
        case "target":
            return "target", {}
        case "pseudo-extended":
            data = pseudo_extended_data(case.model, 2, base=case.base)
            return "pseudo_extended", data
        case "collapsed pseudo-extended":
            data = {**path_data(case.model, case.base), "N": 2, "ladder": 0}
            return "collapsed_pseudo_extended", data
        case "continuously tempered":
            return "joint_tempering", {**tempering_data(case.model, case.base), **joint}
        case _ if not (case.model.folder / "collapsed_tempering.stan").is_file():
            return "target", {}
        case _:
            return "collapsed_tempering", {**tempering_data(case.model, case.base), "ladder": 0}


@pytest.mark.compiled
@pytest.mark.usefixtures("quiet_cmdstanpy")
@pytest.mark.parametrize("model", MODELS)
def test_engines_have_one_density(model: str, cmdstan_home: Path, tmp_path: Path) -> None:
    """Log density and gradient of compiled programs at draws of theirs, to rounding."""
    assert cmdstan_home.is_dir()
    case = cases()[model]
    variant, own = program_of(model)
    data = {**case.model.data, **own}
    compiled = compiled_variant(case.model, variant)
    cmdstan = cmdstanpy.CmdStanModel(exe_file=str(compiled.exe))
    plain = plain_data(data)
    starts = cmdstan.sample(
        plain, fixed_param=True, chains=1, iter_sampling=1, seed=3, output_dir=tmp_path,
        show_progress=False,
    )  # fmt: skip
    density = StanDensity(case.model.program(variant), data)
    rng = np.random.default_rng(4)
    values = {name: starts.stan_variable(name)[0] for name in case.model.parameters}
    if "sample_inv_temp" in data:
        values["free_inv_temp"] = starts.stan_variable("free_inv_temp")[0]
    for _ in range(3):
        near = {name: np.asarray(v) * rng.uniform(0.9, 1.0) for name, v in values.items()}
        row = cmdstan.log_prob(
            {name: np.asarray(v).tolist() for name, v in near.items()},
            data=plain, jacobian=True, sig_figs=17,
        ).to_numpy()[0]  # fmt: skip
        value, gradient = density(density.unconstrain(near))
        assert value == pytest.approx(row[0], rel=1e-10)
        scale = np.max(np.abs(gradient))
        np.testing.assert_allclose(gradient, row[1:], rtol=1e-8, atol=1e-10 * scale)


def second_moments(draws: xr.Dataset) -> xr.DataArray:
    x = draws["x"]
    return x * x.rename(x_dim_0="x_dim_1")


# A draw of a pseudo-extended run holds two points, and costs more.
RUNS: dict[str, tuple[Sample, int]] = {
    "PE N=2": (PSEUDO_EXTENDED.sample, 1500),
    "CT": (JOINT_TEMPERING.sample, 6000),
    "collapsed CT": (COLLAPSED_TEMPERING.sample, 6000),
}


@few_and_many(8, 40)
@pytest.mark.parametrize("name", RUNS)
def test_relaxation_of_eight_units(name: str, runs: int) -> None:
    """Means, second moments and log Z of runs of one chain against the sum over states.

    All runs together lie within 4.3 of their own errors of the truth (46 two-sided tests, 8e-4
    in all), and the z scores of single runs have variance one: over 40 runs its standard error is
    sqrt(2 / 40) = 0.22, so that 0.6 to 1.6 is about 2 of them; means over several estimates that
    vary together are no tighter.  Of fewer runs the bounds are as unlikely.
    """
    sample, draws = RUNS[name]
    nuts = NutsSettings(chains=runs, warmup=300, draws=draws, parallel_chains=2)
    fit = sample(
        cases()["boltzmann"].model,
        base=relaxation_base(),
        nuts=nuts,
        seed=7,
        engine="stanli",
    )
    truth = relaxation().exact()
    exact: dict[str, FloatArray] = {
        "mean": np.asarray(truth.expected_x),
        "second moments": np.asarray(truth.expected_xx),
    }
    functions = {"mean": lambda draws: draws["x"], "second moments": second_moments}
    for what, f in functions.items():
        estimate = fit.expectation(f)
        assert np.all(np.abs(estimate.value - exact[what]) < 4.3 * estimate.mcse), what
    log_evidence = fit.log_evidence
    assert abs(log_evidence.value - truth.log_z) < 4.3 * log_evidence.mcse
    assert log_evidence.mcse < 0.05 * np.sqrt(40 / runs)
    z = np.array([scores_of(one_run(fit, r), exact["mean"], truth.log_z) for r in range(runs)])
    variance = np.mean(np.square(z), axis=0)
    low, high = mean_square_bounds(
        runs, below=float(chi2.cdf(0.6 * 40, 40)), above=float(chi2.sf(1.6 * 40, 40))
    )
    assert low < variance.mean() < high, variance


def one_run(fit: Fit, chain: int) -> Fit:
    """Return a fit of one of the chains."""
    groups = {
        f"/{name}": node.to_dataset().isel(chain=[chain])
        if "chain" in node.sizes
        else node.to_dataset()
        for name, node in fit.tree.children.items()
    }
    tree = xr.DataTree.from_dict(groups)
    tree.attrs = fit.tree.attrs
    return Fit(tree)


def scores_of(fit: Fit, mean: FloatArray, log_z: float) -> FloatArray:
    """Z scores of the means and of log Z."""
    estimate, evidence = fit.expectation(lambda draws: draws["x"]), fit.log_evidence
    ours = (estimate.value - mean) / estimate.mcse
    return np.append(ours, (evidence.value - log_z) / evidence.mcse)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"engine": "bugs"}, "the engine must be one of auto, cmdstan, stanli; got 'bugs'"),
        ({"engine": "stanli", "seed": -1}, "seed"),
        ({"engine": "stanli", "inits": {"y": 1.0}}, "initial values are refused"),
        ({"engine": "stanli", "inits": [{"x": [0.0]}]}, "4 chains need as many"),
    ],
)
def test_bad_input(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        run("gaussian_mixture", "target", **({"seed": 1} | settings))


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_nan_in_data_is_refused_before_compiling(
    sampler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def compile_now(*_: object) -> None:
        pytest.fail("compiled before the data were checked")

    monkeypatch.setattr("harness.forms.common.compiled_variant", compile_now)
    model = cases()["gaussian_mixture"].model
    data = {**model.data, "sigma": np.array([0.5, np.nan])}
    broken = Model("broken", model.folder, data, ("x",), 1, bounds=model.bounds)
    with pytest.raises(DataError, match="sigma in the data of broken holds NaN"):
        SAMPLERS[sampler](broken, seed=1)


def test_what_stan_rejects_is_a_sampling_error() -> None:
    """A density that is nowhere finite: stanli says what Stan said."""
    model = cases()["gaussian_mixture"].model
    data = {**model.data, "mu": np.array([[1e300, -1e300]])}
    broken = Model("broken", model.folder, data, ("x",), 1, bounds=model.bounds)
    with pytest.raises(SamplingError, match="gaussian_mixture-target"):
        PLAIN_NUTS.sample(broken, seed=1, nuts=SHORT, engine="stanli")


def test_without_a_compiler_stanli_runs_and_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for variable in ("CXX", "MAKE"):
        monkeypatch.delenv(variable, raising=False)
    with caplog.at_level(logging.WARNING):
        fit = run("gaussian_mixture", "target", nuts=SHORT, seed=1)
    assert fit.provenance()["engine"] == "stanli"
    assert "Running in the stanli engine, which needs none." in caplog.text
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(ToolchainError, match=r"(?s)make.*pip install 'stanli"):
        run("gaussian_mixture", "target", nuts=SHORT, seed=1)
