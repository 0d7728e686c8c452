"""Samplers of other packages on the same targets, as peers: dynesty and blackjax.

None of the packages is imported before a sampler of it runs.
"""

from __future__ import annotations

from .by_dynesty import sample_by_dynesty
from .nested_slices import sample_by_nested_slices
from .tempered_particles import sample_by_tempered_particles

__all__ = ["sample_by_dynesty", "sample_by_nested_slices", "sample_by_tempered_particles"]
