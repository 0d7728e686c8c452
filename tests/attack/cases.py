"""The cases of the attack, and what they share."""

from __future__ import annotations

import os
import tempfile
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from unittest.mock import patch

import posterior_fuzz
import survival_driver
from survival_world import TinyWorld
from test_attack_sample import REJECTS

from harness.engine.compile import compile_programs
from harness.engine.toolchain import require_cmdstan
from harness.plan import catalogue
from harness.temper import tempered_model
from harness.user import Method, sample

from . import truths
from .files import mutated_data, mutated_fit, mutated_program, mutated_store
from .kills import killed_command

CASES = {"program": 110, "data": 70, "fit": 120, "store": 25, "kill": 30, "truth": 16, "parts": 10}
"""How many cases there are of each kind."""


def run_case(shared: Path, number: tuple[str, int]) -> tuple[str, int, str | None]:
    """Run one case in a folder of its own; return what is wrong."""
    kind, seed = number
    source = TinyWorld(shared / "undisturbed")
    works: dict[str, Callable[[Path], str | None]] = {
        "program": partial(mutated_program, seed),
        "data": partial(mutated_data, 10_000 + seed),
        "fit": lambda folder: mutated_fit(20_000 + seed, folder, shared / "fits"),
        "store": lambda folder: mutated_store(30_000 + seed, folder, source),
        "kill": lambda folder: killed_command(40_000 + seed, folder, source),
        "truth": partial(truths.wrong_in_silence, 50_000 + seed),
        "parts": partial(posterior_fuzz.wrong_in_silence, 60_000 + seed),
    }
    environment = dict(os.environ)
    with (
        tempfile.TemporaryDirectory(prefix="attack-") as place,
        patch.object(catalogue, "shipped", survival_driver.tiny_folder),
    ):
        try:
            told = works[kind](Path(place))
        except Exception:  # a fault of the attack itself counts as failed, too
            told = f"the case itself failed: {traceback.format_exc()}"
        finally:
            os.environ.clear()
            os.environ.update(environment)
    return kind, seed, told


def prepare(shared: Path) -> None:
    """Make what cases share: a finished store, fits to change, and the compiled program."""
    TinyWorld(shared / "undisturbed").quick_run(workers=1)
    program = shared / "p.stan"
    program.write_text(REJECTS, encoding="utf-8")
    (shared / "fits").mkdir()
    methods: tuple[Method, ...] = ("nuts", "collapsed_tempering", "pseudo_extended")
    for method in methods:
        result = sample(
            program,
            {"y": 0.3},
            method=method,
            engine="stanli",
            seed=1,
            chains=2,
            warmup=60,
            draws=60,
            progress=False,
        )
        result.save(shared / "fits" / f"{method}.nc")
    original = tempered_model(program, {"y": 0.3}).program("original")
    compile_programs([original], require_cmdstan())
