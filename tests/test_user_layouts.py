"""One mixture written in many ways: its copies, and log Z by enumeration of all assignments.

The components have normal means, known scales and Dirichlet shares, so that log Z is a sum over
the components that the observations may come from.  Programs differ in how they declare means and
shares.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from calibration import mean_square_bounds
from scipy.special import gammaln, logsumexp
from scipy.stats import multivariate_normal
from stan_density import stanli

from harness.arrays import FloatArray
from harness.diagnosis import Severity
from harness.engine.batched import BatchedDensity
from harness.engine.program import StanProgram
from harness.modes.group import generated_group
from harness.modes.symmetries import find_symmetries
from harness.user import sample

assert stanli is not None


class Layout(NamedTuple):
    """How a program declares the mixture, and the copies that are found of K components."""

    declared: str
    prior: str
    component: str
    size: int = 1
    copies: Callable[[int], int] = math.factorial


SHARES = "w ~ dirichlet(rep_vector(a, K));"
LAYOUTS = {
    "vectors": Layout(
        "vector[K] mu; simplex[K] w;",
        f"mu ~ normal(0, s); {SHARES}",
        "log(w[k]) + normal_lpdf(y[n, 1] | mu[k], sd0)",
    ),
    "an array of vectors": Layout(
        "array[K] vector[2] mu; simplex[K] w;",
        f"for (k in 1 : K) mu[k] ~ normal(0, s); {SHARES}",
        "log(w[k]) + normal_lpdf(y[n] | mu[k], sd0)",
        size=2,
    ),
    "columns of a matrix": Layout(
        "matrix[2, K] mu; simplex[K] w;",
        f"to_vector(mu) ~ normal(0, s); {SHARES}",
        "log(w[k]) + normal_lpdf(y[n] | mu[ : , k], sd0)",
        size=2,
    ),
    "scalars": Layout(
        "real left; real right; real<lower=0, upper=1> w;",
        "left ~ normal(0, s); right ~ normal(0, s); w ~ beta(a, a);",
        "(k == 1 ? log(w) + normal_lpdf(y[n, 1] | left, sd0) "
        ": log1m(w) + normal_lpdf(y[n, 1] | right, sd0))",
    ),
    "not centred": Layout(
        "vector[K] raw; simplex[K] w;",
        f"raw ~ std_normal(); {SHARES}",
        "log(w[k]) + normal_lpdf(y[n, 1] | s * raw[k], sd0)",
    ),
    # The last share has no parameter, so only orders of the others are changes of places.
    "log odds": Layout(
        "vector[K - 1] eta; vector[K] mu;",
        "mu ~ normal(0, s); target += a * sum(log_softmax(append_row(eta, 0))) "
        "- K * lgamma(a) + lgamma(K * a); // temper: no",
        "log_softmax(append_row(eta, 0))[k] + normal_lpdf(y[n, 1] | mu[k], sd0)",
        copies=lambda count: max(2, math.factorial(count - 1)),
    ),
    # The prior as written integrates to 1 / K!; log Z is for the prior divided by that.
    "ordered": Layout(
        "ordered[K] mu; simplex[K] w;",
        f"mu ~ normal(0, s); {SHARES}",
        "log(w[k]) + normal_lpdf(y[n, 1] | mu[k], sd0)",
        copies=lambda count: 1,
    ),
}


def written(name: str, folder: Path) -> Path:
    layout = LAYOUTS[name]
    path = folder / "layout.stan"
    path.write_text(
        f"""data {{
  int N, K;
  array[N] vector[{layout.size}] y;
  real s, a, sd0;
}}
parameters {{
  {layout.declared}
}}
model {{
  {layout.prior}
  for (n in 1 : N) {{
    vector[K] part;
    for (k in 1 : K) part[k] = {layout.component};
    target += log_sum_exp(part);
  }}
}}
""",
        encoding="utf-8",
    )
    return path


def problem(name: str, seed: int) -> dict[str, Any]:
    """Data of some components, all settings drawn at random."""
    rng = np.random.default_rng([78, seed])
    count = 2 if name == "scalars" else int(rng.choice([2, 3]))
    number = int(rng.integers(5, 13 if count == 2 else 9))
    s, sd0 = np.exp(rng.uniform(np.log([1.5, 0.2]), np.log([12, 1.2])))
    mean = rng.normal(0, s, (count, LAYOUTS[name].size))
    y = rng.normal(mean[rng.integers(0, count, number)], sd0)
    a = float(rng.choice([0.5, 1, 2, 4]))
    return {"N": number, "K": count, "y": y, "s": float(s), "a": a, "sd0": float(sd0)}


def exact(data: dict[str, Any]) -> float:
    """Log Z: the sum over all components that observations after the first may come from."""
    y: FloatArray = data["y"]
    number, count, a = data["N"], data["K"], data["a"]
    known: dict[tuple[int, ...], float] = {}

    def of_one(members: tuple[int, ...]) -> float:
        if members and members not in known:
            size = len(members)
            normal = multivariate_normal(
                np.zeros(size), data["sd0"] ** 2 * np.eye(size) + data["s"] ** 2
            )
            known[members] = float(sum(normal.logpdf(each) for each in y[list(members)].T))
        return known.get(members, 0.0)

    terms = []
    for others in product(range(count), repeat=number - 1):
        of = np.array((0, *others))
        sizes = np.bincount(of, minlength=count)
        shares = gammaln(count * a) - gammaln(count * a + number)
        shares += np.sum(gammaln(a + sizes) - gammaln(a))
        parts = (tuple(np.flatnonzero(of == k).tolist()) for k in range(count))
        terms.append(shares + sum(of_one(each) for each in parts))
    return float(logsumexp(terms) + np.log(count))


@pytest.mark.parametrize(
    ("name", "count"),
    [(name, count) for name, count in product(LAYOUTS, (2, 3)) if name != "scalars" or count == 2],
)
def test_copies_of_every_layout(name: str, count: int, tmp_path: Path) -> None:
    data: dict[str, Any] = {"N": 3, "K": count, "s": 2.0, "a": 2.0, "sd0": 1.0}
    data["y"] = np.random.default_rng(1).normal(size=(3, LAYOUTS[name].size))
    density = BatchedDensity(StanProgram(written(name, tmp_path)), data)
    points = np.random.default_rng(2).normal(size=(12, density.dimension))
    group = generated_group(find_symmetries(density, points, most_seconds=np.inf))
    assert group is not None
    assert len(group) == LAYOUTS[name].copies(count)


@pytest.mark.slow
@pytest.mark.parametrize("name", LAYOUTS)
def test_log_z_of_every_layout(name: str, tmp_path: Path) -> None:
    """Of four problems; the bounds are those of a mean of four squares of normals."""
    z = []
    for seed in range(4):
        data = problem(name, seed)
        result = sample(
            *(written(name, tmp_path), data),
            seed=seed + 1,
            engine="stanli",
            budget=60,
            progress=False,
        )
        assert all(each.severity < Severity.PROBLEM for each in result.diagnosis)
        assert result.log_evidence is not None
        z.append((result.log_evidence.value - exact(data)) / result.log_evidence.mcse)
    low, high = mean_square_bounds(4)
    assert low < np.mean(np.square(z)) < high
