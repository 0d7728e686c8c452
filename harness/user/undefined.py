"""Places around the draws where a program gives no density: +inf, not a number, or an error.

Every sampler leaves such places out, so draws and log Z are those of the rest.  That is right where
the program means it, by ``reject`` or a support that data cut.  It is wrong where a term overflows
or underflows, as the logarithm of a truncation's tail may, and nothing in the draws shows it.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np
from scipy.spatial import cKDTree

from harness.arrays import FloatArray
from harness.diagnosis import Finding, Severity
from harness.engine.batched import BatchedDensity
from harness.engine.why_ended import ends_a_run
from harness.errors import one_line

_PLACES = 1000
"""Draws, of which each has a place beside it."""
_AROUND = 0.25
"""Share of the draws that count as being around one of them."""
_AT_ONCE = 50
_LOOKED_AT = 100
"""Places without a density that the program is asked about one by one."""
_WARNING, _PROBLEM, _REJECTED = 0.002, 0.01, 0.01
"""Shares of places from which on they are told, as what."""


class Undefined(NamedTuple):
    """What a program says of places around draws.

    Attributes
    ----------
    infinite, not_numbers, rejected
        Shares of the places where its log density is +inf, is not a number, or where it stops with
        an error.
    message
        One of those errors; empty if there is none.
    mistake
        One of those errors that would end a whole run of CmdStan; empty if there is none.
    """

    infinite: float
    not_numbers: float
    rejected: float
    message: str
    mistake: str = ""


def undefined_near(
    density: BatchedDensity, points: FloatArray, *, most_seconds: float, seed: int
) -> Undefined:
    """Look at places beside draws: as far from one as two others around it are from each other.

    Parameters
    ----------
    density
        Of the program.
    points
        Draws on the unconstrained space, shape (..., D).
    most_seconds
        Seconds of wall time, roughly, after which no more places are looked at.
    seed
        Seed.
    """
    rng = np.random.default_rng([seed, 13])
    flat = points.reshape(-1, points.shape[-1])
    flat = flat[np.all(np.isfinite(flat), axis=1)]
    if len(flat) < 2:
        return Undefined(0.0, 0.0, 0.0, "")
    places = _beside(rng.permutation(flat)[:_PLACES], rng)
    began = time.perf_counter()
    without: list[FloatArray] = []
    looked = 0
    for start in range(0, len(places), _AT_ONCE):
        some = places[start : start + _AT_ONCE]
        without.append(some[~np.isfinite(density.values(some))])
        looked += len(some)
        if time.perf_counter() - began > most_seconds:
            break
    return _asked(density, np.concatenate(without), looked)


def _beside(draws: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return a place beside each draw (n, D): a difference of two draws around it is added."""
    spread = draws.std(axis=0)
    scaled = draws / np.where(spread > 0, spread, 1.0)
    around = max(2, int(_AROUND * len(draws)))
    near = np.asarray(cKDTree(scaled).query(scaled, k=around)[1])
    one, other = rng.integers(around, size=(2, len(draws)))
    rows = np.arange(len(draws))
    places: FloatArray = draws + draws[near[rows, one]] - draws[near[rows, other]]
    return places


def _asked(density: BatchedDensity, without: FloatArray, looked: int) -> Undefined:
    """Ask a program what it says of the places without a density, of so many looked at."""
    infinite = not_numbers = rejected = 0
    message = mistake = ""
    some = without[:_LOOKED_AT]
    for place in some:
        try:
            value, _ = density.at(place)
        except RuntimeError as error:
            rejected += 1
            said = one_line(error).rstrip(".")
            message = message or said
            mistake = mistake or (said if ends_a_run(said) else "")
        else:
            infinite += value == np.inf
            not_numbers += bool(np.isnan(value))
    share = len(without) / (looked * max(1, len(some)))
    return Undefined(share * infinite, share * not_numbers, share * rejected, message, mistake)


def about_undefined(found: Undefined) -> list[Finding]:
    """Report places without a density around the draws."""
    told = []
    share = found.infinite + found.not_numbers
    if share >= _WARNING:
        what = "+inf" if found.infinite >= found.not_numbers else "not a number"
        told.append(
            Finding(
                Severity.PROBLEM if share >= _PROBLEM else Severity.WARNING,
                f"The log density is {what} at {100 * share:.2g}% of places beside the draws. No "
                "method can enter these places, so draws and log Z leave them out.",
                "Look for a term that overflows, or for the logarithm of something that underflows "
                "(a truncation T[,] far in a tail, a density at 0 or 1), and write it on the log "
                "scale.",
            )
        )
    if found.mistake:
        told.append(
            Finding(
                Severity.WARNING,
                "At some places beside the draws an index or a size is wrong. CmdStan ends a run "
                f"there; here such places count as impossible. It says: {found.mistake}.",
                "Mend the index or the size, or reject() such places if they are to be impossible.",
            )
        )
    elif found.rejected >= _REJECTED:
        told.append(
            Finding(
                Severity.FINE,
                f"The program rejects {100 * found.rejected:.2g}% of places beside the draws; they "
                f"count as impossible. It says: {found.message}.",
            )
        )
    return told


def about_overflow(share: float) -> list[Finding]:
    """Report the share of the points visited by a search at which the log density is +inf."""
    if share == 0:
        return []
    return [
        Finding(
            Severity.WARNING if share >= _PROBLEM else Severity.FINE,
            f"The log density is +inf at {100 * share:.2g}% of the points that the search for "
            "further modes visited; they count as impossible.",
            "Look for a term that overflows, or for the logarithm of something that underflows.",
        )
    ]
