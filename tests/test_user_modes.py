"""What is said about the modes of a user's program, and about what a run took."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from stan_density import stanli
from test_diagnosis import target_fit

from harness.diagnosis import Severity, remembered
from harness.engine.batched import BatchedDensity
from harness.engine.nuts import NutsSettings
from harness.engine.program import StanProgram
from harness.errors import SamplingError
from harness.fit import Fit
from harness.modes import Mode, ModeTable, Visits, find_modes
from harness.modes.permutations import Permutation
from harness.modes.symmetries import changed_points, leaves_density
from harness.path import PilotSettings, gaussian_base, pilot_of_density
from harness.report.fit_page import build_fit_page, render_fit_page
from harness.user import UserFit, sample
from harness.user.clock import Clock
from harness.user.mode_findings import missed_by_nuts, mode_findings, search_saw, unweighed_modes
from harness.user.mode_tables import ModeTables
from harness.user.modes import _seconds_for_climbs
from harness.user.other_modes import OtherModes
from harness.user.spent import Stage, prospect, prospect_sentence, spent_sentence, stages

assert stanli is not None

MIXTURE = """
data { vector[5] y; int same; }
parameters {
  simplex[3] w;
  array[3] real<lower=-10, upper=10> mu;
  vector<lower=0>[3] sigma;
  ordered[3] cut;
  matrix[3, 2] b;
}
model {
  w ~ dirichlet([2, 2, 2]');
  mu ~ normal(0, same ? 1 : 3);
  sigma ~ gamma(2, 1);
  cut ~ std_normal();
  to_vector(b) ~ std_normal();
  if (!same) mu[1] ~ normal(0, 1);
  for (n in 1 : 5) {
    vector[3] each;
    for (k in 1 : 3) {
      each[k] = log(w[k]) + normal_lpdf(y[n] | mu[k] + b[k, 1], sigma[k]);
    }
    target += log_sum_exp(each);
  }
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> StanProgram:
    path = tmp_path_factory.mktemp("mixture") / "mixture.stan"
    path.write_text(MIXTURE)
    return StanProgram(path)


def density_of(program: StanProgram, *, same: bool) -> BatchedDensity:
    return BatchedDensity(program, {"y": [1.0, -1, 0, 2, 3], "same": int(same)})


LABELS = (("w", (0,)), ("mu", (0,)), ("sigma", (0,)), ("b", (0,)))


def test_which_permutations_leave_a_program_as_it_is(program: StanProgram) -> None:
    """Those of all labels; not those of some of them, nor of an ordered vector."""
    density = density_of(program, same=True)
    points = np.random.default_rng(1).normal(size=(4, density.dimension))
    order = (2, 0, 1)
    assert leaves_density(Permutation(LABELS, order), points, density)
    assert not leaves_density(Permutation(LABELS[:3], order), points, density)
    assert not leaves_density(Permutation((*LABELS, ("cut", (0,))), order), points, density)
    moved = changed_points(Permutation(LABELS, order), points, density)
    before, after = density.constrain(points), density.constrain(moved)
    for name, _ in LABELS:
        np.testing.assert_allclose(after[name], before[name][:, list(order)], rtol=1e-6)
    np.testing.assert_allclose(after["cut"], before["cut"])


def test_another_prior_for_one_label_is_no_symmetry(program: StanProgram) -> None:
    density = density_of(program, same=False)
    points = np.random.default_rng(1).normal(size=(4, density.dimension))
    assert not leaves_density(Permutation(LABELS, (1, 0, 2)), points, density)
    assert leaves_density(Permutation(LABELS, (0, 2, 1)), points, density)


SMALL = """
parameters { vector[2] x; }
model {
  x ~ normal(0, 20);
  target += log_mix(0.95, normal_lpdf([0, 0] | x, 1), normal_lpdf([14, 14] | x, 1));
}
"""


def test_a_small_mode_that_nuts_does_not_visit_is_tempered(tmp_path: Path) -> None:
    """Its probability is 0.032: too small for the comparison of single coordinates."""
    path = tmp_path / "small.stan"
    path.write_text(SMALL)
    result = sample(path, seed=3, engine="stanli", progress=False)
    # Each part is the prior's normal density at its centre, with a variance of 401.
    ratio = 0.05 / 0.95 * np.exp(-0.5 * 2 * 14**2 / 401)
    share = float(ratio / (1 + ratio))
    assert result.method in ("nuts_in_modes", "collapsed_tempering", "parallel_tempering")
    said = [each for each in result.diagnosis if each.severity > Severity.FINE]
    assert any("Plain NUTS misses a mode, which the search" in each.sentence for each in said)
    assert not any("The draws lack" in each.sentence for each in said)
    assert result.modes is not None
    small = result.modes.modes[1]
    assert small.probability > 0
    assert small.error < 0.02
    assert abs(small.probability - share) < 4 * small.error
    # Both tables of modes count, and each once.
    assert result.nuts is not None
    assert "gradients_modes" in result.nuts.tree.attrs
    assert sum(each.gradients or 0 for each in result.stages) == result.gradients["total"]


FIRST = Mode(0.8, 0.01, {"nuts": 1.0}, {"x": 0.0}, 0.0, True)
OTHER = Mode(0.0, 0.001, {"search": 0.3}, {"x": 4.0}, -1.0, True)


@pytest.mark.parametrize(
    ("mode", "severity", "words"),
    [
        (OTHER, Severity.WARNING, "its probability is not known"),
        (replace(OTHER, local=(0.3, 0.02)), Severity.PROBLEM, "about 0.3 ± 0.02"),
        (replace(OTHER, local=(0.005, 0.0005)), Severity.WARNING, "about 0.005"),
        (replace(OTHER, local=(1e-5, 1e-6)), Severity.FINE, "about 1e-05"),
        # The draws are worth 1,000 independent ones, of which 0.002 are 2.
        (replace(OTHER, local=(0.002, 0.0005)), Severity.FINE, "about 0.002"),
        (replace(OTHER, seen_by={"search": 0.002}), Severity.FINE, "that saw it"),
        (replace(OTHER, copy_of=1, permuted=("x",)), Severity.PROBLEM, "a copy of mode 1"),
    ],
)
def test_a_mode_that_the_draws_lack_is_said(mode: Mode, severity: Severity, words: str) -> None:
    found = mode_findings(ModeTable((FIRST, mode), ("nuts", "search")))[0]
    assert found.severity == severity
    assert "The draws lack mode 2, which the search saw" in found.sentence
    assert words in found.sentence
    assert ("parallel_tempering" in found.what_to_try) == (severity != Severity.FINE)


@pytest.mark.parametrize(("share", "severity"), [(0.2, "PROBLEM"), (0.1, "WARNING")])
def test_several_modes_of_unknown_probability_count_together(share: float, severity: str) -> None:
    others = [replace(OTHER, seen_by={"search": share}) for _ in range(2)]
    (found,) = mode_findings(ModeTable((FIRST, *others), ("nuts", "search")))
    assert found.severity.name == severity
    assert "lack 2 modes" in found.sentence
    assert f"{2 * share:.2f} by the search" in found.sentence


@pytest.mark.parametrize(("share", "severity"), [(0.0002, "FINE"), (0.004, "WARNING")])
def test_many_small_modes_are_told_together(share: float, severity: str) -> None:
    """Draws that know shares to within 0.002 may lack 0.004, but not four times that."""
    small = replace(OTHER, error=0.002, local=(share, share / 10))
    (found,) = mode_findings(ModeTable((FIRST, *[small] * 4), ("nuts", "search")))
    assert found.severity.name == severity
    assert (
        f"lack 4 small modes that other methods saw, with a probability of about {4 * share:.2g}"
        in (found.sentence)
    )
    three = mode_findings(ModeTable((FIRST, *[small] * 3), ("nuts", "search")))
    assert len(three) == 3


def test_what_only_climbs_saw() -> None:
    """Their share of the ends of climbs is no probability."""
    unknown = replace(OTHER, seen_by={"climbs": 0.001})
    (one,) = mode_findings(ModeTable((FIRST, unknown), ("nuts", "climbs")))
    assert one.severity == Severity.WARNING
    assert "climbs from other starting points saw; its probability is not known" in one.sentence
    (several,) = mode_findings(ModeTable((FIRST, unknown, unknown), ("nuts", "climbs")))
    assert several.sentence.endswith("their probabilities are not known.")
    known = ModeTable((FIRST, replace(unknown, local=(0.3, 0.02))), ("nuts", "climbs"))
    (problem,) = mode_findings(known)
    assert problem.severity == Severity.PROBLEM
    assert "--method auto" in problem.what_to_try


def test_what_nuts_misses_is_a_warning_where_other_draws_are_the_result() -> None:
    known = replace(OTHER, local=(0.3, 0.02))
    by_climbs = replace(known, seen_by={"climbs": 1.0})
    table = ModeTable((FIRST, known, OTHER, by_climbs), ("nuts", "search", "climbs"))
    found = missed_by_nuts(table)
    assert [each.severity for each in found] == [Severity.WARNING] * 2
    assert found[0].sentence.startswith("Plain NUTS misses a mode, which the search saw: its")
    assert "which climbs from other starting points saw" in found[1].sentence
    several = missed_by_nuts(ModeTable((FIRST, *[known] * 4), ("nuts", "search")))
    assert [each.sentence for each in several] == [
        "Plain NUTS misses 4 modes that other methods or climbs saw: their probabilities are about "
        "0.3, 0.3, 0.3, 0.3."
    ]
    assert not search_saw(table)
    assert search_saw(ModeTable((FIRST, known), ("nuts", "search")))
    assert missed_by_nuts(None) == missed_by_nuts(ModeTable((FIRST,), ("nuts",))) == []


def test_modes_of_unknown_probability_are_a_reason_to_go_on() -> None:
    assert unweighed_modes(ModeTable((FIRST, OTHER), ("nuts", "search")))
    for known in (replace(OTHER, local=(1e-5, 1e-6)), replace(OTHER, seen_by={"search": 0.002})):
        assert not unweighed_modes(ModeTable((FIRST, known), ("nuts", "search")))
    assert not unweighed_modes(ModeTable((FIRST, FIRST), ("nuts",)))
    assert not unweighed_modes(None)


def test_copies_have_the_same_probability() -> None:
    copy = replace(FIRST, probability=0.2, copy_of=1, permuted=("mu", "w"), order=(2, 1))
    (wrong,) = mode_findings(ModeTable((FIRST, copy), ("nuts",)))
    assert wrong.severity == Severity.WARNING
    assert "it is 0.800 and 0.200" in wrong.sentence
    even = replace(FIRST, probability=0.52), replace(copy, probability=0.48)
    (right,) = mode_findings(ModeTable(even, ("nuts",)))
    assert right.severity == Severity.FINE
    assert right.sentence.startswith("Modes 1 and 2 are copies of each other")
    (unseen,) = mode_findings(
        ModeTable((FIRST,), ("nuts",), unseen="entries 1 and 2 of mu swapped")
    )
    assert unseen.severity == Severity.WARNING
    assert "entries 1 and 2 of mu swapped" in unseen.sentence


def drawn(apart: float = 0.0) -> Fit:
    """Independent draws, of chains whose means are so far apart."""
    x = np.random.default_rng(1).normal(size=(4, 400, 2))
    fit = target_fit(x + apart * np.arange(4)[:, None, None])
    fit.tree.attrs |= {"gradients_warmup": 3000, "gradients_sampling": 1000}
    return fit


def test_the_page_shows_the_modes() -> None:
    fit = drawn()
    assert "<h2>Modes</h2>" not in render_fit_page(build_fit_page(fit, pictures=False))
    copy = replace(OTHER, copy_of=1, permuted=("x",), order=(2, 1))
    fit.tree.attrs["modes"] = ModeTable((FIRST, copy), ("nuts", "search"), ("x",)).as_json()
    page = build_fit_page(fit, pictures=False)
    assert list(page.modes.columns) == ["probability", "standard error", "seen by", "copy of", "x"]
    assert page.modes.loc[2, "copy of"] == "1 (2 1)"
    html = render_fit_page(page)
    assert "<h2>Modes</h2>" in html
    assert "The modes, their probabilities" in html
    assert "modes" not in page.provenance
    fit.tree.attrs["modes"] = ModeTable((FIRST,), ("nuts",)).as_json()
    assert "1, as far as these methods saw: NUTS." in render_fit_page(
        build_fit_page(fit, pictures=False)
    )


def test_what_was_spent() -> None:
    fit = drawn()
    fit.tree.attrs |= {"gradients_pilot": 7, "gradients_modes": 5}
    timings = {"nuts": 1.0, "pilot": 2.0, "modes": 0.5, "total": 4.0}
    found = stages(timings, {"nuts": fit})
    assert found == [
        Stage("NUTS", 1.0, 4000),
        Stage("the search and other pilots", 2.0, 7),
        Stage("the table of modes", 0.5, 5),
        Stage("everything else", 0.5, None),
    ]
    assert spent_sentence(found).endswith("0.5 s on everything else; 4.0 s in all.")


def test_what_more_would_buy() -> None:
    """Effective draws double with independent draws, and stay a few where chains are apart."""
    more = prospect(drawn(), {"sampling": 8.0}, "sampling", 0.1)
    assert more.seconds == pytest.approx(2.0)  # a quarter of the gradients are those of draws
    assert more.effective is not None
    assert more.effective == pytest.approx(1600, rel=0.3)
    assert more.effective_twice == pytest.approx(2 * more.effective)
    assert more.error_twice == pytest.approx(0.1 / np.sqrt(2))
    assert "Twice the draws (--draws 800) would take about 2.0 s more" in prospect_sentence(more)
    assert "from 0.100 to about 0.071" in prospect_sentence(more)
    pilots = prospect(drawn(), {"nuts": 8.0}, "nuts", 0.1)
    assert pilots.error_twice is None
    assert "is the pilots' and stays" in prospect_sentence(pilots)
    bridge = prospect(drawn(), {"nuts": 8.0}, "nuts", 0.01)
    assert prospect_sentence(bridge).endswith(
        "log Z has an error of 0.010, by a bridge or by pilots."
    )
    stuck = prospect(drawn(apart=10.0), {"nuts": 8.0}, "nuts", None)
    assert stuck.effective_twice is None
    assert "has hardly grown with the draws" in prospect_sentence(stuck)


NETWORK = """
data { array[8, 8] int<lower=0, upper=1> linked; }
parameters {
  array[8] vector[2] position;
  real intercept;
}
model {
  intercept ~ normal(0, 2);
  for (n in 1 : 8) {
    position[n] ~ normal(0, 2);
    for (m in 1 : n - 1) {
      real apart = sqrt(dot_self(position[n] - position[m]) + 1e-6);
      linked[n, m] ~ bernoulli_logit(intercept - apart);
    }
  }
}
"""


def test_a_copy_in_which_draws_are_is_no_unseen_mode(tmp_path: Path) -> None:
    """The two coordinates may be swapped, but positions may be rotated: all is in one piece."""
    path = tmp_path / "network.stan"
    path.write_text(NETWORK)
    linked = np.zeros((8, 8), dtype=int)
    for n, m in [(0, 2), (3, 4), (3, 5), (4, 5), (6, 7)]:
        linked[n, m] = linked[m, n] = 1
    density = BatchedDensity(StanProgram(path), {"linked": linked}, threads=2)
    settings = PilotSettings(particles=800, moves=6)
    base = gaussian_base(np.zeros(17), 4 * np.eye(17))
    made = pilot_of_density(density, base, settings=settings, seed=1)
    points = made.points.reshape(4, -1, 17)
    swap = Permutation((("position", (1,)),), (1, 0))
    assert leaves_density(swap, points[0, :20], density)
    visits = [Visits("nuts", points, np.zeros(points.shape[:2]))]
    table = find_modes(visits, density, effective=400, seed=1).table
    assert (len(table.modes), table.unseen) == (1, "")


def test_what_a_later_table_of_the_same_draws_says_takes_the_place_of_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its modes may have other numbers."""
    rng = np.random.default_rng(1)
    plain, other = (target_fit(rng.standard_normal((4, 100))) for _ in range(2))
    program = SimpleNamespace(why_not_tempered=None, model=None)
    tables = ModeTables(program, Clock(None, show=False), NutsSettings(), 60.0, 1)  # type: ignore[arg-type]
    reasons = iter(["first", "second", "third"])
    nothing = OtherModes((), None, 0, 0)
    monkeypatch.setattr(
        ModeTables, "_made", lambda *_: (SamplingError(f"the {next(reasons)} failed"), nothing)
    )
    monkeypatch.setattr("harness.user.mode_tables.still_elsewhere", lambda *_: nothing)
    for fit, tempered in ((plain, None), (other, None), (plain, other)):
        result = UserFit(fit, "nuts", tempered=tempered)
        tables.added_to(result)
    said = [[each.sentence for each in remembered(fit)] for fit in (plain, other)]
    assert ["the third failed" in " ".join(each) for each in said] == [True, False]
    assert ["the first failed" in " ".join(each) for each in said] == [False, False]
    assert ["the second failed" in " ".join(each) for each in said] == [False, True]


@pytest.mark.parametrize(
    ("apart", "seconds", "expected"),
    [
        (0.0, 1e-3, 4.0),  # one mode
        (9.0, 1e-6, 4.0),  # 300,000 gradients take 0.3 s
        (9.0, 3e-5, 9.0),
        (9.0, 1e-3, 15.0),
    ],
)
def test_climbs_of_a_slow_density_have_more_time_where_chains_disagree(
    monkeypatch: pytest.MonkeyPatch, *, apart: float, seconds: float, expected: float
) -> None:
    points = np.random.default_rng(1).standard_normal((4, 200, 2))
    points[::2] += apart
    monkeypatch.setattr("harness.user.modes.seconds_a_point", lambda *_: seconds)
    density: Any = None
    assert _seconds_for_climbs(density, points, 10.0) == pytest.approx(expected)
