"""Evidences of planets in radial velocities: those that others published, and what is provable.

Some are known exactly, and for others there is a lower bound; both come from
:mod:`harness.models.hard.radial_velocity`.  The wide prior contains the ranges of the narrow one n!
times, because its planets are not ordered, and a wide log10 Z is therefore at least

    log10 Z_narrow - sum_j log10[log(P_max / P_min) / log(P_max,j / P_min,j)] + log10 n!

where the narrow ranges do not overlap.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
import pandas as pd

from harness.fit import Fit
from harness.folders import shipped
from harness.models.hard.radial_velocity import (
    EVIDENCE_OF_NARROW,
    Prior,
    period_bounds,
    radial_velocity,
)
from harness.plan.spec import Results

from .grid import LABELS

OTHERS = ("VB", "NS", "DN", "Ne", "MN", "Di")
"""Methods of others, as ``experiments/published/rv-evidences.csv`` abbreviates them."""
_TOLERANCE = 0.02
"""Differences of log10 Z that do not matter."""
_ERRORS = 4.0
"""So many standard errors of what is known, and a difference is proven."""
_SAME_PERIOD = 0.01
"""Neighbouring draws whose periods differ by a larger share are in different modes."""
_STARS, _MOST_PLANETS = (1, 3, 5), 2


class Published(NamedTuple):
    """A published log10 Z: its median, and half of what is between its 16% and 84% quantiles."""

    value: float
    error: float


@dataclass(frozen=True)
class Known:
    """What is known of a log10 Z.

    Attributes
    ----------
    value, error
        It, or a lower bound of it, and the standard error.
    exact
        Whether it is not only a bound.
    """

    value: float
    error: float
    exact: bool

    def disproves(self, other: Published) -> bool:
        """Whether another value is wrong beyond doubt."""
        gap = other.value - self.value
        far = max(_TOLERANCE, _ERRORS * math.hypot(self.error, other.error))
        return gap < -far or (self.exact and gap > far)

    def __str__(self) -> str:
        return f"{'' if self.exact else '≥ '}{self.value:.3f} ± {self.error:.3f}"


def known(star: int, planets: int, prior: Prior) -> Known | None:
    """Return what is known of a log10 Z; None if it is nothing.

    Parameters
    ----------
    star
        Data set, 1 to 6.
    planets
        Number of planets n.
    prior
        Bounds of the periods.
    """
    if planets == 0:
        truth = radial_velocity(star, 0).truth.log_evidence
    elif (star, planets) in EVIDENCE_OF_NARROW:
        truth = EVIDENCE_OF_NARROW[star, planets]
    else:
        return None
    value, error = truth.value / math.log(10), truth.error / math.log(10)
    if planets == 0:
        return Known(value, error, exact=True)
    if prior == "narrow":
        return Known(value, error, exact=planets == 1)
    narrow, wide = (period_bounds(star, each, planets) for each in ("narrow", "wide"))
    ordered = narrow[np.argsort(narrow[:, 0])]
    if np.any(ordered[1:, 0] < ordered[:-1, 1]):
        return None  # ranges overlap
    widths = [np.log(each[:, 1] / each[:, 0]) for each in (wide, narrow)]
    correction = np.log10(widths[0] / widths[1]).sum() - math.log10(math.factorial(planets))
    return Known(value - float(correction), error, exact=False)


def published(star: int, planets: int, prior: Prior) -> dict[str, Published]:
    """Return the values of log10 Z that others published, by method."""
    frame = _submissions()
    rows = frame[
        (frame["data set"] == star) & (frame["planets"] == planets) & (frame["prior"] == prior)
    ]
    columns = (rows[name] for name in ("method", "log10 Z", "16%", "84%"))
    return {
        str(method): Published(float(value), 0.5 * (float(high) - float(low)))
        for method, value, low, high in zip(*columns, strict=True)
    }


@cache
def _submissions() -> pd.DataFrame:
    return pd.read_csv(shipped("experiments") / "published" / "rv-evidences.csv", comment="#")


def periods(fit: Fit) -> dict[str, float]:
    """Return each planet's most probable period, in days, and its probability.

    Planets are told apart by their periods, ascending.  Draws that follow each other within 1% are
    one mode.  Nothing is returned for other models and without planets.

    Parameters
    ----------
    fit
        Of a model of :func:`harness.models.hard.radial_velocity.radial_velocity`.
    """
    if "P_quantile" not in fit.posterior or "P" not in fit.posterior:
        return {}
    draws = fit.posterior["P"].transpose(..., "chain", "draw").to_numpy()
    by_period = np.sort(draws.reshape(draws.shape[0], -1), axis=0)
    found: dict[str, float] = {}
    for number, values in enumerate(np.sort(by_period, axis=1), start=1):
        ends = np.flatnonzero(np.diff(np.log(values)) > _SAME_PERIOD) + 1
        largest = max(np.split(values, ends), key=len)
        found[f"period_{number}"] = float(np.median(largest))
        found[f"period_{number}_probability"] = len(largest) / len(values)
    return found


def evidences(results: Results | None = None) -> pd.DataFrame:
    """Return log10 Z by data set, prior and number of planets.

    What is known stands first, then our runs if there are some, then what others published.  A
    published value with a cross is provably off.

    Parameters
    ----------
    results
        Runs of the benchmark; None for what does not depend on them.
    """
    rows = []
    for star in _STARS:
        for planets in range(_MOST_PLANETS + 1):
            for prior in ("wide", "narrow"):
                rows.append(_row(results, star, planets, prior))
    return pd.DataFrame(rows).set_index(["data set", "planets", "prior"]).fillna("-")


def _row(results: Results | None, star: int, planets: int, prior: Prior) -> dict[str, object]:
    truth = known(star, planets, prior)
    target = f"rv-{star}-n{planets}" + (f"-{prior}" if planets else "")
    row: dict[str, object] = {"data set": star, "planets": planets, "prior": prior}
    row["known"] = "-" if truth is None else str(truth)
    if results is not None:
        row |= _ours(results, target)
    others = published(star, planets, prior)
    for method in OTHERS:
        if method in others:
            off = truth is not None and truth.disproves(others[method])
            row[method] = f"{others[method].value:.2f}{' ×' if off else ''}"
    return row


def _ours(results: Results, target: str) -> dict[str, object]:
    """Return our values of a target, by method, and the periods of the run with most draws."""
    found: dict[str, object] = {}
    best: tuple[float, str] = (0.0, "-")
    for cell in results.cells:
        if cell.factors["target"] != target or cell.factors["method"] not in ("auto", "pt-2"):
            continue
        runs = results.metrics[results.metrics["cell"] == cell.key].dropna(subset=["log_z"])
        if not len(runs):
            continue
        log10 = runs["log_z"] / math.log(10)
        error = float(np.median(runs["log_z_mcse"])) / math.log(10)
        spread = f", spread {np.std(log10, ddof=1):.3f}" if len(runs) > 1 else ""
        label = f"{LABELS[cell.factors['method']]}, {cell.factors['budget']}"
        found[label] = f"{log10.mean():.3f} ± {error:.3f}{spread}, {_runs(len(runs))}"
        fullest = runs.iloc[int(np.argmax(runs["effective"]))]
        best = max(best, (float(fullest["effective"]), _in_words(fullest)))
    return found | {"periods": best[1]}


def _runs(number: int) -> str:
    return "1 run" if number == 1 else f"{number} runs"


def _in_words(run: pd.Series[float]) -> str:
    names: Iterable[str] = (f"period_{n}" for n in range(1, _MOST_PLANETS + 1))
    parts = [
        f"{run[name]:.4g} d ({run[f'{name}_probability']:.2f})"
        for name in names
        if name in run and not math.isnan(run[name])
    ]
    return ", ".join(parts) or "-"
