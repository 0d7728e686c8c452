"""A method as an experiment sees it: a name, the variant it runs, a function, what drives it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from harness.fit import Fit


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
        ``sample(model, *, nuts, seed, compiled, **settings) -> Fit``.  A function of a module,
        so that another process can find it.
    driven_by
        ``cmdstan``: the work is done in CmdStan's own processes, threads wait for them;
        ``python``: it is done in Python, and each run gets a process.
    """

    name: str
    variant: str | None
    sample: Callable[..., Fit]
    driven_by: Literal["cmdstan", "python"] = "cmdstan"
