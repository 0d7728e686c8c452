"""What is compiled before the tests: each program once."""

from __future__ import annotations

from pathlib import Path

from programs import programs

from harness.engine.compile import source_digest


def test_no_program_is_compiled_twice(tmp_path: Path) -> None:
    found = programs(tmp_path)
    assert len(found) > 30
    assert len({source_digest(program) for program in found}) == len(found)
