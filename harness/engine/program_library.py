"""Compile a Stan program with CmdStan's headers to a shared library with BridgeStan's C functions.

This replaces stanli for programs that stanli cannot read, and on machines without it.  Stan's
headers are precompiled once; after that, a program takes about ten seconds.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import stanio

from harness.engine.compile import program_digest
from harness.engine.program import StanProgram
from harness.engine.staging import made_once
from harness.engine.stan_data import plain_data
from harness.engine.stan_library import StanSource, load_library
from harness.engine.stanc import run_stanc
from harness.engine.toolchain import CmdStan
from harness.engine.toolchain.tools import Compiler, find_compiler, run_logged
from harness.errors import CompileError, ToolchainError
from harness.folders import cache_folder

_NATIVE = Path(__file__).resolve().parent / "toolchain" / "native"
_HEADERS, _FUNCTIONS = "stan_headers.hpp", "model.cpp"
_FLAGS = (
    *("-std=c++17", "-O2", "-fPIC", "-pthread", "-D_REENTRANT", "-DSTAN_THREADS"),
    *("-DBOOST_DISABLE_ASSERTS", "-Wno-sign-compare", "-Wno-ignored-attributes"),
)
"""With STAN_THREADS each thread has its own stack of derivatives."""
_INCLUDES = (
    *("include", "src", "stan/src", "lib/CLI11*", "stan/lib/rapidjson*", "stan/lib/stan_math"),
    *("stan/lib/stan_math/lib/eigen*", "stan/lib/stan_math/lib/boost*"),
    *("stan/lib/stan_math/lib/sundials*/include", "stan/lib/stan_math/lib/sundials*/src/sundials"),
    "stan/lib/stan_math/lib/tbb*/include",
)
"""Folders of headers, both in a CmdStan that harness has assembled and in any other."""
_LIBRARIES = ("lib", "stan/lib/stan_math/lib/tbb")
_STATIC = ("lib/libsundials_*.a", "stan/lib/stan_math/lib/sundials*/lib/libsundials_*.a")


def library_source(program: StanProgram, data: Mapping[str, Any], cmdstan: CmdStan) -> StanSource:
    """Return a program with its data, to be evaluated by a compiled library.

    Raises
    ------
    CompileError
        If the program is not valid Stan or does not compile.
    ToolchainError
        If there is no C++ compiler.
    """
    library = load_library(program_library(program, cmdstan))
    return StanSource(
        library, stanio.dump_stan_json(plain_data(data)).encode(), program.name, "cmdstan"
    )


def program_library(program: StanProgram, cmdstan: CmdStan) -> Path:
    """Return a program's shared library; it is found in the cache or compiled now.

    Raises
    ------
    CompileError, ToolchainError
        For the same reasons as in :func:`library_source`.
    """
    compiler = find_compiler()
    made_of = [program_digest(program, cmdstan.stanc), _build_digest(compiler, cmdstan)]
    folder = (
        cache_folder("libraries") / hashlib.sha256("\0".join(made_of).encode()).hexdigest()[:32]
    )
    library = folder / f"{program.path.stem}.so"

    def build(staging: Path) -> None:
        source = staging / f"{program.path.stem}.hpp"
        run_stanc(program, cmdstan.stanc, f"--o={source}")
        headers = _precompiled(compiler, cmdstan)
        _run(
            [
                *(*compiler.words, *_FLAGS, "-shared"),
                *("-I", str(headers), "-include", _HEADERS, "-include", str(source)),
                *_include_flags(cmdstan),
                *(str(_NATIVE / _FUNCTIONS), "-o", str(staging / library.name)),
                *_link_flags(cmdstan),
            ],
            staging,
            program.path,
        )
        source.unlink()

    made_once(library, build)
    return library


def _precompiled(compiler: Compiler, cmdstan: CmdStan) -> Path:
    """Return a folder with Stan's headers, precompiled if the compiler is g++."""
    folder = cache_folder("headers") / _build_digest(compiler, cmdstan)[:32]
    header = folder / _HEADERS

    def build(staging: Path) -> None:
        shutil.copyfile(_NATIVE / _HEADERS, staging / _HEADERS)
        if compiler.kind == "g++":  # clang++ looks for precompiled headers under other names
            flags = [*compiler.words, *_FLAGS, *_include_flags(cmdstan), "-x", "c++-header"]
            made = staging / f"{_HEADERS}.gch"
            _run([*flags, str(staging / _HEADERS), "-o", str(made)], staging, header)

    made_once(header, build)
    return folder


def _run(command: list[str], staging: Path, what: Path) -> None:
    log = staging / "log"
    # Compilers' temporary files go where they are removed, even if we are killed.
    environment = {**os.environ, "TMPDIR": str(staging)}
    if run_logged(command, log, tick=lambda: None, env=environment) != 0:
        said = log.read_text(encoding="utf-8", errors="replace").strip()
        raise CompileError(f"{what} does not compile to a shared library:\n{said[-2000:]}")
    log.unlink()


def _build_digest(compiler: Compiler, cmdstan: CmdStan) -> str:
    own = [(_NATIVE / name).read_bytes() for name in (_HEADERS, _FUNCTIONS)]
    told = [compiler.identity, cmdstan.version, str(cmdstan.path), *_FLAGS]
    return hashlib.sha256(b"\0".join([*own, *(each.encode() for each in told)])).hexdigest()


def _include_flags(cmdstan: CmdStan) -> list[str]:
    folders = [found for each in _INCLUDES for found in sorted(cmdstan.path.glob(each))]
    if not any((folder / "stan" / "model" / "model_header.hpp").is_file() for folder in folders):
        raise ToolchainError(f"the CmdStan in {cmdstan.path} has no headers of Stan")
    return [word for folder in folders for word in ("-isystem", str(folder))]


def _link_flags(cmdstan: CmdStan) -> list[str]:
    folders = [cmdstan.path / each for each in _LIBRARIES if (cmdstan.path / each).is_dir()]
    found = [word for at in folders for word in (f"-L{at}", f"-Wl,-rpath,{at}")]
    static = [str(each) for pattern in _STATIC for each in sorted(cmdstan.path.glob(pattern))]
    return [*found, "-ltbb", *static]
