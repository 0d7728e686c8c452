"""The rules that decide whether a term of the log density is likelihood or prior.

A density belongs to whatever stands before its bar.  If y is data, ``y ~ normal(mu, sigma)`` is
part of the likelihood.  ``mu ~ normal(m, s)`` is part of the prior whatever m and s are, and so is
``theta[county] ~ normal(mu, sigma)``, because an element of a parameter is a parameter.

Everything else, ``target += expression`` and densities of computed values, is part of the
likelihood if data reach it: if their values flow into it, if a condition on them decides whether it
is added, or if they choose in it, as an index (``log(p[w[n]])``), a range, a loop's bound or a
size.

Data that only choose may also be the graph of a prior, as in
``-0.5 * dot_self(phi[node1] - phi[node2])``.  Then the parameters decide: if every vector of
parameters in the term has a density of its own elsewhere, or is bounded, the term is likelihood; if
nothing else gives one of them a density, it is prior.  Both are marked as unsure, but not a term
that arrays choose in, with densities or bounds elsewhere, if there is nothing else that may be the
likelihood: topics of words, a hidden Markov model of symbols.

A term that no data reach is prior.  But if it is no density, and all its parameters have densities
of their own as they are declared, somebody should be asked: ``target += -N * log(sigma)`` with a
number for N belongs to a likelihood that is standardised by hand.

Numbers that only give the sizes of parameters choose nothing as a loop's bound:
``for (j in 1 : J)`` visits all parameters.  If these rules find no likelihood in a program, the
unsure terms are its likelihood; if there are none, the terms that single numbers among data reach.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from harness.temper.additions import Addition, Notes
from harness.temper.elements import Piece
from harness.temper.flow import CONSTANT, NOTHING, Value, union
from harness.temper.sums import densities_in
from harness.temper.text import as_text
from harness.temper.tree import is_data_only


@dataclass(frozen=True)
class Finding:
    """How a term that a statement adds is classified.

    Attributes
    ----------
    tempered
        Whether it is part of the likelihood.
    why
        Why, in a few words.
    unsure
        Whether the text does not decide it.
    hint
        Whether it is part of the likelihood if nothing else is.
    asks
        Whether somebody should be asked about it if there is a likelihood.
    decided
        Whether it is not unsure if nothing else may be the likelihood.
    """

    tempered: bool
    why: str
    unsure: bool = False
    hint: bool = False
    asks: bool = False
    decided: bool = False


_CHOOSE = "data {} only choose what it adds, as an index, a bound or a size"


class Rules:
    """Decides what is likelihood and what is prior.

    Parameters
    ----------
    notes
        What the program adds to its log density.
    kept
        Everything that it adds, except terms that a comment says are tempered.
    """

    def __init__(self, notes: Notes, kept: Iterable[Addition]) -> None:
        self._notes = notes
        self._declared = notes.declared
        self._own: list[tuple[Addition, frozenset[Piece]]] = []
        for each in kept:
            pieces = self._own_density(each)
            if pieces:
                self._own.append((each, pieces))

    def finding(self, addition: Addition) -> Finding:
        """Classify an addition."""
        if addition.jacobian:
            return Finding(False, "a change of variables")
        if addition.density is None:
            holds = any(map(self._is_parameter, densities_in(addition.node)))
            around = NOTHING if holds else addition.context.value
            return self._increment(addition.value, around, [addition])
        if addition.density.cumulative:
            return self._cumulative(addition)
        return self._density(addition)

    def together(self, additions: list[Addition]) -> Finding:
        """Classify the terms of a sum as one."""
        if len(additions) == 1:
            return self.finding(additions[0])
        holds = any(self._is_parameter(d) for a in additions for d in densities_in(a.node))
        around = NOTHING if holds else additions[0].context.value
        constants = [
            replace(NOTHING, data=frozenset([CONSTANT]))
            for each in additions
            if each.density and not each.density.cumulative and is_data_only(each.density.args[0])
        ]
        value = union([*(a.value for a in additions), *constants])
        return self._increment(value, around, additions)

    def is_constant(self, addition: Addition) -> bool:
        """Whether a term depends on nothing, or on nothing before its bar."""
        value = addition.value
        return not (value.touched or value.data or value.conditions or value.choices)

    # Densities

    def _density(self, addition: Addition) -> Finding:
        assert addition.density is not None  # noqa: S101 - asked for by the caller
        variate, value = addition.density.args[0], addition.value
        text = as_text(variate)
        if is_data_only(variate) or (value.data and not value.touched):
            return Finding(True, f"a density of data {text}")
        strong = value.data & self._declared.dimensioned
        if strong:
            return Finding(True, f"a density of {text}, into which data {listed(strong)} flow")
        if value.itself is not None:
            return self._of_parameter(addition, text)
        finding = self._increment(replace(value, data=frozenset()), NOTHING, [addition])
        if value.conditions or value.choices:
            return replace(finding, why=f"a density of {text}; {finding.why}")
        hint = self._increment(value, NOTHING, [addition]).hint
        return Finding(False, f"a density of {text}, no data", hint=hint)

    def _of_parameter(self, addition: Addition, text: str) -> Finding:
        """Classify a density of a parameter, which another statement may give one as well."""
        assert addition.density is not None  # noqa: S101
        taken = addition.given.data & self._declared.dimensioned
        pieces = addition.pieces() or ()
        again = any(
            not piece.disjoint(mine)
            for other, theirs in self._own
            if other is not addition
            for piece in theirs
            for mine in pieces
        )
        if addition.density.own and taken and again:
            why = f"a density of {text}, which has another one, by a function that takes data "
            return Finding(False, why + listed(taken), unsure=True)
        return Finding(False, f"a density of a parameter, {text}")

    def _cumulative(self, addition: Addition) -> Finding:
        assert addition.density is not None  # noqa: S101
        variate, value = addition.density.args[0], addition.value
        if value.data and not value.touched:
            return Finding(True, f"a density of data {as_text(variate)}")
        if value.touched or not addition.given.touched:
            return self._increment(value, NOTHING, [addition])
        finding = self._increment(addition.given, addition.context.value, [addition])
        return replace(finding, unsure=finding.unsure or finding.tempered)

    # Everything else

    def _increment(self, value: Value, around: Value, those: list[Addition]) -> Finding:
        """Classify additions that together have a value, in a context."""
        known = self._declared
        strong = value.data & (known.dimensioned | {CONSTANT})
        bare = self._bare(value, those)
        alone = f", and nothing else gives {listed(bare)} a density"
        if strong:
            why = f"data {listed(value.data if CONSTANT in strong else strong)} flow into it"
            return Finding(True, why + (alone if bare else ""), unsure=bool(bare))
        conditions = value.conditions | around.conditions
        if conditions:
            why = f"it depends on data {listed(conditions)} by a condition"
            return Finding(True, why + (alone if bare else ""), unsure=bool(bare))
        choices = value.choices | around.choices
        counts = value.data & known.counts
        if bare and (choices or counts & known.sizes):
            reach = f"data {listed(counts)} flow into it" if not choices else ""
            why = (reach or _CHOOSE.format(listed(choices))) + alone
            return Finding(False, why, unsure=True)
        decided = bool(choices & known.dimensioned)
        if counts:
            unsure = counts <= known.sizes
            why = f"data {listed(counts)} flow into it"
            why += ", as many as there are parameters" if unsure else ""
            return Finding(True, why, unsure=unsure, decided=decided)
        if choices:
            return Finding(True, _CHOOSE.format(listed(choices)), unsure=True, decided=decided)
        single = value.data | value.hints | around.hints
        hint = bool(single and value.touched) and not self._bare(value, those, numbers=True)
        others = [] if any(each.density for each in those) else self._with_densities(value, those)
        if others:
            why = f"no data flow into it, but {listed(others)} has a density already"
            return Finding(False, why, hint=hint, asks=True)
        return Finding(False, "no data flow into it", hint=hint)

    def _with_densities(self, value: Value, those: list[Addition]) -> list[str]:
        """Return the parameters in a value if other statements give each a density as declared."""
        drawn = {
            piece.parameter
            for addition, _ in self._own
            if all(addition is not one for one in those)
            for piece in addition.pieces() or ()
        }
        return sorted(value.parameters) if set(value.parameters) <= drawn else []

    def _bare(self, value: Value, those: list[Addition], *, numbers: bool = False) -> list[str]:
        """Return unbounded vectors of parameters in a value to which only those give a density."""
        return sorted(
            name
            for name in value.parameters
            if (numbers or self._notes.wholes[name])
            and not self._declared.bounded(name)
            and self._lacks(name, those)
        )

    def _lacks(self, name: str, those: list[Addition]) -> bool:
        """Whether an element of a parameter has no density of its own but for those."""
        pieces = [
            each
            for addition, some in self._own
            if all(addition is not one for one in those)
            for each in some
            if each.parameter == name
        ]
        if not pieces:
            return True
        cells = self._notes.cells(name, [each.box for each in pieces])
        return cells is not None and any(each.count == 0 for each in cells)

    def _own_density(self, addition: Addition) -> frozenset[Piece]:
        """Return the parameters that an addition certainly gives a density of their own."""
        pieces = addition.pieces()
        if pieces is not None:
            return frozenset(pieces)
        value, around = addition.value, addition.context.value
        data = value.data | value.conditions | value.choices
        if addition.density is None:
            data |= around.conditions | around.choices
        if data & (self._declared.dimensioned | self._declared.counts | {CONSTANT}):
            return frozenset()
        # A small sum says little about its terms.
        return frozenset(p for p in addition.touched() if p.parameter not in value.summed)

    def _is_parameter(self, variate: object) -> bool:
        return isinstance(variate, tuple) and not is_data_only(variate)


def listed(names: Iterable[str]) -> str:
    """Return names as a list with commas."""
    known = sorted(set(names))
    return ", ".join(name for name in known if name) or "(a number)"
