"""Many images under one decoder, whose posteriors are independent and are sampled side by side.

Each image's posterior is whitened by the encoder's Gaussian for it, and divided by its own guess
at the evidence: z = mean_k + sd_k x, zeta_k.  Then one base, N(0, I) with zeta = 1, serves all, and
what runs many chains at once runs all images at once: row i is of image i modulo their number.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.model import Model
from harness.model.truth import UNKNOWN
from harness.models.images import ImageAutoencoder, ImageDecoder, IntArray
from harness.path import GaussianBase, gaussian_base

_ROWS_AT_ONCE = 256
"""Points that go through the decoder together: their hidden units stay in the processor's cache."""


@dataclass(frozen=True)
class ImageSet:
    """Images of a decoder with the encoder's Gaussian and the guess at the evidence of each.

    Calling it gives log densities (n,) and gradients (n, L) at whitened points (n, L), of which
    row i is of image i modulo K.

    Attributes
    ----------
    decoder
        The decoder.
    image
        Pixels, 0 or 1, shape (K, P).
    mean, sd
        Of the encoder's Gaussians, shape (K, L).
    log_zeta
        Guesses at the log evidence, shape (K,).
    """

    decoder: ImageDecoder
    image: IntArray
    mean: FloatArray
    sd: FloatArray
    log_zeta: FloatArray

    @property
    def base(self) -> GaussianBase:
        """The one base of all whitened posteriors."""
        size = self.decoder.dimension
        return gaussian_base(np.zeros(size), np.eye(size))

    @cached_property
    def _sign(self) -> FloatArray:
        return np.asarray(2 * self.image - 1, dtype=np.float64)

    def __call__(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return log densities and gradients; see the class."""
        points = np.asarray(points, dtype=np.float64)
        row = np.arange(len(points)) % len(self.image)
        value, gradient = np.empty(len(points)), np.empty(points.shape)
        for start in range(0, len(points), _ROWS_AT_ONCE):
            at = slice(start, start + _ROWS_AT_ONCE)
            value[at], gradient[at] = self._of_rows(points[at], row[at])
        return value, gradient

    def _of_rows(
        self, points: FloatArray, row: npt.NDArray[np.intp]
    ) -> tuple[FloatArray, FloatArray]:
        """Log densities and gradients at points of some images."""
        sd, sign = self.sd[row], self._sign[row]
        z = self.mean[row] + sd * points
        first, second, pixels = self.decoder.layers
        h1 = np.tanh(first(z))
        h2 = np.tanh(second(h1))
        margin = sign * pixels(h2)
        small = np.exp(-np.abs(margin))
        value: FloatArray = (
            (np.minimum(margin, 0) - np.log1p(small)).sum(axis=1)
            - 0.5 * (np.square(z).sum(axis=1) + z.shape[1] * np.log(2 * np.pi))
            + np.log(sd).sum(axis=1)
            - self.log_zeta[row]
        )
        # d/da of log inv_logit(sign a) is sign inv_logit(-sign a).
        slope = sign * np.where(margin > 0, small, 1.0) / (1 + small)
        back = (slope @ pixels.weight.T) * (1 - h2**2)
        back = (back @ second.weight.T) * (1 - h1**2)
        gradient: FloatArray = sd * (back @ first.weight.T - z)
        return value, gradient

    def part(self, numbers: slice) -> ImageSet:
        """Return some of the images as a set of their own."""
        return replace(
            self,
            image=self.image[numbers],
            mean=self.mean[numbers],
            sd=self.sd[numbers],
            log_zeta=self.log_zeta[numbers],
        )

    def whitened(self, latent: npt.ArrayLike) -> FloatArray:
        """Whitened coordinates of latent vectors (K, L), one an image."""
        white: FloatArray = (np.asarray(latent, dtype=np.float64) - self.mean) / self.sd
        return white

    def model(self, name: str) -> Model:
        """Return all images as one model for what runs chains side by side.

        Its parameter ``z`` is the whitened latent vector of one image; its data are those of the
        Stan program but for ``y``, (K, P), and the encoder's Gaussians besides.  The Stan program
        itself takes one image: :meth:`single`.
        """
        one = self.decoder.model(self.image[0], name)
        data = {
            **one.data,
            "y": self.image,
            "encoder_mean": self.mean,
            "encoder_sd": self.sd,
            "log_zeta": self.log_zeta,
        }
        # What is known of the first image alone is no truth of them all.
        return replace(one, data=data, log_density=self, truth=UNKNOWN)

    def single(self, number: int, name: str) -> tuple[Model, GaussianBase]:
        """Return the model of one image and its base, both in the latent vector itself."""
        covariance = np.diag(self.sd[number] ** 2)
        base = gaussian_base(self.mean[number], covariance, log_zeta=float(self.log_zeta[number]))
        return self.decoder.model(self.image[number], name), base


def image_set(
    autoencoder: ImageAutoencoder, images: npt.ArrayLike, *, seed: int, num_samples: int = 100
) -> ImageSet:
    """Make a set of images, log zeta the importance-weighted bound with 100 samples each.

    Parameters
    ----------
    autoencoder
        Decoder and encoder.
    images
        Shape (K, P), each pixel 0 or 1.
    seed
        Seed of the bound's draws.
    num_samples
        Draws for each bound (Graham and Storkey 2017, 7.4: 100).

    Raises
    ------
    DataError
        If there is no image, or one is none of this decoder's.
    """
    array = np.asarray(images)
    if array.ndim != 2 or not len(array):
        raise DataError(f"images have shape (K, P), one or more; got {array.shape}")
    pixels = np.stack([autoencoder.decoder.check_image(image) for image in array])
    mean, sd = autoencoder.encoder.moments(pixels)
    rng = np.random.default_rng(seed)
    log_zeta = autoencoder.bound(pixels, rng, num_samples=num_samples)
    return ImageSet(autoencoder.decoder, pixels, mean, sd, log_zeta)


def set_of(model: Model) -> ImageSet:
    """Return the images of a model that :meth:`ImageSet.model` made.

    Raises
    ------
    DataError
        If it is another model.
    """
    if not isinstance(model.log_density, ImageSet):
        raise DataError(f"{model.name} is no set of images")
    return model.log_density
