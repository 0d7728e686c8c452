"""With stanli, a user's program needs neither a C++ compiler nor a CmdStan, only stanc."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from survival_world import finish, started

from harness.engine.toolchain.stanc import stanc_in_cache
from harness.folders import cache_folder

PROGRAM = """
data {
  real y;
}
parameters {
  real m;
}
model {
  m ~ std_normal();
  y ~ normal(m, 1);
}
"""


@pytest.fixture
def world_without_tools(
    cmdstan_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """Return a folder with programs and data; all that the cache has is stanc."""
    pytest.importorskip("stanli")
    monkeypatch.setattr(os, "environ", os.environ.copy())
    monkeypatch.delenv("CMDSTAN", raising=False)
    for name, value in {
        "HARNESS_CACHE": str(tmp_path / "cache"),
        "HOME": str(tmp_path),
        "CXX": "/no/such/compiler",
        "MAKE": "/no/such/make",
    }.items():
        monkeypatch.setenv(name, value)
    cache_folder("stanc")
    stanc_in_cache().parent.mkdir()
    stanc_in_cache().symlink_to(cmdstan_home / "bin" / "stanc")
    (tmp_path / "narrow.stan").write_text(PROGRAM)
    (tmp_path / "wide.stan").write_text(PROGRAM.replace("std_normal()", "normal(0, 2)"))
    (tmp_path / "y.json").write_text('{"y": 1}')
    return tmp_path


DATA = ("--data", "y.json", "--engine", "stanli")
COMMANDS = {
    "sample": ("sample", "narrow.stan", *DATA, "--out", "fit.nc"),
    "evidence": ("evidence", "--model", "narrow.stan", *DATA),
    "compare": ("compare", "narrow.stan", "wide.stan", *DATA),
    "temper": ("temper", "narrow.stan", "--output", "tempered.stan"),
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_commands_need_stanc_only(
    world_without_tools: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.chdir(world_without_tools)
    with started("-m", "harness", *command, environment=os.environ) as process:
        done = finish(process)
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert {"cmdstan", "programs", "libraries", "native"}.isdisjoint(
        path.name for path in (world_without_tools / "cache").iterdir()
    )
    if command[0] in ("sample", "temper"):
        assert (world_without_tools / command[-1]).is_file()
