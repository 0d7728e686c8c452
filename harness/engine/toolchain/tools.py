"""Find the C++ compiler and make, and run programs so that an interrupt leaves none behind."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.errors import ToolchainError

# Stan 2.39 is C++17; these are the first releases whose library has all the parts Stan uses.
_OLDEST = {"g++": 8, "clang++": 7}

HOW_TO_INSTALL = (
    "Debian, Ubuntu: sudo apt install g++ make",
    "Fedora, RHEL:   sudo dnf install gcc-c++ make",
    "macOS:          brew install gcc make   (or: xcode-select --install)",
)
HOW_TO_INSTALL_STANLI = "pip install 'stanli==0.24.*'"
"""The tested releases of the package that needs no compiler, as in the optional dependencies."""

_ASK_DOCTOR = (
    "Install it with `sudo apt install g++ make` or what `harness doctor` says for your system."
)


@dataclass(frozen=True)
class Compiler:
    """A C++ compiler: how make must call it, and the text that identifies it."""

    command: str
    path: str
    kind: str
    version: str
    identity: str

    @property
    def words(self) -> list[str]:
        """Its path, and the flags that its command has besides."""
        return [self.path, *shlex.split(self.command)[1:]]


@dataclass(frozen=True)
class Make:
    """GNU make: how to call it, where it is, and its version."""

    command: str
    path: str
    version: str


def find_compiler() -> Compiler:
    """Return the compiler in ``$CXX``, or g++, or clang++.

    Raises
    ------
    ToolchainError
        If there is none, it does not run, or it is too old for Stan.
    """
    chosen = os.environ.get("CXX", "").strip()
    candidates = [chosen] if chosen else ["g++", "clang++"]
    for command in candidates:
        try:
            words = shlex.split(command)
        except ValueError as error:
            raise ToolchainError(
                f"CXX, `{command}`, cannot be read as a command ({str(error).lower()}).\n"
                "Correct or unset CXX."
            ) from None
        path = shutil.which(words[0])
        if path is not None:
            return _describe_compiler(command, words, path)
    if chosen:
        raise ToolchainError(
            f"The C++ compiler that CXX names, `{chosen}`, was not found.\n"
            "Correct or unset CXX, or install that compiler."
        )
    raise ToolchainError(f"No C++ compiler (g++ or clang++) was found on PATH.\n{_ASK_DOCTOR}")


def _describe_compiler(command: str, words: list[str], path: str) -> Compiler:
    banner = output_of([path, *words[1:], "--version"])
    first_line = banner.splitlines()[0] if banner else ""
    kind = "clang++" if "clang" in banner else "g++"
    found = re.search(r"clang version (\d[\w.]*)", banner) or re.search(
        r"(\d+\.\d[\w.]*)\s*$|\s(\d+\.\d[\w.]*)", first_line
    )
    if found is None:
        raise ToolchainError(
            f"The C++ compiler {path} does not run: `--version` printed {first_line!r}.\n"
            "Set CXX to a working g++ or clang++."
        )
    version = next(group for group in found.groups() if group)
    if int(version.split(".")[0]) < _OLDEST[kind]:
        raise ToolchainError(
            f"The C++ compiler {path} is {kind} {version}; Stan needs C++17: g++ "
            f"{_OLDEST['g++']} or clang++ {_OLDEST['clang++']} at least.\n"
            "Install a newer one and set CXX to its name."
        )
    # The first word is the name it was called by (g++, c++, ...), which does not matter.
    words_of_banner = first_line.split(" ", 1)
    renamed = words_of_banner[0] == Path(path).name and len(words_of_banner) == 2
    stable = words_of_banner[1] if renamed else first_line
    identity = " ".join([kind, stable, output_of([path, *words[1:], "-dumpmachine"]).strip()])
    return Compiler(command=command, path=path, kind=kind, version=version, identity=identity)


def find_make() -> Make:
    """Return GNU make: the one in ``$MAKE``, which CmdStanPy uses too, or ``make``.

    Raises
    ------
    ToolchainError
        If there is none or it is not GNU make.
    """
    command = os.environ.get("MAKE") or "make"
    path = shutil.which(command)
    if path is None:
        if "MAKE" in os.environ:
            raise ToolchainError(
                f"The make that MAKE names, `{command}`, was not found.\nCorrect or unset MAKE."
            )
        raise ToolchainError(f"GNU make was not found on PATH.\n{_ASK_DOCTOR}")
    banner = output_of([path, "--version"])
    found = re.search(r"GNU Make (\d[\w.]*)", banner)
    if found is None:
        raise ToolchainError(
            f"{path} is not GNU make, which CmdStan needs.\n"
            "Install GNU make and set MAKE to its name (often gmake)."
        )
    return Make(command=command, path=path, version=found.group(1))


def output_of(command: Sequence[str]) -> str:
    """Return what a short program prints, or an empty text if it cannot be run."""
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=30,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "LC_ALL": "C"},
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout


def run_logged(
    command: Sequence[str],
    log: Path,
    *,
    tick: Callable[[], None],
    cwd: Path | None = None,
    env: dict[str, str] | None = None,
    keep_open: tuple[int, ...] = (),
) -> int:
    """Run a program with its output in ``log`` and return its exit status.

    The program gets a process group of its own.  Whatever ends the wait early (above all Ctrl-C)
    ends the whole group, so that no compiler keeps writing afterwards.
    """
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=keep_open,
        )
        try:
            while True:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    return process.wait(timeout=1)
                tick()
        except BaseException:
            _end_group(process)
            raise


def _end_group(process: subprocess.Popen[bytes]) -> None:
    if sys.platform == "win32":
        process.kill()
        return
    # SIGTERM first: make then stops its children and removes half-written targets.
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=3)
