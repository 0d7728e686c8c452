"""Fixtures that more than one test module uses."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import cmdstanpy
import pytest
from filelock import FileLock
from toolchain_world import World

from harness.engine.toolchain import require_cmdstan
from harness.folders import cache_root

if TYPE_CHECKING:
    from survival_world import TinyWorld


COMPILED = pytest.StashKey[set[Path]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option of a run that follows ``tests/programs.py``."""
    parser.addoption(
        "--all-compiled", action="store_true", help="name programs that are compiled nevertheless"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Let what the tests start be interrupted, and remember what is compiled.

    A shell's background job ignores Ctrl-C, and hands that down to every process it starts.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    config.stash[COMPILED] = compiled_programs()


def compiled_programs() -> set[Path]:
    """Return the compiled programs in the user's cache."""
    return set((cache_root() / "programs").glob("[!.]*/*.stan"))


def compiled_late(config: pytest.Config) -> list[Path]:
    """Return what was compiled during a run for which all was to be there before."""
    if not config.getoption("all_compiled"):
        return []
    before = config.stash[COMPILED]
    return sorted(compiled_programs() - before)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a run of continuous integration; elsewhere other runs may share the cache."""
    if "CI" in os.environ and compiled_late(session.config):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Name the programs that were compiled late."""
    late = compiled_late(config)
    if late:
        terminalreporter.section("programs that tests/programs.py lacks")
    for path in late:
        terminalreporter.line(f"{path.stem}: {path}")


@pytest.fixture(scope="session")
def cmdstan_home() -> Path:
    """Return the folder of a working CmdStan, which CmdStanPy then uses for the whole session.

    It comes from the user's own cache, so that it is assembled once and not for each run.
    """
    return require_cmdstan().path


@pytest.fixture(scope="module")
def quiet_cmdstanpy() -> Iterator[None]:
    """Keep CmdStanPy from logging what short runs are bound to say."""
    logger = cmdstanpy.utils.get_logger()
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    yield
    logger.setLevel(level)


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> TinyWorld:
    """World with a whole run of the tiny experiment, by one worker; not to be changed.

    Made once for all of pytest's processes.
    """
    # Here, because it imports most of the package, which takes seconds and few tests need.
    from survival_world import TinyWorld

    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "undisturbed"
    with FileLock(folder.with_suffix(".lock")):
        tiny, made = TinyWorld(folder), folder / "made"
        if not made.exists():
            tiny.quick_run(workers=1)
            made.touch()
    return tiny


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """Enter a world of fake wheels, pip, make and g++ (see ``toolchain_world``)."""
    made = World(tmp_path / "world")
    for name, value in made.environment().items():
        if value is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, value)
    for patch in made.patches():
        monkeypatch.setattr(*patch)
    return made
