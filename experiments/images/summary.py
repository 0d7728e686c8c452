"""What is measured of a run, and the errors of the runs against the bounds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from harness import evidence
from harness.arrays import FloatArray
from harness.fit import Fit
from harness.plan.spec import Cell, Results

from .._curves import curve_of
from .joint_error import GROUPS, JointError, by_group, joint_error

PARTS = len(evidence.part_shares())


def measure(cell: Cell, fit: Fit) -> dict[str, float]:
    """Log joint evidence of the images, whole and by group of images, and the way to it."""
    value, mcse = fit.log_evidence
    attrs = fit.tree.attrs
    each = np.asarray(attrs["image_log_evidence"])
    metrics = {"log_evidence": value, "mcse": mcse, "images_run": float(len(each))}
    if "image_upper_log_evidence" in attrs:
        upper = np.asarray(attrs["image_upper_log_evidence"])
        metrics["upper"] = float(attrs["upper_log_evidence"])
        for number in cell.extras["of"]:
            for name, bound in (("lower", each), ("upper", upper)):
                metrics |= _named(f"{name}_{number}", by_group(bound[:number]))
        return metrics
    metrics |= _named("group", by_group(each))
    if "part_log_evidence" in attrs:
        parts = np.asarray(attrs["part_log_evidence"]).reshape(len(each), PARTS).T
        before, whole = _before(fit), fit.seconds
        metrics |= curve_of(parts.sum(axis=1), before * whole, whole)
        metrics["before"] = before
        for part, values in enumerate(by_group(parts), start=1):
            metrics |= _named(f"part_{part}", values)
    return metrics


def _named(name: str, groups: FloatArray) -> dict[str, float]:
    return {f"{name}_{group}": float(value) for group, value in enumerate(groups)}


def _before(fit: Fit) -> float:
    """Share of a run that is over when the first draw is made, by its iterations or seconds."""
    warmup = float(np.sum(fit.tree.attrs["seconds_warmup"]))
    if warmup:  # Stan tells it
        return warmup / fit.seconds
    ran = fit.settings
    before = ran["warmup"] + ran.get("pilots", 0) * ran.get("pilot_draws", 0)
    return float(before / (before + ran["draws"]))


def decoders(results: Results) -> list[str]:
    """Names of the decoders in some results."""
    return list(dict.fromkeys(str(cell.factors["decoder"]) for cell in results.cells))


@dataclass(frozen=True)
class Line:
    """Errors of a method against what its runs cost.

    Attributes
    ----------
    label
        Name of the method.
    gradients, seconds
        Cost of a run until each point, means over runs, shape (P,).
    estimates
        Log Z of each group of images in each run, shape (P, R, GROUPS).
    grows
        Whether a point is a part of the run that the next one belongs to; otherwise points are of
        runs that differ.
    truth
        Log Z of the groups by each run of the bounds, shape (S, GROUPS).
    mcse
        What a run's own Monte Carlo standard error of the joint log Z is at each point of AIS, or
        at the last of others, root mean square over runs.
    names
        What the points of AIS are called.
    images
        How many images it was run on.
    """

    label: str
    gradients: FloatArray
    seconds: FloatArray
    estimates: FloatArray
    grows: bool
    truth: FloatArray
    mcse: FloatArray
    images: int
    names: tuple[str, ...] = ()

    def cost(self, unit: str) -> FloatArray:
        """Cost in ``gradients`` or ``seconds``."""
        return self.gradients if unit == "gradients" else self.seconds

    def error(self, point: int = -1) -> JointError:
        """Error at one of the points."""
        return joint_error(self.estimates[point], self.truth)

    def error_at(self, cost: float, unit: str) -> JointError | None:
        """Error of what a run has estimated when it has cost so much; None outside the line.

        Between two points the estimates themselves are interpolated, linearly in log cost.
        """
        line = self.cost(unit)
        if not (self.grows and line[0] <= cost <= line[-1]):
            return None
        right = int(np.clip(np.searchsorted(line, cost), 1, len(line) - 1))
        share = np.log(cost / line[right - 1]) / np.log(line[right] / line[right - 1])
        left, there = self.estimates[right - 1 : right + 1]
        return joint_error((1 - share) * left + share * there, self.truth)


@dataclass(frozen=True)
class ImageResults:
    """Results on one set of images of a decoder.

    Attributes
    ----------
    decoder
        Name of the decoder.
    images
        Number of images.
    bounds
        Stochastic lower and upper bound on the log joint evidence, means over runs.
    gap
        Upper minus lower bound in each run.
    lines
        The methods that have been run, by name.
    """

    decoder: str
    images: int
    bounds: tuple[float, float]
    gap: FloatArray
    lines: dict[str, Line]


def image_results(results: Results, decoder: str) -> list[ImageResults]:
    """Results on the sets of images of a decoder whose bounds are there, the largest set first."""
    cells = [cell for cell in results.cells if cell.factors["decoder"] == decoder]
    found = []
    for number in sorted({int(cell.factors["images"]) for cell in cells}, reverse=True):
        own = [cell for cell in cells if cell.factors["images"] == number]
        bdmc = next((cell for cell in own if cell.factors["method"] == "bdmc"), None)
        if bdmc is None:
            continue
        runs = _runs(results, bdmc)
        by_method: dict[str, list[Cell]] = {}
        for cell in own:
            if cell is not bdmc:
                by_method.setdefault(cell.factors["method"], []).append(cell)
        lines = {name: _line(results, each, runs) for name, each in by_method.items()}
        found.append(
            ImageResults(
                decoder,
                number,
                (float(runs["log_evidence"].mean()), float(runs["upper"].mean())),
                (runs["upper"] - runs["log_evidence"]).to_numpy(),
                lines,
            )
        )
    return found


def _runs(results: Results, cell: Cell) -> pd.DataFrame:
    return results.metrics[results.metrics["cell"] == cell.key]


def _groups(runs: pd.DataFrame, name: str) -> FloatArray:
    values: FloatArray = runs[[f"{name}_{group}" for group in range(GROUPS)]].to_numpy(np.float64)
    return values


def _line(results: Results, cells: list[Cell], bounds: pd.DataFrame) -> Line:
    """Return the line of a method: of AIS a point a cell, of others a point a part of the run."""
    first = _runs(results, cells[0])
    images = int(first["images_run"].iloc[0])
    truth = (_groups(bounds, f"lower_{images}") + _groups(bounds, f"upper_{images}")) / 2
    label = cells[0].label.split(" (")[0]
    if cells[0].factors["method"] == "ais":
        every = [_runs(results, cell) for cell in cells]
        fewest = min(len(runs) for runs in every)
        return Line(
            "AIS",
            np.array([runs["gradients"].mean() for runs in every]),
            np.array([runs["seconds"].mean() for runs in every]),
            np.stack([_groups(runs, "group")[:fewest] for runs in every]),
            False,
            truth,
            np.array([_root_mean_square(runs["mcse"]) for runs in every]),
            images,
            tuple(cell.label.split(" (")[0].removeprefix("AIS, ") for cell in cells),
        )
    share = first["before"].mean() + (1 - first["before"].mean()) * evidence.part_shares()
    return Line(
        label,
        share * first["gradients"].mean(),
        share * first["seconds"].mean(),
        np.stack([_groups(first, f"part_{part}") for part in range(1, PARTS + 1)]),
        True,
        truth,
        np.array([_root_mean_square(first["mcse"])]),
        images,
    )


def _root_mean_square(values: pd.Series) -> float:
    return float(np.sqrt(np.square(values).mean()))
