"""Why published numbers differ from the exact ones: traits of the published code, each tried.

The preprint prints what it took for the truth, and means and standard deviations over runs, so
that much can be checked with no run.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.stats import truncnorm

from harness.models.gaussian_mixture import GaussianMixture, kou_mixture
from harness.plan.spec import Results

from .frames import cells_of, preprint, published, rmse, runs_of
from .grid import RANGE, TABLE_1
from .measures import MOMENTS, exact_moments, moments_of

_PUBLISHED_BOX = (-10.0, 10.0)


def printed_truth() -> dict[str, float]:
    """Moments that the preprint prints as scenario (b)'s truth."""
    frame = preprint()
    rows = frame[(frame["method"] == "Truth") & (frame["scenario"] == "b")]
    return dict(zip(rows["moment"], rows["mean"], strict=True))


def narrow_truth() -> dict[str, float]:
    """Moments of scenario (b) with r_j / 20 as standard deviations, not as variances."""
    mixture = kou_mixture("b")
    narrow = GaussianMixture(mixture.weight, mixture.mean, mixture.sd**2)
    return moments_of(narrow.truth)


def boxed_truth() -> dict[str, float]:
    """Moments of scenario (b) cut off at the published code's box, [-10, 10]^2."""
    mixture = kou_mixture("b")
    scale = mixture.sd[:, None]
    low, high = ((edge - mixture.mean) / scale for edge in _PUBLISHED_BOX)
    part = truncnorm(low, high, loc=mixture.mean, scale=scale)
    whole = truncnorm(-np.inf, np.inf, loc=mixture.mean, scale=scale)
    inside = whole.cdf(_PUBLISHED_BOX[1]) - whole.cdf(_PUBLISHED_BOX[0])
    weight = mixture.weight * np.asarray(inside).prod(axis=1)
    weight = weight / weight.sum()
    both = np.concatenate([weight @ part.mean(), weight @ (part.var() + part.mean() ** 2)])
    return dict(zip(MOMENTS, both.tolist(), strict=True))


def errors_of_the_printed_truth() -> pd.DataFrame:
    """Published RMSE of E[X^2] in scenario (b), and what the preprint's means and truths give.

    ``against_printed`` is the root of standard deviation^2 + (mean - printed truth)^2 and
    ``against_exact`` the same from the exact value.
    """
    frame = preprint()
    frame = frame[(frame["scenario"] == "b") & (frame["method"] == "PE")].copy()
    printed, exact = printed_truth(), exact_moments("b")
    for name, truth in (("printed", printed), ("exact", exact)):
        offset = frame["mean"] - frame["moment"].map(truth)
        frame[f"against_{name}"] = np.sqrt(frame["sd"] ** 2 + offset**2)
    keys = ["method", "N", "scenario", "moment"]
    joined = frame.merge(published(), on=keys, validate="one_to_one")
    return joined[joined["moment"].isin(["x1_squared", "x2_squared"])]


def mistaken_weights(results: Results) -> pd.DataFrame:
    """Mean estimates in scenario (b) by right weights and by (a)'s, beside the preprint's means.

    A row a number of pseudo-samples and moment, with standard errors over runs; ``shift`` is
    the difference that the mistake makes run by run.
    """
    means = preprint().rename(columns={"mean": "preprint", "sd": "preprint_sd"})
    rows = []
    for cell in cells_of(results, TABLE_1):
        if cell.factors["scenario"] != "b" or cell.factors["method"] != "PE":
            continue
        runs = runs_of(results, cell)
        for name in MOMENTS:
            row = {"method": "PE", "N": cell.factors["N"], "scenario": "b", "moment": name}
            for label, column in (("right", name), ("mistaken", f"{name}_mistaken")):
                values = runs[column].to_numpy()
                row[label] = values.mean()
                row[f"{label}_se"] = values.std(ddof=1) / np.sqrt(len(values))
            shift = (runs[f"{name}_mistaken"] - runs[name]).to_numpy()
            row |= {"shift": shift.mean(), "shift_se": shift.std(ddof=1) / np.sqrt(len(shift))}
            rows.append(row | {"exact": exact_moments("b")[name]})
    frame = pd.DataFrame(rows)
    return (
        frame
        if frame.empty
        else frame.merge(
            means, on=["method", "N", "scenario", "moment"], how="left", validate="one_to_one"
        )
    )


def ranges(results: Results) -> pd.DataFrame:
    """RMSE of PE N=2 with beta in [0, 1] and in the published code's ranges, and the published."""
    cells = [c for c in cells_of(results, TABLE_1) if c.key.endswith("pe-2")]
    frame = rmse(results, [*cells, *cells_of(results, RANGE)])
    if frame.empty:
        return frame
    table = published()
    table = table[(table["method"] == "PE") & (table["N"] == 2)]
    return frame.merge(
        table[["scenario", "moment", "published"]],
        on=["scenario", "moment"],
        how="left",
        validate="many_to_one",
    )
