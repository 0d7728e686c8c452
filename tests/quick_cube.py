"""The unit cube of a program, of whose tempered forms only those are written that it needs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.model import Model
from harness.temper import Variant
from harness.temper.program import self_contained, temper_each
from harness.user import UnitCube


def quick_cube(path: Path, data: Mapping[str, Any], folder: Path) -> UnitCube:
    """Return the cube of a program with its data; a folder takes what is written."""
    variants: tuple[Variant, ...] = ("target", "prior")
    texts = {"original": self_contained(path)}
    for variant, each in zip(variants, temper_each(path, variants, data=data), strict=True):
        texts[variant] = each.text
    for name, text in texts.items():
        (folder / f"{name}.stan").write_text(text, encoding="utf-8")
    return UnitCube(Model(path.stem, folder, data, (), 0))
