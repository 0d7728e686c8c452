"""The cache of compiled programs: addressed by content, whole or not at all."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import psutil
import pytest
from survival_world import started

from harness.engine.compile import _FLAGS, compile_programs, program_digest
from harness.engine.program import StanProgram
from harness.engine.toolchain import CmdStan, find_cmdstan
from harness.errors import CompileError

MODEL = """functions {
  #include part.stanfunctions
}
parameters {
  real y;
}
model {
  target += part(y);
}
"""
PART = "real part(real y) {\n  return -0.5 * square(y);\n}\n"


@pytest.fixture
def cmdstan(cmdstan_home: Path) -> CmdStan:
    found = find_cmdstan()
    assert found.path == cmdstan_home
    return found


def written(folder: Path, model: str = MODEL, part: str = PART) -> StanProgram:
    folder.mkdir(exist_ok=True)
    (folder / "normal.stan").write_text(model)
    (folder / "part.stanfunctions").write_text(part)
    return StanProgram(folder / "normal.stan", (folder,))


def left_in(cache: Path) -> list[str]:
    """Names of what is in the cache of programs, but for its tag and its locks."""
    names = sorted(path.name for path in (cache / "programs").iterdir())
    return [name for name in names if name != "CACHEDIR.TAG" and not name.endswith(".lock")]


def test_digest_depends_on_content_alone(tmp_path: Path, cmdstan: CmdStan) -> None:
    digest = program_digest(written(tmp_path / "one"), cmdstan.stanc)
    assert program_digest(written(tmp_path / "two"), cmdstan.stanc) == digest
    edited = written(tmp_path / "three", part=PART.replace("0.5", "2.5"))
    assert program_digest(edited, cmdstan.stanc) != digest
    other = written(tmp_path / "four", model=MODEL + "// more\n")
    assert program_digest(other, cmdstan.stanc) != digest


def test_syntax_error_is_reported_as_stan_wrote_it(tmp_path: Path, cmdstan: CmdStan) -> None:
    program = written(tmp_path / "bad", model=MODEL.replace("real y;", "real y"))
    with pytest.raises(CompileError, match=r"Syntax error in .*normal\.stan', line 6"):
        compile_programs([program], cmdstan)


def test_missing_program_and_missing_include(tmp_path: Path, cmdstan: CmdStan) -> None:
    with pytest.raises(CompileError, match="there is no Stan program"):
        program_digest(StanProgram(tmp_path / "none.stan"), cmdstan.stanc)
    program = written(tmp_path / "alone")
    (tmp_path / "alone" / "part.stanfunctions").unlink()
    with pytest.raises(CompileError, match=r"part\.stanfunctions"):
        program_digest(program, cmdstan.stanc)


@pytest.mark.compiled
def test_unchanged_program_is_not_compiled_again(
    tmp_path: Path, cmdstan: CmdStan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    first = compile_programs([written(tmp_path / "one")], cmdstan)
    (one,) = first.values()
    made = one.exe.stat().st_mtime_ns
    again = written(tmp_path / "elsewhere")  # the same text in another, newer file
    ready: list[StanProgram] = []
    (two,) = compile_programs([again], cmdstan, on_compiled=ready.append).values()
    assert two.exe == one.exe
    assert two.exe.stat().st_mtime_ns == made
    assert ready == [again]
    assert left_in(tmp_path / "cache") == [one.exe.parent.name]


def test_flags_of_the_environment_have_executables_of_their_own(
    tmp_path: Path, cmdstan: CmdStan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("harness.engine.compile._compile", lambda *_: None)
    program = written(tmp_path / "one")

    def folder() -> Path:
        return compile_programs([program], cmdstan)[program].exe.parent

    for name in _FLAGS:
        monkeypatch.delenv(name, raising=False)
    without = folder()
    folders = {without}
    for name in _FLAGS:
        for value in ("1", "2"):
            monkeypatch.setenv(name, value)
            folders.add(folder())
        monkeypatch.delenv(name)
    assert len(folders) == 1 + 2 * len(_FLAGS)
    assert folder() == without


@pytest.mark.compiled
def test_failed_compilation_leaves_nothing(
    tmp_path: Path, cmdstan: CmdStan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("MAKE", "false")
    with pytest.raises(CompileError, match="does not compile"):
        compile_programs([written(tmp_path / "one")], cmdstan)
    assert left_in(tmp_path / "cache") == []


ALONE = "compile_programs([program], find_cmdstan())"
TOGETHER = "compile_together(find_cmdstan(), executables=[program], libraries=[program])"


@pytest.mark.compiled
@pytest.mark.parametrize(
    ("sent", "call"),
    [(signal.SIGINT, ALONE), (signal.SIGTERM, ALONE), (signal.SIGTERM, TOGETHER)],
)
def test_a_signal_ends_the_compiler(
    tmp_path: Path, cmdstan: CmdStan, sent: signal.Signals, call: str
) -> None:
    """The C++ compiler takes seconds; a signal waits for none of them and leaves nothing."""
    program = written(tmp_path / "one")
    script = (
        "import signal, sys\n"
        "from pathlib import Path\n"
        "from harness.engine.compile import compile_programs\n"
        "from harness.engine.program import StanProgram\n"
        "from harness.engine.together import compile_together\n"
        "from harness.engine.toolchain import find_cmdstan\n"
        "for number in (signal.SIGINT, signal.SIGTERM):\n"
        "    signal.signal(number, signal.default_int_handler)\n"
        "path = Path(sys.argv[1])\n"
        "program = StanProgram(path, (path.parent,))\n" + call + "\n"
    )
    environment = {
        **os.environ,
        "HARNESS_CACHE": str(tmp_path / "cache"),
        "CMDSTAN": str(cmdstan.path),
    }
    with started("-c", script, str(program.path), environment=environment) as run:
        family = psutil.Process(run.pid)
        deadline = time.monotonic() + 60
        compilers: list[psutil.Process] = []
        # stanc comes before it, and its own processes are short-lived.
        while not list((tmp_path / "cache").glob("programs/.staging-*/*.hpp")):
            assert time.monotonic() < deadline
            assert run.poll() is None
            time.sleep(0.02)
        compilers = family.children(recursive=True)
        run.send_signal(sent)
        _, said = run.communicate(timeout=60)
    assert "KeyboardInterrupt" in said
    gone, alive = psutil.wait_procs(compilers, timeout=10)
    assert not alive, [process.cmdline() for process in alive]
    assert len(gone) == len(compilers)
    assert left_in(tmp_path / "cache") == []


def test_nothing_to_compile_makes_no_cache(
    tmp_path: Path, cmdstan: CmdStan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    assert compile_programs([], cmdstan) == {}
    assert not (tmp_path / "cache").exists()
