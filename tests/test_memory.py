"""A program that needs more memory than there is."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from harness.engine import control_groups, memory
from harness.engine.batched import BatchedDensity
from harness.engine.instances import Instances
from harness.engine.memory import memory_left, within_memory
from harness.engine.program import StanProgram
from harness.engine.stan_library import StanInstance
from harness.engine.stan_source import compiling_helps
from harness.errors import DataError, NotEnoughMemory
from harness.user import sample

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="limits are Linux's")

# Each time a random number decides, stanli keeps a copy of all values of above.
COUNTS = """
data { int N; vector[N] y; }
parameters { real m; }
model { y ~ normal(m, 1); m ~ normal(0, 1); }
generated quantities {
  vector[N] again;
  int above = 0;
  for (n in 1:N) {
    again[n] = normal_rng(m, 1);
    if (again[n] > y[n]) {
      above += 1;
    }
  }
}
"""


def _left(monkeypatch: pytest.MonkeyPatch, megabytes: float) -> None:
    monkeypatch.setattr(memory, "memory_left", lambda: megabytes * 1e6)


@on_linux
def test_an_allocation_that_needs_more_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    _left(monkeypatch, 500)
    with within_memory() as most:
        assert most == pytest.approx(0.8 * 500e6)
        assert np.ones(10_000_000).sum() == 1e7  # 80 MB
        with pytest.raises(MemoryError):
            np.ones(60_000_000)
    assert np.ones(60_000_000).sum() == 6e7


@on_linux
def test_a_limit_ends_with_its_block(monkeypatch: pytest.MonkeyPatch) -> None:
    import resource

    before = resource.getrlimit(resource.RLIMIT_AS)
    _left(monkeypatch, 500)
    with pytest.raises(ValueError, match="inside"), within_memory(), within_memory():
        raise ValueError("inside")
    assert resource.getrlimit(resource.RLIMIT_AS) == before


def test_there_is_no_limit_where_nothing_is_known(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(memory, "_OF_MACHINE", tmp_path / "none")
    monkeypatch.setattr(control_groups, "_OWN_GROUP", tmp_path / "none")
    assert memory_left() == np.inf
    with within_memory() as most:
        assert most == np.inf


def test_the_least_of_the_machine_and_its_groups_counts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    machine, own, group = tmp_path / "meminfo", tmp_path / "own", tmp_path / "groups" / "a"
    machine.write_text("MemTotal: 9000 kB\nMemAvailable: 5000 kB\n", encoding="utf-8")
    own.write_text("0::/a\n", encoding="utf-8")
    group.mkdir(parents=True)
    monkeypatch.setattr(memory, "_OF_MACHINE", machine)
    monkeypatch.setattr(control_groups, "_GROUPS", tmp_path / "groups")
    monkeypatch.setattr(control_groups, "_OWN_GROUP", own)
    assert memory_left() == 5000 * 1024
    (group / "memory.max").write_text("max\n", encoding="utf-8")
    (group / "memory.current").write_text("1000\n", encoding="utf-8")
    assert memory_left() == 5000 * 1024
    (group / "memory.max").write_text("3000\n", encoding="utf-8")
    assert memory_left() == 2000
    (group / "memory.current").write_text("4000\n", encoding="utf-8")
    assert memory_left() == 0


class _Source:
    """Makes as many instances as there is memory for, each of them only its number."""

    def __init__(self, room: int) -> None:
        self.room, self.made = room, 0

    def instance(self) -> StanInstance:
        if self.made >= self.room:
            raise NotEnoughMemory("no memory")
        self.made += 1
        return cast(StanInstance, self.made)


def _instances(room: int) -> Instances:
    source = _Source(room)
    first: Any = SimpleNamespace(source=source)
    return Instances(first)


def test_where_there_is_no_memory_for_another_one_it_is_waited_for() -> None:
    instances = _instances(room=1)
    first, second = instances.take(), instances.take()
    assert instances.one_more() is None
    taken: list[StanInstance] = []
    waiting = threading.Thread(target=lambda: taken.append(instances.take()))
    waiting.start()
    waiting.join(0.2)
    assert not taken
    instances.put_back(second)
    waiting.join(10)
    assert taken == [second]
    instances.put_back(first)
    assert instances.one_more() is first


def test_where_there_will_be_none_nobody_waits() -> None:
    instances = _instances(room=0)
    instances.take()
    failed: list[Exception] = []

    def take() -> None:
        try:
            instances.take()
        except NotEnoughMemory as error:
            failed.append(error)

    waiting = threading.Thread(target=take)
    waiting.start()
    waiting.join(0.2)
    assert waiting.is_alive()
    instances.lose(1)  # the only one, for which the other thread waits
    waiting.join(10)
    assert len(failed) == 1


def test_other_errors_are_raised() -> None:
    class Refuses(_Source):
        def instance(self) -> StanInstance:
            raise DataError("refused")

    first: Any = SimpleNamespace(source=Refuses(1))
    instances = Instances(first)
    instances.take()
    for _ in range(2):
        with pytest.raises(DataError, match="refused"):
            instances.take()


@on_linux
def test_a_program_that_needs_more_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The memory that it takes grows with the square of the data: 1 GB here."""
    pytest.importorskip("stanli")
    path = tmp_path / "counts.stan"
    path.write_text(COUNTS, encoding="utf-8")
    _left(monkeypatch, 400)
    data = {"N": 4000, "y": np.zeros(4000)}
    with pytest.raises(DataError) as refused:
        sample(path, data, seed=1, engine="stanli", progress=False)
    assert str(refused.value) == (
        f"{path}: with these data it needs more memory than the 0.3 GB that are free; with "
        "--engine cmdstan it may need less"
    )


@on_linux
def test_draws_are_the_same_with_fewer_instances(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("stanli")
    path = tmp_path / "counts.stan"
    path.write_text(COUNTS, encoding="utf-8")
    data = {"N": 3, "y": np.zeros(3)}
    points = np.linspace(-1, 1, 64)[:, None]
    made = []
    for full in (False, True):
        density = BatchedDensity(StanProgram(path), data, threads=4)
        if full:
            _left(monkeypatch, 0)
        made.append((*density(points), density.constrain(points, seed=1)["above"]))
    for one, other in zip(*made, strict=True):
        np.testing.assert_array_equal(one, other)


def test_compiling_helps_where_there_is_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.engine.stan_source.why_no_compiler", lambda: None)
    assert compiling_helps(NotEnoughMemory("no memory"))
    monkeypatch.setattr("harness.engine.stan_source.why_no_compiler", lambda: "there is none")
    assert not compiling_helps(NotEnoughMemory("no memory"))
