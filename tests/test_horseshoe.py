"""Horseshoe regression: data, loaders, split, tau_0, predictive density and refusals."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from calibration import BOTH_ENGINES
from scipy.io import savemat
from scipy.special import expit, logsumexp
from scipy.stats import bernoulli, invgamma

from experiments.horseshoe.cancer import golub_leukemia, load_classification
from harness.arrays import FloatArray
from harness.engine.nuts import NutsSettings
from harness.errors import DataError
from harness.forms.common import Engine
from harness.forms.pseudo_extended import PSEUDO_EXTENDED
from harness.models.horseshoe import (
    Classification,
    coefficients,
    global_scale,
    log_predictive_density,
)

RNG = np.random.default_rng(8)
X = RNG.normal(2, 3, (11, 4))
Y = np.array([0, 1, 1, 0, 1, 0, 0, 1, 1, 0, 1])
DATA = Classification(X, Y)


def test_golub_data_are_those_of_the_provenance() -> None:
    golub = golub_leukemia()
    assert golub.x.shape == (38, 3051)
    assert golub.x.dtype == np.float64
    assert golub.y.sum() == 11
    # Arrays (patients) were standardised, with the rounding of the published table.
    np.testing.assert_allclose(golub.x.mean(axis=1), 0, atol=1e-4)
    np.testing.assert_allclose(golub.x.std(axis=1, ddof=1), 1, atol=1e-4)


@pytest.mark.parametrize("ending", ["npz", "csv", "mat"])
@pytest.mark.parametrize("classes", [(0, 1), (-1, 1), (1, 2)])
def test_a_users_file_is_read(tmp_path: Path, ending: str, classes: tuple[int, int]) -> None:
    label = np.array(classes)[Y]
    path = tmp_path / f"colon.{ending}"
    match ending:
        case "npz":
            np.savez(path, x=X, Y=label)
        case "csv":
            header = "g1,g2,y,g3,g4"
            table = np.column_stack([X[:, :2], label, X[:, 2:]])
            np.savetxt(path, table, delimiter=",", header=header, comments="", fmt="%.17g")
        case "mat":
            savemat(path, {"X": X, "Y": label[:, None]})
    read = load_classification(tmp_path, "colon")
    np.testing.assert_array_equal(read.x, X)
    np.testing.assert_array_equal(read.y, Y)


def test_a_matlab_file_without_scipy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    savemat(tmp_path / "colon.mat", {"X": X, "Y": Y})
    monkeypatch.setitem(sys.modules, "scipy.io", None)
    with pytest.raises(DataError, match=r"install scipy, or save its X and Y as colon\.npz"):
        load_classification(tmp_path, "colon")


def write(path: Path, content: str) -> None:
    if path.suffix == ".npz" and content:
        arrays: dict[str, dict[str, Any]] = {
            "X": {"X": X},
            "three": {"X": X, "Y": np.arange(11) % 3},
            "object": {"X": np.array([X, None], dtype=object), "Y": Y},
            "short": {"X": X, "Y": Y[:-1]},
            "nan": {"X": X * np.nan, "Y": Y},
        }
        np.savez(path, **arrays[content])
    else:
        path.write_text(content)


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("other.csv", "y\n1\n", r"none of colon\.npz, colon\.csv, colon\.mat"),
        ("colon.csv", "a,b\n1,2\n", "column 'y'"),
        ("colon.csv", "", "cannot be read as a table"),
        ("colon.csv", "a,y\nx,0\n2,1\n", "not numbers"),
        ("colon.csv", "a,y\n1,0\n,1\n", "colon.csv: 1 values of the predictors are not finite"),
        ("colon.csv", "a,y\n1,0\n2,0\n", "two classes"),
        ("colon.npz", "", "cannot be read as arrays"),
        ("colon.npz", "X", "must hold the arrays X and Y; it holds X"),
        ("colon.npz", "three", "two classes"),
        ("colon.npz", "object", "cannot be read as arrays"),
        ("colon.npz", "short", "none empty; got"),
        ("colon.npz", "nan", "not finite"),
        ("colon.mat", "nothing", "cannot be read as a MATLAB file"),
        ("colon.mat", "", "cannot be read as a MATLAB file"),
    ],
)
def test_bad_files_are_refused(tmp_path: Path, file: str, content: str, message: str) -> None:
    write(tmp_path / file, content)
    with pytest.raises(DataError, match=message):
        load_classification(tmp_path, "colon")


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (X, Y[:-1], "none empty"),
        (X[0], Y, "none empty"),
        (X[:, :0], Y, "none empty"),
        (np.where(X[2, 1] == X, np.inf, X), Y, "1 values"),
        (X, Y + 1, "0 or 1"),
        (X, np.where(Y == 1, np.nan, 0), "0 or 1"),
    ],
)
def test_bad_data_are_refused(x: np.ndarray, y: np.ndarray, message: str) -> None:
    with pytest.raises(DataError, match=message):
        Classification(x, y)


@pytest.mark.parametrize("name", ["scale_global", "scale_icept", "slab_scale", "slab_df"])
@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf])
def test_bad_scales_are_refused(name: str, value: float) -> None:
    scales: dict[str, Any] = {
        "scale_global": 0.1,
        "scale_icept": 10.0,
        "slab_scale": 2.0,
        "slab_df": 3.0,
    }
    with pytest.raises(DataError, match=name):
        DATA.model("horseshoe", **(scales | {name: value}))


def test_an_unknown_form_is_refused() -> None:
    form: Any = "half"
    with pytest.raises(DataError, match="'full' or 'shared_scales'; got 'half'"):
        DATA.model("horseshoe", scale_global=0.1, form=form)


def test_model_holds_what_the_program_takes() -> None:
    model = DATA.model("horseshoe", scale_global=0.3)
    assert model.dimension == 2 * 4 + 3
    assert (model.data["n"], model.data["d"]) == X.shape
    assert (model.data["scale_icept"], model.data["slab_scale"], model.data["slab_df"]) == (
        10,
        2,
        3,
    )


def test_global_scale() -> None:
    assert global_scale(3, 2000, 62) == pytest.approx(3 / 1997 * 2 / 62**0.5, rel=1e-14)
    for bad in (0, -1, 2000, np.nan):
        with pytest.raises(DataError, match="between 0 and 2000"):
            global_scale(bad, 2000, 62)
    with pytest.raises(DataError, match="1 observation or more"):
        global_scale(3, 2000, 0)


def test_split_is_a_partition_that_the_seed_decides() -> None:
    train, test = DATA.split(np.random.default_rng(1), standardise=False)
    assert (len(train.y), len(test.y)) == (9, 2)
    both = np.column_stack([np.r_[train.x, test.x], np.r_[train.y, test.y]])
    assert {tuple(row) for row in both} == {tuple(row) for row in np.column_stack([X, Y])}
    again, _ = DATA.split(np.random.default_rng(1), standardise=False)
    other, _ = DATA.split(np.random.default_rng(2), standardise=False)
    np.testing.assert_array_equal(again.x, train.x)
    assert not np.array_equal(other.x, train.x)


def test_standardisation_takes_its_moments_from_the_training_data() -> None:
    # 0.1 has no exact sum: rounding must not make the constant column vary.
    data = Classification(np.column_stack([X, np.full(11, 0.1)]), Y)
    raw_train, raw_test = data.split(np.random.default_rng(3), standardise=False)
    train, test = data.split(np.random.default_rng(3))
    np.testing.assert_allclose(train.x[:, :4].mean(axis=0), 0, atol=1e-14)
    np.testing.assert_allclose(train.x[:, :4].std(axis=0), 1, rtol=1e-14)
    shift, scale = raw_train.x[:, :4].mean(axis=0), raw_train.x[:, :4].std(axis=0)
    np.testing.assert_allclose(test.x[:, :4] * scale + shift, raw_test.x[:, :4], rtol=1e-13)
    assert not train.x[:, 4].any()
    assert not test.x[:, 4].any()


@pytest.mark.parametrize("fraction", [0.0, 0.04, 0.99, 1.0])
def test_a_split_without_training_or_test_data_is_refused(fraction: float) -> None:
    with pytest.raises(DataError, match="to train on"):
        DATA.split(np.random.default_rng(1), test_fraction=fraction)


def test_coefficients_follow_the_definition() -> None:
    z, local = RNG.normal(size=(3, 5, 4)), np.exp(RNG.normal(size=(3, 5, 4)))
    tau, c2 = np.exp(RNG.normal(size=(2, 3, 5)))
    beta = coefficients(z, local, tau, c2)
    t, c = tau[..., None], c2[..., None]
    regularised = c * local**2 / (c + t**2 * local**2)
    np.testing.assert_allclose(beta, z * np.sqrt(regularised) * t, rtol=1e-13)
    # A wide slab gives the horseshoe, a wide global scale the slab alone.
    np.testing.assert_allclose(coefficients(z, local, tau, 1e30 * c2), z * local * t, rtol=1e-12)
    np.testing.assert_allclose(
        coefficients(z, local, 1e12 * tau, c2), z * np.sqrt(c2)[..., None], rtol=1e-12
    )


def test_log_predictive_density_by_brute_force() -> None:
    beta0, beta = RNG.normal(size=(2, 6)), RNG.normal(0, 0.4, (2, 6, 4))
    p = np.array(
        [
            [bernoulli.pmf(k, expit(b0 + row @ b)) for row, k in zip(X, Y, strict=True)]
            for b0, b in zip(beta0.ravel(), beta.reshape(12, 4), strict=True)
        ]
    )
    result = log_predictive_density(beta0, beta, DATA)
    assert result.joint == pytest.approx(np.log(p.prod(axis=1).mean()), rel=1e-12)
    np.testing.assert_allclose(result.pointwise, np.log(p.mean(axis=0)), rtol=1e-12)

    log_weight = RNG.normal(300, 2, (2, 6))
    weight = np.exp(log_weight - logsumexp(log_weight)).ravel()
    weighted = log_predictive_density(beta0, beta, DATA, log_weight=log_weight)
    assert weighted.joint == pytest.approx(np.log(weight @ p.prod(axis=1)), rel=1e-12)
    np.testing.assert_allclose(weighted.pointwise, np.log(weight @ p), rtol=1e-12)


def test_log_predictive_density_far_out() -> None:
    """Predictions wrong by 2,000 logits: no probability is lost to underflow."""
    far = Classification(np.array([[1000.0], [-1000.0]]), np.array([0, 1]))
    result = log_predictive_density([0.0, 0.0], [[2.0], [1.0]], far)
    assert result.joint == pytest.approx(-2000 - np.log(2))
    np.testing.assert_allclose(result.pointwise, -1000 - np.log(2))


@pytest.mark.parametrize(
    ("beta0", "beta", "log_weight", "message"),
    [
        (np.zeros(3), np.zeros((3, 5)), None, "need intercepts"),
        (np.zeros(3), np.zeros((2, 4)), None, "need intercepts"),
        (np.zeros(0), np.zeros((0, 4)), None, "need intercepts"),
        (np.full(3, np.nan), np.zeros((3, 4)), None, "not finite"),
        (np.zeros(3), np.full((3, 4), np.inf), None, "not finite"),
        (np.zeros(3), np.zeros((3, 4)), np.zeros(2), "as many log weights"),
    ],
)
def test_bad_draws_are_refused(
    beta0: np.ndarray, beta: np.ndarray, log_weight: np.ndarray | None, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        log_predictive_density(beta0, beta, DATA, log_weight=log_weight)


def conditional_evidence(
    one: Classification, scale: dict[str, float], power: float, tau: FloatArray, draws: FloatArray
) -> FloatArray:
    """C_b(s), the integral of p(beta0, z) L(beta0, z, s)^b, by Gauss-Hermite at each s."""
    node, share = np.polynomial.hermite_e.hermegauss(12)
    share = share / share.sum()
    beta0, z = (grid.ravel() for grid in np.meshgrid(scale["scale_icept"] * node, node))
    local, c2 = draws
    width = coefficients(np.ones((len(tau), 1)), local[:, None], tau, c2)
    eta = beta0[:, None] + width[:, :, None] * z[:, None] * one.x[:, 0]
    log_l = -np.logaddexp(0, np.where(one.y == 1, -eta, eta)).sum(axis=-1)
    return np.asarray(np.exp(power * log_l) @ np.outer(share, share).ravel())


@BOTH_ENGINES
@pytest.mark.parametrize("form", ["full", "shared_scales"])
def test_both_forms_end_to_end(form: Any, engine: Engine) -> None:
    """The full form finds the target's tau, the published one the one its program says."""
    one = Classification(
        np.array([[1.5], [0.8], [2.0], [-1.1], [-0.4], [-1.7]]), np.array([1] * 3 + [0] * 3)
    )
    scale = {"scale_global": 0.6, "scale_icept": 1.0, "slab_scale": 2.0, "slab_df": 5.0}
    model = one.model("one", form=form, **scale)
    nuts = NutsSettings(chains=2, warmup=500, draws=3000, target_accept=0.95, parallel_chains=2)
    fit = PSEUDO_EXTENDED.sample(
        model, num_pseudo_samples=2, inv_temp=0.5, nuts=nuts, seed=3, engine=engine
    )

    assert fit.extended is not None
    shape = {name: array.shape for name, array in fit.extended.data_vars.items()}
    assert shape["z"] == shape["lambda"] == (2, 3000, 1, 2)
    assert shape["tau"] == shape["c2"] == shape["beta0"] == shape["log_weight"] == (2, 3000, 2)
    assert fit.posterior["lambda"].shape == (2, 3000, 1)
    first, second = (fit.extended["tau"].isel(pseudo_sample=i).to_numpy() for i in (0, 1))
    assert np.array_equal(first, second) == (form == "shared_scales")

    # Truth over draws of the scales' prior, the rest integrated out at each.
    rng = np.random.default_rng(6)
    local, tau = np.abs(rng.standard_cauchy((2, 10_000)))
    tau *= scale["scale_global"]
    c2 = invgamma.rvs(2.5, scale=10, size=10_000, random_state=rng)
    mass = conditional_evidence(one, scale, 1.0, tau, np.array([local, c2]))
    if form == "shared_scales":
        mass = mass * conditional_evidence(one, scale, 0.5, tau, np.array([local, c2]))
    bounded = tau / (0.6 + tau)
    truth = mass @ bounded / mass.sum()
    error = np.sqrt(np.sum((mass / mass.sum()) ** 2 * (bounded - truth) ** 2))
    estimate = fit.expectation(lambda p: p["tau"] / (0.6 + p["tau"]))
    assert abs(estimate.value - truth) < 4 * np.hypot(error, estimate.mcse)
