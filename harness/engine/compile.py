"""Compile Stan programs with CmdStan into a cache addressed by their content.

The address of a program is a hash of its text, of the text of everything that it includes, of the
CmdStan that compiles it, and of the flags that the environment gives.  So an unchanged program
is never compiled again, wherever its file is and whenever it was touched, and a program is compiled
again if one of its includes is edited.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from harness.engine.cores import cores
from harness.engine.futures import done_soon, sent
from harness.engine.processes import children_end_with_us, terminate_descendants
from harness.engine.program import StanProgram
from harness.engine.staging import made_once
from harness.engine.stanc import run_stanc
from harness.engine.toolchain import CmdStan
from harness.errors import CompileError
from harness.folders import cache_folder

# CmdStanPy writes the executable beside the source; both lie in the program's own folder.
_EXE_SUFFIX = ".exe" if os.name == "nt" else ""

# What CmdStan's makefile takes from the environment and gives to the compilers.
_FLAGS = (
    "O",
    "CXXFLAGS",
    "CPPFLAGS",
    "LDFLAGS",
    "STANCFLAGS",
    "STAN_THREADS",
    "STAN_NO_RANGE_CHECKS",
)

_INCLUDE = re.compile(r'^\s*#include\s+(?:"([^"]+)"|<([^>]+)>|(\S+))', re.MULTILINE)


@dataclass(frozen=True)
class CompiledProgram:
    """An executable in the cache and the hash of the program's text with its includes."""

    program: StanProgram
    exe: Path
    digest: str


def program_digest(program: StanProgram, stanc: Path) -> str:
    """Return a hash of a program's name and text, and of everything that it includes.

    Raises
    ------
    CompileError
        If the program is not valid Stan; the message is Stan's own, with the line.
    """
    described: dict[str, list[str]] = json.loads(run_stanc(program, stanc, "--info"))
    return _digest(program, map(Path, described.get("included_files", [])))


def source_digest(program: StanProgram) -> str:
    """Return the same hash as :func:`program_digest`, without stanc; nothing is checked.

    Raises
    ------
    CompileError
        If a file cannot be read, or an include is in none of the folders of includes.
    """
    return _digest(program, source_files(program)[1:])


def source_files(program: StanProgram) -> list[Path]:
    """Return a program's file and the files that it includes, each once.

    Raises
    ------
    CompileError
        For the same reasons as in :func:`source_digest`.
    """
    return [program.path, *dict.fromkeys(_included(program, program.path))]


def _digest(program: StanProgram, included: Iterable[Path]) -> str:
    content = hashlib.sha256(f"{program.path.stem}\0".encode())
    for path in [program.path, *included]:
        content.update(hashlib.sha256(_text(path)).digest())
    return content.hexdigest()


def _included(program: StanProgram, path: Path) -> Iterator[Path]:
    """Yield the files that a file includes, each followed by those that it includes itself."""
    for names in _INCLUDE.findall(_text(path).decode(errors="replace")):
        name = next(filter(None, names))
        found = next((f / name for f in program.include_paths if (f / name).is_file()), None)
        if found is None:
            raise CompileError(f"{path} includes {name}, which is in no folder of includes")
        yield found
        yield from _included(program, found)


def _text(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise CompileError(f"cannot read the Stan program {path}: {error.strerror}") from error


@children_end_with_us()
def compile_programs(
    programs: Iterable[StanProgram],
    cmdstan: CmdStan,
    *,
    workers: int | None = None,
    on_compiled: Callable[[StanProgram], None] | None = None,
) -> dict[StanProgram, CompiledProgram]:
    """Compile programs, several at once, and return their executables.

    Parameters
    ----------
    programs
        Programs to compile; duplicates are compiled once.
    cmdstan
        CmdStan to compile with.
    workers
        Number of compilations at once; by default one for each core of this process.
    on_compiled
        Called with each program as its executable becomes ready, for progress.

    Raises
    ------
    CompileError
        For the first program that fails, with the message of Stan or of the C++ compiler.
    """
    compiled: dict[StanProgram, CompiledProgram] = {}
    missing: list[CompiledProgram] = []
    wanted = list(dict.fromkeys(programs))
    if not wanted:
        return compiled
    cache = cache_folder("programs")
    flags = "".join(f"\0{name}={os.environ[name]}" for name in _FLAGS if name in os.environ)
    for program in wanted:
        digest = program_digest(program, cmdstan.stanc)
        made_of = f"{digest}\0{cmdstan.version}\0{cmdstan.path}{flags}".encode()
        folder = cache / hashlib.sha256(made_of).hexdigest()[:32]
        exe = folder / (program.path.stem + _EXE_SUFFIX)
        compiled[program] = CompiledProgram(program, exe, digest)
        if exe.is_file():
            if on_compiled is not None:
                on_compiled(program)
        else:
            missing.append(compiled[program])
    if not missing:
        return compiled
    compilers = _Compilers()
    with ThreadPoolExecutor(min(workers or cores(), len(missing))) as pool:
        try:
            waiting = {sent(pool, _compile, entry, cmdstan, compilers): entry for entry in missing}
            while waiting:
                for future in done_soon(waiting, first=True):
                    entry = waiting.pop(future)
                    future.result()
                    if on_compiled is not None:
                        on_compiled(entry.program)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            compilers.stop()
            raise
    return compiled


class _Compilers:
    """The compilers that are running, so that an interrupt ends them without waiting."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._running: set[subprocess.Popen[str]] = set()
        self._stopped = False

    def run(self, command: Sequence[str], environment: Mapping[str, str]) -> tuple[int, str]:
        """Run a compiler; return its exit code and what it said on standard error."""
        with self._lock:
            self.check()
            process = subprocess.Popen(
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
            )
            self._running.add(process)
        with process:
            _, said = process.communicate()
        with self._lock:
            self._running.discard(process)
        return process.returncode, said

    def check(self) -> None:
        """Raise CompileError if stopped."""
        if self._stopped:
            raise CompileError("stopped before it began")

    def stop(self) -> None:
        """End the running compilers, and start no more."""
        with self._lock:
            self._stopped = True
            for process in self._running:
                terminate_descendants(process.pid)
                process.terminate()


def _compile(entry: CompiledProgram, cmdstan: CmdStan, compilers: _Compilers) -> None:
    """Compile a program into the cache, unless another process has done so meanwhile."""

    def build(staging: Path) -> None:
        source = staging / entry.program.path.name
        shutil.copyfile(entry.program.path, source)
        code, said = compilers.run(
            [
                sys.executable,
                "-m",
                "harness.engine.compile_one",
                str(source),
                *map(str, entry.program.include_paths),
                str(entry.program.path.parent),
            ],
            # Compilers' temporary files go where they are removed, even if we are killed.
            {**os.environ, "CMDSTAN": str(cmdstan.path), "TMPDIR": str(staging)},
        )
        if code != 0:
            raise CompileError(f"{entry.program.path} does not compile:\n{said.strip()}")
        source.with_suffix(".hpp").unlink(missing_ok=True)
        source.with_suffix(".o").unlink(missing_ok=True)

    made_once(entry.exe, build, check=compilers.check)
