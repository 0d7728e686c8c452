"""Wheels are fetched once, verified always, and unpacked only where they should land."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import pytest
from toolchain_world import World, write_wheel

from harness.engine.toolchain import wheels
from harness.errors import ToolchainError


def no_tick() -> None:
    """Stand in for a progress bar."""


@pytest.fixture
def store(world: World) -> Path:
    folder = world.root / "store"
    folder.mkdir()
    return folder


def test_pins_are_whole() -> None:
    for wheel in wheels.WHEELS:
        assert re.fullmatch(r"[0-9a-f]{64}", wheel.sha256)
        assert wheel.filename.startswith(f"{wheel.name}-{wheel.version}-")


def test_fetched_once(world: World, store: Path) -> None:
    wheel = world.wheels[0]
    path = wheels.fetch(wheel, store, no_tick)
    assert wheels.sha256_of(path) == wheel.sha256
    assert wheels.fetch(wheel, store, no_tick) == path
    calls = world.calls("pip")
    assert len(calls) == 1
    assert {"--require-hashes", "--no-deps", "--only-binary=:all:"} <= set(json.loads(calls[0]))
    assert [entry.name for entry in store.iterdir()] == [wheel.filename]


@pytest.mark.parametrize("damage", ["truncated", "changed", "empty"])
def test_damaged_wheel_is_fetched_again(world: World, store: Path, damage: str) -> None:
    wheel = world.wheels[0]
    path = wheels.fetch(wheel, store, no_tick)
    content = path.read_bytes()
    damaged = {"truncated": content[:-9], "changed": b"P" + content[:-1], "empty": b""}[damage]
    path.write_bytes(damaged)
    assert wheels.fetch(wheel, store, no_tick) == path
    assert path.read_bytes() == content
    assert len(world.calls("pip")) == 2


def test_wrong_wheel_from_the_index_is_refused(
    world: World, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = world.wheels[0]
    monkeypatch.setenv("FAKE_PIP", "changes")
    with pytest.raises(ToolchainError, match=wheel.sha256) as caught:
        wheels.fetch(wheel, store, no_tick)
    assert wheel.filename in str(caught.value)
    assert len(set(re.findall(r"\b[0-9a-f]{64}\b", str(caught.value)))) == 2
    assert list(store.iterdir()) == []


def test_refusal_by_pip_itself_names_both_checksums(
    world: World, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_PIP", "refuses")
    with pytest.raises(ToolchainError, match="b" * 64) as caught:
        wheels.fetch(world.wheels[1], store, no_tick)
    assert world.wheels[1].sha256 in str(caught.value)


def test_no_network(world: World, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_PIP", "offline")
    with pytest.raises(ToolchainError, match="No matching distribution found") as caught:
        wheels.fetch(world.wheels[0], store, no_tick)
    assert "Check the network" in str(caught.value)
    assert "no answer from the Python package index" in str(caught.value)
    assert len(str(caught.value).splitlines()) == 2
    assert list(store.iterdir()) == []


def test_no_pip(world: World, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wheels, "has_pip", lambda: False)
    with pytest.raises(ToolchainError, match="ensurepip"):
        wheels.fetch(world.wheels[0], store, no_tick)


def test_leftovers_of_a_killed_download_go(world: World, store: Path) -> None:
    (store / ".fetching-old").mkdir()
    wheels.fetch(world.wheels[0], store, no_tick)
    assert not (store / ".fetching-old").exists()


def test_unpack_takes_what_is_needed(world: World, tmp_path: Path) -> None:
    target = tmp_path / "target"
    wheels.unpack(world.root / "index" / "httpstan.whl", world.wheels[0], target, no_tick)
    files = {str(p.relative_to(target)) for p in target.rglob("*") if p.is_file()}
    assert files == {
        "include/stan/version.hpp",
        "lib/libtbb.so.2",
        "bin/stanc",
        "licenses/httpstan/LICENSE",
    }
    assert (target / "bin" / "stanc").stat().st_mode & 0o111


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        ("httpstan/include/../../../evil", 0o100644),
        ("httpstan/include/a/../../../evil", 0o100644),
        ("httpstan/include/..\\..\\evil", 0o100644),
        ("httpstan/include/c:evil", 0o100644),
        ("httpstan/include/link", 0o120777),
        ("httpstan/include/pipe", 0o010644),
    ],
)
def test_unpack_refuses_to_leave_the_target(
    world: World, tmp_path: Path, name: str, mode: int
) -> None:
    bad = tmp_path / "bad.whl"
    members = {"httpstan/include/good.hpp": "", name: "../../evil"}
    write_wheel(bad, members, mode=mode)
    target = tmp_path / "a" / "b" / "target"
    with pytest.raises(ToolchainError, match="is refused"):
        wheels.unpack(bad, world.wheels[0], target, no_tick)
    assert not target.exists()
    assert not list(tmp_path.rglob("*evil*"))


def test_an_absolute_replacement_is_refused(world: World, tmp_path: Path) -> None:
    wheel = dataclasses.replace(world.wheels[0], members=(("httpstan/", ""),))
    write_wheel(tmp_path / "bad.whl", {"httpstan//evil": ""})
    with pytest.raises(ToolchainError, match="is refused"):
        wheels.unpack(tmp_path / "bad.whl", wheel, tmp_path / "target", no_tick)


def test_unpack_of_something_else(world: World, tmp_path: Path) -> None:
    bad = tmp_path / "bad.whl"
    bad.write_bytes(b"not a zip file")
    with pytest.raises(ToolchainError, match="cannot be unpacked"):
        wheels.unpack(bad, world.wheels[0], tmp_path / "target", no_tick)
    write_wheel(bad, {"other/file": ""})
    with pytest.raises(ToolchainError, match="nothing that we need"):
        wheels.unpack(bad, world.wheels[0], tmp_path / "target", no_tick)
