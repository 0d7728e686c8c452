"""Short runs of NUTS: their draws, from near and far starting points, and what they cost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from stan_density import stanli

from harness.engine.batched import BatchedDensity
from harness.engine.nuts import NutsSettings
from harness.temper import tempered_model
from harness.user import short
from harness.user.short import ShortRuns

assert stanli is not None
# Modes at -8 and 8 with standard deviations 1: Stan's own starting points lie within 2.
PROGRAM = """
data { real y; }
parameters { real<lower=-40> x; }
model { y ~ normal(abs(x), 1); }
"""


def runs(folder: Path, program: str = PROGRAM, most_seconds: float = 60) -> ShortRuns:
    path = folder / "two.stan"
    path.write_text(program, encoding="utf-8")
    if program == PROGRAM:
        model = tempered_model(path, {"y": 8.0})
    else:  # without data
        model = tempered_model(path, {}, what="all")
    density = BatchedDensity(model.program("target"), model.data)
    return ShortRuns(model, density, most_seconds=most_seconds, seed=1, far_seed=2)


def test_draws_are_on_the_unconstrained_scale_and_counted(tmp_path: Path) -> None:
    both = runs(tmp_path)
    x = np.exp(both.near[:, 0]) - 40
    assert both.near.shape == (len(x), 1)
    # Every draw lies within six standard deviations of a mode.
    assert np.all(np.minimum(np.abs(x - 8), np.abs(x + 8)) < 6)
    alone = both.gradients
    assert alone >= len(x)
    assert len(both.wide) > len(both.near)
    np.testing.assert_array_equal(both.wide[: len(x)], both.near)
    assert both.gradients > alone


def test_far_runs_may_be_shorter_than_near_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where a gradient is slower the second time that it is timed."""
    lengths = iter((250, 203, 201, 50))

    def shorter(settings: NutsSettings, density: BatchedDensity, seconds: float) -> NutsSettings:
        return replace(settings, draws=next(lengths))

    monkeypatch.setattr(short, "affordable", shorter)
    both = runs(tmp_path)
    chains = len(both.near) // 250
    # All of the first far chains reach a mode; of those from 160 on some may not.
    assert len(both.wide) >= chains * (250 + 203 + 201)


def test_there_are_fewer_chains_where_a_gradient_takes_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = runs(tmp_path).near
    # The shortest run of 16 chains has 213 iterations of 32 gradients each: 150 of warm-up, and 63.
    monkeypatch.setattr(short, "seconds_a_gradient", lambda _: 60 / (8 * 213 * 32))
    monkeypatch.setattr(short, "chains_at_once", lambda _: 1)
    assert 2 * len(runs(tmp_path).near) == len(whole)
    monkeypatch.setattr(short, "seconds_a_gradient", lambda _: 1.0)
    assert 4 * len(runs(tmp_path).near) == len(whole)


def test_nothing_starts_far_out_if_the_time_is_over(tmp_path: Path) -> None:
    late = runs(tmp_path, most_seconds=0.0)
    np.testing.assert_array_equal(late.wide, late.near)


def test_starting_points_lie_far_out_too(tmp_path: Path) -> None:
    """A Gaussian that is fitted to the draws then has all modes within it."""
    far = runs(
        tmp_path,
        "parameters { vector[2] x; }\n"
        "model { target += log_sum_exp({-dot_self(x), -dot_self(x - 30), -dot_self(x + 30)}); }\n",
    )
    assert np.all(np.abs(far.near) < 10)
    for well in (-30, 0, 30):
        assert np.any(np.abs(far.wide - well).max(axis=1) < 5)


def test_chains_that_end_far_below_the_others_do_not_count(tmp_path: Path) -> None:
    """On a plateau 100 nats below the mode chains stay where they start."""
    far = runs(
        tmp_path,
        "parameters { real x; }\n"
        "model { target += log_sum_exp(-0.5 * square(x), -100 - 0.5 * square(x / 1e6)); }\n",
    )
    assert np.all(np.abs(far.wide) < 7)
