"""A page for one experiment: claims with verdicts, numbers, figures, and links to its fits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import get_args

import numpy as np
import xarray as xr

from harness.diagnosis import Finding, Severity, r_hat_finding
from harness.diagnosis.advice import OF_LIBRARY
from harness.fit import Fit
from harness.plan.spec import (
    Cell,
    Claim,
    Experiment,
    Figure,
    Results,
    Table,
    Verdict,
)
from harness.report.pages import render

# Fits that both an experiment's functions and their own pages need are read only once.
_FITS_IN_MEMORY = 16
# R-hat across runs uses about this many draws of a run, over all chains, and at least this many of
# each chain.
_DRAWS_OF_A_RUN = 1000
_FEWEST_OF_A_CHAIN = 50


@dataclass(frozen=True)
class Section:
    """Everything that the report shows of one experiment, except the pages of its fits.

    Attributes
    ----------
    experiment, results
        What was run, and its results.
    claims, tables, figures
        The experiment's own view of its results.
    across
        For each cell's key, whether its runs agree with each other.
    reduction
        How this profile is smaller than the published experiment; empty if it is not.
    command
        Command that runs the experiment again.
    """

    experiment: Experiment
    results: Results
    claims: Sequence[Claim]
    tables: Sequence[Table]
    figures: Sequence[Figure]
    across: Mapping[str, Finding]
    reduction: str
    command: str

    @property
    def href(self) -> str:
        """Address of the page from the overview."""
        return f"{self.experiment.name}/index.html"

    @property
    def verdicts(self) -> dict[str, int]:
        """Number of claims by verdict, in the order of the verdicts; only those that occur."""
        counts = Counter(claim.verdict for claim in self.claims)
        return {verdict: counts[verdict] for verdict in get_args(Verdict) if counts[verdict]}

    @property
    def facts(self) -> dict[str, str]:
        """Source, time and number of fits, for the head of the page."""
        metrics = self.results.metrics
        if not len(metrics):
            return {"Source": self.experiment.source}
        return {
            "Source": self.experiment.source,
            "Fits": f"{len(metrics)} of {self.results.planned}",
            "Sampling took": f"{duration(metrics['seconds'].sum())} of processor time, "
            "including warm-up and pilots but not compilation",
            "Gradients": f"{metrics['gradients'].sum():,.0f}",
        }


@dataclass(frozen=True)
class CellRow:
    """A cell in the table of diagnoses: its runs, and the pages of its fits."""

    cell: Cell
    runs: int
    across: Finding
    worst: Finding
    pages: Sequence[tuple[int, str]]


def build_section(experiment: Experiment, results: Results, *, options: str = "") -> Section:
    """Evaluate an experiment's results for its page.

    Parameters
    ----------
    experiment, results
        What was run, and its results.
    options
        Options of the command that repeats it, in addition to name and profile.

    Raises
    ------
    StoreError
        If a fit is damaged.
    """
    results = replace(results, load=_kept_in_memory(results))
    command = f"nox -s experiments -- {experiment.name} --profile {results.profile} {options}"
    return Section(
        experiment,
        results,
        experiment.claims(results),
        experiment.tables(results),
        experiment.figures(results),
        {cell.key: across_runs(results, cell) for cell in results.cells},
        experiment.reductions[results.profile],
        command.rstrip(),
    )


def render_experiment_page(
    section: Section, rows: Iterable[CellRow], trail: Sequence[tuple[str, str]]
) -> str:
    """Return the page as HTML.

    Parameters
    ----------
    section
        What it shows.
    rows
        Its cells, with the pages of their fits.
    trail
        Names and addresses of the pages above it.
    """
    known = list(rows)
    pages = {(row.cell.key, run): href for row in known for run, href in row.pages}
    return render("experiment.html", section=section, rows=known, pages=pages, trail=trail)


def across_runs(results: Results, cell: Cell) -> Finding:
    """Say whether a cell's runs agree, as if they were the chains of one run.

    They need not agree if every run has its own model.

    Raises
    ------
    StoreError
        If a fit is damaged.
    """
    if cell.models:
        return Finding(Severity.FINE, "Every run has its own model, so runs need not agree.")
    runs = [_thinned(results.target_draws(cell, each)) for each in results.replications(cell)]
    shortest = min(array.shape[1] for run in runs for array in run.values())
    draws = xr.Dataset(
        {
            name: (
                ("chain", "draw", *(f"{name}_{axis}" for axis in range(array.ndim - 2))),
                np.concatenate([run[name][:, :shortest] for run in runs]),
            )
            for name, array in runs[0].items()
        }
    )
    return r_hat_finding(
        draws, " across runs", "so no single run can be trusted", OF_LIBRARY.better_path
    )


def _thinned(draws: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    chains, count = next(iter(draws.values())).shape[:2]
    step = max(1, min(count * chains // _DRAWS_OF_A_RUN, count // _FEWEST_OF_A_CHAIN))
    return {name: array[:, ::step] for name, array in draws.items()}


def _kept_in_memory(results: Results) -> Callable[[Cell, int], Fit]:
    """Read fits as the results do, but keep the last few in memory."""
    cells = {cell.key: cell for cell in results.cells}

    @lru_cache(maxsize=_FITS_IN_MEMORY)
    def load(key: str, replication: int) -> Fit:
        return results.load(cells[key], replication)

    return lambda cell, replication: load(cell.key, replication)


def duration(seconds: float) -> str:
    """Write a time in the unit that suits it."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
