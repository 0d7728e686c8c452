"""What a tempered program takes from ours: functions of tempering, and blocks of a form."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from harness.folders import shipped

_DEFINED = re.compile(r"^(?:int|real|vector|matrix) (\w+)\(", re.MULTILINE)
_CALLED = re.compile(r"\b(\w+)\(")
_WORD = re.compile(r"\b[A-Za-z]\w*")
_ENDS = ("_lpdf", "_lpmf", "_rng", "_lp")
_TYPE = r"(?:int|real|vector|matrix|simplex|positive_ordered)(?:<[^>]*>)?(?:\[[^=;]*\])?"
_DECLARED = re.compile(
    rf"^ *(?:array\[\w+\] )?{_TYPE} (\w+)(?=;| =)|\bfor \((\w+) in", re.MULTILINE
)
_INCLUDE = re.compile(r"^#include (\S+)\n", re.MULTILINE)


class Names:
    """Names that a program does not use yet, as close as possible to those wanted.

    Parameters
    ----------
    taken
        Names that it has already.
    """

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = set(taken)
        self.ours: dict[str, str] = {}

    def pick(self, wanted: str) -> str:
        """Return a name for something that is new each time."""
        name, number = wanted, 1
        # Stan infers the kind of a function from the end of its name.
        stem, end = next(
            ((wanted.removesuffix(end), end) for end in _ENDS if wanted.endswith(end)), (wanted, "")
        )
        while name in self._taken:
            number += 1
            name = f"{stem}_{number}{end}"
        self._taken.add(name)
        return name

    def of(self, wanted: str) -> str:
        """Return the name for one thing of ours, the same each time."""
        if wanted not in self.ours:
            self.ours[wanted] = self.pick(wanted)
        return self.ours[wanted]

    def changed(self, wanted: Iterable[str]) -> dict[str, str]:
        """Those of our names that had to be changed, because the program uses them."""
        return {name: self.ours[name] for name in wanted if self.ours.get(name, name) != name}


def functions(text: str, names: Names) -> str:
    """Text of the functions of ``stan/tempering.stanfunctions`` that a text needs."""
    source = (shipped("stan") / "tempering.stanfunctions").read_text(encoding="utf-8")
    # A comment, and the functions of one name that it is about.
    chunks = re.split(r"\n\n(?=/\*\*)", source.strip())
    defined = {name: chunk for chunk in chunks for name in _DEFINED.findall(_code(chunk))}
    needed: set[str] = set()
    waiting = _CALLED.findall(_code(text))
    while waiting:
        name = waiting.pop()
        if name in defined and name not in needed:
            needed.add(name)
            waiting += _CALLED.findall(_code(defined[name]))
    kept = [chunk for chunk in chunks if needed & set(_DEFINED.findall(_code(chunk)))]
    return _renamed("\n\n".join(kept), {name: names.of(name) for name in sorted(needed)})


def block(path: str, instead: Mapping[str, str | None]) -> str:
    """Text of a file of ``stan/`` with its includes written out; empty if there is no such file.

    Parameters
    ----------
    path
        The file, below ``stan/``.
    instead
        Files to include in place of others; None for nothing.
    """
    file = shipped("stan") / path
    if not file.is_file():
        return ""

    def included(line: re.Match[str]) -> str:
        other = instead.get(line[1], line[1])
        return "" if other is None else block(other, instead)

    return _INCLUDE.sub(included, file.read_text(encoding="utf-8"))


def declared(text: str) -> list[str]:
    """Names that a text declares, with those of loops' variables."""
    return [name or variable for name, variable in _DECLARED.findall(text)]


def renaming(names: Names) -> Callable[[str], str]:
    """Return what gives a template, in our names, those of the program."""
    return lambda text: _renamed(text, names.ours)


def _renamed(text: str, given: dict[str, str]) -> str:
    return _WORD.sub(lambda word: given.get(word[0], word[0]), text)


def _code(text: str) -> str:
    """A text without its comments."""
    return re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.DOTALL)
