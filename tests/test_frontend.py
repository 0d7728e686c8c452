"""The command line front end of the assembled CmdStan, and CmdStanPy on top of it."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from cmdstanpy import CmdStanModel
from references import reference

from harness.engine.compile import compile_programs
from harness.engine.program import StanProgram
from harness.engine.toolchain import require_cmdstan

pytestmark = pytest.mark.compiled

FIXTURES = Path(__file__).parent / "fixtures" / "cmdstan"
CASES: list[dict[str, Any]] = json.loads((FIXTURES / "reference.json").read_text())
RUN = ["id=1", "random", "seed=4321"]


def same_arithmetic() -> bool:
    """Tell whether programs compiled here do the reference's arithmetic to the last bit."""
    compiler = shutil.which(os.environ.get("CXX", "g++"))
    if compiler is None or platform.machine() != "x86_64":
        return False
    version = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=False)
    return re.search(r"^g\+\+.* 12\.\d+\.\d+$", version.stdout.splitlines()[0]) is not None


needs_same_arithmetic = pytest.mark.skipif(
    not same_arithmetic(),
    reason="the reference was made by g++ 12 on x86-64; elsewhere floating point differs",
)


Programs = Callable[[str], CmdStanModel]


@pytest.fixture(scope="session")
def compiled_reference(cmdstan_home: Path) -> Programs:
    """Return compiled programs by name."""
    cmdstan = require_cmdstan()
    assert cmdstan.path == cmdstan_home

    @cache
    def compiled(name: str) -> CmdStanModel:
        program = StanProgram(home_of(f"{name}.stan") / f"{name}.stan")
        exe = compile_programs([program], cmdstan)[program].exe
        return CmdStanModel(stan_file=str(exe) + ".stan", exe_file=str(exe))

    return compiled


@pytest.fixture
def bernoulli(compiled_reference: Programs) -> CmdStanModel:
    return compiled_reference("bernoulli")


@pytest.fixture
def mixture(compiled_reference: Programs) -> CmdStanModel:
    return compiled_reference("mixture_pe")


def run(model: CmdStanModel, *args: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(model.exe_file), *args], cwd=cwd, capture_output=True, text=True, check=False
    )


def home_of(name: str) -> Path:
    """Return the folder of a file: the fixtures, or the whole reference if this machine has it."""
    return FIXTURES if (FIXTURES / name).exists() else reference("cmdstan")


def data(name: str) -> str:
    return str(home_of(f"{name}.json") / f"{name}.json")


def run_ok(model: CmdStanModel, *args: str, cwd: Path) -> None:
    """Run with the data and seed of the reference."""
    name = model.name
    done = run(model, *RUN, "data", f"file={data(name)}", *args, cwd=cwd)
    assert done.returncode == 0, done.stderr


def rows(path: Path) -> list[str]:
    """Return the header and the draws."""
    return [line for line in path.read_text().splitlines() if not line.startswith("#")]


def adaptation(path: Path) -> list[str]:
    """Return the comment lines from the end of warmup to the timings."""
    found: list[str] = []
    for line in path.read_text().splitlines():
        if line.startswith("# Adaptation terminated") or found:
            if line == "# ":
                break
            if line.startswith("#"):
                found.append(line)
    return found


# --- the same draws as CmdStan -----------------------------------------------------------------


@needs_same_arithmetic
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['program']}-{case['case']}")
def test_rows_are_cmdstans(
    case: dict[str, Any], compiled_reference: Programs, tmp_path: Path
) -> None:
    model = compiled_reference(case["program"])
    out = ["output", "file=out.csv", "sig_figs=18", "refresh=0"]
    run_ok(model, *out, *case["arguments"], cwd=tmp_path)
    got = rows(tmp_path / "out.csv")
    assert got[:6] == case["first"]
    assert (got[-1], len(got)) == (case["last"], case["count"])
    assert adaptation(tmp_path / "out.csv") == case["adaptation"]


@needs_same_arithmetic
def test_whole_files_are_cmdstans(compiled_reference: Programs, tmp_path: Path) -> None:
    """Everything but times, file names and folders of includes is CmdStan's, in every case."""
    whole = reference("cmdstan")
    differs = re.compile(r"start_datetime|seconds \(|^# *file = ")
    folders = re.compile(r"(?<=stan) --include-paths=\S+$")
    for line in (whole / "cases.txt").read_text().splitlines():
        head, arguments = line.split("|")
        program, case = head.split()
        out = f"{program}.{case}.csv"
        args = ["output", f"file={out}", "sig_figs=18", "refresh=0", *arguments.split()]
        run_ok(compiled_reference(program), *args, cwd=tmp_path)
        theirs, ours = (
            [
                folders.sub("", text)
                for text in (home / out).read_text().splitlines()
                if not differs.search(text)
            ]
            for home in (whole, tmp_path)
        )
        assert ours == theirs, out


# --- refusals ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["sample", "foo=1"], ["foo=1", "num_samples"]),
        (["foo"], ["foo", "method"]),
        (["sample", "max_depth=5"], ["max_depth=5", "engine=nuts"]),
        (["method=guess"], ["guess", "sample, optimize"]),
        (["sample", "adapt", "delta=1.5"], ["delta", "1.5", "above 0 and below 1"]),
        (["sample", "num_samples=-1"], ["num_samples", "-1", "at least 0"]),
        (["sample", "num_samples=1e3"], ["num_samples", "1e3", "whole number"]),
        (["sample", "num_samples=3", "num_samples=4"], ["num_samples", "twice", "3", "4"]),
        (["sample", "save_warmup=maybe"], ["save_warmup", "maybe", "true or false"]),
        (["sample", "thin"], ["thin", "needs a value"]),
        (["sample", "adapt=1"], ["adapt", "takes no value"]),
        (["sample", "num_warmup=0"], ["num_warmup", "engaged=0"]),
        (["output", "sig_figs=19"], ["sig_figs", "19", "from -1 to 18"]),
        (["random", "seed=4294967296"], ["seed", "4294967296"]),
        (["num_threads=2"], ["num_threads", "2", "STAN_THREADS"]),
        (["laplace"], ["laplace", "mode"]),
        (["generate_quantities"], ["fitted_params"]),
        (["log_prob"], ["unconstrained_params", "constrained_params"]),
        (["optimize", "output", "diagnostic_file=d.csv"], ["diagnostic_file", "optimize"]),
        (["init=none.json"], ["none.json", "No such file"]),
        (["sample", "algorithm=hmc", "metric_file=none.json"], ["metric_file", "none.json"]),
        (["output", "file=nowhere/out.csv"], ["nowhere/out.csv", "No such file"]),
        (["output", "file=a.csv", "diagnostic_file=a.csv"], ["a.csv", "same file name"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_a_wrong_argument_is_refused_in_one_line(
    args: list[str], said: list[str], bernoulli: CmdStanModel, tmp_path: Path
) -> None:
    done = run(bernoulli, "data", f"file={data('bernoulli')}", *args, cwd=tmp_path)
    assert done.returncode not in (0, -signal.SIGABRT, -signal.SIGSEGV)
    assert len(done.stderr.splitlines()) == 1, done.stderr
    for words in said:
        assert words in done.stderr


@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "No such file"), ("{", "not valid"), ('{"N": 1}', "variable name=y")],
)
def test_bad_data_are_refused_in_one_line(
    content: str | None, said: str, bernoulli: CmdStanModel, tmp_path: Path
) -> None:
    if content is not None:
        (tmp_path / "data.json").write_text(content)
    done = run(bernoulli, "sample", "data", "file=data.json", cwd=tmp_path)
    assert done.returncode > 0
    assert len(done.stderr.splitlines()) == 1
    assert said in done.stderr


def test_an_input_is_never_overwritten(bernoulli: CmdStanModel, tmp_path: Path) -> None:
    shutil.copy(data("bernoulli"), tmp_path / "data.json")
    before = (tmp_path / "data.json").read_bytes()
    args = ["data", "file=data.json", "output", "file=./data.json"]
    done = run(bernoulli, "sample", *args, cwd=tmp_path)
    assert done.returncode > 0
    assert "both read and written" in done.stderr
    assert (tmp_path / "data.json").read_bytes() == before


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_full_disk_is_noticed(bernoulli: CmdStanModel, tmp_path: Path) -> None:
    args = ["data", f"file={data('bernoulli')}", "output", "file=/dev/full"]
    done = run(bernoulli, "sample", *args, cwd=tmp_path)
    assert done.returncode > 0
    assert "No space left" in done.stderr


# --- interruption ------------------------------------------------------------------------------


def wait_for_rows(path: Path, enough: int) -> None:
    """Wait until a run has written its head and more than enough draws."""
    deadline = time.monotonic() + 60
    while not path.exists() or len(rows(path)) < 1 + enough:
        assert time.monotonic() < deadline, f"no {enough} draws in {path} after a minute"
        time.sleep(0.1)


@pytest.mark.parametrize(
    ("number", "args"),
    [
        (signal.SIGINT, ["sample", "num_samples=100000000"]),
        (signal.SIGTERM, ["sample", "num_samples=100000000"]),
        # ADVI never asks whether it was interrupted.
        (signal.SIGINT, ["variational", "iter=100000000", "tol_rel_obj=1e-300"]),
    ],
    ids=["int", "term", "advi"],
)
def test_a_signal_stops_a_run_and_leaves_whole_rows(
    number: signal.Signals, args: list[str], mixture: CmdStanModel, tmp_path: Path
) -> None:
    command = [str(mixture.exe_file), *args, "data", f"file={data('mixture_pe')}"]
    with subprocess.Popen(
        [*command, "output", "refresh=0"],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            wait_for_rows(tmp_path / "output.csv", 100 if args[0] == "sample" else 0)
            process.send_signal(number)
            process.wait(timeout=20)
        finally:
            process.kill()
    assert process.returncode == 128 + number
    text = (tmp_path / "output.csv").read_text()
    assert text.endswith("\n")
    got = rows(tmp_path / "output.csv")
    assert {line.count(",") for line in got} == {got[0].count(",")}
    if args[0] == "sample":
        assert len(got) > 100


# --- chains and their files --------------------------------------------------------------------


def test_chains_together_are_the_chains_alone(mixture: CmdStanModel, tmp_path: Path) -> None:
    short = ["sample", "num_samples=20", "num_warmup=100"]
    run_ok(mixture, *short, "num_chains=3", "output", "file=all.csv", cwd=tmp_path)
    for chain in (1, 2, 3):
        alone = [f"id={chain}", "random", "seed=4321", "data", f"file={data('mixture_pe')}"]
        done = run(mixture, *alone, *short, "output", f"file=one{chain}.csv", cwd=tmp_path)
        assert done.returncode == 0
        assert rows(tmp_path / f"all_{chain}.csv") == rows(tmp_path / f"one{chain}.csv")
    assert rows(tmp_path / "all_1.csv") != rows(tmp_path / "all_2.csv")


@pytest.mark.parametrize("metric", ["diag_e", "dense_e"])
def test_a_saved_metric_can_be_read_back(
    metric: str, mixture: CmdStanModel, tmp_path: Path
) -> None:
    hmc = ["algorithm=hmc", f"metric={metric}"]
    save = ["adapt", "save_metric=1", "num_chains=2"]
    run_ok(mixture, "sample", *hmc, *save, "output", "file=first.csv", cwd=tmp_path)
    saved = json.loads((tmp_path / "first_metric_2.json").read_text())
    assert saved["metric_type"] == metric
    files = {
        "numbered": "metric_file=first_metric.json",
        "list": "metric_file=first_metric_1.json,first_metric_2.json",
    }
    for name, given in files.items():
        args = ["sample", *hmc, given, "adapt", "engaged=0", "num_warmup=0", "num_chains=2"]
        run_ok(mixture, *args, "num_samples=10", "output", f"file={name}.csv", cwd=tmp_path)
        for chain in (1, 2):
            before = adaptation(tmp_path / f"first_{chain}.csv")[2:]
            assert adaptation(tmp_path / f"{name}_{chain}.csv")[2:] == before


def test_the_configuration_is_saved_as_json(bernoulli: CmdStanModel, tmp_path: Path) -> None:
    args = ["sample", "num_samples=7", "output", "file=x.csv", "save_cmdstan_config=1"]
    run_ok(bernoulli, *args, cwd=tmp_path)
    config = json.loads((tmp_path / "x_config.json").read_text())
    assert config["method"]["sample"]["num_samples"] == 7
    assert config["method"]["sample"]["algorithm"]["hmc"]["metric"]["value"] == "diag_e"
    assert config["random"]["seed"] == 4321


@pytest.mark.parametrize("metric", ["unit_e", "diag_e", "dense_e"])
@pytest.mark.parametrize("adapt", [0, 1])
def test_static_hmc_finds_the_posterior(
    metric: str, adapt: int, bernoulli: CmdStanModel, tmp_path: Path
) -> None:
    hmc = ["algorithm=hmc", "engine=static", "int_time=1.5", f"metric={metric}", "stepsize=0.5"]
    args = ["sample", "num_samples=4000", "adapt", f"engaged={adapt}", *hmc]
    run_ok(bernoulli, *args, "output", "file=s.csv", cwd=tmp_path)
    table = pd.read_csv(tmp_path / "s.csv", comment="#")
    assert np.mean(table["theta"]) == pytest.approx(0.25, abs=0.02)  # Beta(3, 9)


def test_single_paths_are_saved(mixture: CmdStanModel, tmp_path: Path) -> None:
    args = ["pathfinder", "num_paths=2", "num_draws=50", "num_psis_draws=30", "save_single_paths=1"]
    run_ok(mixture, *args, "output", "file=p.csv", cwd=tmp_path)
    assert len(rows(tmp_path / "p.csv")) == 31
    for path in (1, 2):
        assert len(rows(tmp_path / f"p_path_{path}.csv")) == 51
        assert json.loads((tmp_path / f"p_path_{path}.json").read_text())


def test_log_prob_takes_several_points(bernoulli: CmdStanModel, tmp_path: Path) -> None:
    """With the Jacobian the density of the logit u is 3 u - 12 log(1 + exp(u)), as y sums to 2."""
    points = [[-1.0], [0.0], [2.0]]
    (tmp_path / "u.json").write_text(json.dumps({"params_r": points}))
    args = ["log_prob", "unconstrained_params=u.json", "output", "file=lp.csv", "sig_figs=18"]
    run_ok(bernoulli, *args, cwd=tmp_path)
    table = pd.read_csv(tmp_path / "lp.csv", comment="#")
    u = np.array(points)[:, 0]
    np.testing.assert_allclose(table["lp__"], 3 * u - 12 * np.log1p(np.exp(u)))
    np.testing.assert_allclose(table["g_theta"], 3 - 12 / (1 + np.exp(-u)))


# --- CmdStanPy ---------------------------------------------------------------------------------


def test_cmdstanpy_samples(mixture: CmdStanModel, tmp_path: Path) -> None:
    inits = [{"beta": [0.5, 0.5]}, {"beta": [0.2, 0.7]}]
    fit = mixture.sample(
        data=data("mixture_pe"),
        chains=2,
        seed=1,
        inits=inits,
        save_warmup=True,
        iter_warmup=200,
        iter_sampling=300,
        adapt_delta=0.9,
        max_treedepth=8,
        output_dir=tmp_path,
        show_progress=False,
    )
    assert fit.draws(inc_warmup=True).shape[:2] == (500, 2)
    assert fit.inv_metric.shape == (2, 6)
    assert "beta[1]" in fit.summary().index
    assert "treedepth" in fit.diagnose().lower()
    again = mixture.sample(
        data=data("mixture_pe"),
        chains=1,
        seed=1,
        iter_warmup=0,
        adapt_engaged=False,
        step_size=float(fit.step_size[0]),
        inv_metric=fit.inv_metric[0],
        iter_sampling=50,
        show_progress=False,
    )
    np.testing.assert_allclose(again.inv_metric[0], fit.inv_metric[0], rtol=1e-5)


def test_cmdstanpy_fixed_parameters_and_console(
    bernoulli: CmdStanModel, capsys: pytest.CaptureFixture[str]
) -> None:
    fit = bernoulli.sample(
        data=data("bernoulli"),
        fixed_param=True,
        chains=1,
        iter_sampling=10,
        inits={"theta": 0.5},
        show_console=True,
    )
    np.testing.assert_allclose(fit.stan_variable("theta"), 0.5)
    assert "Iteration" in capsys.readouterr().out


def test_cmdstanpy_optimises_and_draws_from_laplace(bernoulli: CmdStanModel) -> None:
    for algorithm in ("newton", "bfgs", "lbfgs"):
        mode = bernoulli.optimize(
            data=data("bernoulli"), seed=1, jacobian=True, algorithm=algorithm
        )
        # Stan's Newton stops at once on this program, under CmdStan too (see the reference).
        if algorithm != "newton":
            assert mode.stan_variable("theta") == pytest.approx(0.25, abs=1e-4)
    draws = bernoulli.laplace_sample(data=data("bernoulli"), mode=mode, seed=1, draws=2000)
    assert np.median(draws.stan_variable("theta")) == pytest.approx(0.25, abs=0.03)


def test_cmdstanpy_fits_variationally(bernoulli: CmdStanModel) -> None:
    for algorithm in ("meanfield", "fullrank"):
        fit = bernoulli.variational(data=data("bernoulli"), seed=1, algorithm=algorithm)
        theta = fit.stan_variable("theta", mean=False)
        assert np.mean(theta) == pytest.approx(0.25, abs=0.05)


def test_cmdstanpy_runs_pathfinder(bernoulli: CmdStanModel) -> None:
    for paths in (1, 3):
        fit = bernoulli.pathfinder(data=data("bernoulli"), seed=1, num_paths=paths)
        assert np.mean(fit.stan_variable("theta")) == pytest.approx(0.25, abs=0.05)


def test_cmdstanpy_asks_the_program(bernoulli: CmdStanModel) -> None:
    info = bernoulli.exe_info()
    assert (info["stan_version_minor"], info["STAN_THREADS"]) == ("39", "false")
    assert "theta" in bernoulli.src_info()["parameters"]
    density = bernoulli.log_prob({"theta": 0.5}, data=data("bernoulli"), sig_figs=18)
    assert density["lp__"][0] == pytest.approx(12 * np.log(0.5))
    table = bernoulli.diagnose(data=data("bernoulli"), inits={"theta": 0.3})
    assert np.all(np.abs(table["error"]) < 1e-6)


def test_cmdstanpy_profiles_and_generates(compiled_reference: Programs) -> None:
    model = compiled_reference("profiled")
    fit = model.sample(
        data=data("bernoulli"), chains=2, seed=1, save_profile=True, show_progress=False
    )
    profile = Path(fit.runset.profile_files[0]).read_text().splitlines()
    assert profile[0].startswith("name,thread_id,total_time")
    assert profile[1].startswith("likelihood,")
    again = model.generate_quantities(data=data("bernoulli"), previous_fit=fit, seed=2)
    assert again.stan_variable("again").shape == (2000,)
    assert 1 < np.mean(again.stan_variable("again")) < 4


# --- compilation -------------------------------------------------------------------------------


def test_without_a_compiler_make_says_so(cmdstan_home: Path, tmp_path: Path) -> None:
    shutil.copy(FIXTURES / "bernoulli.stan", tmp_path)
    done = subprocess.run(
        ["make", "CXX=no-such-compiler", str(tmp_path / "bernoulli")],
        cwd=cmdstan_home,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "no C++ compiler" in done.stderr


@pytest.mark.slow
def test_a_program_with_threads(cmdstan_home: Path, tmp_path: Path) -> None:
    shutil.copy(FIXTURES / "mixture_pe.stan", tmp_path)
    model = CmdStanModel(stan_file=tmp_path / "mixture_pe.stan", cpp_options={"STAN_THREADS": True})
    assert model.exe_info()["STAN_THREADS"] == "true"
    fit = model.sample(
        data=data("mixture_pe"),
        chains=2,
        threads_per_chain=2,
        seed=4321,
        iter_sampling=50,
        show_progress=False,
    )
    assert fit.draws().shape[:2] == (50, 2)
    done = run(model, "num_threads=0", "data", f"file={data('mixture_pe')}", cwd=tmp_path)
    assert done.returncode > 0


@pytest.mark.slow
def test_a_user_header(cmdstan_home: Path, tmp_path: Path) -> None:
    (tmp_path / "outside.stan").write_text(
        "functions { real twice(real x); } generated quantities { real y = twice(21); }"
    )
    (tmp_path / "twice.hpp").write_text(
        "namespace outside_model_namespace {\n"
        "template <typename T> T twice(const T& x, std::ostream*) { return 2 * x; }\n}\n"
    )
    model = CmdStanModel(
        stan_file=tmp_path / "outside.stan", user_header=str(tmp_path / "twice.hpp")
    )
    fit = model.sample(fixed_param=True, chains=1, iter_sampling=5, show_progress=False)
    np.testing.assert_allclose(fit.stan_variable("y"), 42)
