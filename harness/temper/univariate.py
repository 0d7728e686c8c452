"""Write a program that lists the prior of each element of the parameters, if it is univariate.

The parameters become data whose values number their elements.  Each statement that gives some of
them a prior then notes, for those numbers, which statement it is and what stands behind its bar.
So Stan itself works out loops, indices, transformed data and functions of the program's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from harness.errors import DataError
from harness.temper.accumulate import rewritten_functions
from harness.temper.additions import Addition, Notes
from harness.temper.classify import Classification, classify
from harness.temper.declared import sizes_of
from harness.temper.interpret import notes
from harness.temper.library import Names
from harness.temper.marks import Marks
from harness.temper.needed import needed
from harness.temper.parameters import Parameter, parameters
from harness.temper.prior import NeededStatements
from harness.temper.rules import listed
from harness.temper.supports import truncation
from harness.temper.syntax import Syntax
from harness.temper.text import StanText, as_text, statement_text
from harness.temper.tree import (
    Node,
    inner_statements,
    is_container,
    items,
    names,
    stmt,
    tag,
    type_of,
)

NUMBER, TIMES, ARGUMENTS, CUT, BOUNDS = 0, 1, slice(2, 5), slice(5, 7), slice(7, 9)
"""Columns of what the program lists: number of the statement, from 1; how many statements there
are; arguments of the distribution; ends that it is cut to; bounds of the parameter."""
_COLUMNS = BOUNDS.stop
_MOST_ARGUMENTS = ARGUMENTS.stop - ARGUMENTS.start


@dataclass(frozen=True)
class Stated:
    """A statement that gives elements a prior: the distribution's name in Stan, and where it is."""

    family: str
    where: str


@dataclass(frozen=True)
class Listing:
    """A program that lists priors.

    Attributes
    ----------
    text
        Its text.  It takes the original's data.
    listed
        Its generated quantity: a matrix with a row for each element of the parameters, one
        parameter after the other and the last index fastest, and the columns above.
    flat
        Text of a program with the original's parameters whose density is constant, so that on
        Stan's unconstrained space only the Jacobian is left.
    stated
        Its statements.
    simplexes
        Parameters that are simplexes.
    """

    text: str
    listed: str
    flat: str
    stated: tuple[Stated, ...]
    simplexes: frozenset[str]


def list_priors(syntax: Syntax, numbers: Mapping[str, int], name: str) -> Listing:
    """Write the program that lists the priors of another one.

    Parameters
    ----------
    syntax
        The program.
    numbers
        Whole numbers among its data.
    name
        What messages call it.

    Raises
    ------
    DataError
        If its prior is not a product of distributions of single elements, or of simplexes, whose
        arguments are data.
    """
    return _Lister(syntax, classify(syntax, "likelihood", numbers), notes(syntax, numbers), name)()


class _Lister:
    def __init__(
        self, syntax: Syntax, classification: Classification, notes: Notes, name: str
    ) -> None:
        self._syntax = syntax
        self._terms = classification.terms
        self._notes = notes
        self._name = name
        self._parameters = parameters(syntax)
        self._names = Names(names(tuple(syntax.blocks.values())))

    def __call__(self) -> Listing:
        """Return the program."""
        stated: list[Stated] = []
        found: dict[int, list[tuple[int, Addition]]] = {}
        for block in ("transformedparameters", "model"):
            for node in self._nodes(self._syntax.blocks[block]):
                for each in self._kept(node):
                    where = f"line {self._syntax.line(node).number}, `{_short(node)}`"
                    problem = _problem(each)
                    if problem is not None:
                        raise DataError(
                            f"the prior of {self._name} cannot be drawn by quantiles, one for "
                            f"each element, because of {where}: {problem}"
                        )
                    assert each.density is not None  # noqa: S101 - else there is a problem
                    stated.append(Stated(each.density.family, where))
                    found.setdefault(id(node), []).append((len(stated), each))
        return self._written(found, tuple(stated))

    def _nodes(self, nodes: tuple[Node, ...]) -> list[Node]:
        """Return statements that add to the target, in the program's order, inner ones too."""
        found, waiting = [], list(nodes)
        while waiting:
            each = waiting.pop(0)
            if id(each) in self._terms:
                found.append(each)
            waiting = inner_statements(stmt(each)) + waiting
        return found

    def _kept(self, node: Node) -> list[Addition]:
        """Return what a statement adds to the prior, without constants."""
        found: list[Addition] = []
        known = self._notes.additions.get(id(node), [])
        for term in self._terms[id(node)]:
            if not term.tempered:
                own = {id(each) for _, each in term.terms}
                found += [each for each in known if not own or id(each.node) in own]
        return [each for each in found if _touched(each)]

    def _written(
        self, found: Mapping[int, list[tuple[int, Addition]]], stated: tuple[Stated, ...]
    ) -> Listing:
        marks, blocks = Marks(), self._syntax.blocks
        defined, functions = rewritten_functions(
            blocks["function"], self._name, self._names.pick, marks
        )
        taken, put = self._names.of("listed"), self._names.of("put_prior")
        writer = _Listing(
            functions,
            lambda _: None,
            lambda node: self._terms[id(node)],
            lambda node: str(self._syntax.line(node)),
            needed(
                (*blocks["transformedparameters"], *blocks["model"]),
                lambda node: id(node) in found,
                self._notes.data_rejects,
            ),
        )
        writer.calls = {
            node: [f"{taken} = {put}({taken}, {_arguments(*each)});" for each in some]
            for node, some in found.items()
        }
        plain = StanText()
        data = plain.statements(blocks["data"])
        transformed = plain.statements(blocks["transformeddata"])
        own = plain.statements(blocks["parameters"])
        statements = "\n".join(
            writer.statements(blocks[block]) for block in ("transformedparameters", "model")
        )
        before = (
            f"functions {{\n{defined}\n%s}}\ndata {{\n{data}\n}}\n"
            f"transformed data {{\n{transformed}\n%s}}\n"
        )
        sizes = " + ".join(map(self._size, self._parameters))
        work = (
            f"matrix[{sizes}, {_COLUMNS}] {taken} = rep_matrix(0, {sizes}, {_COLUMNS});\n"
            f"{self._numbered(taken)}{{\n{statements}\n}}\n"
        )
        result, unused = self._names.of("priors"), self._names.of("unused")
        return Listing(
            before
            % (_PUT.replace("put_prior", put), work)
            + f"parameters {{\nreal {unused};\n}}\nmodel {{\n{unused} ~ std_normal();\n}}\n"
            f"generated quantities {{\nmatrix[{sizes}, {_COLUMNS}] {result} = {taken};\n}}\n",
            result,
            before % ("", "") + f"parameters {{\n{own}\n}}\nmodel {{\n}}\n",
            stated,
            frozenset(e.name for e in self._parameters if tag(e.transformation) == "Simplex"),
        )

    def _size(self, parameter: Parameter) -> str:
        axes = sizes_of(parameter.kind)
        if axes is None:
            raise DataError(
                f"the prior of {self._name} cannot be drawn by quantiles: {parameter.name} is a "
                "tuple"
            )
        return " * ".join(f"({as_text(each)})" for each in axes) or "1"

    def _numbered(self, taken: str) -> str:
        """Text that declares the parameters, numbers their elements and notes their bounds."""
        plain = StanText()
        count = self._names.of("count")
        rows = [f"int {count} = 0;"]
        own = {each.name for each in self._parameters}
        for each in self._parameters:
            kind = tag(each.transformation)
            if kind not in _CONSTRAINTS or names(each.transformation) & own:
                raise DataError(
                    f"the prior of {self._name} cannot be drawn by quantiles, one for each "
                    f"element, because of the constraint of {each.name}"
                )
            axes = sizes_of(each.kind) or []
            at = [self._names.of(f"at_{number + 1}") for number in range(len(axes))]
            rows.append(f"{plain.sized(each.kind, 'Identity')} {each.name};")
            loops = [f"for ({i} in 1 : {as_text(n)}) {{" for i, n in zip(at, axes, strict=True)]
            ends = {"Lower": (0, None), "Upper": (None, 0), "LowerUpper": (0, 1)}.get(kind)
            low, high = ("negative_infinity()", "positive_infinity()")
            if kind == "Simplex":
                low, high = "0", "1"
            if ends is not None:
                low, high = (
                    free if place is None else _at(items(each.transformation)[1 + place], at)
                    for place, free in zip(ends, (low, high), strict=True)
                )
            rows += [
                *(loops or ["{"]),
                f"{count} += 1;",
                f"{each.name}{_index(at)} = {count};",
                f"{taken}[{count}, {BOUNDS.start + 1}] = {low};",
                f"{taken}[{count}, {BOUNDS.stop}] = {high};",
                "}" * max(1, len(loops)),
            ]
        return "\n".join(rows) + "\n"


class _Listing(NeededStatements):
    """Writes statements that note priors in place of those that add to the target."""

    calls: Mapping[int, list[str]]

    def _write_Tilde(self, form: Node, node: Node) -> str:
        return "\n".join(self.calls.get(id(node), []))

    def _write_TargetPE(self, form: Node, node: Node) -> str:
        return "\n".join(self.calls.get(id(node), []))

    def _write_Reject(self, form: Node, node: Node) -> str:
        return ""  # the parameters' values are only numbers here

    def _write_FatalError(self, form: Node, _: Node) -> str:
        return ""


def _touched(addition: Addition) -> bool:
    """Whether it depends on parameters."""
    return bool(addition.value.touched or addition.given.touched or addition.context.value.touched)


def _problem(addition: Addition) -> str | None:
    """Say why an addition to the prior is not a distribution of single elements, or None."""
    density = addition.density
    if addition.called or addition.jacobian or density is None or density.own:
        return "it is not a distribution of Stan's"
    if density.cumulative or addition.sign != "+" or density.factor != 1:
        return "it is not a distribution of Stan's"
    given = addition.given.touched | addition.value.given | addition.given.given
    if given:
        return f"its arguments depend on {listed(each.parameter for each in given)}"
    deciding = addition.context.value.parameters
    if deciding:
        return f"{listed(deciding)} decides whether it counts"
    if addition.value.itself is None:
        return "it is not a distribution of a parameter as it is declared"
    if len(density.args) - 1 > _MOST_ARGUMENTS or not all(map(_is_flat, density.args)):
        return "it is a distribution of several elements together"
    return None


def _is_flat(node: Node) -> bool:
    """Whether an expression is a number, a vector, a matrix or an array of numbers."""
    kind = type_of(node)
    return tag(kind) != "UArray" or tag(items(kind)[1]) in ("UReal", "UInt")


def _arguments(number: int, addition: Addition) -> str:
    density = addition.density
    assert density is not None  # noqa: S101 - the caller has checked it
    cut = truncation(density)
    absent = [None] * (_MOST_ARGUMENTS + 1 - len(density.args))
    return ", ".join(
        (
            str(number),
            *map(_vector, (*density.args, *absent)),
            "negative_infinity()" if cut.low is None else as_text(cut.low),
            "positive_infinity()" if cut.high is None else as_text(cut.high),
        )
    )


def _vector(node: Node | None) -> str:
    """Text of an expression as a vector."""
    if node is None:
        return "rep_vector(0, 1)"
    text = as_text(node)
    return f"to_vector({text})" if is_container(node) else f"rep_vector({text}, 1)"


def _at(bound: Node, at: list[str]) -> str:
    """Text of a bound at an element: it is one number, or has the parameter's last axes."""
    kind, axes = type_of(bound), 0
    while tag(kind) == "UArray":
        kind, axes = items(kind)[1], axes + 1
    axes += {"UVector": 1, "URowVector": 1, "UMatrix": 2}.get(tag(kind), 0)
    return f"({as_text(bound)}){_index(at[len(at) - axes :])}" if axes else as_text(bound)


def _index(at: list[str]) -> str:
    return f"[{', '.join(at)}]" if at else ""


def _short(node: Node) -> str:
    return statement_text(node).partition(" {")[0]


_CONSTRAINTS = (
    *("Identity", "Offset", "Multiplier", "OffsetMultiplier", "Simplex"),
    *("Lower", "Upper", "LowerUpper"),
)

_PUT = """matrix put_prior(matrix listed, real number, vector at, vector a, vector b, vector c,
                 real low, real high) {
  matrix[rows(listed), cols(listed)] more = listed;
  int most = max({num_elements(at), num_elements(a), num_elements(b), num_elements(c)});
  for (n in 1 : most) {
    for (row in 1 : rows(listed)) {
      if (abs(at[min(n, num_elements(at))] - row) < 0.5) {
        more[row, 1] = number;
        more[row, 2] += 1;
        more[row, 3] = a[min(n, num_elements(a))];
        more[row, 4] = b[min(n, num_elements(b))];
        more[row, 5] = c[min(n, num_elements(c))];
        more[row, 6] = low;
        more[row, 7] = high;
      }
    }
  }
  return more;
}
"""
