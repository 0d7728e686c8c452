"""Write a program that holds only the untempered part of another one: its prior."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from harness.temper.accumulate import TargetFunction, rewritten_functions
from harness.temper.classify import Classification, Term
from harness.temper.coordinates import is_jacobian
from harness.temper.library import Names
from harness.temper.marks import Marks
from harness.temper.needed import needed
from harness.temper.parameters import parameters
from harness.temper.syntax import WORDS, Syntax
from harness.temper.transformed import LocalStatements
from harness.temper.tree import Node, has_field, items, names, stmt, walk
from harness.temper.write import Written, assembled, own_block, own_statements, unchanged


def write_prior(syntax: Syntax, classification: Classification) -> Written:
    """Write the program whose density is what another one does not temper.

    It has the original's parameters, Stan's Jacobians and all constants.  Statements of the
    original's transformed parameters and of its model that only what is tempered needs are left
    out, as are those that reject points because of data.  What is left is in the model block; but
    where the original changes variables by functions of Stan's, which no other block may, it is in
    transformed parameters.  Constraints of the original's transformed parameters are not checked,
    so that it may be over more than the original allows; :mod:`harness.temper.ranges` tells where
    they certainly hold.

    Raises
    ------
    DataError
        If something in the program cannot be written; the message says which line and why.
    """
    marks = Marks()
    given = Names(names(tuple(syntax.blocks.values())))
    defined, functions = rewritten_functions(
        syntax.blocks["function"], str(syntax.path), given.pick, marks
    )
    outside = any(map(is_jacobian, walk(syntax.blocks["transformedparameters"])))
    to = given.of("log_prior") if outside else "target"
    kept = needed(
        (*syntax.blocks["transformedparameters"], *syntax.blocks["model"]),
        lambda node: _adds(node, classification),
        classification.data_rejects,
    )
    writer = NeededStatements(
        functions,
        lambda term: None if term.tempered else to,
        lambda node: classification.terms[id(node)],
        lambda node: str(syntax.line(node)),
        kept,
    )
    writer.marks = marks
    body = "\n".join(
        filter(
            None,
            (
                own_statements(syntax, marks, name, writer)
                for name in ("transformedparameters", "model")
            ),
        )
    )
    base = given.of("log_base") if outside else ""
    blocks = {
        "functions": own_block(syntax, marks, "function", defined),
        **{
            name: own_block(syntax, marks, WORDS[name], unchanged(syntax, marks, WORDS[name]))
            for name in ("data", "transformed data", "parameters")
        },
        "transformed parameters": (
            f"real {base};\n{{\nreal {to} = 0;\n{body}\n{base} = {to};\n}}" if outside else ""
        ),
        "model": f"target += {base};" if outside else body,
    }
    return Written(
        assembled(syntax, marks, blocks),
        marks,
        {},
        {each.name: each.name for each in parameters(syntax)},
    )


def _adds(node: Node, classification: Classification) -> bool:
    """Whether a statement adds to the prior."""
    terms = classification.terms.get(id(node), ())
    return not all(each.tempered for each in terms) or _changes_variables(node)


def _changes_variables(node: Node) -> bool:
    """Whether a statement, but for those in it, calls a function of Stan's that adds a Jacobian."""
    form = stmt(node)
    waiting = list(form) if isinstance(form, tuple) else []
    while waiting:
        each = waiting.pop()
        if is_jacobian(each):
            return True
        if not isinstance(each, str) and not has_field(each, "stmt"):
            waiting.extend(each)
    return False


class NeededStatements(LocalStatements):
    """Writes the statements that are needed."""

    def __init__(
        self,
        functions: Mapping[str, TargetFunction],
        accumulator: Callable[[Term], str | None],
        terms: Callable[[Node], tuple[Term, ...]],
        where: Callable[[Node], str],
        kept: set[int],
    ) -> None:
        super().__init__(functions, accumulator, terms, where, set())
        self._kept = kept

    def statement(self, node: Node) -> str:
        """Text of a statement, or nothing."""
        return super().statement(node) if id(node) in self._kept else ""

    def block(self, node: Node) -> str:
        """Text of a statement in braces, with nothing in them if it is not needed."""
        return super().block(node) if id(node) in self._kept else "{\n}"

    def _write_IfThenElse(self, form: Node, node: Node) -> str:
        head, condition, yes, no = items(form)
        if any(id(each) not in self._kept for each in items(no)):
            form = (head, condition, yes, ())
        return super()._write_IfThenElse(form, node)
