"""A Stan program on disk, with the folders of its includes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from harness.errors import CompileError


@dataclass(frozen=True)
class StanProgram:
    """A ``.stan`` file and the folders in which its ``#include`` lines are looked up."""

    path: Path
    include_paths: tuple[Path, ...] = ()

    @property
    def name(self) -> str:
        """Name that tells a model's variants apart, such as ``gaussian_mixture-target``."""
        return f"{self.path.parent.name}-{self.path.stem}"


def refuse_unreadable(path: Path) -> None:
    """Refuse a Stan program, or a file that it includes, that is not text in UTF-8.

    Raises
    ------
    CompileError
        If it is not, cannot be read or does not exist.
    """
    if not path.is_file():
        raise CompileError(f"there is no Stan program {path}")
    try:
        text = path.read_bytes().decode("utf-8")
    except OSError as error:
        raise CompileError(f"cannot read the Stan program {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise CompileError(
            f"the Stan program {path} is not text in UTF-8 (line {line}): save it in that encoding"
        ) from None
    if "\0" in text:
        raise CompileError(
            f"the Stan program {path} is not text in UTF-8 (it has null characters): save it in "
            "that encoding"
        )


def as_argument(path: Path) -> str:
    """Return a path as a program takes it on its command line, where a dash begins an option."""
    text = str(path)
    return f"./{text}" if text.startswith("-") else text
