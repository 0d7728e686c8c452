"""How the peers use JAX: on one core, in double precision, compiled before the first step."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .installed import require

BEFORE = "seconds_before"
"""Attribute of a fit: processor seconds before its first step, most of which JAX compiles."""

_THREADS = "NPROC"
"""Variable in which JAX looks up how many threads to start, at its first use in a process."""
_OPTIMISATION = 1
"""Of LLVM.  The default, 2, takes up to three times as long to compile and gains nothing here."""


def load() -> float:
    """Import blackjax and start JAX, on one core unless the process has used it before.

    A run of the benchmark has one core.  The environment is as it was afterwards.

    Returns
    -------
    float
        Processor seconds that it took: several the first time.

    Raises
    ------
    ToolchainError
        If blackjax is not installed.
    """
    require("blackjax")
    began = time.process_time()
    before = os.environ.get(_THREADS)
    os.environ[_THREADS] = "1"
    try:
        import blackjax  # noqa: F401
        import jax

        jax.devices("cpu")
    finally:
        if before is None:
            del os.environ[_THREADS]
        else:
            os.environ[_THREADS] = before
    return time.process_time() - began


@contextmanager
def double_precision() -> Iterator[None]:
    """Let JAX compute in double precision in a block."""
    import jax

    with jax.enable_x64(True):
        yield


def compiled(function: Callable[..., Any], *arguments: Any) -> Callable[..., Any]:
    """Compile a function of JAX arrays for arguments of these shapes and types."""
    import jax

    traced = jax.jit(function).lower(*arguments)
    made: Callable[..., Any] = traced.compile(
        compiler_options={"xla_backend_optimization_level": _OPTIMISATION}
    )
    return made
