"""Build the report: one HTML page that needs nothing else, and its tables as CSV."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import jinja2

from harness.experiment.spec import Claim, Experiment, Figure, Results, Table
from harness.files import write_text
from harness.report.diagnosis import CellDiagnosis, diagnose_cell
from harness.report.style import media_type


@dataclass(frozen=True)
class Section:
    """All that the page shows of one experiment."""

    experiment: Experiment
    results: Results
    claims: Sequence[Claim]
    tables: Sequence[Table]
    figures: Sequence[Figure]
    diagnoses: Sequence[CellDiagnosis]
    reduction: str
    command: str


def build_section(experiment: Experiment, results: Results) -> Section:
    """Evaluate an experiment's results for the page."""
    return Section(
        experiment,
        results,
        experiment.claims(results),
        experiment.tables(results),
        experiment.figures(results),
        [diagnose_cell(results, cell) for cell in results.cells],
        experiment.reductions[results.profile],
        f"nox -s experiments -- {experiment.name} --profile {results.profile}",
    )


def write_report(path: Path, sections: Sequence[Section], *, facts: dict[str, str]) -> None:
    """Write the page, whole or not at all.

    Parameters
    ----------
    path
        File of the page.
    sections
        One an experiment.
    facts
        What was run on what, for the head of the page: versions, machine, date.

    Raises
    ------
    StoreError
        If the file cannot be written.
    """
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("harness.report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["data_uri"] = _data_uri
    environment.filters["four_digits"] = _four_digits
    html = environment.get_template("report.html").render(sections=sections, facts=facts)
    write_text(path, html)


def write_tables(folder: Path, tables: Sequence[Table]) -> None:
    """Write each table as ``FOLDER/NAME.csv``."""
    for table in tables:
        write_text(folder / f"{table.name}.csv", table.frame.to_csv())


def _data_uri(image: bytes) -> str:
    return f"data:{media_type(image)};base64,{base64.b64encode(image).decode('ascii')}"


def _four_digits(value: object) -> str:
    """Four significant digits; whole numbers from 1,000 on, without an exponent."""
    if not isinstance(value, (int, float)):
        return str(value)
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
