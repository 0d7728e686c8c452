"""Whether constraints of transformed parameters hold wherever the parameters are allowed.

Stan rejects a point if one does not hold, so a constraint may cut off a part of the prior.  The
text shows some facts for certain: ``exp(x)`` is positive, and so is a product of positive numbers.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.temper.constraints import CONSTRAINTS, Range, constraint_of
from harness.temper.parameters import is_checked
from harness.temper.syntax import Syntax
from harness.temper.tree import (
    Node,
    assigned,
    declared_names,
    expr,
    field,
    has_field,
    items,
    literal,
    name_of,
    stan_call,
    stmt,
    tag,
    walk,
)

_POSITIVE = {
    *("exp", "exp2", "square", "abs", "fabs", "sqrt", "log1p_exp", "inv_sqrt", "inv_square"),
    *("hypot", "dot_self", "variance", "sd", "norm1", "norm2", "distance", "squared_distance"),
    "cosh",
}
_UNIT = {"inv_logit", "Phi", "Phi_approx", "inv_cloglog", "softmax"}
_KEEPS: Mapping[Range, set[str]] = {
    "positive": {
        *("sum", "mean", "max", "min", "prod", "inv", "fmax", "fmin", "cumulative_sum", "diagonal"),
        *("to_vector", "to_row_vector", "to_array_1d", "to_matrix", "reverse", "log1p", "expm1"),
        *("append_row", "append_col", "append_array", "head", "tail", "cbrt", "dot_product"),
        *("sort_asc", "sort_desc", "diag_matrix", "segment", "row", "col"),
    },
    "unit": {
        *("mean", "max", "min", "prod", "fmax", "fmin", "sqrt", "square", "diagonal", "segment"),
        *("to_vector", "to_row_vector", "to_array_1d", "to_matrix", "reverse", "row", "col"),
        *("append_row", "append_col", "append_array", "head", "tail", "sort_asc", "sort_desc"),
    },
}
"""Functions whose value is in a range if all of their arguments are, except whole numbers."""
_FILLED = {"rep_vector", "rep_row_vector", "rep_matrix", "rep_array"}


def may_cut(syntax: Syntax) -> list[str]:
    """Return transformed parameters whose constraint is not certain to hold."""
    return _Ranges(syntax).uncertain()


class _Ranges:
    def __init__(self, syntax: Syntax) -> None:
        self._constraints: dict[str, Node] = {}
        for block in ("data", "transformeddata", "parameters", "transformedparameters"):
            for node in syntax.blocks[block]:
                if tag(stmt(node)) == "VarDecl":
                    constraint = field(stmt(node), "transformation")
                    self._constraints |= dict.fromkeys(declared_names(node), constraint)
        self._made: dict[str, list[Node]] = {}
        self._counting: set[str] = set()
        for node in walk(syntax.blocks["transformedparameters"]):
            if isinstance(node, str) or not node:
                continue
            if node[0] == "For":
                if (literal(field(node, "lower_bound")) or -1) >= 0:
                    self._counting.add(name_of(field(node, "loop_variable")))
            elif node[0] == "VarDecl":
                for each in items(field(node, "variables")):
                    initial = items(field(each, "initial_value"))
                    self._make(name_of(field(each, "identifier")), initial)
            elif node[0] == "Assignment":
                for name in assigned(field(node, "assign_lhs")):
                    self._make(name, (field(node, "assign_rhs"),))
                if tag(field(node, "assign_op")) != "Assign":  # also made of what it was
                    operator = tag(items(field(node, "assign_op"))[1])
                    if operator not in ("Plus", "Times", "EltTimes"):
                        self._make(name, (node,))
        self._declared = [
            name
            for node in syntax.blocks["transformedparameters"]
            if tag(stmt(node)) == "VarDecl" and is_checked(field(stmt(node), "transformation"))
            for name in declared_names(node)
        ]

    def _make(self, name: str, values: tuple[Node, ...]) -> None:
        self._made.setdefault(name, []).extend(values)

    def uncertain(self) -> list[str]:
        return [name for name in self._declared if not self._holds(name)]

    def _holds(self, name: str) -> bool:
        constraint = self._constraints[name]
        kind, made = tag(constraint), self._made.get(name, [])
        if kind == "Lower":
            return _at_most(items(constraint)[1], 0) and self._all(made, "positive")
        if kind == "LowerUpper":
            _, low, high = items(constraint)
            if not _at_most(low, 0) or literal(high) is None:
                return False
            return (literal(high) or 0) >= 1 and self._all(made, "unit")
        return bool(made) and all(self._has(each, kind) for each in made)

    def _all(self, nodes: list[Node], wanted: Range) -> bool:
        return all(has_field(each, "expr") and self._within(each, wanted) for each in nodes)

    def _has(self, node: Node, constraint: str) -> bool:
        """Whether a value has a constraint for what makes it."""
        if not has_field(node, "expr"):
            return False
        form = expr(node)
        if tag(form) == "Variable":
            known = self._constraints.get(name_of(items(form)[1]))
            return known is not None and tag(known) == constraint
        if tag(form) in ("Paren", "Indexed"):
            return self._has(items(form)[1], constraint)
        return stan_call(form)[0] in CONSTRAINTS[constraint].made_by

    def _within(self, node: Node, wanted: Range) -> bool:
        form = expr(node)
        kind = tag(form)
        number = literal(node)
        if number is not None:
            return number >= 0 and (wanted == "positive" or number <= 1)
        if kind == "Variable":
            return self._variable(name_of(items(form)[1]), wanted)
        if kind in ("Paren", "Indexed", "PostfixOp"):
            return self._within(items(form)[1], wanted)
        if kind == "TernaryIf":
            return all(self._within(each, wanted) for each in items(form)[2:])
        if kind in ("RowVectorExpr", "ArrayExpr"):
            return all(self._within(each, wanted) for each in items(items(form)[1]))
        if kind == "BinOp":
            return self._operation(form, wanted)
        name, args = stan_call(form)
        if name in _UNIT or (name in _POSITIVE and wanted == "positive"):
            return True
        if name in _FILLED:
            return self._within(args[0], wanted)
        if name == "pow":
            return self._power(args[0], args[1], wanted)
        enough = any if name == "fmax" and wanted == "positive" else all
        return name in _KEEPS[wanted] and enough(self._within(each, wanted) for each in args)

    def _variable(self, name: str, wanted: Range) -> bool:
        if name in self._counting:
            return wanted == "positive"
        constraint = self._constraints.get(name, "Identity")
        kind, always = tag(constraint), constraint_of(constraint).range
        if always is not None:
            return always == "unit" or wanted == "positive"
        if kind not in ("Lower", "LowerUpper"):
            return False
        low, high = literal(items(constraint)[1]), literal(items(constraint)[-1])
        if low is None or low < 0:
            return False
        return wanted == "positive" or (kind == "LowerUpper" and high is not None and high <= 1)

    def _operation(self, form: Node, wanted: Range) -> bool:
        _, left, operator, right = items(form)
        kind = tag(operator)
        if kind in ("Pow", "EltPow"):
            return self._power(left, right, wanted)
        if kind == "Minus":
            number = literal(left)
            return number is not None and number == 1 and self._within(right, "unit")
        more = ("Plus", "Divide", "EltDivide") if wanted == "positive" else ()
        return (
            kind in ("Times", "EltTimes", *more)
            and self._within(left, wanted)
            and self._within(right, wanted)
        )

    def _power(self, base: Node, power: Node, wanted: Range) -> bool:
        number = literal(power)
        if wanted == "positive" and number is not None and number % 2 == 0:
            return True
        return self._within(base, wanted) and (
            wanted == "positive" or (number is not None and number >= 0)
        )


def _at_most(node: Node, most: float) -> bool:
    number = literal(node)
    return number is not None and number <= most
