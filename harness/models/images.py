"""Images under a decoder: data for ``stan/image_decoder``, the encoder's bases, and the evidence.

The model of an image y of P binary pixels is::

    z ~ N(0, I_L),
    y_p | z ~ Bernoulli(inv_logit(a_p(z))),
    a(z) = tanh(tanh(z W0 + b0) W2 + b2) W4 + b4,

Z = p(y) is the integral of p(y | z) N(z | 0, I) over z.  The encoder gives a Gaussian q(z | y) with
diagonal covariance, from two hidden tanh layers.

References
----------
Burda, Y., Grosse, R. and Salakhutdinov, R. (2016). Importance weighted autoencoders.
International Conference on Learning Representations.

Graham, M. and Storkey, A. (2017). Continuously tempered Hamiltonian Monte Carlo. Conference
on Uncertainty in Artificial Intelligence, section 7.4.
"""

from __future__ import annotations

import io
import zipfile
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.folders import shipped
from harness.model import Model, TrueValue, Truth
from harness.model.truth import UNKNOWN
from harness.path import GaussianBase, gaussian_base

IntArray = npt.NDArray[np.int64]

_TANH_LAYERS = ("Linear", "Tanh", "Linear", "Tanh")


class Layer(NamedTuple):
    """An affine map h -> h W + b."""

    weight: FloatArray
    """W, shape (inputs, outputs)."""
    bias: FloatArray
    """b, shape (outputs,)."""

    def __call__(self, inputs: FloatArray) -> FloatArray:
        """Map the last axis from inputs to outputs."""
        outputs: FloatArray = inputs @ self.weight + self.bias
        return outputs


class GeneratedImages(NamedTuple):
    """Draws from the joint density of latent vector and image.

    Each latent vector is an exact draw from the posterior given its image, from which bidirectional
    Monte Carlo can start its reverse runs.
    """

    latent: FloatArray
    """z, shape (count, L)."""
    image: IntArray
    """y, shape (count, P), each pixel 0 or 1."""


@dataclass(frozen=True)
class ImageDecoder:
    """Decoder p(y | z) of two tanh layers and independent Bernoulli pixels.

    Attributes
    ----------
    layers
        The three affine maps: from the latent vector to the first hidden layer, to the second, and
        to the log odds of the pixels.

    Raises
    ------
    DataError
        If there are not three layers, the outputs of one are not the inputs of the next, or a
        number is not finite.
    """

    layers: tuple[Layer, ...]

    def __post_init__(self) -> None:
        _check_chain("decoder", self.layers, 3)

    @property
    def dimension(self) -> int:
        """Dimension L of the latent vector."""
        return int(self.layers[0].weight.shape[0])

    @property
    def num_pixels(self) -> int:
        """Number P of pixels."""
        return self.layers[-1].bias.size

    def log_odds(self, latent: npt.ArrayLike) -> FloatArray:
        """Return the log odds a(z) that each pixel is 1: shape (..., L) to (..., P)."""
        first, second, pixels = self.layers
        z = np.asarray(latent, dtype=np.float64)
        return pixels(np.tanh(second(np.tanh(first(z)))))

    def probabilities(self, latent: npt.ArrayLike) -> FloatArray:
        """Return the probability that each pixel is 1: shape (..., L) to (..., P)."""
        probability: FloatArray = np.exp(-np.logaddexp(0, -self.log_odds(latent)))
        return probability

    def log_likelihood(self, latent: npt.ArrayLike, image: npt.ArrayLike) -> FloatArray:
        """Return the log probability of an image given latent vectors: (..., L), (..., P) to (...).

        They are for bounds and ground truths.  Draws are never weighted with them, because every
        Stan program writes its own log weights.
        """
        sign = 2 * np.asarray(image, dtype=np.float64) - 1
        log_probability: FloatArray = -np.logaddexp(0, -sign * self.log_odds(latent)).sum(axis=-1)
        return log_probability

    def generate(self, rng: np.random.Generator, count: int) -> GeneratedImages:
        """Draw images, and the latent vectors behind them, from the decoder.

        Raises
        ------
        DataError
            If the count is negative.
        """
        if count < 0:
            raise DataError(f"the number of images to generate must be 0 or more; got {count}")
        latent = rng.standard_normal((count, self.dimension))
        probability = self.probabilities(latent)
        image = (rng.random(probability.shape) < probability).astype(np.int64)
        return GeneratedImages(latent, image)

    def check_image(self, image: npt.ArrayLike) -> IntArray:
        """Return an image of binary pixels as integers, shape (P,).

        Raises
        ------
        DataError
            If it does not have P pixels, or one of them is neither 0 nor 1.
        """
        pixels = np.asarray(image)
        if pixels.shape != (self.num_pixels,):
            raise DataError(
                f"an image of this decoder must have shape ({self.num_pixels},), row after row; "
                f"got {pixels.shape}"
            )
        if not np.all((pixels == 0) | (pixels == 1)):
            raise DataError(
                "the pixels of an image must be 0 or 1: threshold grey values, or draw each pixel "
                "with its grey value as probability"
            )
        return pixels.astype(np.int64)

    def model(self, image: npt.ArrayLike, name: str) -> Model:
        """Return the posterior of the latent vector of an image as a model; its Z is p(y).

        All images of all decoders run the same compiled programs.

        Raises
        ------
        DataError
            See :meth:`check_image`.
        """
        data: dict[str, Any] = {
            "L": self.dimension,
            "H1": self.layers[0].bias.size,
            "H2": self.layers[1].bias.size,
            "M": self.num_pixels,
            "y": self.check_image(image),
        }
        for number, layer in enumerate(self.layers, start=1):
            # Stan multiplies column vectors, but the files are written for row vectors.
            data[f"weight_{number}"] = layer.weight.T
            data[f"bias_{number}"] = layer.bias
        return Model(
            name,
            shipped("stan") / "image_decoder",
            data,
            ("z",),
            self.dimension,
            own_base="prior",
            truth=self.truth(data["y"]),
        )

    def truth(self, image: IntArray) -> Truth:
        """Log evidence of an image where L is 1 or 2, by quadrature; its error from half the nodes.

        Parameters
        ----------
        image
            Shape (P,).
        """
        if self.dimension > 2:
            return UNKNOWN
        return Truth("the trapezoidal rule on [-9, 9]^L", partial(self._true_log_evidence, image))

    def _true_log_evidence(self, image: IntArray) -> TrueValue[float]:
        value = self.log_evidence(image)
        return TrueValue(value, abs(value - self.log_evidence(image, nodes=200)))

    def log_evidence(self, image: npt.ArrayLike, *, nodes: int = 400) -> float:
        """Return log p(y) by quadrature, a ground truth if L is 1 or 2.

        This is the trapezoidal rule on [-9, 9]^L.  The integrand is smooth and vanishes with all
        its derivatives towards the edge, so the error falls faster than any power of the spacing.

        Parameters
        ----------
        image
            Shape (P,).
        nodes
            Number of nodes in each dimension.

        Raises
        ------
        DataError
            If L > 2, or there are fewer than 2 nodes; see also :meth:`check_image`.
        """
        y = self.check_image(image)
        if self.dimension > 2:
            raise DataError(
                f"log p(image) by quadrature is for 1 or 2 latent dimensions, but this decoder has "
                f"{self.dimension}: estimate it by sampling"
            )
        if nodes < 2:
            raise DataError(f"quadrature needs 2 nodes or more in each dimension; got {nodes}")
        line = np.linspace(-9, 9, nodes)
        axes = np.meshgrid(*[line] * self.dimension, indexing="ij")
        z = np.stack(axes, axis=-1).reshape(-1, self.dimension)
        log_integrand = self.log_likelihood(z, y) + _log_standard_normal(z)
        log_cell = self.dimension * np.log(line[1] - line[0])
        return float(np.logaddexp.reduce(log_integrand) + log_cell)


@dataclass(frozen=True)
class ImageEncoder:
    """Encoder q(z | y): a Gaussian with diagonal covariance.

    Attributes
    ----------
    hidden
        The affine maps of the two tanh layers.
    mean
        Affine map from the second hidden layer to the Gaussian's mean.
    log_sd
        Affine map from the second hidden layer to the log of its standard deviations.

    Raises
    ------
    DataError
        If there are not two hidden layers, the outputs of one are not the inputs of the next, the
        numbers of means and standard deviations differ, or a number is not finite.
    """

    hidden: tuple[Layer, ...]
    mean: Layer
    log_sd: Layer

    def __post_init__(self) -> None:
        _check_chain("encoder", (*self.hidden, self.mean), 3)
        _check_chain("encoder", (*self.hidden, self.log_sd), 3)
        if self.mean.bias.size != self.log_sd.bias.size:
            raise DataError(
                f"the encoder gives {self.mean.bias.size} means and {self.log_sd.bias.size} "
                f"standard deviations; there must be equally many"
            )

    def moments(self, image: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Return mean and standard deviations of q(z | y): (..., P) to two of shape (..., L)."""
        first, second = self.hidden
        y = np.asarray(image, dtype=np.float64)
        hidden = np.tanh(second(np.tanh(first(y))))
        return self.mean(hidden), np.exp(self.log_sd(hidden))


@dataclass(frozen=True)
class ImageAutoencoder:
    """A decoder with the encoder that was trained with it.

    Raises
    ------
    DataError
        If encoder and decoder differ in the number of pixels or in the latent dimension.
    """

    decoder: ImageDecoder
    encoder: ImageEncoder

    def __post_init__(self) -> None:
        pixels, dimension = self.encoder.hidden[0].weight.shape[0], self.encoder.mean.bias.size
        if (pixels, dimension) != (self.decoder.num_pixels, self.decoder.dimension):
            raise DataError(
                f"the encoder takes {pixels} pixels to {dimension} latent dimensions, but the "
                f"decoder takes {self.decoder.dimension} to {self.decoder.num_pixels}: they do not "
                f"belong together"
            )

    def bound(
        self, image: npt.ArrayLike, rng: np.random.Generator, *, num_samples: int = 100
    ) -> FloatArray:
        """Return the importance-weighted bound on log p(y) (Burda et al. 2016, eq. 8), in nats.

        It is the log of the mean, over k draws z_i ~ q(z | y), of
        p(y | z_i) N(z_i | 0, I) / q(z_i | y).  Its expectation is at most log p(y), and approaches
        log p(y) as k grows.

        Parameters
        ----------
        image
            Shape (..., P), pixels 0 or 1.
        rng
            Generator of the draws.
        num_samples
            Number k of draws, 1 or more.

        Returns
        -------
        FloatArray
            One bound for each image, shape (...).

        Raises
        ------
        DataError
            If k < 1.
        """
        if num_samples < 1:
            raise DataError(f"the bound needs 1 sample or more; got {num_samples}")
        mean, sd = self.encoder.moments(image)
        noise = rng.standard_normal((num_samples, *mean.shape))
        z = mean + sd * noise
        log_weight = self.decoder.log_likelihood(z, image) + _log_standard_normal(z)
        log_weight -= _log_standard_normal(noise) - np.log(sd).sum(axis=-1)
        bound: FloatArray = np.logaddexp.reduce(log_weight, axis=0) - np.log(num_samples)
        return bound

    def encode(
        self, image: npt.ArrayLike, rng: np.random.Generator, *, num_samples: int = 100
    ) -> GaussianBase:
        """Return the encoder's Gaussian given an image; its log zeta comes from :meth:`bound`.

        Parameters
        ----------
        image
            Shape (P,).
        rng, num_samples
            See :meth:`bound`; 100 samples are the paper's (Graham and Storkey 2017, 7.4).

        Raises
        ------
        DataError
            See :meth:`ImageDecoder.check_image` and :meth:`bound`.
        """
        y = self.decoder.check_image(image)
        mean, sd = self.encoder.moments(y)
        log_zeta = float(self.bound(y, rng, num_samples=num_samples))
        return gaussian_base(mean, np.diag(sd**2), log_zeta=log_zeta)


def load_autoencoder(folder: Path) -> ImageAutoencoder:
    """Load a decoder and its encoder from a folder of weights.

    The folder has four files, in the layout of the weights of Graham and Storkey (2017):
    ``decoder_params.npz``, ``encoder_h_params.npz`` (the two hidden layers),
    ``encoder_mean_params.npz`` and ``encoder_std_params.npz``.  Each has a list ``layers``; if its
    layer number i is linear, it has weights ``Wi`` (inputs, outputs) and ``bi``.

    Raises
    ------
    DataError
        If a file is missing or damaged, its layers differ from those of this model, shapes do
        not match, or a number is not finite.
    """
    decoder = _read_layers(folder / "decoder_params.npz", (*_TANH_LAYERS, "Linear", "Sigmoid"))
    hidden = _read_layers(folder / "encoder_h_params.npz", _TANH_LAYERS)
    (mean,) = _read_layers(folder / "encoder_mean_params.npz", ("Linear",))
    (log_sd,) = _read_layers(folder / "encoder_std_params.npz", ("Linear", "Exponential"))
    return ImageAutoencoder(ImageDecoder(decoder), ImageEncoder(hidden, mean, log_sd))


def digits_autoencoder() -> ImageAutoencoder:
    """Return the autoencoder of 8 x 8 handwritten digits that the project ships."""
    return load_autoencoder(shipped("data") / "digits_vae")


def _read_layers(path: Path, expected: tuple[str, ...]) -> tuple[Layer, ...]:
    """Read the linear layers of one file, whose list of layers must be the expected one."""
    try:
        # The file is read completely first, because NumPy leaves a damaged file open.
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except FileNotFoundError:
        raise DataError(f"{path} is missing; the weights are four files in one folder") from None
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise DataError(f"{path} is not a readable .npz file of numbers: {error}") from error
    names = [_layer_name(each) for each in np.ravel(arrays.get("layers", np.empty(0)))]
    if tuple(names) != expected:
        raise DataError(
            f"{path} lists the layers {', '.join(names) or 'none'}; this model has "
            f"{', '.join(expected)}"
        )
    layers = []
    for number in [i for i, name in enumerate(expected) if name == "Linear"]:
        for key in (f"W{number}", f"b{number}"):
            if key not in arrays or arrays[key].dtype.kind not in "fiu":
                raise DataError(f"{path} has no numeric array {key}")
        weight = arrays[f"W{number}"].astype(np.float64)
        # The authors' biases are rows of shape (1, outputs).
        layers.append(Layer(weight, arrays[f"b{number}"].astype(np.float64).ravel()))
    return tuple(layers)


def _layer_name(name: Any) -> str:
    """Return, for instance, ``Linear`` for ``b'nnet.Linear'``."""
    text = name.decode("ascii", "replace") if isinstance(name, bytes) else str(name)
    return text.rpartition(".")[2]


def _check_chain(what: str, layers: tuple[Layer, ...], count: int) -> None:
    """Raise an error if layers do not fit together."""
    if len(layers) != count:
        raise DataError(f"the {what} needs {count} affine layers; got {len(layers)}")
    for layer in layers:
        if layer.weight.ndim != 2 or 0 in layer.weight.shape:
            raise DataError(
                f"the weights of each {what} layer must have shape (inputs, outputs); got "
                f"{layer.weight.shape}"
            )
        if layer.bias.shape != layer.weight.shape[1:]:
            raise DataError(
                f"a {what} layer of {layer.weight.shape[1]} outputs needs as many biases; got "
                f"shape {layer.bias.shape}"
            )
        if not (np.all(np.isfinite(layer.weight)) and np.all(np.isfinite(layer.bias))):
            raise DataError(f"the {what} has a weight or bias that is not finite")
    for before, after in pairwise(layers):
        if before.weight.shape[1] != after.weight.shape[0]:
            raise DataError(
                f"a {what} layer of {before.weight.shape[1]} outputs is followed by one of "
                f"{after.weight.shape[0]} inputs"
            )


def _log_standard_normal(z: FloatArray) -> FloatArray:
    """Return the log density of N(0, I) over the last axis."""
    log_density: FloatArray = -0.5 * np.square(z).sum(axis=-1)
    log_density -= 0.5 * z.shape[-1] * np.log(2 * np.pi)
    return log_density
