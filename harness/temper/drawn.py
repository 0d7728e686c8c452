"""Text that draws a variable from a distribution in Stan, and adds up the density of the draw.

Every distribution is drawn by the generators of a few: the others follow from these, for instance a
Wishart matrix from Bartlett's decomposition and a correlation matrix from partial correlations.

References
----------
Lewandowski, D., Kurowicka, D. and Joe, H. (2009). Generating random correlation matrices based on
vines and extended onion method. Journal of Multivariate Analysis 100, 1989-2001.
Smith, W. B. and Hocking, R. R. (1972). Algorithm AS 53: Wishart variate generator. Applied
Statistics 21, 341-345.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from harness.errors import DataError
from harness.temper.library import Names

Shape = Literal["real", "vector", "row_vector", "array", "matrix", "vectors", "row_vectors"]
"""What is drawn at once: a number, numbers of one kind, or an array of vectors."""

TRIES = 1000
"""Draws outside of a constraint, one after the other, after which a program gives up."""


class NotSimulatedError(DataError):
    """A prior cannot be simulated, or the text does not show that it can."""


_WORD = re.compile(r"[\w.]+(\[[\w, ]+\])?")


@dataclass(frozen=True)
class Given:
    """The text of an argument, and whether it has a value for each of what is drawn."""

    text: str
    several: bool = False

    def at(self, index: str) -> Given:
        """Return the argument of one of them."""
        return Given(f"{self.apart}[{index}]") if self.several else self

    @property
    def apart(self) -> str:
        """Its text, in parentheses unless it is one word."""
        return self.text if _WORD.fullmatch(self.text) else f"({self.text})"


@dataclass(frozen=True)
class Region:
    """Where draws lie; those outside are drawn again, or have a density of 0.

    Attributes
    ----------
    lows, highs
        Ends that no draw is beyond.
    low, high
        Those of them by whose mass the density is divided, as Stan does for ``T[low, high]``.
    increasing
        Whether the elements are in order.
    half
        Whether just half of the distribution lies there.
    declared
        The bounds of the variable, one or two, if a draw outside has a density of 0; else empty.
    """

    lows: tuple[Given, ...] = ()
    highs: tuple[Given, ...] = ()
    low: Given | None = None
    high: Given | None = None
    increasing: bool = False
    half: bool = False
    declared: tuple[Given, ...] = ()

    @property
    def within(self) -> str:
        """Text of a number between the bounds of the variable; a single one is where it is cut."""
        texts = [each.apart for each in self.declared]
        if len(texts) > 1:
            return f"({' + '.join(texts)}) / 2"
        return f"{texts[0]} - 1" if self.highs else f"{texts[0]} + 1"


_NUMBERS: Mapping[str, str] = {
    "normal": "normal_rng({0}, {1})",
    "std_normal": "normal_rng(0, 1)",
    "student_t": "student_t_rng({0}, {1}, {2})",
    "cauchy": "cauchy_rng({0}, {1})",
    "double_exponential": "double_exponential_rng({0}, {1})",
    "logistic": "logistic_rng({0}, {1})",
    "gumbel": "gumbel_rng({0}, {1})",
    "exp_mod_normal": "normal_rng({0}, {1}) + exponential_rng({2})",
    "skew_normal": (
        "{0} + {1} * ({2} * abs(normal_rng(0, 1)) + normal_rng(0, 1)) / sqrt(1 + square({2}))"
    ),
    "skew_double_exponential": (
        "uniform_rng(0, 1) < {2} ? {0} - exponential_rng(2 * (1 - {2}) / {1})"
        " : {0} + exponential_rng(2 * {2} / {1})"
    ),
    "lognormal": "lognormal_rng({0}, {1})",
    "chi_square": "chi_square_rng({0})",
    "inv_chi_square": "inv(chi_square_rng({0}))",
    "scaled_inv_chi_square": "{0} * square({1}) / chi_square_rng({0})",
    "exponential": "exponential_rng({0})",
    "gamma": "gamma_rng({0}, {1})",
    "inv_gamma": "inv_gamma_rng({0}, {1})",
    "weibull": "weibull_rng({0}, {1})",
    "frechet": "inv(weibull_rng({0}, inv({1})))",
    "rayleigh": "weibull_rng(2, sqrt(2) * {0})",
    "loglogistic": "{0} * exp(logistic_rng(0, 1) / {1})",
    "pareto": "{0} * exp(exponential_rng({1}))",
    "pareto_type_2": "{0} + {1} * expm1(exponential_rng({2}))",
    "beta": "beta_rng({0}, {1})",
    "beta_proportion": "beta_rng({0} * {1}, (1 - {0}) * {1})",
    "uniform": "uniform_rng({0}, {1})",
}
"""How a number is drawn, by its distribution's name; what is in braces are the arguments."""

HAVE_MASSES = frozenset(_NUMBERS) - {"loglogistic"}
"""Those of them whose distribution function Stan has, as a logarithm."""

_T = "to_vector({1}) + %s(rep_vector(0, rows({2})), {2}) * sqrt({0} / chi_square_rng({0}))"
_VECTORS: Mapping[str, str] = {
    "multi_normal": "multi_normal_rng({0}, {1})",
    "multi_normal_cholesky": "multi_normal_cholesky_rng({0}, {1})",
    "multi_normal_prec": "multi_normal_rng({0}, inverse_spd({1}))",
    "multi_student_t": _T % "multi_normal_rng",
    "multi_student_t_cholesky": _T % "multi_normal_cholesky_rng",
    "dirichlet": "dirichlet_rng(to_vector({0}))",
}

_WISHART = """{factor}[{i}, {i}] = sqrt(chi_square_rng({0} - {i} + 1));
for ({j} in 1 : {i} - 1) {{
{factor}[{i}, {j}] = normal_rng(0, 1);
}}
"""
_CORRELATION = """{factor}[{i}, {i}] = 1;
for ({j} in 1 : {i} - 1) {{
real {partial} = {0} + (rows({at}) - 1 - {j}) / 2.0;
{partial} = 2 * beta_rng({partial}, {partial}) - 1;
{factor}[{i}, {j}] = {partial} * {factor}[{i}, {i}];
{factor}[{i}, {i}] *= sqrt(1 - square({partial}));
}}
"""
_MATRICES: Mapping[str, tuple[str, str]] = {
    "lkj_corr_cholesky": (_CORRELATION, "{factor}"),
    "lkj_corr": (_CORRELATION, "multiply_lower_tri_self_transpose({factor})"),
    "wishart": (_WISHART, "multiply_lower_tri_self_transpose(cholesky_decompose({1}) * {factor})"),
    "wishart_cholesky": (_WISHART, "{1} * {factor}"),
    "inv_wishart": (
        _WISHART,
        "inverse_spd(multiply_lower_tri_self_transpose("
        "cholesky_decompose(inverse_spd({1})) * {factor}))",
    ),
    "inv_wishart_cholesky": (
        _WISHART,
        "cholesky_decompose(inverse_spd(multiply_lower_tri_self_transpose("
        "cholesky_decompose(inverse_spd(multiply_lower_tri_self_transpose({1}))) * {factor})))",
    ),
}
"""How row i of a lower triangle is drawn, and what is made of the triangle."""

_FILLED: Mapping[Shape, str] = {
    "vector": "{0}",
    "row_vector": "{0}'",
    "array": "to_array_1d({0})",
    "matrix": "to_matrix({0}, rows({1}), cols({1}))",
}
"""What is made of a vector of numbers, column by column, to fill a variable."""


class Drawing:
    """Writes statements that draw.

    Parameters
    ----------
    names
        Gives names of local variables.
    log_density
        Variable that the log density of each draw is added to.
    """

    def __init__(self, names: Names, log_density: str) -> None:
        self._names = names
        self._log_density = log_density

    def drawn(
        self, at: str, shape: Shape, family: str, given: Sequence[Given], region: Region
    ) -> str:
        """Text that draws a variable.

        Parameters
        ----------
        at
            Text of the variable, or of what is drawn of it.
        shape
            Its shape.
        family
            Name of the distribution.
        given
            Its arguments.
        region
            Where each number lies.

        Raises
        ------
        NotSimulatedError
            If there is no generator of such draws.
        """
        if family in _NUMBERS:
            return self._numbers(at, shape, family, given, region)
        if family in _VECTORS:
            return self._vectors(at, shape, family, given)
        if family in _MATRICES and shape == "matrix" and not any(each.several for each in given):
            return self._matrix(at, family, given)
        raise NotSimulatedError(f"there is no generator of {family} for this")

    def apart(self) -> Drawing:
        """Return what draws in the same way, and adds up densities that nobody looks at."""
        return Drawing(self._names, self._names.of("log_density_apart"))

    def one_of(
        self, texts: Sequence[str], densities: Sequence[str], log_weights: Sequence[str]
    ) -> str:
        """Text that draws from one component of a mixture.

        Parameters
        ----------
        texts
            Texts that draw from the components, by what :meth:`apart` returns.
        densities
            Texts of the log densities of what has been drawn, each as if from one component.
        log_weights
            Texts of the logs of the weights, up to a constant.
        """
        weight, chosen = self._names.of("log_weight_of_component"), self._names.of("component")
        rows = [
            f"real {self._names.of('log_density_apart')} = 0;",
            f"vector[{len(texts)}] {weight} = log_softmax([{', '.join(log_weights)}]');",
            f"int {chosen} = categorical_logit_rng({weight});",
            *(f"if ({chosen} == {i}) {{\n{text}\n}}" for i, text in enumerate(texts, 1)),
            f"{self._log_density} += log_sum_exp({weight} + [{', '.join(densities)}]');",
        ]
        return _braces(rows)

    def uniform_direction(self, at: str) -> str:
        """Text that draws a vector of length 1.

        Stan's Jacobian has the rest of the density of the normal numbers behind it.
        """
        index = self._names.of("number")
        rows = [
            f"for ({index} in 1 : num_elements({at})) {{",
            f"{at}[{index}] = normal_rng(0, 1);",
            "}",
            f"{at} /= sqrt(dot_self({at}));",
            f"{self._log_density} += num_elements({at}) * std_normal_lpdf(0);",
        ]
        return "\n".join(rows)

    def _numbers(
        self, at: str, shape: Shape, family: str, given: Sequence[Given], region: Region
    ) -> str:
        ends = [each for each in (region.low, region.high) if each is not None]
        several = [*given, *region.lows, *region.highs, *ends, *region.declared]
        if shape == "real":
            if any(each.several for each in several):
                raise NotSimulatedError("several densities of one number")
            return _braces([self._number(at, family, given, region)])
        if shape not in _FILLED:
            raise NotSimulatedError(f"{family} of an array of vectors")
        drawn, index = self._names.of("drawn"), self._names.of("number")
        rows = [f"vector[num_elements({at})] {drawn};"]
        local: dict[str, str] = {}
        for each in several:
            if each.several and each.text not in local:
                local[each.text] = self._names.of(f"given_{len(local) + 1}")
                rows.append(
                    f"vector[num_elements({at})] {local[each.text]} = to_vector({each.text});"
                )

        def one(each: Given) -> Given:
            return Given(f"{local[each.text]}[{index}]") if each.several else each

        inside = replace(
            region,
            lows=tuple(map(one, region.lows)),
            highs=tuple(map(one, region.highs)),
            low=None if region.low is None else one(region.low),
            high=None if region.high is None else one(region.high),
            declared=tuple(map(one, region.declared)),
        )
        number = self._number(f"{drawn}[{index}]", family, [*map(one, given)], inside)
        rows.append(f"for ({index} in 1 : num_elements({at})) {{\n{number}\n}}")
        made = drawn
        if region.increasing:  # any of the orders in which they can be drawn
            made = f"sort_asc({drawn})"
            rows.append(f"{self._log_density} += lgamma(num_elements({at}) + 1);")
        rows.append(f"{at} = {_FILLED[shape].format(made, at)};")
        return _braces(rows)

    def _number(self, at: str, family: str, given: Sequence[Given], region: Region) -> str:
        """Text that draws one number."""
        texts = [each.apart for each in given]
        draw = f"{at} = {_NUMBERS[family].format(*texts)};"
        rows = [draw]
        outside = [f"{at} < {each.text}" for each in region.lows]
        outside += [f"{at} > {each.text}" for each in region.highs]
        behind = ", ".join(each.text for each in given)
        added = f"{self._log_density} += {family}_lpdf({at} | {behind});"
        if region.declared:
            # What depends on this number needs one that the constraint allows.
            return "\n".join(
                [
                    draw,
                    f"if ({' || '.join(outside)}) {{",
                    f"{self._log_density} = negative_infinity();",
                    f"{at} = {region.within};",
                    f"}} else {{\n{added}\n}}",
                ]
            )
        if outside:
            tries = self._names.of("tries")
            rows = [
                f"int {tries} = 1;",
                draw,
                f"while ({' || '.join(outside)}) {{",
                f'if ({tries} == {TRIES}) {{\nreject("no draw of {family} is inside");\n}}',
                draw,
                f"{tries} += 1;",
                "}",
            ]
        rows.append(added)
        if region.half:
            rows.append(f"{self._log_density} += log2();")
        low, high = region.low, region.high
        if low is not None and high is not None:
            mass = (
                f"log_diff_exp({family}_lcdf({high.text} | {behind}), "
                f"{family}_lcdf({low.text} | {behind}))"
            )
        elif low is not None:
            mass = f"{family}_lccdf({low.text} | {behind})"
        elif high is not None:
            mass = f"{family}_lcdf({high.text} | {behind})"
        else:
            return "\n".join(rows)
        return "\n".join([*rows, f"{self._log_density} -= {mass};"])

    def _vectors(self, at: str, shape: Shape, family: str, given: Sequence[Given]) -> str:
        if shape in ("vectors", "row_vectors"):
            index = self._names.of("number")
            inner: Shape = "vector" if shape == "vectors" else "row_vector"
            one = self._vectors(f"{at}[{index}]", inner, family, [e.at(index) for e in given])
            return f"for ({index} in 1 : size({at})) {{\n{one}\n}}"
        if shape not in ("vector", "row_vector") or any(each.several for each in given):
            raise NotSimulatedError(f"{family} of another shape")
        draw = _VECTORS[family].format(*(each.apart for each in given))
        behind = ", ".join(each.text for each in given)
        return (
            f"{at} = {_FILLED[shape].format(f'({draw})')};\n"
            f"{self._log_density} += {family}_lpdf({at} | {behind});"
        )

    def _matrix(self, at: str, family: str, given: Sequence[Given]) -> str:
        words = {each: self._names.of(each) for each in ("factor", "i", "j", "partial")}
        texts = [each.apart for each in given]
        row, made = (each.format(*texts, at=at, **words) for each in _MATRICES[family])
        behind = ", ".join(each.text for each in given)
        rows = [
            f"matrix[rows({at}), rows({at})] {words['factor']} = "
            f"rep_matrix(0, rows({at}), rows({at}));",
            f"for ({words['i']} in 1 : rows({at})) {{\n{row}}}",
            f"{at} = {made};",
            f"{self._log_density} += {family}_lpdf({at} | {behind});",
        ]
        return _braces(rows)


def _braces(rows: Sequence[str]) -> str:
    return "\n".join(["{", *rows, "}"])
