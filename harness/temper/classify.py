"""Which statements of a program are its likelihood, and which are its prior.

The rules are those of :mod:`harness.temper.rules`; a comment ``// temper: yes`` or
``// temper: no`` on a statement's line overrides them.  The terms of a sum in one statement are
classified separately if some of them are densities of parameters.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

from harness.errors import DataError
from harness.temper.additions import Addition
from harness.temper.base import Base, base_of
from harness.temper.entries import Kept
from harness.temper.interpret import notes
from harness.temper.rules import Finding, Rules, listed
from harness.temper.sums import one_distribution, signed
from harness.temper.syntax import Syntax
from harness.temper.text import statement_text
from harness.temper.tree import Node, has_field, inner_statements, stmt, tag

What = Literal["likelihood", "all"]
"""What is tempered: the likelihood, so that the base is the prior, or the whole density."""
_NOTHING_ELSE = "nothing else gives data a density"


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
    unsure
        Whether the text does not decide it, so that a comment should decide.
    """

    line: int
    text: str
    tempered: bool
    why: str
    file: str = ""
    unsure: bool = False

    @property
    def question(self) -> str:
        """What to ask somebody who knows the model, in one sentence or two."""
        part, other = ("likelihood", "prior") if self.tempered else ("prior", "likelihood")
        word = "no" if self.tempered else "yes"
        return (
            f"line {self.line}: `{self.text}`: {self.why}; it is taken as part of the {part}. If "
            f"it is part of the {other}, write `// temper: {word}` on its line"
        )


@dataclass(frozen=True)
class Term:
    """A part of what a statement adds: all of it, or some terms of its sum, with their signs."""

    tempered: bool
    terms: tuple[tuple[str, Node], ...] = ()


@dataclass(frozen=True)
class Classification:
    """The part that each statement adds to, by the identity of its node, and a list for people."""

    terms: Mapping[int, tuple[Term, ...]]
    statements: tuple[Statement, ...]
    base: Base
    """What is left of the program without the part that is tempered."""
    rejects: frozenset[int]
    """Identities of statements that may reject points."""
    data_rejects: frozenset[int]
    """Those where data decide it, which are part of the likelihood."""
    bounded_by_data: Mapping[str, tuple[str, ...]]
    """Data that have a likelihood and are in bounds of parameters, by the parameter's name."""

    @property
    def questions(self) -> tuple[str, ...]:
        """What to ask somebody who knows the model about what belongs to the prior."""
        return (
            *(each.question for each in self.statements if each.unsure),
            *(
                f"the bounds of {name} depend on data that have a likelihood ({', '.join(data)}); "
                "they are taken as part of the prior, and log Z is for the prior within them, "
                "divided by its integral there. If they are part of the likelihood, add the log of "
                "that integral to log Z, or declare the parameter without them and reject() points"
                for name, data in self.bounded_by_data.items()
            ),
        )


def classify(
    syntax: Syntax, what: What, numbers: Mapping[str, int] = MappingProxyType({})
) -> Classification:
    """Classify every statement that adds to the log density.

    Parameters
    ----------
    syntax
        The program.
    what
        What is tempered where no comment says otherwise.
    numbers
        Whole numbers among its data, as far as they are known.

    Raises
    ------
    DataError
        If a comment ``// temper:`` says neither yes nor no.
    """
    return _Classifier(syntax, what, numbers).classification()


@dataclass(frozen=True)
class _Group:
    """Additions of one statement that go together."""

    node: Node
    additions: tuple[Addition, ...]
    finding: Finding
    part: bool
    """Whether the statement adds something else as well."""


class _Classifier:
    def __init__(self, syntax: Syntax, what: What, numbers: Mapping[str, int]) -> None:
        self._syntax = syntax
        self._what = what
        self._notes = notes(syntax, numbers)

    def classification(self) -> Classification:
        nodes = [
            pair
            for block in ("transformedparameters", "model")
            for node in self._syntax.blocks[block]
            for pair in self._adding(node, None)
        ]
        known = self._notes.additions
        kept = [each for node, said in nodes if not said for each in known[id(node)]]
        rules = Rules(self._notes, kept)
        groups: list[_Group] = []
        for node, said in nodes:
            if said is not None or self._what == "all":
                why = "everything is tempered" if said is None else "as a comment says"
                finding = Finding(said is not False, why)
                groups.append(_Group(node, tuple(known[id(node)]), finding, part=False))
            else:
                groups += _grouped(node, known[id(node)], rules)
        groups = _something_tempered(groups)
        terms: dict[int, tuple[Term, ...]] = {}
        for each in groups:
            parts = tuple((a.sign, a.node) for a in each.additions) if each.part else ()
            before = terms.get(id(each.node), ())
            terms[id(each.node)] = (*before, Term(each.finding.tempered, parts))
        told = tuple(map(self._told, groups))
        left = [
            Kept(f"line {said.line}, `{said.text}`", each.additions)
            for each, said in zip(groups, told, strict=True)
            if not said.tempered
        ]
        by_data = self._notes.data_rejects
        rejects = by_data | frozenset(map(id, self._notes.rejects))
        base = base_of(self._syntax, self._notes, left)
        observed = frozenset[str]().union(
            *(a.value.data for each in groups if each.finding.tempered for a in each.additions)
        )
        bounded = {
            name: tuple(sorted(data & observed))
            for name, data in self._notes.bounds.items()
            if data & observed
        }
        return Classification(terms, told, base, rejects, by_data, bounded)

    def _adding(self, node: Node, inherited: bool | None) -> Iterator[tuple[Node, bool | None]]:
        """Yield the statements that add something, with what comments say of them."""
        said = self._override(node, inherited)
        if id(node) in self._notes.additions or _calls_target(stmt(node)):
            self._notes.additions.setdefault(id(node), [])
            yield node, said
        for each in inner_statements(stmt(node)):
            yield from self._adding(each, said)

    def _override(self, node: Node, inherited: bool | None) -> bool | None:
        word = self._syntax.override(node)
        if word is None or tag(stmt(node)) in ("VarDecl", "Skip"):
            return inherited
        if word not in ("yes", "no"):
            raise DataError(
                f"{self._syntax.line(node)}: '// temper:' must be followed by yes or no, not by "
                f"'{word}'"
            )
        return word == "yes"

    def _told(self, group: _Group) -> Statement:
        text = statement_text(group.node)
        if inner_statements(stmt(group.node)):
            text = text.partition(" {")[0]  # a loop whose bounds call a function that adds
        if group.part:
            text = f"target += {signed(tuple((a.sign, a.node) for a in group.additions))};"
        line, finding = self._syntax.line(group.node), group.finding
        return Statement(
            line.number, text, finding.tempered, finding.why, str(line.file), finding.unsure
        )


def _grouped(node: Node, additions: list[Addition], rules: Rules) -> list[_Group]:
    """Classify what a statement adds: as a whole, or with the densities of parameters apart."""
    if any(each.called for each in additions) or not additions:
        return [_Group(node, tuple(additions), _called(additions, rules), part=False)]
    groups: list[list[Addition]] = []
    findings: list[Finding] = []
    rest: list[Addition] | None = None
    for each in additions:
        if groups and (rules.is_constant(each) or _normalises(each, groups[-1])):
            # A term that normalises a truncated density goes with it.
            groups[-1].append(each)
            continue
        finding = rules.finding(each)
        if each.density is not None and not finding.tempered:
            groups.append([each])
            findings.append(finding)
        elif rest is None:
            rest = [each]
            groups.append(rest)
            findings.append(finding)
        else:
            rest.append(each)
    if rest is not None:
        findings[[id(each) for each in groups].index(id(rest))] = rules.together(rest)
    if len({each.tempered for each in findings}) == 2:
        pairs = zip(groups, findings, strict=True)
        return [_Group(node, tuple(some), finding, part=True) for some, finding in pairs]
    finding = findings[0] if len(findings) == 1 else rules.together(additions)
    if finding.tempered != findings[0].tempered:
        finding = next((each for each in findings if each.unsure), findings[0])
    return [_Group(node, tuple(additions), finding, part=False)]


def _normalises(addition: Addition, group: list[Addition]) -> bool:
    """Whether a term is the mass that a truncated density before it is divided by."""
    mass, density = addition.density, group[-1].density
    if mass is None or density is None:
        return False
    return mass.cumulative and one_distribution(mass, density)


def _called(additions: list[Addition], rules: Rules) -> Finding:
    """Classify a call of a function that adds to the target, by all that it adds."""
    findings = [rules.finding(each) for each in additions]
    if additions and all(each.jacobian for each in additions):
        return findings[0]
    data = frozenset[str]().union(
        *(a.value.data | a.value.conditions | a.value.choices for a in additions)
    )
    tempered = [each for each in findings if each.tempered]
    if not tempered:
        unsure = [each for each in findings if each.unsure]
        hint = any(each.hint for each in findings)
        return replace(unsure[0] if unsure else Finding(False, "called with no data"), hint=hint)
    why = f"called with data {listed(data)}"
    if len(tempered) < len(findings):
        return Finding(True, f"{why}, and adds to the prior as well", unsure=True)
    return Finding(True, why, unsure=any(each.unsure for each in tempered))


def _something_tempered(groups: list[_Group]) -> list[_Group]:
    """Classify unsure statements as likelihood if nothing else is; be sure of what must be."""
    tempered = [each for each in groups if each.finding.tempered]
    if len(tempered) == 1 and tempered[0].finding.decided and tempered[0].finding.unsure:
        finding = tempered[0].finding
        sure = replace(finding, why=f"{finding.why}; {_NOTHING_ELSE}", unsure=False)
        only = replace(tempered[0], finding=sure)
        groups = [only if each is tempered[0] else each for each in groups]
    if tempered:
        return [
            replace(each, finding=replace(each.finding, unsure=True)) if each.finding.asks else each
            for each in groups
        ]
    unsure = any(each.finding.unsure for each in groups)

    def again(group: _Group) -> _Group:
        finding = group.finding
        if not (finding.unsure if unsure else finding.hint):
            return group
        why = finding.why if unsure else "single numbers among data reach it"
        finding = Finding(True, f"{why}; {_NOTHING_ELSE}", unsure=True)
        return replace(group, finding=finding)

    return [again(each) for each in groups]


def _calls_target(form: Node) -> bool:
    """Whether a statement by itself calls a function that adds to the target."""
    if is_target_call(form):
        return True
    parts = () if isinstance(form, str) else form
    return any(_calls_target(each) for each in parts if not has_field(each, "stmt"))


def is_target_call(node: Node) -> bool:
    """Whether a constructor calls a function of the program's own that adds to the target."""
    return (
        not isinstance(node, str)
        and len(node) == 4
        and node[0] in ("FunApp", "NRFunApp")
        and node[1] in (("UserDefined", "FnTarget"), ("UserDefined", "FnJacobian"))
    )
