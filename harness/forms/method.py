"""A method of an experiment: a name, a function, the program it runs, and what drives it.

A cell of an experiment gives all settings in one mapping, as plain data.  A method that is made
from a form sorts them into form, path and run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, Literal

from harness.engine.compile import CompiledProgram
from harness.engine.nuts import NutsSettings
from harness.errors import DataError
from harness.fit import Fit
from harness.forms.common import Run
from harness.forms.form import Form, PathFinder, sample
from harness.model import Model
from harness.path.data import TemperedPath


@dataclass(frozen=True)
class Method:
    """A way of sampling a model.

    Attributes
    ----------
    name
        Name that is used in fits and in the names of tasks.
    variant
        Variant of a model's Stan programs that it runs, which is compiled; None if it runs none.
    sample
        ``sample(model, *, nuts, seed, compiled, **settings) -> Fit``.  A function of a module, or
        a ``partial`` of one, so that another process can find it.
    driven_by
        ``cmdstan``: the work is done in CmdStan's own processes, and threads wait for them.
        ``python``: the work is done in Python, and each run gets a process.
    """

    name: str
    variant: str | None
    sample: Callable[..., Fit]
    driven_by: Literal["cmdstan", "python"] = "cmdstan"


def form_method(
    form: Callable[..., Form],
    *,
    path: Callable[..., TemperedPath | PathFinder] | None = TemperedPath,
    suffix: str = "",
    program: str | None = None,
    driven_by: Literal["cmdstan", "python"] = "cmdstan",
) -> Method:
    """Make a method from a form.

    Parameters
    ----------
    form
        The form's class.  Settings that are fields of the class are passed to it.
    path
        The class that makes the path from settings, or None for a form without a path.
    suffix
        What follows the form's name in the method's name.
    program
        The program that it runs, if that is not named after the form.
    driven_by
        The same as for :class:`Method`.
    """
    own: Any = form
    call = partial(_sample_form, form, path)
    return Method(f"{own.name}{suffix}", program or own.name, call, driven_by)


def _sample_form(
    form: Callable[..., Form],
    path: Callable[..., TemperedPath | PathFinder] | None,
    model: Model,
    *,
    nuts: NutsSettings | None = None,
    seed: int,
    compiled: CompiledProgram | None = None,
    **settings: Any,
) -> Fit:
    """Sort settings into form, path and run, and sample.

    Raises
    ------
    DataError
        If a setting belongs to none of the three.
    """
    of_form = _taken(form, settings)
    of_path = {} if path is None else _taken(path, settings)
    of_run = _taken(Run, settings)
    if settings:
        made: Any = form
        takes = sorted(_names(form) | (set() if path is None else _names(path)))
        raise DataError(
            f"{made.name} takes no {', '.join(sorted(settings))}; its settings are: "
            f"{', '.join(takes) or 'none'}"
        )
    run = Run(seed=seed, nuts=nuts or NutsSettings(), compiled=compiled, **of_run)
    return sample(model, form(**of_form), None if path is None else path(**of_path), run)


def _names(made: Any) -> set[str]:
    return {each.name for each in fields(made)}


def _taken(made: Any, settings: dict[str, Any]) -> dict[str, Any]:
    """Take the settings out that are fields of a class."""
    return {name: settings.pop(name) for name in _names(made) & settings.keys()}


def python_method(name: str, sampler: Callable[..., Fit]) -> Method:
    """Make a method from a sampler that Python drives, without NUTS or a compiled program.

    Parameters
    ----------
    name
        Name that is used in fits and in the names of tasks.
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
    """Run a sampler as an experiment does; ``nuts`` and ``compiled`` are not used."""
    return sampler(model, seed=seed, **settings)
