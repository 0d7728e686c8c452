"""Seeds of parts of a run."""

from __future__ import annotations

import itertools

from harness.seeds import derived_seed, derived_seeds


def test_seeds_of_different_parts_differ() -> None:
    """Among these 800 seeds of 32 bits two are the same with a probability of 800^2 / 2^33."""
    found = [
        each
        for seed, part in itertools.product((1, 2, 2**32 - 1, 2**40), range(20))
        for each in derived_seeds(10, seed, part)
    ]
    assert len(set(found)) == len(found)
    assert all(0 <= each < 2**32 for each in found)


def test_one_seed_is_the_first_of_several() -> None:
    assert derived_seed(7, 3, 1) == derived_seeds(4, 7, 3, 1)[0]
