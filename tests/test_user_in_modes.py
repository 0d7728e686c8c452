"""NUTS in each known mode, put together by masses: against quadrature, and when it cannot be."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.integrate import quad
from scipy.spatial import cKDTree
from scipy.special import betaln
from scipy.stats import multivariate_normal, norm
from stan_density import stanli
from test_user_sample import BIMODAL, BIMODAL_DATA, bimodal_truth
from whole_density import TWO_ROUND_MODES, tempered_whole

from harness.arrays import FloatArray
from harness.diagnosis import Severity
from harness.engine.batched import BatchedDensity
from harness.engine.nuts import NutsRun, NutsSettings
from harness.engine.short_nuts import run_short_nuts
from harness.errors import SamplingError
from harness.evidence import LogEvidence
from harness.fit import weigh_modes
from harness.model import Model
from harness.modes import FoundModes, Mode, ModeTable, Visits, find_modes
from harness.temper import tempered_model
from harness.user import sample
from harness.user.basins import Basin
from harness.user.in_modes import (
    METHOD,
    InModes,
    beside_masses,
    known_modes,
    nuts_in_modes,
)
from harness.user.in_which_mode import InWhichMode
from harness.user.mode_findings import mode_findings, problems_of_modes
from harness.user.mode_metric import mode_metric
from harness.user.weigh import weighed_by_points

assert stanli is not None

NUTS = NutsSettings(chains=4, warmup=300, draws=500, parallel_chains=2)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    path = tmp_path_factory.mktemp("bimodal") / "bimodal.stan"
    path.write_text(BIMODAL)
    return tempered_model(path, BIMODAL_DATA)


@pytest.fixture(scope="module")
def density(model: Model) -> BatchedDensity:
    return BatchedDensity(model.program("target"), model.data)


@pytest.fixture(scope="module")
def exact(density: BatchedDensity) -> FloatArray:
    """Draws by a grid of the unconstrained space, shape (4, 500, 2)."""
    rng = np.random.default_rng(1)
    a, b = np.meshgrid(np.linspace(-5, 5, 801), np.linspace(-9, 3, 801), indexing="ij")
    points = np.stack([a.ravel(), b.ravel()], axis=1)
    value = density(points)[0]
    weight = np.exp(value - value.max())
    chosen = rng.choice(len(points), size=2000, p=weight / weight.sum())
    return points[chosen].reshape(4, 500, 2)


def of_visits(density: BatchedDensity, final: FloatArray, search: FloatArray) -> FoundModes:
    visits = [
        Visits("parallel_tempering", final, np.zeros(final.shape[:2])),
        Visits("search", search[None], np.zeros((1, len(search)))),
    ]
    return find_modes(visits, density, effective=50, seed=1)


def in_mode(exact: FloatArray, sign: int) -> FloatArray:
    flat = exact.reshape(-1, 2)
    return np.asarray(flat[np.sign(flat[:, 0]) == sign])


def check(made: InModes, found: FoundModes) -> None:
    """Compare masses and means with the truth: log Z, and the probability of a < 0."""
    log_evidence, below = bimodal_truth()
    # The prior of b is a half of a normal distribution.
    integral = made.log_integral
    assert 0 < integral.mcse < 0.03
    assert abs(integral.value - (log_evidence - np.log(2))) < 4 * integral.mcse
    fit = weigh_modes(made.fit, made.basin, made.probability, made.log_error, seed=1)
    share = fit.expectation(lambda draws: draws["a"] < 0)
    assert 0 < share.mcse < 0.02
    assert abs(float(share.value) - below) < 4 * float(share.mcse)
    assert fit.tree.attrs["method"] == METHOD
    sizes = fit.posterior.sizes
    assert sizes["chain"] == 4
    assert 900 < sizes["draw"] <= 1000
    table = made.table(found.table)
    assert table.methods[0] == METHOD
    assert sum(each.probability for each in table.modes) == pytest.approx(1)
    assert table.missing == ()


def test_modes_with_wrong_shares_of_few_draws(
    model: Model, density: BatchedDensity, exact: FloatArray
) -> None:
    few = np.concatenate([in_mode(exact, 1)[:190], in_mode(exact, -1)[:10]]).reshape(4, 50, 2)
    found = of_visits(density, few, in_mode(exact, 1)[:40])
    assert [each.probability for each in found.table.modes] == [0.95, 0.05]
    check(nuts_in_modes(model, found, NUTS, most_seconds=20, seed=1), found)


def test_wrong_shares_of_modes_without_known_masses_are_told(
    model: Model, density: BatchedDensity, exact: FloatArray
) -> None:
    _, below = bimodal_truth()

    def table(positive: int, negative: int) -> ModeTable:
        parts = in_mode(exact, 1)[:positive], in_mode(exact, -1)[:negative]
        final = np.random.default_rng(3).permutation(np.concatenate(parts)).reshape(4, -1, 2)
        found = of_visits(density, final, in_mode(exact, 1)[:40])
        # As where points around peaks do not weigh modes, because they are bent.
        bent = by_hand(found, found.numbers, tuple(found.inside))
        assert not weighed_by_points(bent)
        return beside_masses(model, bent, NUTS, most_seconds=20, seed=1)

    right = round(800 * (1 - below)), round(800 * below)
    assert not problems_of_modes(table(*right))
    wrong = table(760, 40)
    (finding,) = problems_of_modes(wrong)
    assert "of the draws, although its probability is about" in finding.sentence
    assert wrong.modes[1].local is not None
    share, error = wrong.modes[1].local
    assert abs(share - below) < 4 * error < 0.1
    # The draws stay as they are, and what the runs took is counted.
    assert wrong.modes[1].probability == pytest.approx(0.05)
    assert wrong.gradients > 1000


def test_a_mode_that_the_draws_lack(
    model: Model, density: BatchedDensity, exact: FloatArray
) -> None:
    final = in_mode(exact, 1)[:400].reshape(4, 100, 2)
    found = of_visits(density, final, in_mode(exact, -1)[:40])
    assert found.table.missing == (2,)
    check(nuts_in_modes(model, found, NUTS, most_seconds=20, seed=2), found)


def by_hand(
    found: FoundModes, numbers: npt.NDArray[np.intp], inside: tuple[FloatArray, ...]
) -> FoundModes:
    """Return modes with other borders, as if those had been found."""
    mode = found.table.modes[0]
    shares = np.bincount(numbers, minlength=len(inside)) / len(numbers)
    modes = tuple(replace(mode, probability=float(each), local=None) for each in shares)
    return replace(
        found, table=replace(found.table, modes=modes), numbers=numbers, inside=inside, by_mass={}
    )


def test_places_that_nuts_leaves(model: Model, density: BatchedDensity, exact: FloatArray) -> None:
    found = of_visits(density, exact[:, :100], in_mode(exact, 1)[:40])
    ordered = [in_mode(exact, sign)[:50] for sign in (1, -1)]
    numbers = np.where(found.points[:, 0] > 0, 0, 1)
    # Three standard deviations from the peak, where no draw is.
    place = np.add(ordered[0][:1], [1.2, 0.0])
    left = by_hand(found, numbers, (*ordered, place))
    assert known_modes(left.table) == [0, 1, 2]
    made = nuts_in_modes(model, left, NUTS, most_seconds=30, seed=3)
    assert list(made.of_modes) == [0, 1]
    assert made.table(left.table).modes[2].probability == 0
    # A border through a mode, which NUTS crosses all the time.
    middle = np.median(found.points[numbers == 0, 1])
    numbers = np.where((numbers == 0) & (found.points[:, 1] > middle), 2, numbers)
    parts = tuple(found.points[numbers == k] for k in range(3))
    crossed = by_hand(found, numbers, parts)
    made = nuts_in_modes(model, crossed, NUTS, most_seconds=30, seed=4)
    assert [set(each.shares) for each in made.basins] == [{0, 2}, {1}]
    check(made, crossed)
    # Half of that mode is on either side of the border.
    (one, _), (other, error) = made.basins[0].shares[0], made.basins[0].shares[2]
    assert one + other == pytest.approx(1)
    assert abs(other - 0.5) < 4 * np.hypot(error, 0.5 / np.sqrt(np.sum(found.points[:, 0] > 0)))
    # Draws stay as they are in a table that is compared with these probabilities.
    table = made.compared(crossed.table)
    before = [each.probability for each in crossed.table.modes]
    assert [each.probability for each in table.modes] == before
    assert [each.local for each in table.modes] == [made.of_modes[k] for k in range(3)]


@pytest.mark.parametrize("leaving", [1, 3])
def test_chains_that_leave_a_mode_are_made_anew_where_most_stay(
    model: Model,
    density: BatchedDensity,
    exact: FloatArray,
    monkeypatch: pytest.MonkeyPatch,
    *,
    leaving: int,
) -> None:
    """As where NUTS hardly ever crosses a barrier: in the first run some chains do, early."""
    calls = 0
    a, b = in_mode(exact, -1)[0]

    def run(*args: Any, **options: Any) -> NutsRun:
        nonlocal calls
        made, calls = run_short_nuts(*args, **options), calls + 1
        if calls == 1:
            assert np.all(made.variables["a"] > 0)
            made.variables["a"][:leaving, 20:] = a
            made.variables["b"][:leaving, 20:] = np.exp(b)
        return made

    monkeypatch.setattr("harness.user.basins.run_short_nuts", run)
    found = of_visits(density, exact[:, :100], in_mode(exact, 1)[:40])
    if leaving == 3:  # these two are one basin, in which chains do not mix
        with pytest.raises(SamplingError, match="disagree in modes 1 and 2"):
            nuts_in_modes(model, found, NUTS, most_seconds=20, seed=1)
        return
    made = nuts_in_modes(model, found, NUTS, most_seconds=20, seed=1)
    assert calls == 3
    check(made, found)
    assert made.fit.posterior.sizes["draw"] == 2 * NUTS.draws
    assert not np.any((made.fit.posterior["a"] == a) & (made.fit.posterior["b"] == np.exp(b)))


def test_the_number_of_modes(model: Model, density: BatchedDensity, exact: FloatArray) -> None:
    one = in_mode(exact, 1)[:400].reshape(4, 100, 2)
    found = of_visits(density, one, in_mode(exact, 1)[:40])
    with pytest.raises(SamplingError, match="only one mode is known"):
        nuts_in_modes(model, found, NUTS, most_seconds=10, seed=1)
    assert beside_masses(model, found, NUTS, most_seconds=10, seed=1) is found.table
    mode = found.table.modes[0]
    rare = replace(mode, probability=0.0, local=(1e-4, 1e-5))
    by_search, by_climbs = (
        replace(mode, probability=0.0, local=None, seen_by={name: 1e-4})
        for name in ("search", "climbs")
    )
    modes = (mode, rare, by_search, by_climbs)
    assert known_modes(replace(found.table, modes=modes)) == [0, 3]


def test_copies_have_the_same_mass(tmp_path: Path) -> None:
    """The sign of a is unknown, so that either mode has half of the mass; log Z by quadrature."""
    model, density = tempered_whole(
        tmp_path,
        "parameters { real a; real b; } model { a ~ std_normal(); b ~ std_normal(); "
        "target += normal_lpdf(2.5 | square(a), 0.3); }",
    )
    rng = np.random.default_rng(2)
    a = rng.choice([-1.0, 1.0], (4, 500)) * rng.normal(1.56, 0.09, (4, 500))
    near = np.stack([a, rng.standard_normal((4, 500))], axis=2)
    found = of_visits(density, near, near[0])
    assert list(found.table.families().values()) == [[1, 2]]
    made = nuts_in_modes(model, found, NUTS, most_seconds=60, seed=3)
    assert made.probability == pytest.approx([0.5, 0.5], abs=1e-12)
    height = quad(lambda a: norm.pdf(a) * norm.pdf(2.5, a * a, 0.3), -4, 4, points=[-1.6, 1.6])[0]
    assert abs(made.log_integral.value - np.log(height)) < 4 * made.log_integral.mcse < 0.1


def test_a_small_mode_that_nuts_lacks(tmp_path: Path) -> None:
    """Four observations agree and three are outliers; the other way round has probability 0.005.

    Log Z by enumeration of which are outliers: given that, all observations are jointly normal.
    """
    y = np.array([1.1, 0.9, 1.3, 7.9, 8.2, 8.0, 1.0])
    path = tmp_path / "outliers.stan"
    path.write_text(
        "data { int N; vector[N] y; } parameters { real mu; real<lower=0, upper=1> bad; } model {"
        " mu ~ normal(0, 5); bad ~ beta(1, 4); for (n in 1 : N) target += log_mix(bad,"
        " normal_lpdf(y[n] | mu, 10), normal_lpdf(y[n] | mu, 0.2)); }"
    )
    terms = []
    for bad in itertools.product([False, True], repeat=len(y)):
        covariance = np.diag(np.where(bad, 100.0, 0.04)) + 25
        count = sum(bad)
        of_shares = betaln(1 + count, 4 + len(y) - count) - betaln(1, 4)
        terms.append(of_shares + multivariate_normal.logpdf(y, cov=covariance))
    truth = float(np.logaddexp.reduce(terms))
    result = sample(path, {"N": len(y), "y": y}, engine="stanli", seed=1, progress=False)
    assert result.log_evidence is not None
    assert abs(result.log_evidence.value - truth) < 4 * result.log_evidence.mcse < 0.02
    assert result.modes is not None
    small = result.modes.modes[1]
    # Where NUTS does not stay in it, so that no draws come from there, log Z has its mass all the
    # same.
    share = small.probability or (small.local or (0.0, 0.0))[0]
    assert share == pytest.approx(0.005, abs=0.001)


def test_the_integral_is_the_sum_of_masses() -> None:
    masses = [LogEvidence(float(np.log(each)), error) for each, error in ((3.0, 0.1), (1.0, 0.2))]
    shares = [{0: (0.8, 0.1), 2: (0.2, 0.1)}, {1: (1.0, 0.0)}]
    basins = [Basin(*each) for each in zip(masses, shares, strict=True)]
    made = InModes(None, np.zeros((1, 4), dtype=np.intp), basins)  # type: ignore[arg-type]
    assert made.probability == pytest.approx([0.75, 0.25])
    # To first order the error of a probability p by masses is p (1 - p) times that of their ratio.
    error = 0.75 * 0.25 * np.hypot(0.1, 0.2)
    assert made.of_modes[1] == pytest.approx((0.25, error))
    assert made.of_modes[0] == pytest.approx((0.6, np.hypot(0.8 * error, 0.075)))
    assert made.log_integral == pytest.approx((np.log(4), np.hypot(0.075, 0.05)))


def test_draws_of_a_wide_mode_are_not_those_of_a_narrow_one_nearby() -> None:
    """In 20 dimensions many of them are nearer to the narrow one's draws than to each other."""
    rng = np.random.default_rng(5)
    wide, narrow = rng.normal(0, 1, (3000, 20)), rng.normal(0, 0.1, (3000, 20))
    narrow[:, 0] += 2.0
    points = np.concatenate([wide[:250], narrow[:1000]])
    numbers = np.repeat([0, 1], [250, 1000])
    mode = Mode(0.5, 0.01, {"nuts": 0.5}, {"x": [0.0]}, 0.0, True)
    table = ModeTable((mode, mode), ("nuts",))
    found = FoundModes(table, points, numbers, np.full(20, 0.1), {}, (wide[:9], narrow[:9]))
    nearest = cKDTree(points).query(wide[1000:])[1]
    assert numbers[nearest].mean() > 0.05
    known = InWhichMode(found)
    # The narrow one's volume is next to nothing of the wide one's.
    assert known.of(wide[1000:]).mean() < 0.002
    assert known.of(narrow[1000:]).mean() > 0.998
    assert np.array_equal(known.of(points), numbers)
    assert known.elsewhere(wide[1000:], [0]).mean() < 0.002
    assert known.elsewhere(narrow[1000:], [0]).mean() > 0.99
    # A mode that is known by its peak alone: draws in it are elsewhere only if they are in another.
    peak = FoundModes(
        replace(table, modes=(mode, replace(mode, probability=0.0))),
        *(wide[:250], np.zeros(250, dtype=np.intp), np.full(20, 0.1), {}),
        (wide[:9], np.eye(1, 20) * 2.0),
    )
    known = InWhichMode(peak)
    assert known.elsewhere(narrow, [1]).mean() < 0.01
    # Moments of 250 draws in 20 dimensions make the ellipsoid a little small.
    assert known.elsewhere(wide[1000:], [1]).mean() > 0.9


def test_one_mode_alone_may_count(model: Model, density: BatchedDensity, exact: FloatArray) -> None:
    """Where all others are known to have hardly any mass, it is the one that is sampled."""
    found = of_visits(density, exact, in_mode(exact, 1)[:40])
    large, small = found.table.modes
    rare = replace(small, probability=0.0, local=(1e-6, 1e-7))
    table = replace(found.table, modes=(replace(large, probability=1.0), rare))
    alone = replace(found, table=table)
    assert known_modes(table) == [0]
    made = nuts_in_modes(model, alone, NUTS, most_seconds=20, seed=2)
    sign = np.sign(float(np.mean(alone.inside[0][:, 0])))
    np.testing.assert_array_equal(np.sign(made.fit.posterior["a"]), sign)
    log_evidence, below = bimodal_truth()
    part = below if sign < 0 else 1 - below
    exact_mass = log_evidence - np.log(2) + np.log(part)
    assert abs(made.log_integral.value - exact_mass) < 4 * made.log_integral.mcse < 0.1
    assert [each.probability for each in made.table(table).modes] == [1.0, 0.0]
    assert beside_masses(model, alone, NUTS, most_seconds=10, seed=1) is table


def test_a_narrow_mode_has_the_metric_of_its_points(tmp_path: Path) -> None:
    """Two modes of which one is 10,000 times as narrow in one direction as in the other.

    Both are Gaussians, with masses in closed form.  In the metric of its draws a trajectory has a
    few steps, where Stan's own metric, whose variances are 5e-6 at least, takes a hundred.
    """
    model, density = tempered_whole(
        tmp_path,
        "parameters { vector[2] x; } model { target += log_mix(0.3, normal_lpdf(x[1] | 2, 0.5) + "
        "normal_lpdf(x[2] | 0, 0.5), normal_lpdf(x[1] + x[2] | -2, 2e-5) + "
        "normal_lpdf(x[1] - x[2] | -2, 0.2)); }",
    )
    rng = np.random.default_rng(4)
    wide = rng.normal([2, 0], 0.5, (1000, 2))
    total, difference = rng.normal([-2, -2], [2e-5, 0.2], (1000, 2)).T
    narrow = np.stack([total + difference, total - difference], axis=1) / 2
    near = rng.permutation(np.concatenate([wide, narrow])).reshape(4, 500, 2)
    found = of_visits(density, near, near[0])
    made = nuts_in_modes(model, found, NUTS, most_seconds=60, seed=3)
    # The Jacobian of the sum and the difference is 2.
    masses = sorted(made.probability)
    mass = 0.7 / 2 / (0.3 + 0.7 / 2)
    assert abs(masses[1] - mass) < 4 * float(np.hypot(*made.log_error)) * mass * (1 - mass)
    steps = made.fit.sample_stats["n_steps"].to_numpy()
    assert steps.mean() < 16
    x = made.fit.posterior["x"].to_numpy()
    (inside,) = np.nonzero(np.abs(x[..., 0].ravel() + x[..., 1].ravel() + 2) < 2e-4)
    sums = (x[..., 0] + x[..., 1]).ravel()[inside]
    assert sums.std() == pytest.approx(2e-5, rel=0.2)


def test_a_metric_that_is_known_badly_is_not_relied_on(tmp_path: Path) -> None:
    """Points in one of two round modes lie along a line, which no coordinate shows."""
    model, density = tempered_whole(
        tmp_path,
        TWO_ROUND_MODES,
    )
    rng = np.random.default_rng(7)
    draws = rng.permutation(
        np.concatenate([rng.normal(0, 1, (1200, 4)), rng.normal(20, 1, (800, 4))])
    )
    found = of_visits(density, draws.reshape(4, 500, 4), draws[:40])
    line = 20 + rng.normal(size=(200, 1)) * np.ones(4) / 2 + 1e-6 * rng.normal(size=(200, 4))
    assert mode_metric(line) is not None
    (round_one,) = [each for each in found.inside if each.mean() < 10]
    inside = tuple(round_one if each is round_one else line for each in found.inside)
    made = nuts_in_modes(model, replace(found, inside=inside), NUTS, most_seconds=60, seed=3)
    assert abs(made.log_integral.value - np.log(2)) < 4 * made.log_integral.mcse < 0.1
    x = made.fit.posterior["x"].to_numpy().reshape(-1, 4)
    far = x[x.mean(axis=1) > 10]
    # Of 2,000 draws that NUTS makes nearly independent.
    assert far.std(axis=0) == pytest.approx(np.ones(4), abs=0.15)
    assert (far[:, 0] - far[:, 1]).std() == pytest.approx(np.sqrt(2), abs=0.2)


def test_a_mode_without_draws_in_which_chains_do_not_mix_is_left_out(tmp_path: Path) -> None:
    """Two narrow pieces are taken for one: its probability stays unknown, and is told to be."""
    model, density = tempered_whole(
        tmp_path,
        "parameters { vector[2] x; } model { target += log_sum_exp([normal_lpdf(x | 0, 1), "
        "-3 + normal_lpdf(x | 20, 0.1), -3 + normal_lpdf(x | 22, 0.1)]); }",
    )
    rng = np.random.default_rng(6)
    pieces = np.concatenate([rng.normal(20, 0.1, (40, 2)), rng.normal(22, 0.1, (40, 2))])
    found = of_visits(density, rng.normal(size=(4, 500, 2)), pieces[:40])
    main, other = found.table.modes
    table = replace(found.table, modes=(main, replace(other, local=None)))
    found = replace(found, table=table, inside=(found.inside[0], pieces), by_mass={})
    assert known_modes(found.table) == [0, 1]
    made = nuts_in_modes(model, found, NUTS, most_seconds=30, seed=3)
    assert list(made.of_modes) == [0]
    assert abs(made.log_integral.value) < 4 * made.log_integral.mcse < 0.05
    table = made.table(found.table)
    (told,) = [each for each in mode_findings(table) if each.severity > Severity.FINE]
    assert told.sentence.startswith("The draws lack mode 2")
    assert told.sentence.endswith("its probability is not known.")


@pytest.mark.slow
def test_nuts_in_each_mode_comes_before_replicas(tmp_path: Path) -> None:
    """Four modes in ten dimensions, each with a quarter (Beaujean and Caldwell 2013, section 4.2).

    The last density of each coordinate is that of the log of an exponential variable, or normal.
    Both integrate to 1, so that Z is one over the volume of the box.
    """
    path = tmp_path / "log_gamma.stan"
    path.write_text(
        "functions { real log_gamma_lpdf(real x, real m) { return x - m - exp(x - m); } } "
        "parameters { vector<lower=-30, upper=30>[10] x; } model { x ~ uniform(-30, 30); "
        "target += log_mix(0.5, log_gamma_lpdf(x[1] | 10), log_gamma_lpdf(x[1] | -10)); "
        "target += log_mix(0.5, normal_lpdf(x[2] | 10, 1), normal_lpdf(x[2] | -10, 1)); "
        "for (d in 3 : 6) target += log_gamma_lpdf(x[d] | 10); "
        "target += normal_lpdf(x[7 : 10] | 10, 1); }"
    )
    result = sample(path, {}, engine="stanli", seed=1, progress=False)
    assert result.method in ("collapsed_tempering", METHOD)
    assert not any(each.name == "parallel tempering" for each in result.stages)
    known = result.log_evidence
    assert known is not None
    assert abs(known.value + 10 * np.log(60)) < 4 * known.mcse < 0.1
    assert result.modes is not None
    assert len(result.modes.modes) == 4
    for each in result.modes.modes:
        assert abs(each.probability - 0.25) < 4 * each.error
    assert not problems_of_modes(result.modes)
