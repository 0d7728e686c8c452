"""Every Python example of the documentation and of both READMEs runs as it stands.

Run by ``nox -s docs``.  Pages of ``docs`` run in the stanli engine; the READMEs' examples compile.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from doc_blocks import PAGES, ROOT, blocks, run_python, save_stan
from pine import pine_log_evidence

from harness import folders
from harness.cli import main
from harness.plan import catalogue


def first_fit(names: dict[str, Any]) -> None:
    close_to(names["fit"].log_evidence, 0.0)


def choosing(names: dict[str, Any]) -> None:
    close_to(names["second"].log_evidence, 0.0)
    close_to(names["scouted"].log_evidence, 0.0)
    near = [float((names[key].extended["inv_temp"] > 0.9).mean()) for key in ("second", "fit")]
    assert near[0] < near[1]
    right = names["right"]
    assert abs(float(right.value[0]) - 0.3) < 4.3 * float(right.mcse[0])


def adding_a_model(names: dict[str, Any]) -> None:
    close_to(names["fit"].log_evidence, names["model"].truth.log_evidence.value)


def adding_a_method(names: dict[str, Any]) -> None:
    close_to(names["fit"].log_evidence, 0.0)


def own_program(names: dict[str, Any]) -> None:
    """Z of the two means by a sum over a grid."""
    y, mu = names["y"], np.linspace(-12, 12, 801)
    one = np.exp(-0.5 * (y[:, None] - mu) ** 2) / np.sqrt(2 * np.pi)
    prior = -0.5 * (mu / 10) ** 2 - 0.5 * np.log(2 * np.pi * 100)
    mixed = np.log(0.4 * one[:, :, None] + 0.6 * one[:, None, :]).sum(axis=0)
    log_joint = prior[:, None] + prior + mixed
    mass = np.exp(log_joint - log_joint.max()).sum() * (mu[1] - mu[0]) ** 2
    close_to(names["fit"].log_evidence, log_joint.max() + np.log(mass))


def evidence(names: dict[str, Any]) -> None:
    close_to(names["found"].log_evidence, pine_log_evidence("density"))
    main = names["compared"].main
    close_to(main.factor(1, 0).log, pine_log_evidence("adjusted") - pine_log_evidence("density"))
    assert main.best_predicting == 1


def intractable(names: dict[str, Any]) -> None:
    """The posterior of the rate of four counts with sum 6 and an exponential prior: Gamma(7, 5)."""
    found = names["fit"].expectation(lambda draws: draws["theta"])
    assert abs(found.value[0] - 7 / 5) < 4.3 * found.mcse[0]


def close_to(estimate: Any, truth: float) -> None:
    """4.3 standard errors: a sound estimate is farther off once in 60,000 times."""
    assert 0 < estimate.mcse < 0.2
    assert abs(estimate.value - truth) < 4.3 * estimate.mcse


CHECKS = {
    "first-fit.md": first_fit,
    "own-program.md": own_program,
    "evidence.md": evidence,
    "choosing.md": choosing,
    "adding-a-model.md": adding_a_model,
    "adding-a-method.md": adding_a_method,
    "intractable.md": intractable,
}


def with_own_stan(folder: Path) -> Callable[[str], Path]:
    """Return what finds shipped folders, but the Stan programs in a folder of the test's own."""
    data = folders.shipped("data")
    return lambda name: data if name == "data" else folder / name


@pytest.mark.parametrize(
    "page", [page for page in PAGES if blocks(page, "python")], ids=lambda page: page.stem
)
def test_pages_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if blocks(page, "stan"):
        shutil.copytree(folders.shipped("stan"), tmp_path / "stan")
        save_stan(page, tmp_path)
        for module in ("folders", "model.model"):
            monkeypatch.setattr(f"harness.{module}.shipped", with_own_stan(tmp_path))
    monkeypatch.chdir(tmp_path)
    names = run_python(page)
    if page.name in CHECKS:
        CHECKS[page.name](names)


def test_the_readme_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    readme = ROOT / "README.md"
    assert len(blocks(readme, "python")) >= 2
    monkeypatch.chdir(tmp_path)
    names = run_python(readme)
    # The last example is of a density with log Z = 0; its seed is fixed.
    close_to(names["fit"].log_evidence, 0.0)
    assert "LogEvidence(value=" in capsys.readouterr().out


def test_the_experiment_of_the_experiments_readme_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (example,) = blocks(folders.shipped("experiments") / "README.md", "python")
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
