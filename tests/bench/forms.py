"""What shipped programs are compared with: forms of the same density, all that were tried."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from harness.engine.program import StanProgram
from harness.evidence import LogG
from harness.folders import shipped
from harness.forms.continuous_tempering import tempering_data
from harness.forms.extended_hamiltonian import ExtendedHamiltonian
from harness.forms.pseudo_extended import PseudoExtended
from harness.model import Model
from harness.models.boltzmann import generate, relax
from harness.models.gaussian_mixture import kou_mixture
from harness.models.heart_disease import heart_disease
from harness.models.horseshoe import Classification, Form, global_scale
from harness.models.images import digits_autoencoder
from harness.models.log_gaussian_cox import generate as draw_points
from harness.models.radon import radon
from harness.models.shapes import Banana, Flower
from harness.models.stamps import stamps
from harness.path import GaussianBase, gaussian_base
from harness.path.data import UNIFORM, TemperedPath, path_data
from harness.path.fold import Fold

SHIPPED = "shipped"

_ALTERNATIVES = Path(__file__).parent
_AWAY_FROM_0: LogG = ((0.1, 0.0), (1.0, 0.0))


@dataclass(frozen=True)
class Comparison:
    """Programs with one density and one set of data; the shipped one comes first.

    ``products`` are the matrix products that no gradient can do without, in NumPy.  ``inside`` are
    parameters near which the density is positive, if it is not positive everywhere.
    """

    variant: str
    title: str
    programs: Mapping[str, StanProgram]
    data: Mapping[str, Any]
    products: Callable[[], object] | None = None
    inside: Mapping[str, Any] | None = None


def _compare(model: Model, size: str, variant: str, data: Mapping[str, Any]) -> Comparison:
    """Compare a model's program with every form in the folder of its name."""
    program = model.program(variant)
    name = program.path.stem
    forms = sorted((_ALTERNATIVES / model.folder.name / name).glob("*.stan"))
    return Comparison(
        name,
        f"{model.folder.name}, {name.replace('_', ' ')}, {size}",
        {SHIPPED: program}
        | {path.stem: StanProgram(path, (shipped("stan"), _ALTERNATIVES)) for path in forms},
        {**model.data, **data},
    )


def _log_g(model: Model) -> LogG:
    """Uniform, but away from 0 where pure tempering has infinite mass there."""
    return _AWAY_FROM_0 if model.own_base == "improper" else UNIFORM


def _pseudo_extended(model: Model, size: str, num_pseudo_samples: int) -> Comparison:
    """Compare pure tempering, or tempering from the prior."""
    data = PseudoExtended(num_pseudo_samples).data(model, TemperedPath(log_g=_log_g(model)))
    return _compare(model, f"{size}, N = {num_pseudo_samples}", "pseudo_extended", data)


def _others(
    model: Model, size: str, base: GaussianBase | None, fold: Fold | None = None
) -> Iterator[Comparison]:
    """Compare every other program that a model has, tempered from a base."""
    tempering = tempering_data(model, base)
    joint = {"sample_inv_temp": 1, "fixed_inv_temp": np.empty(0)}
    two = path_data(model, base) | {"ladder": 0, "N": 2}
    others: list[tuple[str, str, Mapping[str, Any]]] = [
        ("target", size, {}),
        ("joint_tempering", size, tempering | joint),
        ("collapsed_tempering", size, tempering | {"ladder": 0}),
        ("collapsed_pseudo_extended", f"{size}, N = 2", two),
    ]
    if fold is not None:
        plateau = ExtendedHamiltonian().data(model, TemperedPath(base=base))
        others.append(("extended_hamiltonian", size, plateau))
        others.append(("folded", f"{size}, F = {len(fold.weight)}", fold.data()))
    for variant, title, data in others:
        if (model.folder / f"{variant}.stan").is_file():
            yield _compare(model, title, variant, data)


def _base(dimension: int) -> GaussianBase:
    """Whose every two coordinates are correlated, so that its whitener is dense."""
    return gaussian_base(np.zeros(dimension), np.eye(dimension) + 1 / dimension)


def _fold(dimension: int, places: int, scales: int) -> Fold:
    rng = np.random.default_rng(1)
    return Fold(
        np.full(places, 1 / places),
        rng.normal(size=(places, dimension)),
        rng.normal(0, 0.1, (scales, dimension, dimension)) + np.eye(dimension),
        np.ones(places),
    )


def gaussian_mixture() -> Iterator[Comparison]:
    """Twenty components in the plane."""
    model = kou_mixture("a").model("mixture-a", lower=-10, upper=20)
    yield from (_pseudo_extended(model, "K = 20", num) for num in (2, 5))
    yield from _others(model, "K = 20", gaussian_base([5, 5], 9 * np.eye(2)), _fold(2, 8, 8))


def horseshoe() -> Iterator[Comparison]:
    """Logistic regressions with many more predictors than observations."""
    for observations, predictors, num in ((30, 500, 2), (30, 500, 5), (38, 3051, 2)):
        model = regression(observations, predictors)
        comparison = _pseudo_extended(model, f"n = {observations}, d = {predictors}", num)
        yield replace(comparison, products=_products(model, num))
    yield _pseudo_extended(regression(30, 500, "shared_scales"), "n = 30, d = 500", 2)
    yield from _others(regression(30, 500), "n = 30, d = 500", None)


def _products(model: Model, num_pseudo_samples: int) -> Callable[[], object]:
    """Linear predictors of each pseudo-sample, and their slopes back to its coefficients."""
    x = np.asarray(model.data["X"], order="F")
    observations, predictors = x.shape
    residual, beta = np.ones(observations), np.ones(predictors)
    return lambda: [(x @ beta, residual @ x) for _ in range(num_pseudo_samples)]


def regression(observations: int, predictors: int, form: Form = "full") -> Model:
    """Observations of noise."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(observations, predictors))
    data = Classification(x, rng.integers(0, 2, observations))
    tau = global_scale(3, predictors, observations)
    return data.model("noise", scale_global=tau, form=form)


def boltzmann() -> Iterator[Comparison]:
    """The relaxation of a machine of 28 units."""
    model = relax(generate(28, np.random.default_rng(1))).model("boltzmann-28")
    size = model.dimension
    yield from (_pseudo_extended(model, "d_b = 28", num) for num in (2, 5))
    below_one = PseudoExtended(2, highest_inv_temp=0.9)
    data = below_one.data(model, TemperedPath(log_g=_log_g(model)))
    yield _compare(model, "d_b = 28, N = 2", below_one.program, data)
    yield from _others(model, "d_b = 28", _base(size), _fold(size, 8, 1))


def banana() -> Iterator[Comparison]:
    """In the plane."""
    yield from (_pseudo_extended(Banana().model(), "D = 2", num) for num in (2, 5))
    yield from _others(Banana().model(), "D = 2", gaussian_base([0, 0], 100 * np.eye(2)))


def flower() -> Iterator[Comparison]:
    """Six petals."""
    yield from (_pseudo_extended(Flower().model(), "w = 6", num) for num in (2, 5))
    yield from _others(Flower().model(), "w = 6", gaussian_base([0, 0], 50 * np.eye(2)))


def radon_regression() -> Iterator[Comparison]:
    """919 homes in 85 counties."""
    yield from (_pseudo_extended(radon(), "85 counties", num) for num in (2, 5))
    yield from _others(radon(), "85 counties", _base(radon().dimension))


def radon_centred() -> Iterator[Comparison]:
    """The same with centred coefficients."""
    model = radon(centred=True)
    yield _compare(model, "85 counties", "target", {})
    data = tempering_data(model, _base(model.dimension)) | {"ladder": 0}
    yield _compare(model, "85 counties", "collapsed_tempering", data)


def image_decoder() -> Iterator[Comparison]:
    """A digit of 8 x 8 pixels."""
    decoder = digits_autoencoder().decoder
    image = decoder.generate(np.random.default_rng(1), 1).image[0]
    model = decoder.model(image, "digit")
    yield from _others(model, "8 x 8 pixels", _base(model.dimension))


def stamps_mixture() -> Iterator[Comparison]:
    """486 stamps of 62 thicknesses."""
    yield from (_pseudo_extended(stamps(), "486 stamps", num) for num in (2, 5))
    yield from _others(stamps(), "486 stamps", _base(9))


def stamps_raw() -> Iterator[Comparison]:
    """The same with precisions and weights themselves."""
    model, size = stamps(raw=True), "486 stamps"
    near: dict[str, Any] = {"mu": [7.2, 7.9, 9.9], "lambda": [9.0, 8.0, 0.6], "z": [0.2, 0.4]}
    near |= {"rate": 0.5, "free_inv_temp": [0.4]}
    for num in (2, 5):
        many = {name: np.stack([value] * num, axis=-1) for name, value in near.items()}
        many["free_inv_temp"] = np.full(num, 0.4)
        yield replace(_pseudo_extended(model, size, num), inside=many)
    for comparison in _others(model, size, _base(9)):
        yield replace(comparison, inside=near)


def log_gaussian_cox() -> Iterator[Comparison]:
    """Points in 6 x 6 and in 12 x 12 cells."""
    for side in (6, 12):
        model = draw_points(side, "unit_square").model("cox")
        yield _pseudo_extended(model, f"{side} x {side} cells", 2)
        yield from _others(model, f"{side} x {side} cells", _base(model.dimension))


def log_gaussian_cox_centred() -> Iterator[Comparison]:
    """The same with the log intensities themselves, and with distances in cells."""
    for side in (6, 12):
        model = draw_points(side, "cells").model("cox", centred=True)
        yield _pseudo_extended(model, f"{side} x {side} cells", 2)
        yield from _others(model, f"{side} x {side} cells", _base(model.dimension))


def risk_factors() -> Iterator[Comparison]:
    """Six binary properties of 1841 men."""
    yield _compare(heart_disease(), "64 states", "target", {})


COMPARISONS = {
    "gaussian_mixture": gaussian_mixture,
    "horseshoe": horseshoe,
    "boltzmann": boltzmann,
    "banana": banana,
    "flower": flower,
    "radon": radon_regression,
    "radon_centred": radon_centred,
    "image_decoder": image_decoder,
    "stamps": stamps_mixture,
    "stamps_raw": stamps_raw,
    "log_gaussian_cox": log_gaussian_cox,
    "log_gaussian_cox_centred": log_gaussian_cox_centred,
    "heart_disease": risk_factors,
}
"""Comparisons by the folder of their model."""
