"""Plain NUTS runs again with smaller steps or for longer, if that can help."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from stan_density import stanli

from harness.diagnosis import diagnose
from harness.engine.nuts import NutsSettings
from harness.errors import SamplingError
from harness.fit import Fit
from harness.user import sample
from harness.user.clock import Clock
from harness.user.nuts_again import TARGET_ACCEPT, for_longer, with_smaller_steps
from harness.user.prepare import prepare
from harness.user.rounds import doubts_about_draws
from harness.user.steps import Steps
from harness.user.unfinished import Unfinished

assert stanli is not None

# A funnel whose neck steps of usual length hardly reach; its log scale has a known density.
NECK = """
parameters {
  real v;
  real x;
}
model {
  v ~ normal(0, 0.6);
  x ~ normal(0, exp(v));
}
"""
NUTS = NutsSettings(chains=4, warmup=500, draws=500, parallel_chains=1)
AGAIN = "Plain NUTS ran once more"


@pytest.fixture
def steps(tmp_path: Path) -> Iterator[Steps]:
    path = tmp_path / "neck.stan"
    path.write_text(NECK)
    program = prepare(path, {}, "likelihood", (), "stanli", tempered="no")
    with Unfinished(None) as unfinished, Clock(3, show=False) as clock:
        yield Steps(program, clock, NUTS, 1, 2, 60.0, unfinished)


def said(fit: Fit) -> list[str]:
    return [each.sentence for each in diagnose(fit) if AGAIN in each.sentence]


def test_smaller_steps_take_the_place_of_those_that_diverge(steps: Steps) -> None:
    plain = steps.plain()
    count = int(plain.sample_stats["diverging"].sum())
    assert count > 0
    first = plain.gradients
    better = with_smaller_steps(steps, plain)
    assert better.settings["nuts"]["target_accept"] == TARGET_ACCEPT
    assert better.sample_stats["diverging"].sum() < count
    (sentence,) = said(better)
    assert f"because {count} of 2,000 transitions diverged" in sentence
    # What the first run took counts, too.
    leapfrogs = int(better.sample_stats["n_steps"].sum())
    assert better.gradients > first + leapfrogs
    mean = better.expectation(lambda draws: draws["v"])
    assert abs(float(mean.value)) < 4 * float(mean.mcse)


def test_nothing_is_run_without_need(steps: Steps, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = steps.plain()

    def refuse(*_: object) -> Fit:
        raise AssertionError

    monkeypatch.setattr(steps, "plain_again", refuse)
    steps.chosen_steps = True
    assert with_smaller_steps(steps, plain) is plain
    steps.chosen_steps, budget = False, steps.budget
    steps.budget = steps.clock.seconds["nuts"]
    assert with_smaller_steps(steps, plain) is plain
    steps.budget = budget
    stats = plain.tree["sample_stats"].to_dataset()
    diverging = stats["diverging"]
    plain.tree["sample_stats"]["diverging"] = diverging & False
    assert with_smaller_steps(steps, plain) is plain
    plain.tree["sample_stats"]["diverging"] = diverging
    # Chains in different places lack more than smaller steps.
    plain.tree["posterior"]["v"] = plain.posterior["v"] + 10 * plain.posterior["chain"]
    assert with_smaller_steps(steps, plain) is plain
    assert not said(plain)


def test_a_run_that_is_no_better_or_fails_is_told(
    steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = steps.plain()
    count, before = int(plain.sample_stats["diverging"].sum()), plain.gradients
    # As many divergent transitions as before.
    monkeypatch.setattr(steps, "plain_again", lambda nuts, how: steps.plain())
    assert with_smaller_steps(steps, plain) is plain
    (sentence,) = said(plain)
    assert sentence.endswith(f"That did not help: {count} of 2,000 diverged.")
    assert plain.gradients == 2 * before

    def fail(nuts: NutsSettings, how: str) -> Fit:
        raise SamplingError("chain 1 ended")

    again = steps.plain()
    monkeypatch.setattr(steps, "plain_again", fail)
    assert with_smaller_steps(steps, again) is again
    assert said(again)[-1].endswith("That did not help: chain 1 ended.")


def test_a_longer_run_takes_the_place_of_one_with_few_draws(tmp_path: Path) -> None:
    path = tmp_path / "normal.stan"
    path.write_text("parameters { vector[2] x; } model { x ~ normal(0, 1); }")
    program = prepare(path, {}, "likelihood", (), "stanli", tempered="no")
    short = replace(NUTS, warmup=200, draws=80)
    with Unfinished(None) as unfinished, Clock(3, show=False) as clock:
        steps = Steps(program, clock, short, 1, 2, 60.0, unfinished)
        plain = steps.plain()
        (doubt, *_) = doubts_about_draws(plain)
        first = plain.gradients
        longer = for_longer(steps, plain)
        assert not doubts_about_draws(longer)
        assert longer.posterior.sizes["draw"] == 8 * short.draws
        assert longer.gradients > first + int(longer.sample_stats["n_steps"].sum())
        (sentence,) = said(longer)
        assert doubt.sentence.rstrip(".") in sentence
        assert sentence.endswith("That helped: the chains agree and have enough draws.")
        assert for_longer(steps, longer) is longer
        # There is time for twice as long only, and then for none.
        for share, times in ((3.0, 2), (1.9, None)):
            steps.budget = 4 * share * steps.clock.seconds["nuts"]
            kept = for_longer(steps, plain)
            assert (kept is plain) == (times is None)
            if times is not None:
                assert kept.posterior.sizes["draw"] == times * short.draws
        # Chains in different places lack more than draws.
        steps.budget = 60.0
        plain.tree["posterior"]["x"] = plain.posterior["x"] + 10 * plain.posterior["chain"]
        assert for_longer(steps, plain) is plain


def test_auto_keeps_both_runs_until_it_ends(tmp_path: Path) -> None:
    path, out = tmp_path / "neck.stan", tmp_path / "fit.nc"
    path.write_text(NECK)
    settings = {"engine": "stanli", "seed": 1, "warmup": 500, "draws": 500, "progress": False}
    result = sample(path, {}, out=out, budget=20, **settings)  # type: ignore[arg-type]
    plain = result.fit if result.method == "nuts" else result.nuts
    assert plain is not None
    assert plain.settings["nuts"]["target_accept"] == TARGET_ACCEPT
    assert list(tmp_path.glob("*.nc")) == [out]
    chosen = sample(path, {}, target_accept=0.8, budget=20, **settings)  # type: ignore[arg-type]
    plain = chosen.fit if chosen.method == "nuts" else chosen.nuts
    assert plain is not None
    assert plain.settings["nuts"]["target_accept"] == 0.8
    only = sample(path, {}, method="nuts", **settings)  # type: ignore[arg-type]
    assert only.fit.settings["nuts"]["target_accept"] == 0.8
    assert np.all(np.isfinite(only.posterior["v"]))
