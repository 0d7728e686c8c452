"""``auto`` is right on random programs of known log Z and modes, or says that it is not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from posterior_fuzz import KINDS, Kind, Part, random_posterior, wrong_in_silence
from scipy.special import logsumexp
from stan_density import StanDensity

from harness.engine.program import StanProgram

SEEDS = range(1, 13)


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_part_is_a_probability_density(kind: Kind) -> None:
    side = np.linspace(-60, 60, 1501)
    grid = np.stack(np.meshgrid(side, side, indexing="ij"), axis=-1).reshape(-1, 2)
    part = Part(kind, np.array([0.1, -0.2]), np.array([[0.8, 0.0], [0.5, 1.2]]))
    mass = np.exp(part.log_density(grid)).sum() * (side[1] - side[0]) ** 2
    # The heavy tails beyond 60 / 1.2 hold 3e-6 of the mass; the ring is 2.5 cells wide, and the sum
    # over a grid then has an error of exp(-2 (2.5 pi)^2).
    assert abs(mass - 1) < 1e-5


@pytest.mark.parametrize("seed", range(1, 31))
def test_a_random_program_has_the_density_that_it_is_made_from(seed: int, tmp_path: Path) -> None:
    posterior = random_posterior(seed)
    path = tmp_path / "program.stan"
    path.write_text(posterior.program, encoding="utf-8")
    density = StanDensity(StanProgram(path), posterior.data)
    rng = np.random.default_rng(seed)
    own = [p.centre + p.root @ rng.standard_normal(len(p.centre)) for p in posterior.parts]
    points = np.array([*own, *rng.standard_normal((4, len(own[0])))])
    differences = [density.value(y) for y in points] - logsumexp(
        posterior.log_parts(points), axis=0
    )
    # A statement with ~ leaves constants out, so they are the same at all points but not zero.
    assert np.ptp(differences) < 1e-8


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_auto_is_right_on_a_random_program_or_says_that_it_is_not(
    seed: int, tmp_path: Path
) -> None:
    assert wrong_in_silence(seed, tmp_path) is None
