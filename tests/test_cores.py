"""The number of cores that a run may use."""

from __future__ import annotations

import os

import pytest

from harness.engine.cores import at_most_cores, cores
from harness.errors import DataError


def test_all_cores_or_fewer(monkeypatch: pytest.MonkeyPatch) -> None:
    # Of a larger machine: a process may be bound to some of its cores.
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {1, 2, 5, 7}, raising=False)
    assert cores() == 4
    with at_most_cores(2):
        assert cores() == 2
        with at_most_cores(8):
            assert cores() == 4
        assert cores() == 2
    assert cores() == 4


def test_no_machine_has_less_than_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert cores() == 1
    with pytest.raises(DataError, match="got 0"), at_most_cores(0):
        pass
