"""Statements that are passed through twice, so that a likelihood of zero has no gradient.

At beta = 0 a point where the likelihood is zero is as good as any other, but Stan's automatic
differentiation does not know: the logarithm of a zero has an infinite slope, 0 times which is not
a number, and NUTS never comes there.  So the statements are passed through first at copies of the
parameters that pass no gradient on; where the likelihood is zero there, what is tempered is left
out of the second pass, at the parameters themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from harness.temper.accumulate import TargetFunction
from harness.temper.classify import Term
from harness.temper.parameters import Parameter
from harness.temper.text import StanText
from harness.temper.transformed import LocalStatements
from harness.temper.tree import Node, expr, items, name_of, tag

_COMMENT = """// Twice: where the likelihood is zero its gradient may not be a number, and
// NUTS would not come there. So it is evaluated first at copies of the
// parameters through which no gradient passes (that of round() is 0, and
// times 2^500 no digit is lost by it); if it is zero, it is left out at the
// parameters themselves.
"""

_NUMBERS = {"SReal", "SVector", "SRowVector", "SMatrix"}


def can_be_copied(parameter: Parameter) -> bool:
    """Whether a parameter consists of real numbers, for which round() stands."""
    kind = parameter.kind
    while tag(kind) == "SArray":
        kind = items(kind)[1]
    return tag(kind) in _NUMBERS


class Passes:
    """Two passes through a program's statements.

    Parameters
    ----------
    parameters
        The program's parameters, of which :func:`can_be_copied` is true.
    name
        Gives the program's name for one of ours.
    """

    def __init__(self, parameters: Iterable[Parameter], name: Callable[[str], str]) -> None:
        self._parameters = tuple(parameters)
        self._copies = {each.name: name(f"{each.name}_copy") for each in self._parameters}
        self._possible, self._pass = map(name, ("possible", "pass"))

    def writer(
        self,
        functions: Mapping[str, TargetFunction],
        accumulator: Callable[[Term], str | None],
        terms: Callable[[Node], tuple[Term, ...]],
        where: Callable[[Node], str],
        outside: set[str],
    ) -> GuardedStatements:
        """Return what writes the statements, as :class:`LocalStatements` does for one pass."""
        writer = GuardedStatements(functions, accumulator, terms, where, outside)
        writer.copies, writer.condition = self._copies, self._possible
        return writer

    def text(self, statements: str, tempered: str, ends: str) -> str:
        """Text of both passes.

        Parameters
        ----------
        statements
            Text of the statements, and of what they add to.
        tempered
            What the tempered ones add to.
        ends
            Text of what becomes of the sums.
        """
        plain = StanText()
        # Every digit is kept of 0 and of numbers between 1e-135 and 1e157.
        copies = "\n".join(
            f"{plain.sized(each.kind, 'Identity')} {self._copies[each.name]} = "
            f"{self._pass} == 1 ? ldexp(round(ldexp({each.name}, 500)), -500) : {each.name};"
            for each in self._parameters
        )
        return (
            f"{_COMMENT}int {self._possible} = 1;\n"
            f"for ({self._pass} in 1 : 2) {{\n{copies}\n{statements}\n"
            f"if (!{self._possible}) {{\n{tempered} = negative_infinity();\n}}\n"
            f"{self._possible} = {tempered} != negative_infinity();\n{ends}\n}}"
        )


class GuardedStatements(LocalStatements):
    """Writes statements at copies of the parameters, what is tempered under a condition."""

    copies: Mapping[str, str] = {}
    """Names of the copies, by parameter."""
    condition = ""
    """Name of the condition."""

    def expression(self, node: Node) -> str:
        """Text of an expression, in the copies."""
        form = expr(node)
        if tag(form) == "Variable":
            name = name_of(items(form)[1])
            if name in self.copies:
                return self.copies[name]
        return super().expression(node)

    def _add(self, node: Node, value: str) -> str:
        add = super()._add
        return self._guarded(lambda: add(node, value))

    def _write_TargetPE(self, form: Node, node: Node) -> str:
        write = super()._write_TargetPE
        return self._guarded(lambda: write(form, node))

    def _write_Tilde(self, form: Node, node: Node) -> str:
        write = super()._write_Tilde
        return self._guarded(lambda: write(form, node))

    def _guarded(self, write: Callable[[], str]) -> str:
        """Text of what is not tempered, and then of what is, under the condition."""
        every = self._accumulator
        self._accumulator = lambda term: None if term.tempered else every(term)
        plain = write()
        self._accumulator = lambda term: every(term) if term.tempered else None
        guarded = write()
        self._accumulator = every
        if guarded:
            guarded = f"if ({self.condition}) {{\n{guarded}\n}}"
        return "\n".join(filter(None, (plain, guarded)))
