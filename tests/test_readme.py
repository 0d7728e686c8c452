"""The Python examples of the README run as they stand, one after another."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

README = Path(__file__).parents[1] / "README.md"


@pytest.mark.compiled
def test_examples_run(cmdstan_home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cmdstan_home.is_dir()
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) >= 2
    shared: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, str(README), "exec"), shared)  # noqa: S102 - our own README
    log_evidence = shared["fit"].log_evidence
    # The last example is of a density with log Z = 0; its seed is fixed.
    assert abs(log_evidence.value) < 4.3 * log_evidence.mcse
    assert 0 < log_evidence.mcse < 0.2
    assert "LogEvidence(value=" in capsys.readouterr().out
