"""Write a program that draws from a program's prior by simulating it, where its statements allow.

Each parameter is drawn once, by Stan's own random numbers, from a distribution whose arguments are
known by then (:mod:`harness.temper.prior_draws`).  Where a constraint cuts a distribution, draws
outside are drawn again.  This is the prior only if the mass that is left does not depend on
parameters: Stan does not divide by it, but for ``T[low, high]``.  If it does depend on them, all
parameters are drawn again together: the density of a draw with a number outside is 0, and whoever
runs the program leaves that draw out.

The text may not show how to draw a parameter without a constraint, for instance one that a
conditional autoregression links.  It is left to :mod:`harness.user.gaussian_part`, if nothing that
is drawn depends on it.

What is decided here is decided by the text.  Whether the draws are those of the prior is checked
when they have been drawn, because the program that is written also sums up the density that it
draws from; see :mod:`harness.user.simulated`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from harness.temper.accumulate import rewritten_functions
from harness.temper.classify import Classification, is_target_call
from harness.temper.coordinates import is_jacobian
from harness.temper.drawn import HAVE_MASSES, Drawing, Given, NotSimulatedError, Region, Shape
from harness.temper.library import Names
from harness.temper.marks import Marks
from harness.temper.needed import needed
from harness.temper.parameters import Parameter
from harness.temper.prior import NeededStatements
from harness.temper.prior_draws import Draw, Mixture, PriorDraws, bounds_of, is_fixed
from harness.temper.sequence import Uses, in_sequence
from harness.temper.sums import Density
from harness.temper.supports import (
    MATRICES,
    VECTORS,
    truncation,
)
from harness.temper.syntax import Syntax
from harness.temper.text import StanText
from harness.temper.tree import (
    Node,
    all_statements,
    expr,
    has_field,
    is_container,
    items,
    name_of,
    names,
    own_nodes,
    tag,
    type_of,
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


class _Simulator:
    def __init__(self, syntax: Syntax, classification: Classification) -> None:
        self._syntax = syntax
        self._classification = classification
        self._names = Names(names(tuple(syntax.blocks.values())))
        self._draws = PriorDraws(syntax, classification)
        self._normalised = True

    def simulation(self) -> Simulation:
        blocks = self._syntax.blocks
        body = (*blocks["transformedparameters"], *blocks["model"])
        draws = self._draws.by_statement
        # Whoever runs it leaves out what the prior rejects.
        rejects = self._classification.rejects
        kept = needed(body, lambda node: id(node) in draws, rejects)
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
            for key, some in draws.items()
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
            for name in sorted(self._uses(each, kept).reads & self._draws.left_out):
                raise NotSimulatedError(f"what is drawn depends on {name}, which is not")
        rows = [
            *(
                f"{plain.sized(p.kind, 'Identity')} {p.name};"
                for p in self._draws.parameters.values()
            ),
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
            tuple(name for name in self._draws.parameters if name in self._draws.left_out),
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

    def _region(self, draw: Draw) -> Region:
        """Return where the numbers that are drawn lie."""
        cut, (low, high) = truncation(draw.density), draw.cuts
        bounds = [_given(each) for each in bounds_of(draw.parameter)] or [Given("0")]
        least, most = (None if each is None else _given(each) for each in (cut.low, cut.high))
        lows = [] if least is None else [least]
        highs = [] if most is None else [most]
        lows += bounds[:1] if low else []
        highs += bounds[-1:] if high else []
        if tag(expr(draw.variate)) != "Variable" and any(e.several for e in (*lows, *highs)):
            raise NotSimulatedError("elements with bounds of their own are drawn one by one")
        half = draw.halves
        if (low or high) and not half and not draw.by_rejection:
            if draw.density.family in HAVE_MASSES and least is None and most is None:
                least, most = bounds[0] if low else None, bounds[-1] if high else None
            else:
                self._normalised = False  # how much of the mass is left is not known
        declared = tuple(bounds) if draw.by_rejection else ()
        return Region(tuple(lows), tuple(highs), least, most, draw.in_order, half, declared)

    def _text(self, draw: Draw | Mixture, drawing: Drawing) -> str:
        """Text that draws."""
        if isinstance(draw, Mixture):
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
            drawn = self._draws.by_statement.get(id(each), [])
            # What is drawn is named, but not read, and nothing reads terms that are unknown.
            places = {id(part.identifier) for draw in drawn for part in draw.parts}
            places |= self._draws.in_unknown
            for part in own_nodes(each):
                if has_field(part, "id_loc") and id(part) not in places:
                    reads.add(name_of(part))
            for draw in drawn:
                draws.add(draw.parameter.name)
                reads |= names(draw.parameter.transformation)
            writes |= written_by(each)
        return Uses(frozenset(reads), frozenset(writes), frozenset(draws))

    # Parameters without a density

    def _undrawn(self) -> list[Parameter]:
        drawn = self._draws.drawn | self._draws.left_out
        return [each for name, each in self._draws.parameters.items() if name not in drawn]

    def _flat(self, parameter: Parameter, drawing: Drawing) -> str:
        """Text that draws a parameter from the flat density on its bounded support."""
        kind, sizes = parameter.kind, []
        while tag(kind) == "SArray":
            _, kind, size = items(kind)
            sizes.append(StanText().expression(size))
        constraint, bounds = tag(parameter.transformation), bounds_of(parameter)
        if constraint not in _FLAT or not all(is_fixed(each, self._draws.fixed) for each in bounds):
            raise NotSimulatedError(f"{parameter.name} has no density, and no fixed bounds")
        shape = _SHAPES.get(tag(kind))
        if shape is None or (sizes and any(map(is_container, bounds))):
            raise NotSimulatedError(f"{parameter.name} has no density, and is not of one kind")
        turns = [self._names.of(f"turn_{each}") for each in range(len(sizes))]
        at = _element(parameter.name, turns)
        if constraint in _IN_LINES:
            shape, count, place = _IN_LINES[constraint]
            sizes.append(f"{count}({at})")
            turns.append(self._names.of(f"turn_{len(turns)}"))
            at = _element(parameter.name, [*turns[:-1], place.format(turns[-1])])
        if constraint == "UnitVector":
            text = drawing.uniform_direction(at)
        else:
            family, *given = _FLAT[constraint]
            args = [Given(each.format(at)) for each in given] or [_given(each) for each in bounds]
            text = drawing.drawn(at, shape, family, args, Region())
        for turn, size in reversed(list(zip(turns, sizes, strict=True))):
            text = f"for ({turn} in 1 : {size}) {{\n{text}\n}}"
        return f"{text}\n"


_FLAT = {
    "LowerUpper": ("uniform",),
    **dict.fromkeys(
        ("Simplex", "StochasticRow", "StochasticColumn"),
        ("dirichlet", "rep_vector(1, num_elements({0}))"),
    ),
    "Correlation": ("lkj_corr", "1"),
    "UnitVector": ("",),
}
"""Constraints to a bounded support, and a distribution that is flat on it with its arguments."""

_IN_LINES: Mapping[str, tuple[Shape, str, str]] = {
    "StochasticRow": ("row_vector", "rows", "{0}"),
    "StochasticColumn": ("vector", "cols", " : , {0}"),
}
"""Constraints of each row or column of a matrix: its shape, the function that counts them, and the
index of one."""

_SHAPES: Mapping[str, Shape] = {
    "SReal": "real",
    "SVector": "vector",
    "SRowVector": "row_vector",
    "SMatrix": "matrix",
}
"""Shapes of what is declared."""


def _element(name: str, indices: Sequence[str]) -> str:
    return f"{name}[{', '.join(indices)}]" if indices else name


def _given(node: Node) -> Given:
    return Given(StanText().expression(node), is_container(node))


def _call(density: Density) -> str:
    """Text of a density with all its constants."""
    variate, *behind = map(StanText().expression, density.args)
    return f"{density.family}_lpdf({variate} | {', '.join(behind)})"


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
