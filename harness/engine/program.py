"""A Stan program on disk, with the folders of its includes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class StanProgram:
    """A ``.stan`` file and the folders in which its ``#include`` lines are looked up."""

    path: Path
    include_paths: tuple[Path, ...] = ()

    @property
    def name(self) -> str:
        """Name that tells a model's variants apart, as ``gaussian_mixture-target``."""
        return f"{self.path.parent.name}-{self.path.stem}"
