"""Elements of parameters as a text tells them, against sets of NumPy indices."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from harness.temper.elements import (
    ONE,
    Affine,
    Box,
    Frame,
    Index,
    Interval,
    Piece,
    add,
    counted,
    told,
)


def number(value: int) -> Affine:
    return Affine("", value)


def whole(*sizes: int) -> Box:
    return tuple(Interval(ONE, number(size)) for size in sizes)


def elements(box: Box) -> set[tuple[int, ...]]:
    axes = [range(each.low.offset, each.high.offset + 1) for each in box if each is not None]
    return set(itertools.product(*axes))


@pytest.mark.parametrize("seed", range(30))
def test_cells_are_counted(seed: int) -> None:
    """Each element is in one cell, whose count is the number of boxes that hold it."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 6, rng.integers(1, 4))
    boxes: list[Box] = []
    for _ in range(rng.integers(0, 5)):
        ends = [np.sort(rng.integers(1, size + 1, 2)) for size in sizes]
        boxes.append(tuple(Interval(number(int(a)), number(int(b))) for a, b in ends))
    cells = counted(whole(*map(int, sizes)), boxes)
    assert cells is not None
    exact = {each: sum(each in elements(box) for box in boxes) for each in elements(whole(*sizes))}
    assert {each: count for cell, count in cells for each in elements(cell)} == exact
    assert sum(len(elements(cell)) for cell, _ in cells) == len(exact)


@pytest.mark.parametrize("seed", range(30))
def test_indices_of_indices(seed: int) -> None:
    """``x[3 : 7][2]`` is x[4]: against NumPy, and told by name."""
    rng = np.random.default_rng([1, seed])
    sizes = rng.integers(2, 6, rng.integers(1, 4))
    numbers = np.arange(np.prod(sizes)).reshape(sizes)
    all_of_it = whole(*map(int, sizes))
    piece = Piece("x", all_of_it, tuple(range(len(sizes))))
    left = numbers
    while left.ndim and rng.random() < 0.8:
        indices: list[Index] = []
        chosen: list[int | slice] = []
        for size in left.shape[: rng.integers(1, left.ndim + 1)]:
            low, high = (int(each) for each in np.sort(rng.integers(1, size + 1, 2)))
            if rng.random() < 0.4:
                indices.append(("point", number(low), None))
                chosen.append(low - 1)
            else:
                given = rng.random(2) < 0.7
                ends = (number(low) if given[0] else None, number(high) if given[1] else None)
                indices.append(("range", *ends))
                chosen.append(slice(low - 1 if given[0] else None, high if given[1] else None))
        piece = piece.indexed(indices)
        left = left[tuple(chosen)]
    assert piece.known
    found = {int(numbers[tuple(np.array(each) - 1)]) for each in elements(piece.box)}
    assert found == set(np.ravel(left).tolist())
    names = told("x", all_of_it, [piece.box])
    if left.size == 1 and numbers.size > 1:
        at = ", ".join(str(int(i) + 1) for i in np.argwhere(numbers == left.item())[0])
        assert names == [f"x[{at}]"]


def test_loops_go_over_elements() -> None:
    turn = Affine("i@1", 0)
    frame = Frame("i@1", number(2), Affine("K", 0))
    before = Piece("x", (Interval(Affine("i@1", -1), Affine("i@1", -1)),))
    assert before.over([frame]) == (
        Piece("x", (Interval(number(1), Affine("K", -1)),)),
        False,
    )
    # The same element in each turn; on a diagonal it is not a box of elements.
    assert Piece("x", whole(3)).over([frame]) == (Piece("x", whole(3)), True)
    diagonal = Piece("x", (Interval(turn, turn), Interval(turn, turn)))
    assert diagonal.over([frame]) == (Piece("x", (None, None)), True)
    triangle = Piece("x", (Interval(turn, turn), Interval(number(1), turn)))
    assert triangle.over([frame])[0].box == (None, None)
    inner = Frame("j@2", ONE, Affine("i@1", -1))
    both = Piece("x", (Interval(turn, turn), Interval(Affine("j@2", 0), Affine("j@2", 0))))
    assert both.over([frame, inner])[0].box[1] is None
    assert before.over([Frame("i@1")]) == (Piece("x", (None,)), True)


def test_names_of_data_count_from_the_end() -> None:
    size = Affine("K", 1)
    all_of_it: Box = (Interval(ONE, size),)
    boxes: list[Box] = [(Interval(ONE, number(2)),), (Interval(Affine("K", 0), size),)]
    cells = counted(all_of_it, boxes)
    assert cells is not None
    assert told("x", all_of_it, [cell for cell, count in cells if not count]) == ["x[3 : K - 1]"]
    assert counted(all_of_it, [(Interval(ONE, Affine("J", 0)),)]) is None
    assert counted(all_of_it, [(None,)]) is None
    assert told("x", all_of_it, [all_of_it]) == ["x"]


def test_sums_of_numbers() -> None:
    count = Affine("N", 1)
    assert add(count, number(2)) == Affine("N", 3)
    assert add(number(2), count) == Affine("N", 3)
    assert add(count, Affine("N", -2), -1) == number(3)
    assert add(number(2), count, -1) is None
    assert add(count, count) is None
    assert add(None, count) is None
    assert [str(each) for each in (count, Affine("N", -2), Affine("N", 0), number(4))] == [
        *("N + 1", "N - 2", "N", "4"),
    ]
