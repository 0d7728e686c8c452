"""Attack with some hundred random cases: ``python -m tests.attack [--seconds S] [--only KIND]``.

The seeds are fixed; the last line says how many cases were tried, survived and failed.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # the helpers of the tests
os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")

from .cases import CASES, prepare, run_case


def _prepared(shared: Path) -> None:
    """Prepare in a process of its own: those that fork later must have no threads."""
    process = multiprocessing.get_context("spawn").Process(target=prepare, args=(shared,))
    process.start()
    process.join()
    if process.exitcode:
        sys.exit("the attack could not be prepared")


def main() -> int:
    """Run the cases on two processes, and print what failed and the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=560.0, help="begin no case after this")
    parser.add_argument("--only", choices=CASES, action="append", help="only cases of this kind")
    parser.add_argument("--most", type=int, help="at most so many cases of each kind")
    parser.add_argument("--first", type=int, default=0, help="begin with this case of each kind")
    options = parser.parse_args()
    began = time.monotonic()
    shared = Path(tempfile.mkdtemp(prefix="attack-"))
    counts: Counter[str] = Counter()
    try:
        _prepared(shared)
        chosen = {kind: min(CASES[kind], options.most or CASES[kind]) for kind in CASES}
        # All kinds in turn, so that a slow machine leaves out some of each.
        cases = sorted(
            (
                (kind, seed)
                for kind in options.only or CASES
                for seed in range(options.first, chosen[kind])
            ),
            key=lambda case: (case[1] + 0.5) / chosen[case[0]],
        )
        with multiprocessing.get_context("spawn").Pool(2) as pool:
            for kind, seed, told in pool.imap_unordered(partial(run_case, shared), cases):
                counts["tried"] += 1
                counts[f"{kind} tried"] += 1
                counts["survived" if told is None else "failed"] += 1
                if told is not None:
                    print(f"FAILED {kind} {seed}: {told}", flush=True)
                if time.monotonic() - began > options.seconds:
                    pool.terminate()
                    break
    finally:
        shutil.rmtree(shared, ignore_errors=True)
    kinds = ", ".join(f"{counts[f'{kind} tried']} {kind}" for kind in CASES)
    print(
        f"attack: {counts['tried']} cases tried ({kinds}), {counts['survived']} survived, "
        f"{counts['failed']} failed; {time.monotonic() - began:.0f} s"
    )
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
