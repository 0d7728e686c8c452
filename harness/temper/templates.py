"""What stands around a program's own statements in its tempered forms: the files of ``stan/FORM/``.

A program that is written stands alone, so the files are read with their includes written out.  They
say what log_base and log_gamma are: log b and log gamma of one point, or of each pseudo-sample.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from harness.temper import library

Variant = Literal[
    "target",
    "prior",
    "pseudo_extended",
    "joint_tempering",
    "collapsed_tempering",
    "collapsed_tempering_zero_likelihood",
    "collapsed_pseudo_extended",
]
"""A program that we write: a form by its name, or one of two that are not tempered.

``collapsed_tempering`` is ``joint_tempering`` with the inverse temperature integrated out.
``collapsed_tempering_zero_likelihood`` is the same for a likelihood that is zero in places: NUTS
can pass through them at beta = 0, at up to twice the cost (:mod:`harness.temper.twice`).
``collapsed_pseudo_extended`` is ``pseudo_extended`` with the inverse temperatures of its
instrumental distributions integrated out.  ``target`` has the original's density with all
constants, and ``prior`` only the part that is not tempered.
"""

_FOLDER: Mapping[Variant, str] = {"collapsed_tempering_zero_likelihood": "collapsed_tempering"}
"""Folder of a form in ``stan/`` where it does not have the form's name."""

_NO_GAUSSIAN_BASE = {
    "path/base.stanblock": "path/own_base.stanblock",
    "path/whitened_base.stanblock": None,
}


@dataclass(frozen=True)
class FormText:
    """What a form adds to each block of a program, in our names.

    Attributes
    ----------
    data, prepared, parameters, model, generated
        Text for the blocks: data, transformed data, parameters, model, generated quantities.
    """

    data: str = ""
    prepared: str = ""
    parameters: str = ""
    model: str = ""
    generated: str = ""

    def __str__(self) -> str:
        return "".join((self.data, self.prepared, self.parameters, self.model, self.generated))

    @property
    def public(self) -> list[str]:
        """Names of its data, its parameters and what it generates, by which methods know them."""
        return library.declared(self.data + self.parameters + self.generated)


def form_text(variant: Variant, *, gaussian: bool) -> FormText:
    """Read a form from ``stan/``.

    Parameters
    ----------
    variant
        The form; ``target`` adds nothing but the density.
    gaussian
        Whether a program in this form takes Gaussian bases.
    """
    if variant == "target":
        return FormText(model="target += log_gamma;\n")
    folder = _FOLDER.get(variant, variant)
    instead = {} if gaussian else _NO_GAUSSIAN_BASE
    return FormText(
        *(
            library.block(f"{folder}/{name}.stanblock", instead)
            for name in ("data", "prepared", "parameters", "model", "generated")
        )
    )
