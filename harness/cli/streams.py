"""Keep standard output for results."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def output_is_for_results() -> Iterator[None]:
    """Send what libraries and Stan programs print in this process to standard error instead.

    A program's ``print`` would otherwise stand before the JSON object that somebody parses.
    """
    sys.stdout.flush()
    kept = os.dup(1)
    try:
        os.dup2(2, 1)
        yield
    finally:
        # C and C++ write to the same buffer, which would be emptied after we are back.
        ctypes.CDLL(None).fflush(None)
        os.dup2(kept, 1)
        os.close(kept)
