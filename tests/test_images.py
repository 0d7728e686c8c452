"""The image model: weights, images, bounds, bases, the evidence by quadrature, the training."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from references import reference
from scipy.special import expit, logsumexp
from scipy.stats import bernoulli, multivariate_normal, norm

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.folders import shipped
from harness.models.images import (
    ImageAutoencoder,
    ImageDecoder,
    ImageEncoder,
    Layer,
    digits_autoencoder,
    load_autoencoder,
)

FILES = ("decoder_params", "encoder_h_params", "encoder_mean_params", "encoder_std_params")


def layer(rng: np.random.Generator, inputs: int, outputs: int) -> Layer:
    return Layer(rng.normal(0, 0.9, (inputs, outputs)), rng.normal(0, 0.5, outputs))


def tiny(dimension: int, seed: int = 1, pixels: int = 6) -> ImageAutoencoder:
    """An autoencoder with random weights, small enough for quadrature."""
    rng = np.random.default_rng(seed)
    decoder = tuple(layer(rng, a, b) for a, b in ((dimension, 4), (4, 5), (5, pixels)))
    hidden = (layer(rng, pixels, 4), layer(rng, 4, 3))
    flat = Layer(0.1 * rng.normal(size=(3, dimension)), np.full(dimension, -0.2))
    encoder = ImageEncoder(hidden, Layer(flat.weight, np.zeros(dimension)), flat)
    return ImageAutoencoder(ImageDecoder(decoder), encoder)


def log_joint(decoder: ImageDecoder, z: FloatArray, image: npt.ArrayLike) -> FloatArray:
    """Log p(y | z) N(z | 0, I) at points (..., L), by SciPy."""
    (w1, b1), (w2, b2), (w3, b3) = decoder.layers
    h1 = np.tanh(np.einsum("...i,ij->...j", z, w1) + b1)
    h2 = np.tanh(np.einsum("...i,ij->...j", h1, w2) + b2)
    probability = expit(np.einsum("...i,ij->...j", h2, w3) + b3)
    pixels = np.asarray(bernoulli.logpmf(np.asarray(image), probability)).sum(axis=-1)
    total: FloatArray = pixels + np.asarray(norm.logpdf(z)).sum(axis=-1)
    return total


def train_script() -> ModuleType:
    path = shipped("data") / "digits_vae" / "train.py"
    spec = importlib.util.spec_from_file_location("digits_vae_train", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def write_folder(folder: Path, **changed: dict[str, Any]) -> Path:
    """Copy the shipped weights, with entries of a file changed, or removed where None."""
    for name in FILES:
        with np.load(shipped("data") / "digits_vae" / f"{name}.npz", allow_pickle=False) as file:
            arrays: dict[str, Any] = {key: file[key] for key in file.files}
        arrays |= changed.get(name, {})
        kept = {key: value for key, value in arrays.items() if value is not None}
        np.savez(folder / f"{name}.npz", **kept)
    return folder


@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_likelihood_is_bernoulli_with_the_decoders_probabilities(dimension: int) -> None:
    decoder = tiny(dimension).decoder
    rng = np.random.default_rng(5)
    z = rng.normal(size=(7, dimension))
    image = (rng.random((7, 6)) < 0.5).astype(float)
    expected = log_joint(decoder, z, image) - np.asarray(norm.logpdf(z)).sum(axis=-1)
    np.testing.assert_allclose(decoder.log_likelihood(z, image), expected, rtol=1e-12)
    pixels = np.asarray(bernoulli.logpmf(image, decoder.probabilities(z)))
    np.testing.assert_allclose(pixels.sum(axis=1), expected, rtol=1e-12)


def test_likelihood_and_probabilities_do_not_overflow() -> None:
    decoder = tiny(2).decoder
    first, second, pixels = decoder.layers
    steep = ImageDecoder((first, second, Layer(pixels.weight * 1e4, pixels.bias * 1e4)))
    z = np.array([0.3, -0.7])
    odds = steep.log_odds(z)
    assert np.abs(odds).max() > 1e3
    wrong = (odds < 0).astype(int)
    assert steep.log_likelihood(z, wrong) == pytest.approx(-np.abs(odds).sum(), rel=1e-12)
    assert steep.log_likelihood(z, 1 - wrong) == pytest.approx(
        -np.exp(-np.abs(odds)).sum(), abs=1e-6
    )
    assert np.all(np.isin(steep.probabilities(z)[np.abs(odds) > 1e3], [0.0, 1.0]))


@pytest.mark.parametrize("dimension", [1, 2])
def test_evidence_by_quadrature_sums_to_one_over_images(dimension: int) -> None:
    """The 2^6 images of the tiny decoder are all there are."""
    decoder = tiny(dimension).decoder
    images = (np.arange(64)[:, None] >> np.arange(6)) & 1
    total = logsumexp([decoder.log_evidence(y, nodes=150) for y in images])
    assert total == pytest.approx(0, abs=1e-10)


@pytest.mark.parametrize("dimension", [1, 2])
def test_evidence_by_quadrature_does_not_depend_on_the_nodes(dimension: int) -> None:
    decoder = tiny(dimension).decoder
    for y in ([1, 1, 0, 0, 1, 0], [0, 0, 0, 1, 0, 1]):
        coarse, fine = (decoder.log_evidence(y, nodes=nodes) for nodes in (200, 401))
        assert coarse == pytest.approx(fine, abs=1e-10)


@pytest.mark.parametrize("dimension", [1, 2])
def test_importance_sampling_agrees_with_quadrature(dimension: int) -> None:
    model = tiny(dimension)
    rng = np.random.default_rng(11)
    y = np.array([1, 0, 0, 1, 1, 0])
    mean, sd = model.encoder.moments(y)
    proposal = multivariate_normal(mean, np.diag(sd**2))
    z = mean + sd * rng.standard_normal((20_000, dimension))
    ratio = np.exp(log_joint(model.decoder, z, y) - proposal.logpdf(z))
    error = ratio.std(ddof=1) / np.sqrt(len(ratio))
    truth = np.exp(model.decoder.log_evidence(y))
    assert error < 0.05 * truth
    assert abs(ratio.mean() - truth) < 4 * error


@pytest.mark.parametrize("dimension", [1, 2])
def test_bound_is_importance_sampling_from_the_encoder(dimension: int) -> None:
    """exp(bound) is unbiased for p(y); the bound itself lies below and rises with k."""
    model = tiny(dimension)
    rng = np.random.default_rng(3)
    y = np.array([1, 1, 0, 1, 1, 0])
    truth = model.decoder.log_evidence(y)
    means = []
    for num_samples in (1, 5, 50):
        bounds = model.bound(np.tile(y, (3000, 1)), rng, num_samples=num_samples)
        ratio = np.exp(bounds - truth)
        assert abs(ratio.mean() - 1) < 4 * ratio.std(ddof=1) / np.sqrt(ratio.size)
        means.append(bounds.mean() + 4 * bounds.std(ddof=1) / np.sqrt(bounds.size))
        assert bounds.mean() < truth + 4 * bounds.std(ddof=1) / np.sqrt(bounds.size)
    assert means[0] < means[1] < means[2]


def test_encode_is_the_encoders_gaussian_with_the_bound() -> None:
    model = tiny(2)
    y = np.array([0, 1, 0, 1, 1, 1])
    base = model.encode(y, np.random.default_rng(8))
    first, second = model.encoder.hidden
    h = np.tanh(np.tanh(y @ first.weight + first.bias) @ second.weight + second.bias)
    mean = h @ model.encoder.mean.weight + model.encoder.mean.bias
    log_sd = h @ model.encoder.log_sd.weight + model.encoder.log_sd.bias
    np.testing.assert_allclose(base.mean, mean, rtol=1e-14)
    np.testing.assert_allclose(base.covariance, np.diag(np.exp(2 * log_sd)), rtol=1e-14)
    z = mean + np.exp(log_sd) * np.random.default_rng(8).standard_normal((100, 2))
    log_ratio = log_joint(model.decoder, z, y)
    log_ratio -= np.asarray(norm.logpdf(z, mean, np.exp(log_sd))).sum(axis=1)
    assert base.log_zeta == pytest.approx(float(logsumexp(log_ratio)) - np.log(100), rel=1e-12)
    assert model.encode(y, np.random.default_rng(8)).log_zeta == base.log_zeta
    assert model.encode(y, np.random.default_rng(9)).log_zeta != base.log_zeta


def test_generated_images_follow_the_evidence() -> None:
    """Each of the eight images of three pixels comes up as often as its evidence says."""
    decoder = tiny(1, seed=4, pixels=3).decoder
    count = 20_000
    drawn = decoder.generate(np.random.default_rng(6), count)
    assert drawn.latent.shape == (count, 1)
    assert drawn.image.shape == (count, 3)
    codes = drawn.image @ np.array([1, 2, 4])
    for code in range(8):
        probability = np.exp(decoder.log_evidence([(code >> j) & 1 for j in range(3)]))
        error = np.sqrt(probability * (1 - probability) / count)
        assert abs((codes == code).mean() - probability) < 4.5 * error
    again = decoder.generate(np.random.default_rng(6), count)
    np.testing.assert_array_equal(again.image, drawn.image)
    assert decoder.generate(np.random.default_rng(6), 0).image.shape == (0, 3)


def test_generated_latent_vectors_belong_to_their_images() -> None:
    decoder = digits_autoencoder().decoder
    drawn = decoder.generate(np.random.default_rng(2), 500)
    own = decoder.log_likelihood(drawn.latent, drawn.image)
    others = decoder.log_likelihood(np.roll(drawn.latent, 1, axis=0), drawn.image)
    assert np.mean(own > others) > 0.9
    # E[-log p(y | z) | z] is the entropy of the pixels.
    p = decoder.probabilities(drawn.latent)
    entropy = -(p * np.log(p) + (1 - p) * np.log1p(-p)).sum(axis=1)
    gap = own + entropy
    assert abs(gap.mean()) < 4 * gap.std(ddof=1) / np.sqrt(gap.size)


def test_shipped_weights() -> None:
    model = digits_autoencoder()
    shapes = [each.weight.shape for each in model.decoder.layers]
    assert shapes == [(10, 100), (100, 100), (100, 64)]
    assert (model.decoder.dimension, model.decoder.num_pixels) == (10, 64)
    assert [each.weight.shape for each in model.encoder.hidden] == [(64, 100), (100, 100)]
    assert model.encoder.mean.weight.shape == model.encoder.log_sd.weight.shape == (100, 10)
    size = sum((shipped("data") / "digits_vae" / f"{name}.npz").stat().st_size for name in FILES)
    assert size < 300_000

    z = np.random.default_rng(1).standard_normal((2000, 10))
    average = model.decoder.probabilities(z).mean(axis=0).reshape(8, 8)
    # Digits are bright in the middle columns, black at the left and right edges.
    assert average[:, [0, 7]].max() < 0.1
    assert average[1:7, 3:5].min() > 0.3
    # As bright as the digits on the whole: their mean grey value is 0.305.
    assert average.mean() == pytest.approx(0.305, abs=0.02)


def test_shipped_encoder_matches_its_decoder() -> None:
    """On the decoder's own images the bound is above what the prior as proposal gets."""
    model = digits_autoencoder()
    rng = np.random.default_rng(12)
    y = model.decoder.generate(rng, 200).image
    from_encoder = model.bound(y, rng)
    z = rng.standard_normal((100, 200, 10))
    from_prior = logsumexp(model.decoder.log_likelihood(z, y), axis=0) - np.log(100)
    gain = from_encoder - from_prior
    assert gain.mean() > 4 * gain.std(ddof=1) / np.sqrt(gain.size)
    assert model.encode(y[0], rng).log_zeta == pytest.approx(from_encoder[0], abs=2)


def test_bounds_of_the_training_script_on_the_shipped_weights() -> None:
    pytest.importorskip("sklearn", reason="the digits come with scikit-learn")
    train = train_script()
    measured = train.mean_bounds(digits_autoencoder(), train.grey_digits())
    lines = (shipped("data") / "digits_vae" / "bounds.csv").read_text().splitlines()[1:]
    stated = {name: float(value) for name, value in (line.split(",") for line in lines)}
    assert measured == pytest.approx(stated, abs=2e-3)


def test_training_gradient() -> None:
    """Hand-written gradient against central differences, and the bound against ours."""
    train = train_script()
    rng = np.random.default_rng(0)
    parameters = train.initial_parameters(rng)
    y = (rng.random((4, train.PIXELS)) < 0.3).astype(float)
    noise = rng.standard_normal((5, 4, train.LATENT))
    bound, gradient = train.bound_and_gradient(parameters, y, noise)
    assert set(gradient) == set(parameters)
    for name, value in parameters.items():
        assert gradient[name].shape == value.shape
        direction = rng.standard_normal(value.shape)
        steps = [parameters | {name: value + sign * 1e-5 * direction} for sign in (1, -1)]
        above, below = (train.bound_and_gradient(each, y, noise)[0] for each in steps)
        assert np.sum(gradient[name] * direction) == pytest.approx((above - below) / 2e-5, rel=1e-6)

    def of(name: str) -> Layer:
        return Layer(parameters[f"{name}/W"], parameters[f"{name}/b"])

    hidden, mean, log_sd = (of("hidden_1"), of("hidden_2")), of("mean"), of("log_sd")
    decoder = ImageDecoder(tuple(of(name) for name in train.DECODER))
    model = ImageAutoencoder(decoder, ImageEncoder(hidden, mean, log_sd))

    class Given(np.random.Generator):
        def standard_normal(self, *_: Any, **__: Any) -> Any:
            return noise

    ours = model.bound(y, Given(np.random.PCG64(0)), num_samples=5)
    assert bound == pytest.approx(ours.mean(), rel=1e-12)


def test_training_raises_the_bound_and_its_files_load(tmp_path: Path) -> None:
    """Ten epochs on the shipped decoder's own images; same seed, same weights."""
    train = train_script()
    grey = digits_autoencoder().decoder.generate(np.random.default_rng(7), 300).image
    parameters = train.train(grey.astype(float), np.random.default_rng(1), 10)
    again = train.train(grey.astype(float), np.random.default_rng(1), 10)
    for name, value in parameters.items():
        np.testing.assert_array_equal(value, again[name])
    train.save(parameters, tmp_path)
    trained = load_autoencoder(tmp_path)
    np.testing.assert_array_equal(
        trained.decoder.layers[1].weight, parameters["decoder_2/W"].astype(np.float32)
    )
    np.testing.assert_array_equal(
        trained.encoder.log_sd.weight, parameters["log_sd/W"].astype(np.float32)
    )
    train.save(train.initial_parameters(np.random.default_rng(1)), tmp_path)
    untrained = load_autoencoder(tmp_path)
    rng = np.random.default_rng(2)
    gain = trained.bound(grey, rng) - untrained.bound(grey, rng)
    assert gain.mean() > 5


@pytest.mark.parametrize("name", ["mnist", "omni"])
def test_the_papers_own_weights(name: str) -> None:
    model = load_autoencoder(reference(f"iwae/{name}"))
    assert [each.weight.shape for each in model.decoder.layers] == [
        (50, 200),
        (200, 200),
        (200, 784),
    ]
    rng = np.random.default_rng(4)
    drawn = model.decoder.generate(rng, 20)
    bound = model.bound(drawn.image, rng)
    assert np.all(np.isfinite(bound))
    # Read as they are meant, the standard deviations give a far better proposal than as variances.
    as_variance = Layer(model.encoder.log_sd.weight / 2, model.encoder.log_sd.bias / 2)
    encoder = ImageEncoder(model.encoder.hidden, model.encoder.mean, as_variance)
    gain = bound - ImageAutoencoder(model.decoder, encoder).bound(drawn.image, rng)
    assert gain.mean() > 4 * gain.std(ddof=1) / np.sqrt(gain.size)
    base = model.encode(drawn.image[0], rng)
    assert base.mean.shape == (50,)


def test_model_data() -> None:
    decoder = tiny(2).decoder
    model = decoder.model([1, 0, 0, 1, 1, 0], "six-pixels")
    assert (model.name, model.parameters, model.dimension) == ("six-pixels", ("z",), 2)
    assert {key: model.data[key] for key in ("L", "H1", "H2", "M")} == {
        "L": 2,
        "H1": 4,
        "H2": 5,
        "M": 6,
    }
    assert model.data["weight_1"].shape == (4, 2)
    assert model.data["weight_3"].shape == (6, 5)


@pytest.mark.parametrize(
    ("image", "message"),
    [
        ([1, 0, 0], "shape"),
        ([[1, 0, 0], [0, 0, 1]], "shape"),
        ([1, 0, 0, 1, 0.5, 0], "0 or 1"),
        ([1, 0, 0, 1, np.nan, 0], "0 or 1"),
        ([1, 0, 0, 1, 2, 0], "0 or 1"),
        ([1, 0, 0, 1, -1, 0], "0 or 1"),
    ],
)
def test_bad_image(image: Any, message: str) -> None:
    model = tiny(1)
    for refuse in (
        lambda: model.decoder.model(image, "bad"),
        lambda: model.decoder.log_evidence(image),
        lambda: model.encode(image, np.random.default_rng(0)),
    ):
        with pytest.raises(DataError, match=message):
            refuse()


def test_bad_settings() -> None:
    model = tiny(1)
    rng = np.random.default_rng(0)
    y = [1, 0, 0, 1, 1, 0]
    with pytest.raises(DataError, match="0 or more"):
        model.decoder.generate(rng, -1)
    with pytest.raises(DataError, match="1 sample or more"):
        model.bound(y, rng, num_samples=0)
    with pytest.raises(DataError, match="2 nodes"):
        model.decoder.log_evidence(y, nodes=1)
    with pytest.raises(DataError, match="1 or 2 latent"):
        tiny(3).decoder.log_evidence(y)


def test_bad_weights() -> None:
    rng = np.random.default_rng(0)
    one, two, three = tiny(2).decoder.layers
    with pytest.raises(DataError, match="3 affine"):
        ImageDecoder((one, two))
    with pytest.raises(DataError, match="followed by"):
        ImageDecoder((one, layer(rng, 3, 5), three))
    with pytest.raises(DataError, match="as many biases"):
        ImageDecoder((one, Layer(two.weight, two.bias[:2]), three))
    with pytest.raises(DataError, match="inputs, outputs"):
        ImageDecoder((one, Layer(two.weight[0], two.bias), three))
    with pytest.raises(DataError, match="not finite"):
        ImageDecoder((one, two, Layer(three.weight, np.full(6, np.nan))))
    encoder = tiny(2).encoder
    with pytest.raises(DataError, match="equally many"):
        ImageEncoder(encoder.hidden, encoder.mean, layer(rng, 3, 1))
    with pytest.raises(DataError, match="do not belong together"):
        ImageAutoencoder(tiny(1).decoder, encoder)
    with pytest.raises(DataError, match="do not belong together"):
        ImageAutoencoder(tiny(2, pixels=5).decoder, encoder)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"layers": np.array(["Linear", "Relu", "Linear", "Tanh", "Linear", "Sigmoid"])}, "Relu"),
        ({"layers": None}, "lists the layers none"),
        ({"W2": None}, "numeric array W2"),
        ({"b4": np.array(["a"] * 64)}, "numeric array b4"),
        ({"b4": np.full(64, np.inf)}, "not finite"),
        ({"W4": np.zeros((100, 63))}, "as many biases"),
        ({"W0": np.zeros((9, 100))}, "do not belong together"),
    ],
)
def test_bad_folder(tmp_path: Path, changed: dict[str, Any], message: str) -> None:
    assert load_autoencoder(write_folder(tmp_path)).decoder.dimension == 10
    with pytest.raises(DataError, match=message):
        load_autoencoder(write_folder(tmp_path, decoder_params=changed))


def test_missing_and_damaged_files(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="missing"):
        load_autoencoder(tmp_path)
    write_folder(tmp_path)
    path = tmp_path / "encoder_h_params.npz"
    whole = path.read_bytes()
    for damaged in (whole[:1000], b"", b"no archive"):
        path.write_bytes(damaged)
        with pytest.raises(DataError, match="not a readable"):
            load_autoencoder(tmp_path)
    np.savez(path, layers=np.array([{"an": "object"}]))
    with pytest.raises(DataError, match="not a readable"):
        load_autoencoder(tmp_path)
