"""Runs that a call has finished, kept in files until the whole call has finished.

What follows a run may be stopped, killed or fail, after draws that took hours.  So they are written
as soon as they are there, beside the file that the result will have.  A call with the same program,
data and settings goes on from them; the files go when the result is written.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from harness.diagnosis import Finding, Severity, remember
from harness.engine.nuts import NutsSettings
from harness.engine.stan_data import numbers_in
from harness.errors import StoreError
from harness.fit import Fit, is_fit
from harness.forms.common import PACKAGE

Stage = Literal[
    "nuts",
    "nuts-restarted",
    "nuts-again",
    "nuts-longer",
    "nuts-longer-again",
    "tempered",
    "parallel",
    "parallel-near",
    "nested",
]
"""A run that a call makes: plain NUTS, the same from the draws of one chain, with smaller steps,
for longer or both, a tempered form, parallel tempering from the prior or with points near the
target to start from, or nested sampling."""
_WORDS: Mapping[Stage, str] = {
    "nuts": "plain NUTS",
    "nuts-restarted": "plain NUTS from the draws of one chain",
    "nuts-again": "plain NUTS with smaller steps",
    "nuts-longer": "a longer run of plain NUTS",
    "nuts-longer-again": "a longer run of plain NUTS with smaller steps",
    "tempered": "the tempered run",
    "parallel": "parallel tempering",
    "parallel-near": "parallel tempering",
    "nested": "nested sampling",
}
_IDENTITY, _SECONDS = "unfinished_identity", "unfinished_seconds"
"""Attributes of such a fit: what made it, and the wall time that it took."""
_FINDINGS = "unfinished_findings"
"""Its findings apart from the one that nobody has judged it."""


def unfinished_file(out: Path, stage: Stage = "nuts") -> Path:
    """Return the file beside a result in which a run is kept until the result is there."""
    of = "" if stage == "nuts" else f"-{stage}"
    return out.with_name(f"{out.stem}.unfinished{of}{out.suffix}")


def unfinished_files(out: Path) -> list[Path]:
    """Return all files that a call may keep runs in."""
    return [unfinished_file(out, stage) for stage in get_args(Stage)]


def identity(
    program_sha256: str,
    data: Mapping[str, Any],
    nuts: NutsSettings,
    seed: int,
    engine: str,
    options: Mapping[str, Any] | None = None,
) -> str:
    """Return a digest of everything that decides which draws a run makes.

    Parameters
    ----------
    program_sha256
        Digest of the program.
    data
        Its data.
    nuts, seed, engine
        Settings of the run, its seed, and what runs it.
    options
        Further settings, of a run that is not plain NUTS.
    """
    versions = [version("harness"), engine, version(PACKAGE[engine])]
    settings = json.dumps({**nuts.identity(), **(options or {})}, sort_keys=True)
    digest = hashlib.sha256("\0".join([program_sha256, *versions, str(seed), settings]).encode())
    for name in sorted(data):
        for part, array in numbers_in(name, data[name]):
            digest.update(f"{part}\0{array.shape}\0".encode())
            digest.update(np.ascontiguousarray(array, dtype=np.float64).tobytes())
    return digest.hexdigest()


class Unfinished:
    """Keeps the finished runs of one call.  As a context, it adds to errors where they are.

    Parameters
    ----------
    out
        File that the call's result will have; None if it will have none, so that nothing is kept.

    Attributes
    ----------
    taken_up
        Runs of an earlier call that this one goes on from.
    """

    def __init__(self, out: Path | None) -> None:
        self._out = out
        self._ours: dict[Stage, Path] = {}
        self.taken_up: list[Stage] = []

    def __enter__(self) -> Unfinished:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _where: object) -> None:
        if error is not None and self._ours:
            runs = _in_words(list(self._ours))
            files = _listed([str(path) for path in self._ours.values()])
            error.add_note(
                f"{runs[0].upper()}{runs[1:]} had finished: the draws are in {files}, and the same "
                "command goes on from there."
            )

    def kept(self, stage: Stage, made_by: str) -> tuple[Fit, float] | None:
        """Return a run that an earlier call has kept, and the seconds that it took.

        Parameters
        ----------
        stage
            Which run.
        made_by
            What :func:`identity` says of this call.  Draws that something else made, and files that
            cannot be read, do not count.
        """
        if self._out is None:
            return None
        path = unfinished_file(self._out, stage)
        if not is_fit(path):
            return None
        try:
            fit = Fit.load(path)
        except StoreError:
            return None
        attrs = fit.tree.attrs
        if attrs.pop(_IDENTITY, None) != made_by:
            return None
        self._ours[stage] = path
        self.taken_up.append(stage)
        attrs["findings"] = attrs.pop(_FINDINGS)
        return fit, float(attrs.pop(_SECONDS))

    def keep(self, stage: Stage, fit: Fit, made_by: str, seconds: float) -> None:
        """Write the draws of a run, whole or not at all.

        Parameters
        ----------
        stage
            Which run.
        fit
            The draws.
        made_by
            What :func:`identity` says of this call.
        seconds
            Wall time that they took.
        """
        if self._out is None:
            return
        path = unfinished_file(self._out, stage)
        copy = Fit(fit.tree.copy(deep=False))
        copy.tree.attrs = fit.tree.attrs | {
            _IDENTITY: made_by,
            _SECONDS: seconds,
            _FINDINGS: fit.tree.attrs.get("findings", "[]"),
        }
        remember(copy, [_not_judged(stage)])
        with suppress(StoreError):  # the disk may be full, but the call can still do without
            copy.save(path)
            self._ours[stage] = path

    def remove(self) -> None:
        """Remove the files that this call has written or taken up."""
        for path in self._ours.values():
            path.unlink(missing_ok=True)
        self._ours = {}


def _not_judged(stage: Stage) -> Finding:
    missing = {
        "nuts": "nobody has looked for further modes",
        "tempered": "nobody has compared it with other runs",
    }.get(stage, "nobody has compared it with other runs or made a table of its modes")
    return Finding(
        Severity.WARNING,
        f"This is {_WORDS[stage]} alone: the call that made these draws has not finished, so "
        f"{missing}.",
        "Run the same command again, which goes on from here.",
    )


def not_run_again(stages: Sequence[Stage]) -> Finding:
    """Report the runs that were taken up from an earlier call."""
    return Finding(
        Severity.FINE,
        "Not run again, because an earlier call that did not finish had made the draws: "
        f"{_in_words(stages)}.",
    )


def _in_words(stages: Sequence[Stage]) -> str:
    return _listed(list(dict.fromkeys(_WORDS[each] for each in stages)))


def _listed(names: Sequence[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last
