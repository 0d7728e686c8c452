"""Whether plain NUTS has missed modes: its draws against the particles of a pilot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from harness import weights
from harness.diagnosis import R_HAT_PROBLEM, Finding, Severity
from harness.weights import FloatArray, normalised_weights

FALSE_ALARM = 1e-3
"""Probability that a sound run of NUTS is called off, over all comparisons."""
LEAST_SHARE = 0.1
"""Difference of two probabilities that matters."""
ROUGH = 1.0
"""Error of the pilot's log Z, in nats, from which on its particles say nothing."""
_DECILES = np.linspace(0.1, 0.9, 9)


@dataclass(frozen=True)
class Comparison:
    """What the comparison says.

    Attributes
    ----------
    missed
        Whether NUTS is not to be relied on.
    findings
        Why, in plain sentences.
    """

    missed: bool
    findings: tuple[Finding, ...]


@dataclass(frozen=True)
class _Difference:
    """Probability that a coordinate lies below a threshold, by either."""

    name: str
    threshold: float
    nuts: float
    nuts_error: float
    pilot: float
    pilot_error: float

    @property
    def size(self) -> float:
        return abs(self.nuts - self.pilot)

    @property
    def score(self) -> float:
        error = float(np.hypot(self.nuts_error, self.pilot_error))
        return self.size / error if error > 0 else (np.inf if self.size else 0.0)


def compare(
    nuts: Mapping[str, FloatArray],
    particles: Mapping[str, FloatArray],
    log_weight: FloatArray,
    *,
    origin: str,
    log_evidence_error: float,
) -> Comparison:
    """Compare NUTS with a pilot, parameter by parameter, at nine quantiles of both together.

    The error of NUTS's share of draws below a threshold takes autocorrelation into account; that
    of the particles' is the spread of the populations, which are independent.

    Parameters
    ----------
    nuts
        Draws by parameter, shape (chains, draws, ...).
    particles
        Particles by parameter, shape (populations, each, ...).
    log_weight
        Log weight of each population, shape (populations,).
    origin
        Where the particles came from, in words.
    log_evidence_error
        Standard error of the pilot's log Z.
    """
    chains = len(next(iter(nuts.values())))
    r_hat, worst = _largest_r_hat(nuts)
    findings: list[Finding] = []
    disagree = r_hat > R_HAT_PROBLEM
    if disagree:
        findings.append(
            Finding(
                Severity.WARNING,
                f"Plain NUTS misses modes or does not move between them: its {chains} chains "
                f"disagree (R-hat of {worst} is {r_hat:.2f}).",
                "Use the tempered fit.",
            )
        )
    if not log_evidence_error < ROUGH:
        findings.append(
            Finding(
                Severity.WARNING,
                f"The pilot is too rough to tell whether plain NUTS misses modes (the standard "
                f"error of its log Z is {log_evidence_error:.1f}).",
                "Run method ct or pe, and compare.",
            )
        )
        return Comparison(disagree, tuple(findings))
    share = normalised_weights(log_weight)
    found = [
        each
        for name, values in nuts.items()
        for each in _differences(name, values, particles[name], share)
    ]
    largest = _largest_score(max(len(found), 1), len(share) - 1)
    apart = [each for each in found if each.score > largest and each.size > LEAST_SHARE]
    if apart:
        most = max(apart, key=lambda each: each.size)
        findings.append(
            Finding(
                Severity.WARNING,
                f"Plain NUTS misses part of the posterior: {most.name} < {most.threshold:.4g} has "
                f"probability {most.nuts:.2f} by its draws, but {most.pilot:.2f} ± "
                f"{most.pilot_error:.2f} by a pilot's particles from {origin}.",
                "Use the tempered fit.",
            )
        )
    elif not disagree and (unsure := [each for each in found if each.size > LEAST_SHARE]):
        most = max(unsure, key=lambda each: each.size)
        findings.append(
            Finding(
                Severity.WARNING,
                f"The pilot is too rough to tell whether plain NUTS misses modes: {most.name} < "
                f"{most.threshold:.4g} has probability {most.nuts:.2f} ± {most.nuts_error:.2f} by "
                f"NUTS, and {most.pilot:.2f} ± {most.pilot_error:.2f} by the pilot's particles.",
                "Run method ct or pe, and compare.",
            )
        )
    elif not disagree:
        biggest = max((each.size for each in found), default=0.0)
        number = sum(values.size for values in particles.values())
        count = len(share) * next(iter(particles.values())).shape[1]
        findings.append(
            Finding(
                Severity.FINE,
                f"No mode was found that plain NUTS misses: its {chains} chains agree (R-hat at "
                f"most {r_hat:.3f}), and with them {count} particles that a pilot brought from "
                f"{origin} (probabilities of {number // count} coordinates differ by {biggest:.2f} "
                "at most).",
            )
        )
    return Comparison(bool(disagree or apart), tuple(findings))


def _largest_score(comparisons: int, freedom: int) -> float:
    """Quantile of Student's t by the first term of its expansion about the normal one."""
    z = NormalDist().inv_cdf(1 - FALSE_ALARM / 2 / comparisons)
    return z + (z**3 + z) / (4 * freedom)


def _largest_r_hat(nuts: Mapping[str, FloatArray]) -> tuple[float, str]:
    largest = {}
    for name, values in nuts.items():
        r_hat = np.asarray(weights.r_hat(values))
        # A chain that stands still has none.
        largest[name] = float(np.nanmax(r_hat)) if not np.isnan(r_hat).all() else np.nan
    known = {name: value for name, value in largest.items() if not np.isnan(value)}
    if not known:
        return np.inf, next(iter(nuts))
    name = max(known, key=lambda each: known[each])
    return known[name], name


def _differences(
    name: str, nuts: FloatArray, particles: FloatArray, share: FloatArray
) -> list[_Difference]:
    found = []
    draws = nuts.reshape(*nuts.shape[:2], -1)
    points = particles.reshape(*particles.shape[:2], -1)
    populations = len(share)
    for column in range(draws.shape[2]):
        drawn, there = draws[..., column], points[..., column]
        thresholds = np.concatenate(
            [np.quantile(drawn, _DECILES), np.quantile(there[share > 0], _DECILES)]
        )
        # Midway between two of the quantiles, where modes are apart, as well as on them.
        for threshold in np.unique(np.sort(thresholds)[::2]):
            below = drawn < threshold
            nuts_share = weights.expectation(below.astype(np.float64))
            of_population = (there < threshold).mean(axis=1)
            pilot = float(share @ of_population)
            spread = np.square(share) @ np.square(of_population - pilot)
            error = float(np.sqrt(spread * populations / (populations - 1)))
            # Neither error falls below that of one particle, also where all are on one side.
            floor = 1.0 / there.size
            nuts_error = float(nuts_share.mcse)
            found.append(
                _Difference(
                    name if draws.shape[2] == 1 else f"{name}[{_index(nuts.shape[2:], column)}]",
                    float(threshold),
                    float(nuts_share.value),
                    nuts_error if np.isfinite(nuts_error) else 0.0,
                    pilot,
                    max(error, floor),
                )
            )
    return found


def _index(shape: tuple[int, ...], column: int) -> str:
    return ",".join(str(i + 1) for i in np.unravel_index(column, shape))
