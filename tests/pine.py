"""The two regressions of radiata pine, with their evidence by conjugacy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from doc_blocks import DOCS, save_stan

from harness.models.hard.radiata_pine import Pine, load_boards

_EXPLAINED_BY = {"density": "x", "adjusted": "z"}


def pine_data() -> dict[str, Any]:
    """Return the data that both programs take."""
    boards = load_boards()
    return {
        "N": len(boards.y),
        "slope_precision": 6.0,
        **{name: column.tolist() for name, column in boards._asdict().items()},
    }


def pine_programs(folder: Path) -> dict[str, Path]:
    """Write the programs of the documentation; return them by their names."""
    saved = save_stan(DOCS / "evidence.md", folder)
    return {path.stem: path for path in saved if path.stem in _EXPLAINED_BY}


def pine_log_evidence(name: str, slope_precision: float = 6.0) -> float:
    """Normal prior given a gamma precision (Bernardo and Smith 1994, section 5.4)."""
    boards = load_boards()
    return Pine(boards.y, getattr(boards, _EXPLAINED_BY[name]), slope_precision).log_evidence()
