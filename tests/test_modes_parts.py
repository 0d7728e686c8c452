"""Copies of a mode in which an index runs along a part of a longer axis as well."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest
from test_modes import Plain

from harness.arrays import FloatArray
from harness.modes.group import generated_group
from harness.modes.parts import swaps_of_parts, swaps_with_exchanges
from harness.modes.permutations import Exchange, Part, Permutation
from harness.modes.symmetries import Both, find_symmetries, leaves_density

SWAP = (1, 0)


def a_background_besides(points: FloatArray) -> FloatArray:
    """Two locations, and three shares, of which the last is a background's."""
    at, share = points[:, :2], points[:, 2:]
    signal = (np.exp(share[:, :2]) * np.square(at - 1)).sum(axis=1)
    return np.asarray(-signal - share[:, 2] ** 4 - share[:, 2])


def a_background_first(points: FloatArray) -> FloatArray:
    at, share = points[:, :2], points[:, [3, 4, 2]]
    return a_background_besides(np.concatenate([at, share], axis=1))


def waves_in_blocks(points: FloatArray) -> FloatArray:
    """Two frequencies; the coefficients of both sines come before those of both cosines."""
    frequency, sine, cosine = points[:, :2], points[:, 2:4], points[:, 4:]
    times = np.linspace(0.1, 2, 7)[:, None, None]
    angle = times * frequency
    wave = (sine * np.sin(angle) + cosine * np.cos(angle)).sum(axis=2)
    return np.asarray(-np.square(wave - 0.3 * times[:, :, 0]).sum(axis=0))


def waves_in_pairs(points: FloatArray) -> FloatArray:
    """The coefficients of the first wave come before those of the second."""
    return waves_in_blocks(points[:, [0, 1, 2, 4, 3, 5]])


@pytest.mark.parametrize(
    ("value", "shapes", "places"),
    [
        (a_background_besides, {"at": (2,), "share": (3,)}, ((0, 1),)),
        (a_background_first, {"at": (2,), "share": (3,)}, ((1, 2),)),
        (waves_in_blocks, {"frequency": (2,), "b": (4,)}, ((0, 1), (2, 3))),
        (waves_in_pairs, {"frequency": (2,), "b": (4,)}, ((0, 2), (1, 3))),
    ],
)
def test_an_index_along_a_part_of_an_axis(
    value: Callable[[FloatArray], FloatArray],
    shapes: Mapping[str, tuple[int, ...]],
    places: tuple[tuple[int, ...], ...],
) -> None:
    target = Plain(lambda points: (value(points), np.zeros(points.shape)), shapes)
    dimension = sum(shape[0] for shape in shapes.values())
    points = np.random.default_rng(5).normal(size=(20, dimension))
    index, longer = shapes
    change = Permutation(((index, (0,)),), SWAP, (Part(longer, 0, places),))
    found = find_symmetries(target, points, most_seconds=60)
    assert found.changes[0] == change
    # A wave also stays as it is if its frequency and the coefficient of its sine change sign.
    assert len(found.changes) == 1 + (2 if index == "frequency" else 0)
    assert change.parameters == (index, longer)
    for other in swaps_of_parts(shapes):
        assert leaves_density(other, points, target) == (other == change)
    group = generated_group(found)
    assert group is not None
    images = group.applied(np.full(20, 1), points)
    np.testing.assert_allclose(value(images), value(points), rtol=1e-12)
    assert np.all(np.abs(images - points).max(axis=1) > 1e-3)


def test_numbered_parameters_with_entries_of_another() -> None:
    """Locations ``mu1`` to ``mu3``, each with its entry of a vector: all six orders."""

    def value(points: FloatArray) -> FloatArray:
        return np.asarray(-np.square(np.exp(points[:, 3:]) * points[:, :3] - 1).sum(axis=1))

    shapes = {"mu1": (), "mu2": (), "mu3": (), "share": (3,)}
    target = Plain(lambda points: (value(points), np.zeros(points.shape)), shapes)
    points = np.random.default_rng(6).normal(size=(20, 6))
    group = generated_group(find_symmetries(target, points, most_seconds=60))
    assert group is not None
    assert len(group) == 6
    for element in range(6):
        images = group.applied(np.full(20, element), points)
        np.testing.assert_allclose(value(images), value(points), rtol=1e-12)


def test_what_numbers_name() -> None:
    swap = Permutation((("share", (0,)),), (1, 0, 2))
    shapes = {"mu1": (), "mu2": (), "share": (3,)}
    assert list(swaps_with_exchanges(shapes)) == [(Exchange((("mu1", "mu2"),)), swap)]
    lettered = {"mu_a": (), "mu_b": (), "share": (3,)}
    assert list(swaps_with_exchanges(lettered)) == [(Exchange((("mu_a", "mu_b"),)), swap)]
    # Names with other letters, from zero, or beyond the vector's end name no entries.
    assert not list(swaps_with_exchanges({"mux": (), "muy": (), "share": (3,)}))
    for names in (("a", "alpha"), ("rho", "tau1"), ("mu12", "mu34"), ("b", "a_b")):
        assert not list(swaps_with_exchanges({**dict.fromkeys(names, ()), "share": (3,)}))
    assert not list(swaps_with_exchanges({"mu0": (), "mu1": (), "share": (3,)}))
    assert not list(swaps_with_exchanges({"mu3": (), "mu4": (), "share": (3,)}))


def test_where_no_index_has_its_own_axis_there_is_none() -> None:
    assert not list(swaps_of_parts({"a": (3,), "b": (5,)}))
    assert not list(swaps_of_parts({"a": (4,), "b": ()}))


@pytest.mark.parametrize("seed", range(20))
def test_whatever_names_and_shapes_are_entries_only_change_places(seed: int) -> None:
    rng = np.random.default_rng(seed)
    names = {"".join(rng.choice(list("ab12_"), size=rng.integers(1, 4))) for _ in range(6)}
    sizes = [(), (1,), (2,), (3,), (4,), (2, 3), (6, 2)]
    shapes = {name: sizes[rng.integers(len(sizes))] for name in sorted(names)}
    values = {name: rng.normal(size=(1, *shape)) for name, shape in shapes.items()}
    every = np.sort(np.concatenate([np.ravel(each) for each in values.values()]))
    changes: list[Permutation | Both] = [*swaps_of_parts(shapes)]
    changes += [Both(*each) for each in swaps_with_exchanges(shapes)]
    for change in changes:
        changed = change(values)
        assert {name: each.shape[1:] for name, each in changed.items()} == shapes
        after = np.concatenate([np.ravel(each) for each in changed.values()])
        assert np.array_equal(np.sort(after), every)
        # Twice, a swap changes nothing.
        for name, again in change(changed).items():
            assert np.array_equal(again, values[name])
