"""Log densities of Stan programs at many points in one call."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from corpus_data import corpus_data
from stan_density import stanli

from harness.arrays import FloatArray
from harness.engine.batched import BatchedDensity
from harness.engine.program import StanProgram
from harness.engine.stanli_package import stan_model
from harness.engine.toolchain.row_loop import row_loop
from harness.errors import DataError, SamplingError
from harness.model import Model
from harness.models.boltzmann import generate, relax
from harness.models.gaussian_mixture import kou_mixture
from harness.models.radon import radon

CORPUS = Path(__file__).parent / "corpus"
USERS = (
    "arrays_of_everything",
    "lotka_volterra_ode",
    "mvn_lkj_cholesky",
    "lda_small",
    "ordered_logit",
    "offset_multiplier",
    "gp_regression",
    "no_data",
)


@pytest.fixture(params=["compiled loop", "row by row"])
def native(request: pytest.FixtureRequest) -> bool:
    """Each way to evaluate rows."""
    if request.param == "compiled loop" and row_loop() is None:
        pytest.skip("there is no compiler")
    return bool(request.param == "compiled loop")


def program(folder: Path, text: str, name: str = "small") -> StanProgram:
    path = folder / f"{name}.stan"
    path.write_text(text)
    return StanProgram(path)


def by_stanli(
    program: StanProgram, data: dict[str, Any], points: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Values and gradients through stanli's own Python class, point by point."""
    model = stan_model(program, data)
    values, gradients = np.full(len(points), -np.inf), np.zeros(points.shape)
    for row, point in enumerate(points):
        try:
            value, gradient = model.log_prob_grad(point)
        except RuntimeError:
            continue
        if np.isfinite(value) and np.isfinite(gradient).all():
            values[row], gradients[row] = value, gradient
    return values, gradients


CONSTRAINED = """
data { int K; vector[K] y; }
parameters {
  real<lower=0> scale;
  simplex[K] share;
  ordered[3] cut;
  matrix<lower=-1, upper=2>[2, 3] box;
  cov_matrix[2] S;
  cholesky_factor_corr[3] L;
  array[2, 3] vector[2] deep;
  array[0] real nothing;
}
transformed parameters { real largest = max(share); }
model {
  y ~ normal(share, scale);
  scale ~ lognormal(0, 1);
  cut ~ normal(0, 2);
  S ~ inv_wishart(4, identity_matrix(2));
  L ~ lkj_corr_cholesky(2);
  for (i in 1:2) for (j in 1:3) deep[i, j] ~ normal(i, j);
}
generated quantities { real noise = normal_rng(largest, 1); }
"""
DATA = {"K": 4, "y": [0.3, -0.2, 1.0, 0.5]}


def shipped() -> list[Model]:
    relaxation = relax(generate(28, np.random.default_rng(1))).model("relaxation")
    return [kou_mixture("a").model("mixture", lower=-5.5, upper=15.5), relaxation, radon()]


@pytest.mark.parametrize("model", shipped(), ids=lambda model: model.name)
def test_shipped_programs_have_the_very_values_of_stanli(model: Model, native: bool) -> None:
    """Equal to the last bit: it is the same function of the same library."""
    density = BatchedDensity(model.program("target"), model.data, native=native, threads=2)
    points = np.random.default_rng(1).normal(size=(40, density.dimension))
    value, gradient = density(points)
    values, gradients = by_stanli(model.program("target"), dict(model.data), points)
    assert np.isfinite(values).all()
    assert np.array_equal(value, values)
    assert np.array_equal(gradient, gradients)
    assert np.array_equal(density.values(points), values)


@pytest.mark.parametrize("name", USERS)
def test_users_programs_have_the_very_values_of_stanli(name: str, native: bool) -> None:
    """Equal to the last bit, far points that are rejected or overflow included."""
    at = StanProgram(CORPUS / f"{name}.stan", (CORPUS,))
    density = BatchedDensity(at, corpus_data(name), native=native, threads=2)
    points = np.random.default_rng(2).normal(size=(60, density.dimension))
    points[::5] *= 10
    value, gradient = density(points)
    values, gradients = by_stanli(at, corpus_data(name), points)
    assert np.isfinite(values).any()
    assert np.array_equal(value, values)
    assert np.array_equal(gradient, gradients)
    # A value alone may stay where its gradient is not finite; none here does.
    assert np.array_equal(density.values(points), values)


def test_a_library_without_values_alone_evaluates_gradients(tmp_path: Path) -> None:
    """As those that are compiled from a program do."""
    density = BatchedDensity(program(tmp_path, CONSTRAINED), DATA)
    points = np.random.default_rng(3).normal(size=(50, density.dimension))
    instance = density._instances.take()
    instance.library = replace(instance.library, value_address=None)
    density._instances.put_back(instance)
    assert np.array_equal(density.values(points), density(points)[0])


def test_gradients_are_those_of_the_values(tmp_path: Path, native: bool) -> None:
    """Against central differences, whose error is of the order of the step's square."""
    density = BatchedDensity(program(tmp_path, CONSTRAINED), DATA, native=native)
    points = np.random.default_rng(3).normal(scale=0.5, size=(5, density.dimension))
    _, gradient = density(points)
    shift = 1e-5 * np.eye(density.dimension)
    ahead = density((points[:, None] + shift).reshape(-1, density.dimension))[0]
    behind = density((points[:, None] - shift).reshape(-1, density.dimension))[0]
    difference = (ahead - behind).reshape(5, -1) / 2e-5
    np.testing.assert_allclose(gradient, difference, rtol=1e-6, atol=1e-6)


REJECTS = """
parameters { vector[2] x; }
model {
  if (x[1] > 5) reject("far away: ", x[1]);
  target += sqrt(x[2]) - square(x[1]);
}
"""


def test_where_a_point_has_no_density_the_value_says_so(tmp_path: Path, native: bool) -> None:
    density = BatchedDensity(program(tmp_path, REJECTS), {}, native=native)
    points = np.array([[1, 4], [6, 4], [1, -1], [np.nan, 4], [1, np.inf], [2, 1], [1, 0]])
    value, gradient = density(points)
    # The slope of sqrt at 0 is infinite in Stan; stanli has 0.
    assert value[:6].tolist() == [1, -np.inf, -np.inf, -np.inf, -np.inf, -3]
    expected = np.array([[-2, 0.25], [0, 0], [0, 0], [0, 0], [0, 0], [-4, 0.5]])
    np.testing.assert_allclose(gradient[:6], expected)
    assert np.isfinite(gradient).all()
    assert density.values(points)[:6].tolist() == value[:6].tolist()


def test_one_point_is_as_the_program_has_it(tmp_path: Path) -> None:
    density = BatchedDensity(program(tmp_path, REJECTS), {})
    value, gradient = density.at([1.0, 4.0])
    assert (value, gradient.tolist()) == (1, [-2, 0.25])
    assert np.isnan(density.at([1.0, -1.0])[0])
    with pytest.raises(RuntimeError, match="far away: 6"):
        density.at([6.0, 4.0])


def test_infinity_is_left_to_the_caller_and_an_infinite_slope_is_not(
    tmp_path: Path, native: bool
) -> None:
    peak = program(tmp_path, "parameters { real x; } model { target += -log(abs(x)); }")
    steep = program(
        tmp_path,
        "parameters { real x; } model { target += x > 0 ? 1 + pow(x, 0.1) * 1e300 : x; }",
        "steep",
    )
    value, gradient = BatchedDensity(peak, {}, native=native)([[0.0], [1.0]])
    assert value.tolist() == [np.inf, 0]
    assert gradient.tolist() == [[0], [-1]]
    assert BatchedDensity(peak, {}, native=native).values([[0.0], [1.0]]).tolist() == [np.inf, 0]
    value, gradient = BatchedDensity(steep, {}, native=native)([[1e-300], [-1.0]])
    assert value.tolist() == [-np.inf, -1]
    assert gradient.tolist() == [[0], [1]]


def test_points_may_have_any_layout_and_number(tmp_path: Path, native: bool) -> None:
    density = BatchedDensity(program(tmp_path, CONSTRAINED), DATA, native=native)
    d = density.dimension
    points = np.random.default_rng(4).normal(size=(9, d))
    value, gradient = density(points)
    wide = np.zeros((9, 2 * d))
    wide[:, ::2] = points
    frozen = points.copy()
    frozen.flags.writeable = False
    for same in (wide[:, ::2], np.asfortranarray(points), points.tolist(), frozen):
        again = density(same)
        assert np.array_equal(again[0], value)
        assert np.array_equal(again[1], gradient)
    backwards = density(points[::-1])
    assert np.array_equal(backwards[0][::-1], value)
    assert np.array_equal(backwards[1][::-1], gradient)
    single = points.astype(np.float32)
    assert np.array_equal(density(single)[0], density(single.astype(np.float64))[0])
    none, slope = density(np.empty((0, d)))
    assert (none.shape, slope.shape) == ((0,), (0, d))
    assert density.values(np.empty((0, d))).shape == (0,)
    assert np.array_equal(density.values(wide[:, ::2]), value)
    line = BatchedDensity(
        program(tmp_path, "parameters { real x; } model { target += -x * x; }", "line"),
        {},
        native=native,
    )
    assert line([[3.0]])[1].tolist() == [[-6.0]]
    for wrong in (points[0], points[:, 1:], points[None]):
        with pytest.raises(DataError, match=rf"small takes points of shape \(n, {d}\)"):
            density(wrong)
        with pytest.raises(DataError, match=rf"small takes points of shape \(n, {d}\)"):
            density.values(wrong)


SLOW = """
parameters { vector[3] x; }
model { for (i in 1:4000) target += -square(x[1] - sin(i * x[2])) + log1p_exp(-x[3]); }
"""


@pytest.mark.compiled
def test_rows_that_take_long_are_shared_among_calls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that an interrupt need not wait for all of them."""
    monkeypatch.setattr("harness.engine.stan_rows._SECONDS_A_CALL", 1e-5)
    loop, calls = row_loop(), []
    assert loop is not None

    def noted(*given: Any) -> None:
        calls.append(given[4])
        loop(*given)

    monkeypatch.setattr("harness.engine.batched.row_loop", lambda: noted)
    slow = program(tmp_path, SLOW)
    points = np.random.default_rng(8).normal(size=(200, 3))
    value, gradient = BatchedDensity(slow, {}, threads=2)(points)
    # A row takes longer than a call may: after the first calls have one for each thread.
    assert calls == [64] + [2] * 68
    values, gradients = BatchedDensity(slow, {}, native=False)(points)
    assert np.array_equal(value, values)
    assert np.array_equal(gradient, gradients)


@pytest.mark.parametrize("text", [CONSTRAINED, SLOW, REJECTS], ids=["quick", "slow", "rejects"])
def test_threads_change_nothing(text: str, tmp_path: Path, native: bool) -> None:
    given, data = program(tmp_path, text), DATA if text == CONSTRAINED else {}
    one = BatchedDensity(given, data, native=native)
    count = 100 if text == SLOW else 5000
    points = np.random.default_rng(5).normal(scale=3, size=(count, one.dimension))
    value, gradient = one(points)
    for threads in (2, 3, 8):
        again = BatchedDensity(given, data, native=native, threads=threads)(points)
        assert np.array_equal(again[0], value)
        assert np.array_equal(again[1], gradient)
        alone = BatchedDensity(given, data, native=native, threads=threads).values(points)
        assert np.array_equal(alone, value)


def test_several_callers_share_one_density(tmp_path: Path, native: bool) -> None:
    density = BatchedDensity(program(tmp_path, CONSTRAINED), DATA, native=native, threads=2)
    batches = np.random.default_rng(6).normal(size=(24, 300, density.dimension))
    expected = [density(batch) for batch in batches]
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(density, batches))
    for (value, gradient), (again, slope) in zip(expected, found, strict=True):
        assert np.array_equal(value, again)
        assert np.array_equal(gradient, slope)


def test_parameters_and_points_are_carried_to_and_fro(tmp_path: Path) -> None:
    density = BatchedDensity(program(tmp_path, CONSTRAINED), DATA)
    points = np.random.default_rng(2).normal(size=(6, density.dimension))
    values = density.constrain(points)
    assert {name: value.shape for name, value in values.items()} == {
        name: (6, *shape) for name, shape in density.shapes.items()
    }
    assert density.shapes["deep"] == (2, 3, 2)
    np.testing.assert_allclose(values["scale"], np.exp(points[:, 0]))
    np.testing.assert_allclose(values["share"].sum(axis=1), 1)
    assert (np.diff(values["cut"], axis=1) > 0).all()
    np.testing.assert_allclose(values["S"], np.swapaxes(values["S"], 1, 2))
    np.testing.assert_allclose(np.square(values["L"]).sum(axis=2), 1)
    np.testing.assert_allclose(density.unconstrain_draws(values), points, rtol=1e-12, atol=1e-12)
    one = {name: value[3] for name, value in values.items()}
    np.testing.assert_allclose(density.unconstrain(one), points[3], rtol=1e-12, atol=1e-12)
    assert density.unconstrain_draws({n: v[:0] for n, v in values.items()}).shape == (
        0,
        density.dimension,
    )


def test_unconstrained_points_are_those_of_stanli(tmp_path: Path) -> None:
    """Arrays of vectors above all, whose order is not that of their indices."""
    small = program(tmp_path, CONSTRAINED)
    density = BatchedDensity(small, DATA)
    values = density.constrain(np.random.default_rng(7).normal(size=(1, density.dimension)))
    one = {name: np.ravel(value[0], order="F").tolist() for name, value in values.items()}
    theirs = stan_model(small, DATA).unconstrain(one | {"nothing": []})
    np.testing.assert_array_equal(density.unconstrain_draws(values)[0], theirs)


def test_what_else_the_program_writes(tmp_path: Path) -> None:
    density = BatchedDensity(program(tmp_path, CONSTRAINED), DATA)
    points = np.repeat(np.random.default_rng(2).normal(size=(1, density.dimension)), 2000, axis=0)
    both = density.constrain(points, transformed=True, seed=1)
    assert both.keys() - density.shapes.keys() == {"largest", "noise"}
    assert np.array_equal(both["largest"], both["share"].max(axis=1))
    # A mean of 2,000 standard normals: its error is 0.022, and this is five of them.
    assert abs((both["noise"] - both["largest"]).mean()) < 0.11
    again = density.constrain(points, seed=1)
    assert np.array_equal(again["noise"], both["noise"])
    assert "largest" not in again
    assert not np.array_equal(density.constrain(points, seed=2)["noise"], both["noise"])


def test_a_point_that_the_program_rejects_has_no_parameters(tmp_path: Path) -> None:
    given = program(
        tmp_path,
        "parameters { real x; } transformed parameters { real<upper=1> y = x; } model { }",
    )
    density = BatchedDensity(given, {})
    with pytest.raises(SamplingError, match=r"a point was rejected: .*y"):
        density.constrain([[0.5], [3.0]], transformed=True)


def test_values_that_are_no_parameters_are_refused(tmp_path: Path) -> None:
    density = BatchedDensity(program(tmp_path, CONSTRAINED), DATA)
    values = density.constrain(np.zeros((2, density.dimension)))
    with pytest.raises(DataError, match="no values of the parameter share"):
        density.unconstrain_draws({n: v for n, v in values.items() if n != "share"})
    with pytest.raises(DataError, match="scale"):
        density.unconstrain_draws(values | {"scale": [1.0, -1.0]})
    with pytest.raises(DataError, match="draws of box have shape"):
        density.unconstrain_draws(values | {"box": np.zeros((2, 3, 2))})
    with pytest.raises(DataError, match="same number of draws"):
        density.unconstrain_draws(values | {"scale": [1.0]})


@pytest.mark.parametrize(
    ("text", "data", "said"),
    [
        ("parameters { real x } model { }", {}, "small: "),
        ("data { int n; } parameters { real x; } model { }", {}, "variable n"),
        ("data { int n; } parameters { real x; } model { }", {"n": 1j}, "small: "),
        (
            "data { int<lower=3> n; } parameters { real x; } model { }",
            {"n": 2},
            "greater than or equal",
        ),
    ],
)
def test_programs_and_data_that_are_refused_say_why(
    text: str, data: dict[str, Any], said: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=said):
        BatchedDensity(program(tmp_path, text), data)


def test_what_a_program_prints_is_dropped(
    tmp_path: Path, native: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    given = program(
        tmp_path, 'parameters { real x; } model { print("x is ", x); target += -square(x); }'
    )
    value, _ = BatchedDensity(given, {}, native=native, threads=2)([[1.0], [2.0], [3.0]])
    assert value.tolist() == [-1, -4, -9]
    assert capfd.readouterr() == ("", "")


def grown(work: Callable[[], object]) -> float:
    """Megabytes that this process has grown by in 40 pieces of work, after some before."""
    process = psutil.Process(os.getpid())
    for _ in range(5):
        work()
    before = process.memory_info().rss
    for _ in range(40):
        work()
    return (process.memory_info().rss - before) / 2**20


def test_densities_that_are_gone_leave_nothing_behind(tmp_path: Path) -> None:
    """An instance has its data, here 0.8 MB: 80 that stayed would be 64 MB."""
    given = program(
        tmp_path,
        "data { int n; vector[n] y; } parameters { real m; } model { y ~ normal(m, 1); }",
    )
    data = {"n": 100_000, "y": np.zeros(100_000)}

    def use() -> None:
        BatchedDensity(given, data, threads=2)(np.zeros((2, 1)))

    assert grown(use) < 30


def test_messages_are_freed(tmp_path: Path) -> None:
    """Of 90,000 bytes each, of which 400 are asked for: 36 MB."""
    given = program(
        tmp_path,
        "transformed data { vector[10000] x = rep_vector(0.123456, 10000); } "
        "parameters { real y; } model { reject(x); }",
    )
    density = BatchedDensity(given, {})

    def use() -> None:
        for _ in range(10):
            with pytest.raises(RuntimeError, match=r"0\.12"):
                density.at([0.0])

    assert grown(use) < 20


def test_a_number_of_threads_is_at_least_one(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="1 thread or more; got 0"):
        BatchedDensity(program(tmp_path, REJECTS), {}, threads=0)


def test_models_of_stanli_itself_are_not_disturbed(tmp_path: Path) -> None:
    """Both use the same library, each with its own way to call it."""
    small = program(tmp_path, CONSTRAINED)
    model = stanli.Model(str(small.path), data=DATA)
    density = BatchedDensity(small, DATA)
    point = np.full(density.dimension, 0.1)
    before = model.log_prob_grad(point)[0]
    assert density([point])[0] == before == model.log_prob_grad(point)[0]
