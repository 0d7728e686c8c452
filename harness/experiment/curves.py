"""Estimates of log Z from the first part of a run, against what that part has cost."""

from __future__ import annotations

import numpy as np
import pandas as pd

from harness import weights
from harness.fit import Fit
from harness.weights import FloatArray

PARTS = 12
"""Parts of a run after each of which there is an estimate; they double every two."""


def shares() -> FloatArray:
    """Share of a run's draws at the end of each part, ascending to 1, shape (PARTS,)."""
    return np.exp2(0.5 * np.arange(1 - PARTS, 1, dtype=np.float64))


def curve_metrics(fit: Fit, *, before: float | None = None) -> dict[str, float]:
    """Return log Z by the end of each part of a run, and the seconds until then, as metrics.

    Parameters
    ----------
    fit
        A run along the path from a base to the target; pseudo-extended ones included.
    before
        Seconds before the first draw; those of pilot and warm-up if not given.

    Returns
    -------
    dict
        ``log_evidence_1`` and ``seconds_1`` to ``log_evidence_12`` and ``seconds_12``.

    Raises
    ------
    DataError
        If the draws follow no path.
    """
    tempered = fit.tempered
    if before is None:
        attrs = fit.tree.attrs
        before = float(
            np.sum(attrs.get("seconds_pilot", 0.0)) + np.sum(attrs.get("seconds_warmup", 0.0))
        )
    sampling = fit.seconds - before
    ratio = tempered.log_g[-1][1] - tempered.log_g[0][1]
    draws = tempered.log_w1.shape[1]
    metrics = {}
    for part, share in enumerate(shares(), start=1):
        kept = max(4, round(share * draws))
        metrics[f"log_evidence_{part}"] = weights.log_evidence(
            tempered.log_w1[:, :kept],
            tempered.log_w0[:, :kept],
            log_zeta=tempered.log_zeta,
            log_g_ratio=ratio,
        ).value
        metrics[f"seconds_{part}"] = before + sampling * kept / draws
    return metrics


def curve(metrics: pd.DataFrame) -> pd.DataFrame:
    """Collect :func:`curve_metrics` over the runs of one cell.

    Parameters
    ----------
    metrics
        Rows of :attr:`harness.experiment.spec.Results.metrics` of one cell.

    Returns
    -------
    pandas.DataFrame
        A row a part: ``seconds``, the mean; ``mean`` of log Z; ``se``, its standard error; and
        ``runs``.
    """
    rows = []
    for part in range(1, PARTS + 1):
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
