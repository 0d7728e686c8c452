"""Kill, interrupt and race real runs of the tiny experiment: nothing finished is lost or redone."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from survival_method import CHILD
from survival_world import (
    TinyWorld,
    children_of_tasks,
    descendants_with,
    end_watchers,
    finish,
    started,
    until,
)

from harness.engine.watcher import lives
from harness.experiment.left_running import marked_run


@pytest.fixture
def tiny(tmp_path: Path) -> TinyWorld:
    return TinyWorld(tmp_path / "tiny")


@pytest.mark.slow
def test_ten_kills_change_nothing(tiny: TinyWorld, undisturbed: TinyWorld) -> None:
    """A kill after each task or two, at a random moment; some before a task has begun."""
    random_moments = random.Random(20)  # noqa: S311 - moments, no secrets
    finished: set[int] = set()
    for _ in range(10):
        done_before = tiny.times_executed()
        with tiny.start("quick-run", tiny.store, 2, TINY_SECONDS="0.15") as run:
            more = len(finished) + random_moments.randint(0, 1)
            until(lambda n=more: len(tiny.fits("task.json")) >= n, "tasks")  # type: ignore[misc]
            time.sleep(random_moments.uniform(0, 0.1))
            run.kill()
            run.communicate()
        again = {seed for seed, times in tiny.times_executed().items() if times > done_before[seed]}
        assert not again & finished
        finished = set(tiny.records())
    assert 3 < len(finished) < 24
    executed = tiny.times_executed()
    tiny.quick_run()
    assert all(tiny.times_executed()[seed] == executed[seed] for seed in finished)
    assert tiny.results() == undisturbed.results()
    assert tiny.left_overs() == []


@pytest.mark.parametrize("workers", [2, 4])
def test_results_do_not_depend_on_the_number_of_workers(
    tiny: TinyWorld, undisturbed: TinyWorld, workers: int
) -> None:
    tiny.quick_run(workers)
    assert tiny.results() == undisturbed.results()
    assert set(tiny.times_executed().values()) == {1}


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_a_run_that_goes_on_later(
    tiny: TinyWorld, undisturbed: TinyWorld, sent: signal.Signals
) -> None:
    options = ("run", "tiny", "--profile", "smoke", "--workers", 2, "--store", tiny.store)
    with tiny.start(*options, TINY_SECONDS="0.2") as run:
        until(lambda: len(tiny.records()) >= 3, "three finished tasks")
        run.send_signal(sent)
        result = finish(run)  # fails long before the work would have been done
    assert result.returncode == 128 + sent
    finished = tiny.times_executed().keys() & tiny.records().keys()
    assert re.search(
        rf"tiny: stopped with {len(finished)} of 24 fits in {tiny.store}; run the same command "
        "again to continue",
        result.stderr,
    )
    assert "Traceback" not in result.stderr
    tiny.quick_run()
    assert all(tiny.times_executed()[seed] == 1 for seed in finished)
    assert tiny.results() == undisturbed.results()


def test_the_second_of_two_runs_says_so(tiny: TinyWorld, undisturbed: TinyWorld) -> None:
    with tiny.start("quick-run", tiny.store, 2, TINY_GATE=str(tiny.gate)) as first:
        until(lambda: bool(tiny.executed()), "a task of the first run, which is held in it")
        second = tiny.call("run", "tiny", "--profile", "smoke", "--store", tiny.store)
        assert second.returncode == 1
        assert second.stderr.splitlines() == [
            f"harness: another run of tiny is writing to {tiny.store}; wait for it to end, or name "
            "another folder with --store"
        ]
        tiny.open_gate()
        assert finish(first).returncode == 0
    assert set(tiny.times_executed().values()) == {1}
    assert tiny.results() == undisturbed.results()


def test_processes_do_python_tasks_and_end_with_a_killed_run(tiny: TinyWorld) -> None:
    """Each has one thread for NumPy; none waits for ever for a run that is gone."""
    with tiny.start(
        "run", "tiny", "--profile", "quick", "--only", "key=process", "--workers", 2,
        "--store", tiny.store, TINY_SECONDS="0.5",
    ) as run:  # fmt: skip
        until(lambda: len(tiny.executed()) >= 2, "tasks in processes")
        assert {threads for _, _, threads in tiny.executed()} == {"1"}
        workers = psutil.Process(run.pid).children(recursive=True)
        assert {pid for _, pid, _ in tiny.executed()} <= {worker.pid for worker in workers}
        run.kill()
        run.communicate()
    _, alive = psutil.wait_procs(workers, timeout=10)
    assert alive == []


def test_what_a_killed_run_left_ends_before_its_tasks_run_again(
    tiny: TinyWorld, undisturbed: TinyWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    """If what waits for the end of a run is killed before it, processes outlive the run."""
    left: list[psutil.Process] = []
    other = subprocess.Popen(
        [sys.executable, "-c", CHILD],
        env={**os.environ, "HARNESS_RUN": "0" * 32},
    )
    try:
        with tiny.start("quick-run", tiny.store, 2, TINY_CHILD="yes") as run:
            until(lambda: len(children_of_tasks(run.pid)) == 2, "a process of each of two tasks")
            left = children_of_tasks(run.pid)
            end_watchers(run.pid)
            run.kill()
            run.communicate()
        assert [lives(process) for process in left] == [True, True]
        tiny.quick_run()
        assert "tiny: ended 2 processes that a killed run had left" in capsys.readouterr().err
        assert [lives(process) for process in left] == [False, False]
        assert other.poll() is None
    finally:
        for process in left:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        other.kill()
        other.wait()
    assert tiny.results() == undisturbed.results()
    assert tiny.left_overs() == []


def test_runs_of_a_process_have_one_mark_and_it_is_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Worker processes live on from one experiment to the next, with the first one's mark."""

    def mark(name: str) -> str:
        (tmp_path / name).mkdir()
        with marked_run(tmp_path / name) as ended:
            assert ended == 0
            return (tmp_path / name / ".run").read_text(encoding="utf-8")

    monkeypatch.setenv("HARNESS_RUN", "1-of-a-process-that-started-this-one")
    first = mark("one")
    assert first.startswith(f"{os.getpid()}-")
    assert mark("two") == first
    assert list(tmp_path.rglob(".run")) == []


@pytest.fixture(scope="module")
def mixture_is_compiled(cmdstan_home: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Compile the mixture's programs, so that what runs next is CmdStan."""
    assert cmdstan_home.is_dir()
    store = str(tmp_path_factory.mktemp("compiled"))
    command = ["run", "mixture", "--profile", "smoke", "--only", "method=PE", "--store", store]
    subprocess.run([sys.executable, "-m", "harness", *command], check=True, capture_output=True)


@pytest.mark.compiled
@pytest.mark.slow
@pytest.mark.usefixtures("mixture_is_compiled")
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_cmdstan(tmp_path: Path, sent: signal.Signals) -> None:
    """The paper's mixture grid takes long, so a CmdStan runs when the signal comes."""
    command = ["run", "mixture", "--profile", "paper", "--only", "method=PE,N=20"]
    children: list[psutil.Process] = []
    with started("-m", "harness", *command, "--store", str(tmp_path)) as run:
        try:
            until(lambda: bool(descendants_with(run.pid, "pseudo_extended id=")), "CmdStan to run")
            children = psutil.Process(run.pid).children(recursive=True)
            run.send_signal(sent)
            result = finish(run)  # fails long before the work would have been done
            assert result.returncode == 128 + sent, result.stderr
            assert "mixture: stopped with 0 of 400 fits" in result.stderr
            assert not [child for child in children if lives(child)]
        finally:
            for child in children:
                with contextlib.suppress(psutil.NoSuchProcess):
                    child.kill()


def test_several_chains_stop_together(tmp_path: Path) -> None:
    """CmdStanPy starts the next chain when one is ended; the end of all takes seconds."""
    chain = tmp_path / "chain.py"
    chain.write_text("import time; time.sleep(60)")
    script = tmp_path / "run.py"
    script.write_text(
        "import subprocess, sys, time, json\n"
        "from types import SimpleNamespace\n"
        "from harness.experiment.workers import LocalWorkers\n"
        "from harness.experiment.job import Job\n"
        "def sample(model, **_):\n"
        "    for _ in range(4):\n"
        "        subprocess.run([sys.executable, model])\n"
        "method = SimpleNamespace(driven_by='cmdstan', sample=sample)\n"
        "workers = LocalWorkers(1)\n"
        "future = workers.submit(Job('t', sys.argv[1], method, {}, None, 1, None))\n"
        "time.sleep(0.5)\n"
        "workers.stop()\n"
        "print(json.dumps(future.done()))\n"
    )
    result = subprocess.run(
        [sys.executable, str(script), str(chain)],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
        env=dict(os.environ),
    )
    assert json.loads(result.stdout) is True
