"""Tables of the benchmark: the matrix of outcomes, their numbers, errors and costs."""

from __future__ import annotations

import pandas as pd

from harness.plan.spec import Results, Table

from .frames import costs, counted, errors, matrix, planned
from .grid import EVALUATIONS, LABELS, SECONDS
from .peers.installed import left_out
from .right import LEGEND
from .velocities import evidences

_WORDS = {SECONDS: "equal processor time", EVALUATIONS: "equal numbers of evaluations"}


def tables(results: Results) -> list[Table]:
    """Return the matrix of each budget, then numbers."""
    kinds = list(dict.fromkeys(cell.factors["budget"] for cell in planned(results)))
    made = [
        Table(
            "matrix" if kind == SECONDS else f"matrix-{kind}",
            f"Was the diagnosis right, within {_WORDS[kind]}? One mark for each run; an "
            "underlined one leads to the page of its fit. Right: log Z, mode probabilities and "
            "means within four standard errors or a small tolerance. Said so: a PROBLEM in the "
            "diagnosis, or a standard error that rules out any conclusion.",
            matrix(results, kind),
            first=True,
            legend=LEGEND,
        )
        for kind in kinds
    ]
    made.append(_counts(results))
    if results.cells:
        made += [_errors(results), _costs(results)]
    if any(cell.factors["target"].startswith("rv-") for cell in planned(results)):
        made.append(_velocities(results))
    return made


def _velocities(results: Results) -> Table:
    return Table(
        "radial-velocities",
        "log10 Z of planets in radial velocities: what is known (≥: a lower bound), our runs, and "
        "the medians that others published (Nelson et al. 2020). One with × is provably off: by "
        "more than 0.02 and four errors, its own included. Our errors are those of a single run, "
        "periods those of the run with most effective draws, with their probabilities.",
        evidences(results).reset_index(),
    )


def _counts(results: Results) -> Table:
    rows = {}
    for row, label in LABELS.items():
        cells = [cell for cell in planned(results) if cell.factors["method"] == row]
        if cells:
            rows[label] = counted(results, cells)
    frame = pd.DataFrame.from_dict(rows, orient="index")
    frame.index.name = "method"
    caption = f"Runs of each method by outcome, over all targets. {left_out()}"
    return Table("outcomes", caption.strip(), frame)


def _errors(results: Results) -> Table:
    return Table(
        "errors",
        "Errors over runs. Of several modes or means each run counts with its largest error; means "
        "are in posterior standard deviations. Coverage is the entropy of the estimated mode "
        "probabilities over that of the true ones. Distance is the sliced 1-Wasserstein distance "
        "to exact draws, in standard deviations, beside that of as many exact draws as the run has "
        "effective ones.",
        errors(results),
    )


def _costs(results: Results) -> Table:
    return Table(
        "costs",
        "Cost of a run and what it buys. Seconds are processor time of one core, with pilots, the "
        "trial and fits that were not chosen. An evaluation is one of the target's density with "
        "its gradient, N for a gradient of PE. Effective draws follow from the true errors of "
        "means and mode probabilities over runs. Round trips count only where modes are right: a "
        "replica travels quickly between the modes that it knows.",
        costs(results),
    )
