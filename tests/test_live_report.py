"""The report of a run that goes on: quickest experiment first, its page while the next one runs."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from survival_world import TinyWorld, finish, until

from harness.engine.toolchain import CmdStan
from harness.errors import WorkersError
from harness.experiment.run import Plan, make_plan, quickest_first, run_plan
from harness.experiment.store import Store
from harness.experiment.workers import LocalWorkers
from harness.plan.catalogue import experiment_names, load_experiment, load_file
from harness.plan.spec import PROFILES, Experiment, Profile
from harness.report.overview import Running, write_overview

NO_CMDSTAN = CmdStan(Path("no-cmdstan"), "2.39.0", "environment")
WEE_FITS, TINY_FITS = 2, 24


@pytest.fixture
def world(tmp_path: Path) -> TinyWorld:
    return TinyWorld(tmp_path / "world")


def tiny_plan() -> Plan:
    file = Path(__file__).parent / "survival" / "tiny.py"
    return make_plan(load_file("tiny", file), "smoke", NO_CMDSTAN)


def overview_says(world: TinyWorld, words: str) -> bool:
    page = world.store / "report" / "index.html"
    return page.is_file() and words in page.read_text(encoding="utf-8")


def start_held(world: TinyWorld, run: subprocess.Popen[str]) -> None:
    """Let the quick experiment go on and hold the long one; return when both slots are in it."""
    world.permit(run.pid, WEE_FITS)
    until(lambda: len(world.executed()) == WEE_FITS + 2, "the second experiment", seconds=60)


def test_a_page_is_linked_while_the_next_experiment_runs(world: TinyWorld) -> None:
    """The names are given the other way round; the long experiment cannot finish meanwhile."""
    report = world.store / "report"
    options = ("run", "tiny", "brief", "--profile", "smoke", "--workers", 2, "--store", world.store)
    with world.start(*options, TINY_GATE=str(world.gate)) as run:
        start_held(world, run)
        until(lambda: overview_says(world, 'href="brief/index.html"'), "the first page", seconds=60)
        overview = (report / "index.html").read_text(encoding="utf-8")
        assert "1 of 2 experiments" in overview
        assert f"Still running: {TINY_FITS} fits in all." in overview
        assert 'href="tiny/index.html"' not in overview
        page = (report / "brief" / "index.html").read_text(encoding="utf-8")
        links = re.findall(r'<a [^>]*href="([^"#]+)"', page)
        assert len(links) == 2
        assert all((report / "brief" / link).is_file() for link in links)
        assert len(world.executed()) == WEE_FITS + 2
        world.open_gate()
        result = finish(run)
    assert result.returncode == 0, result.stderr
    told = re.findall(r"^(\w+): finished after (\d+) s, its page is (.*)$", result.stderr, re.M)
    assert [(name, page) for name, _, page in told] == [
        (name, str(report / name / "index.html")) for name in ("brief", "tiny")
    ]
    assert overview_says(world, 'href="tiny/index.html"')
    assert not overview_says(world, "Still running")
    assert not overview_says(world, "Not finished yet")


def test_a_stopped_run_keeps_its_pages_and_goes_on(world: TinyWorld) -> None:
    options = ("run", "tiny", "brief", "--profile", "smoke", "--workers", 2, "--store", world.store)
    with world.start(*options, TINY_GATE=str(world.gate)) as run:
        start_held(world, run)
        until(lambda: overview_says(world, 'href="brief/index.html"'), "the first page", seconds=60)
        world.open_gate()
        run.send_signal(signal.SIGINT)
        result = finish(run)
    assert result.returncode == 130, result.stderr
    assert "run the same command again to continue" in result.stderr
    assert "Traceback" not in result.stderr
    assert overview_says(world, "Still running")
    again = world.call(*options)
    assert again.returncode == 0, again.stderr
    assert not overview_says(world, "Still running")
    cleaned = world.call("clean", "--yes", "--store", world.store)
    assert cleaned.returncode == 0, cleaned.stderr
    assert not (world.store / "report").exists()


def test_a_page_that_cannot_be_made_is_told_of_and_stops_no_experiment(world: TinyWorld) -> None:
    """A file stands where the pages of the first experiment belong."""
    (world.store / "report").mkdir(parents=True)
    (world.store / "report" / "brief").write_text("in the way")
    result = world.call("run", "tiny", "brief", "--profile", "smoke", "--store", world.store)
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1].startswith("harness: cannot write")
    assert "Traceback" not in result.stderr
    assert overview_says(world, 'href="tiny/index.html"')


def costly(name: str, seconds: float | None) -> Experiment:
    """The tiny experiment under another name, with an expected cost."""
    cost: dict[Profile, float] = {} if seconds is None else {"smoke": seconds}
    return replace(tiny_plan().experiment, name=name, processor_seconds=cost)


def test_the_quickest_comes_first_by_what_is_left_to_do(tmp_path: Path) -> None:
    store = Store(tmp_path)
    plans = {
        name: make_plan(costly(name, seconds), "smoke", NO_CMDSTAN)
        for name, seconds in (("unknown", None), ("long", 100.0), ("short", 10.0), ("done", None))
    }
    for name, share in (("long", 22), ("done", TINY_FITS)):
        for task in plans[name].tasks[:share]:
            store.folder(task).mkdir(parents=True)
    # Of the long one a twelfth is left, 8.3 s.
    found = [plan.experiment.name for plan in quickest_first(plans.values(), store)]
    assert found == ["done", "long", "short", "unknown"]


def test_every_experiment_says_what_it_costs() -> None:
    for name in experiment_names():
        cost = load_experiment(name).processor_seconds
        assert set(cost) == set(PROFILES), name
        assert 0 < cost["smoke"] < cost["quick"] <= cost["paper"], name


def test_what_comes_next_is_prepared_while_the_last_tasks_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TINY_LOG", str(tmp_path / "log"))
    monkeypatch.setenv("TINY_SECONDS", "0.05")
    plan, store = tiny_plan(), Store(tmp_path / "store")
    finished: list[int] = []
    order: list[str] = []

    with LocalWorkers(2) as workers:

        def prepare() -> None:
            finished.append(len(list(store.root.glob("tiny/fits/*/*/task.json"))))
            prepared.append(workers.in_thread(partial(order.append, "prepared")))

        prepared: list[object] = []
        run_plan(plan, store, NO_CMDSTAN, workers, on_all_sent=prepare)
        order.append("finished")
        run_plan(plan, store, NO_CMDSTAN, workers, on_all_sent=partial(order.append, "again"))
    # Two tasks run and two wait when the last one is given out; some may finish before we look.
    assert len(finished) == 1
    assert TINY_FITS - 4 <= finished[0] < TINY_FITS
    assert order == ["prepared", "finished", "again"]


def test_other_work_takes_a_slot_and_survives_a_killed_process() -> None:
    with LocalWorkers(1) as workers:
        order: list[str] = []
        hold = threading.Event()
        first = workers.in_thread(partial(hold.wait, 30))
        second = workers.in_thread(partial(order.append, "second"))
        assert not order
        hold.set()
        assert first.result()
        second.result()
        assert order == ["second"]
        pid = workers.in_process(os.getpid).result()
        assert pid != os.getpid()
        with pytest.raises(WorkersError, match="its process was killed"):
            workers.in_process(partial(os.kill, pid, signal.SIGKILL)).result()
        assert workers.in_process(os.getpid).result() not in (pid, os.getpid())


def test_an_overview_of_what_is_running_links_nothing(tmp_path: Path) -> None:
    running = [Running("Made <up>", "nowhere", 7)]
    html = write_overview(tmp_path, [], {"Made": "now"}, running).read_text(encoding="utf-8")
    assert "Made &lt;up&gt;" in html
    assert "Still running: 7 fits in all." in html
    assert "nothing to report" not in html
    assert "<a href" not in html
    empty = write_overview(tmp_path, [], {"Made": "now"}).read_text(encoding="utf-8")
    assert "There is nothing to report yet." in empty
