"""Faults of ours in rewriting a program, as one kind of error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.errors import RewriteError

FAULTS = (
    *(AssertionError, AttributeError, IndexError, KeyError, RecursionError, TypeError),
    *(ValueError, StopIteration),
)
"""What our own checks, and Python's, raise about a program's tree or text."""


@contextmanager
def faults_named(path: Path) -> Iterator[None]:
    """Turn faults of ours into one of our errors.

    Parameters
    ----------
    path
        The program that is rewritten.

    Raises
    ------
    RewriteError
        In their place.
    """
    try:
        yield
    except FAULTS as error:
        said = (str(error).splitlines() or [""])[0].rstrip(":")
        raise RewriteError(
            f"{path}: harness cannot rewrite this program, which is a fault of harness "
            f"({type(error).__name__}: {said}). Use --method nuts, and report the program"
        ) from error
