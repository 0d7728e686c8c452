"""The text of the Stan program that made a fit, if it has not changed since."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

from harness.engine.compile import source_digest, source_files
from harness.engine.program import StanProgram
from harness.errors import CompileError
from harness.fit import Fit
from harness.folders import shipped


@dataclass(frozen=True)
class ProgramText:
    """A program and the files that it is made of.

    Attributes
    ----------
    name, digest
        Name and hash that the fit records.
    files
        Name and text of the program and of everything that it includes; none if the installed
        programs have a different hash.
    """

    name: str
    digest: str
    files: tuple[tuple[str, str], ...]


def program_text(fit: Fit, program: StanProgram | None = None) -> ProgramText | None:
    """Return the program that made a fit, or None if no program did.

    This is not for fits that have :func:`kept_programs`.

    Parameters
    ----------
    fit
        The fit.
    program
        The expected program; by default it is looked for among those that are shipped.
    """
    attrs = fit.tree.attrs
    if "program_sha256" not in attrs or "programs" in attrs:
        return None
    name, digest = str(attrs["program"]), str(attrs["program_sha256"])
    program = program or _shipped_program(name)
    files: tuple[tuple[str, str], ...] = ()
    if program is not None:
        try:
            if source_digest(program) == digest:
                files = tuple(
                    (f"{path.parent.name}/{path.name}", path.read_text(encoding="utf-8"))
                    for path in source_files(program)
                )
        except (CompileError, OSError, UnicodeDecodeError):
            files = ()
    return ProgramText(name, digest, files)


def kept_programs(fit: Fit) -> tuple[ProgramText, ...]:
    """Return the programs that a fit carries itself, because no package ships them.

    Its attribute ``programs`` is JSON: a list of names and texts.  Each hash is made from the text.
    """

    def read(kept: str) -> tuple[ProgramText, ...]:
        return tuple(
            ProgramText(name, hashlib.sha256(text.encode()).hexdigest(), ((name, text),))
            for name, text in json.loads(kept)
        )

    return fit.attribute("programs", read) or ()


def _shipped_program(name: str) -> StanProgram | None:
    """Find a program by its name, ``gaussian_mixture-target``."""
    folder, _, stem = name.rpartition("-")
    path = shipped("stan") / folder / f"{stem}.stan"
    return StanProgram(path, (shipped("stan"),)) if folder and path.is_file() else None
