"""From somebody's program and data to a fit in its own names, with log Z and a diagnosis."""

from __future__ import annotations

import hashlib
import json
import math
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.stats import binom, multivariate_normal, norm
from stan_density import stanli

from harness.cli import main
from harness.diagnosis import Finding, Severity
from harness.errors import DataError, SamplingError
from harness.fit import Fit
from harness.temper import temper, tempered_model
from harness.user import Method, UserFit, sample
from harness.user.generated import _write_draws
from harness.user.scout import scout_program

assert stanli is not None

# y = a^2 + b + noise: a has two modes, of unequal mass since its prior is not centred.
BIMODAL = """data {
  real<lower=0> s;
  real y;
}
parameters {
  real a;
  real<lower=0> b;
}
transformed parameters {
  real square_a = square(a);
}
model {
  a ~ normal(0.5, 3);
  b ~ normal(0, 0.5);
  y ~ normal(square_a + b, s);
}
generated quantities {
  real y_rep = normal_rng(square_a + b, s);
}
"""
BIMODAL_DATA = {"s": 0.5, "y": 9}

AFTER_SEARCH = ("collapsed_tempering", "parallel_tempering", "nuts_in_modes")
"""What auto ends with where plain NUTS is not enough."""

EIGHT_SCHOOLS = """data {
  int<lower=0> J;
  vector[J] y;
  vector<lower=0>[J] sigma;
}
parameters {
  real mu;
  real<lower=0> tau;
  vector[J] eta;
}
transformed parameters {
  vector[J] theta = mu + tau * eta;
}
model {
  mu ~ normal(0, 5);
  tau ~ normal(0, 5);
  eta ~ std_normal();
  y ~ normal(theta, sigma);
}
generated quantities {
  vector[J] log_lik;
  array[J] real y_rep = normal_rng(theta, sigma);
  for (j in 1 : J) {
    log_lik[j] = normal_lpdf(y[j] | theta[j], sigma[j]);
  }
}
"""
SCHOOLS: dict[str, Any] = {
    "J": 8,
    "y": [28, 8, -3, 7, -1, 1, 18, 12],
    "sigma": [15, 10, 16, 11, 9, 11, 10, 18],
}


def write(folder: Path, name: str, program: str, data: object) -> tuple[Path, Path]:
    paths = folder / f"{name}.stan", folder / f"{name}.json"
    paths[0].write_text(program)
    paths[1].write_text(json.dumps(data))
    return paths


def bimodal_truth() -> tuple[float, float]:
    """Log evidence, and the probability of a < 0, by the trapezium rule in a and b."""
    a, b = np.linspace(-15, 15, 6001)[:, None], np.linspace(0, 5, 1001)
    # The prior of b is that of |b|, normalised.
    joint = norm.pdf(a, 0.5, 3) * 2 * norm.pdf(b, 0, 0.5) * norm.pdf(9, a**2 + b, 0.5)
    of_a = np.trapezoid(joint, b, axis=1)
    evidence = np.trapezoid(of_a, a[:, 0])
    below = np.trapezoid(np.where(a[:, 0] < 0, of_a, 0), a[:, 0])
    return float(np.log(evidence)), float(below / evidence)


def schools_log_evidence() -> float:
    """The means integrated out by hand, the scale tau by the trapezium rule."""
    y, sigma = (np.array(SCHOOLS[name], dtype=float) for name in ("y", "sigma"))
    tau = np.linspace(0, 40, 2001)
    density = [
        2
        * norm.pdf(t, 0, 5)
        * multivariate_normal(np.zeros(8), np.diag(sigma**2 + t**2) + 25).pdf(y)
        for t in tau
    ]
    return float(np.log(np.trapezoid(density, tau)))


def check_evidence(result: UserFit, exact: float, largest_error: float) -> None:
    found = result.log_evidence
    assert found is not None
    assert found.mcse < largest_error
    assert abs(found.value - exact) < 4 * found.mcse


@pytest.fixture(scope="module")
def bimodal(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return write(tmp_path_factory.mktemp("bimodal"), "bimodal", BIMODAL, BIMODAL_DATA)


def run(paths: tuple[Path, Path], method: Method, **settings: Any) -> UserFit:
    return sample(*paths, method=method, seed=1, engine="stanli", progress=False, **settings)


def test_auto_finds_that_nuts_misses_a_mode(bimodal: tuple[Path, Path]) -> None:
    result = run(bimodal, "auto", draws=4000)
    assert result.method in AFTER_SEARCH
    assert any(each.sentence.startswith("Plain NUTS misses") for each in result.diagnosis)
    log_evidence, below = bimodal_truth()
    check_evidence(result, log_evidence, 0.2)
    share = result.fit.expectation(lambda draws: draws["a"] < 0)
    assert share.mcse < 0.1
    assert abs(share.value - below) < 4 * share.mcse
    posterior = result.posterior
    assert list(posterior) == ["a", "b", "square_a", "y_rep"]
    # stanli's values are right to about ten digits.
    np.testing.assert_allclose(posterior["square_a"], posterior["a"] ** 2, rtol=1e-7, atol=1e-9)
    # Each raw draw has noise of its own; 16,000 of them have a known spread.
    raw = result.fit.raw
    noise = ((raw["y_rep"] - raw["square_a"] - raw["b"]) / 0.5).to_numpy()
    assert abs(noise.std() - 1) < 4 / np.sqrt(2 * noise.size)
    # 4,000 pairs each: a correlation of chains has a standard error of 0.016.
    assert np.all(np.abs(np.corrcoef(noise) - np.eye(4)) < 4 / np.sqrt(4000))
    modes = result.modes
    assert modes is not None
    (share_below,) = [each for each in modes.modes if each.centre["a"] < 0]
    assert abs(share_below.probability - below) < 4 * share_below.error
    assert "search" in share_below.seen_by
    text = result.as_text()
    assert "\nModes: 2\n" in text
    assert "\nSpent: " in text
    gradients = result.gradients
    others = gradients["nuts"] + gradients.get("tempered", 0)
    assert gradients["total"] == result.fit.gradients + others
    assert not list(bimodal[0].parent.glob("*.hpp"))


def test_auto_keeps_nuts_where_it_misses_nothing(tmp_path: Path) -> None:
    result = run(write(tmp_path, "schools", EIGHT_SCHOOLS, SCHOOLS), "auto")
    assert result.method == "nuts"
    assert any(each.sentence.startswith("No mode was found") for each in result.diagnosis)
    text = result.as_text()
    assert "\nModes: 1, as far as these methods saw: NUTS and search." in text
    assert "may be wrong" not in text
    doubted = result.adding(Finding(Severity.PROBLEM, "Something is wrong."))
    assert ", which may be wrong: see the problems below\n" in doubted.as_text()
    check_evidence(result, schools_log_evidence(), 0.1)
    sizes = {name: variable.shape[2:] for name, variable in result.posterior.items()}
    assert sizes == {
        **{"mu": (), "tau": (), "eta": (8,)},
        **{"theta": (8,), "log_lik": (8,), "y_rep": (8,)},
    }


def test_pseudo_extended(tmp_path: Path) -> None:
    """One mode, which the short chains of a test go round in."""
    paths = write(tmp_path, "schools", EIGHT_SCHOOLS, SCHOOLS)
    result = run(paths, "pseudo_extended")
    assert result.method == "pseudo_extended"
    check_evidence(result, schools_log_evidence(), 0.4)
    posterior, raw = result.posterior, result.fit.raw
    assert raw["theta"].sizes["pseudo_sample"] == 2
    for draws in (posterior, raw):
        theta = draws["mu"] + draws["tau"] * draws["eta"].rename(eta_dim_0="theta_dim_0")
        difference = theta - draws["theta"]
        assert float(abs(difference).max()) < 1e-7
    assert set(posterior) == {"mu", "tau", "eta", "theta", "log_lik", "y_rep"}


def test_types_that_have_no_gaussian_base(tmp_path: Path) -> None:
    """Counts of K sorts under a flat Dirichlet: each outcome of n is as likely as any other."""
    program = """
    data { int K; array[K] int n; }
    parameters { simplex[K] p; cholesky_factor_corr[2] L; real<lower=0, upper=10> u; }
    model { L ~ lkj_corr_cholesky(1); n ~ multinomial(p); }
    generated quantities { matrix[2, 2] R = multiply_lower_tri_self_transpose(L); }
    """
    result = run(
        write(tmp_path, "counts", program, {"K": 3, "n": [3, 4, 5]}), "collapsed_tempering"
    )
    check_evidence(result, -math.log(math.comb(12 + 2, 2)), 0.1)
    assert result.posterior["R"].shape == (4, 1000, 2, 2)
    mean = result.fit.expectation(lambda draws: draws["p"])
    assert np.all(np.abs(mean.value - np.array([4, 5, 6]) / 15) < 4 * mean.mcse)


def test_a_flat_prior_takes_a_gaussian_base(tmp_path: Path) -> None:
    """Log Z is the integral of the program's density, here one of a normal density."""
    program = "data { real y; } parameters { real x; } model { y ~ normal(x, 1); }"
    result = run(write(tmp_path, "flat", program, {"y": 1.5}), "collapsed_tempering")
    check_evidence(result, 0.0, 0.1)


def test_what_is_tempered_can_be_all(tmp_path: Path) -> None:
    """A target without data: the mixture of 0.3 N(-6, 1) and 0.7 N(6, 1), times exp(2)."""
    program = """
    parameters { real x; }
    model { target += 2 + log_mix(0.3, normal_lpdf(x | -6, 1), normal_lpdf(x | 6, 1)); }
    """
    path = tmp_path / "mixture.stan"
    path.write_text(program)
    assert tempered_model(path, {}, what="all").own_base == "improper"
    result = sample(path, what="all", method="auto", seed=2, engine="stanli", progress=False)
    assert result.method in AFTER_SEARCH
    check_evidence(result, 2.0, 0.2)
    share = result.fit.expectation(lambda draws: draws["x"] < 0)
    assert abs(share.value - 0.3) < 4 * share.mcse < 0.4


def test_the_pilots_base_is_the_prior(bimodal: tuple[Path, Path]) -> None:
    """Its density on the unconstrained space, Jacobian included, up to a constant; its draws."""
    model = tempered_model(bimodal[0], BIMODAL_DATA)
    scouted = scout_program(model, seed=4)
    assert scouted.path is not None
    assert scouted.search is not None
    base = scouted.path.found.base
    points = np.array([[0.3, -0.4], [-2.0, 0.5], [4.0, -3.0]])
    exact = norm.logpdf(points[:, 0], 0.5, 3) + norm.logpdf(np.exp(points[:, 1]), 0, 0.5)
    exact += points[:, 1]
    difference = base.log_density(points) - exact
    np.testing.assert_allclose(difference, difference[0], atol=1e-10)
    draws = base.sample(np.random.default_rng(0), 512)
    # 512 thinned draws; 4 standard errors at the least plausible effective size, 100.
    assert abs(draws[:, 0].mean() - 0.5) < 4 * 3 / np.sqrt(100)
    # 512 particles of the posterior, a quarter of them worth something at the least.
    below = float(scouted.search.share @ (scouted.search.values["a"] < 0).mean(axis=1))
    truth = bimodal_truth()[1]
    assert abs(below - truth) < 4 * binom.std(128, truth) / 128


def test_draws_are_written_as_cmdstan_names_them(tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    draws = {"x": rng.normal(size=5), "m": rng.normal(size=(5, 2, 3)), "v": np.empty((5, 0))}
    _write_draws(tmp_path / "draws.csv", draws)
    header, *rows = (tmp_path / "draws.csv").read_text().splitlines()
    assert header == "x,m.1.1,m.2.1,m.1.2,m.2.2,m.1.3,m.2.3"
    table = np.array([row.split(",") for row in rows], dtype=float)
    np.testing.assert_array_equal(table[:, 0], draws["x"])
    np.testing.assert_array_equal(table[:, 4], draws["m"][:, 1, 1])
    np.testing.assert_array_equal(table[:, 5], draws["m"][:, 0, 2])


def test_errors_call_the_program_by_its_name(tmp_path: Path) -> None:
    """A density that is nowhere positive: Stan finds no point to start from."""
    program = """
    data { real y; } parameters { real x; }
    model { if (x < 1e9) reject("never"); x ~ normal(0, 1); y ~ normal(x, 1); }
    """
    methods: tuple[Method, ...] = ("nuts", "collapsed_tempering")
    for method in methods:
        with pytest.raises(SamplingError, match=r"stuck\.stan, form") as caught:
            run(write(tmp_path, "stuck", program, {"y": 1}), method)
        assert len(str(caught.value).splitlines()) == 1


BAD_DATA = {
    "missing": ({"s": 0.5}, "has no y, which the program declares as one number"),
    "shape": ({"s": 0.5, "y": [1, 2]}, "y in .* has shape .2,."),
    "bound": ({"s": -1, "y": 2}, "s is -1"),
    "text": ({"s": "a", "y": 2}, "s in .* holds something that is not a number"),
    "nan": ({"s": 0.5, "y": math.nan}, "y in .* holds NaN"),
    "no object": ([1], "must hold one JSON object"),
}


@pytest.mark.parametrize("case", BAD_DATA)
def test_bad_data(case: str, tmp_path: Path) -> None:
    data, message = BAD_DATA[case]
    with pytest.raises(DataError, match=message) as caught:
        run(write(tmp_path, "bad", BIMODAL, data), "auto")
    assert "bad.json" in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def invoke(*arguments: str | Path) -> tuple[int, str, str]:
    done = CliRunner().invoke(main, ["sample", "--engine", "stanli", *map(str, arguments)])
    return done.exit_code, done.stdout, done.stderr


def test_errors_of_the_command_line(bimodal: tuple[Path, Path], tmp_path: Path) -> None:
    program, data = bimodal
    out = tmp_path / "fit.nc"
    (tmp_path / "not.json").write_text("{s")
    (tmp_path / "bad.stan").write_text(BIMODAL.replace("normal(0.5, 3)", "normal(0.5 3)"))
    for arguments, message in (
        ((program, "--data", tmp_path / "nosuch.json"), "cannot read the data"),
        ((program, "--data", tmp_path / "not.json"), "not.json is not JSON"),
        ((tmp_path / "nosuch.stan", "--data", data), "there is no Stan program"),
        ((tmp_path / "bad.stan", "--data", data), "Syntax error in"),
    ):
        code, stdout, stderr = invoke(*arguments, "--out", out)
        assert code == 1
        assert stdout == ""
        assert message in stderr
        assert "Traceback" not in stderr
    assert not out.exists()


def test_json_and_files(bimodal: tuple[Path, Path], tmp_path: Path) -> None:
    program, data = bimodal
    out, page = tmp_path / "fit.nc", tmp_path / "page.html"
    code, stdout, _ = invoke(
        *(program, "--data", data, "--method", "collapsed_tempering", "--seed", "3", "--json"),
        *("--out", out, "--report", page),
    )
    assert code == 0
    told = json.loads(stdout)
    assert set(told) == {
        *("method", "log_evidence", "posterior", "diagnosis", "timings", "gradients"),
        *("log_integral", "modes", "mode_copies", "copies", "spent"),
    }
    assert set(told["log_evidence"]) == {"mean", "mcse"}
    assert list(told["posterior"]) == ["a", "b", "square_a", "y_rep"]
    assert {"mean", "sd", "mcse"} <= set(told["posterior"]["a"])
    assert all({"severity", "sentence", "what_to_try"} == set(each) for each in told["diagnosis"])
    assert {"pilot", "sampling", "total"} <= set(told["timings"])
    assert told["gradients"]["pilot"] > 0
    below = bimodal_truth()[1]
    modes = sorted(told["modes"], key=lambda each: each["centre"]["a"])
    assert len(modes) == 2
    for mode, share in zip(modes, (below, 1 - below), strict=True):
        assert abs(mode["probability"] - share) < 4 * mode["mcse"]
        assert set(mode["seen_by"]) == {"collapsed_tempering", "search"}
    spent = {each["stage"]: each for each in told["spent"]["stages"]}
    assert spent["the search and other pilots"]["gradients"] == told["gradients"]["pilot"]
    assert spent["the table of modes"]["gradients"] == told["gradients"]["modes"]
    assert sum(each["seconds"] for each in spent.values()) == pytest.approx(
        told["timings"]["total"], abs=0.01
    )
    fit = Fit.load(out)
    assert fit.log_evidence.value == told["log_evidence"]["mean"]
    assert fit.parameters == ("a", "b")
    (_, original), (_, generated) = json.loads(fit.tree.attrs["programs"])
    html = page.read_text()
    assert "<h2>Modes</h2>" in html
    for text in (original, generated):
        assert hashlib.sha256(text.encode()).hexdigest() in html
    # The header of what was generated has the original's hash.
    assert hashlib.sha256(original.encode()).hexdigest() in generated
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fit.nc", "page.html"]


def test_an_interrupted_run_leaves_nothing(bimodal: tuple[Path, Path], tmp_path: Path) -> None:
    program, data = bimodal
    command = [
        *(sys.executable, "-m", "harness", "sample", str(program), "--data", str(data)),
        *("--method", "collapsed_tempering", "--engine", "stanli", "--draws", "500000"),
        *("--out", str(tmp_path / "fit.nc"), "--report", str(tmp_path / "page.html")),
    ]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "the tempered run" in line:
                process.send_signal(signal.SIGINT)
                break
        said = process.stderr.read()
    assert process.returncode == 130
    assert said.splitlines()[-1] == "interrupted"
    assert not list(tmp_path.iterdir())


def test_plain_nuts_has_no_evidence(bimodal: tuple[Path, Path]) -> None:
    program, data = bimodal
    code, stdout, _ = invoke(program, "--data", data, "--method", "nuts", "--json")
    assert code == 0
    told = json.loads(stdout)
    assert told["log_evidence"] is None
    assert told["modes"] is None
    assert told["gradients"]["pilot"] == 0
    code, stdout, _ = invoke(program, "--data", data, "--method", "nuts")
    assert code == 0
    assert "Log evidence: no estimate" in stdout


@pytest.mark.compiled
def test_through_cmdstan(tmp_path: Path) -> None:
    paths = write(tmp_path, "es", EIGHT_SCHOOLS, SCHOOLS)
    common: dict[str, Any] = {"seed": 3, "engine": "cmdstan", "progress": False}
    plain = sample(*paths, method="nuts", **common)
    result = sample(*paths, method="collapsed_tempering", **common)
    check_evidence(result, schools_log_evidence(), 0.1)
    posterior = result.posterior
    assert {name: each.sizes for name, each in posterior.items()} == {
        name: each.sizes for name, each in plain.posterior.items()
    }
    mu, tau, eta, theta = (
        posterior[name].to_numpy().reshape(4, 1000, -1) for name in ("mu", "tau", "eta", "theta")
    )
    np.testing.assert_allclose(theta, mu + tau * eta, rtol=1e-7, atol=1e-7)
    y, sigma = (np.array(SCHOOLS[name], dtype=float) for name in ("y", "sigma"))
    np.testing.assert_allclose(posterior["log_lik"], norm.logpdf(y, theta, sigma), atol=1e-7)
    raw = result.fit.raw
    noise = ((raw["y_rep"].to_numpy() - raw["theta"].to_numpy()) / sigma).reshape(4, -1)
    assert abs(noise.std() - 1) < 4 / np.sqrt(2 * noise.size)
    # No two chains share a stream of random numbers.
    assert np.all(np.abs(np.corrcoef(noise) - np.eye(4)) < 4 / np.sqrt(noise.shape[1]))
    # Both fits of one posterior, which have errors each.
    for name in ("mu", "tau"):
        one, other = (each.summary()[name] for each in (plain, result))
        assert abs(one["mean"] - other["mean"]) < 4 * math.hypot(one["mcse"], other["mcse"])
    assert not list(tmp_path.glob("*.hpp"))


def test_settings_of_nuts_reach_it(bimodal: tuple[Path, Path]) -> None:
    program, data = bimodal
    common: dict[str, Any] = {"seed": 1, "engine": "stanli", "progress": False, "draws": 100}
    cases: list[tuple[Method, float | None, float]] = [
        ("nuts", None, 0.8),
        ("nuts", 0.99, 0.99),
        ("pseudo_extended", None, 0.95),
        ("collapsed_tempering", None, 0.95),
        ("joint_tempering", 0.7, 0.7),
    ]
    for method, given, expected in cases:
        result = sample(
            program, data, method=method, target_accept=given, max_treedepth=7, **common
        )
        nuts = result.fit.settings["nuts"]
        assert nuts["target_accept"] == expected
        assert nuts["max_treedepth"] == 7
        assert not [each for each in result.diagnosis if "limited to a tree" in each.sentence]


@pytest.mark.compiled
def test_transformed_parameters_without_generated_quantities_through_cmdstan(
    tmp_path: Path,
) -> None:
    """CmdStan refuses to generate where a program generates nothing."""
    program = BIMODAL[: BIMODAL.index("generated quantities")]
    paths = write(tmp_path, "bimodal", program, BIMODAL_DATA)
    result = sample(*paths, method="collapsed_tempering", seed=1, engine="cmdstan", progress=False)
    posterior = result.posterior
    assert list(posterior) == ["a", "b", "square_a"]
    np.testing.assert_allclose(posterior["square_a"], posterior["a"] ** 2, rtol=1e-12)


TUPLES = """data {
  tuple(real, array[2] real) prior;
  array[3] tuple(real, int<lower=1>) y;
}
parameters {
  real x;
}
model {
  x ~ normal(prior.1, prior.2[1]);
  for (i in 1 : 3) {
    y[i].1 ~ normal(x, 1 / sqrt(y[i].2));
  }
}
"""
TUPLES_DATA = {
    "prior": {"1": 1.0, "2": [2.0, 0.0]},
    "y": [{"1": 2.0, "2": 1}, {"1": 3.0, "2": 2}, {"1": 2.5, "2": 1}],
}


@pytest.mark.compiled
def test_data_that_are_tuples(tmp_path: Path) -> None:
    """The engine stanli does not know them; the posterior is normal, with precision 1/4 + 4."""
    program = tmp_path / "tuples.stan"
    program.write_text(TUPLES)
    fit = sample(program, TUPLES_DATA, method="nuts", seed=3, progress=False)
    precision = 1 / 4 + 4
    mean = fit.fit.expectation(lambda draws: draws["x"])
    assert abs(mean.value - (1 / 4 + 2 + 6 + 2.5) / precision) < 4 * mean.mcse
    kept = fit.fit.tree["constant_data"].to_dataset()
    assert kept["prior.2"].to_numpy().tolist() == [2, 0]
    assert kept["y[2].2"].item() == 2
    fit.fit.save(tmp_path / "fit.nc")
    assert "y[2].1" in Fit.load(tmp_path / "fit.nc").tree["constant_data"]


def test_entries_of_tuples_are_told_apart(tmp_path: Path) -> None:
    """Those of the prior are its constants, those of y are data that have a density."""
    program = tmp_path / "tuples.stan"
    program.write_text(TUPLES)
    text = temper(program).text
    assert "log_prior += normal_lpdf(x | prior.1, prior.2[1]);" in text
    assert "log_lik += normal_lpdf(y[i].1 | x, 1 / sqrt(y[i].2));" in text


@pytest.mark.parametrize(
    ("part", "said"),
    [("a", r"prior\.1 in the data is not a number"), (float("nan"), r"prior\.1 .* holds NaN")],
)
def test_bad_entries_of_tuples(part: object, said: str, tmp_path: Path) -> None:
    program = tmp_path / "tuples.stan"
    program.write_text(TUPLES)
    data = {**TUPLES_DATA, "prior": (part, [2.0, 0.0])}
    with pytest.raises(DataError, match=said):
        sample(program, data, method="nuts", seed=1, progress=False)
