"""The radon regression: data, and exact evidence and moments against other quadratures."""

from __future__ import annotations

import dataclasses
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from references import reference
from scipy.special import logsumexp
from scipy.stats import halfcauchy, multivariate_normal, norm

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.folders import shipped
from harness.models import radon
from harness.models.radon import PARAMETERS, RadonData, load_radon
from harness.models.radon_exact import (
    exact_log_evidence,
    exact_posterior,
    marginal_log_likelihood,
)

# The authors' own file, beside the checkout of those who have it.


def made_up() -> RadonData:
    """Four counties with 1 to 4 homes; uranium that differs from home to home as well."""
    rng = np.random.default_rng(8)
    county = np.array([2, 0, 3, 1, 3, 0, 3, 1, 3, 0])
    floor = np.array([1.0, 0, 0, 1, 0, 1, 0, 0, 1, 0])
    uranium = rng.normal(0.3, 0.8, 10)
    log_radon = 1.2 - 0.6 * floor + 0.7 * uranium + rng.normal(0, 0.7, 10)
    return RadonData(log_radon, floor, uranium, county, ("A", "B", "C", "D"))


def covariance_of_measurements(
    data: RadonData, sigma_a: float, sigma_b: float, eps: float
) -> FloatArray:
    """Covariance of log radon given the scales, from the definition of the model."""
    homes = len(data.log_radon)
    regressors = np.column_stack([data.first_floor, data.log_uranium])
    same_county = data.county[:, None] == data.county
    shared_mean = np.ones((homes, homes))  # mu_a ~ N(0, 1)
    coefficient = np.ones((2, 2)) + sigma_b**2 * np.eye(2)  # mu_b + sigma_b m
    between = regressors @ coefficient @ regressors.T
    return np.asarray(
        eps**2 * np.eye(homes) + sigma_a**2 * same_county + shared_mean + between,
        dtype=np.float64,
    )


def dense_log_likelihood(data: RadonData, sigma_a: float, sigma_b: float, eps: float) -> float:
    covariance = covariance_of_measurements(data, sigma_a, sigma_b, eps)
    return float(multivariate_normal(cov=covariance).logpdf(data.log_radon))


def test_the_shipped_data() -> None:
    data = load_radon()
    assert len(data.log_radon) == 919
    assert len(data.county_names) == 85
    assert data.county_names[0] == "AITKIN"
    homes = np.bincount(data.county)
    assert homes[data.county_names.index("STLOUIS")] == 116
    assert homes[data.county_names.index("HENNEPIN")] == 105
    assert data.first_floor.sum() == 153
    # Uranium was measured once a county.
    for index in range(85):
        assert np.ptp(data.log_uranium[data.county == index]) == 0
    model = radon.radon()
    assert model.dimension == 92
    assert model.parameters == PARAMETERS
    assert model.data["county"].min() == 1
    assert model.data["county"].max() == model.data["J"] == 85


def test_the_shipped_data_are_the_authors() -> None:
    """Same homes in the same counties; theirs are numbered otherwise, and lack the 0.1 added."""
    authors = reference("radon/radon-group.npz")
    ours = load_radon()
    without = np.exp(ours.log_radon) - 0.1
    without[ours.log_radon < np.log(0.11)] = 0.1  # none found: theirs is log 0.1 as well

    def counties(
        county: npt.NDArray[np.intp], floor: FloatArray, level: FloatArray
    ) -> list[list[list[float]]]:
        homes = np.column_stack([floor, np.round(level, 3)])
        return sorted(sorted(homes[county == index].tolist()) for index in np.unique(county))

    with np.load(authors) as theirs:
        expected = counties(theirs["county"], theirs["x"], np.exp(theirs["y"]))
    assert counties(ours.county, ours.first_floor, without) == expected


def test_a_changed_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = shipped("data") / "radon" / "radon.csv"
    monkeypatch.setattr(radon, "shipped", lambda folder: tmp_path / folder)
    with pytest.raises(DataError, match="cannot read"):
        load_radon()
    copy = tmp_path / "data" / "radon" / "radon.csv"
    copy.parent.mkdir(parents=True)
    copy.write_bytes(original.read_bytes().replace(b"\n", b"\r\n"))
    assert len(load_radon().log_radon) == 919
    copy.write_bytes(original.read_bytes().replace(b"0.8329", b"0.8328", 1))
    with pytest.raises(DataError, match="not the file that came with harness"):
        load_radon()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"log_radon": np.empty(0)}, "one value per home"),
        ({"log_radon": np.zeros((10, 1))}, "one value per home"),
        ({"first_floor": np.zeros(9)}, "first_floor must have one value for each of the 10"),
        ({"county": np.zeros(11, dtype=np.int64)}, "county must have one value"),
        ({"log_radon": np.append(np.zeros(9), np.nan)}, "log_radon is not finite for 1 .* 9"),
        ({"log_uranium": np.full(10, np.inf)}, "log_uranium is not finite for 10"),
        ({"first_floor": np.full(10, np.nan)}, "first_floor is not finite"),
        ({"county": np.zeros(10)}, "whole numbers; got float64"),
        ({"county": np.array([0, 1, 2, 3, 4, 0, 0, 0, 0, 0])}, "between 0 and 3, .* 0 to 4"),
        ({"county": np.array([0, 1, 2, 3, -1, 0, 0, 0, 0, 0])}, "between 0 and 3, .* -1 to 3"),
        ({"county": np.array([0, 1, 3, 3, 1, 0, 0, 0, 0, 0])}, "county C has no home"),
    ],
)
def test_bad_data_are_refused(change: dict[str, npt.NDArray[np.generic]], message: str) -> None:
    with pytest.raises(DataError, match=message):
        dataclasses.replace(made_up(), **change)  # type: ignore[arg-type]


def test_a_subset_is_indexed_anew() -> None:
    data = made_up()
    part = data.subset(["D", "A"])
    assert part.county_names == ("D", "A")
    np.testing.assert_array_equal(part.county, [1, 0, 0, 1, 0, 0, 1])
    np.testing.assert_array_equal(part.log_radon, data.log_radon[[1, 2, 4, 5, 6, 8, 9]])
    np.testing.assert_array_equal(part.log_uranium, data.log_uranium[[1, 2, 4, 5, 6, 8, 9]])
    np.testing.assert_array_equal(part.first_floor, data.first_floor[[1, 2, 4, 5, 6, 8, 9]])
    for bad in ([], ["A", "A"]):
        with pytest.raises(DataError, match="each of them once"):
            data.subset(bad)
    with pytest.raises(DataError, match="there is no X, Y"):
        data.subset(["Y", "A", "X"])


@pytest.mark.parametrize(
    "scales",
    [
        (0.3, 0.9, 0.7),
        (2.0, 0.1, 0.4),
        (1e-3, 5.0, 1.1),
        (1e-8, 1e-8, 1.0),
        (40.0, 30.0, 0.2),
        (0.5, 1e4, 0.9),
    ],
)
def test_marginal_likelihood_matches_scipy(scales: tuple[float, float, float]) -> None:
    shipped = load_radon().subset(["LACQUIPARLE", "AITKIN", "YELLOWMEDICINE", "BECKER"])
    for data in (made_up(), shipped):
        ours = marginal_log_likelihood(data, *scales)
        # The dense form loses digits with the ratio of its largest to its smallest variance.
        digits = 1e-15 * (max(scales) / scales[2]) ** 2
        assert ours == pytest.approx(dense_log_likelihood(data, *scales), abs=1e-9 + digits * 100)


def test_marginal_likelihood_of_all_homes_matches_scipy() -> None:
    data = load_radon()
    for scales in ((0.15, 1.6, 0.73), (1.0, 0.2, 0.5)):
        expected = dense_log_likelihood(data, *scales)
        assert marginal_log_likelihood(data, *scales) == pytest.approx(expected, rel=1e-11)


class DenseQuadrature:
    """Gauss-Legendre in the prior quantiles of the scales, dense Gaussians at each node.

    Another variable, another rule and another way to integrate the Gaussian parameters out
    than in the module.
    """

    def __init__(self, data: RadonData, count: int, inv_temp: float = 1.0) -> None:
        node, weight = np.polynomial.legendre.leggauss(count)
        scale = np.asarray(halfcauchy.ppf((node + 1) / 2, scale=2.5))
        cube = np.stack(np.meshgrid(scale, scale, scale, indexing="ij"), axis=-1).reshape(-1, 3)
        share = np.einsum("i,j,k->ijk", weight, weight, weight).ravel() / 8
        self.sigma_a, self.sigma_b, self.eps = cube.T
        homes, counties = len(data.log_radon), len(data.county_names)
        # log_radon = loading z + eps noise, z = (mu_a, mu_b, n, m) standard normal.
        loading = np.zeros((len(cube), homes, counties + 4))
        loading[:, :, 0] = 1
        loading[:, :, 1] = data.first_floor + data.log_uranium
        loading[:, np.arange(homes), 2 + data.county] = self.sigma_a[:, None]
        loading[:, :, -2] = self.sigma_b[:, None] * data.first_floor
        loading[:, :, -1] = self.sigma_b[:, None] * data.log_uranium
        # The likelihood to a power is Gaussian with eps^2 / inv_temp, but for a constant.
        variance = self.eps**2 / inv_temp
        covariance = loading @ loading.swapaxes(1, 2) + variance[:, None, None] * np.eye(homes)
        gain = np.linalg.solve(covariance, loading)
        fitted = np.linalg.solve(
            covariance, np.broadcast_to(data.log_radon[:, None], (len(cube), homes, 1))
        )
        log_likelihood = -0.5 * (
            homes * np.log(2 * np.pi)
            + np.linalg.slogdet(covariance).logabsdet
            + fitted[..., 0] @ data.log_radon
        )
        log_likelihood += 0.5 * homes * np.log(2 * np.pi * variance)
        log_likelihood -= 0.5 * homes * inv_temp * np.log(2 * np.pi * self.eps**2)
        log_mass = log_likelihood + np.log(share)
        self.log_evidence = float(logsumexp(log_mass))
        self.mass = np.exp(log_mass - self.log_evidence)
        self.mean = np.einsum("sij,i->sj", gain, data.log_radon)
        self.covariance = np.eye(counties + 4) - loading.swapaxes(1, 2) @ gain

    def linear(self, coefficient: FloatArray) -> tuple[float, float]:
        """Posterior mean and sd of coefficient'z, the coefficient one for each node or one."""
        each = np.broadcast_to(coefficient, self.mean.shape)
        mean = np.einsum("sj,sj->s", each, self.mean)
        variance = np.einsum("sj,sjk,sk->s", each, self.covariance, each)
        first = float(self.mass @ mean)
        return first, float(np.sqrt(self.mass @ (variance + mean**2) - first**2))


@cache
def dense_quadrature(inv_temp: float) -> DenseQuadrature:
    return DenseQuadrature(made_up(), 46, inv_temp)


@pytest.mark.parametrize("inv_temp", [1.0, 0.3])
def test_evidence_matches_dense_quadrature(inv_temp: float) -> None:
    data = made_up()
    coarse = DenseQuadrature(data, 36, inv_temp).log_evidence
    fine = dense_quadrature(inv_temp).log_evidence
    assert fine == pytest.approx(coarse, abs=1e-4)
    ours = exact_log_evidence(data, inv_temp=inv_temp)
    assert ours.error < 1e-6
    # The dense rule's error at 46 nodes is below what it gained over 36.
    assert ours.value == pytest.approx(fine, abs=abs(fine - coarse))


def test_evidence_matches_simple_monte_carlo() -> None:
    """Mean likelihood under draws of all parameters from the prior: no integral in closed form."""
    data = made_up().subset(["A", "B"])
    rng = np.random.default_rng(3)
    count = 400_000
    sigma_a, sigma_b, eps = 2.5 * np.abs(rng.standard_cauchy((3, count)))
    mu_a, mu_b = rng.normal(size=(2, count))
    m, n = rng.normal(size=(2, 2, count))
    log_likelihood = np.zeros(count)
    for y, floor, uranium, county in zip(
        data.log_radon, data.first_floor, data.log_uranium, data.county, strict=True
    ):
        mean = mu_a + sigma_a * n[county]
        mean += floor * (mu_b + sigma_b * m[0]) + uranium * (mu_b + sigma_b * m[1])
        log_likelihood += norm.logpdf(y, mean, eps)
    # To a power the likelihood is flat enough for its mean to be well known.
    likelihood = np.exp(0.2 * log_likelihood)
    estimate, error = likelihood.mean(), likelihood.std() / np.sqrt(count)
    assert error < 0.003 * estimate
    exact = exact_log_evidence(data, inv_temp=0.2)
    assert abs(np.exp(exact.value) - estimate) < 4 * error


def test_moments_match_dense_quadrature() -> None:
    data = made_up()
    dense = dense_quadrature(1.0)
    ours = exact_posterior(data)
    assert ours.error < 1e-5
    assert set(ours.mean) == set(ours.sd) == {*PARAMETERS, "alpha", "beta"}
    unit = np.eye(8)
    a, b = dense.sigma_a[:, None], dense.sigma_b[:, None]
    coefficients = {
        "mu_a": [unit[0]],
        "mu_b": [unit[1]],
        "n": list(unit[2:6]),
        "m": list(unit[6:]),
        "alpha": [unit[0] + a * unit[2 + j] for j in range(4)],
        "beta": [unit[1] + b * unit[6 + j] for j in range(2)],
    }
    expected = {
        name: np.array([dense.linear(each) for each in rows]) for name, rows in coefficients.items()
    }
    for name in ("sigma_a", "sigma_b", "eps"):
        scale = getattr(dense, name)
        mean = dense.mass @ scale
        expected[name] = np.array([(mean, np.sqrt(dense.mass @ scale**2 - mean**2))])
    for name, rows in expected.items():
        np.testing.assert_allclose(np.atleast_1d(ours.mean[name]), rows[:, 0], rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(np.atleast_1d(ours.sd[name]), rows[:, 1], rtol=1e-5)


def test_power_posterior_between_prior_and_evidence() -> None:
    """Log Z is 0 at the prior and convex, with slope the expected log likelihood."""
    data = load_radon().subset(["AITKIN", "ANOKA"])
    inv_temp = np.array([0.0, 1e-4, 0.5, 1.0])
    value = np.array([exact_log_evidence(data, inv_temp=each).value for each in inv_temp])
    assert value[0] == pytest.approx(0, abs=1e-12)
    assert np.all(np.diff(np.diff(value) / np.diff(inv_temp)) > 0)


def test_evidence_and_moments_of_all_homes() -> None:
    """Errors as small as they are said to be, and identities that hold among the moments."""
    data = load_radon()
    evidence, posterior = exact_log_evidence(data), exact_posterior(data)
    assert evidence.error < 1e-7
    assert posterior.error < 1e-6
    # The slope of log Z at inverse temperature 1 is E[log likelihood].
    step = 1e-3
    below = exact_log_evidence(data, inv_temp=1 - step).value
    further = exact_log_evidence(data, inv_temp=1 - 2 * step).value
    slope = (3 * evidence.value - 4 * below + further) / (2 * step)
    mean = posterior.mean
    fitted = mean["alpha"][data.county] + mean["beta"][0] * data.first_floor
    fitted = fitted + mean["beta"][1] * data.log_uranium
    at_mean = np.sum(norm.logpdf(data.log_radon, fitted, mean["eps"]))
    # E[log likelihood] is below the log likelihood at the mean by half the effective number of
    # parameters, which are at least mu_a, beta, eps and at most those and an intercept a county.
    assert 4 / 2 < at_mean - slope < (4 + 85) / 2
    # Between them the counties' intercepts average to nearly mu_a: their n do to nearly 0.
    assert abs(mean["n"].mean()) < 4 / np.sqrt(85)
    np.testing.assert_array_less(posterior.sd["n"], 1.0)


@pytest.mark.parametrize("inv_temp", [-0.1, 1.1, np.nan])
def test_an_inverse_temperature_outside_the_path_is_refused(inv_temp: float) -> None:
    with pytest.raises(DataError, match=r"must lie in \[0, 1\]"):
        exact_log_evidence(made_up(), inv_temp=inv_temp)


def test_data_without_a_finite_answer_are_refused() -> None:
    data = made_up()
    with pytest.raises(DataError, match="grows without bound"):
        exact_log_evidence(data.subset(["B"]))
    with pytest.raises(DataError, match="proportional"):
        exact_log_evidence(data.subset(["C"]))
    with pytest.raises(DataError, match="two counties or more"):
        exact_posterior(data.subset(["D"]))
    with pytest.raises(DataError, match="floor and uranium that"):
        exact_posterior(dataclasses.replace(data, first_floor=np.ones(10)))
