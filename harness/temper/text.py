"""Stan's text of a syntax tree; what rewrites a program overrides some of it."""

from __future__ import annotations

from harness.errors import DataError
from harness.temper.tree import Node, expr, field, items, name_of, stmt, tag

_OPERATORS = {
    "Plus": "+",
    "PPlus": "+",
    "Minus": "-",
    "PMinus": "-",
    "Times": "*",
    "Divide": "/",
    "IntDivide": "%/%",
    "Modulo": "%",
    "LDivide": "\\",
    "EltTimes": ".*",
    "EltDivide": "./",
    "Pow": "^",
    "EltPow": ".^",
    "Or": "||",
    "And": "&&",
    "Equals": "==",
    "NEquals": "!=",
    "Less": "<",
    "Leq": "<=",
    "Greater": ">",
    "Geq": ">=",
    "PNot": "!",
    "Transpose": "'",
}

_UNSIZED = {
    "UInt": "int",
    "UReal": "real",
    "UComplex": "complex",
    "UVector": "vector",
    "URowVector": "row_vector",
    "UMatrix": "matrix",
    "UComplexVector": "complex_vector",
    "UComplexRowVector": "complex_row_vector",
    "UComplexMatrix": "complex_matrix",
    "Void": "void",
}

_SIZED = {
    "SInt": "int",
    "SReal": "real",
    "SComplex": "complex",
    "SVector": "vector",
    "SRowVector": "row_vector",
    "SMatrix": "matrix",
    "SComplexVector": "complex_vector",
    "SComplexRowVector": "complex_row_vector",
    "SComplexMatrix": "complex_matrix",
}

_CONSTRAINED = {
    "Ordered": "ordered",
    "PositiveOrdered": "positive_ordered",
    "Simplex": "simplex",
    "UnitVector": "unit_vector",
    "CholeskyCorr": "cholesky_factor_corr",
    "CholeskyCov": "cholesky_factor_cov",
    "Correlation": "corr_matrix",
    "Covariance": "cov_matrix",
    "StochasticRow": "row_stochastic_matrix",
    "StochasticColumn": "column_stochastic_matrix",
}

_BOUNDS = {
    "Lower": ("lower",),
    "Upper": ("upper",),
    "LowerUpper": ("lower", "upper"),
    "Offset": ("offset",),
    "Multiplier": ("multiplier",),
    "OffsetMultiplier": ("offset", "multiplier"),
}

_ONE_SIZE = {"CholeskyCorr", "Correlation", "Covariance"}
"""Constraints whose square matrices are declared with one size, and have two in the tree."""


class StanText:
    """Writes syntax trees as Stan programs; stanc formats them afterwards."""

    # Expressions

    def expression(self, node: Node) -> str:
        """Text of an expression."""
        form = expr(node)
        kind = tag(form)
        if kind == "GetTarget":
            return "target()"
        args = items(form)[1:]
        if kind == "Variable":
            return self.variable(args[0])
        if kind in ("IntNumeral", "RealNumeral"):
            return tag(args[0])
        if kind == "ImagNumeral":
            return f"{tag(args[0])}i"
        if kind == "Paren":
            return f"({self.expression(args[0])})"
        if kind == "BinOp":
            left, sign, right = args
            return f"{self.expression(left)} {_OPERATORS[tag(sign)]} {self.expression(right)}"
        if kind == "PrefixOp":
            return f"{_OPERATORS[tag(args[0])]} {self.expression(args[1])}"
        if kind == "PostfixOp":
            return f"{self.expression(args[0])}{_OPERATORS[tag(args[1])]}"
        if kind == "TernaryIf":
            condition, yes, no = map(self.expression, args)
            return f"{condition} ? {yes} : {no}"
        if kind == "Indexed":
            return self.expression(args[0]) + self.indices(args[1])
        if kind == "TupleProjection":
            return f"{self.expression(args[0])}.{tag(args[1])}"
        if kind == "TupleExpr":
            inner = self.expressions(args[0])
            return f"({inner},)" if len(items(args[0])) == 1 else f"({inner})"
        if kind == "ArrayExpr":
            return f"{{{self.expressions(args[0])}}}"
        if kind == "RowVectorExpr":
            return f"[{self.expressions(args[0])}]"
        if kind == "FunApp":
            return self.call(form)
        if kind == "CondDistApp":
            return self.distribution_call(form)
        raise DataError(f"the program has an expression ({kind}) that cannot be tempered")

    def expressions(self, nodes: Node) -> str:
        """Text of a list of expressions."""
        return ", ".join(map(self.expression, items(nodes)))

    def variable(self, identifier: Node) -> str:
        """Text of a variable, or of a function that is handed over."""
        return name_of(identifier)

    def call(self, form: Node) -> str:
        """Text of a function's call."""
        _, _, identifier, args = items(form)
        return f"{self.variable(identifier)}({self.expressions(args)})"

    def distribution_call(self, form: Node) -> str:
        """Text of a density's call."""
        _, _, identifier, args = items(form)
        first, *rest = map(self.expression, items(args))
        return f"{self.variable(identifier)}({first} | {', '.join(rest)})"

    def indices(self, nodes: Node) -> str:
        """Text of indices in their brackets; nothing if there are none."""
        if not items(nodes):
            return ""
        return f"[{', '.join(map(self._index, items(nodes)))}]"

    def _index(self, node: Node) -> str:
        kind = tag(node)
        if kind == "All":
            return ":"
        ends = [self.expression(each) for each in items(node)[1:]]
        if kind == "Single":
            return ends[0]
        if kind == "Upfrom":
            return f"{ends[0]} :"
        if kind == "Downfrom":
            return f": {ends[0]}"
        return f"{ends[0]} : {ends[1]}"

    # Types

    def unsized(self, node: Node) -> str:
        """Text of the type of an argument or a result."""
        kind = tag(node)
        if kind in _UNSIZED:
            return _UNSIZED[kind]
        if kind == "ReturnType":
            return self.unsized(items(node)[1])
        if kind == "UTuple":
            return f"tuple({', '.join(map(self.unsized, items(items(node)[1])))})"
        depth = 0
        while tag(node) == "UArray":
            node, depth = items(node)[1], depth + 1
        return f"array[{',' * (depth - 1)}] {self.unsized(node)}"

    def sized(self, node: Node, transformation: Node, outer: tuple[str, ...] = ()) -> str:
        """Text of a declared type with its constraint, in arrays of the sizes ``outer``."""
        sizes = list(outer)
        while tag(node) == "SArray":
            _, node, size = items(node)
            sizes.append(self.expression(size))
        array = f"array[{', '.join(sizes)}] " if sizes else ""
        kind, constraint = tag(node), tag(transformation)
        if kind == "STuple":
            parts = items(items(node)[1])
            given = (
                items(items(transformation)[1])
                if constraint == "TupleTransformation"
                else (transformation,) * len(parts)
            )
            inner = ", ".join(map(self.sized, parts, given))
            return f"{array}tuple({inner})"
        own = (
            [self.expression(each) for each in items(node)[1:] if each not in ("AoS", "SoA")]
            if not isinstance(node, str)
            else []
        )
        if constraint in _CONSTRAINED:
            if constraint in _ONE_SIZE or (constraint == "CholeskyCov" and own[0] == own[-1]):
                own = own[:1]
            word = _CONSTRAINED[constraint]
        elif constraint == "SumToZero":
            word = "sum_to_zero_vector" if kind == "SVector" else "sum_to_zero_matrix"
        else:
            word = _SIZED[kind] + self._bounds(transformation)
        return f"{array}{word}" + (f"[{', '.join(own)}]" if own else "")

    def _bounds(self, transformation: Node) -> str:
        words = _BOUNDS.get(tag(transformation), ())
        if not words:
            return ""
        values = map(self.bound, items(transformation)[1:])
        given = (f"{word}={value}" for word, value in zip(words, values, strict=True))
        return f"<{', '.join(given)}>"

    def bound(self, node: Node) -> str:
        """Text of a bound in a declaration."""
        return self.expression(node)

    # Statements

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
        return "\n".join(map(self.statement, items(nodes)))

    def block(self, node: Node) -> str:
        """Text of a statement in braces."""
        form = stmt(node)
        return self.statement(node) if tag(form) == "Block" else f"{{\n{self.statement(node)}\n}}"

    def _write_Block(self, form: Node, _: Node) -> str:
        return f"{{\n{self.statements(items(form)[1])}\n}}"

    def _write_Profile(self, form: Node, _: Node) -> str:
        _, name, inner = items(form)
        return f"profile({tag(name)}) {{\n{self.statements(inner)}\n}}"

    def _write_VarDecl(self, form: Node, _: Node) -> str:
        declared = self.sized(field(form, "decl_type"), field(form, "transformation"))
        parts = []
        for each in items(field(form, "variables")):
            initial = items(field(each, "initial_value"))
            value = f" = {self.expression(initial[0])}" if initial else ""
            parts.append(self.variable(field(each, "identifier")) + value)
        return f"{declared} {', '.join(parts)};"

    def _write_Assignment(self, form: Node, _: Node) -> str:
        sign = field(form, "assign_op")
        operator = "" if tag(sign) == "Assign" else _OPERATORS[tag(items(sign)[1])]
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

    def _write_For(self, form: Node, _: Node) -> str:
        name = self.variable(field(form, "loop_variable"))
        low, high = (self.expression(field(form, f"{end}_bound")) for end in ("lower", "upper"))
        return f"for ({name} in {low} : {high}) {self.block(field(form, 'loop_body'))}"

    def _write_ForEach(self, form: Node, _: Node) -> str:
        _, name, over, body = items(form)
        return f"for ({self.variable(name)} in {self.expression(over)}) {self.block(body)}"

    def _write_While(self, form: Node, _: Node) -> str:
        _, condition, body = items(form)
        return f"while ({self.expression(condition)}) {self.block(body)}"

    def _write_IfThenElse(self, form: Node, _: Node) -> str:
        _, condition, yes, no = items(form)
        text = f"if ({self.expression(condition)}) {self.block(yes)}"
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
    """Text of an expression as it stands, for messages."""
    return StanText().expression(node)


def statement_text(node: Node) -> str:
    """Text of a statement as it stands, on one line, for messages."""
    return " ".join(StanText().statement(node).split())
