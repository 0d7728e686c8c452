"""Running an experiment: the store, what is skipped, what is set aside, and the report."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from harness.engine.program import StanProgram
from harness.engine.toolchain import CmdStan
from harness.errors import DataError, StoreError
from harness.experiment import session
from harness.experiment.run import Plan
from harness.experiment.session import Selection
from harness.experiment.store import Store
from harness.fit import Fit, build_fit
from harness.plan.catalogue import experiment_names, load_experiment, load_file
from harness.plan.spec import PROFILES, Cell, Experiment, Profile, Task, tasks_of

EXPERIMENT = load_experiment("mixture")


def task(replication: int = 0, digest: str = "0123456789abcdef0123") -> Task:
    return Task("mixture", EXPERIMENT.grid("smoke")[1], replication, digest)


def stored(store: Store, which: Task | None = None) -> Fit:
    fit = small_fit()
    store.write(which or task(), fit, {"x1": 0.1}, {"kept": "draws"})
    return fit


def small_fit() -> Fit:
    rng = np.random.default_rng(5)
    return build_fit(
        posterior={"x": rng.normal(size=(1, 8, 2))},
        extended=None,
        sample_stats={"diverging": np.zeros((1, 8), dtype=bool)},
        constant_data={"mu": np.zeros(2)},
        attrs={
            "method": "nuts",
            "settings": {"draws": 8},
            "seed": 4,
            **{
                f"{cost}_{phase}": np.ones(1)
                for cost in ("seconds", "gradients")
                for phase in ("warmup", "sampling")
            },
        },
    )


def test_catalogue_finds_experiments_by_file() -> None:
    assert experiment_names() == sorted(experiment_names())
    assert "mixture" in experiment_names()
    with pytest.raises(DataError, match=r"no experiment 'mixtur'; the experiments are: .*mixture"):
        load_experiment("mixtur")


def test_without_names_experiments_on_request_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def planned(experiment: Experiment, *_: object, **__: object) -> Plan:
        return Plan(experiment, "smoke", ())

    def names(selection: Selection, *, stored: bool = False) -> list[str]:
        cmdstan = CmdStan(tmp_path, "2.39.0", "environment")
        return [each.experiment.name for each in selection.plans(cmdstan, stored=stored)]

    monkeypatch.setattr(session, "make_plan", planned)
    whole = Selection((), "smoke", tmp_path)
    assert whole.on_request == [
        *("ensemble", "evidence", "hard", "intractable", "potts", "proposals"),
    ]
    assert whole.left_out == [
        f"{name} runs only if it is named: harness run {name} --profile smoke"
        for name in whole.on_request
    ]
    rest = [name for name in experiment_names() if name not in whole.on_request]
    assert names(whole) == names(whole, stored=True) == rest
    (tmp_path / "hard").mkdir()
    # Its results are reported, but no run goes on with them.
    assert names(whole) == rest
    assert names(whole, stored=True) == sorted([*rest, "hard"])
    asked = Selection(("hard",), "smoke", tmp_path)
    assert names(asked) == ["hard"]
    assert asked.left_out == []


def test_experiments_are_modules_that_can_be_imported_by_name() -> None:
    for name in experiment_names():
        assert load_experiment(name) is import_module(f"experiments.{name}").EXPERIMENT


def test_an_experiments_own_code_reaches_other_processes() -> None:
    """Samplers over images and their density are sent to processes that know the library only."""
    cell = load_experiment("images").grid("smoke")[0]
    assert cell.method.driven_by == "python"
    code = (
        "import pickle, sys; method, model = pickle.load(sys.stdin.buffer); "
        "print(method.name, len(model.log_density.image))"
    )
    sent = pickle.dumps((cell.method, cell.model))
    told = subprocess.run([sys.executable, "-c", code], input=sent, capture_output=True, check=True)
    assert told.stdout.decode().split() == ["bidirectional_over_images", "3"]


@pytest.mark.parametrize("name", experiment_names())
@pytest.mark.parametrize("profile", PROFILES)
def test_everything_that_runs_can_be_sent_to_another_process(name: str, profile: Profile) -> None:
    """Workers receive methods and models that are pickled: a local function would stop them all."""
    for cell in load_experiment(name).grid(profile):
        pickle.dumps((cell.method, cell.model))


def test_another_package_of_the_name_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments" / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    for name in [name for name in sys.modules if name.partition(".")[0] == "experiments"]:
        monkeypatch.delitem(sys.modules, name)
    load_file.cache_clear()
    try:
        with pytest.raises(DataError, match="is in the way"):
            load_experiment("shapes")
    finally:
        # What other tests have loaded is loaded again, of the modules that are put back.
        load_file.cache_clear()


def test_cells_of_every_profile_have_distinct_keys_and_programs() -> None:
    for profile in PROFILES:
        keys = [cell.key for cell in EXPERIMENT.grid(profile)]
        assert len(set(keys)) == len(keys)
        assert all(re.fullmatch(r"[a-z0-9-]+", key) for key in keys)


def test_a_fit_is_found_again(tmp_path: Path) -> None:
    store = Store(tmp_path / "results")
    assert store.checked(task()) is None
    fit = stored(store)
    assert store.checked(task(1)) is None
    assert store.checked(task(digest="f" * 20)) is None
    np.testing.assert_array_equal(store.load(task()).posterior["x"], fit.posterior["x"])
    folder = store.folder(task())
    assert sorted(path.name for path in folder.iterdir()) == ["fit-1.nc", "task.json"]
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]
    record = store.checked(task())
    assert record is not None
    assert record["settings"] == {"draws": 8}
    assert (record["seed"], record["metrics"], record["kept"]) == (4, {"x1": 0.1}, "draws")
    assert record["fit_bytes"] == (folder / "fit-1.nc").stat().st_size


def damage_fit(folder: Path) -> None:
    content = bytearray((folder / "fit-1.nc").read_bytes())
    content[len(content) // 2] ^= 1
    (folder / "fit-1.nc").write_bytes(content)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "a flipped bit": damage_fit,
    "no fit": lambda folder: (folder / "fit-1.nc").unlink(),
    "no record": lambda folder: (folder / "task.json").unlink(),
    "half a record": lambda folder: (folder / "task.json").write_text('{"experiment": "mi'),
    "another task's record": lambda folder: (folder / "task.json").write_text(
        (folder / "task.json").read_text().replace("0123456789", "9876543210")
    ),
    "a list": lambda folder: (folder / "task.json").write_text("[]"),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_what_is_damaged_is_noticed_and_kept_aside(
    tmp_path: Path, damage: Callable[[Path], object]
) -> None:
    store = Store(tmp_path)
    stored(store)
    damage(store.folder(task()))
    left = {path.name: path.read_bytes() for path in store.folder(task()).iterdir()}
    with pytest.raises(StoreError):
        store.checked(task())
    place = store.set_aside(task())
    assert {path.name: path.read_bytes() for path in place.iterdir()} == left
    assert store.checked(task()) is None


def test_writing_over_a_finished_task_is_refused_and_leaves_it(tmp_path: Path) -> None:
    store = Store(tmp_path)
    stored(store)
    before = store.checked(task())
    with pytest.raises(StoreError):
        stored(store)
    assert store.checked(task()) == before
    folder = store.folder(task())
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


def test_a_failure_is_recorded_until_the_task_succeeds(tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert store.failure(task()) is None
    store.fail(task(), "Stan said no")
    assert store.failure(task()) == "Stan said no"
    assert store.checked(task()) is None
    stored(store)
    assert store.failure(task()) is None


def test_one_run_at_a_time_writes(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with store.writing("mixture"):
        left = tmp_path / "mixture" / "fits" / "a-hmc" / ".writing-1"
        left.mkdir(parents=True)
        with (
            pytest.raises(StoreError, match="another run of mixture is writing"),
            Store(tmp_path).writing("mixture"),
        ):
            pass
        assert left.exists()
        with store.writing("another"):
            pass
    with store.writing("mixture"):
        assert not left.exists()


def test_an_unwritable_store_is_refused_before_any_work(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="name another folder with --store"):
        Store(tmp_path / "file" / "results").prepare()
    with pytest.raises(StoreError, match="cannot write"):
        stored(Store(tmp_path / "file" / "results"))


def test_task_digest_changes_with_everything_the_draws_depend_on() -> None:
    smoke, quick = (EXPERIMENT.grid(profile) for profile in ("smoke", "quick"))
    programs = {
        cell.program: cell.program.name for cell in (*smoke, *quick) if cell.program is not None
    }

    def digests(
        cells: tuple[Cell, ...], texts: dict[StanProgram, str], version: str = "2.39.0"
    ) -> set[str]:
        return {t.digest for t in tasks_of("mixture", cells, texts, version)}

    base = digests(smoke, programs)
    assert len(base) == sum(cell.replications for cell in smoke)
    assert digests(smoke, programs) == base
    edited = {program: f"{text} edited" for program, text in programs.items()}
    reseeded = tuple(replace(cell, key=f"{cell.key}-again") for cell in smoke)
    with_others = tuple(replace(cell, settings={"inv_temp": 0.5}) for cell in smoke)
    for other in (
        digests(quick, programs),
        digests(smoke, edited),
        digests(smoke, programs, "2.40.0"),
        digests(reseeded, programs),
        digests(with_others, programs),
    ):
        assert not base & other
    # What the draws do not depend on.
    renamed = tuple(replace(cell, label="another label", replications=1) for cell in smoke)
    assert digests(renamed, programs) <= base


@pytest.mark.compiled
def test_smoke_run_from_the_command_line(tmp_path: Path, cmdstan_home: Path) -> None:
    """The whole path: compile, sample, weigh, report; and again from the store alone."""
    from click.testing import CliRunner

    from harness.cli import main

    assert cmdstan_home.is_dir()
    arguments = ["run", "mixture", "--profile", "smoke", "--store", str(tmp_path)]
    first = CliRunner().invoke(main, arguments)
    assert first.exit_code == 0, first.output
    page = tmp_path / "report" / "index.html"
    assert f"Report: {page}" in first.output
    pages = sorted(page.parent.rglob("*.html"))
    assert len(pages) == 2 + len(EXPERIMENT.grid("smoke"))
    for each in pages:
        html = each.read_text(encoding="utf-8")
        assert ("<img" in html) == (each != page)
        # Self-contained: nothing is fetched, and links lead to other pages of the report.
        assert not re.findall(r'src="(?!data:)[^"]*"', html)
        for target in re.findall(r'<a [^>]*href="([^"#]+)', html):
            assert (each.parent / target).resolve() in pages
        assert all(alt for alt in re.findall(r'<img [^>]*alt="([^"]*)"', html))
    table = pd.read_csv(tmp_path / "mixture" / "tables" / "rmse.csv", index_col=0)
    assert "E[X₁]: ours" in table
    assert len(table) == len(EXPERIMENT.grid("smoke"))
    fits = sorted((tmp_path / "mixture" / "fits").rglob("fit-1.nc"))
    made = [path.stat().st_mtime_ns for path in fits]
    assert len(fits) == 8
    again = CliRunner().invoke(main, arguments)
    assert again.exit_code == 0, again.output
    assert [path.stat().st_mtime_ns for path in fits] == made


def test_bad_options_are_one_clear_line(tmp_path: Path) -> None:
    from click.testing import CliRunner

    from harness.cli import main

    unknown = CliRunner().invoke(main, ["run", "nothing", "--store", str(tmp_path)])
    assert unknown.exit_code == 1
    assert unknown.output.startswith("harness: there is no experiment 'nothing'")
    assert len(unknown.output.splitlines()) == 1
    assert CliRunner().invoke(main, ["run", "--profile", "huge"]).exit_code == 2
