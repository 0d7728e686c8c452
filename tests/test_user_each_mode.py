"""When draws of NUTS in each known mode take the place of another fit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from test_weighed_modes import plain_fit

from harness.diagnosis import Finding, Severity, remember
from harness.temper import tempered_model
from harness.user import UserFit, each_mode
from harness.user.each_mode import EachMode
from harness.user.judge import Judgement
from harness.user.scouted import Scouted

WARNING = Finding(Severity.WARNING, "The search missed a region.", "Look there.")
PROBLEM = Finding(Severity.PROBLEM, "Replicas hardly travel.", "Give it more time.")
TWO_MODES = SimpleNamespace(table=SimpleNamespace(modes=[1, 2]))
NORMAL = "data { real y; } parameters { real x; } model { x ~ normal(0, 1); y ~ normal(x, 1); }"


def result(method: str, *findings: Finding) -> UserFit:
    """Draws that nothing else is to be said against."""
    fit = plain_fit(np.random.default_rng(1).normal(size=(4, 500)))
    remember(fit, findings)
    return UserFit(fit, method)


class Call:
    """A call of ``auto`` whose runs in modes give a certain fit."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, in_modes: UserFit, *, slow: bool) -> None:
        self.modes = SimpleNamespace(found=TWO_MODES, added_to=lambda fit: fit)
        steps: Any = SimpleNamespace(
            modes=self.modes, budget=100.0, spent=0.0, program=SimpleNamespace(model=None)
        )
        self.runs: list[float] = []

        def run(*_: object, plain: object, most_seconds: float) -> UserFit:
            self.runs.append(most_seconds)
            return in_modes

        for name in ("about_program", "about_the_prior"):
            monkeypatch.setattr(each_mode, name, lambda *_: [])
        monkeypatch.setattr(each_mode, "in_modes_run", run)
        monkeypatch.setattr(EachMode, "_is_slow", slow)
        self.each = EachMode(steps, result("nuts").fit)
        self.judged: Any = SimpleNamespace(accepted=[], findings=[])

    def beside(self, found: UserFit) -> None:
        self.each.beside(found, cast(Scouted, None), cast(Judgement, self.judged), [], 20.0)

    def instead(self, found: UserFit) -> UserFit:
        self.modes.found = None  # there is no table of this fit's modes
        return self.each.instead(found, cast(Scouted, None), cast(Judgement, self.judged), [])


def test_kept_draws_take_over_from_a_fit_with_problems(monkeypatch: pytest.MonkeyPatch) -> None:
    in_modes, replicas = result("nuts_in_modes", WARNING), result("parallel_tempering", PROBLEM)
    call = Call(monkeypatch, in_modes, slow=True)
    call.beside(result("nuts", PROBLEM))
    assert call.runs == [20.0]
    found = call.instead(replicas)
    assert found.fit is in_modes.fit
    assert found.tempered is replicas.fit
    told = [each.sentence for each in found.troubles()]
    assert WARNING.sentence in told
    assert any(
        each.startswith("Modes may be missing") and PROBLEM.sentence in each for each in told
    )


@pytest.mark.parametrize("slow", [True, False])
def test_a_fit_without_problems_stays(slow: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    call = Call(monkeypatch, result("nuts_in_modes"), slow=slow)
    call.beside(result("nuts", PROBLEM))
    assert len(call.runs) == slow  # draws in modes need not come first where all are fast
    replicas = result("parallel_tempering", WARNING)
    assert call.instead(replicas) is replicas
    assert [each.sentence for each in replicas.troubles()] == [WARNING.sentence]


def test_draws_with_as_many_troubles_do_not_take_over(monkeypatch: pytest.MonkeyPatch) -> None:
    call = Call(monkeypatch, result("nuts_in_modes", PROBLEM), slow=True)
    call.beside(result("nuts", PROBLEM, replace(PROBLEM, sentence="Another.")))
    assert len(call.runs) == 1
    replicas = result("parallel_tempering", PROBLEM)
    assert call.instead(replicas) is replicas


def test_a_density_is_slow_if_a_tempered_run_takes_the_whole_budget(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("stanli")
    path = tmp_path / "normal.stan"
    path.write_text(NORMAL, encoding="utf-8")
    model = tempered_model(path, {"y": 1.0})
    for seconds, slow in ((2e-4, False), (5e-4, True)):
        monkeypatch.setattr(each_mode, "seconds_a_gradient", lambda *_, each=seconds: each)
        steps: Any = SimpleNamespace(budget=100.0, program=SimpleNamespace(model=model))
        assert EachMode(steps, result("nuts").fit)._is_slow is slow
