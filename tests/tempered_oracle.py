"""Definitions of the tempered densities in NumPy, and tempered programs held against them.

The definitions take the log prior density, the log likelihood and the inverse temperatures of
pseudo-samples; where these come from they do not know.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from corpus_oracle import Values
from form_data import pseudo_extended_data
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, norm

from harness.arrays import FloatArray
from harness.engine.program import StanProgram
from harness.engine.stanli_package import column_major, stan_model
from harness.evidence import LogG
from harness.forms.continuous_tempering import tempering_data
from harness.model import Model
from harness.model.density import StanDensity
from harness.temper import TemperedProgram
from harness.temper.program import temper_each
from harness.temper.templates import Variant

LOG_ZETA = -1.7
LOG_G: LogG = ((0.0, 0.3), (0.4, -0.6), (1.0, 0.2))
LOG_PI: LogG = ((0.0, -0.5), (0.7, 0.4), (1.0, 0.1))
G_SHAPE, PI_SHAPE = (1.5, 2.0), (2.5, 0.8)
CORRELATION = -0.1


class Parts(NamedTuple):
    """Log prior density and log likelihood of each pseudo-sample, on the unconstrained space."""

    prior: FloatArray
    likelihood: FloatArray


def log_piecewise(beta: FloatArray, log_g: LogG, shape: tuple[float, float]) -> FloatArray:
    """Log density of inverse temperatures: linear between knots, times a beta density's kernel."""
    knot, value = np.array(log_g).T
    kernel = np.zeros_like(beta)
    if shape != (1.0, 1.0):
        kernel = (shape[0] - 1) * np.log(beta) + (shape[1] - 1) * np.log1p(-beta)
    return np.asarray(np.interp(beta, knot, value) + kernel, dtype=np.float64)


def log_tempered_mass(delta: FloatArray, log_g: LogG, *, ladder: bool) -> FloatArray:
    """Log of the integral (or sum) of g(beta) exp(-beta Delta), piece by piece of log g."""
    if ladder:
        knot, value = np.array(log_g).T
        return np.asarray(logsumexp(value - np.multiply.outer(delta, knot), axis=-1))
    pieces = []
    for (a, log_a), (b, log_b) in pairwise(log_g):
        rise = log_b - log_a - (b - a) * delta
        size = np.abs(rise)
        ratio = np.maximum(rise, 0) + np.log(-np.expm1(-size)) - np.log(size)
        pieces.append(log_a - a * delta + np.log(b - a) + ratio)
    return np.asarray(logsumexp(pieces, axis=0))


def log_logit_jacobian(beta: FloatArray) -> float:
    """Log derivative of beta by its logit, summed."""
    return float(np.sum(np.log(beta) + np.log1p(-beta)))


def copula(beta: FloatArray, correlation: float) -> float:
    """Log density of a Gaussian copula with one correlation."""
    z = norm.ppf(beta)
    covariance = np.full((len(z), len(z)), correlation)
    np.fill_diagonal(covariance, 1)
    joint = multivariate_normal(np.zeros(len(z)), covariance).logpdf(z)
    return float(joint - np.sum(norm.logpdf(z)))


class Expected(NamedTuple):
    """What a tempered program must say at a point."""

    log_density: float
    delta: FloatArray
    log_weight: FloatArray


def pseudo_extended(parts: Parts, beta: FloatArray, *, sampled: bool) -> Expected:
    """Nemeth et al. (2019), eqs. 3 and 8, along the path from prior to posterior."""
    g, pi = (G_SHAPE, PI_SHAPE) if sampled else ((1.0, 1.0), (1.0, 1.0))
    log_gamma = parts.prior + parts.likelihood
    log_q = beta * (log_gamma - LOG_ZETA) + (1 - beta) * parts.prior
    log_q = log_q + log_piecewise(beta, LOG_G, g)
    log_weight = log_gamma + log_piecewise(beta, LOG_PI, pi) - log_q
    value = float(logsumexp(log_weight)) - np.log(len(beta)) + float(np.sum(log_q))
    if sampled:
        value += log_logit_jacobian(beta) + copula(beta, CORRELATION)
    return Expected(value, LOG_ZETA - parts.likelihood, log_weight)


def collapsed_pseudo_extended(parts: Parts, *, ladder: bool) -> Expected:
    """The same with each beta integrated out of its own instrumental density."""
    delta = LOG_ZETA - parts.likelihood
    log_q = parts.prior + log_tempered_mass(delta, LOG_G, ladder=ladder)
    log_weight = parts.prior + parts.likelihood - log_q
    value = float(logsumexp(log_weight)) - np.log(len(delta)) + float(np.sum(log_q))
    return Expected(value, delta, log_weight)


def continuous(parts: Parts, beta: FloatArray, *, sampled: bool) -> Expected:
    """Graham and Storkey (2017), eqs. 14, 16 and 17: one point, one inverse temperature."""
    delta = LOG_ZETA - parts.likelihood
    value = float((parts.prior - beta * delta)[0] + log_piecewise(beta, LOG_G, (1.0, 1.0))[0])
    if sampled:
        value += log_logit_jacobian(beta)
    return Expected(value, delta, _ends(delta, ladder=False))


def collapsed(parts: Parts, *, ladder: bool) -> Expected:
    """The same with beta integrated out."""
    delta = LOG_ZETA - parts.likelihood
    value = float((parts.prior + log_tempered_mass(delta, LOG_G, ladder=ladder))[0])
    return Expected(value, delta, _ends(delta, ladder=ladder))


def expected(method: Variant, parts: Parts, beta: FloatArray, setting: str) -> Expected:
    """Return the definition of a method with its inverse temperatures set in a way."""
    if method == "pseudo_extended":
        return pseudo_extended(parts, beta, sampled=setting == "sampled")
    if method == "joint_tempering":
        return continuous(parts, beta, sampled=setting == "sampled")
    if method in ("collapsed_tempering", "collapsed_tempering_zero_likelihood"):
        return collapsed(parts, ladder=setting == "ladder")
    return collapsed_pseudo_extended(parts, ladder=setting == "ladder")


def _ends(delta: FloatArray, *, ladder: bool) -> FloatArray:
    log_mass = log_tempered_mass(delta, LOG_G, ladder=ladder)[0]
    return np.array([LOG_G[-1][1] - delta[0] - log_mass, LOG_G[0][1] - log_mass])


def compare(said: Expected, wanted: Expected) -> None:
    """Assert that a program says what the definition does, to rounding."""
    scale = max(1.0, float(np.max(np.abs(wanted.delta))))
    for name in Expected._fields:
        found, exact = (np.asarray(getattr(each, name)) for each in (said, wanted))
        np.testing.assert_allclose(found, exact, rtol=1e-9, atol=1e-8 * scale, err_msg=name)


def constrained_points(
    program: StanProgram, data: Mapping[str, Any], points: FloatArray, names: tuple[str, ...]
) -> Values:
    """Return values by name, each (count, *shape), of unconstrained points (count, D)."""
    drawn = stan_model(program, data).sample(
        chains=len(points),
        seed=1,
        warmup=0,
        samples=1,
        adapt_engaged=False,
        step_size=1e-300,
        max_depth=1,
        inits=points,
        parallel_chains=1,
        refresh=0,
    )
    return {name: np.asarray(drawn.draws(name))[:, 0] for name in names}


def by_parameter(points: FloatArray, sizes: Mapping[str, int]) -> Values:
    """Return unconstrained points by name, each (count, size), or (count,) of one value."""
    parts = np.split(points, np.cumsum([*sizes.values()])[:-1], axis=1)
    return {
        name: part[:, 0] if size == 1 else part
        for (name, size), part in zip(sizes.items(), parts, strict=True)
    }


def prior_and_target(path: Path, data: Mapping[str, Any]) -> tuple[StanDensity, StanDensity]:
    """Return the log densities of a program's prior alone and of its target, as we write them."""
    found = []
    for each in temper_each(path, ("prior", "target")):
        made = path.with_name(f"{path.stem}_{each.method}.stan")
        made.write_text(each.text, encoding="utf-8")
        found.append(StanDensity(StanProgram(made), data))
    return found[0], found[1]


class Held:
    """A tempered program with data, evaluated through stanli.

    Parameters
    ----------
    program
        The tempered program.
    data
        The original's data.
    setting
        ``"fixed"``, ``"sampled"``, ``"integrated"`` or ``"ladder"``: what becomes of beta.
    num
        Number of pseudo-samples, where there are any.
    folder
        Where the program is written.
    """

    def __init__(
        self,
        program: TemperedProgram,
        data: Mapping[str, Any],
        setting: str,
        fixed: FloatArray,
        num: int,
        folder: Path,
    ) -> None:
        self._names, self._called = program.names, program.parameters
        self._parameters = program.text.split("\nparameters {")[1].split("\n}")[0]
        path = folder / f"{program.method}.stan"
        path.write_text(program.text, encoding="utf-8")
        self.data = {**data, **tempered_data(program, setting, fixed, num)}
        self._model = stan_model(StanProgram(path), self.data)

    def _name(self, name: str) -> str:
        return self._names.get(name, name)

    def values(self, points: Values, free: Values, beta: FloatArray) -> dict[str, Any]:
        """Return values by the program's names, of pseudo-samples or of one point.

        A parameter that the program declares on the unconstrained space, its bounds being others
        in each pseudo-sample, has its value there from ``free``.
        """
        own: dict[str, Any] = {}
        for name, value in points.items():
            stem = f"{name}_free"
            declared = re.search(rf"\b{stem};", self._parameters)
            own |= {stem: free[name]} if declared else {self._called[name]: value}
        name = self._name("free_inv_temp")
        return own | {name: beta} if re.search(rf"\b{name};", self._parameters) else own

    def __call__(self, values: Mapping[str, Any]) -> Expected:
        """Return what the program says at values of its parameters."""
        u = np.asarray(self._model.unconstrain(column_major(values)), dtype=np.float64)
        drawn = self._model.sample(
            chains=1,
            seed=1,
            warmup=0,
            samples=1,
            adapt_engaged=False,
            step_size=1e-300,
            max_depth=1,
            inits=u,
            refresh=0,
        )
        delta, log_weight = (
            np.atleast_1d(np.asarray(drawn.draws(self._name(name)))[0, 0])
            for name in ("delta", "log_weight")
        )
        return Expected(float(self._model.log_prob_grad(u)[0]), delta, log_weight)


def tempered_data(
    program: TemperedProgram, setting: str, fixed: FloatArray, num: int
) -> dict[str, Any]:
    """Return what a tempered program takes besides the original's data, by its own names."""
    own = _path_data(program, setting, fixed, num)
    return {program.names.get(name, name): value for name, value in own.items()}


def _path_data(
    program: TemperedProgram, setting: str, fixed: FloatArray, num: int
) -> dict[str, Any]:
    model = Model(
        "tempered", program.source.parent, {}, tuple(program.parameters), 1, own_base="prior"
    )  # its dimension matters for Gaussian bases alone
    path: dict[str, Any] = {"log_zeta": LOG_ZETA, "log_g": LOG_G}
    sampled = setting == "sampled"
    if program.method == "pseudo_extended":
        shapes: dict[str, Any] = {
            "g_shape": G_SHAPE,
            "pi_shape": PI_SHAPE,
            "g_correlation": CORRELATION,
        }
        return pseudo_extended_data(
            model,
            num,
            None if sampled else fixed.tolist(),
            log_pi=LOG_PI,
            **path,
            **(shapes if sampled else {}),
        )
    data = tempering_data(model, **path)
    if program.method == "joint_tempering":
        return data | {"sample_inv_temp": int(sampled), "fixed_inv_temp": fixed}
    # The program may have an N of its own; only pseudo-extended ones take ours.
    number = {"N": num} if "pseudo" in program.method else {}
    return data | number | {"ladder": int(setting == "ladder")}
