"""The number of cores that a run may use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.engine import control_groups
from harness.engine.cores import at_most_cores, cores
from harness.errors import DataError


@pytest.fixture(autouse=True)
def _no_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests may run in a container that has a limit of its own."""
    monkeypatch.setattr(control_groups, "_OWN_GROUP", tmp_path / "none")


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


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({}, 64),
        ({"": "max 100000"}, 64),
        ({"": "200000 100000"}, 2),
        ({"": "250000 100000"}, 3),  # begun cores count
        ({"": "10000 100000"}, 1),
        ({"a/b": "max 100000", "a": "400000 50000"}, 8),  # the group above has the limit
        ({"a/b": "300000 100000", "a": "400000 50000"}, 3),
        ({"a/b/c": "100000 100000"}, 64),  # not ours
        ({"": "what is this"}, 64),
        ({"": "200000 0"}, 64),
    ],
)
def test_a_container_has_the_cores_that_it_is_given(
    limits: dict[str, str], expected: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(64)), raising=False)
    groups, own = tmp_path / "groups", tmp_path / "own"
    own.write_text("3:cpuset:/elsewhere\n0::/a/b\n", encoding="utf-8")
    for name, limit in limits.items():
        (groups / name).mkdir(parents=True, exist_ok=True)
        (groups / name / "cpu.max").write_text(f"{limit}\n", encoding="utf-8")
    (tmp_path / "cpu.max").write_text("100000 100000\n", encoding="utf-8")  # beyond all groups
    monkeypatch.setattr(control_groups, "_GROUPS", groups)
    monkeypatch.setattr(control_groups, "_OWN_GROUP", own)
    assert cores() == expected
    own.unlink()
    assert cores() == 64


def test_no_machine_has_less_than_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert cores() == 1
    with pytest.raises(DataError, match="got 0"), at_most_cores(0):
        pass
