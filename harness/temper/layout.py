"""Put the original's own text, its comments and its layout, into a program that we wrote.

What we write comes from the syntax tree, and stanc formats it.  Here each statement that is
written as it was is replaced by the original's own lines, and one that is rewritten gets the
comments and the line breaks that it had.  Only spaces, comments and braces around single statements
come from the original: the program's structure is that of what we wrote.
"""

from __future__ import annotations

import re

from harness.temper.align import aligned, broken, written_comments
from harness.temper.marks import Formatted, Marks
from harness.temper.source import comment_places, comments, indentation, shifted, tokens
from harness.temper.syntax import Place, Syntax, bodies
from harness.temper.text import StanText
from harness.temper.tree import Node, field, items, stmt, tag

_GONE = "\x00"
"""Stands for a statement that is not written, until its line is looked at as a whole."""

_NEXT_COMMENT = re.compile(r"[ \t]*(?://[^\n]*|/\*.*?\*/)", re.DOTALL)

_COMPOUND = ("Block", "Profile", "For", "ForEach", "While", "IfThenElse")


def laid_out(syntax: Syntax, marks: Marks, formatted: Formatted, *, part: bool = False) -> str:
    """Return a program with the original's own text.

    Parameters
    ----------
    syntax
        The original.
    marks
        What was written.
    formatted
        The program with its marks, as stanc formats it.
    part
        Whether only a part of the statements is written, so that comments on others go with them.
    """
    return _Layout(syntax, marks, formatted, part).text()


class _Layout:
    def __init__(self, syntax: Syntax, marks: Marks, formatted: Formatted, part: bool) -> None:
        self._syntax = syntax
        self._text = syntax.source.text
        self._tokens = syntax.source.tokens
        self._marks = marks
        self._formatted = formatted
        self._part = part

    def text(self) -> str:
        rows: list[str] = []
        for name, row in self._formatted.parts():
            if not name:
                rows.append(row)
                continue
            kind, _, block = name.partition(" ")
            within = kind in ("in", "leading")
            first, more = (
                self._within(block, row, leading=kind == "leading")
                if within
                else self._around(kind, block)
            )
            brace, indent = ("{", "  ") if within else ("}", "") if kind == "after" else ("", "")
            if first and row == indent and rows[-1].endswith(brace):
                rows[-1] += f" {first}"
            elif first:
                rows.append(self._own_indent(block, row) + first)
            if not within and row:
                more = [shifted(each, "", self._own_indent(block, row)) for each in more]
            rows += more
        return "".join(f"{row}\n" for row in rows)

    # Around blocks

    def _around(self, kind: str, block: str) -> tuple[str, list[str]]:
        """Return what is put ``before`` or ``after`` a block: the rest of a line, and lines."""
        outlines = self._syntax.outlines
        first = next(iter(outlines))
        if kind == "after" and block == "program":
            rest = self._text[self._end_of_line(self._tokens[-1].stop) :].partition("\n")[2]
            return "", rest.rstrip().split("\n") if rest.strip() else []
        if kind == "after":
            close = self._tokens[outlines[block].close].stop
            return self._text[close : self._end_of_line(close)].strip(), []
        if block == first:
            return "", []  # they are before the program
        place = outlines[first if block == "program" else block]
        stop = self._tokens[place.start].start
        start = self._end_of_line(self._tokens[place.start - 1].stop) if place.start else 0
        lines = self._text[start:stop].split("\n")
        if place.start:
            lines = lines[1:]  # what is on the last block's line is after that
        given = indentation(self._text, stop)
        lines = lines if lines and lines[-1].strip() else lines[:-1]
        return "", [shifted(each, given, "") for each in lines]

    def _end_of_line(self, place: int) -> int:
        """Return where the comments end that begin on a line behind a place."""
        while match := _NEXT_COMMENT.match(self._text, place):
            place = match.end()
        return place

    # Within a block

    def _own_indent(self, block: str, wanted: str) -> str:
        """Return what is put before comments that belong with a block's statements."""
        place = self._syntax.outlines[block]
        start, stop = self._tokens[place.inner - 1].stop, self._tokens[place.close].start
        nodes = self._syntax.blocks[block]
        if wanted != "  " or not self._begins_line(start, stop, nodes):
            return wanted
        given = indentation(self._text, self._tokens[place.start].start)
        return self._base(nodes, start, stop).removeprefix(given) or wanted

    def _within(self, block: str, wanted: str, *, leading: bool) -> tuple[str, list[str]]:
        """Return a block's statements, or its leading ones: what is beside its brace, and lines."""
        place = self._syntax.outlines[block]
        start = self._tokens[place.inner - 1].stop
        stop = self._tokens[place.close].start
        nodes = self._syntax.blocks[block]
        apart = self._marks.leading.get(block, 0)
        if apart:
            between = self._end_of_line(self._span(nodes[apart - 1])[1])
            start, stop = (start, between) if leading else (between, stop)
            nodes = nodes[:apart] if leading else nodes[apart:]
        text = self._list(nodes, start, stop)
        first, *lines = _whole_lines(text)
        given = base = self._base(nodes, start, stop)
        if wanted == "  " and self._begins_line(start, stop, nodes):
            # Where the block stays at its level, its lines stay as they are.
            given, wanted = indentation(self._text, self._tokens[place.start].start), ""
        named = self._text[self._tokens[place.start].start : self._tokens[place.inner - 1].start]
        beside = comments(named) if leading or not apart else []
        if beside or tokens(first):
            lines[:0] = [base + each for each in (*beside, first.strip()) if each]
            first = ""
        while apart and not leading and lines and not lines[0].strip():
            lines.pop(0)
        while lines and not lines[-1].strip():
            lines.pop()
        return first.strip(), [shifted(each, given, wanted) for each in lines]

    def _begins_line(self, start: int, stop: int, nodes: tuple[Node, ...]) -> bool:
        first = self._span(nodes[0])[0] if nodes else stop
        return "\n" in self._text[start:first]

    def _base(self, nodes: tuple[Node, ...], start: int, stop: int) -> str:
        """Return what the statements of a block are indented by."""
        for node in nodes:
            place = self._span(node)[0]
            before = indentation(self._text, place)
            line = self._text.rfind("\n", 0, place) + 1
            if line + len(before) == place:
                return before
        if nodes:
            place = self._span(nodes[0])[0]
            return " " * (place - self._text.rfind("\n", 0, place) - 1)
        rows = [row for row in self._text[start:stop].split("\n")[1:] if row.strip()]
        return indentation(rows[0], 0) if rows else ""

    def _span(self, node: Node) -> tuple[int, int]:
        place = self._place(node)
        return self._tokens[place.start].start, self._tokens[place.stop - 1].stop

    def _place(self, node: Node) -> Place:
        return self._syntax.places[id(node)]

    # Statements; lines within a text are indented as they are in the original

    def _list(self, nodes: tuple[Node, ...], start: int, stop: int) -> str:
        """Text of statements with everything between them."""
        out, at = "", start
        for node in nodes:
            first, last = self._span(node)
            written = self._statement(node)
            gap = self._text[at:first]
            if self._part and written.startswith(_GONE):
                out += self._without_last_comments(gap) + _GONE
                line_end = self._text.find("\n", last, stop)
                rest = self._text[last : line_end if line_end >= 0 else stop]
                at = last if tokens(rest) else last + len(rest)
            else:
                out += gap + written
                at = last
        return out + self._text[at:stop]

    @staticmethod
    def _without_last_comments(gap: str) -> str:
        """Return what is between statements without the comments right before the second."""
        stop = before = len(gap)
        for start, end in reversed(comment_places(gap)):
            line = gap.rfind("\n", 0, start) + 1
            if not line or gap[end:before].count("\n") > 1:
                break  # it is of the statement before, or an empty line follows it
            before = start
            if not gap[line:start].strip():
                stop = line
        return gap[:stop] + (gap[gap.rfind("\n") + 1 :] if stop < len(gap) else "")

    def _statement(self, node: Node) -> str:
        """Text of a statement; it begins with :data:`_GONE` if it is not written."""
        if not self._is_new(node):
            first, last = self._span(node)
            return self._text[first:last]
        kind = tag(stmt(node))
        if kind in _COMPOUND:
            if id(node) not in self._marks.heads:
                return _GONE
            before = self._lines(self._formatted.piece(node, "before"), self._indent(node))
            return "".join(f"{row}\n{self._indent(node)}" for row in before) + self._compound(node)
        if kind == "FunDef":
            density = self._function if id(node) in self._marks.heads else self._simple
            value = self._formatted.piece(node, "after")
            return "\n".join([density(node), *(self._indent(node) + row for row in value)])
        return self._simple(node)

    def _is_new(self, node: Node) -> bool:
        return self._marks.texts.get(id(node), "") != StanText().statement(node)

    def _indent(self, node: Node) -> str:
        return indentation(self._text, self._span(node)[0])

    @staticmethod
    def _lines(rows: list[str], indent: str) -> list[str]:
        return [*rows[:1], *(indent + row if row else row for row in rows[1:])]

    def _simple(self, node: Node) -> str:
        """Text of a statement that is rewritten."""
        first, last = self._span(node)
        old, indent = self._text[first:last], self._indent(node)
        piece = self._formatted.piece(node)
        found = comments(old)
        if not piece:
            return _GONE + ("" if self._part else written_comments(found, indent))
        if not found and "\n" not in old:
            return "\n".join(self._lines(piece, indent))
        column = first - self._text.rfind("\n", 0, first) - 1
        return aligned(old, "\n".join(piece), column, indent)

    def _compound(self, node: Node) -> str:
        form, place = stmt(node), self._place(node)
        head = self._head(node, place)
        after = self._tokens[place.head - 1].stop
        if tag(form) in ("Block", "Profile"):
            close = self._tokens[place.stop - 1]
            inner = self._list(items(items(form)[-1]), after, close.start)
            return f"{head}{inner}{close.text}"
        out = head
        for each in bodies(form):
            first, last = self._span(each)
            if out != head and self._dropped(each):
                break
            out += self._body(each, self._text[after:first], self._indent(node))
            after = last
        return out

    def _head(self, node: Node, place: Place) -> str:
        """Text of a compound statement before what it holds."""
        start, stop = self._tokens[place.start].start, self._tokens[place.head - 1].stop
        old, new = self._text[start:stop], self._marks.heads[id(node)]
        if [each.text for each in tokens(old)] == [each.text for each in tokens(new)]:
            return old
        column = start - self._text.rfind("\n", 0, start) - 1
        return aligned(old, new, column, self._indent(node))

    def _dropped(self, node: Node) -> bool:
        kind = tag(stmt(node))
        known = self._marks.heads if kind in _COMPOUND else self._marks.texts
        return id(node) not in known

    def _body(self, node: Node, gap: str, outer: str) -> str:
        """Text of what a loop or a conditional holds, in braces if it is not one statement.

        Parameters
        ----------
        node
            What it holds.
        gap
            What is between its head, or ``else``, and that.
        outer
            What its own line is indented by.
        """
        written = self._statement(node)
        kind = tag(stmt(node))
        if written.startswith(_GONE):
            return f"{gap}{{ {written.removeprefix(_GONE)}}}"
        if kind == "Block" or (kind in _COMPOUND and self._is_whole(node)):
            return gap + written
        if kind not in _COMPOUND and _is_single(written):
            return gap + written
        indent = own = self._indent(node)
        if comments(gap):
            outer = indent  # the brace is where the statement was
        elif not tokens(gap):
            gap = " "
        else:
            gap = gap.rstrip() + " "
        inner = own if own.startswith(outer) and own != outer else f"{outer}  "
        rows = [shifted(row, own, inner) for row in broken(own + written).split("\n")]
        return "\n".join([f"{gap}{{", *rows, f"{outer}}}"])

    def _is_whole(self, node: Node) -> bool:
        """Whether a compound statement has all its parts, and nothing beside it."""
        if self._formatted.piece(node, "before"):
            return False
        held = list(bodies(stmt(node))) if tag(stmt(node)) not in ("Block", "Profile") else []
        return not any(map(self._dropped, held))

    # Functions

    def _function(self, node: Node) -> str:
        """Text of a function that returns what it adds to the target."""
        place, indent = self._place(node), self._indent(node)
        after, close = self._tokens[place.head - 1].stop, self._tokens[place.stop - 1].start
        nodes = items(items(stmt(field(stmt(node), "body")))[1])
        inner = self._list(nodes, after, close)
        own = self._base(nodes, after, close) if "\n" in self._text[after:close] else ""
        own = own or f"{indent}  "
        first, _, rest = inner.partition("\n")
        rows = [self._head(node, place)]
        if "\n" not in self._text[after:close]:
            first, rest = "", own + inner.strip()
        elif tokens(first):
            first, rest = "", f"{own}{first.strip()}\n{rest}"
        rows[0] += f" {first.strip()}" if first.strip() else ""
        rows += [own + row for row in self._formatted.piece(node, "start")]
        rows += [rest.rstrip()] if rest.strip() else []
        rows += [own + row for row in self._formatted.piece(node, "stop")]
        return "\n".join([*rows, f"{indent}}}"])


def _is_single(text: str) -> bool:
    """Whether a text is one simple statement."""
    words = [each.text for each in tokens(text)]
    return words.count(";") == 1 and words[0] not in ("if", "for", "while", "{")


def _whole_lines(text: str) -> list[str]:
    """Return lines without those that held only what is not written."""
    rows: list[str] = []
    given = broken(text).split("\n")
    for number, row in enumerate(given):
        if _GONE not in row:
            rows.append(row)
            continue
        left = row.replace(_GONE, "")
        if left.strip():
            first = row.lstrip()[:1] == _GONE
            rows.append((indentation(row, 0) + left.lstrip() if first else left).rstrip())
        elif number == 0:
            rows.append("")
        elif not rows[-1].strip() and (number + 1 == len(given) or not given[number + 1].strip()):
            rows.pop()  # of two empty lines around it one is left
    return rows or [""]
