"""Peers in the benchmark on hard posteriors: where they run, and dynesty against a closed form.

Those of blackjax are in ``test_hard_blackjax.py``.
"""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from quick_cube import quick_cube
from scipy import stats
from stan_density import stanli

from experiments.hard import peers
from experiments.hard.grid import DEPENDENT, IN_JAX, PEER_ROWS, ROWS, SIZES, Row, cells
from experiments.hard.peers import installed
from experiments.hard.within import RUNS
from harness.diagnosis import Severity, diagnose
from harness.errors import DataError, ToolchainError
from harness.fit import Fit
from harness.model import Model
from harness.models.hard import TARGETS

assert stanli is not None

# Two normal means with normal priors.  Its log Z does not have the factor 8 of the flat prior,
# which the program states without its density.
PROGRAM = """data {
  vector[2] y;
}
parameters {
  vector[2] x;
  real<lower=-4, upper=4> flat;
}
model {
  x ~ normal(1, 3);
  y ~ normal(x, 0.5);
}
"""
Y = np.array([2.0, -1.5])
LOG_Z = float(stats.norm(1, math.hypot(3, 0.5)).logpdf(Y).sum())
SHRINK = 9 / 9.25
MEAN, SD = SHRINK * Y + (1 - SHRINK), math.sqrt(SHRINK) * 0.5


def normal_means(folder: Path) -> Model:
    (folder / "target.stan").write_text(PROGRAM)
    return Model("normal_means", folder, {"y": Y}, ("x", "flat"), 3, own_base="prior")


def test_dynesty_finds_a_known_log_z(tmp_path: Path) -> None:
    pytest.importorskip("dynesty")
    model = normal_means(tmp_path)
    fit = peers.sample_by_dynesty(model, live_points=100, seed=1)
    found = fit.log_evidence
    assert found is not None
    # As harness sample reports it, with the width of what is flat, which the text shows no mass of.
    assert abs(found.value - LOG_Z - math.log(8)) < 4 * found.mcse
    assert 0.02 < found.mcse < 0.5
    draws = fit.posterior["x"].to_numpy().reshape(-1, 2)
    # As many draws as dynesty's weights are worth; resampling doubles the variance.
    error = SD * math.sqrt(2 / len(draws))
    assert np.all(np.abs(draws.mean(axis=0) - MEAN) < 4 * error)
    assert stats.kstest(draws[:, 0], stats.norm(MEAN[0], SD).cdf).pvalue > 1e-4
    assert fit.gradients > len(draws)
    assert not problems(fit)


def problems(fit: Fit) -> list[str]:
    return [each.sentence for each in diagnose(fit) if each.severity == Severity.PROBLEM]


def test_a_run_that_stops_at_the_budget_says_so(tmp_path: Path) -> None:
    pytest.importorskip("dynesty")
    model = normal_means(tmp_path)
    fit = peers.sample_by_dynesty(model, live_points=60, most_evaluations=100, seed=1)
    assert "stopped at the budget" in "".join(problems(fit))
    # It is stopped after the step in which it passes the limit, which takes some hundred at most.
    assert 100 < fit.gradients < 1000


def test_a_run_that_gives_up_on_a_plateau_says_so(tmp_path: Path) -> None:
    """A likelihood of two values: half of the prior has the larger one."""
    pytest.importorskip("dynesty")
    (tmp_path / "target.stan").write_text(
        "data { real y; } parameters { real<lower=0, upper=1> x; } "
        "model { y ~ normal(x > 0.5 ? 0 : 1, 0.5); }"
    )
    model = Model("steps", tmp_path, {"y": 0.0}, ("x",), 1, own_base="prior")
    fit = peers.sample_by_dynesty(model, live_points=50, seed=1)
    assert "gave up on a plateau" in "".join(problems(fit))


@pytest.mark.parametrize("row", PEER_ROWS, ids=lambda row: row.key)
def test_peers_run_in_the_grid_where_they_can(row: Row) -> None:
    """Those of dynesty where priors are independent, of blackjax where JAX has a density."""
    made = list(cells(TARGETS, [row], SIZES["paper"]))
    independent = {
        name
        for name, make in TARGETS.items()
        if make().own_base == "prior" and name not in DEPENDENT
    }
    able = {"dynesty": independent, "blackjax": set(IN_JAX)}[installed.PEERS[row.row]]
    assert {cell.factors["target"] for cell in made} == able
    quick = SIZES["quick"].rows
    assert quick is not None
    assert row.key not in quick
    assert all(cell.settings["options"] == {**row.options, "what": "likelihood"} for cell in made)


def test_each_way_of_running_a_peer_has_a_row() -> None:
    assert {row.row for row in PEER_ROWS} == set(installed.PEERS) <= set(RUNS)


def test_no_peer_is_imported_with_the_benchmark() -> None:
    code = "import sys, experiments.hard; print({'jax', 'blackjax', 'dynesty'} & {*sys.modules})"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"


@pytest.mark.parametrize("name", ["radiata-pine-density", "sparse-car", "vaccines"])
def test_where_priors_depend_on_each_other_the_cube_is_refused(name: str, tmp_path: Path) -> None:
    model = TARGETS[name]()
    with pytest.raises(DataError, match="cannot be drawn by quantiles"):
        quick_cube(model.program("target").path, model.data, tmp_path)


@pytest.mark.parametrize(
    ("name", "dimension"),
    [
        ("product", 2),
        ("galaxies", 9),
        ("sensors-8d", 8),
        ("mrna", 5),
        ("rockets", 2),
        ("unequal-wells-10", 10),
        ("xy-torus-4", 32),
    ],
)
def test_all_other_programs_have_a_cube(name: str, dimension: int, tmp_path: Path) -> None:
    """Its prior is compared with the program's at random points as it is made."""
    model = TARGETS[name]()
    cube = quick_cube(model.program("target").path, model.data, tmp_path)
    assert cube.dimension == dimension
    assert cube.log_prior_integral == pytest.approx(0, abs=1e-8)


@pytest.mark.parametrize(
    ("package", "sampler"),
    [
        ("dynesty", partial(peers.sample_by_dynesty, live_points=9)),
        ("blackjax", partial(peers.sample_by_tempered_particles, particles=9)),
        ("blackjax", partial(peers.sample_by_nested_slices, live_points=9)),
    ],
)
def test_without_its_package_a_sampler_says_how_to_install_it(
    package: str, sampler: Callable[..., Fit], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installed, "is_installed", lambda _: False)
    with pytest.raises(
        ToolchainError, match=rf"{package} is not installed: .*pip install '.\[peers\]"
    ):
        sampler(normal_means(tmp_path), seed=1)


def test_without_the_packages_rows_are_left_out_and_the_page_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    there = {row.key for row in PEER_ROWS if installed.is_installed(installed.PEERS[row.row])}
    assert {row.key for row in ROWS} & {row.key for row in PEER_ROWS} == there
    monkeypatch.setattr(installed, "is_installed", lambda _: False)
    assert installed.left_out().startswith("dynesty and blackjax: not installed (")
    assert "pip install '.[peers]'" in installed.left_out()
    monkeypatch.setattr(installed, "is_installed", lambda _: True)
    assert installed.left_out() == ""
