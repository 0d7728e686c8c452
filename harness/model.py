"""A model: a target density in Stan, with its data; it knows nothing of methods."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import DataError
from harness.paths import shipped


@dataclass(frozen=True)
class StanProgram:
    """A ``.stan`` file and the folders in which its ``#include`` lines are looked up."""

    path: Path
    include_paths: tuple[Path, ...] = ()

    @property
    def name(self) -> str:
        """Name that tells a model's variants apart, as ``gaussian_mixture-target``."""
        return f"{self.path.parent.name}-{self.path.stem}"


@dataclass(frozen=True)
class Model:
    """A target density and its data.

    Attributes
    ----------
    name
        Name of the target with these data, for tables and file names.
    folder
        Folder of its Stan programs, one a variant: ``target.stan``, ``pseudo_extended.stan``.
    data
        Data of ``target.stan``; each variant takes them and its own besides.
    parameters
        Names of the target's parameters.  A pseudo-extended variant has the same names with
        one more axis, the last, over pseudo-samples.
    dimension
        Number of unconstrained parameters.
    unbounded
        Whether gamma(x)^beta has infinite mass near beta = 0, since x is not bounded and the
        model has no base of its own.  Methods then ask for a Gaussian base, or for inverse
        temperatures that stay away from 0.
    """

    name: str
    folder: Path
    data: Mapping[str, Any]
    parameters: tuple[str, ...]
    dimension: int
    unbounded: bool = False

    def program(self, variant: str) -> StanProgram:
        """Return the Stan program of a variant, ``target`` or ``pseudo_extended``.

        Raises
        ------
        DataError
            If the model has no such variant.
        """
        path = self.folder / f"{variant}.stan"
        if not path.is_file():
            known = ", ".join(sorted(p.stem for p in self.folder.glob("*.stan"))) or "none"
            raise DataError(f"{self.name} has no variant '{variant}' (it has: {known})")
        return StanProgram(path, (shipped("stan"),))
