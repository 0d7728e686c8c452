"""The ensemble quasi-Newton step: its derivatives, its ratio, and what it leaves invariant."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from ensemble_banana import (
    ETA,
    LAM,
    OTHERS,
    ByHand,
    banana_preconditioner,
    exact_draws,
    functions,
    largest_score,
    log_density,
    place_at,
    squared,
    step_by_hand,
)

from harness.arrays import FloatArray
from harness.samplers.ensemble import (
    EnsembleSettings,
    FixedRoot,
    LocalPreconditioner,
    Place,
    covariance_root,
    decide,
    one_step,
)

SELECTED = (None, (0, 1), (2, 0))
SETTINGS = EnsembleSettings(dt=0.35, gamma=1.3, eta=ETA, lam=LAM)
# A correct sampler exceeds this in one of 31 functions with probability 31 * 2 * Phi(-4.2) < 1e-3.
BOUND = 4.2


def reference_matrix(
    q: FloatArray, others: FloatArray, eta: float, lam: float, select: tuple[int, ...] | None
) -> FloatArray:
    """I + eta C(q) of one walker, from section 3's equations."""
    distance = (others - q)[:, list(select or range(q.size))]
    weight = np.exp(-lam / 2 * (distance**2).sum(axis=1))
    weight /= weight.sum()
    mean = weight @ others
    covariance = sum(w * np.outer(x - mean, x - mean) for w, x in zip(weight, others, strict=True))
    return np.asarray(np.eye(q.size) + eta * covariance)


@pytest.mark.parametrize("select", [*SELECTED, (1,)])
def test_matrix_is_a_root_of_the_local_covariance(select: tuple[int, ...] | None) -> None:
    rng = np.random.default_rng(1)
    others, q = exact_draws(OTHERS, rng), exact_draws(5, rng)
    factor = LocalPreconditioner(others, ETA, LAM, select).root(q).factor
    for row, b in zip(q, factor, strict=True):
        expected = reference_matrix(row, others, ETA, LAM, select)
        np.testing.assert_allclose(b @ b.T, expected, rtol=1e-12, atol=1e-12)
        if select in (None, (0, 1)):
            np.testing.assert_allclose(b, np.linalg.cholesky(expected), rtol=1e-12, atol=1e-12)


def test_moments_about_the_common_mean_agree_with_those_about_each_own() -> None:
    """Where walkers are far apart, moments about the mean of all would be imprecise."""
    rng = np.random.default_rng(2)
    others, q = exact_draws(OTHERS, rng), exact_draws(5, rng)
    far = LocalPreconditioner(np.concatenate([others, 1e4 + others]), ETA, LAM)
    near = LocalPreconditioner(others, ETA, LAM)
    np.testing.assert_allclose(far.root(q).factor, near.root(q).factor, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("select", SELECTED)
def test_derivatives_agree_with_central_differences(select: tuple[int, ...] | None) -> None:
    rng = np.random.default_rng(3)
    preconditioner = banana_preconditioner(4, select)
    q, p, width = exact_draws(4, rng), rng.standard_normal((4, 3)), 1e-5
    chosen = list(select or range(3))
    slopes = np.zeros((4, 3, 3, 3))  # of B_ik along j, with j before them
    for j in range(3):
        shift = width * np.eye(3)[j]
        up, down = (preconditioner.root(q + sign * shift).factor for sign in (1, -1))
        slopes[:, j] = (up - down) / (2 * width)
    root = preconditioner.root(q)
    # The coordinates that are not selected do not move B.
    np.testing.assert_allclose(np.delete(slopes, chosen, axis=1), 0, atol=1e-9)
    for k in range(3):  # the derivative of column k of B
        unit = np.tile(np.eye(3)[k], (4, 1))
        expected = slopes[:, chosen][:, :, chosen, k].transpose(0, 2, 1)
        np.testing.assert_allclose(root.jacobian(unit), expected, rtol=1e-6, atol=1e-8)
    divergence = np.einsum("njji->ni", slopes)
    np.testing.assert_allclose(root.divergence(), divergence, rtol=1e-6, atol=1e-8)
    whole = np.einsum("njik,nk->nij", slopes, p)
    step = np.full((4, 1), 0.3)
    expected = np.log(np.abs(np.linalg.det(np.eye(3) + 0.3 * whole)))
    np.testing.assert_allclose(root.log_determinant(step, p), expected, rtol=1e-6, atol=1e-8)


def test_determinant_of_more_coordinates_than_walkers() -> None:
    """Sylvester's form against the plain one, from the Jacobian itself."""
    rng = np.random.default_rng(5)
    others, q, p = rng.standard_normal((5, 8)), rng.standard_normal((3, 8)), np.ones((3, 8))
    root = LocalPreconditioner(others, 2.0, 0.3).root(q)
    expected = np.linalg.slogdet(np.eye(8) + 0.2 * root.jacobian(p))[1]
    found = root.log_determinant(np.full((3, 1), 0.2), p)
    assert np.abs(expected).min() > 1e-3
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def reversed_step(made: ByHand, preconditioner: LocalPreconditioner) -> ByHand:
    back = Place(made.end.q, -made.end.p, made.end.log_density, made.end.gradient, made.end.root)
    return step_by_hand(back, made.noise_back, SETTINGS, preconditioner)


@pytest.mark.parametrize("select", SELECTED)
def test_step_is_an_involution(select: tuple[int, ...] | None) -> None:
    rng = np.random.default_rng(6)
    preconditioner = banana_preconditioner(7, select)
    q, p, noise = exact_draws(20, rng), rng.standard_normal((20, 3)), rng.standard_normal((20, 3))
    made = step_by_hand(place_at(q, p, preconditioner), noise, SETTINGS, preconditioner)
    again = reversed_step(made, preconditioner)
    np.testing.assert_allclose(again.end.q, q, atol=1e-10)
    np.testing.assert_allclose(-again.end.p, p, atol=1e-10)
    np.testing.assert_allclose(again.noise_back, noise, atol=1e-10)
    np.testing.assert_allclose(again.log_ratio, -made.log_ratio, atol=1e-9)
    rotated = squared(made.turned) + squared(made.noise_back)
    np.testing.assert_allclose(rotated, squared(made.p2) + squared(noise), rtol=1e-12)


@pytest.mark.parametrize("select", SELECTED)
def test_determinants_are_those_of_the_map(select: tuple[int, ...] | None) -> None:
    """log|det| of the 9 x 9 Jacobian of (q, p, R) by central differences; 1/3 misses it."""
    rng = np.random.default_rng(32)  # here the half step has a solution and 1/3 makes a difference
    preconditioner = banana_preconditioner(9, select)
    at = np.concatenate([exact_draws(1, rng)[0], *rng.standard_normal((2, 3))])
    width = 1e-5
    moved = at + width * np.concatenate([np.eye(9), -np.eye(9), np.zeros((1, 9))])
    place = place_at(moved[:, :3], moved[:, 3:6], preconditioner)
    dt = np.full((19, 1), SETTINGS.dt)
    stepped = one_step(place, moved[:, 6:], dt, SETTINGS, preconditioner, log_density)
    assert stepped.valid.all()
    made = step_by_hand(place, moved[:, 6:], SETTINGS, preconditioner)
    ends = np.concatenate([made.end.q, -made.end.p, made.noise_back], axis=1)
    found = np.linalg.slogdet((ends[:9] - ends[9:18]) / (2 * width))[1]
    assert abs(found - (made.log_ratio - made.without_determinants)[-1]) < 1e-6
    assert abs(found - (made.third - made.without_determinants)[-1]) > 1e-2


@pytest.mark.parametrize("select", SELECTED)
@pytest.mark.parametrize("divergence", [True, False])
def test_step_has_the_ratio_by_hand(select: tuple[int, ...] | None, divergence: bool) -> None:
    """The library's ratio has no noise in it, but is the same as in the extended space."""
    rng = np.random.default_rng(10)
    settings = replace(SETTINGS, divergence=divergence)
    preconditioner = banana_preconditioner(11, select)
    q, p, noise = (exact_draws(50, rng), *rng.standard_normal((2, 50, 3)))
    place = place_at(q, p, preconditioner)
    hand = step_by_hand(place, noise, settings, preconditioner)
    made = one_step(place, noise, np.full((50, 1), 0.35), settings, preconditioner, log_density)
    ok = made.valid
    assert ok.mean() > 0.8
    np.testing.assert_allclose(made.place.q[ok], hand.end.q[ok], rtol=1e-12)
    np.testing.assert_allclose(made.place.p[ok], hand.end.p[ok], rtol=1e-10, atol=1e-12)
    ratio = made.log_ratio + made.place.log_density - place.log_density
    np.testing.assert_allclose(ratio[ok], hand.log_ratio[ok], atol=1e-10)


@pytest.mark.parametrize(("gamma", "least"), [(0.0, 2.8), (1.3, 2.3)])
def test_order_of_the_log_ratio(gamma: float, least: float) -> None:
    """Its median falls as dt^3, or as dt^2.5 with friction; without determinants or div as dt."""
    rng = np.random.default_rng(12)
    preconditioner = banana_preconditioner(13)
    q, p, noise = (exact_draws(4000, rng), *rng.standard_normal((2, 4000, 3)))
    steps = np.array([0.1, 0.05, 0.025, 0.0125])
    medians = np.empty((3, steps.size))
    for column, dt in enumerate(steps):
        settings = replace(SETTINGS, dt=float(dt), gamma=gamma)
        place = place_at(q, p, preconditioner)
        made = step_by_hand(place, noise, settings, preconditioner)
        bare = step_by_hand(place, noise, replace(settings, divergence=False), preconditioner)
        for row, ratio in enumerate((made.log_ratio, made.without_determinants, bare.log_ratio)):
            medians[row, column] = np.median(np.abs(ratio))
    right, undetermined, undiverged = np.polyfit(np.log(steps), np.log(medians).T, 1)[0]
    assert right >= least
    assert undetermined < 1.3
    assert undiverged < 1.3


def test_what_passes_passes_on_the_way_back() -> None:
    """A valid step's reverse is valid and ends where it began, or detailed balance fails."""
    rng, count = np.random.default_rng(5), 6000
    preconditioner, dt = banana_preconditioner(20), np.full((count, 1), SETTINGS.dt)
    q, p, noise = (exact_draws(count, rng), *rng.standard_normal((2, count, 3)))
    place = place_at(q, p, preconditioner)
    made = step_by_hand(place, noise, SETTINGS, preconditioner)
    valid = one_step(place, noise, dt, SETTINGS, preconditioner, log_density).valid
    assert np.count_nonzero(~valid) > 0
    back = place_at(made.end.q[valid], -made.end.p[valid], preconditioner)
    again = one_step(back, made.noise_back[valid], dt[valid], SETTINGS, preconditioner, log_density)
    # Rounding decides about a walker whose solution is on the edge of the tolerance.
    assert np.count_nonzero(~again.valid) <= 1
    np.testing.assert_allclose(again.place.q[again.valid], q[valid][again.valid], atol=1e-6)


def paired_scores(count: int, seed: int, select: tuple[int, ...] | None) -> dict[str, float]:
    """Largest score of 31 paired changes in one step of exact draws, for each acceptance ratio.

    All ratios decide about the same steps.
    """
    rng = np.random.default_rng(seed)
    preconditioner = banana_preconditioner(seed + 1, select)
    part = 2_000  # arrays of this size stay in the processor's cache
    dt = np.full((part, 1), SETTINGS.dt)
    names = [
        "log_ratio",
        "without_determinants",
        "inverted_determinants",
        "third",
        "printed_gaussians",
        "printed",
    ]
    changes: dict[str, list[FloatArray]] = {name: [] for name in names}
    for _ in range(count // part):
        q, p, noise = (exact_draws(part, rng), *rng.standard_normal((2, part, 3)))
        place = place_at(q, p, preconditioner)
        made = step_by_hand(place, noise, SETTINGS, preconditioner)
        valid = one_step(place, noise, dt, SETTINGS, preconditioner, log_density).valid
        exponential = rng.standard_exponential(part)
        before, moved = functions(q, p), functions(made.end.q, made.end.p)
        flipped = functions(q, -p)
        for name in names:
            accepted = valid & (getattr(made, name) > -exponential)
            changes[name].append(np.where(accepted[:, None], moved, flipped) - before)
    return {name: largest_score(np.concatenate(each)) for name, each in changes.items()}


@pytest.mark.parametrize("select", [None, (0, 1)])
def test_exact_draws_stay_exact(select: tuple[int, ...] | None) -> None:
    scores = paired_scores(20_000, 14, select)
    assert scores["log_ratio"] < BOUND
    # What is wrong lies far outside.  How far grows with the root of the number of draws.
    assert scores["inverted_determinants"] > BOUND
    assert scores["printed_gaussians"] > 20
    assert scores["printed"] > 20


@pytest.mark.parametrize("misprint", ["third", "without_determinants"])
def test_wrong_determinants_bias_the_same_steps(misprint: str) -> None:
    """Their bias is E[(a_wrong - a) (f(moved) - f(flipped))], because a itself has none.

    Everything else that moves is the same in both, so that few draws show a small bias.
    """
    rng, count = np.random.default_rng(1), 4000
    preconditioner = banana_preconditioner(20)
    q, p, noise = (exact_draws(count, rng), *rng.standard_normal((2, count, 3)))
    place = place_at(q, p, preconditioner)
    made = step_by_hand(place, noise, SETTINGS, preconditioner)
    dt = np.full((count, 1), SETTINGS.dt)
    valid = one_step(place, noise, dt, SETTINGS, preconditioner, log_density).valid
    ratios = (made.log_ratio, getattr(made, misprint))
    right, wrong = (np.exp(np.minimum(0, each)) for each in ratios)
    moved = functions(made.end.q, made.end.p) - functions(q, -p)
    assert largest_score(((wrong - right)[:, None] * moved)[valid]) > 10


@pytest.mark.slow
def test_a_third_in_the_determinant_is_a_misprint() -> None:
    """The smallest of the misprints needs the most draws to be seen."""
    scores = paired_scores(700_000, 19, None)
    assert scores["log_ratio"] < BOUND
    assert scores["third"] > 5
    assert scores["without_determinants"] > 7


def test_decisions_leave_exact_draws_exact() -> None:
    """The library's own decision, with two steps to each, and without div."""
    rng, count = np.random.default_rng(18), 10_000
    preconditioner = banana_preconditioner(19)
    q, p, noise = exact_draws(count, rng), rng.standard_normal((count, 3)), None
    for settings in (
        replace(SETTINGS, steps_per_decision=2),
        replace(SETTINGS, divergence=False),
    ):
        noise = rng.standard_normal((settings.steps_per_decision, count, 3))
        made = decide(
            place_at(q, p, preconditioner),
            noise,
            rng.standard_exponential(count),
            np.full((count, 1), settings.dt),
            settings,
            preconditioner,
            log_density,
        )
        assert 0.5 < made.accepted.mean() < 1
        assert largest_score(functions(made.place.q, made.place.p) - functions(q, p)) < BOUND


def unadjusted_score(dt: float, *, divergence: bool, count: int) -> float:
    rng, part = np.random.default_rng(20), 2_000
    preconditioner = banana_preconditioner(21)
    settings = replace(SETTINGS, dt=dt, metropolis=False, divergence=divergence)
    changes = []
    for _ in range(count // part):
        q, p = exact_draws(part, rng), rng.standard_normal((part, 3))
        place = place_at(q, p, preconditioner)
        for _ in range(round(0.4 / dt)):
            place = decide(
                place,
                rng.standard_normal((1, part, 3)),
                np.empty(part),
                np.full((part, 1), dt),
                settings,
                preconditioner,
                log_density,
            ).place
        changes.append(functions(place.q, place.p) - functions(q, p))
    return largest_score(np.concatenate(changes))


def test_bias_without_metropolis_falls_with_the_step_and_needs_div() -> None:
    count = 8_000
    coarse = unadjusted_score(0.4, divergence=True, count=count)
    fine = unadjusted_score(0.1, divergence=True, count=count)
    assert coarse > 2 * BOUND
    # Of order dt^2: a sixteenth, and BOUND for noise.
    assert fine < coarse / 16 + BOUND
    assert unadjusted_score(0.1, divergence=False, count=3 * count) > BOUND


def test_without_preconditioning_the_step_is_baoab() -> None:
    """And without friction besides, a leapfrog step with the ratio of HMC."""
    rng, dt, gamma = np.random.default_rng(22), 0.3, 0.8
    q, p, noise = (exact_draws(30, rng), *rng.standard_normal((2, 30, 3)))
    identity = FixedRoot()
    for friction in (gamma, 0.0):
        settings = EnsembleSettings(dt=dt, gamma=friction, eta=0)
        place = place_at(q, p, identity)
        drawn = noise if friction else None
        made = one_step(place, drawn, np.full((30, 1), dt), settings, identity, log_density)
        kept = np.exp(-friction * dt)
        half = p + dt / 2 * log_density(q)[1]  # B
        x = q + dt / 2 * half  # A
        turned = kept * half + np.sqrt(1 - kept**2) * noise  # O
        x = x + dt / 2 * turned  # A
        last = turned + dt / 2 * log_density(x)[1]  # B
        np.testing.assert_allclose(made.place.q, x, rtol=1e-12)
        np.testing.assert_allclose(made.place.p, last, rtol=1e-12)
        if not friction:
            np.testing.assert_allclose(made.log_ratio, (squared(p) - squared(last)) / 2, atol=1e-12)


def test_equal_weights_are_a_constant_matrix() -> None:
    """Lam = 0 is any B given directly; it is also the limit of small lam."""
    rng = np.random.default_rng(23)
    others, count = exact_draws(OTHERS, rng), 10
    q, p, noise = (exact_draws(count, rng), *rng.standard_normal((2, count, 3)))
    settings, dt = replace(SETTINGS, lam=0.0), np.full((count, 1), 0.2)
    covariance = np.cov(others.T, bias=True)
    given = FixedRoot(np.asarray(np.linalg.cholesky(np.eye(3) + ETA * covariance), float))
    nearly = LocalPreconditioner(others, ETA, 1e-13)
    ends = []
    for each in (covariance_root(others, ETA), given, nearly):
        made = one_step(place_at(q, p, each), noise, dt, settings, each, log_density)
        ends.append(np.concatenate([made.place.q, made.place.p, made.log_ratio[:, None]], axis=1))
    np.testing.assert_allclose(ends[0], ends[1], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(ends[2], ends[1], rtol=1e-10, atol=1e-10)


def test_low_rank_root_has_the_same_square() -> None:
    rng = np.random.default_rng(24)
    others = rng.standard_normal((6, 40))
    root = covariance_root(others, 7.0, low_rank=True)
    matrix = root.times(np.eye(40))
    expected = np.eye(40) + 7.0 * np.cov(others.T, bias=True)
    np.testing.assert_allclose(matrix @ matrix, expected, atol=1e-12)
    np.testing.assert_allclose(root.transposed_times(np.eye(40)), matrix, atol=1e-13)


def test_a_walker_far_from_all_others() -> None:
    rng = np.random.default_rng(25)
    others = exact_draws(OTHERS, rng)
    for select in (None, (0,)):
        root = LocalPreconditioner(others, 100.0, 12.0, select).root(np.full((1, 3), 1e3))
        for part in (root.factor, root.slope, root.divergence(), root.jacobian(np.ones((1, 3)))):
            assert np.isfinite(part).all()
        # The nearest of the others, a kernel width or more nearer than the next, has all weight.
        np.testing.assert_allclose(root.factor[0], np.eye(3), atol=1e-12)


def test_a_step_that_is_far_too_large_is_refused() -> None:
    """Without a warning, and the walker stays."""
    rng = np.random.default_rng(26)
    preconditioner = banana_preconditioner(27)
    q = exact_draws(200, rng)
    p = rng.standard_normal((200, 3))
    settings = replace(SETTINGS, dt=30.0)
    made = decide(
        place_at(q, p, preconditioner),
        rng.standard_normal((1, 200, 3)),
        np.ones(200),
        np.full((200, 1), 30.0),
        settings,
        preconditioner,
        log_density,
    )
    stays = ~made.accepted
    assert stays.mean() > 0.9
    np.testing.assert_array_equal(made.place.q[stays], q[stays])
    np.testing.assert_array_equal(made.place.p[stays], -p[stays])
