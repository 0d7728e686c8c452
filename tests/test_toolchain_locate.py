"""CmdStan is looked for in $CMDSTAN, then ~/.cmdstan, then our cache folder."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from toolchain_world import World

from harness.cli import main
from harness.engine.toolchain import find_cmdstan, require_cmdstan
from harness.engine.toolchain.assemble import ensure_assembled
from harness.engine.toolchain.locate import search
from harness.errors import ToolchainError


@pytest.fixture(autouse=True)
def _restore_environment(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", os.environ.copy())


def make_cmdstan(folder: Path, version: str = "2.39.0") -> Path:
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "stanc").write_text(f"#!/bin/sh\necho 'stanc3 v{version} (Unix)'\n")
    (folder / "bin" / "stanc").chmod(0o755)
    (folder / "makefile").write_text(f"# CmdStan\nCMDSTAN_VERSION := {version}\n")
    return folder


def test_environment_comes_first(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = make_cmdstan(world.root / "mine", "2.38.0")
    make_cmdstan(world.home / ".cmdstan" / "cmdstan-2.39.0")
    monkeypatch.setenv("CMDSTAN", str(chosen))
    found = find_cmdstan()
    assert (found.path, found.version, found.source) == (chosen, "2.38.0", "environment")


@pytest.mark.parametrize(
    ("missing", "text"),
    [("", "no such folder"), ("makefile", "no makefile"), ("bin/stanc", "no bin/stanc")],
)
def test_broken_environment_is_an_error(
    world: World, monkeypatch: pytest.MonkeyPatch, missing: str, text: str
) -> None:
    chosen = world.root / "mine"
    if missing:
        (make_cmdstan(chosen) / missing).unlink()
    make_cmdstan(world.home / ".cmdstan" / "cmdstan-2.39.0")
    monkeypatch.setenv("CMDSTAN", str(chosen))
    with pytest.raises(ToolchainError, match=text) as caught:
        find_cmdstan()
    assert str(chosen) in str(caught.value)
    assert "unset" in str(caught.value)


@pytest.mark.parametrize(
    ("versions", "newest"),
    [
        (["2.32.0", "2.38.0", "2.37.1"], "2.38.0"),
        (["2.39.0-rc1", "2.39.0", "2.38.0"], "2.39.0"),
        (["2.39.0-rc2", "2.39.0-rc10", "2.38.0"], "2.39.0-rc10"),
    ],
)
def test_newest_at_home(world: World, versions: list[str], newest: str) -> None:
    for version in versions:
        make_cmdstan(world.home / ".cmdstan" / f"cmdstan-{version}", version)
    (world.home / ".cmdstan" / "cmdstan-backup").mkdir()
    (world.home / ".cmdstan" / "cmdstan-9.9.9").touch()
    found = find_cmdstan()
    assert (found.version, found.source) == (newest, "home")


BROKEN: dict[str, tuple[Callable[[Path], object], str]] = {
    "too old": (
        lambda folder: (folder / "bin" / "stanc").write_text("#!/bin/sh\necho stanc3 v2.31.0"),
        "its version is 2.31, and harness needs 2.32 or newer",
    ),
    "old by its makefile": (
        lambda folder: (folder / "makefile").write_text("CMDSTAN_VERSION := 2.10.0\n"),
        "its version is 2.10",
    ),
    "not executable": (lambda folder: (folder / "bin" / "stanc").chmod(0o644), "not executable"),
    "no program": (
        lambda folder: (folder / "bin" / "stanc").write_text("nonsense"),
        "does not run here",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_cmdstan_that_does_not_work_is_refused(
    world: World, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    """By every command, and by the doctor, in one sentence and without a traceback."""
    breaks, message = BROKEN[case]
    chosen = make_cmdstan(world.root / "mine")
    breaks(chosen)
    monkeypatch.setenv("CMDSTAN", str(chosen))
    with pytest.raises(ToolchainError, match=message):
        find_cmdstan()
    told = CliRunner().invoke(main, ["doctor"])
    assert told.exit_code == 1
    assert message in told.stdout
    ran = CliRunner().invoke(main, ["run", "mixture", "--store", str(world.root / "store")])
    assert ran.exit_code == 1
    assert ran.stderr.startswith(f"harness: CMDSTAN is set to {chosen}")
    monkeypatch.delenv("CMDSTAN")
    make_cmdstan(world.home / ".cmdstan" / "cmdstan-2.38.0", "2.38.0")
    newer = make_cmdstan(world.home / ".cmdstan" / "cmdstan-2.39.0")
    breaks(newer)
    found = search()
    assert found.found is not None
    assert found.found.version == "2.38.0"
    assert message in found.notes[0]


def test_a_copy_of_an_assembled_cmdstan_says_what_it_is(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = ensure_assembled()
    copy = world.root / "copy"
    shutil.copytree(folder, copy, symlinks=True)
    monkeypatch.setenv("CMDSTAN", str(copy))
    with pytest.raises(ToolchainError, match=r"copied or moved .*`harness doctor --build`"):
        find_cmdstan()
    monkeypatch.delenv("CMDSTAN")
    moved = world.root / "moved"
    world.cache.rename(moved)
    monkeypatch.setenv("HARNESS_CACHE", str(moved))
    (note,) = search().notes
    assert "copied or moved" in note


def test_unbuilt_home_is_skipped_with_a_note(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    home = world.home / ".cmdstan"
    (make_cmdstan(home / "cmdstan-2.40.0") / "bin" / "stanc").unlink()
    good = make_cmdstan(home / "cmdstan-2.39.0")
    assert find_cmdstan().path == good
    assert "cmdstan-2.40.0 was skipped" in caplog.text


def test_nothing_found_says_what_to_do(world: World) -> None:
    assert search().found is None
    with pytest.raises(ToolchainError, match="harness doctor --build"):
        find_cmdstan()
    assert not world.cache.exists()


def test_required_is_assembled_and_given_to_cmdstanpy(world: World) -> None:
    found = require_cmdstan()
    assert found.source == "assembled"
    assert found.version == "2.39.0"
    assert os.environ["CMDSTAN"] == str(found.path)
    # What we exported ourselves is still known for ours, here and in programs we start.
    assert find_cmdstan() == found


def test_home_stays_home_after_it_is_exported(world: World) -> None:
    make_cmdstan(world.home / ".cmdstan" / "cmdstan-2.39.0")
    assert require_cmdstan() == find_cmdstan()
    assert find_cmdstan().source == "home"
    assert not world.calls("pip")


def test_unfinished_assembly_in_environment_is_an_error(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = ensure_assembled()
    (folder / "COMPLETE").unlink()
    monkeypatch.setenv("CMDSTAN", str(folder))
    with pytest.raises(ToolchainError, match="not finished"):
        find_cmdstan()


def test_clang_is_passed_on_to_make(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.program("clang++", "#!/bin/sh\necho 'Debian clang version 14.0.6'\n")
    (world.bin / "g++").unlink()
    monkeypatch.setenv("PATH", str(world.bin))
    monkeypatch.delenv("CXX")
    # The shell in the fakes needs the usual programs.
    for name in ("mkdir", "touch", "sh"):
        (world.bin / name).symlink_to(
            next(p for p in (Path("/bin"), Path("/usr/bin")) if (p / name).exists()) / name
        )
    require_cmdstan()
    assert os.environ["CXX"] == "clang++"
    assert "CXX=clang++" in world.calls("make")[0]


def test_sources_edited_during_assembly_do_not_lose_it(world: World) -> None:
    edits = 'case "$1" in -j*) echo >> "$WORLD/recipes/frontend.cpp" ;; esac\n'
    make = (world.bin / "make").read_text()
    world.program("make", make.replace("#!/bin/sh\n", f"#!/bin/sh\n{edits}"))
    found = require_cmdstan()
    assert found.source == "assembled"
    assert (found.path / "src" / "frontend.cpp").read_text() == "int main() {}\n"
