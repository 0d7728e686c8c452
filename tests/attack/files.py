"""Mutated programs, data, fits and stores: each gives a result or one clear sentence."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
from corpus_data import corpus_data, names
from corpus_oracle import CORPUS
from survival_world import TinyWorld
from temper_fuzz import fuzz_program

from harness.cli import main
from harness.diagnosis import diagnose
from harness.errors import HarnessError
from harness.fit import Fit
from harness.report import FitReport

from .isolated import isolated, trouble
from .mutations import changed_bytes, changed_data, changed_text

_SHORT = ("--chains", "2", "--warmup", "30", "--draws", "30", "--time-limit", "20")


def command(*arguments: object) -> Callable[[], int]:
    """Return a call of the command line in this process."""

    def work() -> int:
        main(list(map(str, arguments)), standalone_mode=True)
        return 0

    return work


def _original(rng: random.Random, folder: Path) -> tuple[str, dict[str, object]]:
    """Choose a valid program: one of the corpus, or a random one."""
    if rng.random() < 0.5:
        name = rng.choice(sorted(names()))
        shutil.copytree(CORPUS / "includes", folder / "includes")
        return (CORPUS / f"{name}.stan").read_text(encoding="utf-8"), dict(corpus_data(name))
    made = fuzz_program(rng.randrange(200))
    return made.text, dict(made.data)


def mutated_program(seed: int, folder: Path) -> str | None:
    """Rewrite and sample a program with a few changed tokens."""
    rng = random.Random(seed)  # noqa: S311 - cases, no secrets
    text, data = _original(rng, folder)
    (folder / "p.stan").write_text(changed_text(text, rng), encoding="utf-8")
    (folder / "d.json").write_text(json.dumps(_plain(data)), encoding="utf-8")
    return _sampled(rng, folder)


def mutated_data(seed: int, folder: Path) -> str | None:
    """Sample a program with changed data."""
    rng = random.Random(seed)  # noqa: S311 - cases, no secrets
    text, data = _original(rng, folder)
    (folder / "p.stan").write_text(text, encoding="utf-8")
    (folder / "d.json").write_text(changed_data(_plain(data), rng), encoding="utf-8")
    return _sampled(rng, folder)


def _plain(data: dict[str, object]) -> dict[str, object]:
    return {name: np.asarray(value).tolist() for name, value in data.items()}


def _sampled(rng: random.Random, folder: Path) -> str | None:
    program, data, log = folder / "p.stan", folder / "d.json", folder / "log"
    what = rng.choice(("likelihood", "all"))
    rewritten = trouble(isolated(command("temper", program, "--temper", what), log))
    if rewritten is not None:
        return f"temper: {rewritten}"
    method = rng.choice(("nuts", "nuts", "collapsed_tempering"))
    options = ("--method", method, "--engine", "stanli", "--budget", "3", "--temper", what)
    out = folder / "fit.nc"
    ended = isolated(
        command("sample", program, "--data", data, *options, *_SHORT, "--out", out), log
    )
    if ended.status == 0 and not out.is_file():
        return "sample: no fit was written"
    if ended.status and out.exists():
        return "sample: a fit was written although it failed"
    told = trouble(ended)
    return None if told is None else f"sample: {told}"


def mutated_fit(seed: int, folder: Path, sources: Path) -> str | None:
    """Read a changed fit, and if it can be read, diagnose it and write its page."""
    rng = random.Random(seed)  # noqa: S311 - cases, no secrets
    path = folder / "fit.nc"
    source = rng.choice(sorted(sources.glob("*.nc")))
    if rng.random() < 0.5:
        path.write_bytes(changed_bytes(source.read_bytes(), rng))
    else:
        shutil.copy(source, path)
        _change_tree(path, rng)

    def work() -> int:
        try:
            fit = Fit.load(path)
            diagnose(fit)
            FitReport(fit).save(folder / "page.html")
        except HarnessError as error:
            print(f"harness: {error}")
            return 1
        return 0

    return trouble(isolated(work, folder / "log"))


def _change_tree(path: Path, rng: random.Random) -> None:
    """Drop, rename or replace an attribute or a variable of a NetCDF file."""
    with h5py.File(path, "r+") as file:
        places: list[str] = []
        file.visit(places.append)
        place = file[rng.choice(places)] if rng.random() < 0.5 else file
        attributes = sorted(place.attrs)
        match rng.randrange(4):
            case 0 if attributes:
                del place.attrs[rng.choice(attributes)]
            case 1 if attributes:
                values = ("", "[", "{}", "null", 7, -1.5, np.arange(3), np.nan, "é" * 9)
                place.attrs[rng.choice(attributes)] = rng.choice(values)
            case 2:
                del file[rng.choice(places)]
            case _:
                name = rng.choice(places)
                if isinstance(file[name], h5py.Dataset) and file[name].shape:
                    values_of = file[name][()]
                    if values_of.dtype.kind == "f" and values_of.size:
                        flat = values_of.reshape(-1)
                        flat[rng.randrange(flat.size)] = rng.choice((np.nan, np.inf, 1e308, 0.0))
                        file[name][...] = values_of


def mutated_store(seed: int, folder: Path, source: TinyWorld) -> str | None:
    """Change files of a finished store: the next run mends it, and finds the same results."""
    rng = random.Random(seed)  # noqa: S311 - cases, no secrets
    world = TinyWorld(folder / "world")
    shutil.copytree(source.store, world.store)
    files = sorted(path for path in world.store.rglob("*") if path.is_file())
    for path in rng.sample(files, rng.choice((1, 3, 10))):
        match rng.randrange(4):
            case 0:
                path.unlink()
            case 1:
                path.unlink()
                path.mkdir()
                (path / "theirs").write_text("not ours")
            case _:
                path.write_bytes(changed_bytes(path.read_bytes(), rng))
    os.environ.update(world.environment)
    options = ("tiny", "--profile", "smoke", "--store", world.store)
    for arguments in rng.sample((("status", *options), ("report", *options, "--fits", "all")), 1):
        told = trouble(isolated(command(*arguments), folder / "log"))
        if told is not None:
            return f"{arguments[0]}: {told}"

    def run() -> int:
        try:
            world.quick_run()
        except HarnessError as error:
            print(f"harness: {error}")
            return 1
        return 0

    ended = isolated(run, folder / "log")
    told = trouble(ended)
    if told is not None:
        return f"run: {told}"
    if ended.status == 0 and world.results() != source.results():
        return "run: the results are not those of an undisturbed run"
    return None
