"""Posteriors that are hard to sample, with known answers: a module each, and a line each here.

Each is a Stan program as somebody would write it who knows nothing of tempering, in
``stan/FOLDER/target.stan``, with its data and its truth.  It has no other variants: these are
written by :mod:`harness.temper`, as for a user's program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import get_args

from harness.model import Model
from harness.models.hard.gaussian_mixture_40 import gaussian_mixture_40
from harness.models.hard.many_wells import many_wells
from harness.models.hard.mrna import mrna, mrna_m1a
from harness.models.hard.phi_four import phi_four
from harness.models.hard.product import product
from harness.models.hard.radial_velocity import Prior, radial_velocity
from harness.models.hard.radiata_pine import radiata_pine
from harness.models.hard.unequal_wells import unequal_wells

TARGETS: Mapping[str, Callable[[], Model]] = {
    "product": product,
    "many-wells": many_wells,
    "gaussian-mixture-40": gaussian_mixture_40,
    "phi-four": phi_four,
    "phi-four-field": partial(phi_four, 0.02),
    "radiata-pine-density": partial(radiata_pine, "density"),
    "radiata-pine-adjusted": partial(radiata_pine, "adjusted"),
    "unequal-wells-10": partial(unequal_wells, 10),
    "unequal-wells-25": partial(unequal_wells, 25),
    **{f"rv-{star}-n0": partial(radial_velocity, star, 0) for star in (1, 3, 5)},
    **{
        f"rv-{star}-n{planets}-{prior}": partial(radial_velocity, star, planets, prior)
        for star in (1, 3, 5)
        for planets in (1, 2)
        for prior in get_args(Prior)
    },
    "mrna": mrna,
    "mrna-m1a": mrna_m1a,
}
"""Makes each target, by the name that tables and ``--only`` use."""
