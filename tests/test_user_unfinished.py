"""A run of NUTS that has finished is not lost, whatever becomes of the rest of the call."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from harness.cli import main
from harness.diagnosis import Severity, diagnose
from harness.engine.nuts import NutsSettings
from harness.engine.signals import interrupted_by_signals
from harness.fit import Fit
from harness.user import UserFit, sample
from harness.user.program import UserProgram
from harness.user.unfinished import TAKEN_UP, identity, unfinished_file

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


class Runs:
    """Counts runs of plain NUTS."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.number = 0
        plain = UserProgram.plain

        def counted(self_: UserProgram, nuts: NutsSettings, seed: int) -> Fit:
            self.number += 1
            return plain(self_, nuts, seed)

        monkeypatch.setattr(UserProgram, "plain", counted)


@contextmanager
def failing(error: BaseException) -> Iterator[None]:
    """Let the search fail."""

    def fails(*_: object, **__: object) -> None:
        raise error

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("harness.user.auto.scout_program", fails)
        yield


def draws_of(result: UserFit) -> np.ndarray:
    return result.posterior["x"].to_numpy()


def test_a_call_goes_on_from_the_draws_of_one_that_was_interrupted(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "fit.nc"
    kept = unfinished_file(out)
    runs = Runs(monkeypatch)
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
    assert TAKEN_UP in went_on.diagnosis
    assert not any("has not finished" in each.sentence for each in went_on.diagnosis)
    assert not kept.exists()
    np.testing.assert_array_equal(draws_of(went_on), draws_of(whole))
    assert went_on.log_evidence is not None
    assert whole.log_evidence is not None
    assert went_on.log_evidence.value == whole.log_evidence.value
    assert went_on.gradients == whole.gradients
    assert went_on.timings["nuts"] > 0
    assert not [name for name in Fit.load(out).tree.attrs if "unfinished" in str(name)]


@pytest.mark.parametrize(
    "change", [{"seed": 4}, {"draws": 610}, {"target_accept": 0.9}, {"data": {"y": 1.5}}]
)
def test_draws_of_another_call_do_not_count(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any]
) -> None:
    out = tmp_path / "fit.nc"
    with failing(KeyboardInterrupt()), pytest.raises(KeyboardInterrupt):
        sample(program, DATA, **FEW, out=out, progress=False)
    runs = Runs(monkeypatch)
    settings = {"data": DATA, **FEW, "method": "nuts", **change}
    result = sample(program, **settings, out=out, progress=False)
    assert runs.number == 1
    assert TAKEN_UP not in result.diagnosis
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
    runs = Runs(monkeypatch)
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
    runs = Runs(monkeypatch)
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
