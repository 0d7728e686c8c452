"""The report as one Markdown file with its figures next to it: claims, figures and tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd

from harness.files import write_bytes, write_text
from harness.plan.spec import Figure
from harness.report.experiment_page import Section
from harness.report.pages import column_names, four_digits, row_name
from harness.report.style import media_type
from harness.report.written import record_files

_PAGE = "report.md"
_SUFFIX = {"image/png": ".png", "image/svg+xml": ".svg"}


def write_markdown(folder: Path, sections: Sequence[Section], *, facts: dict[str, str]) -> Path:
    """Write ``FOLDER/report.md``, and its figures in a folder for each experiment.

    Parameters
    ----------
    folder
        Folder of the report.
    sections
        One section for each experiment.
    facts
        Facts about the run.

    Returns
    -------
    Path
        File of the report.

    Raises
    ------
    StoreError
        If a file cannot be written.
    """
    written = [_PAGE]
    lines = ["# Experiments", "", *(f"- {name}: {value}" for name, value in facts.items()), ""]
    for section in sections:
        places = {}
        for figure in section.figures:
            suffix = _SUFFIX[media_type(figure.image)]
            place = f"{section.experiment.name}/{figure.name}{suffix}"
            write_bytes(folder / place, figure.image)
            places[figure.name] = place
        written += places.values()
        lines += _section(section, places)
    write_text(folder / _PAGE, "\n".join(lines))
    record_files(folder, "md", written)
    return folder / _PAGE


def _section(section: Section, places: dict[str, str]) -> Iterator[str]:
    yield from (f"## {section.experiment.title}", "", section.experiment.summary, "")
    if section.reduction:
        profile = section.results.profile
        yield from (f"**Profile “{profile}” is reduced:** {section.reduction}", "")
    yield from (f"- {name}: {value}" for name, value in section.facts.items())
    yield from (f"- Run it again with: `{section.command}`", "")
    claims = [(claim.statement, claim.measured, claim.verdict) for claim in section.claims]
    yield from _table(["Claim", "We measured", "Verdict"], claims)
    for figure in section.figures:
        yield from _figure(figure, places[figure.name])
    for table in section.tables:
        yield from (f"### {table.name}", "", table.caption, "", *frame_lines(table.frame))
    runs = [(cell.label, str(section.across[cell.key])) for cell in section.results.cells]
    yield from ("### Runs against each other", "", *_table(["Cell", "Across runs"], runs))


def frame_lines(frame: pd.DataFrame) -> list[str]:
    """Write a table; if its columns have two levels, both are put into one line."""
    rows = [
        (row_name(row[0]), *(four_digits(value) for value in row[1:]))
        for row in frame.itertuples(name=None)
    ]
    return _table([str(frame.index.name or ""), *column_names(frame)], rows)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [_line(head), "|" + " --- |" * len(head), *map(_line, rows)]
    return [*lines, ""]


def _line(cells: Sequence[str]) -> str:
    escaped = (cell.replace("|", "\\|").replace("\n", " ") for cell in cells)
    return "| " + " | ".join(escaped) + " |"


def _figure(figure: Figure, place: str) -> list[str]:
    alt = figure.alt_text.replace("[", "(").replace("]", ")")
    return [f"![{alt}]({place})", "", f"*{figure.caption}*", ""]
