"""Run the tiny experiment in a process of its own: ``python survival_driver.py ARGUMENTS``.

The arguments are the command line's, with the tiny experiment in the place of the shipped ones.
``quick-run STORE WORKERS`` runs the smoke grid with no report, which saves the seconds it takes.
"""

from __future__ import annotations

import signal
import sys
from collections import Counter
from pathlib import Path
from unittest.mock import patch

from harness.cli import main
from harness.engine.toolchain import CmdStan
from harness.experiment.results import read_results, write_index
from harness.experiment.run import make_plan, run_plan
from harness.experiment.store import Store
from harness.experiment.workers import LocalWorkers
from harness.plan import catalogue
from harness.report.site import write_tables


def tiny_folder(_: str) -> Path:
    """Folder of the tiny experiment, in the place of the one with the shipped ones."""
    return Path(__file__).parent / "survival"


def quick_run(root: Path, workers: int) -> Counter[str]:
    """Run the smoke grid, write its index and its tables, and count what became of its tasks."""
    with patch.object(catalogue, "shipped", tiny_folder):
        experiment = catalogue.load_experiment("tiny")
    none = CmdStan(Path("no-cmdstan"), "2.39.0", "environment")
    plan, store = make_plan(experiment, "smoke", none), Store(root)
    with LocalWorkers(workers) as pool:
        counts = run_plan(plan, store, none, pool)
    results = read_results(plan, store)
    write_index(plan, store, results)
    write_tables(store.tables("tiny"), experiment.tables(results))
    return counts


if __name__ == "__main__":
    # A shell that starts the tests in the background has them ignore Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if sys.argv[1] == "quick-run":
        print(dict(quick_run(Path(sys.argv[2]), int(sys.argv[3]))))
    else:
        with patch.object(catalogue, "shipped", tiny_folder):
            main()
