"""Write the program that tempers another one: its statements, and the code around them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from harness.errors import DataError
from harness.temper import library
from harness.temper.accumulate import TargetFunction, rewritten_functions
from harness.temper.classify import Classification, Term, What
from harness.temper.constraints import constraint_of
from harness.temper.coordinates import (
    GAUSSIAN_NAMES,
    base_coordinates,
    gaussian_base,
    is_jacobian,
)
from harness.temper.library import Names
from harness.temper.marks import Marks
from harness.temper.parameters import Parameter, Repeated, parameters
from harness.temper.syntax import WORDS, Syntax
from harness.temper.templates import Variant, form_text
from harness.temper.text import StanText
from harness.temper.transformed import LocalStatements, kept_names
from harness.temper.tree import (
    Node,
    declared_names,
    field,
    items,
    names,
    stmt,
    tag,
    walk,
)
from harness.temper.twice import Copies, Guarded, can_be_copied, first_pass, left_out


@dataclass(frozen=True)
class Written:
    """A program that has been written.

    Attributes
    ----------
    text
        Its text, not formatted yet.
    marks
        Where what it has of the original is in it.
    names
        Its names for our data and variables, if the original uses ours for something else.
    parameters
        Names that it has for the original's parameters.
    """

    text: str
    marks: Marks
    names: Mapping[str, str]
    parameters: Mapping[str, str]


def write_program(
    syntax: Syntax, classification: Classification, variant: Variant, what: What
) -> Written:
    """Write the program that tempers another one.

    Raises
    ------
    DataError
        If something in the program cannot be tempered; the message says which line and why.
    """
    return _Writer(syntax, classification, variant, what).program()


def unchanged(syntax: Syntax, marks: Marks, block: str) -> str:
    """Text of the statements of a block that is written as it is."""
    plain = StanText()
    return "\n".join(marks.statement(node, plain.statement(node)) for node in syntax.blocks[block])


def own_block(syntax: Syntax, marks: Marks, block: str, text: str) -> str:
    """Return text that takes the place of what a block of the original holds, if it has one."""
    return marks.own(f"in {block}", text) if block in syntax.outlines else ""


def own_statements(syntax: Syntax, marks: Marks, block: str, writer: StanText) -> str:
    """Text of a block's statements, moved to another block with the comments around it."""
    if block not in syntax.outlines:
        return ""
    apart = marks.leading.get(block, 0)
    text = marks.own(f"in {block}", writer.statements(syntax.blocks[block][apart:]))
    before = "" if apart else marks.own(f"before {block}")
    return "\n".join(filter(None, (before, text, marks.own(f"after {block}"))))


def assembled(syntax: Syntax, marks: Marks, blocks: Mapping[str, str]) -> str:
    """Text of a program made of blocks, those of the original with the comments around them.

    Parameters
    ----------
    syntax
        The original.
    marks
        Notes what is written.
    blocks
        What is in each block of the program, in their order; those with nothing are left out.
    """
    rows = [marks.own("before program")]
    for name, body in blocks.items():
        if not body.strip():
            continue
        block = WORDS[name]
        around = block in UNMOVED and block in syntax.outlines
        rows += [marks.own(f"before {block}")] if around or marks.leading.get(block) else []
        rows.append(f"{name} {{\n{body}\n}}")
        rows += [marks.own(f"after {block}")] if around else []
    return "\n".join([*rows, marks.own("after program")])


UNMOVED = ("function", "data", "transformeddata", "parameters")
"""Blocks of the original that are the same blocks of what we write."""


class _Writer:
    def __init__(
        self, syntax: Syntax, classification: Classification, variant: Variant, what: What
    ) -> None:
        self._syntax = syntax
        self._classification = classification
        self._variant: Variant = variant
        self._marks = Marks()
        self._names = Names(names(tuple(syntax.blocks.values())))
        self._each = variant.endswith("pseudo_extended")
        self._what = what
        self._coordinates = base_coordinates(syntax)
        self._gaussian = self._coordinates.reason is None and variant != "target"
        self._form = form_text(variant, gaussian=self._gaussian)
        for mine in ("log_base", "log_gamma", *library.declared(str(self._form))):
            self._names.of(mine)
        called = "gaussian_base_lpdf()" if self._gaussian else ""
        self._library = library.functions(f"{self._form}{called}", self._names)
        self._parameters = parameters(syntax)
        self._variants: dict[str, str] = {}
        if self._each:
            for each in self._parameters:
                self._variants[each.name] = self._names.pick(f"{each.name}_each")
        own = {each.name for each in self._parameters} if self._each else None
        self._kept = {
            name: self._names.of(f"{name}_each") if self._each else name
            for name in kept_names(syntax, own)
        }

        self._leading = self._leading_declarations()
        if self._leading:
            self._marks.leading["transformedparameters"] = len(self._leading)

        # Not possible if a pass adds to the target by itself, or a parameter cannot be copied.
        self._twice = (
            variant == "collapsed_tempering_zero_likelihood"
            and all(map(can_be_copied, self._parameters))
            and not self._changes_variables()
        )

    def program(self) -> Written:
        ours = library.renaming(self._names)
        defined, functions = rewritten_functions(
            self._syntax.blocks["function"], str(self._syntax.path), self._names.pick, self._marks
        )
        form = self._form
        functions_of_own = own_block(self._syntax, self._marks, "function", defined)
        blocks = {
            "functions": f"{self._library}\n{functions_of_own}",
            "data": f"{self._unchanged('data')}\n{ours(form.data)}",
            "transformed data": f"{self._unchanged('transformeddata')}\n{ours(form.prepared)}",
            "parameters": f"{self._declarations()}\n{ours(form.parameters)}",
            "transformed parameters": self._transformed(functions),
            "model": ours(form.model),
            "generated quantities": ours(form.generated),
        }
        if self._variant == "target" and not self._kept and not self._changes_variables():
            # Everything is in the model block, because stanli is quicker there.
            blocks |= {
                "transformed parameters": "",
                "model": self._statements(functions, lambda _: "target", {}),
            }
        text = assembled(self._syntax, self._marks, blocks)
        parameters = {
            each.name: self._variants.get(each.name, each.name) for each in self._parameters
        }
        return Written(text, self._marks, self._names.changed(form.public), parameters)

    def _unchanged(self, block: str) -> str:
        text = unchanged(self._syntax, self._marks, block)
        return own_block(self._syntax, self._marks, block, text)

    # Parameters

    def _declarations(self) -> str:
        if not self._each:
            return self._unchanged("parameters")
        size = (self._names.of("N"),)
        rows = []
        by_name = {each.name: each for each in self._parameters}
        for node in self._syntax.blocks["parameters"]:
            some = [by_name[name] for name in declared_names(node)]
            first = some[0]
            transformation = "Identity" if first.depends else first.transformation
            kind = Repeated(size[0]).sized(first.kind, transformation, size)
            called = (self._free(e) if e.depends else self._variants[e.name] for e in some)
            rows.append(self._marks.statement(node, f"{kind} {', '.join(called)};"))
        own = own_block(self._syntax, self._marks, "parameters", "\n".join(rows))
        return f"// Pseudo-samples, one an element.\n{own}"

    def _free(self, parameter: Parameter) -> str:
        return self._names.of(f"{parameter.name}_free")

    def _constrained(self, parameter: Parameter, index: str) -> str:
        """Text that constrains a parameter by others of the same pseudo-sample."""
        kind = tag(parameter.transformation)
        jacobian = constraint_of(parameter.transformation).jacobian
        if jacobian is None:
            raise DataError(
                f"{self._syntax.path}: the constraint of parameter {parameter.name} depends on "
                "other parameters inside a tuple, so that pseudo-samples of it cannot be declared"
            )
        plain = StanText()
        given = [plain.expression(each) for each in items(parameter.transformation)[1:]]
        if kind == "Offset":
            given.append("1")
        if kind == "Multiplier":
            given.insert(0, "0")
        return f"{jacobian}_jacobian({self._free(parameter)}[{index}], {', '.join(given)})"

    # Transformed parameters

    def _leading_declarations(self) -> tuple[Node, ...]:
        """Return declarations that are kept as they are, before anything is computed."""
        found: list[Node] = []
        if self._each:
            return ()
        for node in self._syntax.blocks["transformedparameters"]:
            form = stmt(node)
            if tag(form) != "VarDecl" or not set(declared_names(node)) <= set(self._kept):
                break
            if any(items(field(each, "initial_value")) for each in items(field(form, "variables"))):
                break
            found.append(node)
        return tuple(found)

    def _transformed(self, functions: Mapping[str, TargetFunction]) -> str:
        ours = library.renaming(self._names)
        plain = StanText()
        size: tuple[str, ...] = (self._names.of("N"),) if self._each else ()
        index = self._names.of("pseudo") if self._each else ""
        kept = self._kept
        rows = []
        if self._leading:
            text = "\n".join(self._marks.statement(e, plain.statement(e)) for e in self._leading)
            rows.append(self._marks.own("leading transformedparameters", text))
        for node in self._syntax.blocks["transformedparameters"][len(self._leading) :]:
            form = stmt(node)
            if tag(form) != "VarDecl":
                continue
            for name in declared_names(node):
                if name in kept:
                    declared = plain.sized(
                        field(form, "decl_type"), field(form, "transformation"), size
                    )
                    rows.append(f"{declared} {kept[name]};")
        if self._each:
            rows += [
                f"{plain.sized(each.kind, 'Identity', size)} {self._variants[each.name]};"
                for each in self._parameters
                if each.depends
            ]
        kind = "vector[N]" if self._each else "real"
        rows.append(ours(f"{kind} log_base;\n{kind} log_gamma;"))
        inner = self._inner(functions, kept, index)
        if self._each:
            rows.append(f"for ({index} in 1 : {size[0]}) {{\n{inner}\n}}")
        else:
            rows.append(f"{{\n{inner}\n}}")
        return "\n".join(rows)

    def _inner(
        self, functions: Mapping[str, TargetFunction], kept: Mapping[str, str], index: str
    ) -> str:
        """Text of what is done for one point: the original's statements."""
        plain = StanText()
        rows = []
        # Locals, because otherwise each term would read and write an element of a vector.
        wanted = ("log_prior", "log_lik")
        if self._what == "all":
            wanted = ("log_rest", "log_tempered")
        rest, tempered = map(self._names.of, wanted)
        if self._twice:
            rows.append(self._first_pass(functions, tempered, kept))
        rows.append(f"real {rest} = 0;\nreal {tempered} = 0;")
        if self._each:
            for each in self._parameters:
                value = f"{self._variants[each.name]}[{index}]"
                if each.depends:
                    value = self._constrained(each, index)
                rows.append(f"{plain.sized(each.kind, 'Identity')} {each.name} = {value};")
                if each.depends:
                    rows.append(f"{self._variants[each.name]}[{index}] = {each.name};")

        def accumulator(term: Term) -> str:
            return tempered if term.tempered else rest

        copies = {kept[name]: name for name in kept} if self._each else {}
        rows.append(
            self._statements(
                functions,
                accumulator,
                {} if self._each else kept,
                "\n".join(f"{copy}[{index}] = {name};" for copy, name in copies.items()),
            )
        )
        if self._twice:
            rows.append(left_out(tempered, self._names.of("possible")))
        rows.append(self._ends(rest, tempered, f"[{index}]" if index else ""))
        return "\n".join(rows)

    def _first_pass(
        self, functions: Mapping[str, TargetFunction], tempered: str, kept: Mapping[str, str]
    ) -> str:
        """Text that finds out whether the likelihood is above zero."""
        copies = Copies(
            functions,
            lambda term: tempered if term.tempered else None,
            self._terms_of,
            self._place,
            set(kept),
        )
        copies.names = {e.name: self._names.of(f"{e.name}_copy") for e in self._parameters}
        blocks = self._syntax.blocks
        return first_pass(
            copies,
            self._parameters,
            (blocks["transformedparameters"], blocks["model"]),
            tempered=tempered,
            condition=self._names.of("possible"),
        )

    def _terms_of(self, node: Node) -> tuple[Term, ...]:
        return self._classification.terms[id(node)]

    def _place(self, node: Node) -> str:
        return str(self._syntax.line(node))

    def _statements(
        self,
        functions: Mapping[str, TargetFunction],
        accumulator: Callable[[Term], str | None],
        outside: Mapping[str, str],
        between: str = "",
    ) -> str:
        """Text of transformed parameters, then ``between``, then of the model."""
        kind = Guarded if self._twice else LocalStatements
        writer = kind(functions, accumulator, self._terms_of, self._place, set(outside))
        if isinstance(writer, Guarded):
            writer.condition = self._names.of("possible")
        writer.marks = self._marks
        transformed, model = (
            own_statements(self._syntax, self._marks, name, writer)
            for name in ("transformedparameters", "model")
        )
        return "\n".join(filter(None, (transformed, between, model)))

    def _changes_variables(self) -> bool:
        """Whether transformed parameters use Stan's Jacobians, which no other block may use."""
        return any(map(is_jacobian, walk(self._syntax.blocks["transformedparameters"])))

    def _ends(self, rest: str, tempered: str, at: str) -> str:
        """Text that sets log b and log gamma of a point."""
        base, gamma = self._names.of("log_base") + at, self._names.of("log_gamma") + at
        own, both = f"{base} = {rest};", f"{gamma} = {rest} + {tempered};"
        if not self._gaussian:
            return f"{own}\n{both}"
        local = {name: self._names.of(name) for name in GAUSSIAN_NAMES}
        return (
            f"if ({local['B']}) {{\n{gaussian_base(self._coordinates, local)}\n"
            f"{base} = {local['gaussian']};\n}} else {{\n{own}\n}}\n{both}"
        )
