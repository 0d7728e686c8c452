"""Which libraries are compiled before the budget begins, where stanli cannot evaluate a program."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import pytest

from harness.engine.program import StanProgram
from harness.errors import CompileError
from harness.user import program as module
from harness.user.clock import Clock
from harness.user.prepare import prepare
from harness.user.program import UserProgram

SIMULATED = """
data { real y; }
parameters { real mu; real<lower=0> sigma; }
model { mu ~ normal(0, 2); sigma ~ exponential(1); y ~ normal(mu, sigma); }
"""
FLAT = """
data { real y; }
parameters { real mu; }
model { y ~ normal(mu, 1); }
"""
Evaluated = Literal["stanli", "cmdstan"]


def program_of(folder: Path, text: str) -> UserProgram:
    path = folder / "program.stan"
    path.write_text(text, encoding="utf-8")
    return prepare(path, {"y": 1.0}, "likelihood", (), "stanli", tempered="yes")


def asked_for(
    program: UserProgram,
    by: Evaluated,
    monkeypatch: pytest.MonkeyPatch,
    compiling: Callable[[UserProgram, Clock], None] = UserProgram.compile_densities,
) -> tuple[list[str], Clock]:
    """Return the variants that an instance is made of, and the clock that has timed it."""
    asked: list[str] = []

    def instance(variant: StanProgram, data: Mapping[str, Any]) -> SimpleNamespace:
        asked.append(variant.path.stem)
        if variant.path.stem != "target":
            raise CompileError("what fails here shows again where it is needed")
        return SimpleNamespace(source=SimpleNamespace(engine=by))

    monkeypatch.setattr(module, "stan_instance", instance)
    with Clock(1, show=False) as clock:
        compiling(replace(program, engine="cmdstan"), clock)
    return asked, clock


def test_what_the_search_evaluates_is_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, clock = asked_for(program_of(tmp_path, SIMULATED), "cmdstan", monkeypatch)
    assert asked == ["target", "prior", "prior_simulation", "change_of_variables"]
    assert list(clock.seconds) == ["compile"]


@pytest.mark.parametrize(
    ("text", "by", "wanted"), [(SIMULATED, "stanli", ["target"]), (FLAT, "cmdstan", [])]
)
def test_nothing_more_is_compiled_than_is_needed(
    text: str, by: Evaluated, wanted: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where stanli evaluates the program, or the search does not start from its prior."""
    asked, clock = asked_for(program_of(tmp_path, text), by, monkeypatch)
    assert asked == wanted
    assert not clock.seconds


def test_what_a_tempered_run_evaluates_is_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def compiling(program: UserProgram, clock: Clock) -> None:
        program.compile_libraries({"joint_tempering": program.model.data}, clock)

    program = program_of(tmp_path, FLAT)
    asked, clock = asked_for(program, "cmdstan", monkeypatch, compiling)
    assert asked == ["target", "joint_tempering"]
    assert list(clock.seconds) == ["compile"]
    asked, clock = asked_for(program, "stanli", monkeypatch, compiling)
    assert asked == ["target"]
    assert not clock.seconds
