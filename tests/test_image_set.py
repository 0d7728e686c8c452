"""Many images side by side: each row against the Stan program, and log Z against quadrature."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from experiments.images import over_images
from experiments.images.image_set import ImageSet, image_set, set_of
from experiments.images.over_images import (
    ANNEALED_IMPORTANCE_OVER_IMAGES,
    BIDIRECTIONAL_OVER_IMAGES,
    GIBBS_TEMPERING_OVER_IMAGES,
    JOINT_HMC_OVER_IMAGES,
    JOINT_TEMPERING_OVER_IMAGES,
    SIMULATED_TEMPERING_OVER_IMAGES,
)
from harness.arrays import FloatArray
from harness.errors import DataError
from harness.fit import Fit
from harness.model.density import TargetDensity
from harness.models.images import ImageAutoencoder, ImageDecoder, ImageEncoder, Layer
from harness.models.shapes import Banana
from harness.samplers.kernels import Hmc
from harness.samplers.ladders import sigmoidal_ladder

LADDER = sigmoidal_ladder(60)


@cache
def made() -> tuple[ImageSet, FloatArray]:
    """Three images of 12 pixels, generated from two latent dimensions, and these."""
    rng = np.random.default_rng(3)

    def layer(inputs: int, outputs: int) -> Layer:
        return Layer(rng.normal(size=(inputs, outputs)), 0.3 * rng.normal(size=outputs))

    decoder = ImageDecoder((layer(2, 5), layer(5, 6), layer(6, 12)))
    # An encoder that has seen nothing: means near 0, standard deviations near 1.
    small = Layer(0.1 * rng.normal(size=(6, 2)), np.zeros(2))
    encoder = ImageEncoder((layer(12, 5), layer(5, 6)), small, small)
    drawn = decoder.generate(rng, 3)
    images = image_set(ImageAutoencoder(decoder, encoder), drawn.image, seed=1)
    return images, images.whitened(drawn.latent)


def truth() -> FloatArray:
    images, _ = made()
    return np.array([images.decoder.log_evidence(image) for image in images.image])


def test_every_row_is_the_stan_program_of_its_image_in_whitened_coordinates() -> None:
    pytest.importorskip("stanli", reason="stanli evaluates Stan programs with no compile")
    images, _ = made()
    points = 2 * np.random.default_rng(0).normal(size=(7, 2))
    value, gradient = images(points)
    again = images(np.tile(points, (111, 1))[:700])  # more rows than go through together
    np.testing.assert_allclose(again[0][693:], images(points)[0], rtol=1e-12)
    for row, point in enumerate(points):
        number = row % 3
        model, base = images.single(number, "one")
        z = base.mean + np.sqrt(np.diag(base.covariance)) * point
        stan, slope = TargetDensity(model)(z[None])
        scale = images.sd[number]
        expected = stan[0] + np.log(scale).sum() - base.log_zeta
        assert value[row] == pytest.approx(expected, rel=1e-12, abs=1e-12)
        np.testing.assert_allclose(gradient[row], scale * slope[0], rtol=1e-10, atol=1e-12)


def test_exact_draws_are_whitened_by_their_own_image() -> None:
    images, white = made()
    for number in range(3):
        _, base = images.single(number, "one")
        np.testing.assert_allclose(
            base.mean + base.cholesky @ white[number],
            images.mean[number] + images.sd[number] * white[number],
        )


def check(fit: Fit) -> None:
    """Log Z of every image and of all together; 4 standard errors, and those small."""
    mcse = float(fit.tree.attrs["log_evidence_mcse"])
    assert mcse < 0.3
    assert abs(fit.log_evidence.value - truth().sum()) < 4 * mcse
    each = np.asarray(fit.tree.attrs["image_log_evidence"])
    assert each.sum() == pytest.approx(fit.log_evidence.value)
    # An image whose log Z were another's would be off by more than this.
    assert np.abs(each - truth()).max() < 0.5 < np.abs(np.diff(truth())).min()
    assert fit.posterior["z"].shape[-2:] == (3, 2)
    assert fit.gradients > 0
    assert fit.seconds > 0


PATH: dict[str, Any] = {"kernel": Hmc(4), "warmup": 200, "draws": 800, "chains": 2}


@pytest.mark.parametrize(
    ("sample", "settings"),
    [
        (GIBBS_TEMPERING_OVER_IMAGES.sample, PATH),
        (SIMULATED_TEMPERING_OVER_IMAGES.sample, PATH | {"ladder": sigmoidal_ladder(20)}),
        (
            SIMULATED_TEMPERING_OVER_IMAGES.sample,
            PATH | {"ladder": sigmoidal_ladder(20), "log_weights": np.zeros(20)},
        ),
        (JOINT_HMC_OVER_IMAGES.sample, PATH | {"kernel": Hmc(8), "draws": 1600}),
        (ANNEALED_IMPORTANCE_OVER_IMAGES.sample, {"ladder": LADDER, "chains": 100}),
    ],
    ids=["gibbs", "simulated", "simulated, flat", "joint", "annealed"],
)
def test_all_images_at_once_give_the_evidence_of_each(
    sample: Callable[..., Fit], settings: dict[str, Any]
) -> None:
    images, _ = made()
    fit = sample(images.model("three"), seed=4, **settings)
    check(fit)
    if "part_log_evidence" in fit.tree.attrs:
        parts = np.asarray(fit.tree.attrs["part_log_evidence"])
        assert parts.shape == (3 * 12,)
        np.testing.assert_allclose(parts[11::12], fit.tree.attrs["image_log_evidence"])


def test_images_in_blocks_give_the_evidence_of_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory for two of the three images, and a fit that keeps some of the draws."""
    images, _ = made()
    draws_of_an_image = 2 * 800 * 2
    monkeypatch.setattr(over_images, "_NUMBERS_AT_ONCE", 2 * draws_of_an_image)
    monkeypatch.setattr(over_images, "_NUMBERS_KEPT", 3 * draws_of_an_image // 4)
    fit = GIBBS_TEMPERING_OVER_IMAGES.sample(images.model("three"), seed=4, **PATH)
    check(fit)
    assert fit.posterior["z"].shape == (2, 200, 3, 2)
    # Two chains an image, each of 1,000 iterations of 4 steps, and one evaluation at its start.
    assert fit.gradients == 3 * 2 * (4 * 1000 + 1)
    np.testing.assert_array_equal(images.part(slice(1, 3)).image, images.image[1:])


def test_the_posterior_of_every_image_is_its_own() -> None:
    images, _ = made()
    fit = GIBBS_TEMPERING_OVER_IMAGES.sample(images.model("three"), seed=5, **PATH)
    line = np.linspace(-8, 8, 161)
    points = np.stack(np.meshgrid(line, line, indexing="ij"), axis=-1).reshape(-1, 2)
    drawn = images.mean + images.sd * fit.posterior["z"].to_numpy().reshape(-1, 3, 2)
    for number, image in enumerate(images.image):
        log_density = images.decoder.log_likelihood(points, image) - 0.5 * (points**2).sum(axis=1)
        weight = np.exp(log_density - log_density.max())
        mean = weight @ points / weight.sum()
        sd = np.sqrt(weight @ (points - mean) ** 2 / weight.sum())
        # Worth 100 draws or more of 1,600: five standard errors.
        assert np.all(np.abs(drawn[:, number].mean(axis=0) - mean) < 0.5 * sd)


def test_bounds_from_both_ends_hold_the_truth_between_them() -> None:
    images, exact = made()
    fit = BIDIRECTIONAL_OVER_IMAGES.sample(
        images.model("three"), exact=exact, ladder=LADDER, chains=100, seed=6
    )
    lower, upper = fit.log_evidence.value, float(fit.tree.attrs["upper_log_evidence"])
    # On the wrong side by more than 0.3 nats an image in e^-0.3 of runs at most; the error of a
    # mean of 100 weights is far smaller.
    assert lower < truth().sum() + 0.3
    assert upper > truth().sum() - 0.3
    assert upper - lower < 1.0


def test_other_models_are_refused() -> None:
    images, _ = made()
    assert set_of(images.model("three")) is images
    with pytest.raises(DataError, match="no set of images"):
        set_of(Banana().model())
    with pytest.raises(DataError, match=r"shape \(K, P\)"):
        image_set(None, images.image[0], seed=1)  # type: ignore[arg-type]


@pytest.mark.compiled
def test_nuts_goes_from_image_to_image() -> None:
    from harness.engine.nuts import NutsSettings

    images, _ = made()
    fit = JOINT_TEMPERING_OVER_IMAGES.sample(
        images.model("three"), nuts=NutsSettings(1, 300, 1000), seed=7
    )
    check(fit)
