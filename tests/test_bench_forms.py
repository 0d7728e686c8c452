"""The forms that `nox -s bench` compares have the density of the shipped program."""

from __future__ import annotations

import numpy as np
import pytest
from bench.forms import COMPARISONS, SHIPPED, Comparison
from stan_density import StanDensity

from harness.paths import shipped


def smallest(model: str) -> Comparison:
    return next(COMPARISONS[model]())


CASES = [(model, form) for model in COMPARISONS for form in smallest(model).programs]


def test_every_model_is_compared() -> None:
    models = {path.parent.name for path in shipped("stan").glob("*/pseudo_extended.stan")}
    assert set(COMPARISONS) == models
    assert all(len(smallest(model).programs) > 2 for model in models)


@pytest.mark.parametrize(("model", "form"), [case for case in CASES if case[1] != SHIPPED])
def test_form_has_the_shipped_density(model: str, form: str) -> None:
    comparison = smallest(model)
    ours, theirs = (
        StanDensity(comparison.programs[name], comparison.data) for name in (SHIPPED, form)
    )
    assert ours.dimension == theirs.dimension
    for point in np.random.default_rng(1).normal(0, 0.7, (5, ours.dimension)):
        (value, slope), (other, other_slope) = ours(point), theirs(point)
        assert other == pytest.approx(value, rel=1e-10)
        np.testing.assert_allclose(other_slope, slope, rtol=1e-7, atol=1e-7 * np.abs(slope).max())
