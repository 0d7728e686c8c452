"""The parts of our programs that a tempered program takes: functions, and the data of a path."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from harness.folders import shipped

_DEFINED = re.compile(r"^(?:int|real|vector|matrix) (\w+)\(", re.MULTILINE)
_CALLED = re.compile(r"\b(\w+)\(")
_WORD = re.compile(r"\b[A-Za-z]\w*")
_ENDS = ("_lpdf", "_lpmf", "_rng", "_lp")
_DECLARED = re.compile(r"(\w+);")


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


def functions(wanted: Iterable[str], names: Names) -> str:
    """Text of functions of ``stan/tempering.stanfunctions``, and of those that they call."""
    source = (shipped("stan") / "tempering.stanfunctions").read_text(encoding="utf-8")
    # A comment, and the functions of one name that it is about.
    chunks = re.split(r"\n\n(?=/\*\*)", source.strip())
    defined = {name: chunk for chunk in chunks for name in _DEFINED.findall(_code(chunk))}
    needed: set[str] = set()
    waiting = list(wanted)
    while waiting:
        name = waiting.pop()
        if name not in needed:
            needed.add(name)
            waiting += [each for each in _CALLED.findall(_code(defined[name])) if each in defined]
    kept = [chunk for chunk in chunks if needed & set(_DEFINED.findall(_code(chunk)))]
    text = "\n\n".join(kept)
    return _renamed(text, {name: names.of(name) for name in sorted(needed)})


def data(blocks: Iterable[str], names: Names) -> tuple[str, list[str]]:
    """Text of blocks of data of ``stan/blocks``, and our names of what they declare."""
    folder = shipped("stan") / "blocks"
    text = "".join((folder / f"{name}.standata").read_text(encoding="utf-8") for name in blocks)
    declared = [name for row in text.splitlines() for name in _DECLARED.findall(row.split("//")[0])]
    return _renamed(text, {name: names.of(name) for name in declared}), declared


def renaming(names: Names) -> Callable[[str], str]:
    """Return what gives a template, in our names, those of the program."""
    return lambda text: _renamed(text, names.ours)


def _renamed(text: str, given: dict[str, str]) -> str:
    return _WORD.sub(lambda word: given.get(word[0], word[0]), text)


def _code(chunk: str) -> str:
    """A chunk without its comment."""
    return chunk.split("*/", 1)[-1]
