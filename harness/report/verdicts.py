"""One verdict for each claim, as data, and the tables in README and docs that are made from it.

``python -m harness.report.verdicts STORE [LONGER ...]`` collects what ``harness report`` wrote to
``STORE/EXPERIMENT/tables/claims.csv`` in ``experiments/published/ours-verdicts.csv`` of this
checkout, and writes README's table and ``docs/results.md`` from that.  A longer run's verdict
replaces that of ``STORE``, and the longer run's tables are kept (:mod:`harness.report.kept`).  Once
its tables are kept, a longer run does not need its store any more: its verdicts stay until its
tables are replaced or removed.  Verdicts of experiments that are not in ``STORE`` stay as well, and
so do those of claims that ``STORE`` did not run, so that the store of one experiment, or of some of
its cells, can be added by itself.  Why statements are not reproduced is in a table of its own
(:mod:`harness.report.reasons`).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import pandas as pd

from harness.errors import DataError, HarnessError
from harness.files import write_text
from harness.folders import shipped
from harness.plan.catalogue import experiment_names, load_experiment
from harness.plan.spec import Table, Verdict
from harness.report.experiment_page import Section
from harness.report.kept import CLAIMS, KeptTable, keep_tables, kept_lines, read_kept
from harness.report.markdown import frame_lines
from harness.report.reasons import REASONS, Reasons, read_reasons, reason_lines

VERDICTS = "ours-verdicts.csv"
"""Name of the table of all claims, next to the published numbers."""

_COLUMNS = (
    *("experiment", "key", "kind", "claim", "measured"),
    *("runs", "verdict", "profile", "date", "stan version"),
)
_BEGIN, _END = "<!-- verdicts: begin -->\n", "<!-- verdicts: end -->\n"
_COMMAND = "python -m harness.report.verdicts"


def claims_table(section: Section, stan_version: str) -> Table:
    """Return an experiment's claims, one per row.

    Parameters
    ----------
    section
        The experiment with its results.
    stan_version
        Version of Stan that made the draws.

    Returns
    -------
    Table
        Indexed by ``experiment``, with columns ``key``, ``kind``, ``claim`` (the sentence),
        ``measured``, ``runs`` (of each cell; the fewest and the most), ``verdict``, ``profile``,
        ``date`` (of the latest fit) and ``stan version``.

    Raises
    ------
    DataError
        If two claims have the same key.
    """
    results = section.results
    keys = [claim.key for claim in section.claims]
    twice = sorted({key for key in keys if keys.count(key) > 1})
    if twice:
        raise DataError(
            f"each claim of {section.experiment.name} needs a key of its own; several have "
            f"{', '.join(twice)}"
        )
    counts = sorted({len(results.replications(cell)) for cell in results.cells})
    runs = " to ".join(map(str, dict.fromkeys((counts[0], counts[-1])))) if counts else "0"
    rows = [
        {
            "experiment": section.experiment.name,
            "key": claim.key,
            "kind": claim.kind,
            "claim": claim.statement,
            "measured": claim.measured,
            "runs": runs,
            "verdict": claim.verdict,
            "profile": results.profile,
            "date": results.finished[:10],
            "stan version": stan_version,
        }
        for claim in section.claims
    ]
    frame = pd.DataFrame(rows, columns=[*_COLUMNS])
    return Table(CLAIMS, "Claims and verdicts.", frame.set_index("experiment"))


def read_verdicts(path: Path) -> pd.DataFrame:
    """Read a table of claims, with all entries as text.

    Raises
    ------
    DataError
        If the table cannot be read, or lacks a column.
    """
    try:
        frame = pd.read_csv(path, index_col="experiment", dtype=str, keep_default_na=False)
    except (OSError, ValueError) as error:
        raise DataError(f"cannot read the claims in {path}: {error}") from error
    lacking = [name for name in _COLUMNS[1:] if name not in frame]
    if lacking:
        raise DataError(
            f"the claims in {path} lack {', '.join(lacking)}; `harness report` writes them again"
        )
    return frame


def collect_verdicts(store: Path) -> pd.DataFrame:
    """Put the claims of all experiments of a store together, in alphabetical order.

    Raises
    ------
    DataError
        If the store has no claims.
    """
    paths = [store / name / "tables" / f"{CLAIMS}.csv" for name in experiment_names()]
    frames = [read_verdicts(path) for path in paths if path.is_file()]
    if not frames:
        raise DataError(f"there are no claims in {store}; `harness report --store` writes them")
    return _last_word(*frames)


def keep_verdicts(
    before: pd.DataFrame, now: pd.DataFrame, kept: Sequence[KeptTable]
) -> pd.DataFrame:
    """Return the earlier verdicts that new ones do not replace.

    Parameters
    ----------
    before, now
        Claims that were collected earlier, and those collected now.
    kept
        Tables that are kept.  Verdicts of the runs that made them stay if the claim still exists,
        and so do those of claims that were not run now.
    """
    made = {(table.experiment, table.made) for table in kept}
    claims, not_run = (
        set(zip(some.index, some["key"], strict=True))
        for some in (now, now[now["verdict"] == "not run"])
    )
    stays = []
    for position, name in enumerate(before.index):
        row = before.iloc[[position]]
        claim = (name, row["key"].iloc[0])
        longer = (name, made_by(row)) in made and claim in claims
        stays.append(name not in now.index or longer or claim in not_run)
    return before[stays]


def _last_word(*frames: pd.DataFrame) -> pd.DataFrame:
    """Combine claims; if several runs ask the same, the last verdict counts, decided or not.

    What is claimed is said in the words of the first.
    """
    collected: dict[tuple[str, str], pd.Series] = {}
    for name, row in pd.concat(frames).iterrows():
        key = str(name), row["key"]
        if key not in collected:
            collected[key] = row
        elif row["verdict"] != "not run" or collected[key]["verdict"] == "not run":
            words = {each: collected[key][each] for each in ("kind", "claim")}
            collected[key] = pd.Series({**row, **words}, name=name)
    frame = pd.DataFrame(list(collected.values())).rename_axis("experiment")
    return frame.sort_index(kind="stable")


def readme_lines(verdicts: pd.DataFrame) -> list[str]:
    """Write the papers' claims with their verdicts for the README, after a sentence of counts."""
    of_papers = verdicts["kind"] == "paper"
    papers, ours = verdicts[of_papers], verdicts.loc[~of_papers, "verdict"]
    counts = papers["verdict"].value_counts()
    told = ", ".join(f"{counts.get(word, 0)} {word}" for word in get_args(Verdict))
    return [
        f"{made_by(verdicts)} The papers' {len(papers)} claims: {told}. Further statements, in our "
        f"favour and against us: {(ours == 'reproduced').sum()} of {len(ours)} hold. "
        "[What was measured](docs/results.md).",
        "",
        *frame_lines(papers[["claim", "verdict", "profile"]]),
    ]


def results_page(
    verdicts: pd.DataFrame, kept: Sequence[KeptTable], reasons: Reasons | None = None
) -> str:
    """Return the documentation's page of results.

    It has what was measured for each claim, why some are not reproduced, and tables.
    """
    lines = [
        f"<!-- Written by `{_COMMAND}`. -->",
        "# Results",
        "",
        f"{made_by(verdicts)} Statements that begin with “Ours”, “Against” or “Why” are not the "
        "papers'.",
        "",
    ]
    for name in verdicts.index.unique():
        own = verdicts.loc[[name]]
        runs = own.drop_duplicates("profile").set_index("profile")["runs"]
        told = "; ".join(f"profile {profile}, {count}" for profile, count in runs.items())
        lines += [f"## {load_experiment(str(name)).title}", ""]
        lines += [f"Experiment `{name}`, runs a method: {told}.", ""]
        table = own.set_index("claim")[["measured", "verdict", "profile"]]
        lines += frame_lines(table.rename_axis("statement"))
        lines += reason_lines(own, reasons or {})
        lines += [line for table in kept if table.experiment == name for line in kept_lines(table)]
    return "\n".join(lines)


def between_markers(text: str, lines: list[str]) -> str:
    """Return a page with its table of verdicts replaced.

    Raises
    ------
    DataError
        If the page lacks the markers of the table.
    """
    before, begin, rest = text.partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if not begin or not end:
        raise DataError(f"the page lacks the lines {_BEGIN.strip()} and {_END.strip()}")
    return "".join((before, begin, *(f"{line}\n" for line in lines), end, after))


def write_verdicts(checkout: Path, *stores: Path) -> None:
    """Write tables, README and page of a checkout from stores; the default profile's comes first.

    Raises
    ------
    DataError
        If a store has no claims, or the folder is not a checkout.
    StoreError
        If a file cannot be written.
    """
    verdicts = collect_verdicts(stores[0])
    readme = checkout / "README.md"
    if not readme.is_file():
        raise DataError(f"{checkout} is not a checkout of this project: it has no README.md")
    published = checkout / "experiments" / "published"
    if (published / VERDICTS).is_file():
        before = read_verdicts(published / VERDICTS)
        verdicts = _last_word(verdicts, keep_verdicts(before, verdicts, read_kept(published)))
    longer = {store: collect_verdicts(store) for store in stores[1:]}
    verdicts = _last_word(verdicts, *longer.values())
    text = between_markers(readme.read_text(encoding="utf-8"), readme_lines(verdicts))
    for store, claims in longer.items():
        for name, own in claims.groupby(level="experiment"):
            keep_tables(store / str(name) / "tables", str(name), made_by(own), published)
    write_text(published / VERDICTS, verdicts.to_csv())
    write_text(readme, text)
    write_text(
        checkout / "docs" / "results.md",
        results_page(verdicts, read_kept(published), read_reasons(published / REASONS)),
    )


def made_by(verdicts: pd.DataFrame) -> str:
    """Say in a sentence which runs made the verdicts and the tables that go with them."""
    profile, date, version = (
        ", ".join(sorted(set(verdicts[name]))) for name in ("profile", "date", "stan version")
    )
    word = "Profiles" if ", " in profile else "Profile"
    return f"{word} {profile}; fits of {date}; Stan {version}."


def main(*arguments: str) -> int:
    """Write verdicts and pages; on failure print why and return 1."""
    if not arguments:
        print(f"usage: {_COMMAND} STORE [LONGER ...]", file=sys.stderr)
        return 2
    try:
        write_verdicts(shipped("experiments").parent, *map(Path, arguments))
    except HarnessError as error:
        print(f"harness: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
