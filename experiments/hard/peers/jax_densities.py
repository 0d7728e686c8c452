"""Densities of some of the programs in JAX, for peers that need them.

Each is written by hand from the program, as log prior and log likelihood of one point of Stan's
unconstrained space: with all constants, and with the Jacobian in the prior.  So their sum is the
log density that :class:`harness.engine.batched.BatchedDensity` gives the program, which the tests
compare, and draws need no other map than Stan's.  Whoever imports this module imports JAX; double
precision is what the caller makes of it.

Nothing here overflows or becomes NaN far from the data, because samplers start from the prior.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.nn import log_sigmoid, log_softmax, sigmoid, softplus
from jax.scipy.special import gammaln, logsumexp

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.model import Model

Data = Mapping[str, Any]


@dataclass(frozen=True)
class JaxDensity:
    """A posterior on Stan's unconstrained space, in two parts.

    Attributes
    ----------
    dimension
        Number D of unconstrained parameters.
    log_prior
        Log density of the prior at a point (D,), in nats; it integrates to 1.
    log_likelihood
        Log likelihood at a point (D,), in nats.
    draw_prior
        Independent draws (n, D) of the prior, from a generator and n.
    """

    dimension: int
    log_prior: Callable[[Array], Array]
    log_likelihood: Callable[[Array], Array]
    draw_prior: Callable[[np.random.Generator, int], FloatArray]


def jax_density(model: Model) -> JaxDensity:
    """Return the density of a target's program with its data.

    Raises
    ------
    DataError
        If the program has no density in JAX.
    """
    program = model.folder.name
    if program not in DENSITIES:
        raise DataError(f"{model.name} has no density in JAX; these programs do: {_NAMES}")
    return DENSITIES[program](model.data)


def _normal(x: Array, mean: Any, sd: Any) -> Array:
    """Log density of normal distributions, elementwise."""
    return -0.5 * ((x - mean) / sd) ** 2 - jnp.log(sd) - 0.5 * math.log(2 * math.pi)


def _uniform(u: Array) -> Array:
    """Log density of the unconstrained parameters (D,) of uniform ones, whatever their bounds."""
    return jnp.sum(log_sigmoid(u) + log_sigmoid(-u))


def _log_choose(n: Array, k: Array) -> Array:
    """Log of binomial coefficients, elementwise."""
    return gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)


def _log_beta(a: Array, b: Array) -> Array:
    """Log of the beta function, elementwise; JAX's own has six digits in double precision."""
    return gammaln(a) + gammaln(b) - gammaln(a + b)


def _log_not_both(u: Array, v: Array) -> Array:
    """Log of 1 - p q for p and q with the log odds u and v, elementwise."""
    neither = logsumexp(jnp.stack(jnp.broadcast_arrays(-u, -v, -u - v)), axis=0)
    return neither + log_sigmoid(u) + log_sigmoid(v)


def _product(data: Data) -> JaxDensity:
    """``stan/product``: u, v are the log odds of x, y ~ U(0, 1)."""
    n, k = float(data["n"]), float(data["k"])
    ways = _log_choose(jnp.asarray(n), jnp.asarray(k))

    def log_likelihood(u: Array) -> Array:
        both = log_sigmoid(u[0]) + log_sigmoid(u[1])
        return ways + k * both + (n - k) * _log_not_both(u[0], u[1])

    return JaxDensity(2, _uniform, log_likelihood, lambda rng, count: rng.logistic(size=(count, 2)))


def _unequal_wells(data: Data) -> JaxDensity:
    """``stan/unequal_wells``: x is not constrained."""
    dimension, y, sd = int(data["D"]), jnp.asarray(data["y"]), jnp.asarray(data["sigma"])

    def log_likelihood(x: Array) -> Array:
        return logsumexp(_normal(y, x, sd[:, None]).sum(axis=1)) - math.log(2)

    return JaxDensity(
        dimension,
        lambda x: _normal(x, 0.0, 5.0).sum(),
        log_likelihood,
        lambda rng, count: rng.normal(0, 5, size=(count, dimension)),
    )


def _rockets(data: Data) -> JaxDensity:
    """``stan/rockets``: p is not constrained; types of vehicles with the same numbers are one."""
    both = np.stack([data["launches"], data["failures"]], axis=1).astype(np.float64)
    different, count = np.unique(both, axis=0, return_counts=True)
    n, k, times = (jnp.asarray(column) for column in (*different.T, count))

    def log_likelihood(p: Array) -> Array:
        a, b = softplus(p)
        each = _log_choose(n, k) + _log_beta(k + a, n - k + b) - _log_beta(a, b)
        return jnp.sum(times * each)

    return JaxDensity(
        2,
        lambda p: _normal(p, 0.0, 10.0).sum(),
        log_likelihood,
        lambda rng, count: rng.normal(0, 10, size=(count, 2)),
    )


def _galaxies(data: Data) -> JaxDensity:
    """``stan/galaxies``: K - 1 coordinates of the weights q, the means, the log variances.

    Stan's coordinates of a simplex are those of the centred log q in an orthonormal basis, and
    q is their softmax; the Jacobian is sqrt(K) times the product of q.
    """
    y, size = jnp.asarray(data["y"]), int(data["K"])
    basis = np.zeros((size - 1, size))
    for i in range(1, size):
        basis[i - 1, :i], basis[i - 1, i] = 1, -i
        basis[i - 1] /= math.sqrt(i * (i + 1))

    def log_weights(u: Array) -> Array:
        return log_softmax(u[: size - 1] @ basis)

    def log_prior(u: Array) -> Array:
        mean, log_variance = u[size - 1 : -size], u[-size:]
        gamma = 3 * math.log(20) - math.lgamma(3) - 3 * log_variance - 20 * jnp.exp(-log_variance)
        uniform = math.lgamma(size) + 0.5 * math.log(size) + log_weights(u).sum()
        return uniform + _normal(mean, 20.0, 10.0).sum() + gamma.sum()

    def log_likelihood(u: Array) -> Array:
        mean, sd = u[size - 1 : -size], jnp.exp(0.5 * u[-size:])
        return logsumexp(log_weights(u) + _normal(y[:, None], mean, sd), axis=1).sum()

    def draw_prior(rng: np.random.Generator, count: int) -> FloatArray:
        log_q = np.log(rng.dirichlet(np.ones(size), size=count))
        mean = rng.normal(20, 10, size=(count, size))
        return np.hstack([log_q @ basis.T, mean, np.log(20 / rng.gamma(3, size=(count, size)))])

    return JaxDensity(3 * size - 1, log_prior, log_likelihood, draw_prior)


def _mrna(data: Data) -> JaxDensity:
    """``stan/mrna``: log odds of where each parameter is between its bounds."""
    lower, upper = np.array([-2.0, -5, -5, -5, -2]), np.array([1.0, 5, 5, 5, 2])
    t, y = jnp.asarray(data["t"]), jnp.asarray(data["y"])

    def log_likelihood(u: Array) -> Array:
        t0, km0, beta, delta, sigma = 10 ** (lower + (upper - lower) * sigmoid(u))
        since = jnp.maximum(t - t0, 0) if data["zero_before"] else t - t0
        slow = jnp.minimum(beta, delta)
        apart = jnp.maximum(jnp.abs(beta - delta), 1e-12 * slow)
        decay, rise = jnp.minimum(-slow * since, 100), jnp.minimum(-apart * since, 100)
        return _normal(y, -km0 / apart * jnp.exp(decay) * jnp.expm1(rise), sigma).sum()

    return JaxDensity(5, _uniform, log_likelihood, lambda rng, count: rng.logistic(size=(count, 5)))


def _vaccines(data: Data) -> JaxDensity:
    """``stan/vaccines``: the four hyperparameters, e and i, none of which is constrained."""
    trials, wide = int(data["T"]), math.sqrt(1000)
    n, k, of, cases = (
        jnp.asarray(data[name], dtype=float)
        for name in ("n_vaccinated", "cases_vaccinated", "n_control", "cases_control")
    )
    log_share = math.log(0.5 if data["half_in_control"] else 1.0)

    def log_prior(u: Array) -> Array:
        hyper, e, i = u[:4], u[4 : 4 + trials], u[4 + trials :]
        effects = _normal(e, hyper[0], jnp.sqrt(softplus(hyper[1])))
        incidences = _normal(i, hyper[2], jnp.sqrt(softplus(hyper[3])))
        return _normal(hyper, 0.0, wide).sum() + effects.sum() + incidences.sum()

    def log_likelihood(u: Array) -> Array:
        e, i = u[4 : 4 + trials], u[4 + trials :]
        treated = k * (log_sigmoid(i) + log_sigmoid(-e)) + (n - k) * _log_not_both(i, -e)
        none = jnp.log1p(-0.5 * sigmoid(i)) if data["half_in_control"] else log_sigmoid(-i)
        control = cases * (log_share + log_sigmoid(i)) + (of - cases) * none
        return jnp.sum(_log_choose(n, k) + treated + _log_choose(of, cases) + control)

    def draw_prior(rng: np.random.Generator, count: int) -> FloatArray:
        hyper = rng.normal(0, wide, size=(count, 4))
        sd = np.sqrt(np.logaddexp(0, hyper[:, 1::2]))
        each = hyper[:, ::2, None] + sd[..., None] * rng.normal(size=(count, 2, trials))
        return np.hstack([hyper, each.reshape(count, -1)])

    return JaxDensity(4 + 2 * trials, log_prior, log_likelihood, draw_prior)


def _radiata_pine(data: Data) -> JaxDensity:
    """``stan/radiata_pine``: alpha, beta and the log of tau."""
    y, x = jnp.asarray(data["y"]), jnp.asarray(data["x"] - np.mean(data["x"]))
    centre, precision, shape, rate = np.array([3000.0, 185.0]), np.array([0.06, 6.0]), 3, 180_000.0

    def log_prior(u: Array) -> Array:
        gamma = shape * (math.log(rate) + u[2]) - math.lgamma(shape) - rate * jnp.exp(u[2])
        return gamma + _normal(u[:2], centre, jnp.exp(-0.5 * u[2]) / jnp.sqrt(precision)).sum()

    def log_likelihood(u: Array) -> Array:
        return _normal(y, u[0] + u[1] * x, jnp.exp(-0.5 * u[2])).sum()

    def draw_prior(rng: np.random.Generator, count: int) -> FloatArray:
        tau = rng.gamma(shape, 1 / rate, size=(count, 1))
        lines = centre + rng.normal(size=(count, 2)) / np.sqrt(precision * tau)
        return np.hstack([lines, np.log(tau)])

    return JaxDensity(3, log_prior, log_likelihood, draw_prior)


def _sensors(data: Data) -> JaxDensity:
    """``stan/sensors``: positions are not constrained."""
    count, known, y = int(data["S"]), jnp.asarray(data["known"]), jnp.asarray(data["y"])
    observed, missed = (np.asarray(data[name]) - 1 for name in ("observed", "missed"))

    def log_likelihood(x: Array) -> Array:
        at = jnp.concatenate([x.reshape(count, 2), known])

        def far(pairs: Any) -> Array:
            return jnp.sum((at[pairs[:, 0]] - at[pairs[:, 1]]) ** 2, axis=1) / data["R"] ** 2

        distances = _normal(y, data["R"] * jnp.sqrt(far(observed)), data["sigma"])
        unobserved = jnp.log(-jnp.expm1(-0.5 * far(missed)))
        return jnp.sum(distances - 0.5 * far(observed)) + jnp.sum(unobserved)

    return JaxDensity(
        2 * count,
        lambda x: _normal(x, 0.0, 10.0).sum(),
        log_likelihood,
        lambda rng, number: rng.normal(0, 10, size=(number, 2 * count)),
    )


DENSITIES: Mapping[str, Callable[[Data], JaxDensity]] = {
    "product": _product,
    "unequal_wells": _unequal_wells,
    "rockets": _rockets,
    "galaxies": _galaxies,
    "mrna": _mrna,
    "vaccines": _vaccines,
    "radiata_pine": _radiata_pine,
    "sensors": _sensors,
}
"""Makes the density of each program from its data, by the name of its folder."""
_NAMES = ", ".join(DENSITIES)
