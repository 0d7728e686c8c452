"""The wheel: it carries programs, data and experiments, and works from any folder."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def output_of(*command: str | Path, cwd: Path) -> str:
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    result = subprocess.run(
        list(map(str, command)),
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    output_of(sys.executable, "-m", "build", "--wheel", "--outdir", folder, ROOT, cwd=folder)
    (built,) = folder.glob("*.whl")
    return built


@pytest.mark.slow
def test_wheel_carries_what_a_checkout_has(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    tracked = subprocess.run(
        ["git", "ls-files", "stan", "data", "experiments"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    ).stdout.split()
    if not tracked:
        pytest.skip("not a git checkout: nothing to compare the wheel with")
    assert {f"harness/_shipped/{name}" for name in tracked} <= names
    assert {"harness/py.typed", "harness/report/templates/base.html"} <= names
    assert {f"harness/engine/toolchain/assembly/{f}" for f in ("frontend.cpp", "makefile")} <= names
    assert "harness/engine/toolchain/native/rows.cpp" in names


@pytest.mark.slow
@pytest.mark.compiled
def test_wheel_works_in_another_environment_from_any_folder(
    wheel: Path, tmp_path: Path, cmdstan_home: Path
) -> None:
    assert cmdstan_home.is_dir()
    environment, elsewhere = tmp_path / "environment", tmp_path / "else where"
    elsewhere.mkdir()
    venv.create(environment, with_pip=True)
    python = environment / "bin" / "python"
    output_of(python, "-m", "pip", "install", "--quiet", wheel, cwd=elsewhere)
    home = output_of(python, "-c", "import harness; print(harness.__file__)", cwd=elsewhere)
    assert Path(home.strip()).is_relative_to(environment)
    harness = environment / "bin" / "harness"
    assert "mixture" in output_of(harness, "list", cwd=elsewhere)
    # What the experiments own has a name that other processes import it by.
    own = "from harness.plan.catalogue import load_experiment as load; print(load('images').grid)"
    code = f"{own}; from harness._shipped.experiments.images.grid import grid; print(grid)"
    first, second = output_of(python, "-c", code, cwd=elsewhere).splitlines()
    assert first == second
    told = output_of(harness, "run", "mixture", "--profile", "smoke", cwd=elsewhere)
    assert (elsewhere / "results" / "report" / "index.html").is_file(), told
