"""Plain NUTS runs again with smaller steps where transitions diverge, if that can help."""

from __future__ import annotations

from collections.abc import Iterator
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
from harness.user.program import prepare
from harness.user.smaller_steps import TARGET_ACCEPT, with_smaller_steps
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
AGAIN = "ran once more with smaller steps"


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
    count = int(plain.sample_stats["diverging"].sum())
    # As many divergent transitions as before.
    monkeypatch.setattr(steps, "plain_again", lambda nuts: steps.plain())
    assert with_smaller_steps(steps, plain) is plain
    (sentence,) = said(plain)
    assert sentence.endswith(f"which did not help: {count} of 2,000 did.")

    def fail(nuts: NutsSettings) -> Fit:
        raise SamplingError("chain 1 ended")

    again = steps.plain()
    monkeypatch.setattr(steps, "plain_again", fail)
    assert with_smaller_steps(steps, again) is again
    assert said(again)[-1].endswith("which did not help: chain 1 ended.")


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
