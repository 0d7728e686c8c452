"""What shipped programs are compared with: forms of the same density, all that were tried."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from harness.methods.path import UNIFORM
from harness.methods.pseudo_extended import pseudo_extended_data
from harness.model import Model, StanProgram
from harness.models.boltzmann import generate, relax
from harness.models.gaussian_mixture import kou_mixture
from harness.models.horseshoe import Classification, global_scale
from harness.models.images import digits_autoencoder
from harness.models.radon import radon
from harness.models.shapes import Banana, Flower
from harness.paths import shipped
from harness.weights import LogG

SHIPPED = "shipped"

_ALTERNATIVES = Path(__file__).parent
_AWAY_FROM_0: LogG = ((0.1, 0.0), (1.0, 0.0))


@dataclass(frozen=True)
class Comparison:
    """Programs with one density and one set of data; the shipped one comes first."""

    title: str
    programs: Mapping[str, StanProgram]
    data: Mapping[str, Any]


def _compare(model: Model, size: str, num_pseudo_samples: int) -> Comparison:
    """Compare a model's pseudo-extended program with every form in the folder of its name."""
    program = model.program("pseudo_extended")
    forms = sorted((_ALTERNATIVES / model.folder.name).glob("*.stan"))
    log_g = _AWAY_FROM_0 if model.own_base == "improper" else UNIFORM
    return Comparison(
        f"{model.folder.name}, pseudo-extended, {size}, N = {num_pseudo_samples}",
        {SHIPPED: program}
        | {path.stem: StanProgram(path, (shipped("stan"), _ALTERNATIVES)) for path in forms},
        {**model.data, **pseudo_extended_data(model, num_pseudo_samples, log_g=log_g)},
    )


def gaussian_mixture() -> Iterator[Comparison]:
    """Twenty components in the plane."""
    model = kou_mixture("a").model("mixture-a", lower=-10, upper=20)
    yield from (_compare(model, "K = 20", num) for num in (2, 5))


def horseshoe() -> Iterator[Comparison]:
    """Logistic regressions with many more predictors than observations."""
    for predictors, num in ((500, 2), (500, 5), (3051, 2)):
        yield _compare(regression(predictors), f"n = 30, d = {predictors}", num)


def regression(predictors: int) -> Model:
    """Thirty observations of noise."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(30, predictors))
    data = Classification(x, rng.integers(0, 2, 30))
    return data.model("noise", scale_global=global_scale(3, predictors, 30))


def boltzmann() -> Iterator[Comparison]:
    """The relaxation of a machine of 28 units."""
    model = relax(generate(28, np.random.default_rng(1))).model("boltzmann-28")
    yield from (_compare(model, "d_b = 28", num) for num in (2, 5))


def banana() -> Iterator[Comparison]:
    """In the plane."""
    yield from (_compare(Banana().model(), "D = 2", num) for num in (2, 5))


def flower() -> Iterator[Comparison]:
    """Six petals."""
    yield from (_compare(Flower().model(), "w = 6", num) for num in (2, 5))


def radon_regression() -> Iterator[Comparison]:
    """919 homes in 85 counties."""
    yield from (_compare(radon(), "85 counties", num) for num in (2, 5))


def image_decoder() -> Iterator[Comparison]:
    """A digit of 8 x 8 pixels."""
    decoder = digits_autoencoder().decoder
    image = decoder.generate(np.random.default_rng(1), 1).image[0]
    yield from (_compare(decoder.model(image, "digit"), "8 x 8 pixels", num) for num in (2, 5))


COMPARISONS = {
    "gaussian_mixture": gaussian_mixture,
    "horseshoe": horseshoe,
    "boltzmann": boltzmann,
    "banana": banana,
    "flower": flower,
    "radon": radon_regression,
    "image_decoder": image_decoder,
}
"""Comparisons by the folder of their model."""
