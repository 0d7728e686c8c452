"""Seeds of the parts of a run, derived from the run's own seed."""

from __future__ import annotations

import numpy as np


def derived_seeds(count: int, seed: int, *numbers: int) -> list[int]:
    """Return seeds that are independent of each other and of the seed itself.

    Parameters
    ----------
    count
        How many.
    seed
        The seed of a run.
    numbers
        Of the part of the run; other numbers give other seeds.

    Returns
    -------
    list of int
        From 0 to 2^32 - 1, which is what Stan takes.
    """
    return [int(each) for each in np.random.SeedSequence([seed, *numbers]).generate_state(count)]


def derived_seed(seed: int, *numbers: int) -> int:
    """Return one seed, as :func:`derived_seeds` does."""
    return derived_seeds(1, seed, *numbers)[0]
