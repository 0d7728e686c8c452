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
class Nuts(Form):
    """The target itself, unchanged; its fits have no ``extended`` group."""

    name = "nuts"
    label = "NUTS"
    weighting = "unweighted"

    @property
    def program(self) -> str:
        """The program of the model's own density, without tempering."""
        return "target"

    def data(self, model: Model, path: TemperedPath | None) -> dict[str, Any]:
        """Return no data, because the target has no path; a path that is given is refused.

        Raises
        ------
        DataError
            If a path is given.
        """
        if path is not None:
            raise DataError("plain NUTS follows no path: give None for the path")
        return {}

    def fit(self, model: Model, path: TemperedPath | None, run: Run, ran: VariantRun) -> Fit:
        """Make a fit from draws of the target itself."""
        return build_fit(
            posterior={name: ran.run.variables[name] for name in model.parameters},
            extended=None,
            sample_stats=ran.run.sample_stats,
            constant_data=model.data,
            attrs=run_attributes(self.name, model, ran, {}, run.seed),
            weighting=self.weighting,
        )


PLAIN_NUTS = form_method(Nuts, path=None, program="target")
