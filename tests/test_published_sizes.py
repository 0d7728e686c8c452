"""The profile `paper` has the sizes that the papers printed, or says which it cuts and why."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable

import pytest

from experiments import shapes
from experiments.boltzmann import figure_two, instances
from experiments.boltzmann import rows as boltzmann
from experiments.horseshoe import cells as horseshoe
from experiments.illustration import RUNS as ILLUSTRATION
from experiments.images.grid import PROFILES as IMAGE_SETS
from experiments.mixture.grid import SIZES as MIXTURES
from experiments.mixture.grid import TABLE_2
from experiments.mixture.grid import grid as mixture_grid
from experiments.radon import SIZES as RADON
from harness.folders import shipped
from harness.plan.catalogue import load_experiment

FIGURE_2 = figure_two.LENGTHS["paper"]
RELAXATION = boltzmann.SIZES["paper"]
MIXTURE = MIXTURES["paper"]
IMAGES = max(IMAGE_SETS["paper"], key=lambda sizes: sizes.images)

Published = dict[tuple[str, str], dict[str, str]]


def numbers(values: Iterable[float]) -> str:
    return " ".join(f"{value:g}" for value in values)


OURS: dict[tuple[str, str], Callable[[], float | Iterable[float]]] = {
    ("illustration", "draws"): lambda: ILLUSTRATION["paper"][1],
    ("mixture", "runs of Table 1"): lambda: MIXTURE.replications,
    ("mixture", "draws"): lambda: MIXTURE.draws,
    ("mixture", "pseudo-samples"): lambda: MIXTURE.pseudo_samples,
    ("mixture", "rows of Table 2"): lambda: len(
        [cell for cell in mixture_grid("paper") if cell.factors["part"] == TABLE_2]
    ),
    ("mixture", "runs of Table 2"): lambda: MIXTURE.fixed_replications,
    ("boltzmann", "units, PE half"): lambda: instances.PE_UNITS,
    ("boltzmann", "runs, PE half"): lambda: RELAXATION.replications,
    ("boltzmann", "draws, PE half"): lambda: RELAXATION.draws,
    ("boltzmann", "pseudo-samples"): lambda: RELAXATION.pseudo_samples,
    ("boltzmann", "temperatures of AIS and ST, PE half"): lambda: RELAXATION.rungs,
    ("boltzmann", "chains of AIS, PE half"): lambda: RELAXATION.particles,
    ("boltzmann", "units, CT half"): lambda: instances.CT_UNITS,
    ("boltzmann", "instances"): lambda: RELAXATION.instances,
    ("boltzmann", "runs, CT half"): lambda: RELAXATION.ct_replications,
    ("boltzmann", "temperatures of AIS, CT half"): lambda: FIGURE_2.ladders,
    ("boltzmann", "temperatures of ST, CT half"): lambda: FIGURE_2.rungs,
    ("boltzmann", "chains of ST and CT"): lambda: figure_two.CHAINS,
    ("boltzmann", "draws of ST"): lambda: FIGURE_2.st[0],
    ("boltzmann", "draws of Gibbs CT"): lambda: FIGURE_2.gibbs[0],
    ("boltzmann", "draws of joint CT"): lambda: FIGURE_2.joint[0],
    ("boltzmann", "leapfrog steps of ST and CT"): lambda: figure_two.STEPS,
    ("boltzmann", "leapfrog steps of AIS"): lambda: figure_two.AIS_STEPS,
    ("boltzmann", "step size, CT half"): lambda: figure_two.STEP,
    ("horseshoe", "iterations of HMC"): lambda: (
        horseshoe.PROFILES["paper"].warmup + horseshoe.PROFILES["paper"].draws
    ),
    ("horseshoe", "fixed inverse temperatures"): lambda: horseshoe.FIXED,
    ("radon", "draws of joint CT"): lambda: RADON["paper"].draws[0],
    ("radon", "draws after the bootstrap's step"): lambda: RADON["paper"].draws[1],
    ("radon", "runs"): lambda: RADON["paper"].runs,
    ("radon", "temperatures of AIS"): lambda: RADON["paper"].annealed[0],
    ("radon", "chains of AIS"): lambda: RADON["paper"].annealed[1],
    ("images", "images"): lambda: IMAGES.images,
    ("images", "runs"): lambda: IMAGES.runs,
    ("images", "temperatures of the bounds"): lambda: IMAGES.bounds[0],
    ("images", "chains of the bounds"): lambda: 2 * IMAGES.bounds[1],  # two runs
    ("images", "temperatures of AIS"): lambda: IMAGES.annealed,
    ("images", "chains of AIS"): lambda: IMAGES.annealed_chains,
    ("images", "leapfrog steps"): lambda: IMAGES.steps,
    # Half of the iterations are warm-up, as published.
    ("shapes", "iterations"): lambda: 2 * shapes.PROFILES["paper"]["flower-pe"][1],
    ("shapes", "pseudo-samples of the banana"): lambda: shapes.PSEUDO_SAMPLES["banana"],
}


@pytest.fixture(scope="module")
def sizes() -> Published:
    path = shipped("experiments") / "published" / "sizes.csv"
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    found = {(row["experiment"], row["quantity"]): row for row in rows}
    assert len(found) == len(rows)
    return found


def test_each_published_size_is_compared(sizes: Published) -> None:
    assert set(sizes) == set(OURS)


@pytest.mark.parametrize("what", OURS, ids=": ".join)
def test_paper_is_as_published_or_says_why_not(what: tuple[str, str], sizes: Published) -> None:
    row, ours = sizes[what], OURS[what]()
    assert row["paper"] == numbers(ours if isinstance(ours, Iterable) else [ours])
    assert (row["paper"] == row["published"]) == (row["why"] == "")
    if row["why"]:
        said = load_experiment(what[0]).reductions["paper"]
        assert f"{int(row['published']):,}" in said
