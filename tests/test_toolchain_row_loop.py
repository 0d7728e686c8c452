"""The compiled loop over rows: what it computes, and that no fault of its build is a caller's."""

from __future__ import annotations

import ctypes
import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from harness.arrays import FloatArray
from harness.engine.toolchain import row_loop as module
from harness.engine.toolchain.row_loop import built, row_loop
from harness.engine.toolchain.tools import Compiler, find_compiler

DIMENSION = 3
POINTER = ctypes.c_void_p
FLAG = ctypes.c_bool


def density(point: FloatArray) -> tuple[int, float, FloatArray]:
    """Status, value and gradient of a density that has a fault of every kind."""
    if point[0] > 2:
        return -1, 17.0, point
    if point[0] < -2:
        return 0, np.nan, point
    value = -float(point @ point)
    if point[1] > 2:
        return 0, np.inf, point
    return 0, value, np.where(point > 2.5, np.inf, -2 * point)


def by_address(
    model: int, propto: bool, jacobian: bool, point: int, value: int, gradient: int, message: int
) -> int:
    """Same, as a C function like BridgeStan's."""

    def numbers(address: int, count: int) -> FloatArray:
        return np.ctypeslib.as_array((ctypes.c_double * count).from_address(address))

    assert propto
    assert jacobian
    status, numbers(value, 1)[0], numbers(gradient, DIMENSION)[:] = density(
        numbers(point, DIMENSION)
    )
    return status


def value_by_address(
    model: int, propto: bool, jacobian: bool, point: int, value: int, message: int
) -> int:
    """Same without the gradient."""
    gradient = (ctypes.c_double * DIMENSION)()
    place = ctypes.addressof(gradient)
    return by_address(model, propto, jacobian, point, value, place, message)


called = ctypes.CFUNCTYPE(ctypes.c_int, POINTER, FLAG, FLAG, POINTER, POINTER, POINTER, POINTER)(
    by_address
)
called_for_values = ctypes.CFUNCTYPE(ctypes.c_int, POINTER, FLAG, FLAG, POINTER, POINTER, POINTER)(
    value_by_address
)


def expected(points: FloatArray) -> tuple[FloatArray, FloatArray]:
    values, gradients = np.full(len(points), -np.inf), np.zeros(points.shape)
    for row, point in enumerate(points):
        if not np.isfinite(point).all():
            continue
        status, value, gradient = density(point)
        if status == 0 and value == np.inf:
            values[row] = np.inf
        elif status == 0 and np.isfinite(value) and np.isfinite(gradient).all():
            values[row], gradients[row] = value, gradient
    return values, gradients


@pytest.fixture
def afresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return an empty cache folder, of a process that has no loop yet."""
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    row_loop.cache_clear()
    yield tmp_path / "cache"
    row_loop.cache_clear()


@pytest.mark.compiled
@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("count", [0, 1, 2, 7, 500])
def test_rows_are_those_of_the_function(threads: int, count: int) -> None:
    loop = row_loop()
    assert loop is not None
    points = np.random.default_rng(count).normal(scale=1.6, size=(count, DIMENSION))
    points[3::9, 1] = np.nan
    points[4::11, 2] = -np.inf
    value, gradient = np.full(count, 5.0), np.full(points.shape, 5.0)
    models = (ctypes.c_void_p * threads)()
    address = ctypes.cast(called, ctypes.c_void_p).value
    arrays = [each.ctypes.data for each in (points, value, gradient)]
    loop(address, None, models, threads, count, DIMENSION, *arrays)
    values, gradients = expected(points)
    np.testing.assert_array_equal(value, values)
    np.testing.assert_array_equal(gradient, gradients)
    if count == 500:  # each fault is met
        assert {np.inf, -np.inf} < set(values.tolist())


@pytest.mark.compiled
@pytest.mark.parametrize("threads", [1, 3])
def test_values_alone(threads: int) -> None:
    """They are the same, also where the gradient alone has a fault."""
    loop = row_loop()
    assert loop is not None
    points = np.random.default_rng(1).normal(scale=1.6, size=(500, DIMENSION))
    points[3::9, 1] = np.nan
    value = np.full(500, 5.0)
    models = (ctypes.c_void_p * threads)()
    address = ctypes.cast(called_for_values, ctypes.c_void_p).value
    loop(
        None, address, models, threads, 500, DIMENSION, points.ctypes.data, value.ctypes.data, None
    )
    known = np.isfinite(points).all(axis=1)
    both = [density(point) for point in points[known]]
    has_value = [status == 0 and not np.isnan(found) for status, found, _ in both]
    expected_values = np.where(has_value, [found for _, found, _ in both], -np.inf)
    np.testing.assert_array_equal(value[known], expected_values)
    assert np.all(value[~known] == -np.inf)
    faulty = [not np.isfinite(slope).all() for _, _, slope in both]
    assert np.isfinite(value[known][faulty]).any()


@pytest.mark.compiled
def test_it_is_built_once(afresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[Path] = []
    compile_it = module._compile

    def noted(compiler: Compiler, library: Path) -> None:
        compiled.append(library)
        compile_it(compiler, library)

    monkeypatch.setattr(module, "_compile", noted)
    compiler = find_compiler()
    with ThreadPoolExecutor(4) as pool:
        made = {future.result() for future in [pool.submit(built, compiler) for _ in range(4)]}
    assert len(made) == 1
    assert len(compiled) == 1
    assert row_loop() is not None
    assert len(compiled) == 1


def test_without_a_compiler_there_is_none_and_no_warning(
    afresh: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert row_loop() is None
    assert not [each for each in caplog.records if each.levelno >= logging.WARNING]


def failing_compiler(folder: Path) -> Path:
    path = folder / "g++"
    path.write_text(
        '#!/bin/sh\ncase "$1" in --version) echo "g++ (Fake) 12.2.0";; -dumpmachine) echo none;; '
        '*) echo "rows.cpp:1:1: error: it is Monday" >&2; exit 1;; esac\n'
    )
    path.chmod(0o755)
    return path


def test_a_build_that_fails_is_said_and_done_without(
    afresh: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("CXX", str(failing_compiler(tmp_path)))
    assert row_loop() is None
    assert row_loop() is None
    (said,) = [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]
    assert "error: it is Monday" in said


def test_a_cache_that_cannot_be_written_is_said_and_done_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "file"))
    monkeypatch.setenv("CXX", str(failing_compiler(tmp_path)))
    row_loop.cache_clear()
    assert row_loop() is None
    row_loop.cache_clear()
    assert "Cannot write in the cache folder" in caplog.text


def test_a_damaged_library_is_said_and_done_without(
    afresh: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("CXX", str(failing_compiler(tmp_path)))
    monkeypatch.setattr(module, "_compile", lambda _, library: library.write_bytes(b"damaged"))
    assert row_loop() is None
    assert "could not be built" in caplog.text
