"""Plain NUTS once more from its best chain, against modes whose probabilities are known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm
from stan_density import stanli
from test_user_sample import check_evidence

from harness.diagnosis import Severity
from harness.user.best_chain import _helped
from harness.user.result import UserFit
from harness.user.sample import sample

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


def found(
    tmp_path: Path, text: str, data: dict[str, float], seed: int, budget: float = 40.0
) -> UserFit:
    (tmp_path / "modes.stan").write_text(text)
    return sample(
        tmp_path / "modes.stan", data, engine="stanli", seed=seed, budget=budget, progress=False
    )


def told(result: UserFit, words: str) -> list[str]:
    return [each.sentence for each in result.diagnosis if words in each.sentence]


@pytest.mark.parametrize("seed", [1, 3])
def test_chains_in_a_mode_of_no_probability_start_anew(tmp_path: Path, seed: int) -> None:
    """In 40 dimensions one chain of each seed stays in a mode of probability exp(-20).

    The bound is no less than that, but for the error of a mean over some 100 effective draws, 0.45
    in units of its logarithm, and that of a determinant, about as large.
    """
    result = found(tmp_path, PROGRAM, {"below": -20.0}, seed)
    (said,) = told(result, HELPED)
    assert result.method == "nuts"
    assert all(each.severity < Severity.PROBLEM for each in result.diagnosis)
    most = float(said.partition("at most ")[2].split(",")[0])
    assert -20 - 4 * np.hypot(0.45, 0.45) < np.log(most) < np.log(1e-4)
    assert (result.fit.posterior["x"].mean(dim=("chain", "draw")) < -2).all()
    check_evidence(result, float(np.logaddexp(ONE, ONE - 20)), 0.05)


def test_a_mode_that_matters_is_not_left_out(tmp_path: Path) -> None:
    """It has a probability of 0.018, and a chain in it: NUTS from the other is not all."""
    result = found(tmp_path, PROGRAM, {"below": -4.0}, 1, budget=15.0)
    assert not told(result, HELPED)


def test_copies_of_the_best_mode_do_not_matter(tmp_path: Path) -> None:
    """Each chain is in one of two copies, or in a mode of probability exp(-30).

    That mode is where both vectors are alike, so that there is one copy of it.
    """
    text = """
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
    variance = 0.2
    each = 10 * (
        2 * 0.5 * np.log(2 * np.pi * variance) + 2 * norm.logpdf(2, 0, np.sqrt(100 + variance))
    )
    result = found(tmp_path, text, {"below": -30.0}, 1)
    assert told(result, HELPED)
    assert result.method == "nuts"
    assert result.copies == 2
    check_evidence(result, float(each + np.log(2)), 0.05)


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
