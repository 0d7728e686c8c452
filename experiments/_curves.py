"""Estimates of log Z from the first part of a run, against the cost of that part."""

from __future__ import annotations

import numpy as np
import pandas as pd

from harness import evidence
from harness.arrays import FloatArray
from harness.fit import Fit


def curve_metrics(fit: Fit) -> dict[str, float]:
    """Return log Z by the end of each part of a run, and the seconds until then, as metrics.

    Parameters
    ----------
    fit
        A run along the path from a base to the target, which may be pseudo-extended.

    Returns
    -------
    dict
        ``log_evidence_1`` and ``seconds_1`` to ``log_evidence_12`` and ``seconds_12``.

    Raises
    ------
    DataError
        If the draws do not follow a path, or the base is not known to be normalised.
    """
    values = fit.tempered.log_evidence_by_parts()
    attrs = fit.tree.attrs
    before = sum(float(np.sum(attrs.get(f"seconds_{name}", 0.0))) for name in ("pilot", "warmup"))
    return curve_of(values, before, fit.seconds)


def curve_of(values: FloatArray, before: float, seconds: float) -> dict[str, float]:
    """Name the estimates after each part of a run, and the seconds until then, as metrics.

    Parameters
    ----------
    values
        Estimates, shape (12,), after the parts of :func:`harness.evidence.part_shares`.
    before, seconds
        Seconds before the first draw and of the whole run.
    """
    until = before + (seconds - before) * evidence.part_shares()
    return {
        f"{name}_{part}": float(value)
        for name, series in (("log_evidence", values), ("seconds", until))
        for part, value in enumerate(series, start=1)
    }


def curve(metrics: pd.DataFrame) -> pd.DataFrame:
    """Collect :func:`curve_metrics` over the runs of one cell.

    Parameters
    ----------
    metrics
        Rows of :attr:`harness.plan.spec.Results.metrics` of one cell.

    Returns
    -------
    pandas.DataFrame
        One row per part: ``seconds``, the mean; ``mean`` of log Z; ``se``, its standard error; and
        ``runs``.
    """
    rows = []
    for part in range(1, len(evidence.part_shares()) + 1):
        value = metrics[f"log_evidence_{part}"].to_numpy(dtype=np.float64)
        rows.append(
            {
                "seconds": float(metrics[f"seconds_{part}"].mean()),
                "mean": float(value.mean()),
                "se": float(value.std(ddof=1) / np.sqrt(len(value))) if len(value) > 1 else np.nan,
                "runs": len(value),
            }
        )
    return pd.DataFrame(rows)
