"""The report's site and its Markdown form: pages, links, what is removed, what does not matter."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from test_diagnosis import pseudo_fit, target_fit, tempered_fit

from harness.diagnosis import Severity
from harness.engine.nuts import NutsSettings
from harness.errors import DataError
from harness.fit import Fit
from harness.forms.continuous_tempering import JOINT_TEMPERING
from harness.models.gaussian_mixture import GaussianMixture
from harness.plan.spec import (
    Cell,
    Claim,
    Experiment,
    Failure,
    Figure,
    Results,
    Table,
)
from harness.report.experiment_page import Section, across_runs, build_section
from harness.report.markdown import write_markdown
from harness.report.site import write_site
from harness.report.style import new_figure, to_image
from harness.report.written import remove_report

MODEL = GaussianMixture(np.array([1.0]), np.array([[0.5]]), np.array([0.6])).model(
    "one", lower=-25, upper=25
)
CELLS = tuple(
    Cell(
        key=key,
        label=key.upper(),
        factors={"method": key},
        model=MODEL,
        method=JOINT_TEMPERING,
        settings={},
        nuts=NutsSettings(),
        replications=2,
    )
    for key in ("ct", "pe", "nuts")
)
LIGHT = CELLS[2:]
MAKE = {
    "ct": lambda seed: tempered_fit(seed),
    "pe": lambda seed: pseudo_fit(seed),
    # Each run alone is sound; two together are in two places.
    "nuts": lambda seed: target_fit(np.random.default_rng(seed).normal(9 * seed, 1, (2, 200, 1))),
}


def results(cells: tuple[Cell, ...] = CELLS) -> Results:
    fits = {(key, r): MAKE[key](r).thinned(120) for key in MAKE for r in (0, 1)}

    def load(cell: Cell, replication: int) -> Fit:
        return fits[cell.key, replication]

    metrics = pd.DataFrame(
        [
            {"cell": c.key, "replication": r, "seconds": 2.0, "gradients": 1e6}
            for c in cells
            for r in (0, 1)
        ]
    )
    failed = (Failure("PE", 7, "out of <memory>\nand more"),)
    finished = "2026-11-21T12:00:00+0000"
    return Results("quick", cells, metrics, load, 7, failed, finished=finished)


def picture(_: Results) -> list[Figure]:
    figure, (axis,) = new_figure()
    axis.plot([1, 2], [3, 4])
    return [Figure("line", "A line; it should rise.", "A line.", to_image(figure))]


def frame(_: Results) -> list[Table]:
    columns = pd.MultiIndex.from_product([["E[X]"], ["ours", "published"]])
    rows = pd.DataFrame([[0.123456, 0.2], [12345.6, np.nan]], index=["a|b", "c"], columns=columns)
    return [Table("moments", "Moments. Ours beside theirs.", rows)]


EXPERIMENT = Experiment(
    name="made_up",
    title="Made <up>",
    source="nowhere",
    summary="A summary.",
    reductions={"smoke": "", "quick": "Half of it.", "paper": ""},
    grid=lambda _: CELLS,
    measure=lambda *_: {},
    tables=frame,
    figures=picture,
    claims=lambda _: [
        Claim("holds", "paper", "It holds.", "It does.", "reproduced"),
        Claim("too", "paper", "It holds, too.", "It does.", "reproduced"),
        Claim("fails", "paper", "It fails.", "It does.", "not reproduced"),
    ],
)


@pytest.fixture(scope="module")
def section() -> Section:
    return build_section(EXPERIMENT, results())


def pages_of(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): path.read_text(encoding="utf-8")
        for path in sorted(folder.rglob("*.html"))
    }


@pytest.fixture(scope="module")
def site(section: Section, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    assert write_site(folder, [section], facts={"Made": "now"}) == folder / "index.html"
    return folder


def test_a_page_for_each_experiment_and_each_cells_first_run(site: Path) -> None:
    assert set(pages_of(site)) == {
        "index.html",
        "made_up/index.html",
        *(f"made_up/{cell.key}-0.html" for cell in CELLS),
    }


def test_pages_need_nothing_else_and_links_lead_somewhere(site: Path) -> None:
    for name, html in pages_of(site).items():
        assert html.startswith("<!DOCTYPE html>")
        assert '<html lang="en">' in html
        assert not re.findall(r'src="(?!data:)', html)
        assert "<script" not in html
        for target in re.findall(r'<a [^>]*href="([^"#]+)"', html):
            assert ((site / name).parent / target).is_file(), (name, target)
        assert all(re.findall(r'<img [^>]*alt="([^"]*)"', html))
        assert all("scope=" in head for head in re.findall(r"<th\b[^>]*>", html))
        assert len((site / name).read_bytes()) < 5e6


def test_what_an_experiments_page_says(site: Path) -> None:
    overview, page = (pages_of(site)[name] for name in ("index.html", "made_up/index.html"))
    words = " ".join(re.sub(r"<[^>]+>", "", overview).split())
    assert "2 reproduced, 1 not reproduced. 6 of 7 fits, 1 failed; profile “quick”." in words
    for part in (
        "Made &lt;up&gt;",
        "Half of it.",
        "nox -s experiments -- made_up --profile quick",
        "12 s of processor time",
        "6,000,000",
        "0.1235</td>",
        "12,346</td>",
        'colspan="2">E[X]',
        "A line; it should rise.",
        "PE, run 7: out of &lt;memory&gt;",
    ):
        assert part in page, part
    assert "and more" not in page
    fit = pages_of(site)["made_up/ct-0.html"]
    assert "made_up --profile quick --only method=ct" in fit


def test_figures_come_before_tables(site: Path, section: Section, tmp_path: Path) -> None:
    page = pages_of(site)["made_up/index.html"]
    text = write_markdown(tmp_path, [section], facts={}).read_text(encoding="utf-8")
    for told in (page, text):
        assert told.index("It fails.") < told.index("A line; it should rise.")
        assert told.index("A line; it should rise.") < told.index("Ours beside theirs.")


def test_pages_of_fits_have_the_labels_of_their_models(tmp_path: Path) -> None:
    cells = tuple(replace(each, model=replace(MODEL, labels={"x": ("height",)})) for each in LIGHT)
    write_site(tmp_path, [build_section(EXPERIMENT, results(cells))], facts={})
    assert "x[height]</th>" in pages_of(tmp_path)["made_up/nuts-0.html"]


def test_runs_that_disagree_are_told_though_each_is_sound(site: Path, section: Section) -> None:
    agreed = section.across
    assert agreed["ct"].severity is agreed["pe"].severity is Severity.FINE
    assert agreed["nuts"].severity is Severity.PROBLEM
    assert "R-hat across runs reaches" in agreed["nuts"].sentence
    alone = pages_of(site)["made_up/nuts-0.html"]
    assert not re.search(r"Problem:</span> The chains disagree", alone)


def test_draws_read_alone_are_the_fits(section: Section) -> None:
    from_fits = across_runs(section.results, CELLS[0])

    def draws(cell: Cell, replication: int) -> dict[str, np.ndarray]:
        return {"x": section.results.load(cell, replication).posterior["x"].to_numpy()}

    assert across_runs(replace(section.results, draws=draws), CELLS[0]) == from_fits


def test_each_fit_is_read_once(tmp_path: Path) -> None:
    found = results(LIGHT)
    read: list[tuple[str, int]] = []

    def load(cell: Cell, replication: int) -> Fit:
        read.append((cell.key, replication))
        return found.load(cell, replication)

    def figures(given: Results) -> list[Figure]:
        given.load(LIGHT[0], 0)
        return []

    built = build_section(replace(EXPERIMENT, figures=figures), replace(found, load=load))
    write_site(tmp_path, [built], facts={}, fits="all")
    assert sorted(read) == [("nuts", 0), ("nuts", 1)]


def test_the_pages_do_not_depend_on_the_workers(tmp_path: Path) -> None:
    section = build_section(EXPERIMENT, results(LIGHT))
    write_site(tmp_path / "one", [section], facts={}, fits="all")
    write_site(tmp_path / "two", [section], facts={}, fits="all", workers=2)
    one = pages_of(tmp_path / "one")
    assert len(one) == 2 + 2
    assert pages_of(tmp_path / "two") == one


def test_pages_of_an_earlier_report_go_and_nothing_else(tmp_path: Path) -> None:
    section = build_section(EXPERIMENT, results(LIGHT))
    folder = tmp_path / "report"
    write_site(folder, [section], facts={}, fits="all")
    (folder / "made_up" / "notes.txt").write_text("mine")
    (tmp_path / "precious").write_text("mine")
    with (folder / "files-html.txt").open("a") as listed:
        listed.write("../precious\n")
    assert "made_up/nuts-1.html" in pages_of(folder)
    write_site(folder, [section], facts={})
    assert set(pages_of(folder)) == {"index.html", "made_up/index.html", "made_up/nuts-0.html"}
    assert (tmp_path / "precious").exists()
    assert remove_report(folder) > 0
    assert [path.name for path in folder.rglob("*") if path.is_file()] == ["notes.txt"]
    (folder / "made_up" / "notes.txt").unlink()
    (folder / "made_up").rmdir()
    assert remove_report(folder) == 0
    assert not folder.exists()


def test_unknown_choice_of_fits(tmp_path: Path, section: Section) -> None:
    with pytest.raises(DataError, match="pages can be made for one or all fits; got 'some'"):
        write_site(tmp_path, [section], facts={}, fits="some")  # type: ignore[arg-type]


def test_markdown_has_claims_tables_and_figures(tmp_path: Path, section: Section) -> None:
    page = write_markdown(tmp_path, [section], facts={"Made": "now"})
    text = page.read_text(encoding="utf-8")
    assert "| It fails. | It does. | not reproduced |" in text
    assert "|  | E[X]: ours | E[X]: published |" in text
    assert "| a\\|b | 0.1235 | 0.2 |" in text
    assert "| c | 12,346 | – |" in text
    ((alt, place),) = re.findall(r"!\[(.*)\]\((.*)\)", text)
    assert alt == "A line."
    assert (tmp_path / place).read_bytes() == section.figures[0].image
    # A site stands beside it; each removes what the last one of its own form wrote.
    write_site(tmp_path, [], facts={})
    assert page.exists()
    write_markdown(tmp_path, [], facts={})
    assert not (tmp_path / place).exists()
    assert (tmp_path / "index.html").exists()
    remove_report(tmp_path)
    assert not tmp_path.exists()
