"""Log evidence from a given fit: the estimate, what it rests on, and what is said about it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from harness import evidence
from harness.diagnosis import Finding, Severity
from harness.evidence import LogEvidence
from harness.user.bridges import LABELS, Bridges
from harness.user.result import UserFit


@dataclass(frozen=True)
class GivenEvidence:
    """Log evidence of a program, and what tells whether it can be trusted.

    Attributes
    ----------
    name
        Name of the program.
    shape
        Chains, draws in each, and unconstrained dimensions of the posterior's draws.
    integral
        Log of the integral of the program's density with all its constants; None if it could not
        be estimated.
    constant
        Log of the integral of the prior as it is written; None if it is not known.
    bridges
        The bridges; None if none could be made.
    refusals
        Reasons why the bridge's log Z is not to be used; empty if there are none.
    findings
        What else there is to know, the worst first.
    tempered
        The run that followed where the bridge was refused; None if there was none.
    fit
        The fit that the command sampled itself, if it was given none.
    improper
        Whether the prior is improper, so that there is no evidence.
    error
        Error of log Z that was asked for.
    seconds
        Seconds of processor time.
    """

    name: str
    shape: tuple[int, int, int]
    integral: LogEvidence | None
    constant: LogEvidence | None
    bridges: Bridges | None
    refusals: tuple[str, ...]
    findings: tuple[Finding, ...]
    tempered: UserFit | None = None
    fit: UserFit | None = None
    improper: bool = False
    error: float | None = None
    seconds: float = field(default=0.0, compare=False)

    @property
    def log_evidence(self) -> LogEvidence | None:
        """Log Z for the normalised prior; None if it is refused."""
        if not self.refusals:
            if self.integral is None or self.constant is None:
                return None
            return self.integral.minus(self.constant)
        if self.tempered is None or any(
            each.severity == Severity.PROBLEM for each in self.tempered.diagnosis
        ):
            return None
        return self.tempered.log_evidence

    @property
    def method(self) -> str:
        """What gave log Z, in words."""
        if not self.refusals and self.bridges is not None:
            return f"bridge, {self.bridges.chosen.label}"
        if self.log_evidence is None or self.tempered is None:
            return "none"
        word = "pilots" if self.tempered.method == "nuts" else self.tempered.method
        return f"tempered, {word.replace('_', ' ')}"

    @property
    def flagged(self) -> bool:
        """Whether log Z is refused, or there are warnings about it."""
        return bool(self.refusals) or any(e.severity > Severity.FINE for e in self.findings)

    @property
    def times_as_many(self) -> float | None:
        """How many times as many draws would reach the wanted error; None if none was asked for."""
        if self.error is None or self.bridges is None or self.integral is None:
            return None
        return evidence.draws_for_error(self.integral, self.error)

    def as_json(self) -> dict[str, Any]:
        """Return everything as plain data; NaN and infinite numbers become None."""
        return {
            "model": self.name,
            "log_evidence": _estimate(self.log_evidence),
            "method": self.method,
            "chains": self.shape[0],
            "draws": self.shape[1],
            "dimension": self.shape[2],
            "log_integral": _estimate(self.integral),
            "log_prior_integral": _estimate(self.constant),
            "refusals": list(self.refusals),
            "bridges": [] if self.bridges is None else _rows(self.bridges),
            "reshuffled_ratio": None
            if self.bridges is None or self.bridges.reshuffled is None
            else _number(self.bridges.reshuffled.ratio),
            "times_as_many_draws": self.times_as_many,
            "findings": [
                {
                    "severity": each.severity.name.lower(),
                    "sentence": each.sentence,
                    "what_to_try": each.what_to_try,
                }
                for each in self.findings
            ],
            "tempered": None if self.tempered is None else self.tempered.as_json(),
            "seconds": round(self.seconds, 3),
        }

    def as_text(self) -> str:
        """Return log Z, the bridges and the findings, for people."""
        found, (chains, draws, dimension) = self.log_evidence, self.shape
        lines = []
        if found is None:
            lines.append(f"Log evidence of {self.name}: refused")
        else:
            lines.append(f"Log evidence of {self.name}: {found.text} ({self.method})")
        lines += [f"Refused: {reason}." for reason in self.refusals]
        if self.refusals and self.tempered is None:
            lines.append("--temper auto goes on with a tempered run.")
        if self.refusals and self.tempered is not None:
            ending = "which gave log Z." if found is not None else "which could not give log Z."
            lines.append(f"The bridge was refused, so a tempered run followed, {ending}")
        lines += ["", f"{chains} x {draws:,} draws in {dimension} unconstrained dimensions"]
        if self.integral is not None:
            lines.append(
                f"Integral of the program's density: exp({self.integral.value:.4f} ± "
                f"{self.integral.mcse:.4f}), with all constants, also those that ~ drops"
            )
        if self.bridges is not None:
            lines += ["", *_table(self.bridges)]
            lines += _reshuffled(self.bridges)
        if self.times_as_many is not None and self.integral is not None:
            lines.append(_more(self.times_as_many, self.error or 0.0, draws))
        lines += ["", *(f"{each.severity.name:<8}{each}" for each in self.findings)]
        if self.tempered is not None:
            lines += ["", "The tempered run:"]
            lines += [f"{each.severity.name:<8}{each}" for each in self.tempered.diagnosis]
        return "\n".join(lines)


def _table(bridges: Bridges) -> list[str]:
    width = max(map(len, LABELS.values()))
    head = ("log Z", "error", "k draws", "k proposal", "overlap", "halves")
    lines = [" " * width + "".join(f"{name:>12}" for name in head)]
    for each in bridges.each:
        k = [f"{value:.2f}" if math.isfinite(value) else "–" for value in each.k]
        row = (
            *(f"{each.log_evidence.value:.4f}", f"{each.log_evidence.mcse:.4f}", *k),
            *(f"{each.overlap:.3f}", f"{each.score:.1f} s.e."),
        )
        used = "  used" if each is bridges.chosen else ""
        lines.append(f"{each.label:<{width}}" + "".join(f"{text:>12}" for text in row) + used)
    return lines


def _reshuffled(bridges: Bridges) -> list[str]:
    if bridges.reshuffled is None:
        return []
    ratio, too_wide = bridges.reshuffled
    ending = ", so the larger error is used" if too_wide else ""
    return [
        f"Bridges from reshuffled blocks of the draws spread {ratio:.2f} times as widely as their "
        f"errors say{ending}."
    ]


def _more(times: float, error: float, draws: int) -> str:
    if times <= 1:
        return f"An error of {error:g} is reached."
    return (
        f"An error of {error:g} needs about {times:.3g} times as many draws: "
        f"{math.ceil(times * draws):,} in each chain."
    )


def _rows(bridges: Bridges) -> list[dict[str, Any]]:
    return [
        {
            "proposal": each.proposal,
            "log_integral": _estimate(each.log_evidence),
            "k_draws": _number(each.k[0]),
            "k_proposal": _number(each.k[1]),
            "overlap": _number(each.overlap),
            "halves": [_estimate(half.log_evidence) for half in each.halves],
            "used": each is bridges.chosen,
        }
        for each in bridges.each
    ]


def _estimate(found: LogEvidence | None) -> dict[str, float | None] | None:
    return None if found is None else {"mean": _number(found.value), "mcse": _number(found.mcse)}


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
