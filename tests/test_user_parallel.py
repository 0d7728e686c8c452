"""Parallel tempering of a user's program: log Z, modes, zero likelihood, what it reports."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from calibration import mean_square_bounds
from click.testing import CliRunner
from scipy.stats import multivariate_normal, norm
from stan_density import stanli
from test_user_sample import BIMODAL, BIMODAL_DATA, bimodal_truth, check_evidence

from harness.cli import main
from harness.diagnosis import Severity, diagnose
from harness.engine.nuts import NutsRun, NutsSettings
from harness.errors import DataError, SamplingError
from harness.fit import Fit
from harness.modes.local_mass import LocalGaussian
from harness.path import GaussianBase
from harness.samplers.tempering_run import Enough, TemperingRun, TemperingSettings
from harness.temper import tempered_model
from harness.user import UserFit, sample
from harness.user.bridged import Bridge, bridged_in_time
from harness.user.clock import Clock
from harness.user.legs import Leg, fitted_gaussian, run_leg
from harness.user.mode_tables import ModeTables
from harness.user.other_modes import OtherMode, OtherModes
from harness.user.parallel import _out_of_time, parallel_tempering
from harness.user.references import Dealt, refitted_base

assert stanli is not None

HERE = Path(__file__).parent
CONJUGATE = """data {
  int<lower=0> n;
  vector[n] y;
}
parameters {
  real mu;
}
model {
  //PRIOR
  y ~ normal(mu, 1);
}
"""
Y = np.random.default_rng(1).normal(1, 1, 20)


def tempered(program: Path, data: dict[str, Any], **settings: Any) -> UserFit:
    given: dict[str, Any] = {"draws": 500, "warmup": 300, "seed": 1} | settings
    return sample(
        *(program, data), method="parallel_tempering", engine="stanli", progress=False, **given
    )


def written(folder: Path, text: str) -> Path:
    path = folder / "program.stan"
    path.write_text(text)
    return path


@pytest.fixture(scope="module")
def bimodal(tmp_path_factory: pytest.TempPathFactory) -> UserFit:
    """The half-normal prior of b integrates to a half as it is written."""
    return tempered(written(tmp_path_factory.mktemp("bimodal"), BIMODAL), BIMODAL_DATA)


def test_both_modes_log_z_and_what_the_program_computes(bimodal: UserFit) -> None:
    log_evidence, below = bimodal_truth()
    check_evidence(bimodal, log_evidence, 0.1)
    share = bimodal.fit.expectation(lambda draws: draws["a"] < 0)
    assert share.mcse < 0.05
    assert abs(share.value - below) < 4 * share.mcse
    posterior = bimodal.posterior
    assert list(posterior) == ["a", "b", "square_a", "y_rep"]
    np.testing.assert_allclose(posterior["square_a"], posterior["a"] ** 2)
    noise = (posterior["y_rep"] - posterior["square_a"] - posterior["b"]).to_numpy()
    assert noise.std() == pytest.approx(BIMODAL_DATA["s"], rel=0.1)
    told = [each.sentence for each in bimodal.diagnosis]
    assert any("integrates to exp(-0.6" in each for each in told)


def test_one_reference(tmp_path: Path) -> None:
    """The ladder from the prior alone, with its log Z in closed form and no finding about it."""
    program = written(tmp_path, CONJUGATE.replace("//PRIOR", "mu ~ normal(0, 3);"))
    fit = tempered(program, {"n": len(Y), "y": Y}, references=1)
    assert list(fit.replicas) == ["the prior"]
    covariance = np.eye(len(Y)) + 9
    check_evidence(fit, float(multivariate_normal(np.zeros(len(Y)), covariance).logpdf(Y)), 0.1)
    assert not any("only one ladder" in each.sentence for each in fit.diagnosis)
    with pytest.raises(DataError, match="1 or 2 references; got 3"):
        tempered(program, {"n": len(Y), "y": Y}, references=3)


def test_how_replicas_travel_is_reported(bimodal: UserFit, tmp_path: Path) -> None:
    told = bimodal.as_json()["replicas"]
    assert list(told) == ["the prior", "the fitted Gaussians"]
    for ladder in told.values():
        assert len(ladder["round_trips"]) == 4
        assert ladder["ladder"][0] == 0
        assert ladder["ladder"][-1] == 1
        assert len(ladder["swap_rejection"]) + 1 == len(ladder["step_size"])
        assert ladder["communication_barrier"] == pytest.approx(sum(ladder["swap_rejection"]))
    json.dumps(told, allow_nan=False)
    text = bimodal.as_text()
    systems = int(bimodal.fit.tree.attrs["systems"])
    several = "" if systems == 1 else f", each chain by {systems} systems of replicas"
    assert f", by parallel tempering{several}\nLog evidence: " in text
    assert f"Replicas: {sum(told['the prior']['round_trips']):,} round trips from the prior" in text
    bimodal.save(tmp_path / "fit.nc")
    kept = Fit.load(tmp_path / "fit.nc")
    assert any("Replicas make" in each.sentence for each in diagnose(kept))
    assert UserFit(kept, "parallel_tempering").replicas == bimodal.replicas
    bimodal.report(tmp_path / "fit.html")
    page = (tmp_path / "fit.html").read_text()
    for part in ("Parallel tempering", "round trips 2", "communication barrier", "step size"):
        assert part in page


@pytest.mark.parametrize(
    ("trips", "severity", "says"),
    [
        (([3, 2, 2, 2], [0, 0, 0, 0]), Severity.PROBLEM, "9 round trips in all."),
        (([9, 9, 9, 0], [5, 5, 5, 0]), Severity.PROBLEM, "none in 1 of 4 chains"),
        (([9, 9, 9, 0], [5, 5, 5, 1]), Severity.WARNING, "27 round trips from there, and 16"),
        (([9, 9, 9, 9], [0, 0, 0, 0]), Severity.FINE, "9 round trips per chain"),
    ],
)
def test_few_round_trips_are_a_finding(
    bimodal: UserFit, trips: tuple[list[int], list[int]], severity: Severity, says: str
) -> None:
    tree = bimodal.fit.tree.copy()
    tree.attrs |= {"round_trips": np.array(trips[0]), "round_trips_2": np.array(trips[1])}
    (finding,) = [each for each in diagnose(Fit(tree)) if "round trips" in each.sentence]
    assert finding.severity is severity
    assert says in finding.sentence
    assert bool(finding.what_to_try) == (severity is not Severity.FINE)


@pytest.mark.parametrize(
    ("share", "also_sliced", "severity"),
    [(0.0053, 1, Severity.FINE), (0.0053, 0, Severity.WARNING), (0.0009, 0, None)],
)
def test_divergent_trajectories_are_a_finding(
    bimodal: UserFit, share: float, also_sliced: int, severity: Severity | None
) -> None:
    tree = bimodal.fit.tree.copy()
    sliced = np.zeros(len(tree.attrs["ladder"]), dtype=np.int64)
    sliced[-1] = also_sliced
    tree.attrs |= {"divergent_at_target": share, "also_sliced": sliced}
    found = [each for each in diagnose(Fit(tree)) if "trajectories" in each.sentence]
    assert [each.severity for each in found] == ([] if severity is None else [severity])
    assert all("0.53% of the trajectories" in each.sentence for each in found)


@pytest.mark.parametrize("prior", ["mu ~ normal(0, 3);", ""])
def test_log_z_in_closed_form(tmp_path: Path, prior: str) -> None:
    """Of a flat prior it is the integral of the program's density, as the diagnosis says."""
    path = written(tmp_path, CONJUGATE.replace("//PRIOR", prior))
    result = tempered(path, {"n": 20, "y": Y})
    if prior:
        exact = float(multivariate_normal(np.zeros(20), np.eye(20) + 9).logpdf(Y))
    else:
        exact = -0.5 * (19 * np.log(2 * np.pi) + np.log(20) + 20 * Y.var())
    check_evidence(result, exact, 0.05)
    improper = any("is improper" in each.sentence for each in result.diagnosis)
    assert improper == (not prior)
    precision = 20 + (1 / 9 if prior else 0)
    mean = result.fit.expectation(lambda draws: draws["mu"])
    assert abs(mean.value - Y.sum() / precision) < 4 * mean.mcse


def test_a_likelihood_that_is_zero_nearly_everywhere() -> None:
    """Nine tenths of the prior's draws have none; the truth is the integral of four Gaussians."""
    k = np.array([[0.4, 0.5], [0.6, 0.4], [0.5, 0.7]])
    data = {"K": 3, "k": k.tolist(), "seen": [1, 1, 1]}
    result = tempered(HERE / "zero_likelihood" / "seen.stan", data, draws=800)
    spread = np.square(k - k.mean(axis=0)).sum() / 0.02
    peak = multivariate_normal(np.zeros(2), (100 + 0.01 / 3) * np.eye(2)).logpdf(k.mean(axis=0))
    exact = peak - spread + np.log(2 * np.pi * 0.01 / 3)
    assert exact == pytest.approx(-13.645, abs=1e-3)
    check_evidence(result, exact, 0.05)
    assert result.diagnosis[0].severity is Severity.FINE
    assert result.replicas["the prior"]["swap_rejection"][0] > 0.8


def test_a_likelihood_that_is_zero_at_every_draw_of_the_prior(tmp_path: Path) -> None:
    """The ladder from the prior never joins up; that of the fitted Gaussians alone gives log Z."""
    seen = (HERE / "zero_likelihood" / "seen.stan").read_text()
    path = written(tmp_path, seen.replace("normal(0, 10)", "normal(0, 3000)"))
    data = {"K": 3, "k": [[0.5, 0.5]] * 3, "seen": [1, 1, 1]}
    result = tempered(path, data, draws=100, warmup=60, budget=8.0)
    exact = np.log(2 * np.pi * 0.01 / 3) - np.log(2 * np.pi * 9e6)
    check_evidence(result, exact, 0.05)
    told = [each for each in result.diagnosis if "0 round trips from there" in each.sentence]
    assert [each.severity for each in told] == [Severity.WARNING]


def test_errors_of_log_z_are_honest(tmp_path: Path) -> None:
    """Twelve runs of the closed form: z scores are standard normal."""
    path = written(tmp_path, CONJUGATE.replace("//PRIOR", "mu ~ normal(0, 3);"))
    exact = float(multivariate_normal(np.zeros(20), np.eye(20) + 9).logpdf(Y))
    z = []
    for seed in range(12):
        found = tempered(path, {"n": 20, "y": Y}, draws=100, warmup=60, seed=seed).log_evidence
        assert found is not None
        z.append((found.value - exact) / found.mcse)
    low, high = mean_square_bounds(12)
    assert low < np.mean(np.square(z)) < high


def test_one_ladder_is_enough_for_text_json_and_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where NUTS finds no draws to fit a Gaussian to, there is one reference, the prior."""

    def fails(*_: object, widened: float) -> GaussianBase:
        raise SamplingError("a Gaussian cannot be fitted to draws that do not move")

    monkeypatch.setattr("harness.user.references.fitted_gaussian", fails)
    path = written(tmp_path, CONJUGATE.replace("//PRIOR", "mu ~ normal(0, 3);"))
    result = tempered(path, {"n": 20, "y": Y}, draws=200, warmup=60)
    exact = float(multivariate_normal(np.zeros(20), np.eye(20) + 9).logpdf(Y))
    check_evidence(result, exact, 0.3)
    assert list(result.replicas) == ["the prior"]
    assert list(result.as_json()["replicas"]) == ["the prior"]
    assert "round trips from the prior" in result.as_text()
    assert any("only one ladder" in each.sentence for each in result.diagnosis)
    result.report(tmp_path / "page.html")
    assert "round trips" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_draws_on_the_edge_of_a_constraint_do_not_keep_a_gaussian_from_being_fitted() -> None:
    points = np.random.default_rng(2).normal(size=(50, 3))
    stuck = np.vstack([points, [[np.inf, 0, 0], [0, np.nan, 0]]])
    one, other = (fitted_gaussian(each, widened=2.0) for each in (points, stuck))
    np.testing.assert_array_equal(one.mean, other.mean)
    np.testing.assert_array_equal(one.covariance, other.covariance)
    with pytest.raises(DataError, match="needs 5 finite draws or more; got 4 among 6"):
        fitted_gaussian(stuck[-6:], widened=2.0)


@pytest.mark.parametrize(
    ("draws", "effective", "severity"),
    [
        (600, 1500.0, Severity.FINE),
        (400, 1500.0, Severity.WARNING),  # less than half of what was asked for
        (600, 2500.0, Severity.WARNING),  # not enough, whatever was asked for
    ],
)
def test_fewer_draws_matter_if_they_do_not_suffice(
    draws: int, effective: float, severity: Severity
) -> None:
    points = np.random.default_rng(5).normal(size=(4, draws, 2))
    run = cast(
        "TemperingRun",
        SimpleNamespace(
            points=points,
            asked=1000,
            warmup=500,
            is_enough=lambda wanted: points.size / 2 >= wanted.effective,
        ),
    )
    finding = _out_of_time(run, Enough(effective=effective))
    assert finding.severity is severity
    assert f"only {draws} draws a chain of the 1,000" in finding.sentence


def test_time_that_runs_out_is_a_finding(tmp_path: Path) -> None:
    path = written(tmp_path, CONJUGATE.replace("//PRIOR", "mu ~ normal(0, 3);"))
    result = tempered(path, {"n": 20, "y": Y}, draws=200_000, budget=2.0)
    (finding,) = [each for each in result.diagnosis if "The time ran out" in each.sentence]
    assert finding.severity is Severity.WARNING
    assert "of the 200,000 that were asked for" in finding.sentence
    assert 20 <= result.posterior.sizes["draw"] < 200_000


def test_from_the_command_line(tmp_path: Path) -> None:
    path = written(tmp_path, CONJUGATE.replace("//PRIOR", "mu ~ normal(0, 3);"))
    data = tmp_path / "data.json"
    data.write_text(json.dumps({"n": 20, "y": Y.tolist()}))
    options = ["--method", "parallel_tempering", "--engine", "stanli", "--explorer", "slice"]
    options += ["--draws", "100", "--warmup", "50", "--chains", "2"]
    done = CliRunner().invoke(main, ["sample", str(path), "--data", str(data), *options])
    assert done.exit_code == 0, done.output
    assert "round trips from the fitted Gaussians" in done.output
    assert "slice sampling at" in done.output
    assert "step sizes" not in done.output


def test_draws_of_the_prior_are_dealt_once_each_before_any_is_dealt_again() -> None:
    points = np.arange(10.0)[:, None]
    dealt, rng = Dealt(points), np.random.default_rng(1)
    first = np.concatenate([dealt(rng, 4), dealt(rng, 4), dealt(rng, 2)])
    np.testing.assert_array_equal(np.sort(first, axis=0), points)
    assert not np.array_equal(first, points)
    assert len(dealt(rng, 25)) == 25


TWO_MODES = """data {
  int<lower=1> D;
}
parameters {
  vector[D] x;
}
model {
  x ~ normal(0, 5);
  target += log_mix(0.3, normal_lpdf(rep_vector(-4, D) | x, 1),
                    normal_lpdf(rep_vector(4, D) | x, 1));
}
"""


def two_modes_truth(dimension: int) -> tuple[float, float]:
    """Log evidence, and the posterior probability of the first mode: both likelihoods conjugate.

    The evidence of each is the product of N(+-4; 0, 1 + 25), so that the modes keep their weights.
    """
    return float(dimension * norm.logpdf(4, 0, np.sqrt(26))), 0.3


def test_a_reference_that_is_fitted_anew_keeps_modes_that_the_draws_lack() -> None:
    """A quarter of what it is fitted to are points near the target, half of them in that mode."""
    rng = np.random.default_rng(9)
    draws = rng.normal(-5, 1, (4, 300, 2))
    known = rng.permutation(
        np.concatenate([rng.normal(-5, 1, (500, 2)), rng.normal(5, 0.5, (500, 2))])
    )
    points = np.random.default_rng(3).normal(5, 0.5, (200, 2))
    exact = norm.logpdf(points, 5, 0.5).sum(axis=1) + np.log(1 / 8)
    kept = refitted_base(draws, known, widened=1.0, seed=1)
    # About 200 points fix the part's share and its five numbers: each costs some 1 / 400 nats.
    assert np.mean(kept.log_density(points)) == pytest.approx(exact.mean(), abs=0.3)
    lost = refitted_base(draws, known[:0], widened=1.0, seed=1)
    assert np.mean(lost.log_density(points)) < exact.mean() - 20


def plain_nuts(self: Any, plain: Fit, *_: object) -> tuple[UserFit, bool]:
    """Return plain NUTS's draws, and that they leave doubts."""
    return UserFit(plain, "nuts"), False


@pytest.mark.parametrize(
    ("failing", "expected"),
    [(("tempered", "modes"), "parallel_tempering"), (("tempered",), "nuts_in_modes")],
)
def test_what_takes_over_where_the_tempered_run_fails(
    failing: Sequence[str], expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NUTS in each mode, and parallel tempering if that fails, too."""

    def fails(*_: object, **__: object) -> Fit:
        raise SamplingError("the tempered run was stopped")

    runs = {
        "tempered": "harness.user.tempered_form.TemperedForm.run",
        "modes": "harness.user.each_mode.in_modes_run",
    }
    for each in failing:
        monkeypatch.setattr(runs[each], fails)
    # NUTS in each mode would be enough.
    monkeypatch.setattr("harness.user.auto._Auto._at_once", plain_nuts)
    program = written(tmp_path, TWO_MODES)
    result = sample(program, {"D": 2}, seed=1, draws=500, engine="stanli", progress=False)
    assert result.method == expected
    log_evidence, below = two_modes_truth(2)
    check_evidence(result, log_evidence, 0.2)
    share = result.fit.expectation(lambda draws: draws["x"][..., 0] < 0)
    assert abs(share.value - below) < 4 * share.mcse
    told = [each.sentence for each in result.diagnosis]
    assert any("the tempered run was stopped" in each for each in told)
    assert result.nuts is not None
    assert result.tempered is None
    out = tmp_path / "fit.nc"
    result.save(out)
    assert Fit.load(out).tree["nuts_posterior"]["x"].shape[2:] == (2,)


def test_no_path_of_the_search_is_followed_where_climbs_make_all_else_negligible(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NUTS in each mode comes at once, although the search has not got to the posterior."""

    def fails(*_: object, **__: object) -> Fit:
        raise AssertionError("a tempered run along the search's path")

    monkeypatch.setattr("harness.user.tempered_form.TemperedForm.run", fails)
    monkeypatch.setattr("harness.user.auto._searched", lambda *_: False)
    monkeypatch.setattr(ModeTables, "others_are_negligible", True)
    program = written(tmp_path, TWO_MODES)
    result = sample(program, {"D": 2}, seed=1, draws=500, engine="stanli", progress=False)
    assert result.method == "nuts_in_modes"
    check_evidence(result, two_modes_truth(2)[0], 0.2)
    assert not [each for each in result.stages if "tempered" in each.name]


@pytest.mark.parametrize("times", [2.0, 500.0, 2000.0])
def test_what_climbs_make_negligible(times: float) -> None:
    local = LocalGaussian(np.zeros(1), 0.0, np.ones(1), np.eye(1))
    mode = OtherMode(local, "a draw of the prior", -3.0 + float(np.log(times)))
    tables = ModeTables(None, Clock(None, show=False), NutsSettings(), 60.0, 1)  # type: ignore[arg-type]
    assert not tables.others_are_negligible
    tables.elsewhere = OtherModes((mode,), -3.0, 1, 1)
    assert tables.others_are_negligible == (times > 1000)


def test_draws_of_nuts_take_the_place_of_short_runs_without_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a gradient takes long, short runs do not end, and plain NUTS has finished."""

    def late(*_: object, **__: object) -> NutsRun:
        raise SamplingError("stopped at the time limit of 7 s")

    monkeypatch.setattr("harness.user.short.run_short_nuts", late)
    model = tempered_model(
        written(tmp_path, CONJUGATE.replace("//PRIOR", "mu ~ normal(0, 3);")), {"n": 20, "y": Y}
    )
    settings = TemperingSettings(draws=300, warmup=100)
    known = np.random.default_rng(4).normal(Y.sum() / (20 + 1 / 9), (20 + 1 / 9) ** -0.5, 400)
    fits = [
        parallel_tempering(model, settings, otherwise=otherwise, seed=1, begin_round=lambda _: None)
        for otherwise in ({"mu": known}, None)
    ]
    said = [[each.sentence for each in diagnose(fit)] for fit in fits]
    assert ["only one ladder" in " ".join(each) for each in said] == [False, True]
    assert "the time limit of 7 s" in " ".join(said[1])
    exact = float(multivariate_normal(np.zeros(20), np.eye(20) + 9).logpdf(Y))
    for fit in fits:
        assert fit.log_evidence is not None
        assert abs(fit.log_evidence.value - exact) < 5 * fit.log_evidence.mcse < 0.3


def test_auto_draws_the_prior_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Draws of a prior that cannot be simulated take long; its search has some already."""

    def fails(*_: object) -> Fit:
        raise SamplingError("the tempered run was stopped")

    monkeypatch.setattr("harness.user.tempered_form.TemperedForm.run", fails)
    monkeypatch.setattr("harness.user.parallel.prior_draws", fails)
    program = written(tmp_path, BIMODAL)
    result = sample(program, BIMODAL_DATA, seed=1, draws=500, engine="stanli", progress=False)
    assert result.method == "parallel_tempering"
    assert "the prior" in result.replicas
    check_evidence(result, bimodal_truth()[0], 0.2)


def test_auto_does_not_try_again_for_what_no_run_would_change(tmp_path: Path) -> None:
    """A statement of which it is open what it belongs to is a warning, whatever the method."""
    text = """
    data { int N; }
    parameters { vector[2] x; }
    model { target += 0.1 * x[1] - square(square(x[1]) - 9) / 8 - N * dot_self(x[2 : N]); }
    """
    result = sample(*(written(tmp_path, text), {"N": 2}), seed=1, engine="stanli", progress=False)
    told = [each.sentence for each in result.diagnosis]
    assert any("may belong to the prior or to the likelihood" in each for each in told)
    assert result.method in ("nuts_in_modes", "collapsed_tempering")
    assert "parallel" not in result.timings


def test_auto_goes_on_where_the_search_fails_and_takes_what_sees_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chains of NUTS agree in the mode near their starting points, and nothing else was seen."""

    def fails(*arguments: Any, origin: str, **options: Any) -> Leg:
        if origin == "a wide Gaussian":
            raise SamplingError("the pilot was stopped")
        return run_leg(*arguments, origin=origin, **options)

    monkeypatch.setattr("harness.user.scout.run_leg", fails)
    text = """
    parameters { vector[2] x; }
    model { target += log_sum_exp(-dot_self(x), -dot_self(x - 20)); }
    """
    result = sample(
        *(written(tmp_path, text), {}), seed=1, engine="stanli", budget=60, progress=False
    )
    assert result.method in ("parallel_tempering", "nuts_in_modes")
    check_evidence(result, float(np.log(2 * np.pi)), 0.1)  # the two Gaussians integrate to pi
    told = [each.sentence for each in result.diagnosis]
    assert any("by parallel tempering" in each and "misses part" in each for each in told)
    assert not any("These are the draws of plain NUTS" in each for each in told)
    assert result.nuts is not None


def test_a_bridge_to_the_draws_makes_log_z_more_precise(tmp_path: Path) -> None:
    """In five dimensions each mode is a Gaussian, so that a mixture of two fits exactly."""
    result = tempered(written(tmp_path, TWO_MODES), {"D": 5}, draws=1000, warmup=500)
    log_evidence, below = two_modes_truth(5)
    check_evidence(result, log_evidence, 0.02)
    told = [each.sentence for each in result.diagnosis]
    assert any(each.startswith("Log Z is by bridge sampling") for each in told)
    share = result.fit.expectation(lambda draws: draws["x"][..., 0] < 0)
    assert abs(share.value - below) < 4 * share.mcse


def test_a_bridge_that_contradicts_the_ladders_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def higher(*given: Any, **settings: Any) -> Bridge:
        bridges, evaluations = bridged_in_time(*given, **settings)
        found = bridges.chosen.log_evidence
        chosen = replace(bridges.chosen, log_evidence=found._replace(value=found.value + 2))
        return Bridge(replace(bridges, chosen=chosen), evaluations)

    monkeypatch.setattr("harness.user.parallel.bridged_in_time", higher)
    result = tempered(written(tmp_path, TWO_MODES), {"D": 2})
    (said,) = [each for each in result.diagnosis if "bridge sampling" in each.sentence]
    assert said.severity is Severity.PROBLEM
    check_evidence(result, two_modes_truth(2)[0], 0.2)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 6))
def test_auto_in_ten_dimensions(tmp_path: Path, seed: int) -> None:
    """Collapsed tempering mixes slowly here, and says so."""
    program = written(tmp_path, TWO_MODES)
    result = sample(program, {"D": 10}, seed=seed, engine="stanli", progress=False)
    assert all(each.severity < Severity.PROBLEM for each in result.diagnosis)
    log_evidence, below = two_modes_truth(10)
    check_evidence(result, log_evidence, 0.3)
    share = result.fit.expectation(lambda draws: draws["x"][..., 0] < 0)
    assert abs(share.value - below) < 4 * share.mcse
    if result.method == "parallel_tempering":
        assert result.tempered is not None
        assert any(each.sentence.startswith("Parallel tempering took") for each in result.diagnosis)
