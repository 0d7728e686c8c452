"""Models are compared by their evidence: table, Bayes factors, probabilities, page and files."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from pine import pine_data, pine_log_evidence, pine_programs
from scipy.special import logsumexp
from scipy.stats import norm

from harness.cli import main
from harness.errors import DataError
from harness.fit import Fit
from harness.user import ModelComparisons, compare_models
from harness.user.comparison_report import comparison_page, save_comparison
from harness.user.leave_one_out import LeaveOneOut, leave_one_out
from harness.user.model_comparison import factor_text

SETTINGS: dict[str, Any] = {"engine": "stanli", "progress": False}
PRECISIONS = (0.06, 6.0)


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return list(pine_programs(tmp_path_factory.mktemp("pine")).values())


@pytest.fixture(scope="module")
def compared(programs: list[Path]) -> ModelComparisons:
    return compare_models(
        programs,
        pine_data(),
        prior_odds=[3, 1],
        sensitivity=("slope_precision", PRECISIONS),
        draws=500,
        **SETTINGS,
    )


def test_table_has_the_closed_forms(compared: ModelComparisons) -> None:
    assert [each.name for each in compared.main.models] == ["density", "adjusted"]
    for each in compared.all:
        precision = 6.0 if each.setting is None else each.setting[1]
        for index, model in enumerate(each.models):
            found = each.log_evidence(index)
            exact = pine_log_evidence(model.name, precision)
            assert abs(found.value - exact) < 4.5 * found.mcse, (model.name, precision)
    first, second = compared.main.rows()
    assert first["prior_probability"] == pytest.approx(0.75)
    assert first["probability"] + second["probability"] == pytest.approx(1)
    factor = math.exp(pine_log_evidence("density") - pine_log_evidence("adjusted"))
    exact_share = 3 * factor / (3 * factor + 1)
    assert first["probability"] == pytest.approx(exact_share, rel=0.02)
    assert second["probability_best"] == 1.0
    assert first["strength"] == "very strong against it"
    # The value that the data have is not sampled again.
    assert compared.sensitivity[1].models == compared.main.models


def test_leave_one_out_is_that_of_the_definition(compared: ModelComparisons) -> None:
    """By importance sampling with the plain weights 1 / p(y_i), whose tails are light here."""
    model = compared.main.models[1]
    assert model.loo is not None
    assert model.loo.unreliable == 0
    fit = model.evidence.fit
    assert fit is not None
    log_lik = fit.posterior["log_lik"].to_numpy().reshape(-1, 42)
    plain = -(logsumexp(-log_lik, axis=0) - math.log(len(log_lik)))
    assert model.loo.elpd == pytest.approx(float(plain.sum()), abs=0.1)
    assert model.loo.se == pytest.approx(float(math.sqrt(42) * plain.std()), rel=0.05)


def test_difference_of_elpd() -> None:
    one = LeaveOneOut(-6.0, 1.0, np.array([-1.0, -2.0, -3.0]), 0)
    other = LeaveOneOut(-9.0, 1.0, np.array([-2.0, -3.0, -4.0]), 0)
    assert one.minus(other) == (3.0, 0.0)
    assert math.isnan(one.minus(LeaveOneOut(-1.0, 1.0, np.array([-1.0]), 0))[0])


def test_fits_without_log_lik_have_no_elpd(compared: ModelComparisons) -> None:
    fit = compared.main.models[0].evidence.fit
    assert fit is not None
    tree = fit.tree.copy()
    tree["posterior"] = tree["posterior"].to_dataset().drop_vars("log_lik")
    tree.attrs = dict(fit.tree.attrs)
    assert leave_one_out(Fit(tree)) is None


def test_text_json_and_csv_say_the_same(compared: ModelComparisons) -> None:
    text, told = compared.as_text(), compared.as_json()
    (factor,) = told["bayes_factors"]
    assert (factor["model"], factor["against"]) == ("adjusted", "density")
    assert factor["low"] < factor["log"] < factor["high"]
    assert f"log Bayes factor {factor['log']:.3f}" in text
    assert "Kass and Raftery (1995)" in text
    assert "leave-one-out" in text
    assert "slope_precision = 0.06" in text
    rows = list(csv.DictReader(compared.as_csv().splitlines()))
    assert len(rows) == 2 * (1 + len(PRECISIONS))
    for row, plain in zip(rows, told["models"] + told["sensitivity"], strict=True):
        assert float(row["log_evidence"]) == plain["log_evidence"]
        assert row["model"] == plain["model"]
    json.dumps(told, allow_nan=False)


def test_page_has_tables_figure_and_programs(compared: ModelComparisons, tmp_path: Path) -> None:
    page = comparison_page(compared)
    assert len(page.figures) == 1
    assert len(page.sensitivity) == 2
    save_comparison(compared, tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    for piece in (
        "Comparison: density, adjusted",
        "adjusted over density",
        "very strong",
        "Kass and Raftery (1995)",
        "slope_precision = 0.06",
        "data:image/svg+xml",
        "Warp-III",
        "real&lt;lower=0&gt; tau;",
    ):
        assert piece in text, piece


def test_factors_are_readable() -> None:
    assert factor_text(math.log(4541.2)) == "4,541"
    assert factor_text(0.0) == "1"
    assert factor_text(-2.0) == "0.135"
    assert factor_text(812.34) == "exp(812.3)"


IMPROPER = """data {
  real y;
}
parameters {
  real mu;
}
model {
  y ~ normal(mu, 1);
}
"""
PROPER = IMPROPER.replace("model {", "model {\n  mu ~ normal(0, 1);")


def test_a_model_without_evidence_leaves_no_probabilities(tmp_path: Path) -> None:
    paths = [tmp_path / "improper.stan", tmp_path / "proper.stan"]
    for path, text in zip(paths, (IMPROPER, PROPER), strict=True):
        path.write_text(text)
    found = compare_models(paths, {"y": 0.5}, draws=300, **SETTINGS)
    assert found.main.odds is None
    assert found.main.known == [1]
    value, mcse = found.main.log_evidence(1)
    assert abs(value - norm.logpdf(0.5, 0, math.sqrt(2))) < 4.5 * mcse
    text = found.as_text()
    assert "improper: the bridge was refused: the evidence is not defined" in text
    assert "no probabilities" in text
    assert found.main.pairs() == []
    assert comparison_page(found).factors is None


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"models": ["density.stan"]}, "two models or more"),
        ({"models": ["density.stan", "density.stan"]}, "given twice"),
        ({"prior_odds": [1.0]}, "as many prior odds"),
        ({"prior_odds": [1.0, -1.0]}, "positive"),
        ({"sensitivity": ("sigma", [1.0])}, "none of the programs declares"),
        ({"sensitivity": ("y", [1.0])}, "must be one number"),
        ({"sensitivity": ("slope_precision", [])}, "give values"),
        ({"sensitivity": ("slope_precision", [1.0, 1.0])}, "given twice"),
        ({"sensitivity": ("slope_precision", [math.nan])}, "finite"),
        ({"sensitivity": ("slope_precision", [1.0]), "data": {}}, "has no slope_precision"),
    ],
)
def test_what_cannot_be_compared_is_refused(
    programs: list[Path], changed: dict[str, Any], says: str
) -> None:
    given: dict[str, Any] = {"models": programs, "data": pine_data(), **changed}
    given["models"] = [programs[0].parent / Path(each).name for each in given["models"]]
    with pytest.raises(DataError, match=says):
        compare_models(given.pop("models"), given.pop("data"), **given, **SETTINGS)


def harness(*words: object) -> Result:
    return CliRunner().invoke(main, list(map(str, words)))


def test_command_writes_page_and_table_and_keeps_what_is_not_its_own(
    programs: list[Path], tmp_path: Path
) -> None:
    data, page, table = tmp_path / "pine.json", tmp_path / "page.html", tmp_path / "table.csv"
    data.write_text(json.dumps(pine_data()))
    asked = ["compare", *programs, "--data", data, "--engine", "stanli", "--draws", 300]
    done = harness(*asked, "--report", page, "--csv", table, "--prior-odds", "1,2")
    assert done.exit_code == 0, done.output
    assert "adjusted over density" in done.stdout
    assert table.read_text().startswith("variable,value,model,log_evidence")
    table.write_text("mine")
    done = harness(*asked, "--csv", table)
    assert done.exit_code == 1
    assert "--force" in done.stderr
    done = harness(*asked, "--csv", programs[0])
    assert done.exit_code == 1
    assert "would replace the input" in done.stderr


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        ("--prior-odds", "1,x", "must be numbers"),
        ("--sensitivity", "slope_precision", "NAME=VALUE"),
        ("--sensitivity", "slope_precision=a", "NAME=VALUE"),
    ],
)
def test_options_that_cannot_be_read(
    programs: list[Path], option: str, value: str, says: str
) -> None:
    done = harness("compare", *programs, option, value)
    assert done.exit_code == 2
    assert says in done.stderr
