"""Work that may never return is left behind, and what was finished before stays."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from stan_density import stanli
from test_user_sample import BIMODAL, BIMODAL_DATA

from harness.engine import short_nuts
from harness.engine.nuts import NutsRun, NutsSettings
from harness.engine.patience import NeverReturned, within
from harness.engine.program import StanProgram
from harness.fit import Fit
from harness.user import sample, steps
from harness.user.tempered_form import TemperedForm

assert stanli is not None

WITH_A_LOOP = BIMODAL.replace("model {", "model { real z = 0; while (z < 1) z += 1;", 1)


@pytest.fixture
def never() -> Iterator[threading.Event]:
    """What is waited for; it comes when the test is over, so that no thread stays."""
    event = threading.Event()
    yield event
    event.set()


def test_work_that_returns_is_returned() -> None:
    assert within(30, lambda: 3, "a sum") == 3
    assert within(30, lambda: None, "nothing") is None

    def fails() -> int:
        raise ValueError("for some reason")

    with pytest.raises(ValueError, match="for some reason"):
        within(30, fails, "a sum")


def test_work_that_does_not_return_is_left_behind(never: threading.Event) -> None:
    with pytest.raises(NeverReturned, match=r"a sum did not end within 0\.1 s: a solver or a loop"):
        within(0.1, never.wait, "a sum")


def test_short_runs_of_a_program_with_a_loop_end(
    never: threading.Event, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def stuck(*_: Any, **options: Any) -> NutsRun:
        never.wait(60)
        raise AssertionError

    monkeypatch.setattr(short_nuts, "run_stanli_nuts", stuck)
    (tmp_path / "target.stan").write_text(WITH_A_LOOP)
    program, settings = StanProgram(tmp_path / "target.stan"), NutsSettings()
    with pytest.raises(NeverReturned, match=r"a short run of NUTS did not end within 0\.3 s"):
        short_nuts.run_short_nuts(program, BIMODAL_DATA, settings, 1, most_seconds=0.1)


def test_a_tempered_run_that_does_not_return_costs_no_draws_of_nuts(
    never: threading.Event, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked = []

    def stuck(self: TemperedForm, *arguments: Any) -> Fit:
        asked.append(arguments[-1])
        never.wait(300)
        raise AssertionError

    monkeypatch.setattr(TemperedForm, "run", stuck)
    monkeypatch.setattr(steps, "LATE", 0.02)
    path = tmp_path / "bimodal.stan"
    path.write_text(WITH_A_LOOP)
    result = sample(path, BIMODAL_DATA, seed=1, engine="stanli", budget=12, progress=False)
    assert asked == [None]  # nothing that it would print to
    assert result.nuts is not None
    assert result.method == "parallel_tempering"
    told = [each.sentence for each in result.diagnosis if "did not end within" in each.sentence]
    assert len(told) == 1
    assert "a tempered run" in told[0]
