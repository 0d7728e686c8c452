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
data { int D; real s; real w; }
parameters { vector[D] x; }
model {
  real a = std_normal_lpdf(x);
  real b = log(w) + normal_lpdf(x | 0, s);
  target += a + log1p_exp(b - a);
}
"""


def test_what_climbs_find_among_the_draws_stays_found_until_there_are_draws(tmp_path: Path) -> None:
    width = 0.1
    data: dict[str, object] = {"D": DIMENSION, "s": width, "w": 4.0}
    noise = np.random.default_rng(5).standard_normal((4, 250, DIMENSION))
    code = SPIKE_IN_SLAB.replace("b - a);", "b - a); // temper: yes")
    found = climbed(tmp_path, code, data, {"x": noise})
    (mode,) = found.that_matter()
    assert mode.within
    # Laplace's approximation, for which the mass that counts is a Gaussian's.
    assert mode.local.log_mass == pytest.approx(np.log(4.0), abs=1e-3)
    model = tempered_model(tmp_path / "program.stan", data)
    both = np.concatenate([noise, width * noise], axis=1)
    assert still_elsewhere(model, of_x(noise), found).modes == (mode,)
    assert still_elsewhere(model, of_x(both), found).modes == ()


def test_auto_is_right_where_draws_are_far_from_a_spike_in_their_middle(tmp_path: Path) -> None:
    """Neither a chain nor a path of temperatures arrives there, and no sum shows it as a term."""
    path = StanProgram(tmp_path / "spike.stan").path
    path.write_text(SPIKE_IN_SLAB)
    weight, width = 4.0, 0.07
    data = {"D": DIMENSION, "s": width, "w": weight}
    result = sample(path, data, engine="stanli", seed=4, budget=60, progress=False)
    draws = result.fit.posterior["x"].to_numpy()
    log_slab = -0.5 * np.square(draws).sum(axis=2)
    log_spike = log_slab / width**2 + np.log(weight) - DIMENSION * np.log(width)
    # The mean of a draw's probability to be of the spike, of some hundred effective draws.
    share = float(expit(log_spike - log_slab).mean())
    assert abs(share - weight / (1 + weight)) < 4 * np.sqrt(0.8 * 0.2 / 100)
    found = result.log_evidence
    assert found is not None
    assert abs(found.value - np.log1p(weight)) < 4 * found.mcse < 0.3
