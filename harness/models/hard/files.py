"""Data of the hard posteriors, read from ``data/hard``."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.folders import shipped


def read_table(name: str) -> dict[str, list[str]]:
    """Return the columns of a file of comma-separated values by name, as text.

    Raises
    ------
    DataError
        If the file cannot be read.
    """
    lines = (line for line in _text(name).splitlines() if not line.startswith("#"))
    rows = list(csv.DictReader(lines))
    return {column: [row[column] for row in rows] for column in rows[0]}


def read_numbers(name: str, column: str) -> FloatArray:
    """Return a column of a file of comma-separated values.

    Raises
    ------
    DataError
        If the file cannot be read.
    """
    return np.array(read_table(name)[column], dtype=np.float64)


def read_json(name: str) -> dict[str, Any]:
    """Return what a JSON file holds.

    Raises
    ------
    DataError
        If the file cannot be read.
    """
    content: dict[str, Any] = json.loads(_text(name))
    return content


def _text(name: str) -> str:
    path: Path = shipped("data") / "hard" / name
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}; install harness again") from error
