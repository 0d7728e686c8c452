"""Rewrite statements so that what they add to the target is added to variables instead.

Densities keep their constants.  Each of the program's own functions that adds to the target becomes
two: one returns what it added, and one returns its value, if it has one.  So the program's density
can be computed outside its model block, where there is no target.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from harness.errors import DataError
from harness.temper.classify import Term, is_target_call
from harness.temper.marks import Marks
from harness.temper.text import StanText
from harness.temper.tree import (
    Node,
    field,
    is_container,
    items,
    name_of,
    own_nodes,
    stmt,
    tag,
    type_of,
    walk,
)


@dataclass(frozen=True)
class TargetFunction:
    """Names of the functions that a function which adds to the target becomes."""

    density: str
    value: str | None


class Accumulating(StanText):
    """Writes statements that add to variables what was added to the target.

    Parameters
    ----------
    functions
        What the functions that add to the target become.
    accumulator
        Gives the variable that a term of a statement adds to; None for none.
    terms
        Gives the terms of a statement.
    where
        Says where a statement is, for messages.
    """

    def __init__(
        self,
        functions: Mapping[str, TargetFunction],
        accumulator: Callable[[Term], str | None],
        terms: Callable[[Node], tuple[Term, ...]],
        where: Callable[[Node], str],
    ) -> None:
        self._functions = functions
        self._accumulator = accumulator
        self._terms = terms
        self._where = where

    # Where the target is read

    def statement(self, node: Node) -> str:
        """Text of a statement, preceded by what the functions that it calls add."""
        form = stmt(node)
        if tag(form) == "Print":
            return ""  # it would print for each pseudo-sample at each gradient
        if any(each == "GetTarget" for each in own_nodes(node)):
            raise DataError(
                f"{self._where(node)}: target() is read here, which has no meaning where a part "
                "of it is tempered"
            )
        text = super().statement(node)
        if tag(form) == "NRFunApp":
            return text
        calls = [each for each in own_nodes(node) if is_target_call(each)]
        if not calls:
            return text
        unsure = [each for each in own_nodes(node) if tag(each) in ("TernaryIf", "And", "Or")]
        if unsure or tag(form) in ("While", "IfThenElse"):
            raise DataError(
                f"{self._where(node)}: a function that adds to the target is called where it is "
                "not sure to be called once; call it in a statement of its own"
            )
        added = "\n".join(self._density_of(call, node) for call in calls)
        if tag(form) in ("For", "ForEach"):
            added = self.beside(node, "before", added)
        return f"{added}\n{text}"

    def _density_of(self, call: Node, node: Node) -> str:
        _, _, identifier, args = items(call)
        name = self._functions[name_of(identifier)].density
        return self._add(node, f"{name}({self.expressions(args)})")

    def call(self, form: Node) -> str:
        """Text of a call, for the value alone of a function that adds to the target."""
        if is_target_call(form):
            _, _, identifier, args = items(form)
            value = self._functions[name_of(identifier)].value
            return f"{value}({self.expressions(args)})"
        return super().call(form)

    def variable(self, identifier: Node) -> str:
        """Text of a name; no density drops its constants."""
        name = name_of(identifier)
        for dropping, keeping in (("_lupdf", "_lpdf"), ("_lupmf", "_lpmf")):
            if name.endswith(dropping):
                return name.removesuffix(dropping) + keeping
        return name

    # Where it is added to

    def _add(self, node: Node, value: str) -> str:
        (term,) = self._terms(node)
        to = self._accumulator(term)
        return "" if to is None else f"{to} += {value};"

    def _write_NRFunApp(self, form: Node, node: Node) -> str:
        return (
            self._density_of(form, node)
            if is_target_call(form)
            else super()._write_NRFunApp(form, node)
        )

    def _write_TargetPE(self, form: Node, node: Node) -> str:
        whole = items(form)[1]
        rows = []
        for term in self._terms(node):
            to = self._accumulator(term)
            if to is None:
                continue
            if term.terms:
                sums = " ".join(f"{s} {self.expression(each)}" for s, each in term.terms)
                rows.append(f"{to} += {sums.removeprefix('+ ')};")
            else:
                rows.append(self._summed(to, self.expression(whole), type_of(whole)))
        return "\n".join(rows)

    def _write_JacobianPE(self, form: Node, node: Node) -> str:
        return self._write_TargetPE(form, node)

    def _summed(self, to: str, value: str, kind: Node) -> str:
        if tag(kind) in ("UReal", "UInt"):
            return f"{to} += {value};"
        if tag(kind) == "UArray" and tag(items(kind)[1]) not in ("UReal", "UInt"):
            return f"for (term_ in {value}) {{\n{self._summed(to, 'term_', items(kind)[1])}\n}}"
        return f"{to} += sum({value});"

    def _write_Tilde(self, form: Node, node: Node) -> str:
        (term,) = self._terms(node)
        to = self._accumulator(term)
        if to is None:
            return ""
        arg, args = field(form, "arg"), items(field(form, "args"))
        name = name_of(field(form, "distribution"))
        discrete = any(each == "FnLpmf" for each in walk(field(form, "kind")))
        given = ", ".join(map(self.expression, args))
        suffix = "_lpmf" if discrete else "_lpdf"
        rows = [f"{to} += {name}{suffix}({self.expression(arg)} | {given});"]
        truncation = field(form, "truncation")
        if tag(truncation) != "NoTruncate":
            rows.append(self._truncated(to, name, arg, args, truncation, discrete=discrete))
        return "\n".join(rows)

    def _truncated(
        self,
        to: str,
        name: str,
        arg: Node,
        args: tuple[Node, ...],
        truncation: Node,
        *,
        discrete: bool,
    ) -> str:
        """Return what truncation adds: nothing outside, and the mass inside divided out."""
        given = ", ".join(map(self.expression, args))
        ends = [self.expression(each) for each in items(truncation)[1:]]
        low = ends[0] if tag(truncation) != "TruncateDownFrom" else None
        high = ends[-1] if tag(truncation) != "TruncateUpFrom" else None
        # The mass below a whole number's lower bound does not include the bound's own.
        below = f"({low}) - 1" if discrete else low
        if high is None:
            mass = f"{name}_lccdf({below} | {given})"
        elif low is None:
            mass = f"{name}_lcdf({high} | {given})"
        else:
            mass = f"log_diff_exp({name}_lcdf({high} | {given}), {name}_lcdf({below} | {given}))"
        value = self.expression(arg)
        least, most = value, value
        if is_container(arg):
            least, most = f"min({value})", f"max({value})"
            # One mass for all values, unless the distribution has parameters for each.
            if not any(map(is_container, args)):
                mass = f"size({value}) * {mass}"
        outside = []
        if low is not None:
            outside.append(f"{least} < {low}")
        if high is not None:
            outside.append(f"{most} > {high}")
        return (
            f"if ({' || '.join(outside)}) {{\n{to} += negative_infinity();\n}}\n"
            f"else {{\n{to} += -{mass};\n}}"
        )


class _DensityFunction(Accumulating):
    """Writes a function that adds to the target as one that returns what it adds."""

    def __init__(
        self, functions: Mapping[str, TargetFunction], where: Callable[[Node], str], to: str
    ) -> None:
        super().__init__(functions, lambda _: to, lambda _: (Term(True),), where)
        self._to = to

    def _write_FunDef(self, form: Node, node: Node) -> str:
        name = self._functions[name_of(field(form, "funname"))].density
        head = f"real {name}({self.arguments(form)})"
        body = stmt(field(form, "body"))
        if tag(body) == "Skip":
            return f"{head};"
        inner = items(items(body)[1])
        returns = bool(inner) and tag(stmt(inner[-1])) in ("Return", "ReturnVoid")
        rows = [
            self.head(node, f"{head} {{"),
            self.beside(node, "start", f"real {self._to} = 0;"),
            self.statements(items(body)[1]),
            "" if returns else self.beside(node, "stop", f"return {self._to};"),
            "}",
        ]
        return "\n".join(filter(None, rows))

    def _write_Return(self, _form: Node, _: Node) -> str:
        return f"return {self._to};"

    _write_ReturnVoid = _write_Return


class _ValueFunction(Accumulating):
    """Writes a function that adds to the target as one that returns its value alone."""

    def __init__(
        self, functions: Mapping[str, TargetFunction], where: Callable[[Node], str]
    ) -> None:
        super().__init__(functions, lambda _: None, lambda _: (Term(True),), where)

    def _write_FunDef(self, form: Node, _: Node) -> str:
        name = self._functions[name_of(field(form, "funname"))].value
        result = self.unsized(field(form, "returntype"))
        head = f"{result} {name}({self.arguments(form)})"
        body = field(form, "body")
        return f"{head};" if tag(stmt(body)) == "Skip" else f"{head} {self.block(body)}"


def rewritten_functions(
    definitions: Iterable[Node], where: str, pick: Callable[[str], str], marks: Marks
) -> tuple[str, dict[str, TargetFunction]]:
    """Write a program's functions, and rewrite those that add to the target.

    Parameters
    ----------
    definitions
        Statements of the functions block.
    where
        Name of the program, for messages.
    pick
        Gives a name that the program does not use.
    marks
        Notes what is written.

    Returns
    -------
    tuple
        The text, and the new names of the functions that add to the target.
    """
    nodes = list(definitions)
    functions: dict[str, TargetFunction] = {}
    for node in nodes:
        form = stmt(node)
        name = name_of(field(form, "funname"))
        for suffix in ("_lp", "_jacobian"):
            if name.endswith(suffix) and name not in functions:
                stem = name.removesuffix(suffix)
                void = tag(field(form, "returntype")) == "Void"
                functions[name] = TargetFunction(
                    pick(f"{stem}_log_density"), None if void else pick(f"{stem}_value")
                )
    plain = StanText()
    rows = []
    for node in nodes:
        name = name_of(field(stmt(node), "funname"))

        def said(_: Node, name: str = name) -> str:
            return f"{where}, in function {name}"

        if name not in functions:
            rows.append(marks.statement(node, plain.statement(node)))
            continue
        density = _DensityFunction(functions, said, pick("lp"))
        density.marks = marks
        rows.append(density.marked(node))
        if functions[name].value is not None:
            value = _ValueFunction(functions, said).statement(node)
            rows.append(marks.beside(node, "after", value))
    return "\n".join(rows), functions
