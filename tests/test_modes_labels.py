"""All orders of labels, which are not listed, against groups that are."""

from __future__ import annotations

from math import factorial
from pathlib import Path

import numpy as np
import pytest
from test_modes import Plain
from test_modes_group import symmetries_of

from harness.arrays import FloatArray
from harness.engine.program import StanProgram
from harness.modes import labels
from harness.modes.group import Group, generated_group
from harness.modes.labels import LabelGroup, copy_around, group_of
from harness.modes.permutations import Permutation
from harness.modes.symmetries import Symmetries
from harness.user import sample


def mixture_of(count: int) -> Plain:
    """A density of components with two places and a weight each, and one number for all of them."""

    def log_density(points: FloatArray) -> tuple[FloatArray, FloatArray]:
        x, y, w = np.split(points[:, : 3 * count], 3, axis=1)
        own = np.cos(x) + np.square(x - 0.1 * w) + 0.3 * np.sin(y * w)
        value = -own.sum(axis=1) - np.exp(-x).sum(axis=1) * points[:, -1]
        return value, np.zeros(points.shape)

    shapes: dict[str, tuple[int, ...]] = {"x": (count,), "y": (count,), "w": (count,), "s": ()}
    return Plain(log_density, shapes)


def both(count: int, monkeypatch: pytest.MonkeyPatch) -> tuple[Group, LabelGroup]:
    """The group as a list, and by its labels."""
    symmetries = symmetries_of(mixture_of(count), 3 * count + 1)
    listed = generated_group(symmetries)
    assert isinstance(listed, Group)
    monkeypatch.setattr(labels, "generated_group", lambda _: None)
    by_labels = group_of(symmetries)
    assert isinstance(by_labels, LabelGroup)
    assert len(listed) == len(by_labels) == factorial(count)
    return listed, by_labels


@pytest.mark.parametrize("count", [3, 5])
def test_labels_are_the_same_group_as_a_list(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    listed, by_labels = both(count, monkeypatch)
    assert listed.kinds == by_labels.kinds == {"x, y, w in another order"}
    rng = np.random.default_rng(count)
    centre = rng.normal(size=3 * count + 1)
    rows = centre + 0.3 * rng.normal(size=(200, 3 * count + 1))
    rows = listed.at_random(rows, (4, 50), seed=1)
    copies = [copy_around(each, rows, rows[0]) for each in (listed, by_labels)]
    np.testing.assert_allclose(copies[0].brought(rows), copies[1].brought(rows))
    np.testing.assert_array_equal(copies[0].holds(rows), copies[1].holds(rows))
    assert copies[1].holds(copies[1].brought(rows)).all()
    assert 0 < copies[1].holds(rows).mean() < 5 / factorial(count)


def test_a_random_order_takes_each_label_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    _, group = both(4, monkeypatch)
    count = 8000
    rows = np.tile(np.arange(13.0), (count, 1))
    moved = group.at_random(rows, (4, count // 4), seed=2)
    x, y, w = np.split(moved[:, :12], 3, axis=1)
    np.testing.assert_array_equal(np.hstack([y, w]), np.hstack([x + 4, x + 8]))
    assert np.all(moved[:, 12] == 12)
    assert np.array_equal(np.sort(x, axis=1), rows[:, :4])
    # Each of 16 shares is a quarter, with the standard error of that many independent draws.
    shares = np.array([[np.mean(x[:, k] == label) for label in range(4)] for k in range(4)])
    assert np.abs(shares - 0.25).max() < 4.5 * np.sqrt(0.25 * 0.75 / count)


def test_more_labels_than_can_be_listed() -> None:
    symmetries = symmetries_of(mixture_of(9), 28)
    assert generated_group(symmetries) is None
    group = group_of(symmetries)
    assert isinstance(group, LabelGroup)
    assert len(group) == 362_880
    assert group.entries.tolist() == [[k, 9 + k, 18 + k] for k in range(9)]


def test_what_is_not_all_orders_of_labels_has_no_such_group() -> None:
    """A swap with the first label that is missing, or a sign that changes besides."""
    symmetries = symmetries_of(mixture_of(9), 28)
    some = Symmetries(symmetries.changes[:5] + symmetries.changes[6:], symmetries.centres)
    assert group_of(some) is None

    def with_signs(points: FloatArray) -> tuple[FloatArray, FloatArray]:
        return -np.square(points).sum(axis=1), np.zeros(points.shape)

    assert group_of(symmetries_of(Plain(with_signs, {"x": (8,)}), 8)) is None


def test_two_indices_that_swap_apart_are_not_one() -> None:
    """Swaps of eight rows, and of three columns."""

    def table(points: FloatArray) -> tuple[FloatArray, FloatArray]:
        each = points.reshape(-1, 8, 3)
        value = -np.square(each.sum(axis=1)).sum(axis=1) - np.exp(each.sum(axis=2)).sum(axis=1)
        return value - np.sin(each).sum(axis=(1, 2)), np.zeros(points.shape)

    found = symmetries_of(Plain(table, {"x": (8, 3)}), 24)
    assert {each.axes for each in found.changes if isinstance(each, Permutation)} == {
        (("x", (0,)),),
        (("x", (1,)),),
    }
    assert group_of(found) is None


MIXTURE = """
data { int N; vector[N] y; int K; }
parameters { PLACES[K] mu; real<lower=0> s; }
model {
  mu ~ normal(0, 10);
  s ~ normal(0, 1);
  for (n in 1 : N) {
    vector[K] lp;
    for (k in 1 : K) lp[k] = normal_lpdf(y[n] | mu[k], s);
    target += log_sum_exp(lp) - log(K);
  }
}
"""


@pytest.mark.slow
def test_auto_on_a_mixture_with_more_orders_than_can_be_listed(tmp_path: Path) -> None:
    """Eight components in any order, and in the order of their places."""
    rng = np.random.default_rng(3)
    count, each = 8, 10
    y = rng.normal(np.repeat(3.0 * np.arange(count) - 10, each), 0.5)
    data = {"N": count * each, "y": y.tolist(), "K": count}
    found = []
    for places in ("vector", "ordered"):
        path = StanProgram(tmp_path / f"{places}.stan").path
        path.write_text(MIXTURE.replace("PLACES", places))
        result = sample(path, data, engine="stanli", seed=1, progress=False, what="all")
        assert result.log_evidence is not None
        found.append((result, result.log_evidence))
    (any_order, log_z), (_, ordered) = found
    difference = log_z.value - ordered.value - np.log(factorial(count))
    assert abs(difference) < 4 * np.hypot(log_z.mcse, ordered.mcse) < 0.5
    assert any(f"{factorial(count):,} copies" in one.sentence for one in any_order.diagnosis)
    # Each component is anywhere: its mean is that of all places, which the draws tell to within
    # their spread over the square root of 4,000 independent orders.
    mu = any_order.fit.posterior["mu"].to_numpy().reshape(-1, count)
    assert np.abs(mu.mean(axis=0) - y.mean()).max() < 4.5 * mu.std() / np.sqrt(len(mu)) + 0.1
