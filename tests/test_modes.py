"""The table of modes: on densities whose modes and probabilities are known exactly."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import count, permutations
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.special import expit, logit
from scipy.stats import chi2

from harness.arrays import FloatArray, LogDensity
from harness.engine.unit_vectors import Lengths
from harness.errors import DataError, SamplingError
from harness.modes import Mode, ModeTable, Visits, find_modes, limited
from harness.modes import find as finding
from harness.modes import regions as regions_module
from harness.modes.barriers import lowest_between
from harness.modes.climb import Box, climb, everywhere
from harness.modes.limited import Limited
from harness.modes.local_mass import local_log_mass
from harness.modes.permutations import Permutation, shared_indices
from harness.modes.regions import Regions, Search, crossings, find_regions
from harness.modes.visits import thinning
from harness.modes.words import MOST_ROWS, as_text, remarks, rows

CHAINS, DRAWS = 4, 1000


class Plain:
    """A density on the reals whose parameters are pieces of the point."""

    def __init__(
        self, log_density: LogDensity, shapes: Mapping[str, tuple[int, ...]] | None = None
    ) -> None:
        self._log_density = log_density
        self.shapes = shapes or {"x": (1,)}
        self.asked = 0

    def __call__(self, points: npt.ArrayLike, /) -> tuple[FloatArray, FloatArray]:
        at = np.asarray(points, dtype=np.float64)
        self.asked += len(at)
        return self._log_density(at)

    def constrain(self, points: npt.ArrayLike, /) -> dict[str, FloatArray]:
        at = np.asarray(points, dtype=np.float64)
        ends = np.cumsum([int(np.prod(shape)) for shape in self.shapes.values()])
        parts = np.split(at, ends[:-1], axis=1)
        return {
            name: part.reshape(len(at), *shape)
            for (name, shape), part in zip(self.shapes.items(), parts, strict=True)
        }

    def unconstrain_draws(
        self, values: Mapping[str, npt.ArrayLike], /, *, lengths: Lengths = "drawn"
    ) -> FloatArray:
        parts = [np.asarray(values[name], dtype=np.float64) for name in self.shapes]
        return np.concatenate([part.reshape(len(part), -1) for part in parts], axis=1)


def mixture(share: npt.ArrayLike, mean: npt.ArrayLike, sd: npt.ArrayLike) -> LogDensity:
    """A mixture of round Gaussians, not normalised."""
    w, mu, s = (np.asarray(each, dtype=np.float64) for each in (share, mean, sd))

    def log_density(x: FloatArray) -> tuple[FloatArray, FloatArray]:
        z = (x[:, None] - mu) / s[:, None]
        part = np.log(w) - 0.5 * np.square(z).sum(axis=2) - mu.shape[1] * np.log(s)
        value = np.logaddexp.reduce(part, axis=1)
        share = np.exp(part - value[:, None])
        return value, -np.einsum("ik,ikj->ij", share / s, z)

    return log_density


def draws_of(
    rng: np.random.Generator, share: npt.ArrayLike, mean: npt.ArrayLike, sd: npt.ArrayLike
) -> FloatArray:
    """Independent draws of such a mixture, as chains."""
    mu = np.asarray(mean, dtype=np.float64)
    which = rng.choice(len(mu), p=np.asarray(share), size=(CHAINS, DRAWS))
    noise = rng.normal(size=(CHAINS, DRAWS, mu.shape[1]))
    return np.asarray(mu[which] + np.asarray(sd)[which][..., None] * noise)


def visits(method: str, points: FloatArray, *, chain: bool = False) -> Visits:
    return Visits(method, points, np.zeros(points.shape[:2]), chain)


def table_of(points: FloatArray, target: Plain) -> ModeTable:
    """Of independent draws, which no chain made."""
    return find_modes([visits("nuts", points)], target, effective=4000, seed=1).table


def table_with_search(
    nuts: FloatArray, search: FloatArray, target: Plain, *, effective: float = 900
) -> ModeTable:
    """Of chains of NUTS, and particles of a search."""
    both = [visits("nuts", nuts, chain=True), visits("search", search)]
    return find_modes(both, target, effective=effective, seed=1).table


def test_a_population_without_weight_has_no_part_in_the_table() -> None:
    one = [1.0], [[0.0, 0.0, 0.0]], [1.0]
    rng = np.random.default_rng(1)
    particles, log_weight = rng.normal(size=(8, 32, 3)), np.zeros((8, 32))
    log_weight[0] = -1000.0  # whose exponential is 0
    found = find_modes(
        [visits("nuts", draws_of(rng, *one)), Visits("search", particles, log_weight)],
        Plain(mixture(*one), {"x": (3,)}),
        effective=4000,
        seed=1,
    )
    assert [set(each.seen_by) for each in found.table.modes] == [{"nuts", "search"}]


@pytest.mark.parametrize("dimension", [1, 10, 50])
def test_two_modes_have_their_shares(dimension: int) -> None:
    """Means 12 standard deviations apart, so that each draw belongs to one of them."""
    rng = np.random.default_rng(dimension)
    mean = np.array([-1.0, 1.0])[:, None] * np.full(dimension, 6 / np.sqrt(dimension))
    what = ([0.7, 0.3], mean, [1.0, 1.0])
    target = Plain(mixture(*what), {"x": (dimension,)})
    table = table_of(draws_of(rng, *what), target)
    assert len(table.modes) == 2
    assert table.gradients == target.asked
    error = np.sqrt(0.21 / (CHAINS * DRAWS))
    for mode, share, at in zip(table.modes, (0.7, 0.3), mean, strict=True):
        # Draws are independent, so the standard error is that of a binomial share; the one that is
        # reported rests on an estimated autocorrelation.
        assert abs(mode.probability - share) < 4 * error
        assert mode.error == pytest.approx(error, rel=0.3)
        assert mode.closed
        # 1,200 draws or more, of which 400 make the mean; all coordinates together.
        assert np.all(np.abs(np.array(mode.centre["x"]) - at) < 5 / np.sqrt(400))
    assert sum(each.probability for each in table.modes) == pytest.approx(1)


def test_errors_of_probabilities_know_of_systems() -> None:
    """Eight systems, two a chain, of which each stays where it is: their spread is the error."""
    inside = np.array([[1, 0], [1, 1], [0, 0], [1, 0]], dtype=np.float64).repeat(50, axis=1)
    points = np.random.default_rng(1).standard_normal((4, 100, 1))
    visits = Visits("parallel_tempering", points, np.zeros((4, 100)), systems=2)
    found = visits.probability(inside)
    assert float(found.value) == 0.5
    least = np.sqrt(8 / 7 * 0.25 / 8)  # of eight means, each 0 or 1, half of them
    assert float(found.mcse) > least
    kept = visits.thinned(80)  # every fifth: ten of each system
    assert (kept.every, kept.systems) == (5, 2)
    assert float(kept.probability(inside[:, ::5]).mcse) > least
    # Every third would put a system's draws among the other's.
    assert visits.thinned(150).systems == 1


def test_three_modes_of_different_widths() -> None:
    rng = np.random.default_rng(2)
    what = ([0.5, 0.3, 0.2], [[0, 0], [8, 0], [0, 12]], [1.0, 0.3, 2.0])
    table = table_of(draws_of(rng, *what), Plain(mixture(*what), {"x": (), "y": ()}))
    assert [round(each.centre["x"]) for each in table.modes] == [0, 8, 0]
    for mode, share in zip(table.modes, (0.5, 0.3, 0.2), strict=True):
        assert abs(mode.probability - share) < 4 * np.sqrt(share * (1 - share) / 4000)
    assert set(table.shown) == {"x", "y"}


def test_weights_count() -> None:
    """Draws from equal parts, weighted to 0.9 and 0.1; then pseudo-samples likewise."""
    rng = np.random.default_rng(3)
    mean = np.array([[-5.0], [5.0]])
    target = Plain(mixture([0.9, 0.1], mean, [1.0, 1.0]))
    points = draws_of(rng, [0.5, 0.5], mean, [1.0, 1.0])
    log_weight: FloatArray = np.log(0.9 - 0.8 * (points[..., 0] > 0))
    across = Visits("collapsed_tempering", points, log_weight)
    found = find_modes([across], target, effective=1000, seed=1).table
    # The ratio of sums: the delta method gives the variance 4 p^2 q^2 / n with n = 4000 halves.
    assert abs(found.modes[0].probability - 0.9) < 4 * 2 * 0.09 / np.sqrt(4000)
    pairs = np.stack([np.zeros_like(points) - 5, np.zeros_like(points) + 5], axis=2)
    pairs += 0.5 * rng.normal(size=pairs.shape)
    shares = np.zeros((CHAINS, DRAWS, 2))
    shares[...] = np.log([0.9, 0.1])
    within = Visits("pseudo_extended", pairs, shares)
    found = find_modes([within], target, effective=1000, seed=1).table
    assert [each.probability for each in found.modes] == pytest.approx([0.9, 0.1])
    assert [each.error for each in found.modes] == pytest.approx([1e-3, 1e-3])  # of one draw


def test_errors_take_autocorrelation_into_account() -> None:
    """A chain that flips a coin every 20 draws has a twentieth of them."""
    rng = np.random.default_rng(4)
    side = np.repeat(rng.random((CHAINS, DRAWS // 20)) < 0.5, 20, axis=1)
    points = np.where(side, -6.0, 6.0)[..., None] + rng.normal(size=(CHAINS, DRAWS, 1))
    table = table_of(points, Plain(mixture([0.5, 0.5], [[-6.0], [6.0]], [1.0, 1.0])))
    # The effective number of 200 flips is itself estimated, to some 20 per cent.
    assert table.modes[0].error == pytest.approx(0.5 / np.sqrt(200), rel=0.5)
    assert abs(table.modes[0].probability - 0.5) < 4 * 0.5 / np.sqrt(200)


def test_a_mode_that_the_final_draws_lack() -> None:
    """Its probability is known from points around its peak: 0.3."""
    rng = np.random.default_rng(5)
    mean = np.array([np.full(5, -3.0), np.full(5, 3.0)])
    what = ([0.7, 0.3], mean, [1.0, 2.0])
    target = Plain(mixture(*what), {"x": (5,)})
    alone = draws_of(rng, [1.0, 0.0], mean, [1.0, 2.0])
    both = draws_of(rng, *what)
    table = table_with_search(alone, both, target)
    assert [each.probability for each in table.modes] == [1.0, 0.0]
    assert table.missing == (2,)
    assert [set(each.seen_by) for each in table.modes] == [{"nuts", "search"}, {"search"}]
    assert table.modes[1].error == pytest.approx(1 / 900)
    assert table.modes[0].local is None
    found = table.modes[1].local
    assert found is not None
    share, error = found
    assert error < 0.03
    assert abs(share - 0.3) < 4 * error
    assert len(as_text(table)) == 4


TWO = ([0.95, 0.05], np.array([[0.0, 0.0], [12.0, 0.0]]), [1.0, 1.0])


@pytest.mark.parametrize("strays", [1, 30])
def test_draws_that_only_come_near_a_mode_have_not_been_in_it(strays: int) -> None:
    """NUTS turned back where its own mode ends; the search has been in the other one."""
    rng = np.random.default_rng(6)
    nuts = draws_of(rng, [1.0, 0.0], *TWO[1:])
    turns = np.linspace(0.1, 0.9, strays) * DRAWS
    nuts[0, turns.astype(int)] = [9.7, 0.0]  # 2.3 standard deviations from the other peak
    target = Plain(mixture(*TWO), {"x": (2,)})
    table = table_with_search(nuts, draws_of(rng, *TWO), target)
    assert [each.probability for each in table.modes] == [1.0, 0.0]
    found = table.modes[1].local
    assert found is not None
    assert abs(found[0] - 0.05) < 4 * found[1]
    assert found[1] < 0.01


def test_draws_far_from_the_peak_of_a_mode_with_heavy_tails_are_in_it() -> None:
    """Two t distributions in 20 dimensions: NUTS has a fiftieth of its draws in the second one.

    None of them is where half of the mass of the Gaussian at its peak would be.
    """
    dimension, degrees = 20, 3.0
    centres = np.zeros((2, dimension))
    centres[1, 0] = 200.0

    def density(points: FloatArray) -> tuple[FloatArray, FloatArray]:
        alone = heavy_tails(degrees)
        (one, slope), (other, other_slope) = (alone(points - centre) for centre in centres)
        value = np.logaddexp(one, other)
        share = np.exp(other - value)[:, None]
        return value, (1 - share) * slope + share * other_slope

    def draws(share: float) -> FloatArray:
        rng = np.random.default_rng(9)
        second = (rng.random((CHAINS, DRAWS)) < share).astype(np.intp)
        return np.asarray(centres[second] + heavy_draws(rng, degrees, dimension))

    nuts = draws(0.02)
    second = nuts[nuts[..., 0] > 100] - centres[1]
    # At the peak, the second derivatives are those of a Gaussian with this variance.
    reach = np.sqrt(chi2.ppf(0.5, dimension) * degrees / (degrees + dimension))
    assert np.linalg.norm(second, axis=1).min() > reach
    table = table_with_search(nuts, draws(0.5), Plain(density, {"x": (dimension,)}))
    assert not table.missing
    assert table.modes[1].probability == pytest.approx(len(second) / (CHAINS * DRAWS), abs=0.005)


def test_a_mode_that_chains_visit_as_often_as_others_is_part_of_the_one_they_leave() -> None:
    """With draws of another method in it, but not many more than NUTS has."""
    rng = np.random.default_rng(7)
    nuts, search = draws_of(rng, *TWO), draws_of(rng, *TWO)
    table = table_with_search(nuts, search, Plain(mixture(*TWO), {"x": (2,)}), effective=4000)
    assert len(table.modes) == 1


def test_several_runs_of_one_method_are_one_in_the_table() -> None:
    rng = np.random.default_rng(8)
    alone = draws_of(rng, [1.0, 0.0], *TWO[1:])
    others = [draws_of(rng, [1.0 - share, share], *TWO[1:]) for share in (0.5, 0.1, 0.0)]
    table = find_modes(
        [visits("nuts", alone, chain=True), *(visits("other_nuts", each) for each in others)],
        Plain(mixture(*TWO), {"x": (2,)}),
        effective=900,
        seed=1,
    ).table
    assert table.methods == ("nuts", "other_nuts")
    assert table.missing == (2,)
    assert table.modes[1].seen_by["other_nuts"] == pytest.approx(0.5, abs=4 * 0.5 / 31)
    assert "another NUTS run" in as_text(table)[2]


@pytest.mark.parametrize("dimension", [1, 6])
def test_a_mode_with_several_peaks_is_no_less_than_all_of_them(dimension: int) -> None:
    """NUTS moves freely between four; what is lacking is a fiftieth of all, not a twelfth."""
    rng = np.random.default_rng(6)
    mean = np.zeros((5, dimension))
    mean[:, 0] = [-6.0, -2.0, 2.0, 6.0, 30.0]
    sd = np.ones(5)
    what = ([0.245, 0.245, 0.245, 0.245, 0.02], mean, sd)
    target = Plain(mixture(*what), {"x": (dimension,)})
    lacking = draws_of(rng, [0.25, 0.25, 0.25, 0.25, 0.0], mean, sd)
    table = table_with_search(lacking, draws_of(rng, *what), target, effective=4000)
    assert [each.probability for each in table.modes] == [1.0, 0.0]
    found = table.modes[1].local
    assert found is not None
    share, error = found
    assert abs(share - 0.02) < 4 * error < 0.02


def funnel(x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Neal's, with a standard deviation of 3 for the logarithm of the others' variance."""
    y, z = x[:, 0], x[:, 1:]
    half = 0.5 * np.square(z).sum(axis=1) * np.exp(-y)
    value = -np.square(y) / 18 - half - 0.5 * z.shape[1] * y
    slope = (-y / 9 + half - 0.5 * z.shape[1])[:, None]
    return value, np.concatenate([slope, -z * np.exp(-y)[:, None]], axis=1)


def funnel_draws(rng: np.random.Generator, dimension: int) -> FloatArray:
    y = 3 * rng.normal(size=(CHAINS, DRAWS, 1))
    z = rng.normal(size=(CHAINS, DRAWS, dimension - 1)) * np.exp(y / 2)
    return np.concatenate([y, z], axis=2)


def banana(x: FloatArray) -> tuple[FloatArray, FloatArray]:
    a, off = x[:, 0], x[:, 1] - 0.1 * (np.square(x[:, 0]) - 100)
    return -(a**2) / 200 - 0.5 * off**2, np.stack([-a / 100 + 0.2 * a * off, -off], axis=1)


def banana_draws(rng: np.random.Generator) -> FloatArray:
    a = 10 * rng.normal(size=(CHAINS, DRAWS))
    return np.stack([a, 0.1 * (a**2 - 100) + rng.normal(size=a.shape)], axis=2)


TRIALS, SUCCESSES = 100_000, 50_000


def ridge(u: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Successes whose probability is a product: the density is nearly flat along a curve."""
    p = expit(u)
    q = p.prod(axis=1)
    value = SUCCESSES * np.log(q) + (TRIALS - SUCCESSES) * np.log1p(-q)
    value += np.log(p * (1 - p)).sum(axis=1)
    slope = SUCCESSES - (TRIALS - SUCCESSES) * q / (1 - q)
    return value, slope[:, None] * (1 - p) + 1 - 2 * p


def ridge_draws(rng: np.random.Generator) -> FloatArray:
    """The product has a beta distribution, up to a part in 10^5; given it, log p is uniform."""
    q = rng.beta(SUCCESSES + 1, TRIALS - SUCCESSES + 1, size=(CHAINS, DRAWS))
    one = q ** rng.random(q.shape)
    return np.asarray(logit(np.stack([one, q / one], axis=2)))


def heavy_tails(degrees: float) -> LogDensity:
    def log_density(x: FloatArray) -> tuple[FloatArray, FloatArray]:
        squares, power = np.square(x).sum(axis=1), degrees + x.shape[1]
        slope = -power * x / (degrees + squares)[:, None]
        return -0.5 * power * np.log1p(squares / degrees), slope

    return log_density


def heavy_draws(rng: np.random.Generator, degrees: float, dimension: int) -> FloatArray:
    normal = rng.normal(size=(CHAINS, DRAWS, dimension))
    return normal / np.sqrt(rng.chisquare(degrees, size=(CHAINS, DRAWS, 1)) / degrees)


def bounded(u: FloatArray) -> tuple[FloatArray, FloatArray]:
    """A uniform distribution on the unit cube, on Stan's scale."""
    return np.log(expit(u) * expit(-u)).sum(axis=1), 1 - 2 * expit(u)


def plateau(x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The same without a change of scale: flat inside, with walls."""
    inside = np.all(np.abs(x) < 1, axis=1)
    return np.where(inside, 0.0, -np.inf), np.zeros(x.shape)


def shell(x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """A sphere with a thickness of 0.05."""
    r = np.linalg.norm(x, axis=1)
    return -0.5 * np.square((r - 1) / 0.05), -((r - 1) / 0.05**2 / r)[:, None] * x


def shell_draws(rng: np.random.Generator, dimension: int) -> FloatArray:
    z = rng.normal(size=(CHAINS, DRAWS, dimension))
    r = 1 + 0.05 * rng.normal(size=(CHAINS, DRAWS, 1))
    return np.asarray(r * z / np.linalg.norm(z, axis=2, keepdims=True))


ONE: dict[str, tuple[LogDensity, Callable[[np.random.Generator], FloatArray]]] = {
    "funnel in 2 dimensions": (funnel, lambda rng: funnel_draws(rng, 2)),
    "funnel in 10 dimensions": (funnel, lambda rng: funnel_draws(rng, 10)),
    "banana": (banana, banana_draws),
    "ridge": (ridge, ridge_draws),
    "Cauchy": (heavy_tails(1), lambda rng: heavy_draws(rng, 1, 1)),
    "t in 5 dimensions": (heavy_tails(3), lambda rng: heavy_draws(rng, 3, 5)),
    "cube": (bounded, lambda rng: rng.logistic(size=(CHAINS, DRAWS, 4))),
    "plateau": (plateau, lambda rng: rng.uniform(-1, 1, size=(CHAINS, DRAWS, 4))),
    "shell": (shell, lambda rng: shell_draws(rng, 3)),
}


@pytest.mark.parametrize("name", ONE)
def test_one_region_is_one_mode(name: str) -> None:
    log_density, made = ONE[name]
    points = made(np.random.default_rng(6))
    scale = np.subtract(*np.quantile(points.reshape(-1, points.shape[2]), [0.75, 0.25], axis=0))
    found = find_regions(points.reshape(-1, points.shape[2]), log_density, scale=scale)
    assert len(found.regions) == 1
    assert not found.labels.any()


def test_a_density_without_an_upper_bound() -> None:
    """1 / |x| near a pole that no draw reaches: one region, which has no maximum."""

    def pole(x: FloatArray) -> tuple[FloatArray, FloatArray]:
        return -x[:, 0], -np.ones_like(x)

    points = np.random.default_rng(7).exponential(size=(CHAINS, DRAWS, 1))
    table = table_of(points, Plain(pole))
    assert len(table.modes) == 1
    assert not table.modes[0].closed
    assert "no maximum" in remarks(table)[0]


def test_label_switching() -> None:
    """Three components in any order: six modes, five of them copies of the first one."""
    rng = np.random.default_rng(8)
    component = np.array([[-6.0, 0.5], [0.0, 1.5], [7.0, 1.0]])
    orders = list(permutations(range(3)))
    centres = np.array([component[list(order)].T.ravel() for order in orders])
    centres = np.concatenate([centres, np.zeros((6, 1))], axis=1)
    what = (np.full(6, 1 / 6), centres, np.full(6, 0.2))
    target = Plain(mixture(*what), {"mu": (3,), "w": (3,), "other": ()})
    table = table_of(draws_of(rng, *what), target)
    assert len(table.modes) == 6
    assert table.families() == {1: [1, 2, 3, 4, 5, 6]}
    assert table.unseen == ""
    first = table.modes[0].centre
    for mode in table.modes[1:]:
        assert mode.permuted == ("mu", "w")
        for name in ("mu", "w"):
            ordered = [first[name][entry - 1] for entry in mode.order]
            # The centres are means of 400 draws each.
            assert np.allclose(mode.centre[name], ordered, atol=5 * 0.2 * np.sqrt(2 / 400))
        assert abs(mode.probability - 1 / 6) < 4 * np.sqrt(5 / 36 / 4000)
    text = "\n".join(as_text(table))
    assert "Copies have the index of mu and w in the order" in text


def test_copies_differ_only_by_the_index() -> None:
    """Modes that are mirrored, or whose weights differ, are no copies."""
    rng = np.random.default_rng(9)
    centres = np.array([[-4.0, 4.0], [4.0, -4.0]])
    for share, sd in (([0.7, 0.3], [0.5, 0.5]), ([0.5, 0.5], [0.5, 0.6])):
        what = (share, centres, sd)
        table = table_of(draws_of(rng, *what), Plain(mixture(*what), {"mu": (2,)}))
        assert [each.copy_of for each in table.modes] == [None, None]
        assert table.unseen == ""


def test_a_copy_that_no_method_saw() -> None:
    rng = np.random.default_rng(10)
    centres = np.array([[-4.0, 4.0], [4.0, -4.0]])
    target = Plain(mixture([0.5, 0.5], centres, [0.5, 0.5]), {"mu": (2,)})
    points = draws_of(rng, [1.0, 0.0], centres, [0.5, 0.5])
    assert table_of(points, target).unseen == "entries 1 and 2 of mu swapped"


def test_indices_that_parameters_may_share() -> None:
    found = list(shared_indices({"a": (2,), "b": (2, 2), "c": ()}))
    assert found[0] == (("a", (0,)), ("b", (0, 1)))
    assert (("b", (1,)),) in found
    assert len(found) == len(set(found)) == 2 * 4 - 1
    assert list(shared_indices({"a": (), "b": (1,)})) == []
    values = {"b": np.arange(8.0).reshape(2, 2, 2)}
    both = Permutation((("b", (0, 1)),), (1, 0))
    assert both(values)["b"][0].tolist() == [[3, 2], [1, 0]]
    assert both.parameters == ("b",)


@pytest.mark.parametrize(
    "shapes",
    [
        {"z": (2, 3, 2), "L": (2, 2, 2), "s": (2, 2)},
        {"w": (2,), "mu": (2, 2), "L": (2, 2, 2), "rho": (2, 2), "b": (2, 4)},
        {"mu": (3, 3), "L": (3, 3, 3), "tau": (3, 3), "eta": (3, 3), "w": (3,)},
    ],
)
def test_an_index_of_arrays_is_tried_whatever_their_elements(
    shapes: dict[str, tuple[int, ...]],
) -> None:
    """Elements may be as long as the index: matrices of 2 x 2 in two groups."""
    assert tuple((name, (0,)) for name in shapes) in list(shared_indices(shapes))


def test_chains_that_move_freely_see_one_mode() -> None:
    """A barrier of 1.3 nats: independent draws cross it as if it were not there."""
    rng = np.random.default_rng(11)
    what = ([0.5, 0.5], [[-2.0], [2.0]], [1.0, 1.0])
    points, target = draws_of(rng, *what), Plain(mixture(*what))
    assert len(find_regions(points.reshape(-1, 1), target, scale=np.ones(1)).regions) == 2
    chains = find_modes([visits("nuts", points, chain=True)], target, effective=4000, seed=1).table
    assert len(chains.modes) == 1
    assert len(table_of(points, target).modes) == 2


def test_crossings() -> None:
    rng = np.random.default_rng(12)
    independent = rng.choice(3, size=(4, 5000), p=[0.5, 0.3, 0.2])
    # Each of 4,996 pairs of neighbours a chain crosses with probability 0.3.
    error = np.sqrt(0.3 * 0.7 / 20_000) / 0.3
    assert abs(crossings(independent, 0, 1) - 1) < 5 * error
    assert crossings(np.repeat([[0], [1]], 10, axis=1), 0, 1) == 0
    assert crossings(np.zeros((2, 5), dtype=np.intp), 0, 1) == 0


def test_climbs_reach_the_top() -> None:
    """Of a Gaussian in 30 dimensions with a condition number of 10^4."""
    rng = np.random.default_rng(13)
    rotation = np.linalg.qr(rng.normal(size=(30, 30)))[0]
    covariance = rotation @ np.diag(np.geomspace(1e-2, 1e2, 30)) @ rotation.T
    precision = np.linalg.inv(covariance)

    def gaussian(x: FloatArray) -> tuple[FloatArray, FloatArray]:
        slope = -x @ precision
        return 0.5 * np.einsum("ij,ij->i", x, slope), slope

    start = rng.multivariate_normal(np.zeros(30), covariance, size=40)
    box = Box(2 * start.min(axis=0), 2 * start.max(axis=0))
    found = climb(start, gaussian, scale=np.sqrt(np.diag(covariance)), box=box)
    assert found.arrived.all()
    assert np.all(found.height > -0.1)  # of 15 nats on average at the start
    np.testing.assert_allclose(found.height, gaussian(found.points)[0])


def test_climbs_need_not_make_sure_of_a_top_that_is_known() -> None:
    """Of one of two Gaussians; climbs to the other one go on to its top."""
    evaluations, top = 0, np.array([-4.0, 0, 0])

    def two(x: FloatArray) -> tuple[FloatArray, FloatArray]:
        nonlocal evaluations
        evaluations += len(x)
        apart = x[:, None] - np.stack([top, -top])
        each = -0.5 * np.square(apart).sum(axis=2)
        share = np.exp(each - np.logaddexp(*each.T)[:, None])
        return np.logaddexp(*each.T), -np.einsum("nk,nkd->nd", share, apart)

    def is_end(points: FloatArray, height: FloatArray) -> npt.NDArray[np.bool_]:
        near: npt.NDArray[np.bool_] = np.linalg.norm(points - top, axis=1) < 0.1
        assert height.shape == near.shape
        return near

    start = np.random.default_rng(3).normal(0, 5, (100, 3))
    box = Box(np.full(3, -np.inf), np.full(3, np.inf))
    known = climb(start, two, scale=np.ones(3), box=box, is_end=is_end)
    with_known, evaluations = evaluations, 0
    alone = climb(start, two, scale=np.ones(3), box=box)
    assert with_known < 0.9 * evaluations
    assert known.arrived.all()
    there = alone.points[:, 0] < 0
    assert 20 < there.sum() < 80
    np.testing.assert_array_equal(known.points[~there], alone.points[~there])
    assert np.linalg.norm(known.points[there] - top, axis=1).max() < 0.1


def test_slopes_that_overflow_lead_nowhere() -> None:
    """Beyond 7 the density's slope has no number in units of its scale, which is 100 there."""

    def steep(x: FloatArray) -> tuple[FloatArray, FloatArray]:
        beyond = np.maximum(x - 7, 0)
        slope = -(x - 3) - np.where(beyond > 0, 1e307, 0.0)
        return -0.5 * np.square(x - 3).sum(axis=1) - beyond.sum(axis=1), slope

    start = np.array([[-20.0], [2.0], [6.9], [7.5], [50.0]])
    found = climb(start, steep, scale=np.array([100.0]), box=everywhere(1))
    np.testing.assert_allclose(found.points[:3], 3, atol=0.1)
    # There is nothing to go by, so they stay, and have not arrived.
    np.testing.assert_array_equal(found.points[3:], start[3:])
    assert not found.arrived[3:].any()


def test_mass_around_a_peak() -> None:
    """Of a correlated Gaussian, and of a gamma distribution's logarithm, which is skewed."""
    covariance = np.array([[2.0, 0.9], [0.9, 0.5]])
    precision = np.linalg.inv(covariance)

    def gaussian(x: FloatArray) -> tuple[FloatArray, FloatArray]:
        slope = -(x - 3) @ precision
        return 0.5 * np.einsum("ij,ij->i", x - 3, slope), slope

    exact = np.log(2 * np.pi) + 0.5 * np.linalg.slogdet(covariance)[1]

    def log_gamma(x: FloatArray) -> tuple[FloatArray, FloatArray]:
        return 3 * x[:, 0] - np.exp(x[:, 0]), 3 - np.exp(x)

    for density, peak, truth in (
        (gaussian, np.full(2, 3.0), float(exact)),
        (log_gamma, np.log([3.0]), float(np.log(2))),  # Gamma(3)
    ):
        found = local_log_mass(peak, Plain(density), scale=np.ones(len(peak)), count=4000, seed=1)
        assert found is not None
        assert 0 < found.mcse < 0.05
        assert abs(found.value - truth) < 4 * found.mcse
    assert local_log_mass(
        np.zeros(2), Plain(plateau), scale=np.ones(2), count=100, seed=1
    ) is None  # fmt: skip


def test_what_is_refused() -> None:
    points = np.zeros((1, 20, 1))
    nothing = Plain(lambda x: (np.full(len(x), -np.inf), np.zeros(x.shape)))
    with pytest.raises(DataError, match="zero at all draws"):
        table_of(points, nothing)
    with pytest.raises(DataError, match="one climb or more"):
        Search(climbs=0)
    with pytest.raises(SamplingError, match="within 0 s"):
        find_modes([visits("nuts", points)], Plain(bounded), effective=9, most_seconds=1e-9, seed=1)


def test_a_slow_density_is_evaluated_at_fewer_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Assigning 4,000 draws to modes takes eight evaluations each."""
    what = ([0.5, 0.5], [[-6.0], [6.0]], [1.0, 1.0])
    points = draws_of(np.random.default_rng(3), *what)
    gradients = []
    for seconds in (1e-9, 1e-3):
        monkeypatch.setattr(limited, "seconds_a_point", lambda *_, each=seconds: each)
        made = find_modes(
            [visits("nuts", points)], Plain(mixture(*what)), effective=4000, most_seconds=12, seed=1
        )
        gradients.append(made.table.gradients)
        assert len(made.table.modes) == 2
        assert all(abs(each.probability - 0.5) < 4 * each.error for each in made.table.modes)
    assert gradients[1] < 12 / 1e-3 < gradients[0]


def test_where_climbs_take_long_there_are_few_and_few_paths(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    what = ([1 / 6] * 6, [[-30.0], [-18.0], [-6.0], [6.0], [18.0], [30.0]], [1.0] * 6)
    points = draws_of(np.random.default_rng(3), *what)
    asked: list[Search] = []

    def regions(*args: Any, search: Search, **options: Any) -> Regions:
        asked.append(search)
        return find_regions(*args, search=search, **options)

    monkeypatch.setattr(finding, "find_regions", regions)
    # Of the time one half is for climbs; each takes ten times what one by itself does.
    now = count(0.0, 8 * 0.01)
    monkeypatch.setattr(finding, "time", SimpleNamespace(perf_counter=lambda: next(now)))
    monkeypatch.setattr(limited, "seconds_a_point", lambda *_: 1e-5)
    for seconds in (4.0, 1e4):
        made = find_modes(
            [visits("nuts", points)], Plain(mixture(*what)), effective=4000,
            most_seconds=seconds, seed=1,
        )  # fmt: skip
        assert len(made.table.modes) == 6
    assert asked == [Search(climbs=20, more_climbs=20, paths=20), Search()]


def test_paths_are_tried_between_the_nearest_regions(monkeypatch: pytest.MonkeyPatch) -> None:
    points = np.concatenate([np.full((5, 1), each) for each in (-30.0, -18.0, -10.0, -6.0)])
    what = ([0.25] * 4, [[-30.0], [-18.0], [-10.0], [-6.0]], [1.0] * 4)
    tried = []

    def paths(one: FloatArray, other: FloatArray, *_: Any, **__: Any) -> FloatArray:
        tried.append(sorted(np.abs(one - other).ravel().tolist()))
        return np.full(len(one), -np.inf)

    monkeypatch.setattr(regions_module, "lowest_by_paths", paths)
    for most in (2, None):
        made = find_regions(
            points, Plain(mixture(*what)), scale=np.ones(1), search=Search(paths=most)
        )
        assert len(made.regions) == 4
    assert [round(each) for each in tried[0]] == [4, 8]
    assert [round(each) for each in tried[1]] == [4, 8, 12, 12, 20, 24]
    with pytest.raises(DataError, match="paths must not be negative"):
        Search(paths=-1)


def test_the_table_is_kept_as_json() -> None:
    table = a_table(3)
    assert ModeTable.from_json(table.as_json()) == table
    assert json.loads(table.as_json())["modes"][0]["probability"] == table.modes[0].probability


def a_table(number: int) -> ModeTable:
    mode = Mode(
        1 / number, 0.01, {"nuts": 0.5}, {"mu": [1.0, 2.0], "s": 3.0}, -1.5, True, (0.1, 0.01)
    )
    modes = [mode, *(replace(mode, copy_of=1, permuted=("mu",), order=(2, 1)),) * (number - 1)]
    return ModeTable(tuple(modes), ("nuts",), ("mu[2]", "s") if number > 1 else (), "", 0.1, 7)


def test_the_table_in_words() -> None:
    assert as_text(a_table(1)) == ["Modes: 1, as far as these methods saw: NUTS."]
    assert rows(a_table(1)) == []
    many = a_table(20)
    assert len(rows(many)) == MOST_ROWS
    text = as_text(many)
    assert text[0] == "Modes: 20"
    assert "8 more have probability 0.4 in all, 0 of them 0" in text[2 + MOST_ROWS]
    assert text[3].split() == ["2", "0.0500", "±", "0.0100", "NUTS", "1", "(2", "1)", "2", "3"]
    assert "10% of the draws count as in the mode of the nearest draw" in text[-1]


def test_the_same_seed_gives_the_same_table() -> None:
    rng = np.random.default_rng(14)
    what = ([0.6, 0.4], [[-4.0], [4.0]], [1.0, 2.0])
    points, target = draws_of(rng, *what), Plain(mixture(*what))
    assert table_of(points, target) == table_of(points, target)


def test_stuck_chains_are_an_error_of_their_own() -> None:
    """Three chains in one mode and one in the other: each share is known to about a half."""
    rng = np.random.default_rng(15)
    side = np.array([-6.0, -6.0, -6.0, 6.0])[:, None, None]
    points = side + rng.normal(size=(CHAINS, DRAWS, 1))
    target = Plain(mixture([0.5, 0.5], [[-6.0], [6.0]], [1.0, 1.0]))
    table = find_modes([visits("nuts", points, chain=True)], target, effective=4, seed=1).table
    assert [each.probability for each in table.modes] == [0.75, 0.25]
    # Four independent flips have an error of 0.22.
    assert all(0.1 < each.error < 0.6 for each in table.modes)


def test_thinning_keeps_enough_of_each_chain_and_counts_what_it_leaves_out() -> None:
    points = np.arange(4 * 1000.0).reshape(4, 1000, 1)
    once = visits("nuts", points, chain=True).thinned(400)
    assert once.points.shape == (4, 100, 1)
    assert once.every == 10
    np.testing.assert_array_equal(once.points[:, :, 0], points[:, ::10, 0])
    assert once.thinned(200).every == 20
    assert thinning((100, 16), 100) == 2  # eight draws of a chain at least
    assert thinning((4, 10), 400) == 1


def test_many_modes_do_not_take_longer_than_they_may() -> None:
    """Each of them is described, which evaluates no density."""
    late = Limited(Plain(mixture([1.0], [0.0], [1.0])), most_seconds=-1.0)
    with pytest.raises(SamplingError, match="not found within"):
        late.constrain(np.zeros((1, 1)))


def test_lines_are_followed_until_a_barrier_is_found() -> None:
    """Two unit normals seven apart: each level looks at open lines only, the middle first."""
    asked: list[FloatArray] = []

    class Density:
        def __call__(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
            raise AssertionError("gradients are not needed")

        def values(self, points: FloatArray) -> FloatArray:
            asked.append(points[:, 0])
            x = points[:, 0]
            return np.logaddexp(-0.5 * np.square(x), -0.5 * np.square(x - 7.0))

    one, other = np.array([[0.0], [0.0]]), np.array([[7.0], [1.0]])
    lowest = lowest_between(one, other, np.array([-1.0, -1.0]), Density(), halvings=3)
    assert [len(each) for each in asked] == [2, 2, 4]
    np.testing.assert_allclose(asked[0], [3.5, 0.5])
    np.testing.assert_allclose(np.sort(np.concatenate(asked))[:-1], np.arange(1, 8) / 8)
    np.testing.assert_allclose(lowest[1], -0.5 * (7 / 8) ** 2, atol=1e-6)
    assert lowest[0] < -1


def test_a_line_with_a_hole_beside_its_middle_has_a_barrier() -> None:
    def density(points: FloatArray) -> tuple[FloatArray, FloatArray]:
        hole = np.abs(points[:, 0] - 0.9) < 0.07
        return np.where(hole, -np.inf, 0.0), np.zeros_like(points)

    ends = np.array([[0.0]]), np.array([[1.0]])
    assert lowest_between(*ends, np.array([-1.0]), density)[0] == -np.inf
    assert lowest_between(*ends, np.array([-1.0]), density, halvings=2)[0] == 0.0
