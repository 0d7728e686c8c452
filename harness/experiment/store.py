"""The store of fits: one folder per task, written completely or not at all, checked when read.

``STORE/EXPERIMENT/fits/CELL/REPLICATION-HASH/`` holds ``fit.nc`` and ``task.json``.  The latter
holds what is needed to run the task again, its cost, its metrics, and the checksum of ``fit.nc``.
A folder is made under a temporary name and then renamed, so a folder with its final name is
complete.  A task that failed leaves ``REPLICATION-HASH.failed.json`` instead.  Damaged or foreign
files are moved to ``STORE/EXPERIMENT/aside/``; they are never used and never deleted.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock, Timeout

from harness.errors import StoreError
from harness.files import sweep_unfinished, write_text
from harness.fit import Fit
from harness.fit.netcdf import read_arrays
from harness.plan.spec import Task

_LEFT_OVER = ".writing-"


class Store:
    """A folder of results, which the user chooses.

    Parameters
    ----------
    root
        The folder; it is created when the first result is written.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

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
            If the folder cannot be created or written.
        """
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=self.root).close()
        except OSError as error:
            raise StoreError(
                f"cannot write results to {self.root}: {error.strerror}; name another folder "
                f"with --store"
            ) from error

    @contextlib.contextmanager
    def writing(self, experiment: str) -> Iterator[None]:
        """Hold the right to add results of an experiment, after removing a killed run's leftovers.

        Raises
        ------
        StoreError
            If another run holds it, or the folder cannot be written.
        """
        folder = self.root / experiment
        lock = FileLock(folder / ".lock")
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
            yield
        finally:
            lock.release()

    def record(self, task: Task) -> dict[str, Any] | None:
        """Return the content of ``task.json``, or None if the task has not finished.

        Raises
        ------
        StoreError
            If the file is not this task's record.
        """
        path = self.folder(task) / "task.json"
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            if path.parent.exists():
                raise StoreError(f"{path} is missing") from None
            return None
        except (OSError, ValueError) as error:
            raise StoreError(f"{path} cannot be read ({error})") from error
        if not isinstance(record, dict) or record.get("task_sha256") != task.digest:
            raise StoreError(f"{path} is not the record of {task.name}")
        if record.get("record_sha256") != _sha256_of_record(record):
            raise StoreError(f"{path} is damaged: it is not what was written")
        return record

    def checked(self, task: Task) -> dict[str, Any] | None:
        """Return a finished task's record after comparing ``fit.nc`` with its checksum.

        Raises
        ------
        StoreError
            If the record or the fit is damaged, or either is missing.
        """
        record = self.record(task)
        if record is None:
            return None
        path = self.folder(task) / "fit.nc"
        try:
            digest = _sha256(path)
        except OSError as error:
            raise StoreError(f"{path} cannot be read ({error.strerror})") from error
        if digest != record.get("fit_sha256"):
            raise StoreError(f"{path} is damaged: it is not the file that was written")
        return record

    def load(self, task: Task) -> Fit:
        """Read a finished task's fit.

        Raises
        ------
        StoreError
            If it does not exist or is damaged.
        """
        self.checked(task)
        return Fit.load(self.folder(task) / "fit.nc")

    def target_draws(self, task: Task) -> dict[str, np.ndarray]:
        """Read only the draws of the target of a finished task, (chains, draws, ...) by name.

        Raises
        ------
        StoreError
            If the fit does not exist or is damaged.
        """
        self.checked(task)
        path = self.folder(task) / "fit.nc"
        try:
            return read_arrays(path, "posterior")
        except (OSError, ValueError, KeyError, RuntimeError) as error:
            raise StoreError(f"{path} is damaged or is no NetCDF file ({error})") from error

    def write(
        self, task: Task, fit: Fit, metrics: Mapping[str, float], facts: Mapping[str, Any]
    ) -> None:
        """Write a task's fit with its metrics and everything that is needed to run it again.

        Parameters
        ----------
        facts
            Further entries of the record: git revision, time spent, which draws were kept.

        Raises
        ------
        StoreError
            If it cannot be written; in that case nothing is left behind.
        """
        folder = self.folder(task)
        staging = folder.parent / f"{_LEFT_OVER}{uuid.uuid4().hex}"
        try:
            staging.mkdir(parents=True)
            fit.save(staging / "fit.nc")
            record = {
                "experiment": task.experiment,
                "cell": task.cell.key,
                "replication": task.replication,
                "task_sha256": task.digest,
                "fit_sha256": _sha256(staging / "fit.nc"),
                "fit_bytes": (staging / "fit.nc").stat().st_size,
                **fit.provenance(),
                "metrics": dict(metrics),
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
        """Move a damaged task's folder out of the way, and return its new place."""
        folder = self.folder(task)
        aside = self.root / task.experiment / "aside"
        aside.mkdir(parents=True, exist_ok=True)
        place = aside / f"{task.cell.key}-{folder.name}-{uuid.uuid4().hex[:8]}"
        folder.rename(place)
        return place

    def failure_path(self, task: Task) -> Path:
        """Return the file that a failed task leaves."""
        folder = self.folder(task)
        return folder.with_name(f"{folder.name}.failed.json")

    def fail(self, task: Task, message: str) -> None:
        """Record that a task failed, and why."""
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
