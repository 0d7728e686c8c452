"""Which libraries are compiled before the budget begins, where stanli cannot evaluate a program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, cast

import pytest

from harness.engine.program import StanProgram
from harness.errors import CompileError
from harness.fit import Fit
from harness.user import prepare as preparing
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
    return prepare(
        path, {"y": 1.0}, "likelihood", (), "stanli", Clock(1, show=False), tempered="yes"
    )


def compiled(
    program: UserProgram,
    by: Evaluated,
    monkeypatch: pytest.MonkeyPatch,
    compiling: Callable[[UserProgram, Clock], None] = UserProgram.compile_densities,
) -> tuple[list[str], Clock]:
    """Return the variants whose libraries are compiled, and the clock that has timed it."""
    made: list[str] = []

    def compile_together(
        _: object, *, libraries: Sequence[StanProgram], executables: Sequence[StanProgram] = ()
    ) -> dict[StanProgram, object]:
        made.extend(each.path.stem for each in libraries)
        if executables:
            return dict.fromkeys(executables, "compiled")
        raise CompileError("what fails here shows again where it is needed")

    monkeypatch.setattr(module, "is_compiled", lambda *_: by == "cmdstan")
    monkeypatch.setattr(module, "require_cmdstan", lambda: None)
    monkeypatch.setattr(module, "compile_together", compile_together)
    with Clock(1, show=False) as clock:
        compiling(replace(program, engine="cmdstan"), clock)
    return made, clock


def test_what_the_search_evaluates_is_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, clock = compiled(program_of(tmp_path, SIMULATED), "cmdstan", monkeypatch)
    assert made == ["prior", "prior_simulation", "change_of_variables"]
    assert list(clock.seconds) == ["compile"]


@pytest.mark.parametrize(("text", "by"), [(SIMULATED, "stanli"), (FLAT, "cmdstan")])
def test_nothing_more_is_compiled_than_is_needed(
    text: str, by: Evaluated, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where stanli evaluates the program, or the search does not start from its prior."""
    made, clock = compiled(program_of(tmp_path, text), by, monkeypatch)
    assert made == []
    assert not clock.seconds


def test_what_a_tempered_run_evaluates_is_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def compiling(program: UserProgram, clock: Clock) -> None:
        program.compile(["joint_tempering"], clock, {"joint_tempering": program.model.data})

    program = program_of(tmp_path, FLAT)
    made, clock = compiled(program, "cmdstan", monkeypatch, compiling)
    assert made == ["joint_tempering"]
    assert list(clock.seconds) == ["compile"]
    made, _ = compiled(program, "stanli", monkeypatch, compiling)
    assert made == []


@pytest.mark.parametrize(
    ("block", "needed"),
    [
        ("transformed parameters { real twice = 2 * mu; }", ["original"]),
        ("", []),
        ("generated quantities { real twice = 2 * mu; }", []),
        (
            "transformed parameters { real half = mu / 2; } "
            "generated quantities { real twice = 2 * mu; }",
            ["without_generated"],
        ),
    ],
    ids=["transformed", "neither", "generated", "both"],
)
def test_what_computes_transformed_parameters_is_compiled_once(
    block: str, needed: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CmdStan computes generated quantities of given draws, but not transformed parameters."""
    parts = block.partition("generated")
    text = FLAT.replace("model", f"{parts[0]}\nmodel") + "".join(parts[1:])

    def compiling(program: UserProgram, clock: Clock) -> None:
        monkeypatch.setattr(module, "with_generated", lambda fit, *_, **__: fit)
        for _ in range(2):
            program.generated(cast(Fit, None), 1, clock)

    made, clock = compiled(program_of(tmp_path, text), "cmdstan", monkeypatch, compiling)
    assert made == needed
    assert list(clock.seconds) == ["compile"] * bool(needed) + ["generate"]


@pytest.mark.parametrize("nuts_first", [False, True])
def test_a_density_that_is_compiled_is_announced_and_counted_as_that(
    nuts_first: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CmdStan's executable is compiled beside it, if NUTS runs first."""
    asked: list[list[str]] = []

    def compile_together(
        _: object, *, executables: Sequence[StanProgram], libraries: Sequence[StanProgram]
    ) -> dict[StanProgram, object]:
        asked.append([each.path.stem for each in (*executables, *libraries)])
        return dict.fromkeys(executables, "compiled")

    monkeypatch.setattr(preparing, "is_compiled", lambda *_: True)
    monkeypatch.setattr(preparing, "require_cmdstan", lambda: None)
    monkeypatch.setattr(preparing, "compile_together", compile_together)
    path = tmp_path / "program.stan"
    path.write_text(SIMULATED, encoding="utf-8")
    with Clock(1, show=False) as clock:
        program = prepare(
            *(path, {"y": 1.0}, "likelihood", (), "cmdstan", clock),
            tempered="yes",
            nuts_first=nuts_first,
        )
    assert asked == [["original", "target"] if nuts_first else ["target"]]
    assert list(clock.seconds) == ["temper", "compile"]
    assert list(program.compiled) == (["original"] if nuts_first else [])
    assert program.why_not_tempered is None


def test_what_stanli_reads_needs_no_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preparing, "require_cmdstan", pytest.fail)
    assert program_of(tmp_path, SIMULATED).compiled == {}
