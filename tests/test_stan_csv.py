"""Draws survive the way through CmdStan's files to the last bit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from harness.engine.stan_csv import read_chain

HEADER = "lp__,accept_stat__,n_leapfrog__,x.1,x.2,x.3"
ADAPTATION = "# Adaptation terminated\n# Step size = 0.5\n# 1.5, 2, 3\n"
TIMING = "# \n#  Elapsed Time: 0.1 seconds (Warm-up)\n#                0.2 seconds (Total)\n# \n"
ODD = ["0", "-0", "5e-324", "2.2250738585072014e-308", "-1.7976931348623157e+308", "1e23"]


def text_of(rows: list[list[str]]) -> str:
    return "".join(",".join(row) + "\n" for row in rows)


def write(path: Path, warmup: list[list[str]], draws: list[list[str]]) -> Path:
    start = f"# stan_version_major = 2\n# method = sample\n{HEADER}\n"
    path.write_text(start + text_of(warmup) + ADAPTATION + text_of(draws) + TIMING)
    return path


def doubles(count: int, digits: str) -> list[list[str]]:
    """Rows of text whose doubles have random bits."""
    bits = np.random.default_rng(5).integers(0, 2**64, 7 * count, dtype=np.uint64)
    values = bits.view(np.float64)
    values = values[np.isfinite(values)][: 6 * count].reshape(count, 6)
    return [[format(value, digits) for value in row] for row in values]


@pytest.mark.parametrize("digits", [".17g", ".18g", ".6g"])
def test_every_double_is_the_nearest_to_its_text(digits: str, tmp_path: Path) -> None:
    rows = [ODD, *doubles(20_000, digits)]
    draws, warmup = read_chain(write(tmp_path / "chain.csv", rows[:3], rows), "n_leapfrog__")
    expected = np.array([[float(text) for text in row] for row in rows])
    assert np.array_equal(draws.view(np.uint64), expected.view(np.uint64))
    assert warmup.tolist() == [float(row[2]) for row in rows[:3]]


def test_numbers_that_are_not_finite(tmp_path: Path) -> None:
    row = ["inf", "1", "3", "-inf", "nan", "-nan"]
    draws, _ = read_chain(write(tmp_path / "chain.csv", [], [row, row]), "n_leapfrog__")
    assert np.array_equal(draws[1], [np.inf, 1, 3, -np.inf, np.nan, np.nan], equal_nan=True)


def test_without_warmup(tmp_path: Path) -> None:
    rows = doubles(1, ".17g")
    draws, warmup = read_chain(write(tmp_path / "chain.csv", [], rows), "n_leapfrog__")
    assert draws.shape == (1, 6)
    assert warmup.shape == (0,)
