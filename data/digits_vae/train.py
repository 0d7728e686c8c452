"""Train the autoencoder of 8 x 8 digits whose weights lie beside this file.

Usage (scikit-learn brings the digits; only this script needs it):

    OMP_NUM_THREADS=1 python data/digits_vae/train.py [--folder FOLDER] [--epochs EPOCHS]

The objective is the importance-weighted bound with k = 5 draws (Burda et al. 2016), its
gradient written out by hand: with z = m + s e, e ~ N(0, I), w the weights of the k draws,
normalised, and the log weight as a function of (m, log s) and the decoder's parameters,
    d bound / d theta = sum_i w_i d log weight_i / d theta,
    d log weight / d m = d log p(y | z) / dz - z,
    d log weight / d log s = (d log p(y | z) / dz - z) s e + 1.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.models.images import ImageAutoencoder, load_autoencoder

Array = npt.NDArray[np.float64]
Parameters = dict[str, Array]

SEED = 20170805
LATENT, HIDDEN, PIXELS = 10, 100, 64
TRAINING = 1500  # of 1,797 images, in scikit-learn's order; the rest are held out
EPOCHS, BATCH, DRAWS = 1500, 100, 5
LEARNING_RATE = 2e-3  # of Adam, falling to zero by a half cosine
ENCODER = ("hidden_1", "hidden_2", "mean", "log_sd")
DECODER = ("decoder_1", "decoder_2", "decoder_3")
FILES = {
    "decoder_params": (DECODER, ("Linear", "Tanh", "Linear", "Tanh", "Linear", "Sigmoid")),
    "encoder_h_params": (ENCODER[:2], ("Linear", "Tanh", "Linear", "Tanh")),
    "encoder_mean_params": (ENCODER[2:3], ("Linear",)),
    "encoder_std_params": (ENCODER[3:], ("Linear", "Exponential")),
}


def grey_digits() -> Array:
    """Return scikit-learn's digits, shape (1797, 64), grey values in [0, 1]."""
    from sklearn.datasets import load_digits  # type: ignore[import-not-found,import-untyped,unused-ignore]

    grey: Array = np.asarray(load_digits().data, dtype=np.float64) / 16
    return grey


def binarised(grey: Array, rng: np.random.Generator) -> Array:
    """Draw each pixel, 0 or 1, with its grey value as probability."""
    return (rng.random(grey.shape) < grey).astype(np.float64)


def initial_parameters(rng: np.random.Generator) -> Parameters:
    """Weights uniform on +-sqrt(6 / (inputs + outputs)) (Glorot and Bengio 2010), biases 0."""
    shapes = {
        "hidden_1": (PIXELS, HIDDEN),
        "hidden_2": (HIDDEN, HIDDEN),
        "mean": (HIDDEN, LATENT),
        "log_sd": (HIDDEN, LATENT),
        "decoder_1": (LATENT, HIDDEN),
        "decoder_2": (HIDDEN, HIDDEN),
        "decoder_3": (HIDDEN, PIXELS),
    }
    parameters: Parameters = {}
    for name, shape in shapes.items():
        limit = np.sqrt(6 / sum(shape))
        parameters[f"{name}/W"] = rng.uniform(-limit, limit, shape)
        parameters[f"{name}/b"] = np.zeros(shape[1])
    return parameters


def bound_and_gradient(p: Parameters, y: Array, noise: Array) -> tuple[float, Parameters]:
    """Mean importance-weighted bound of a batch and its gradient.

    Parameters
    ----------
    p
        Parameters.
    y
        Images, shape (B, P).
    noise
        Standard normal, shape (k, B, L).
    """
    draws, batch, latent = noise.shape
    h1 = np.tanh(y @ p["hidden_1/W"] + p["hidden_1/b"])
    h2 = np.tanh(h1 @ p["hidden_2/W"] + p["hidden_2/b"])
    mean = h2 @ p["mean/W"] + p["mean/b"]
    log_sd = h2 @ p["log_sd/W"] + p["log_sd/b"]
    z = (mean + np.exp(log_sd) * noise).reshape(-1, latent)
    d1 = np.tanh(z @ p["decoder_1/W"] + p["decoder_1/b"])
    d2 = np.tanh(d1 @ p["decoder_2/W"] + p["decoder_2/b"])
    log_odds = d2 @ p["decoder_3/W"] + p["decoder_3/b"]
    image = np.broadcast_to(y, (draws, *y.shape)).reshape(-1, y.shape[1])
    # log p(y | z) + log N(z | 0, I) - log q(z | y); the two constants of 2 pi cancel.
    log_weight = (image * log_odds - np.logaddexp(0, log_odds)).sum(axis=1).reshape(draws, batch)
    log_weight += 0.5 * (noise**2).sum(axis=2) - 0.5 * (z**2).sum(axis=1).reshape(draws, batch)
    log_weight += log_sd.sum(axis=1)
    log_sum = np.logaddexp.reduce(log_weight, axis=0)
    weight = np.exp(log_weight - log_sum).reshape(-1, 1) / batch

    gradient: Parameters = {}

    def back(name: str, inputs: Array, slope: Array) -> Array:
        gradient[f"{name}/W"] = inputs.T @ slope
        gradient[f"{name}/b"] = slope.sum(axis=0)
        return slope @ p[f"{name}/W"].T

    slope = back("decoder_3", d2, weight * (image - 1 / (1 + np.exp(-log_odds))))
    slope = back("decoder_2", d1, slope * (1 - d2**2))
    slope = back("decoder_1", z, slope * (1 - d1**2)) - weight * z
    slope = slope.reshape(noise.shape)
    # The weights of one image sum to 1 / B.
    to_log_sd = (slope * noise).sum(axis=0) * np.exp(log_sd) + 1 / batch
    slope = back("mean", h2, slope.sum(axis=0)) + back("log_sd", h2, to_log_sd)
    slope = back("hidden_2", h1, slope * (1 - h2**2))
    back("hidden_1", y, slope * (1 - h1**2))
    return float((log_sum - np.log(draws)).mean()), gradient


def train(grey: Array, rng: np.random.Generator, epochs: int) -> Parameters:
    """Maximise the bound by Adam (Kingma and Ba 2015), images binarised anew each epoch."""
    parameters = initial_parameters(rng)
    first = {name: np.zeros_like(value) for name, value in parameters.items()}
    second = {name: np.zeros_like(value) for name, value in parameters.items()}
    batches = len(grey) // BATCH
    step, steps = 0, epochs * batches
    for epoch in range(1, epochs + 1):
        y = binarised(grey, rng)[rng.permutation(len(grey))]
        total = 0.0
        for batch in np.array_split(y, batches):
            noise = rng.standard_normal((DRAWS, len(batch), LATENT))
            bound, gradient = bound_and_gradient(parameters, batch, noise)
            total += bound / batches
            step += 1
            rate = LEARNING_RATE * 0.5 * (1 + np.cos(np.pi * step / steps))
            for name, slope in gradient.items():
                first[name] += 0.1 * (slope - first[name])
                second[name] += 0.001 * (slope**2 - second[name])
                scale = np.sqrt(second[name] / (1 - 0.999**step)) + 1e-8
                parameters[name] += rate * first[name] / (1 - 0.9**step) / scale
        if epoch % 100 == 0 or epoch == epochs:
            print(f"epoch {epoch}: bound with {DRAWS} draws {total:.3f} nats an image", flush=True)
    return parameters


def save(parameters: Parameters, folder: Path) -> None:
    """Write the four files that ``harness.models.images.load_autoencoder`` reads."""
    for file, (names, kinds) in FILES.items():
        arrays: dict[str, Any] = {"layers": np.array(kinds)}
        linear = [number for number, kind in enumerate(kinds) if kind == "Linear"]
        for number, name in zip(linear, names, strict=True):
            arrays[f"W{number}"] = parameters[f"{name}/W"].astype(np.float32)
            arrays[f"b{number}"] = parameters[f"{name}/b"].astype(np.float32)
        np.savez_compressed(folder / f"{file}.npz", **arrays)


def mean_bounds(autoencoder: ImageAutoencoder, grey: Array) -> dict[str, float]:
    """Bound with 100 draws, in nats an image, on the training and the held-out digits."""
    rng = np.random.default_rng(SEED + 1)
    y = binarised(grey, rng)
    bounds = np.concatenate([autoencoder.bound(part, rng) for part in np.array_split(y, 18)])
    return {
        "training": float(bounds[:TRAINING].mean()),
        "held_out": float(bounds[TRAINING:].mean()),
    }


def main() -> None:
    """Train, write the weights and the bounds that they reach."""
    parser = argparse.ArgumentParser(description="Train the autoencoder of 8 x 8 digits.")
    parser.add_argument("--folder", type=Path, default=Path(__file__).parent)
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    options = parser.parse_args()
    grey = grey_digits()
    parameters = train(grey[:TRAINING], np.random.default_rng(SEED), options.epochs)
    save(parameters, options.folder)
    bounds = mean_bounds(load_autoencoder(options.folder), grey)
    lines = [f"{name},{value:.4f}\n" for name, value in bounds.items()]
    (options.folder / "bounds.csv").write_text("digits,bound\n" + "".join(lines))
    print("".join(lines), end="")


if __name__ == "__main__":
    main()
