"""Modes of a posterior with many copies, told of one of them: against closed forms."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import trapezoid
from scipy.special import logsumexp
from stan_density import stanli
from test_modes import Plain, mixture, visits

from harness.arrays import FloatArray
from harness.diagnosis import Severity
from harness.engine.batched import BatchedDensity
from harness.engine.nuts import NutsSettings
from harness.fit import Fit, build_fit, weigh_modes
from harness.model import Model
from harness.modes import FoundModes, ModeTable
from harness.modes.find import find_modes
from harness.temper import tempered_model
from harness.user import sample
from harness.user.given_evidence import evidence_from_fit
from harness.user.in_modes import nuts_in_modes
from harness.user.mode_alone import ModesAlone
from harness.user.modes import mode_table, still_elsewhere
from harness.user.one_copy import COPIES as COPIES_OF_DRAWS
from harness.user.one_copy import InOneCopy
from harness.user.other_modes import OtherModes, other_modes
from harness.user.symmetrise import symmetries_of, symmetrised
from harness.user.weigh import weighed_by_mass

assert stanli is not None

# Four groups without names, and a number with two modes.
LABELS = """
data { int N; vector[N] y; real apart; }
parameters { vector[4] mu; real z; }
model {
  mu ~ normal(0, 5);
  z ~ normal(0, 10);
  for (n in 1 : N) {
    vector[4] l;
    for (k in 1 : 4)
      l[k] = normal_lpdf(y[n] | mu[k], 0.5);
    target += log_sum_exp(l) - log(4);
  }
  target += log_mix(0.3, normal_lpdf(apart | z, 1), normal_lpdf(-apart | z, 1));
}
"""
PLACES = np.array([-9.0, -3.0, 3.0, 8.0])
Y = (PLACES[:, None] + np.array([-0.3, 0.1, 0.2])).ravel()
COPIES = 24
FAR, NEAR = 6.0, 2.4


def data(apart: float) -> dict[str, Any]:
    return {"N": len(Y), "y": Y.tolist(), "apart": apart}


def log_mass_of_labels() -> float:
    """Log of the integral over mu; other assignments of the data are below it by e^-50 or more."""
    total = np.log(COPIES) - len(Y) * np.log(4)
    for place in PLACES:
        own = Y[np.abs(Y - place) < 1]
        covariance = 0.25 * np.eye(len(own)) + 25
        total += stats.multivariate_normal.logpdf(own, np.zeros(len(own)), covariance)
    return float(total)


def log_mass_of_z(apart: float) -> FloatArray:
    """Of the parts below and above 0, by the trapezium rule."""
    found = []
    for z in (np.linspace(-30, 0, 60_001), np.linspace(0, 30, 60_001)):
        value = np.logaddexp(
            np.log(0.3) + stats.norm.logpdf(apart, z), np.log(0.7) + stats.norm.logpdf(-apart, z)
        ) + stats.norm.logpdf(z, 0, 10)
        found.append(float(np.log(trapezoid(np.exp(value), z))))
    return np.array(found)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("labels") / "labels.stan"
    path.write_text(LABELS)
    return path


def drawn(*, above: float = 0.0) -> Fit:
    """Draws, each chain with another order of the groups, and a share of them with z above 0."""
    rng = np.random.default_rng(4)
    precision = 3 / 0.25 + 1 / 25
    means = Y.reshape(4, 3).sum(axis=1) / 0.25 / precision
    mu = rng.normal(means, precision**-0.5, (4, 500, 4))
    for chain in range(4):
        mu[chain] = mu[chain][:, rng.permutation(4)]
    z = rng.normal(-FAR / 1.01, 1.01**-0.5, (4, 500))
    z[rng.random(z.shape) < above] += 2 * FAR / 1.01
    return build_fit(
        posterior={"mu": mu, "z": z},
        extended=None,
        sample_stats={},
        constant_data={},
        attrs={"settings": {}, "method": "nuts"},
    )


def below(model: Model, *, above: float = 0.0) -> tuple[Fit, InOneCopy, BatchedDensity]:
    """The same draws spread over all copies, one of these, and the density."""
    fit = drawn(above=above)
    found = symmetries_of(model, fit, most_seconds=20)
    made = symmetrised(model, fit, found, seed=1)
    assert made is not None
    assert made.in_one_copy.copies == COPIES
    return made.fit, made.in_one_copy, made.in_one_copy.density


def test_points_are_brought_to_one_copy(program: Path) -> None:
    _, one, density = below(tempered_model(program, data(FAR)))
    flat = one.points.reshape(-1, density.dimension)[:50]
    for order in list(permutations(range(4)))[::5]:
        moved = flat.copy()
        moved[:, :4] = flat[:, order]
        np.testing.assert_allclose(one.brought(moved), flat, rtol=1e-12)
    np.testing.assert_allclose(one.brought(one.points), one.points, rtol=1e-12)
    np.testing.assert_array_equal(one.draws["mu"], one.points[..., :4])
    assert np.unique(np.argsort(one.draws["mu"], axis=2).reshape(-1, 4), axis=0).shape == (1, 4)


def climbed(model: Model) -> tuple[Fit, InOneCopy, OtherModes]:
    """What climbs find that draws below 0 miss."""
    fit, one, density = below(model)
    found = other_modes(model, density, one.draws, one.points, in_one_copy=one, seed=1)
    return fit, one, found


def test_a_mode_that_all_copies_lack_is_found_once_with_its_mass(program: Path) -> None:
    model = tempered_model(program, data(FAR))
    fit, one, found = climbed(model)
    (mode,) = found.that_matter()
    assert found.log_mass is not None
    parts = log_mass_of_z(FAR)
    # Of one copy, in which either part is Gaussian but for e^-50.
    labels = log_mass_of_labels() - np.log(COPIES)
    assert found.log_mass == pytest.approx(labels + parts[0], abs=1e-3)
    assert mode.local.log_mass == pytest.approx(labels + parts[1], abs=1e-3)
    assert mode.drawn is not None  # NUTS stays in it
    np.testing.assert_array_equal(one.brought(mode.drawn), mode.drawn)
    # Draws in the mode take it off the list, whichever copy they are in.
    assert still_elsewhere(model, fit, found, one).that_matter() == [mode]
    moved = fit.posterior["mu"].to_numpy()[..., ::-1]
    fit.tree["posterior"]["mu"] = fit.posterior["mu"].copy(data=moved)
    fit.tree["posterior"]["z"] = fit.posterior["z"] + 2 * FAR / 1.01
    assert still_elsewhere(model, fit, found, one).that_matter() == []


def table_of(model: Model, elsewhere: OtherModes | None) -> ModeTable:
    fit, one, _ = below(model)
    found, _ = mode_table(
        model, fit, [], None, elsewhere, total=None, in_one_copy=one, most_seconds=60, seed=1
    )
    assert not isinstance(found, Exception)
    return found.table


def test_the_table_has_the_modes_of_one_copy(program: Path) -> None:
    table = table_of(tempered_model(program, data(FAR)), None)
    assert table.copies == COPIES
    assert not table.unseen
    one, other = table.modes
    assert set(one.seen_by) == {"nuts"}
    assert set(other.seen_by) == {"climbs"}
    assert one.copy_of is other.copy_of is None
    parts = log_mass_of_z(FAR)
    exact = float(np.exp(parts[1] - logsumexp(parts)))
    assert other.local is not None
    share, error = other.local
    assert 0 < error < 0.02
    assert abs(share - exact) < 4 * error
    assert ModeTable.from_json(table.as_json()) == table


def in_both(model: Model) -> tuple[Fit, InOneCopy, FoundModes]:
    """Draws of which half have z above 0, one copy, and the modes there."""
    fit, one, _ = below(model, above=0.5)
    found, _ = mode_table(
        model, fit, [], None, None, total=None, in_one_copy=one, most_seconds=60, seed=1
    )
    assert not isinstance(found, Exception)
    return fit, one, found


def test_nuts_in_each_mode_of_one_copy_is_spread_over_all(program: Path) -> None:
    model = tempered_model(program, data(FAR))
    _, one, found = in_both(model)
    nuts = NutsSettings(chains=4, warmup=300, draws=500, parallel_chains=2)
    made = nuts_in_modes(model, found, nuts, in_one_copy=one, most_seconds=60, seed=1)
    parts = log_mass_of_z(FAR)
    whole = log_mass_of_labels() + float(logsumexp(parts))
    assert 0 < made.log_integral.mcse < 0.05
    assert abs(made.log_integral.value - whole) < 4 * made.log_integral.mcse
    fit = weigh_modes(made.fit, made.basin, made.probability, made.log_error, seed=1)
    share, mcse = fit.expectation(lambda draws: draws["z"] > 0)
    assert 0 < mcse < 0.03
    assert abs(share - float(np.exp(parts[1] - logsumexp(parts)))) < 4 * mcse
    assert fit.tree.attrs[COPIES_OF_DRAWS] == COPIES
    mu = fit.posterior["mu"].to_numpy()
    orders, counts = np.unique(np.argsort(mu, axis=2).reshape(-1, 4), axis=0, return_counts=True)
    assert len(orders) == COPIES
    # Each copy has as many raw draws as another; by their weights these are draws of a multinomial.
    expected = counts.sum() / COPIES
    assert np.all(np.abs(counts - expected) < 6 * np.sqrt(expected))


def test_draws_are_weighed_by_the_masses_in_one_copy(program: Path) -> None:
    """Half of the draws have z above 0, where 0.3 of the mass is."""
    model = tempered_model(program, data(FAR))
    fit, one, found = in_both(model)
    made = weighed_by_mass(model, fit, found, in_one_copy=one, seed=1)
    assert made is not None
    parts = log_mass_of_z(FAR)
    exact = float(np.exp(parts[1] - logsumexp(parts)))
    share, mcse = made.fit.expectation(lambda draws: draws["z"] > 0)
    assert 0 < mcse < 0.02
    assert abs(share - exact) < 4 * mcse
    assert made.table.copies == COPIES
    assert sorted(each.probability for each in made.table.modes)[0] == pytest.approx(share)
    whole = log_mass_of_labels() + float(logsumexp(parts))
    assert 0 < made.log_integral.mcse < 0.05
    assert abs(made.log_integral.value - whole) < 4 * made.log_integral.mcse
    # In every copy, in whichever a draw is.
    mu = made.fit.posterior["mu"].to_numpy()
    assert np.unique(np.argsort(mu, axis=2).reshape(-1, 4), axis=0).shape == (COPIES, 4)


def test_peaks_that_were_found_before_are_brought_to_the_copy(program: Path) -> None:
    model = tempered_model(program, data(FAR))
    _, one, found = climbed(model)
    (mode,) = found.that_matter()
    moved = one.brought(mode.local.peak[None])[0]
    moved[:4] = moved[[3, 0, 2, 1]]
    mode = mode._replace(local=replace(mode.local, peak=moved))
    elsewhere = OtherModes((mode,), found.log_mass, found.climbs, found.gradients)
    assert len(table_of(model, elsewhere).modes) == 2


def test_the_mass_of_a_mode_alone_is_that_in_one_copy(program: Path) -> None:
    model = tempered_model(program, data(FAR))
    _, one, density = below(model)
    masses = ModesAlone(model, density, one.points, in_one_copy=one, most_seconds=10, seed=1)
    labels, parts = log_mass_of_labels() - np.log(COPIES), log_mass_of_z(FAR)
    own = masses.of_draws()
    assert own is not None
    assert 0 < own.mcse < 0.1
    assert abs(own.value - labels - parts[0]) < 4 * own.mcse
    other = one.points.reshape(-1, density.dimension).copy()
    other[:, 4] += 2 * FAR / 1.01
    other[:, :4] = other[:, [2, 0, 3, 1]]
    mass = masses.of_mode(other)
    assert mass is not None
    assert 0 < mass.mcse < 0.1
    assert abs(mass.value - labels - parts[1]) < 4 * mass.mcse


def test_auto_tells_the_modes_of_each_copy(program: Path) -> None:
    """NUTS moves between both modes of z, and not between the groups' orders."""
    result = sample(
        program, data(NEAR), engine="stanli", seed=1, warmup=500, budget=40, progress=False
    )
    assert result.copies == COPIES
    table = result.modes
    assert table is not None
    assert table.copies == result.as_json()["mode_copies"] == COPIES
    assert len(table.modes) == 2
    assert "Modes: 2 in each of 24 copies of the posterior" in result.as_text()
    parts = log_mass_of_z(NEAR)
    # The border between the modes is where the density is lowest, and not at 0: between the two
    # there is less than this.
    z = np.linspace(-1.0, 1.0, 2001)
    value = 0.3 * stats.norm.pdf(NEAR, z) + 0.7 * stats.norm.pdf(-NEAR, z)
    between = trapezoid(value * stats.norm.pdf(z, 0, 10), z) / np.exp(logsumexp(parts))
    share = max(table.modes, key=lambda each: each.probability)
    exact = float(np.exp(parts[0] - logsumexp(parts)))
    assert abs(share.probability - exact) < 4 * share.error + between
    found = result.log_evidence
    assert found is not None
    assert 0 < found.mcse < 0.1
    assert abs(found.value - log_mass_of_labels() - logsumexp(parts)) < 4 * found.mcse
    assert not [each for each in result.diagnosis if each.severity == Severity.PROBLEM]


def test_the_evidence_of_a_fit_looks_for_modes_in_one_copy(program: Path) -> None:
    found = evidence_from_fit(drawn(), program, data(FAR), engine="stanli", progress=False)
    (refusal,) = [each for each in found.refusals if "miss a mode" in each]
    # 0.3 / 0.7 times the mass.
    assert "about 0.43 times the mass that the draws stand for" in refusal
    assert "z = 5.9" in refusal


def test_draws_in_all_copies_are_brought_to_one_for_their_bridge(program: Path) -> None:
    """No proposal fits 24 copies.  A mode in each of them has a 24th of its mass in one."""
    model = tempered_model(program, data(FAR))
    fit, _, _ = below(model)
    found = evidence_from_fit(fit, program, data(FAR), engine="stanli", progress=False)
    (refusal,) = [each for each in found.refusals if "miss a mode" in each]
    assert "about 0.43 times the mass that the draws stand for" in refusal
    (told,) = [each for each in found.findings if "sees one of them" in each.sentence]
    assert "in 24 copies of the posterior" in told.sentence
    assert "with mu in another order" in told.sentence
    whole = found.integral
    assert whole is not None
    exact = log_mass_of_labels() + log_mass_of_z(FAR)[0]
    assert 0 < whole.mcse < 0.01
    assert abs(whole.value - exact) < 4 * whole.mcse


class Halves:
    """The half plane x > 0, of a density that is the same at -x."""

    copies = 2

    def brought(self, points: FloatArray, /) -> FloatArray:
        sign: FloatArray = np.where(points[..., :1] > 0, 1.0, -1.0)
        return sign * points

    def within(self, log_density: FloatArray, points: FloatArray, /) -> FloatArray:
        return np.where(points[:, 0] > 0, log_density, -np.inf)


def test_climbs_that_end_in_another_copy_lead_to_the_mode_of_this_one() -> None:
    """Two long narrow modes cross the border, so some draws of one lie beside the other's peak."""
    along, across = np.array([0.6, 0.8]), np.array([0.8, -0.6])
    rotation = np.stack([along, across], axis=1)
    size = np.array([4.0, 0.3])
    peak = np.array([1.5, -1.5])

    def log_density(points: FloatArray) -> tuple[FloatArray, FloatArray]:
        values, gradients = [], []
        for sign in (1, -1):
            z = ((points - sign * peak) @ rotation) / size
            values.append(-0.5 * np.square(z).sum(axis=1))
            gradients.append(-(z / size) @ rotation.T)
        value = np.logaddexp(*values)
        weight = np.exp(np.array(values) - value)[..., None]
        return value, (weight * np.array(gradients)).sum(axis=0)

    rng = np.random.default_rng(1)
    z = rng.normal(size=(4, 250, 2)) * size
    halves = Halves()
    points = halves.brought(peak + z @ rotation.T)
    target = Plain(log_density, {"x": (2,)})
    found = [
        find_modes([visits("nuts", points)], target, effective=1000, in_one_copy=one, seed=1).table
        for one in (halves, None)
    ]
    assert [len(each.modes) for each in found] == [1, 2]
    assert [each.copies for each in found] == [2, 1]


def test_one_copy_is_all_that_a_plain_table_is_of() -> None:
    points = np.random.default_rng(1).normal(size=(4, 200, 1))
    target = Plain(mixture([1.0], [[0.0]], [1.0]), {"x": (1,)})
    assert find_modes([visits("nuts", points)], target, effective=800, seed=1).table.copies == 1
