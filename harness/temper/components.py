"""Write programs in which one term of each sum of densities stands alone: a mixture's components.

Stan adds densities by ``log_sum_exp`` and ``log_mix``, as the log of a sum of exponentials, or by
``log1p_exp`` of the logarithm of their ratio.  A program with one term in place of each sum has the
density of one component, whose maximum, if it has one, is near a mode of the mixture.  Where a
narrow component has no slope that leads to it, this shows where it is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path

import numpy as np

from harness.engine.stanc import Stanc
from harness.engine.toolchain import require_stanc
from harness.temper.faults import faults_named
from harness.temper.sums import terms
from harness.temper.syntax import BLOCKS, WORDS, read_blocks
from harness.temper.text import StanText
from harness.temper.tree import (
    Node,
    expr,
    has_field,
    is_data_only,
    items,
    stan_call,
    tag,
    type_of,
    walk,
)

MOST = 24
"""Programs that are written, if the sums have more terms or more combinations of them."""
_LONGEST, _ANY = 16, 5040
"""Terms with a program each in a sum over a vector, whose size the text does not show; and the end
of numbers that are random.  Behind the last term, numbers begin with the first again.
"""
_SUMS = (("log_sum_exp", 2), ("log_mix", 3))
"""Functions that add densities up, with their numbers of arguments."""
_VECTORS = ("UVector", "URowVector", "UArray")


def component_programs(path: Path) -> Iterator[str]:
    """Yield the texts of programs with one term of each sum, without generated quantities.

    Sums over a vector have as many terms as the data say.  The first programs take its first terms,
    begin again with the first one if there are fewer, and the last ones take some at random.  If a
    program has several sums, each text takes a combination of their terms: all combinations if they
    are few.

    Parameters
    ----------
    path
        A program that includes nothing.

    Raises
    ------
    CompileError
        If the program is not valid Stan.
    RewriteError
        If a fault of ours keeps it from being rewritten.
    """
    with faults_named(path):
        blocks = read_blocks(path, Stanc(require_stanc()))
        first = _OneTerm(())
        first.program(blocks)
        for chosen in _combinations(first.terms):
            yield _OneTerm(chosen).program(blocks)


def _combinations(sizes: Sequence[int | None]) -> list[tuple[int, ...]]:
    """Return which term each sum has in each program, from 0; none if there are no sums.

    Parameters
    ----------
    sizes
        How many terms each sum has, None for a vector's.
    """
    if not sizes:
        return []
    known = [_LONGEST if size is None else size for size in sizes]
    few = math.prod(known) <= MOST
    if few:
        chosen = list(product(*map(range, known)))
    else:  # terms with the same number often belong together
        chosen = [tuple(k % size for size in known) for k in range(min(max(known), MOST // 2))]
    if few and None not in sizes:
        return chosen
    most = np.array([_ANY if size is None else size for size in sizes])
    others = np.random.default_rng(0).integers(most, size=(MOST - len(chosen), len(sizes)))
    return chosen + [tuple(each) for each in others.tolist()]


class _OneTerm(StanText):
    """Writes a program with one term of each sum.

    Parameters
    ----------
    chosen
        The number of each sum's term, from 0, in the order of the text; 0 for those behind.

    Attributes
    ----------
    terms
        How many terms each sum has that was written so far, None for a vector's.
    """

    def __init__(self, chosen: Sequence[int]) -> None:
        self._chosen = chosen
        self.terms: list[int | None] = []

    def program(self, blocks: dict[str, tuple[Node, ...]]) -> str:
        """Text of a program."""
        words = {block: word for word, block in WORDS.items()}
        texts = {words[name]: self.statements(blocks[name]) for name in BLOCKS[:-1] if blocks[name]}
        return "".join(f"{word} {{\n{text}\n}}\n" for word, text in texts.items())

    def expression(self, node: Node) -> str:
        """Text of an expression, or of one term of a sum: ``a + log1p_exp(b - a)`` is one, too."""
        form = expr(node)
        if tag(form) == "BinOp" and tag(items(form)[2]) == "Plus":
            _, left, _, right = items(form)
            for larger, more in ((left, right), (right, left)):
                name, args = stan_call(expr(more))
                if name != "log1p_exp" or tag(type_of(more)) != "UReal" or is_data_only(more):
                    continue
                name, either = stan_call(expr(larger))
                if name == "fmax":  # then the other function adds what the smaller one is worth
                    return self._one_of([self.expression(each) for each in either])
                first, ratio = self.expression(larger), self.expression(args[0])
                return self._one_of([first, f"{first} + ({ratio})"])
        return super().expression(node)

    def call(self, form: Node) -> str:
        """Text of a function's call, or of one term of a sum."""
        name, args = stan_call(form)
        if all(map(is_data_only, args)):
            return super().call(form)
        if (name, len(args)) in _SUMS:
            return self._one_of(self._added(name, args))
        if name == "log_sum_exp" and tag(type_of(args[0])) in _VECTORS:
            text = self.expression(args[0])
            return f"({text})[{self._element(text)}]"
        if name == "log_mix" and _is_simple(args[1]):
            shares, values = map(self.expression, args)
            index = self._element(shares)
            return f"(log(({shares})[{index}]) + ({values})[{index}])"
        if name == "log":
            signs, added = zip(*terms(args[0]), strict=True)
            if len(added) > 1 and "-" not in signs and all(map(_has_exp, added)):
                return self._one_of(list(map(self._log, added)))
            vectors = _added_up(args[0])
            if vectors and any(map(_has_exp, vectors)):
                index = self._element(self.expression(vectors[0]))
                return f"({' + '.join(self._log_element(each, index) for each in vectors)})"
        return super().call(form)

    def _added(self, name: str, args: tuple[Node, ...]) -> list[str]:
        """Return the terms that ``log_sum_exp`` or ``log_mix`` adds, sums within sums included."""
        *share, one, other = args
        if name == "log_sum_exp":
            return self._alternatives(one) + self._alternatives(other)
        text = self.expression(share[0])
        return [f"log({text}) + {each}" for each in self._alternatives(one)] + [
            f"log1m({text}) + {each}" for each in self._alternatives(other)
        ]

    def _alternatives(self, node: Node) -> list[str]:
        """Return the terms of an expression if it is a sum of densities, or itself, in brackets."""
        form = expr(node)
        if tag(form) == "Paren":
            return self._alternatives(items(form)[1])
        if tag(form) == "BinOp" and tag(items(form)[2]) == "Plus":
            _, left, _, right = items(form)
            both = product(self._alternatives(left), self._alternatives(right))
            return [f"({one} + {other})" for one, other in both]
        name, args = stan_call(form)
        if (name, len(args)) in _SUMS:
            return [f"({each})" for each in self._added(name, args)]
        return [f"({self.expression(node)})"]

    def _log(self, node: Node) -> str:
        """Text of a logarithm, of a product as a sum: far from its peak an exponential is 0."""
        form = expr(node)
        if tag(form) == "Paren":
            return self._log(items(form)[1])
        if tag(form) == "BinOp" and tag(items(form)[2]) in ("Times", "Divide"):
            _, left, sign, right = items(form)
            return f"{self._log(left)} {'+-'[tag(sign) == 'Divide']} ({self._log(right)})"
        name, args = stan_call(form)
        return f"({self.expression(args[0])})" if name == "exp" else f"log({self.expression(node)})"

    def _log_element(self, vector: Node, index: str) -> str:
        """Text of the logarithm of an element of a vector."""
        name, args = stan_call(expr(vector))
        if name == "exp":
            return f"({self.expression(args[0])})[{index}]"
        return f"log(({self.expression(vector)})[{index}])"

    def _one_of(self, texts: Sequence[str]) -> str:
        """Return the term of a sum that is chosen."""
        return f"({texts[self._number(len(texts))]})"

    def _element(self, vector: str) -> str:
        """Return the number of the element of a vector that is chosen, as text.

        It counts from the first element again behind the last.  (stanli has no ``%`` in an index.)
        """
        number = self._number(None)
        return f"1 + {number} - {number} %/% size({vector}) * size({vector})"

    def _number(self, size: int | None) -> int:
        position = len(self.terms)
        self.terms.append(size)
        return self._chosen[position] if position < len(self._chosen) else 0


def _added_up(expression: Node) -> tuple[Node, ...]:
    """Return the vectors whose products, element by element, an expression adds up; or none."""
    name, args = stan_call(expr(expression))
    if name not in ("sum", "dot_product"):
        return ()
    return args if all(tag(type_of(each)) in _VECTORS for each in args) else ()


def _is_simple(expression: Node) -> bool:
    """Whether an expression is a vector or an array of numbers."""
    kind = type_of(expression)
    return tag(kind) in _VECTORS[:2] or (tag(kind) == "UArray" and tag(items(kind)[1]) == "UReal")


def _has_exp(expression: Node) -> bool:
    """Whether an expression has an exponential in it, or is one."""
    within = (expr(each) for each in walk(expression) if has_field(each, "expr"))
    return any(stan_call(form)[0] == "exp" for form in within)
