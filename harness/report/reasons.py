"""Why statements are not reproduced: a sentence on each, with the measurement behind it.

People write these sentences, after looking at the runs, in
``experiments/published/ours-reasons.csv``.  A reason belongs to a verdict, so whoever commits a
verdict that changes one changes the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from harness.errors import DataError

REASONS = "ours-reasons.csv"
"""Name of the table of reasons, next to that of the verdicts."""

Reasons = Mapping[tuple[str, str], str]
"""Sentences by experiment and key of the claim."""


def read_reasons(path: Path) -> Reasons:
    """Read the reasons; none if there is no such file.

    Raises
    ------
    DataError
        If the file cannot be read, lacks a column, or has two reasons for a claim.
    """
    if not path.is_file():
        return {}
    try:
        frame = pd.read_csv(path, dtype=str, keep_default_na=False)
    except (OSError, ValueError) as error:
        raise DataError(f"cannot read the reasons in {path}: {error}") from error
    lacking = [name for name in ("experiment", "key", "reason") if name not in frame]
    if lacking:
        raise DataError(f"the reasons in {path} lack {', '.join(lacking)}")
    keys = list(zip(frame["experiment"], frame["key"], strict=True))
    twice = sorted({f"{name} {key}" for name, key in keys if keys.count((name, key)) > 1})
    if twice:
        raise DataError(f"{path} has several reasons for {', '.join(twice)}")
    return dict(zip(keys, frame["reason"], strict=True))


def reason_lines(verdicts: pd.DataFrame, reasons: Reasons) -> list[str]:
    """Write why an experiment's statements are not reproduced, as a list in Markdown.

    Parameters
    ----------
    verdicts
        The experiment's claims, as :func:`harness.report.verdicts.read_verdicts` returns them.
    reasons
        Of all experiments.
    """
    lines = []
    for name, row in verdicts.iterrows():
        reason = reasons.get((str(name), row["key"]))
        if row["verdict"] == "not reproduced" and reason is not None:
            lines.append(f"- {row['claim']} **Not reproduced:** {reason}")
    return [*lines, ""] if lines else []
