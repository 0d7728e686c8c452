"""A fit: labels, series and expectations, and its way to disk and back."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Never

import numpy as np
import pytest
import xarray as xr

from harness.errors import DataError, StoreError
from harness.evidence import r_hat
from harness.fit import Fit, build_fit

CHAINS, DRAWS, NUM = 2, 8, 3


def make_fit(*, extended: bool = True, chains: int = CHAINS, seed: int = 1) -> Fit:
    rng = np.random.default_rng(seed)
    shape = (chains, DRAWS)
    groups: dict[str, np.ndarray] | None = None
    if extended:
        groups = {
            "x": rng.normal(size=(*shape, 2, NUM)),
            "scale": rng.gamma(2, size=(*shape, NUM)),
            "inv_temp": rng.random((*shape, NUM)),
            "log_weight": rng.normal(0, 2, (*shape, NUM)),
        }
    return build_fit(
        posterior={"x": rng.normal(size=(*shape, 2)), "scale": rng.gamma(2, size=shape)},
        extended=groups,
        sample_stats={
            "diverging": rng.random(shape) < 0.5,
            "n_steps": rng.integers(1, 99, shape),
            "lp": rng.normal(size=shape),
        },
        constant_data={"D": 2, "mu": rng.normal(size=(2, 4)), "lower": -1.5, "none": np.empty(0)},
        attrs={
            "method": "made up",
            "settings": {"num_pseudo_samples": NUM, "inv_temp": None, "nuts": {"chains": chains}},
            "seed": 2**32 - 1,
            "gradients_warmup": rng.integers(1, 10**6, chains),
            "gradients_sampling": rng.integers(1, 10**6, chains),
            "seconds_warmup": rng.random(chains),
            "seconds_sampling": rng.random(chains),
        },
    )


def test_labels() -> None:
    fit = make_fit()
    assert fit.extended is not None
    assert fit.posterior["x"].dims == ("chain", "draw", "x_dim_0")
    assert fit.posterior["scale"].dims == ("chain", "draw")
    assert fit.extended["x"].dims == ("chain", "draw", "x_dim_0", "pseudo_sample")
    assert fit.extended["log_weight"].dims == ("chain", "draw", "pseudo_sample")
    assert fit.sample_stats["diverging"].dtype == bool
    assert set(fit.tree["constant_data"].to_dataset().data_vars) == {"D", "mu", "lower"}
    assert fit.settings == {"num_pseudo_samples": 3, "inv_temp": None, "nuts": {"chains": 2}}
    assert make_fit(extended=False).extended is None


@pytest.mark.parametrize("chains", [1, 2])
@pytest.mark.parametrize("extended", [True, False])
def test_a_fit_comes_back_bit_for_bit(tmp_path: Path, extended: bool, chains: int) -> None:
    fit = make_fit(extended=extended, chains=chains)
    path = tmp_path / "new" / "folder" / "fit.nc"
    fit.save(path)
    assert list(path.parent.iterdir()) == [path]
    again = Fit.load(path)
    assert set(again.tree.children) == set(fit.tree.children)
    assert list(again.posterior) == list(fit.posterior) == ["x", "scale"]  # not sorted
    for name in fit.tree.children:
        before, after = fit.tree[name].to_dataset(), again.tree[name].to_dataset()
        xr.testing.assert_identical(before, after)
        for variable in before.variables:
            assert before[variable].dtype == after[variable].dtype
            assert before[variable].to_numpy().tobytes() == after[variable].to_numpy().tobytes()
    assert set(again.tree.attrs) == set(fit.tree.attrs)
    for key, value in fit.tree.attrs.items():
        assert np.array_equal(np.atleast_1d(again.tree.attrs[key]), np.atleast_1d(value)), key
    assert again.settings == fit.settings
    assert (again.gradients, again.seconds) == (fit.gradients, fit.seconds)
    # The file is closed: it can be written again, and the loaded fit does not depend on it.
    path.unlink()
    assert np.isfinite(again.posterior["x"]).all()


def test_cost_is_the_sum_over_chains_and_phases() -> None:
    fit = make_fit()
    attrs: dict[Any, Any] = fit.tree.attrs
    gradients = [*attrs["gradients_warmup"], *attrs["gradients_sampling"]]
    assert fit.gradients == sum(gradients)
    seconds = [*attrs["seconds_warmup"], *attrs["seconds_sampling"]]
    assert fit.seconds == pytest.approx(sum(seconds), rel=1e-14)


def test_saving_replaces_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "fit.nc"
    path.write_text("old")
    make_fit(seed=1).save(path)
    make_fit(seed=2).save(path)
    xr.testing.assert_identical(Fit.load(path).posterior, make_fit(seed=2).posterior)
    assert list(tmp_path.iterdir()) == [path]


def test_loading_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no fit"):
        Fit.load(tmp_path / "fit.nc")


# h5netcdf 1.x says on standard error that it cannot close a file that it could not open.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("part", [0.0, 0.001, 0.1, 0.5, 0.9, 0.999])
def test_loading_a_truncated_file(tmp_path: Path, part: float) -> None:
    path = tmp_path / "fit.nc"
    make_fit().save(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(part * len(whole))])
    with pytest.raises(StoreError, match="damaged"):
        Fit.load(path)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("place", [b"harness-fit-1", b"OHDR", b"FRHP", b"FHDB"])
def test_loading_a_file_damaged_inside(tmp_path: Path, place: bytes) -> None:
    """A wrong byte in the mark of our format, or in HDF5's own records (by their signatures)."""
    path = tmp_path / "fit.nc"
    make_fit().save(path)
    whole = bytearray(path.read_bytes())
    start = whole.find(place)
    assert start >= 0
    whole[start + 2] ^= 0xFF
    path.write_bytes(whole)
    with pytest.raises(StoreError, match=r"damaged|not a fit of this program"):
        Fit.load(path)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_loading_something_else(tmp_path: Path) -> None:
    text, netcdf, folder = tmp_path / "a.nc", tmp_path / "b.nc", tmp_path / "c.nc"
    text.write_text("chain,draw,x\n" * 100)
    folder.mkdir()
    for path in (text, folder):
        with pytest.raises(StoreError, match="damaged or is no NetCDF"):
            Fit.load(path)
    xr.Dataset({"x": ("t", np.arange(3.0))}).to_netcdf(netcdf, engine="h5netcdf")
    with pytest.raises(StoreError, match="not a fit of this program"):
        Fit.load(netcdf)
    tree = make_fit().tree
    tree.attrs["format"] = "harness-fit-0"
    tree.to_netcdf(netcdf, engine="h5netcdf")
    with pytest.raises(StoreError, match="another version of harness"):
        Fit.load(netcdf)


def test_saving_where_a_file_is_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot write"):
        make_fit().save(tmp_path / "file" / "fit.nc")
    (tmp_path / "folder.nc").mkdir()
    with pytest.raises(StoreError, match="cannot write"):
        make_fit().save(tmp_path / "folder.nc")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "folder.nc"]


def test_nothing_is_left_when_the_last_step_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "fit.nc"
    make_fit(seed=1).save(path)
    before = path.read_bytes()

    def refuse(*_: object) -> Never:
        raise OSError(13, "Permission denied")

    monkeypatch.setattr(Path, "replace", refuse)
    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(StoreError, match="Permission denied"):
        make_fit(seed=2).save(path)
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_bytes() == before


FULL_DISK = """
import resource
import sys
from pathlib import Path

sys.path.insert(0, sys.argv[1])
from test_fit import make_fit

from harness.errors import DataError, StoreError

fit = make_fit()
resource.setrlimit(resource.RLIMIT_FSIZE, (8192, resource.RLIM_INFINITY))
try:
    fit.save(Path(sys.argv[2]))
except StoreError:
    sys.exit(7)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="limits on file sizes are POSIX")
def test_a_disk_that_is_really_full_is_a_store_error(tmp_path: Path) -> None:
    """The operating system refuses to let the file grow past 8 KB, as a full disk does."""
    path = tmp_path / "fit.nc"
    path.write_text("what was there")
    result = subprocess.run(
        [sys.executable, "-c", FULL_DISK, Path(__file__).parent, path],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 7, f"ended with {result.returncode}: {result.stderr[-500:]}"
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_text() == "what was there"


def test_series_of_target_draws_is_the_function_itself() -> None:
    fit = make_fit(extended=False)
    x = fit.posterior["x"].to_numpy()
    series = fit.series(lambda p: p["x"] ** 2)
    assert series.dims == ("chain", "draw", "x_dim_0")
    np.testing.assert_array_equal(series, x**2)
    assert fit.expectation(lambda p: p["x"] ** 2).value == pytest.approx((x**2).mean(axis=(0, 1)))


def test_series_of_extended_draws_is_the_weighted_sum() -> None:
    fit = make_fit()
    assert fit.extended is not None
    x, log_weight = fit.extended["x"].to_numpy(), fit.extended["log_weight"].to_numpy()
    scale = fit.extended["scale"].to_numpy()
    series = fit.series(lambda p: p["x"] * p["scale"])
    assert series.dims == ("chain", "draw", "x_dim_0")
    for c in range(CHAINS):
        for t in range(DRAWS):
            total = sum(np.exp(log_weight[c, t, i]) for i in range(NUM))
            for d in range(2):
                h = sum(
                    np.exp(log_weight[c, t, i]) / total * x[c, t, d, i] * scale[c, t, i]
                    for i in range(NUM)
                )
                assert float(series[c, t, d]) == pytest.approx(h, rel=1e-12)


@pytest.mark.parametrize("extended", [True, False])
def test_expectation_of_an_event_is_its_probability(extended: bool) -> None:
    fit = make_fit(extended=extended)
    event = fit.expectation(lambda p: p["scale"] > 2)
    number = fit.expectation(lambda p: (p["scale"] > 2).astype(float))
    assert 0 < event.value < 1
    assert event == number


@pytest.mark.parametrize("extended", [True, False])
def test_a_function_of_draws_that_loses_their_axes_is_refused(extended: bool) -> None:
    fit = make_fit(extended=extended)
    with pytest.raises(DataError, match="returned ndarray, and not a DataArray with the axes"):
        fit.expectation(lambda p: p["x"].to_numpy() > 0)  # type: ignore[arg-type,return-value]
    with pytest.raises(DataError, match=r"returned .*'x_dim_0'"):
        fit.effective_draws(lambda p: p["x"].isel(chain=0, draw=0).rename("y"))


def test_a_function_of_one_pseudo_sample_alone_is_refused() -> None:
    fit = make_fit()
    with pytest.raises(DataError, match="with the axes chain, draw and pseudo_sample"):
        fit.expectation(lambda p: p["x"].isel(pseudo_sample=0))


@pytest.mark.parametrize("extended", [True, False])
def test_coordinates_by_position_are_those_by_name(extended: bool) -> None:
    fit = make_fit(extended=extended)
    by_name = fit.expectation(lambda p: p["x"].isel(x_dim_0=1))
    assert fit.expectation(lambda p: p["x"][..., 1]) == by_name


@pytest.mark.parametrize("extended", [True, False])
def test_expectation_of_a_product_of_coordinates(extended: bool) -> None:
    fit = make_fit(extended=extended)
    value, mcse = fit.expectation(lambda p: p["x"].isel(x_dim_0=0) * p["x"].isel(x_dim_0=1))
    if fit.extended is None:
        x = fit.posterior["x"].to_numpy()
        expected = (x[..., 0] * x[..., 1]).mean()
    else:
        x = fit.extended["x"].to_numpy()
        weight = np.exp(fit.extended["log_weight"].to_numpy())
        weight /= weight.sum(axis=-1, keepdims=True)
        expected = (weight * x[..., 0, :] * x[..., 1, :]).sum(axis=-1).mean()
    assert value.shape == mcse.shape == ()
    assert float(value) == pytest.approx(expected, rel=1e-12)
    assert mcse > 0


def test_provenance_is_plain() -> None:
    fit = make_fit()
    provenance = json.loads(json.dumps(fit.provenance()))
    assert provenance["settings"] == fit.settings
    assert provenance["seed"] == 2**32 - 1
    attrs: dict[Any, Any] = fit.tree.attrs
    assert provenance["gradients_warmup"] == list(attrs["gradients_warmup"])


@pytest.mark.parametrize(("most", "step"), [(8, 1), (99, 1), (7, 2), (4, 2), (3, 3), (1, 8)])
def test_a_thinned_fit_keeps_every_kth_draw(most: int, step: int) -> None:
    fit = make_fit()
    thin = fit.thinned(most)
    assert thin.posterior.sizes["draw"] <= most
    for name in ("posterior", "extended", "sample_stats"):
        before, after = fit.tree[name].to_dataset(), thin.tree[name].to_dataset()
        xr.testing.assert_identical(after, before.isel(draw=slice(None, None, step)))
    xr.testing.assert_identical(
        thin.tree["constant_data"].to_dataset(), fit.tree["constant_data"].to_dataset()
    )
    assert thin.tree.attrs.get("kept_every", 1) == step
    assert thin.gradients == fit.gradients
    assert fit.posterior.sizes["draw"] == DRAWS


@pytest.mark.parametrize("number", [1, 3, 99])
def test_the_first_draws_of_a_fit(number: int) -> None:
    fit = make_fit()
    early = fit.first_draws(number)
    for name in ("posterior", "extended", "sample_stats"):
        before, after = fit.tree[name].to_dataset(), early.tree[name].to_dataset()
        xr.testing.assert_identical(after, before.isel(draw=slice(number)))
    assert early.tree.attrs == fit.tree.attrs
    assert fit.posterior.sizes["draw"] == DRAWS


def test_the_largest_r_hat_of_each_variable_is_that_of_these_draws() -> None:
    fit = make_fit()
    for each in (Fit(fit.tree.isel(chain=[1, 0])), fit):
        found = each.largest_r_hats
        assert set(found) == {"x", "scale"}
        assert found["scale"] == r_hat(each.posterior["scale"].to_numpy())
        x = each.posterior["x"].transpose("chain", "draw", ...).to_numpy()
        assert found["x"] == r_hat(x).max()
    fit.tree["posterior"]["scale"] = fit.posterior["scale"] + 10 * fit.posterior["chain"]
    moved = fit.largest_r_hats
    assert moved["scale"] == r_hat(fit.posterior["scale"].to_numpy()) > found["scale"]
    assert moved["x"] == found["x"]
    with pytest.raises(DataError, match="8 draws"):
        _ = fit.first_draws(7).largest_r_hats
