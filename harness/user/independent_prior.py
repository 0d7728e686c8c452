"""The prior of elements that are independent: quantiles of each, and its density."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Never

import numpy as np
import numpy.typing as npt
from scipy import special

from harness.arrays import FloatArray
from harness.engine.stan_library import Variable
from harness.errors import DataError
from harness.temper.univariate import ARGUMENTS, BOUNDS, CUT, NUMBER, TIMES, Listing
from harness.user.quantiles import FAMILIES, STANDARD, Cut

_LEAST_MASS = 1e-6
"""Share of a distribution between its ends below which quantiles are no longer exact."""
_SMALLEST, _LARGEST = np.finfo(np.float64).tiny, 1 - np.finfo(np.float64).epsneg

_Rows = npt.NDArray[np.intp]


class IndependentPrior:
    """A prior under which elements of parameters, or simplexes of them, are independent.

    Parameters
    ----------
    listing
        What the program states; see :mod:`harness.temper.univariate`.
    rows
        What the program lists, with a row for each element.
    variables
        Shapes of the parameters, and where their elements are.
    name
        What messages call the program.

    Raises
    ------
    DataError
        If an element has no proper prior, more than one, or one whose quantiles are not known.
    """

    def __init__(
        self, listing: Listing, rows: FloatArray, variables: Mapping[str, Variable], name: str
    ) -> None:
        self._listing, self._rows = listing, rows
        self._variables, self._name = variables, name
        self._groups = list(self._univariate())
        self._simplexes = list(self._dirichlet())

    def quantiles(self, u: FloatArray) -> FloatArray:
        """Return elements (n, E) for uniform numbers (n, E).

        They are inside the support, also where rounding would put them on its ends.
        """
        at = np.clip(u, _SMALLEST, _LARGEST)
        values = np.empty(at.shape)
        for own, cut, (below, above) in self._groups:
            x = cut.quantile(np.clip(below + (above - below) * at[:, own], _SMALLEST, _LARGEST))
            inside = np.nextafter(cut.low, np.inf), np.nextafter(cut.high, -np.inf)
            values[:, own] = np.clip(x, *inside)
        for own, alpha in self._simplexes:
            gamma = np.maximum(special.gammaincinv(alpha, at[:, own]), _SMALLEST)
            values[:, own] = gamma / gamma.sum(axis=1, keepdims=True)
        return values

    def log_density(self, values: FloatArray) -> FloatArray:
        """Return log densities (n,) of elements (n, E), with no change of variables."""
        found = np.zeros(len(values))
        for own, cut, (below, above) in self._groups:
            found += (cut.log_density(values[:, own]) - np.log(above - below)).sum(axis=1)
        for own, alpha in self._simplexes:
            found += special.xlogy(alpha - 1, values[:, own]).sum(axis=1)
            found += special.gammaln(alpha.sum()) - special.gammaln(alpha).sum()
        return found

    def _univariate(self) -> Iterator[tuple[_Rows, Cut, tuple[FloatArray, FloatArray]]]:
        """Yield elements with one standard distribution, it, and the probabilities at its ends."""
        of: dict[str, list[tuple[int, tuple[float, ...]]]] = {}
        rows = self._rows
        cut_to = np.where(rows[:, TIMES, None] > 0, rows[:, CUT], [-np.inf, np.inf])
        low = np.maximum(rows[:, BOUNDS.start], cut_to[:, 0])
        high = np.minimum(rows[:, BOUNDS.stop - 1], cut_to[:, 1])
        for name, each in self._variables.items():
            for element in range(each.columns.start, each.columns.stop):
                family = self._family(name, element)
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
            wrong = ~(above - below >= _LEAST_MASS)
            if np.any(wrong):
                self._refuse(
                    f"{self._element(int(own[wrong][0]))} has next to none of its prior between "
                    "its bounds, or arguments that are not allowed"
                )
            yield own, cut, (below, above)

    def _family(self, name: str, element: int) -> str | None:
        """Return the name of an element's distribution; None for a flat one."""
        row = self._rows[element]
        if row[TIMES] > 1:
            self._refuse(f"{self._element(element)} has more than one density")
        simplex = name in self._listing.simplexes
        if row[TIMES] == 0:
            if simplex:
                self._refuse(f"{name} is a simplex with no prior: give it a Dirichlet distribution")
            if not np.all(np.isfinite(row[BOUNDS])):
                self._refuse(f"{self._element(element)} has no prior and is not bounded")
            return None
        stated = self._listing.stated[int(row[NUMBER]) - 1]
        if simplex != (stated.family == "dirichlet"):
            self._refuse(f"{name} has a constraint that {stated.where} does not fit")
        if not simplex and stated.family not in FAMILIES:
            self._refuse(f"{stated.where} has a distribution whose quantiles are not known")
        return stated.family

    def _dirichlet(self) -> Iterator[tuple[_Rows, FloatArray]]:
        """Yield the elements of each simplex, and the arguments of its Dirichlet distribution."""
        for name in sorted(self._listing.simplexes & self._variables.keys()):
            each = self._variables[name]
            columns = np.arange(each.columns.start, each.columns.stop)
            for own in columns.reshape(-1, each.shape[-1]):
                yield own, self._rows[own, ARGUMENTS.start]

    def _element(self, element: int) -> str:
        """Name of an element, as ``mu[2]``."""
        name, each = next(
            pair for pair in self._variables.items() if element < pair[1].columns.stop
        )
        at = np.unravel_index(element - each.columns.start, each.shape or (1,))
        index = ", ".join(str(int(place) + 1) for place in at)
        return f"{name}[{index}]" if each.shape else name

    def _refuse(self, why: str) -> Never:
        raise DataError(
            f"the prior of {self._name} cannot be drawn by quantiles, one for each element: {why}"
        )
