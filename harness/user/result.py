"""What a user gets: the fit with its log Z, and both in short as a table or as JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from harness import evidence
from harness.diagnosis import Finding, diagnose
from harness.errors import DataError
from harness.evidence import LogEvidence
from harness.fit import Fit
from harness.report import FitReport

_ROWS_OF_TABLE = 40
_COLUMNS = ("mean", "mcse", "sd", "q5", "q50", "q95", "r_hat")


@dataclass(frozen=True)
class UserFit:
    """Result of sampling somebody's program.

    Attributes
    ----------
    fit
        Draws of the posterior under the program's own names, with its transformed parameters and
        generated quantities; of a tempered fit the raw draws and weights too.
    method
        What made it: ``nuts``, ``ct`` or ``pe``; never ``auto``.
    timings
        Seconds of wall time by step.
    nuts
        The plain fit that ``auto`` compared, where the tempered one took its place.
    tempered
        The tempered fit, where ``auto`` made one and plain NUTS's is better all the same.
    """

    fit: Fit
    method: str
    timings: Mapping[str, float] = field(default_factory=dict)
    nuts: Fit | None = None
    tempered: Fit | None = None

    @property
    def tree(self) -> xr.DataTree:
        """The fit as ArviZ takes it."""
        return self.fit.tree

    @property
    def posterior(self) -> xr.Dataset:
        """Unweighted draws, axes (chain, draw, ...)."""
        return self.fit.posterior

    @property
    def log_evidence(self) -> LogEvidence | None:
        """Estimate of log Z with its error; None after plain NUTS without a pilot."""
        try:
            return self.fit.log_evidence
        except DataError:
            return None

    @property
    def diagnosis(self) -> list[Finding]:
        """What the draws show, worst first."""
        return diagnose(self.fit)

    @property
    def gradients(self) -> dict[str, int]:
        """Gradient evaluations by phase, those of the fit that was not chosen too."""
        attrs = self.fit.tree.attrs
        counted = {
            phase: int(np.sum(attrs.get(f"gradients_{phase}", 0)))
            for phase in ("pilot", "warmup", "sampling")
        }
        counted["nuts"] = 0 if self.nuts is None else self.nuts.gradients
        if self.tempered is not None:
            counted["tempered"] = self.tempered.gradients
        return counted | {"total": sum(counted.values())}

    def summary(self) -> dict[str, dict[str, float]]:
        """Mean, its Monte Carlo error, standard deviation, quantiles and R-hat of each number.

        Returns
        -------
        dict
            By flattened name, ``theta[1]``, in the program's order.
        """
        rows: dict[str, dict[str, float]] = {}
        posterior = self.posterior
        for name in map(str, posterior):
            draws = posterior[name].transpose("chain", "draw", ...).to_numpy().astype(np.float64)
            estimate = self.fit.expectation(itemgetter(name))
            mean, mcse = np.atleast_1d(estimate.value), np.atleast_1d(estimate.mcse)
            quantiles = np.quantile(draws, [0.05, 0.5, 0.95], axis=(0, 1))
            r_hat = np.atleast_1d(evidence.r_hat(draws))
            spread = np.atleast_1d(draws.std(axis=(0, 1)))
            for index in np.ndindex(draws.shape[2:] or (1,)):
                inner = ",".join(str(i + 1) for i in index)
                label = f"{name}[{inner}]" if draws.ndim > 2 else name
                low, middle, high = (float(np.atleast_1d(each)[index]) for each in quantiles)
                at_index = [float(each[index]) for each in (mean, mcse, spread)]
                numbers = [*at_index, low, middle, high, float(r_hat[index])]
                rows[label] = dict(zip(_COLUMNS, numbers, strict=True))
        return rows

    def as_json(self) -> dict[str, Any]:
        """Everything in short, as plain data; what is not a number is None."""
        found = self.log_evidence
        return {
            "method": self.method,
            "log_evidence": None
            if found is None
            else {"mean": _number(found.value), "mcse": _number(found.mcse)},
            "posterior": {
                name: {key: _number(value) for key, value in row.items()}
                for name, row in self.summary().items()
            },
            "diagnosis": [
                {
                    "severity": each.severity.name.lower(),
                    "sentence": each.sentence,
                    "what_to_try": each.what_to_try,
                }
                for each in self.diagnosis
            ],
            "timings": {name: round(value, 3) for name, value in self.timings.items()},
            "gradients": self.gradients,
        }

    def as_text(self) -> str:
        """A table of the posterior, log Z and the diagnosis, for reading."""
        rows = self.summary()
        shown = dict(list(rows.items())[:_ROWS_OF_TABLE])
        width = max([9, *map(len, shown)])
        lines = [" " * width + "".join(f"{column:>10}" for column in _COLUMNS)]
        lines += [
            f"{name:<{width}}" + "".join(f"{row[column]:>10.4g}" for column in _COLUMNS)
            for name, row in shown.items()
        ]
        if len(rows) > len(shown):
            lines.append(f"and {len(rows) - len(shown)} more; --json and the fit have all")
        found = self.log_evidence
        if found is None:
            lines += ["", "Log evidence: none; plain NUTS has no estimate of it"]
        else:
            lines += ["", f"Log evidence: {found.value:.3f} ± {found.mcse:.3f}"]
        lines += ["", *(f"{each.severity.name:<8}{each}" for each in self.diagnosis)]
        return "\n".join(lines)

    def save(self, path: Path | str) -> None:
        """Write the fit as NetCDF, whole or not at all.

        Where ``auto`` made another fit besides, its draws are in the file too, as the groups
        ``nuts_posterior`` and ``nuts_sample_stats``, or ``tempered_posterior`` and so on.

        Raises
        ------
        StoreError
            If the file cannot be written.
        """
        self._with_others().save(Path(path))

    def _with_others(self) -> Fit:
        """Return the fit with the posterior draws of the fit that was not chosen."""
        groups = {f"/{name}": node.to_dataset() for name, node in self.fit.tree.children.items()}
        for kind, other in (("nuts", self.nuts), ("tempered", self.tempered)):
            if other is not None:
                groups[f"/{kind}_posterior"] = other.posterior
                groups[f"/{kind}_sample_stats"] = other.sample_stats
        tree = xr.DataTree.from_dict(groups)
        tree.attrs = dict(self.fit.tree.attrs)
        return Fit(tree)

    def report(self, path: Path | str) -> None:
        """Write a page about the fit: one HTML file that needs nothing else.

        Raises
        ------
        StoreError
            If the file cannot be written.
        """
        FitReport(self.fit).save(path)

    def _repr_html_(self) -> str:
        """Show a notebook the fit in short."""
        return FitReport(self.fit)._repr_html_()


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
