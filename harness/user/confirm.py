"""Whether a region where a pilot has particles and NUTS has no draws is one of the posterior.

Particles may be left behind on the way from a vague prior, in a place with next to no mass.  NUTS
that starts from them leaves such a place; in a mode it stays.
"""

from __future__ import annotations

import numpy as np

from harness.engine.nuts import NutsSettings
from harness.engine.stanli_nuts import run_stanli_nuts
from harness.errors import SamplingError
from harness.model import Model
from harness.user.compare import Population, Region
from harness.user.scout import starting_values

_CHAINS = 4
_SETTINGS = NutsSettings(chains=_CHAINS, warmup=150, draws=150, parallel_chains=2)
_STAYS = 0.25
"""Share of the draws in the region from which on NUTS counts as having stayed there."""


def nuts_stays(model: Model, region: Region, particles: Population, seed: int) -> bool:
    """Whether short runs of NUTS that start at particles in a region stay in it.

    Parameters
    ----------
    model
        From :func:`harness.temper.tempered_model`.
    region
        Where the particles are and plain NUTS is not.
    particles
        The particles, of which some lie in the region.
    seed
        Seed; same seed, same answer.
    """
    rng = np.random.default_rng([seed, 6])
    weight = np.where(region.holds(particles.values), particles.share[:, None], 0.0).ravel()
    chosen = rng.choice(weight.size, size=_CHAINS, p=weight / weight.sum())
    starts = {
        name: value.reshape(-1, *value.shape[2:])[chosen]
        for name, value in particles.values.items()
    }
    try:
        run = run_stanli_nuts(
            model.program("target"),
            model.data,
            _SETTINGS,
            seed,
            inits=starting_values(starts, _CHAINS),
        )
    except SamplingError:
        return False
    return bool(region.holds(run.variables).mean() >= _STAYS)
