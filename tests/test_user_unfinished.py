"""A run that has finished is not lost, whatever becomes of the rest of the call."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from harness.cli import main
from harness.diagnosis import Finding, Severity, diagnose
from harness.engine.nuts import NutsSettings
from harness.engine.signals import interrupted_by_signals
from harness.errors import SamplingError
from harness.fit import Fit
from harness.user import UserFit, sample
from harness.user.unfinished import (
    Stage,
    identity,
    not_run_again,
    unfinished_file,
    unfinished_files,
)

PROGRAM = """data {
  real y;
}
parameters {
  real x;
}
model {
  x ~ normal(0, 2);
  y ~ normal(x, 1);
}
"""
DATA = {"y": 1.0}
FEW: dict[str, Any] = {"chains": 2, "warmup": 200, "draws": 600, "seed": 3, "engine": "stanli"}


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "one.stan"
    path.write_text(PROGRAM)
    return path


NUTS = "harness.user.program.UserProgram.plain"
SEARCH = "harness.user.auto.scout_program"


@contextmanager
def failing(error: BaseException, what: str = SEARCH) -> Iterator[None]:
    """Let the search or something else fail."""

    def fails(*_: object, **__: object) -> None:
        raise error

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(what, fails)
        yield


class Made:
    """Counts calls of something."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
        self.number = 0
        module, _, name = what.rpartition(".")
        before = getattr(resolve_name(module), name)

        def counted(*given: Any, **named: Any) -> Any:
            self.number += 1
            return before(*given, **named)

        monkeypatch.setattr(what, counted)


def _without_climbs(findings: Iterable[Finding]) -> list[str]:
    return [each.sentence for each in findings if "climbs" not in each.sentence]


def draws_of(result: UserFit) -> np.ndarray:
    return result.posterior["x"].to_numpy()


def test_a_call_goes_on_from_the_draws_of_one_that_was_interrupted(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "fit.nc"
    kept = unfinished_file(out)
    runs = Made(monkeypatch, NUTS)
    whole = sample(program, DATA, **FEW, progress=False)
    with failing(KeyboardInterrupt()), pytest.raises(KeyboardInterrupt) as stopped:
        sample(program, DATA, **FEW, out=out, progress=False)
    assert str(kept) in stopped.value.__notes__[0]
    assert not out.exists()
    found = diagnose(Fit.load(kept))
    assert any("has not finished" in each.sentence for each in found)
    assert runs.number == 2
    went_on = sample(program, DATA, **FEW, out=out, progress=False)
    assert runs.number == 2
    assert not_run_again(["nuts"]) in went_on.diagnosis
    assert not any("has not finished" in each.sentence for each in went_on.diagnosis)
    assert not kept.exists()
    np.testing.assert_array_equal(draws_of(went_on), draws_of(whole))
    assert went_on.log_evidence is not None
    assert whole.log_evidence is not None
    # How many evaluations pilots and climbs make depends on the time that they take.
    apart = went_on.log_evidence.value - whole.log_evidence.value
    assert abs(apart) < 5 * np.hypot(went_on.log_evidence.mcse, whole.log_evidence.mcse)
    for phase in ("warmup", "sampling"):
        assert went_on.gradients[phase] == whole.gradients[phase] > 0
    assert went_on.timings["nuts"] > 0
    assert not [name for name in Fit.load(out).tree.attrs if "unfinished" in str(name)]


TWO_MODES = """parameters {
  vector[2] x;
}
model {
  x ~ normal(0, 10);
  target += log_mix(0.3, normal_lpdf(x | -6, 0.5), normal_lpdf(x | 6, 0.5)); // temper: yes
}
"""
GENERATED = "harness.user.program.UserProgram.generated"
MODES = "harness.user.mode_tables.mode_table"
COMPARED = "harness.user.against_nuts.AgainstNuts.fit"
ROUNDS = "harness.user.tempered_run.in_rounds"


def fails_to_run(*_: object, **__: object) -> UserFit:
    raise SamplingError("NUTS does not stay in mode 1")


@pytest.mark.parametrize(
    ("method", "stage", "runs", "fails"),
    [
        # Plain NUTS has its quantities by itself: a tempered run is the first to ask for them.
        ("auto", "tempered", "harness.user.tempered_form.TemperedForm.run", GENERATED),
        ("auto", "tempered", "harness.user.tempered_form.TemperedForm.run", COMPARED),
        ("auto", "tempered", "harness.user.tempered_form.TemperedForm.run", ROUNDS),
        ("joint_tempering", "tempered", "harness.user.tempered_form.TemperedForm.run", MODES),
        ("parallel_tempering", "parallel", "harness.user.steps.parallel_tempering", GENERATED),
        ("nested_sampling", "nested", "harness.user.steps.nested_sampling", GENERATED),
    ],
)
def test_no_run_that_has_finished_is_made_again(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    stage: Stage,
    runs: str,
    fails: str,
) -> None:
    program, out = tmp_path / "two.stan", tmp_path / "fit.nc"
    program.write_text(TWO_MODES)
    settings: dict[str, Any] = {**FEW, "method": method, "progress": False, "budget": 60}
    made = Made(monkeypatch, runs)
    if method == "auto":  # NUTS in each mode would be enough
        monkeypatch.setattr("harness.user.each_mode.in_modes_run", fails_to_run)
    stopped: BaseException = KeyboardInterrupt()
    with failing(stopped, fails), pytest.raises(KeyboardInterrupt) as raised:
        sample(program, **settings, out=out)
    kept = unfinished_file(out, stage)
    assert str(kept) in raised.value.__notes__[0]
    before = Fit.load(kept)
    assert any("has not finished" in each.sentence for each in diagnose(before))
    assert made.number
    number = made.number
    went_on = sample(program, **settings, out=out)
    assert made.number == number
    stages: list[Stage] = ["nuts", stage] if method == "auto" else [stage]
    assert not_run_again(stages) in went_on.diagnosis
    assert not any(each.exists() for each in unfinished_files(out))
    # Another whole call may have another path: pilots are in a hurry on a busy machine.  A run that
    # goes on in rounds begins with the draws that were kept.
    drawn = before.raw["x"].to_numpy()
    first = slice(drawn.shape[1])
    np.testing.assert_array_equal(went_on.fit.raw["x"].to_numpy()[:, first], drawn)
    np.testing.assert_array_equal(went_on.fit.drawn_log_weight[:, first], before.drawn_log_weight)
    assert went_on.log_evidence is not None
    assert Fit.load(out).tree.attrs.keys() == went_on.fit.tree.attrs.keys()


@pytest.mark.parametrize(
    "change", [{"seed": 4}, {"draws": 610}, {"target_accept": 0.9}, {"data": {"y": 1.5}}]
)
def test_draws_of_another_call_do_not_count(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any]
) -> None:
    out = tmp_path / "fit.nc"
    with failing(KeyboardInterrupt()), pytest.raises(KeyboardInterrupt):
        sample(program, DATA, **FEW, out=out, progress=False)
    runs = Made(monkeypatch, NUTS)
    settings = {"data": DATA, **FEW, "method": "nuts", **change}
    result = sample(program, **settings, out=out, progress=False)
    assert runs.number == 1
    assert not_run_again(["nuts"]) not in result.diagnosis
    assert not unfinished_file(out).exists()


def test_what_made_draws_is_told_apart_by_every_number() -> None:
    nuts = NutsSettings(chains=2, warmup=20, draws=10)
    data = {"x": np.array([1.0, 2.0]), "n": 2, "pair": {"1": 3, "2": [4.0, 5.0]}}
    made = identity("abc", data, nuts, 1, "stanli")
    assert made == identity("abc", {**data, "x": [1.0, 2.0]}, nuts, 1, "stanli")
    others = [
        identity("xyz", data, nuts, 1, "stanli"),
        identity("abc", data, nuts, 2, "stanli"),
        identity("abc", data, nuts, 1, "cmdstan"),
        identity("abc", data, NutsSettings(chains=2, warmup=20, draws=11), 1, "stanli"),
        identity("abc", {**data, "x": np.array([1.0, np.nextafter(2, 3)])}, nuts, 1, "stanli"),
        identity("abc", {**data, "x": np.array([[1.0, 2.0]])}, nuts, 1, "stanli"),
        identity("abc", {**data, "pair": {"1": 3, "2": [4.0, 6.0]}}, nuts, 1, "stanli"),
        identity("abc", data, nuts, 1, "stanli", {"budget": 10.0}),
        identity("abc", data, nuts, 1, "stanli", {"budget": 11.0}),
    ]
    assert len({made, *others}) == 1 + len(others)


def test_a_damaged_file_does_not_count(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "fit.nc"
    with failing(KeyboardInterrupt()), pytest.raises(KeyboardInterrupt):
        sample(program, DATA, **FEW, out=out, progress=False)
    kept = unfinished_file(out)
    kept.write_bytes(kept.read_bytes()[:-1000])
    runs = Made(monkeypatch, NUTS)
    sample(program, DATA, **FEW, method="nuts", out=out, progress=False)
    assert runs.number == 1
    assert Fit.load(out).posterior.sizes["draw"] == FEW["draws"]


def test_a_fault_of_ours_does_not_cost_the_draws(
    program: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with failing(IndexError("list index out of range")):
        result = sample(program, DATA, **FEW, progress=False)
    assert result.method == "nuts"
    warned = [each for each in result.diagnosis if each.severity == Severity.WARNING]
    assert any("IndexError: list index out of range" in each.sentence for each in warned)
    assert "report this" in caplog.text


def test_what_compiled_code_makes_of_a_signal_still_ends_the_call(program: Path) -> None:
    """It is a SystemError that comes from the signal, and no fault of ours."""
    stopped = SystemError("returned a result with an exception set")
    stopped.__cause__ = KeyboardInterrupt()
    with failing(stopped), pytest.raises(SystemError, match="exception set"):
        sample(program, DATA, **FEW, progress=False)


def test_the_command_says_where_the_draws_are(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "one.json"
    data.write_text(json.dumps(DATA))
    out = tmp_path / "fit.nc"
    arguments = ["sample", str(program), "--data", str(data), "--engine", "stanli"]
    arguments += ["--chains", "2", "--warmup", "200", "--draws", "600", "--out", str(out)]

    def terminated(*_: object, **__: object) -> None:
        signal.raise_signal(signal.SIGTERM)

    with pytest.MonkeyPatch.context() as patched, interrupted_by_signals():
        patched.setattr("harness.user.auto.scout_program", terminated)
        stopped = CliRunner().invoke(main, arguments)
    assert stopped.exit_code == 143
    assert str(unfinished_file(out)) in stopped.stderr
    assert not out.exists()
    runs = Made(monkeypatch, NUTS)
    went_on = CliRunner().invoke(main, [*arguments, "--json"])
    assert went_on.exit_code == 0, went_on.stderr
    assert runs.number == 0
    assert out.exists()
    assert not unfinished_file(out).exists()


def test_the_command_replaces_no_other_file(program: Path, tmp_path: Path) -> None:
    out = tmp_path / "fit.nc"
    unfinished_file(out).write_text("notes")
    refused = CliRunner().invoke(main, ["sample", str(program), "--out", str(out)])
    assert refused.exit_code == 1
    assert "fit.unfinished.nc exists and is not a fit" in refused.stderr
    assert unfinished_file(out).read_text() == "notes"
