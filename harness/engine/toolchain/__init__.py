"""Find CmdStan or assemble it, and make CmdStanPy use it; or have Stan's compiler alone."""

from __future__ import annotations

import logging
import os
from pathlib import Path

from harness.engine.toolchain.assemble import ensure_assembled
from harness.engine.toolchain.locate import CmdStan, search, version_of
from harness.engine.toolchain.stanc import ensure_stanc
from harness.engine.toolchain.tools import find_compiler, find_make
from harness.errors import ToolchainError

__all__ = ["CmdStan", "find_cmdstan", "require_cmdstan", "require_stanc", "why_no_compiler"]

_log = logging.getLogger(__name__)


def find_cmdstan() -> CmdStan:
    """Return the CmdStan that is already here, without making or downloading anything.

    Raises
    ------
    ToolchainError
        If there is none, or ``$CMDSTAN`` names a folder that holds none.
    """
    found = _search()
    if found is None:
        raise ToolchainError(
            "No CmdStan was found in $CMDSTAN, in ~/.cmdstan or in the cache folder.\n"
            "`harness doctor --build` assembles one."
        )
    return found


def why_no_compiler() -> str | None:
    """Return why no Stan program can be compiled, if the compiler or make is missing, or None."""
    for find in (find_make, find_compiler):
        try:
            find()
        except ToolchainError as error:
            return str(error).splitlines()[0]
    return None


def require_cmdstan() -> CmdStan:
    """Return a CmdStan, assembling one if none is there, and make CmdStanPy use it.

    Raises
    ------
    ToolchainError
        If ``$CMDSTAN`` names a folder that holds none, or none can be assembled here.
    """
    found = _search()
    if found is None:
        folder = ensure_assembled()
        found = CmdStan(folder, version_of(folder), "assembled")
    use(found)
    return found


def require_stanc() -> Path:
    """Return the stanc of the CmdStan that is here, or fetch it alone: that needs no C++ compiler.

    Raises
    ------
    ToolchainError
        If ``$CMDSTAN`` names a folder that holds no CmdStan, or stanc cannot be fetched or does
        not run here.
    """
    found = _search()
    return ensure_stanc() if found is None else found.stanc


def use(cmdstan: CmdStan) -> None:
    """Make CmdStanPy, here and in programs we start, compile with this CmdStan."""
    # Imported here, because it imports pandas, and `harness doctor` must run without either.
    import cmdstanpy

    cmdstanpy.set_cmdstan_path(str(cmdstan.path))
    if cmdstan.source == "assembled" and not os.environ.get("CXX"):
        # make's own default is g++, but this CmdStan may have been built with clang++.
        compiler = find_compiler()
        if compiler.command != "g++":
            os.environ["CXX"] = compiler.command


def _search() -> CmdStan | None:
    result = search()
    for note in result.notes:
        _log.warning("%s", note)
    return result.found
