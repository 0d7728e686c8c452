"""Whether plain NUTS has missed something, by a pilot's particles."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.diagnosis import Severity
from harness.user.compare import compare


def test_comparison_of_nuts_and_a_pilot() -> None:
    rng = np.random.default_rng(3)
    particles = {"x": rng.normal(size=(16, 32))}
    even = np.zeros(16)
    common: dict[str, Any] = {"origin": "the prior", "log_evidence_error": 0.1}
    same = {"x": rng.normal(size=(4, 500))}
    sound = compare(same, particles, even, **common)
    assert not sound.missed
    assert [each.severity for each in sound.findings] == [Severity.FINE]
    half = {"x": np.abs(same["x"])}
    missed = compare(half, particles, even, **common)
    assert missed.missed
    assert "x < " in missed.findings[0].sentence
    apart = {"x": same["x"] + np.array([0, 0, 5, 5])[:, None]}
    assert "disagree" in compare(apart, particles, even, **common).findings[0].sentence
    rough = compare(half, particles, even, origin="the prior", log_evidence_error=2.0)
    assert not rough.missed
    assert "too rough" in rough.findings[0].sentence


def test_a_difference_within_a_large_error_is_no_agreement() -> None:
    """Populations of a pilot that found one mode or the other, by chance: 0.5 ± 0.13 below 0."""
    rng = np.random.default_rng(4)
    signs = np.where(np.arange(16) < 8, -1, 1)[:, None]
    particles = {"x": signs * np.abs(rng.normal(size=(16, 32)))}
    nuts = {"x": np.abs(rng.normal(size=(4, 500)))}
    common: dict[str, Any] = {"origin": "the prior", "log_evidence_error": 0.5}
    unsure = compare(nuts, particles, np.zeros(16), **common)
    assert not unsure.missed
    assert [each.severity for each in unsure.findings] == [Severity.WARNING]
    assert "too rough" in unsure.findings[0].sentence


def test_a_sound_run_is_not_called_off() -> None:
    """One false alarm in 1,000 is meant; 3 of 200 would have probability 0.001."""
    rng = np.random.default_rng(5)
    alarms = 0
    for _ in range(200):
        nuts = {"x": rng.normal(size=(4, 100)), "y": rng.exponential(size=(4, 100, 2))}
        particles = {"x": rng.normal(size=(16, 16)), "y": rng.exponential(size=(16, 16, 2))}
        weight = rng.normal(0, 0.3, size=16)
        compared = compare(nuts, particles, weight, origin="it", log_evidence_error=0.1)
        # Chains of 100 draws agree: R-hat above 1.1 is not what is tested.
        alarms += any(
            "probability" in each.sentence and compared.missed for each in compared.findings
        )
    assert alarms < 3
