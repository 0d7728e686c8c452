"""Why published numbers differ from the exact ones: traits of the public program, each tried.

The preprint prints what it took for the truth, and means and standard deviations over runs, so
that much can be checked with no run.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.stats import truncnorm

from harness.models.gaussian_mixture import GaussianMixture, Scenario, kou_mixture
from harness.plan.effects import Effect

from .frames import preprint, printed_truth, published
from .measures import MOMENTS, exact_moments, moments_of
from .public_program import BOX, BOX_OF_A_IN_2019, foreign_density, missing_constant

_PREPRINT_RUNS = 20
_LARGEST = 20
_LOW_INV_TEMPS = (0.1, 0.2)


def narrow_truth() -> dict[str, float]:
    """Moments of scenario (b) with r_j / 20 as standard deviations, not as variances."""
    mixture = kou_mixture("b")
    narrow = GaussianMixture(mixture.weight, mixture.mean, mixture.sd**2)
    return moments_of(narrow.truth)


def boxed_truth(scenario: Scenario, box: tuple[float, float]) -> dict[str, float]:
    """Moments of a scenario cut off at a square box.

    Parameters
    ----------
    scenario
        Scenario.
    box
        Lower and upper side, the same in both coordinates.
    """
    mixture = kou_mixture(scenario)
    scale = mixture.sd[:, None]
    low, high = ((edge - mixture.mean) / scale for edge in box)
    part = truncnorm(low, high, loc=mixture.mean, scale=scale)
    whole = truncnorm(-np.inf, np.inf, loc=mixture.mean, scale=scale)
    inside = whole.cdf(box[1]) - whole.cdf(box[0])
    weight = mixture.weight * np.asarray(inside).prod(axis=1)
    weight = weight / weight.sum()
    both = np.concatenate([weight @ part.mean(), weight @ (part.var() + part.mean() ** 2)])
    return dict(zip(MOMENTS, both.tolist(), strict=True))


def box_effects() -> dict[Scenario, float]:
    """Largest change of a moment by the public program's smallest box, by scenario."""
    boxes: dict[Scenario, tuple[float, float]] = {"a": BOX_OF_A_IN_2019, "b": BOX}
    return {
        scenario: max(
            abs(value - exact_moments(scenario)[name])
            for name, value in boxed_truth(scenario, box).items()
        )
        for scenario, box in boxes.items()
    }


def errors_of_the_printed_truth() -> pd.DataFrame:
    """Published RMSE of E[X^2] in scenario (b), and what the preprint's means and truths give.

    ``against_printed`` is the root of standard deviation^2 + (mean - printed truth)^2 and
    ``against_exact`` the same from the exact value.
    """
    frame = preprint()
    frame = frame[(frame["scenario"] == "b") & (frame["method"] == "PE")].copy()
    printed, exact = printed_truth("b"), exact_moments("b")
    for name, truth in (("printed", printed), ("exact", exact)):
        offset = frame["mean"] - frame["moment"].map(truth)
        frame[f"against_{name}"] = np.sqrt(frame["sd"] ** 2 + offset**2)
    keys = ["method", "N", "scenario", "moment"]
    joined = frame.merge(published(), on=keys, validate="one_to_one")
    return joined[joined["moment"].isin(["x1_squared", "x2_squared"])]


def offsets() -> pd.DataFrame:
    """What the preprint's means in (b) are off by, and what weights without the constant add.

    A row a number of pseudo-samples and moment: ``offset`` of the printed mean from the exact
    value and ``shift`` by the weights, with standard errors.
    """
    frame = preprint()
    frame = frame[(frame["method"] == "PE") & (frame["scenario"] == "b")]
    own = frame.set_index(["N", "moment"])
    rows = []
    for number in sorted({int(n) for n, _ in own.index}):
        shift = missing_constant(number)
        for place, name in enumerate(MOMENTS):
            mean, sd = (float(own[each][number, name]) for each in ("mean", "sd"))
            rows.append(
                {
                    "N": number,
                    "moment": name,
                    "offset": mean - exact_moments("b")[name],
                    "offset_se": sd / np.sqrt(_PREPRINT_RUNS),
                    "shift": shift.value[place],
                    "shift_se": shift.se[place],
                }
            )
    return pd.DataFrame(rows)


def share_explained(moments: tuple[str, ...]) -> Effect:
    """How much of the predicted shift the preprint's means in scenario (b) show; 1 if all of it.

    Weighted least squares of the offsets on the shifts through the origin, over N and moments.
    """
    frame = offsets()
    frame = frame[frame["moment"].isin(moments)]
    variance = frame["offset_se"] ** 2 + frame["shift_se"] ** 2
    information = float((frame["shift"] ** 2 / variance).sum())
    slope = float((frame["shift"] * frame["offset"] / variance).sum()) / information
    return Effect(slope, information**-0.5, _PREPRINT_RUNS)


def foreign_weights() -> pd.DataFrame:
    """Bias of E[X1] by (a)'s density in (b)'s weights, and the errors that Table 2 prints.

    A row a low inverse temperature, at the largest N: ``bias`` with its standard error and
    ``published``.  No error can be smaller than the bias.
    """
    table = published(2)
    table = table[(table["scenario"] == "b") & (table["N"] == _LARGEST)]
    printed = table.set_index(["inv_temp", "moment"])["published"]
    rows = []
    for inv_temp in _LOW_INV_TEMPS:
        shift = foreign_density(inv_temp, _LARGEST)
        rows.append(
            {
                "inv_temp": inv_temp,
                "bias": float(shift.value[0]),
                "se": float(shift.se[0]),
                "published": float(printed[inv_temp, "x1"]),
            }
        )
    return pd.DataFrame(rows)
