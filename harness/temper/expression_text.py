"""Write expressions and types of a syntax tree as Stan's text."""

from __future__ import annotations

from harness.errors import DataError
from harness.temper.constraints import constraint_of
from harness.temper.tree import Node, expr, items, name_of, tag

OPERATORS = {
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


class ExpressionText:
    """Writes expressions and types; classes that rewrite a program override parts of it."""

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
            return f"{self.expression(left)} {OPERATORS[tag(sign)]} {self.expression(right)}"
        if kind == "PrefixOp":
            return f"{OPERATORS[tag(args[0])]} {self.expression(args[1])}"
        if kind == "PostfixOp":
            return f"{self.expression(args[0])}{OPERATORS[tag(args[1])]}"
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
        kind = tag(node)
        if kind == "STuple":
            parts = items(items(node)[1])
            given = (
                items(items(transformation)[1])
                if tag(transformation) == "TupleTransformation"
                else (transformation,) * len(parts)
            )
            inner = ", ".join(map(self.sized, parts, given))
            return f"{array}tuple({inner})"
        own = (
            [self.expression(each) for each in items(node)[1:] if each not in ("AoS", "SoA")]
            if not isinstance(node, str)
            else []
        )
        known = constraint_of(transformation)
        if known.sizes == "one" or (known.sizes == "one if square" and own[0] == own[-1]):
            own = own[:1]
        if known.word is None:
            word = _SIZED[kind] + self._bounds(transformation)
        else:
            word = known.word if kind == "SVector" else known.matrix_word or known.word
        return f"{array}{word}" + (f"[{', '.join(own)}]" if own else "")

    def _bounds(self, transformation: Node) -> str:
        words = constraint_of(transformation).arguments
        if not words:
            return ""
        values = map(self.bound, items(transformation)[1:])
        given = (f"{word}={value}" for word, value in zip(words, values, strict=True))
        return f"<{', '.join(given)}>"

    def bound(self, node: Node) -> str:
        """Text of a bound in a declaration."""
        return self.expression(node)
