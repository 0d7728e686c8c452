"""Random small Stan programs whose split into prior and likelihood is known by construction.

Each statement is drawn together with its form that keeps all constants, and with the part of the
model that it belongs to; so the reference program is written beside the program itself, not
made from it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

_NAMES = (
    "mu", "beta", "delta", "inv_temp", "log_weight", "theta", "sigma", "log_gamma", "log_base",
    "free_inv_temp", "log_q", "pi_knot", "base_mean", "g", "log_lik", "lp", "rho", "B", "before",
)  # fmt: skip
"""Names of parameters, some of them as a program that tempers might use for its own."""

_FUNCTIONS = """functions {
  real laplace_lpdf(vector v, real m, real s) {
    return -sum(abs(v - m)) / s - num_elements(v) * log(2 * s);
  }
  real wide_lpdf(real v, real s) {
    return normal_lupdf(v | 0, s);
  }
  real zeros_lpmf(int v, real p, real r) {
    if (v == 0) {
      return log_mix(p, 0, poisson_lpmf(0 | r));
    }
    return log1m(p) + poisson_lpmf(v | r);
  }
  void observe_lp(vector v, real m, real s) {
    v ~ normal(m, s);
  }
  real scaled_lp(real raw, real s) {
    raw ~ normal(0, s);
    return raw / s;
  }
}
"""

_REFERENCE_FUNCTIONS = (
    _FUNCTIONS.replace("normal_lupdf", "normal_lpdf")
    .replace("v ~ normal(m, s);", "target += normal_lpdf(v | m, s);")
    .replace("raw ~ normal(0, s);", "target += normal_lpdf(raw | 0, s);")
)

_DATA = """  int<lower=1> N;
  vector[N] y;
  vector[N] x;
  array[N] int<lower=0> k;
  array[N] int<lower=0, upper=1> b;
  array[N] real t;
  real<lower=0> scale;
  int<lower=0, upper=1> flag;
"""

_TRANSFORMED_DATA = """transformed data {
  vector[N] z = (y - mean(y)) / sd(y);
  real rate = inv(scale);
  array[N] int both;
  for (n in 1 : N) {
    both[n] = k[n] + b[n];
  }
}
"""


@dataclass(frozen=True)
class Piece:
    """A statement: as in the program, and with all its constants."""

    text: str
    reference: str
    likelihood: bool


@dataclass
class Parameter:
    """A parameter, and scalar expressions of it."""

    name: str
    declaration: str
    reals: list[str]
    prior: list[tuple[str, str]]
    """Forms of its prior: the statement, and the same with its constants."""
    size: int = 1
    """Number of its unconstrained values."""


@dataclass(frozen=True)
class FuzzProgram:
    """A random program."""

    text: str
    reference: str
    """With an integer ``with_likelihood`` more in its data."""
    data: dict[str, Any]
    parameters: dict[str, int]
    """Names, and how many unconstrained values each has."""


def _density(left: str, name: str, arguments: str) -> list[tuple[str, str]]:
    """Ways to write that something has a density."""
    kept = f"target += {name}_lpdf({left} | {arguments});"
    return [
        (f"{left} ~ {name}({arguments});", kept),
        (kept, kept),
        (f"target += {name}_lupdf({left} | {arguments});", kept),
    ]


def _each(name: str, count: int, dist: str, arguments: str) -> tuple[str, str]:
    head = f"for (i in 1 : {count}) {{"
    return (
        f"{head} {name}[i] ~ {dist}({arguments}); }}",
        f"{head} target += {dist}_lpdf({name}[i] | {arguments}); }}",
    )


def _real(name: str, others: Sequence[Parameter]) -> Parameter:
    prior = _density(name, "normal", "0, 2") + _density(name, "student_t", "4, 0, scale")
    square = f"target += -0.5 * square({name} / 2) - log(2);"
    prior += [
        (square, square),
        (f"{name} ~ wide(1.5);", f"target += wide_lpdf({name} | 1.5);"),
        (f"{{ real w = scaled_lp({name}, 1.5); w ~ normal(0, 3); }}",
         f"{{ real w = scaled_lp({name}, 1.5); target += normal_lpdf(w | 0, 3); }}"),
    ]  # fmt: skip
    return Parameter(name, f"real {name};", [name, f"tanh({name})"], prior)


def _positive(name: str, others: Sequence[Parameter]) -> Parameter:
    half = f"target += normal_lpdf({name} | 0, 2) - normal_lccdf(0 | 0, 2);"
    prior = _density(name, "gamma", "2, rate") + _density(name, "lognormal", "0, 1")
    prior += [(f"{name} ~ normal(0, 2) T[0, ];", half), (half, half)]
    return Parameter(name, f"real<lower=0> {name};", [f"log({name})", name], prior)


def _unit(name: str, others: Sequence[Parameter]) -> Parameter:
    prior = _density(name, "beta", "2, 3")
    prior.append(("", ""))  # uniform by its bounds
    return Parameter(name, f"real<lower=0, upper=1> {name};", [name, f"logit({name})"], prior)


def _vector(name: str, others: Sequence[Parameter]) -> Parameter:
    prior = [*_density(name, "normal", "0, 1.5"), _each(name, 3, "cauchy", "0, 1")]
    square = f"target += -0.5 * dot_self({name});"
    prior += [(f"{name} ~ laplace(0, 1.2);", f"target += laplace_lpdf({name} | 0, 1.2);")]
    prior += [(square, square)]
    return Parameter(name, f"vector[3] {name};", [f"{name}[2]", f"mean({name})"], prior, 3)


def _positive_vector(name: str, others: Sequence[Parameter]) -> Parameter:
    prior = [*_density(name, "exponential", "rate"), _each(name, 2, "inv_gamma", "3, 2")]
    return Parameter(name, f"vector<lower=0>[2] {name};", [f"log({name}[1])"], prior, 2)


def _simplex(name: str, others: Sequence[Parameter]) -> Parameter:
    prior = [*_density(name, "dirichlet", "[2, 1.5, 3]'"), ("", "")]
    return Parameter(name, f"simplex[3] {name};", [f"{name}[1]", f"log({name}[3])"], prior, 2)


def _ordered(name: str, others: Sequence[Parameter]) -> Parameter:
    prior = [*_density(name, "normal", "0, 2"), _each(name, 2, "normal", "i, 2")]
    return Parameter(
        name, f"ordered[2] {name};", [f"{name}[2] - {name}[1]", f"{name}[1]"], prior, 2
    )


def _array(name: str, others: Sequence[Parameter]) -> Parameter:
    prior = [*_density(name, "normal", "0.5, 2"), _each(name, 2, "logistic", "0, i")]
    return Parameter(name, f"array[2] real {name};", [f"{name}[1]", f"sum({name})"], prior, 2)


def _matrix(name: str, others: Sequence[Parameter]) -> Parameter:
    prior = _density(f"to_vector({name})", "normal", "0, 1")
    rows = f"for (i in 1 : 2) {{ target += normal_lpdf({name}[i] | 0, 2); }}"
    prior.append((rows, rows))
    return Parameter(name, f"matrix[2, 3] {name};", [f"{name}[2, 3]", f"mean({name})"], prior, 6)


def _cholesky(name: str, others: Sequence[Parameter]) -> Parameter:
    prior = _density(name, "lkj_corr_cholesky", "2")
    return Parameter(name, f"cholesky_factor_corr[2] {name};", [f"{name}[2, 1]"], prior)


def _effects(name: str, others: Sequence[Parameter]) -> Parameter:
    prior = _density(name, "normal", "0, 1")
    return Parameter(name, f"sum_to_zero_vector[4] {name};", [f"{name}[4]"], prior, 3)


def _above(name: str, others: Sequence[Parameter]) -> Parameter:
    bound = others[0].reals[0] if others else "scale"
    prior = [*_density(name, "normal", "0, 3"), *_density(name, "cauchy", "0, scale")]
    return Parameter(name, f"real<lower={bound}> {name};", [name], prior)


def _scaled(name: str, others: Sequence[Parameter]) -> Parameter:
    prior = _density(name, "normal", "1, 2")
    text = f"vector<offset=1, multiplier=scale>[2] {name};"
    return Parameter(name, text, [f"{name}[1]", f"{name}[1] * {name}[2]"], prior, 2)


def _vectors(name: str, others: Sequence[Parameter]) -> Parameter:
    head = "for (i in 1 : 2) { for (j in 1 : 3) {"
    prior = [
        (f"{head} {name}[i, j] ~ normal(0, j); }} }}",
         f"{head} target += normal_lpdf({name}[i, j] | 0, j); }} }}"),
    ]  # fmt: skip
    return Parameter(name, f"array[2, 3] vector[2] {name};", [f"{name}[2, 1][2]"], prior, 12)


_KINDS: tuple[Callable[[str, Sequence[Parameter]], Parameter], ...] = (
    _real, _real, _positive, _unit, _vector, _positive_vector, _simplex, _ordered, _array, _matrix,
    _cholesky, _effects, _above, _scaled, _vectors,
)  # fmt: skip


def _likelihoods(real: str, positive: str, unit: str) -> list[tuple[str, str]]:
    """Return statements that give data a density, given expressions of parameters."""
    some = [
        *_density("y", "normal", f"{real} + x, {positive}"),
        *_density("z", "student_t", f"5, {real}, {positive}"),
        *_density("y[2 : N]", "normal", f"{real} * y[1 : (N - 1)], {positive}"),
        *_density("t", "exponential", positive),
        (f"k ~ poisson_log({real} + 0.1 * x);",
         f"target += poisson_log_lpmf(k | {real} + 0.1 * x);"),
        (f"both ~ neg_binomial_2({positive}, 3);",
         f"target += neg_binomial_2_lpmf(both | {positive}, 3);"),
        (f"target += bernoulli_lupmf(b | {unit});", f"target += bernoulli_lpmf(b | {unit});"),
        (f"y ~ laplace({real}, {positive});", f"target += laplace_lpdf(y | {real}, {positive});"),
        (f"observe_lp(y, {real}, {positive});",
         f"target += normal_lpdf(y | {real}, {positive});"),
        (f"for (n in 1 : N) {{ k[n] ~ zeros({unit}, {positive}); }}",
         f"for (n in 1 : N) {{ target += zeros_lpmf(k[n] | {unit}, {positive}); }}"),
        (f"for (n in 1 : N) {{ t[n] ~ gamma(2, {positive}) T[0.01, 50]; }}",
         f"for (n in 1 : N) {{ target += gamma_lpdf(t[n] | 2, {positive}) - log_diff_exp("
         f"gamma_lcdf(50 | 2, {positive}), gamma_lcdf(0.01 | 2, {positive})); }}"),
        ("for (n in 1 : N) { real m = " + real + "; if (b[n]) { m += x[n]; y[n] ~ normal(m, 1); } "
         f"else {{ y[n] ~ cauchy(m, {positive}); }} }}",
         "for (n in 1 : N) { real m = " + real + "; if (b[n]) { m += x[n]; "
         "target += normal_lpdf(y[n] | m, 1); } "
         f"else {{ target += cauchy_lpdf(y[n] | m, {positive}); }} }}"),
        (f"{{ int at = 0; while (at < N) {{ at += 1; if (k[at] > 4) {{ continue; }} "
         f"y[at] ~ normal({real}, 2); }} }}",
         f"{{ int at = 0; while (at < N) {{ at += 1; if (k[at] > 4) {{ continue; }} "
         f"target += normal_lpdf(y[at] | {real}, 2); }} }}"),
        (f"for (v in t) {{ v ~ lognormal({real}, 1); }}",
         f"for (v in t) {{ target += lognormal_lpdf(v | {real}, 1); }}"),
        (f"0 ~ bernoulli({unit});", f"target += bernoulli_lpmf(0 | {unit});"),
    ]  # fmt: skip
    alike = (
        f"target += exponential_lccdf(t | {positive});",
        f"target += -0.5 * dot_self((y - {real}) / {positive}) - N * log({positive});",
        f"for (n in 1 : N) {{ target += log_mix({unit}, normal_lpdf(y[n] | {real}, 1), "
        f"normal_lpdf(y[n] | 1, {positive})); }}",
        f"{{ real total = 0; for (n in 1 : N) {{ total += normal_lpdf(z[n] | {real}, 2); }} "
        "target += total; }",
        f"{{ vector[2] lps = [log({unit}), log1m({unit})]'; "
        f"for (n in 1 : N) {{ lps[1] += poisson_lpmf(k[n] | 1); "
        f"lps[2] += poisson_lpmf(k[n] | {positive}); }} target += log_sum_exp(lps); }}",
        f"{{ vector[N] m = {real} + x; vector[N] r = y - m; target += std_normal_lpdf(r); }}",
    )
    return some + [(each, each) for each in alike]


@dataclass
class _Draw:
    rng: np.random.Generator
    parameters: list[Parameter] = field(default_factory=list)

    def one(self, options: Sequence[Any]) -> Any:
        return options[int(self.rng.integers(len(options)))]

    def real(self) -> str:
        return str(self.one([each for p in self.parameters for each in p.reals]))

    def wrapped(self, piece: Piece) -> Piece:
        """Put a statement into a block, a conditional, a profile, or nothing."""
        before, after = self.one(
            [("", ""), ("", ""), ("{ ", " }"), ("if (flag) { ", " }"),
             ('profile("part") { ', " }"),
             ("if (1 - flag) { print(scale); } else { ", " }"),
             ("for (again in 1 : 2) { ", " }")]
        )  # fmt: skip
        if not piece.text:
            return piece
        return Piece(
            before + piece.text + after, before + piece.reference + after, piece.likelihood
        )


def _piece(forms: tuple[str, str], *, likelihood: bool) -> Piece:
    return Piece(forms[0], forms[1], likelihood)


def fuzz_program(seed: int) -> FuzzProgram:
    """Return the random program of a seed."""
    rng = np.random.default_rng([4, seed])
    draw = _Draw(rng)
    names = list(rng.permutation(_NAMES)[: rng.integers(1, 5)])
    for name in names:
        kind = draw.one(_KINDS)
        draw.parameters.append(kind(str(name), draw.parameters))
    pieces = [draw.wrapped(_piece(draw.one(p.prior), likelihood=False)) for p in draw.parameters]
    local = "middle" if rng.random() < 0.4 else None
    transformed = "bend" if rng.random() < 0.4 else None
    declared = "" if local is None else f"  real {local} = {draw.real()};\n"
    block = ""
    if transformed is not None:
        block = f"transformed parameters {{\n  real {transformed} = 0.5 * {draw.real()};\n}}\n"
    extra = [each for each in (local, transformed) if each]
    for _ in range(rng.integers(1, 4)):
        real = draw.one([draw.real(), draw.real(), *extra])
        positive = f"(0.5 + exp(tanh({draw.one([draw.real(), *extra])})))"
        unit = f"inv_logit({draw.real()})"
        found = draw.one(_likelihoods(real, positive, unit))
        pieces.append(draw.wrapped(_piece(found, likelihood=True)))
    order = rng.permutation(len(pieces))
    text, reference = "", ""
    for each in order:
        piece = pieces[each]
        text += f"  {piece.text}\n" if piece.text else ""
        kept = piece.reference
        reference += f"  if (with_likelihood) {{ {kept} }}\n" if piece.likelihood else f"  {kept}\n"
    parameters = "".join(f"  {p.declaration}\n" for p in draw.parameters)
    middle = f"{_TRANSFORMED_DATA}parameters {{\n{parameters}}}\n{block}model {{\n{declared}"
    switched = f"{_DATA}  int with_likelihood;\n"
    return FuzzProgram(
        f"{_FUNCTIONS}data {{\n{_DATA}}}\n{middle}{text}}}\n",
        f"{_REFERENCE_FUNCTIONS}data {{\n{switched}}}\n{middle}{reference}}}\n",
        _data(rng),
        {p.name: p.size for p in draw.parameters},
    )


def _data(rng: np.random.Generator) -> dict[str, Any]:
    count = 5
    return {
        "N": count,
        "y": rng.normal(0.5, 1, count),
        "x": rng.normal(size=count),
        "k": rng.poisson(2, count),
        "b": rng.integers(0, 2, count),
        "t": rng.gamma(2, 1, count) + 0.1,
        "scale": 1.3,
        "flag": 1,
    }


# Programs whose data reach the density by an index, a bound or a condition alone


@dataclass(frozen=True)
class Chosen:
    """A program, its reference with one line more in its data, and its data."""

    text: str
    reference: str
    data: dict[str, Any]


_CHOSEN_FUNCTIONS = """functions {
  real chosen(vector v, array[] int at) {
    real total = 0;
    for (n in 1 : size(at)) { total += v[at[n]]; }
    return total;
  }
  real repeated(real x, int times) {
    real total = 0;
    for (n in 1 : times) { total += x; }
    return total;
  }
  real decided(real yes, real no, int z) {
    if (z == 1) { return yes; }
    return no;
  }
  void chosen_lp(vector v, array[] int at) {
    for (n in 1 : size(at)) { target += v[at[n]]; }
  }
}
"""

_CHOSEN_DATA = """  int<lower=1> N;
  array[N] int<lower=1, upper=3> w;
  array[N] int<lower=0, upper=1> z;
  array[2] int<lower=1, upper=3> ends;
  int<lower=1> times;
"""

_CHOSEN_PREPARED = """transformed data {
  array[N] int back = reverse(w);
  int ones = sum(z);
}
"""

# A vector of three, whose entries may be anything, and how it is declared and distributed.
_VECTORS = (
    ("simplex[3] {};", "{} ~ dirichlet([1.5, 2, 3]');", "log({})"),
    ("simplex[3] {};", "", "log({})"),
    ("vector[3] {};", "{} ~ normal(0, 1.5);", "log_softmax({})"),
    ("vector[3] {};", "for (i in 1 : 3) {{ {}[i] ~ cauchy(0, i); }}", "{}"),
    ("array[3] real {};", "{} ~ student_t(4, 0, 1);", "log_inv_logit(to_vector({}))"),
    ("ordered[3] {};", "{} ~ normal(0, 2);", "log_softmax({})"),
    ("vector<lower=0, upper=1>[3] {};", "", "log({})"),
)


def _ways(vector: str) -> list[str]:
    """Statements in which data choose among a vector's entries, or how often one is added."""
    return [
        f"for (n in 1 : N) {{ target += ({vector})[w[n]]; }}",
        f"target += sum(({vector})[w]);",
        f"for (n in 1 : N) {{ target += ({vector})[back[n]]; }}",
        f"{{ vector[3] lp = {vector}; for (n in 1 : N) {{ target += lp[w[n]]; }} }}",
        f"{{ real lp = 0; for (n in 1 : N) {{ lp += ({vector})[w[n]]; }} target += lp; }}",
        f"{{ vector[3] lp = {vector}; for (n in w) {{ target += lp[n]; }} }}",
        f"target += sum(({vector})[min(ends) : max(ends)]);",
        f"for (i in min(ends) : max(ends)) {{ target += ({vector})[i]; }}",
        f"for (i in 1 : times) {{ target += ({vector})[2]; }}",
        f"for (i in 1 : ones) {{ target += ({vector})[1]; }}",
        f"{{ int i = 0; while (i < times) {{ i += 1; target += ({vector})[3]; }} }}",
        f"for (n in 1 : N) {{ if (z[n]) {{ target += ({vector})[1]; }} }}",
        f"for (n in 1 : N) {{ int at = 1; if (z[n]) {{ at = 3; }} target += ({vector})[at]; }}",
        f"for (n in 1 : N) {{ if (z[n] == 0) {{ continue; }} target += ({vector})[2]; }}",
        f"for (n in 1 : N) {{ target += z[n] ? ({vector})[1] : ({vector})[2]; }}",
        f"{{ real lp = 0; for (n in 1 : N) {{ if (w[n] > 1) {{ lp += ({vector})[1]; }} else {{ "
        f"lp -= ({vector})[2]; }} }} target += lp; }}",
        f"{{ vector[3] lp = {vector}; vector[N] each; for (n in 1 : N) {{ each[n] = lp[w[n]]; }} "
        "target += log_sum_exp(each); }",
        f"target += chosen({vector}, w);",
        f"target += repeated(({vector})[2], times);",
        f"for (n in 1 : N) {{ target += decided(({vector})[1], ({vector})[3], z[n]); }}",
        f"chosen_lp({vector}, w);",
        f"target += size(w) * ({vector})[1];",
        f"target += sum(rep_vector(({vector})[1], times));",
    ]


def chosen_program(seed: int) -> Chosen:
    """Return a random program of this kind."""
    rng = np.random.default_rng([7, seed])
    draw = _Draw(rng)
    names = [str(each) for each in rng.permutation(_NAMES)[: rng.integers(1, 3)]]
    declared, prior, likelihood = "", [], []
    for name in names:
        declaration, statement, values = draw.one(_VECTORS)
        declared += f"  {declaration.format(name)}\n"
        prior.append(statement.format(name))
        for _ in range(rng.integers(1, 3)):
            likelihood.append(draw.one(_ways(values.format(name))))
    rows = [(each, False) for each in prior if each] + [(each, True) for each in likelihood]
    order = rng.permutation(len(rows))
    text = "".join(f"  {rows[i][0]}\n" for i in order)
    reference = "".join(
        f"  if (with_likelihood) {{ {rows[i][0]} }}\n" if rows[i][1] else f"  {_kept(rows[i][0])}\n"
        for i in order
    )
    middle = f"{_CHOSEN_PREPARED}parameters {{\n{declared}}}\nmodel {{\n"
    count = int(rng.integers(4, 8))
    z = rng.integers(0, 2, count)
    z[:2] = 0, 1
    return Chosen(
        f"{_CHOSEN_FUNCTIONS}data {{\n{_CHOSEN_DATA}}}\n{middle}{text}}}\n",
        f"{_CHOSEN_FUNCTIONS}data {{\n{_CHOSEN_DATA}  int with_likelihood;\n}}\n"
        f"{middle}{reference}}}\n",
        {
            "N": count,
            "w": rng.integers(1, 4, count),
            "z": z,
            "ends": rng.integers(1, 4, 2),
            "times": int(rng.integers(1, 5)),
        },
    )


def _kept(statement: str) -> str:
    """A prior's statement with its constants."""
    left, bar, right = statement.rpartition(" ~ ")
    if not bar:
        return statement
    head, brace, variate = left.rpartition("{ ")
    name, _, arguments = right.partition("(")
    return f"{head}{brace}target += {name}_lpdf({variate} | {arguments}"
