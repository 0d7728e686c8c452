"""A model: a target density in Stan, with its data; it knows nothing of methods."""

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

Transform = Literal["identity", "log"]
"""How a parameter becomes base coordinates, on which Gaussian bases live."""

OwnBase = Literal["flat", "improper", "prior"]
"""Base of a model's own: see :attr:`Model.own_base`."""


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
        Names of the target's parameters.  A pseudo-extended variant has the same names, but for
        ``pseudo_names``, with one more axis over pseudo-samples, the last but for ``pseudo_axis``.
    dimension
        Number of unconstrained parameters.
    transforms
        How each parameter becomes base coordinates: ``"log"`` for one that is declared
        positive, ``"identity"`` for all others, which need not be named.
    bounds
        Lower and upper bound of each parameter that is declared with both.  Its base coordinates
        are the parameter itself, inside the box.
    shared
        Parameters that pseudo-samples share: its pseudo-extended program has them once, without
        the last axis.
    aliases
        By variant, the names that its program has for data that methods give it and for what it
        generates, where they are not the usual ones, as ``{"pseudo_extended": {"N": "N_2"}}``.
    pseudo_names
        Names that pseudo-extended programs have for parameters, where they are not the target's.
    pseudo_axis
        Which axis of a parameter runs over pseudo-samples in pseudo-extended programs.
    stems
        Names of programs that are not those of their variants, as
        ``{"pseudo_extended": "pseudo_extended_shared"}``.
    own_base
        What tempered programs have for a base where no Gaussian one is given.  ``"prior"``: the
        prior, normalised, so that only the likelihood is tempered and Z is the evidence;
        ``"flat"``: a constant, on a bounded x (pure tempering); ``"improper"``: a constant on an x
        that is not bounded, so that methods ask for a Gaussian base, or for inverse temperatures
        that stay away from 0.
    prior_normalised
        Whether what is left as the base where no Gaussian one is given is known to integrate to
        1.  True of the priors of shipped models; of somebody's program as its text tells, where
        False says that it is not known, not that it is not so.  It says nothing of a likelihood
        that is zero over a part of the prior.
    flat
        Elements of parameters in which an improper prior is flat, as ``mu[2]``, where the program's
        text tells.
    questions
        What the text of somebody's program does not decide about its prior and its likelihood, in
        sentences that say how to decide it.
    no_gaussian_base
        Why its tempered programs take no Gaussian base; None if they take one.
    log_density
        The target's density as a NumPy function of many points in base coordinates, constants
        included, where there is one: what is driven from Python then calls it in place of the
        Stan program, which is slower.  Outside the model's bounds the density is -inf, whatever
        the function says.
    shapes
        Shape of each parameter, () for a real; a model with one parameter, a vector, may leave
        it out, and so may one without a NumPy density, whose Stan program knows.
    labels
        What the entries of a parameter's first axis are called, as counties, for pages; by the
        parameter's name, those that have names.

    Raises
    ------
    DataError
        If a transform or a bound is of no parameter, unknown, or not to be had together.
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
    prior_normalised: bool = True
    flat: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()
    no_gaussian_base: str | None = None
    log_density: LogDensity | None = field(default=None, compare=False, repr=False)
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        unknown = {*self.transforms, *self.bounds} - set(self.parameters)
        if unknown:
            raise DataError(f"{self.name} has no parameter {', '.join(sorted(unknown))}")
        for name, transform in self.transforms.items():
            if transform not in get_args(Transform):
                known = ", ".join(get_args(Transform))
                raise DataError(f"the transform of {name} is one of {known}; got '{transform}'")
        for name, (lower, upper) in self.bounds.items():
            if self.transforms.get(name, "identity") != "identity":
                raise DataError(f"{name} has bounds, so that its transform is the identity")
            if not -math.inf < lower < upper < math.inf:
                raise DataError(f"the bounds of {name} must ascend and be finite")

    def program(self, variant: str) -> StanProgram:
        """Return the Stan program of a variant, ``target`` or ``pseudo_extended``.

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
