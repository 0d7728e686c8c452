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
from scipy import special

from harness.arrays import FloatArray
from harness.engine.batched import BatchedDensity
from harness.engine.program import StanProgram
from harness.engine.stan_library import Variable
from harness.errors import DataError
from harness.files import write_text
from harness.folders import cache_folder
from harness.model import Model
from harness.temper.program import priors_of
from harness.temper.univariate import ARGUMENTS, BOUNDS, CUT, NUMBER, TIMES, Listing
from harness.user.quantiles import FAMILIES, STANDARD, Cut

_LEAST_MASS = 1e-6
"""Share of a distribution between its ends below which quantiles are no longer exact."""
_POINTS, _EXACT = 25, 1e-8
"""Random points at which the density of the prior is compared with the program's, and how exactly
it has to agree, relatively."""
_SEED = 20_261_123
_SMALLEST, _LARGEST = np.finfo(np.float64).tiny, 1 - np.finfo(np.float64).epsneg


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
        rows = _evaluated(model, listing)
        self._flat = BatchedDensity(_program(listing.flat, "flat"), model.data)
        self._variables = dict(_variables(self._flat))
        self.dimension = len(rows)
        self._groups = list(self._univariate(rows, listing))
        self._simplexes = list(self._dirichlet(rows, listing))
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
        at = np.clip(at, _SMALLEST, _LARGEST)
        values = np.empty(at.shape)
        for own, cut, (below, above) in self._groups:
            x = cut.quantile(np.clip(below + (above - below) * at[:, own], _SMALLEST, _LARGEST))
            values[:, own] = np.clip(x, *_inside(cut.low, cut.high))
        for own, alpha in self._simplexes:
            gamma = np.maximum(special.gammaincinv(alpha, at[:, own]), _SMALLEST)
            values[:, own] = gamma / gamma.sum(axis=1, keepdims=True)
        return values

    def _log_prior(self, values: FloatArray) -> FloatArray:
        """Return log densities (n,) of the parameters with no change of variables."""
        found = np.zeros(len(values))
        for own, cut, (below, above) in self._groups:
            found += (cut.log_density(values[:, own]) - np.log(above - below)).sum(axis=1)
        for own, alpha in self._simplexes:
            found += special.xlogy(alpha - 1, values[:, own]).sum(axis=1)
            found += special.gammaln(alpha.sum()) - special.gammaln(alpha).sum()
        return found

    # What the program lists

    def _univariate(
        self, rows: FloatArray, listing: Listing
    ) -> Iterator[tuple[npt.NDArray[np.intp], Cut, tuple[FloatArray, FloatArray]]]:
        """Yield elements with one standard distribution, it, and the probabilities at its ends."""
        of: dict[str, list[tuple[int, tuple[float, ...]]]] = {}
        cut_to = np.where(rows[:, TIMES, None] > 0, rows[:, CUT], [-np.inf, np.inf])
        low, high = (
            np.maximum(rows[:, BOUNDS.start], cut_to[:, 0]),
            np.minimum(rows[:, BOUNDS.stop - 1], cut_to[:, 1]),
        )
        for name, each in self._variables.items():
            for element in range(each.columns.start, each.columns.stop):
                family = self._family(name, element, each, rows, listing)
                if family == "dirichlet":
                    continue
                if family is None:
                    ends = low[element], high[element] - low[element]
                    of.setdefault("uniform", []).append((element, ends))
                    continue
                standard, given = FAMILIES[family](*map(np.asarray, rows[element, ARGUMENTS]))
                of.setdefault(standard, []).append((element, tuple(map(float, given))))
        for standard, elements in of.items():
            own = np.array([element for element, _ in elements], dtype=np.intp)
            location, scale, *shapes = np.array([given for _, given in elements]).T
            cut = Cut(STANDARD[standard], location, scale, tuple(shapes), low[own], high[own])
            below, above = cut.ends()
            if not np.all(above - below >= _LEAST_MASS):
                element = own[np.flatnonzero(~(above - below >= _LEAST_MASS))[0]]
                self._refuse(
                    f"{self._element(int(element))} has next to none of its prior between its "
                    "bounds, or arguments that are not allowed"
                )
            yield own, cut, (below, above)

    def _family(
        self, name: str, element: int, variable: Variable, rows: FloatArray, listing: Listing
    ) -> str | None:
        """Return the name of an element's distribution; None for a flat one."""
        times = int(rows[element, TIMES])
        if times > 1:
            self._refuse(f"{self._element(element)} has more than one density")
        simplex = name in listing.simplexes
        if times == 0:
            if simplex:
                self._refuse(f"{name} is a simplex with no prior: give it a Dirichlet distribution")
            if not np.all(np.isfinite(rows[element, BOUNDS])):
                self._refuse(f"{self._element(element)} has no prior and is not bounded")
            return None
        stated = listing.stated[int(rows[element, NUMBER]) - 1]
        if simplex != (stated.family == "dirichlet"):
            self._refuse(f"{name} has a constraint that {stated.where} does not fit")
        if not simplex and stated.family not in FAMILIES:
            self._refuse(f"{stated.where} has a distribution whose quantiles are not known")
        return stated.family

    def _dirichlet(
        self, rows: FloatArray, listing: Listing
    ) -> Iterator[tuple[npt.NDArray[np.intp], FloatArray]]:
        """Yield the elements of each simplex, and the arguments of its Dirichlet distribution."""
        for name in listing.simplexes & self._variables.keys():
            each = self._variables[name]
            columns = np.arange(each.columns.start, each.columns.stop)
            for own in columns.reshape(-1, each.shape[-1]):
                yield own, rows[own, ARGUMENTS][:, 0]

    def _checked(self) -> float:
        """Compare the density with the program's; return the log of the latter's integral."""
        u = np.random.default_rng(_SEED).random((_POINTS, self.dimension))
        at = self.points(u)
        own, theirs = self._log_prior(self._values(u)), self._prior.values(at)
        apart = theirs - self._flat.values(at) - own
        middle = float(np.median(apart))
        size = 1 + np.abs(own) + np.abs(theirs)
        if not np.all(np.abs(apart - middle) <= _EXACT * size):
            self._refuse(
                "the densities of its statements differ from that of the prior program by up to "
                f"{np.max(np.abs(apart - middle)):.2g} nats"
            )
        return middle

    def _element(self, element: int) -> str:
        for name, each in self._variables.items():
            if each.columns.start <= element < each.columns.stop:
                at = np.unravel_index(element - each.columns.start, each.shape or (1,))
                index = ", ".join(str(int(place) + 1) for place in at)
                return f"{name}[{index}]" if each.shape else name
        raise AssertionError("there is no such element")

    def _refuse(self, why: str) -> None:
        raise DataError(
            f"the prior of {self._name} cannot be drawn by quantiles, one for each element: {why}"
        )


def _inside(low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the first and the last number between two ends."""
    return np.nextafter(low, np.inf), np.nextafter(high, -np.inf)


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
