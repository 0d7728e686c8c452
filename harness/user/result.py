"""The result for a user: the fit with its log Z and diagnosis, also as a table or as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from harness import evidence
from harness.diagnosis import Finding, Severity, diagnose, remember
from harness.errors import DataError
from harness.evidence import LogEvidence
from harness.fit import Fit
from harness.fit.entries import ENTRY, entries, number_of_entries
from harness.modes import Mode, ModeTable
from harness.modes.table import labels_of
from harness.modes.words import as_text as modes_as_text
from harness.user.evidence import is_normalised
from harness.user.one_copy import COPIES
from harness.user.prior import log_prior_integral
from harness.user.spent import (
    Prospect,
    Stage,
    prospect,
    prospect_sentence,
    spent_sentence,
    stages,
)
from harness.user.spent import as_json as spent_as_json

_ROWS_OF_TABLE = 40
_STAGE = {
    "nuts": "nuts",
    "parallel_tempering": "parallel",
    "nested_sampling": "nested",
    "nuts_in_modes": "in_modes",
}
"""Names of methods' steps in the timings, besides ``sampling``."""
_SHOWN = {"nuts": "plain NUTS", "nuts_in_modes": "NUTS in each mode"}
"""Methods whose names are not what people call them."""
_COLUMNS = ("mean", "mcse", "sd", "q5", "q50", "q95", "r_hat")


@dataclass(frozen=True)
class UserFit:
    """Result of sampling a user's program.

    Attributes
    ----------
    fit
        Draws of the posterior under the program's own names, with its transformed parameters and
        generated quantities.  A tempered fit also has the raw draws and weights.
    method
        The method that made it, never ``auto``; ``nuts_in_modes`` is NUTS in each known mode, put
        together by masses (:mod:`harness.user.in_modes`).
    timings
        Seconds of wall time by step.
    nuts
        The fit of plain NUTS, if ``auto`` chose the tempered one.
    tempered
        The tempered fit, if ``auto`` made one and chose another.
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
        """Estimate of log Z with its error; None if there is no estimate."""
        try:
            return self.fit.log_evidence
        except DataError:
            return None

    @property
    def log_integral(self) -> LogEvidence | None:
        """Log of the integral of the program's density with all its constants, and its error.

        It differs from log Z by the log of the prior's integral, whose error adds to that of log Z.
        None if there is no estimate of log Z, or if what the prior integrates to is not known.
        """
        found, constant = self.log_evidence, log_prior_integral(self.fit)
        return None if found is None or constant is None else found.plus(constant)

    @property
    def diagnosis(self) -> list[Finding]:
        """Findings, the worst first."""
        return diagnose(self.fit)

    @property
    def modes(self) -> ModeTable | None:
        """The modes and their probabilities; None if they were not looked for."""
        return self.fit.attribute("modes", ModeTable.from_json)

    @property
    def stages(self) -> list[Stage]:
        """What was spent, stage by stage."""
        return stages(
            self.timings,
            {
                _STAGE.get(_method(each), "sampling"): each
                for each in (self.fit, self.nuts, self.tempered)
                if each is not None
            },
        )

    @property
    def prospect(self) -> Prospect:
        """What twice as many draws would buy."""
        found = self.log_evidence
        error = None if found is None or not math.isfinite(found.mcse) else float(found.mcse)
        return prospect(self.fit, self.timings, _STAGE.get(self.method, "sampling"), error)

    def troubles(self, known: Iterable[Finding] = ()) -> list[Finding]:
        """Return problems and warnings, the worst first, except those that are known."""
        left_out = {each.sentence for each in known}
        return [
            each
            for each in self.diagnosis
            if each.severity > Severity.FINE and each.sentence not in left_out
        ]

    def adding(self, finding: Finding) -> UserFit:
        """Return the result with one more finding."""
        remember(self.fit, [finding])
        return self

    @property
    def gradients(self) -> dict[str, int]:
        """Gradient evaluations by phase, including those of the fit that was not chosen."""
        attrs = self.fit.tree.attrs
        counted = {
            phase: int(np.sum(attrs.get(f"gradients_{phase}", 0)))
            for phase in ("pilot", "warmup", "sampling", "modes")
        }
        counted["nuts"] = 0 if self.nuts is None else _without_pilots(self.nuts)
        if self.tempered is not None:
            counted["tempered"] = _without_pilots(self.tempered)
        return counted | {"total": sum(counted.values())}

    @property
    def replicas(self) -> dict[str, dict[str, Any]]:
        """How parallel tempering's replicas travelled, by the reference that they came from.

        Round trips of each chain, the communication barrier Lambda, and of each ladder the inverse
        temperatures, the rates at which neighbours rejected swaps, step sizes, whether (1) slice
        sampling has replaced or followed the steps, and along how many coordinates wide slices led
        from mode to mode, from the reference to the target.  Empty for every other method.
        """
        attrs = self.fit.tree.attrs
        if "round_trips" not in attrs:
            return {}
        parts = (
            *("round_trips", "communication_barrier", "ladder", "swap_rejection"),
            *("step_size", "sliced", "also_sliced", "hops"),
        )
        names = json.loads(attrs["references"])  # one or two
        return {
            name: {part: np.asarray(attrs.get(f"{part}{of}", [])).tolist() for part in parts}
            for name, of in zip(names, ("", "_2")[: len(names)], strict=True)
        }

    @property
    def copies(self) -> int:
        """Number of copies of the posterior that draws were spread over; 1 if they were not."""
        return int(self.fit.tree.attrs.get(COPIES, 1))

    def summary(self, most: int | None = None) -> dict[str, dict[str, float]]:
        """Mean, its Monte Carlo error, standard deviation, quantiles and R-hat of each number.

        If masses weigh the modes, R-hat is that within modes.

        Parameters
        ----------
        most
            Return only so many, the first ones.  Each takes a few milliseconds.

        Returns
        -------
        dict
            By flattened name, ``theta[1]``, in the program's order.
        """
        rows: dict[str, dict[str, float]] = {}
        posterior, compared = self.posterior, self.fit.compared
        for name in map(str, posterior):
            labels = labels_of(name, posterior[name].transpose("chain", "draw", ...).shape[2:])
            if most is not None:
                labels = labels[: most - len(rows)]
            if not labels:
                continue
            first = {ENTRY: slice(len(labels))}

            def taken(each: xr.Dataset, name: str = name, first: Any = first) -> xr.DataArray:
                return entries(each[name])[first].transpose("chain", "draw", ..., ENTRY)

            estimate = self.fit.expectation(taken)
            draws = taken(posterior).to_numpy().astype(np.float64)
            columns = [
                *(estimate.value, estimate.mcse, evidence.standard_deviation(draws)),
                *np.quantile(draws, [0.05, 0.5, 0.95], axis=(0, 1)),
                evidence.r_hat(taken(compared).to_numpy()),
            ]
            for label, *numbers in zip(labels, *columns, strict=True):
                rows[label] = dict(zip(_COLUMNS, map(float, numbers), strict=True))
        return rows

    def as_json(self) -> dict[str, Any]:
        """Return a summary as plain data; NaN and infinite numbers become None."""
        found, whole = self.log_evidence, self.log_integral
        return {
            "method": self.method,
            "copies": self.copies,
            "log_evidence": None
            if found is None
            else {"mean": _number(found.value), "mcse": _number(found.mcse)},
            "log_integral": None
            if whole is None
            else {"mean": _number(whole.value), "mcse": _number(whole.mcse)},
            "posterior": {
                name: {key: _number(value) for key, value in row.items()}
                for name, row in self.summary().items()
            },
            "modes": None if self.modes is None else [_mode(each) for each in self.modes.modes],
            "mode_copies": 1 if self.modes is None else self.modes.copies,
            **({"replicas": self.replicas} if self.replicas else {}),
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
            "spent": spent_as_json(self.stages, self.prospect),
        }

    def as_text(self) -> str:
        """Return a table of the posterior, log Z and the diagnosis, for people."""
        shown = self.summary(_ROWS_OF_TABLE)
        more = sum(map(number_of_entries, self.posterior.values())) - len(shown)
        width = max([9, *map(len, shown)])
        cells = {
            column: [column, *(f"{row[column]:.4g}" for row in shown.values())]
            for column in _COLUMNS
        }
        wide = {column: max(10, 1 + max(map(len, texts))) for column, texts in cells.items()}
        lines = [
            f"{name:<{width}}" + "".join(f"{cells[column][n]:>{wide[column]}}" for column in wide)
            for n, name in enumerate(["", *shown])
        ]
        if more:
            lines.append(f"and {more:,} more; see --json or the saved fit")
        chains, draws = (self.posterior.sizes[axis] for axis in ("chain", "draw"))
        shown_method = _SHOWN.get(self.method, self.method.replace("_", " "))
        spread = f", spread over {self.copies:,} copies of the posterior" if self.copies > 1 else ""
        systems = self.fit.systems
        several = f", each chain by {systems} systems of replicas" if systems > 1 else ""
        lines += ["", f"Draws: {chains} x {draws:,}, by {shown_method}{several}{spread}"]
        found, diagnosis = self.log_evidence, self.diagnosis
        if found is None:
            lines += ["Log evidence: no estimate"]
        else:
            doubt = any(each.severity == Severity.PROBLEM for each in diagnosis)
            note = ", which may be wrong: see the problems below" if doubt else ""
            lines += [f"Log evidence: {found.text}{note}"]
            lines += self._integral_as_text()
        modes = self.modes
        lines += [] if modes is None else modes_as_text(modes)
        lines += [f"Replicas: {_ladder(name, each)}" for name, each in self.replicas.items()]
        lines += ["", *(f"{each.severity.name:<8}{each}" for each in diagnosis)]
        told = [spent_sentence(self.stages), prospect_sentence(self.prospect)]
        lines += ["", *filter(None, told)] if self.timings else []
        return "\n".join(lines)

    def _integral_as_text(self) -> list[str]:
        """Return a line about the integral of the density, if it is not the evidence."""
        whole, constant = self.log_integral, log_prior_integral(self.fit)
        if whole is None or constant is None or is_normalised(constant):
            return []
        return [f"Integral of the program's density: exp({whole.text}), with all constants"]

    def save(self, path: Path | str) -> None:
        """Write the fit as NetCDF; the file is complete or not there at all.

        If ``auto`` also made a fit that it did not choose, the draws of that fit are in the same
        file, in the groups ``nuts_posterior`` and ``nuts_sample_stats``, or ``tempered_posterior``
        and ``tempered_sample_stats``.

        Raises
        ------
        StoreError
            If the file cannot be written.
        """
        self._with_others().save(Path(path))

    def _with_others(self) -> Fit:
        """Return the fit together with the draws of the fit that was not chosen."""
        groups = {f"/{name}": node.to_dataset() for name, node in self.fit.tree.children.items()}
        for kind, other in (("nuts", self.nuts), ("tempered", self.tempered)):
            if other is not None:
                groups[f"/{kind}_posterior"] = other.posterior
                groups[f"/{kind}_sample_stats"] = other.sample_stats
        tree = xr.DataTree.from_dict(groups)
        tree.attrs = dict(self.fit.tree.attrs)
        return Fit(tree)

    def report(self, path: Path | str) -> None:
        """Write a page about the fit: one HTML file that needs no others.

        Raises
        ------
        StoreError
            If the file cannot be written.
        """
        from harness.report import FitReport  # figures take long to import, and few runs need them

        FitReport(self.fit).save(path)

    def _repr_html_(self) -> str:
        """Return a summary of the fit for notebooks."""
        from harness.report import FitReport

        return FitReport(self.fit)._repr_html_()


def _without_pilots(fit: Fit) -> int:
    """Return the gradients of a fit that was not chosen; the chosen one counts the pilots."""
    return fit.gradients - int(np.sum(fit.tree.attrs.get("gradients_pilot", 0)))


def _method(fit: Fit) -> str:
    return str(fit.tree.attrs["method"])


def _mode(mode: Mode) -> dict[str, Any]:
    """Return a mode as plain data; its copies' orders count from 1, as Stan does."""
    copied = {
        "parameters": list(mode.permuted),
        "order": list(mode.order),
        "otherwise": mode.otherwise or None,
    }
    return {
        "probability": mode.probability,
        "mcse": mode.error,
        "seen_by": dict(mode.seen_by),
        "centre": mode.centre,
        "log_density_at_peak": _number(mode.height),
        "has_maximum": mode.closed,
        "probability_around_peak": None
        if mode.local is None
        else {"mean": mode.local[0], "mcse": mode.local[1]},
        "copy_of": None if mode.copy_of is None else {"mode": mode.copy_of, **copied},
    }


def _ladder(reference: str, found: Mapping[str, Any]) -> str:
    """Describe how replicas travelled along a ladder, in a line."""
    rejection, sliced = found["swap_rejection"], sum(found["sliced"]) + sum(found["also_sliced"])
    step = [
        one
        for one, by_slice in zip(found["step_size"], found["sliced"], strict=True)
        if not by_slice
    ]
    steps = f"; step sizes {min(step):.2g} to {max(step):.2g}" if step else ""
    slices = f"; slice sampling at {sliced} rungs" if sliced else ""
    most = max(found["hops"], default=0)
    hops = f"; coordinates with hops between modes: {most}" if most else ""
    return (
        f"{sum(found['round_trips']):,} round trips from {reference}; barrier "
        f"{found['communication_barrier']:.2f} over {len(found['ladder'])} rungs; swaps rejected "
        f"{min(rejection):.2f} to {max(rejection):.2f}{steps}{slices}{hops}"
    )


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
