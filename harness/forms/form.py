"""A form: what is sampled in the target's place, how its draws count, and the one call for all.

``sample(model, form, path, run)`` is the same for a shipped model, somebody's own program and a
cell of an experiment.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, runtime_checkable

from harness.errors import DataError
from harness.fit import Fit, Weighting
from harness.forms.common import Run, VariantRun, run_variant
from harness.model import Model
from harness.path.data import TemperedPath


class Form(ABC):
    """A density that Stan's NUTS samples in the target's place; its fields are its settings.

    Attributes
    ----------
    name
        Name that fits carry, and by which everything else looks the form up.
    label
        Name in words, for pages and figures.
    variant
        Variant of a model's Stan programs that it runs, if its settings ask for no other.
    weighting
        How its raw draws are weighted.
    whole_path
        Whether its draws go all the way from a base to the target, so that a pilot can make its
        path.
    has_ladder
        Whether it can take the inverse temperature from a ladder: it is integrated out then.
    """

    name: ClassVar[str]
    label: ClassVar[str]
    variant: ClassVar[str]
    weighting: ClassVar[Weighting]
    whole_path: ClassVar[bool] = False
    has_ladder: ClassVar[bool] = False

    @property
    def program(self) -> str:
        """Variant of a model's Stan programs that these settings ask for."""
        return self.variant

    @property
    def points(self) -> int | None:
        """Number of pseudo-samples; None for forms that have none."""
        return None

    @abstractmethod
    def data(self, model: Model, path: TemperedPath | None) -> dict[str, Any]:
        """Return the data that the program takes besides the model's own.

        Parameters
        ----------
        model
            Target density with its data.
        path
            From which base, and how; None for the model's own base and a flat g.

        Raises
        ------
        DataError
            If a setting makes no sense for the model or the path.
        """

    def started(self, model: Model, run: Run) -> Run:
        """Return the run with initial values as the program takes them."""
        return run

    @abstractmethod
    def fit(self, model: Model, path: TemperedPath | None, run: Run, ran: VariantRun) -> Fit:
        """Make a fit of what the program wrote."""


@dataclass(frozen=True)
class Found:
    """A path that was looked for before the run, what the run takes from it, and what it cost.

    Attributes
    ----------
    path
        The path.
    run
        The run along it: its seed, initial values and metric may be others than asked for.
    attributes
        For the fit: the cost, as ``gradients_pilot`` and ``seconds_pilot``, and what was found.
    settings
        What the fit remembers of how the path was found.
    """

    path: TemperedPath
    run: Run
    attributes: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)


@runtime_checkable
class PathFinder(Protocol):
    """What makes a path for a model and a form, such as a pilot."""

    def find(self, model: Model, form: Form, run: Run) -> Found:
        """Make the path, and the run's initial values with it."""
        ...


def sample(model: Model, form: Form, path: TemperedPath | PathFinder | None, run: Run) -> Fit:
    """Sample a form of a model along a path with Stan's NUTS.

    Parameters
    ----------
    model
        Target density with its data.
    form
        What is sampled in its place, such as
        :class:`harness.forms.pseudo_extended.PseudoExtended`.
    path
        The way from a base to the target, or what finds one, such as
        :class:`harness.forms.from_pilot.FromPilot`; None for the model's own base and a flat g,
        and for forms that have no path.
    run
        Seed, settings of NUTS, initial values and engine.

    Raises
    ------
    DataError
        If a setting makes no sense for the model, the form or the path.
    SamplingError
        If Stan does not finish, or a chain says nothing about the target.
    """
    if isinstance(path, PathFinder):
        if not form.whole_path:
            raise DataError(
                f"{form.label} does not go all the way from a base to the target, so that it "
                "takes no path that is found for it: give the path itself, or none"
            )
        found = path.find(model, form, run)
        fit = sample(model, form, found.path, found.run)
        fit.tree.attrs |= {**found.attributes, "seed": run.seed}
        return fit.with_settings(**found.settings)
    if path is not None and path.ladder and not form.has_ladder:
        raise DataError(f"{form.label} has no ladder: give a path with ladder=False")
    data = form.data(model, path)
    ran = run_variant(
        model,
        form.program,
        data,
        form.started(model, run),
        pseudo_samples=form.points is not None,
    )
    return form.fit(model, path, run, ran)
