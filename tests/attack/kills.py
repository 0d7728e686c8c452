"""Random kills at random moments: nothing runs on, nothing is lost, nothing is half written."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import psutil
from survival_world import TESTS, TinyWorld
from test_attack_sample import REJECTS

from harness.engine.watcher import lives
from harness.fit import Fit
from harness.user.unfinished import unfinished_files

_SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_MARK = "HARNESS_ATTACK"
_SECONDS_TO_END = 40.0


def killed_command(seed: int, folder: Path, source: TinyWorld) -> str | None:
    """Kill a command at a random moment, then look at processes, files and tables."""
    rng = random.Random(seed)  # noqa: S311 - moments, no secrets
    world = TinyWorld(folder / "world")
    scratch = folder / "tmp"
    scratch.mkdir()
    kind = ("run", "report", "clean", "stanli", "cmdstan", "auto")[seed % 6]
    driver = str(TESTS / "survival_driver.py")
    options = ("tiny", "--profile", "smoke", "--store", str(world.store))
    environment = dict(world.environment)
    match kind:
        case "run":
            arguments = [driver, "run", *options, "--workers", "2"]
            moment = rng.uniform(0.2, 6)
        case "report":
            shutil.copytree(source.store, world.store)
            arguments = [driver, "report", *options, "--fits", "all", "--workers", "2"]
            moment = rng.uniform(0.2, 9)
        case "clean":
            shutil.copytree(source.store, world.store)
            arguments = [driver, "clean", "tiny", "--yes", "--store", str(world.store)]
            moment = rng.uniform(0.2, 2.5)
        case _:
            (folder / "p.stan").write_text(REJECTS, encoding="utf-8")
            (folder / "d.json").write_text('{"y": 0.3}', encoding="utf-8")
            arguments = ["-m", "harness", "sample", str(folder / "p.stan")]
            arguments += ["--data", str(folder / "d.json"), "--out", str(folder / "fit.nc")]
            if kind == "auto":
                method = rng.choice(("auto", "auto", "joint_tempering", "parallel_tempering"))
                arguments += ["--engine", "stanli", "--draws", "4000", "--method", method]
                moment = rng.uniform(0.5, 5 if method == "auto" else 12)
            else:
                arguments += ["--engine", kind, "--method", "nuts", "--draws", "300000"]
                moment = rng.uniform(0.2, 8)
            environment = {**os.environ, "PYTHONPATH": environment["PYTHONPATH"]}
    mark = uuid.uuid4().hex
    sent = rng.choice(_SIGNALS)
    environment |= {_MARK: mark, "TMPDIR": str(scratch)}
    status, said = _kill(arguments, environment, moment, sent)
    if status is None:
        return f"{kind}: still running {_SECONDS_TO_END:.0f} s after {sent.name} at {moment:.2f} s"
    where = f"{kind}, {sent.name} at {moment:.2f} s"
    left = _left(mark)
    if left:
        return f"{where}: left running: {left}"
    if status not in (0, -sent, 128 + sent):
        return f"{where}: ended with {status}: {said[-800:]}"
    # While modules are imported, before the command line has begun, Python answers itself.
    if "Traceback" in said and "in invoke" in said:
        return f"{where}: {said[-1500:]}"
    if kind in ("stanli", "cmdstan", "auto"):
        for path in (folder / "fit.nc", *unfinished_files(folder / "fit.nc")):
            if path.exists():
                Fit.load(path)
        wrong = _goes_on(arguments, environment, folder) if kind == "auto" else None
        return f"{where}: {wrong}" if wrong else _swept(scratch, where, status)
    world.quick_run()
    if world.results() != source.results():
        return f"{where}: the results are not those of an undisturbed run"
    if world.left_overs() and kind == "run":
        fits = [path for path in world.left_overs() if "fits" in path.parts]
        if fits:
            return f"{where}: left over {fits}"
    return _swept(scratch, where, status)


def _goes_on(arguments: list[str], environment: dict[str, str], folder: Path) -> str | None:
    """Run a killed command again, and say what is wrong with how it goes on."""
    out = folder / "fit.nc"
    kept = [path for path in unfinished_files(out) if path.exists()]
    command = [sys.executable, *arguments]
    again = subprocess.run(command, env=environment, capture_output=True, text=True)
    if again.returncode:
        return f"the same command ended with {again.returncode}: {again.stderr[-800:]}"
    Fit.load(out)
    if bool(kept) != ("Not run again" in again.stdout):
        return f"kept: {kept}, but the same command says:\n{again.stdout[-1500:]}"
    left = [path.name for path in unfinished_files(out) if path.exists()]
    return f"unfinished draws are left: {left}" if left else None


def _kill(
    arguments: list[str], environment: dict[str, str], moment: float, sent: signal.Signals
) -> tuple[int | None, str]:
    with subprocess.Popen(
        [sys.executable, *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        with contextlib.suppress(subprocess.TimeoutExpired):
            said, _ = process.communicate(timeout=moment)
            return process.returncode, said
        process.send_signal(sent)
        try:
            said, _ = process.communicate(timeout=_SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            process.kill()
            return None, ""
        return process.returncode, said


def _left(mark: str) -> list[str]:
    """Return the processes of a case that still live some seconds after its end, and kill them."""
    until = time.monotonic() + 15
    while True:
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, OSError):
                if process.environ().get(_MARK) == mark and lives(process):
                    found.append(process)
        if not found or time.monotonic() > until:
            break
        time.sleep(0.2)
    told = []
    for process in found:
        with contextlib.suppress(psutil.Error):
            told.append(" ".join(process.cmdline())[:200])
            process.kill()
    return told


def _swept(scratch: Path, where: str, status: int) -> str | None:
    """Whether temporary folders are gone: at once, or after a kill at the next command."""
    if status == -signal.SIGKILL:
        code = "from harness.engine.staging import temporary_folder\nwith temporary_folder(): pass"
        environment = {**os.environ, "TMPDIR": str(scratch)}
        subprocess.run([sys.executable, "-c", code], env=environment, check=True)
    left = [path.name for path in scratch.iterdir() if path.name.startswith("harness-")]
    return f"{where}: temporary folders left: {left}" if left else None
