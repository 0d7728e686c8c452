"""Whether the draws follow the path from base to target, and whether their weights are usable."""

from __future__ import annotations

import math
from collections.abc import Iterable
from statistics import NormalDist

import numpy as np

from harness import evidence
from harness.arrays import FloatArray
from harness.diagnosis.advice import advice_for
from harness.diagnosis.finding import Finding, Severity
from harness.errors import DataError
from harness.fit import Fit, TemperedDraws

PARETO_K_WARNING = 0.7
"""Upper end of the threshold min(1 - 1 / log10(S), 0.7) for S draws (Vehtari et al. 2024)."""
PARETO_K_PROBLEM = 1.0
"""From here on the weights have no mean (Vehtari et al. 2024)."""
ROUND_TRIPS_WARNING = 5
"""With fewer round trips per chain, base and target are hardly connected (our choice)."""
FALSE_ALARM = 1e-3
"""Probability that a sound run fails the check of base moments in any coordinate (our choice)."""
GAP_ERRORS = 3.0
"""A larger gap between the estimates of log Z, in standard errors, is not noise (our choice)."""
GAP_WARNING, GAP_PROBLEM = 0.1, 1.0
"""Gaps in nats from which on they matter, and from which on they are a problem (our choice)."""


def path(fit: Fit) -> Iterable[Finding]:
    """Check the draws along the path from base to target, if there are any."""
    try:
        tempered = fit.tempered
    except DataError:
        if fit.weighting == "across draws" and not fit.follows_path:
            # The weights come from a pass along a ladder, from particles, or from the base itself.
            yield from _target_weights(
                fit.drawn_log_weight,
                "Take a base nearer to the target. "
                "Or take more draws, particles or inverse temperatures, whichever it has.",
            )
        return
    if tempered.delta.shape[1] < 4:
        return
    advice = advice_for(fit)
    yield from _base_moments(fit, tempered)
    if tempered.delta.ndim == 2:
        yield from _target_weights(tempered.log_w1, advice.little_near_target)
    yield _round_trips(tempered, advice.better_path)
    if tempered.normalised_base:
        yield from _gap(tempered, advice.better_path)
        yield from _base_mass(fit, tempered)


def _target_weights(log_w1: FloatArray, what: str) -> Iterable[Finding]:
    k = evidence.pareto_k(log_w1)
    if math.isnan(k):
        return
    threshold = min(1 - 1 / math.log10(log_w1.size), PARETO_K_WARNING)
    shown = f"the weights' Pareto k is {k:.2f}"
    if k >= PARETO_K_PROBLEM:
        wrong = "Estimates have no known error, because a few draws dominate"
        yield Finding(Severity.PROBLEM, f"{wrong}: {shown}.", what)
    elif k >= threshold:
        wrong = "Errors are underestimated, because large weights are rare"
        yield Finding(Severity.WARNING, f"{wrong}: {shown}.", what)
    else:
        yield Finding(Severity.FINE, f"No draw dominates: {shown}, below {threshold:.2f}.")


def _round_trips(tempered: TemperedDraws, what: str) -> Finding:
    lower, upper = outer_tenths(tempered)
    trips = evidence.round_trips(tempered.inv_temp, lower=lower, upper=upper)
    of_chain = trips.reshape(len(trips), -1).sum(axis=1)
    stuck, mean = int(np.count_nonzero(of_chain == 0)), float(of_chain.mean())
    if stuck:
        return Finding(
            # Pseudo-samples take turns at the target, so not every one of them has to travel.
            Severity.PROBLEM if trips.ndim == 1 else Severity.WARNING,
            f"Some chains do not travel the path: in {stuck} of {len(of_chain)} chains the inverse "
            "temperature makes no round trip between base and target.",
            what,
        )
    if mean < ROUND_TRIPS_WARNING:
        return Finding(
            Severity.WARNING,
            f"Base and target are hardly connected: the inverse temperature makes only {mean:.1f} "
            "round trips per chain.",
            what,
        )
    sentence = f"The inverse temperature makes {mean:,.0f} round trips per chain."
    return Finding(Severity.FINE, sentence)


def outer_tenths(tempered: TemperedDraws) -> tuple[float, float]:
    """Return the ends of the lowest and of the highest tenth of the inverse temperatures."""
    start = tempered.log_g[0][0]
    tenth = (1 - start) / 10
    return start + tenth, 1 - tenth


def _gap(tempered: TemperedDraws, what: str) -> Iterable[Finding]:
    both = tempered.two_sided()
    if both is None:
        return
    gap, error = abs(float(both.gap.value)), float(both.gap.mcse)
    shown = (
        f"{both.forward.value:.2f} from the base's side, {both.backward.value:.2f} from the "
        "target's side"
    )
    if gap <= GAP_ERRORS * error or gap < GAP_WARNING:
        yield Finding(Severity.FINE, f"The two estimates of log Z agree: {shown}.")
        return
    yield Finding(
        Severity.PROBLEM if gap > GAP_PROBLEM else Severity.WARNING,
        "Log Z is unreliable, because the two directions along the path disagree: "
        f"{shown} (standard error of the gap {error:.2f}).",
        what,
    )


def _base_mass(fit: Fit, tempered: TemperedDraws) -> Iterable[Finding]:
    """Say how much of the base the path reaches, if it does not reach nearly all of it."""
    mass = tempered.base_mass
    if mass.nearly_whole:
        return
    percent = f"{100 * mass.share:.2g}" if mass.share < 0.995 else f"{100 * mass.share:.1f}"
    if fit.settings.get("base") is None:
        where, part = "prior", "has a likelihood above zero"
    else:
        where, part = "base", "lies where the target's density is above zero"
    sentence = (
        f"{percent} % of the {where} {part}; the path starts from that part alone, and log Z "
        f"accounts for the rest (log share {mass.value:.2f}, standard error {mass.mcse:.2f})."
    )
    islands = "If that part is made of islands, chains do not cross between them: compare chains."
    if mass.mcse > GAP_WARNING:
        rough = "Log Z is rough, because the share of the base that it needs is known only roughly"
        what = f"Take a {where} with less mass outside that part. {islands}"
        yield Finding(Severity.WARNING, f"{rough}: {sentence}", what)
    else:
        yield Finding(Severity.FINE, sentence, islands)


def _base_moments(fit: Fit, tempered: TemperedDraws) -> Iterable[Finding]:
    """Compare means under the base with the Gaussian base's own."""
    score = base_scores(fit, tempered)
    if score is None:
        return
    worst = float(score.max())
    k = evidence.pareto_k(tempered.log_w0)
    tail = "" if math.isnan(k) else f" (Pareto k of the base's weights {k:.2f})"
    if worst > largest_base_score(score.size):
        far = f"{worst:.1f}" if worst < 1e4 else f"{worst:.0e}"
        yield Finding(
            Severity.PROBLEM,
            f"The draws do not follow the path: means under the base are up to {far} standard "
            f"errors away from its known mean{tail}.",
            advice_for(fit).better_path,
        )
    else:
        yield Finding(
            Severity.FINE,
            "The draws follow the path at the base's end: means under the base are within "
            f"{worst:.1f} standard errors of its known mean{tail}.",
        )


def largest_base_score(count: int) -> float:
    """Return the largest of ``count`` scores that a sound run may have: see :data:`FALSE_ALARM`."""
    return NormalDist().inv_cdf(1 - FALSE_ALARM / 2 / count)


def base_scores(fit: Fit, tempered: TemperedDraws) -> FloatArray | None:
    """Return how far means under the Gaussian base are from its known mean, in standard errors.

    Second moments are left out, because w0 grows in the base's tails and their errors are unknown.

    Returns
    -------
    FloatArray or None
        Shape (D,), not negative; None if there is no Gaussian base, or if the path reaches only a
        part of it and the mean of that part is not known.
    """
    settings = fit.settings
    base = settings.get("base")
    known = None if base is None else settings.get("base_mean", base[0])
    if known is None:
        return None
    mean = np.asarray(known, dtype=np.float64)
    draws = _coordinates(fit, tempered.delta.ndim)
    if draws.shape[-1] != mean.size:
        return None
    score = _scores(draws, tempered, mean)
    positive = (draws > 0).reshape(-1, mean.size).all(axis=0)
    if positive.any():
        # The Gaussian base of a positive parameter is a Gaussian in its logarithm.  The draws do
        # not say which parameters are constrained, so the nearer of the two counts.
        logged = _scores(np.log(draws[..., positive]), tempered, mean[positive])
        score[positive] = np.minimum(score[positive], logged)
    return score


def _scores(draws: FloatArray, tempered: TemperedDraws, mean: FloatArray) -> FloatArray:
    estimate = evidence.weighted_expectation(draws, tempered.log_w0)
    score: FloatArray = np.abs(evidence.z_scores(estimate, mean))
    return score


def _coordinates(fit: Fit, axes: int) -> FloatArray:
    """Stack all parameters in Stan's column-major order: (chains, draws, [N,] D)."""
    raw = fit.raw
    leading = ("chain", "draw", "pseudo_sample")[:axes]
    columns = []
    for name in fit.parameters:
        variable = raw[name]
        inner = [dim for dim in variable.dims if dim not in leading]
        array = variable.transpose(*leading, *reversed(inner)).to_numpy()
        columns.append(array.reshape(*array.shape[:axes], -1))
    # One layout in memory, so that sums are the same to the last digit after save and load.
    return np.ascontiguousarray(np.concatenate(columns, axis=-1), dtype=np.float64)
