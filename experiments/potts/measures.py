"""What is measured on each fit: log Z with its error, and what tells of the transition."""

from __future__ import annotations

import numpy as np

from harness.fit import Fit
from harness.plan.spec import Cell

_NUMBERS = ("effective", "information", "removed", "crossed", "mixed", "state_share", "log_prior")


def measure(cell: Cell, fit: Fit) -> dict[str, float]:
    """Log Z_P and its error; effective runs, information, particles; shares of bonds at J_c."""
    attrs = fit.tree.attrs
    found = {name: float(attrs[name]) for name in _NUMBERS if name in attrs}
    if "log_evidence" in attrs:
        found["log_z"] = float(attrs["log_evidence"])
        found["log_z_mcse"] = float(attrs["log_evidence_mcse"])
    if "ordered" in attrs:
        at = int(np.argmin(np.abs(np.asarray(attrs["offsets"]))))
        found["ordered"] = float(np.asarray(attrs["ordered"])[at])
        found["disordered"] = float(np.asarray(attrs["disordered"])[at])
    return found
