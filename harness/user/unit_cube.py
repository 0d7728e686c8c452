"""A program's prior as a map from the unit cube, and its likelihood, for other nested samplers.

dynesty, nautilus, UltraNest and their like take a prior as a function that maps uniform numbers to
parameters.  Here it follows from the program's own statements, where each element of the parameters
has a prior of its own: its quantile function, between the bounds of the declaration.  A simplex
with a Dirichlet prior takes as many uniform numbers as it has elements: they become gamma
variates, which are divided by their sum.

>>> from harness.temper import tempered_model
>>> from harness.user import UnitCube
>>> cube = UnitCube(tempered_model(Path("model.stan"), data))
>>> cube.log_likelihood(np.random.default_rng(1).random((100, cube.dimension)))

References
----------
Skilling, J. (2006). Nested sampling for general Bayesian computation. Bayesian Analysis 1, 833-859:
the unit cube.

Devroye, L. (1986). Non-uniform random variate generation. Springer, chapters II.2 and XI.4:
quantiles, and Dirichlet vectors from gamma variates.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray
from harness.engine.batched import BatchedDensity
from harness.engine.program import StanProgram
from harness.engine.stan_library import Variable
from harness.errors import DataError
from harness.files import write_text
from harness.folders import cache_folder
from harness.model import Model
from harness.temper.program import priors_of
from harness.temper.univariate import Listing
from harness.user.independent_prior import IndependentPrior

_POINTS, _EXACT = 25, 1e-8
"""Random points at which the density of the prior is compared with the program's, and how exactly
it has to agree, relatively."""
_SEED = 20_261_123


class UnitCube:
    """The prior and the likelihood of a program whose parameters are independent a priori.

    Parameters
    ----------
    model
        From :func:`harness.temper.tempered_model`.

    Attributes
    ----------
    dimension
        Number of uniform numbers: one for each element of the parameters, all elements of
        simplexes among them.
    evaluations
        Points at which the likelihood was evaluated.
    log_prior_integral
        Log of the integral of the prior as the program states it: 0 for most programs, log 1/2 if
        a bound cuts a normal density in half, the log of an interval's width for a flat parameter.
        The likelihood belongs to the prior divided by it.

    Raises
    ------
    DataError
        If the prior has another form, is improper, or the density that is made of its parts is not
        the program's.
    CompileError, ToolchainError
        If stanc or what evaluates the program is missing or refuses it.
    """

    def __init__(self, model: Model) -> None:
        self._name = model.name
        self._target = BatchedDensity(model.program("target"), model.data)
        self._prior = BatchedDensity(model.program("prior"), model.data)
        self.evaluations = 0
        listing = priors_of(model.program("original").path, model.data, name=model.name)
        self._flat = BatchedDensity(_program(listing.flat, "flat"), model.data)
        self._variables = dict(_variables(self._flat))
        rows = _evaluated(model, listing)
        self.dimension = len(rows)
        self._independent = IndependentPrior(listing, rows, self._variables, model.name)
        self.log_prior_integral = self._checked()

    def parameters(self, u: npt.ArrayLike) -> dict[str, FloatArray]:
        """Return the parameters (n, *shape) at points of the unit cube (n, dimension).

        Raises
        ------
        DataError
            If the points have another shape.
        """
        values = self._values(u)
        return {
            name: values[:, each.columns].reshape(len(values), *each.shape)
            for name, each in self._variables.items()
        }

    def points(self, u: npt.ArrayLike) -> FloatArray:
        """Return points (n, D) of Stan's unconstrained space for those of the unit cube.

        Raises
        ------
        DataError
            If the points have another shape.
        """
        return self._target.unconstrain_draws(self.parameters(u))

    def log_likelihood(self, u: npt.ArrayLike) -> FloatArray:
        """Return log likelihoods (n,) at points of the unit cube (n, dimension).

        It is the difference between the log densities of the program and of its prior, relative to
        a prior that integrates to 1.  It is -inf where the program rejects a point.

        Raises
        ------
        DataError
            If the points have another shape.
        """
        at = self.points(u)
        self.evaluations += len(at)
        value = self._target.values(at)
        possible = np.isfinite(value)
        value[possible] -= self._prior.values(at[possible])
        return value

    def _values(self, u: npt.ArrayLike) -> FloatArray:
        """Return all elements of the parameters, (n, E)."""
        at = np.asarray(u, dtype=np.float64)
        if at.ndim != 2 or at.shape[1] != self.dimension:
            raise DataError(
                f"the unit cube of {self._name} has points of shape (n, {self.dimension}); got "
                f"{at.shape}"
            )
        return self._independent.quantiles(at)

    def _checked(self) -> float:
        """Compare the density with the program's; return the log of the latter's integral."""
        u = np.random.default_rng(_SEED).random((_POINTS, self.dimension))
        at = self.points(u)
        own, theirs = self._independent.log_density(self._values(u)), self._prior.values(at)
        apart = theirs - self._flat.values(at) - own
        middle = float(np.median(apart))
        size = 1 + np.abs(own) + np.abs(theirs)
        if not np.all(np.abs(apart - middle) <= _EXACT * size):
            raise DataError(
                f"the prior of {self._name} cannot be drawn by quantiles, one for each element: "
                "the densities of its statements differ from that of the prior program by up to "
                f"{np.max(np.abs(apart - middle)):.2g} nats"
            )
        return middle


def _variables(density: BatchedDensity) -> Iterator[tuple[str, Variable]]:
    """Yield parameters and where their elements are; the last index runs fastest."""
    start = 0
    for name, shape in density.shapes.items():
        stop = start + int(np.prod(shape, dtype=np.intp))
        yield name, Variable(shape, slice(start, stop))
        start = stop


def _program(text: str, name: str) -> StanProgram:
    folder = cache_folder("listed") / hashlib.sha256(text.encode()).hexdigest()[:32]
    path: Path = folder / f"{name}.stan"
    if not path.is_file():
        write_text(path, text)
    return StanProgram(path)


def _evaluated(model: Model, listing: Listing) -> FloatArray:
    """Return what the program lists, a row for each element of the parameters."""
    density = BatchedDensity(_program(listing.text, "listing"), model.data)
    found = density.constrain(np.zeros((1, density.dimension)), seed=0)
    rows: FloatArray = found[listing.listed][0]
    return rows
