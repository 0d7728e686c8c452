"""A small program without data, all of whose density is tempered."""

from __future__ import annotations

from pathlib import Path

from harness.engine.batched import BatchedDensity
from harness.model import Model
from harness.temper import tempered_model

TWO_ROUND_MODES = """parameters {
  vector[4] x;
}
model {
  target += log_sum_exp([normal_lpdf(x | 0, 1), normal_lpdf(x | 20, 1)]);
}
"""


def tempered_whole(folder: Path, text: str) -> tuple[Model, BatchedDensity]:
    """Write a program to a folder; return its tempered model and its density."""
    path = folder / "whole.stan"
    path.write_text(text)
    model = tempered_model(path, {}, what="all")
    return model, BatchedDensity(model.program("target"), model.data)
