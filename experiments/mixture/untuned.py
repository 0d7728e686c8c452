"""Random walks that warm-up does not tune, with few swaps: a trial of parallel tempering."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from harness.samplers.geometric_path import GeometricPath, State
from harness.samplers.kernels import Moved, RandomWalk


@dataclass(frozen=True)
class UntunedWalks:
    """Several random-walk moves with steps that go with the root of the temperature.

    Parallel tempering makes a round of swaps after each call, so that ``moves`` is the number of
    moves from one round of swaps to the next.

    Attributes
    ----------
    scale
        Standard deviation of a proposal at inverse temperature 1, in the base's.
    moves
        Moves a call.
    """

    scale: float
    moves: int

    @property
    def target_acceptance(self) -> float:
        """1: warm-up has nothing to tune."""
        return 1.0

    def move(
        self,
        path: GeometricPath,
        state: State,
        inv_temp: npt.ArrayLike,
        step_size: npt.ArrayLike,
        rng: np.random.Generator,
    ) -> Moved:
        """Move every chain ``moves`` times; the step size that is handed in is not used."""
        walk = RandomWalk()
        step = self.scale / np.sqrt(np.asarray(inv_temp, dtype=np.float64))
        acceptance = np.zeros(len(state.points))
        for _ in range(self.moves):
            moved = walk.move(path, state, inv_temp, step, rng)
            state, acceptance = moved.state, acceptance + moved.acceptance / self.moves
        return Moved(state, acceptance)
