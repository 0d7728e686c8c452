"""Posteriors that are hard to sample, with known answers: a module each, and a line each here.

Each is a Stan program as somebody would write it who knows nothing of tempering, in
``stan/FOLDER/target.stan``, with its data and its truth.  It has no other variants: these are
written by :mod:`harness.temper`, as for a user's program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from harness.model import Model
from harness.models.hard.galaxies import galaxies
from harness.models.hard.mrna import mrna, mrna_m1a
from harness.models.hard.rockets import rockets
from harness.models.hard.sensors import sensors_8d, sensors_16d
from harness.models.hard.sparse_car import sparse_car
from harness.models.hard.vaccines import vaccines
from harness.models.hard.xy_lattice import xy_free, xy_torus

TARGETS: Mapping[str, Callable[[], Model]] = {
    "mrna": mrna,
    "mrna_m1a": mrna_m1a,
    "sparse_car": sparse_car,
    "vaccines": vaccines,
    "rockets": rockets,
    "galaxies": galaxies,
    "sensors_8d": sensors_8d,
    "sensors_16d": sensors_16d,
    "xy_free_8": xy_free,
    "xy_torus_4": xy_torus,
}
"""Makes each target, by the name that tables and ``--only`` use."""
