"""Programs with one term of each sum of densities: added up, they are the original again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp

from harness.arrays import FloatArray
from harness.engine.batched import BatchedDensity
from harness.engine.program import StanProgram
from harness.errors import CompileError
from harness.temper.components import MOST, component_programs

DATA: dict[str, Any] = {
    "D": 2,
    "m": [[-1.0, 0.5], [2.0, -3.0], [0.3, 4.0]],
    "s": [1.0, 0.2, 3.0],
    "w": [0.5, 0.2, 0.3],
}
HEAD = """
data { int D; array[3] vector[D] m; vector[3] s; simplex[3] w; }
parameters { vector[D] x; real<lower=0> t; }
"""
ADDED = "lp[k] = log(w[k]) + normal_lpdf(x | m[k], t * s[k]);"
SUMS = {
    "a vector": f"vector[3] lp; for (k in 1:3) {ADDED} target += log_sum_exp(lp);",
    "a row": f"row_vector[3] lp; for (k in 1:3) {ADDED} target += 1 + log_sum_exp(lp);",
    "an array": f"array[3] real lp; for (k in 1:3) {ADDED} target += log_sum_exp(lp);",
    "two terms": "target += log_sum_exp(normal_lpdf(x | m[1], t), normal_lpdf(x | m[2], 1));",
    "nested": """target += log_sum_exp(normal_lpdf(x | m[1], t),
        log_sum_exp(-dot_self(x), normal_lpdf(t | 3, 1)));""",
    "log_mix within a sum": """target += log_sum_exp(log(w[1]) + log_mix(0.2, -t, -dot_self(x)),
        (normal_lpdf(x | m[1], t) + log(w[2])));""",
    "a product of sums within a sum": """target += log_sum_exp(
        log_sum_exp(-t, x[1]) + log_sum_exp(-2 * t, x[2]), 1.5);""",
    "log_mix": "target += log_mix(inv_logit(x[1]), normal_lpdf(x | m[1], t), -dot_self(x));",
    "log_mix of vectors": """vector[3] lp; for (k in 1:3) lp[k] = normal_lpdf(x | m[k], s[k]);
        target += log_mix(w, lp);""",
    "exponentials": """target += log(w[1] * exp(normal_lpdf(x | m[1], t))
        + exp(-dot_self(x)) * w[2] / t + (exp(-t) + 0.2 * exp(-x[1] ^ 2)));""",
    "a sum": """vector[3] lp; for (k in 1:3) lp[k] = normal_lpdf(x | m[k], 1);
        target += log(sum(exp(lp)));""",
    "a product with weights": """vector[3] lp; for (k in 1:3) lp[k] = normal_lpdf(x | m[k], 1);
        target += log(dot_product(w * t, exp(lp - t)));""",
    "by the ratio": """real a = normal_lpdf(x | m[1], t); real b = -dot_self(x);
        target += -t + (a + log1p_exp(b - a));""",
    "by the ratio, with the larger one last": """real a = normal_lpdf(x | m[1], t);
        real b = -dot_self(x); target += log1p_exp(-abs(a - b)) + fmax(a, b);""",
    "a difference outside": "target += x[1] - log_sum_exp(-t, 1 - x[2] ^ 2) * -1;",
    "a function": "target += mix(x, m, t * s, w);",
    "a density": "x ~ mixed(m, t * s, w);",
}
FUNCTIONS = """
functions {
  real mix(vector x, array[] vector m, vector s, vector w) {
    vector[size(m)] lp;
    for (k in 1 : size(m)) lp[k] = log(w[k]) + normal_lpdf(x | m[k], s[k]);
    return log_sum_exp(lp);
  }
  real mixed_lpdf(vector x, array[] vector m, vector s, vector w) {
    return mix(x, m, s, w);
  }
}
"""
NO_SUMS = {
    "a regression": "target += log(1 + square(x[1]));",
    "data": "target += log_sum_exp(s) * x[1] + log(exp(s[1]) + exp(s[2]));",
    "a negative term": "target += log(exp(t) - exp(-t));",
    "a constant and an exponential": "target += log(2 + exp(x[1]));",
    "a function that is soft": "target += x[1] - log1p_exp(x[1]) + s[1] + log1p_exp(s[2]);",
    "a function of that name": "target += log_sums(x);",
}


def program(folder: Path, name: str, text: str) -> StanProgram:
    path = folder / f"{name}.stan"
    path.write_text(text)
    return StanProgram(path)


def components(folder: Path, text: str, points: FloatArray) -> FloatArray:
    """Values of different components at points, shape (components, points)."""
    path = program(folder, "original", text).path
    each = [
        BatchedDensity(program(folder, f"component_{n}", one), DATA).values(points)
        for n, one in enumerate(component_programs(path))
    ]
    return np.unique(np.array(each).round(9), axis=0)


@pytest.mark.parametrize("form", SUMS)
def test_components_add_up_to_the_mixture(tmp_path: Path, form: str) -> None:
    model = f"model {{ x ~ normal(0, 3); t ~ exponential(1); {SUMS[form]} }}"
    text = FUNCTIONS + HEAD + model + "generated quantities { real z = log_sum_exp(x); }"
    points = np.random.default_rng(1).normal(size=(50, 3))
    found = components(tmp_path, text, points)
    exact = BatchedDensity(StanProgram(tmp_path / "original.stan"), DATA).values(points)
    # The prior and the Jacobian are in each component, as factors.
    two = (
        "two terms",
        "log_mix",
        "a difference outside",
        *(each for each in SUMS if "ratio" in each),
    )
    more = {"exponentials": 4, "a product of sums within a sum": 5} | dict.fromkeys(two, 2)
    assert len(found) == more.get(form, 3)
    # Values of components are rounded to 1e-9.
    assert logsumexp(found, axis=0) == pytest.approx(exact, rel=1e-8, abs=1e-8)


def test_each_combination_of_two_sums(tmp_path: Path) -> None:
    """A product of two sums is the sum of all products."""
    one, two = SUMS["a vector"], SUMS["two terms"]
    points = np.random.default_rng(2).normal(size=(50, 3))
    text = HEAD + f"transformed parameters {{ real r = log_sum_exp(t, x[1]); }} model {{ {two} "
    found = components(tmp_path, text + "target += r; }", points)
    exact = BatchedDensity(StanProgram(tmp_path / "original.stan"), DATA).values(points)
    assert len(found) == 4
    # Values of components are rounded to 1e-9.
    assert logsumexp(found, axis=0) == pytest.approx(exact, rel=1e-8, abs=1e-8)
    # With a vector there are more combinations than programs; none is written twice.
    path = program(tmp_path, "many", f"{text} target += r; {one} }}").path
    texts = list(component_programs(path))
    assert len(texts) == MOST
    assert len(set(texts)) > MOST // 2


@pytest.mark.parametrize("what", NO_SUMS)
def test_what_adds_no_densities_has_no_components(tmp_path: Path, what: str) -> None:
    functions = "functions { real log_sums(vector x) { return sum(x); } }"
    text = f"{functions}{HEAD} model {{ {NO_SUMS[what]} }}"
    path = program(tmp_path, "original", text).path
    assert list(component_programs(path)) == []


def test_a_program_that_is_not_valid(tmp_path: Path) -> None:
    path = program(tmp_path, "original", "parameters { real x } model { }").path
    with pytest.raises(CompileError):
        list(component_programs(path))
