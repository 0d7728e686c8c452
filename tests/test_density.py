"""Log densities of Stan programs in Python, on base coordinates."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from log_gaussian import log_gaussian

from harness.engine import stanli_package
from harness.engine.program import StanProgram
from harness.errors import DataError, ToolchainError
from harness.model import Model
from harness.model.density import StanDensity, TargetDensity
from harness.models.gaussian_mixture import GaussianMixture

pytest.importorskip(
    "stanli", reason="stanli, which evaluates Stan programs with no compile, is not installed"
)

MIXTURE = GaussianMixture(
    np.array([0.2, 0.8]), np.array([[0.5, -1.0], [2.0, 3.0]]), np.array([0.3, 0.6])
)


def test_the_density_of_a_positive_parameter_is_that_of_its_logarithm() -> None:
    model, truth = log_gaussian()
    density = TargetDensity(model)
    points = np.random.default_rng(1).normal(scale=2, size=(20, 5))
    value, gradient = density(points)
    np.testing.assert_allclose(value, truth.log_density(points) + truth.log_zeta, rtol=1e-11)
    np.testing.assert_allclose(gradient, truth.log_density_gradient(points), rtol=1e-9)
    assert density.shapes == {"x": (2, 2), "scale": ()}
    named = density.parameters(points)
    assert named["x"].shape == (20, 2, 2)
    np.testing.assert_allclose(named["x"][3], points[3, :4].reshape(2, 2, order="F"))
    np.testing.assert_allclose(named["scale"], np.exp(points[:, 4]))


def test_in_a_box_the_density_is_the_targets_own_and_outside_it_there_is_none() -> None:
    density = TargetDensity(MIXTURE.model("in a box", lower=-8, upper=12))
    points = np.random.default_rng(2).uniform(-7.9, 11.9, size=(30, 2))
    value, gradient = density(points)
    np.testing.assert_allclose(value, MIXTURE.log_density(points), rtol=1e-9)
    step = 1e-6
    for i in range(2):
        shift = step * np.eye(2)[i]
        difference = MIXTURE.log_density(points + shift) - MIXTURE.log_density(points - shift)
        np.testing.assert_allclose(gradient[:, i], difference / (2 * step), rtol=1e-5, atol=1e-5)
    points[4, 1], points[9, 0], points[11] = 12.5, -8.0, np.nan
    value, gradient = density(points)
    assert np.array_equal(density.values(points), value)
    gone = np.isin(np.arange(30), [4, 9, 11])
    assert np.array_equal(value == -np.inf, gone)
    assert np.all(gradient[gone] == 0)
    assert np.all(np.isfinite(value[~gone]))


def test_a_program_is_compiled_again_when_its_text_or_an_include_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the data; the density is always that of the files as they are."""
    compiled: list[StanProgram] = []
    compile_program = stanli_package._compile

    def compiling(program: StanProgram) -> str:
        compiled.append(program)
        return compile_program(program)

    monkeypatch.setattr(stanli_package, "_compile", compiling)
    stan, include = tmp_path / "target.stan", tmp_path / "part.stan"
    stan.write_text(
        "data { real a; } parameters { real y; } model {\n#include part.stan\ntarget += a * y; }"
    )

    def slope(a: float) -> float:
        return StanDensity(StanProgram(stan, (tmp_path,)), {"a": a}).value(np.ones(1))

    include.write_text("target += y;")
    assert (slope(1.0), slope(2.0), len(compiled)) == (2, 3, 1)
    include.write_text("target += 5 * y;")
    assert (slope(1.0), slope(2.0), len(compiled)) == (6, 7, 2)
    stan.write_text(stan.read_text().replace("a * y", "10 * a * y"))
    assert (slope(1.0), slope(2.0), len(compiled)) == (15, 25, 3)


def program(folder: Path, text: str, dimension: int = 1) -> Model:
    (folder / "target.stan").write_text(text)
    return Model("small", folder, {}, ("x",), dimension)


def test_where_the_program_rejects_a_point_there_is_no_density(tmp_path: Path) -> None:
    density = TargetDensity(
        program(
            tmp_path,
            "parameters { real x; } model { if (x > 0) reject(x); target += -square(x); }",
        )
    )
    value, gradient = density(np.array([[-2.0], [1.0], [-0.5]]))
    np.testing.assert_allclose(value, [-4, -np.inf, -0.25])
    np.testing.assert_allclose(gradient, [[4], [0], [1]])


def test_where_the_log_density_is_no_number_there_is_none(tmp_path: Path) -> None:
    density = TargetDensity(
        program(tmp_path, "parameters { real x; } model { target += sqrt(x) - x; }")
    )
    value, gradient = density(np.array([[4.0], [-1.0], [0.25]]))
    np.testing.assert_allclose(value, [-2.0, -np.inf, 0.25])
    np.testing.assert_allclose(gradient, [[-0.75], [0.0], [0.0]], atol=1e-15)
    assert np.array_equal(density.values(np.array([[4.0], [-1.0], [0.25]])), value)


def test_an_infinite_log_density_is_none(tmp_path: Path) -> None:
    peak = TargetDensity(program(tmp_path, "parameters { real x; } model { target += -log(x); }"))
    points = np.array([[0.0], [1.0]])
    assert peak(points)[0].tolist() == peak.values(points).tolist() == [-np.inf, 0]


@pytest.mark.parametrize(
    ("declared", "changes"),
    [
        ("real<lower=0> x;", {}),
        ("real x;", {"transforms": {"x": "log"}}),
        ("real<lower=0, upper=2> x;", {}),
        ("real<lower=0, upper=2> x;", {"bounds": {"x": (0.0, 2.5)}}),
        ("real<lower=1> x;", {"transforms": {"x": "log"}}),
        ("real<offset=3> x;", {}),
    ],
)
def test_a_model_that_is_wrong_about_its_program_is_refused(
    tmp_path: Path, declared: str, changes: dict[str, dict[str, object]]
) -> None:
    model = program(tmp_path, f"parameters {{ {declared} }} model {{ target += -square(x); }}")
    with pytest.raises(DataError, match="transforms and bounds of small"):
        TargetDensity(replace(model, **changes))  # type: ignore[arg-type]


def test_a_model_of_another_dimension_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="says that it has dimension 3, but its program has 2"):
        TargetDensity(program(tmp_path, "parameters { vector[2] x; }", dimension=3))
    with pytest.raises(DataError, match=r"points of shape \(n, 2\)"):
        TargetDensity(program(tmp_path, "parameters { vector[2] x; }", dimension=2))(
            np.zeros((4, 3))
        )


def test_data_that_the_program_refuses_are_refused_by_name() -> None:
    model, _ = log_gaussian()
    with pytest.raises(DataError, match="log_gaussian-target"):
        StanDensity(model.program("target"), {"mu": [0.0]})


def test_without_stanli_and_a_compiler_the_message_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "stanli", None)
    monkeypatch.setattr("harness.engine.stan_source.why_no_compiler", lambda: "No compiler.")
    model, _ = log_gaussian()
    with pytest.raises(ToolchainError, match="pip install 'stanli"):
        TargetDensity(model)
