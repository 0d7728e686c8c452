"""Stan's NUTS without a compiler: where chains start, what a run costs, what it is made of."""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cmdstanpy
import numpy as np
import pytest
import xarray as xr
from form_data import extended_hamiltonian_data
from scipy.stats import norm
from stan_density import StanDensity, stanli
from toolchain_world import World

from harness import evidence, user
from harness.arrays import FloatArray
from harness.engine.compile import program_digest, source_digest
from harness.engine.nuts import NutsSettings
from harness.engine.program import StanProgram
from harness.engine.stan_data import plain_data
from harness.engine.stanli_nuts import STAN_VERSIONS
from harness.engine.toolchain import find_cmdstan
from harness.engine.toolchain.tools import HOW_TO_INSTALL_STANLI
from harness.errors import CompileError, DataError, SamplingError, ToolchainError
from harness.fit import Fit
from harness.folders import shipped
from harness.forms.common import Engine, compiled_variant
from harness.forms.continuous_tempering import COLLAPSED_TEMPERING
from harness.forms.extended_hamiltonian import EXTENDED_HAMILTONIAN
from harness.forms.nuts import PLAIN_NUTS
from harness.forms.pseudo_extended import PSEUDO_EXTENDED
from harness.model import Model
from harness.models.boltzmann import generate, relax
from harness.models.gaussian_mixture import GaussianMixture
from harness.models.horseshoe import Classification
from harness.models.radon import load_radon
from harness.path import gaussian_base

# Four modes in the corners of a square, 40 standard deviations apart: no chain ever changes.
CORNERS = GaussianMixture(
    np.full(4, 0.25), np.array([[-10.0, 10], [10, -10], [10, 10], [-10, -10]]), np.full(4, 0.5)
)
MODEL = CORNERS.model("corners", lower=-30, upper=30)
LINE = GaussianMixture(np.array([0.35, 0.65]), np.array([[-1.2], [1.4]]), np.array([0.7, 1.0]))
NEAR = LINE.model("near", lower=-12, upper=12)
BASE = gaussian_base([0.5], [[2.6]], log_zeta=0.1)
SHORT = NutsSettings(chains=2, warmup=50, draws=30)
START = {"x": [-10.0, 10.0]}
OTHER = {"x": [10.0, -10.0]}


def corners(fit: Fit) -> FloatArray:
    """Return the corner in which each chain stayed, shape (chains, 2)."""
    sign = np.sign(fit.posterior["x"].to_numpy())
    assert np.all(sign == sign[:, :1])
    return np.asarray(sign[:, 0], dtype=np.float64)


def test_each_chain_starts_from_its_own_values() -> None:
    fit = PLAIN_NUTS.sample(MODEL, nuts=SHORT, seed=1, inits=[START, OTHER], engine="stanli")
    assert np.array_equal(corners(fit), [[-1, 1], [1, -1]])
    fit = PLAIN_NUTS.sample(MODEL, nuts=SHORT, seed=1, inits=(OTHER, OTHER), engine="stanli")
    assert np.array_equal(corners(fit), [[1, -1], [1, -1]])


def test_one_start_for_all_chains_from_a_mapping_or_a_file(tmp_path: Path) -> None:
    path = tmp_path / "inits.json"
    path.write_text(json.dumps(START))
    for inits in (START, {"x": np.array(START["x"])}, path, str(path), [path, START]):
        fit = PLAIN_NUTS.sample(MODEL, nuts=SHORT, seed=2, inits=inits, engine="stanli")
        assert np.array_equal(corners(fit), [[-1, 1], [-1, 1]])


@pytest.mark.parametrize("inv_temp", [None, 1.0])
def test_starts_of_pseudo_samples_are_columns(inv_temp: float | None) -> None:
    """Also where the inverse temperatures, which nobody starts, are of size zero."""
    nuts = NutsSettings(chains=2, warmup=20, draws=4)
    x = np.array([START["x"], OTHER["x"], [10.0, 10.0]]).T
    fit = PSEUDO_EXTENDED.sample(
        MODEL,
        num_pseudo_samples=3,
        inv_temp=inv_temp,
        log_g=((0.5, 0.0), (1.0, 0.0)),
        nuts=nuts,
        seed=3,
        inits={"x": x},
        engine="stanli",
    )
    assert fit.extended is not None
    drawn = fit.extended["x"].transpose("chain", "draw", "x_dim_0", "pseudo_sample").to_numpy()
    assert np.array_equal(np.sign(drawn), np.broadcast_to(np.sign(x), drawn.shape))


def test_the_control_variable_needs_no_start() -> None:
    fit = EXTENDED_HAMILTONIAN.sample(
        MODEL, lowest_inv_temp=0.9, nuts=SHORT, seed=4, inits=START, engine="stanli"
    )
    assert np.array_equal(corners(fit), [[-1, 1], [-1, 1]])


@pytest.fixture
def starts(monkeypatch: pytest.MonkeyPatch) -> list[FloatArray]:
    """Record where the chains of each run are told to start."""
    told: list[FloatArray] = []
    sample = stanli.Model.sample

    def recorded(self: Any, **settings: Any) -> Any:
        if "inits" in settings:
            told.append(np.array(settings["inits"]))
        return sample(self, **settings)

    monkeypatch.setattr(stanli.Model, "sample", recorded)
    return told


def test_what_is_left_out_starts_at_random(starts: list[FloatArray]) -> None:
    counties = load_radon().county_names[:3]
    model = load_radon().subset(counties).model("three counties")
    inits = {"eps": 2.0, "m": [0.25, -0.5]}
    for seed in (5, 5, 6):
        PLAIN_NUTS.sample(model, nuts=SHORT, seed=seed, inits=inits, engine="stanli")
    one, again, other = starts
    assert np.array_equal(one, again)
    # mu_a, mu_b, log sigma_a, log sigma_b, log eps, n[1:3], m[1:2]
    given = [4, 8, 9]
    for points in (one, other):
        np.testing.assert_allclose(points[:, given], np.tile([np.log(2), 0.25, -0.5], (2, 1)))
    free = np.concatenate([np.delete(points, given, axis=1) for points in (one, other)])
    assert np.all(np.abs(free) < 2)
    assert np.unique(free).size == free.size == 4 * 7


def test_radius_of_random_starts() -> None:
    """Within 0 all chains start in the middle of the box, which lies between the modes."""
    still = NutsSettings(chains=2, warmup=20, draws=1, max_treedepth=1, metric="unit_e")
    for radius in (0, 0.0, np.float64(0), np.int64(0)):
        zero = PLAIN_NUTS.sample(NEAR, nuts=still, seed=1, inits=radius, engine="stanli")
        points = np.zeros((2, 1))
        same = PLAIN_NUTS.sample(
            NEAR, nuts=still, seed=1, inits=[{"x": row} for row in points], engine="stanli"
        )
        assert np.array_equal(zero.posterior["x"], same.posterior["x"])
    wide = PLAIN_NUTS.sample(NEAR, nuts=still, seed=1, inits=1.5, engine="stanli")
    assert not np.allclose(wide.posterior["x"], zero.posterior["x"])


@pytest.mark.parametrize(
    ("inits", "message"),
    [
        (-1, "radius of initial values is 0 or more; got -1"),
        (np.nan, "radius"),
        (np.inf, "radius"),
        ({"x": [0.0, 99.0]}, "refused: .*99.*starting value for x"),
        ({"x": [0.0]}, "initial values are refused: .*x"),
        ({"x": [0.0, 0.0], "sigma": 1.0}, "sigma is not a parameter"),
        ([START], "2 chains need as many initial values; got 1"),
        ([START, 3.0], "a radius, a mapping by name or a file"),
        ("nowhere.json", "cannot read initial values from nowhere.json"),
    ],
)
def test_bad_initial_values_are_refused(inits: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        PLAIN_NUTS.sample(MODEL, nuts=SHORT, seed=1, inits=inits, engine="stanli")


def test_parallel_chains_do_not_change_draws() -> None:
    fits = [
        COLLAPSED_TEMPERING.sample(
            NEAR,
            base=BASE,
            nuts=NutsSettings(chains=3, warmup=40, draws=40, parallel_chains=at_once),
            seed=7,
            engine="stanli",
        )
        for at_once in (1, 3)
    ]
    for group in ("posterior", "extended", "sample_stats"):
        xr.testing.assert_identical(*(fit.tree[group].to_dataset() for fit in fits))


@pytest.mark.parametrize("at_once", [1, 2, 8])
def test_cost_counts_steps_and_shares_out_the_time(
    monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    ticks = iter([100.0, 105.0])
    clock = SimpleNamespace(perf_counter=lambda: next(ticks))
    monkeypatch.setattr("harness.engine.stanli_nuts.time", clock)
    nuts = NutsSettings(chains=3, warmup=40, draws=60, parallel_chains=at_once)
    fit = PLAIN_NUTS.sample(NEAR, nuts=nuts, seed=8, engine="stanli")
    facts = fit.provenance()
    steps = fit.sample_stats["n_steps"]
    assert steps.dims == ("chain", "draw")
    assert facts["gradients_sampling"] == steps.sum("draw").to_numpy().tolist()
    assert min(facts["gradients_warmup"]) >= 40  # one step an iteration at least
    assert fit.seconds == pytest.approx(5 * min(at_once, 3))
    for when in ("warmup", "sampling"):
        rate = np.divide(facts[f"seconds_{when}"], facts[f"gradients_{when}"])
        assert rate == pytest.approx(fit.seconds / fit.gradients)
    assert facts["final_step_size"] == fit.sample_stats["step_size"][:, -1].to_numpy().tolist()


def test_settings_reach_the_sampler() -> None:
    def run(**settings: Any) -> Fit:
        nuts = NutsSettings(chains=2, **({"warmup": 200, "draws": 200} | settings))
        return PLAIN_NUTS.sample(MODEL, nuts=nuts, seed=9, inits=START, engine="stanli")

    plain = run()
    assert plain.posterior["x"].shape == (2, 200, 2)
    assert run(max_treedepth=1).sample_stats["tree_depth"].max() == 1
    short = run(target_accept=0.99).sample_stats["step_size"].mean()
    assert short < 0.7 * plain.sample_stats["step_size"].mean()
    metrics: tuple[Any, ...] = ("unit_e", "dense_e")
    for metric in metrics:
        assert not np.allclose(run(metric=metric).posterior["x"], plain.posterior["x"])


RELAXATION = relax(generate(4, np.random.default_rng(2)))
RNG = np.random.default_rng(3)
SHARED = Classification(RNG.normal(size=(8, 2)), np.array([1, 0, 0, 1, 1, 0, 1, 0])).model(
    "shared", scale_global=0.5, form="shared_scales"
)
PLATEAU: dict[str, Any] = {"lowest_inv_temp": 0.3, "theta": (1.0, 2.0)}
MORE: dict[str, Callable[..., Fit]] = {
    "shared scales": lambda **own: PSEUDO_EXTENDED.sample(SHARED, **own),
    "mixture": lambda **own: EXTENDED_HAMILTONIAN.sample(NEAR, **PLATEAU, **own),
    "relaxation": lambda **own: EXTENDED_HAMILTONIAN.sample(
        RELAXATION.model("relaxation"),
        base=gaussian_base(np.zeros(RELAXATION.q.shape[1]), 4 * np.eye(RELAXATION.q.shape[1])),
        **PLATEAU,
        **own,
    ),
}


@pytest.mark.parametrize("name", MORE)
def test_further_programs_run(name: str) -> None:
    """Besides those that ``test_engines`` runs for every model."""
    nuts = NutsSettings(chains=2, warmup=100, draws=150)
    first, again, other = (MORE[name](nuts=nuts, seed=s, engine="stanli") for s in (1, 1, 2))
    assert set(first.tree.children) == {"posterior", "extended", "sample_stats", "constant_data"}
    for group in ("posterior", "extended"):
        xr.testing.assert_identical(first.tree[group].to_dataset(), again.tree[group].to_dataset())
    for parameter, value in first.posterior.items():
        assert np.all(np.isfinite(value))
        assert not np.allclose(value, other.posterior[parameter])
        assert not np.allclose(value[0], value[1])
    assert first.extended is not None
    weight = first.extended["log_weight" if name == "shared scales" else "log_w1"].to_numpy()
    assert not np.any(np.isnan(weight) | np.isposinf(weight))
    assert np.all(np.isfinite(weight).any(axis=1))  # -inf off the plateau


# What a fit is made of.

PROGRAMS = sorted(shipped("stan").glob("*/*.stan"))


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: f"{path.parent.name}/{path.stem}")
@pytest.mark.usefixtures("cmdstan_home")
def test_programs_have_one_digest_in_both_engines(path: Path) -> None:
    program = StanProgram(path, (shipped("stan"),))
    assert source_digest(program) == program_digest(program, find_cmdstan().stanc)


def written(folder: Path, **files: str) -> StanProgram:
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / f"{name}.stan").write_text(text)
    return StanProgram(folder / "target.stan", (folder,))


def test_digest_follows_includes_of_includes(tmp_path: Path) -> None:
    program = written(
        tmp_path,
        target='functions {\n  #include "one.stan"\n}\n// #include nothing.stan\nmodel { }\n',
        one="#include <two.stan>\n",
        two="// two\n",
    )
    first = source_digest(program)
    assert first == source_digest(program)
    written(tmp_path, two="// three\n")
    assert source_digest(program) != first
    (tmp_path / "two.stan").unlink()
    with pytest.raises(CompileError, match=r"one\.stan includes two\.stan, which is in no folder"):
        source_digest(program)
    with pytest.raises(CompileError, match=r"cannot read the Stan program .*none\.stan"):
        source_digest(StanProgram(tmp_path / "none.stan"))


def test_versions_are_those_of_the_library() -> None:
    release = ".".join(stanli.__version__.split(".")[:2])
    library = next((Path(stanli.__file__).parent / "_bin").glob("libstanli.*")).read_bytes()
    assert set(re.findall(rb"stanc3 v(\d+\.\d+\.\d+)", library)) == {
        STAN_VERSIONS[release].encode()
    }
    facts = PLAIN_NUTS.sample(NEAR, nuts=SHORT, seed=1, engine="stanli").provenance()
    assert facts["engine"] == "stanli"
    assert facts["stanli_version"] == stanli.__version__
    assert facts["stan_version"] == STAN_VERSIONS[release]


def test_one_release_of_stanli_is_meant_everywhere() -> None:
    settings = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())
    (optional,) = settings["project"]["optional-dependencies"]["stanli"]
    assert optional in settings["dependency-groups"]["tests"]
    assert f"pip install '{optional}'" == HOW_TO_INSTALL_STANLI
    assert list(STAN_VERSIONS) == [optional.removeprefix("stanli==").removesuffix(".*")]


# What goes wrong.


def bare(folder: Path, text: str) -> Model:
    written(folder, target=text)
    return Model("bare", folder, {}, ("x",), 1)


def test_what_stan_says_is_in_the_message(tmp_path: Path) -> None:
    rejecting = 'parameters { real x; }\nmodel { reject("nothing suits me"); }\n'
    with pytest.raises(SamplingError) as caught:
        PLAIN_NUTS.sample(bare(tmp_path, rejecting), nuts=SHORT, seed=1, engine="stanli")
    message = str(caught.value)
    assert "nothing suits me" in message
    assert "seed 1" in message
    assert len(message.splitlines()) == 1
    with pytest.raises(DataError, match=r'(?s)-target: .*line 1.*Expected ";"'):
        PLAIN_NUTS.sample(bare(tmp_path, "parameters { real x }\n"), seed=1, engine="stanli")


def test_stanli_itself_may_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "stanli", None)
    with pytest.raises(ToolchainError, match=re.escape(HOW_TO_INSTALL_STANLI)):
        PLAIN_NUTS.sample(NEAR, nuts=SHORT, seed=1, engine="stanli")


@pytest.mark.parametrize("obstacle", ["no compiler", "offline", "no CmdStan in $CMDSTAN"])
@pytest.mark.parametrize("engine", ["cmdstan", "auto"])
def test_without_cmdstan_the_message_names_the_other_engine(
    world: World, monkeypatch: pytest.MonkeyPatch, obstacle: str, engine: Engine
) -> None:
    """What is said of CmdStan, and a line more; "auto" takes stanli only for want of a compiler."""
    if obstacle == "no compiler":
        (world.bin / "g++").unlink()
        if engine == "auto":
            assert PLAIN_NUTS.sample(NEAR, nuts=SHORT, seed=1).provenance()["engine"] == "stanli"
            return
    elif obstacle == "offline":
        monkeypatch.setenv("FAKE_PIP", "offline")
    else:
        monkeypatch.setenv("CMDSTAN", str(world.root / "nothing"))
    with pytest.raises(ToolchainError) as caught:
        PLAIN_NUTS.sample(NEAR, nuts=SHORT, seed=1, engine=engine)
    *_, last = str(caught.value).splitlines()
    assert "engine='stanli' needs neither CmdStan nor a C++ compiler" in last
    assert HOW_TO_INSTALL_STANLI in last
    assert isinstance(caught.value.__cause__, ToolchainError)
    assert str(caught.value) == f"{caught.value.__cause__}\n{last}"


# The program of a method that ``test_engines`` leaves to this file, in both engines.


@pytest.mark.compiled
@pytest.mark.usefixtures("cmdstan_home", "quiet_cmdstanpy")
def test_engines_agree_on_the_extended_hamiltonian() -> None:
    """Means of x, x^2, |u| and beta: four two-sided tests, 1e-3 in all by Bonferroni."""
    nuts = NutsSettings(chains=4, warmup=500, draws=4000, parallel_chains=2)
    engines: tuple[Engine, ...] = ("cmdstan", "stanli")
    fits = [
        EXTENDED_HAMILTONIAN.sample(NEAR, **PLATEAU, nuts=nuts, seed=21 + k, engine=engine)
        for k, engine in enumerate(engines)
    ]
    assert [fit.provenance()["engine"] for fit in fits] == ["cmdstan", "stanli"]
    estimates = []
    for fit in fits:
        assert fit.extended is not None
        raw = [np.abs(fit.extended["u"].to_numpy()), fit.extended["inv_temp"].to_numpy()]
        estimates.append(
            [
                fit.expectation(lambda p: p["x"]),
                fit.expectation(lambda p: p["x"] ** 2),
                *(evidence.expectation(series) for series in raw),
            ]
        )
    scores = [
        (one.value - two.value) / np.hypot(one.mcse, two.mcse)
        for one, two in zip(*estimates, strict=True)
    ]
    assert np.max(np.abs(np.concatenate([np.ravel(z) for z in scores]))) < norm.isf(0.5e-3 / 4)


@pytest.mark.compiled
@pytest.mark.usefixtures("cmdstan_home", "quiet_cmdstanpy")
def test_engines_have_one_extended_hamiltonian() -> None:
    data = {**NEAR.data, **extended_hamiltonian_data(NEAR, **PLATEAU)}
    exe = compiled_variant(NEAR, "extended_hamiltonian").exe
    density = StanDensity(NEAR.program("extended_hamiltonian"), data)
    cmdstan = cmdstanpy.CmdStanModel(exe_file=str(exe))
    rng = np.random.default_rng(5)
    for u in (0.4, -1.3, 1.8, -3.0):  # on the plateau, on its slopes, beyond
        values = {"x": rng.normal(0, 2, 1), "u": u}
        row = cmdstan.log_prob(
            plain_data(values), data=plain_data(data), jacobian=True, sig_figs=17
        )
        value, gradient = density(density.unconstrain(values))
        assert value == pytest.approx(row.to_numpy()[0, 0], rel=1e-10)
        np.testing.assert_allclose(gradient, row.to_numpy()[0, 1:], rtol=1e-9, atol=1e-11)


def test_what_a_program_prints_is_dropped(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Thousands of lines would hide how far the run is; CmdStan's console is not shown either."""
    path = tmp_path / "printing.stan"
    path.write_text(
        """
        data { real y; }
        transformed data { print("data ", y); }
        parameters { real x; }
        model { print("at ", x); x ~ normal(y, 1); }
        generated quantities { real z = x; print("then ", z); }
        """,
        encoding="utf-8",
    )
    fit = user.sample(path, {"y": 1.0}, seed=1, engine="stanli", draws=200, progress=False)
    assert fit.method == "nuts"
    assert capfd.readouterr() == ("", "")
