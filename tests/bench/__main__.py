"""Speed, one benchmark a name: `nox -s bench -- overhead`; on a machine with nothing else to do."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from functools import partial

# Processor time is what counts: threads of NumPy that wait for one another would count too.
os.environ["OPENBLAS_NUM_THREADS"] = "1"

from harness.folders import shipped

from .automatic import print_automatic
from .density import print_density
from .forms import COMPARISONS
from .gradients import print_gradients
from .overhead import print_overhead
from .reading import print_reading
from .samplers import print_samplers
from .scaling import print_scaling
from .temper import print_temper

BENCHMARKS: dict[str, Callable[[argparse.Namespace], None]] = {
    **{model: partial(print_gradients, model) for model in COMPARISONS},
    "temper": print_temper,
    "reading": print_reading,
    "samplers": print_samplers,
    "density": print_density,
    "automatic": print_automatic,
    "overhead": print_overhead,
    "scaling": print_scaling,
}


def main() -> None:
    """Run the named benchmarks; by default those that take minutes, not more."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("benchmarks", nargs="*", metavar="NAME", help=", ".join(BENCHMARKS))
    parser.add_argument(
        "--rounds",
        type=int,
        default=9,
        help="rounds of each model, 'temper', 'reading', 'samplers', 'density'",
    )
    variants = sorted({path.stem for path in shipped("stan").glob("*/*.stan")})
    parser.add_argument(
        "--variants", nargs="+", choices=variants, metavar="VARIANT", help=", ".join(variants)
    )
    parser.add_argument(
        "--o1", action="store_true", help="compare the models' programs with stanc's --O1 of them"
    )
    parser.add_argument("--tasks", type=int, default=5000, help="tasks of 'overhead'")
    options = parser.parse_args()
    names = options.benchmarks or [
        *COMPARISONS,
        "temper",
        "reading",
        "samplers",
        "density",
        "automatic",
        "overhead",
    ]
    if unknown := set(names) - set(BENCHMARKS):
        parser.error(
            f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(BENCHMARKS)}"
        )
    for name in names:
        BENCHMARKS[name](options)


if __name__ == "__main__":
    main()
