"""What others published, which only some machines have: ``$HARNESS_REFERENCE`` is its folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def reference(name: str) -> Path:
    """Return a file or folder of them; the test that needs it is skipped if it is not here."""
    home = os.environ.get("HARNESS_REFERENCE")
    if home is None:
        pytest.skip("$HARNESS_REFERENCE does not name the folder of published references")
    found = Path(home) / name
    if not found.exists():
        pytest.skip(f"{home}, which $HARNESS_REFERENCE names, has no {name}")
    return found
