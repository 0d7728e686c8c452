"""Random Stan programs whose log Z, modes and their probabilities are known by construction.

The posterior is a mixture of a few parts on the unconstrained scale: Gaussians, heavier tails,
bananas, funnels and rings, of random places, widths and orientations, with probabilities w.  The
prior has random distributions, and some parameters have none.  The likelihood is what is missing:
log q(x) - log p(x) + c, as a density of a datum.  So log Z is c, and the expectation of the
probability that a draw belongs to a part is that part's w.

Run some of them through ``harness sample``, and get a line for each::

    python tests/posterior_fuzz.py 1 20 --method auto --budget 20
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import xarray as xr
from scipy import stats
from scipy.special import logit, logsumexp

from harness.arrays import FloatArray
from harness.diagnosis import Severity
from harness.errors import HarnessError
from harness.user import sample
from harness.user.result import UserFit

Kind = Literal["gaussian", "heavy", "banana", "funnel", "ring"]
KINDS: tuple[Kind, ...] = get_args(Kind)
BEND, NECK, RING, RING_WIDTH = 0.6, 0.5, 3.0, 0.25
"""Bend of bananas, slope of funnels, radius and width of rings."""
_BUDGET = 20.0
"""Seconds for a run, which leave some of them without a clear answer."""
LOW, HIGH = -2.0, 5.0
"""Bounds of a parameter that has two."""
_UNEQUAL = 0.3
"""Log of the factor by which parts may be narrower or wider than others."""
Verdict = Literal["right", "false alarm", "wrong and said so", "silent"]


@dataclass(frozen=True)
class Part:
    """A part of a posterior: y = centre + root z, where z has a law of some kind."""

    kind: Kind
    centre: FloatArray
    root: FloatArray

    def log_density(self, y: FloatArray) -> FloatArray:
        """Log density at points (n, D)."""
        z = np.linalg.solve(self.root, (y - self.centre).T).T
        return np.asarray(_log_law(self.kind, np.asarray(z)) - np.log(np.diag(self.root)).sum())


@dataclass(frozen=True)
class Posterior:
    """A program with its data, and what is known of it.

    Attributes
    ----------
    program, data
        The program and its data.
    sizes
        Numbers of free, positive and bounded parameters: vectors ``a``, ``b`` and ``g``.
    weights
        Probabilities of the parts.
    parts
        The parts.
    log_evidence
        Log Z as ``harness sample`` reports it.
    """

    program: str
    data: Mapping[str, Any]
    sizes: tuple[int, int, int]
    weights: FloatArray
    parts: tuple[Part, ...]
    log_evidence: float

    @property
    def words(self) -> str:
        """What it is, in short."""
        parts = ", ".join(
            f"{p.kind} {w:.2f}" for p, w in zip(self.parts, self.weights, strict=True)
        )
        return f"{self.sizes} {parts}"

    def log_parts(self, y: FloatArray) -> FloatArray:
        """Log of weight times density of each part at points (n, D), (K, n)."""
        return np.stack(
            [math.log(w) + p.log_density(y) for w, p in zip(self.weights, self.parts, strict=True)]
        )

    def membership(self, number: int, draws: xr.Dataset) -> xr.DataArray:
        """Probability that each draw belongs to a part, with the draws' leading axes."""
        columns = []
        if self.sizes[0]:
            columns.append(draws["a"].to_numpy())
        if self.sizes[1]:
            columns.append(np.log(draws["b"].to_numpy()))
        if self.sizes[2]:
            columns.append(logit((draws["g"].to_numpy() - LOW) / (HIGH - LOW)))
        y = np.concatenate(columns, axis=-1)
        log_parts = self.log_parts(y.reshape(-1, y.shape[-1]))
        share = np.exp(log_parts[number] - logsumexp(log_parts, axis=0))
        leading = next(iter(draws.values())).dims[:-1]
        return xr.DataArray(share.reshape(y.shape[:-1]), dims=leading)


def random_posterior(seed: int) -> Posterior:
    """Return the posterior of a seed."""
    rng = np.random.default_rng([seed, 77])
    dimension = int(rng.choice([1, 2, 3, 4, 6, 10]))
    positive, bounded = rng.multinomial(dimension, [0.7, 0.15, 0.15])[1:]
    sizes = (dimension - int(positive) - int(bounded), int(positive), int(bounded))
    number = int(rng.choice([1, 2, 3, 4], p=[0.2, 0.4, 0.25, 0.15]))
    weights = 0.05 + (1 - 0.05 * number) * rng.dirichlet(np.full(number, 2.0))
    far = rng.uniform(1.0, 3.0)
    width = math.exp(rng.uniform(math.log(0.05), math.log(0.8)))
    light: list[Kind] = ["gaussian"]
    if dimension > 1:
        light += ["banana", "funnel", "ring"]
    # A part with heavy tails takes all climbs, so that nothing would find the others beside it.
    kinds: list[Kind] = ["heavy"] if rng.random() < 0.2 else light
    parts = tuple(_random_part(rng, dimension, far, width, kinds) for _ in range(number))
    prior = _Prior(rng, sizes)
    constant = float(rng.normal(0, 20))
    data = {
        "D": dimension,
        "K": number,
        "weight": weights,
        "kind": [KINDS.index(each.kind) + 1 for each in parts],
        "centre": np.stack([each.centre for each in parts]),
        "root": np.stack([each.root for each in parts]),
        "log_evidence": constant,
    }
    return Posterior(prior.program, data, sizes, weights, parts, constant + prior.log_volume)


def _random_part(
    rng: np.random.Generator, dimension: int, far: float, width: float, kinds: Sequence[Kind]
) -> Part:
    # Half of the parts are Gaussian where there is a choice.
    chances = np.full(len(kinds), 0.5 / max(len(kinds) - 1, 1))
    chances[0] = 1.0 - chances[1:].sum()
    kind = kinds[int(rng.choice(len(kinds), p=chances))]
    # Of a wide and a narrow Gaussian in many dimensions, nothing finds the narrow one.
    width *= math.exp(rng.uniform(-_UNEQUAL, _UNEQUAL))
    turn = np.linalg.qr(rng.standard_normal((dimension, dimension)))[0]
    spread = np.exp(rng.uniform(-0.7, 0.7, dimension))
    spread *= width / np.exp(np.log(spread).mean())
    root = np.linalg.cholesky((turn * spread**2) @ turn.T)
    return Part(kind, far * rng.standard_normal(dimension), root)


class _Prior:
    """A program with a random prior.

    Attributes
    ----------
    program
        Its text.
    log_volume
        What log Z has besides the constant in the likelihood: the log of the volume of bounded
        parameters, and of the integral of a prior on half a line that is written for the whole.
    """

    def __init__(self, rng: np.random.Generator, sizes: tuple[int, int, int]) -> None:
        free, positive, bounded = sizes
        flat = bool(free) and rng.random() < 0.15
        declared, prior, inverse, jacobian, divided = [], [], [], [], []
        halves = 0
        if free:
            declared.append(f"vector[{free}] a;")
            inverse.append("a")
            law = _one(rng, "normal(0, 5)", "student_t(4, 0, 4)", "normal(1, 8)", "cauchy(0, 3)")
            if not flat:
                prior.append(f"a ~ {law};")
                divided.append(_density("a", law))
        if positive:
            declared.append(f"vector<lower=0>[{positive}] b;")
            inverse.append("log(b)")
            jacobian.append("sum(log(b))")
            # With a tail that is exponential in b, prior and likelihood would cancel too much.
            law = _one(rng, "lognormal(0, 3)", "lognormal(1, 2)", "cauchy(0, 3)")
            halves = positive if law.startswith("cauchy") else 0
            prior.append(f"b ~ {law};")
            divided.append(_density("b", law))
        if bounded:
            declared.append(f"vector<lower={LOW}, upper={HIGH}>[{bounded}] g;")
            share = f"(g - {LOW}) / {HIGH - LOW}"
            inverse.append(f"logit({share})")
            jacobian.append(f"sum(log({share})) + sum(log1m({share}))")
        y = inverse[0]
        for each in inverse[1:]:
            y = f"append_row({y}, {each})"
        # An improper prior is not divided by its integral, and a proper one is.
        self.log_volume = bounded * math.log(HIGH - LOW) if flat else halves * math.log(2)
        self.program = _PROGRAM.format(
            declared="\n  ".join(declared),
            prior="\n  ".join(prior),
            y=y,
            taken=" + ".join([*jacobian, *divided]) or "0",
            bend=BEND,
            neck=NECK,
            ring=RING,
            ring_width=RING_WIDTH,
        )


def _one(rng: np.random.Generator, *choices: str) -> str:
    return choices[int(rng.integers(len(choices)))]


def _density(name: str, law: str) -> str:
    family, arguments = law.removesuffix(")").split("(")
    return f"{family}_lpdf({name} | {arguments})"


_PROGRAM = """
functions {{
  real law(vector z, int kind) {{
    int D = rows(z);
    if (kind == 1) {{
      return std_normal_lpdf(z);
    }} else if (kind == 2) {{
      return student_t_lpdf(z | 4, 0, 1);
    }} else if (kind == 3) {{
      vector[D] v = z;
      v[2] -= {bend} * (square(z[1]) - 1);
      return std_normal_lpdf(v);
    }} else if (kind == 4) {{
      return std_normal_lpdf(z[1])
             + normal_lpdf(z[2 : D] | 0, exp({neck} * z[1]));
    }} else {{
      real r = hypot(z[1], z[2]);
      return normal_lpdf(r | {ring}, {ring_width}) - log(2 * pi() * r)
             + std_normal_lpdf(z[3 : D]);
    }}
  }}
  real mixture_lpdf(vector weight, vector y, array[] int kind,
                    array[] vector centre, array[] matrix root) {{
    int K = rows(weight);
    vector[K] part;
    for (k in 1 : K) {{
      part[k] = log(weight[k])
                + law(mdivide_left_tri_low(root[k], y - centre[k]), kind[k])
                - sum(log(diagonal(root[k])));
    }}
    return log_sum_exp(part);
  }}
  // All that the prior has is taken off again inside the density of a datum: as a term
  // by itself it would be a part of the prior.
  real missing_lpdf(real log_evidence, vector weight, vector y, array[] int kind,
                    array[] vector centre, array[] matrix root, real prior) {{
    return log_evidence + mixture_lpdf(weight | y, kind, centre, root) - prior;
  }}
}}
data {{
  int<lower=1> D;
  int<lower=1> K;
  vector[K] weight;
  array[K] int kind;
  array[K] vector[D] centre;
  array[K] matrix[D, D] root;
  real log_evidence;
}}
parameters {{
  {declared}
}}
model {{
  {prior}
  target += missing_lpdf(log_evidence | weight, {y}, kind, centre, root, {taken});
}}
"""


def _log_law(kind: Kind, z: FloatArray) -> FloatArray:
    """Log density of a kind's law at points (n, D)."""
    if kind == "heavy":
        return np.asarray(stats.t(4).logpdf(z).sum(axis=1))
    if kind == "banana":
        z = z.copy()
        z[:, 1] -= BEND * (z[:, 0] ** 2 - 1)
    if kind == "funnel":
        scale = np.exp(NECK * z[:, :1])
        rest = stats.norm.logpdf(z[:, 1:] / scale) - np.log(scale)
        return np.asarray(stats.norm.logpdf(z[:, 0]) + rest.sum(axis=1))
    if kind == "ring":
        r = np.hypot(z[:, 0], z[:, 1])
        around = stats.norm(RING, RING_WIDTH).logpdf(r) - np.log(2 * np.pi * r)
        return np.asarray(around + stats.norm.logpdf(z[:, 2:]).sum(axis=1))
    return np.asarray(stats.norm.logpdf(z).sum(axis=1))


@dataclass(frozen=True)
class Outcome:
    """What a run came to.

    Attributes
    ----------
    verdict
        Whether its answers are right, and whether it says so.
    log_evidence, log_evidence_error
        Log Z less its true value, and its error; NaN if there is none.
    weight, weight_error
        Of the part that is furthest off, in errors: its probability less the true one, and its
        error.
    said
        The worst finding.
    """

    verdict: Verdict
    log_evidence: float
    log_evidence_error: float
    weight: float
    weight_error: float
    said: str

    @property
    def numbers(self) -> str:
        """What is off by how much, in words."""
        return (
            f"log Z {self.log_evidence:+.3f} ± {self.log_evidence_error:.3f}, "
            f"a part {self.weight:+.3f} ± {self.weight_error:.3f}"
        )


ERRORS, CLOSE, CLOSE_WEIGHT = 4.0, 0.1, 0.05
"""An answer is right if it is off by so many errors, or by as little as does not matter."""
CLEAR, CLEAR_WEIGHT = 0.5, 0.125
"""Errors above which an answer says itself that it is none."""


def judged(posterior: Posterior, result: UserFit) -> Outcome:
    """Compare a result with what is known."""
    fit = result.fit
    off, error = math.nan, math.nan
    right = True
    if result.log_evidence is not None:
        off = result.log_evidence.value - posterior.log_evidence
        error = result.log_evidence.mcse
        right = abs(off) <= max(ERRORS * error, CLOSE) and error <= CLEAR
    worst = (0.0, 0.0, 0.0)
    for number, weight in enumerate(posterior.weights):
        found = fit.expectation(partial(posterior.membership, number))
        apart, mcse = float(found.value) - weight, float(found.mcse)
        worst = max(worst, (abs(apart) / max(mcse, CLOSE_WEIGHT / ERRORS), apart, mcse))
    right = right and worst[0] <= ERRORS and worst[2] <= CLEAR_WEIGHT
    first = result.diagnosis[0]
    alarm = first.severity >= Severity.PROBLEM
    unclear = error > CLEAR or worst[2] > CLEAR_WEIGHT
    verdict: Verdict = "false alarm" if alarm else "right"
    if not right:
        verdict = "wrong and said so" if alarm or unclear else "silent"
    said = first.sentence if first.severity > Severity.FINE else ""
    return Outcome(verdict, off, error, worst[1], worst[2], said)


def run(posterior: Posterior, folder: Path, seed: int, **settings: Any) -> UserFit:
    """Run a posterior's program."""
    path = folder / "program.stan"
    path.write_text(posterior.program, encoding="utf-8")
    return sample(path, posterior.data, seed=seed, engine="stanli", progress=False, **settings)


def wrong_in_silence(seed: int, folder: Path, budget: float = _BUDGET) -> str | None:
    """Run the program of a seed by ``auto``; say what is wrong and not reported as a problem."""
    posterior = random_posterior(seed)
    result = run(posterior, folder, seed, budget=budget)
    found = judged(posterior, result)
    if found.verdict != "silent":
        return None
    told = "\n".join(f"{each.severity.name} {each.sentence}" for each in result.diagnosis)
    return f"by {result.method}, {found.numbers}\n{told}\n{posterior.words}\n{posterior.program}"


def main() -> int:
    """Run some programs, and print a line for each."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("first", type=int)
    parser.add_argument("last", type=int)
    parser.add_argument("--method", default="auto")
    parser.add_argument("--budget", type=float, default=_BUDGET)
    asked = parser.parse_args()
    silent = 0
    for seed in range(asked.first, asked.last + 1):
        posterior = random_posterior(seed)
        began = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            try:
                result = run(
                    posterior, Path(folder), seed, method=asked.method, budget=asked.budget
                )
            except HarnessError as error:
                print(f"{seed} no answer: {error} [{posterior.words}]", flush=True)
                continue
            found = judged(posterior, result)
        silent += found.verdict == "silent"
        print(
            f"{seed} {found.verdict}: {found.numbers}; {result.method}, "
            f"{time.perf_counter() - began:.0f} s; {found.said} [{posterior.words}]",
            flush=True,
        )
    return int(silent > 0)


if __name__ == "__main__":
    sys.exit(main())
