"""Where jobs run: on this machine's cores, or on a Dask cluster."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import logging
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import (
    CancelledError,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
)
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from multiprocessing import get_context
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

from harness.engine.cores import cores
from harness.engine.futures import done_soon
from harness.engine.processes import end_with_parent, terminate_descendants
from harness.engine.signals import interrupts_put_off
from harness.errors import DataError, WorkersError
from harness.experiment.job import Job, Outcome, perform

_SECONDS_TO_STOP = 5.0
_SECONDS_TO_FORGET = 30.0
_SECONDS_A_LOOK = 0.005
_DASK_LOGGERS = ("distributed", "distributed.client", "tornado", "tornado.application", "asyncio")


T = TypeVar("T")


class Workers(Protocol):
    """Something that performs jobs, and other work between them.

    Work begins in the order in which it is given, and never more than ``slots`` pieces of work run
    at once.  So the seconds that a job takes do not depend on a page that is being written.
    """

    slots: int
    """Jobs that can run at once."""
    remote: bool
    """Whether jobs leave this machine, so that programs must be sent as text."""

    def submit(self, job: Job) -> Future[Outcome]:
        """Start a job as soon as there is a free slot."""

    def in_thread(self, work: Callable[[], T]) -> Future[T]:
        """Do other work here as soon as there is a free slot: work that waits for processes."""

    def in_process(self, work: Callable[[], T]) -> Future[T]:
        """Do other work here as soon as there is a free slot: work that computes in Python."""

    def stop(self) -> None:
        """Drop waiting jobs and quickly end running ones."""


class LocalWorkers:
    """Jobs on this machine, one per slot.

    A job that uses CmdStan waits in a thread for CmdStan's process.  A job in Python gets a process
    that belongs to such a thread.  So never more than ``slots`` jobs run, and if the system kills
    one, the others are not affected.

    Parameters
    ----------
    slots
        Number of jobs at once; by default one for each core of this process.
    """

    remote = False

    def __init__(self, slots: int | None = None) -> None:
        self.slots = slots or cores()
        # If Dask is installed, xarray imports it on first use, which would happen in several
        # threads at once; Dask's modules import each other and do not always survive that.
        with contextlib.suppress(ImportError):
            importlib.import_module("distributed")
        self._threads = ThreadPoolExecutor(self.slots)
        self._of_thread = threading.local()
        self._processes: list[ProcessPoolExecutor] = []
        self._running: set[Future[Any]] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._threads.shutdown(wait=kind is None, cancel_futures=True)
        for process in self._processes:
            process.shutdown(wait=kind is None, cancel_futures=True)

    def submit(self, job: Job) -> Future[Outcome]:
        """Start a job as soon as there is a free slot."""
        if job.method.driven_by == "cmdstan":
            return self.in_thread(partial(perform, job))
        return self.in_thread(partial(self._perform_in_process, job))

    def in_thread(self, work: Callable[[], T]) -> Future[T]:
        """Do other work that waits for processes, as soon as there is a free slot."""
        with interrupts_put_off():  # as in harness.engine.futures, for all three together
            future = self._threads.submit(work)
            self._running.add(future)
            future.add_done_callback(self._running.discard)
        return future

    def in_process(self, work: Callable[[], T]) -> Future[T]:
        """Do other work as soon as there is a free slot, in the process of that slot.

        The future raises WorkersError if the process is killed.
        """
        return self.in_thread(partial(self._in_process, work))

    def stop(self) -> None:
        """Drop waiting jobs and end the running processes."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        deadline = time.monotonic() + _SECONDS_TO_STOP
        # Repeatedly, because CmdStanPy starts a run's next chain when one ends.
        while True:
            terminate_descendants()
            if not self._running or time.monotonic() > deadline:
                return
            done_soon(set(self._running), seconds=0.05)

    def _perform_in_process(self, job: Job) -> Outcome:
        started = time.perf_counter()
        try:
            return self._in_process(partial(perform, job))
        except WorkersError as error:
            return Outcome(None, str(error), time.perf_counter() - started)

    def _in_process(self, work: Callable[[], T]) -> T:
        try:
            return self._process().submit(work).result()
        except BrokenProcessPool:
            del self._of_thread.process
            raise WorkersError(
                "its process was killed, perhaps because the machine ran out of memory"
            ) from None

    def _process(self) -> ProcessPoolExecutor:
        """Return the process of the calling thread."""
        if not hasattr(self._of_thread, "process"):
            # NumPy reads these when the new processes import it.  Each process gets one core;
            # otherwise the threads of their libraries would compete for cores.
            for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
                os.environ.setdefault(variable, "1")
            process = ProcessPoolExecutor(
                1, mp_context=get_context("spawn"), initializer=end_with_parent
            )
            self._of_thread.process = process
            self._processes.append(process)
        found: ProcessPoolExecutor = self._of_thread.process
        return found


class DaskWorkers:
    """Jobs on a running Dask cluster.

    Workers need this package installed; each machine compiles a program once.  When a worker dies,
    Dask runs its job again on another one, and also finished jobs whose outcomes that worker held.
    So we pass an outcome on only once the scheduler has forgotten the job.  From then on no
    worker's death makes it run again, and no shared disk is needed.  (Dask's
    ``concurrent.futures`` executor keeps a job for as long as somebody has its future, and does not
    report when it is gone.)

    Parameters
    ----------
    address
        Address of the scheduler, ``tcp://HOST:PORT``.

    Raises
    ------
    DataError
        If Dask is not installed or there is no scheduler at the address.
    """

    remote = True

    def __init__(self, address: str) -> None:
        try:
            from distributed import Client
        except ImportError:
            raise DataError(
                "--scheduler needs Dask: install harness[dask], here and on the workers"
            ) from None
        # If the scheduler dies, we report it in one line, not with Dask's tracebacks.  Dask gives
        # each of these loggers a level of its own.
        for source in _DASK_LOGGERS:
            logging.getLogger(source).setLevel(logging.CRITICAL)
        try:
            self._client: Any = Client(address, timeout="10s", set_as_default=False)
        except (OSError, ValueError) as error:
            raise DataError(f"there is no Dask scheduler at {address} ({error})") from None
        threads = self._client.nthreads().values()
        if not sum(threads):
            self._client.close()
            raise DataError(f"the Dask scheduler at {address} has no workers")
        self.slots = sum(threads)
        self._sent: set[Any] = set()
        self._here = LocalWorkers(1)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._client.close()
        self._here.__exit__(kind, error, trace)

    def in_thread(self, work: Callable[[], T]) -> Future[T]:
        """Do other work on this machine, one piece after another."""
        return self._here.in_thread(work)

    def in_process(self, work: Callable[[], T]) -> Future[T]:
        """Do other work on this machine in a process, one piece after another."""
        return self._here.in_process(work)

    def submit(self, job: Job) -> Future[Outcome]:
        """Send a job to the cluster."""
        loop = self._client.loop.asyncio_loop
        with interrupts_put_off():  # the client has locks, too
            # Not 'pure', because equal jobs are different jobs for us.
            sent = self._client.submit(perform, job, pure=False)
            self._sent.add(sent)
            return asyncio.run_coroutine_threadsafe(self._collect(sent), loop)

    def stop(self) -> None:
        """Cancel waiting jobs; running ones end on their workers and are dropped."""
        self._client.cancel(list(self._sent))
        self._here.stop()

    async def _collect(self, sent: Any) -> Outcome:
        """Fetch a job's outcome, and have the cluster forget the job."""
        try:
            outcome: Outcome = await self._client.gather(sent, asynchronous=True)
        except CancelledError:
            # The exception is Dask's; ours marks the waiting future as cancelled.
            raise asyncio.CancelledError from None
        except Exception:
            if sent.status == "error":  # the job's own, or its worker was killed
                raise
            raise asyncio.CancelledError from None  # the cluster is lost: no fault of the job
        finally:
            self._sent.discard(sent)
            sent.release()
        # The outcome is here, so anything that goes wrong with the cluster now does not matter.
        with contextlib.suppress(Exception):
            await asyncio.wait_for(self._forgotten(sent.key), _SECONDS_TO_FORGET)
        return outcome

    async def _forgotten(self, key: str) -> None:
        """Return once the scheduler has forgotten a job."""
        while (await self._client.scheduler.get_task_status(keys=[key]))[key] is not None:
            await asyncio.sleep(_SECONDS_A_LOOK)
