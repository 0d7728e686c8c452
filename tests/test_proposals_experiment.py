"""The experiment on several proposals at once: its targets are right, its claims can fail."""

from __future__ import annotations

from typing import Any, Never

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.stats import norm, t
from stan_density import StanDensity

from experiments.proposals import factors, neck, opposite, student, targets
from experiments.proposals.exact import metropolis_on_t
from experiments.proposals.grid import (
    BURN_IN,
    CALLS,
    EFFICIENCY,
    ERROR,
    FUNNEL,
    OPPOSITE,
    PERSISTENT,
    PILLAR,
    SIZES,
    SMALL,
)
from experiments.proposals.measures import burnt_in, distance, measure
from experiments.proposals.tables import crossings, published
from harness.arrays import FloatArray
from harness.fit import Fit
from harness.model import Model
from harness.model.density import TargetDensity
from harness.plan.catalogue import load_experiment
from harness.plan.spec import PROFILES, Cell, Profile, Results
from harness.proposals import Chance, GaussianSteps, evaluated, multiple_try, value_of

PROPOSALS = load_experiment("proposals")
PARTS = (BURN_IN, EFFICIENCY, ERROR, SMALL, FUNNEL, OPPOSITE, PERSISTENT, PILLAR, CALLS)


def no_fit(cell: Cell, replication: int) -> Never:
    raise AssertionError(f"no fit of {cell.key}, {replication} is needed")


def test_grids() -> None:
    for profile in PROFILES:
        cells = PROPOSALS.grid(profile)
        assert len({cell.key for cell in cells}) == len(cells)
        assert all(cell.replications == 2 for cell in cells)
        assert all(cell.content() for cell in cells)  # plain data, arrays, dataclasses
        assert {cell.factors["part"] for cell in cells} == set(PARTS)
    assert SIZES["paper"].funnel == (1000, 100_000, 100_000)  # as published, like those below
    assert SIZES["paper"].small == (1000, 10_000)
    assert SIZES["paper"].burn_in[0] == SIZES["quick"].burn_in[0] == 5000


def test_published_numbers() -> None:
    """Every row is one that the tables make."""
    rows = published().set_index(["part", "scheme", "quantity"])["value"]
    assert rows[EFFICIENCY, "MTM, σ = 10", "effective samples a proposal"] == 0.036
    assert rows[ERROR, "MIT, σ = 10", "mean square error"] == 0.0047
    assert rows[SMALL, "WR-MTM, σ = 0.1", "mean square error"] == 0.046
    made = {table.name: table.frame for table in PROPOSALS.tables(results({}))}
    for part, scheme, _ in rows.index:
        assert scheme in made[part.replace(" ", "-")].index


# Targets

MODELS = [
    targets.student_t(), targets.funnel(), targets.gaussian(), targets.product(0.3, 3.0),
]  # fmt: skip


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_gradients(model: Model) -> None:
    points = np.random.default_rng(1).normal(size=(6, model.dimension))
    assert model.log_density is not None
    _, slope = model.log_density(points)
    for axis in range(model.dimension):
        step = np.zeros(model.dimension)
        step[axis] = 1e-6
        rise = model.log_density(points + step)[0] - model.log_density(points - step)[0]
        np.testing.assert_allclose(slope[:, axis], rise / 2e-6, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("model", MODELS[:2], ids=lambda model: model.name)
def test_stan_programs_have_the_same_density(model: Model) -> None:
    """Up to a constant, and with the same gradient."""
    stan = StanDensity(model.program("target"), {})
    points = np.random.default_rng(2).normal(size=(5, model.dimension))
    assert model.log_density is not None
    value, slope = model.log_density(points)
    found = [stan(point) for point in points]
    np.testing.assert_allclose(np.ptp([v for v, _ in found] - value), 0, atol=1e-12)
    np.testing.assert_allclose([g for _, g in found], slope, rtol=1e-12)


def test_kernels_run_on_stan_programs() -> None:
    """The same seed gives the same chains, whether Stan or NumPy evaluates the funnel."""
    model, ends = targets.funnel(), []
    for density in (targets.log_funnel, value_of(TargetDensity(model))):
        chance = Chance(np.random.default_rng(12))
        chains = evaluated(density, neck.start(50))
        for _ in range(5):
            chains = multiple_try(
                density, GaussianSteps(neck.WIDTHS), chains, chance, tries=3
            ).after
        ends.append(chains.points)
    np.testing.assert_array_equal(ends[0], ends[1])


def test_known_answers() -> None:
    """E|x| by quadrature; the funnel and the others by their definitions."""
    mean = 2 * quad(lambda x: x * t.pdf(x, 5), 0, np.inf)[0]
    assert pytest.approx(mean, abs=1e-9) == targets.MEAN_ABS
    points = np.random.default_rng(3).normal(size=(5, 5))
    v, x = points[:, 0], points[:, 1:]
    along = np.asarray(norm.logpdf(x, 0, np.exp(v / 2)[:, None]))
    known = norm.logpdf(v, 0, 3) + along.sum(axis=1)
    np.testing.assert_allclose(np.ptp(targets.log_funnel(points) - known), 0, atol=1e-12)
    far = np.array([[-800.0, 1, 1, 1, 1], [0, 1, 1, 1, 1]])
    assert np.isneginf(targets.log_funnel(far)).tolist() == [True, False]
    line = np.array([[-0.1], [0.05], [0.5], [1.1]])
    assert np.isfinite(targets.log_uniform(line)).tolist() == [False, True, True, False]
    mass = np.exp(targets.log_pillar(np.array([[0.05], [0.5]]))) * [0.1, 0.9]
    np.testing.assert_allclose(mass, 0.5)
    assert np.isneginf(targets.log_pillar(line)[[0, 3]]).all()


def test_quadrature_of_a_chain() -> None:
    """Against a simulation of 400 chains of 1500 steps, within 4.5 of its errors."""
    for sd in (3.0, 10.0):
        exact = metropolis_on_t(sd, end=80.0)
        attrs = student.sample_student_t(
            targets.student_t(), scheme="metropolis", sd=sd, runs=400, steps=1500, trace=True,
            seed=10,
        ).tree.attrs  # fmt: skip
        assert abs(attrs["effective"] - exact.effective) < 4.5 * attrs["effective_error"]
        # The error of the mean acceptance, from independent chains: they differ by 0.03 or less.
        assert abs(attrs["acceptance"] - exact.acceptance) < 4.5 * 0.03 / 20
    assert metropolis_on_t(1.0).acceptance == pytest.approx(0.722, abs=1e-3)  # as published
    assert metropolis_on_t(10.0).acceptance == pytest.approx(0.147, abs=1e-3)
    finer = metropolis_on_t(3.0, end=80.0, width=0.05)
    assert finer.effective == pytest.approx(metropolis_on_t(3.0, end=80.0).effective, rel=1e-3)


# What is measured


def test_burn_in_index() -> None:
    """From where on the variance stays near 5/3."""
    assert burnt_in(np.array([0.0, 9.0, 1.7, 3.0, 1.6, 1.7])) == 4
    assert burnt_in(np.array([1.7, 1.7])) == 0
    assert np.isnan(burnt_in(np.array([1.7, 9.0])))


def test_distance_on_the_funnel() -> None:
    """Of exact draws it is the rate at which Kolmogorov's statistic falls; of a point mass 1/2."""
    v = np.random.default_rng(4).normal(0, 3, 10_000)
    assert distance(neck.counted(v) / v.size) < 1.95 / 100  # exceeded with probability 1e-3
    assert distance(neck.counted(np.zeros(1))) == pytest.approx(0.5, abs=0.02)
    assert distance(neck.counted(np.array([-500.0]))) == pytest.approx(1, abs=1e-9)
    np.testing.assert_array_equal(neck.counted(np.array([500.0]), np.array([2.0]))[-1], 2.0)


def test_crossings() -> None:
    path = np.array([[0.05, 0.5, 0.95, 0.05, 0.2, 0.02], [0.5, 0.5, 0.95, 0.5, 0.5, 0.5]])
    assert opposite.crossings(path) == 2


# Runs


def attributes(fit: Fit) -> dict[str, Any]:
    return {str(name): value for name, value in fit.tree.attrs.items()}


def cell_of(part: str, settings: dict[str, Any]) -> Any:
    class Part:
        def __init__(self) -> None:
            self.factors, self.settings = {"part": part}, settings

    return Part()


@pytest.mark.parametrize("scheme", ["independent", "metropolis", "multiple try"])
def test_runs_on_student_t(scheme: student.Scheme) -> None:
    """Means of |x| are right in all three ways, within 4.5 errors over 400 runs."""
    settings: dict[str, Any] = {"scheme": scheme, "sd": 3.0, "tries": 3, "runs": 400, "steps": 60}
    fit = student.sample_student_t(targets.student_t(), seed=1, trace=True, **settings)
    attrs = attributes(fit)
    for name in ("plain", "recycled", "importance"):
        if name in attrs:
            error = attrs[name] - targets.MEAN_ABS
            # The importance estimate is a ratio: its bias is of the order of its variance.
            allowed = 4.5 * error.std() / 20 + (error.var() if name == "importance" else 0)
            assert abs(error.mean()) < allowed
    assert ("importance" in attrs) == (scheme == "multiple try")
    again = student.sample_student_t(targets.student_t(), seed=1, trace=True, **settings)
    np.testing.assert_array_equal(fit.posterior["x"], again.posterior["x"])
    assert fit.posterior["x"].shape == (4, 60, 1)
    found = measure(cell_of(EFFICIENCY, settings), fit)
    if scheme == "independent":
        # Sums over 5 lags of 400 runs of 60 draws, whose pooled mean is known well.
        assert abs(found["effective"] - 1) < 4.5 * found["effective_error"] < 0.15
        assert found["acceptance"] == 1
    errors = measure(cell_of(ERROR, settings), fit)
    squared = np.square(attrs["plain"] - targets.MEAN_ABS)
    assert errors["plain"] == pytest.approx(squared.mean())


def test_a_run_from_far_out() -> None:
    settings: dict[str, Any] = {"scheme": "metropolis", "sd": 10.0, "runs": 300, "steps": 30}
    fit = student.sample_student_t(targets.student_t(), start=9.0, seed=2, **settings)
    variance = fit.tree.attrs["variance"]
    assert variance[0] == 0
    assert variance.size == 31


def test_runs_on_the_funnel() -> None:
    model = targets.funnel()
    chain = neck.sample_metropolis(model, runs=20, steps=30, seed=3)
    cell = cell_of(FUNNEL, {})
    found = measure(cell, chain)
    assert 0 < found["distance"] < 1
    assert found["largest"] == pytest.approx(1 / 600)
    assert chain.tree.attrs["densities"] == 20 * 31
    for adapted, combined in ((True, False), (False, True)):
        fit = neck.sample_population(
            model, particles=50, steps=20, adapted=adapted, combined=combined, seed=4
        )
        mass = fit.tree.attrs["mass"]
        assert mass.sum() == pytest.approx(1)
        assert 1 / 1000 < fit.tree.attrs["largest"] <= 1
        assert set(measure(cell, fit)) == {"distance", "largest", "resampled", "mean"}


@pytest.mark.parametrize(
    ("base", "size", "reflect"),
    [("gibbs", None, False), ("gibbs", 9, False), ("slice", None, False), ("slice", 9, False),
     ("metropolis", 5, False), ("metropolis", 5, True)],
)  # fmt: skip
def test_updates_keep_the_gaussian(base: opposite.Base, size: int | None, reflect: bool) -> None:
    """From exact draws: second moments of 4000 chains after 3 updates, within 4.5 errors."""
    fit = opposite.sample_overrelaxed(
        targets.gaussian(), base=base, size=size, reflect=reflect, chains=4, steps=20, seed=5
    )
    assert fit.tree.attrs["draws"] == 2 * (size or 1)
    rng = np.random.default_rng(6)
    root = np.linalg.cholesky(np.array([[1, targets.CORRELATION], [targets.CORRELATION, 1]]))
    start = rng.standard_normal((4000, 2)) @ root.T
    points, chance = start, Chance(rng)
    for step in range(3):
        update = opposite.component(base, step % 2, targets.log_gaussian)
        if size is None:
            points = update(points, chance)
        elif reflect:
            points = opposite.reflected(points, step % 2, targets.log_gaussian, size, chance)
        else:
            points, _ = opposite.overrelaxed(points, step % 2, update, base, size, chance)

    def functions(at: FloatArray) -> FloatArray:
        return np.column_stack([at, at**2, at[:, 0] * at[:, 1], (at[:, 0] - at[:, 1]) ** 2])

    change = functions(points) - functions(start)
    score = change.mean(axis=0) / (change.std(axis=0, ddof=1) / np.sqrt(len(change)))
    assert np.all(np.abs(score) < 4.5), score


def test_persistent_motion_crosses_more_often() -> None:
    """With 32 draws, 40 chains of 200 steps cross at least three times as often."""
    crossed = [
        opposite.sample_uniform(
            targets.uniform(), sd=0.05, size=size, chains=40, steps=200, seed=7
        ).tree.attrs["crossings"]
        for size in (None, 32)
    ]
    assert crossed[1] > 3 * crossed[0] > 0


def test_pillar_and_factors() -> None:
    fit = opposite.sample_pillar(targets.pillar(), sd=0.2, chains=500, steps=60, seed=8)
    proposed, accepted = (fit.tree.attrs[name] for name in ("proposed", "accepted"))
    assert abs(accepted - proposed / 9) < 4.5 * np.sqrt(proposed * 8 / 81)
    calls = {}
    for scheme in ("M-H", "two stages", "slice", "two-factor slice"):
        made = factors.sample_factors(
            targets.product(0.3, 3.0), scheme=scheme, chains=200, steps=60, seed=9
        )
        calls[scheme] = made.tree.attrs["calls"]
        spread = made.posterior["x"].to_numpy().std()
        # Four chains of 60 dependent draws of two coordinates: 25% of the standard deviation.
        assert spread == pytest.approx((0.3**-2 + 3.0**-2) ** -0.5, rel=0.5)
    assert calls["M-H"] == 1
    assert calls["two stages"] < 0.7
    assert calls["two-factor slice"] < 0.6 * calls["slice"]


# Tables and claims

GOOD: dict[tuple[str, str], float] = {
    (BURN_IN, "M-H, σ = 1"): 40.0,
    (BURN_IN, "M-H, σ = 10"): 8.0,
    (BURN_IN, "MTM, σ = 10"): 14.0,
    (EFFICIENCY, "independent draws"): 0.998,
    (EFFICIENCY, "M-H, σ = 1"): 0.065,
    (EFFICIENCY, "M-H, σ = 10"): 0.118,
    (EFFICIENCY, "MTM, σ = 10"): 0.036,
    (ERROR, "M-H, σ = 1"): 0.0119,
    (ERROR, "M-H, σ = 10"): 0.0105,
    (ERROR, "MTM, σ = 10"): 0.0267,
    (SMALL, "MTM, σ = 0.1"): 0.051,
    (FUNNEL, "Metropolis"): 0.01,
    (OPPOSITE, "Gibbs"): 100.0,
    (OPPOSITE, "Gibbs, overrelaxed"): 5.0,
    (OPPOSITE, "slice"): 150.0,
    (OPPOSITE, "slice, pivot"): 8.0,
    (OPPOSITE, "Metropolis"): 200.0,
    (OPPOSITE, "Metropolis, pivot"): 100.0,
    (CALLS, "M-H, narrow prior"): 9.0,
    (CALLS, "slice, narrow prior"): 9.0,
    (CALLS, "M-H, narrow likelihood"): 0.3,
    (CALLS, "slice, narrow likelihood"): 0.33,
}


def results(
    changed: dict[tuple[str, str], float],
    *,
    profile: Profile = "quick",
    recycled: float = 0.65,
    pooled: float = 0.2,
    accepted: float = 1111.0,
    motion: float = 1.0,
) -> Results:
    rows: list[dict[str, Any]] = []
    cells = PROPOSALS.grid(profile)
    for cell in cells:
        part, scheme = cell.factors["part"], cell.factors["scheme"]
        value = (GOOD | changed).get((part, scheme), 0.3)
        row: dict[str, Any] = {"cell": cell.key, **cell.factors}
        if part == BURN_IN:
            row |= {"index": value}
        elif part == EFFICIENCY:
            row |= {"effective": value, "effective_error": 0.001, "acceptance": 0.5}
            row |= {"own": 1.1 * value, "own_error": 0.001}
        elif part in (ERROR, SMALL):
            share = recycled if part == ERROR else 0.95
            row |= {"plain": value, "recycled": share * value, "plain_error": 0.001,
                    "recycled_error": 0.001, "importance_error": 0.001}  # fmt: skip
            pool = pooled * value if part == ERROR else 2.6 * value
            row |= {"importance": pool} if "MTM" in scheme else {}
        elif part == FUNNEL:
            row |= {"distance": value, "largest": 0.1, "resampled": 0.3, "mean": 1.0}
        elif part == PERSISTENT:
            power = -2.0 if scheme.startswith("Metropolis") else -motion
            steps = float(cell.settings["sd"]) ** power
            row |= {"crossing": steps, "crossing_error": 0.01 * steps, "iat": 3.0, "draws": 64.0}
        elif part == PILLAR:
            row |= {"proposed": 10_000.0, "accepted": accepted}
        else:
            draws = 2.0 if scheme in ("Gibbs", "slice", "Metropolis") else 64.0
            row |= {"iat": value, "iat_error": 0.1, "iat_closed": 1.0}
            row |= {"draws": draws} if part == OPPOSITE else {"calls": 1.0}
        rows += [row | {"replication": k} for k in range(cell.replications)]
    return Results(profile, cells, pd.DataFrame(rows), no_fit, planned=len(rows))


def test_claims_hold_and_fail() -> None:
    verdicts = {claim.key: claim.verdict for claim in PROPOSALS.claims(results({}))}
    assert set(verdicts.values()) == {"reproduced"}, verdicts
    for changed, key in (
        (results({(BURN_IN, "MTM, σ = 10"): 5.0}), "burn-in"),
        (results({(EFFICIENCY, "MTM, σ = 10"): 0.07}), "efficiency"),
        (results({}, recycled=0.9), "recycling"),
        (results({}, recycled=0.2), "recycling"),
        (results({}, pooled=0.5), "importance"),
        (results({(FUNNEL, "Metropolis"): 0.03}), "population"),
        (results({(FUNNEL, "PMC, fixed, q combined"): 0.04}), "population"),
        (results({(OPPOSITE, "slice, pivot"): 50.0}), "overrelaxation"),
        (results({(OPPOSITE, "Metropolis, pivot"): 10.0}), "overrelaxation"),
        (results({(OPPOSITE, "Gibbs, overrelaxed"): 2.0}), "draws"),
        (results({}, motion=1.8), "persistence"),
        (results({}, accepted=800.0), "pillar"),
        (results({(CALLS, "two stages, narrow likelihood"): 10.0}), "calls"),
        (results({(CALLS, "two-factor slice, narrow prior"): 7.0}), "calls"),
    ):
        found = {claim.key: claim.verdict for claim in PROPOSALS.claims(changed)}
        assert found[key] == "not reproduced", key
    smoke = PROPOSALS.claims(results({}, profile="smoke"))
    assert {claim.verdict for claim in smoke} == {"not run"}


def test_without_results_no_claim_is_judged() -> None:
    empty = Results("quick", (), pd.DataFrame(columns=["cell"]), no_fit, planned=9)
    assert {claim.verdict for claim in PROPOSALS.claims(empty)} == {"not run"}
    assert PROPOSALS.tables(empty) == []
    assert PROPOSALS.figures(empty) == []


def test_tables_have_the_published_numbers_beside_ours() -> None:
    made = {table.name: table.frame for table in PROPOSALS.tables(results({}))}
    assert made["efficiency"].loc["MTM, σ = 10", "verdict"] == "agrees"
    assert made["error"].loc["MIT, σ = 10", "thesis"] == 0.0047
    assert made["error"].loc["WR-M-H, σ = 1", "verdict"] == "not in the thesis"
    other = results({(EFFICIENCY, "MTM, σ = 10"): 0.05})
    changed = {table.name: table.frame for table in PROPOSALS.tables(other)}
    assert changed["efficiency"].loc["MTM, σ = 10", "verdict"] == "differs"
    assert crossings(results({})).loc["pivots, σ = 0.1", "steps"] == pytest.approx(10)
    assert set(made) >= {"funnel", "overrelaxation", "persistence", "pillar", "calls", "burn-in"}
