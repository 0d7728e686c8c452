"""Write the tempered forms of a user's Stan program, and say what they temper and why."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from harness.engine.cores import cores
from harness.engine.stanc import Stanc
from harness.engine.toolchain import require_stanc
from harness.errors import DataError
from harness.temper.base import BaseVerdict
from harness.temper.classify import Classification, Statement, What, classify
from harness.temper.coordinates import BaseCoordinates, base_coordinates, is_jacobian
from harness.temper.declared import declared
from harness.temper.faults import FAULTS, faults_named
from harness.temper.layout import laid_out
from harness.temper.marks import Formatted
from harness.temper.prior import write_prior
from harness.temper.random_data import refuse_random_data
from harness.temper.simulate import Simulation, write_simulation
from harness.temper.source import tokens, without_comments
from harness.temper.syntax import Syntax, read_syntax, written_out
from harness.temper.templates import Variant
from harness.temper.tree import walk
from harness.temper.univariate import Listing, list_priors
from harness.temper.write import Written, write_program

_log = logging.getLogger(__name__)

DEFAULT: Variant = "collapsed_tempering"
"""The form that ``harness sample`` runs where plain NUTS is not enough."""

_TITLES: Mapping[Variant, str] = {
    "joint_tempering": "Joint tempering",
    "collapsed_tempering": "Collapsed tempering",
    "collapsed_tempering_zero_likelihood": "Collapsed tempering, with zero likelihoods,",
    "pseudo_extended": "Pseudo-extended form",
    "collapsed_pseudo_extended": "Collapsed pseudo-extended form",
    "prior": "Prior",
    "target": "Density with all constants",
}

_WHY_NOTHING: Mapping[What, str] = {
    "likelihood": "because none gives data a density; mark those that should be tempered with "
    '// temper: yes, or temper everything with --temper all (what="all" in Python)',
    "all": "because none adds to the density, or each that does is marked with // temper: no",
}


class NoLikelihoodError(DataError):
    """No statement gives data a density, so that a tempered likelihood would be nothing."""


@dataclass(frozen=True)
class TemperedProgram:
    """A program that tempers another one, and what it tempers.

    Attributes
    ----------
    text
        Its text; it includes nothing.  What the original has and need not change stands in it as it
        was, comments and layout included; the rest is formatted by stanc.
    statements
        Which statements of the original are tempered and which not, in the program's order.
    source
        The original program.
    original
        Its text, with its includes written out.
    method, what
        How it is tempered, and what is tempered.
    names
        Its names for data and variables that methods know, if they differ from the usual ones
        because the original has a variable of that name.
    parameters
        The original's parameters in order, with its names for them.  In a pseudo-extended program
        they are arrays whose first axis runs over pseudo-samples.
    uncovered
        Parameters with an element that no untempered statement gives a density, so that the base is
        flat in it.
    bounded
        Parameters whose constraint bounds them on all sides, so that a flat base is proper.
    base_verdict
        Whether the base is normalised; see :mod:`harness.temper.base`.
    why
        The reason for this verdict, in a few words.
    flat
        Unbounded elements of parameters in which the base is flat, for example ``mu[2]``.
    halved
        Parameters of which each element contributes a factor 1/2 to the base's integral.
    coordinates
        Base coordinates of its parameters, for Gaussian bases.
    digest
        SHA-256 of that text.
    questions
        What the text leaves open about the prior and the likelihood, if only the latter is
        tempered, and how to settle it.
    simulation
        For the method ``prior``: a program that draws from it without a Markov chain, formatted;
        None if the prior's statements do not allow it.
    """

    text: str
    statements: tuple[Statement, ...]
    source: Path
    original: str = field(repr=False)
    method: Variant
    what: What
    names: Mapping[str, str] = field(repr=False)
    parameters: Mapping[str, str] = field(repr=False)
    uncovered: tuple[str, ...]
    bounded: tuple[str, ...]
    base_verdict: BaseVerdict
    why: str
    flat: tuple[str, ...]
    halved: tuple[str, ...]
    coordinates: BaseCoordinates = field(repr=False)
    digest: str
    questions: tuple[str, ...] = ()
    simulation: Simulation | None = field(default=None, repr=False)


def temper(
    path: Path,
    *,
    method: Variant = DEFAULT,
    what: What = "likelihood",
    include_paths: Iterable[Path] = (),
) -> TemperedProgram:
    """Write the program that tempers a Stan program.

    Parameters
    ----------
    path
        The program.
    method
        How it is tempered.
    what
        ``likelihood``: the statements of the likelihood are tempered, and the others make the base,
        so that log Z is the evidence.  ``all``: everything is tempered, towards a constant.  A
        comment ``// temper: yes`` or ``// temper: no`` on a statement's line overrides either, for
        that statement and the statements inside it.
    include_paths
        Folders in which ``#include`` lines are looked up, besides the program's own.

    Raises
    ------
    CompileError
        If the program is not valid Stan; the message is stanc's.
    DataError
        If something in it cannot be tempered, or nothing is; the message says which line and why.
    RewriteError
        If a fault of ours keeps it from being rewritten.
    """
    return temper_each(path, [method], what=what, include_paths=include_paths)[0]


def temper_each(
    path: Path,
    methods: Iterable[Variant],
    *,
    what: What = "likelihood",
    include_paths: Iterable[Path] = (),
    data: Mapping[str, Any] = MappingProxyType({}),
) -> list[TemperedProgram]:
    """Write the programs of several methods; see :func:`temper`.

    Parameters
    ----------
    path, what, include_paths
        As of :func:`temper`.
    methods
        How the program is tempered.
    data
        Its data, if they are known: what is written does not depend on them, but what is said of
        the base counts elements by the sizes that are in them.

    Raises
    ------
    CompileError, DataError, RewriteError
        As :func:`temper`.
    """
    path = Path(path)
    with faults_named(path):
        return _temper_each(path, methods, what=what, include_paths=include_paths, data=data)


def _temper_each(
    path: Path,
    methods: Iterable[Variant],
    *,
    what: What,
    include_paths: Iterable[Path],
    data: Mapping[str, Any],
) -> list[TemperedProgram]:
    stanc = _stanc(path, include_paths)
    syntax = read_syntax(path, stanc)
    if not syntax.blocks["parameters"]:
        raise DataError(f"{path} has no parameters, so that there is nothing to temper")
    classification = classify(syntax, what, _whole_numbers(data))
    refuse_random_data(syntax, classification)
    if not any(each.tempered for each in classification.statements):
        refusal = NoLikelihoodError if what == "likelihood" else DataError
        raise refusal(f"{path} has no statement to temper, {_WHY_NOTHING[what]}")
    if what == "all":
        _refuse_jacobians(syntax)
    known = declared(syntax)
    methods = list(methods)
    each_written = [
        write_prior(syntax, classification)
        if method == "prior"
        else write_program(syntax, classification, method, what)
        for method in methods
    ]

    def text_of(method: Variant, written: Written) -> str:
        header = (
            f"// {_TITLES[method]} of {path.name} ({what} tempered), written by\n"
            f"//   harness temper {path.name} --method {method} --temper {what}\n"
            f"// from the program whose text, its includes written out, has the SHA-256\n"
            f"// {syntax.digest}\n"
        )
        part = method == "prior"
        return _with_own_layout(stanc, syntax, header, written, part=part)

    # stanc takes nearly all of the time, and each of its runs is a process.
    with ThreadPoolExecutor(cores()) as pool:
        texts = list(pool.map(text_of, methods, each_written))
    programs = []
    for method, written, text in zip(methods, each_written, texts, strict=True):
        programs.append(
            TemperedProgram(
                text=text,
                statements=classification.statements,
                source=path,
                original=syntax.source.text,
                method=method,
                what=what,
                names=written.names,
                parameters=written.parameters,
                uncovered=classification.base.uncovered,
                bounded=tuple(filter(known.bounded, known.parameters)),
                base_verdict=classification.base.verdict,
                why=classification.base.why,
                flat=classification.base.flat,
                halved=classification.base.halved,
                coordinates=base_coordinates(syntax),
                digest=syntax.digest,
                questions=classification.questions if what == "likelihood" else (),
                simulation=(
                    _simulation(stanc, syntax, classification) if method == "prior" else None
                ),
            )
        )
    return programs


def _simulation(stanc: Stanc, syntax: Syntax, classification: Classification) -> Simulation | None:
    """Return the program that simulates the prior, or None: draws can be had without it."""
    name = syntax.path.name
    try:
        found = write_simulation(syntax, classification)
    except (DataError, *FAULTS) as error:
        _log.info("%s: its prior is not simulated: %s", name, error)
        return None
    title = f"// Draws from the prior of {name}, written by harness"
    text = stanc.canonical(f"{title}\n{found.text}")
    jacobian = stanc.canonical(f"// Stan's change of variables in {name}\n{found.jacobian}")
    if text is None or jacobian is None:
        _log.info("%s: its prior is not simulated: what was written is not valid", name)
        return None
    return replace(found, text=Formatted(text).plain(), jacobian=Formatted(jacobian).plain())


def _with_own_layout(
    stanc: Stanc, syntax: Syntax, header: str, written: Written, *, part: bool
) -> str:
    """Return the text of what was written, with the original's comments and layout.

    It is compared with what was written, token by token in stanc's form of both, and if there were
    a difference it would be without them.
    """
    formatted = Formatted(stanc.formatted(header + written.text))
    plain = formatted.plain()
    text = laid_out(syntax, written.marks, formatted, part=part)
    # stanc's formatter fails on some comments, which its compiler takes.
    bare, bare_plain = without_comments(text), without_comments(plain)
    same = bare == bare_plain or _words(stanc, bare) == _words(stanc, bare_plain)
    return text if same else plain


def _words(stanc: Stanc, text: str) -> list[str] | None:
    """Return the tokens of a text with all braces; None if it is not valid."""
    result = stanc.canonical(text)
    return None if result is None else [each.text for each in tokens(result)]


def _whole_numbers(data: Mapping[str, Any]) -> dict[str, int]:
    return {name: int(each) for name, each in data.items() if _is_whole(each)}


def _is_whole(value: object) -> bool:
    """Whether a value among data is one whole number."""
    if isinstance(value, np.ndarray):
        return value.ndim == 0 and np.issubdtype(value.dtype, np.integer)
    return isinstance(value, int | np.integer)


def _refuse_jacobians(syntax: Syntax) -> None:
    """Refuse functions that add a Jacobian to the target, if everything is tempered."""
    for node in syntax.blocks["transformedparameters"]:
        if any(map(is_jacobian, walk(node))):
            raise DataError(
                f"{syntax.line(node)}: a function of Stan's changes variables here, and the "
                "Jacobian that it adds cannot be tempered; temper the likelihood alone"
            )


def as_table(program: TemperedProgram) -> str:
    """Say, one per line, which statements of a program are tempered and why."""
    rows = []
    for each in program.statements:
        place = str(each.line)
        if Path(each.file) != program.source:
            place = f"{Path(each.file).name}:{each.line}"
        word = "tempered" if each.tempered else "not tempered"
        rows.append(f"{place:>5}  {word:<12}  {each.text}  ({each.why})")
    rows += program.questions
    if program.base_verdict == "improper":
        rows.append(f"{program.why}, so the base is improper and log Z has no meaning")
    elif program.base_verdict == "halved":
        rows.append(
            f"{program.why}, so the base integrates to 1/2 for each of them; log Z is for the base "
            "divided by that"
        )
    elif program.base_verdict == "unknown_constant":
        rows.append(f"the base is not known to be normalised: {program.why}")
    return "\n".join(rows)


def priors_of(path: Path, data: Mapping[str, Any], *, name: str) -> Listing:
    """Write the program that lists the univariate priors of a program's elements.

    Parameters
    ----------
    path
        The program.
    data
        Its data.
    name
        What messages call it.

    Raises
    ------
    CompileError
        If the program is not valid Stan.
    DataError
        If its prior is not a product of distributions of single elements, or of simplexes, whose
        arguments are data.
    RewriteError
        If a fault of ours keeps it from being read.
    """
    with faults_named(path):
        syntax = read_syntax(path, _stanc(path, ()))
        return list_priors(syntax, _whole_numbers(data), name)


def self_contained(path: Path, *, include_paths: Iterable[Path] = ()) -> str:
    """Return a program's own text with its includes written out.

    Raises
    ------
    CompileError
        If the program is not valid Stan.
    """
    path = Path(path)
    return written_out(path, _stanc(path, include_paths))[0].text


def _stanc(path: Path, include_paths: Iterable[Path]) -> Stanc:
    return Stanc(require_stanc(), [*map(Path, include_paths), path.parent])
