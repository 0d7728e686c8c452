"""The forms that `nox -s bench` compares have the density of the shipped program."""

from __future__ import annotations

import numpy as np
import pytest
from bench.forms import COMPARISONS, SHIPPED, Comparison
from stan_density import StanDensity

from harness.folders import shipped
from harness.models.evidence_targets import EVIDENCE_TARGETS
from harness.models.hard import TARGETS


def smallest(model: str) -> dict[str, Comparison]:
    """Return the first comparison of each program of a model."""
    by_variant: dict[str, Comparison] = {}
    for comparison in COMPARISONS[model]():
        by_variant.setdefault(comparison.variant, comparison)
    return by_variant


SMALLEST = {
    (model, variant): comparison
    for model in COMPARISONS
    for variant, comparison in smallest(model).items()
}
CASES = [
    (model, variant, form)
    for (model, variant), comparison in SMALLEST.items()
    for form in comparison.programs
    if form != SHIPPED
]


def test_every_program_is_compared() -> None:
    ordinary = {
        make().folder.name for make in {**TARGETS, **EVIDENCE_TARGETS}.values()
    }  # written to be read
    programs = {
        (path.parent.name, path.stem)
        for path in shipped("stan").glob("*/*.stan")
        if path.parent.name not in ordinary
    }
    assert set(SMALLEST) == programs
    assert {case[:2] for case in CASES} == programs


@pytest.mark.parametrize(("model", "variant", "form"), CASES)
def test_form_has_the_shipped_density(model: str, variant: str, form: str) -> None:
    comparison = SMALLEST[model, variant]
    ours, theirs = (
        StanDensity(comparison.programs[name], comparison.data) for name in (SHIPPED, form)
    )
    assert ours.dimension == theirs.dimension
    inside, spread = comparison.inside, 0.7
    centre = np.zeros(ours.dimension)
    if inside is not None:
        centre, spread = ours.unconstrain(inside), 0.03
    for point in centre + np.random.default_rng(1).normal(0, spread, (5, ours.dimension)):
        (value, slope), (other, other_slope) = ours(point), theirs(point)
        assert inside is None or np.isfinite(value)
        assert other == pytest.approx(value, rel=1e-10)
        np.testing.assert_allclose(other_slope, slope, rtol=1e-7, atol=1e-7 * np.abs(slope).max())
