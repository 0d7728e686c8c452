"""The store of fits: one folder per task, written completely or not at all, checked when read.

``STORE/EXPERIMENT/fits/CELL/REPLICATION-HASH/`` holds ``fit-1.nc`` and ``task.json``.  The latter
holds what is needed to run the task again, its cost, its metrics, and the checksum of the fit.  The
number is the version of the form of fits; files of version 1 may also be called ``fit.nc``.
A folder is made under a temporary name and then renamed, so a folder with its final name is
complete.  A task that failed leaves ``REPLICATION-HASH.failed.json`` instead.  Damaged or foreign
files are moved to ``STORE/EXPERIMENT/aside/``; they are never used and never deleted.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import tempfile
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock, Timeout

from harness.errors import StoreError, one_line
from harness.files import sweep_unfinished, write_text
from harness.fit import Fit
from harness.fit.fit import VERSION
from harness.fit.netcdf import UNREADABLE, read_arrays
from harness.folders import warn_of_others
from harness.plan.spec import Task
from harness.report.written import refuse_foreign

_LEFT_OVER = ".writing-"
_OURS = re.compile(
    r"\.lock|\.run|index\.csv|tables/[^/]+\.csv"
    r"|(fits/[^/]+|aside)/[^/]+/(task\.json|fit(-\d+)?\.nc)|fits/[^/]+/\d+-\w+\.failed\.json"
    r"|(.*/)?\.[^/]+-[a-z0-9_]{8}"
)
"""Paths of our files in the folder of an experiment."""
_FIRST_NAME = "fit.nc"
FIT_NAME = f"fit-{VERSION}.nc"
"""Name of a fit's file; see :data:`harness.fit.fit.VERSION`."""


class DamagedTaskError(StoreError):
    """A task's result is damaged, or not in the form that this version reads.

    Parameters
    ----------
    task
        The task, whose folder can be set aside.
    message
        What is wrong with which file.
    """

    def __init__(self, task: Task, message: str) -> None:
        super().__init__(message)
        self.task = task


class Store:
    """A folder of results, which the user chooses.

    Parameters
    ----------
    root
        The folder; it is created when the first result is written.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._writing: set[str] = set()

    @property
    def report(self) -> Path:
        """Folder that the report is written to."""
        return self.root / "report"

    def tables(self, experiment: str) -> Path:
        """Return the folder of an experiment's tables."""
        return self.root / experiment / "tables"

    def folder(self, task: Task) -> Path:
        """Return the folder of a task's fit."""
        name = f"{task.replication:05d}-{task.digest[:16]}"
        return self.root / task.experiment / "fits" / task.cell.key / name

    def prepare(self) -> None:
        """Create the store, to find out before any work is done if it cannot be written.

        Raises
        ------
        StoreError
            If the folder cannot be created or written, or a report in it is somebody's own.
        """
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=self.root).close()
        except OSError as error:
            raise StoreError(
                f"cannot write results to {self.root}: {error.strerror}; name another folder "
                f"with --store"
            ) from error
        warn_of_others(self.root)
        refuse_foreign(self.report)

    @contextlib.contextmanager
    def writing(self, experiment: str) -> Iterator[None]:
        """Hold the right to add results of an experiment, after removing a killed run's leftovers.

        Raises
        ------
        StoreError
            If another run holds it, or the folder cannot be written or is somebody's own.
        """
        folder = self.root / experiment
        lock = FileLock(folder / ".lock")
        self.refuse_foreign(experiment)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            lock.acquire(timeout=0)
        except Timeout:
            raise StoreError(
                f"another run of {experiment} is writing to {self.root}; wait for it to end, or "
                f"name another folder with --store"
            ) from None
        except OSError as error:
            raise StoreError(f"cannot write {folder}: {error.strerror or error}") from error
        try:
            for left in folder.glob(f"fits/*/{_LEFT_OVER}*"):
                shutil.rmtree(left, ignore_errors=True)
            sweep_unfinished(folder)
            sweep_unfinished(self.report)
            self._writing.add(experiment)
            yield
        finally:
            self._writing.discard(experiment)
            lock.release()

    def refuse_foreign(self, experiment: str) -> None:
        """Refuse a folder with an experiment's name that is somebody's own.

        Raises
        ------
        StoreError
            If it has files, but neither a run's lock nor results.
        """
        folder = self.root / experiment
        try:
            names = {path.name for path in folder.iterdir()}
        except OSError:  # missing, or reported when something is written to it
            return
        if names and not names & {".lock", "fits", "tables", "aside"}:
            raise StoreError(
                f"{folder} holds files that harness did not write, such as {min(names)}: name "
                "another folder with --store"
            )

    def record(self, task: Task) -> dict[str, Any] | None:
        """Return the content of ``task.json``, or None if the task has not finished.

        Raises
        ------
        DamagedTaskError
            If the file is not this task's record.
        """
        path = self.folder(task) / "task.json"
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            if path.parent.exists():
                raise DamagedTaskError(task, f"{path} is missing") from None
            return None
        except (OSError, ValueError) as error:
            raise DamagedTaskError(task, f"{path} cannot be read ({error})") from error
        if not isinstance(record, dict) or record.get("task_sha256") != task.digest:
            raise DamagedTaskError(task, f"{path} is not the record of {task.name}")
        if record.get("record_sha256") != _sha256_of_record(record):
            raise DamagedTaskError(task, f"{path} is damaged: it is not what was written")
        return record

    def fit_path(self, task: Task) -> Path:
        """Return the file of a task's fit.

        Raises
        ------
        DamagedTaskError
            If the fit has the form of another version.
        """
        folder = self.folder(task)
        path = folder / FIT_NAME
        if path.exists():
            return path
        if VERSION == 1 and (folder / _FIRST_NAME).exists():
            return folder / _FIRST_NAME
        others = [*folder.glob("fit-*.nc"), *folder.glob(_FIRST_NAME)]
        if others:
            raise DamagedTaskError(
                task,
                f"{others[0]} has the form of another version of harness, which this one does not "
                f"read (it reads {FIT_NAME})",
            )
        return path

    def refuse_lost(self, tasks: Iterable[Task]) -> None:
        """Refuse to go on if fits that a run has written are gone.

        Raises
        ------
        StoreError
            If the folder of one of the tasks is missing.
        """
        lost = [task for task in tasks if not self.folder(task).is_dir()]
        if lost:
            raise StoreError(
                f"{len(lost)} fits that this run has written are gone from {self.root}: somebody "
                f"has removed them meanwhile ({lost[0].name}); run the same command again"
            )

    def _refuse_gone(self, experiment: str) -> None:
        """Refuse to write where somebody has removed the store that a run writes to."""
        folder = self.root / experiment
        if experiment in self._writing and not (folder / ".lock").exists():
            raise StoreError(
                f"{folder} was removed or moved while results were written to it; run the same "
                "command again"
            )

    def checked(self, task: Task) -> dict[str, Any] | None:
        """Return a finished task's record after comparing its fit with the checksum.

        Raises
        ------
        DamagedTaskError
            If the record or the fit is damaged, either is missing, or another version wrote them.
        """
        record = self.record(task)
        if record is None:
            return None
        path = self.fit_path(task)
        try:
            digest = _sha256(path)
        except OSError as error:
            raise DamagedTaskError(task, f"{path} cannot be read ({error.strerror})") from error
        if digest != record.get("fit_sha256"):
            raise DamagedTaskError(task, f"{path} is damaged: it is not the file that was written")
        return record

    def load(self, task: Task) -> Fit:
        """Read a finished task's fit.

        Raises
        ------
        StoreError
            If it does not exist or is damaged.
        """
        self.checked(task)
        with self._damage_of(task):
            return Fit.load(self.fit_path(task))

    def target_draws(self, task: Task) -> dict[str, np.ndarray]:
        """Read only the draws of the target of a finished task, (chains, draws, ...) by name.

        Raises
        ------
        StoreError
            If the fit does not exist or is damaged.
        """
        self.checked(task)
        path = self.fit_path(task)
        with self._damage_of(task):
            try:
                return read_arrays(path, "posterior")
            except UNREADABLE as error:
                said = one_line(error)
                raise StoreError(f"{path} is damaged or is no NetCDF file ({said})") from error

    @contextlib.contextmanager
    def _damage_of(self, task: Task) -> Iterator[None]:
        """Say of an error in a block which task it is about."""
        try:
            yield
        except StoreError as error:
            raise DamagedTaskError(task, str(error)) from error

    def write(
        self,
        task: Task,
        fit: Fit,
        metrics: Mapping[str, float] | Sequence[Mapping[str, float]],
        facts: Mapping[str, Any],
    ) -> None:
        """Write a task's fit with its metrics and everything that is needed to run it again.

        Parameters
        ----------
        metrics
            By name; of a batch, those of each replication.
        facts
            Further entries of the record: git revision, time spent, which draws were kept.

        Raises
        ------
        StoreError
            If it cannot be written; in that case nothing is left behind.
        """
        folder = self.folder(task)
        staging = folder.parent / f"{_LEFT_OVER}{uuid.uuid4().hex}"
        self._refuse_gone(task.experiment)
        try:
            staging.mkdir(parents=True)
            fit.save(staging / FIT_NAME)
            record = {
                "experiment": task.experiment,
                "cell": task.cell.key,
                "replication": task.replication,
                "task_sha256": task.digest,
                "fit_sha256": _sha256(staging / FIT_NAME),
                "fit_bytes": (staging / FIT_NAME).stat().st_size,
                **fit.provenance(),
                "metrics": metrics,
                "finished": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
                "host_cores": os.cpu_count(),
                **facts,
            }
            record["record_sha256"] = _sha256_of_record(record)
            write_text(staging / "task.json", json.dumps(record, indent=1))
            staging.rename(folder)
            self.failure_path(task).unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(f"cannot write {folder}: {error.strerror or error}") from error
        finally:
            shutil.rmtree(staging, ignore_errors=True)

    def set_aside(self, task: Task) -> Path:
        """Move a damaged task's folder out of the way, and return its new place.

        Raises
        ------
        StoreError
            If it cannot be moved.
        """
        folder = self.folder(task)
        aside = self.root / task.experiment / "aside"
        place = aside / f"{task.cell.key}-{folder.name}-{uuid.uuid4().hex[:8]}"
        try:
            aside.mkdir(parents=True, exist_ok=True)
            folder.rename(place)
        except OSError as error:
            raise StoreError(
                f"cannot move {folder}, which is damaged, to {aside}: {error.strerror or error}"
            ) from error
        return place

    def failure_path(self, task: Task) -> Path:
        """Return the file that a failed task leaves."""
        folder = self.folder(task)
        return folder.with_name(f"{folder.name}.failed.json")

    def fail(self, task: Task, message: str) -> None:
        """Record that a task failed, and why."""
        self._refuse_gone(task.experiment)
        record = {
            "experiment": task.experiment,
            "cell": task.cell.key,
            "replication": task.replication,
            "task_sha256": task.digest,
            "seed": task.seed,
            "message": message,
            "failed": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        }
        write_text(self.failure_path(task), json.dumps(record, indent=1))

    def failure(self, task: Task) -> str | None:
        """Return why a task failed, or None if it did not."""
        try:
            record = json.loads(self.failure_path(task).read_text(encoding="utf-8"))
            return str(record["message"])
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError):
            return "failed, but the record of it is damaged"

    def remove(self, experiment: str) -> tuple[int, list[Path]]:
        """Remove an experiment's results; the caller holds the right to write them.

        Files that are not ours stay, with their folders, and nothing is removed through a symbolic
        link.

        Returns
        -------
        tuple
            The bytes freed, and what was left.
        """
        top = self.root / experiment
        freed, left = 0, []
        for parent, folders, names in os.walk(top, topdown=False):
            for name in names:
                path = Path(parent, name)
                if not _OURS.fullmatch(path.relative_to(top).as_posix()) or path.is_symlink():
                    left.append(path)
                    continue
                with contextlib.suppress(OSError):
                    size = path.lstat().st_size
                    path.unlink()
                    freed += size
            left += [path for name in folders if (path := Path(parent, name)).is_symlink()]
            with contextlib.suppress(OSError):  # something is left in it
                Path(parent).rmdir()
        return freed, sorted(left)

    def size(self, experiment: str | None = None) -> int:
        """Return the bytes of all files in the store, or of one experiment."""
        top = self.root if experiment is None else self.root / experiment
        total = 0
        for parent, _, names in os.walk(top):
            for name in names:
                with contextlib.suppress(OSError):  # a file that another run just renamed
                    total += os.lstat(os.path.join(parent, name)).st_size  # noqa: PTH118 - speed
        return total


def _sha256_of_record(record: Mapping[str, Any]) -> str:
    """Return the checksum of a record without its own entry, the same before and after JSON."""
    rest = {key: value for key, value in record.items() if key != "record_sha256"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
