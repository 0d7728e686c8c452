"""A model: a target density in Stan with its data, independent of any tempering method."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from harness.arrays import LogDensity
from harness.engine.program import StanProgram
from harness.errors import DataError
from harness.folders import shipped
from harness.model.truth import UNKNOWN, Truth

Transform = Literal["identity", "log"]
"""How a parameter is turned into base coordinates, on which Gaussian bases live."""

OwnBase = Literal["flat", "improper", "prior"]
"""A model's own base: see :attr:`Model.own_base`."""


@dataclass(frozen=True)
class Model:
    """A target density and its data.

    Attributes
    ----------
    name
        Name of the target with these data, used in tables and in the names of files.
    folder
        Folder of its Stan programs, which has one file for each variant: ``target.stan``,
        ``pseudo_extended.stan`` and so on.
    data
        Data of ``target.stan``.  Each variant takes these data and some of its own.
    parameters
        Names of the target's parameters.  A pseudo-extended variant has parameters of the same
        names (``pseudo_names`` lists the exceptions) with one more axis, which runs over
        pseudo-samples.  It is the last axis, unless ``pseudo_axis`` says otherwise.
    dimension
        Number of unconstrained parameters.
    transforms
        How each parameter is turned into base coordinates: ``"log"`` for a parameter that is
        declared positive, and ``"identity"`` for all others, which may be left out.
    bounds
        Lower and upper bound of each parameter that is declared with both.  Its base coordinates
        are the parameter itself, inside the box.
    shared
        Parameters that all pseudo-samples share: the pseudo-extended program declares each of them
        once, without the axis over pseudo-samples.
    aliases
        Other names that a variant's program uses for data that methods give it, or for quantities
        that it generates.  They are listed by variant, by the usual name, for instance
        ``{"pseudo_extended": {"N": "N_2"}}``.
    pseudo_names
        Other names that the pseudo-extended program uses for parameters, by the target's name.
    pseudo_axis
        Whether the first or the last axis of a parameter runs over pseudo-samples in
        pseudo-extended programs.
    stems
        File names, without ``.stan``, of programs that are not named after their variant, for
        instance ``{"pseudo_extended": "pseudo_extended_shared"}``.
    own_base
        What tempered programs use as the base if they are given no Gaussian one.  ``"prior"``: the
        prior, normalised, so that only the likelihood is tempered and Z is the evidence.
        ``"flat"``: a constant, with x bounded (pure tempering).  ``"improper"``: a constant, with
        x not bounded; methods then ask for a Gaussian base, or for inverse temperatures that stay
        away from 0.
    log_prior_integral
        Log of the integral of the model's own base as it is written, in nats; None if it is not
        known.  It is 0 for the priors of shipped models.  For a user's program it follows from the
        program's text.  The value tells nothing about a likelihood that is zero over a part of the
        prior.
    tempered_whole
        Whether all of a user's program is tempered, so that no prior is left as the base and Z is
        the integral of the program's density; see
        :attr:`harness.path.data.TemperedPath.log_factor`.
    flat
        Elements of parameters, for instance ``mu[2]``, in which the program's text shows an
        improper prior to be flat.
    questions
        Questions about the prior and the likelihood that the text of a user's program leaves
        open, as sentences that say how to settle them.
    not_simulated
        Parameters that the program which simulates a user's prior does not draw.
    no_gaussian_base
        Why its tempered programs take no Gaussian base; None if they take one.
    edited
        Name of the tempered program that its author has edited by hand, if there is one.
    log_density
        The target's density as a NumPy function of many points in base coordinates, constants
        included, or None if the model has no such function.  Samplers that are driven from Python
        call it in place of the Stan program, which is slower.  Outside the model's bounds the
        density is -inf, whatever the function returns.
    shapes
        Shape of each parameter, () for a real.  It may be left out by a model whose only parameter
        is a vector, and by a model without a NumPy density, because its Stan program then gives
        the shapes.
    truth
        True answers, where some are known: log Z and expectations with their errors and their
        source.  Asking for one that is not known raises DataError.
    labels
        Names of the entries of a parameter's first axis, such as the names of counties, which
        pages show.  They are listed by parameter; not every parameter has them.

    Raises
    ------
    DataError
        If a transform or a bound belongs to no parameter, a transform is unknown, the bounds do
        not ascend or are not finite, or a parameter has bounds and a transform that is not the
        identity.
    """

    name: str
    folder: Path
    data: Mapping[str, Any]
    parameters: tuple[str, ...]
    dimension: int
    transforms: Mapping[str, Transform] = field(default_factory=dict)
    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    shared: tuple[str, ...] = ()
    aliases: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    pseudo_names: Mapping[str, str] = field(default_factory=dict)
    pseudo_axis: Literal["first", "last"] = "last"
    stems: Mapping[str, str] = field(default_factory=dict)
    own_base: OwnBase = "flat"
    log_prior_integral: float | None = 0.0
    tempered_whole: bool = False
    flat: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()
    not_simulated: tuple[str, ...] = ()
    no_gaussian_base: str | None = None
    edited: str | None = None
    log_density: LogDensity | None = field(default=None, compare=False, repr=False)
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    truth: Truth = field(default=UNKNOWN, compare=False, repr=False)

    def __post_init__(self) -> None:
        unknown = {*self.transforms, *self.bounds} - set(self.parameters)
        if unknown:
            raise DataError(f"{self.name} has no parameter {', '.join(sorted(unknown))}")
        for name, transform in self.transforms.items():
            if transform not in get_args(Transform):
                known = ", ".join(get_args(Transform))
                raise DataError(
                    f"the transform of {name} must be one of {known}; got '{transform}'"
                )
        for name, (lower, upper) in self.bounds.items():
            if self.transforms.get(name, "identity") != "identity":
                raise DataError(f"{name} has bounds, so its transform must be the identity")
            if not -math.inf < lower < upper < math.inf:
                raise DataError(f"the bounds of {name} must ascend and be finite")

    def program(self, variant: str) -> StanProgram:
        """Return the Stan program of a variant, such as ``target`` or ``pseudo_extended``.

        Raises
        ------
        DataError
            If the model has no such variant.
        """
        path = self.folder / f"{self.stems.get(variant, variant)}.stan"
        if not path.is_file():
            known = ", ".join(sorted(p.stem for p in self.folder.glob("*.stan"))) or "none"
            raise DataError(f"{self.name} has no variant '{variant}' (it has: {known})")
        return StanProgram(path, (shipped("stan"),))
