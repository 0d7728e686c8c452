"""Every hard target: its tempered forms, its truth's form, its pages."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import xarray as xr
from doc_blocks import DOCS
from stan_density import StanDensity

from harness.forms.continuous_tempering import tempering_data
from harness.model import Model
from harness.models.hard import TARGETS
from harness.temper import tempered_model

LOG_ZETA = -1.7


@cache
def written(name: str) -> tuple[Model, Model]:
    """Return a target and what is made of its program."""
    model = TARGETS[name]()
    return model, tempered_model(model.folder / "target.stan", model.data)


@pytest.fixture(params=TARGETS)
def models(request: pytest.FixtureRequest) -> tuple[Model, Model]:
    return written(request.param)


def test_a_target_is_what_its_program_says(models: tuple[Model, Model]) -> None:
    target, tempered = models
    assert tempered.parameters == target.parameters
    assert tempered.dimension == target.dimension
    assert tempered.own_base == target.own_base
    assert tempered.questions == ()
    assert (DOCS / "hard" / f"{target.folder.name}.md").is_file()


def test_the_path_leads_from_prior_to_target(models: tuple[Model, Model]) -> None:
    """At inverse temperature 1 the written program has the target's density, less log zeta."""
    _, tempered = models
    whole = StanDensity(tempered.program("target"), tempered.data)
    prior = StanDensity(tempered.program("prior"), tempered.data)
    aliases = tempered.aliases["joint_tempering"]
    path = []
    for inv_temp in (0.0, 0.4, 1.0):
        data = tempering_data(tempered, log_zeta=LOG_ZETA)
        data |= {"sample_inv_temp": 0, "fixed_inv_temp": [inv_temp]}
        named = {aliases.get(name, name): value for name, value in data.items()}
        path.append(StanDensity(tempered.program("joint_tempering"), {**tempered.data, **named}))
    for point in np.random.default_rng(1).normal(0, 0.5, (3, tempered.dimension)):
        zero, one = prior.value(point), whole.value(point) - LOG_ZETA
        expected = [zero, 0.6 * zero + 0.4 * one, one]
        scale = np.max(np.abs(expected))
        found = [density.value(point) for density in path]
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-13 * scale)


def test_its_events_are_of_the_right_shape(models: tuple[Model, Model]) -> None:
    target, tempered = models
    test = target.truth.mode_test
    if test is None:
        pytest.skip("no event of known probability")
    value, error = test.probabilities
    assert value.shape == error.shape == (len(test.names),)
    rng = np.random.default_rng(2)
    shapes = StanDensity(tempered.program("target"), tempered.data).batched.shapes
    draws = xr.Dataset(
        {
            name: (("chain", "draw", *(f"{name}_{axis}" for axis in range(len(shape)))), values)
            for name, shape in shapes.items()
            for values in [rng.normal(size=(2, 50, *shape))]
        }
    )
    happens = test.happens(draws)
    assert happens.shape == (2, 50, len(test.names))
    assert float(happens.min()) >= 0
    assert float(happens.max()) <= 1
    if test.exclusive:
        np.testing.assert_allclose(happens.sum(axis=-1), 1)
        # Rounded numbers add up to 1 but for as many halves of the last digit.
        assert abs(value.sum() - 1) <= 4 * np.sqrt(np.sum(error**2)) + 1e-12
