"""A form: what is sampled in place of the target, how its draws count, and how to sample it.

``sample(model, form, path, run)`` is the one call for shipped models, users' own programs and
cells of an experiment.
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
    """A density that Stan's NUTS samples in place of the target; its fields are its settings.

    Attributes
    ----------
    name
        Its only name: that of the folder ``stan/NAME/``, of a model's program
        ``stan/MODEL/NAME.stan``, of ``--method`` on the command line, and in fits.
    label
        Its name in words, for pages and figures.
    weighting
        How its raw draws are weighted.
    whole_path
        Whether its draws go all the way from a base to the target, so that a pilot can find its
        path.
    has_ladder
        Whether it can take inverse temperatures from a ladder; they are then integrated out.
    """

    name: ClassVar[str]
    label: ClassVar[str]
    weighting: ClassVar[Weighting]
    whole_path: ClassVar[bool] = False
    has_ladder: ClassVar[bool] = False

    @property
    def program(self) -> str:
        """The variant of a model's Stan programs that these settings need."""
        return self.name

    @property
    def points(self) -> int | None:
        """Number of pseudo-samples; None for forms without pseudo-samples."""
        return None

    @abstractmethod
    def data(self, model: Model, path: TemperedPath | None) -> dict[str, Any]:
        """Return the data that the program takes in addition to the model's own.

        Parameters
        ----------
        model
            Target density with its data.
        path
            The path from the base to the target; None for the model's own base and a flat g.

        Raises
        ------
        DataError
            If a setting makes no sense for the model or for the path.
        """

    def started(self, model: Model, run: Run) -> Run:
        """Return the run with initial values in the layout that the program takes."""
        return run

    @abstractmethod
    def fit(self, model: Model, path: TemperedPath | None, run: Run, ran: VariantRun) -> Fit:
        """Make a fit from what the program wrote."""


@dataclass(frozen=True)
class Found:
    """A path that was found before the run, what the run takes from it, and what finding it cost.

    Attributes
    ----------
    path
        The path.
    run
        The run along the path.  Its seed, initial values and metric may differ from those that were
        asked for.
    attributes
        Attributes for the fit: the cost, as ``gradients_pilot`` and ``seconds_pilot``, and results.
    settings
        What the fit records about how the path was found.
    """

    path: TemperedPath
    run: Run
    attributes: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)


@runtime_checkable
class PathFinder(Protocol):
    """Something that finds a path for a model and a form, such as a pilot."""

    def find(self, model: Model, form: Form, run: Run) -> Found:
        """Find the path, and initial values for the run along it."""
        ...


def sample(model: Model, form: Form, path: TemperedPath | PathFinder | None, run: Run) -> Fit:
    """Sample a form of a model along a path with Stan's NUTS.

    Parameters
    ----------
    model
        Target density with its data.
    form
        What is sampled in place of the target, such as
        :class:`harness.forms.pseudo_extended.PseudoExtended`.
    path
        The path from a base to the target, or an object that finds one, such as
        :class:`harness.forms.from_pilot.FromPilot`.  None for the model's own base and a flat g,
        and for forms that have no path.
    run
        Seed, settings of NUTS, initial values and engine.

    Raises
    ------
    DataError
        If a setting makes no sense for the model, the form or the path.
    SamplingError
        If Stan does not finish, or one of the chains tells nothing about the target.
    """
    if isinstance(path, PathFinder):
        if not form.whole_path:
            raise DataError(
                f"{form.label} does not go all the way from a base to the target, so no path "
                "can be found for it: give the path itself, or None"
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
