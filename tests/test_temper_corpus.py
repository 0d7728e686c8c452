"""Tempered programs of the whole corpus say what the definitions say, at random points."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from corpus_data import names
from corpus_oracle import AMBIGUOUS, COMPILED_ONLY, CORPUS, NUM, Reference, marked_lines
from stan_density import StanDensity
from tempered_oracle import Held, Parts, compare, expected

from harness.arrays import FloatArray
from harness.engine.program import StanProgram
from harness.errors import HarnessError
from harness.temper import TemperedProgram, temper
from harness.temper.classify import What
from harness.temper.program import temper_each
from harness.temper.templates import Variant

POINTS = 2
"""Sets of pseudo-samples that each program is evaluated at."""

BETA = np.array([0.0, 0.15, 0.6, 0.8, 1.0])
FREE = np.array([0.03, 0.35, 0.5, 0.7, 0.96])
TEMPERABLE = [name for name in names() if name != "no_data"]
INTERPRETED = [name for name in TEMPERABLE if name not in COMPILED_ONLY | AMBIGUOUS]
# The tests of one program follow one another, so that a process of tests tempers it once.
each_program = pytest.mark.parametrize("name", INTERPRETED, scope="module")

SOME = ("eight_schools_centred", "mixture_k_local", "truncated_both_ends", "user_lp_likelihood")


@cache
def tempered(name: str, what: What = "likelihood") -> Mapping[Variant, TemperedProgram]:
    """The forms of a program that its tests take, all written from one reading of it."""
    methods: tuple[Variant, ...] = ("pseudo_extended", "joint_tempering", "prior", "target")
    if name in SOME and what == "likelihood":
        methods = get_args(Variant)
    path = CORPUS / f"{name}.stan"
    written = temper_each(path, methods, what=what, include_paths=(CORPUS,))
    return dict(zip(methods, written, strict=True))


class Case:
    """A program of the corpus, points, and the parts of its density there."""

    def __init__(self, name: str, folder: Path, *, everything: bool = False) -> None:
        self.reference = Reference(name, folder)
        self.folder = folder
        self.programs = tempered(name, "all" if everything else "likelihood")
        parameters = tuple(self.programs["pseudo_extended"].parameters)
        self.values = self.reference.points(parameters, NUM * POINTS, seed=5)
        self.free = self.reference.free(self.values)
        joint = self._at(self.reference.joint)
        base = self._at(self.reference.jacobian if everything else self.reference.prior)
        self.parts = Parts(base, joint - base)

    def _at(self, density: StanDensity) -> np.ndarray:
        return self.reference.at(density, self.values)

    def check(self, method: Variant, setting: str) -> None:
        """Compare the tempered program with its definition at every point."""
        fixed = BETA if setting == "fixed" else np.empty(0)
        single = not method.endswith("pseudo_extended")
        size = 1 if single else NUM
        if single and setting == "fixed":
            fixed = BETA[2:3]
        held = Held(self.programs[method], self.reference.data, setting, fixed, size, self.folder)
        for start in range(0, NUM * POINTS, NUM):
            part = slice(start, start + size)
            parts = Parts(*(each[part] for each in self.parts))
            points, free = (
                {name: each[start] if single else each[part] for name, each in some.items()}
                for some in (self.values, self.free)
            )
            sampled = setting == "sampled"
            beta = np.roll(FREE, start // NUM)[:size] if sampled else fixed
            values = held.values(points, free, beta if sampled else np.empty(0))
            compare(held(values), expected(method, parts, beta, setting))


@each_program
def test_tempered_likelihood(name: str, tmp_path: Path) -> None:
    case = Case(name, tmp_path)
    case.check("pseudo_extended", "sampled")
    case.check("joint_tempering", "sampled")


@each_program
def test_classification(name: str) -> None:
    """The lines that are tempered are those that somebody marked."""
    program = tempered(name)["joint_tempering"]
    lines = {each.line for each in program.statements if each.tempered}
    assert lines == {number for number, _ in marked_lines(name)}
    assert all(each.why for each in program.statements)


def test_refused_for_want_of_a_likelihood() -> None:
    with pytest.raises(HarnessError, match="no statement to temper"):
        temper(CORPUS / "no_data.stan", method="joint_tempering")


@each_program
def test_prior_and_target_alone(name: str, tmp_path: Path) -> None:
    """The prior's program and the target's are those that are made from somebody's marks."""
    case = Case(name, tmp_path)
    exact: dict[Variant, FloatArray] = {
        "prior": case.parts.prior,
        "target": case.parts.prior + case.parts.likelihood,
    }
    for method in exact:
        program = case.programs[method]
        path = tmp_path / f"{method}.stan"
        path.write_text(program.text, encoding="utf-8")
        density = StanDensity(StanProgram(path), case.reference.data)
        assert density.dimension == case.reference.dimension
        found = case.reference.at(density, case.values)
        np.testing.assert_allclose(found, exact[method], rtol=1e-10, atol=1e-9)
    text = case.programs["prior"].text
    assert "generated quantities {" not in text
    assert "transformed parameters {" not in text


@pytest.mark.parametrize("name", SOME)
@pytest.mark.parametrize(
    ("method", "setting"),
    [
        ("pseudo_extended", "fixed"),
        ("joint_tempering", "fixed"),
        ("collapsed_tempering", "integrated"),
        ("collapsed_tempering", "ladder"),
        ("collapsed_tempering_zero_likelihood", "integrated"),
        ("collapsed_tempering_zero_likelihood", "ladder"),
        ("collapsed_pseudo_extended", "integrated"),
        ("collapsed_pseudo_extended", "ladder"),
    ],
)
def test_other_forms(name: str, method: Variant, setting: str, tmp_path: Path) -> None:
    Case(name, tmp_path).check(method, setting)


@pytest.mark.parametrize("name", SOME)
def test_everything_tempered(name: str, tmp_path: Path) -> None:
    case = Case(name, tmp_path, everything=True)
    case.check("pseudo_extended", "sampled")
    case.check("joint_tempering", "sampled")


UNCOVERED = {"lp_with_prior_and_likelihood": ("mu",), "mixed_observed_and_missing": ("y_mis",)}


@pytest.mark.parametrize("name", sorted(AMBIGUOUS))
def test_prior_and_likelihood_in_one_statement(name: str, tmp_path: Path) -> None:
    """Split, or else tempered whole: then it is told which parameters have no prior left."""
    case = Case(name, tmp_path)
    uncovered = case.programs["pseudo_extended"].uncovered
    assert uncovered == UNCOVERED.get(name, ())
    if not uncovered:
        case.check("pseudo_extended", "sampled")
