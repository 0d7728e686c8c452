"""A real Dask cluster on this machine: the same tables as without it, and no loss with a worker."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pytest
from survival_world import TinyWorld, finish, until

from harness.experiment.workers import DaskWorkers

pytest.importorskip("distributed")


class Cluster:
    """A scheduler and worker processes of one thread each, without nannies."""

    def __init__(self, world: TinyWorld, environment: dict[str, str], workers: int) -> None:
        self.folder = world.folder
        self.environment = {**environment, "TINY_SECONDS": "0.1"}
        self.file = world.folder / "scheduler.json"
        self.processes: list[subprocess.Popen[bytes]] = []
        self.start("scheduler", "--host", "127.0.0.1", "--port", "0")
        until(self.is_written, "the scheduler")
        self.address = str(json.loads(self.file.read_text())["address"])
        for _ in range(workers):
            self.start_worker()
        until(lambda: self.log().count("Registered to") == workers, "its workers")

    def is_written(self) -> bool:
        """Tell whether the scheduler has said where it is, to the end."""
        return self.file.is_file() and self.file.read_text().rstrip().endswith("}")

    def start(self, what: str, *options: str) -> None:
        command = [sys.executable, "-m", "dask", what, *options, "--no-dashboard"]
        with (self.folder / f"{what}.log").open("ab") as log:
            process = subprocess.Popen(
                [*command, "--scheduler-file", str(self.file)],
                env=self.environment,
                cwd=self.folder,
                stderr=log,
                stdout=log,
            )
        self.processes.append(process)

    def start_worker(self) -> None:
        self.start("worker", "--no-nanny", "--nthreads", "1", "--host", "127.0.0.1")

    def log(self) -> str:
        path = self.folder / "worker.log"
        return path.read_text() if path.exists() else ""


@contextlib.contextmanager
def cluster_of(
    world: TinyWorld, environment: dict[str, str], workers: int = 2
) -> Iterator[Cluster]:
    cluster = Cluster.__new__(Cluster)
    cluster.processes = []
    try:
        Cluster.__init__(cluster, world, environment, workers)
        yield cluster
    finally:
        for process in reversed(cluster.processes):
            process.kill()
            process.wait()


@contextlib.contextmanager
def held_run(
    world: TinyWorld,
) -> Iterator[tuple[Cluster, subprocess.Popen[str], int, int]]:
    """Start the smoke grid on a cluster whose two workers are held in their first fits.

    So neither can do the grid alone.  Yields the cluster, the run, and the workers' processes:
    that of ``cluster.processes[1]`` and the other.
    """
    with (
        cluster_of(world, {**world.environment, "TINY_GATE": str(world.gate)}) as cluster,
        world.start(
            "run", "tiny", "--profile", "smoke", "--store", world.store, "--scheduler",
            cluster.address, "--json",
        ) as run,
    ):  # fmt: skip
        one, other = (process.pid for process in cluster.processes[1:])
        until(lambda: {pid for _, pid, _ in world.executed()} == {one, other}, "both")
        yield cluster, run, one, other


def test_a_cluster_gives_the_same_table_and_survives_its_worker(
    tmp_path: Path, undisturbed: TinyWorld
) -> None:
    """One of two workers is killed in the middle; only what it was doing runs again.

    Both have made three fits that are in the store, and are held in their fourth.  The worker that
    dies made the last three.  Were one of these still held there for the run, the worker that takes
    its place would begin with it, for it was the first to be sent out.
    """
    world = TinyWorld(tmp_path / "tiny")
    with held_run(world) as (cluster, run, dying, lasting):
        world.permit(lasting, 3)
        until(lambda: len(world.records()) == 3, "three fits")
        world.permit(dying, 3)
        until(lambda: len(world.records()) == 6, "six fits")
        until(lambda: len(world.executed()) == 8, "both fourth fits to begin")
        finished = set(world.records())
        (in_hand,) = {seed for seed, pid, _ in world.executed() if pid == dying} - finished
        cluster.processes[1].kill()
        cluster.processes[1].wait()
        cluster.start_worker()
        until(lambda: world.executed()[-1][1] not in (dying, lasting), "its successor")
        world.open_gate()
        result = finish(run)
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["tasks"]["tiny"] == {"finished": 24}
    once = Counter(dict.fromkeys(world.records(), 1))
    assert world.times_sampled() == once
    assert world.times_executed() == once + Counter([in_hand])
    assert world.results() == undisturbed.results()


@pytest.mark.slow
def test_a_worker_that_dies_at_full_swing_takes_no_finished_fit_along(
    tmp_path: Path, undisturbed: TinyWorld
) -> None:
    """Only what was not yet in the store may be made again: no more than the run had sent out."""
    world = TinyWorld(tmp_path / "tiny")
    with held_run(world) as (cluster, run, dying, _):
        world.open_gate()
        until(lambda: len(world.fits("task.json")) >= 5, "five tasks")
        finished = set(world.records())
        cluster.processes[1].kill()
        result = finish(run)
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["tasks"]["tiny"] == {"finished": 24}
    executed = world.times_executed()
    assert {executed[seed] for seed in finished} == {1}
    again = {seed for seed, times in executed.items() if times > 1}
    assert again <= {seed for seed, pid, _ in world.executed() if pid == dying}
    # A slot has one job that runs and one that waits.
    assert sum(executed.values()) <= 24 + 4
    assert world.results() == undisturbed.results()


def test_a_scheduler_that_dies_stops_the_run(tmp_path: Path, undisturbed: TinyWorld) -> None:
    """No task is blamed for it, and the same command without a cluster goes on."""
    world = TinyWorld(tmp_path / "tiny")
    options = ("run", "tiny", "--profile", "smoke", "--store", world.store)
    with (
        cluster_of(world, world.environment, workers=1) as cluster,
        world.start(*options, "--scheduler", cluster.address) as run,
    ):
        until(lambda: len(world.fits("task.json")) >= 5, "five tasks")
        cluster.processes[0].kill()
        result = finish(run)
    assert result.returncode == 1, result.stderr
    finished = set(world.records())
    last = result.stderr.splitlines()[-2:]
    assert last == [
        f"harness: tiny: the Dask cluster is gone; {len(finished)} of 24 fits are in "
        f"{world.store}.",
        "Run the same command again to continue.",
    ]
    assert "Traceback" not in result.stderr, result.stderr
    assert world.failures() == {}
    again = world.invoke(*options, "--workers", 1)
    assert again.exit_code == 0, (again.stderr, world.failures())
    assert all(world.times_executed()[seed] == 1 for seed in finished)
    assert world.results() == undisturbed.results()


@pytest.mark.parametrize(
    ("status", "error", "raised"),
    [
        ("error", MemoryError("the worker was killed"), MemoryError),
        ("pending", OSError("the connection was closed"), asyncio.CancelledError),
        ("finished", TimeoutError("no answer"), asyncio.CancelledError),
    ],
)
def test_a_lost_cluster_is_not_the_fault_of_a_job(
    status: str, error: Exception, raised: type[BaseException]
) -> None:
    """What fails is either the job or the way to it, and only the job's own errors are its."""

    async def gather(_: object, *, asynchronous: bool) -> None:
        assert asynchronous
        raise error

    released: list[str] = []
    sent = mock.Mock(status=status, release=lambda: released.append("job"))
    workers = object.__new__(DaskWorkers)
    workers._client, workers._sent = SimpleNamespace(gather=gather), set()
    with pytest.raises(raised):
        asyncio.run(workers._collect(sent))
    assert released == ["job"]


def test_no_scheduler_is_one_line(tmp_path: Path) -> None:
    world = TinyWorld(tmp_path / "tiny")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
        result = world.call("run", "tiny", "--store", world.store, "--scheduler", address)
    assert result.returncode == 1
    assert result.stderr.startswith(f"harness: there is no Dask scheduler at {address}")
    assert len(result.stderr.splitlines()) == 1, result.stderr


@pytest.mark.compiled
@pytest.mark.slow
def test_mixture_on_a_cluster(tmp_path: Path, cmdstan_home: Path) -> None:
    """Programs go as text to a machine with an empty cache, and are compiled once each."""
    world = TinyWorld(tmp_path / "world")
    cache = tmp_path / "cache"
    environment = {**os.environ, "CMDSTAN": str(cmdstan_home)}
    command = [sys.executable, "-m", "harness", "run", "mixture", "--profile", "smoke"]

    def run(store: Path, *options: str) -> bytes:
        result = subprocess.run(
            [*command, "--store", str(store), *options],
            env=environment,
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )
        assert result.returncode == 0, result.stderr
        return (store / "mixture" / "tables" / "rmse.csv").read_bytes()

    here = run(tmp_path / "here")
    with cluster_of(world, {**environment, "HARNESS_CACHE": str(cache)}) as cluster:
        there = run(tmp_path / "there", "--scheduler", cluster.address)
    assert there == here
    made = [path for path in (cache / "programs").iterdir() if path.is_dir()]
    assert sorted(path.name for folder in made for path in folder.glob("*.stan")) == [
        "pseudo_extended.stan",
        "target.stan",
    ]
