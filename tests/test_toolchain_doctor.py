"""`harness doctor` says what is here and what to do, and changes only what it is asked to."""

from __future__ import annotations

import json
import logging
import os
from importlib import metadata
from pathlib import Path

import cmdstanpy
import pytest
from click.testing import CliRunner, Result
from toolchain_world import World

from harness.cli import main
from harness.engine.toolchain.assemble import assembly_lock, ensure_assembled
from harness.folders import cache_folder


def doctor(*options: str) -> Result:
    return CliRunner().invoke(main, ["doctor", *options])


@pytest.fixture(autouse=True)
def _in_world(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", os.environ.copy())


def test_before_assembly(world: World) -> None:
    result = doctor()
    assert result.exit_code == 0
    for text in ("g++ 12.2.0", "GNU Make 4.3", "none yet", str(world.cache), "cmdstanpy"):
        assert text in result.stdout
    assert "harness doctor --build" in result.stdout
    facts = json.loads(doctor("--json").stdout)
    assert facts["cmdstan"] == {"path": None, "version": None, "source": None}
    assert facts["ready"] is True
    assert facts["cache"] == {"path": str(world.cache), "bytes": 0}
    assert facts["harness"] == metadata.version("harness")
    assert CliRunner().invoke(main, ["--version"]).stdout == f"harness {facts['harness']}\n"
    assert not world.calls("pip")
    assert not world.cache.exists()


def test_build_then_json(world: World) -> None:
    result = doctor("--build", "--json")
    assert result.exit_code == 0
    facts = json.loads(result.stdout)
    assert facts["cmdstan"]["source"] == "assembled"
    assert facts["cmdstan"]["version"] == "2.39.0"
    assert Path(facts["cmdstan"]["path"]).parent == world.cache / "cmdstan"
    assert facts["compiler"]["version"] == "12.2.0"
    assert facts["make"]["version"] == "4.3"
    assert facts["cache"]["bytes"] > 0
    assert "[4/4]" in result.stderr
    assert "assembled in the cache" in doctor().stdout


def test_what_is_missing_is_said_with_what_to_do(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CXX")
    monkeypatch.delenv("MAKE")
    monkeypatch.setenv("PATH", str(world.home))
    result = doctor()
    assert result.exit_code == 1
    for text in ("apt install g++ make", "dnf install gcc-c++ make", "brew install gcc make"):
        assert text in result.stdout
    assert result.stdout.count("Problem: No C++ compiler") == 1
    assert result.stdout.count("Problem: GNU make") == 1
    assert "Without them, `harness sample --engine stanli` works" in result.stdout
    facts = json.loads(doctor("--json").stdout)
    assert facts["compiler"] is None
    assert facts["make"] is None
    assert len(facts["problems"]) == 2


def test_broken_environment_is_a_problem_not_a_crash(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CMDSTAN", "/no/such/folder")
    result = doctor("--json")
    assert result.exit_code == 1
    assert "/no/such/folder" in json.loads(result.stdout)["problems"][0]


def test_failure_is_one_message_on_stderr(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_MAKE", "fails")
    result = doctor("--build")
    assert result.exit_code == 1
    assert "harness: Building CmdStan's front end failed" in result.stderr
    assert "Traceback" not in result.output
    assert result.stdout == ""


def test_interrupt(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("harness.engine.toolchain.assemble.ensure_assembled", interrupted)
    result = doctor("--build")
    assert result.exit_code == 130
    assert result.stderr == "interrupted\n"


def test_clear_cache_removes_only_what_is_ours(world: World) -> None:
    ensure_assembled()
    program = cache_folder("programs") / "model"
    program.write_bytes(b"x" * 1000)
    (world.cache / "mine").mkdir()
    (world.cache / "mine" / "thesis.tex").touch()
    outside = world.root / "outside"
    outside.mkdir()
    (outside / "file").touch()
    (world.cache / "cmdstan" / "link").symlink_to(outside)
    (world.cache / "linked").symlink_to(outside)
    result = doctor("--clear-cache", "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["cmdstan"]["path"] is None
    freed = int(result.stderr.split()[1].replace(",", ""))
    assert freed > 1000
    left = {path.name for path in world.cache.iterdir()}
    assert left == {"mine", "linked", "cmdstan"}
    kept = {path.name for path in (world.cache / "cmdstan").iterdir()}
    assert kept == {"CACHEDIR.TAG", ".lock", ".builders"}
    assert (world.cache / "mine" / "thesis.tex").exists()
    assert (outside / "file").exists()
    assert doctor("--clear-cache").stdout.startswith("Freed 0 bytes")
    ensure_assembled()


def test_clear_cache_without_a_cache(world: World) -> None:
    assert doctor("--clear-cache").stdout.startswith("Freed 0 bytes")
    assert not world.cache.exists()


def test_clear_cache_refuses_what_is_not_ours(world: World) -> None:
    (world.cache / "cmdstan").mkdir(parents=True)
    (world.cache / "cmdstan" / "file").touch()
    result = doctor("--clear-cache")
    assert result.exit_code == 1
    assert "nothing is removed" in result.stderr
    assert (world.cache / "cmdstan" / "file").exists()


def test_clear_cache_refuses_a_symbolic_link(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    ensure_assembled()
    link = world.root / "link"
    link.symlink_to(world.cache)
    monkeypatch.setenv("HARNESS_CACHE", str(link))
    result = doctor("--clear-cache")
    assert result.exit_code == 1
    assert "symbolic link" in result.stderr
    assert (world.cache / "wheels").exists()


def test_clear_cache_refuses_while_another_assembles(world: World) -> None:
    ensure_assembled()
    with assembly_lock():
        result = doctor("--clear-cache")
    assert result.exit_code == 1
    assert "Another process" in result.stderr
    assert (world.cache / "wheels").exists()


def test_install_failure_is_clear(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(**_: object) -> bool:
        print("Downloading")
        logging.getLogger("cmdstanpy").warning("Installation failed.\n%s", "no route to host")
        return False

    monkeypatch.setattr(cmdstanpy, "install_cmdstan", fails)
    result = doctor("--install", "--json")
    assert result.exit_code == 1
    assert "no route to host" in result.stderr
    assert result.stdout == ""


def test_install_and_build_exclude_each_other(world: World) -> None:
    assert doctor("--install", "--build").exit_code == 2


def test_a_bug_of_ours_keeps_its_traceback(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("harness.engine.toolchain.doctor.gather", broken)
    assert isinstance(doctor().exception, ZeroDivisionError)
