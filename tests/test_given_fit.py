"""Fits that somebody has are read, and refused with a reason where they cannot be used."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import xarray as xr
from corpus_data import corpus_data
from corpus_oracle import CORPUS
from given_fits import as_fit, nuts_run, write_csv

from harness.engine.batched import BatchedDensity
from harness.engine.nuts import NutsRun
from harness.engine.program import StanProgram
from harness.engine.sampler_csv import read_sampler_csv
from harness.errors import DataError
from harness.user.belongs import difference_from_lp, unconstrained
from harness.user.given_fit import read_given

NAME, NAMES = "conjugate_regression", ("beta", "sigma2")
PROGRAM = CORPUS / f"{NAME}.stan"


@pytest.fixture(scope="module")
def run() -> NutsRun:
    return nuts_run(PROGRAM, corpus_data(NAME), seed=1, draws=100)


@pytest.fixture(scope="module")
def files(run: NutsRun, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return write_csv(tmp_path_factory.mktemp("csv"), run, NAMES, digits=17)


def test_csv_files_hold_what_the_sampler_drew(run: NutsRun, files: list[Path]) -> None:
    found = read_given(files)
    assert found.shape == (4, 100)
    for name in NAMES:
        np.testing.assert_array_equal(found.variables[name], run.variables[name])
    np.testing.assert_array_equal(found.sample_stats["lp"], run.sample_stats["lp"])
    assert found.sample_stats["diverging"].dtype == bool


def test_matrices_in_csv_files_have_their_shape(tmp_path: Path) -> None:
    variables = {"m": np.arange(4 * 10 * 6.0).reshape(4, 10, 2, 3)}
    made = nuts_run(PROGRAM, corpus_data(NAME), seed=2, draws=10)
    paths = write_csv(tmp_path, replace(made, variables=variables), ["m"])
    np.testing.assert_array_equal(read_sampler_csv(paths).variables["m"], variables["m"])


def test_saved_warmup_is_left_out(run: NutsRun, tmp_path: Path) -> None:
    found = read_given(write_csv(tmp_path, run, NAMES, digits=17, warmup=30))
    np.testing.assert_array_equal(found.variables["beta"], run.variables["beta"][:, 30:])


def of_posterior(run: NutsRun) -> dict[str, xr.Dataset]:
    tree = as_fit(run, NAMES).tree
    return {f"/{name}": tree[name].to_dataset() for name in ("posterior", "sample_stats")}


class LikeInferenceData:
    """What the older ArviZ hands out: groups as attributes."""

    def __init__(self, groups: dict[str, xr.Dataset]) -> None:
        self.posterior = groups["/posterior"].transpose(..., "draw", "chain")
        self.sample_stats = groups["/sample_stats"]


class LikeCmdStan:
    """What CmdStanPy's fit is read by."""

    def __init__(self, files: list[Path]) -> None:
        self.runset = SimpleNamespace(csv_files=[str(path) for path in files])


def test_every_kind_of_fit_gives_the_same_draws(
    run: NutsRun, files: list[Path], tmp_path: Path
) -> None:
    groups = of_posterior(run)
    tree, arviz, ours = xr.DataTree.from_dict(groups), tmp_path / "az.nc", tmp_path / "ours.nc"
    tree.to_netcdf(arviz, engine="h5netcdf")
    fit = as_fit(run, NAMES)
    fit.save(ours)
    given: list[Any] = [
        [str(path) for path in files],
        *(arviz, str(ours), fit, tree),
        *(LikeInferenceData(groups), LikeCmdStan(files)),
    ]
    for each in given:
        found = read_given(each)
        for name in NAMES:
            np.testing.assert_array_equal(found.variables[name], run.variables[name])
        np.testing.assert_array_equal(found.sample_stats["lp"], run.sample_stats["lp"])


def cut_off(path: Path) -> None:
    lines = path.read_text().splitlines()
    path.write_text("\n".join(lines[:60]))


def cut_in_a_line(path: Path) -> None:
    path.write_text(path.read_text()[:4000])


def without_draws(path: Path) -> None:
    lines = path.read_text().splitlines()
    path.write_text("\n".join(each for each in lines if each.startswith(("#", "lp__"))))


def of_another_method(path: Path) -> None:
    path.write_text(path.read_text().replace("method = sample", "method = optimize"))


def with_other_columns(path: Path) -> None:
    path.write_text(path.read_text().replace("sigma2", "sigma"))


def no_csv(path: Path) -> None:
    path.write_text('{"y": 1}')


def binary(path: Path) -> None:
    path.write_bytes(b"\0\1\2" * 100)


def gone(path: Path) -> None:
    path.unlink()


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    ("damage", "number", "says"),
    [
        (cut_off, 2, "of 100 draws"),
        (cut_in_a_line, 0, "damaged or incomplete|of 100 draws"),
        (without_draws, 0, "no draws"),
        (of_another_method, 0, "optimize"),
        (with_other_columns, 1, "other columns"),
        (no_csv, 0, "not a CSV file of CmdStan's sampler"),
        (binary, 0, "is no CSV file"),
        (gone, 3, "there is no file"),
        (folder, 1, "is a folder"),
    ],
)
def test_bad_files_are_refused(
    run: NutsRun, tmp_path: Path, damage: Callable[[Path], None], number: int, says: str
) -> None:
    paths = write_csv(tmp_path, run, NAMES)
    damage(paths[number])
    with pytest.raises(DataError, match=says):
        read_given(paths)


def test_what_is_no_fit_is_refused(files: list[Path], tmp_path: Path) -> None:
    with pytest.raises(DataError, match="given twice"):
        read_given([files[0], files[0]])
    with pytest.raises(DataError, match="give a fit"):
        read_given([])
    with pytest.raises(DataError, match="no group posterior"):
        read_given({"prior": 1})
    other = tmp_path / "other.nc"
    other.write_bytes(b"\0\1\2" * 100)
    with pytest.raises(DataError, match="neither a CSV file"):
        read_given(other)


def test_missing_parameters_and_other_shapes_are_refused(files: list[Path]) -> None:
    found = read_given(files)
    with pytest.raises(DataError, match="no draws of the program's parameter tau; it has beta"):
        found.parameters({"beta": (2,), "tau": ()})
    with pytest.raises(DataError, match=r"shape \(2,\).*other data"):
        found.parameters({"beta": (3,)})


def test_draws_are_those_of_the_program_up_to_one_constant(run: NutsRun) -> None:
    """With the digits that CmdStan writes by default."""
    data = corpus_data(NAME)
    draws = {
        name: np.asarray([float(f"{v:.6g}") for v in run.variables[name].ravel()]).reshape(
            run.variables[name].shape
        )
        for name in NAMES
    }
    lp = run.sample_stats["lp"]
    density = BatchedDensity(StanProgram(PROGRAM), data)
    points = unconstrained(density, draws, "the fit")
    value, gradient = density(points.reshape(-1, 3))
    arrays = value.reshape(lp.shape), gradient.reshape(points.shape), points
    assert difference_from_lp(lp, *arrays) is None
    assert difference_from_lp(lp + 17.0, *arrays) is None
    other = dict(data) | {"y": np.asarray(data["y"]) + 0.02}
    value, gradient = BatchedDensity(StanProgram(PROGRAM), other)(points.reshape(-1, 3))
    changed = value.reshape(lp.shape), gradient.reshape(points.shape), points
    assert "lp__" in str(difference_from_lp(lp, *changed))


def test_rounded_simplexes_are_corrected() -> None:
    """Six digits do not sum to one within the 1e-8 that Stan asks for."""
    data = corpus_data("dirichlet_multinomial")
    density = BatchedDensity(StanProgram(CORPUS / "dirichlet_multinomial.stan"), data)
    exact = np.random.default_rng(1).dirichlet([2.0, 3.0, 4.0, 5.0], (2, 10))
    points = unconstrained(density, {"theta": np.round(exact, 6)}, "the fit")
    back = density.constrain(points.reshape(-1, 3))["theta"].reshape(exact.shape)
    np.testing.assert_allclose(back, exact, atol=3e-6)
    with pytest.raises(DataError, match="outside the support"):
        unconstrained(density, {"theta": exact * 1.1}, "the fit")
    edge = np.broadcast_to([1.0, 0.0, 0.0, 0.0], (2, 10, 4))
    with pytest.raises(DataError, match="edge of a parameter's support"):
        unconstrained(density, {"theta": edge}, "the fit")
