"""Nested sampling of a user's program: log Z, modes, zero likelihood, what it refuses and says."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from calibration import few_and_many, mean_square_bounds
from click.testing import CliRunner
from scipy.stats import multivariate_normal
from stan_density import stanli
from test_user_parallel import CONJUGATE, Y, written
from test_user_sample import BIMODAL, BIMODAL_DATA, bimodal_truth, check_evidence

from harness.cli import main
from harness.diagnosis import Severity
from harness.errors import DataError
from harness.fit import Fit
from harness.samplers.nested_run import NestedRun, nested_run
from harness.user import UserFit, sample

assert stanli is not None

HERE = Path(__file__).parent
PROPER = CONJUGATE.replace("//PRIOR", "mu ~ normal(0, 3);")
EXACT = float(multivariate_normal(np.zeros(20), np.eye(20) + 9).logpdf(Y))


def nested(program: Path, data: dict[str, Any], **settings: Any) -> UserFit:
    given: dict[str, Any] = {"draws": 400, "seed": 1} | settings
    return sample(
        *(program, data), method="nested_sampling", engine="stanli", progress=False, **given
    )


def test_both_modes_log_z_and_what_the_program_computes(tmp_path: Path) -> None:
    result = nested(written(tmp_path, BIMODAL), BIMODAL_DATA)
    log_evidence, below = bimodal_truth()
    check_evidence(result, log_evidence, 0.15)
    share = result.fit.expectation(lambda draws: draws["a"] < 0)
    # Populations have wrong shares of the modes by chance, 0.36 in all; masses of modes do not.
    assert result.fit.weighed_modes is not None
    assert share.mcse < 0.02
    assert abs(share.value - below) < 4 * share.mcse
    posterior = result.posterior
    assert list(posterior) == ["a", "b", "square_a", "y_rep"]
    np.testing.assert_allclose(posterior["square_a"], posterior["a"] ** 2)
    noise = (posterior["y_rep"] - posterior["square_a"] - posterior["b"]).to_numpy()
    assert noise.std() == pytest.approx(BIMODAL_DATA["s"], rel=0.15)
    told = [each.sentence for each in result.diagnosis]
    assert any("integrates to exp(-0.6" in each for each in told)
    assert any("nats of information with" in each for each in told)
    assert not any("disagree" in each for each in told)
    assert result.diagnosis[0].severity < Severity.PROBLEM
    assert any(each in result.as_text() for each in ("(--draws 800)", "cannot be told"))
    assert any(each.name for each in result.stages)
    assert result.modes is not None
    assert len(result.modes.modes) == 2
    result.save(tmp_path / "fit.nc")
    assert Fit.load(tmp_path / "fit.nc").log_evidence == result.log_evidence
    result.report(tmp_path / "fit.html")
    assert "Nested sampling" in (tmp_path / "fit.html").read_text()
    json.dumps(result.as_json(), allow_nan=False)


@few_and_many(3, 20)
def test_errors_of_log_z_are_honest(tmp_path: Path, runs: int) -> None:
    """Several runs of the closed form: z scores are standard normal."""
    path, z = written(tmp_path, PROPER), []
    for seed in range(runs):
        result = nested(path, {"n": 20, "y": Y}, draws=120, chains=2, seed=seed)
        assert result.log_evidence is not None
        z.append((result.log_evidence.value - EXACT) / result.log_evidence.mcse)
    low, high = mean_square_bounds(runs)
    assert low < np.mean(np.square(z)) < high
    mean = result.fit.expectation(lambda draws: draws["mu"])
    assert abs(mean.value - Y.sum() / (20 + 1 / 9)) < 4.5 * mean.mcse


def test_a_likelihood_that_is_zero_nearly_everywhere() -> None:
    """Nine tenths of the prior's draws have none; see the same test of parallel tempering."""
    k = np.array([[0.4, 0.5], [0.6, 0.4], [0.5, 0.7]])
    data = {"K": 3, "k": k.tolist(), "seen": [1, 1, 1]}
    result = nested(HERE / "zero_likelihood" / "seen.stan", data)
    check_evidence(result, -13.645, 0.3)


def test_a_likelihood_that_is_zero_at_every_draw_of_the_prior(tmp_path: Path) -> None:
    seen = (HERE / "zero_likelihood" / "seen.stan").read_text()
    path = written(tmp_path, seen.replace("normal(0, 10)", "normal(0, 30000)"))
    data = {"K": 3, "k": [[0.5, 0.5]] * 3, "seen": [1, 1, 1]}
    with pytest.raises(DataError, match="the likelihood is zero at all 400 draws of the prior"):
        nested(path, data)


@pytest.mark.parametrize(
    ("program", "settings", "message"),
    [
        (CONJUGATE, {}, r"needs a proper prior, and this one is improper \(it is flat in mu\)"),
        (PROPER, {"what": "all"}, "starts from the program's own prior: leave --temper at"),
        (PROPER, {"explorer": "both"}, "by --explorer slice or hmc; got both"),
        (
            PROPER.replace("real mu;", "real mu; vector[40] x;").replace(
                "mu ~", "x ~ std_normal(); mu ~"
            ),
            {"draws": 100},
            "more particles than dimensions: each population has 25 in 41 .*: --draws is 4 times",
        ),
    ],
)  # fmt: skip
def test_what_is_refused_in_one_sentence(
    tmp_path: Path, program: str, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(DataError, match=message) as caught:
        nested(written(tmp_path, program), {"n": 20, "y": Y}, **settings)
    assert "\n" not in str(caught.value)


def test_a_constant_likelihood_is_said(tmp_path: Path) -> None:
    program = PROPER.replace("y ~ normal(mu, 1);", "target += normal_lpdf(y | 0, 1);")
    result = nested(written(tmp_path, program), {"n": 20, "y": Y}, draws=100)
    assert result.log_evidence is not None
    exact = float(multivariate_normal(np.zeros(20), np.eye(20)).logpdf(Y))
    assert result.log_evidence.value == pytest.approx(exact, abs=1e-6)
    told = [each.sentence for each in result.diagnosis]
    assert any("The likelihood is the same at all draws of the prior" in each for each in told)


def test_time_that_runs_out_is_a_problem(tmp_path: Path) -> None:
    result = nested(written(tmp_path, PROPER), {"n": 20, "y": Y}, draws=20_000, budget=0.5)
    (finding,) = [each for each in result.diagnosis if "The time ran out" in each.sentence]
    assert finding.severity is Severity.PROBLEM
    assert result.log_evidence is not None
    assert result.fit.tree.attrs["nested_left"] > 1e-3


def test_what_is_wrong_with_a_run_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run of which one population is shifted, by 2 nats and in place, with moves that fail."""

    def wrong(*given: Any, **named: Any) -> NestedRun:
        run = nested_run(*given, **named)
        first, *others = run.removed
        shifted = replace(
            first.particles,
            log_likelihood=first.particles.log_likelihood + 2,
            points=first.particles.points + 3,
        )
        removed = (replace(first, particles=shifted), *others)
        return replace(run, removed=removed, refused=0.95, p_value=1e-9)

    monkeypatch.setattr("harness.user.nested.nested_run", wrong)
    result = nested(written(tmp_path, PROPER), {"n": 20, "y": Y}, draws=120)
    told = {each.sentence: each for each in result.diagnosis}
    for says, severity in (
        ("independent populations of particles disagree", Severity.PROBLEM),
        ("disagree about the posterior, as they do if few", Severity.WARNING),
        ("95 % of their moves are refused", Severity.WARNING),
        ("their ranks are not uniform (p = 1e-09)", Severity.WARNING),
    ):
        (sentence,) = [each for each in told if says in each]
        assert told[sentence].severity is severity
        assert "--method parallel_tempering" in told[sentence].what_to_try


def test_few_particles_for_the_dimension_are_a_finding(tmp_path: Path) -> None:
    program = PROPER.replace("real mu;", "real mu; vector[7] x;").replace(
        "mu ~", "x ~ std_normal(); mu ~"
    )
    result = nested(written(tmp_path, program), {"n": 20, "y": Y}, draws=80)
    (finding,) = [each for each in result.diagnosis if "few particles for the" in each.sentence]
    assert finding.severity is Severity.WARNING
    assert "20 in each population, for 8 parameters" in finding.sentence


def test_from_the_command_line(tmp_path: Path) -> None:
    path = written(tmp_path, PROPER)
    data = tmp_path / "data.json"
    data.write_text(json.dumps({"n": 20, "y": Y.tolist()}))
    options = ["--method", "nested_sampling", "--engine", "stanli", "--explorer", "hmc"]
    options += ["--draws", "100", "--chains", "2"]
    done = CliRunner().invoke(main, ["sample", str(path), "--data", str(data), *options])
    assert done.exit_code == 0, done.output
    assert "Nested sampling gained" in done.output
    refused = written(tmp_path, CONJUGATE)
    done = CliRunner().invoke(main, ["sample", str(refused), "--data", str(data), *options])
    assert done.exit_code == 1
    assert "needs a proper prior" in done.output
