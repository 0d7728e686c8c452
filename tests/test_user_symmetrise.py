"""NUTS's draws spread over copies: against exact probabilities, and where it must not be done."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.integrate import trapezoid
from scipy.special import logsumexp
from stan_density import stanli

from harness.arrays import FloatArray
from harness.diagnosis import R_HAT_WARNING, Severity
from harness.evidence import LogEvidence, largest_r_hat
from harness.fit import Fit, with_parameters
from harness.model import Model
from harness.modes.labels import AnyGroup, group_of
from harness.modes.permutations import Permutation
from harness.modes.symmetries import Symmetries, equal, find_symmetries
from harness.temper import tempered_model
from harness.user import sample
from harness.user.bridged import bridged
from harness.user.given_evidence import evidence_from_fit
from harness.user.one_copy import COPIES, density_of
from harness.user.rounds import doubts_about_draws
from harness.user.symmetrise import Symmetrised, group_between, symmetries_of, symmetrised

assert stanli is not None

NUTS: dict[str, Any] = {"warmup": 300, "draws": 500, "seed": 1, "progress": False}

TWO = """
data { vector[8] y; real apart; }
parameters { real<lower=0, upper=1> w; vector[2] mu; }
transformed parameters { real gap = mu[2] - mu[1]; }
model {
  w ~ beta(2, 2);
  mu ~ normal(0, 5);
  target += apart * mu[1];
  for (n in 1:8)
    target += log_mix(w, normal_lpdf(y[n] | mu[1], 0.6), normal_lpdf(y[n] | mu[2], 0.6));
}
generated quantities { real first = mu[1]; }
"""
Y = np.array([-2.1, -1.7, -2.4, -1.9, -2.0, 1.8, 2.3, 2.1])


def data(apart: float = 0.0) -> dict[str, Any]:
    return {"y": Y.tolist(), "apart": apart}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("two") / "two.stan"
    path.write_text(TWO)
    return path


def plain(program: Path, apart: float = 0.0) -> Fit:
    return sample(program, data(apart), method="nuts", engine="stanli", **NUTS).fit


def spread(
    program: Path, fit: Fit, apart: float = 0.0, known: AnyGroup | None = None
) -> Symmetrised | None:
    model = tempered_model(program, data(apart))
    found = symmetries_of(model, fit, most_seconds=20)
    return symmetrised(model, fit, found, known=known, seed=1)


def exact_log_evidence() -> float:
    """Log of the integral by the trapezium rule, which converges fast for smooth tails."""
    w = np.linspace(0, 1, 202)[1:-1]
    mu = np.linspace(-8, 8, 401)
    part = -0.5 * np.square((Y[:, None] - mu) / 0.6) - np.log(0.6 * np.sqrt(2 * np.pi))
    prior = -0.5 * np.square(mu / 5) - np.log(5 * np.sqrt(2 * np.pi))
    terms = []
    for share in w:
        mixed = np.logaddexp(
            np.log(share) + part[:, :, None], np.log1p(-share) + part[:, None, :]
        ).sum(axis=0)
        beta = np.log(6 * share * (1 - share))
        terms.append(logsumexp(mixed + prior[:, None] + prior[None, :]) + beta)
    return float(logsumexp(terms) + np.log((w[1] - w[0]) * (mu[1] - mu[0]) ** 2))


def test_two_shares_that_are_mirrored_change_places(tmp_path: Path) -> None:
    """As a simplex: one order of two shares is the other one mirrored, so there are two copies."""
    path = tmp_path / "shares.stan"
    path.write_text(
        TWO.replace("real<lower=0, upper=1> w", "simplex[2] w")
        .replace("w ~ beta(2, 2)", "w ~ dirichlet(rep_vector(2, 2))")
        .replace("log_mix(w,", "log_mix(w[1],")
    )
    made = spread(path, plain(path))
    assert made is not None
    assert made.fit.tree.attrs[COPIES] == 2
    in_one_copy = made.in_one_copy
    # Each draw is in the copy to which it was brought, and in no other one.
    assert np.all(np.isfinite(in_one_copy.values(in_one_copy.points.reshape(-1, 3))))
    bridges = bridged(in_one_copy, in_one_copy.points, seed=1)
    assert bridges.sound
    value, error = bridges.times(in_one_copy.copies).log_evidence
    assert abs(value - exact_log_evidence()) < 4 * error < 0.02


def test_all_copies_have_draws_and_log_z_counts_them(program: Path) -> None:
    fit = plain(program)
    before = fit.posterior["mu"].to_numpy().copy()
    # No chain of NUTS changes between the copies: the order of the means stays.
    assert np.all(np.ptp(np.sign(before[..., 1] - before[..., 0]), axis=1) == 0)
    made = spread(program, fit)
    assert made is not None
    assert made.finding.severity == Severity.FINE
    assert "mu in another order and w mirrored" in made.finding.sentence
    assert made.fit.tree.attrs[COPIES] == 2
    assert np.array_equal(fit.posterior["mu"].to_numpy(), before)
    mu = made.fit.posterior["mu"].to_numpy()
    w = made.fit.posterior["w"].to_numpy()
    # Each draw is the old one or its copy.
    same = np.all(mu == before, axis=2)
    assert np.all(same | np.all(mu == before[..., ::-1], axis=2))
    old = fit.posterior["w"].to_numpy()
    np.testing.assert_allclose(np.where(same, old, 1 - old), w)
    # Both copies are in each chain half of the time.
    assert np.all(np.sum(mu[..., 0] < mu[..., 1], axis=1) == NUTS["draws"] // 2)
    # The bridge sees one copy, and log Z counts both.
    in_one_copy = made.in_one_copy
    one = bridged(in_one_copy, in_one_copy.points, seed=1)
    assert one.sound
    doubled = one.times(in_one_copy.copies)
    for each, before_it in zip(doubled.each, one.each, strict=True):
        assert each.log_evidence == before_it.log_evidence.plus(LogEvidence(np.log(2), 0.0))
    whole = doubled.log_evidence
    assert 0 < whole.mcse < 0.05
    assert abs(whole.value - exact_log_evidence()) < 4 * whole.mcse


def test_the_density_is_zero_in_other_copies(program: Path) -> None:
    made = spread(program, plain(program))
    assert made is not None
    density = made.in_one_copy.density
    points = made.in_one_copy.points.reshape(-1, 3)[:50]
    other = density.unconstrain_draws(
        {name: each if name == "w" else each[:, ::-1] for name, each in
         (density.constrain(points) | {"w": 1 - density.constrain(points)["w"]}).items()}
    )  # fmt: skip
    np.testing.assert_allclose(density(other)[0], density(points)[0])
    assert np.all(np.isfinite(made.in_one_copy(points)[0]))
    assert np.all(made.in_one_copy(other)[0] == -np.inf)


def test_a_slight_difference_of_the_copies_is_respected(program: Path) -> None:
    """exp(0.001 * 4): a difference of 0.4 %."""
    assert spread(program, plain(program, apart=0.001), apart=0.001) is None


def test_chains_that_disagree_in_one_copy_are_left_alone(program: Path) -> None:
    fit = plain(program)
    fit.posterior["w"][0] = fit.posterior["w"][0] * 0.5
    assert spread(program, fit) is None


FREE = """
data { real y; }
parameters { vector[2] x; real<lower=0, upper=1> w; }
model { x ~ normal(0, 1); w ~ beta(2, 2); y ~ normal(sum(x), 3); }
"""


def test_nuts_that_moves_between_copies_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "free.stan"
    path.write_text(FREE)
    fit = sample(path, {"y": 1.0}, method="nuts", engine="stanli", **NUTS).fit
    model = tempered_model(path, {"y": 1.0})
    found = symmetries_of(model, fit, most_seconds=20)
    assert found.changes
    assert symmetrised(model, fit, found, seed=1) is None


def test_auto_ends_with_nuts_where_it_misses_copies_only(program: Path) -> None:
    result = sample(program, data(), engine="stanli", seed=2, budget=30, progress=False)
    assert result.method == "nuts"
    assert result.copies == result.as_json()["copies"] == 2
    assert "by plain NUTS, spread over 2 copies of the posterior" in result.as_text()
    assert max(each.severity for each in result.diagnosis) < Severity.PROBLEM
    assert result.modes is not None
    assert [each.copy_of for each in result.modes.modes] == [None, 1]
    fit = result.fit
    assert set(fit.posterior) == {"w", "mu", "gap", "first"}
    mu = fit.posterior["mu"].to_numpy()
    np.testing.assert_allclose(fit.posterior["gap"], mu[..., 1] - mu[..., 0])
    np.testing.assert_allclose(fit.posterior["first"], mu[..., 0])
    share = fit.expectation(lambda draws: draws["mu"][..., 0] < draws["mu"][..., 1])
    assert 0 < share.mcse < 0.05
    assert abs(float(share.value) - 0.5) < 4 * float(share.mcse)
    found = result.log_evidence
    assert found is not None
    assert abs(found.value - exact_log_evidence()) < 4 * found.mcse


def test_draws_that_move_too_rarely_are_spread_as_well(program: Path) -> None:
    """The draws' own shares of the two copies are 0.9 and 0.1 in every chain."""
    fit = plain(program)
    mu, w = fit.posterior["mu"], fit.posterior["w"]
    last = mu.sizes["draw"] * 9 // 10
    ordered = np.sort(mu.to_numpy(), axis=2)
    swapped = mu.to_numpy()[..., 0] > mu.to_numpy()[..., 1]
    share = np.where(swapped, 1 - w.to_numpy(), w.to_numpy())
    ordered[:, last:] = ordered[:, last:, ::-1]
    share[:, last:] = 1 - share[:, last:]
    mu[:], w[:] = ordered, share
    made = spread(program, fit)
    assert made is not None
    first = made.fit.posterior["mu"].to_numpy()
    assert np.all(np.sum(first[..., 0] < first[..., 1], axis=1) == NUTS["draws"] // 2)


def swap(fit: Fit, where: npt.NDArray[np.bool_]) -> None:
    """Move draws to their other copy."""
    mu, w = (fit.posterior[name].to_numpy() for name in ("mu", "w"))
    fit.posterior["mu"][:] = np.where(where[..., None], mu[..., ::-1], mu)
    fit.posterior["w"][:] = np.where(where, 1 - w, w)


def test_the_limit_is_stricter_where_draws_are_few(program: Path) -> None:
    """Visits of 20 draws to random copies: R-hat is between the two limits."""
    fit = plain(program)
    mu = fit.posterior["mu"].to_numpy()
    visits = np.random.default_rng(1).random((4, NUTS["draws"] // 20)) < 0.5
    swap(fit, np.repeat(visits, 20, axis=1) != (mu[..., 0] < mu[..., 1]))
    mu = fit.posterior["mu"].to_numpy()
    assert R_HAT_WARNING < largest_r_hat(np.concatenate([mu, mu[..., ::-1]])) < 1.05
    assert doubts_about_draws(fit)
    made = spread(program, fit)
    assert made is not None
    first = made.fit.posterior["mu"].to_numpy()
    assert np.all(np.sum(first[..., 0] < first[..., 1], axis=1) == NUTS["draws"] // 2)


def test_known_copies_are_used_however_well_draws_move(program: Path) -> None:
    made = spread(program, plain(program))
    assert made is not None
    mixed = made.fit
    swap(mixed, np.random.default_rng(2).random(mixed.posterior["w"].shape) < 0.3)
    assert spread(program, mixed) is None
    again = spread(program, mixed, known=made.in_one_copy.copy.group)
    assert again is not None
    assert again.finding.sentence.startswith("There are 2 copies of the posterior")
    mu = again.fit.posterior["mu"].to_numpy()
    assert np.all(np.sum(mu[..., 0] < mu[..., 1], axis=1) == NUTS["draws"] // 2)


def test_known_copies_of_another_density_are_not_used(program: Path) -> None:
    made = spread(program, plain(program))
    assert made is not None
    group = made.in_one_copy.copy.group
    assert spread(program, plain(program, apart=0.1), apart=0.1, known=group) is None


def test_particles_are_spread_like_draws(program: Path) -> None:
    made = spread(program, plain(program))
    assert made is not None
    rng = np.random.default_rng(3)
    mu = np.sort(rng.normal(size=(3, 100, 2)))
    w = rng.random((3, 100))
    found = made.in_one_copy.spread({"w": w, "mu": mu}, seed=1)
    same = found["mu"][..., 0] < found["mu"][..., 1]
    np.testing.assert_allclose(np.sort(found["mu"]), mu)
    np.testing.assert_allclose(np.where(same, found["w"], 1 - found["w"]), w)
    # The border between the copies is not quite where the means are equal, so this is no exact
    # half; the standard deviation is that of a binomial, 5, or less.
    assert np.all(np.abs(same.sum(axis=1) - 50) < 20)


def test_the_evidence_of_a_fit_whose_chains_are_in_different_copies(program: Path) -> None:
    found = evidence_from_fit(plain(program), program, data(), engine="stanli", progress=False)
    assert not found.refusals
    assert any("between 2 copies" in each.sentence for each in found.findings)
    assert found.integral is not None
    assert 0 < found.integral.mcse < 0.05
    assert abs(found.integral.value - exact_log_evidence()) < 4 * found.integral.mcse
    assert found.bridges is not None
    assert found.bridges.chosen in found.bridges.each
    assert found.bridges.log_evidence == found.integral


def tempered(path: Path, given: dict[str, Any]) -> Fit:
    """A tempered fit, of which the whole first chain has been moved to one copy."""
    fit = sample(
        path,
        given,
        method="collapsed_tempering",
        engine="stanli",
        budget=5,
        **NUTS | {"warmup": 200, "draws": 200},
    ).fit
    raw = fit.raw
    mu, w = (raw[name].to_numpy().copy() for name in ("mu", "w"))
    there = mu[0, :, 0] > mu[0, :, 1]
    mu[0, there] = mu[0, there, ::-1]
    w[0, there] = 1 - w[0, there]
    return with_parameters(fit, {"mu": mu, "w": w})


def test_tempered_draws_keep_their_weights(program: Path) -> None:
    """All temperatures are spread, and what is the same in both copies stays as it was."""
    fit = tempered(program, data())
    assert fit.weighting == "across draws"
    made = spread(program, fit)
    assert made is not None
    assert made.fit.tree.attrs[COPIES] == 2
    np.testing.assert_array_equal(made.fit.log_weight, fit.log_weight)
    first, before = made.fit.raw["mu"].to_numpy(), fit.raw["mu"].to_numpy()
    np.testing.assert_array_equal(np.sort(first, axis=2), np.sort(before, axis=2))
    first_is_less = np.sum(first[..., 0] < first[..., 1], axis=1)
    # The border between copies is not where the means are equal, above all at high temperatures.
    assert np.all(np.abs(first_is_less - first.shape[1] // 2) < 0.1 * first.shape[1])
    assert np.all(before[0, :, 0] <= before[0, :, 1])
    apart = [each.expectation(lambda draws: abs(draws["mu"][..., 1] - draws["mu"][..., 0]))
             for each in (fit, made.fit)]  # fmt: skip
    assert apart[0].value == pytest.approx(apart[1].value)
    share = made.fit.expectation(lambda draws: draws["mu"][..., 0] < draws["mu"][..., 1])
    assert 0 < share.mcse < 0.1
    assert abs(float(share.value) - 0.5) < 4 * float(share.mcse)
    # Draws of the target are chosen among the raw ones.
    chosen = made.fit.posterior["mu"].to_numpy()
    assert all(set(chosen[k, :, 0]) <= set(first[k, :, 0]) for k in range(len(chosen)))


def test_densities_that_are_zero_are_the_same() -> None:
    """As those of draws at high temperatures may be."""
    here = np.array([-np.inf, -1e5])
    assert equal(here, here + np.array([0.0, 1e-4]))
    assert not equal(here, here[::-1])
    assert not equal(here[::-1], here)


TILTED = TWO.replace(
    "  target += apart * mu[1];\n",
    "  target += 0.3 * mu[1]; // temper: no\n  target += -0.3 * mu[1]; // temper: yes\n",
)


def test_a_path_without_the_copies_is_left_alone(tmp_path: Path) -> None:
    """The posterior has two copies and its prior has not, so images are no draws of the path."""
    path = tmp_path / "tilted.stan"
    path.write_text(TILTED)
    assert spread(path, plain(path)) is not None
    assert spread(path, tempered(path, data())) is None


def test_a_tempered_run_need_not_move_between_copies(program: Path) -> None:
    """Chains are far from mixed between the copies after few draws; log Z is a sum."""
    result = sample(program, data(), method="collapsed_tempering", engine="stanli", seed=1,
                    warmup=200, draws=100, budget=10, progress=False)  # fmt: skip
    assert result.copies == 2
    assert {"gap", "first"} <= set(result.posterior)
    mu = result.posterior["mu"].to_numpy()
    np.testing.assert_allclose(result.posterior["gap"], mu[..., 1] - mu[..., 0])
    assert "spread over 2 copies of the posterior" in result.as_text()
    found = result.log_evidence
    assert found is not None
    assert abs(found.value - exact_log_evidence()) < 4 * found.mcse < 0.5


PAIRS = """
data { vector[6] y; }
parameters { simplex[3] w; vector[3] mu; }
model {
  mu ~ normal(0, 5);
  for (n in 1:6) {
    vector[3] each = log(w);
    for (k in 1:3) each[k] += normal_lpdf(y[n] | mu[k], 0.5);
    target += log_sum_exp(each);
  }
}
"""


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Model, Fit]:
    """Two observations for each mean; the model, and a fit of it."""
    path = tmp_path_factory.mktemp("pairs") / "pairs.stan"
    path.write_text(PAIRS)
    given = {"y": [-6.3, -5.8, -0.4, 0.3, 5.7, 6.4]}
    fit = sample(path, given, method="nuts", engine="stanli", **NUTS).fit
    return tempered_model(path, given), fit


def in_orders(w: FloatArray, mu: FloatArray) -> dict[str, FloatArray]:
    """Return draws of which each chain has the means in another order."""
    orders = np.array([[0, 1, 2], [1, 2, 0], [2, 1, 0], [1, 0, 2]])
    return {
        name: np.stack([draws[:, order] for draws, order in zip(each, orders, strict=True)])
        for name, each in {"w": w, "mu": mu}.items()
    }


def exact_draws() -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(4)
    w = rng.dirichlet([3, 3, 3], size=(4, NUTS["draws"]))
    around = rng.normal(0, 0.5 / np.sqrt(2), size=(4, NUTS["draws"], 3))
    return w, around + np.array([-6.05, -0.05, 6.05])


def test_what_draws_do_not_need_makes_no_copies(pairs: tuple[Model, Fit]) -> None:
    """Where each mean has two observations, shares alone may change places, which makes no copy."""
    model, fit = pairs
    w, mu = exact_draws()
    w.sort(axis=2)  # as if chains did not move between orders of the shares
    fit = with_parameters(fit, in_orders(w, mu))
    found = symmetries_of(model, fit, most_seconds=20)
    assert any(each.parameters == ("w",) for each in found.changes if isinstance(each, Permutation))
    made = symmetrised(model, fit, found, seed=1)
    assert made is not None
    assert made.fit.tree.attrs[COPIES] == 6
    assert "with w, mu in another order." in made.finding.sentence


def test_a_change_that_only_holds_at_most_draws_is_left_out(pairs: tuple[Model, Fit]) -> None:
    """Where two means are at one pair of observations, the shares matter."""
    model, fit = pairs
    w, mu = exact_draws()
    fit = with_parameters(fit, in_orders(w, mu))
    found = symmetries_of(model, fit, most_seconds=20)
    w.sort(axis=2)  # as if chains did not move between orders of the shares
    mu[:, -15:, 2] = mu[:, -15:, 1] + 0.1
    fit = with_parameters(fit, in_orders(w, mu))
    shares_first = sorted(found.changes, key=lambda each: "'mu'" in str(each))
    assert "'mu'" not in str(shares_first[0])
    made = symmetrised(model, fit, replace(found, changes=tuple(shares_first)), seed=1)
    assert made is not None
    assert made.fit.tree.attrs[COPIES] == 6


AXIS = """
data { real y; }
parameters { unit_vector[3] u; }
model { y ~ normal(square(u[3]), 0.02); }
"""


def test_chains_in_two_modes_need_one_look_at_each_kind_of_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten coordinates in any order; chains that are at -4 or at 4 disagree in each of these."""
    path = tmp_path / "any_order.stan"
    path.write_text(
        "parameters { vector[10] x; } model { x ~ normal(0, 5); target += log_mix(0.3, "
        "normal_lpdf(rep_vector(-4, 10) | x, 1), normal_lpdf(rep_vector(4, 10) | x, 1)); }"
    )
    model = tempered_model(path, {}, what="all")
    centre = np.array([-4.0, 4, 4, 4])[:, None, None]
    x = np.random.default_rng(8).normal(centre, 1, (4, 300, 10))
    points = density_of(model).unconstrain_draws({"x": x.reshape(-1, 10)[::40]})
    symmetries = find_symmetries(density_of(model), points, most_seconds=30)
    assert len(symmetries.changes) > 10
    looked: list[int] = []

    def counted(some: Symmetries) -> AnyGroup | None:
        looked.append(len(some.changes))
        return group_of(some)

    monkeypatch.setattr("harness.user.symmetrise.group_of", counted)
    group = group_between(symmetries, {"x": x}, seed=1)
    assert group is not None
    assert len(group) == math.factorial(10)
    # Two coordinates trade places, or two blocks of them: once it was a look at each change.
    assert len(looked) <= 2
    assert looked[-1] == len(symmetries.changes)


def test_an_axis_without_a_sign(tmp_path: Path) -> None:
    """A direction and its opposite; u[3] is uniform a priori, so log Z is a single integral."""
    path, given = tmp_path / "axis.stan", {"y": 0.6}
    path.write_text(AXIS)
    fit = sample(path, given, method="nuts", engine="stanli", **NUTS).fit
    model = tempered_model(path, given)
    made = symmetrised(model, fit, symmetries_of(model, fit, most_seconds=20), seed=1)
    assert made is not None
    u = made.fit.posterior["u"].to_numpy()
    np.testing.assert_allclose(np.square(u).sum(axis=2), 1)
    # The copies are halves of the sphere, whose border need not be where u[3] is 0.
    below = np.sum(u[..., 2] < 0, axis=1)
    assert np.all(np.abs(below - NUTS["draws"] // 2) <= 0.02 * NUTS["draws"])
    t = np.linspace(-1, 1, 20_001)
    z = np.exp(-0.5 * np.square((0.6 - t**2) / 0.02)) / (0.02 * np.sqrt(2 * np.pi))
    # Stan's density of the vector behind a unit vector is a normal one without its constant.
    exact = np.log(trapezoid(z, t) / 2) + 1.5 * np.log(2 * np.pi)
    whole = (
        bridged(made.in_one_copy, made.in_one_copy.points, seed=1)
        .times(made.in_one_copy.copies)
        .log_evidence
    )
    assert 0 < whole.mcse < 0.1
    assert abs(whole.value - exact) < 4 * whole.mcse
