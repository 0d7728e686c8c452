"""Plain NUTS once more from its best chain, against modes whose probabilities are known."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from scipy.stats import norm
from stan_density import stanli
from test_user_sample import check_evidence

from harness.diagnosis import R_HAT_PROBLEM, Finding, Severity
from harness.engine.nuts import NutsSettings
from harness.user.best_chain import _helped
from harness.user.clock import Clock
from harness.user.nuts_again import improved
from harness.user.nuts_draws import NutsDraws
from harness.user.prepare import prepare
from harness.user.sample import sample
from harness.user.steps import Steps
from harness.user.unfinished import Unfinished

assert stanli is not None

PROGRAM = """
data { real below; }
parameters { vector[40] x; }
model {
  x ~ normal(0, 10);
  target += log_sum_exp(below - 0.5 * dot_self(x - 3), -0.5 * dot_self(x + 3));
}
"""
ONE = float(40 * (0.5 * np.log(2 * np.pi) + norm.logpdf(3, 0, np.sqrt(101))))
"""Log of the integral of one mode, but for what it is below."""
HELPED = "NUTS ran once more with all chains from"


COPIES = """
data { real below; }
parameters { array[2] vector[10] x; }
model {
  real s = 0.2;
  x[1] ~ normal(0, 10);
  x[2] ~ normal(0, 10);
  target += log_sum_exp([
    -0.5 * (dot_self(x[1] - 2) + dot_self(x[2] + 2)) / s,
    -0.5 * (dot_self(x[1] + 2) + dot_self(x[2] - 2)) / s,
    below - 0.5 * (dot_self(x[1] - 2) + dot_self(x[2] - 2)) / s]);
}
"""
NUTS = NutsSettings(parallel_chains=1)


def improved_by(tmp_path: Path, text: str, below: float, seed: int) -> NutsDraws:
    """Draws of plain NUTS after all its further runs."""
    path = tmp_path / "modes.stan"
    path.write_text(text)
    with Unfinished(None) as unfinished, Clock(None, show=False) as clock:
        program = prepare(
            *(path, {"below": below}, "likelihood", (), "stanli", clock), tempered="if possible"
        )
        steps = Steps(program, clock, NUTS, seed, 2, 60.0, unfinished)
        return improved(steps, steps.plain())


def told(findings: Iterable[Finding]) -> list[str]:
    return [each.sentence for each in findings if HELPED in each.sentence]


def test_chains_in_a_mode_of_no_probability_start_anew(tmp_path: Path) -> None:
    """In 40 dimensions one chain stays in a mode of probability exp(-20)."""
    path = tmp_path / "modes.stan"
    path.write_text(PROGRAM)
    result = sample(path, {"below": -20.0}, engine="stanli", seed=1, budget=40, progress=False)
    assert told(result.diagnosis)
    assert result.method == "nuts"
    assert all(each.severity < Severity.PROBLEM for each in result.diagnosis)
    assert (result.fit.posterior["x"].mean(dim=("chain", "draw")) < -2).all()
    check_evidence(result, float(np.logaddexp(ONE, ONE - 20)), 0.05)


def test_what_the_mode_has_at_most(tmp_path: Path) -> None:
    """No less than exp(-20), which it has, but for errors.

    That of a mean over some 100 effective draws is 0.45 in units of its logarithm, and that of a
    determinant about as large.
    """
    (said,) = told(improved_by(tmp_path, PROGRAM, -20.0, 3).said)
    most = float(said.partition("at most ")[2].split(",")[0])
    assert -20 - 4 * np.hypot(0.45, 0.45) < np.log(most) < np.log(1e-4)


def test_a_mode_that_matters_is_not_left_out(tmp_path: Path) -> None:
    """It has a probability of 0.018, and a chain in it: NUTS from the other is not all."""
    draws = improved_by(tmp_path, PROGRAM, -4.0, 1)
    assert not told(draws.said)
    assert draws.r_hat > R_HAT_PROBLEM


def test_copies_of_the_best_mode_do_not_matter(tmp_path: Path) -> None:
    """Each chain is in one of two copies, or in a mode of probability exp(-31).

    That mode is where both vectors are alike, so that there is one copy of it.
    """
    draws = improved_by(tmp_path, COPIES, -30.0, 1)
    assert told(draws.said)
    assert draws.in_one_copy is not None
    assert draws.in_one_copy.copies == 2


def test_what_is_said_of_the_first_run() -> None:
    shares = np.array([1.0, 4e-4, 5e-4, 1e-9])
    none = _helped([], shares, 0)
    assert none.severity == Severity.FINE
    assert "the draws of chain 1, and they agree, also with those of the first run" in none.sentence
    one = _helped([3], shares, 0)
    assert one.severity == Severity.FINE
    assert one.sentence.startswith("Chain 4 of plain NUTS was stuck in a mode that has")
    assert _helped([1, 2], shares, 0).severity == Severity.FINE  # 0.0009
    several = _helped([1, 2, 3], shares + 3e-4, 0)
    assert several.severity == Severity.WARNING
    assert several.sentence.startswith("Chains 2, 3 and 4 of plain NUTS were stuck in other modes")
