"""Run stanc, Stan's own compiler: what it says about a program, and the program in its format."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.engine.program import StanProgram, as_argument, refuse_unreadable
from harness.errors import CompileError, ToolchainError


class Stanc:
    """Stan's compiler, with the folders in which it looks up includes.

    Parameters
    ----------
    executable
        Its file, from :func:`harness.engine.toolchain.require_stanc` or a CmdStan.
    include_paths
        Folders of includes.
    """

    def __init__(self, executable: Path, include_paths: Sequence[Path] = ()) -> None:
        self._command = [str(executable), f"--include-paths={','.join(map(str, include_paths))}"]

    def run(self, path: Path, *options: str) -> str:
        """Return what stanc prints about a program.

        Raises
        ------
        CompileError
            If it cannot be read or is not valid Stan; the message is stanc's, with its line.
        ToolchainError
            If stanc does not run.
        """
        refuse_unreadable(path)
        # When stanc prints its internal tree, it also writes C++ next to the program.
        nowhere = [f"--o={os.devnull}"] if options[0].startswith("--debug") else []
        result = self._run([*nowhere, *options, as_argument(path)])
        if result.returncode != 0:
            raise CompileError(f"{path} is not a valid Stan program:\n{result.stderr.strip()}")
        return result.stdout

    def formatted(self, text: str) -> str:
        """Return a text that we wrote, checked and formatted by stanc."""
        result = self._format(text)
        if result.returncode != 0:
            raise AssertionError(f"what was written is not valid:\n{result.stderr}\n{text}")
        return result.stdout

    def canonical(self, text: str) -> str | None:
        """Return a text in stanc's format with all optional braces; None if it is not valid."""
        result = self._format(text, "--canonicalize=braces")
        return None if result.returncode else result.stdout

    def _format(self, text: str, *options: str) -> subprocess.CompletedProcess[str]:
        return self._run(["--auto-format", "--max-line-length=78", *options, "-"], text)

    def _run(
        self, options: Sequence[str], text: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        command = [*self._command, *options]
        try:
            return subprocess.run(
                command,
                input=text,
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                check=False,
            )
        except OSError as error:
            raise ToolchainError(
                f"Stan's compiler {command[0]} cannot be run: {error.strerror}; see "
                "`harness doctor`"
            ) from error


def run_stanc(program: StanProgram, executable: Path, *options: str) -> str:
    """Run stanc on a program with some options, and return what it prints.

    Raises
    ------
    CompileError, ToolchainError
        For the same reasons as in :meth:`Stanc.run`.
    """
    return Stanc(executable, program.include_paths).run(program.path, *options)


def self_contained(program: StanProgram, executable: Path) -> str:
    """Return a program's text with its includes written out, to send it elsewhere.

    Raises
    ------
    CompileError
        If the program is not valid Stan.
    """
    return run_stanc(program, executable, "--auto-format", "--canonicalize=includes")


@dataclass(frozen=True)
class Declared:
    """Type of a variable.

    Attributes
    ----------
    type
        Type of each entry: ``int``, ``real``, ``complex`` or ``tuple``.
    dimensions
        Number of its axes.
    """

    type: str
    dimensions: int

    def __str__(self) -> str:
        words = {"int": "integer", "complex": "complex number", "tuple": "tuple"}
        word = words.get(self.type, "number")
        if self.dimensions == 0:
            return f"one {word}"
        return f"{word}s with {self.dimensions} " + ("axis" if self.dimensions == 1 else "axes")


def declarations(program: StanProgram, executable: Path) -> dict[str, dict[str, Declared]]:
    """Return what each block of a program declares, by name.

    Returns
    -------
    dict
        By ``inputs``, ``parameters``, ``transformed parameters`` and ``generated quantities``.

    Raises
    ------
    CompileError
        If the program is not valid Stan.
    """
    described: dict[str, Any] = json.loads(run_stanc(program, executable, "--info"))
    for included in described.get("included_files", []):
        refuse_unreadable(Path(included))
    blocks = ("inputs", "parameters", "transformed parameters", "generated quantities")
    return {
        block: {
            name: Declared(_type(each["type"]), int(each["dimensions"]))
            for name, each in described[block].items()
        }
        for block in blocks
    }


def _type(described: str | list[Any]) -> str:
    """Name a type; stanc describes a tuple by the list of what is in it."""
    return described if isinstance(described, str) else "tuple"
