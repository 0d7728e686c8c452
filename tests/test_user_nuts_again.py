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
from harness.user.nuts_again import (
    TARGET_ACCEPT,
    for_longer,
    improved,
    with_smaller_steps,
)
from harness.user.nuts_draws import NutsDraws
from harness.user.one_copy import COPIES
from harness.user.prepare import prepare
from harness.user.rounds import doubts_about_draws
from harness.user.steps import LEAST_SHARE, Steps
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
    program = prepare(path, {}, "likelihood", (), "stanli", Clock(1, show=False), tempered="no")
    with Unfinished(None) as unfinished, Clock(3, show=False) as clock:
        yield Steps(program, clock, NUTS, 1, 2, 60.0, unfinished)


def said(draws: NutsDraws) -> list[str]:
    return [each.sentence for each in draws.said]


def again_is(fit: Fit, monkeypatch: pytest.MonkeyPatch, steps: Steps) -> None:
    """Let a further run of plain NUTS make this fit."""

    def run(nuts: NutsSettings, how: str) -> Fit:
        return fit

    monkeypatch.setattr(steps, "plain_again", run)


def refuse(nuts: NutsSettings, how: str) -> Fit:
    raise AssertionError


def in_different_places(plain: Fit, name: str) -> NutsDraws:
    """Draws whose chains lack more than smaller steps or more draws."""
    plain.tree["posterior"][name] = plain.posterior[name] + 10 * plain.posterior["chain"]
    return NutsDraws(plain)


def test_smaller_steps_take_the_place_of_those_that_diverge(steps: Steps) -> None:
    plain = steps.plain()
    count = int(plain.sample_stats["diverging"].sum())
    assert count > 0
    first = plain.gradients
    better = with_smaller_steps(steps, NutsDraws(plain))
    assert better.fit.settings["nuts"]["target_accept"] == TARGET_ACCEPT
    assert better.fit.sample_stats["diverging"].sum() < count
    (sentence,) = said(better)
    assert AGAIN in sentence
    assert f"because {count} of 2,000 transitions diverged" in sentence
    # What the first run took counts, too.
    leapfrogs = int(better.fit.sample_stats["n_steps"].sum())
    assert better.fit.gradients > first + leapfrogs
    mean = better.fit.expectation(lambda draws: draws["v"])
    assert abs(float(mean.value)) < 4 * float(mean.mcse)


def test_nothing_is_run_without_need(steps: Steps, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = steps.plain()
    draws = NutsDraws(plain, seconds=steps.clock.seconds["nuts"])
    monkeypatch.setattr(steps, "plain_again", refuse)
    steps.chosen_steps = True
    assert with_smaller_steps(steps, draws) is draws
    steps.chosen_steps, budget = False, steps.budget
    steps.budget = draws.seconds
    assert with_smaller_steps(steps, draws) is draws
    steps.budget = budget
    stats = plain.tree["sample_stats"].to_dataset()
    diverging = stats["diverging"]
    plain.tree["sample_stats"]["diverging"] = diverging & False
    assert with_smaller_steps(steps, draws) is draws
    plain.tree["sample_stats"]["diverging"] = diverging
    assert with_smaller_steps(steps, in_different_places(plain, "v")).said == ()


def test_draws_of_no_use_are_worth_half_of_the_budget(
    steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four times the first run is at most two fifths of the budget, or half of it."""
    plain = steps.plain()
    ran: list[str] = []

    def run(nuts: NutsSettings, how: str) -> Fit:
        ran.append(how)
        return plain

    monkeypatch.setattr(steps, "plain_again", run)
    seconds = steps.clock.seconds["nuts"]
    steps.budget = 4 * seconds / 0.45
    diverging = plain.sample_stats["diverging"]
    every = diverging.size
    for count, runs in ((every // 100, 0), (every // 100 + 1, 1)):
        chosen = np.arange(every).reshape(diverging.shape) < count
        plain.tree["sample_stats"]["diverging"] = diverging.copy(data=chosen)
        with_smaller_steps(steps, NutsDraws(plain, seconds=seconds))
        assert len(ran) == runs


def test_a_run_that_is_no_better_or_fails_is_told(
    steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = steps.plain()
    draws = NutsDraws(plain)
    count, before = int(plain.sample_stats["diverging"].sum()), plain.gradients
    # As many divergent transitions as before.
    again_is(steps.plain(), monkeypatch, steps)
    kept = with_smaller_steps(steps, draws)
    assert kept.fit is plain
    (sentence,) = said(kept)
    assert sentence.endswith(f"That did not help: {count} of 2,000 diverged.")
    # Where it was counts all the same.
    assert len(steps.modes.other_nuts) == 1
    assert steps.modes.other_nuts[0] is not plain
    assert plain.gradients == 2 * before

    def fail(nuts: NutsSettings, how: str) -> Fit:
        raise SamplingError("chain 1 ended")

    monkeypatch.setattr(steps, "plain_again", fail)
    kept = with_smaller_steps(steps, NutsDraws(steps.plain()))
    assert said(kept) == [
        f"Plain NUTS ran once more with smaller steps (a target acceptance rate of "
        f"{TARGET_ACCEPT}), because {count} of 2,000 transitions diverged. That did not help: "
        "chain 1 ended."
    ]
    whole = improved(steps, steps.plain())
    assert [each.sentence for each in diagnose(whole.fit) if AGAIN in each.sentence] == said(whole)


def test_a_longer_run_takes_the_place_of_one_with_few_draws(tmp_path: Path) -> None:
    path = tmp_path / "normal.stan"
    path.write_text("parameters { vector[2] x; } model { x ~ normal(0, 1); }")
    program = prepare(path, {}, "likelihood", (), "stanli", Clock(1, show=False), tempered="no")
    short = replace(NUTS, warmup=200, draws=80)
    with Unfinished(None) as unfinished, Clock(3, show=False) as clock:
        steps = Steps(program, clock, short, 1, 2, 60.0, unfinished)
        plain = NutsDraws(steps.plain(), seconds=clock.seconds["nuts"])
        (doubt, *_) = doubts_about_draws(plain.fit)
        first = plain.fit.gradients
        longer = for_longer(steps, plain)
        fit = longer.fit
        assert not doubts_about_draws(fit)
        assert fit.posterior.sizes["draw"] == 8 * short.draws
        assert steps.modes.other_nuts == [plain.fit]
        assert fit.gradients > first + int(fit.sample_stats["n_steps"].sum())
        (sentence,) = said(longer)
        assert doubt.sentence.rstrip(".") in sentence
        assert sentence.endswith("That helped: the chains agree and have enough draws.")
        assert for_longer(steps, longer) is longer
        # There is time for twice as long only, and then for none.
        for affordable, times in ((3.0, 2), (1.9, None)):
            # Whatever other runs have taken.
            steps.budget = affordable * plain.seconds / LEAST_SHARE
            kept = for_longer(steps, plain)
            assert (kept is plain) == (times is None)
            if times is not None:
                assert kept.fit.posterior.sizes["draw"] == times * short.draws
        # Chains in different places lack more than draws.
        steps.budget = 60.0
        assert for_longer(steps, in_different_places(plain.fit, "x")).said == ()


def test_what_diverges_rarely_shows_in_a_longer_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It counts all the same, because it has enough draws; then steps are smaller for as long."""
    path = tmp_path / "normal.stan"
    path.write_text("parameters { vector[2] x; } model { x ~ normal(0, 1); }")
    program = prepare(path, {}, "likelihood", (), "stanli", Clock(1, show=False), tempered="no")
    short = replace(NUTS, warmup=200, draws=80)
    runs: list[NutsSettings] = []
    with Unfinished(None) as unfinished, Clock(3, show=False) as clock:
        steps = Steps(program, clock, short, 1, 2, 600.0, unfinished)
        plain = steps.plain()
        again = steps.plain_again

        def with_some_divergent(nuts: NutsSettings, how: str) -> Fit:
            runs.append(nuts)
            fit = again(nuts, how)
            if nuts.target_accept < TARGET_ACCEPT:
                diverging = fit.sample_stats["diverging"]
                some = np.arange(diverging.size).reshape(diverging.shape) < 3
                fit.tree["sample_stats"]["diverging"] = diverging.copy(data=some)
            return fit

        monkeypatch.setattr(steps, "plain_again", with_some_divergent)
        better = improved(steps, plain)
    longer, smaller = runs
    assert (longer.warmup, longer.draws) == (8 * short.warmup, 8 * short.draws)
    assert smaller == replace(longer, target_accept=TARGET_ACCEPT)
    assert better.fit.sample_stats["diverging"].sum() == 0
    assert better.fit.posterior.sizes["draw"] == longer.draws
    assert [each.split("because ")[1] for each in said(better)[1:]] == [
        "3 of 2,560 transitions diverged. That helped: 0 of 2,560 diverged."
    ]
    assert said(better)[0].endswith("That helped: the chains agree and have enough draws.")


# Two funnels that NUTS does not move between, and whose necks usual steps hardly reach.
NECKS = """
parameters {
  real v;
  real x;
  real z;
}
model {
  v ~ normal(0, 0.6);
  x ~ normal(exp(v), exp(v));
  square(z) ~ normal(4, 0.2);
}
"""


def test_chains_in_different_copies_are_spread_before_it_is_asked_what_they_lack(
    tmp_path: Path,
) -> None:
    path = tmp_path / "necks.stan"
    path.write_text(NECKS)
    program = prepare(path, {}, "likelihood", (), "stanli", Clock(1, show=False), tempered="yes")
    with Unfinished(None) as unfinished, Clock(3, show=False) as clock:
        steps = Steps(program, clock, NUTS, 2, 2, 60.0, unfinished)
        plain = steps.plain()
        assert NutsDraws(plain).r_hat > 1.5
        count = int(plain.sample_stats["diverging"].sum())
        assert count > 0
        assert with_smaller_steps(steps, NutsDraws(plain)).said == ()
        better = improved(steps, plain)
    assert better.r_hat < 1.05
    assert better.in_one_copy is not None
    assert better.in_one_copy.copies == better.fit.tree.attrs[COPIES] == 2
    assert better.fit.settings["nuts"]["target_accept"] == TARGET_ACCEPT
    assert better.fit.sample_stats["diverging"].sum() < count
    sentences = [each.sentence for each in diagnose(better.fit)]
    assert sum("copies of the posterior" in each for each in sentences) == 1
    assert sum(AGAIN in each for each in sentences) == len(better.said) > 0
    z = better.fit.posterior["z"].to_numpy()
    assert np.all(np.sum(z < 0, axis=1) == z.shape[1] // 2)


def test_chains_that_do_not_quite_agree_in_one_copy_run_for_longer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In all copies R-hat is less, because the copies are far apart and equally probable."""
    path = tmp_path / "signs.stan"
    path.write_text("parameters { real z; } model { square(z) ~ normal(4, 0.2); }")
    program = prepare(path, {}, "likelihood", (), "stanli", Clock(1, show=False), tempered="yes")
    with Unfinished(None) as unfinished, Clock(3, show=False) as clock:
        steps = Steps(program, clock, NUTS, 1, 2, 60.0, unfinished)
        fit = steps.plain()
        sound = NutsDraws(*steps.in_all_copies(fit))
        assert sound.in_one_copy is not None
        assert for_longer(steps, sound) is sound
        rough = sound._replace(in_one_copy=replace(sound.in_one_copy, r_hat=1.02))
        again_is(fit, monkeypatch, steps)
        (sentence,) = said(for_longer(steps, rough))
    assert "because this was said of it: R-hat in one copy of the posterior is 1.020." in sentence


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
