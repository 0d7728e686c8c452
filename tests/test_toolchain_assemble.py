"""An assembled CmdStan is whole or absent, made once; each obstacle has one clear message."""

from __future__ import annotations

import os
import platform
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
from survival_world import end_watchers, started
from toolchain_world import World

from harness.engine.toolchain import preflight, wheels
from harness.engine.toolchain.assemble import (
    STAN_VERSION,
    assembly_lock,
    ensure_assembled,
    find_assembled,
    is_complete,
)
from harness.engine.toolchain.locate import version_of
from harness.errors import ToolchainError
from harness.folders import cache_folder


def assembling(world: World, **variables: str) -> AbstractContextManager[subprocess.Popen[str]]:
    """Start another process that assembles in the same world; it ends with the block."""
    return started(*world.command()[1:], environment={**os.environ, **variables})


def wait_for(condition: Callable[[], object], seconds: float = 10) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)


def is_gone(pid: int) -> bool:
    """Tell whether a process has ended, reaped or not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state == "Z"


def installations(world: World) -> list[Path]:
    return [path for path in (world.cache / "cmdstan").iterdir() if path.is_dir()]


def test_our_makefile_states_our_version(world: World) -> None:
    shipped = Path(preflight.__file__).parent / "assembly"
    assert version_of(shipped) == STAN_VERSION


def test_assembled_folder(world: World, capfd: pytest.CaptureFixture[str]) -> None:
    folder = ensure_assembled()
    assert folder.parent == world.cache / "cmdstan"
    assert folder.name.startswith(f"{STAN_VERSION}-")
    for name in ("makefile", "src/frontend.cpp", "include/stan/version.hpp", "build/frontend.o"):
        assert (folder / name).is_file()
    for name, prints in {
        "stanc": "stanc3",
        "stansummary": "summary",
        "diagnose": "diagnosis",
    }.items():
        assert prints in subprocess.check_output([folder / "bin" / name], text=True)
    # The summary tools find their library relative to where they really are.
    real = (folder / "bin" / "stansummary").resolve()
    assert (real.parent / "../../../../prophet.libs/libtbb-1.so.2").is_file()
    assert {path.name for path in (folder / "licenses").iterdir()} == {"httpstan", "prophet"}
    lines = capfd.readouterr().err.splitlines()
    assert [line[:5] for line in lines] == ["[1/4]", "[2/4]", "[3/4]", "[4/4]"]
    assert is_complete(folder)


def test_second_time_nothing_is_done(world: World) -> None:
    first = ensure_assembled()
    assert ensure_assembled() == first == find_assembled()
    assert len(world.calls("pip")) == 2
    assert len(world.calls("make")) == 1


def test_make_gets_a_clean_start(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAKEFLAGS", "-n")
    ensure_assembled()
    assert world.calls("make")[0].endswith("MAKEFLAGS=")


@pytest.mark.parametrize("change", ["front end", "makefile", "compiler"])
def test_changed_ingredients_make_a_new_folder(
    world: World, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    old = ensure_assembled()
    if change == "compiler":
        monkeypatch.setenv("FAKE_GXX_VERSION", "13.1.0")
    else:
        name = "makefile" if change == "makefile" else "frontend.cpp"
        with (world.recipes / name).open("a") as file:
            file.write("\n")
    assert find_assembled() is None
    new = ensure_assembled()
    assert new != old
    assert is_complete(old)
    assert len(world.calls("pip")) == 2


def test_compiler_by_another_name_is_the_same(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = ensure_assembled()
    shutil.copy(world.bin / "g++", world.bin / "c++")
    monkeypatch.setenv("CXX", str(world.bin / "c++"))
    assert find_assembled() == folder


def test_moved_cache_is_built_anew(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    ensure_assembled()
    moved = world.root / "moved"
    world.cache.rename(moved)
    monkeypatch.setenv("HARNESS_CACHE", str(moved))
    assert find_assembled() is None
    assert is_complete(ensure_assembled())
    assert len(world.calls("make")) == 2


@pytest.mark.parametrize(
    ("mode", "text"), [("fails", "'x' was not declared"), ("starves", "because memory ran out")]
)
def test_failed_build(world: World, monkeypatch: pytest.MonkeyPatch, mode: str, text: str) -> None:
    monkeypatch.setenv("FAKE_MAKE", mode)
    with pytest.raises(ToolchainError, match=text) as caught:
        ensure_assembled()
    message = str(caught.value)
    assert len(message.splitlines()) == 2
    log = next((world.cache / "cmdstan").glob("*.log"))
    assert str(log) in message
    assert "rror" in log.read_text()
    assert installations(world) == []
    monkeypatch.delenv("FAKE_MAKE")
    assert is_complete(ensure_assembled())
    assert len(world.calls("pip")) == 2


def test_stanc_that_does_not_run(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.engine.toolchain.assemble.output_of", lambda command: "")
    with pytest.raises(ToolchainError, match="noexec"):
        ensure_assembled()
    assert installations(world) == []


def test_wreckage_is_replaced(world: World) -> None:
    folder = ensure_assembled()
    (folder / "COMPLETE").unlink()
    (folder / "wreckage").touch()
    assert ensure_assembled() == folder
    assert not (folder / "wreckage").exists()
    assert is_complete(folder)


def test_two_processes_at_once(world: World) -> None:
    with assembling(world, FAKE_MAKE="slow") as one, assembling(world, FAKE_MAKE="slow") as other:
        both = (one, other)
        answers = [process.communicate(timeout=30) for process in both]
    assert [process.returncode for process in both] == [0, 0], answers
    assert answers[0][0] == answers[1][0]
    assert is_complete(Path(answers[0][0].strip()))
    assert len(world.calls("make")) == 1
    assert len(world.calls("pip")) == 2
    assert "waiting for it" in answers[0][1] + answers[1][1]


def test_killed_assembly_is_finished_by_the_next(world: World) -> None:
    with assembling(world, FAKE_MAKE="outlives") as first:
        wait_for((world.root / "make.began").exists)
        end_watchers(first.pid)  # it would end make, too
        first.kill()
        first.communicate(timeout=10)
    # Its make lives on for a while; the next waits, or the two would write the same files.
    with assembling(world, FAKE_MAKE="") as second:
        output, said = second.communicate(timeout=30)
    assert "still at work" in said
    folder = Path(output.strip())
    assert is_complete(folder)
    assert (folder / "build" / "frontend.o").read_text() == "\n"
    assert len(world.calls("make")) == 2
    assert len(world.calls("pip")) == 2


def test_interrupt_leaves_nothing_running_or_broken(world: World) -> None:
    with assembling(world, FAKE_MAKE="endless") as process:
        wait_for((world.root / "child.pid").exists)
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=15)
    assert "KeyboardInterrupt" in said
    for name in ("make.pid", "child.pid"):
        pid = int((world.root / name).read_text())
        wait_for(partial(is_gone, pid))
    assert installations(world) == []
    assert is_complete(ensure_assembled())


def refuse(world: World) -> str:
    """Assemble, which must fail with a message of at most two lines before any download."""
    with pytest.raises(ToolchainError) as caught:
        ensure_assembled()
    assert not world.calls("pip")
    assert len(str(caught.value).splitlines()) <= 2
    return str(caught.value)


def test_no_make(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAKE", "no-such-make")
    assert "no-such-make" in refuse(world)
    monkeypatch.setenv("MAKE", str(world.program("bsdmake", "#!/bin/sh\necho usage: make\n")))
    assert "not GNU make" in refuse(world)
    monkeypatch.delenv("MAKE")
    monkeypatch.setenv("PATH", str(world.home))
    assert "apt install g++ make" in refuse(world)


def test_no_compiler(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler -O2")
    assert "no-such-compiler" in refuse(world)
    monkeypatch.setenv("CXX", str(world.program("mute", "#!/bin/sh\nexit 1\n")))
    assert "does not run" in refuse(world)
    monkeypatch.delenv("CXX")
    monkeypatch.setenv("PATH", str(world.home))
    assert "apt install g++ make" in refuse(world)


def test_old_compiler(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_GXX_VERSION", "4.8.5")
    message = refuse(world)
    assert "g++ 4.8.5" in message
    assert "C++17" in message


def test_no_pip(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wheels, "has_pip", lambda: False)
    assert "ensurepip" in refuse(world)


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("system", "Darwin", "Darwin"),
        ("machine", "aarch64", "aarch64"),
        ("libc_ver", ("", ""), "another C library"),
        ("libc_ver", ("glibc", "2.17"), "2.17"),
    ],
)
def test_unsupported_platform(
    world: World, monkeypatch: pytest.MonkeyPatch, name: str, value: object, text: str
) -> None:
    monkeypatch.setattr(platform, name, lambda: value)
    message = refuse(world)
    assert text in message
    assert "--install" in message
    assert "CMDSTAN" in message


@pytest.mark.parametrize("name", ["with space", "a$b", "a:b", "a#b", "it's", "a%b"])
def test_path_that_make_cannot_handle(
    world: World, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    untidy = world.root / name
    untidy.mkdir()
    (world.root / "tidy").symlink_to(untidy)
    for folder in (untidy, world.root / "tidy"):
        monkeypatch.setenv("HARNESS_CACHE", str(folder))
        message = refuse(world)
        assert name in message
        assert "HARNESS_CACHE" in message


def test_letters_of_other_languages_are_fine(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_CACHE", str(world.root / "größe_1.0+x@y"))
    assert is_complete(ensure_assembled())


def test_cache_that_is_a_file(world: World) -> None:
    world.cache.write_text("mine")
    message = refuse(world)
    assert "not a folder" in message
    assert "HARNESS_CACHE" in message
    assert world.cache.read_text() == "mine"


def test_read_only_cache(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    message = refuse(world)
    assert str(world.cache) in message
    assert "HARNESS_CACHE" in message


def test_write_refused_by_the_system(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(*_: object, **__: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(Path, "mkdir", refuses)
    message = refuse(world)
    assert "Read-only file system" in message
    assert "HARNESS_CACHE" in message


def test_too_little_disk(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=600_000_000))
    message = refuse(world)
    assert "1100 MB" in message
    assert "600 MB" in message


def test_folder_that_others_made_is_left_alone(world: World) -> None:
    foreign = world.cache / "cmdstan"
    foreign.mkdir(parents=True)
    (foreign / "theirs").touch()
    assert "in the way" in refuse(world)
    assert [path.name for path in foreign.iterdir()] == ["theirs"]


def test_lock_can_be_asked_not_to_wait(world: World) -> None:
    with (
        assembly_lock(),
        pytest.raises(ToolchainError, match="Another process"),
        assembly_lock(wait=False),
    ):
        pass
    with assembly_lock(wait=False):
        assert cache_folder("cmdstan").is_dir()
