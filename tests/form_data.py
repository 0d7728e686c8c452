"""Data of forms, their settings and those of their path given side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from harness.forms.extended_hamiltonian import ExtendedHamiltonian
from harness.forms.pseudo_extended import PseudoExtended
from harness.model import Model
from harness.path.data import TemperedPath

_OF_PATH = {each.name for each in fields(TemperedPath)}


def pseudo_extended_data(
    model: Model,
    num_pseudo_samples: int,
    inv_temp: float | Sequence[float] | None = None,
    **settings: Any,
) -> dict[str, Any]:
    """Return the data of a pseudo-extended program besides the model's own."""
    own, path = _sorted(settings)
    return PseudoExtended(num_pseudo_samples, inv_temp, **own).data(model, path)


def extended_hamiltonian_data(model: Model, **settings: Any) -> dict[str, Any]:
    """Return the data of an extended-Hamiltonian program besides the model's own."""
    own, path = _sorted(settings)
    return ExtendedHamiltonian(**own).data(model, path)


def _sorted(settings: dict[str, Any]) -> tuple[dict[str, Any], TemperedPath]:
    """Return the settings of the form, and the path of the others."""
    own = {name: value for name, value in settings.items() if name not in _OF_PATH}
    along = {name: value for name, value in settings.items() if name in _OF_PATH}
    return own, TemperedPath(**along)
