"""The Python examples of the README run as they stand, one after another."""

from __future__ import annotations

from pathlib import Path

import pytest
from doc_blocks import ROOT, blocks, run_python

README = ROOT / "README.md"


@pytest.mark.compiled
def test_examples_run(
    cmdstan_home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cmdstan_home.is_dir()
    assert len(blocks(README, "python")) >= 2
    monkeypatch.chdir(tmp_path)
    names = run_python(README)
    log_evidence = names["fit"].log_evidence
    # The last example is of a density with log Z = 0; its seed is fixed.
    assert abs(log_evidence.value) < 4.3 * log_evidence.mcse
    assert 0 < log_evidence.mcse < 0.2
    assert "LogEvidence(value=" in capsys.readouterr().out
