"""Linear algebra of NumPy and SciPy without threads of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import scipy.linalg  # noqa: F401  (and NumPy: libraries that are not loaded yet cannot be told)
from threadpoolctl import threadpool_limits


@contextmanager
def one_thread_of_linear_algebra() -> Iterator[None]:
    """Keep linear algebra in the thread that calls it, within a block.

    Its matrices are small here, and densities are evaluated in threads of our own.  OpenBLAS's
    threads wait for each other without letting go of their cores: a search for modes took twice as
    long with them on two idle cores, and more than ten times as long on two busy ones.
    """
    with threadpool_limits(1, user_api="blas"):
        yield
