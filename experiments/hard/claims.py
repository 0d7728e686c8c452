"""Claims of ours about the hard posteriors, against the runs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from harness.plan.claims import judged
from harness.plan.effects import Decision
from harness.plan.spec import Cell, Claim, Results

from .frames import outcomes, planned
from .grid import LABELS, PEER_ROWS, SECONDS
from .right import FALSE_ALARM, FINE, SILENT

Judge = Callable[[Results], tuple[str, Decision | None]]

TWO_MODES = ("phi-four-field",)
"""Targets whose modes NUTS hardly connects, with no transition of first order on the path."""
FIRST_ORDER = "unequal-wells-25"


def claims(results: Results) -> list[Claim]:
    """Judge the statements, each against our numbers; a run that failed has an outcome, too."""
    known = {cell.key for cell in planned(results) if outcomes(results, cell)}
    return [
        judged(results, claim, {_key(*each) for each in needs} - known, partial(judge, results))
        for claim, needs, judge in CLAIMS
    ]


def _key(target: str, row: str) -> str:
    return f"{target}-{row}".replace("_", "-")


def _cells(results: Results, row: str, targets: tuple[str, ...] | None = None) -> list[Cell]:
    """Return a row's cells within equal seconds, of some targets or of all."""
    return [
        cell
        for cell in planned(results)
        if cell.factors["method"] == row
        and cell.factors["budget"] == SECONDS
        and (targets is None or cell.factors["target"] in targets)
    ]


def _silent(results: Results, row: str) -> tuple[int, int, list[str]]:
    """Return silent failures and runs of a row, and the targets of the former."""
    found = {
        str(cell.factors["target"]): list(outcomes(results, cell).values())
        for cell in _cells(results, row)
    }
    where = [target for target, words in found.items() if SILENT in words]
    return (
        sum(words.count(SILENT) for words in found.values()),
        sum(map(len, found.values())),
        where,
    )


def _auto_is_honest(results: Results) -> tuple[str, bool]:
    silent, runs, where = _silent(results, "auto")
    at = f" ({', '.join(dict.fromkeys(where))})" if where else ""
    return f"{silent} of {runs} runs of auto are wrong and fine{at}.", silent == 0


def _some_answer(results: Results) -> tuple[str, bool]:
    lacking, targets = [], list(dict.fromkeys(c.factors["target"] for c in planned(results)))
    for target in targets:
        shares = [
            _share_right(results, cell)
            for row in ("auto", "pt-2")
            for cell in _cells(results, row, (target,))
        ]
        if max(shares, default=0.0) <= 0.5:
            lacking.append(str(target))
    said = f", not on {', '.join(lacking)}" if lacking else ""
    return (
        f"One of the two is right in most runs on {len(targets) - len(lacking)} of "
        f"{len(targets)} targets{said}.",
        not lacking,
    )


def _share_right(results: Results, cell: Cell) -> float:
    found = list(outcomes(results, cell).values())
    return sum(words in (FINE, FALSE_ALARM) for words in found) / len(found) if found else 0.0


def _nuts_misses(results: Results) -> tuple[str, bool]:
    cells = {row: _cells(results, row, TWO_MODES) for row in ("nuts", "auto")}
    share = {
        row: sum(_share_right(results, cell) for cell in of) / len(of) for row, of in cells.items()
    }
    return (
        f"Share of right runs on {' and '.join(TWO_MODES)}: NUTS {share['nuts']:.2f}, auto "
        f"{share['auto']:.2f}.",
        share["nuts"] < 0.5 < share["auto"],
    )


def _first_order(results: Results) -> tuple[str, bool]:
    rows = ("collapsed", "joint", "pe-2", "pe-5", "pt-1", "pt-2", "smc")
    share = {
        row: _share_right(results, cell)
        for row in rows
        for cell in _cells(results, row, (FIRST_ORDER,))
    }
    said = ", ".join(f"{LABELS[row]} {value:.2f}" for row, value in share.items())
    return f"Share of right runs on {FIRST_ORDER}: {said}.", max(share.values()) <= 0.5


def _others_silent(results: Results) -> tuple[str, bool]:
    peers = {row.key for row in PEER_ROWS}
    counted = {row: _silent(results, row) for row in LABELS if row not in ("nuts", "auto", *peers)}
    some = {row: found for row, found in counted.items() if found[0]}
    said = "; ".join(
        f"{LABELS[row]} in {silent} of {runs} ({', '.join(dict.fromkeys(where))})"
        for row, (silent, runs, where) in some.items()
    )
    return f"Wrong and fine: {said or 'none'}.", bool(some)


CLAIMS: tuple[tuple[Claim, set[tuple[str, str]], Judge], ...] = (
    (
        Claim("auto-is-honest", "ours", "Ours: auto is never wrong without saying so."),
        {("product", "auto")},
        _auto_is_honest,
    ),
    (
        Claim(
            "right-somewhere",
            "ours",
            "Ours: on each target auto or parallel tempering from two references is right in most "
            "runs.",
        ),
        {("product", "auto"), ("product", "pt-2")},
        _some_answer,
    ),
    (
        Claim(
            "nuts-misses-modes",
            "ours",
            "Ours: where modes are apart, plain NUTS is wrong in most runs, and auto right.",
        ),
        {(target, row) for target in TWO_MODES for row in ("nuts", "auto")},
        _nuts_misses,
    ),
    (
        Claim(
            "first-order",
            "against",
            "Against tempering: no path of temperatures passes a transition of first order; on two "
            "wells of very unequal width in 25 dimensions every tempered method is wrong in half "
            "of the runs or more.",
        ),
        {(FIRST_ORDER, "pt-2"), (FIRST_ORDER, "collapsed")},
        _first_order,
    ),
    (
        Claim(
            "silent-somewhere",
            "against",
            "Against us: some tempered method, run by itself, is wrong and says nothing in some "
            "run.",
        ),
        {("product", "collapsed"), ("product", "pt-2")},
        _others_silent,
    ),
)
