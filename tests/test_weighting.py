"""How raw draws are weighted: what a fit remembers, what is seen of one that does not."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from harness.errors import DataError
from harness.fit import Fit, Weighting, build_fit, target_draws

CHAINS, DRAWS, N = 2, 5, 3
X = np.random.default_rng(1).normal(size=(CHAINS, DRAWS, N))
WITHIN = {"x": X, "log_weight": np.log(np.random.default_rng(2).uniform(size=X.shape))}
ACROSS = {"x": X[..., 0], "log_w1": np.log(np.random.default_rng(3).uniform(size=(CHAINS, DRAWS)))}


def fit_of(extended: Mapping[str, np.ndarray] | None, weighting: Weighting | None) -> Fit:
    return build_fit(
        posterior={"x": X[..., 0]},
        extended=extended,
        sample_stats={"lp": np.zeros((CHAINS, DRAWS))},
        constant_data={},
        attrs={"method": "a form", "model": "a model", "settings": {}},
        weighting=weighting,
        pseudo_samples=extended is WITHIN,
    )


@pytest.mark.parametrize(
    ("extended", "weighting"),
    [(None, "unweighted"), (WITHIN, "within draws"), (ACROSS, "across draws")],
)
def test_a_fit_remembers_how_it_is_weighted(
    extended: Mapping[str, np.ndarray] | None, weighting: Weighting, tmp_path: Path
) -> None:
    fit = fit_of(extended, weighting)
    fit.save(tmp_path / "fit.nc")
    loaded = Fit.load(tmp_path / "fit.nc")
    assert fit.weighting == loaded.weighting == loaded.tree.attrs["weighting"] == weighting
    del loaded.tree.attrs["weighting"]  # as of fits that were stored before it was remembered
    assert loaded.weighting == weighting
    assert loaded.pseudo_samples == (N if extended is WITHIN else 1)
    weights = {"within draws": "log_weight", "across draws": "log_w1"}
    expected = np.zeros((CHAINS, DRAWS)) if extended is None else extended[weights[weighting]]
    assert np.array_equal(loaded.log_weight, expected)


def test_what_is_remembered_counts_and_not_the_names_of_variables() -> None:
    both = WITHIN | {"log_w1": np.zeros((CHAINS, DRAWS, N))}
    assert (
        build_fit(
            posterior={"x": X[..., 0]},
            extended=both,
            sample_stats={},
            constant_data={},
            attrs={"settings": {}},
            weighting="within draws",
        ).weighting
        == "within draws"
    )


@pytest.mark.parametrize("weighting", ["within draws", "across draws"])
def test_weights_that_are_missing_are_refused(weighting: Weighting) -> None:
    for extended in (None, {"x": X}):
        with pytest.raises(DataError, match=weighting):
            fit_of(extended, weighting)


def test_draws_of_the_target_are_chosen_by_their_weights() -> None:
    """Frequencies against the weights' own expectations, within 4.5 standard errors."""
    rng = np.random.default_rng(4)
    times = 4000
    x = np.broadcast_to(np.array([1.0, 5.0, 9.0]), (1, times, 3))
    weight = np.array([0.2, 0.5, 0.3])
    chosen = target_draws({"x": x}, np.log(np.broadcast_to(weight, x.shape)), "within draws", rng)
    assert chosen["x"].shape == (1, times)
    for value, probability in zip((1.0, 5.0, 9.0), weight, strict=True):
        error = np.sqrt(probability * (1 - probability) / times)
        assert abs(np.mean(chosen["x"] == value) - probability) < 4.5 * error
    # Across draws each chain is resampled by itself: a draw without weight is never kept.
    draws = np.arange(2.0 * times).reshape(2, times)
    log_weight = np.where(draws % 2 == 0, 0.0, -np.inf)
    kept = target_draws({"x": draws}, log_weight, "across draws", rng)["x"]
    assert np.all(kept % 2 == 0)
    assert np.all(kept[0] < times)
    assert np.all(kept[1] >= times)
    assert target_draws({"x": draws}, log_weight, "unweighted", rng)["x"] is draws
