"""A job: everything that a worker needs to make one fit, and what it sends back."""

from __future__ import annotations

import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from filelock import FileLock

from harness.engine.compile import CompiledProgram, compile_programs
from harness.engine.nuts import NutsSettings, quiet_cmdstanpy
from harness.engine.processes import children_end_with_us
from harness.engine.program import StanProgram
from harness.engine.toolchain import require_cmdstan
from harness.errors import HarnessError
from harness.files import write_text
from harness.fit import Fit
from harness.folders import cache_folder
from harness.forms.method import Method
from harness.model import Model


@dataclass(frozen=True)
class SentProgram:
    """A Stan program to send to another machine: its text, with includes written out.

    Attributes
    ----------
    place
        The model's folder and the file name, for instance ``gaussian_mixture/target.stan``.
    text
        The program.
    digest
        Hash of the program and its includes on this machine.
    """

    place: str
    text: str
    digest: str


@dataclass(frozen=True)
class Job:
    """What a worker needs to make a fit; it can be sent to another process or machine.

    Attributes
    ----------
    name
        Name of the task, for messages.
    program
        An executable on this machine, a text for another one, or None if the method needs none.
    """

    name: str
    model: Model
    method: Method
    settings: Mapping[str, Any]
    nuts: NutsSettings
    seed: int
    program: CompiledProgram | SentProgram | None


@dataclass(frozen=True)
class Outcome:
    """A fit or the reason why there is none, and the seconds that the job took."""

    fit: Fit | None
    failure: str | None
    seconds: float


@children_end_with_us()
@quiet_cmdstanpy()
def perform(job: Job) -> Outcome:
    """Make a job's fit.  An error becomes a message, so that other jobs can continue."""
    started = time.perf_counter()
    fit, failure = None, None
    try:
        program = job.program
        compiled = _compiled_here(program) if isinstance(program, SentProgram) else program
        fit = job.method.sample(
            job.model, nuts=job.nuts, seed=job.seed, compiled=compiled, **job.settings
        )
    except HarnessError as error:
        failure = str(error)
    except MemoryError:
        failure = "out of memory"
    except Exception:
        failure = f"unexpected error, please report it:\n{traceback.format_exc()}"
    return Outcome(fit, failure, time.perf_counter() - started)


def _compiled_here(program: SentProgram) -> CompiledProgram:
    """Compile a program that was sent as text, once on this machine for all its workers."""
    folder = cache_folder("sources") / program.digest[:32]
    path = folder / program.place
    with FileLock(folder.with_suffix(".lock")):
        if not path.is_file():
            write_text(path, program.text)
    source = StanProgram(path)
    compiled = compile_programs([source], require_cmdstan(), workers=1)[source]
    return replace(compiled, digest=program.digest)
