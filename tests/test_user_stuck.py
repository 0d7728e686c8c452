"""Chains that are stuck where the posterior has hardly any probability, which is known exactly."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm
from stan_density import stanli
from test_user_sample import check_evidence

from harness.arrays import FloatArray
from harness.diagnosis import Severity
from harness.errors import DataError
from harness.evidence import LogEvidence
from harness.temper import tempered_model
from harness.user.against_nuts import AgainstNuts
from harness.user.compare import Population, compare
from harness.user.sample import sample
from harness.user.stuck import Stuck, about_stuck, seems_stuck, share_at_most, stuck_chains

assert stanli is not None

PROGRAM = """
data { real far; real below; }
parameters { vector[3] x; }
model {
  x ~ normal(0, 5);
  target += log_sum_exp(below - 5 * dot_self(x), -2 * dot_self(x - far));
}
"""
FAR, BELOW = 12.0, -200.0
"""Where the large mode is, and how much lower the other one is before the prior counts."""


def log_mass(precision: float, centre: float) -> float:
    """Log of the integral of exp(-precision |x - centre|^2 / 2) times the prior's density."""
    variance = 1 / precision
    scale = 0.5 * np.log(2 * np.pi * variance)
    return float(3 * (scale + norm.logpdf(centre, 0, np.sqrt(25 + variance))))


LARGE, SMALL = log_mass(4.0, FAR), log_mass(10.0, 0.0)


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "far.stan"
    path.write_text(PROGRAM)
    return path


def drawn(where: str, rng: np.random.Generator) -> FloatArray:
    """Draws of one of the modes, (400, 3); its posterior is a Gaussian."""
    precision, centre = (4.0, FAR) if where == "large" else (10.0, 0.0)
    whole = precision + 1 / 25
    draws: FloatArray = precision * centre / whole + rng.normal(size=(400, 3)) / np.sqrt(whole)
    return draws


def chains(*where: str) -> dict[str, FloatArray]:
    rng = np.random.default_rng(51)
    return {"x": np.stack([drawn(each, rng) for each in where])}


@pytest.mark.parametrize("below", [-200.0, -10.0])
def test_a_stuck_chain_has_at_most_what_its_mode_has(program: Path, below: float) -> None:
    """The bound is the mode's probability, but for the error of a mean, as modes are Gaussian.

    That of a mean over 400 draws of three coordinates is 0.06, and so is that of half the log
    determinant; the allowance for draws is below 0.1.
    """
    model = tempered_model(program, {"far": FAR, "below": below})
    stuck = stuck_chains(model, chains("large", "small", "large"), LogEvidence(LARGE, 0.0))
    exact = float(np.exp(SMALL + below - LARGE))
    if exact > 1e-4:
        assert stuck is None
    else:
        assert stuck is not None
        assert stuck.chains == (1,)
        assert np.log(stuck.share / exact) == pytest.approx(0.05, abs=0.4)


@pytest.mark.parametrize("below", [-200.0, -10.0])
def test_particles_have_at_most_what_their_mode_has(program: Path, below: float) -> None:
    """As above, with a third of the independent draws."""
    model = tempered_model(program, {"far": FAR, "below": below})
    points = drawn("small", np.random.default_rng(53))
    exact = min(float(np.exp(SMALL + below - LARGE)), 1.0)
    share = share_at_most(model, points, LogEvidence(LARGE, 0.0))
    assert np.log(share / exact) == pytest.approx(0.05, abs=0.5)
    # Particles with a common ancestor are no further ones.
    assert share == share_at_most(model, np.repeat(points, 4, axis=0), LogEvidence(LARGE, 0.0))
    assert share_at_most(model, points[:5], LogEvidence(LARGE, 0.0)) == 1.0


@pytest.mark.parametrize(("below", "counts"), [(-200.0, False), (-9.0, True)])
def test_where_a_search_ended_counts_unless_hardly_any_probability_is_there(
    program: Path, below: float, counts: bool
) -> None:
    model = tempered_model(program, {"far": FAR, "below": below})
    steps: Any = SimpleNamespace(program=SimpleNamespace(model=model))
    search = Population({"x": chains("small")["x"].reshape(8, 50, 3)}, np.zeros(8))
    scouted: Any = SimpleNamespace(search=search, by_bridge=LogEvidence(LARGE, 0.01))
    compared = compare(chains("large", "large"), search)
    assert compared.missed_by_nuts is not None
    left, said = AgainstNuts(steps).without_low(compared, scouted, None)
    assert (left.missed_by_nuts is not None) == counts
    assert [each.severity for each in said] == ([] if counts else [Severity.FINE])
    # Without a bridge from NUTS's draws nothing tells how much there is.
    scouted.by_bridge = None
    assert AgainstNuts(steps).without_low(compared, scouted, None) == (compared, [])


def test_what_may_belong_to_the_posterior_is_not_stuck(program: Path) -> None:
    model = tempered_model(program, {"far": FAR, "below": BELOW})
    known = LogEvidence(LARGE, 0.0)
    assert stuck_chains(model, chains("large", "large"), known) is None
    # Log Z by a method that has not been in the large mode either.
    both = chains("small", "large")
    assert stuck_chains(model, both, LogEvidence(SMALL + BELOW, 0.1)) is None
    assert stuck_chains(model, both, LogEvidence(-np.inf, 0.0)) is None
    # A chain that hardly moves in the large mode looks narrow.
    rng = np.random.default_rng(52)
    slow = FAR + 1e-6 * np.cumsum(rng.normal(size=(1, 400, 3)), axis=1)
    assert stuck_chains(model, {"x": slow}, known) is None
    still: Mapping[str, FloatArray] = {"x": np.full((1, 400, 3), FAR)}
    assert stuck_chains(model, still, known) is None


def test_chains_of_a_given_fit_that_seem_stuck_are_named(program: Path) -> None:
    """The ratio of the two modes' masses is known; its error is that of the bounds above."""
    model = tempered_model(program, {"far": FAR, "below": -30.0})
    exact = float(np.exp(SMALL - 30.0 - LARGE))
    (said,) = seems_stuck(model, chains("large", "small", "large"))
    assert said.sentence.startswith("Chain 2 is probably stuck")
    ratio = float(said.sentence.partition("about ")[2].split()[0])
    assert np.log(ratio / exact) == pytest.approx(0, abs=0.6)
    (both,) = seems_stuck(model, chains("small", "small", "large"))
    assert both.sentence.startswith("Chains 1 and 2 are probably stuck")
    assert not seems_stuck(model, chains("large", "large"))
    # Two modes of about the same mass: neither is stuck.
    even = tempered_model(program, {"far": FAR, "below": LARGE - SMALL})
    assert not seems_stuck(even, chains("large", "small"))


def test_it_is_said_which_chains() -> None:
    def said(*numbers: int) -> str:
        finding = about_stuck(Stuck(numbers, 3e-9), 4)
        assert finding.severity == Severity.FINE
        return finding.sentence

    assert said(0, 2).startswith("Chains 1 and 3 of plain NUTS are stuck")
    assert said(1).startswith("Chain 2 of plain NUTS is stuck")
    assert said(0, 1, 2, 3).startswith("All chains of plain NUTS are stuck")
    assert "at most 3e-09" in said(1)


def test_auto_is_sure_of_draws_that_lack_a_mode_of_no_probability(program: Path) -> None:
    """All chains of NUTS start, and stay, where the posterior has a probability of exp(-192).

    Tempered draws were called incomplete, as they have none there.
    """
    result = sample(
        program,
        {"far": FAR, "below": BELOW},
        engine="stanli",
        seed=3,
        budget=60,
        progress=False,
    )
    assert result.method != "nuts"
    told = [each.sentence for each in result.diagnosis]
    assert any("of plain NUTS are stuck where the posterior" in each for each in told)
    assert all(each.severity < Severity.PROBLEM for each in result.diagnosis)
    assert not any("misses a region that plain NUTS found" in each for each in told)
    check_evidence(result, LARGE, 0.1)


def test_draws_at_which_there_is_no_density_tell_nothing(
    program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are no reason to lose the search for further modes."""

    def fails(*arguments: object) -> None:
        raise DataError("a value lies outside its support")

    monkeypatch.setattr("harness.user.stuck.unconstrained", fails)
    model = tempered_model(program, {"far": FAR, "below": BELOW})
    assert stuck_chains(model, chains("large", "small"), LogEvidence(LARGE, 0.0)) is None
    assert not seems_stuck(model, chains("large", "small"))
