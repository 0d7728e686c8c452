"""Truth of the shipped models: what the models say, with its error, against something else."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.special import logsumexp

from harness.errors import DataError
from harness.model import Model, TrueValue, Truth
from harness.models.boltzmann import BoltzmannMachine, generate, relax
from harness.models.gaussian_mixture import kou_mixture
from harness.models.horseshoe import Classification
from harness.models.images import ImageDecoder, Layer
from harness.models.radon import load_radon
from harness.models.radon_exact import exact_posterior
from harness.models.shapes import Banana, Flower


def test_what_is_not_known_is_refused() -> None:
    data = Classification(np.eye(2), np.array([0, 1]))
    truth = data.model("two", scale_global=1.0).truth
    with pytest.raises(DataError, match="true log Z of this target is not known"):
        _ = truth.log_evidence
    with pytest.raises(DataError, match="no true expectation of this target is known"):
        truth.expected("x")
    with pytest.raises(DataError, match=r"'y' is not known \(known: x, x_squared\)"):
        Banana().model().truth.expected("y")


def test_answers_are_computed_when_asked_for_and_once() -> None:
    calls = []

    def found() -> TrueValue[float]:
        calls.append(1)
        return TrueValue(2.0, 0.1)

    truth = Truth("a sum", found)
    assert calls == []
    assert truth.log_evidence == truth.log_evidence == (2.0, 0.1)
    assert calls == [1]


def models() -> list[Model]:
    machine = BoltzmannMachine(generate(6, np.random.default_rng(4)).weights, np.zeros(6))
    return [
        kou_mixture("b").model("b", lower=-10, upper=20),
        relax(machine).model("boltzmann"),
        Banana(dimension=3).model(),
        Flower().model(),
        load_radon().subset(["AITKIN", "ANOKA"]).model("two"),
    ]


@pytest.mark.parametrize("model", models(), ids=lambda model: str(model.name))
def test_answers_have_errors_of_their_shapes_and_a_source(model: Model) -> None:
    truth = model.truth
    assert truth.source
    assert 0 <= truth.log_evidence.error < 1e-6
    for name, (value, error) in truth.expectations.items():
        assert np.shape(error) == np.shape(value)
        assert np.all(error >= 0), name
        # Relative to the size of what the expectation is of: a mean may be 0.
        assert np.all(error <= 1e-5 * (1 + np.abs(value))), name
    # Models are sent to other processes, before and after they were asked.
    sent = pickle.loads(pickle.dumps(model))  # noqa: S301
    assert sent.truth.log_evidence == truth.log_evidence


def test_the_flower_in_other_coordinates() -> None:
    """The trapezoidal rule over the plane; the kink at the origin has no mass here (1e-12)."""
    flower = Flower(r=4.0, A=1.0, w=3, s=0.4)
    truth = flower.model().truth
    line = np.linspace(-9, 9, 1201)
    points = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
    density = np.exp(flower.log_density(points)) * (line[1] - line[0]) ** 2
    mass = density.sum()
    value, error = truth.log_evidence
    assert value == pytest.approx(np.log(mass), abs=1e-8)
    assert error < 1e-9
    for name, power in (("x", 1), ("x_squared", 2)):
        found = truth.expectations[name]
        np.testing.assert_allclose(found.value, density @ points**power / mass, atol=1e-7)
        assert np.all(found.error < 1e-8)
    share = np.bincount(flower.petal(points), weights=density) / mass
    np.testing.assert_allclose(truth.expected("petal"), share, atol=1e-3)


def test_the_relaxation_by_enumeration() -> None:
    relaxation = relax(generate(5, np.random.default_rng(2)))
    states = np.array(np.meshgrid(*[[-1.0, 1.0]] * 5)).reshape(5, -1).T
    machine = relaxation.machine
    energy = 0.5 * np.einsum("ni,ij,nj->n", states, machine.weights, states)
    energy += states @ machine.biases
    log_z = logsumexp(energy)
    truth = relaxation.model("five").truth
    # The eigenvalues that were dropped are below 1e-7 of the largest.
    assert truth.log_evidence.value == pytest.approx(relaxation.log_z_from(log_z), abs=1e-5)
    mean = np.exp(energy - log_z) @ states @ relaxation.q
    np.testing.assert_allclose(truth.expected("x"), mean, atol=1e-5)


def test_radon_has_the_moments_of_its_posterior_in_both_parametrisations() -> None:
    data = load_radon().subset(["AITKIN", "ANOKA", "BECKER"])
    mean, sd, _ = exact_posterior(data)
    for centred in (False, True):
        model = data.model("three", centred=centred)
        for name in (*model.parameters, "alpha"):
            first, second = model.truth.expected(name), model.truth.expected(f"{name}_squared")
            np.testing.assert_array_equal(first, mean[name])
            np.testing.assert_allclose(np.sqrt(second - first**2), sd[name], rtol=1e-9)


@pytest.mark.parametrize("dimension", [2, 3])
def test_evidence_of_an_image_is_known_in_two_dimensions(dimension: int) -> None:
    rng = np.random.default_rng(3)
    sizes = [(dimension, 4), (4, 5), (5, 7)]
    decoder = ImageDecoder(
        tuple(Layer(rng.normal(size=size), rng.normal(size=size[1])) for size in sizes)
    )
    (image,) = decoder.generate(rng, 1).image
    truth = decoder.model(image, "image").truth
    if dimension > 2:
        with pytest.raises(DataError, match="not known"):
            _ = truth.log_evidence
        return
    # Draws from the prior, whose mean likelihood is the evidence.
    likelihood = np.exp(decoder.log_likelihood(rng.standard_normal((100_000, 2)), image))
    mcse = likelihood.std() / likelihood.mean() / np.sqrt(len(likelihood))
    assert mcse < 0.02
    assert abs(truth.log_evidence.value - np.log(likelihood.mean())) < 4 * mcse
    assert truth.log_evidence.error < 1e-8
