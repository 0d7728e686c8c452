"""A run of stanli's NUTS in a process of its own, which can be ended: at a time limit.

Nothing can stop stanli within a process, and a solver of a program may never end, or crash.  What
is to be run goes there in a folder, and the draws come back in it: numbers and text, no objects.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import IO, Any

import numpy as np

import harness
from harness.arrays import FloatArray
from harness.engine.iterations import Follow
from harness.engine.nuts import NutsRun, NutsSettings
from harness.engine.patience import NeverReturned
from harness.engine.processes import children_end_with_us
from harness.engine.program import StanProgram
from harness.engine.staging import temporary_folder
from harness.engine.stan_data import plain_data
from harness.engine.stanli_nuts import run_stanli_nuts
from harness.engine.stanli_package import plain_json
from harness.errors import DataError, HarnessError, SamplingError, SomeChainsError

_TASK, _MADE, _FAILED, _SAID = "task.json", "made.npz", "failed.json", "said.txt"
_SHARE = b"harness: share done "
_KINDS: dict[str, type[HarnessError]] = {each.__name__: each for each in (DataError, SamplingError)}


def run_stanli_apart(
    program: StanProgram,
    data: Mapping[str, Any],
    settings: NutsSettings,
    seed: int,
    *,
    inits: Any = None,
    inv_metric: FloatArray | None = None,
    follow: Follow | None = None,
) -> NutsRun:
    """Run NUTS as :func:`~harness.engine.stanli_nuts.run_stanli_nuts` does, and make the same run.

    Parameters
    ----------
    program, data, settings, seed, inits, inv_metric, follow
        The same as there.  ``settings`` may have a time limit.

    Raises
    ------
    NeverReturned
        If it does not finish within the time limit.
    ToolchainError, DataError, SomeChainsError, SamplingError
        As there, and if stanli crashes.
    """
    task = {
        "program": str(program.path.absolute()),
        "include_paths": [str(each.absolute()) for each in program.include_paths],
        "data": plain_data(data),
        "settings": asdict(replace(settings, time_limit=None)),
        "seed": seed,
        "inits": inits if isinstance(inits, int | float) else _as_lists(inits),
        "inv_metric": None if inv_metric is None else inv_metric.tolist(),
    }
    with children_end_with_us(), temporary_folder() as folder:
        (folder / _TASK).write_text(json.dumps(task, default=plain_json), encoding="utf-8")
        status = _ended(folder, settings.time_limit, follow)
        if status is None:
            raise NeverReturned(
                f"{program.name}: stopped at the time limit of {settings.time_limit:.3g} s "
                f"(seed {seed})"
            )
        if (folder / _FAILED).exists():
            _raise(json.loads((folder / _FAILED).read_text(encoding="utf-8")))
        if status:
            said = (folder / _SAID).read_text(encoding="utf-8", errors="replace").split("\n")
            last = next((line for line in reversed(said) if line.strip()), "nothing")
            raise SamplingError(
                f"{program.name}: stanli crashed with status {status} (seed {seed}), and said: "
                f"{last}"
            )
        return _read(folder / _MADE)


def stanli_nuts(
    program: StanProgram,
    data: Mapping[str, Any],
    settings: NutsSettings,
    seed: int,
    *,
    inits: Any = None,
    inv_metric: FloatArray | None = None,
    follow: Follow | None = None,
) -> NutsRun:
    """Run NUTS with stanli: in this process, or in one of its own if there is a time limit."""
    run = run_stanli_nuts if settings.time_limit is None else run_stanli_apart
    return run(program, data, settings, seed, inits=inits, inv_metric=inv_metric, follow=follow)


def _as_lists(inits: Any) -> Any:
    """Return initial values, for all chains or for each, as JSON has them."""
    if inits is None or isinstance(inits, str | Path):
        return None if inits is None else str(inits)
    if isinstance(inits, Mapping):
        return {name: np.asarray(value).tolist() for name, value in inits.items()}
    return [_as_lists(each) for each in inits]


def _ended(folder: Path, seconds: float | None, follow: Follow | None) -> int | None:
    """Run the task in a folder, and return the status of its process; None if time ran out."""
    ours = str(Path(harness.__file__).parents[1])
    paths = [ours, *filter(None, [os.environ.get("PYTHONPATH")])]
    with (folder / _SAID).open("wb") as said:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "harness.engine.stanli_apart", str(folder)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=said,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        )
        reading = threading.Thread(target=_pass_on, args=(process.stdout, follow), daemon=True)
        reading.start()
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:
            process.kill()
            process.wait()
            reading.join()


def _pass_on(lines: IO[bytes], follow: Follow | None) -> None:
    """Tell how far the run is, which its process prints beside what the program may print."""
    with lines:
        for line in lines:
            if follow is not None and line.startswith(_SHARE):
                follow(float(line.removeprefix(_SHARE)))


def _raise(failed: dict[str, str]) -> None:
    if failed["kind"] == SomeChainsError.__name__:
        raise SomeChainsError(failed["message"], failed["why"])
    raise _KINDS.get(failed["kind"], SamplingError)(failed["message"])


def _read(path: Path) -> NutsRun:
    with np.load(path, allow_pickle=False) as made:
        variables, stats = (
            {name.split("/", 1)[1]: made[name] for name in made.files if name.startswith(kind)}
            for kind in ("variables/", "sample_stats/")
        )
        rest = {name: made[name] for name in ("step_size", "gradients", "seconds")}
        return NutsRun(variables, stats, **rest, stan_version=str(made["stan_version"]))


def _work(folder: Path) -> None:
    """Do the task in a folder: what the process of its own does."""
    task = json.loads((folder / _TASK).read_text(encoding="utf-8"))
    program = StanProgram(Path(task["program"]), tuple(map(Path, task["include_paths"])))
    settings = NutsSettings(**task["settings"])
    try:
        made = run_stanli_nuts(
            program,
            task["data"],
            settings,
            task["seed"],
            inits=task["inits"],
            inv_metric=None if task["inv_metric"] is None else np.array(task["inv_metric"]),
            # Straight to the file: Python's own output is not ours while stanli prints to it.
            follow=lambda share: _print(_SHARE + f"{share}\n".encode()),
        )
    except HarnessError as error:
        failed = {"kind": type(error).__name__, "message": str(error)}
        failed["why"] = error.why if isinstance(error, SomeChainsError) else ""
        (folder / _FAILED).write_text(json.dumps(failed), encoding="utf-8")
        return
    arrays: dict[str, Any] = {f"variables/{n}": value for n, value in made.variables.items()}
    arrays |= {f"sample_stats/{name}": value for name, value in made.sample_stats.items()}
    rest = {name: getattr(made, name) for name in ("step_size", "gradients", "seconds")}
    np.savez(folder / _MADE, **arrays, **rest, stan_version=np.array(made.stan_version))


def _print(line: bytes) -> None:
    os.write(1, line)


if __name__ == "__main__":
    _work(Path(sys.argv[1]))
