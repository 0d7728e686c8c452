"""Standard errors of probabilities of which few draws tell."""

from __future__ import annotations

import numpy as np
import pytest

from harness.arrays import FloatArray
from harness.evidence import expectation, probability_error

SHARE, CHAINS, DRAWS, MOVES = 0.025, 4, 150, 1 / 6
EFFECTIVE = CHAINS * DRAWS * MOVES / (2 - MOVES)
"""Of n draws, n m / (2 - m) if each moves to an independent state with probability m."""


def rare(rng: np.random.Generator) -> FloatArray:
    """Whether each draw is in the event, in chains that hold their state for a random time."""
    states = rng.random((CHAINS, DRAWS)) < SHARE
    moves = rng.random((CHAINS, DRAWS)) < MOVES
    moves[:, 0] = True
    last = np.maximum.accumulate(np.where(moves, np.arange(DRAWS), 0), axis=1)
    return np.take_along_axis(states, last, axis=1).astype(np.float64)


def test_a_rare_event_does_not_look_surer_than_it_is() -> None:
    """If visits are short by chance, plain errors are those of independent draws.

    Some plain errors are then four times too small.  The corrected ones are those of 55 draws or
    fewer, with two more in the event: 0.024 at least, as large as the truth itself.
    """
    rng = np.random.default_rng(1)
    plain, corrected = [], []
    for _ in range(400):
        found = expectation(rare(rng))
        share, mcse = float(found.value), float(found.mcse)
        corrected.append((share - SHARE) / probability_error(share, mcse, EFFECTIVE))
        if share > 0:
            plain.append((share - SHARE) / mcse)
    assert np.max(np.abs(corrected)) < 4
    assert np.mean(np.square(corrected)) < 1.3
    assert np.mean(np.abs(plain) > 4) > 0.01


def test_enough_draws_speak_for_themselves() -> None:
    assert probability_error(0.3, 0.02, 100) == 0.02
    assert probability_error(0.3, 0.005, 100) == 0.01  # of one effective draw
    # 400 draws by the error itself, and 50 by the slowest parameter, of which .5 are in the event.
    centre = 2.5 / 54
    exact = np.sqrt(centre * (1 - centre) / 54)
    few = np.sqrt(0.01 * 0.99 / 400)
    assert probability_error(0.01, few, 50) == pytest.approx(exact)
    assert probability_error(0.99, few, 50) == pytest.approx(exact)


@pytest.mark.parametrize("share", [0.0, 1e-250, 1.0])
@pytest.mark.parametrize("mcse", [0.0, 1e-200, np.nan])
def test_without_change_it_is_that_of_one_draw(share: float, mcse: float) -> None:
    assert probability_error(share, mcse, 200) == 1 / 200
