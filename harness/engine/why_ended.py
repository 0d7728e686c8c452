"""Say why CmdStan ended without its draws: what Stan said, or what the system did to it."""

from __future__ import annotations

import re
import shutil
import signal
from pathlib import Path

_CONFIGURATION_ENDS = re.compile(r"num_threads = ")
_USUAL = re.compile(
    r"Gradient evaluation took|\d+ transitions using|Adjust your expectations|Iteration:"
    r"|Elapsed Time:|[\d.e-]+ seconds \((Sampling|Total)\)"
)
"""What CmdStan prints whether or not anything is wrong."""
_ENDS_A_RUN = re.compile(
    r"\bindex\b.* out of (range|bounds)|exceeds capacity|must be the same size|must match in size"
    r"|denominator is 0"
)
_ENDS = "Such an error ends a run of Stan; reject() makes only the place impossible."
_STATUSES = re.compile(r"retcodes=\[([-\d, ]*)\]")
_CANNOT_WRITE = 74
"""CmdStan's exit status when it cannot write its output."""
_LITTLE = 1_000_000
_LINES = 3


def stan_message(folder: Path, error: Exception) -> str:
    """Return the reason for which a run of CmdStan ended, in one line.

    Parameters
    ----------
    folder
        Folder that the run wrote to, with what it said on the console.
    error
        What CmdStanPy raised.
    """
    said = _said(folder)
    if any(line.startswith("Model has no parameters") for line in said):
        return "with these data no parameter has a value, so there is nothing to sample"
    reasons = [line for line in said[:-_LINES] if line.startswith("Exception:")]
    told = [*reasons[-1:], *said[-_LINES:]]
    if said and said[-1].startswith("Exception"):  # after a place that is rejected comes advice
        told.append(_ENDS)
    told = [*_by_the_system(folder, error), *told] or str(error).splitlines()[:1]
    return " ".join(told)


def ends_a_run(message: str) -> bool:
    """Whether Stan's error ends a whole run, as a wrong index or size does.

    Other errors, such as a scale below zero or ``reject``, make a place impossible.
    """
    return _ENDS_A_RUN.search(message) is not None


def some_finished(error: Exception) -> bool:
    """Whether some chains of a run have finished, by the exit statuses in CmdStanPy's error.

    If the system ended one, or it could not write, the answer is no: another run would fare no
    better.
    """
    statuses = _statuses(error)
    return 0 in statuses and min(statuses) == 0 and _CANNOT_WRITE not in statuses


def _statuses(error: Exception) -> list[int]:
    found = _STATUSES.search(str(error))
    return [int(each) for each in found[1].split(",") if each.strip()] if found else []


def _said(folder: Path) -> list[str]:
    """Return what the first chain that said anything unusual has said."""
    for console in sorted(folder.glob("*stdout*.txt")):
        lines = [each.strip() for each in console.read_text(errors="replace").splitlines()]
        begins = [number for number, each in enumerate(lines) if _CONFIGURATION_ENDS.match(each)]
        after = lines[begins[-1] + 1 :] if begins else lines
        said = [each for each in after if each and not _USUAL.match(each)]
        if said:
            return said
    return []


def _by_the_system(folder: Path, error: Exception) -> list[str]:
    """Return what exit statuses and the disk tell."""
    statuses = _statuses(error)
    told = [_ended_by(number) for number in sorted({-each for each in statuses if each < 0})]
    try:
        full = shutil.disk_usage(folder).free < _LITTLE
    except OSError:
        full = False
    if full:
        told.append(
            f"The disk with the temporary folder {folder.parent} is full: free some space, or set "
            "TMPDIR to a folder on another disk."
        )
    elif _CANNOT_WRITE in statuses:
        told.append(f"It could not write its output to {folder.parent} (TMPDIR names the folder).")
    return told


def _ended_by(number: int) -> str:
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    return f"The system ended it with {name}{_LIKELY_CAUSES.get(name, '')}."


_LIKELY_CAUSES = {
    "SIGXFSZ": " (a file grew beyond the limit of `ulimit -f`)",
    "SIGXCPU": " (it took more time than `ulimit -t` allows)",
    "SIGKILL": " (perhaps memory ran out)",
    "SIGSEGV": " (it crashed; perhaps its stack is too small for a deep recursion)",
}
