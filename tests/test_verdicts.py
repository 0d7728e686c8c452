"""Verdicts as data, and README and documentation that say what the data say."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Never, get_args

import pandas as pd
import pytest
from doc_blocks import ROOT
from test_report_site import EXPERIMENT, results

from harness.errors import DataError
from harness.plan.catalogue import experiment_names, load_experiment
from harness.plan.spec import Cell, ClaimKind, Profile, Results, Verdict
from harness.report import verdicts
from harness.report.experiment_page import build_section
from harness.report.kept import KeptTable, keep_tables, kept_lines, read_kept
from harness.report.reasons import REASONS, read_reasons, reason_lines
from harness.report.site import write_tables

COMMITTED = ROOT / "experiments" / "published" / "ours-verdicts.csv"
README, PAGE = ROOT / "README.md", ROOT / "docs" / "results.md"


@pytest.fixture(scope="module")
def committed() -> pd.DataFrame:
    return verdicts.read_verdicts(COMMITTED)


def test_readme_and_page_say_what_the_data_say(committed: pd.DataFrame) -> None:
    text = README.read_text(encoding="utf-8")
    assert verdicts.between_markers(text, verdicts.readme_lines(committed)) == text
    kept = read_kept(COMMITTED.parent)
    reasons = read_reasons(COMMITTED.with_name(REASONS))
    assert PAGE.read_text(encoding="utf-8") == verdicts.results_page(committed, kept, reasons)


def test_what_is_not_reproduced_has_a_reason(committed: pd.DataFrame) -> None:
    """Each statement with this verdict, and no other, in a sentence with a number."""
    reasons = read_reasons(COMMITTED.with_name(REASONS))
    rows = committed[committed["verdict"] == "not reproduced"]
    assert set(reasons) == set(zip(rows.index, rows["key"], strict=True))
    for reason in reasons.values():
        assert re.search(r"\d", reason)
        assert reason.endswith(".")


def test_what_is_wrong_with_reasons_is_said(tmp_path: Path) -> None:
    path = tmp_path / REASONS
    assert read_reasons(path) == {}
    path.write_text("experiment,key\nhard,a\n", encoding="utf-8")
    with pytest.raises(DataError, match="lack reason"):
        read_reasons(path)
    path.write_text("experiment,key,reason\nhard,a,One.\nhard,a,Two.\n", encoding="utf-8")
    with pytest.raises(DataError, match="several reasons for hard a"):
        read_reasons(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(DataError, match="cannot read the reasons"):
        read_reasons(path)


def test_reasons_are_listed_where_they_belong(committed: pd.DataFrame) -> None:
    one = committed.iloc[[0]].assign(verdict="not reproduced")
    name, key, claim = str(one.index[0]), one["key"].iloc[0], one["claim"].iloc[0]
    lines = reason_lines(one, {(name, key): "Because."})
    assert lines == [f"- {claim} **Not reproduced:** Because.", ""]
    assert reason_lines(one, {}) == []
    assert reason_lines(one.assign(verdict="reproduced"), {(name, key): "Because."}) == []


def test_tables_that_are_kept_say_what_made_them() -> None:
    for table in read_kept(COMMITTED.parent):
        assert table.experiment in experiment_names()
        assert re.fullmatch(
            r"Profile \w+; fits of \d{4}-\d\d-\d\d; Stan \d+\.\d+\.\d+\.", table.made
        )
        assert len(table.frame) > 0


def test_the_data_are_of_our_experiments(committed: pd.DataFrame) -> None:
    assert len(committed) > 0
    assert set(committed.index) <= set(experiment_names())
    assert set(committed["verdict"]) <= set(get_args(Verdict))
    assert set(committed["profile"]) <= set(get_args(Profile))
    assert committed["date"].str.fullmatch(r"\d{4}-\d\d-\d\d").all()
    assert set(committed["kind"]) <= set(get_args(ClaimKind))
    assert not committed.reset_index().duplicated(["experiment", "key"]).any()


def test_the_data_have_the_claims_of_our_experiments(committed: pd.DataFrame) -> None:
    """Key, kind and words; those of the images are of the decoder that ships."""

    def no_fit(cell: Cell, replication: int) -> Never:
        raise AssertionError

    for name in experiment_names():
        if load_experiment(name).on_request and name not in committed.index:
            continue  # its verdicts are added once it has been run
        empty = Results("quick", (), pd.DataFrame(columns=["cell"]), no_fit, 9)
        claims = load_experiment(name).claims(empty)
        rows = committed.loc[[name], ["key", "kind", "claim"]]
        assert list(rows.itertuples(index=False, name=None)) == [
            (claim.key, claim.kind, claim.statement) for claim in claims
        ]


def test_every_row_has_its_claim_in_the_readme_or_is_not_a_papers(committed: pd.DataFrame) -> None:
    """Counted another way than the table is made."""
    inside = README.read_text(encoding="utf-8").split("<!-- verdicts: begin -->")[1]
    rows = [line for line in inside.split("<!-- verdicts: end -->")[0].splitlines() if "|" in line]
    assert len(rows) - 2 == list(committed["kind"]).count("paper")
    columns = committed[["kind", "claim", "verdict", "profile"]]
    for name, kind, claim, verdict, profile in columns.itertuples(name=None):
        listed = f"| {name} | {claim.replace('|', chr(92) + '|')} | {verdict} | {profile} |" in rows
        assert listed is (kind == "paper")


def test_claims_of_a_report_come_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    section = build_section(EXPERIMENT, results())
    table = verdicts.claims_table(section, "2.39.0")
    write_tables(tmp_path / "made_up" / "tables", [table])
    monkeypatch.setattr(verdicts, "experiment_names", lambda: ["absent", "made_up"])
    frame = verdicts.collect_verdicts(tmp_path)
    assert list(frame.index) == ["made_up"] * 3
    first = dict(frame.iloc[0])
    assert first == {
        "key": "holds",
        "kind": "paper",
        "claim": "It holds.",
        "measured": "It does.",
        "runs": "2",
        "verdict": "reproduced",
        "profile": "quick",
        "date": "2026-11-21",
        "stan version": "2.39.0",
    }
    lines = verdicts.readme_lines(frame)
    assert lines[2:5] == [
        "| experiment | claim | verdict | profile |",
        "| --- | --- | --- | --- |",
        "| made_up | It holds. | reproduced | quick |",
    ]
    assert lines[0].startswith(
        "Profile quick; fits of 2026-11-21; Stan 2.39.0. The papers' 3 claims"
    )
    assert "claims: 2 reproduced, 1 not reproduced, 0 undecided, 0 not run." in lines[0]


def test_ours_are_counted_and_not_listed() -> None:
    claims = ["It holds.", "Ours: it holds.", "Against us: it fails.", "Why we differ: so."]
    told = ["not reproduced", "reproduced", "reproduced", "not run"]
    frame = pd.DataFrame(
        {
            "key": ["holds", "ours", "against", "why"],
            "kind": ["paper", "ours", "against", "why"],
            "claim": claims,
            "measured": "7",
            "runs": "2 to 9",
            "verdict": told,
            "profile": "quick",
            "date": "2026-11-21",
            "stan version": "2.39.0",
        },
        index=pd.Index(["shapes"] * 4, name="experiment"),
    )
    lines = verdicts.readme_lines(frame)
    assert [line for line in lines if "Ours" in line or "Against" in line] == []
    assert "| shapes | It holds. | not reproduced | quick |" in lines
    assert "in our favour and against us: 2 of 3 hold." in lines[0]
    page = verdicts.results_page(frame, [])
    assert f"## {load_experiment('shapes').title}" in page
    assert "runs a method: profile quick, 2 to 9." in page
    assert all(
        f"| {claim} | 7 | {told} | quick |" in page
        for claim, told in zip(claims, told, strict=True)
    )


def test_a_checkout_is_written_and_stays(tmp_path: Path, committed: pd.DataFrame) -> None:
    name = str(committed.index[0])
    tables = tmp_path / "store" / name / "tables"
    tables.mkdir(parents=True)
    (tables / "claims.csv").write_text(committed.loc[[name]].to_csv(), encoding="utf-8")
    readme = tmp_path / "README.md"
    readme.write_text("A\n<!-- verdicts: begin -->\n<!-- verdicts: end -->\nB\n", encoding="utf-8")
    for _ in range(2):
        verdicts.write_verdicts(tmp_path, tmp_path / "store")
        written = readme.read_text(encoding="utf-8")
        assert written.startswith("A\n")
        assert written.endswith("<!-- verdicts: end -->\nB\n")
        collected = tmp_path / "experiments" / "published" / "ours-verdicts.csv"
        frame = verdicts.read_verdicts(collected)
        assert frame.equals(committed.loc[[name]])
        assert verdicts.between_markers(written, verdicts.readme_lines(frame)) == written


def test_a_longer_run_has_the_last_word_where_it_has_one(
    tmp_path: Path, committed: pd.DataFrame
) -> None:
    name = str(committed.index[0])
    told = ["not run", "reproduced", "reproduced", "reproduced"]
    claims = committed.loc[[name]].iloc[:4].assign(verdict=told, profile="quick")
    told = ["reproduced", "not run", "not reproduced", "undecided"]
    longer = claims.assign(verdict=told, profile="paper")
    for store, frame in (("quick", claims), ("paper", longer)):
        tables = tmp_path / store / name / "tables"
        tables.mkdir(parents=True)
        (tables / "claims.csv").write_text(frame.to_csv(), encoding="utf-8")
        (tables / "errors.csv").write_text(f"method,RMSE\nNUTS,{store}\n", encoding="utf-8")
    (tmp_path / "README.md").write_text(
        "<!-- verdicts: begin -->\n<!-- verdicts: end -->\n", encoding="utf-8"
    )
    published = tmp_path / "experiments" / "published"
    for _ in range(2):
        verdicts.write_verdicts(tmp_path, tmp_path / "quick", tmp_path / "paper")
        frame = verdicts.read_verdicts(published / "ours-verdicts.csv")
        assert list(frame["claim"]) == list(claims["claim"])
        told = ["reproduced", "reproduced", "not reproduced", "undecided"]
        assert list(frame["verdict"]) == told
        assert list(frame["profile"]) == ["paper", "quick", "paper", "paper"]
        (table,) = read_kept(published)
        assert (table.experiment, table.name) == (name, "errors")
        assert table.made.startswith("Profile paper; fits of ")
        assert "| NUTS | paper |" in kept_lines(table)
        page = (tmp_path / "docs" / "results.md").read_text(encoding="utf-8")
        assert f"`experiments/published/{table.file}`" in page
    # A run of other cells replaces the tables that it has, and no others.
    tables = tmp_path / "paper" / name / "tables"
    (tables / "errors.csv").rename(tables / "other.csv")
    keep_tables(tables, name, "Profile paper; fits of today.", published)
    kept = [(each.name, each.made.startswith("Profile paper")) for each in read_kept(published)]
    assert kept == [("errors", True), ("other", True)]
    keep_tables(tables, name, "Profile paper; fits of tomorrow.", published)
    assert [each.made[-9:] for each in read_kept(published) if each.name == "other"] == [
        "tomorrow."
    ]
    (published / f"ours-{name}-other.csv").write_text("method,RMSE\n", encoding="utf-8")
    with pytest.raises(DataError, match="does not say what made"):
        read_kept(published)


def test_what_a_longer_run_said_stays_without_its_store(
    tmp_path: Path, committed: pd.DataFrame
) -> None:
    name, other = map(str, committed.index.unique()[:2])
    committed = committed.assign(verdict="reproduced", profile="quick", date="2026-11-21")
    claims, elsewhere = committed.loc[[name]].iloc[:3], committed.loc[[other]].iloc[:1]
    longer = claims.assign(verdict=["not reproduced", "not run", "not reproduced"], profile="paper")
    # Another experiment's kept tables, of the default run's own profile and date, keep nothing.
    assert set(elsewhere["date"]) == set(claims["date"])
    table = KeptTable(other, "errors", verdicts.made_by(claims), pd.DataFrame())
    assert list(verdicts.keep_verdicts(claims, claims, [table])["claim"]) == []
    stores = {"quick": [claims, elsewhere], "paper": [longer]}
    for store, frames in stores.items():
        for frame in frames:
            tables = tmp_path / store / str(frame.index[0]) / "tables"
            tables.mkdir(parents=True)
            (tables / "claims.csv").write_text(frame.to_csv(), encoding="utf-8")
            (tables / "errors.csv").write_text("method,RMSE\nNUTS,1\n", encoding="utf-8")
    (tmp_path / "README.md").write_text(
        "<!-- verdicts: begin -->\n<!-- verdicts: end -->\n", encoding="utf-8"
    )
    published = tmp_path / "experiments" / "published"
    verdicts.write_verdicts(tmp_path, tmp_path / "quick", tmp_path / "paper")
    first = verdicts.read_verdicts(published / "ours-verdicts.csv")
    told = ["not reproduced", "reproduced", "not reproduced", "reproduced"]
    assert list(first["verdict"]) == told

    # Neither the longer run's store is needed again nor those of experiments that did not change;
    # of the default run's own verdicts the new ones count, and a claim that is no longer made goes.
    rows = [claims.iloc[[0]], claims.iloc[[1]].assign(verdict="not reproduced")]
    rows[0] = rows[0].assign(claim="The same in other words.")
    renamed = claims.iloc[[2]].assign(key="another", claim="Another claim.")
    again = tmp_path / "again" / name / "tables"
    again.mkdir(parents=True)
    (again / "claims.csv").write_text(pd.concat([*rows, renamed]).to_csv(), encoding="utf-8")
    verdicts.write_verdicts(tmp_path, tmp_path / "again")
    second = verdicts.read_verdicts(published / "ours-verdicts.csv")
    assert list(second["key"]) == [*claims["key"][:2], "another", *elsewhere["key"]]
    said = ["The same in other words.", claims["claim"].iloc[1], "Another claim."]
    assert list(second["claim"]) == [*said, *elsewhere["claim"]]
    assert list(second["profile"]) == ["paper", "quick", "quick", "quick"]
    assert list(second["verdict"]) == ["not reproduced", "not reproduced", *["reproduced"] * 2]

    # Without its tables a longer run is forgotten.
    (published / f"ours-{name}-errors.csv").unlink()
    verdicts.write_verdicts(tmp_path, tmp_path / "again")
    third = verdicts.read_verdicts(published / "ours-verdicts.csv")
    assert third["verdict"].iloc[0] == "reproduced"
    assert list(third["profile"]) == ["quick"] * 4


def test_the_store_of_some_cells_takes_no_verdict_away(committed: pd.DataFrame) -> None:
    """What it did not run is as it was; what it ran, or what is no claim any more, is not."""
    name = str(committed.index[0])
    before = committed.loc[[name]].iloc[:3].assign(verdict="reproduced", profile="paper")
    now = before.iloc[:2].assign(verdict=["not run", "not reproduced"], profile="quick")
    kept = verdicts.keep_verdicts(before, now, [])
    assert list(kept["key"]) == [before["key"].iloc[0]]


def test_a_long_table_is_named_only(tmp_path: Path) -> None:
    lines = ["# Profile paper; fits of 2026-11-21; Stan 2.39.0.", "run,value"]
    lines += [f"{run},1" for run in range(50)]
    (tmp_path / "ours-shapes-long.csv").write_text("\n".join(lines), encoding="utf-8")
    (table,) = read_kept(tmp_path)
    assert len(table.frame) == 50
    assert not any("|" in line for line in kept_lines(table))


def test_what_cannot_be_written_is_said(
    tmp_path: Path, committed: pd.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    assert verdicts.main(str(tmp_path)) == 1
    assert "there are no claims" in capsys.readouterr().err
    assert verdicts.main() == 2
    assert "usage" in capsys.readouterr().err
    with pytest.raises(DataError, match="lacks the lines"):
        verdicts.between_markers("# A page\n", ["x"])
    tables = tmp_path / str(committed.index[0]) / "tables"
    tables.mkdir(parents=True)
    (tables / "claims.csv").write_text(committed.to_csv(), encoding="utf-8")
    with pytest.raises(DataError, match="no README"):
        verdicts.write_verdicts(tmp_path, tmp_path)
    (tables / "claims.csv").write_text("claim\nIt holds.\n", encoding="utf-8")
    with pytest.raises(DataError, match="cannot read the claims"):
        verdicts.collect_verdicts(tmp_path)
    (tables / "claims.csv").write_text(
        committed.drop(columns=["key", "kind"]).to_csv(), encoding="utf-8"
    )
    with pytest.raises(DataError, match="lack key, kind; `harness report` writes them again"):
        verdicts.collect_verdicts(tmp_path)


def test_two_claims_of_one_key_are_refused() -> None:
    section = build_section(EXPERIMENT, results())
    twice = replace(section, claims=[*section.claims, section.claims[0]])
    with pytest.raises(DataError, match="made_up needs a key of its own; several have holds"):
        verdicts.claims_table(twice, "2.39.0")
