"""Write a program that draws from a program's prior by simulating it, where its statements allow.

Each parameter is drawn once, by Stan's own random numbers, from a distribution whose arguments are
known by then.  Where a constraint cuts a distribution, draws outside are drawn again.  This is the
prior only if the mass that is left does not depend on parameters: Stan does not divide by it, but
for ``T[low, high]``.

The text may not show how to draw a parameter without a constraint, for instance one that a
conditional autoregression links.  It is left to :mod:`harness.user.gaussian_part`, if nothing that
is drawn depends on it.

What is decided here is decided by the text.  Whether the draws are those of the prior is checked
when they have been drawn, because the program that is written also sums up the density that it
draws from; see :mod:`harness.user.simulated`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from harness.temper.accumulate import rewritten_functions
from harness.temper.classify import Classification, is_target_call
from harness.temper.constraints import constraint_of
from harness.temper.coordinates import is_jacobian
from harness.temper.declared import declared
from harness.temper.drawn import Drawing, Given, NotSimulatedError, Region, Shape
from harness.temper.library import Names
from harness.temper.marks import Marks
from harness.temper.mixtures import Component, mixture
from harness.temper.needed import needed
from harness.temper.parameters import Parameter, parameters
from harness.temper.prior import NeededStatements
from harness.temper.sequence import Uses, in_sequence
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
from harness.temper.text import StanText
from harness.temper.tree import (
    Node,
    all_statements,
    expr,
    field,
    has_field,
    inner_statements,
    is_container,
    items,
    name_of,
    names,
    own_nodes,
    stmt,
    tag,
    type_of,
    variables,
    walk,
    written,
    written_by,
)

LOG_SIMULATED, LOG_PRIOR = "log_simulated", "log_prior"
"""Generated quantity of a program that simulates a prior: the log density of the draw, up to a
constant, and the same if that constant is known to be 0."""


@dataclass(frozen=True)
class Simulation:
    """A program that draws from the prior of another one.

    Attributes
    ----------
    text
        The program, not formatted yet.  It has the data of the original, no parameters, and
        generated quantities with the names of the original's parameters.
    jacobian
        A program with the original's parameters whose log density is that of Stan's change of
        variables, so that the draws' density can be compared on one space.
    log_density
        Name of the generated quantity that is the log density of a draw, up to a constant.
    normalised
        Whether the constant is 0.
    left_out
        Parameters that are not drawn, and have no value.
    """

    text: str
    jacobian: str
    log_density: str
    normalised: bool
    left_out: tuple[str, ...] = ()


def write_simulation(syntax: Syntax, classification: Classification) -> Simulation:
    """Write the program that draws from what another one does not temper.

    Raises
    ------
    NotSimulatedError
        If the text does not show how; the message says why.
    DataError
        If something in the program cannot be written.
    """
    return _Simulator(syntax, classification).simulation()


@dataclass(frozen=True)
class _Draw:
    """A density in the prior that a parameter, or elements of it, are drawn from."""

    parameter: Parameter
    variate: Node
    shape: Shape
    density: Density

    @property
    def parts(self) -> tuple[_Draw, ...]:
        """The draw itself; see :class:`_Mixture`."""
        return (self,)

    @property
    def reads(self) -> set[str]:
        """Names in the distribution's arguments."""
        return names(self.density.args[1:])


@dataclass(frozen=True)
class _Mixture:
    """A mixture of densities in the prior, of which one is drawn from.

    Attributes
    ----------
    parts
        The densities, of one variate.
    log_weights
        Texts of the logs of their weights.
    """

    parts: tuple[_Draw, ...]
    log_weights: tuple[str, ...]

    @property
    def parameter(self) -> Parameter:
        """The parameter that is drawn."""
        return self.parts[0].parameter

    @property
    def reads(self) -> set[str]:
        """Names in the arguments of all densities."""
        return set[str]().union(*(each.reads for each in self.parts))


class _Unknown:
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


class _Simulator:
    def __init__(self, syntax: Syntax, classification: Classification) -> None:
        self._syntax = syntax
        self._classification = classification
        self._fixed = declared(syntax).fixed
        self._parameters = {each.name: each for each in parameters(syntax)}
        self._names = Names(names(tuple(syntax.blocks.values())))
        self._draws: dict[int, list[_Draw | _Mixture]] = {}
        self._unknown: list[_Unknown] = []
        self._left_out = set[str]()
        self._normalised = True

    def simulation(self) -> Simulation:
        blocks = self._syntax.blocks
        body = (*blocks["transformedparameters"], *blocks["model"])
        for node in body:
            self._find(node, self._fixed)
        self._leave_out()
        # Whoever runs it leaves out what the prior rejects.
        rejects = self._classification.rejects
        kept = needed(body, lambda node: id(node) in self._draws, rejects)
        for node in all_statements(body):
            if id(node) in kept and any(
                is_jacobian(e) or is_target_call(e) for e in own_nodes(node)
            ):
                raise NotSimulatedError("what the prior needs adds to the target")
        plain, marks = StanText(), Marks()
        defined, functions = rewritten_functions(
            blocks["function"], str(self._syntax.path), self._names.pick, marks
        )
        log_density = self._names.of(LOG_SIMULATED)
        drawing = Drawing(self._names, log_density)
        texts = {
            key: "\n".join(self._text(each, drawing) for each in some)
            for key, some in self._draws.items()
        }
        flat = "".join(self._flat(each, drawing) for each in self._undrawn())
        writer = _Statements(
            functions,
            lambda _: None,
            lambda node: self._classification.terms[id(node)],
            lambda node: str(self._syntax.line(node)),
            kept,
        )
        writer.texts, writer.uses = texts, self._uses
        for each in body:
            for name in sorted(self._uses(each, kept).reads & self._left_out):
                raise NotSimulatedError(f"what is drawn depends on {name}, which is not")
        rows = [
            *(f"{plain.sized(p.kind, 'Identity')} {p.name};" for p in self._parameters.values()),
            f"real {log_density} = 0;",
            f"{{\n{flat}{writer.statements(body)}\n}}",
        ]
        before = {"functions": defined, "data": plain.statements(blocks["data"])}
        declarations = blocks["parameters"]
        used = [each for each in body if id(each) in kept]
        return Simulation(
            _assembled(
                {
                    **before,
                    "transformed data": self._prepared((*declarations, *used)),
                    "generated quantities": "\n".join(rows),
                }
            ),
            _assembled(
                {
                    **before,
                    "transformed data": self._prepared(declarations),
                    "parameters": plain.statements(declarations),
                    "model": "",
                }
            ),
            log_density,
            self._normalised,
            tuple(name for name in self._parameters if name in self._left_out),
        )

    def _prepared(self, used: tuple[Node, ...] | list[Node]) -> str:
        """Text of the transformed data that statements need; the rest may take long to compute."""
        nodes = self._syntax.blocks["transformeddata"]
        wanted = names(tuple(used))
        kept = set[int]()
        before = -1
        while before != len(kept):
            before = len(kept)
            for each in nodes:
                if id(each) not in kept and written(each) & wanted:
                    kept.add(id(each))
                    wanted |= names(each)
        return StanText().statements(tuple(each for each in nodes if id(each) in kept))

    # What is drawn

    def _find(self, node: Node, fixed: frozenset[str]) -> None:
        """Find the draws in a statement, in which names of data and of loops are ``fixed``."""
        form = stmt(node)
        kind = tag(form)
        before = len(self._draws)
        found: list[_Draw | _Mixture] = []
        for term in self._untempered(node):
            try:
                found += self._of_term(term, fixed)
            except NotSimulatedError as error:
                self._unknown.append(_Unknown(term, error))
        if found:
            self._draws[id(node)] = found
        inner = fixed
        if kind == "For":
            inner = fixed | {name_of(field(form, "loop_variable"))}
        for each in inner_statements(form):
            self._find(each, inner)
        if len(self._draws) == before or not inner_statements(form):
            return
        decides: tuple[Node, ...] = ()
        if kind == "For":
            decides = (field(form, "lower_bound"), field(form, "upper_bound"))
        elif kind == "IfThenElse":
            decides = (items(form)[1],)
        elif kind not in ("Block", "Profile"):
            raise NotSimulatedError("a prior's statement is in a loop of another kind")
        if not all(_is_fixed(each, fixed) for each in decides):
            raise NotSimulatedError("whether a prior's statement counts depends on parameters")
        jumps = ("Break", "Continue", "Return", "ReturnVoid")
        if any(tag(stmt(each)) in jumps for each in all_statements((node,))):
            raise NotSimulatedError("a loop with a prior's statement may be left")

    def _leave_out(self) -> None:
        """Leave out what may be Gaussian given the rest: free parameters of terms that are unknown.

        What is drawn from a density that depends on them is left out, too, if it is free.  An
        unknown term of what is drawn may be a constant of theirs, so it does not count here.
        """
        drawn = {each.parameter.name for some in self._draws.values() for each in some}
        free = {name for name, each in self._parameters.items() if _is_linear(each)}
        for unknown in self._unknown:
            self._left_out |= names(unknown.nodes) & free - drawn
        if self._unknown and not self._left_out:
            raise self._unknown[0].error
        before = -1
        while before != len(self._left_out):
            before = len(self._left_out)
            self._left_out |= {
                each.parameter.name
                for some in self._draws.values()
                for each in some
                if each.reads & self._left_out and each.parameter.name in free
            }
        for key, some in tuple(self._draws.items()):
            undrawn = [each for each in some if each.parameter.name in self._left_out]
            self._unknown += [_Unknown(part.density) for each in undrawn for part in each.parts]
            self._draws[key] = [each for each in some if each not in undrawn]
            if not self._draws[key]:
                del self._draws[key]

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

    def _of_term(self, term: Density | Node, fixed: frozenset[str]) -> Iterator[_Draw | _Mixture]:
        if not isinstance(term, Density):
            if _is_fixed(term, fixed):
                return  # a constant
            components = mixture(term)
            if components is None:
                raise NotSimulatedError("something is added that is not a known density")
            yield self._mixture(components, fixed)
        elif not all(_is_fixed(each, fixed) for each in term.args):
            yield self._draw(term, fixed)

    def _mixture(self, components: tuple[Component, ...], fixed: frozenset[str]) -> _Mixture:
        parts = tuple(self._draw(each.density, fixed) for each in components)
        name = parts[0].parameter.name
        if any(name in names(node) for each in components for node in each.read):
            raise NotSimulatedError(f"a weight in a mixture depends on {name} itself")
        for part in parts:
            if part.density.family in MATRICES or (
                part.density.family not in VECTORS
                and (any(self._cuts(part)) or tag(part.parameter.transformation) in _SORTED)
            ):
                raise NotSimulatedError(f"a constraint of {name} cuts a mixture")
        return _Mixture(parts, tuple(each.log_weight for each in components))

    def _draw(self, term: Density, fixed: frozenset[str]) -> _Draw:
        if term.own or term.cumulative or term.factor != 1:
            raise NotSimulatedError(f"{term.name} is not a known density")
        variate, shape = _variate(term.args[0])
        base = _base(variate)
        parameter = None if base is None else self._parameters.get(name_of(base))
        if parameter is None:
            raise NotSimulatedError(f"{term.name} is not a density of a parameter as declared")
        draw = _Draw(parameter, variate, shape, term)
        self._check(draw, fixed)
        return draw

    # Whether what a constraint leaves of a distribution depends on parameters

    def _check(self, draw: _Draw, fixed: frozenset[str]) -> None:
        """Refuse a density that a constraint cuts by a mass that depends on parameters."""
        family, constraint = draw.density.family, tag(draw.parameter.transformation)
        cut = truncation(draw.density)
        if family in MATRICES:
            if constraint not in MATRICES[family] or tag(draw.density.truncation) != "NoTruncate":
                raise NotSimulatedError(f"{family} of a parameter with another constraint")
            return
        if family in VECTORS:
            if not constraint_of(draw.parameter.transformation).free:
                raise NotSimulatedError(f"{family} of a parameter with a constraint")
            return
        if constraint in _SORTED and (
            _has_single_element(draw) or any(map(is_container, draw.density.args[1:]))
        ):
            raise NotSimulatedError("elements in order have distributions of their own")
        bounds = _bounds(draw.parameter)
        if not any(self._cuts(draw)):
            return
        if cut == Truncation() and cut_in_half(draw.density, self._support(draw)):
            return
        ends = [each for each in (cut.low, cut.high) if each is not None]
        if not all(_is_fixed(each, fixed) for each in (*draw.density.args[1:], *ends, *bounds)):
            raise NotSimulatedError(
                f"the mass of {family} that the constraint of {draw.parameter.name} leaves "
                "depends on parameters"
            )

    @staticmethod
    def _support(draw: _Draw) -> tuple[End, End] | None:
        """Return the bounds of each number."""
        constraint = tag(draw.parameter.transformation)
        return _SORTED.get(constraint) or declared_support(draw.parameter)

    def _cuts(self, draw: _Draw) -> tuple[bool, bool]:
        """Whether a parameter's constraint cuts a distribution below, and above."""
        own = self._support(draw)
        if own is None:
            raise NotSimulatedError("a density of single numbers under a joint constraint")
        whole = support(draw.density, truncation(draw.density)) or (-math.inf, math.inf)
        return _ends_before(own[0], whole[0], 1), _ends_before(own[1], whole[1], -1)

    def _region(self, draw: _Draw) -> Region:
        """Return where the numbers that are drawn lie."""
        constraint = tag(draw.parameter.transformation)
        cut, (low, high) = truncation(draw.density), self._cuts(draw)
        bounds = [_given(each) for each in _bounds(draw.parameter)] or [Given("0")]
        least, most = (None if each is None else _given(each) for each in (cut.low, cut.high))
        lows = [] if least is None else [least]
        highs = [] if most is None else [most]
        lows += bounds[:1] if low else []
        highs += bounds[-1:] if high else []
        if tag(expr(draw.variate)) != "Variable" and any(e.several for e in (*lows, *highs)):
            raise NotSimulatedError("elements with bounds of their own are drawn one by one")
        half = cut == Truncation() and cut_in_half(draw.density, self._support(draw))
        if constraint in _SORTED or ((low or high) and not half):
            self._normalised = False  # how much of the mass is left is not known
        return Region(tuple(lows), tuple(highs), least, most, constraint in _SORTED, half)

    def _text(self, draw: _Draw | _Mixture, drawing: Drawing) -> str:
        """Text that draws."""
        if isinstance(draw, _Mixture):
            apart = drawing.apart()
            texts = [self._text(each, apart) for each in draw.parts]
            densities = [_call(each.density) for each in draw.parts]
            return drawing.one_of(texts, densities, draw.log_weights)
        family = draw.density.family
        numbers = family not in MATRICES and family not in VECTORS
        given = [
            Given(
                StanText().expression(each),
                is_container(each) if numbers else tag(type_of(each)) == "UArray",
            )
            for each in draw.density.args[1:]
        ]
        region = self._region(draw) if numbers else Region()
        at = StanText().expression(draw.variate)
        return drawing.drawn(at, draw.shape, family, given, region)

    def _uses(self, node: Node, kept: set[int]) -> Uses:
        """Return what a statement uses, without what is left out of it."""
        reads, writes, draws = set[str](), set[str](), set[str]()
        for each in all_statements((node,)):
            if id(each) not in kept:
                continue
            drawn = self._draws.get(id(each), [])
            # What is drawn is named, but not read, and nothing reads terms that are unknown.
            places = {id(_base(part.variate)) for draw in drawn for part in draw.parts}
            places |= self._in_unknown
            for part in own_nodes(each):
                if has_field(part, "id_loc") and id(part) not in places:
                    reads.add(name_of(part))
            for draw in drawn:
                draws.add(draw.parameter.name)
                reads |= names(draw.parameter.transformation)
            writes |= written_by(each)
        return Uses(frozenset(reads), frozenset(writes), frozenset(draws))

    @cached_property
    def _in_unknown(self) -> set[int]:
        """Identities of all nodes in terms that are unknown."""
        return {id(each) for unknown in self._unknown for each in walk(unknown.nodes)}

    # Parameters without a density

    def _undrawn(self) -> list[Parameter]:
        drawn = {each.parameter.name for some in self._draws.values() for each in some}
        drawn |= self._left_out
        return [each for name, each in self._parameters.items() if name not in drawn]

    def _flat(self, parameter: Parameter, drawing: Drawing) -> str:
        """Text that draws a parameter from the flat density on its bounded support."""
        kind, sizes = parameter.kind, []
        while tag(kind) == "SArray":
            _, kind, size = items(kind)
            sizes.append(StanText().expression(size))
        constraint, bounds = tag(parameter.transformation), _bounds(parameter)
        if constraint not in _FLAT or not all(_is_fixed(each, self._fixed) for each in bounds):
            raise NotSimulatedError(f"{parameter.name} has no density, and no fixed bounds")
        shape = _SHAPES.get(tag(kind))
        if shape is None or (sizes and any(map(is_container, bounds))):
            raise NotSimulatedError(f"{parameter.name} has no density, and is not of one kind")
        turns = [self._names.of(f"turn_{each}") for each in range(len(sizes))]
        at = f"{parameter.name}[{', '.join(turns)}]" if turns else parameter.name
        if constraint == "UnitVector":
            text = drawing.uniform_direction(at)
        else:
            family, *given = _FLAT[constraint]
            args = [Given(each.format(at)) for each in given] or [_given(each) for each in bounds]
            text = drawing.drawn(at, shape, family, args, Region())
        for turn, size in reversed(list(zip(turns, sizes, strict=True))):
            text = f"for ({turn} in 1 : {size}) {{\n{text}\n}}"
        return f"{text}\n"


_SORTED: Mapping[str, tuple[End, End]] = {
    "Ordered": (-math.inf, math.inf),
    "PositiveOrdered": (0.0, math.inf),
}
"""Constraints to an order, and where each element lies."""

_FLAT = {
    "LowerUpper": ("uniform",),
    "Simplex": ("dirichlet", "rep_vector(1, num_elements({0}))"),
    "Correlation": ("lkj_corr", "1"),
    "UnitVector": ("",),
}
"""Constraints to a bounded support, and a distribution that is flat on it with its arguments."""

_SHAPES: Mapping[str, Shape] = {
    "SReal": "real",
    "SVector": "vector",
    "SRowVector": "row_vector",
    "SMatrix": "matrix",
}
"""Shapes of what is declared."""


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


def _is_linear(parameter: Parameter) -> bool:
    """Whether Stan's unconstrained parameters are a linear function, at one scale, of it."""
    return tag(parameter.transformation) in ("Identity", "SumToZero")


def _bounds(parameter: Parameter) -> list[Node]:
    """Return the bounds that a parameter is declared with."""
    if tag(parameter.transformation) not in ("Lower", "Upper", "LowerUpper"):
        return []
    return list(items(parameter.transformation)[1:])


def _given(node: Node) -> Given:
    return Given(StanText().expression(node), is_container(node))


def _call(density: Density) -> str:
    """Text of a density with all its constants."""
    variate, *behind = map(StanText().expression, density.args)
    return f"{density.family}_lpdf({variate} | {', '.join(behind)})"


def _is_fixed(node: Node, fixed: frozenset[str]) -> bool:
    """Whether an expression has no variables but these."""
    return variables(node) <= fixed


def _variate(node: Node) -> tuple[Node, Shape]:
    """Return what is drawn and how it is filled."""
    form = expr(node)
    if tag(form) == "Paren":
        return _variate(items(form)[1])
    if tag(form) == "FunApp" and name_of(items(form)[2]) == "to_vector":
        (inner,) = items(items(form)[3])
        node = inner
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


def _has_single_element(draw: _Draw) -> bool:
    """Whether a draw is not of a whole vector as it is declared."""
    form = expr(draw.variate)
    if tag(form) == "Indexed" and any(tag(each) != "Single" for each in items(items(form)[2])):
        return True
    return draw.shape != "vector"


class _Statements(NeededStatements):
    """Writes the statements that are needed, with draws in place of densities."""

    texts: Mapping[int, str]
    uses: Callable[[Node, set[int]], Uses]

    def statements(self, nodes: Node) -> str:
        """Text of statements, in an order in which they read only what has been drawn."""
        kept = [each for each in items(nodes) if id(each) in self._kept]
        order = in_sequence([self.uses(each, self._kept) for each in kept])
        if order is None:
            raise NotSimulatedError("densities depend on each other in a circle")
        return "\n".join(filter(None, (self.statement(kept[each]) for each in order)))

    def _write_Tilde(self, form: Node, node: Node) -> str:
        return self.texts[id(node)]

    def _write_TargetPE(self, form: Node, node: Node) -> str:
        return self.texts[id(node)]

    def _write_Profile(self, form: Node, _: Node) -> str:
        return f"{{\n{self.statements(items(form)[2])}\n}}"


def _assembled(blocks: Mapping[str, str]) -> str:
    needed = {name: body for name, body in blocks.items() if body.strip() or name == "model"}
    return "\n".join(f"{name} {{\n{body}\n}}" for name, body in needed.items())
