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
