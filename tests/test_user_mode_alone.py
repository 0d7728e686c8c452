"""A mode of any shape is weighed by itself: a ring around a disc, whose masses are known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import integrate
from stan_density import stanli
from whole_density import TWO_ROUND_MODES, tempered_whole

from harness.arrays import FloatArray
from harness.diagnosis import Severity
from harness.engine.batched import BatchedDensity
from harness.evidence import LogEvidence
from harness.model import Model
from harness.modes import Visits, find_modes
from harness.temper import tempered_model
from harness.user import sample
from harness.user.compare import Population
from harness.user.judge import Judgement
from harness.user.mode_alone import ModesAlone
from harness.user.mode_metric import mode_metric
from harness.user.near import near_target
from harness.user.other_modes import other_modes
from harness.user.scouted import Scouted

assert stanli is not None

RING = """data {
  real<lower=0> r;
}
parameters {
  vector[2] x;
}
model {
  x ~ normal(0, 10);
  target += log_sum_exp(-square(sqrt(dot_self(x) + 1e-12) - r) / (2 * 0.05 ^ 2),
                        4.5 - dot_self(x) / (2 * 0.2 ^ 2));
}
"""
RADIUS = 6.0
BETWEEN = 3.0


def log_masses() -> tuple[float, float]:
    """Of the disc and the ring, by quadrature over the radius; the density depends on no angle."""

    def density(radius: float) -> float:
        ring = np.exp(-((radius - RADIUS) ** 2) / (2 * 0.05**2))
        disc = np.exp(4.5 - radius**2 / (2 * 0.2**2))
        return float(radius * np.exp(-(radius**2) / 200) / 100 * (ring + disc))

    disc = integrate.quad(density, 0, BETWEEN, points=[0.5])[0]
    ring = integrate.quad(density, BETWEEN, 12, points=[5.5, RADIUS, 6.5])[0]
    return float(np.log(disc)), float(np.log(ring))


def disc_draws() -> FloatArray:
    """Of the prior times the disc, shape (chains, draws, 2): its precision is 25.01."""
    return np.random.default_rng(7).normal(0, 25.01**-0.5, (4, 500, 2))


def ring_points(count: int) -> FloatArray:
    angle = np.random.default_rng(8).uniform(0, 2 * np.pi, count)
    return RADIUS * np.stack([np.cos(angle), np.sin(angle)], axis=1)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    path = tmp_path_factory.mktemp("ring") / "ring.stan"
    path.write_text(RING)
    return tempered_model(path, {"r": RADIUS})


@pytest.fixture(scope="module")
def density(model: Model) -> BatchedDensity:
    return BatchedDensity(model.program("target"), model.data)


def alone_of(model: Model, density: BatchedDensity, draws: FloatArray) -> ModesAlone:
    return ModesAlone(model, density, draws, most_seconds=10, seed=1)


def within(found: LogEvidence | None, exact: float, largest_error: float) -> bool:
    """Whether an estimate is as precise as it should be, and four errors from the truth at most."""
    assert found is not None
    assert 0 < found.mcse < largest_error
    return bool(abs(found.value - exact) < 4 * found.mcse)


def test_masses_of_draws_and_of_a_mode(model: Model, density: BatchedDensity) -> None:
    disc, ring = log_masses()
    alone = alone_of(model, density, disc_draws())
    assert within(alone.of_draws(), disc, 0.02)
    # Bridges with different proposals differ by half a nat here, which is in the error.
    assert within(alone.of_mode(ring_points(50)), ring, 1.0)
    found = alone.sampled(ring_points(1))
    assert found is not None
    radius = np.linalg.norm(found.points, axis=1)
    # About normal with standard deviation .05; neither curvature nor prior moves it by 0.002.
    assert abs(radius.mean() - RADIUS) < 0.01
    assert radius.std() == pytest.approx(0.05, rel=0.2)


def test_a_mode_with_draws_nearby_has_no_mass_of_its_own(
    model: Model, density: BatchedDensity
) -> None:
    """Nor has a place that NUTS leaves for such a mode, as from the slope between both."""
    alone = alone_of(model, density, disc_draws())
    for points in (disc_draws()[0], np.array([[1.0, 1.0]])):
        assert alone.of_mode(points) == LogEvidence(-np.inf, 0.0)
        found = alone.sampled(points)
        assert found is not None
        assert found.left


def test_the_table_has_its_probability(model: Model, density: BatchedDensity) -> None:
    """No Gaussian fits, so that without sampling it alone its probability is not known."""
    disc, ring = log_masses()
    final = disc_draws()
    particles = np.concatenate([final[:1, :200], ring_points(40)[None]], axis=1)
    visits = [Visits("nuts", final, np.zeros((4, 500)), chain=True)]
    visits.append(Visits("search", particles, np.zeros((1, 240))))
    unknown, known = (
        find_modes(visits, density, effective=2000, masses=masses, seed=1).table.modes
        for masses in (None, alone_of(model, density, final))
    )
    assert [each.probability for each in known] == [1.0, 0.0]
    assert [each.local for each in unknown] == [None, None]
    assert known[1].local is not None
    share, error = known[1].local
    exact = np.exp(ring - np.logaddexp(disc, ring))
    assert abs(share - exact) < 4 * error


def test_climbs_weigh_it(model: Model, density: BatchedDensity) -> None:
    """Laplace's approximation is wrong by a factor of hundreds, as the ridge has no curvature."""
    disc, ring = log_masses()
    draws = disc_draws()
    found = other_modes(model, density, {"x": draws}, draws, log_mass=disc, seed=1)
    assert len(found.that_matter()) == 1  # and not every point of the ridge
    mode = found.modes[0]
    assert abs(mode.local.log_mass - ring) > 3
    assert mode.log_mass == pytest.approx(ring, abs=0.6)
    points = mode.points(200, np.random.default_rng(2))
    assert points.shape == (200, 2)
    assert np.linalg.norm(points, axis=1) == pytest.approx(RADIUS, abs=0.3)


def test_points_near_the_target_go_all_the_way_round(model: Model, density: BatchedDensity) -> None:
    """Where the search has particles in a part of the ring only, NUTS goes on from there."""
    disc, ring = disc_draws(), ring_points(400)
    right = ring[ring[:, 0] > RADIUS / 2]
    particles = np.concatenate([disc[0, : len(right)], right])[None]
    found = Scouted(
        search=Population({"x": particles}, np.zeros(1)),
        near=None,
        path=None,
        origin="the prior",
        estimates={},
        constant=None,
        prior=None,
        failures={},
        gradients=0,
        seconds=0.0,
        starts={},
    )
    sound = Judgement(temper=True, nuts_misses=True, search_is_sound=True, findings=())
    near = near_target(model, found, {"x": disc}, sound, [], most_seconds=10, seed=1)
    assert near is not None
    new = near["x"][particles.shape[1] :]
    assert np.linalg.norm(new, axis=1) == pytest.approx(RADIUS, abs=0.3)
    assert (new[:, 0] < 0).mean() > 0.2
    # Nothing is added if NUTS's draws are everywhere that particles are.
    both = np.concatenate([disc, np.tile(right, (4, 5, 1))[:, :400]], axis=1)
    same = near_target(model, found, {"x": both}, sound, [], most_seconds=10, seed=1)
    assert same is not None
    np.testing.assert_array_equal(same["x"], particles[0])


@pytest.mark.slow
def test_auto_samples_disc_and_ring(tmp_path: Path) -> None:
    """The ring's probability, .149, is below .1 in what single coordinates show of it."""
    path = tmp_path / "ring.stan"
    path.write_text(RING)
    result = sample(path, {"r": RADIUS}, seed=41, engine="stanli", progress=False)
    assert result.nuts is not None
    radius = np.linalg.norm(result.nuts.posterior["x"].to_numpy(), axis=-1)
    assert not np.any(radius > BETWEEN)
    disc, ring = log_masses()
    found = result.log_evidence
    assert found is not None
    assert abs(found.value - np.logaddexp(disc, ring)) < 4 * found.mcse
    share = result.fit.expectation(lambda q: (q["x"] ** 2).sum("x_dim_0") > BETWEEN**2)
    assert abs(float(share.value) - np.exp(ring - np.logaddexp(disc, ring))) < 4 * float(share.mcse)
    said = [each for each in result.diagnosis if each.severity > Severity.FINE]
    assert not any("The draws lack" in each.sentence for each in said)


def test_chains_that_do_not_mix_far_below_tell_what_a_mode_has_at_most(tmp_path: Path) -> None:
    """Two narrow pieces 40 nats down, which are taken for one mode: NUTS stays in one of them."""
    model, density = tempered_whole(
        tmp_path,
        "parameters { vector[2] x; } model { target += log_sum_exp([normal_lpdf(x | 0, 1), "
        "-40 + normal_lpdf(x | 20, 0.1), -40 + normal_lpdf(x | 22, 0.1)]); }",
    )
    rng = np.random.default_rng(5)
    alone = alone_of(model, density, rng.normal(size=(4, 500, 2)))
    pieces = np.concatenate([rng.normal(20, 0.1, (40, 2)), rng.normal(22, 0.1, (40, 2))])
    found = alone.sampled(pieces)
    assert found is not None
    assert found.log_mass is None
    exact = -40 + np.log(2)
    # Chains of one piece have that piece's mass at most, each of them: no more than four in all.
    assert exact - np.log(2) < found.at_most < -40 + np.log(4) + 1
    told = alone.of_mode(pieces)
    assert told is not None
    assert told.value == pytest.approx(found.at_most, abs=0.5)
    assert told.mcse == 1.0
    # Nothing is said if it may have more than hardly any.
    wide = alone_of(model, density, rng.normal(22, 0.1, (4, 500, 2)))
    assert wide.of_mode(np.concatenate([pieces[:40], rng.normal(size=(40, 2))])) is None


def test_points_that_tell_the_metric_badly(tmp_path: Path) -> None:
    """They lie along one line of a round Gaussian, so that steps across it are far too short."""
    model, density = tempered_whole(
        tmp_path,
        TWO_ROUND_MODES,
    )
    rng = np.random.default_rng(9)
    alone = alone_of(model, density, rng.normal(size=(4, 500, 4)))
    along = 20 + rng.normal(size=(200, 1)) * np.ones(4) / 2 + 1e-6 * rng.normal(size=(200, 4))
    assert mode_metric(along) is not None
    found = alone.of_mode(along)
    assert found is not None
    assert 0 < found.mcse < 0.05
    assert abs(found.value) < 4 * found.mcse
