"""The original's transformed parameters become local variables, except those that Stan checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from harness.errors import DataError
from harness.temper.accumulate import Accumulating, TargetFunction
from harness.temper.classify import Term
from harness.temper.parameters import is_checked
from harness.temper.syntax import Syntax
from harness.temper.tree import Node, declared_names, field, items, name_of, names, stmt, tag


def kept_names(syntax: Syntax, parameters: set[str] | None) -> list[str]:
    """Return transformed parameters that are kept for their constraints, which Stan checks.

    Parameters
    ----------
    syntax
        The original program.
    parameters
        Names of its parameters where there are several pseudo-samples, or None.

    Raises
    ------
    DataError
        If a constraint depends on something that differs between pseudo-samples.
    """
    declared: dict[str, Node] = {}
    for node in syntax.blocks["transformedparameters"]:
        form = stmt(node)
        if tag(form) == "VarDecl":
            declared |= dict.fromkeys(declared_names(node), field(form, "transformation"))
    checked = {name for name, given in declared.items() if is_checked(given)}
    if parameters is not None:
        for node in syntax.blocks["transformedparameters"]:
            form = stmt(node)
            if tag(form) == "VarDecl" and is_checked(field(form, "transformation")):
                depends = names(field(form, "transformation")) & (parameters | set(declared))
                if depends:
                    raise DataError(
                        f"{syntax.line(node)}: the constraint of a transformed "
                        f"parameter depends on {', '.join(sorted(depends))}, so that it "
                        "cannot be checked for each pseudo-sample; check it with reject()"
                    )
    else:
        waiting = list(checked)
        while waiting:
            for name in names(declared[waiting.pop()]) & set(declared) - checked:
                checked.add(name)
                waiting.append(name)
    return [name for name in declared if name in checked]


class LocalStatements(Accumulating):
    """Writes transformed parameters as locals, except those that are declared outside."""

    def __init__(
        self,
        functions: Mapping[str, TargetFunction],
        accumulator: Callable[[Term], str | None],
        terms: Callable[[Node], tuple[Term, ...]],
        where: Callable[[Node], str],
        outside: set[str],
    ) -> None:
        super().__init__(functions, accumulator, terms, where)
        self._outside = outside

    def _write_VarDecl(self, form: Node, node: Node) -> str:
        declared = self.sized(field(form, "decl_type"), "Identity")
        names = [name_of(field(each, "identifier")) for each in items(field(form, "variables"))]
        if field(form, "is_global") != "true" or not self._outside.intersection(names):
            return self.declaration(declared, form)
        rows = []
        for each in items(field(form, "variables")):
            name = name_of(field(each, "identifier"))
            initial = items(field(each, "initial_value"))
            value = f" = {self.expression(initial[0])}" if initial else ""
            outside = name in self._outside and field(form, "is_global") == "true"
            if not outside:
                rows.append(f"{declared} {name}{value};")
            elif initial:
                rows.append(f"{name}{value};")
        return "\n".join(rows)
