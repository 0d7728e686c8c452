"""NUTS on the target itself, the baseline that tempering is compared with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from harness.errors import DataError
from harness.fit import Fit, build_fit
from harness.forms.common import Run, VariantRun, run_attributes
from harness.forms.form import Form
from harness.forms.method import form_method
from harness.model import Model
from harness.path.data import TemperedPath


@dataclass(frozen=True)
class Target(Form):
    """The target as it is; its fits have no ``extended`` group."""

    name = "target"
    label = "NUTS on the target"
    variant = "target"
    weighting = "unweighted"

    def data(self, model: Model, path: TemperedPath | None) -> dict[str, Any]:
        """Return no data: the target has no path, and one that is given is refused.

        Raises
        ------
        DataError
            If a path is given.
        """
        if path is not None:
            raise DataError("NUTS on the target follows no path: give None in its place")
        return {}

    def fit(self, model: Model, path: TemperedPath | None, run: Run, ran: VariantRun) -> Fit:
        """Make a fit of the target's own draws."""
        return build_fit(
            posterior={name: ran.run.variables[name] for name in model.parameters},
            extended=None,
            sample_stats=ran.run.sample_stats,
            constant_data=model.data,
            attrs=run_attributes(self.name, model, ran, {}, run.seed),
            weighting=self.weighting,
        )


TARGET = form_method(Target, path=None)
