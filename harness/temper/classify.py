"""Which statements of a program give data their density, and which are of the prior.

A density belongs to whatever stands before its bar: `y ~ normal(mu, sigma)` is of the likelihood
where y is data, `mu ~ normal(m, s)` of the prior whatever m and s are.  What flows into a value is
followed through transformed data, transformed parameters and locals; indices and sizes do not
count, since `theta[county]` is no data.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from harness.errors import DataError
from harness.temper.flow import CUMULATIVE, DENSITIES, Flow
from harness.temper.syntax import Syntax
from harness.temper.text import as_text, statement_text
from harness.temper.tree import (
    Node,
    declared_names,
    expr,
    field,
    has_field,
    is_data_only,
    items,
    name_of,
    stmt,
    tag,
    walk,
)

What = Literal["likelihood", "all"]
"""What is tempered: the likelihood, so that the base is the prior, or the whole density."""


@dataclass(frozen=True)
class Statement:
    """A statement of the program, or a term of one, that adds to the log density.

    Attributes
    ----------
    line
        Its line in the program, or in the file that it is included from.
    text
        Its text, on one line.
    tempered
        Whether an inverse temperature multiplies it.
    why
        Why, in a few words.
    file
        Name of the file that holds the line.
    """

    line: int
    text: str
    tempered: bool
    why: str
    file: str = ""


@dataclass(frozen=True)
class Term:
    """A part of what a statement adds: all of it, or some terms of its sum, with their signs."""

    tempered: bool
    terms: tuple[tuple[str, Node], ...] = ()


@dataclass(frozen=True)
class Classification:
    """What each statement adds to, by the identity of its node, and the same for people."""

    terms: Mapping[int, tuple[Term, ...]]
    statements: tuple[Statement, ...]
    uncovered: tuple[str, ...]
    """Parameters that no statement of the prior gives a density."""


def classify(syntax: Syntax, what: What) -> Classification:
    """Classify every statement that adds to the log density.

    Raises
    ------
    DataError
        If a comment ``// temper:`` says neither yes nor no.
    """
    return _Classifier(syntax, what).classification()


class _Classifier:
    def __init__(self, syntax: Syntax, what: What) -> None:
        self._syntax = syntax
        self._what = what
        self._flow = Flow(syntax)
        self._terms: dict[int, tuple[Term, ...]] = {}
        self._told: list[Statement] = []
        self._covered: set[str] = set()

    def classification(self) -> Classification:
        for block in ("transformedparameters", "model"):
            for node in self._syntax.blocks[block]:
                self._visit(node, None, [])
        flow = self._flow
        uncovered = tuple(
            name
            for node in self._syntax.blocks["parameters"]
            for name in declared_names(node)
            if name in flow.parameters - self._covered
        )
        return Classification(self._terms, tuple(self._told), uncovered)

    def _visit(self, node: Node, override: bool | None, conditions: list[str]) -> None:
        """Classify a statement and those in it, which take over an override and conditions."""
        form = stmt(node)
        kind = tag(form)
        override = self._override(node, override)
        inside = conditions
        if kind in ("IfThenElse", "While"):
            inside = conditions + self._flow.data(self._flow.of(items(form)[1]))
        if kind in ("Block", "Profile", "For", "ForEach", "While", "IfThenElse"):
            for each in _statements_in(form):
                self._visit(each, override, inside)
        elif kind == "Tilde":
            args = (field(form, "arg"), *items(field(form, "args")))
            self._density(node, f"{name_of(field(form, 'distribution'))}_lpdf", args, override)
        elif kind == "TargetPE":
            self._increment(node, override, conditions)
        elif kind == "JacobianPE":
            self._tell(node, (), False, "a change of variables", override)
        else:
            calls = [each for each in walk(form) if is_target_call(each)]
            if calls:
                given = [arg for call in calls for arg in items(items(call)[3])]
                data = self._flow.data(self._flow.any_of(given))
                why = f"called with data {_listed(data)}" if data else "called with no data"
                jacobian = all("FnJacobian" in items(call)[1] for call in calls)
                if jacobian:
                    data, why = [], "a change of variables"
                self._cover(self._flow.any_of(given), bool(data), override)
                self._tell(node, (), bool(data), why, override)

    def _density(
        self, node: Node, name: str, args: tuple[Node, ...], override: bool | None
    ) -> None:
        tempered, why, flows = self._of_density(name, args)
        self._cover(flows, tempered, override)
        self._tell(node, (), tempered, why, override)

    def _of_density(self, name: str, args: tuple[Node, ...]) -> tuple[bool, str, frozenset[str]]:
        """Classify a density by what it is the density of."""
        flows = self._flow.of(args[0])
        data = self._flow.data(self._flow.of_density(name, args))
        if is_data_only(args[0]) and (flows or not name.endswith(CUMULATIVE)):
            return True, f"a density of data {as_text(args[0])}", flows
        if data:
            return (
                True,
                f"a density of {as_text(args[0])}, into which data {_listed(data)} flow",
                flows,
            )
        return False, f"a density of {as_text(args[0])}, no data", flows

    def _increment(self, node: Node, override: bool | None, conditions: list[str]) -> None:
        """Classify ``target += sum``, term by term where each term is a density."""
        total = items(stmt(node))[1]
        terms = list(_terms(total, "+"))
        groups = self._groups(terms)
        if groups is not None:
            for term, tempered, why, flows in groups:
                self._cover(flows, tempered, override)
                self._tell(node, term, tempered, why, override)
            return
        flows = self._flow.of(total)
        data = self._flow.data(flows, counts=True)
        call = _density_call(total)
        if call is not None:
            self._density(node, *call, override)
            return
        if data:
            why = f"data {_listed(data)} flow into it"
        elif conditions and not _holds_density(total):
            data, why = conditions, f"it depends on data {_listed(conditions)} by a condition"
        else:
            why = "no data flow into it"
        self._cover(flows, bool(data), override)
        self._tell(node, (), bool(data), why, override)

    def _groups(
        self, terms: list[tuple[str, Node]]
    ) -> list[tuple[tuple[tuple[str, Node], ...], bool, str, frozenset[str]]] | None:
        """Return the terms of a sum in groups, if they are densities and not all of one kind."""
        calls = [_density_call(term) for _, term in terms]
        groups: list[tuple[tuple[tuple[str, Node], ...], bool, str, frozenset[str]]] = []
        for term, call in zip(terms, calls, strict=True):
            if call is None:
                return None
            constant = call[0].endswith(CUMULATIVE) and not self._flow.of_density(*call)
            if constant and groups:
                # What normalises a truncated density goes with it.
                group, tempered, why, flows = groups[-1]
                groups[-1] = ((*group, term), tempered, why, flows)
            else:
                groups.append(((term,), *self._of_density(*call)))
        kinds = {tempered for _, tempered, _, _ in groups}
        return groups if len(kinds) == 2 else None

    def _cover(self, flows: frozenset[str], tempered: bool, override: bool | None) -> None:
        if override is None:
            override = tempered or self._what == "all"
        if not override:
            self._covered |= flows & self._flow.parameters

    def _tell(
        self,
        node: Node,
        terms: tuple[tuple[str, Node], ...],
        tempered: bool,
        why: str,
        override: bool | None,
    ) -> None:
        if override is not None:
            tempered, why = override, "as a comment says"
        elif self._what == "all":
            tempered, why = True, "everything is tempered"
        text = statement_text(node)
        if terms:
            text = f"target += {signed(terms)};"
        line = self._syntax.line(node)
        self._told.append(Statement(line.number, text, tempered, why, str(line.file)))
        before = self._terms.get(id(node), ())
        self._terms[id(node)] = (*before, Term(tempered, terms))

    def _override(self, node: Node, inherited: bool | None) -> bool | None:
        word = self._syntax.override(node)
        if word is None or tag(stmt(node)) in ("VarDecl", "Skip"):
            return inherited
        if word not in ("yes", "no"):
            raise DataError(
                f"{self._syntax.line(node)}: '// temper:' is followed by yes or no, not by '{word}'"
            )
        return word == "yes"


def is_target_call(node: Node) -> bool:
    """Whether a constructor calls a function of the program's own that adds to the target."""
    return (
        not isinstance(node, str)
        and len(node) == 4
        and node[0] in ("FunApp", "NRFunApp")
        and node[1] in (("UserDefined", "FnTarget"), ("UserDefined", "FnJacobian"))
    )


def _statements_in(form: Node) -> list[Node]:
    """Return the statements that a compound statement holds, in their order."""
    found: list[Node] = []
    for part in items(form)[1:]:
        if has_field(part, "stmt"):
            found.append(part)
        elif not isinstance(part, str):
            found += [each for each in part if has_field(each, "stmt")]
    return found


def _terms(expression: Node, sign: str) -> Iterable[tuple[str, Node]]:
    """Yield the terms of a sum with their signs."""
    form = expr(expression)
    kind = tag(form)
    if kind == "BinOp" and tag(items(form)[2]) in ("Plus", "Minus"):
        _, left, operator, right = items(form)
        yield from _terms(left, sign)
        yield from _terms(right, sign if tag(operator) == "Plus" else "-+"[sign == "-"])
    elif kind == "Paren":
        yield from _terms(items(form)[1], sign)
    else:
        yield sign, expression


def signed(terms: tuple[tuple[str, Node], ...]) -> str:
    """Text of some terms of a sum."""
    text = " ".join(f"{sign} {as_text(term)}" for sign, term in terms)
    return text.removeprefix("+ ")


def _density_call(expression: Node) -> tuple[str, tuple[Node, ...]] | None:
    """Name and arguments of an expression that is a density, perhaps times a number."""
    form = expr(expression)
    if tag(form) == "Paren":
        return _density_call(items(form)[1])
    if tag(form) == "BinOp" and tag(items(form)[2]) == "Times":
        _, left, _, right = items(form)
        if tag(expr(left)) in ("IntNumeral", "RealNumeral"):
            return _density_call(right)
    if tag(form) in ("CondDistApp", "FunApp"):
        _, _, identifier, args = items(form)
        name = name_of(identifier)
        if name.endswith(DENSITIES + CUMULATIVE) and items(args):
            return name, items(args)
    return None


def _holds_density(expression: Node) -> bool:
    return any(
        not isinstance(each, str)
        and len(each) == 4
        and each[0] in ("CondDistApp", "FunApp")
        and name_of(each[2]).endswith(DENSITIES)
        for each in walk(expression)
    )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(name or "(a number)" for name in dict.fromkeys(names))
