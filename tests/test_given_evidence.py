"""Log evidence from given draws: closed forms, tempered runs, and never silently wrong."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from calibration import few_and_many, mean_square_bounds
from click.testing import CliRunner, Result
from conjugate import log_evidence
from conjugate_draws import WITH_DRAWS, posterior_draws
from corpus_data import corpus_data
from corpus_oracle import CORPUS
from given_fits import as_fit, fit_of, nuts_run, write_csv
from pine import pine_data, pine_log_evidence, pine_programs
from scipy.integrate import quad
from scipy.special import logsumexp
from scipy.stats import norm

from harness.arrays import FloatArray
from harness.cli import main
from harness.engine.batched import BatchedDensity
from harness.errors import DataError
from harness.models.radon import load_radon
from harness.models.radon_exact import exact_log_evidence
from harness.temper import tempered_model
from harness.user import evidence_from_fit, sample
from harness.user.bridged import bridged

FUNNEL = """parameters {
  real y;
  vector[9] x;
}
model {
  y ~ normal(0, 3);
  x ~ normal(0, exp(y / 2));
}
"""
DISTANT = """data {
  real y;
}
parameters {
  vector[2] x;
}
model {
  x ~ normal(0, 10);
  target += log_mix(0.5, normal_lpdf(y | x[1] - 8, 1) + normal_lpdf(x[2] | 0, 1),
                    normal_lpdf(y | x[1] + 8, 0.5) + normal_lpdf(x[2] | 3, 2));
}
"""
FLAT = """data {
  real y;
}
parameters {
  real mu;
}
model {
  y ~ normal(mu, 1);
}
"""


def repeated(draws: dict[str, FloatArray], rng: np.random.Generator) -> dict[str, FloatArray]:
    """Let a chain stay at 60 % of its steps, as Metropolis does: effective draws are a quarter."""
    shape = next(iter(draws.values())).shape[:2]
    stays = rng.random(shape) < 0.6
    stays[:, 0] = False
    place = np.maximum.accumulate(np.where(stays, 0, np.arange(shape[1])), axis=1)
    rows = np.arange(shape[0])[:, None]
    return {name: value[rows, place] for name, value in draws.items()}


@few_and_many(3, 20)
@pytest.mark.parametrize("correlated", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", WITH_DRAWS)
def test_closed_forms_with_honest_errors(name: str, correlated: bool, runs: int) -> None:
    data = corpus_data(name)
    model = tempered_model(CORPUS / f"{name}.stan", data)
    density = BatchedDensity(model.program("target"), model.data)
    exact, z = log_evidence(name), []
    for run in range(runs):
        rng = np.random.default_rng([run, 7])
        draws = posterior_draws(name, data, rng, (4, 1000))
        if correlated:
            draws = repeated(draws, rng)
        flat = {key: value.reshape(-1, *value.shape[2:]) for key, value in draws.items()}
        points = density.unconstrain_draws(flat).reshape(4, 1000, -1)
        found = bridged(density, points, seed=run)
        assert found.log_evidence.mcse < 0.02
        z.append((found.log_evidence.value - exact) / found.log_evidence.mcse)
    assert np.max(np.abs(z)) < 5
    low, high = mean_square_bounds(runs)
    assert low < np.mean(np.square(z)) < high


def test_radiata_pine_as_published(tmp_path: Path) -> None:
    """Log evidences of both regressions, and a Bayes factor within 0.01, from 4 x 1,000 draws."""
    found = {}
    for name, path in pine_programs(tmp_path).items():
        fit = as_fit(nuts_run(path, pine_data(), seed=3), ["alpha", "beta", "tau"])
        result = evidence_from_fit(fit, path, pine_data(), progress=False)
        assert result.log_evidence is not None
        assert not result.flagged
        exact = pine_log_evidence(name)
        assert abs(result.log_evidence.value - exact) < 4.5 * result.log_evidence.mcse
        found[name] = result.log_evidence
    factor = found["adjusted"].minus(found["density"])
    assert factor.mcse < 0.01 / 3
    assert abs(factor.value - 8.4237) < 0.01


@pytest.mark.slow
def test_radon_by_quadrature() -> None:
    data = load_radon()
    few = data.subset(data.county_names[:6])
    path, given = CORPUS / "radon_homes.stan", dict(few.model("radon").data)
    fit = sample(
        path, given, method="nuts", target_accept=0.99, seed=2, engine="stanli", progress=False
    )
    found = evidence_from_fit(fit, path, given, progress=False).log_evidence
    assert found is not None
    assert abs(found.value - exact_log_evidence(few).value) < 4.5 * found.mcse


AGREE = (
    *("eight_schools_noncentred", "robust_t", "log_earnings", "logistic_wells", "poisson_offset"),
    *("irt_1pl", "change_point", "mvn_lkj_cholesky", "probit", "survival_weibull"),
    "conjugate_normal",
)


@pytest.mark.slow
@pytest.mark.parametrize("name", AGREE)
def test_bridge_and_pilots_agree(name: str) -> None:
    """Two estimates with nothing in common but the program; robust_t's prior has a constant."""
    path, data = CORPUS / f"{name}.stan", corpus_data(name)
    bridge = evidence_from_fit(None, path, data, engine="stanli", progress=False)
    pilots = sample(path, data, seed=2, engine="stanli", progress=False).log_evidence
    assert bridge.log_evidence is not None
    assert pilots is not None
    gap = bridge.log_evidence.minus(pilots)
    assert abs(gap.value) < 4.5 * gap.mcse


# Never silently wrong


@few_and_many(2, 20)
def test_a_mixture_whose_labels_can_switch_has_both_copies(runs: int) -> None:
    """Whether the chains disagree, or all of them know one labelling; log Z by a grid."""
    path, data = CORPUS / "bimodal_mixture.stan", corpus_data("bimodal_mixture")
    data["share"] = 0.5
    model = tempered_model(path, data)
    mu = np.linspace(-20, 20, 1001)
    grid = np.stack(np.meshgrid(mu, mu, indexing="ij"), axis=-1).reshape(-1, 2)
    value = BatchedDensity(model.program("target"), model.data)(grid)[0]
    exact = float(logsumexp(value) + 2 * np.log(mu[1] - mu[0]))
    for seed in range(runs):
        inits = [{"mu": [-2, 2]}] * 4 if seed % 2 else None
        fit = as_fit(nuts_run(path, data, seed=seed + 1, inits=inits), ["mu"])
        found = evidence_from_fit(fit, path, data, seed=seed, progress=False)
        assert not found.refusals
        assert found.log_evidence is not None
        assert 0 < found.log_evidence.mcse < 0.01
        assert abs(found.log_evidence.value - exact) < 4.5 * found.log_evidence.mcse


@few_and_many(1, 20)
def test_a_distant_mode_that_no_chain_knows_is_refused(runs: int, tmp_path: Path) -> None:
    path = tmp_path / "distant.stan"
    path.write_text(DISTANT)
    inits = [{"x": [9.0, 0.0]}] * 4
    for seed in range(runs):
        fit = as_fit(nuts_run(path, {"y": 1.0}, seed=seed + 1, inits=inits), ["x"])
        found = evidence_from_fit(fit, path, {"y": 1.0}, seed=seed, progress=False)
        assert found.log_evidence is None
        assert "x[1] = -6.9" in found.refusals[-1]


@few_and_many(1, 20)
def test_a_funnel_is_flagged(runs: int, tmp_path: Path) -> None:
    path = tmp_path / "funnel.stan"
    path.write_text(FUNNEL)
    for seed in range(runs):
        fit = as_fit(nuts_run(path, {}, seed=seed + 1), ["y", "x"])
        result = evidence_from_fit(fit, path, {}, seed=seed, progress=False)
        unlike = [e.sentence for e in result.findings if e.severity > 0]
        # Apart from the sentence that the program has no likelihood.
        assert result.refusals or len(unlike) > 1


@pytest.mark.slow
def test_a_tempered_run_follows_where_the_bridge_is_refused() -> None:
    """Of two modes the draws know one; Z by a sum over a grid."""
    path, data = CORPUS / "bimodal_mixture.stan", corpus_data("bimodal_mixture")
    rng = np.random.default_rng(1)
    fit = as_fit(
        nuts_run(path, data, seed=int(rng.integers(100)), inits=[{"mu": [-2, 2]}] * 4), ["mu"]
    )
    result = evidence_from_fit(fit, path, data, temper="auto", engine="stanli", progress=False)
    assert result.refusals
    assert result.method.startswith("tempered")
    y, mu = np.asarray(data["y"]), np.linspace(-12, 12, 1201)
    one = np.exp(-0.5 * (y[:, None] - mu) ** 2) / math.sqrt(2 * math.pi)
    prior = -0.5 * (mu / 4) ** 2 - 0.5 * math.log(2 * math.pi * 16)
    mixed = np.log(data["share"] * one[:, :, None] + (1 - data["share"]) * one[:, None, :])
    log_joint = prior[:, None] + prior + mixed.sum(axis=0)
    step = 2 * math.log(mu[1] - mu[0])
    exact = log_joint.max() + math.log(np.exp(log_joint - log_joint.max()).sum()) + step
    found = result.log_evidence
    assert found is not None
    assert abs(found.value - exact) < 4.5 * found.mcse
    assert "a tempered run followed" in result.as_text()


# Refusals and sentences


def test_an_improper_prior_has_no_evidence(tmp_path: Path) -> None:
    path = tmp_path / "flat.stan"
    path.write_text(FLAT)
    draws = {"mu": 1 + np.random.default_rng(1).standard_normal((4, 500))}
    result = evidence_from_fit(fit_of(draws), path, {"y": 1.0}, temper="auto", progress=False)
    assert result.log_evidence is None
    assert result.tempered is None
    assert "improper (it is flat in mu)" in result.refusals[0]
    # The likelihood as a function of mu integrates to one.
    assert result.integral is not None
    assert abs(result.integral.value) < 4.5 * result.integral.mcse + 1e-9


def test_few_draws_and_one_chain() -> None:
    name = "conjugate_beta_binomial"
    path, data, rng = CORPUS / f"{name}.stan", corpus_data(name), np.random.default_rng(2)
    few = posterior_draws(name, data, rng, (4, 10))
    refused = evidence_from_fit(fit_of(few), path, data, progress=False)
    assert refused.log_evidence is None
    assert "needs 200 draws or more; got 4 x 10" in refused.refusals[-1]
    one = posterior_draws(name, data, rng, (1, 1000))
    single = evidence_from_fit(fit_of(one), path, data, error=1e-5, progress=False)
    assert single.log_evidence is not None
    told = single.as_text()
    assert "There is one chain" in told
    assert "no lp__" in told
    assert "times as many draws" in told


@pytest.mark.parametrize("times", [None, 3.0])
def test_a_prior_that_does_not_integrate_to_one_is_normalised(
    times: float | None, tmp_path: Path
) -> None:
    """A half normal without T[0, ], whose half is known, and a multiple that draws show."""
    path = tmp_path / "half.stan"
    more = "" if times is None else f"target += log({times});"
    path.write_text(
        "data { real y; } parameters { real<lower=0> mu; }\n"
        f"model {{ mu ~ normal(0, 1); {more} y ~ normal(mu, 1); }}\n"
    )
    rng = np.random.default_rng(3)
    draws = np.abs(rng.standard_normal((4, 1000)) * math.sqrt(0.5))
    result = evidence_from_fit(fit_of({"mu": draws}), path, {"y": 0.0}, progress=False)
    constant = math.log((times or 1) / 2)
    assert result.constant is not None
    if times is None:
        assert result.constant == pytest.approx((constant, 0))
    else:
        # The prior is simulated, which shows its integral up to rounding.
        assert result.constant.value == pytest.approx(constant, abs=1e-12)
        assert result.constant.mcse == 0.0
    # At y = 0 the evidence of the half normal is that of the whole one, N(0 | 0, 2).
    exact = -0.5 * math.log(4 * math.pi)
    assert result.log_evidence is not None
    assert result.integral is not None
    assert abs(result.log_evidence.value - exact) < 4.5 * result.log_evidence.mcse
    assert abs(result.integral.value - exact - constant) < 4.5 * result.integral.mcse
    assert "not to 1" in result.as_text()


def test_own_terms_and_dropped_constants_get_a_sentence() -> None:
    told = {}
    for name in ("target_increments", "poisson_offset"):
        path, data = CORPUS / f"{name}.stan", corpus_data(name)
        told[name] = evidence_from_fit(
            None, path, data, draws=200, engine="stanli", progress=False
        ).as_text()
    assert "no constant but those that are written (line 12" in told["target_increments"]
    assert "_lupdf or _lupmf count with all their constants (line 16" in told["poisson_offset"]


def test_a_tempered_fit_is_not_bridged() -> None:
    path, data = CORPUS / "conjugate_normal.stan", corpus_data("conjugate_normal")
    fit = sample(
        path, data, seed=1, method="pseudo_extended", engine="stanli", draws=20, progress=False
    )
    with pytest.raises(DataError, match=r"tempered fit.*its own log Z"):
        evidence_from_fit(fit, path, data, progress=False)


def test_draws_that_masses_have_weighed(tmp_path: Path) -> None:
    """They are taken as NUTS made them, in whose order lp__ is; log Z by quadrature."""
    path = tmp_path / "signs.stan"
    path.write_text(
        "data { real y; } parameters { real a; real b; } model { a ~ std_normal(); "
        "b ~ std_normal(); y ~ normal(square(a) + 0.01 * b, 0.3); }"
    )
    sampled = sample(path, {"y": 2.5}, engine="stanli", seed=1, progress=False)
    assert sampled.method == "nuts"
    assert sampled.fit.weighed_modes is not None
    found = evidence_from_fit(sampled, path, {"y": 2.5}, engine="stanli", progress=False)
    assert not found.refusals
    width = math.hypot(0.3, 0.01)
    truth = quad(lambda a: norm.pdf(a) * norm.pdf(2.5, a * a, width), -4, 4, points=[-1.6, 1.6])[0]
    assert found.integral is not None
    assert abs(found.integral.value - math.log(truth)) < 4 * found.integral.mcse < 0.1


def test_bad_settings_are_refused() -> None:
    path = CORPUS / "conjugate_normal.stan"
    for bad in ({"temper": "yes"}, {"error": 0.0}, {"seed": -1}):
        with pytest.raises(DataError):
            evidence_from_fit(None, path, {}, **bad)


# The command


def harness(*words: object) -> Result:
    return CliRunner().invoke(main, list(map(str, words)))


def test_command_from_csv_files_to_log_z(tmp_path: Path) -> None:
    name = "conjugate_regression"
    program, data = CORPUS / f"{name}.stan", corpus_data(name)
    given = tmp_path / "data.json"
    plain = {key: np.asarray(value).tolist() for key, value in data.items()}
    given.write_text(json.dumps(plain))
    files = write_csv(tmp_path / "csv", nuts_run(program, data, seed=4), ["beta", "sigma2"])
    done = harness("evidence", *files, "--model", program, "--data", given, "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    exact = log_evidence(name)
    assert abs(found["log_evidence"]["mean"] - exact) < 4.5 * found["log_evidence"]["mcse"]
    assert {row["proposal"] for row in found["bridges"]} >= {"gaussian", "warp3"}
    assert sum(row["used"] for row in found["bridges"]) == 1
    # Other data, another program, parameters that are missing.
    other = tmp_path / "other.json"
    other.write_text(json.dumps(plain | {"y": [value + 0.5 for value in plain["y"]]}))
    done = harness("evidence", *files, "--model", program, "--data", other)
    assert done.exit_code == 1
    assert "another program or of other data" in done.stderr
    done = harness("evidence", *files, "--model", CORPUS / "conjugate_normal.stan")
    assert done.exit_code == 1
    some = write_csv(tmp_path / "some", nuts_run(program, data, seed=4), ["sigma2"])
    done = harness("evidence", *some, "--model", program, "--data", given)
    assert done.exit_code == 1
    assert "no draws of the program's parameter beta" in done.stderr
    assert "Traceback" not in done.output


def test_command_that_refuses_ends_with_status_one(tmp_path: Path) -> None:
    path = tmp_path / "flat.stan"
    path.write_text(FLAT)
    (tmp_path / "y.json").write_text('{"y": 1.0}')
    done = harness(
        *("evidence", "--model", path, "--data", tmp_path / "y.json"),
        *("--draws", 200, "--engine", "stanli"),
    )
    assert done.exit_code == 1
    assert "refused" in done.stdout
    assert "the prior is improper" in done.stdout
