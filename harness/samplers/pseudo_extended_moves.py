"""Pseudo-extended MCMC by moves other than NUTS, with inverse temperatures of each in a range.

Algorithm 1 of Nemeth et al. (2019) is Hamiltonian Monte Carlo with fixed steps on the extended
density; random-walk Metropolis and slice sampling move on the same density.

Pseudo-sample i has an inverse temperature beta_i within a range R_i of its own: the same for all
(as in the paper), a stratum of [lowest, 1], or a single value, so that the ranges are a ladder.
With q_i(x, beta) = gamma_beta(x) on R_i, of mass C_i, and pi_i the uniform density on R_i, the
extended density is

    sum_i a_i gamma(x_i) pi_i(beta_i) prod_(j != i) q_j(x_j, beta_j).

Term i has mass a_i Z prod_(j != i) C_j, so i is the chosen pseudo-sample with probability
proportional to a_i / C_i; given that, x_i follows the target and the others follow their q_j.  So
the weights w_i proportional to a_i gamma(x_i) pi_i(beta_i) / q_i(x_i, beta_i), normalised within a
draw, are right whatever the ranges and a_i are.  What equal ranges give besides is exchangeability:
all i are chosen equally often.  With different ranges and equal a_i nearly always the one with the
smallest C_i is chosen, and tempering is of no use; so warm-up then adapts a_i until all are chosen
equally often (:mod:`harness.samplers.flat_weights`).

References
----------
Nemeth, C., Lindsten, F., Filippone, M. and Hensman, J. (2019). Pseudo-extended Markov chain
Monte Carlo. Advances in Neural Information Processing Systems 32, section 3 and supplement B.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from harness.arrays import FloatArray, LogDensity
from harness.errors import DataError
from harness.fit import Fit
from harness.forms.method import python_method
from harness.model import Model
from harness.model.python_target import Target, function_target, target_of
from harness.path.data import require_finite_mass
from harness.path.gaussian import GaussianBase, gaussian_base
from harness.samplers.flat_weights import FlatWeights
from harness.samplers.geometric_path import GeometricPath
from harness.samplers.kernels import Hmc, Kernel, StepSizes
from harness.samplers.result import Spent, pseudo_sample_fit

METHOD = "pseudo_extended_moves"
# Lowest and highest inverse temperature of a pseudo-sample; equal if it is fixed.
Range = tuple[float, float]

_WIDEST_START = 2.0  # Stan's initial values too are uniform between -2 and 2


def strata(number: int, lowest: float = 0.0, highest: float = 1.0) -> tuple[Range, ...]:
    """Cut a range of inverse temperatures into equal ones, one for each pseudo-sample.

    Parameters
    ----------
    number
        Number N of pseudo-samples.
    lowest, highest
        Ends of the whole range.
    """
    ends = np.linspace(lowest, highest, number + 1).tolist()
    return tuple(pairwise(ends))


class ExtendedDensity:
    """Log density of pseudo-samples and the logits of their places in their ranges.

    Points have N D + S coordinates: x_1, ..., x_N, and then u_i of each of the S pseudo-samples
    whose inverse temperature is not fixed, beta_i = lowest_i + (highest_i - lowest_i) / (1 +
    exp(-u_i)).

    Parameters
    ----------
    target
        Log densities (n,) and gradients (n, D) of gamma at points (n, D).
    dimension
        D.
    ranges
        Range of each pseudo-sample's inverse temperature.
    base
        Base at beta = 0 and the guess at Z; None for pure tempering, b = 1 and zeta = 1.

    Attributes
    ----------
    log_a
        Logs of a_i, shape (N,); they may be changed.
    """

    def __init__(
        self,
        target: LogDensity,
        dimension: int,
        ranges: Sequence[Range],
        base: GaussianBase | None = None,
    ) -> None:
        self._target, self._dimension, self._base = target, dimension, base
        self._lowest, highest = np.array(ranges, dtype=np.float64).T
        self._width = highest - self._lowest
        self._moving = np.flatnonzero(self._width > 0)
        self.log_a = np.zeros(len(ranges))
        self.size = len(ranges) * dimension + len(self._moving)

    def __call__(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return log densities (n,) and gradients (n, N D + S) at points (n, N D + S)."""
        x, u = self.split(points)
        log_gamma, slope, log_base, base_slope = self._ends(x)
        beta, spread = self._inv_temp(u)
        log_w = self._log_weight(log_gamma, log_base, beta)
        rise = log_gamma - log_base
        log_q = log_base + beta * rise
        top = log_w.max(axis=1, keepdims=True)
        share = np.exp(log_w - top)
        total = share.sum(axis=1, keepdims=True)
        share /= total
        value = (top + np.log(total))[:, 0] + log_q.sum(axis=1)
        # Of log sum_i w_i + sum_i log q_i, where w_i is the target's density over q_i.
        along = (share + (1 - share) * beta)[..., None] * slope
        along += ((1 - share) * (1 - beta))[..., None] * base_slope
        free = u[:, self._moving]
        value -= (np.logaddexp(0, free) + np.logaddexp(0, -free)).sum(axis=1)
        of_u = ((1 - share) * rise * spread)[:, self._moving] - np.tanh(free / 2)
        return value, np.hstack([along.reshape(len(points), -1), of_u])

    def split(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return x, shape (n, N, D), and u, shape (n, N), which is 0 where beta is fixed."""
        number = len(self._lowest)
        inner = number * self._dimension
        u = np.zeros((len(points), number))
        u[:, self._moving] = points[:, inner:]
        return points[:, :inner].reshape(len(points), number, self._dimension), u

    def weights(self, points: FloatArray) -> dict[str, FloatArray]:
        """Return ``inv_temp``, ``delta`` and ``log_weight``, each (n, N), at points."""
        x, u = self.split(points)
        log_gamma, _, log_base, _ = self._ends(x)
        beta, _ = self._inv_temp(u)
        return {
            "inv_temp": beta,
            "delta": log_base - log_gamma,
            "log_weight": self._log_weight(log_gamma, log_base, beta),
        }

    def _ends(self, x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Log gamma - log zeta and log b, each (n, N), with their gradients (n, N, D)."""
        shape, flat = x.shape, x.reshape(-1, self._dimension)
        log_gamma, slope = self._target(flat)
        if self._base is None:
            log_base, base_slope = np.zeros(shape[:2]), np.zeros(shape)
        else:
            log_gamma = log_gamma - self._base.log_zeta
            log_base = self._base.log_density(flat).reshape(shape[:2])
            base_slope = self._base.log_density_gradient(flat).reshape(shape)
        return log_gamma.reshape(shape[:2]), slope.reshape(shape), log_base, base_slope

    def _inv_temp(self, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Inverse temperatures and their derivatives with respect to u, each (n, N)."""
        place = 0.5 * (1 + np.tanh(u / 2))
        return self._lowest + self._width * place, self._width * place * (1 - place)

    def _log_weight(
        self, log_gamma: FloatArray, log_base: FloatArray, beta: FloatArray
    ) -> FloatArray:
        """Log a_i gamma pi_i / q_i; pi_i is one over the width, which du's Jacobian takes out."""
        log_pi = np.zeros(len(self._width))
        log_pi[self._moving] = -np.log(self._width[self._moving])
        log_weight: FloatArray = self.log_a + log_pi + (1 - beta) * (log_gamma - log_base)
        return log_weight


def pseudo_extended_moves(
    what: Model | Target,
    base: GaussianBase | None = None,
    *,
    ranges: Sequence[Range] = ((0.0, 1.0), (0.0, 1.0)),
    kernel: Kernel | None = None,
    moves: int = 1,
    chains: int = 10,
    draws: int = 1000,
    warmup: int = 500,
    step_size: float | None = None,
    seed: int,
) -> Fit:
    """Sample the pseudo-extended density by a kernel with a unit metric, many chains at once.

    Parameters
    ----------
    what
        Model or target.
    base
        Base at beta = 0, with a guess at log Z; None for pure tempering.
    ranges
        Lowest and highest inverse temperature of each of the N pseudo-samples, uniform between
        them; the two are equal where it is fixed.  See :func:`strata`.
    kernel
        Moves; by default HMC with 20 leapfrog steps and fixed step sizes, Algorithm 1 of the paper.
    moves
        Moves in each iteration, of which the last is kept.
    chains, draws, warmup
        Number of chains, which run side by side, iterations that are kept, and those before.
    step_size
        In units of x and of the logits u, which share it; if not given, warm-up tunes it.
    seed
        Seed; the same seed gives the same fit.

    Returns
    -------
    Fit
        A fit like that of a pseudo-extended run by NUTS.  A gradient is one of the extended
        density, which takes N of the target.  The attribute ``log_share`` holds log a_i.  Log Z
        needs a base and ranges that are all from 0 to 1.

    Raises
    ------
    DataError
        If a count is too small, a range lies outside [0, 1] or has its ends in the wrong order,
        pure tempering has infinite mass there, or the density is zero at a starting point.
    """
    if min(chains, draws, moves) < 1 or warmup < 0:
        raise DataError(
            "this needs one chain, one draw and one move or more, and no negative warm-up; got "
            f"{chains}, {draws}, {moves} and {warmup}"
        )
    table = _checked_ranges(ranges)
    if base is None and isinstance(what, Model) and len(table) > 1:
        require_finite_mass(what, None, min(low for low, _ in table))
    kernel = kernel or Hmc(leapfrog_steps=20, jitter=0.0)
    target, rng = target_of(what), np.random.default_rng(seed)
    path_settings = _base_settings(target, base, seed, chains)
    density = ExtendedDensity(target.log_density, target.dimension, table, base)
    # The extended density is the end of a path whose base only provides the unit metric.
    path = GeometricPath(
        function_target(target.name, density, density.size),
        gaussian_base(np.zeros(density.size), np.eye(density.size)),
    )
    start = rng.uniform(-_WIDEST_START, _WIDEST_START, (chains, density.size))
    if base is not None:
        number = len(table)
        inner = number * target.dimension
        start[:, :inner] = base.sample(rng, chains * number).reshape(chains, inner)
    state = path.start(start)
    steps = StepSizes(1, step_size or 0.1, kernel.target_acceptance)
    group = np.zeros(chains, dtype=np.intp)
    unlike = len(set(table)) > 1
    flat = FlatWeights(np.full(len(table), 1 / len(table)), warmup * moves) if unlike else None
    kept = np.empty((chains, draws, density.size))
    log_density, acceptance = np.empty((2, chains, draws))
    for iteration in range(warmup + draws):
        warming = iteration < warmup
        for _ in range(moves):
            learning = warming and step_size is None
            size = steps.current(group) if learning else steps.tuned(group)
            moved = kernel.move(path, state, 1.0, size, rng)
            state = moved.state
            if learning:
                steps.learn(group, moved.acceptance)
            if warming and flat is not None:
                log_weight = density.weights(state.points)["log_weight"]
                path.cost.gradients += chains
                flat.learn(np.exp(log_weight - np.logaddexp.reduce(log_weight, axis=1)[:, None]))
                density.log_a = flat.value
                state = path.state(state.points)  # whose density is another one now
        if not warming:
            kept[:, iteration - warmup] = state.points
            log_density[:, iteration - warmup] = state.log_gamma
            acceptance[:, iteration - warmup] = moved.acceptance
    points = kept.reshape(-1, density.size)
    x = density.split(points)[0].reshape(chains, draws, len(table), target.dimension)
    generated = density.weights(points)
    return pseudo_sample_fit(
        METHOD,
        Spent(target, path.cost),
        np.ascontiguousarray(x),
        {name: value.reshape(chains, draws, -1) for name, value in generated.items()},
        settings={
            "num_pseudo_samples": len(table),
            "inv_temp_ranges": [list(each) for each in table],
            "inv_temp": None,
            **path_settings,
            "log_g": [[min(low for low, _ in table), 0.0], [1.0, 0.0]],
            "kernel": repr(kernel),
            "moves": moves,
            "chains": chains,
            "draws": draws,
            "warmup": warmup,
            "step_size": step_size,
        },
        seed=seed,
        stats={"lp": log_density, "acceptance_rate": acceptance},
        found={"tuned_step_size": float(steps.tuned(group)[0]), "log_share": density.log_a},
    )


def _base_settings(
    target: Target, base: GaussianBase | None, seed: int, rows: int
) -> dict[str, Any]:
    if base is None:
        return {"normalised_base": False, "base": None, "log_zeta": 0.0}
    path = GeometricPath(target, base)
    return path.base_settings(path.base_mass(seed, rows, ladder=False))


def _checked_ranges(ranges: Sequence[Range]) -> tuple[Range, ...]:
    table = np.asarray(ranges, dtype=np.float64)
    if table.ndim != 2 or table.shape[1:] != (2,) or not len(table):
        raise DataError("ranges are pairs (lowest, highest), one for each pseudo-sample")
    if not (np.all(table >= 0) and np.all(table <= 1) and np.all(table[:, 0] <= table[:, 1])):
        raise DataError(f"ranges of inverse temperatures ascend within [0, 1]; got {ranges}")
    return tuple((float(low), float(high)) for low, high in table)


PSEUDO_EXTENDED_MOVES = python_method(METHOD, pseudo_extended_moves)
