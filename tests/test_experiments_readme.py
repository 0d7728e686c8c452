"""The complete example of experiments/README.md works as it stands."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner
from doc_blocks import blocks

from harness.cli import main
from harness.folders import shipped
from harness.plan import catalogue

README = shipped("experiments") / "README.md"


@pytest.mark.compiled
def test_example_experiment(
    tmp_path: Path, cmdstan_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cmdstan_home.is_dir()
    (example,) = blocks(README, "python")
    folder = tmp_path / "experiments"
    folder.mkdir()
    (folder / "two_modes.py").write_text(example.text, encoding="utf-8")
    monkeypatch.setattr(catalogue, "shipped", lambda name: tmp_path / name)
    assert catalogue.experiment_names() == ["two_modes"]
    store = tmp_path / "results"
    run = CliRunner().invoke(
        main, ["run", "two_modes", "--profile", "quick", "--store", str(store)]
    )
    assert run.exit_code == 0, run.output
    table = pd.read_csv(store / "two_modes" / "tables" / "right.csv", index_col=0)
    # Four runs each: PE's mean within four standard errors of the truth.
    pe = table.loc["pe"]
    assert abs(pe["mean"] - 0.3) < 4 * pe["std"] / 2
    assert "reproduced: NUTS stays in one mode" in run.output
    assert "not reproduced" not in run.output
    claims = pd.read_csv(store / "two_modes" / "tables" / "claims.csv", index_col=0)
    assert list(claims["verdict"]) == ["reproduced"]
    assert list(claims["runs"]) == [4]
    assert "Two modes" in (store / "report" / "index.html").read_text(encoding="utf-8")
