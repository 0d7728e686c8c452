"""Stan's densities by name, and whether one is normalised over a parameter's support.

The list is that of the continuous distributions in Stan's functions reference.  A density over
more or less than the parameter's support does not integrate to 1: ``s ~ normal(0, 1)`` with
``real<lower=0> s`` integrates to 1/2, but with ``T[0, ]`` to 1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from harness.temper.constraints import constraint_of
from harness.temper.elements import Box, Piece
from harness.temper.parameters import Parameter
from harness.temper.sums import Density
from harness.temper.text import as_text
from harness.temper.tree import (
    Node,
    expr,
    is_container,
    items,
    literal,
    name_of,
    stan_call,
    tag,
    type_of,
)

End = float | str
"""End of a support: a number, or the text of an expression."""

_REAL = {
    *("normal", "std_normal", "exp_mod_normal", "skew_normal", "student_t", "cauchy"),
    *("double_exponential", "skew_double_exponential", "logistic", "gumbel"),
}
_POSITIVE = {
    *("lognormal", "chi_square", "inv_chi_square", "scaled_inv_chi_square", "exponential"),
    *("gamma", "inv_gamma", "weibull", "frechet", "rayleigh", "loglogistic"),
}
_UNIT = ("beta", "beta_proportion")
_FROM_FIRST = ("pareto", "pareto_type_2")
_CENTRES: Mapping[str, int | None] = {
    **dict.fromkeys(("normal", "cauchy", "double_exponential", "logistic"), 0),
    "std_normal": None,
    "student_t": 1,
}
"""Which argument behind its bar a density is symmetric about; None where that is 0."""
BETWEEN = ("uniform", *_FROM_FIRST)
"""Densities that are told the ends of their support."""

MATRICES = {
    "dirichlet": ("Simplex", "StochasticRow", "StochasticColumn"),
    "lkj_corr": ("Correlation",),
    "lkj_corr_cholesky": ("CholeskyCorr",),
    "wishart": ("Covariance",),
    "inv_wishart": ("Covariance",),
    "wishart_cholesky": ("CholeskyCov",),
    "inv_wishart_cholesky": ("CholeskyCov",),
}
"""Densities over a joint constraint, and over which."""
_AXES: Mapping[str, slice] = {
    "Simplex": slice(-1, None),
    "StochasticRow": slice(-1, None),
    "StochasticColumn": slice(-2, -1),
}
"""Which axes of a parameter one density is over; both of a matrix if the constraint is not here."""
VECTORS = {
    *("multi_normal", "multi_normal_prec", "multi_normal_cholesky", "multi_student_t"),
    *("multi_student_t_cholesky", "multi_gp", "multi_gp_cholesky"),
}
"""Densities of vectors whose elements are free."""
_POSITIVE_GIVEN: Mapping[str, tuple[int, ...]] = {
    **dict.fromkeys(("exponential", "rayleigh", "chi_square", "inv_chi_square"), (0,)),
    **dict.fromkeys(("dirichlet", "lkj_corr", "lkj_corr_cholesky"), (0,)),
    **dict.fromkeys(("normal", "cauchy", "double_exponential", "logistic", "gumbel"), (1,)),
    **dict.fromkeys(("skew_normal", "lognormal", "von_mises"), (1,)),
    **dict.fromkeys(("gamma", "inv_gamma", "weibull", "frechet", "loglogistic"), (0, 1)),
    **dict.fromkeys(("beta", "beta_proportion", "pareto", "scaled_inv_chi_square"), (0, 1)),
    **dict.fromkeys(("exp_mod_normal", "skew_double_exponential", "pareto_type_2"), (1, 2)),
    "student_t": (0, 2),
}
"""Which of the arguments behind a density's bar are positive."""


@dataclass(frozen=True)
class Truncation:
    """Ends that a density is cut to, and divided by its mass between them; None for none."""

    low: Node | None = None
    high: Node | None = None


def truncation(density: Density) -> Truncation:
    """Return the ends in ``T[low, high]``."""
    kind = tag(density.truncation)
    if kind == "NoTruncate":
        return Truncation()
    ends = items(density.truncation)[1:]
    if kind == "TruncateUpFrom":
        return Truncation(low=ends[0])
    if kind == "TruncateDownFrom":
        return Truncation(high=ends[0])
    return Truncation(*ends)


def problem(
    density: Density, piece: Piece, whole: Box, parameter: Parameter, cut: Truncation
) -> str | None:
    """Say why a density of some elements of a parameter is not known to be normalised.

    Parameters
    ----------
    density
        The density.
    piece
        The elements.
    whole
        All elements of the parameter.
    parameter
        The parameter, as it is declared.
    cut
        What the density is cut to.

    Returns
    -------
    str or None
        A few words; None if it integrates to 1 over the declared support, or each element's does
        to 1/2; see :func:`halved`.
    """
    family, constraint = density.family, tag(parameter.transformation)
    variate, *given = density.args
    if family in MATRICES:
        axes = _AXES.get(constraint, slice(-2, None))
        fits = constraint in MATRICES[family] and piece.box[axes] == whole[axes]
        if "Cholesky" in constraint and len(set(whole[-2:])) == 2:
            fits = False
    elif family in VECTORS:
        fits = constraint_of(parameter.transformation).free
    else:
        whole_support = support(density, cut)
        if whole_support is None:
            return f"{family} is not known to be normalised"
        own = declared_support(parameter)
        fits = own is not None and (
            _whole_circle(own) if family == "von_mises" else own == whole_support
        )
        fits = fits or halved(density, piece, whole, parameter, cut)
    if not fits:
        return f"{family} need not integrate to 1 over the support of {parameter.name}"
    if (family in MATRICES or family in VECTORS) and cut != Truncation():
        return f"{family} is cut"
    several = _is_array if family in MATRICES or family in VECTORS else is_container
    if not several(variate) and any(map(several, given)):
        return "it is several densities of the same"
    return None


def halved(
    density: Density, piece: Piece, whole: Box, parameter: Parameter, cut: Truncation
) -> bool:
    """Whether a constraint cuts a density of all elements of a parameter exactly in half.

    It does if the density is symmetric about the parameter's only bound, whatever its scale is:
    ``s ~ cauchy(0, 5)`` with ``real<lower=0> s`` integrates to 1/2.

    Parameters
    ----------
    density, piece, whole, parameter, cut
        The same as for :func:`problem`.
    """
    own = declared_support(parameter)
    uncut = own is not None and cut == Truncation() and piece.box == whole
    return uncut and cut_in_half(density, own)


def cut_in_half(density: Density, own: tuple[End, End] | None) -> bool:
    """Whether a density that is not truncated is symmetric about the only end of a support."""
    if density.family not in _CENTRES or own is None:
        return False
    place = _CENTRES[density.family]
    centre: End = 0.0 if place is None else end(density.args[1 + place])
    return own in ((centre, math.inf), (-math.inf, centre))


def may_fail(density: Density, known: Mapping[str, Parameter]) -> str | None:
    """Name a parameter that a density wants positive and that may be negative, if there is one."""
    for place in _POSITIVE_GIVEN.get(density.family, ()):
        form = expr(density.args[1 + place])
        while tag(form) in ("Paren", "Indexed"):
            form = expr(items(form)[1])
        parameter = known.get(name_of(items(form)[1])) if tag(form) == "Variable" else None
        own = None if parameter is None else declared_support(parameter)
        if parameter is not None and own is not None and own[0] == -math.inf:
            return parameter.name
    return None


def declared_support(parameter: Parameter) -> tuple[End, End] | None:
    """Return the bounds of a parameter's elements; None for other constraints."""
    kind = tag(parameter.transformation)
    if constraint_of(parameter.transformation).free:
        return -math.inf, math.inf
    if kind not in ("Lower", "Upper", "LowerUpper"):
        return None
    ends = [end(each) for each in items(parameter.transformation)[1:]]
    return (
        ends[0] if kind != "Upper" else -math.inf,
        ends[-1] if kind != "Lower" else math.inf,
    )


def support(density: Density, cut: Truncation) -> tuple[End, End] | None:
    """Return the ends between which a density is normalised; None if they are not known."""
    family, given = density.family, density.args[1:]
    low: End = -math.inf
    high: End = math.inf
    if family in _POSITIVE:
        low = 0.0
    elif family in _UNIT:
        low, high = 0.0, 1.0
    elif family in _FROM_FIRST:
        low = end(given[0])
    elif family == "uniform":
        low, high = map(end, given)
    elif family not in _REAL | {"von_mises"}:
        return None
    for node, at_low in ((cut.low, True), (cut.high, False)):
        if node is None:
            continue
        given_end, own = end(node), low if at_low else high
        if isinstance(given_end, str) or isinstance(own, str):
            if not (isinstance(own, float) and math.isinf(own)) and given_end != own:
                return None
            new: End = given_end
        else:
            new = max(own, given_end) if at_low else min(own, given_end)
        low, high = (new, high) if at_low else (low, new)
    return low, high


def volume(parameter: Parameter) -> float | None:
    """Return the volume of one element's support, if that is a known number."""
    own = declared_support(parameter)
    if own is None:
        return None
    low, high = own
    if isinstance(low, str) or isinstance(high, str):
        return None
    return high - low


def end(node: Node) -> End:
    """Return a bound as a number if possible, otherwise as text."""
    number = _number(node)
    return as_text(node).replace(" ", "") if number is None else number


def _number(node: Node) -> float | None:
    form = expr(node)
    kind = tag(form)
    value = literal(node)
    if value is not None:
        return value
    if kind == "Paren":
        return _number(items(form)[1])
    if kind == "PrefixOp" and tag(items(form)[1]) == "PMinus":
        value = _number(items(form)[2])
        return None if value is None else -value
    if stan_call(form)[0] == "pi":
        return math.pi
    if kind == "BinOp" and tag(items(form)[2]) in ("Times", "Divide"):
        left, right = _number(items(form)[1]), _number(items(form)[3])
        if left is None or not right:
            return None
        return left * right if tag(items(form)[2]) == "Times" else left / right
    return None


def _whole_circle(support: tuple[End, End]) -> bool:
    low, high = support
    if isinstance(low, str) or isinstance(high, str):
        return False
    return math.isclose(high - low, 2 * math.pi, rel_tol=1e-12)


def _is_array(node: Node) -> bool:
    return tag(type_of(node)) == "UArray"
