"""A tempered run in rounds: when it goes on, what it keeps, and what comes out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from log_gaussian import log_gaussian
from stan_density import stanli
from test_diagnosis import DRAWS, tempered_fit
from test_fit import make_fit
from test_user_sample import BIMODAL, BIMODAL_DATA, bimodal_truth, check_evidence, write

from harness.arrays import FloatArray
from harness.diagnosis import Finding, Severity, diagnose
from harness.engine.compile import compile_programs
from harness.engine.nuts import ADAPTS_METRIC, NutsRun, NutsSettings, run_nuts
from harness.engine.program import StanProgram
from harness.engine.stanli_nuts import run_stanli_nuts
from harness.engine.toolchain import require_cmdstan
from harness.errors import SamplingError
from harness.evidence import LogEvidence
from harness.fit import Fit, continued
from harness.model import Model
from harness.user import sample
from harness.user.rounds import MOST_ROUNDS, Rounds, doubt, in_rounds, severities

assert stanli is not None


def part(start: int, draws: int, *, off: float = 0.0) -> Fit:
    """Some of the draws of a sound tempered fit, moved away from where they should be."""
    whole = tempered_fit()
    fit = whole._with_draws(slice(start, start + draws))
    if off:
        chains = off * np.arange(fit.posterior.sizes["chain"])[:, None, None]
        for group in ("posterior", "extended"):
            fit.tree[group]["x"] = fit.tree[group]["x"] + chains
    return fit


def run_of(
    again: Callable[[Fit, int, int], Fit], first: Fit, *, most_seconds: float = np.inf
) -> Rounds:
    return in_rounds(first, again, first_seconds=1e-6, most_seconds=most_seconds, seed=1)


def test_it_goes_on_until_the_draws_suffice() -> None:
    asked: list[tuple[int, int]] = []

    def again(fit: Fit, draws: int, number: int) -> Fit:
        asked.append((draws, number))
        return part(draws, draws)

    made = run_of(again, part(0, 50))
    assert asked[0] == (50, 2)
    # Each round has as many draws as all before it.
    assert [draws for draws, _ in asked] == [50 * 2**k for k in range(len(asked))]
    assert made.made == made.kept == len(asked) + 1
    assert made.fit.posterior.sizes["draw"] == 50 * 2 ** len(asked)
    assert 1 < made.made < MOST_ROUNDS
    assert severities(diagnose(made.fit)) == (0, 0)
    assert f"went on in {made.made} rounds" in made.findings[0].sentence


def test_a_sound_run_does_not_go_on() -> None:
    def again(fit: Fit, draws: int, number: int) -> Fit:
        raise AssertionError

    made = run_of(again, part(0, DRAWS))
    assert (made.made, made.findings) == (1, [])


def test_it_stops_where_there_is_no_time_or_a_round_fails() -> None:
    def again(fit: Fit, draws: int, number: int) -> Fit:
        raise SamplingError("no")

    first = part(0, 50)
    failed = run_of(again, first)
    assert failed.fit is first
    assert "could not go on after round 1: no" in failed.findings[0].sentence
    assert run_of(again, first, most_seconds=0.0).fit is first


def test_draws_are_judged_in_all_copies() -> None:
    """Chains that only disagree about copies need no more rounds, unless they do in one copy."""
    apart = part(0, DRAWS, off=3.0)
    asked: list[int] = []

    def again(fit: Fit, draws: int, number: int) -> Fit:
        asked.append(number)
        raise SamplingError("no further")

    def run(spread: Callable[[Fit], tuple[Fit, float]]) -> Rounds:
        return in_rounds(apart, again, spread, first_seconds=1e-6, most_seconds=np.inf, seed=1)

    together = part(0, DRAWS)
    made = run(lambda fit: (together, 1.0))
    assert not asked
    assert made.fit is apart  # they are spread once they are complete
    run(lambda fit: (together, 1.02))
    run(lambda fit: (fit, 1.0))
    assert asked == [2, 2]


def test_a_path_without_round_trips_is_left_to_others() -> None:
    stuck = part(0, 50)
    assert stuck.extended is not None
    stuck.tree["extended"]["inv_temp"] = 0 * stuck.extended["inv_temp"] + 0.5

    def again(fit: Fit, draws: int, number: int) -> Fit:
        raise AssertionError

    assert run_of(again, stuck).made == 1


def test_rounds_before_the_run_had_settled_do_not_count() -> None:
    """In the first round each chain is somewhere else."""
    first = part(0, 100, off=5.0)
    made = run_of(lambda fit, draws, number: part(draws, draws), first)
    assert made.kept < made.made
    assert severities(diagnose(made.fit)) < severities(diagnose(first))
    assert "the last" in made.findings[0].sentence


def test_rounds_are_put_one_after_the_other() -> None:
    whole, parts = tempered_fit(), [part(0, 120), part(120, 280)]
    joined = continued(parts, seed=3)
    assert joined.extended is not None
    assert whole.extended is not None
    assert joined.settings["rounds"] == [120, 280]
    for name in ("x", "inv_temp", "log_w1"):
        np.testing.assert_array_equal(joined.extended[name], whole.extended[name][:, :400])
    assert joined.gradients == 2 * whole.gradients  # each part has the attributes of the whole
    exact = whole.first_draws(400)
    assert joined.log_evidence == exact.log_evidence
    # Draws are chosen anew: none from outside of their own chain.
    for chain in range(len(joined.posterior["x"])):
        assert np.isin(joined.posterior["x"][chain], joined.extended["x"][chain]).all()
    assert continued(parts[:1], seed=3) is parts[0]
    plain = [make_fit(extended=False), make_fit(extended=False)]
    twice = continued(plain, seed=1).posterior
    assert twice.sizes["draw"] == 2 * plain[0].posterior.sizes["draw"]


def test_a_fit_whose_groups_have_different_numbers_of_draws_is_kept(tmp_path: Path) -> None:
    fit = make_fit(extended=False)
    tree = fit.tree.copy()
    few = fit.posterior.isel(draw=slice(3))
    groups = {f"/{name}": node.to_dataset() for name, node in tree.children.items()}
    joined = type(tree).from_dict({**groups, "/nuts_posterior": few})
    joined.attrs = tree.attrs
    Fit(joined).save(tmp_path / "fit.nc")
    loaded = Fit.load(tmp_path / "fit.nc")
    assert loaded.tree["nuts_posterior"].to_dataset().identical(few)
    assert loaded.posterior.identical(fit.posterior)


def test_auto_goes_on_in_rounds(tmp_path: Path) -> None:
    """Log Z and the share of a mode by quadrature; a first round of 250 draws is too short."""
    paths = write(tmp_path, "bimodal", BIMODAL, BIMODAL_DATA)
    result = sample(*paths, seed=2, draws=250, engine="stanli", progress=False)
    assert result.method == "collapsed_tempering"
    rounds = result.fit.settings["rounds"]
    assert rounds[0] == 250
    assert len(rounds) > 1
    log_evidence, below = bimodal_truth()
    check_evidence(result, log_evidence, 0.3)
    share, mcse = result.fit.expectation(lambda draws: draws["a"] < 0)
    assert abs(share - below) < 4 * mcse
    assert {"square_a", "y_rep"} <= set(result.posterior)
    result.save(tmp_path / "fit.nc")
    assert Fit.load(tmp_path / "fit.nc").posterior.sizes["draw"] == result.posterior.sizes["draw"]


def by_cmdstan(model: Model, settings: NutsSettings, metric: FloatArray | None) -> NutsRun:
    program = compile_programs([model.program("target")], require_cmdstan())
    return run_nuts(next(iter(program.values())), model.data, settings, 3, inv_metric=metric)


def by_stanli(model: Model, settings: NutsSettings, metric: FloatArray | None) -> NutsRun:
    return run_stanli_nuts(model.program("target"), model.data, settings, 3, inv_metric=metric)


ENGINES = [pytest.param(by_cmdstan, marks=pytest.mark.compiled), by_stanli]
Engine = Callable[[Model, NutsSettings, FloatArray | None], NutsRun]


@pytest.mark.parametrize("run", ENGINES)
@pytest.mark.parametrize("dense", [True, False])
def test_a_given_metric_is_kept(run: Engine, dense: bool) -> None:
    """With variances of the target, the step size is near 1 whatever the target's scales are."""
    model, truth = log_gaussian()
    metric = truth.covariance if dense else np.diag(truth.covariance)
    settings = NutsSettings(chains=2, warmup=200, draws=200)
    made = run(model, settings, np.ascontiguousarray(metric))
    assert np.all((made.step_size > 0.3) & (made.step_size < 2))
    assert made.variables["x"].shape[:2] == (2, 200)
    # Stan makes such a step 30 times as long if it forgets the metric, which is then 0.001.
    wide = run(model, settings, np.full(5, 1e-3))
    assert np.all(wide.step_size > 5)


def test_a_short_warmup_adapts_no_metric(tmp_path: Path) -> None:
    """Standard deviations are 1 and 0.001: steps are as short as the second one in a unit metric.

    CmdStan does the same.  So a run that is made shorter keeps as much warm-up as that takes.
    """
    path = tmp_path / "narrow.stan"
    path.write_text("parameters { vector[2] x; } model { x ~ normal(0, [1, 0.001]); }")

    def step(warmup: int) -> float:
        settings = NutsSettings(chains=2, warmup=warmup, draws=20)
        return float(run_stanli_nuts(StanProgram(path), {}, settings, 3).step_size.max())

    assert step(ADAPTS_METRIC - 1) < 0.003
    # The metric is that of a window of 75 draws, whose variances are at least 0.001 * 5 / 80.
    assert step(ADAPTS_METRIC) > 0.03
    wanted = NutsSettings(warmup=300, draws=500)
    assert (wanted.within(1).warmup, wanted.within(1).draws) == (ADAPTS_METRIC, 125)
    assert NutsSettings(warmup=100).within(1).warmup == 100
    assert NutsSettings(warmup=1000).within(1).warmup == 250


@pytest.mark.compiled
def test_cmdstan_goes_on_with_the_metric(tmp_path: Path) -> None:
    """The same in CmdStan, whose next rounds keep the metric of the draws so far."""
    program = BIMODAL[: BIMODAL.index("generated quantities")]
    paths = write(tmp_path, "bimodal", program, BIMODAL_DATA)
    result = sample(*paths, seed=2, draws=250, engine="cmdstan", progress=False)
    assert result.method == "collapsed_tempering"
    assert len(result.fit.settings["rounds"]) > 1
    log_evidence, _ = bimodal_truth()
    check_evidence(result, log_evidence, 0.3)


def test_of_fits_with_as_many_doubts_the_more_precise_one_is_better() -> None:
    fine, warning, problem = (Finding(each, "") for each in sorted(Severity))
    rough, precise = LogEvidence(1.0, 0.2), LogEvidence(2.0, 0.1)
    ordered = [
        doubt([fine], None),
        doubt([warning, fine], precise),
        doubt([fine, fine, warning], rough),
        doubt([warning], None),
        doubt([warning, warning], precise),
        doubt([problem], precise),
    ]
    assert ordered == sorted(ordered)
    assert len(set(ordered)) == len(ordered)
