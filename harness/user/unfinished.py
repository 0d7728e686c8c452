"""Draws of plain NUTS that a call keeps in a file until the whole call has finished.

What follows NUTS may be stopped, killed or fail, after draws that took hours.  So they are written
as soon as they are there, beside the file that the result will have.  A call with the same program,
data and settings goes on from them; the file goes when the result is written.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from harness.diagnosis import Finding, Severity, remember
from harness.engine.nuts import NutsSettings
from harness.engine.stan_data import numbers_in
from harness.errors import StoreError
from harness.fit import Fit, is_fit
from harness.forms.common import PACKAGE

_IDENTITY, _SECONDS = "unfinished_identity", "unfinished_seconds"
"""Attributes of such a fit: what made it, and the wall time that it took."""
_FINDINGS = "unfinished_findings"
"""Its findings apart from the one that nobody has judged it."""


def unfinished_file(out: Path) -> Path:
    """Return the file beside a result in which draws are kept until the result is there."""
    return out.with_name(f"{out.stem}.unfinished{out.suffix}")


def identity(
    program_sha256: str, data: Mapping[str, Any], nuts: NutsSettings, seed: int, engine: str
) -> str:
    """Return a digest of everything that decides which draws NUTS makes.

    Parameters
    ----------
    program_sha256
        Digest of the program.
    data
        Its data.
    nuts, seed, engine
        Settings of the run, its seed, and what runs it.
    """
    versions = [version("harness"), engine, version(PACKAGE[engine])]
    settings = json.dumps(nuts.identity(), sort_keys=True)
    digest = hashlib.sha256("\0".join([program_sha256, *versions, str(seed), settings]).encode())
    for name in sorted(data):
        for part, array in numbers_in(name, data[name]):
            digest.update(f"{part}\0{array.shape}\0".encode())
            digest.update(np.ascontiguousarray(array, dtype=np.float64).tobytes())
    return digest.hexdigest()


class Unfinished:
    """Keeps the draws of one call.  As a context, it adds to errors where they are.

    Parameters
    ----------
    out
        File that the call's result will have; None if it will have none, so that nothing is kept.

    Attributes
    ----------
    taken_up
        Whether this call goes on from draws of an earlier one.
    """

    def __init__(self, out: Path | None) -> None:
        self._path = None if out is None else unfinished_file(out)
        self._holds_ours = False
        self.taken_up = False

    def __enter__(self) -> Unfinished:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _where: object) -> None:
        if error is not None and self._holds_ours:
            error.add_note(
                f"Plain NUTS had finished: its draws are in {self._path}, and the same command "
                "goes on from there."
            )

    def kept(self, made_by: str) -> tuple[Fit, float] | None:
        """Return draws that an earlier call has kept, and the seconds that they took.

        Parameters
        ----------
        made_by
            What :func:`identity` says of this call.  Draws that something else made, and files that
            cannot be read, do not count.
        """
        if self._path is None or not is_fit(self._path):
            return None
        try:
            fit = Fit.load(self._path)
        except StoreError:
            return None
        attrs = fit.tree.attrs
        if attrs.pop(_IDENTITY, None) != made_by:
            return None
        self._holds_ours = self.taken_up = True
        attrs["findings"] = attrs.pop(_FINDINGS)
        return fit, float(attrs.pop(_SECONDS))

    def keep(self, fit: Fit, made_by: str, seconds: float) -> None:
        """Write draws of NUTS, whole or not at all.

        Parameters
        ----------
        fit
            The draws.
        made_by
            What :func:`identity` says of this call.
        seconds
            Wall time that they took.
        """
        if self._path is None:
            return
        copy = Fit(fit.tree.copy(deep=False))
        copy.tree.attrs = fit.tree.attrs | {
            _IDENTITY: made_by,
            _SECONDS: seconds,
            _FINDINGS: fit.tree.attrs.get("findings", "[]"),
        }
        remember(copy, [_NOT_JUDGED])
        with suppress(StoreError):  # the disk may be full, but the call can still do without
            copy.save(self._path)
            self._holds_ours = True

    def remove(self) -> None:
        """Remove the file that this call has written or taken up."""
        if self._path is not None and self._holds_ours:
            self._path.unlink(missing_ok=True)
            self._holds_ours = False


_NOT_JUDGED = Finding(
    Severity.WARNING,
    "These are the draws of plain NUTS alone: the call that made them has not finished, so nobody "
    "has looked for further modes.",
    "Run the same command again, which goes on from here.",
)

TAKEN_UP = Finding(
    Severity.FINE,
    "Plain NUTS was not run again: its draws are those of an earlier call that had not finished.",
)
