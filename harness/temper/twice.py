"""Evaluate the tempered statements twice, so that NUTS can visit points of zero likelihood.

At beta = 0 a point where the likelihood is zero is as good as any other.  Stan's automatic
differentiation does not know that: the logarithm of zero has an infinite slope, 0 times infinity is
not a number, and so NUTS never gets there.  We therefore evaluate the tempered part first at copies
of the parameters that pass no gradient on.  If the likelihood is zero there, the second pass, at
the parameters themselves, leaves the tempered part out.  What the program computes before, in
separate statements, stays in that pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from harness.temper.parameters import Parameter
from harness.temper.text import StanText
from harness.temper.transformed import LocalStatements
from harness.temper.tree import Node, expr, items, name_of, tag

_COMMENT = """
// Where the likelihood is zero its gradient may not be a number, and NUTS
// would not come there. So it is evaluated first at copies of the parameters
// through which no gradient passes (that of round() is 0, and times 2^500 no
// digit is lost by it); where it is zero, it is left out below.
"""

_NUMBERS = {"SReal", "SVector", "SRowVector", "SMatrix"}


def can_be_copied(parameter: Parameter) -> bool:
    """Whether a parameter consists of real numbers, to which round() can be applied."""
    kind = parameter.kind
    while tag(kind) == "SArray":
        kind = items(kind)[1]
    return tag(kind) in _NUMBERS


class Copies(LocalStatements):
    """Writes statements at copies of the parameters, with only the tempered terms they add."""

    names: Mapping[str, str] = {}
    """Names of the copies, by parameter."""

    def expression(self, node: Node) -> str:
        """Text of an expression, in the copies."""
        form = expr(node)
        if tag(form) == "Variable":
            name = name_of(items(form)[1])
            return self.names.get(name, super().expression(node))
        return super().expression(node)


class Guarded(LocalStatements):
    """Writes statements, with the tempered terms that they add under a condition."""

    condition = ""
    """Its name."""

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


def first_pass(
    copies: Copies,
    parameters: Iterable[Parameter],
    blocks: Iterable[Node],
    *,
    tempered: str,
    condition: str,
) -> str:
    """Text that determines whether the likelihood is above zero, and passes no gradient on.

    Parameters
    ----------
    copies
        Writes the statements.
    parameters
        The program's parameters, of which :func:`can_be_copied` is true.
    blocks
        The statements, block after block.
    tempered
        Name of what the tempered ones add to.
    condition
        Name of what is declared, 1 where the likelihood is above zero.
    """
    plain = StanText()
    # Every digit is kept of 0 and of numbers between 1e-135 and 1e157.
    rows = [
        f"{plain.sized(each.kind, 'Identity')} {copies.names[each.name]} = "
        f"ldexp(round(ldexp({each.name}, 500)), -500);"
        for each in parameters
    ]
    rows.append(f"real {tempered} = 0;")
    rows += map(copies.statements, blocks)
    rows.append(f"{condition} = {tempered} != negative_infinity();")
    inner = "\n".join(rows)
    return f"{_COMMENT}int {condition};\n{{\n{inner}\n}}"


def left_out(tempered: str, condition: str) -> str:
    """Text, after the second pass, of what was left out of it."""
    return f"if (!{condition}) {{\n{tempered} = negative_infinity();\n}}"
