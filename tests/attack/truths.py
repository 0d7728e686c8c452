"""Random programs with several modes are sampled rightly, or with a word that they may not be.

A program is made of blocks that are independent of each other, with one or two parameters each, in
statements as users write them.  The first block has several modes, most of the time; the others
make the program larger.  A block by itself is integrated on a grid, so the program's log Z is a
sum, and the probability of an event in the first block is known.  No program is in a test because
it once came out wrong: what is found here gets a test of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from scipy.special import logsumexp

from harness.arrays import FloatArray
from harness.diagnosis import Severity
from harness.engine.batched import BatchedDensity
from harness.engine.program import StanProgram
from harness.user import UserFit, sample

T = TypeVar("T")
Event = Callable[[Any], Any]
"""A number, of values or draws by parameter."""
_SCALES = (1.0, 1.0, 3.0, 0.3, 20.0, 1000.0)
"""Units in which parameters may be measured."""
_POINTS = {1: 200_001, 2: 801}
"""Odd numbers of points of a grid in each direction, by dimension."""
_REACH = {False: 7.0, True: 14.0}
"""How far a grid reaches, by whether tails are heavy: sinh(7) is 548, sinh(14) is 600,000."""
_AGREE = 1e-3
"""Nats within which a grid and every second point of it must agree."""
_BUDGET = 20.0
_ERRORS, _LEAST = 5.0, 0.03
"""How far off counts as wrong: standard errors, and nats or probability."""
_ASKED = "Something may belong to the prior or to the likelihood"


def wrong_in_silence(seed: int, folder: Path) -> str | None:
    """Sample a random program by ``auto``; say what is wrong and not reported as a problem.

    Log Z may also be that of another question which the diagnosis asks: whether a statement belongs
    to the prior.
    """
    truth = random_truth(seed, folder)
    program = folder / "program.stan"
    program.write_text(truth.text, encoding="utf-8")
    result = sample(
        *(program, truth.data),
        engine="stanli",
        seed=seed + 1,
        budget=_BUDGET,
        progress=False,
    )
    if any(each.severity == Severity.PROBLEM for each in result.diagnosis):
        return None
    off = _off(truth, result)
    if not off:
        return None
    told = "\n".join(f"{each.severity.name} {each.sentence}" for each in result.diagnosis)
    return f"by {result.method}, {', '.join(off)} off\n{told}\n{truth.text}\n{truth.data}"


def _off(truth: Truth, result: UserFit) -> list[str]:
    above = result.fit.expectation(lambda draws: truth.event(draws) > truth.threshold)
    pairs = [("the probability", float(above.value) - truth.probability, float(above.mcse))]
    asked = any(each.sentence.startswith(_ASKED) for each in result.diagnosis)
    if result.log_evidence is not None and not asked:
        off = result.log_evidence.value - truth.log_evidence
        pairs.append(("log Z", off, result.log_evidence.mcse))
    return [
        f"{name} is {off:+.3f} ± {error:.3f}"
        for name, off, error in pairs
        if abs(off) > max(_ERRORS * error, _LEAST)
    ]


@dataclass(frozen=True)
class Block:
    """A part of a program that is independent of the rest.

    Attributes
    ----------
    parameters
        Declarations of the parameters.
    prior, likelihood
        Statements, each as in the program and with all its constants.
    data, declared
        Values of the data, and their declarations.
    event
        A number whose posterior may have several modes, of values (n, ...) by parameter.
    heavy
        Whether the prior has heavy tails on the unconstrained scale.
    scale
        About how wide the posterior is on the unconstrained scale.
    """

    parameters: tuple[str, ...]
    prior: tuple[tuple[str, str], ...]
    likelihood: tuple[tuple[str, str], ...]
    data: dict[str, Any]
    declared: tuple[str, ...]
    event: Event
    heavy: bool = False
    scale: float = 1.0


class Unsuitable(Exception):
    """The grid does not resolve a block."""


@dataclass
class _Maker:
    """Draws statements of one block, whose names end with a number of their own."""

    rng: np.random.Generator
    number: int
    data: dict[str, Any] = field(default_factory=dict)
    declared: list[str] = field(default_factory=list)

    def name(self, stem: str) -> str:
        return f"{stem}{self.number}"

    def one(self, options: Sequence[T]) -> T:
        return options[int(self.rng.integers(len(options)))]

    def given(self, stem: str, kind: str, value: Any) -> str:
        """Declare data, and return their name."""
        name = self.name(stem)
        self.data[name] = value
        self.declared.append(kind.replace("?", name))
        return name

    def dense(self, left: str, dist: str, arguments: str, kind: str = "lpdf") -> tuple[str, str]:
        kept = f"target += {dist}_{kind}({left} | {arguments});"
        return self.one([(f"{left} ~ {dist}({arguments});", kept), (kept, kept)])

    def alike(self, text: str) -> tuple[str, str]:
        return text, text

    def observed(self, mean: str, sd: float, values: FloatArray) -> tuple[tuple[str, str], ...]:
        """Observations around a mean, in one of the ways in which users write them."""
        mean = f"({mean})"
        y = self.given("y", f"vector[{len(values)}] ?;", values.tolist())
        s = self.given("s", "real<lower=0> ?;", float(sd))
        n = len(values)
        kept = f"target += normal_lpdf({y} | {mean}, {s});"
        loop = f"for (n in 1 : {n}) {{"
        local = self.name("m")
        return (
            self.one(
                [
                    (f"{y} ~ normal({mean}, {s});", kept),
                    (kept, kept),
                    (f"{loop} {y}[n] ~ normal({mean}, {s}); }}", kept),
                    (f"{{ real {local} = {mean}; {y} ~ normal({local}, {s}); }}", kept),
                    (f"{{ vector[{n}] r = ({y} - {mean}) / {s}; target += "
                     f"std_normal_lpdf(r) - {n} * log({s}); }}", kept),
                    (f"target += -0.5 * dot_self(({y} - {mean}) / {s}) - {n} * log({s} * "
                     "sqrt(2 * pi()));", kept),
                    (f"observe_lp({y}, {mean}, {s});", kept),
                    (f"for (v in {y}) {{ target += normal_lpdf(v | {mean}, {s}); }}", kept),
                ]
            ),
        )  # fmt: skip

    def block(self, parameters: Any, prior: Any, likelihood: Any, event: Any, **more: Any) -> Block:
        return Block(
            tuple(parameters),
            tuple(prior),
            tuple(likelihood),
            self.data,
            tuple(self.declared),
            event,
            **more,
        )

    def around(self, centre: float, sd: float) -> FloatArray:
        return centre + sd * self.rng.standard_normal(int(self.rng.integers(1, 5)))


def _wide(make: _Maker, name: str, unit: float) -> tuple[tuple[str, str], bool]:
    """A prior of a real number with a width of about two units, and whether its tails are heavy."""
    two = f"{2 * unit:g}"
    return make.one(
        [
            (make.dense(name, "normal", f"0, {two}"), False),
            (make.dense(name, "normal", f"{0.4 * unit:g}, {two}"), False),
            (make.dense(name, "student_t", f"4, 0, {two}"), True),
            (make.dense(name, "cauchy", f"0, {unit:g}"), True),
            (make.dense(name, "double_exponential", f"0, {two}"), False),
            (make.dense(name, "logistic", f"0, {unit:g}"), False),
            (make.alike(f"target += -0.5 * square({name} / {two});"), False),
        ]
    )


def _fold(make: _Maker) -> Block:
    """A number of which only a function with two or more solutions is observed."""
    a, unit = make.name("a"), make.one(_SCALES)
    prior, heavy = _wide(make, a, unit)
    z = f"({a} / {unit:g})"
    mean, at = make.one(
        [
            (f"square({z})", make.rng.uniform(2, 9)),
            (f"abs({z})", make.rng.uniform(1, 4)),
            (f"{z} * ({z} - 1)", make.rng.uniform(2, 6)),
            (f"{z} ^ 3 - 4 * {z}", make.rng.uniform(-1.5, 1.5)),
            (f"cos(2 * {z})", make.rng.uniform(-0.7, 0.7)),
            (f"fmax({z}, -0.6 * {z})", make.rng.uniform(1, 3)),
        ]
    )
    sd = 10 ** make.rng.uniform(-1.5, -0.3)
    seen = make.observed(mean, sd, make.around(at, sd))
    return make.block(
        [f"real {a};"], [prior], seen, lambda values: values[a], heavy=heavy, scale=unit
    )


def _product(make: _Maker) -> Block:
    """Two numbers of which the product is observed, and the sum badly."""
    a, b = make.name("a"), make.name("b")
    first, second = make.dense(a, "normal", "0, 2"), make.dense(b, "normal", "0, 2")
    sd = 10 ** make.rng.uniform(-0.8, 0)
    at = make.rng.uniform(1, 4) * make.one([-1, 1])
    seen = make.observed(f"{a} * {b}", sd, make.around(at, sd))
    t = make.given("t", "real ?;", float(make.rng.normal(0, 1)))
    more = make.dense(t, "normal", f"{a} + {b}, 3")
    return make.block(
        [f"real {a};", f"real {b};"], [first, second], [*seen, more], lambda values: values[a]
    )


def _labels(make: _Maker) -> Block:
    """Two means of a mixture whose labels may be exchanged, with or without equal priors."""
    mu = make.name("mu")
    shape, prior = make.one(
        [
            (f"vector[2] {mu};", make.dense(mu, "normal", "0, 3")),
            (f"array[2] real {mu};", make.dense(mu, "normal", "{-0.5, 0.5}, 3")),
            (f"vector[2] {mu};", make.alike(f"target += -0.5 * dot_self({mu} / 3);")),
            (f"array[2] real {mu};",
             (f"for (k in 1 : 2) {{ {mu}[k] ~ student_t(5, 0, 2); }}",
              f"for (k in 1 : 2) {{ target += student_t_lpdf({mu}[k] | 5, 0, 2); }}")),
        ]
    )  # fmt: skip
    gap = make.rng.uniform(1.5, 4)
    count = int(make.rng.integers(5, 14))
    y = make.rng.standard_normal(count) * 0.7 + np.where(np.arange(count) % 3, gap, -gap)
    name, n = make.given("y", f"vector[{count}] ?;", y.tolist()), count
    w = make.one(["0.5", "0.3", "1.0 / 3"])
    head = f"for (n in 1 : {n}) {{"
    kept = (
        f"{head} target += log_mix({w}, normal_lpdf({name}[n] | {mu}[1], 0.7), "
        f"normal_lpdf({name}[n] | {mu}[2], 0.7)); }}"
    )
    local = (
        f"{head} vector[2] lp = [log({w}), log1m({w})]'; for (k in 1 : 2) {{ "
        f"lp[k] += normal_lpdf({name}[n] | {mu}[k], 0.7); }} target += log_sum_exp(lp); }}"
    )
    seen = make.one([(kept, kept), (local, kept)])
    return make.block(
        [shape], [prior], [seen], lambda values: values[mu][..., 0] - values[mu][..., 1]
    )


def _conflict(make: _Maker) -> Block:
    """A location between data that contradict each other, under heavy tails."""
    m, unit = make.name("m"), make.one(_SCALES)
    prior, heavy = _wide(make, m, 3 * unit)
    y = np.concatenate([make.around(-2.5, 0.3), make.around(make.rng.uniform(1.5, 4), 0.3)])
    name = make.given("y", f"vector[{len(y)}] ?;", (unit * y).tolist())
    s = f"{unit * 10 ** make.rng.uniform(-1.2, -0.3):.4g}"
    seen = make.one(
        [
            make.dense(name, "cauchy", f"{m}, {s}"),
            make.dense(name, "student_t", f"3, {m}, {s}"),
            (f"for (v in {name}) {{ v ~ student_t(2, {m}, {s}); }}",
             f"target += student_t_lpdf({name} | 2, {m}, {s});"),
        ]
    )  # fmt: skip
    return make.block(
        [f"real {m};"], [prior], [seen], lambda values: values[m], heavy=heavy, scale=unit
    )


def _wave(make: _Maker) -> Block:
    """A phase or frequency in an interval, with a uniform prior that its bounds imply."""
    f = make.name("f")
    upper = make.rng.uniform(4, 12)
    given = make.given("top", "real<lower=0> ?;", float(upper))
    bounds, prior = make.one(
        [
            (f"<lower=0, upper={upper:.6f}>", []),
            (f"<lower=0, upper={given}>", [make.dense(f, "uniform", f"0, {given}")]),
            (f"<lower=0, upper={given}>", []),
        ]
    )
    sd = 10 ** make.rng.uniform(-1, -0.2)
    seen = make.observed(f"sin({f})", sd, make.around(make.rng.uniform(-0.8, 0.8), sd))
    return make.block([f"real{bounds} {f};"], prior, seen, lambda values: values[f])


def _squares(make: _Maker) -> Block:
    """A probability of which p (1 - p) is observed."""
    p = make.name("p")
    prior = make.one(
        [
            [make.dense(p, "beta", "2, 1.5")],
            [],
            [make.dense(p, "beta", "0.7, 0.7")],
            [make.alike(f"target += log({p});")],
        ]
    )
    tries = int(make.rng.integers(10, 200))
    k = make.given("k", "int ?;", int(tries * make.rng.uniform(0.25, 0.8)))
    seen = make.one(
        [
            make.dense(k, "binomial", f"{tries}, 4 * {p} * (1 - {p})", "lpmf"),
            (f"for (i in 1 : {k}) {{ 1 ~ bernoulli(4 * {p} * (1 - {p})); }} for (i in {k} + 1 : "
             f"{tries}) {{ 0 ~ bernoulli(4 * {p} * (1 - {p})); }}",
             f"target += binomial_lpmf({k} | {tries}, 4 * {p} * (1 - {p})) "
             f"- lchoose({tries}, {k});"),
        ]
    )  # fmt: skip
    return make.block([f"real<lower=0, upper=1> {p};"], prior, [seen], lambda values: values[p])


def _spike(make: _Maker) -> Block:
    """A slope whose prior has a spike and a slab, as a mixture or by hand."""
    b = make.name("b")
    narrow = 10 ** make.rng.uniform(-2, -1)
    w = make.rng.uniform(0.2, 0.8)
    mix = (
        f"target += log_mix({w:.3f}, normal_lpdf({b} | 0, {narrow:.4f}), normal_lpdf({b} | 0, 3));"
    )
    sums = (
        f"target += log_sum_exp(log({w:.3f}) + normal_lpdf({b} | 0, {narrow:.4f}), "
        f"log1m({w:.3f}) + normal_lpdf({b} | 0, 3));"
    )
    prior = make.one([(mix, mix), (sums, sums)])
    count = int(make.rng.integers(4, 9))
    x = make.rng.standard_normal(count)
    name = make.given("x", f"vector[{count}] ?;", x.tolist())
    y = make.given("y", f"vector[{count}] ?;", (0.5 * x + make.rng.standard_normal(count)).tolist())
    seen = make.one(
        [
            make.dense(y, "normal", f"{b} * {name}, 1"),
            (f"for (n in 1 : {count}) {{ {y}[n] ~ normal({b} * {name}[n], 1); }}",
             f"target += normal_lpdf({y} | {b} * {name}, 1);"),
        ]
    )  # fmt: skip
    return make.block([f"real {b};"], [prior], [seen], lambda values: np.abs(values[b]))


def _unequal(make: _Maker) -> Block:
    """Two modes of unequal width and mass, written as a likelihood or as data's."""
    a, unit = make.name("a"), make.one(_SCALES)
    prior, heavy = _wide(make, a, 3 * unit)
    w, narrow = make.rng.uniform(0.1, 0.9), 10 ** make.rng.uniform(-1.5, 0)
    y = make.given("y", "real ?;", float(make.rng.normal(0, 0.3) * unit))
    near, far = f"{a} - {3 * unit:g}", f"{a} + {3 * unit:g}"
    mixed = (
        f"target += log_mix({w:.3f}, normal_lpdf({y} | {near}, {narrow * unit:.5g}), "
        f"normal_lpdf({y} | {far}, {unit:g}));"
    )
    by_hand = (
        f"{{ real one = log({w:.3f}) + normal_lpdf({y} | {near}, {narrow * unit:.5g}); "
        f"real two = log1m({w:.3f}) + normal_lpdf({y} | {far}, {unit:g}); "
        "target += log_sum_exp(one, two); }"
    )
    return make.block(
        [f"real {a};"], [prior], [make.one([(mixed, mixed), (by_hand, mixed)])],
        lambda values: values[a], heavy=heavy, scale=unit,
    )  # fmt: skip


def _rates(make: _Maker) -> Block:
    """Two rates of which only symmetric functions are observed."""
    r = make.name("r")
    prior = make.one(
        [
            make.dense(r, "lognormal", "0, 1"),
            make.dense(r, "gamma", "2, 1"),
            make.dense(r, "exponential", "0.5"),
            make.dense(r, "inv_gamma", "3, 3"),
        ]
    )
    sd = 10 ** make.rng.uniform(-1.3, -0.5)
    low, high = sorted(make.rng.uniform(0.3, 5, 2))
    sums = make.observed(f"{r}[1] + {r}[2]", sd, make.around(low + high, sd))
    p = make.given("q", "real ?;", float(low * high))
    more = make.dense(p, "normal", f"{r}[1] * {r}[2], {3 * sd:.4f}")
    shape = make.one([f"vector<lower=0>[2] {r};", f"array[2] real<lower=0> {r};"])
    return make.block(
        [shape], [prior], [*sums, more],
        lambda values: values[r][..., 0] - values[r][..., 1],
    )  # fmt: skip


def _noise(make: _Maker) -> Block:
    """Location and scale: one mode as a rule."""
    m, s = make.name("m"), make.name("s")
    first, heavy = _wide(make, m, 3.0)
    second = make.one(
        [
            make.dense(s, "normal", "0, 2"),
            make.dense(s, "cauchy", "0, 1"),
            make.dense(s, "exponential", "1"),
            make.dense(s, "lognormal", "0, 1"),
        ]
    )
    y = make.rng.standard_normal(int(make.rng.integers(3, 12)))
    name = make.given("y", f"vector[{len(y)}] ?;", y.tolist())
    kept = f"target += normal_lpdf({name} | {m}, {s});"
    seen = make.one(
        [
            (f"{name} ~ normal({m}, {s});", kept),
            (f"for (v in {name}) {{ v ~ normal({m}, {s}); }}", kept),
            (f"(({name} - {m}) / {s}) ~ std_normal(); target += -{len(y)} * log({s});", kept),
        ]
    )
    return make.block(
        [f"real {m};", f"real<lower=0> {s};"], [first, second], [seen],
        lambda values: values[m], heavy=heavy,
    )  # fmt: skip


def _counts(make: _Maker) -> Block:
    """A rate with counts, or a number with a wide prior and no data at all."""
    r = make.name("r")
    k = make.given("k", "array[3] int ?;", make.rng.poisson(3, 3).tolist())
    prior = make.dense(r, "gamma", "1.5, 0.5")
    seen = make.one(
        [
            make.dense(k, "poisson", r, "lpmf"),
            (f"for (v in {k}) {{ target += poisson_lupmf(v | {r}); }}",
             f"target += poisson_lpmf({k} | {r});"),
            (f"{k} ~ poisson_log(log({r}));", f"target += poisson_lpmf({k} | {r});"),
        ]
    )  # fmt: skip
    return make.block([f"real<lower=0> {r};"], [prior], [seen], lambda values: values[r])


def _groups(make: _Maker) -> Block:
    """A sign that data chosen by an index share."""
    b = make.name("b")
    count = int(make.rng.integers(4, 9))
    g = make.given("g", f"array[{count}] int ?;", (1 + np.arange(count) % 2).tolist())
    truth = make.rng.uniform(0.5, 2, 2)
    y = truth[np.arange(count) % 2] * np.where(np.arange(count) % 2, -1, 1)
    name = make.given("y", f"vector[{count}] ?;", (np.abs(y) + 0.1).tolist())
    prior = make.dense(b, "normal", make.one(["0, 1.5", "[0.2, -0.1]', 1.5"]))
    sd = f"{10 ** make.rng.uniform(-0.8, -0.1):.4f}"
    kept = (
        f"for (n in 1 : {count}) {{ target += normal_lpdf({name}[n] | abs({b}[{g}[n]]), {sd}); }}"
    )
    seen = make.one(
        [
            (f"for (n in 1 : {count}) {{ {name}[n] ~ normal(abs({b}[{g}[n]]), {sd}); }}", kept),
            (f"{name} ~ normal(abs({b}[{g}]), {sd});", kept),
        ]
    )
    return make.block([f"vector[2] {b};"], [prior], [seen], lambda values: values[b][..., 0])


def _direction(make: _Maker) -> Block:
    """A direction of which only the square of an element is observed."""
    u = make.name("u")
    sd = 10 ** make.rng.uniform(-1.2, -0.5)
    mean = make.one([f"square({u}[1])", f"{u}[1] * {u}[2]", f"abs({u}[1])"])
    seen = make.observed(mean, sd, make.around(make.rng.uniform(0.2, 0.45), sd))
    prior = make.one([[], [make.dense(f"{u}[1]", "normal", "0.3, 1")]])
    return make.block([f"unit_vector[2] {u};"], prior, seen, lambda values: values[u][..., 0])


def _shares(make: _Maker) -> Block:
    """Three shares of which a symmetric function is observed."""
    p = make.name("p")
    prior = make.one(
        [
            [],
            [make.dense(p, "dirichlet", "rep_vector(1.5, 3)")],
            [make.dense(p, "dirichlet", "[2, 1, 1]'")],
        ]
    )
    sd = 10 ** make.rng.uniform(-1.7, -1)
    at = make.rng.uniform(0.45, 0.7)
    seen = make.observed(f"dot_self({p})", sd, make.around(at, sd))
    return make.block([f"simplex[3] {p};"], prior, seen, lambda values: values[p][..., 0])


def _steps(make: _Maker) -> Block:
    """Two numbers in order, of which squares are observed."""
    c = make.name("c")
    prior = make.one(
        [
            make.dense(c, "normal", "0, 2"),
            (f"for (k in 1 : 2) {{ {c}[k] ~ normal(0, 2); }}",
             f"target += normal_lpdf({c} | 0, 2);"),
        ]
    )  # fmt: skip
    sd = 10 ** make.rng.uniform(-0.8, -0.2)
    at = make.rng.uniform(1, 4)
    first = make.observed(f"square({c}[1])", sd, make.around(at, sd))
    t = make.given("t", "real ?;", float(make.rng.normal(0, 1)))
    more = make.dense(t, "normal", f"{c}[2], 2")
    return make.block(
        [f"ordered[2] {c};"], [prior], [*first, more], lambda values: values[c][..., 0]
    )


def _effect(make: _Maker) -> Block:
    """An effect whose scale is unknown, with its sign observed badly: a funnel with two arms."""
    theta, tau = make.name("theta"), make.name("tau")
    first = make.dense(theta, "normal", f"0, {tau}")
    second = make.one(
        [
            make.dense(tau, "exponential", "0.7"),
            make.dense(tau, "lognormal", "0, 0.7"),
            make.dense(tau, "gamma", "2, 1"),
        ]
    )
    sd = 10 ** make.rng.uniform(-0.5, 0.2)
    seen = make.observed(f"abs({theta})", sd, make.around(make.rng.uniform(0.5, 3), sd))
    return make.block(
        [f"real {theta};", f"real<lower=0> {tau};"], [first, second], seen,
        lambda values: values[theta],
    )  # fmt: skip


def _edges(make: _Maker) -> Block:
    """A number without likelihood where it is too small, whatever its sign."""
    a = make.name("a")
    prior, heavy = _wide(make, a, make.one([1.0, 2.0]))
    y = make.given("y", "vector[3] ?;", make.rng.uniform(0.2, 1.5, 3).tolist())
    kept = f"for (v in {y}) {{ target += uniform_lpdf(v | 0, abs({a})); }}"
    seen = make.one(
        [
            (f"{y} ~ uniform(0, abs({a}));", kept),
            (f"for (v in {y}) {{ if (v > abs({a})) {{ reject(\"too small\"); }} "
             f"target += -log(abs({a})); }}", kept),
            (f"target += max({y}) > abs({a}) ? negative_infinity() : -3 * log(abs({a}));", kept),
        ]
    )  # fmt: skip
    return make.block([f"real {a};"], [prior], [seen], lambda values: values[a], heavy=heavy)


def _limits(make: _Maker) -> Block:
    """Measurements of a number or its inverse, of which some only have a lower limit."""
    r = make.name("r")
    low = make.one(["0", "0.05"])
    prior = make.one([make.dense(r, "lognormal", "0, 1"), make.dense(r, "gamma", "1.5, 0.7")])
    y = make.given("y", "vector[4] ?;", make.rng.normal(2.6, 0.2, 4).tolist())
    above = make.given("above", "array[4] int ?;", [0, 1, 0, int(make.rng.integers(0, 2))])
    mean = f"{r} + inv({r})"

    def loop(measured: str) -> str:
        limit = f"target += normal_lccdf({y}[n] | {mean}, 0.2);"
        return f"for (n in 1 : 4) {{ if ({above}[n]) {{ {limit} }} else {{ {measured} }} }}"

    kept = loop(f"target += normal_lpdf({y}[n] | {mean}, 0.2);")
    plain = loop(f"{y}[n] ~ normal({mean}, 0.2);")
    return make.block(
        [f"real<lower={low}> {r};"], [prior], [make.one([(kept, kept), (plain, kept)])],
        lambda values: values[r],
    )  # fmt: skip


def _missing(make: _Maker) -> Block:
    """A measurement that is missing, of a number of which only the square is known."""
    m, gone = make.name("x"), make.name("gone")
    prior = make.dense(m, "normal", "0, 2")
    sd = 10 ** make.rng.uniform(-0.6, 0)
    seen = make.observed(f"square({m})", sd, make.around(make.rng.uniform(1, 4), sd))
    last = make.dense(gone, "normal", f"{m}, 1.5")
    return make.block(
        [f"real {m};", f"real {gone};"], [prior, last], seen, lambda values: values[m]
    )


def _cut(make: _Maker) -> Block:
    """A number that a constraint cuts by what depends on another one, whose square is observed."""
    b, c = make.name("b"), make.name("c")
    first = make.dense(b, "normal", "0, 2")
    second = make.one(
        [
            make.dense(c, "normal", f"{b}, 1.5"),
            make.dense(c, "student_t", f"5, {b}, 1"),
            make.dense(c, "logistic", f"{b}, 0.5"),
            (f"{c} ~ normal({b}, exp(0.3 * {b}));",
             f"target += normal_lpdf({c} | {b}, exp(0.3 * {b}));"),
        ]
    )  # fmt: skip
    limit = make.given("limit", "real ?;", float(make.rng.normal(0, 1)))
    bounds = make.one([f"<lower={limit}>", f"<upper={limit}>", f"<lower=-3, upper={limit}>"])
    sd = 10 ** make.rng.uniform(-0.6, 0)
    seen = make.observed(f"square({b})", sd, make.around(make.rng.uniform(1, 4), sd))
    return make.block(
        [f"real {b};", f"real{bounds} {c};"], [first, second], seen, lambda values: values[b]
    )


def _scaled(make: _Maker) -> Block:
    """Two correlated numbers on their own scale, of which a product is observed."""
    x = make.name("x")
    cov = make.given("V", "cov_matrix[2] ?;", [[2.0, 0.8], [0.8, 1.0]])
    prior = make.one(
        [
            make.dense(x, "multi_normal", f"[0, 0.3]', {cov}"),
            make.dense(x, "multi_normal_cholesky", f"[0, 0.3]', cholesky_decompose({cov})"),
            make.dense(x, "multi_student_t", f"5, [0, 0.3]', {cov}"),
        ]
    )
    sd = 10 ** make.rng.uniform(-0.8, 0)
    seen = make.observed(f"{x}[1] * {x}[2]", sd, make.around(make.rng.uniform(1, 3), sd))
    shape = make.one([f"vector[2] {x};", f"vector<offset=0.5, multiplier=2>[2] {x};"])
    return make.block([shape], [prior], seen, lambda values: values[x][..., 0])


_CORES = (
    _fold, _product, _labels, _conflict, _wave, _squares, _spike, _unequal, _rates, _groups,
    _direction, _shares, _steps, _effect, _edges, _limits, _missing, _scaled, _cut,
)  # fmt: skip
_OTHERS = (_noise, _counts, _noise, _counts, *_CORES)


@dataclass(frozen=True)
class Truth:
    """A program with what is known about it.

    Attributes
    ----------
    text, data
        The program and its data.
    log_evidence
        Log of the integral of prior times likelihood, divided by the integral of the prior.
    event, threshold, probability
        The probability that the event's number exceeds the threshold.
    """

    text: str
    data: dict[str, Any]
    log_evidence: float
    event: Event
    threshold: float
    probability: float


def random_truth(seed: int, folder: Path) -> Truth:
    """Draw a program, and integrate it; blocks that the grid does not resolve are drawn again.

    Parameters
    ----------
    seed
        Seed of the program.
    folder
        An empty folder for the blocks' own programs.
    """
    rng = np.random.default_rng([11, seed])
    several = int(rng.choice([0, 1, 2, 4], p=[0.35, 0.3, 0.2, 0.15]))
    blocks: list[tuple[Block, _Integral]] = []
    while len(blocks) <= several:
        kinds = _OTHERS if blocks else _CORES
        make = _Maker(rng, len(blocks) + 1)
        block = kinds[int(rng.integers(len(kinds)))](make)
        try:
            blocks.append((block, _integral(block, folder)))
        except Unsuitable:
            continue
    first, integral = blocks[0]
    threshold, probability = integral.valley()
    data = {name: value for block, _ in blocks for name, value in block.data.items()}
    return Truth(
        _whole([block for block, _ in blocks], rng),
        data,
        sum(each.log_evidence for _, each in blocks),
        first.event,
        threshold,
        probability,
    )


_FUNCTIONS = """functions {
  void observe_lp(vector y, real m, real s) {
    y ~ normal(m, s);
  }
}
"""


def _whole(blocks: list[Block], rng: np.random.Generator) -> str:
    statements = [
        _wrapped(text, rng) for block in blocks for text, _ in (*block.prior, *block.likelihood)
    ]
    order = rng.permutation(len(statements))
    return _written(
        [each for block in blocks for each in block.declared],
        [each for block in blocks for each in block.parameters],
        [statements[i] for i in order],
    )


def _wrapped(text: str, rng: np.random.Generator) -> str:
    """Put a statement into something that does not change it."""
    before, after = [
        ("", ""), ("", ""), ("", ""), ("{ ", " }"), ("if (1) { ", " }"),
        ('profile("part") { ', " }"), ("for (once in 1 : 1) { ", " }"),
    ][int(rng.integers(7))]  # fmt: skip
    return f"{before}{text}{after}"


def _written(data: list[str], parameters: list[str], statements: list[str]) -> str:
    def lines(each: list[str]) -> str:
        return "".join(f"  {line}\n" for line in each)

    return (
        f"{_FUNCTIONS}data {{\n{lines(data)}}}\nparameters {{\n{lines(parameters)}}}\n"
        f"model {{\n{lines(statements)}}}\n"
    )


@dataclass(frozen=True)
class _Integral:
    log_evidence: float
    numbers: FloatArray
    log_mass: FloatArray

    def valley(self) -> tuple[float, float]:
        """Return a threshold between modes of the event's number, and the mass above it.

        It is the lowest point of a histogram between its two highest bins, if there is one;
        otherwise the median.
        """
        order = np.argsort(self.numbers)
        numbers, mass = self.numbers[order], np.exp(self.log_mass[order] - self.log_mass.max())
        below = np.cumsum(mass) / mass.sum()
        low, high = np.interp([0.005, 0.995], below, numbers)
        share, edges = np.histogram(numbers, 60, (low, high), weights=mass)
        peaks = [
            i for i in range(60) if share[i] > 0 and share[i] == share[max(0, i - 3) : i + 4].max()
        ]
        if len(peaks) > 1:
            top = sorted(sorted(peaks, key=lambda i: share[i])[-2:])
            lowest = top[0] + int(np.argmin(share[top[0] : top[1] + 1]))
            threshold = float((edges[lowest] + edges[lowest + 1]) / 2)
        else:
            threshold = float(np.interp(0.5, below, numbers))
        return threshold, float(mass[numbers > threshold].sum() / mass.sum())


def _integral(block: Block, folder: Path) -> _Integral:
    """Integrate a block on a grid, wide enough for its tails and fine enough for its modes."""
    whole = _density(block, folder, likelihood=True)
    prior = _density(block, folder, likelihood=False)
    dimension = whole.dimension
    count = _POINTS[dimension]
    steps = np.linspace(-_REACH[block.heavy], _REACH[block.heavy], count)
    steps += 0.3 * (steps[1] - steps[0])  # a unit vector has no value at 0
    line = block.scale * np.sinh(steps)
    log_step = np.log(block.scale * np.cosh(steps)) + np.log(steps[1] - steps[0])
    points = np.stack(np.meshgrid(*[line] * dimension, indexing="ij"), -1).reshape(-1, dimension)
    log_weight = sum(np.meshgrid(*[log_step] * dimension, indexing="ij"))
    logs = []
    for density in (whole, prior):
        log = (density.values(points).reshape([count] * dimension) + log_weight).astype(float)
        coarse = log[tuple([slice(None, None, 2)] * dimension)]
        total = logsumexp(log)
        if not abs(total - logsumexp(coarse) - dimension * np.log(2)) < _AGREE:
            raise Unsuitable
        edge = max(np.take(log, [0, -1], axis=axis).max() for axis in range(dimension))
        if edge > total - 16:
            raise Unsuitable
        logs.append(log)
    kept = logs[0].reshape(-1) > logs[0].max() - 25
    values = whole.constrain(points[kept])
    return _Integral(
        float(logsumexp(logs[0]) - logsumexp(logs[1])),
        np.asarray(block.event(values)),
        logs[0].reshape(-1)[kept],
    )


def _density(block: Block, folder: Path, *, likelihood: bool) -> BatchedDensity:
    statements = [kept for _, kept in (*block.prior, *(block.likelihood if likelihood else ()))]
    path = folder / f"{'whole' if likelihood else 'prior'}.stan"
    path.write_text(_written(list(block.declared), list(block.parameters), statements))
    return BatchedDensity(StanProgram(path), block.data)
