"""Runs in which some chains do not get on from where they start: all start anew elsewhere.

Stan ends a chain if the density is so flat where it starts that no step is too long ("Posterior is
improper"), or if it finds no starting point at which the density is above zero.  Where the other
chains get on, the program is not at fault, and other starting points serve as well.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from harness.errors import SomeChainsError
from harness.seeds import derived_seeds

_TRIES = 3

T = TypeVar("T")


class Started(NamedTuple, Generic[T]):
    """A run whose chains have all finished, and what ended some in the first run; empty if none."""

    made: T
    failed: str


def started_anew(run: Callable[[int], T], seed: int) -> Started[T]:
    """Make a run, and make it with other seeds while some of its chains, but not all, fail.

    Parameters
    ----------
    run
        Makes it with a seed, from which its chains draw their starting points.
    seed
        Seed of the first run.  The same seed gives the same run.

    Raises
    ------
    SomeChainsError
        If some chains fail in three runs.
    """
    failed = ""
    for other in derived_seeds(_TRIES - 1, seed, 29):
        try:
            return Started(run(seed), failed)
        except SomeChainsError as error:
            failed = failed or error.why
            seed = other
    return Started(run(seed), failed)
