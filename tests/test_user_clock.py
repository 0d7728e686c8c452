"""Steps of a call are timed, because a budget depends on it."""

from __future__ import annotations

import pytest

from harness.user.clock import Clock


def test_steps_that_fail_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """They were left out once, so that a budget was exceeded by what failed."""
    times = iter([0.0, 2.0, 10.0, 13.0])
    monkeypatch.setattr("harness.user.clock.time.perf_counter", lambda: next(times))
    clock = Clock(2, show=False)
    with clock.step("one", "modes"):
        pass
    with pytest.raises(ValueError, match="in vain"), clock.step("again", "modes"):
        raise ValueError("in vain")
    assert clock.seconds == {"modes": 5.0}


def test_steps_are_counted_where_their_number_is_not_known(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A share of some largest number would stay at a third of it in most calls."""
    with Clock(None, show=True) as clock:
        for text in ("plain NUTS", "another"):
            with clock.step(text, text):
                pass
    assert capsys.readouterr().err.splitlines() == ["[1] plain NUTS", "[2] another"]


def test_long_runs_say_how_far_they_are(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every quarter of a minute, off a terminal."""
    now = [0.0]
    monkeypatch.setattr("harness.progress.time.monotonic", lambda: now[0])
    with Clock(2, show=True) as clock:
        with clock.step("plain NUTS", "nuts"):
            for now[0], share in ((0.0, 0.0), (10.0, 0.1), (16.0, 0.2), (20.0, 0.4), (40.0, 0.5)):
                clock.share(share)
        now[0] = 50.0
        with clock.step("another", "other"):
            now[0] = 66.0
            clock.share(1.0)
    assert capsys.readouterr().err.splitlines() == [
        "[1/2] plain NUTS",
        "      20% done, about 64 s left",
        "      50% done, about 40 s left",
        "[2/2] another",
        "      100% done",
    ]
