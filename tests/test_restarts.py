"""Runs of which some chains do not get on from where they start."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from harness.engine.nuts import NutsSettings
from harness.engine.program import StanProgram
from harness.engine.restarts import started_anew
from harness.engine.short_nuts import run_short_nuts
from harness.engine.stanli_nuts import run_stanli_nuts
from harness.engine.why_ended import some_finished
from harness.errors import DataError, SamplingError, SomeChainsError
from harness.evidence import expectation
from harness.user import sample, tempered_form
from harness.user.tempered_form import TemperedForm

NARROW = """
parameters {
  real x;
}
model {
  target += abs(x) > 0.05 ? negative_infinity() : normal_lpdf(x | 0.02, 0.01);
}
"""
"""Of random starts between -2 and 2, 100 attempts find no density above zero in .08 of cases."""
FAILS = 8
"""Seed with which one chain of four finds none."""


def failing(times: int, seeds: list[int]) -> Any:
    """Return a run that fails so many times, and notes its seeds."""

    def run(seed: int) -> str:
        seeds.append(seed)
        if len(seeds) <= times:
            raise SomeChainsError(f"run {len(seeds)} failed", f"reason {len(seeds)}")
        return "draws"

    return run


def test_a_run_that_finishes_is_made_once() -> None:
    seeds: list[int] = []
    assert started_anew(failing(0, seeds), 7) == ("draws", "")
    assert seeds == [7]


def test_chains_start_anew_with_other_seeds_and_the_first_reason_is_told() -> None:
    seeds: list[int] = []
    again: list[int] = []
    assert started_anew(failing(2, seeds), 7) == ("draws", "reason 1")
    assert seeds[0] == 7
    assert len(set(seeds)) == 3
    assert started_anew(failing(2, again), 7).made == "draws"
    assert again == seeds


def test_it_gives_up_after_three_runs() -> None:
    with pytest.raises(SomeChainsError, match="run 3 failed"):
        started_anew(failing(3, []), 7)


@pytest.mark.parametrize("kind", [SamplingError, DataError])
def test_other_errors_are_not_tried_again(kind: type[Exception]) -> None:
    seeds: list[int] = []

    def run(seed: int) -> None:
        seeds.append(seed)
        raise kind("no")

    with pytest.raises(kind, match=r"^no$"):
        started_anew(run, 7)
    assert seeds == [7]


@pytest.mark.parametrize(
    ("statuses", "some"),
    [
        ("0, 70, 0, 0", True),
        ("70, 70", False),
        ("0, -9", False),  # another run would take as much memory
        ("0, 74", False),  # and the disk would be as full
        ("0, 0", True),
    ],
)
def test_exit_statuses_tell_whether_some_chains_finished(statuses: str, some: bool) -> None:
    assert some_finished(RuntimeError(f"Error during sampling:\n retcodes=[{statuses}]")) is some


def test_an_error_without_statuses_tells_nothing() -> None:
    assert not some_finished(RuntimeError("something else"))


def program(folder: Path, text: str) -> StanProgram:
    path = folder / "narrow.stan"
    path.write_text(text)
    return StanProgram(path)


def test_stanli_tells_some_chains_from_all(tmp_path: Path) -> None:
    settings = NutsSettings(chains=4, warmup=50, draws=20)
    narrow = program(tmp_path, NARROW)
    with pytest.raises(SomeChainsError) as raised:
        run_stanli_nuts(narrow, {}, settings, FAILS)
    assert raised.value.why.startswith("1 of 4 chains failed")
    run = run_short_nuts(narrow, {}, settings, FAILS)
    assert run.variables["x"].shape == (4, 20)
    nowhere = program(tmp_path, NARROW.replace("0.05", "-1"))
    with pytest.raises(SamplingError) as all_failed:
        run_stanli_nuts(nowhere, {}, settings, FAILS)
    assert not isinstance(all_failed.value, SomeChainsError)


@pytest.mark.parametrize("method", ["nuts", "auto"])
def test_one_chain_without_a_start_does_not_cost_the_others(tmp_path: Path, method: Any) -> None:
    narrow = program(tmp_path, NARROW)
    found = sample(
        narrow.path, method=method, engine="stanli", seed=FAILS, budget=20, progress=False
    )
    said = [each.sentence for each in found.diagnosis if "started anew" in each.sentence]
    assert len(said) == 1
    assert "1 of 4 chains failed" in said[0]
    mean = expectation(found.fit.posterior["x"].to_numpy())
    # The normal is cut at three standard deviations on the right, by .0013 of its mass: its mean
    # moves by .00004, less than a tenth of the error.
    assert abs(mean.value - 0.02) < 4 * mean.mcse + 0.0001


def test_tempered_chains_start_anew_from_other_points(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[Any] = []
    fit: Any = SimpleNamespace(tree=SimpleNamespace(attrs={}))

    def fake(model: Any, form: Any, path: Any, run: Any) -> Any:
        runs.append(run)
        if len(runs) == 1:
            raise SomeChainsError("one failed", "one failed")
        return fit

    monkeypatch.setattr(tempered_form, "sample", fake)
    monkeypatch.setattr(TemperedForm, "form", SimpleNamespace(points=None, program="collapsed"))
    monkeypatch.setattr(TemperedForm, "along", None)
    monkeypatch.setattr(
        tempered_form, "remember", lambda _, findings: fit.tree.attrs.update(f=findings)
    )
    program: Any = SimpleNamespace(compiled={}, engine="stanli", model=None)
    starts = {"x": np.arange(100.0), "s": 10 + np.arange(100.0)}
    path: Any = None
    form = TemperedForm(program, "collapsed_tempering", path, 1)
    made = form.run(starts, NutsSettings(chains=4), 5)
    assert made is fit
    first, second = ([each["x"] for each in run.inits] for run in runs)
    assert first == [0.0, 1.0, 2.0, 3.0]
    assert set(first) != set(second)
    # Values of one starting point stay together.
    assert [each["s"] - each["x"] for each in runs[1].inits] == [10.0] * 4
    assert runs[0].seed == 5 != runs[1].seed
    assert "one failed" in fit.tree.attrs["f"][0].sentence
