"""Weigh a fit's draws so that each mode has its probability by its mass, where that is better.

Chains that rarely change modes know well what each mode is like and badly how probable it is.  The
integral of the density around a peak is known from points around it, to a hundredth or so, whatever
the chains do.  So where every mode with draws can be weighed, and more precisely than its share of
the draws is known, the masses take the place of the shares.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray
from harness.diagnosis import Finding, Severity
from harness.engine.batched import BatchedDensity
from harness.engine.cores import cores
from harness.errors import DataError
from harness.evidence import LogEvidence, normalised_weights, strata_errors
from harness.fit import Fit, evidence_attributes, weigh_modes
from harness.model import Model
from harness.modes import FoundModes, ModeTable
from harness.modes.rows import NO_WEIGHT
from harness.modes.table import MATTERS
from harness.user.compare import unconstrained
from harness.user.in_which_mode import InWhichMode
from harness.user.one_copy import InOneCopy
from harness.user.peaked_lengths import PeakedLengths
from harness.user.prior import log_prior_integral
from harness.user.two_estimates import agree, explaining

OFF, OFF_ERRORS = 0.05, 3.0
"""Difference of a mode's share of the draws from its probability by its mass, in itself and in
standard errors, from which the draws are wrong.  Where draws rarely change modes, masses are much
more precise than shares, and the errors of such shares are too small rather than too large."""
BY_MASSES = "log_evidence_by_masses"
"""Attribute, 1 or missing, of a fit whose log Z is that of masses by points around peaks."""
_LEAST_WEIGHED = 0.99
"""Probability, by the draws, of the modes whose masses are known, from which on they are used."""
_MOST_UNSURE = 0.01
"""Share of the draws whose mode is only that of the nearest draw, up to which they are used."""
_FEWEST_DRAWS = 50
"""Draws in a mode from which on they tell what it is like."""
_MOST_TIMES = 4.0
"""Factor between a mode's probability and its share of the draws up to which masses are used."""


class Weighed(NamedTuple):
    """A fit whose modes are weighed by their masses."""

    fit: Fit
    table: ModeTable
    """Its modes, with their probabilities by mass."""
    log_integral: LogEvidence
    """Log of the integral of the density over all modes."""
    finding: Finding
    """What that has changed."""


def weighed_by_mass(
    model: Model,
    fit: Fit,
    found: FoundModes,
    *,
    in_one_copy: InOneCopy | None = None,
    seed: int,
) -> Weighed | None:
    """Weigh a fit's modes by their masses; None if that is impossible or no better.

    Parameters
    ----------
    model
        The tempered model.
    fit
        The final draws.
    found
        Their modes.
    in_one_copy
        The copy of the posterior that the modes are in; by default, they are everywhere.
    seed
        Seed of the choice among weighted draws.
    """
    if fit.weighting == "within draws" or fit.chains_interact:
        return None
    strata = _strata(found)
    if strata is None:
        return None
    mode = _modes_of_draws(model, fit, found, in_one_copy)
    table = _table(found.table, strata)
    made = weigh_modes(fit, mode, strata.probability, strata.log_error, seed=seed)
    whole = strata.log_integral
    if in_one_copy is not None:
        whole = in_one_copy.whole_of(whole)
    return Weighed(made, table, whole, changed_shares(found.table, table))


def _modes_of_draws(
    model: Model, fit: Fit, found: FoundModes, in_one_copy: InOneCopy | None
) -> npt.NDArray[np.intp]:
    """Return the mode of each raw draw.

    Draws that hardly count, as those of a tempered run far from the target, may be in any.
    """
    raw, weight = fit.raw, normalised_weights(fit.log_weight.ravel())
    rows = np.flatnonzero(weight * weight.size > NO_WEIGHT)
    values = {}
    for name in fit.parameters:
        draws = raw[name].transpose("chain", "draw", ...).to_numpy()
        values[name] = draws.reshape(-1, *draws.shape[2:])[rows]
    density = PeakedLengths(BatchedDensity(model.program("target"), model.data, threads=cores()))
    points = unconstrained(values, 1, density)
    finite = np.isfinite(points).all(axis=1)
    if in_one_copy is not None:
        points[finite] = in_one_copy.brought(points[finite])
    mode = np.zeros(weight.size, dtype=np.intp)
    mode[rows[finite]] = InWhichMode(found).of(points[finite])
    return mode.reshape(fit.log_weight.shape)


def weighed_by_points(found: FoundModes) -> bool:
    """Whether masses by points around peaks are known of nearly all modes with draws."""
    modes = found.table.modes
    return len(modes) < 2 or sum(modes[k].probability for k in found.by_mass) >= _LEAST_WEIGHED


class _Strata(NamedTuple):
    probability: FloatArray
    log_error: FloatArray
    log_integral: LogEvidence


def _strata(found: FoundModes) -> _Strata | None:
    """Return the probabilities of all modes with draws; None if the draws' own shares stay."""
    modes = [each for each in found.table.modes if each.probability > 0]
    if len(modes) < 2 or found.table.unsure > _MOST_UNSURE:
        return None
    share = np.array([each.probability for each in modes])
    error = np.array([each.error for each in modes])
    counts = np.bincount(found.numbers, minlength=len(modes))
    used = [k for k in found.by_mass if _tells(found.by_mass[k].probability, share[k], counts[k])]
    left_out = sum(one.probability for k, one in found.by_mass.items() if k not in used)
    if len(used) < 2 or share[used].sum() < _LEAST_WEIGHED or left_out > 1 - _LEAST_WEIGHED:
        return None
    by_mass_error = np.array([found.by_mass[k].error for k in used])
    if np.square(by_mass_error).sum() >= np.square(error[used]).sum():
        return None
    log_mass = np.array([found.by_mass[k].log_mass.value for k in used])
    # Modes without a known mass keep the share that they have, and the others the rest.
    together = share[used].sum()
    probability, log_error = share.copy(), error / share
    probability[used] = together * normalised_weights(log_mass)
    log_error[used] = [found.by_mass[k].log_mass.mcse for k in used]
    # To first order: each mass counts by its probability, and the rest by its share of the draws.
    known = probability[used] / together * log_error[used]
    rest = np.delete(error, used) / together
    log_integral = LogEvidence(
        float(np.logaddexp.reduce(log_mass) - np.log(together)),
        float(np.sqrt(np.square(known).sum() + np.square(rest).sum())),
    )
    return _Strata(probability, log_error, log_integral)


def _tells(by_mass: float, share: float, count: int) -> bool:
    """Whether a mode has so many draws that they can stand for its mass."""
    return count >= _FEWEST_DRAWS and 1 / _MOST_TIMES <= by_mass / share <= _MOST_TIMES


def _table(table: ModeTable, strata: _Strata) -> ModeTable:
    """Return the table with probabilities by mass, and their errors."""
    p, error = strata.probability, strata_errors(strata.probability, strata.log_error)
    modes = [
        replace(each, probability=float(p[k]), error=float(error[k])) if k < len(p) else each
        for k, each in enumerate(table.modes)
    ]
    return replace(table, modes=tuple(modes))


def changed_shares(before: ModeTable, after: ModeTable) -> Finding:
    """Report what masses have changed, and whether the draws alone would have been wrong.

    Draws that lack a mode tell nothing of how probable it is, but how probable those are which they
    are in, compared with each other.

    Parameters
    ----------
    before, after
        The table by the draws' shares of the modes, and by the masses.
    """
    drawn = [old.probability > 0 for old in before.modes]
    share, error = _shares(before)
    mass, of_mass = _shares(after)
    inside = mass[drawn].sum()  # which is what the draws' shares are of
    changes = np.where(drawn, np.abs(mass - inside * share), 0.0)
    errors = np.hypot(inside * error, of_mass)
    number = int(changes.argmax())
    told = (
        f"mode {number + 1} has {share[number]:.3f} ± {error[number]:.3f} of the draws, and "
        f"{mass[number]:.3f} ± {of_mass[number]:.3f} of the mass"
    )
    means = "Draws are weighted so that each mode has its probability by its mass"
    if np.any(changes > np.maximum(OFF_ERRORS * errors + before.unsure, OFF)):
        return Finding(
            Severity.WARNING,
            f"The chains change modes too rarely for their shares of the draws to be right: {told}."
            f" {means}.",
            "These are right if the draws are in every mode. Give it more time (--budget), and "
            "compare.",
        )
    if not all(drawn):
        lacking = int(np.where(drawn, 0.0, mass).argmax())
        told = (
            f"mode {lacking + 1}, in which the method before had no draws, has "
            f"{mass[lacking]:.3f} ± {of_mass[lacking]:.3f} of the mass"
        )
        return Finding(Severity.FINE, f"{means}: {told}.")
    return Finding(Severity.FINE, f"{means}, which is known better than its share: {told}.")


def _shares(table: ModeTable) -> tuple[FloatArray, FloatArray]:
    """Return the probabilities of a table's modes and their errors, each of shape (modes,)."""
    known = np.array([(each.probability, each.error) for each in table.modes])
    return known[:, 0], known[:, 1]


def _is_whole(whole: LogEvidence, own: LogEvidence, by_mass: LogEvidence) -> bool:
    """Whether masses show that a method's own log Z lacks modes, which matter for its precision.

    ``whole`` is its own with these modes.
    """
    nearer = abs(by_mass.minus(whole).value) < abs(by_mass.minus(own).value)
    return nearer and agree(by_mass, whole) and whole.minus(own).value > own.mcse


def _with_unseen(
    fit: Fit,
    whole: LogEvidence,
    own: LogEvidence,
    by_mass: LogEvidence,
    lacking: float,
    *,
    doubtful: bool,
) -> Finding:
    """Give a fit the log Z of all modes, by their masses or by adding a share that it lacks."""
    lacks = f"The method before had no draws in modes with {lacking:.1%} of the mass"
    if doubtful or by_mass.mcse < own.mcse:
        _by_masses(fit, by_mass)
        told = (
            f"Log Z is by the masses of the modes, {by_mass.text}. {lacks}, which explains its own "
            f"estimate, {own.text}."
        )
    else:
        fit.tree.attrs.update(evidence_attributes(whole))
        told = (
            f"Log Z is {whole.text} with all modes. {lacks}, so that its own estimate was "
            f"{own.text}; the masses add up to {by_mass.text}."
        )
    return Finding(Severity.FINE, told)


def log_evidence_by_mass(weighed: Weighed, seen: float = 1.0) -> list[Finding]:
    """Give a fit the log Z that the masses of its modes add up to, if that is better.

    It is if it is more precise, or if the draws had wrong shares of the modes, which a bridge from
    them goes with.  Where the two differ, the larger one counts, because the modes are a part of
    the posterior, and its error tells how far the other one is, unless the modes that the method
    has not seen explain that: then they are added.  Nothing happens if the fit has no log Z, or the
    integral of its prior is not known.

    Parameters
    ----------
    weighed
        The fit, whose log Z may change, and the integral of its density.
    seen
        Share of the masses that is in modes of which the method that has estimated the fit's log Z
        had draws.

    Returns
    -------
    list of Finding
        What is to be said about it.
    """
    fit = weighed.fit
    constant = log_prior_integral(fit)
    try:
        own = fit.log_evidence
    except DataError:
        return []
    if constant is None:
        return []
    by_mass = weighed.log_integral.minus(constant)
    doubtful = weighed.finding.severity > Severity.FINE
    if 0 < seen < 1:
        whole = LogEvidence(own.value - float(np.log(seen)), own.mcse)
        if _is_whole(whole, own, by_mass):
            return [_with_unseen(fit, whole, own, by_mass, 1 - seen, doubtful=doubtful)]
    if not agree(by_mass, own):
        smaller, larger = sorted((by_mass, own), key=lambda each: each.value)
        fit.tree.attrs.update(evidence_attributes(explaining(larger, smaller)))
        if larger is by_mass:
            fit.tree.attrs[BY_MASSES] = 1
        return [
            Finding(
                Severity.WARNING,
                "Log Z is less certain than its estimates say: the masses of the modes add up to "
                f"{by_mass.text}, and the method's own estimate is {own.text}. The larger one "
                "counts, because a part is no more than the whole, with an error that tells how "
                "far the other one is.",
                "Give it more time (--budget), and compare with another method.",
            )
        ]
    if not (doubtful or by_mass.mcse < own.mcse):
        return []
    why = "do not depend on shares of draws" if doubtful else "are more precise"
    _by_masses(fit, by_mass)
    return [
        Finding(
            Severity.FINE,
            f"Log Z is by the masses of the modes, which {why} and agree with the method's own "
            f"estimate: {by_mass.text} against {own.text}.",
        )
    ]


def with_small_modes(fit: Fit, table: ModeTable) -> list[Finding]:
    """Add small modes that a fit's draws lack to its log Z, if they have more than its error.

    An estimate with such an error is a bridge's, which stands for what the draws are in.

    Parameters
    ----------
    fit
        The fit, whose log Z may change.
    table
        Its modes.

    Returns
    -------
    list of Finding
        What is to be said about it.
    """
    known = [mode.local for mode in table.modes if mode.probability == 0 and mode.local is not None]
    lacking = sum(share for share, _ in known)
    try:
        own = fit.log_evidence
    except DataError:
        return []
    if not own.mcse < lacking < MATTERS:
        return []
    error = float(np.linalg.norm([error for _, error in known])) / (1 - lacking)
    whole = LogEvidence(own.value - float(np.log1p(-lacking)), float(np.hypot(own.mcse, error)))
    fit.tree.attrs.update(evidence_attributes(whole))
    return [
        Finding(
            Severity.FINE,
            f"Log Z is {whole.text} with all modes. The draws lack modes with {lacking:.1%} of the "
            f"mass, and the estimate from them is {own.text}.",
        )
    ]


def _by_masses(fit: Fit, log_evidence: LogEvidence) -> None:
    fit.tree.attrs.update(evidence_attributes(log_evidence))
    fit.tree.attrs[BY_MASSES] = 1
