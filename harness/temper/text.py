"""Write statements of a syntax tree as Stan's text; rewriting classes override parts of this."""

from __future__ import annotations

from harness.errors import DataError
from harness.temper.expression_text import OPERATORS, ExpressionText
from harness.temper.marks import Marks
from harness.temper.tree import Node, field, items, name_of, stmt, tag


class StanText(ExpressionText):
    """Writes syntax trees as Stan programs; stanc formats them afterwards."""

    marks: Marks | None = None
    """What notes the statements that are written, if their layout is to be the original's."""

    def statement(self, node: Node) -> str:
        """Text of a statement."""
        form = stmt(node)
        kind = tag(form)
        writer = getattr(self, f"_write_{kind}", None)
        if writer is None:
            raise DataError(f"the program has a statement ({kind}) that cannot be tempered")
        text: str = writer(form, node)
        return text

    def statements(self, nodes: Node) -> str:
        """Text of statements, one after the other."""
        return "\n".join(filter(None, map(self.marked, items(nodes))))

    def marked(self, node: Node) -> str:
        """Text of a statement, between marks if there are any."""
        text = self.statement(node)
        return text if self.marks is None else self.marks.statement(node, text)

    def head(self, node: Node, text: str) -> str:
        """Return the head of a compound statement, and note that it is written."""
        return text if self.marks is None else self.marks.head(node, text)

    def beside(self, node: Node, where: str, text: str) -> str:
        """Return what is added beside a statement's own text."""
        return text if self.marks is None else self.marks.beside(node, where, text)

    def block(self, node: Node) -> str:
        """Text of a statement in braces."""
        form = stmt(node)
        return self.statement(node) if tag(form) == "Block" else f"{{\n{self.marked(node)}\n}}"

    def _write_Block(self, form: Node, node: Node) -> str:
        return f"{self.head(node, '{')}\n{self.statements(items(form)[1])}\n}}"

    def _write_Profile(self, form: Node, node: Node) -> str:
        _, name, inner = items(form)
        head = self.head(node, f"profile({tag(name)}) {{")
        return f"{head}\n{self.statements(inner)}\n}}"

    def _write_VarDecl(self, form: Node, _: Node) -> str:
        declared = self.sized(field(form, "decl_type"), field(form, "transformation"))
        return self.declaration(declared, form)

    def declaration(self, declared: str, form: Node) -> str:
        """Text of a declaration whose type is given."""
        parts = []
        for each in items(field(form, "variables")):
            initial = items(field(each, "initial_value"))
            value = f" = {self.expression(initial[0])}" if initial else ""
            parts.append(self.variable(field(each, "identifier")) + value)
        return f"{declared} {', '.join(parts)};"

    def _write_Assignment(self, form: Node, _: Node) -> str:
        sign = field(form, "assign_op")
        operator = "" if tag(sign) == "Assign" else OPERATORS[tag(items(sign)[1])]
        left = self.assigned(field(form, "assign_lhs"))
        return f"{left} {operator}= {self.expression(field(form, 'assign_rhs'))};"

    def assigned(self, node: Node) -> str:
        """Text of what is assigned to."""
        kind = tag(node)
        if kind == "LTuplePack":
            return f"({', '.join(map(self.assigned, items(field(node, 'lvals'))))})"
        return self._lvalue(items(node)[1])

    def _lvalue(self, node: Node) -> str:
        form = field(node, "lval")
        kind, first, *rest = items(form)
        if kind == "LVariable":
            return self.variable(first)
        if kind == "LIndexed":
            return self._lvalue(first) + self.indices(rest[0])
        return f"{self._lvalue(first)}.{tag(rest[0])}"

    def _write_For(self, form: Node, node: Node) -> str:
        name = self.variable(field(form, "loop_variable"))
        low, high = (self.expression(field(form, f"{end}_bound")) for end in ("lower", "upper"))
        head = self.head(node, f"for ({name} in {low} : {high})")
        return f"{head} {self.block(field(form, 'loop_body'))}"

    def _write_ForEach(self, form: Node, node: Node) -> str:
        _, name, over, body = items(form)
        head = self.head(node, f"for ({self.variable(name)} in {self.expression(over)})")
        return f"{head} {self.block(body)}"

    def _write_While(self, form: Node, node: Node) -> str:
        _, condition, body = items(form)
        head = self.head(node, f"while ({self.expression(condition)})")
        return f"{head} {self.block(body)}"

    def _write_IfThenElse(self, form: Node, node: Node) -> str:
        _, condition, yes, no = items(form)
        head = self.head(node, f"if ({self.expression(condition)})")
        text = f"{head} {self.block(yes)}"
        if not items(no):
            return text
        other = items(no)[0]
        chained = tag(stmt(other)) == "IfThenElse"
        return f"{text} else {self.statement(other) if chained else self.block(other)}"

    def _write_NRFunApp(self, form: Node, _: Node) -> str:
        return f"{self.call(form)};"

    def _write_TargetPE(self, form: Node, _: Node) -> str:
        return f"target += {self.expression(items(form)[1])};"

    def _write_JacobianPE(self, form: Node, _: Node) -> str:
        return f"jacobian += {self.expression(items(form)[1])};"

    def _write_Tilde(self, form: Node, _: Node) -> str:
        arg, args = self.expression(field(form, "arg")), self.expressions(field(form, "args"))
        name = name_of(field(form, "distribution"))
        return f"{arg} ~ {name}({args}){self._truncation(field(form, 'truncation'))};"

    def _truncation(self, node: Node) -> str:
        kind = tag(node)
        if kind == "NoTruncate":
            return ""
        ends = [self.expression(each) for each in items(node)[1:]]
        if kind == "TruncateUpFrom":
            return f" T[{ends[0]}, ]"
        if kind == "TruncateDownFrom":
            return f" T[ , {ends[0]}]"
        return f" T[{ends[0]}, {ends[1]}]"

    def _write_Return(self, form: Node, _: Node) -> str:
        return f"return {self.expression(items(form)[1])};"

    def _write_ReturnVoid(self, _form: Node, _: Node) -> str:
        return "return;"

    def _write_Break(self, _form: Node, _: Node) -> str:
        return "break;"

    def _write_Continue(self, _form: Node, _: Node) -> str:
        return "continue;"

    def _write_Skip(self, _form: Node, _: Node) -> str:
        return ";"

    def _write_Print(self, form: Node, _: Node) -> str:
        return self._printing("print", form)

    def _write_Reject(self, form: Node, _: Node) -> str:
        return self._printing("reject", form)

    def _write_FatalError(self, form: Node, _: Node) -> str:
        return self._printing("fatal_error", form)

    def _printing(self, word: str, form: Node) -> str:
        parts = []
        for each in items(items(form)[1]):
            kind, value = items(each)
            parts.append(tag(value) if kind == "PString" else self.expression(value))
        return f"{word}({', '.join(parts)});"

    # Functions

    def _write_FunDef(self, form: Node, _: Node) -> str:
        name = name_of(field(form, "funname"))
        result = self.unsized(field(form, "returntype"))
        head = f"{result} {name}({self.arguments(form)})"
        body = field(form, "body")
        return f"{head};" if tag(stmt(body)) == "Skip" else f"{head} {self.block(body)}"

    def arguments(self, form: Node) -> str:
        """Text of a function's arguments, as it declares them."""
        parts = []
        for level, kind, identifier in map(items, items(field(form, "arguments"))):
            data = "data " if level == "DataOnly" else ""
            parts.append(f"{data}{self.unsized(kind)} {self.variable(identifier)}")
        return ", ".join(parts)


def as_text(node: Node) -> str:
    """Text of an unchanged expression, for messages."""
    return StanText().expression(node)


def statement_text(node: Node) -> str:
    """Text of an unchanged statement on one line, for messages."""
    return " ".join(StanText().statement(node).split())
