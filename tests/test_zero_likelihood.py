"""Programs with likelihoods that are zero in places: densities, gradients, and log Z of runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
from form_data import pseudo_extended_data
from scipy.integrate import quad
from scipy.stats import norm
from stan_density import StanDensity
from test_tempering_at_zero import compiled_log_prob

from harness.arrays import FloatArray
from harness.diagnosis import diagnose
from harness.engine.compile import compile_programs
from harness.engine.nuts import NutsSettings
from harness.engine.program import StanProgram
from harness.engine.stan_data import plain_data
from harness.engine.toolchain import require_cmdstan
from harness.errors import SamplingError
from harness.evidence import LogG, log_base_mass
from harness.fit import Fit
from harness.forms import (
    CollapsedPseudoExtended,
    CollapsedTempering,
    Form,
    FromPilot,
    JointTempering,
    PseudoExtended,
    Run,
    sample,
)
from harness.forms.base_mass import measured_base_mass
from harness.forms.continuous_tempering import tempering_data
from harness.model import Model
from harness.model.numpy_density import target_density
from harness.models.gaussian_mixture import GaussianMixture
from harness.path import TemperedPath, gaussian_base
from harness.temper import tempered_model

FOLDER = Path(__file__).parent / "zero_likelihood"
K = np.array([[0.4, 0.5], [0.6, 0.4], [0.5, 0.7]])
DATA: dict[str, dict[str, Any]] = {
    "seen": {"K": 3, "k": K, "seen": [1, 1, 1]},
    "edge": {"N": 2, "y": [1.1, 2.4]},
    "islands": {"y": 2.2},
    "rejects": {"y": 0.6},
    "kinds": {"N": 2, "y": [0.4, -0.7], "hit": [1, 0]},
}
LADDER: LogG = [(0.0, 0.4), (0.5, 0.1), (1.0, 0.3)]
COLLAPSED = ("collapsed_tempering", "collapsed_tempering_zero_likelihood")


@cache
def model_of(name: str) -> Model:
    return tempered_model(FOLDER / f"{name}.stan", DATA[name])


def density_of(name: str, variant: str, data: Mapping[str, Any]) -> StanDensity:
    model = model_of(name)
    return StanDensity(model.program(variant), {**model.data, **data})


# Densities and gradients


def on_ladder(name: str, **path: Any) -> dict[str, Any]:
    return tempering_data(model_of(name), log_g=LADDER, **path) | {"ladder": 1}


FAR = np.array([4.0, 5.0])


def log_prior(x: FloatArray) -> float:
    return float(norm.logpdf(x, 0, 10).sum())


def test_a_likelihood_that_underflows() -> None:
    """The value is the prior's at beta = 0 alone; the gradient too, in the form that is for it."""
    plain, passed = (
        density_of("seen", each, on_ladder("seen", log_zeta=3.0)) for each in COLLAPSED
    )
    for density in (plain, passed):
        assert density.value(FAR) == pytest.approx(log_prior(FAR) + 0.4, rel=1e-13)
    assert np.all(np.isnan(plain(FAR)[1]))
    np.testing.assert_allclose(passed(FAR)[1], -FAR / 100, rtol=1e-13)


@pytest.mark.parametrize("start", [0.0, 0.2])
def test_forms_with_one_inverse_temperature(start: float) -> None:
    """At beta = 0 the base is left, and nothing above it."""
    fixed = {"sample_inv_temp": 0, "fixed_inv_temp": [start]}
    data = tempering_data(model_of("seen"), log_zeta=3.0) | fixed
    wanted = log_prior(FAR) if start == 0 else -np.inf
    assert density_of("seen", "joint_tempering", data).value(FAR) == pytest.approx(wanted)


def test_pseudo_extended_forms() -> None:
    """One pseudo-sample at beta = 0 where the likelihood is zero: log gamma_2 / 2 + log b_1."""
    near = np.array([0.5, 0.5])
    log_gamma = log_prior(near) - np.sum((near - K) ** 2) / 0.02
    # Stan has the pseudo-samples as an array of vectors.
    place = np.concatenate([FAR, near])
    wanted = log_gamma - np.log(2) + log_prior(FAR)
    data = pseudo_extended_data(model_of("seen"), 2, [0.0, 0.7], log_zeta=3.0)
    assert density_of("seen", "pseudo_extended", data).value(place) == pytest.approx(wanted)
    data = pseudo_extended_data(model_of("seen"), 2, None, log_zeta=3.0, log_g=LADDER)
    data |= {"ladder": 1}
    value = density_of("seen", "collapsed_pseudo_extended", data).value(place)
    assert value == pytest.approx(wanted + 0.4)


@pytest.mark.parametrize("variant", COLLAPSED)
def test_a_likelihood_of_zero_without_gradient(variant: str) -> None:
    """Stan's uniform density returns a constant there: both forms have the prior's gradient."""
    u = np.log(0.8)
    value, gradient = density_of("edge", variant, on_ladder("edge"))(np.array([u]))
    assert value == pytest.approx(-0.8 + u + 0.4, rel=1e-12)
    assert gradient[0] == pytest.approx(1 - 0.8, rel=1e-12)


def test_with_a_gaussian_base() -> None:
    base = gaussian_base([0.2, 0.1], [[4.0, 0.3], [0.3, 9.0]])
    passed = density_of("seen", COLLAPSED[1], on_ladder("seen", base=base))
    value, gradient = passed(FAR)
    assert value == pytest.approx(float(base.log_density(FAR)) + 0.4, rel=1e-12)
    np.testing.assert_allclose(gradient, base.log_density_gradient(FAR), rtol=1e-11)


@pytest.mark.parametrize("name", ["seen", "kinds"])
def test_both_forms_are_one_where_the_likelihood_is_not_zero(name: str) -> None:
    one, other = (density_of(name, each, on_ladder(name)) for each in COLLAPSED)
    for seed in range(3):
        u = 0.3 * np.random.default_rng(seed).normal(size=one.dimension)
        assert other(u)[0] == pytest.approx(one(u)[0], rel=1e-13)
        np.testing.assert_allclose(other(u)[1], one(u)[1], rtol=1e-11)


def test_statements_of_every_kind() -> None:
    """Where s is tiny the likelihood is zero: what is left is the prior, with its gradient."""
    prior = StanDensity(StanProgram(FOLDER / "kinds_prior.stan"), {})
    plain, passed = (density_of("kinds", each, on_ladder("kinds")) for each in COLLAPSED)
    u = 0.5 * np.random.default_rng(3).normal(size=prior.dimension)
    u[1] = -4.0  # log s
    value, gradient = prior(u)
    assert passed(u)[0] == pytest.approx(value + 0.4, rel=1e-12)
    np.testing.assert_allclose(passed(u)[1], gradient, rtol=1e-10)
    assert not np.all(np.isfinite(plain(u)[1]))


@pytest.mark.compiled
@pytest.mark.parametrize("name", ["seen", "edge"])
def test_in_cmdstan(quiet_cmdstanpy: None, cmdstan_home: Path, name: str, tmp_path: Path) -> None:
    assert cmdstan_home.is_dir()
    program = model_of(name).program(COLLAPSED[1])
    exe = compile_programs([program], require_cmdstan())[program].exe
    data = plain_data({**model_of(name).data, **on_ladder(name)})
    plain = json.loads(json.dumps(data, default=lambda each: np.asarray(each).tolist()))
    places: dict[str, list[tuple[dict[str, Any], FloatArray]]] = {
        "seen": [({"x": each.tolist()}, each) for each in (FAR, np.array([0.5, 0.4]))],
        "edge": [({"theta": each}, np.log([each])) for each in (0.8, 3.0)],
    }
    density = density_of(name, COLLAPSED[1], on_ladder(name))
    for values, u in places[name]:
        value, gradient = compiled_log_prob(exe, plain, values, tmp_path)
        assert value == pytest.approx(density(u)[0], rel=1e-12)
        np.testing.assert_allclose(gradient, density(u)[1], rtol=1e-9)
        assert np.all(np.isfinite(gradient))


# Log Z


class Case(NamedTuple):
    """A program's prior and likelihood in NumPy, on a grid that holds all of both."""

    points: FloatArray
    """Shape (n, D)."""
    log_prior: FloatArray
    """With the grid's cell, so that it sums to one, shape (n,)."""
    log_likelihood: FloatArray
    """-inf where it is zero or the program rejects the point."""

    def log_z(self, beta: float = 1.0) -> float:
        """Log of the prior's integral of the likelihood^beta."""
        possible = np.isfinite(self.log_likelihood)
        height = self.log_prior[possible] + beta * self.log_likelihood[possible]
        return float(np.logaddexp.reduce(height))

    def ladder(self, lowest: float, count: int) -> LogG:
        """Rungs under whose log weights they are visited evenly where the likelihood is not zero.

        That at beta = 0 is visited more often where it has more to it: then the step in density
        to where the likelihood is zero is no higher than need be.
        """
        beta = np.concatenate([[0.0], np.geomspace(lowest, 1, count)])
        z = self.log_z()
        return [(float(b), b * z - self.log_z(b)) for b in beta]

    def log_g(self, lowest: float, count: int) -> LogG:
        """Knots under which beta is as often near one rung as near another."""
        beta, log_weight = np.array(self.ladder(lowest, count)).T
        edge = np.concatenate([[0.0], (beta[1:] + beta[:-1]) / 2, [1.0]])
        return list(zip(beta.tolist(), (log_weight - np.log(np.diff(edge))).tolist(), strict=True))


def line(low: float, high: float) -> tuple[FloatArray, float]:
    """Middles of a million cells, which edges between them do not harm, and their log width."""
    cells = np.linspace(low, high, 1_000_001)
    return (cells[1:] + cells[:-1]) / 2, float(np.log(cells[1] - cells[0]))


@cache
def case_of(name: str) -> Case:
    if name == "seen":
        side = np.linspace(-4.2, 5.2, 1500)
        x = np.stack(np.meshgrid(side, side, indexing="ij"), axis=-1).reshape(-1, 2)
        square = np.square(x[:, None] - K).sum(axis=-1)
        with np.errstate(divide="ignore"):
            log_likelihood = np.log(np.exp(-square / 0.02)).sum(axis=1)
        cell = 2 * np.log(side[1] - side[0])
        return Case(x, norm.logpdf(x, 0, 10).sum(axis=1) + cell, log_likelihood)
    x, cell = line(0, 60) if name == "edge" else line(-20, 20)
    if name == "edge":
        log_likelihood = np.where(x > 2.4, -2 * np.log(x), -np.inf)
        return Case(x[:, None], cell - x, log_likelihood)
    if name == "islands":
        inside = (np.abs(x) >= 1.5) & (np.abs(x) <= 4)
        log_likelihood = np.where(inside, norm.logpdf(2.2, np.abs(x), 0.3), -np.inf)
    else:
        log_likelihood = np.where(x >= 1, norm.logpdf(0.6, x, 0.5), -np.inf)
    return Case(x[:, None], cell + norm.logpdf(x, 0, 2), log_likelihood)


def prior_draws(name: str, count: int) -> npt.NDArray[np.bool_]:
    """Whether exact draws of the prior have a likelihood above zero, shape (1, count)."""
    rng = np.random.default_rng(12)
    if name == "seen":
        x = rng.normal(0, 10, (count, 2))
        square = np.square(x[:, None] - K).sum(axis=-1)
        possible = np.all(np.exp(-square / 0.02) > 0, axis=-1)
    elif name == "edge":
        possible = rng.exponential(size=count) > 2.4
    elif name == "islands":
        x = np.abs(rng.normal(0, 2, count))
        possible = (x >= 1.5) & (x <= 4)
    else:
        possible = rng.normal(0, 2, count) >= 1
    return np.asarray(possible)[None]


def test_the_truths() -> None:
    """Quadrature on the grids against closed forms and another quadrature."""
    assert case_of("seen").log_z() == pytest.approx(-13.645, abs=5e-4)
    edge = quad(lambda t: np.exp(-t) / t**2, 2.4, np.inf)[0]
    assert case_of("edge").log_z() == pytest.approx(np.log(edge), rel=1e-6)
    islands = 2 * quad(lambda x: norm.pdf(x, 0, 2) * norm.pdf(2.2, x, 0.3), 1.5, 4)[0]
    assert case_of("islands").log_z() == pytest.approx(np.log(islands), rel=1e-6)
    rejects = quad(lambda x: norm.pdf(x, 0, 2) * norm.pdf(0.6, x, 0.5), 1, np.inf)[0]
    assert case_of("rejects").log_z() == pytest.approx(np.log(rejects), rel=1e-6)
    for name in DATA.keys() - {"kinds"}:
        mass = log_base_mass(prior_draws(name, 100_000))
        assert abs(mass.value - case_of(name).log_z(0.0)) < 4 * mass.mcse


class Way(NamedTuple):
    """How a program is run, on a ladder or not, and whether its path reaches all of the prior."""

    form: Form
    ladder: bool
    whole: bool


RUNS = {
    # No gradient where the likelihood is zero: only the form for it passes there.
    "seen": {
        "collapsed": Way(CollapsedTempering(), True, False),
        "zero": Way(CollapsedTempering(zero_likelihood=True), True, True),
        "pe": Way(PseudoExtended(2), False, False),
    },
    # A constant there: every ladder passes.
    "edge": {
        "collapsed": Way(CollapsedTempering(), True, True),
        "zero": Way(CollapsedTempering(zero_likelihood=True), True, True),
        "joint": Way(JointTempering(), False, False),
        "integrated": Way(CollapsedTempering(), False, False),
        "pe": Way(PseudoExtended(2), False, False),
        "cpe": Way(CollapsedPseudoExtended(2), True, True),
    },
    "islands": {"collapsed": Way(CollapsedTempering(), True, True)},
    # Nothing passes where the program throws.
    "rejects": {
        "collapsed": Way(CollapsedTempering(), True, False),
        "joint": Way(JointTempering(), False, False),
    },
}
STARTS: dict[str, dict[str, Any]] = {
    "seen": {"x": [0.5, 0.5]},
    "edge": {"theta": 3.0},
    "islands": {"x": 2.2},
    "rejects": {"x": 1.5},
}


def fit_of(name: str, form: str, *, draws: int = 4000, counted: bool = True) -> Fit:
    way, case = RUNS[name][form], case_of(name)
    lowest, count = (1e-4, 20) if name == "seen" else (0.05, 6)
    start = STARTS[name]
    if isinstance(way.form, PseudoExtended | CollapsedPseudoExtended):
        start = {key: np.stack([value, value], axis=-1) for key, value in start.items()}
    mass = log_base_mass(prior_draws(name, 200_000)) if counted and not way.whole else None
    path = TemperedPath(
        log_zeta=case.log_z(),
        log_g=(case.ladder if way.ladder else case.log_g)(lowest, count),
        ladder=way.ladder,
        base_mass=mass,
    )
    # What is narrow beside its base takes small steps; at an edge they would be too small.
    nuts = NutsSettings(
        chains=4, warmup=1000, draws=draws, target_accept=0.9 if name == "seen" else 0.8
    )
    run = Run(seed=3, nuts=nuts, inits=[start] * 4, engine="stanli")
    return sample(model_of(name), way.form, path, run)


@pytest.mark.parametrize(
    ("name", "form"), [(name, form) for name, forms in RUNS.items() for form in forms]
)
def test_log_z(name: str, form: str) -> None:
    """Within the error, which is smaller than what the share of the prior weighs."""
    # Pseudo-samples that all step over the edge mix slowly: fewer, and a larger error.
    slow = form == "cpe"
    fit = fit_of(name, form, draws=6000 if slow else 6000 if name == "seen" else 4000)
    estimate, exact = fit.log_evidence, case_of(name).log_z()
    assert abs(estimate.value - exact) < 4 * estimate.mcse
    lost = -case_of(name).log_z(0.0)
    assert estimate.mcse < lost / (4 if slow else 8)
    told = [each for each in diagnose(fit) if "starts from that part alone" in each.sentence]
    assert bool(told) is not RUNS[name][form].whole
    both = fit.two_sided_log_evidence
    assert both is not None
    assert abs(float(both.gap.value)) < max(4.5 * float(both.gap.mcse), 0.1)


def test_without_the_share_log_z_is_too_high() -> None:
    """What was reported before, with nothing else to be seen."""
    fit = fit_of("edge", "joint", counted=False)
    estimate, case = fit.log_evidence, case_of("edge")
    assert abs(estimate.value + case.log_z(0.0) - case.log_z()) < 4 * estimate.mcse
    assert case.log_z(0.0) == pytest.approx(-2.4, abs=1e-3)


def test_islands_are_joined() -> None:
    """Through beta = 0, where what lies between them is as good as any other place."""
    fit = fit_of("islands", "collapsed")
    share = fit.expectation(lambda parameters: (parameters["x"] > 0).astype(float))
    assert abs(float(share.value) - 0.5) < 4 * float(share.mcse)
    assert float(share.mcse) < 0.05
    raw = fit.raw["x"].to_numpy()
    between = np.abs(raw) < 1.5
    assert between.mean(axis=1).min() > 0.02
    assert np.all(fit.tree["extended"]["inv_temp"].to_numpy()[between] == 0)
    assert np.all(np.isinf(fit.tree["extended"]["delta"].to_numpy()[between]))


def test_a_chain_that_never_sees_a_likelihood_above_zero() -> None:
    never: LogG = [(0.0, 0.0), (1.0, -1e300)]
    with pytest.raises(SamplingError, match="every draw of chain 1, 2 the likelihood is zero"):
        sample(
            tempered_model(FOLDER / "edge.stan", {"N": 1, "y": [1e6]}),
            CollapsedTempering(),
            TemperedPath(log_g=never, ladder=True),
            Run(seed=1, nuts=NutsSettings(chains=2, warmup=50, draws=50), engine="stanli"),
        )


# Gaussian bases that are cut: by bounds, by a likelihood of zero, by rejections

MIXTURE = GaussianMixture(np.array([0.7, 0.3]), np.array([[-2.0], [1.5]]), np.array([0.5, 0.35]))
BOXED = MIXTURE.model("boxed", lower=-7.1, upper=5.1)
WIDE = gaussian_base([1.0], [[81.0]], log_zeta=0.3)
BOX_MASS = float(np.log(norm.cdf(5.1, 1, 9) - norm.cdf(-7.1, 1, 9)))


@pytest.mark.parametrize(
    "form",
    [
        JointTempering(),
        CollapsedTempering(),
        PseudoExtended(2),
        CollapsedPseudoExtended(2),
    ],
)
def test_a_gaussian_base_wider_than_the_box(form: Form) -> None:
    """Log Z is 0; half of the base lies in the box, which used to make it 0.7."""
    nuts = NutsSettings(chains=4, warmup=500, draws=4000)
    fit = sample(BOXED, form, TemperedPath(WIDE), Run(seed=5, nuts=nuts, engine="stanli"))
    estimate = fit.log_evidence
    assert fit.tempered.base_mass.value == pytest.approx(BOX_MASS, rel=1e-9)
    assert -0.8 < BOX_MASS < -0.6
    assert abs(estimate.value) < 4 * estimate.mcse
    assert estimate.mcse < -BOX_MASS / 8
    # The mean under the base is held against that of what is left of it.
    findings = [each for each in diagnose(fit) if "means under the base" in each.sentence]
    assert len(findings) == 1
    assert findings[0].severity == 0


@pytest.mark.parametrize("form", [JointTempering(), CollapsedTempering()])
def test_a_pilots_base_wider_than_the_box(form: Form) -> None:
    nuts = NutsSettings(chains=4, warmup=500, draws=3000)
    fit = sample(BOXED, form, FromPilot(WIDE), Run(seed=6, nuts=nuts, engine="stanli"))
    assert fit.tempered.base_mass.value == pytest.approx(BOX_MASS, rel=1e-9)
    assert abs(fit.log_evidence.value) < 4 * fit.log_evidence.mcse
    assert fit.log_evidence.mcse < -BOX_MASS / 8


CUT = """
data { real y; }
parameters { real x; }
model {
  y ~ normal(x, 1);
  %s
}
"""
HOW = {
    "zero": "if (x < 0.4) { target += negative_infinity(); // temper: yes\n}",
    "reject": 'if (x < 0.4) { reject("too small"); }',
}


@pytest.mark.parametrize(
    ("how", "form", "whole"),
    [
        ("zero", CollapsedTempering(), True),
        ("zero", JointTempering(), False),
        ("reject", CollapsedTempering(), False),
        ("reject", JointTempering(), False),
    ],
)
def test_a_pilots_base_where_the_target_is_zero(
    how: str, form: Form, whole: bool, tmp_path: Path
) -> None:
    """Flat prior: Z is the mass of N(0, 1) above 0.4, of the base N(0.5, 4) 52 % is."""
    path = tmp_path / f"{how}.stan"
    path.write_text(CUT % HOW[how])
    model = tempered_model(path, {"y": 0.0})
    base = gaussian_base([0.5], [[4.0]])
    nuts = NutsSettings(chains=4, warmup=500, draws=3000)
    fit = sample(model, form, FromPilot(base), Run(seed=7, nuts=nuts, engine="stanli"))
    mass = fit.tempered.base_mass
    exact_mass = 0.0 if whole else float(norm.logsf(0.4, 0.5, 2))
    assert abs(mass.value - exact_mass) <= 4 * mass.mcse
    assert (mass.value == 0) is whole
    estimate = fit.log_evidence
    assert abs(estimate.value - norm.logsf(0.4)) < 4 * estimate.mcse
    assert estimate.mcse < 0.08


def test_measuring_takes_a_look_first() -> None:
    """512 gradients where nothing is lost; 4,096 more where something is."""
    inside = gaussian_base([-0.5], [[0.09]])
    density = target_density(BOXED)
    whole = measured_base_mass(BOXED, inside, density, seed=1)
    assert whole.mass is None
    assert whole.gradients == 512
    cut = measured_base_mass(model_of("rejects"), WIDE, target_density(model_of("rejects")), seed=1)
    assert cut.gradients == 512 + 4096
    assert cut.mass is not None
    assert abs(cut.mass.value - norm.logsf(1, 1, 9)) < 4 * cut.mass.mcse
