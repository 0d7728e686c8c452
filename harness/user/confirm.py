"""Whether a region where a pilot has particles and NUTS has no draws belongs to the posterior.

On the way from a vague prior, particles may be left behind in a place with hardly any mass.  If
NUTS starts from them, it leaves such a place; in a mode it stays.
"""

from __future__ import annotations

import numpy as np

from harness.engine.batched import BatchedDensity
from harness.engine.nuts import NutsSettings
from harness.engine.short_nuts import affordable, run_short_nuts
from harness.errors import SamplingError
from harness.model import Model
from harness.path import starting_values
from harness.user.compare import Population, Region

_CHAINS = 4
_SETTINGS = NutsSettings(chains=_CHAINS, warmup=150, draws=150, parallel_chains=2)
_MOST_SECONDS = 15.0
_STAYS = 0.25
"""Share of the draws in the region above which NUTS counts as having stayed there."""


def nuts_stays(model: Model, region: Region, particles: Population, seed: int) -> bool:
    """Whether short runs of NUTS stay in a region when they start from particles in it.

    Parameters
    ----------
    model
        From :func:`harness.temper.tempered_model`.
    region
        Where there are particles but no draws of plain NUTS.
    particles
        The particles; some of them lie in the region.
    seed
        Seed.  The same seed gives the same answer.
    """
    rng = np.random.default_rng([seed, 6])
    weight = np.where(region.holds(particles.values), particles.share[:, None], 0.0).ravel()
    chosen = rng.choice(weight.size, size=_CHAINS, p=weight / weight.sum())
    starts = {
        name: value.reshape(-1, *value.shape[2:])[chosen]
        for name, value in particles.values.items()
    }
    density = BatchedDensity(model.program("target"), model.data)
    try:
        run = run_short_nuts(
            model.program("target"),
            model.data,
            affordable(_SETTINGS, density, _MOST_SECONDS),
            seed,
            inits=starting_values(starts, chains=_CHAINS),
            most_seconds=_MOST_SECONDS,
        )
    except SamplingError:
        return False
    return bool(region.holds(run.variables).mean() >= _STAYS)
