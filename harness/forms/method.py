"""A method as an experiment sees it: a name, the variant it runs, a function, what drives it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from harness.fit import Fit
from harness.model import Model


@dataclass(frozen=True)
class Method:
    """A way of sampling a model.

    Attributes
    ----------
    name
        Name that fits and task names carry.
    variant
        Variant of a model's Stan programs that it runs, compiled; None if it runs none.
    sample
        ``sample(model, *, nuts, seed, compiled, **settings) -> Fit``.  A function of a module, or
        a ``partial`` of one, so that another process can find it.
    driven_by
        ``cmdstan``: the work is done in CmdStan's own processes, threads wait for them;
        ``python``: it is done in Python, and each run gets a process.
    """

    name: str
    variant: str | None
    sample: Callable[..., Fit]
    driven_by: Literal["cmdstan", "python"] = "cmdstan"


def python_method(name: str, sampler: Callable[..., Fit]) -> Method:
    """Make a method of a sampler that Python drives: it has neither NUTS nor a compiled program.

    Parameters
    ----------
    name
        Name that fits and task names carry.
    sampler
        ``sampler(model, *, seed, **settings) -> Fit``, a function of a module.
    """
    return Method(name, None, partial(_drive, sampler), driven_by="python")


def _drive(
    sampler: Callable[..., Fit],
    model: Model,
    *,
    nuts: object = None,
    seed: int,
    compiled: object = None,
    **settings: Any,
) -> Fit:
    """Run a sampler as an experiment does; ``nuts`` and ``compiled`` are left alone."""
    return sampler(model, seed=seed, **settings)
