"""Which densities of a prior its parameters can be drawn from, as the program's text shows.

A parameter is drawn once, from a known distribution of the parameter as it is declared.  A
constraint may cut that distribution.  Terms of which the text does not show how to draw are
:class:`Unknown`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from harness.temper.classify import Classification
from harness.temper.constraints import constraint_of
from harness.temper.declared import declared
from harness.temper.drawn import NotSimulatedError, Shape
from harness.temper.mixtures import Component, mixture
from harness.temper.parameters import Parameter, parameters
from harness.temper.sums import Density, density_call, terms
from harness.temper.supports import (
    MATRICES,
    VECTORS,
    End,
    Truncation,
    cut_in_half,
    declared_support,
    support,
    truncation,
)
from harness.temper.syntax import Syntax
from harness.temper.tree import (
    Node,
    all_statements,
    expr,
    field,
    inner_statements,
    is_container,
    items,
    name_of,
    names,
    stan_call,
    stmt,
    tag,
    type_of,
    variables,
    walk,
)


@dataclass(frozen=True)
class Draw:
    """A density in the prior that a parameter, or elements of it, are drawn from.

    Attributes
    ----------
    parameter, variate, shape
        What is drawn.
    density
        The density.
    by_rejection
        Whether a constraint cuts it by a mass that depends on parameters.  Stan does not divide by
        that mass, so a draw outside is no draw of the prior, and neither are those of the other
        parameters with it.
    """

    parameter: Parameter
    variate: Node
    shape: Shape
    density: Density
    by_rejection: bool = False

    @property
    def parts(self) -> tuple[Draw, ...]:
        """The draw itself; see :class:`Mixture`."""
        return (self,)

    @property
    def reads(self) -> set[str]:
        """Names in the distribution's arguments."""
        return names(self.density.args[1:])

    @property
    def support(self) -> tuple[End, End] | None:
        """Bounds of each number by the parameter's constraint; None if it is a joint one."""
        constraint = tag(self.parameter.transformation)
        return _SORTED.get(constraint) or declared_support(self.parameter)

    @property
    def cuts(self) -> tuple[bool, bool]:
        """Whether the parameter's constraint cuts the distribution below, and above.

        Raises
        ------
        NotSimulatedError
            If the constraint is a joint one.
        """
        own = self.support
        if own is None:
            raise NotSimulatedError("a density of single numbers under a joint constraint")
        whole = support(self.density, truncation(self.density)) or (-math.inf, math.inf)
        return _ends_before(own[0], whole[0], 1), _ends_before(own[1], whole[1], -1)

    @property
    def halves(self) -> bool:
        """Whether the constraint leaves exactly a half of the distribution, whatever it is."""
        whole = truncation(self.density) == Truncation()
        return whole and cut_in_half(self.density, self.support)

    @property
    def in_order(self) -> bool:
        """Whether the parameter's elements are in order."""
        return tag(self.parameter.transformation) in _SORTED

    @property
    def identifier(self) -> Node | None:
        """The identifier of the parameter in the density."""
        return _base(self.variate)


@dataclass(frozen=True)
class Mixture:
    """A mixture of densities in the prior, of which one is drawn from.

    Attributes
    ----------
    parts
        The densities, of one variate.
    log_weights
        Texts of the logs of their weights.
    """

    parts: tuple[Draw, ...]
    log_weights: tuple[str, ...]

    @property
    def parameter(self) -> Parameter:
        """The parameter that is drawn."""
        return self.parts[0].parameter

    @property
    def reads(self) -> set[str]:
        """Names in the arguments of all densities."""
        return set[str]().union(*(each.reads for each in self.parts))


class Unknown:
    """A term of the prior that the text does not show how to draw from.

    Parameters
    ----------
    term
        The term.
    error
        Why not.
    """

    def __init__(self, term: Density | Node, error: NotSimulatedError | None = None) -> None:
        self.nodes = term.args if isinstance(term, Density) else (term,)
        self.error = error or NotSimulatedError("what is drawn depends on what is not")


class PriorDraws:
    """The densities of a program's prior that its parameters can be drawn from.

    Parameters
    ----------
    syntax, classification
        The program, and what in it is tempered; the rest is the prior.

    Attributes
    ----------
    parameters
        The program's parameters by name.
    fixed
        Names of data.
    by_statement
        The draws of each statement, by the statement's identity.
    unknown
        Terms of the prior from which nothing is drawn.
    left_out
        Parameters that are not drawn although the prior has a term with them.

    Raises
    ------
    NotSimulatedError
        If the text does not show how the prior is drawn; the message says why.
    """

    def __init__(self, syntax: Syntax, classification: Classification) -> None:
        self._classification = classification
        self.parameters = {each.name: each for each in parameters(syntax)}
        self.by_statement: dict[int, list[Draw | Mixture]] = {}
        self.unknown: list[Unknown] = []
        self.left_out = set[str]()
        self.fixed = declared(syntax).fixed
        for node in (*syntax.blocks["transformedparameters"], *syntax.blocks["model"]):
            self._find(node, self.fixed)
        self._leave_out()

    @property
    def drawn(self) -> set[str]:
        """Names of the parameters that are drawn."""
        return {each.parameter.name for some in self.by_statement.values() for each in some}

    @cached_property
    def in_unknown(self) -> set[int]:
        """Identities of all nodes in terms that are unknown."""
        return {id(each) for unknown in self.unknown for each in walk(unknown.nodes)}

    def _find(self, node: Node, fixed: frozenset[str]) -> None:
        """Find the draws in a statement, in which names of data and of loops are ``fixed``."""
        form = stmt(node)
        kind = tag(form)
        before = len(self.by_statement)
        found: list[Draw | Mixture] = []
        for term in self._untempered(node):
            try:
                found += self._of_term(term, fixed)
            except NotSimulatedError as error:
                self.unknown.append(Unknown(term, error))
        if found:
            self.by_statement[id(node)] = found
        inner = fixed
        if kind == "For":
            inner = fixed | {name_of(field(form, "loop_variable"))}
        for each in inner_statements(form):
            self._find(each, inner)
        if len(self.by_statement) == before or not inner_statements(form):
            return
        decides: tuple[Node, ...] = ()
        if kind == "For":
            decides = (field(form, "lower_bound"), field(form, "upper_bound"))
        elif kind == "IfThenElse":
            decides = (items(form)[1],)
        elif kind not in ("Block", "Profile"):
            raise NotSimulatedError("a prior's statement is in a loop of another kind")
        if not all(is_fixed(each, fixed) for each in decides):
            raise NotSimulatedError("whether a prior's statement counts depends on parameters")
        jumps = ("Break", "Continue", "Return", "ReturnVoid")
        if any(tag(stmt(each)) in jumps for each in all_statements((node,))):
            raise NotSimulatedError("a loop with a prior's statement may be left")

    def _leave_out(self) -> None:
        """Leave out what may be Gaussian given the rest: free parameters of terms that are unknown.

        What is drawn from a density that depends on them is left out, too, if it is free.  An
        unknown term of what is drawn may be a constant of theirs, so it does not count here.
        """
        drawn = self.drawn
        free = {name for name, each in self.parameters.items() if _is_linear(each)}
        for unknown in self.unknown:
            self.left_out |= names(unknown.nodes) & free - drawn
        if self.unknown and not self.left_out:
            raise self.unknown[0].error
        before = -1
        while before != len(self.left_out):
            before = len(self.left_out)
            self.left_out |= {
                each.parameter.name
                for some in self.by_statement.values()
                for each in some
                if each.reads & self.left_out and each.parameter.name in free
            }
        for key, some in tuple(self.by_statement.items()):
            undrawn = [each for each in some if each.parameter.name in self.left_out]
            self.unknown += [Unknown(part.density) for each in undrawn for part in each.parts]
            self.by_statement[key] = [each for each in some if each not in undrawn]
            if not self.by_statement[key]:
                del self.by_statement[key]

    def _untempered(self, node: Node) -> Iterator[Density | Node]:
        """Yield what a statement adds to the prior: densities, or terms that are none."""
        known = self._classification.terms.get(id(node), ())
        form = stmt(node)
        for each in known:
            if each.tempered:
                continue
            if tag(form) == "Tilde":
                kind = tag(field(form, "kind"))
                yield Density(
                    f"{name_of(field(form, 'distribution'))}_lpdf",
                    (field(form, "arg"), *items(field(form, "args"))),
                    own=kind == "UserDefined",
                    truncation=field(form, "truncation"),
                )
            elif tag(form) == "TargetPE":
                for sign, term in each.terms or terms(items(form)[1]):
                    density = density_call(term)
                    yield density if sign == "+" and density is not None else term
            else:
                raise NotSimulatedError("a change of variables, or a function, adds to the prior")

    def _of_term(self, term: Density | Node, fixed: frozenset[str]) -> Iterator[Draw | Mixture]:
        if not isinstance(term, Density):
            if is_fixed(term, fixed):
                return  # a constant
            components = mixture(term)
            if components is None:
                raise NotSimulatedError("something is added that is not a known density")
            yield self._mixture(components, fixed)
        elif not all(is_fixed(each, fixed) for each in term.args):
            yield self._draw(term, fixed)

    def _mixture(self, components: tuple[Component, ...], fixed: frozenset[str]) -> Mixture:
        parts = tuple(self._draw(each.density, fixed) for each in components)
        name = parts[0].parameter.name
        if any(name in names(node) for each in components for node in each.read):
            raise NotSimulatedError(f"a weight in a mixture depends on {name} itself")
        for part in parts:
            if part.density.family in MATRICES or (
                part.density.family not in VECTORS and (any(part.cuts) or part.in_order)
            ):
                raise NotSimulatedError(f"a constraint of {name} cuts a mixture")
        return Mixture(parts, tuple(each.log_weight for each in components))

    def _draw(self, term: Density, fixed: frozenset[str]) -> Draw:
        if term.own or term.cumulative or term.factor != 1:
            raise NotSimulatedError(f"{term.name} is not a known density")
        variate, shape = _variate(term.args[0])
        base = _base(variate)
        parameter = None if base is None else self.parameters.get(name_of(base))
        if parameter is None:
            raise NotSimulatedError(f"{term.name} is not a density of a parameter as declared")
        draw = Draw(parameter, variate, shape, term)
        self._check(draw)
        return replace(draw, by_rejection=self._depends(draw, fixed))

    def _check(self, draw: Draw) -> None:
        """Refuse a density that does not fit the constraint of what is drawn."""
        family, constraint = draw.density.family, tag(draw.parameter.transformation)
        if family in MATRICES:
            if constraint not in MATRICES[family] or tag(draw.density.truncation) != "NoTruncate":
                raise NotSimulatedError(f"{family} of a parameter with another constraint")
            return
        if family in VECTORS:
            if not constraint_of(draw.parameter.transformation).free:
                raise NotSimulatedError(f"{family} of a parameter with a constraint")
            return
        if draw.in_order and (
            _has_single_element(draw) or any(map(is_container, draw.density.args[1:]))
        ):
            raise NotSimulatedError("elements in order have distributions of their own")

    def _depends(self, draw: Draw, fixed: frozenset[str]) -> bool:
        """Whether what a constraint leaves of a distribution depends on parameters."""
        family, cut = draw.density.family, truncation(draw.density)
        if family in MATRICES or family in VECTORS or not any(draw.cuts) or draw.halves:
            return False
        ends = [each for each in (cut.low, cut.high) if each is not None]
        decides = (*draw.density.args[1:], *ends, *bounds_of(draw.parameter))
        if all(is_fixed(each, fixed) for each in decides):
            return False
        if cut != Truncation():
            raise NotSimulatedError(
                f"{family} is cut by T[,] and by the constraint of {draw.parameter.name}, and how "
                "much of it is left depends on parameters"
            )
        return True


def bounds_of(parameter: Parameter) -> list[Node]:
    """Return the bounds that a parameter is declared with."""
    if tag(parameter.transformation) not in ("Lower", "Upper", "LowerUpper"):
        return []
    return list(items(parameter.transformation)[1:])


def is_fixed(node: Node, fixed: frozenset[str]) -> bool:
    """Whether an expression has no variables but these."""
    return variables(node) <= fixed


def _is_linear(parameter: Parameter) -> bool:
    """Whether Stan's unconstrained parameters are a linear function, at one scale, of it."""
    return tag(parameter.transformation) in ("Identity", "SumToZero")


_SORTED: Mapping[str, tuple[End, End]] = {
    "Ordered": (-math.inf, math.inf),
    "PositiveOrdered": (0.0, math.inf),
}
"""Constraints to an order, and where each element lies."""

_ALONE: Mapping[str, Shape] = {
    "UReal": "real",
    "UVector": "vector",
    "URowVector": "row_vector",
    "UMatrix": "matrix",
}
_IN_ARRAYS: Mapping[str, Shape] = {
    "UReal": "array",
    "UVector": "vectors",
    "URowVector": "row_vectors",
}
"""Shapes by type, and by the type of an array's elements."""


def _ends_before(own: End, other: End, sign: int) -> bool:
    """Whether a support may end before another one, at its low end or, with sign -1, its high."""
    if own == other or own in (-math.inf, math.inf):
        return False
    if isinstance(own, str) or isinstance(other, str):
        return True
    return sign * own > sign * other


def _variate(node: Node) -> tuple[Node, Shape]:
    """Return what is drawn and how it is filled."""
    form = expr(node)
    if tag(form) == "Paren":
        return _variate(items(form)[1])
    name, args = stan_call(form)
    if name == "to_vector":
        (node,) = args
    kind = type_of(node)
    shape = _ALONE.get(tag(kind))
    if tag(kind) == "UArray":
        shape = _IN_ARRAYS.get(tag(items(kind)[1]))
    if shape is None:
        raise NotSimulatedError("a density of something that is not filled in one way")
    return node, shape


def _base(variate: Node) -> Node | None:
    """Return the identifier of the variable that is drawn, or elements of which are."""
    form = expr(variate)
    while tag(form) == "Indexed":
        form = expr(items(form)[1])
    return items(form)[1] if tag(form) == "Variable" else None


def _has_single_element(draw: Draw) -> bool:
    """Whether a draw is not of a whole vector as it is declared."""
    form = expr(draw.variate)
    if tag(form) == "Indexed" and any(tag(each) != "Single" for each in items(items(form)[2])):
        return True
    return draw.shape != "vector"
