"""What is data and what a prior, where data reach a density by an index, a bound, a condition."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stan_density import StanDensity
from temper_fuzz import chosen_program
from tempered_oracle import prior_and_target

from harness.engine.program import StanProgram
from harness.errors import DataError
from harness.temper import as_table, temper

LIKELIHOOD, PRIOR = (True, False), (False, False)
MAYBE_LIKELIHOOD, MAYBE_PRIOR = (True, True), (False, True)
"""Whether it is tempered, and whether the text does not decide it."""

DATA = """int N; int J; int K; int k; int flag; real r;
  array[N] int w; array[N] int g; array[N] int a; array[N] int b; array[N] int z; vector[N] y;
  matrix[J, J] Q; array[J] int from; array[J] int to; vector[J] s;"""


@dataclass(frozen=True)
class Case:
    """A program, and what becomes of its statements, in their order."""

    parameters: str
    model: str
    expected: tuple[tuple[bool, bool], ...]
    functions: str = ""
    transformed: str = ""
    prepared: str = ""

    def text(self) -> str:
        return f"""functions {{ {self.functions} }}
data {{
  {DATA}
}}
transformed data {{ {self.prepared} }}
parameters {{ {self.parameters} }}
transformed parameters {{ {self.transformed} }}
model {{
  {self.model}
}}
"""


_SHARES = "simplex[3] p;"
_SHARE = "real<lower=0, upper=1> t;"
_FIELD = "vector[J] phi;"
_Y = "y ~ normal(phi[g], 1);"

CASES = {
    # By an index
    "an index": Case(
        _SHARES, "p ~ dirichlet([1, 1, 1]'); for (n in 1 : N) target += log(p[w[n]]);",
        (PRIOR, LIKELIHOOD),
    ),
    "an index without a prior": Case(
        _SHARES, "target += sum(log(p[w]));", (LIKELIHOOD,)
    ),
    "an index in a local": Case(
        _SHARES,
        "for (n in 1 : N) { vector[2] l; for (i in 1 : 2) l[i] = log(p[w[n]]) - i;"
        " target += log_sum_exp(l); }",
        (LIKELIHOOD,),
    ),
    "an index in transformed parameters": Case(
        "vector[J] phi;", "phi ~ normal(0, 1); target += sum(l);", (PRIOR, LIKELIHOOD),
        transformed="vector[N] l; for (n in 1 : N) l[n] = log_inv_logit(phi[w[n]]);",
    ),
    "an index that is computed": Case(
        _SHARES, "for (n in 1 : N) { int at = 1; if (w[n] > 2) at = 2; target += log(p[at]); }",
        (LIKELIHOOD,),
    ),
    "an index of prepared data": Case(
        _SHARES, "for (n in 1 : N) target += log(p[v[n]]);", (LIKELIHOOD,),
        prepared="array[N] int v; for (n in 1 : N) v[n] = w[N - n + 1];",
    ),
    "an index that no data are in": Case(
        "vector[3] q;", "target += -square(q[v[1]]); y ~ normal(q[2], 1);", (PRIOR, LIKELIHOOD),
        prepared="array[2] int v = {1, 3};",
    ),
    "an index of what is assigned": Case(
        "vector[3] q;",
        "vector[3] l = zeros_vector(3); for (n in 1 : N) l[w[n]] += q[1]; q ~ normal(0, 1);"
        " target += -sum(square(l));",
        (PRIOR, LIKELIHOOD),
    ),
    "slices": Case(
        _FIELD, "phi ~ normal(0, 1); for (j in 1 : J) target += -sum(phi[from[j] : to[j]]);",
        (PRIOR, LIKELIHOOD),
    ),
    "a slice's size": Case(
        _SHARES, "target += sum(log(p[1 : k]));", (MAYBE_LIKELIHOOD,)
    ),
    "pairs": Case(
        _FIELD, "phi ~ normal(0, 1); target += sum(log_inv_logit(phi[a] - phi[b]));",
        (PRIOR, LIKELIHOOD),
    ),
    "an index beside a likelihood": Case(
        _SHARES,
        "p ~ dirichlet([1, 1, 1]'); for (n in 1 : N) target += log(p[w[n]]); y ~ normal(p[1], 1);",
        (PRIOR, MAYBE_LIKELIHOOD, LIKELIHOOD),
    ),
    "an index twice": Case(
        _SHARES, "target += sum(log(p[w])); target += sum(log(p[w]));",
        (MAYBE_LIKELIHOOD, MAYBE_LIKELIHOOD),
    ),
    "an index beside neighbours": Case(
        f"{_FIELD} {_SHARES}",
        "target += -0.5 * dot_self(phi[a] - phi[b]); target += sum(log(p[w]));",
        (MAYBE_PRIOR, LIKELIHOOD),
    ),
    "a hidden state of symbols": Case(
        "array[J] simplex[3] p;",
        "for (j in 1 : J) p[j] ~ dirichlet([1, 1, 1]'); vector[J] l;"
        " for (j in 1 : J) l[j] = -log(J) + log(p[j, w[1]]); target += log_sum_exp(l);",
        (PRIOR, LIKELIHOOD),
    ),
    "what nothing else gives a density, alone": Case(
        _FIELD, "for (n in 1 : N) target += phi[w[n]] - log_sum_exp(phi);", (MAYBE_LIKELIHOOD,)
    ),
    # Priors on graphs
    "neighbours": Case(
        _FIELD, f"target += -0.5 * dot_self(phi[a] - phi[b]); {_Y}", (MAYBE_PRIOR, LIKELIHOOD)
    ),
    "neighbours with a sum": Case(
        _FIELD,
        f"target += -0.5 * dot_self(phi[a] - phi[b]); sum(phi) ~ normal(0, 0.001 * J); {_Y}",
        (MAYBE_PRIOR, PRIOR, LIKELIHOOD),
    ),
    "neighbours with a fixed one": Case(
        _FIELD,
        f"phi[1] ~ normal(0, 1); target += -0.5 * dot_self(phi[a] - phi[b]); {_Y}",
        (PRIOR, MAYBE_PRIOR, LIKELIHOOD),
    ),
    "neighbours with a scale": Case(
        f"{_FIELD} real<lower=0> u;",
        "u ~ gamma(1, 1); target += 0.5 * (J - 1) * log(u) - 0.5 * u * dot_self(phi[a] - phi[b]);"
        f" {_Y}",
        (PRIOR, MAYBE_PRIOR, LIKELIHOOD),
    ),
    "neighbours in a loop": Case(
        _FIELD, f"for (n in 1 : N) target += -square(phi[a[n]] - phi[b[n]]); {_Y}",
        (MAYBE_PRIOR, LIKELIHOOD),
    ),
    "neighbours have a density": Case(
        _FIELD, f"phi[a] - phi[b] ~ normal(0, 1); {_Y}", (MAYBE_PRIOR, LIKELIHOOD)
    ),
    "neighbours in a function": Case(
        _FIELD, f"target += icar(phi, a, b); {_Y}", (MAYBE_PRIOR, LIKELIHOOD),
        functions="real icar(vector x, array[] int i, array[] int j)"
        " { return -0.5 * dot_self(x[i] - x[j]); }",
    ),
    "neighbours in a density of its own": Case(
        _FIELD, f"phi ~ icar(a, b); {_Y}", (PRIOR, LIKELIHOOD),
        functions="real icar_lpdf(vector x, array[] int i, array[] int j)"
        " { return -0.5 * dot_self(x[i] - x[j]); }",
    ),
    "neighbours in time": Case(
        _FIELD, f"target += -0.5 * dot_self(phi[2 : J] - phi[1 : (J - 1)]); {_Y}",
        (PRIOR, LIKELIHOOD),
    ),
    "neighbours by a matrix": Case(
        _FIELD, f"target += -0.5 * quad_form(Q, phi); {_Y}", (MAYBE_LIKELIHOOD, LIKELIHOOD)
    ),
    # A parameter's own density
    "a parameter by group": Case(
        f"{_FIELD} real m;", f"m ~ normal(0, 1); phi[g] ~ normal(m, 1); {_Y}",
        (PRIOR, PRIOR, LIKELIHOOD),
    ),
    "a parameter in a loop over data": Case(
        "vector[N] u;", "for (n in 1 : N) u[n] ~ normal(0, 1); y ~ normal(u, 1);",
        (PRIOR, LIKELIHOOD),
    ),
    "a parameter in a loop over groups": Case(
        _FIELD, f"for (j in 1 : J) phi[g[j]] ~ normal(0, 1); {_Y}", (PRIOR, LIKELIHOOD)
    ),
    "a parameter under a condition": Case(
        _FIELD, f"for (j in 1 : J) if (z[j]) phi[j] ~ normal(0, 1); {_Y}", (PRIOR, LIKELIHOOD)
    ),
    "an increment for each parameter": Case(
        _FIELD, f"for (j in 1 : J) target += -square(phi[j]); {_Y}", (PRIOR, LIKELIHOOD)
    ),
    "a mixture for each parameter": Case(
        _FIELD,
        f"for (j in 1 : J) target += log_mix(0.5, normal_lpdf(phi[j] | 0, s[j]), 0); {_Y}",
        (PRIOR, LIKELIHOOD),
    ),
    "a copy by group": Case(
        _FIELD, "phi[g] ~ normal(0, 1); u ~ normal(0, 1); y ~ normal(u, 1);",
        (PRIOR, PRIOR, LIKELIHOOD),
        transformed="vector[N] u = phi[g];",
    ),
    "a Jacobian for each parameter": Case(
        "vector<lower=0>[J] v;",
        "for (j in 1 : J) { log(v[j]) ~ normal(0, 1); target += -log(v[j]); } y ~ normal(v[g], 1);",
        (PRIOR, PRIOR, LIKELIHOOD),
    ),
    "ragged parameters": Case(
        "vector[sum(m) - 1] free;",
        "target += normal_lpdf(all | 0, 3); y ~ normal(all[1], 1);", (PRIOR, LIKELIHOOD),
        transformed="vector[sum(m)] all; all[1 : (sum(m) - 1)] = free; all[sum(m)] = -sum(free);",
        prepared="array[3] int m; for (n in 1 : N) m[w[n]] = z[n];",
    ),
    # By a bound
    "bounds of loops": Case(
        _SHARE,
        "for (i in 1 : k) target += log(t); for (i in 1 : (K - k)) target += log1m(t);",
        (MAYBE_LIKELIHOOD, MAYBE_LIKELIHOOD),
    ),
    "a bound in a local": Case(
        _SHARE, "real l = 0; for (i in 1 : k) l += log(t); target += l;", (MAYBE_LIKELIHOOD,)
    ),
    "a while loop": Case(
        _SHARE, "int i = 0; while (i < k) { i += 1; target += log(t); }", (MAYBE_LIKELIHOOD,)
    ),
    "a loop over data": Case(_SHARE, "for (each in y) target += log(t);", (LIKELIHOOD,)),
    "a size": Case(_SHARE, "target += size(y) * log(t);", (LIKELIHOOD,)),
    "a size of what is filled": Case(
        _SHARE, "target += sum(rep_vector(log(t), k));", (MAYBE_LIKELIHOOD,)
    ),
    "a number that counts": Case(
        _SHARE, "target += k * log(t) + (K - k) * log1m(t);", (LIKELIHOOD,)
    ),
    "a number that is counted": Case(
        _SHARE, "target += c * log(t);", (LIKELIHOOD,),
        prepared="int c = 0; for (n in 1 : N) if (z[n]) c += 1;",
    ),
    "a number that parameters are as many as": Case(
        f"{_FIELD} real<lower=0> v;",
        f"phi ~ normal(0, 1); v ~ exponential(1); target += -J * log(v); {_Y}",
        (PRIOR, PRIOR, MAYBE_LIKELIHOOD, LIKELIHOOD),
    ),
    "cut data": Case(
        "real m;",
        "m ~ normal(0, 1); y ~ normal(m, 1); for (n in 1 : N) target += -normal_lccdf(0 | m, 1);",
        (PRIOR, LIKELIHOOD, MAYBE_LIKELIHOOD),
    ),
    # By a condition
    "a condition": Case(
        _SHARE, "for (n in 1 : N) if (z[n]) target += log(t); else target += log1m(t);",
        (LIKELIHOOD, LIKELIHOOD),
    ),
    "a condition in a local": Case(
        _SHARE,
        "real l = 0; for (n in 1 : N) { if (z[n]) l += log(t); else l += log1m(t); } target += l;",
        (LIKELIHOOD,),
    ),
    "a turn that is left": Case(
        _SHARE, "for (i in 1 : 3) { if (z[i]) continue; target += log(t); }", (LIKELIHOOD,)
    ),
    "a loop that is left": Case(
        _SHARE, "for (i in 1 : 3) { target += log(t); if (z[i]) break; }", (LIKELIHOOD,)
    ),
    "a condition in an expression": Case(
        _SHARE, "for (n in 1 : N) target += z[n] == 1 ? log(t) : log1m(t);", (LIKELIHOOD,)
    ),
    "a condition that says what has a density": Case(
        "real c; real d;",
        "c ~ normal(0, 1); d ~ normal(0, 2); for (n in 1 : N) { real e = c; if (z[n]) e = d;"
        " e ~ normal(0, 1); }",
        (PRIOR, PRIOR, LIKELIHOOD),
    ),
    "a switch": Case(
        "real c;", "if (flag) target += -square(c); else target += -abs(c); y ~ normal(c, 1);",
        (PRIOR, PRIOR, LIKELIHOOD),
    ),
    "a switch in an expression": Case(
        "real c;", "target += flag ? -square(c) : -abs(c); y ~ normal(c, 1);", (PRIOR, LIKELIHOOD)
    ),
    "a switch that is all there is": Case(
        _SHARE, "if (flag) target += log(t); else target += log1m(t);",
        (MAYBE_LIKELIHOOD, MAYBE_LIKELIHOOD),
    ),
    # By a function
    "an index in a function": Case(
        _SHARES, "target += ll(p, w);", (LIKELIHOOD,),
        functions="real ll(vector p, array[] int w)"
        " { real l = 0; for (n in 1 : size(w)) l += log(p[w[n]]); return l; }",
    ),
    "a bound in a function": Case(
        _SHARE, "target += ll(t, k);", (MAYBE_LIKELIHOOD,),
        functions="real ll(real t, int k) { real l = 0; for (i in 1 : k) l += log(t); return l; }",
    ),
    "a condition in a function": Case(
        _SHARE, "for (n in 1 : N) target += ll(t, z[n]);", (LIKELIHOOD,),
        functions="real ll(real t, int z) { if (z) return log(t); return log1m(t); }",
    ),
    "an index in a function that adds": Case(
        _SHARES, "seen_lp(p, w);", (MAYBE_LIKELIHOOD,),
        functions="void seen_lp(vector p, array[] int w)"
        " { for (n in 1 : size(w)) target += log(p[w[n]]); }",
    ),
    "a condition in a function that adds": Case(
        _SHARE, "for (n in 1 : N) seen_lp(t, z[n]);", (LIKELIHOOD,),
        functions="void seen_lp(real t, int z)"
        " { if (z) target += log(t); else target += log1m(t); }",
    ),
    "data behind the bar in a function that adds": Case(
        _FIELD, f"spread_lp(phi, s); {_Y}", (PRIOR, LIKELIHOOD),
        functions="void spread_lp(vector x, vector s) { x ~ normal(0, s); }",
    ),
    "a function that adds and returns": Case(
        "real c;", "real d = twice_lp(c); y ~ normal(d, 1);", (PRIOR, LIKELIHOOD),
        functions="real twice_lp(real c) { c ~ normal(0, 1); return 2 * c; }",
    ),
    "a prior and data in one function": Case(
        "real c;", "both_lp(c, y);", (MAYBE_LIKELIHOOD,),
        functions="void both_lp(real c, vector y) { c ~ normal(0, 1); y ~ normal(c, 1); }",
    ),
    "a function that calls itself": Case(
        _SHARE, "target += ll(t, z);", (LIKELIHOOD,),
        functions="real ll(real t, array[] int z); real ll(real t, array[] int z)"
        " { return size(z) == 0 ? 0 : z[1] * log(t) + ll(t, z[2 : ]); }",
    ),
    "a density of its own that takes data": Case(
        _FIELD, "phi ~ normal(0, 1); phi ~ seen(y);", (PRIOR, MAYBE_LIKELIHOOD),
        functions="real seen_lpdf(vector x, vector y) { return -dot_self(y - mean(x)); }",
    ),
    # Which value a name has
    "one name in two blocks": Case(
        "real c;",
        "{ real l = -square(c); target += l; } { real l = -dot_self(y - c); target += l; }",
        (PRIOR, LIKELIHOOD),
    ),
    "one name used again": Case(
        "real c;", "real l = -square(c); target += l; l = -dot_self(y - c); target += l;",
        (PRIOR, LIKELIHOOD),
    ),
    "one name used again in a loop": Case(
        "real c;",
        "real l = 0; for (n in 1 : N) { target += l * c; l = y[n]; }",
        (LIKELIHOOD,),
    ),
    # Single numbers
    "one observation": Case(
        "real c;", "c ~ normal(0, 1); target += -square(r - c);", (PRIOR, MAYBE_LIKELIHOOD)
    ),
    "one number behind a prior": Case(
        "real c;", "target += -square(c / r); y ~ normal(c, 1);", (PRIOR, LIKELIHOOD)
    ),
    "one observation in a mixture": Case(
        "real c;",
        "c ~ normal(0, 1); target += log_mix(0.3, normal_lpdf(r | c, 1), normal_lpdf(r | -c, 1));",
        (PRIOR, LIKELIHOOD),
    ),
    # Sums
    "a prior and an expression": Case(
        "real c;", "target += normal_lpdf(c | 0, 1) - dot_self(y - c) - 2 * log(2);",
        (PRIOR, LIKELIHOOD),
    ),
    "a cut prior and data": Case(
        "real<lower=r> c;",
        "target += normal_lpdf(c | 0, 1) - normal_lccdf(r | 0, 1) + normal_lpdf(y | c, 1);",
        (PRIOR, LIKELIHOOD),
    ),
}  # fmt: skip


def written(folder: Path, text: str) -> Path:
    path = folder / "program.stan"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", CASES)
def test_what_is_tempered(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    found = temper(written(tmp_path, case.text()), method="joint_tempering").statements
    assert tuple((each.tempered, each.unsure) for each in found) == case.expected, found
    assert all(each.why for each in found)


def test_what_is_unsure_is_asked(tmp_path: Path) -> None:
    """Of the same statement, once taken for the prior and once for the likelihood."""
    text = CASES["neighbours"].text()
    program = temper(written(tmp_path, text), method="joint_tempering")
    line = 1 + text.splitlines().index(f"  {CASES['neighbours'].model}")
    statement = "`target += - 0.5 * dot_self(phi[a] - phi[b]);`"
    asked = (
        f"line {line}: {statement}: data a, b only choose what it adds, as an index, a bound or a "
        "size, and nothing else gives phi a density; it is taken as part of the prior. If it is "
        "part of the likelihood, write `// temper: yes` on its line"
    )
    assert asked in as_table(program).splitlines()
    text = CASES["an index beside a likelihood"].text()
    program = temper(written(tmp_path, text), method="joint_tempering")
    (question,) = [each.question for each in program.statements if each.unsure]
    assert "data N, w only choose" in question
    assert "it is taken as part of the likelihood." in question
    assert "write `// temper: no`" in question


@pytest.mark.parametrize(("word", "tempered"), [("yes", True), ("no", False)])
@pytest.mark.parametrize("name", ["neighbours", "an index"])
def test_a_comment_decides(name: str, word: str, tempered: bool, tmp_path: Path) -> None:
    text = CASES[name].text().replace("; y", f"; // temper: {word}\n  y")
    if name == "an index":
        text = text.replace("for (n in", "y ~ normal(p[1], 1);\n for (n in")
        text = text.replace("log(p[w[n]]);", f"log(p[w[n]]); // temper: {word}")
    found = temper(written(tmp_path, text), method="joint_tempering").statements
    (statement,) = [each for each in found if "[a]" in each.text or "[w[n]]" in each.text]
    assert (statement.tempered, statement.unsure) == (tempered, False)
    assert statement.why == "as a comment says"


def test_a_program_without_data_is_refused(tmp_path: Path) -> None:
    text = "data { real r; } parameters { real c; } model { target += -square(c / r); }"
    with pytest.raises(DataError, match="no statement to temper"):
        temper(written(tmp_path, text), method="joint_tempering")


@pytest.mark.parametrize(
    ("drawn", "model"),
    [
        ("real s = uniform_rng(1, 2);", "c ~ normal(s, 1);"),
        ("real s; s = own_rng(1.0);", "y ~ normal(c, s);"),
        ("real t = uniform_rng(1, 2); real s = t + 1;", "y ~ normal(c, s);"),
        ("int s = 0; if (bernoulli_rng(0.5)) s = 1;", "if (s) c ~ normal(0, 1);"),
        (
            "array[2] real s; for (i in 1:2) { real t = uniform_rng(1, 2); s[i] = t; }",
            "y ~ normal(c, s[1]);",
        ),
    ],
)
def test_data_drawn_at_random_are_refused(drawn: str, model: str, tmp_path: Path) -> None:
    functions = "functions { real own_rng(real x) { return uniform_rng(1, 2) * x; } }"
    text = (
        f"{functions} data {{ real y; }} transformed data {{ real k = 1;\n {drawn} }} "
        f"parameters {{ real c; }} model {{ {model} y ~ normal(c, k); }}"
    )
    with pytest.raises(DataError, match=r"line 2: transformed data .* the density \(s\)"):
        temper(written(tmp_path, text))


def test_data_drawn_for_what_adds_to_no_density_are_not_refused(tmp_path: Path) -> None:
    text = (
        "data { real y; } transformed data { real s = uniform_rng(0, 1); real k = 1; } "
        "parameters { real c; } transformed parameters { real d = c + s; } "
        "model { c ~ normal(0, k); y ~ normal(c, 1); } "
        "generated quantities { real z = c + s; }"
    )
    simulation = temper(written(tmp_path, text), method="prior").simulation
    assert simulation is not None
    assert "uniform_rng" not in simulation.text


@pytest.mark.parametrize(
    ("declared", "asked"),
    [
        ("real<lower=max(y)> c;", True),
        ("real<lower=0, upper=least> c;", True),
        ("vector<lower=y[1]>[2] c;", True),
        ("real<lower=L> c;", False),
        ("vector<lower=w>[2] c;", False),
        ("real<offset=mean(y), multiplier=2> c;", False),
    ],
)
def test_bounds_that_data_of_the_likelihood_give_are_asked_about(
    declared: str, asked: bool, tmp_path: Path
) -> None:
    text = (
        "data { vector[2] y; vector[2] w; real L; } "
        "transformed data { real least = min(y); } "
        f"parameters {{ {declared} }} model {{ c ~ normal(0, 1); y ~ normal(c, 1); }}"
    )
    questions = temper(written(tmp_path, text)).questions
    assert len(questions) == asked
    if asked:
        assert "the bounds of c depend on data that have a likelihood (y)" in questions[0]
    assert temper(written(tmp_path, text), what="all").questions == ()


CHOSEN = 60


@pytest.mark.parametrize("chunk", range(6))
def test_data_that_only_choose_are_tempered(chunk: int, tmp_path: Path) -> None:
    """Random programs whose data reach the density by an index, a bound or a condition alone."""
    for seed in range(chunk, CHOSEN, 6):
        program = chosen_program(seed)
        path = written(tmp_path, program.text)
        try:
            check_chosen(program.reference, path, program.data, seed)
        except Exception as error:
            error.add_note(f"seed {seed}:\n{program.text}")
            raise


def check_chosen(reference: str, path: Path, data: Mapping[str, Any], seed: int) -> None:
    lines = {n for n, row in enumerate(reference.splitlines(), 1) if "with_likelihood)" in row}
    found = temper(path, method="prior").statements
    assert {each.line for each in found if each.tempered} == {n - 1 for n in lines}
    made = path.with_name("reference.stan")
    made.write_text(reference, encoding="utf-8")
    exact = [StanDensity(StanProgram(made), {**data, "with_likelihood": each}) for each in (0, 1)]
    said = prior_and_target(path, data)
    for point in np.random.default_rng(seed).uniform(-1, 1, (3, said[0].dimension)):
        values = [each.value(point) for each in exact]
        np.testing.assert_allclose([each.value(point) for each in said], values, rtol=1e-10)
        assert abs(values[1] - values[0]) > 1e-9
