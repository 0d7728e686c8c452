"""Modes weighed by their masses: estimates, their errors, the diagnosis, and when it is done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from operator import itemgetter
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from calibration import mean_square_bounds
from scipy.signal import lfilter
from scipy.stats import multivariate_t, norm
from test_modes import Plain, visits

from harness import evidence
from harness.arrays import FloatArray
from harness.diagnosis import Finding, Severity, diagnose
from harness.errors import DataError
from harness.evidence import LogEvidence, equal_masses, strata_errors
from harness.fit import Fit, build_fit, evidence_attributes, weigh_modes
from harness.modes import FoundModes, Mode, ModeTable, ShareByMass, find_modes
from harness.report import FitReport
from harness.user import UserFit
from harness.user.given_fit import read_given
from harness.user.in_modes import METHOD as IN_MODES
from harness.user.prior import prior_attributes
from harness.user.spent import prospect, prospect_sentence
from harness.user.weigh import Weighed, _strata, _table, changed_shares, log_evidence_by_mass

CENTRE, WIDTH = np.array([-8.0, 6.0]), np.array([1.0, 1.5])
TRUE = np.array([0.3, 0.7])


def wandering(rng: np.random.Generator, draws: int) -> tuple[FloatArray, npt.NDArray[np.intp]]:
    """Four chains that change between two modes now and then, and are in each half of the time."""
    flips = rng.random((4, draws)) < 0.01
    mode = (rng.integers(2, size=(4, 1)) + np.cumsum(flips, axis=1)) % 2
    # An autocorrelation of 0.6 from a draw to the next, and variance 1.
    noise = lfilter([0.8], [1, -0.6], rng.normal(size=(4, draws + 50)), axis=1)[:, 50:]
    return CENTRE[mode] + WIDTH[mode] * noise, np.asarray(mode, dtype=np.intp)


def test_errors_are_those_of_repeated_runs() -> None:
    """Masses that are off by chance, as their errors tell, and shares that are off by far."""
    rng = np.random.default_rng(1)
    log_error = np.array([0.03, 0.02])
    functions: dict[str, tuple[Callable[[FloatArray], FloatArray], float]] = {
        "mean": (lambda x: x, float(TRUE @ CENTRE)),
        "square": (np.square, float(TRUE @ (np.square(CENTRE) + np.square(WIDTH)))),
        "mode": (lambda x: (x < 0).astype(float), float(TRUE @ norm.cdf(-CENTRE / WIDTH))),
        "part": (lambda x: (x > 7).astype(float), float(TRUE @ norm.sf((7 - CENTRE) / WIDTH))),
    }
    runs, z = 300, []
    for _ in range(runs):
        x, mode = wandering(rng, 500)
        mass = TRUE * np.exp(log_error * rng.normal(size=2))
        log_weight = evidence.weigh_strata(np.zeros(x.shape), mode, mass / mass.sum())
        values = np.stack([f(x) for f, _ in functions.values()], axis=2)
        found = evidence.stratified_expectation(values, log_weight, mode, log_error)
        z.append((found.value - [true for _, true in functions.values()]) / found.mcse)
        assert found.mcse[2] == pytest.approx(
            found.value[2] * (1 - found.value[2]) * np.hypot(*log_error), rel=0.1
        )
    low, high = mean_square_bounds(runs)
    squares = np.square(z).mean(axis=0)
    assert np.all(squares > low), dict(zip(functions, squares, strict=True))
    # An estimated error of some 150 effective draws has itself one of 6 %, and inflates squares.
    assert np.all(squares < 1.02 * high), dict(zip(functions, squares, strict=True))


def weights(log_weight: FloatArray) -> FloatArray:
    return evidence.normalised_weights(log_weight.ravel()).reshape(log_weight.shape)


def test_weights_give_each_stratum_its_probability() -> None:
    rng = np.random.default_rng(2)
    own, stratum = rng.normal(size=(2, 60)), rng.integers(3, size=(2, 60))
    p = np.array([0.2, 0.7, 0.1])
    weight = weights(evidence.weigh_strata(own, stratum, p))
    assert [float(weight[stratum == k].sum()) for k in range(3)] == pytest.approx(list(p))
    inside = weight[stratum == 1] / np.exp(own[stratum == 1])
    assert np.ptp(inside) < 1e-12 * inside[0]
    values = rng.normal(size=(2, 60, 2))
    found = evidence.stratified_expectation(values, np.log(weight), stratum, np.zeros(3))
    assert found.value == pytest.approx(np.einsum("cd,cdk->k", weight, values))
    # A stratum whose draws have no weight is left out, and does not spoil the others.
    none = np.where(stratum == 0, -np.inf, own)
    weight = weights(evidence.weigh_strata(none, stratum, p))
    assert weight[stratum == 0].sum() == 0
    assert float(weight[stratum == 1].sum()) == pytest.approx(0.7 / 0.8)
    for wrong in (stratum[:, :5], stratum + 1, stratum - 1):
        with pytest.raises(DataError, match="strata"):
            evidence.weigh_strata(own, wrong, p)
    with pytest.raises(DataError, match="strata"):
        evidence.stratified_expectation(values[:, :5], own, stratum, p)


def test_scores_are_normal_in_each_chain_whatever_the_modes_are_like() -> None:
    """Chains with other shares of a narrow, a wide and a skew mode."""
    rng = np.random.default_rng(8)
    shares = [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8], [1.0, 0.0, 0.0]]
    mode = np.stack([rng.choice(3, size=1000, p=each) for each in shares])
    x = np.choose(
        mode, [rng.normal(0, 1, mode.shape), 9 * mode + 3 * mode, -rng.gamma(2, 4, mode.shape)]
    )
    both = np.stack([x, np.where(mode == 1, rng.normal(5, 4, mode.shape), x)], axis=2)
    scores = evidence.strata_scores(both, mode)
    for inside in (scores[mode == 1], scores[mode == 2]):  # also where all values are equal
        assert inside.mean(axis=0) == pytest.approx([0, 0], abs=1e-6)
        assert inside.std(axis=0) == pytest.approx([1, 1], abs=0.01)
    assert evidence.largest_r_hat(both) > 1.1
    assert evidence.largest_r_hat(scores) < 1.01
    scores = evidence.strata_scores(np.where(np.arange(4)[:, None] == 3, 2, 1) * x, mode)
    assert evidence.largest_r_hat(scores) > 1.02


def plain_fit(x: FloatArray) -> Fit:
    return build_fit(
        posterior={"x": x, "log_w1": np.stack([x, -x], axis=2)},
        extended=None,
        sample_stats={"lp": -np.square(x)},
        constant_data={},
        attrs={"settings": {}, "method": "nuts", "model": "two", "seed": 1},
    )


def stuck(rng: np.random.Generator) -> tuple[FloatArray, npt.NDArray[np.intp]]:
    """Three chains in one mode and one in the other."""
    mode = np.repeat([[0], [0], [0], [1]], 500, axis=1)
    return CENTRE[mode] + WIDTH[mode] * rng.normal(size=mode.shape), mode


def test_a_fit_of_chains_that_are_stuck(tmp_path: Path) -> None:
    x, mode = stuck(np.random.default_rng(3))
    plain = plain_fit(x)
    assert diagnose(plain)[0].severity is Severity.PROBLEM
    fit = weigh_modes(plain, mode, TRUE, np.array([0.01, 0.01]), seed=1)
    assert plain.weighed_modes is None
    share = (fit.posterior["x"] < 0).mean()
    assert float(share) == pytest.approx(0.3, abs=1e-3)  # systematic resampling of 2,000
    below = fit.expectation(lambda draws: draws["x"] < 0)
    assert float(below.value) == pytest.approx(0.3, abs=0.005)
    assert float(below.mcse) == pytest.approx(0.21 * np.hypot(0.01, 0.01), rel=0.1)
    mean = fit.expectation(itemgetter("x"))
    assert abs(float(mean.value) - TRUE @ CENTRE) < 4 * float(mean.mcse)
    assert fit.expectation(itemgetter("log_w1")).value == pytest.approx(
        [float(mean.value), -float(mean.value)]
    )
    found = diagnose(fit)
    assert found[0].severity is Severity.FINE, found[0]
    assert any(each.sentence.startswith("The chains agree: R-hat within modes") for each in found)
    again = Fit.load(saved(fit, tmp_path))
    assert again.expectation(itemgetter("x")) == mean
    assert again.raw["log_w1"].shape == (4, 500, 2)
    np.testing.assert_array_equal(again.posterior["x"], fit.posterior["x"])
    half = fit.first_draws(250).expectation(itemgetter("x"))
    assert abs(float(half.value) - TRUE @ CENTRE) < 4 * float(half.mcse)
    FitReport(fit).save(tmp_path / "fit.html")
    page = (tmp_path / "fit.html").read_text()
    assert "in which each mode has its probability by its mass" in page
    np.testing.assert_array_equal(read_given(tmp_path / "fit.nc").variables["x"], x)
    again.tree.attrs["method"] = IN_MODES
    with pytest.raises(DataError, match="has draws of NUTS in each mode, as many"):
        read_given(again)


def test_a_fit_that_is_saved_with_another_one_of_more_draws(tmp_path: Path) -> None:
    rng = np.random.default_rng(10)
    x, mode = stuck(rng)
    fit = weigh_modes(plain_fit(x), mode, TRUE, np.array([0.01, 0.01]), seed=1)
    other = plain_fit(rng.normal(size=(4, 700)))
    UserFit(fit, "parallel_tempering", nuts=other).save(tmp_path / "both.nc")
    again = Fit.load(tmp_path / "both.nc")
    assert again.expectation(itemgetter("x")) == fit.expectation(itemgetter("x"))
    assert again.tree["nuts_posterior"].sizes["draw"] == 700
    assert diagnose(again) == diagnose(fit)


def saved(fit: Fit, folder: Path) -> Path:
    fit.save(folder / "fit.nc")
    return folder / "fit.nc"


def test_chains_that_disagree_within_a_mode_still_disagree() -> None:
    x, mode = stuck(np.random.default_rng(4))
    x[0] += 3
    fit = weigh_modes(plain_fit(x), mode, TRUE, np.array([0.01, 0.01]), seed=1)
    worst = diagnose(fit)[0]
    assert worst.severity is Severity.PROBLEM
    assert "R-hat within modes" in worst.sentence


def test_draws_with_weights_of_their_own_keep_them() -> None:
    """Draws of wider modes, weighted to those that are meant."""
    rng = np.random.default_rng(5)
    mode = rng.integers(2, size=(4, 2000))
    x = CENTRE[mode] + 1.3 * WIDTH[mode] * rng.normal(size=mode.shape)
    z = (x - CENTRE[mode]) / WIDTH[mode]
    log_weight = -0.5 * np.square(z) + 0.5 * np.square(z / 1.3)
    fit = build_fit(
        posterior={"x": x},
        extended={"x": x, "log_w1": log_weight},
        sample_stats={},
        constant_data={},
        attrs={"settings": {}, "method": "collapsed_tempering", "seed": 1},
        pseudo_samples=False,
    )
    fit = weigh_modes(fit, mode, TRUE, np.array([0.0, 0.0]), seed=1)
    squares = np.square(CENTRE) + np.square(WIDTH)
    for found, each in (
        (fit.expectation(itemgetter("x")), CENTRE),
        (fit.expectation(lambda draws: draws["x"] ** 2), squares),
    ):
        assert abs(float(found.value) - TRUE @ each) < 4 * float(found.mcse)
    np.testing.assert_array_equal(fit.drawn_log_weight, log_weight)


def test_pseudo_samples_cannot_be_weighed() -> None:
    x = np.zeros((1, 20, 2))
    fit = build_fit(
        posterior={"x": x[..., 0]},
        extended={"x": x, "log_weight": x},
        sample_stats={},
        constant_data={},
        attrs={"settings": {}, "method": "pseudo_extended", "seed": 1},
    )
    with pytest.raises(DataError, match="pseudo-samples"):
        weigh_modes(fit, np.zeros((1, 20), dtype=np.intp), np.ones(1), np.ones(1), seed=1)


def test_tails_count_with_the_mass_of_a_mode() -> None:
    """A t distribution in three dimensions has a ninth of its draws outside of its ellipsoid."""
    tailed, where = multivariate_t(np.zeros(3), np.eye(3), df=6), np.full(3, 30.0)

    def log_density(x: FloatArray) -> tuple[FloatArray, FloatArray]:
        one = np.log(0.4) + tailed.logpdf(x)
        other = np.log(0.6) - 0.5 * np.square(x - where).sum(axis=1) - 1.5 * np.log(2 * np.pi)
        value = np.logaddexp(one, other)
        share = np.exp(one - value)[:, None]
        slope = -9 * x / (6 + np.square(x).sum(axis=1, keepdims=True))
        return value, share * slope - (1 - share) * (x - where)

    rng, runs, z, mass = np.random.default_rng(6), 20, [], []
    outside = []
    for seed in range(runs):
        first = rng.random((4, 1000, 1)) < 0.5
        points = np.where(
            first, tailed.rvs((4, 1000), random_state=rng), rng.normal(where, size=(4, 1000, 3))
        )
        target = Plain(log_density, {"x": (3,)})
        found = find_modes([visits("nuts", points)], target, effective=4000, seed=seed)
        number = int(np.argmin([sum(each.centre["x"]) for each in found.table.modes]))
        share = found.by_mass[number]
        z.append((share.probability - 0.4) / share.error)
        mass.append((share.log_mass.value - np.log(0.4)) / share.log_mass.mcse)
        # The curvature at the peak is that of a Gaussian of variance 6 / 9.
        near = np.square(points).sum(axis=2) * 9 / 6 < 16.27
        outside.append(1 - near[first[..., 0]].mean())
    assert 0.05 < np.mean(outside) < 0.1
    low, high = mean_square_bounds(runs)
    for scores in (z, mass):
        assert low < np.mean(np.square(scores)) < high
        assert abs(np.mean(scores)) < 4 / np.sqrt(runs)


def a_mode(probability: float, error: float) -> Mode:
    return Mode(probability, error, {"nuts": probability}, {"x": [0.0]}, 0.0, True)


def by_mass_of(probability: float, error: float = 0.005, log_error: float = 0.014) -> ShareByMass:
    """Of a density that integrates to exp(-7)."""
    mass = LogEvidence(float(np.log(probability)) - 7, log_error)
    return ShareByMass(probability, error, mass)


def two_modes() -> FoundModes:
    """Shares of .65 and .35 ± .03, and masses of .5 ± .005."""
    table = ModeTable((a_mode(0.65, 0.03), a_mode(0.35, 0.03)), ("nuts",))
    numbers = np.repeat([0, 1], [650, 350])
    by_mass = {k: by_mass_of(0.5) for k in range(2)}
    return FoundModes(table, np.zeros((1000, 1)), numbers, np.ones(1), by_mass, ())


@pytest.mark.parametrize("probability", [(0.9, 0.95), (0.5, 1.0), (0.0, 1.0), (1.0, 1.0)])
def test_numbers_that_are_often_equal_are_compared(probability: tuple[float, float]) -> None:
    """An indicator in two modes, the draws of one after those of the other in each chain."""
    rng = np.random.default_rng(9)
    mode = np.tile(np.repeat([0, 1], 500), (4, 1))
    x = (rng.random(mode.shape) < np.array(probability)[mode]).astype(float)
    scores = evidence.strata_scores(x, mode)
    if np.all(x == 1):
        assert not scores.any()
        return
    assert evidence.largest_r_hat(scores) < 1.01
    x[0] = np.where(rng.random(1000) < 0.5, 1 - x[0], x[0])  # another chain disagrees
    assert evidence.largest_r_hat(evidence.strata_scores(x, mode)) > 1.02


def test_values_that_are_no_numbers_have_no_scores() -> None:
    x, mode = np.ones((4, 10, 2)), np.zeros((4, 10), dtype=np.intp)
    x[..., 1] = np.random.default_rng(1).normal(size=(4, 10))
    x[1, 3, 1] = np.nan
    scores = evidence.strata_scores(x, mode)
    assert np.all(scores[..., 0] == 0)
    assert np.isnan(scores[..., 1]).all()


@pytest.mark.parametrize(
    ("shares", "masses", "severity", "told"),
    [
        # The draws of one mode tell nothing of how probable the other one is.
        ((1.0, 0.0), (0.4, 0.6), Severity.FINE, "mode 2, in which the method before had no draws"),
        # Of those with draws they tell how probable they are, relative to each other.
        ((0.25, 0.75, 0.0), (0.1, 0.3, 0.6), Severity.FINE, "mode 3, in which the method before"),
        ((0.25, 0.75, 0.0), (0.2, 0.2, 0.6), Severity.WARNING, "The chains change modes"),
        # What they are in may be negligible.
        ((0.25, 0.75, 0.0), (1e-9, 1e-9, 1.0), Severity.FINE, "mode 3, in which the method before"),
        ((1.0, 0.0), (0.0, 1.0), Severity.FINE, "mode 2, in which the method before"),
        ((0.25, 0.75), (0.26, 0.74), Severity.FINE, "mode 1 has 0.250 ± 0.010 of the draws"),
        ((0.25, 0.75), (0.5, 0.5), Severity.WARNING, "mode 1 has 0.250 ± 0.010 of the draws"),
    ],
)
def test_shares_are_compared_where_there_are_draws(
    shares: tuple[float, ...], masses: tuple[float, ...], severity: Severity, told: str
) -> None:
    before = ModeTable(tuple(a_mode(each, 0.01 * (0 < each < 1)) for each in shares), ("nuts",))
    after = ModeTable(tuple(a_mode(each, 0.001) for each in masses), ("nuts_in_modes",))
    found = changed_shares(before, after)
    assert found.severity is severity
    assert told in found.sentence


def test_masses_are_used_where_they_are_better() -> None:
    found = two_modes()
    strata = _strata(found)
    assert strata is not None
    assert strata.probability == pytest.approx([0.5, 0.5])
    table = _table(found.table, strata)
    assert [each.probability for each in table.modes] == pytest.approx([0.5, 0.5])
    # Of p = m1 / (m1 + m2): p (1 - p) times the error of log m1 - log m2.
    assert table.modes[0].error == pytest.approx(0.25 * np.hypot(0.014, 0.014))
    assert [each.seen_by["nuts"] for each in table.modes] == [0.65, 0.35]
    # Half of each relative error.
    assert strata.log_integral == pytest.approx((-7, np.hypot(0.007, 0.007)))


def test_masses_are_not_used_where_they_are_no_better_or_draws_are_too_few() -> None:
    found = two_modes()
    rough = {k: by_mass_of(0.5, 0.04, 0.11) for k in range(2)}
    assert _strata(replace(found, by_mass=rough)) is None
    assert _strata(replace(found, by_mass={})) is None
    assert _strata(replace(found, table=replace(found.table, unsure=0.02))) is None
    few = np.repeat([0, 1], [960, 40])
    assert _strata(replace(found, numbers=few)) is None
    far = {0: by_mass_of(0.1), 1: by_mass_of(0.9)}
    assert _strata(replace(found, by_mass=far)) is None
    # Chains that missed a mode of a third do not know its mass.
    third = (*found.table.modes[:1], a_mode(0.25, 0.03), a_mode(0.1, 0.03))
    assert _strata(replace(found, table=replace(found.table, modes=third))) is None


def test_a_small_mode_without_a_known_mass_keeps_its_share() -> None:
    found = two_modes()
    modes = (a_mode(0.646, 0.03), a_mode(0.35, 0.03), a_mode(0.004, 0.002))
    strata = _strata(replace(found, table=replace(found.table, modes=modes)))
    assert strata is not None
    assert strata.probability == pytest.approx([0.498, 0.498, 0.004])
    assert strata.log_error == pytest.approx([0.014, 0.014, 0.5])
    # The masses are .996 of the whole, and that is known by .002.
    error = np.sqrt(2 * 0.007**2 + (0.002 / 0.996) ** 2)
    assert strata.log_integral == pytest.approx((-7 - np.log(0.996), error))


def test_masses_that_are_known_to_be_equal() -> None:
    """The log of the sum has the error of independent masses, and the family's ratio none."""
    masses = {k: LogEvidence(float(np.log(k)), 0.1 * k) for k in (1, 2, 3, 4)}
    found = equal_masses(masses, [[1, 3, 7], [8, 9]])
    assert found == masses | {k: (pytest.approx(np.log(2)), 0.1 * k) for k in (1, 3)}
    # That of the family against the others: by errors as they are, and by the sum of two.
    p = np.array([0.25, 0.25, 0.2, 0.3])
    errors = np.array([0.1, 0.1, 0.2, 0.4])
    of_sum = np.hypot(*p[:2] * errors[:2]) / p[:2].sum()
    joined = strata_errors(np.array([0.5, 0.2, 0.3]), np.array([of_sum, 0.2, 0.4]))
    assert strata_errors(p, errors)[2:] == pytest.approx(joined[1:])


def test_log_z_by_masses() -> None:
    """It takes the place of a less precise one, if it agrees and the prior's integral is known."""
    x, mode = stuck(np.random.default_rng(7))
    fit = weigh_modes(plain_fit(x), mode, TRUE, np.array([0.01, 0.01]), seed=1)
    table, fine = two_modes().table, Finding(Severity.FINE, "")
    weighed = Weighed(fit, table, LogEvidence(-7.0, 0.01), fine)
    assert log_evidence_by_mass(weighed) == []  # there is no log Z
    fit.tree.attrs.update(evidence_attributes(LogEvidence(-5.0, 0.05)))
    assert log_evidence_by_mass(weighed) == []  # nor the prior's integral
    fit.tree.attrs.update(prior_attributes(LogEvidence(-1.9, 0.02)))
    (said,) = log_evidence_by_mass(weighed)
    assert said.severity is Severity.FINE
    assert fit.log_evidence == pytest.approx((-5.1, np.hypot(0.01, 0.02)))
    fit.tree.attrs.update(evidence_attributes(LogEvidence(-5.1, 0.02)))
    assert log_evidence_by_mass(weighed) == []  # it is more precise itself
    doubted = weighed._replace(finding=Finding(Severity.WARNING, ""))
    (said,) = log_evidence_by_mass(doubted)
    assert "which do not depend on shares of draws and agree" in said.sentence
    assert fit.log_evidence == pytest.approx((-5.1, np.hypot(0.01, 0.02)))
    fit.tree.attrs.update(evidence_attributes(LogEvidence(-5.3, 0.05)))
    (said,) = log_evidence_by_mass(weighed)
    assert said.severity is Severity.WARNING
    assert "-5.100 ± 0.022, and the method's own estimate is -5.300 ± 0.050" in said.sentence
    # The modes are a part of the whole, so the larger value counts; its error tells of the other.
    assert fit.log_evidence == pytest.approx((-5.1, 0.2 / 3))
    fit.tree.attrs.update(evidence_attributes(LogEvidence(-4.5, 0.05)))
    (said,) = log_evidence_by_mass(weighed)
    assert "The larger one counts" in said.sentence
    assert fit.log_evidence == pytest.approx((-4.5, 0.6 / 3))


@pytest.mark.parametrize(
    ("seen", "own", "explained"),
    [
        (0.5, -5.1 - np.log(2), True),  # it has missed a mode with a half
        (0.5, -5.1 - np.log(2) + 0.12, True),  # three errors, by hypot(.05, .022), are .16
        (0.5, -5.1 - np.log(2) - 0.2, False),  # the mode does not explain all
        (0.5, -5.1 - np.log(2) + 0.2, False),
        (1.0, -5.1 - np.log(2), False),
        (0.0, -5.1 - np.log(2), False),
    ],
)
def test_what_a_method_has_missed_explains_its_log_z(
    seen: float, own: float, explained: bool
) -> None:
    x, mode = stuck(np.random.default_rng(7))
    fit = weigh_modes(plain_fit(x), mode, TRUE, np.array([0.01, 0.01]), seed=1)
    fit.tree.attrs.update(evidence_attributes(LogEvidence(own, 0.05)))
    fit.tree.attrs.update(prior_attributes(LogEvidence(-1.9, 0.02)))
    fine = Finding(Severity.FINE, "")
    weighed = Weighed(fit, two_modes().table, LogEvidence(-7.0, 0.01), fine)
    (said,) = log_evidence_by_mass(weighed, seen)
    assert fit.log_evidence.value == pytest.approx(-5.1)
    if explained:
        assert said.severity is Severity.FINE
        assert "no draws in modes with 50.0% of the mass, which explains its own" in said.sentence
        assert fit.log_evidence.mcse == pytest.approx(np.hypot(0.01, 0.02))
    else:
        assert said.severity is Severity.WARNING
        assert fit.log_evidence.mcse == pytest.approx(abs(own + 5.1) / 3)


@pytest.mark.parametrize(
    ("seen", "own", "value"),
    [
        (0.99, LogEvidence(-5.111, 0.001), -5.111 - np.log(0.99)),  # more precise, and added to
        (0.99, LogEvidence(-5.101, 0.001), -5.101),  # what it has not drawn from, it has counted
        (0.9999, LogEvidence(-5.111, 0.001), -5.111),  # which is less than its error
    ],
)
def test_a_small_mode_is_added_to_a_precise_log_z(
    seen: float, own: LogEvidence, value: float
) -> None:
    """The masses say -5.1 ± 0.022: more than the mode's share, but they tell which is nearer."""
    x, mode = stuck(np.random.default_rng(7))
    fit = weigh_modes(plain_fit(x), mode, TRUE, np.array([0.01, 0.01]), seed=1)
    fit.tree.attrs.update(evidence_attributes(own))
    fit.tree.attrs.update(prior_attributes(LogEvidence(-1.9, 0.02)))
    fine = Finding(Severity.FINE, "")
    weighed = Weighed(fit, two_modes().table, LogEvidence(-7.0, 0.01), fine)
    said = log_evidence_by_mass(weighed, seen)
    assert fit.log_evidence == pytest.approx((value, 0.001))
    assert len(said) == (value != own.value)
    if said:
        assert "no draws in modes with 1.0% of the mass, so that its own" in said[0].sentence


def test_what_more_draws_would_buy() -> None:
    """Points around peaks are as many as before, and modes that follow each other have no half."""
    x, mode = wandering(np.random.default_rng(11), 500)
    fit = weigh_modes(plain_fit(x), mode, TRUE, np.array([0.01, 0.01]), seed=1)
    fit.tree.attrs.update(evidence_attributes(LogEvidence(-5.0, 0.05)))
    fit.tree.attrs.update(prior_attributes(LogEvidence(0.0, 0.0)))
    table, fine = two_modes().table, Finding(Severity.FINE, "")
    (said,) = log_evidence_by_mass(Weighed(fit, table, LogEvidence(-5.0, 0.01), fine))
    assert said.severity is Severity.FINE
    told = prospect(fit, {"parallel": 3.0}, "parallel", 0.01)
    assert told.error_twice is None
    assert told.effective_half is not None
    assert "0.010, is that of the masses of the modes, and stays" in prospect_sentence(told)
    fit.tree.attrs["method"] = IN_MODES
    assert prospect(fit, {"in_modes": 3.0}, "in_modes", 0.01).effective_half is None
