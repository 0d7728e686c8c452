"""The report while a run goes on: each experiment's page is written as soon as it has finished."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path

from harness.engine.futures import done_soon, sent
from harness.engine.toolchain import CmdStan
from harness.experiment.reporting import PageJob, run_facts, tell_claims, write_pages
from harness.experiment.run import Plan
from harness.experiment.store import Store
from harness.experiment.workers import Workers
from harness.plan.catalogue import experiment_file
from harness.progress import say
from harness.report.overview import Entry, Running, write_overview
from harness.report.site import finish_site
from harness.report.written import remember_files


class LiveReport:
    """Has workers write pages between the tasks of the experiments that follow.

    Parameters
    ----------
    plans
        Whole plans of all experiments, in the order in which they run.
    store
        Store that holds the fits.
    cmdstan
        CmdStan that makes the draws.
    workers
        Workers that write the pages.
    started
        When the run began, on the clock of ``time.perf_counter``.
    data_dir
        Folder with the user's own files, if there is one.
    """

    def __init__(
        self,
        plans: Sequence[Plan],
        store: Store,
        cmdstan: CmdStan,
        workers: Workers,
        *,
        started: float,
        data_dir: Path | None = None,
    ) -> None:
        self._store, self._cmdstan, self._workers = store, cmdstan, workers
        self._started, self._data_dir = started, data_dir
        self._running = {
            plan.experiment.name: Running.of(plan.experiment, len(plan.tasks)) for plan in plans
        }
        self._left = len(plans)
        self._entries: dict[str, Entry | None] = {}
        # Announces one page after another, while the main thread keeps the workers busy.
        self._teller = ThreadPoolExecutor(1)
        self._told: list[Future[None]] = []

    def finished(self, plan: Plan) -> None:
        """Have the page of an experiment written as soon as there is a free slot."""
        self._left -= 1
        name = plan.experiment.name
        # The page of the last experiment may use all slots.
        alone = not self._left and not self._workers.remote
        job = PageJob(
            name,
            experiment_file(name),
            plan.profile,
            self._store.root,
            self._data_dir,
            self._cmdstan,
            workers=self._workers.slots if alone else 1,
        )
        page = self._workers.in_process(partial(write_pages, job))
        self._told.append(sent(self._teller, self._tell, name, page))

    def close(self) -> Path:
        """Wait for the pages that are being written, write the overview, and return its file.

        Raises
        ------
        StoreError
            If a file cannot be written, or a fit is damaged.
        WorkersError
            If the process that wrote a page was killed.
        KeyboardInterrupt
            If interrupted; its message says how to continue.
        """
        try:
            while len(done_soon(self._told)) < len(self._told):
                pass
        except KeyboardInterrupt:
            self._workers.stop()
            raise KeyboardInterrupt(
                f"stopped while the report was written; all fits are in {self._store.root}; run "
                "the same command again to continue"
            ) from None
        self._teller.shutdown()
        for each in self._told:
            each.result()
        return finish_site(self._store.report, self._written(), self._facts())

    def _tell(self, name: str, page: Future[Entry | None]) -> None:
        """Link a page from the overview as soon as it is written, and say so."""
        self._entries[name] = None  # it no longer runs, whatever happens to its page
        entry = self._entries[name] = page.result()
        if entry is None:
            say(f"{name}: nothing to report yet")
            return
        folder = self._store.report
        running = [each for name, each in self._running.items() if name not in self._entries]
        overview = write_overview(folder, self._written(), self._facts(), running)
        files = [file for each in self._written() for file in each.written]
        remember_files(folder, "html", [overview.name, *files])
        seconds = time.perf_counter() - self._started
        say(f"{name}: finished after {seconds:.0f} s, its page is {folder / entry.href}")
        tell_claims(name, entry.claims)

    def _written(self) -> list[Entry]:
        """Return the experiments that have a page, in the order in which they run."""
        found = (self._entries.get(name) for name in self._running)
        return [entry for entry in found if entry is not None]

    def _facts(self) -> dict[str, str]:
        return run_facts(self._cmdstan, time.perf_counter() - self._started)
