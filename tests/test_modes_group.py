"""Changes of parameters that leave a density: which are found, the group that they make, one copy.

Groups are compared with all their elements, listed by hand or by counting.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations, permutations, product

import numpy as np
import numpy.typing as npt
import pytest
from test_modes import Plain, draws_of, mixture, table_of

from harness.arrays import FloatArray
from harness.engine.unit_vectors import Lengths
from harness.errors import DataError
from harness.modes.copies import copy_by_group
from harness.modes.group import MOST_ELEMENTS, Group, generated_group
from harness.modes.labels import copy_around
from harness.modes.permutations import Exchange, Permutation, exchanges
from harness.modes.reflections import Reflection, centres
from harness.modes.symmetries import Symmetries, Symmetry, find_symmetries, leaves_density


def symmetries_of(target: Plain, dimension: int) -> Symmetries:
    points = np.random.default_rng(3).normal(size=(10, dimension))
    return find_symmetries(target, points, most_seconds=np.inf)


def group_of(target: Plain, dimension: int) -> Group:
    group = generated_group(symmetries_of(target, dimension))
    assert group is not None
    return group


def elements(group: Group) -> set[tuple[int, ...]]:
    return {tuple(each) for each in (group.sign * (group.order + 1)).tolist()}


def product_of_factors(points: FloatArray) -> tuple[FloatArray, FloatArray]:
    """A factor model with two columns, (a0, b0) and (a1, b1): its data see sum a_k b_k only."""
    a, b = points[:, :2], points[:, 2:4]
    value = -np.square((a * b).sum(axis=1) - 2) - np.abs(a).sum(axis=1) - (b**4).sum(axis=1)
    return value, np.zeros(points.shape)


def test_the_group_of_a_factor_model() -> None:
    """Two factors in either order, each of which may have the other sign: eight elements."""
    target = Plain(product_of_factors, {"a": (2,), "b": (2,)})
    expected = set()
    for order in permutations(range(2)):
        for signs in product((1, -1), repeat=2):
            row = [sign * (entry + 1) for sign, entry in zip(signs, order, strict=True)]
            more = [sign * (entry + 3) for sign, entry in zip(signs, order, strict=True)]
            expected.add((*row, *more))
    group = group_of(target, 4)
    assert elements(group) == expected
    assert group.order[0].tolist() == [0, 1, 2, 3]
    assert group.sign[0].tolist() == [1, 1, 1, 1]


def test_changes_that_do_the_same_are_one_element() -> None:
    """Of three pairs of shares, each of which sums to 1, two may change places together."""
    rng = np.random.default_rng(8)
    share = rng.uniform(size=(2, 3, 1))
    places = {"p": np.concatenate([share, 1 - share], axis=2)}
    middle = {"p": np.full((3, 2), 0.5)}
    every = Permutation((("p", (1,)),), (1, 0))
    changes = (every, Reflection((("p", ()),), middle), Permutation((("p", (0,)),), (1, 0, 2)))
    group, formal = (generated_group(Symmetries(changes, middle, each)) for each in (places, {}))
    assert group is not None
    assert formal is not None
    assert (len(group), len(formal)) == (4, 8)
    assert group.order[0].tolist() == list(range(6))
    assert np.all(group.sign == 1)  # those that were found first are kept
    rows = group.rows(places)
    images = [group.applied(np.full(2, each), rows) for each in range(4)]
    for one, other in combinations(images, 2):
        assert np.all(np.abs(one - other).max(axis=1) > 1e-6)


def test_elements_do_to_rows_what_changes_do_to_parameters() -> None:
    target = Plain(product_of_factors, {"a": (2,), "b": (2,)})
    rows = np.random.default_rng(4).normal(size=(50, 4))
    found = symmetries_of(target, 4)
    group = generated_group(found)
    assert group is not None
    images = [
        {tuple(np.round(image, 9)) for image in group.applied(np.full(50, g), rows)}
        for g in range(len(group))
    ]
    for change in found.changes:
        assert {tuple(np.round(each, 9)) for each in group.rows(change(group.values(rows)))} in (
            images
        )
    # All of them leave the density, at any place.
    value = target(rows)[0]
    for g in range(len(group)):
        np.testing.assert_allclose(target(group.applied(np.full(50, g), rows))[0], value)


class Shares(Plain):
    """One parameter between 0 and 1, by the logistic function, and two reals."""

    def constrain(self, points: npt.ArrayLike, /) -> dict[str, FloatArray]:
        at = np.asarray(points, dtype=np.float64)
        return {"w": 1 / (1 + np.exp(-at[:, 0])), "m1": at[:, 1], "m2": at[:, 2]}

    def unconstrain_draws(
        self, values: Mapping[str, npt.ArrayLike], /, *, lengths: Lengths = "drawn"
    ) -> FloatArray:
        w, *means = (np.asarray(values[name], dtype=np.float64) for name in self.shapes)
        if np.any((w <= 0) | (w >= 1)):
            raise DataError("w is not between 0 and 1")
        return np.stack([np.log(w / (1 - w)), *means], axis=1)


def shares(points: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Two components with shares w and 1 - w, and means m1 and m2 that data tell apart."""
    w = 1 / (1 + np.exp(-points[:, 0]))
    value = np.log(w) + np.log(1 - w) - 0.5 * (np.square(points[:, 1:]) / 9).sum(axis=1)
    for y in (-1.0, 2.0, 2.5):
        part = np.exp(-0.5 * np.square(y - points[:, 1:]))
        value = value + np.log(w * part[:, 0] + (1 - w) * part[:, 1])
    return value, np.zeros(points.shape)


def test_a_share_is_mirrored_where_its_components_change_places() -> None:
    target = Shares(shares, {"w": (), "m1": (), "m2": ()})
    points = np.random.default_rng(5).normal(size=(3, 3))
    middle = centres(points, target)
    assert middle["w"] == pytest.approx(0.5)
    assert middle["m1"] == 0
    group = group_of(target, 3)
    assert elements(group) == {(1, 2, 3), (-1, 3, 2)}
    assert group.changed(1) == (["m1", "m2"], ["w"])


def test_names_tell_which_parameters_belong_together() -> None:
    found = list(exchanges({"mu1": (), "mu2": (), "sd1": (), "sd2": (), "b": (3,)}))
    assert found[0] == Exchange((("mu1", "mu2"), ("sd1", "sd2")))
    assert Exchange((("mu1", "sd2"),)) in found
    assert not any("b" in each.parameters for each in found)


def test_a_small_asymmetry_is_no_symmetry_however_large_the_density() -> None:
    """A tenth of a nat, where the log density is -1,000,000: rounding allows 1e-3 at most."""

    def log_density(x: FloatArray) -> tuple[FloatArray, FloatArray]:
        return -1e6 - np.square(x[:, 0] ** 2 - 4) + 0.05 * np.sign(x[:, 0]), np.zeros(x.shape)

    target, points = Plain(log_density), np.random.default_rng(6).normal(size=(5, 1))
    mirrored = Reflection((("x", ()),), {"x": np.zeros(1)})
    assert not leaves_density(mirrored, points, target)
    assert find_symmetries(target, points, most_seconds=np.inf).changes == ()


def test_a_group_that_is_too_large_is_not_made() -> None:
    """Seven entries in any order are 5,040, and eight would be 40,320."""

    def swaps(count: int) -> Symmetries:
        changes: list[Symmetry] = []
        for other in range(1, count):
            order = list(range(count))
            order[0], order[other] = other, 0
            changes.append(Permutation((("mu", (0,)),), tuple(order)))
        return Symmetries(tuple(changes), {"mu": np.zeros(count)})

    largest = generated_group(swaps(7))
    assert largest is not None
    assert len(largest) == MOST_ELEMENTS == 5040
    assert generated_group(swaps(8)) is None


def test_draws_are_brought_to_one_copy() -> None:
    """Three components in any order with signs: 48 copies, of which each draw is in one."""
    rng = np.random.default_rng(7)
    component = np.array([2.0, 5.0, 9.0])
    # The copies of a place, and draws around each with the standard deviation 0.3.
    signed = [
        np.array(signs) * component[list(order)]
        for order in permutations(range(3))
        for signs in product((1, -1), repeat=3)
    ]
    changes: list[Symmetry] = [
        *(Permutation((("mu", (0,)),), order) for order in ((1, 0, 2), (2, 1, 0))),
        Reflection((("mu", (0,)),), {"mu": np.zeros(3)}, 0),
    ]
    group = generated_group(Symmetries(tuple(changes), {"mu": np.zeros(3)}))
    assert group is not None
    assert len(group) == 48
    rows = np.array(signed)[rng.integers(48, size=4000)] + 0.3 * rng.normal(size=(4000, 3))
    copy = copy_around(group, rows, rows[0])
    in_one_copy = copy.brought(rows)
    # One copy, in which they have their own spread: 4,000 draws give it to within 1/90.
    assert np.abs(in_one_copy.std(axis=0) / 0.3 - 1).max() < 5 / np.sqrt(2 * 4000)
    assert sorted(np.abs(np.rint(in_one_copy.mean(axis=0)))) == [2, 5, 9]
    assert np.all(copy.nearest(in_one_copy) == 0)
    # Draws keep their distances from 0, and each image of a draw is brought to the same place.
    elements = rng.integers(48, size=4000)
    np.testing.assert_allclose(copy.brought(group.applied(elements, rows)), in_one_copy)


def test_the_table_marks_copies_by_signs() -> None:
    """Two mirrored modes of equal share are copies; of unequal shares they are not."""
    rng = np.random.default_rng(8)
    middle = np.array([[3.0, -2.0, 1.0], [-3.0, 2.0, 1.0]])
    for share, told in (([0.5, 0.5], "a mirrored"), ([0.6, 0.4], "")):
        what = (share, middle, [0.4, 0.4])
        target = Plain(mixture(*what), {"a": (2,), "b": ()})
        table = table_of(draws_of(rng, *what), target)
        assert len(table.modes) == 2
        copy = table.modes[1]
        assert (copy.copy_of, copy.otherwise) == ((1, told) if told else (None, ""))


def test_a_copy_is_told_by_the_fewest_changes() -> None:
    """Other entries may change places as well, which brings some peaks nearer by chance."""
    rng = np.random.default_rng(9)
    middle = np.array([[3.0, -2.0, 1.0, 1.0, 1.0, 1.0], [-3.0, 2.0, 1.0, 1.0, 1.0, 1.0]])
    target = Plain(mixture([0.5, 0.5], middle, [0.4, 0.4]), {"a": (2,), "b": (4,)})
    group = group_of(target, 6)
    assert len(group) == 2 * 24
    spread = {"a": np.full(2, 3.0), "b": np.full(4, 0.4)}
    for _ in range(20):
        one, other = middle + rng.normal(0, 0.05, size=(2, 6))
        found = copy_by_group(one, other, target, group, spread)
        assert found is not None
        assert found.otherwise == "a mirrored"
        np.testing.assert_allclose(found.peak, [*-one[:2], *one[2:]])
        assert copy_by_group(one, one + 0.05, target, group, spread) is None


class LastIsRest(Plain):
    """Two entries that sum to 0, of which the way back looks at the first only."""

    def constrain(self, points: npt.ArrayLike, /) -> dict[str, FloatArray]:
        at = np.asarray(points, dtype=np.float64)
        return {"x": np.stack([at[:, 0], -at[:, 0]], axis=1)}

    def unconstrain_draws(
        self, values: Mapping[str, npt.ArrayLike], /, *, lengths: Lengths = "drawn"
    ) -> FloatArray:
        return np.asarray(values["x"], dtype=np.float64)[:, :1]


def test_a_change_that_a_constraint_forbids_is_no_symmetry() -> None:
    """The second entry mirrored is the same point on the unconstrained space, but no draw."""

    def log_density(x: FloatArray) -> tuple[FloatArray, FloatArray]:
        return -np.exp(x[:, 0]) - x[:, 0] ** 2, np.zeros(x.shape)

    target, points = LastIsRest(log_density, {"x": (2,)}), np.array([[0.5], [-1.2]])
    mirrored = Reflection((("x", (0,)),), {"x": np.zeros(2)}, 1)
    assert target.unconstrain_draws(mirrored(target.constrain(points))).tolist() == points.tolist()
    assert not leaves_density(mirrored, points, target)


def test_places_and_signs_of_the_same_parameters() -> None:
    """Sensitivities become one less the specificities if the infected and the others change places.

    On an unconstrained scale these are numbers of the opposite sign.
    """
    strength = np.array([1.0, 2.0])

    def two_tests(points: FloatArray) -> tuple[FloatArray, FloatArray]:
        share, one, other = points[:, 0], points[:, 1:3] @ strength, points[:, 3:5] @ strength
        parts = np.array([one - np.logaddexp(0, -share), -other - np.logaddexp(0, share)])
        value = np.logaddexp.reduce(parts) - 0.5 * np.square(points[:, 1:]).sum(axis=1)
        return value - np.square(share), np.zeros(points.shape)

    shapes: dict[str, tuple[int, ...]] = {"share": (), "se": (2,), "sp": (2,)}
    assert elements(group_of(Plain(two_tests, shapes), 5)) == {
        (1, 2, 3, 4, 5),
        (-1, -4, -5, -2, -3),
    }
