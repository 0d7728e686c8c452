"""Narrow peaks within wide modes, with no barrier around them: regions with their own masses.

In 20 dimensions a spike in the middle of a slab is nowhere near its draws, and the density rises
all the way from them to its peak.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from scipy.special import expit
from test_modes import Plain
from test_user_narrow_peaks import SpikeInSlab
from test_user_other_modes import climbed, of_x

from harness.arrays import FloatArray
from harness.engine.program import StanProgram
from harness.evidence import LogEvidence
from harness.modes import Visits, find_modes
from harness.modes.table import ModeTable
from harness.modes.words import CLIMBS
from harness.temper import tempered_model
from harness.user import sample
from harness.user.modes import still_elsewhere

DIMENSION = 20


class Masses:
    """Mass of the slab, of which the draws are; nothing can be sampled by itself."""

    def __init__(self, log_mass: float) -> None:
        self.log_mass = log_mass

    def of_draws(self) -> LogEvidence:
        return LogEvidence(self.log_mass, 0.0)

    def of_mode(self, points: npt.ArrayLike) -> None:
        return None


def table(density: SpikeInSlab, draws: FloatArray, *, told: bool) -> ModeTable:
    peak = np.zeros((1, DIMENSION))
    visits = [
        Visits("nuts", draws, np.zeros(draws.shape[:2]), chain=True),
        Visits(CLIMBS, peak[None], np.zeros((1, 1))),
    ]
    return find_modes(
        visits,
        Plain(density, {"x": (DIMENSION,)}),
        effective=float(np.prod(draws.shape[:2])),
        masses=Masses(float(np.log1p(-density.weight))),
        cores=peak if told else None,
        seed=1,
    ).table


@pytest.mark.parametrize("weight", [0.02, 0.5, 0.98])
def test_a_spike_in_the_middle_of_all_draws_has_its_mass(weight: float) -> None:
    density = SpikeInSlab(weight, 0.1, DIMENSION)
    draws = density.drawn(0.0, seed=2)
    assert len(table(density, draws, told=False).modes) == 1
    slab, spike = table(density, draws, told=True).modes
    assert (slab.probability, spike.probability) == (1.0, 0.0)
    assert spike.local is not None
    # The integral within 99.9% of the Gaussian, by some hundreds of independent weights: the error
    # that is told covers both.
    share, error = spike.local
    assert abs(share - weight) < 4 * error + 1e-3 * weight
    assert spike.copy_of is None


def test_draws_of_both_have_their_shares() -> None:
    density = SpikeInSlab(0.7, 0.1, DIMENSION)
    draws = density.drawn(0.7, seed=3)
    # Of independent draws each goes anywhere next, so that NUTS would be said to move freely.
    apart = np.sort(np.square(draws).sum(axis=2), axis=1)
    ranked = np.take_along_axis(draws, np.square(draws).sum(axis=2).argsort(axis=1)[..., None], 1)
    assert np.all(np.diff(apart, axis=1) >= 0)
    spike, slab = table(density, ranked, told=True).modes
    share = float((apart < 0.1 * DIMENSION).mean())
    # A spike's draw is beyond 99.9% of its Gaussian with a probability of 0.001: 1.4 of 1,400.
    assert spike.probability == pytest.approx(share, abs=(1.4 + 4 * np.sqrt(1.4)) / 2000)
    assert slab.probability == pytest.approx(1 - spike.probability)
    assert slab.copy_of is None


SPIKE_IN_SLAB = """
data { int D; real s; real w; real m; }
parameters { vector[D] x; }
model {
  real a = std_normal_lpdf(x);
  real b = log(w) + normal_lpdf(x | m, s);
  target += 0.5 * (a + b) + abs(0.5 * (a - b)) + log1p_exp(-abs(a - b));
}
"""
"""The larger of two densities is written so that no term of a sum is either of them alone."""


def test_what_climbs_find_among_the_draws_stays_found_until_there_are_draws(tmp_path: Path) -> None:
    width = 0.1
    data: dict[str, object] = {"D": DIMENSION, "s": width, "w": 4.0, "m": 0.0}
    noise = np.random.default_rng(5).standard_normal((4, 250, DIMENSION))
    code = SPIKE_IN_SLAB.replace("(a - b));", "(a - b)); // temper: yes")
    found = climbed(tmp_path, code, data, {"x": noise})
    (mode,) = found.that_matter()
    assert mode.within
    # Laplace's approximation, for which the mass that counts is a Gaussian's.
    assert mode.local.log_mass == pytest.approx(np.log(4.0), abs=1e-3)
    model = tempered_model(tmp_path / "program.stan", data)
    both = np.concatenate([noise, width * noise], axis=1)
    assert still_elsewhere(model, of_x(noise), found).modes == (mode,)
    assert still_elsewhere(model, of_x(both), found).modes == ()


def is_right(folder: Path, dimension: int, width: float, weight: float, off: float) -> None:
    path = StanProgram(folder / "spike.stan").path
    path.write_text(SPIKE_IN_SLAB)
    data = {"D": dimension, "s": width, "w": weight, "m": off}
    result = sample(path, data, engine="stanli", seed=4, budget=60, progress=False)
    draws = result.fit.posterior["x"].to_numpy()
    log_slab = -0.5 * np.square(draws).sum(axis=2)
    log_spike = -0.5 * np.square((draws - off) / width).sum(axis=2) - dimension * np.log(width)
    # The mean of a draw's probability to be of the spike, of a hundred effective draws or more.
    found, exact = float(expit(log_spike + np.log(weight) - log_slab).mean()), weight / (1 + weight)
    assert abs(found - exact) < 4 * np.sqrt(exact * (1 - exact) / 100)
    log_z = result.log_evidence
    assert log_z is not None
    assert abs(log_z.value - np.log1p(weight)) < max(4 * log_z.mcse, 0.02)
    assert log_z.mcse < 0.1


def test_auto_is_right_where_draws_are_far_from_a_spike_in_their_middle(tmp_path: Path) -> None:
    """Neither a chain nor a path of temperatures arrives there, and no term is the spike alone."""
    is_right(tmp_path, DIMENSION, 0.07, 4.0, 0.0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_auto_is_right_on_random_spikes_among_draws(tmp_path: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    width, weight = np.exp(rng.uniform(np.log([0.03, 0.05]), np.log([0.5, 20.0])))
    is_right(tmp_path, int(rng.integers(10, 41)), width, weight, rng.choice([0.0, 0.3, 1.0]))
