"""The corpus of programs that tempering is tested with, and the reference that is made of each."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from corpus_data import corpus_data, names
from corpus_oracle import COMPILED_ONLY, CORPUS, Reference, marked_lines, reference_program, source
from scipy import stats

from harness.errors import DataError
from harness.temper import temper
from harness.temper.constraints import CONSTRAINTS

INTERPRETED = [name for name in names() if name not in COMPILED_ONLY]


def test_every_program_has_data_and_every_type_a_program() -> None:
    programs = {path.stem for path in CORPUS.glob("*.stan")}
    assert programs == set(names())
    assert len(programs) >= 60
    declared = "\n".join(source(name).split("parameters {", 1)[1] for name in names())
    for kind in (
        "real<lower=0>", "real<lower=-1, upper=1>", "real<upper=", "vector", "row_vector", "matrix",
        "complex", "tuple", "array[",
    ):  # fmt: skip
        assert kind in declared, kind
    for each in CONSTRAINTS.values():
        for word in filter(None, (each.word, each.matrix_word)):
            assert re.search(rf"\b{word}\[", declared), word
        for word in each.arguments:
            assert re.search(rf"[<,] *{word} *=", declared), word


def test_a_constraint_that_is_not_known_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its constraint the parameter would be another one."""
    monkeypatch.delitem(CONSTRAINTS, "SumToZero")
    with pytest.raises(DataError, match=r"constraint \(SumToZero\) that cannot be tempered"):
        temper(CORPUS / "sum_to_zero_effects.stan", method="pseudo_extended")


@pytest.mark.parametrize("name", names())
def test_program_and_reference_are_valid(name: str, cmdstan_home: Path, tmp_path: Path) -> None:
    reference = tmp_path / "reference.stan"
    reference.write_text(reference_program(name))
    for program in (CORPUS / f"{name}.stan", reference):
        command = [str(cmdstan_home / "bin" / "stanc"), f"--include-paths={CORPUS}"]
        command += [f"--o={tmp_path / 'model.hpp'}", str(program)]
        said = subprocess.run(command, capture_output=True, text=True, check=False)
        assert said.returncode == 0, said.stderr
    assert " ~ " not in reference.read_text()


@pytest.mark.parametrize("name", INTERPRETED)
def test_reference_is_the_program_but_for_a_constant(name: str, tmp_path: Path) -> None:
    """The marks and their editing have changed nothing that depends on a parameter."""
    reference = Reference(name, tmp_path)
    rng = np.random.default_rng(8)
    points = rng.uniform(-1, 1, (6, reference.dimension))
    joint = np.array([reference.joint.value(point) for point in points])
    original = np.array([reference.original.value(point) for point in points])
    prior = np.array([reference.prior.value(point) for point in points])
    np.testing.assert_allclose(np.ptp(joint - original), 0, atol=1e-9 * np.max(np.abs(joint)))
    if marked_lines(name):
        assert np.ptp(joint - prior) > 1e-3
    else:
        np.testing.assert_array_equal(joint, prior)


def _likelihood(name: str, folder: Path, point: Mapping[str, object]) -> float:
    reference = Reference(name, folder)
    u = reference.original.unconstrain(point)
    return reference.joint.value(u) - reference.prior.value(u)


def test_likelihood_of_eight_schools_is_scipys(tmp_path: Path) -> None:
    data = corpus_data("eight_schools_centred")
    theta = np.linspace(-3, 9, 8)
    exact = np.sum(stats.norm(theta, data["sigma"]).logpdf(data["y"]))
    point = {"mu": 1.5, "tau": 2.5, "theta": theta}
    assert _likelihood("eight_schools_centred", tmp_path, point) == pytest.approx(exact, rel=1e-12)


def test_likelihood_of_truncated_data_is_scipys(tmp_path: Path) -> None:
    data = corpus_data("truncated_both_ends")
    mu, sigma = 0.4, 1.3
    t = stats.t(4, mu, sigma)
    exact = np.sum(t.logpdf(data["y"]) - np.log(t.cdf(data["U"]) - t.cdf(data["L"])))
    point = {"mu": mu, "sigma": sigma}
    assert _likelihood("truncated_both_ends", tmp_path, point) == pytest.approx(exact, rel=1e-10)


def test_likelihood_of_a_hurdle_is_scipys(tmp_path: Path) -> None:
    y = np.array(corpus_data("hurdle_truncated_poisson")["y"])
    theta, rate = 0.3, 2.2
    positive = stats.poisson(rate).logpmf(y[y > 0]) - np.log1p(-np.exp(-rate)) + np.log1p(-theta)
    exact = positive.sum() + np.sum(y == 0) * np.log(theta)
    point = {"theta": theta, "lambda": rate}
    found = _likelihood("hurdle_truncated_poisson", tmp_path, point)
    assert found == pytest.approx(exact, rel=1e-12)


def test_likelihood_of_counts_is_scipys(tmp_path: Path) -> None:
    data = corpus_data("dirichlet_multinomial")
    theta = np.array([0.4, 0.1, 0.3, 0.2])
    exact = stats.multinomial(sum(data["counts"]), theta).logpmf(data["counts"])
    found = _likelihood("dirichlet_multinomial", tmp_path, {"theta": theta})
    assert found == pytest.approx(exact, rel=1e-12)


def test_likelihood_of_censored_data_is_scipys(tmp_path: Path) -> None:
    data = corpus_data("censored_normal")
    normal = stats.norm(0.7, 1.2)
    exact = np.sum(normal.logpdf(data["y_obs"])) + data["N_cens"] * normal.logsf(data["U"])
    found = _likelihood("censored_normal", tmp_path, {"mu": 0.7, "sigma": 1.2})
    assert found == pytest.approx(exact, rel=1e-12)
