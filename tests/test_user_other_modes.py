"""Climbs from other starting points: they find modes without draws, with the right masses."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import numpy as np
import pytest
from posterior_fuzz import random_posterior
from scipy import stats

from harness.arrays import FloatArray
from harness.diagnosis import Severity
from harness.engine.batched import BatchedDensity
from harness.errors import SamplingError
from harness.fit import Fit, build_fit
from harness.modes.climb import LONGEST_STEP, climb, everywhere
from harness.temper import tempered_model
from harness.user import climbs as searching
from harness.user import sample
from harness.user.climb_starts import starting_points
from harness.user.component_peaks import component_peaks
from harness.user.modes import found_by_climbs, still_elsewhere
from harness.user.other_modes import OtherModes, other_modes
from harness.user.peaked_lengths import PeakedLengths
from harness.user.steps import Steps

WELLS = """data {
  int D;
  array[2] vector[D] y;
  array[2] real<lower=0> sigma;
  real<lower=0, upper=1> share;
}
parameters {
  vector[D] x;
}
model {
  x ~ normal(0, 5);
  target += log_mix(share, normal_lpdf(y[1] | x, sigma[1]),
                    normal_lpdf(y[2] | x, sigma[2]));
}
"""
FUNNEL = """data {
  vector[5] y;
}
parameters {
  real<lower=0> tau;
  vector[5] theta;
}
model {
  tau ~ cauchy(0, 5);
  theta ~ normal(0, tau);
  y ~ normal(theta, 10);
}
"""
LABELS = """data {
  int N;
  vector[N] y;
}
parameters {
  vector[3] mu;
}
model {
  mu ~ normal(0, 5);
  for (n in 1 : N) {
    vector[3] l;
    for (k in 1 : 3)
      l[k] = normal_lpdf(y[n] | mu[k], 0.5);
    target += log_sum_exp(l) - log(3);
  }
}
"""


class Wells(NamedTuple):
    """Two modes, all coordinates of which are the same: a wide one below 0, a narrow one above."""

    dimension: int = 3
    place: float = 4.0
    sigma: tuple[float, float] = (1.0, 0.5)
    share: float = 0.5

    @property
    def data(self) -> dict[str, object]:
        places = [[sign * self.place] * self.dimension for sign in (-1, 1)]
        return {"D": self.dimension, "y": places, "sigma": self.sigma, "share": self.share}

    @property
    def log_mass(self) -> FloatArray:
        """Of both modes: x is integrated out."""
        each = stats.norm.logpdf(self.place, 0, np.hypot(5, self.sigma))
        found: FloatArray = np.log([self.share, 1 - self.share]) + self.dimension * each
        return found


def climbed(
    tmp_path: Path,
    code: str,
    data: dict[str, object],
    draws: dict[str, FloatArray],
    *,
    others: tuple[FloatArray, ...] = (),
) -> OtherModes:
    """Climb from elsewhere, given draws (chains, draws, ...)."""
    path = tmp_path / "program.stan"
    path.write_text(code)
    model = tempered_model(path, data)
    density = BatchedDensity(model.program("target"), model.data)
    flat = {name: value.reshape(-1, *value.shape[2:]) for name, value in draws.items()}
    points = density.unconstrain_draws(flat).reshape(4, -1, density.dimension)
    return other_modes(model, density, draws, points, others=others, seed=1)


def draws_around(place: float, width: float, dimension: int = 3) -> FloatArray:
    return np.random.default_rng(7).normal(place, width, (4, 250, dimension))


@pytest.mark.parametrize(("seen", "missed"), [(0, 1), (1, 0)])
def test_a_mode_without_draws_is_found_with_its_mass(
    tmp_path: Path, seen: int, missed: int
) -> None:
    wells = Wells()
    place, width = (-4.0, 1.0) if seen == 0 else (4.0, 0.5)
    found = climbed(tmp_path, WELLS, wells.data, {"x": draws_around(place, width)})
    exact = wells.log_mass
    (mode,) = found.modes
    # Posteriors of either measurement are Gaussian, so Laplace's approximation is exact but for
    # the other measurement's tail, which is below e^-40 here.
    assert mode.local.log_mass == pytest.approx(exact[missed], abs=1e-4)
    assert found.log_mass == pytest.approx(exact[seen], abs=1e-4)
    assert np.sign(mode.local.peak) == pytest.approx(-np.sign(place) * np.ones(3))
    assert found.that_matter() == [mode]
    # Points of its Gaussian have the standard deviation of the mode.
    sigma = wells.sigma[missed]
    points = mode.local.at(np.random.default_rng(3).standard_normal((4000, 3)))
    expected = 5 * sigma / np.hypot(5, sigma)
    assert points.std(axis=0) == pytest.approx(expected, rel=5 / np.sqrt(2 * 4000))


@pytest.mark.parametrize("narrow", [0, 1])
def test_a_narrow_component_is_found_where_no_slope_leads_to_it(
    tmp_path: Path, narrow: int
) -> None:
    """In 25 dimensions, with any signs: climbs of the mixture end in the wide mode.

    Of the two components one is 0.1 wide.  Its volume is a part in 10^25 of the other's.
    """
    sign = np.random.default_rng(5).choice([-1.0, 1.0], 25)
    sigma = (0.1, 1.0) if narrow == 0 else (1.0, 0.1)
    data = Wells(25, 2.0, sigma).data | {"y": [(-2 * sign).tolist(), (2 * sign).tolist()]}
    wide = (2 * narrow - 1) * -2 * sign
    draws = {"x": wide + np.random.default_rng(7).normal(0, 1, (4, 250, 25))}
    found = climbed(tmp_path, WELLS, data, draws)
    (mode,) = found.modes
    exact = Wells(25, 2.0, sigma).log_mass
    # Posteriors of either measurement are Gaussian, as above.
    assert mode.local.log_mass == pytest.approx(exact[narrow], abs=1e-4)
    assert found.log_mass == pytest.approx(exact[1 - narrow], abs=1e-4)
    assert mode.local.peak == pytest.approx(-wide / (1 + 0.1**2 / 25), abs=1e-3)
    assert mode.origin == "a peak of one component of a mixture"


MANY = """data {
  int D;
  int K;
  array[K] vector[D] y;
  vector<lower=0>[K] sigma;
  vector[K] log_weight;
}
parameters {
  vector[D] x;
}
model {
  vector[K] lp = log_weight;
  x ~ normal(0, 5);
  for (k in 1 : K)
    lp[k] += normal_lpdf(y[k] | x, sigma[k]);
  target += log_sum_exp(lp);
}
"""


class Many(NamedTuple):
    """Components of widths from 0.1 to 1 with given probabilities, in 12 dimensions; log Z is 0."""

    centres: FloatArray
    sigma: FloatArray
    probability: FloatArray

    @classmethod
    def random(cls, seed: int, count: int) -> Many:
        rng = np.random.default_rng(seed)
        sigma = np.exp(rng.uniform(np.log(0.1), 0, count))
        return cls(rng.normal(0, 3, (count, 12)), sigma, rng.dirichlet(np.full(count, 3.0)))

    @property
    def data(self) -> dict[str, object]:
        count, dimension = self.centres.shape
        width = np.hypot(5, self.sigma)
        mass = np.sum(stats.norm.logpdf(self.centres, 0, width[:, None]), axis=1)
        return {
            "D": dimension,
            "K": count,
            "y": self.centres.tolist(),
            "sigma": self.sigma.tolist(),
            "log_weight": (np.log(self.probability) - mass).tolist(),
        }


def test_all_components_are_kept_with_their_masses(tmp_path: Path) -> None:
    """However many they are: draws are in one of eight."""
    many = Many.random(3, 8)
    sigma = many.sigma[0] * 5 / np.hypot(5, many.sigma[0])
    draws = many.centres[0] + np.random.default_rng(7).normal(0, sigma, (4, 250, 12))
    found = climbed(tmp_path, MANY, many.data, {"x": draws})
    masses = [each.log_mass for each in found.that_matter()]
    # Tails of other components are below e^-20 at each; the bridges' errors are about 0.002.
    assert np.exp(masses) == pytest.approx(np.sort(many.probability[1:])[::-1], rel=0.02)
    assert found.log_mass == pytest.approx(np.log(many.probability[0]), abs=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_auto_is_right_on_components_of_any_width(tmp_path: Path, seed: int) -> None:
    """Six components in 12 dimensions, of which NUTS sees one to three, and the search few more."""
    many = Many.random(100 + seed, 6)
    program, data = tmp_path / "many.stan", tmp_path / "data.json"
    program.write_text(MANY)
    data.write_text(json.dumps(many.data))
    result = sample(program, data, budget=60, progress=False, seed=seed)
    assert result.log_evidence is not None
    assert result.modes is not None
    value, mcse = result.log_evidence
    assert abs(value) < 4 * max(mcse, 0.005)
    shares = sorted(each.probability for each in result.modes.modes)
    errors = max(each.error for each in result.modes.modes)
    # A few draws between two components may be in the basin of neither.
    assert sum(shares[:-6]) < 1e-3
    assert shares[-6:] == pytest.approx(np.sort(many.probability), abs=4 * errors)


def test_components_take_no_more_than_their_share(tmp_path: Path) -> None:
    """Without time, and without stanli, none is climbed."""
    path = tmp_path / "wells.stan"
    path.write_text(WELLS)
    model = tempered_model(path, Wells().data)
    target = model.program("target")
    density = BatchedDensity(target, model.data)
    start = np.random.default_rng(1).normal(0, 1, (4, 3))
    scale = np.ones(3)
    found, gradients = component_peaks(density, target, model.data, start, scale=scale)
    ends = 4 * 25 / (25 + np.square(Wells().sigma))
    assert np.unique(np.abs(found).round(3)) == pytest.approx(np.sort(ends), abs=1e-3)
    assert len(found) == 8
    assert gradients > 16
    late, _ = component_peaks(density, target, model.data, start, scale=scale, most_seconds=0)
    assert late.shape == (0, 3)
    compiled = cast(BatchedDensity, SimpleNamespace(engine="cmdstan", dimension=3))
    without, _ = component_peaks(compiled, target, model.data, start, scale=scale)
    assert without.shape == (0, 3)


def test_long_steps_lead_to_a_mode_that_short_ones_lead_away_from(tmp_path: Path) -> None:
    """A funnel is wider than a Gaussian, so that it is uphill to it from everywhere else."""
    posterior = random_posterior(12)
    banana, funnel, gaussian = posterior.parts
    assert (banana.kind, funnel.kind, gaussian.kind) == ("banana", "funnel", "gaussian")
    path = tmp_path / "program.stan"
    path.write_text(posterior.program)
    model = tempered_model(path, posterior.data)
    density = BatchedDensity(model.program("target"), model.data)
    start = np.random.default_rng(3).normal(0, 2, (2000, 6))
    scale = np.linalg.norm(funnel.root, axis=1)
    box = everywhere(6)
    ends = []
    for step in (LONGEST_STEP, searching._BOLD_STEP):
        reached = climb(start, density, scale=scale, box=box, longest_step=step)
        apart = np.linalg.solve(gaussian.root, (reached.points - gaussian.centre).T)
        ends.append(int((reached.arrived & (np.abs(apart).max(axis=0) < 0.1)).sum()))
    assert ends[1] > 10 * max(ends[0], 1), ends


def test_known_ends_save_steps_and_hide_no_mode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same climbs, with and without what earlier ones found."""
    path = tmp_path / "program.stan"
    posterior = random_posterior(12)
    path.write_text(posterior.program)
    density = BatchedDensity(tempered_model(path, posterior.data).program("target"), posterior.data)
    rng = np.random.default_rng(3)
    draws = np.stack([posterior.parts[0].centre + rng.normal(0, 0.5, (200, 6)) for _ in range(4)])
    start = rng.normal(0, 2, (4 * searching._BATCH, 6))
    found = []
    for most in (0, searching._ENDS):
        monkeypatch.setattr(searching, "_ENDS", most)
        search = searching.Climbs(PeakedLengths(density), draws, (), None)
        peaks = search.peaks(start, bold=True, several=True)
        found.append((peaks, search.gradients))
    (without, more), (known, fewer) = found
    assert fewer < 0.9 * more
    assert known.climbs == without.climbs
    apart = np.linalg.norm(known.points[:, None] - without.points, axis=2)
    assert apart.min(axis=0).max() < 0.1
    assert apart.min(axis=1).max() < 0.1


def test_climbs_go_on_where_there_are_several_modes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "_GRADIENTS", 1)
    monkeypatch.setattr(searching, "_BATCH", batch := searching._FIRST_BATCH)
    both = draws_around(-4, 1)
    both[:, ::2] = draws_around(4, 0.5)[:, ::2]
    all_seen = climbed(tmp_path, WELLS, Wells().data, {"x": both})
    assert all_seen.climbs == batch
    # Climbs find a further mode, or chains are in different ones.
    one_seen = climbed(tmp_path, WELLS, Wells().data, {"x": draws_around(-4, 1)})
    assert one_seen.climbs > 10 * batch
    apart = np.concatenate([draws_around(-4, 1)[:2], draws_around(4, 0.5)[2:]])
    assert climbed(tmp_path, WELLS, Wells().data, {"x": apart}).climbs == one_seen.climbs


def test_a_mode_with_draws_of_any_method_is_no_other_mode(tmp_path: Path) -> None:
    both = np.concatenate([draws_around(-4, 1)[:, :125], draws_around(4, 0.5)[:, :125]], axis=1)
    assert climbed(tmp_path, WELLS, Wells().data, {"x": both}).modes == ()
    others = (draws_around(4, 0.5).reshape(-1, 3),)
    draws = {"x": draws_around(-4, 1)}
    assert climbed(tmp_path, WELLS, Wells().data, draws, others=others).modes == ()


def test_a_mode_of_little_mass_does_not_matter(tmp_path: Path) -> None:
    wells = Wells(share=0.9999)
    found = climbed(tmp_path, WELLS, wells.data, {"x": draws_around(-4, 1)})
    (mode,) = found.modes
    assert mode.local.log_mass == pytest.approx(wells.log_mass[1], abs=1e-3)
    assert found.that_matter() == []
    assert found.that_matter(1e-6) == [mode]


def test_what_climbs_found_is_said_without_a_table_too(tmp_path: Path) -> None:
    """A table that takes too long was given up, and the mode with it."""
    wells = Wells()
    found = climbed(tmp_path, WELLS, wells.data, {"x": draws_around(-4, 1)})
    (finding,) = found_by_climbs(found)
    assert finding.severity == Severity.PROBLEM
    exact = float(np.exp(wells.log_mass[1] - wells.log_mass[0]))
    assert f"about {exact:.2g} times the mass" in finding.sentence
    small = climbed(tmp_path, WELLS, Wells(share=0.9999).data, {"x": draws_around(-4, 1)})
    assert found_by_climbs(small) == []
    assert found_by_climbs(OtherModes((), None, 0, 0)) == []


def test_a_mode_that_later_draws_are_in_is_not_missing(tmp_path: Path) -> None:
    """Climbs are made beyond NUTS's draws, and parallel tempering may have draws there."""
    wells = Wells()
    one, other = draws_around(-4, 1), draws_around(4, 0.5)
    found = climbed(tmp_path, WELLS, wells.data, {"x": one})
    model = tempered_model(tmp_path / "program.stan", wells.data)
    both = np.concatenate([one, other], axis=1)
    assert len(still_elsewhere(model, of_x(one), found).modes) == 1
    assert still_elsewhere(model, of_x(both), found).modes == ()


def of_x(draws: FloatArray) -> Fit:
    return build_fit(
        posterior={"x": draws},
        extended=None,
        sample_stats={},
        constant_data={},
        attrs={"settings": {}, "method": "parallel_tempering"},
    )


def test_labels_change_places(tmp_path: Path) -> None:
    y = [-6.0, -5.8, -6.2, 0.1, -0.1, 6.0, 6.3, 5.9]
    draws = np.random.default_rng(5).normal([-6.0, 0.0, 6.0], 0.25, (4, 250, 3))
    found = climbed(tmp_path, LABELS, {"N": len(y), "y": y}, {"mu": draws})
    places = {tuple(np.round(each.local.peak)) for each in found.modes}
    assert len(found.modes) == len(places) == 5
    # Copies of the draws' mode have its mass.
    for each in found.modes:
        assert sorted(np.round(each.local.peak)) == [-6, 0, 6]
        assert each.local.log_mass == pytest.approx(found.log_mass, abs=1e-3)


def test_where_draws_are_at_no_maximum_nothing_is_compared(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    tau = np.exp(rng.normal(1, 1, (4, 250)))
    theta = rng.standard_normal((4, 250, 5)) * tau[..., None]
    data: dict[str, object] = {"y": [2.0, -8.0, 3.0, 7.0, -1.0]}
    found = climbed(tmp_path, FUNNEL, data, {"tau": tau, "theta": theta})
    assert found.log_mass is None
    assert found.modes == ()
    assert found.climbs <= 8


CORRELATION = """data {
  vector[3] y;
}
parameters {
  cholesky_factor_corr[3] L;
  simplex[3] p;
  vector[3] x;
}
model {
  L ~ lkj_corr_cholesky(2);
  x ~ std_normal();
  y ~ multi_normal_cholesky(x .* p, L);
}
"""


def test_points_far_out_may_leave_the_support(tmp_path: Path) -> None:
    """Factors of correlations are singular there, and no simplex has equal elements but one."""
    path = tmp_path / "correlation.stan"
    path.write_text(CORRELATION)
    model = tempered_model(path, {"y": [0.3, -1.0, 2.0]})
    density = BatchedDensity(model.program("target"), model.data)
    points = np.random.default_rng(4).normal(0, 3, (4, 250, density.dimension))
    flat = density.constrain(points.reshape(-1, density.dimension))
    draws = {name: value.reshape(4, 250, *value.shape[1:]) for name, value in flat.items()}
    origin, start, _ = starting_points(
        model, density, draws, points.reshape(-1, density.dimension), seed=1
    )
    assert len(origin) == len(start) > 3500
    assert np.all(np.isfinite(start))
    equal = density.constrain(start[[each == "a point with equal elements" for each in origin]])
    assert 100 < len(equal["x"]) < 256  # some were left out
    assert np.ptp(equal["x"], axis=1) == pytest.approx(0.0, abs=1e-6)
    assert equal["p"].sum(axis=1) == pytest.approx(1.0)


def test_a_slow_density_has_fewer_climbs(tmp_path: Path) -> None:
    """How many depends on the seconds that an evaluation takes, and none may take too long."""
    path = tmp_path / "wells.stan"
    path.write_text(WELLS)
    model = tempered_model(path, Wells().data)
    density = BatchedDensity(model.program("target"), model.data)
    draws = draws_around(-4, 1)
    climbs = [
        other_modes(
            model, density, {"x": draws}, draws, log_mass=0.0, most_seconds=seconds, seed=1
        ).climbs
        for seconds in (0.0, 1e-9, np.inf)
    ]
    assert climbs[:2] == [0, 0]
    assert climbs[2] > 256


def test_auto_finds_a_mode_that_neither_nuts_nor_its_search_saw(tmp_path: Path) -> None:
    """On a path from the prior the narrow mode vanishes in 10 dimensions, so only climbs see it."""
    path = tmp_path / "wells.stan"
    path.write_text(WELLS)
    wells = Wells(10, 2.0, (1.0, 0.3))
    result = sample(path, wells.data, seed=32, engine="stanli", progress=False)
    exact = wells.log_mass
    log_z = float(np.logaddexp(*exact))
    assert result.nuts is not None
    assert float((result.nuts.posterior["x"][..., 0] > 0).mean()) < 0.1
    found = result.log_evidence
    assert found is not None
    assert abs(found.value - log_z) < 4 * found.mcse
    narrow = result.fit.expectation(lambda q: q["x"][..., 0] > 0)
    share = float(np.exp(exact[1] - log_z))
    # Given its mode, a coordinate of the wide one is normal, and some of it is above 0.
    above = stats.norm.sf(0, -2 * 25 / 26, np.sqrt(25 / 26))
    assert abs(float(narrow.value) - (share + (1 - share) * above)) < 4 * float(narrow.mcse)
    said = [each for each in result.diagnosis if each.severity > Severity.FINE]
    assert [each.severity for each in said if "climbs" in each.sentence] == [Severity.WARNING]
    modes = json.loads(result.fit.tree.attrs["modes"])["modes"]
    assert sorted("climbs" in each["seen_by"] for each in modes) == [False, True]


def test_a_second_run_that_fails_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "wells.stan"
    path.write_text(WELLS)
    made = Steps.replicas
    runs = []

    def once(*args: Any, **kwargs: Any) -> Any:
        runs.append(kwargs.get("near"))
        if len(runs) > 1:
            raise SamplingError("the second run failed")
        return made(*args, **kwargs)

    monkeypatch.setattr(Steps, "replicas", once)
    result = sample(
        path,
        Wells(10, 2.0, (1.0, 0.3)).data,
        method="parallel_tempering",
        seed=32,
        engine="stanli",
        budget=120,
        progress=False,
    )
    assert [each is None for each in runs] == [True, False]
    assert result.fit.posterior.sizes["draw"] == 1000
    told = {each.severity: each.sentence for each in reversed(result.diagnosis)}
    assert "The draws lack mode 2" in told[Severity.PROBLEM]
    assert any("the second run failed" in each.sentence for each in result.diagnosis)


def test_parallel_tempering_begins_anew_where_climbs_found_a_mode(tmp_path: Path) -> None:
    path = tmp_path / "wells.stan"
    path.write_text(WELLS)
    wells = Wells(10, 2.0, (1.0, 0.3))
    result = sample(
        path,
        wells.data,
        method="parallel_tempering",
        seed=32,
        engine="stanli",
        budget=80,
        progress=False,
    )
    assert any("Parallel tempering ran twice" in each.sentence for each in result.diagnosis)
    assert not any("The draws lack" in each.sentence for each in result.diagnosis)
    exact = wells.log_mass
    log_z = float(np.logaddexp(*exact))
    found = result.log_evidence
    assert found is not None
    assert abs(found.value - log_z) < 4 * found.mcse
    narrow = result.fit.expectation(lambda q: q["x"][..., 0] > 0)
    share = float(np.exp(exact[1] - log_z))
    # Given its mode, a coordinate of the wide one is normal, and some of it is above 0.
    above = stats.norm.sf(0, -2 * 25 / 26, np.sqrt(25 / 26))
    assert abs(float(narrow.value) - (share + (1 - share) * above)) < 4 * float(narrow.mcse)


def test_climbs_end_with_their_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that are on their way are given up, and what others found remains."""
    seconds = 0.0

    def slow(points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Take a hundredth of a second far away, and a hundredth of that among the draws."""
        nonlocal seconds
        far = np.abs(points).max(axis=1) > 10
        seconds += float(np.where(far, 1e-2, 1e-4).sum())
        return -0.5 * np.square(points).sum(axis=1), -points

    monkeypatch.setattr(searching, "time", SimpleNamespace(perf_counter=lambda: seconds))
    monkeypatch.setattr(searching, "seconds_a_point", lambda *_: 1e-4)
    rng = np.random.default_rng(1)
    search = searching.Climbs(cast(PeakedLengths, slow), rng.normal(size=(4, 250, 2)), [], None)
    start = 1e4 * rng.normal(size=(1000, 2))
    climbs = []
    for most in (1.0, 1e5):
        began = seconds
        climbs.append(search.peaks(start, several=True, most_seconds=most).climbs)
        assert seconds - began < most + 0.01 * 256  # a call more
    assert climbs == [0, 1000]
