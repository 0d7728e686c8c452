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
    type_of,
    walk,
)

What = Literal["likelihood", "all"]
"""What is tempered: the likelihood, so that the base is the prior, or the whole density."""

CONSTANT = ""
"""Stands among names of data for a number in the program that is given a density."""

_DENSITIES = ("_lpdf", "_lpmf", "_lupdf", "_lupmf", "_log")
_CUMULATIVE = ("_lcdf", "_lccdf")
_SIZES = {"size", "num_elements", "rows", "cols", "dims", "rank"}
_FILLED = {"rep_vector", "rep_row_vector", "rep_matrix", "rep_array"}


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


class _Flow:
    """Names that flow into the value of each variable: of data, and of parameters."""

    def __init__(self, syntax: Syntax) -> None:
        self.dimensioned: set[str] = set()
        self.counts: set[str] = set()
        self.parameters: set[str] = set()
        self._into: dict[str, frozenset[str]] = {}
        for node in syntax.blocks["data"]:
            for name in declared_names(node):
                kind = tag(field(stmt(node), "decl_type"))
                if kind not in ("SInt", "SReal"):
                    self.dimensioned.add(name)
                elif kind == "SInt":
                    self.counts.add(name)
                self._into[name] = frozenset([name])
        for node in syntax.blocks["parameters"]:
            for name in declared_names(node):
                self.parameters.add(name)
                self._into[name] = frozenset([name])
        while self._pass(syntax):
            pass

    def of(self, expression: Node) -> frozenset[str]:
        """Names that flow into an expression's value."""
        form = expr(expression)
        kind = tag(form)
        if kind == "GetTarget":
            return frozenset()
        parts = items(form)[1:]
        if kind == "Variable":
            return self._into.get(name_of(parts[0]), frozenset())
        if kind == "Indexed":
            return self.of(parts[0])
        if kind in ("CondDistApp", "FunApp"):
            _, _, identifier, given = items(form)
            name, args = name_of(identifier), items(given)
            if name.endswith(_CUMULATIVE) or name.endswith(_DENSITIES):
                return self.of_density(name, args)
            if name in _SIZES:
                return frozenset()
            if name in _FILLED:
                args = args[:1]
            return self.any_of(args)
        return self.any_of(_inner(parts))

    def of_density(self, name: str, args: tuple[Node, ...]) -> frozenset[str]:
        """Names that flow into what is given a density, by a call of it."""
        if all(map(is_data_only, args)):
            return frozenset()  # a constant, as that of a truncated prior
        flows = self.of(args[0])
        if not flows and is_data_only(args[0]) and not name.endswith(_CUMULATIVE):
            return frozenset([CONSTANT])
        return flows

    def any_of(self, expressions: Iterable[Node]) -> frozenset[str]:
        """Names that flow into any of some expressions."""
        return frozenset().union(*map(self.of, expressions))

    def data(self, flows: frozenset[str], *, counts: bool = False) -> list[str]:
        """Names of data among those that flow; numbers only where they count something."""
        known = self.dimensioned | {CONSTANT} | (self.counts if counts else set())
        return sorted(flows & known)

    def _pass(self, syntax: Syntax) -> bool:
        before = dict(self._into)
        for block in ("transformeddata", "transformedparameters", "model"):
            for node in walk(syntax.blocks[block]):
                self._follow(node)
        return self._into != before

    def _follow(self, node: Node) -> None:
        kind = tag(node) if not isinstance(node, str) and node and isinstance(node[0], str) else ""
        if kind == "Assignment":
            flows = self.of(field(node, "assign_rhs"))
            for each in walk(field(node, "assign_lhs")):
                if not isinstance(each, str) and each and each[0] == "LVariable":
                    self._add(name_of(each[1]), flows)
        elif kind == "VarDecl":
            for each in items(field(node, "variables")):
                initial = items(field(each, "initial_value"))
                if initial:
                    self._add(name_of(field(each, "identifier")), self.of(initial[0]))
        elif kind == "ForEach":
            self._add(name_of(items(node)[1]), self.of(items(node)[2]))

    def _add(self, name: str, flows: frozenset[str]) -> None:
        self._into[name] = self._into.get(name, frozenset()) | flows


def _inner(parts: Iterable[Node]) -> list[Node]:
    """Return the expressions among the parts of a constructor, and in lists among them."""
    found = []
    for part in parts:
        if has_field(part, "expr"):
            found.append(part)
        elif not isinstance(part, str):
            found += _inner(part)
    return found


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
        self._flow = _Flow(syntax)
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
        if is_data_only(args[0]) and (flows or not name.endswith(_CUMULATIVE)):
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
            constant = call[0].endswith(_CUMULATIVE) and not self._flow.of_density(*call)
            if constant and groups:
                # What normalises a truncated density goes with it.
                group, tempered, why, flows = groups[-1]
                groups[-1] = ((*group, term), tempered, why, flows)
            else:
                groups.append(((term,), *self._of_density(*call)))
        kinds = {tempered for _, tempered, _, _ in groups}
        return groups if len(kinds) == 2 else None

    def _cover(self, flows: frozenset[str], tempered: bool, override: bool | None) -> None:
        if not (tempered if override is None else override):
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
        if name.endswith(_DENSITIES + _CUMULATIVE) and items(args):
            return name, items(args)
    return None


def _holds_density(expression: Node) -> bool:
    return any(
        not isinstance(each, str)
        and len(each) == 4
        and each[0] in ("CondDistApp", "FunApp")
        and name_of(each[2]).endswith(_DENSITIES)
        for each in walk(expression)
    )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(name or "(a number)" for name in dict.fromkeys(names))


def is_container(expression: Node) -> bool:
    """Whether an expression has more than one value."""
    return tag(type_of(expression)) not in ("UReal", "UInt", "UComplex")
