"""Posteriors that are hard to sample, with known answers: a module each, and a line each here.

Each is a Stan program as somebody would write it who knows nothing of tempering, in
``stan/FOLDER/target.stan``, with its data and its truth.  It has no other variants: these are
written by :mod:`harness.temper`, as for a user's program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from harness.model import Model
from harness.models.hard.mrna import mrna, mrna_m1a

TARGETS: Mapping[str, Callable[[], Model]] = {
    "mrna": mrna,
    "mrna_m1a": mrna_m1a,
}
"""Makes each target, by the name that tables and ``--only`` use."""
