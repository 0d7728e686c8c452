"""The tempered path between a base and a target, for many chains at once.

A chain's place on it is a row of a :class:`State`, which holds log densities and gradients of base
and target apart, so that a change of inverse temperature costs no evaluation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.evidence import LogMass, log_base_mass
from harness.model.python_target import Target
from harness.path.gaussian import GaussianBase
from harness.samplers.cost import Cost

Metric = Literal["base", "unit"]
"""In what units kernels move: standard deviations of the base, along its axes, or those of x."""

_MOST_TRIES = 200  # of a chain, for a starting point within the support
_MASS_DRAWS = 4096  # of the base, for its mass within the target's support


@dataclass(frozen=True)
class State:
    """Points of n chains and what is known there.

    Attributes
    ----------
    points
        Shape (n, D).
    log_gamma, log_base
        Log densities of target and base, shape (n,).
    log_gamma_gradient, log_base_gradient
        Their gradients, shape (n, D).
    """

    points: FloatArray
    log_gamma: FloatArray
    log_base: FloatArray
    log_gamma_gradient: FloatArray
    log_base_gradient: FloatArray

    def where(self, chosen: npt.NDArray[np.bool_], other: State) -> State:
        """Return this state's rows where ``chosen``, shape (n,), and the other's elsewhere."""
        column = chosen[:, None]
        return State(
            np.where(column, self.points, other.points),
            np.where(chosen, self.log_gamma, other.log_gamma),
            np.where(chosen, self.log_base, other.log_base),
            np.where(column, self.log_gamma_gradient, other.log_gamma_gradient),
            np.where(column, self.log_base_gradient, other.log_base_gradient),
        )

    def take(self, rows: npt.NDArray[np.intp] | slice) -> State:
        """Return some rows, in some order, perhaps repeatedly."""
        return State(
            self.points[rows],
            self.log_gamma[rows],
            self.log_base[rows],
            self.log_gamma_gradient[rows],
            self.log_base_gradient[rows],
        )

    def put(self, rows: npt.NDArray[np.intp], other: State) -> State:
        """Return this state with some rows replaced by another's, one each."""
        whole = State(
            self.points.copy(),
            self.log_gamma.copy(),
            self.log_base.copy(),
            self.log_gamma_gradient.copy(),
            self.log_base_gradient.copy(),
        )
        whole.points[rows] = other.points
        whole.log_gamma[rows] = other.log_gamma
        whole.log_base[rows] = other.log_base
        whole.log_gamma_gradient[rows] = other.log_gamma_gradient
        whole.log_base_gradient[rows] = other.log_base_gradient
        return whole

    def followed_by(self, other: State) -> State:
        """Return this state's rows and then the other's."""
        return State(
            np.concatenate([self.points, other.points]),
            np.concatenate([self.log_gamma, other.log_gamma]),
            np.concatenate([self.log_base, other.log_base]),
            np.concatenate([self.log_gamma_gradient, other.log_gamma_gradient]),
            np.concatenate([self.log_base_gradient, other.log_base_gradient]),
        )


class GeometricPath:
    """Geometric path log gamma_beta = beta (log gamma - log zeta) + (1 - beta) log b.

    Parameters
    ----------
    target
        What it ends in, at beta = 1.
    base
        What it starts from, at beta = 0, and the guess at log Z.
    metric
        ``base``: kernels propose moves of the base's shape, and HMC's mass matrix is the inverse of
        the base's covariance; ``unit``: moves are isotropic, and the mass matrix is the identity.

    Attributes
    ----------
    cost
        Evaluations of the target's log density so far.

    Raises
    ------
    DataError
        If their dimensions differ, or there is no such metric.

    References
    ----------
    Graham and Storkey (2017), eq. 14.
    """

    def __init__(self, target: Target, base: GaussianBase, metric: Metric = "base") -> None:
        if base.mean.size != target.dimension:
            raise DataError(
                f"the base has dimension {base.mean.size}, the target {target.name} "
                f"{target.dimension}"
            )
        if metric not in get_args(Metric):
            raise DataError(f"the metric is base or unit; got {metric!r}")
        self.target = target
        self.base = base
        self.metric = metric
        self.cost = Cost()
        # Solved once: the base is evaluated with every step.
        self._whiten = np.linalg.inv(base.cholesky)
        self._log_scale = float(
            np.log(np.diag(base.cholesky)).sum() + 0.5 * base.mean.size * np.log(2 * np.pi)
        )

    @property
    def axes(self) -> FloatArray:
        """Directions of the metric's units in x, as rows, shape (D, D)."""
        return np.eye(self.base.mean.size) if self.metric == "unit" else self.base.cholesky.T

    def moved_by(self, momentum: FloatArray) -> FloatArray:
        """Return changes of x for vectors in the metric's units, both (n, D)."""
        return momentum if self.metric == "unit" else momentum @ self.base.cholesky.T

    def force(self, gradient: FloatArray) -> FloatArray:
        """Return gradients with respect to coordinates in the metric's units, both (n, D)."""
        return gradient if self.metric == "unit" else gradient @ self.base.cholesky

    def state(self, points: FloatArray) -> State:
        """Evaluate base and target, and count it as one gradient a chain."""
        log_gamma, gradient = self.target.log_density(points)
        self.cost.gradients += len(points)
        z = (points - self.base.mean) @ self._whiten.T
        log_base = -0.5 * np.square(z).sum(axis=1) - self._log_scale
        return State(points, log_gamma, log_base, gradient, -z @ self._whiten)

    def start(self, points: FloatArray) -> State:
        """Evaluate where chains start.

        Raises
        ------
        DataError
            If there are no chains, a point has the wrong dimension, or the target's density is
            zero or not finite at one.
        """
        if points.ndim != 2 or not len(points) or points.shape[1] != self.target.dimension:
            raise DataError(
                f"chains start from points of shape (n, {self.target.dimension}) with n >= 1; got "
                f"{points.shape}"
            )
        state = self.state(np.array(points, dtype=np.float64))
        if not np.all(np.isfinite(state.log_gamma)):
            bad = int(np.count_nonzero(~np.isfinite(state.log_gamma)))
            raise DataError(
                f"the density of {self.target.name} is zero or not finite at {bad} of "
                f"{len(points)} starting points: give others"
            )
        return state

    def start_at_base(self, rng: np.random.Generator, count: int) -> State:
        """Draw where chains start from the base within the target's support.

        Raises
        ------
        DataError
            If there are no chains, or hardly any of the base lies within the support.
        """
        points = self.base.sample(rng, max(count, 0))
        outside = np.arange(len(points))
        for _ in range(_MOST_TRIES):
            value, _ = self.target.log_density(points[outside])
            self.cost.densities += len(outside)
            outside = outside[~np.isfinite(value)]
            if not len(outside):
                return self.start(points)
            points[outside] = self.base.sample(rng, len(outside))
        raise DataError(
            f"{len(outside)} of {count} chains found no starting point of {self.target.name} in "
            f"{_MOST_TRIES} draws of the base each: choose a base within its support"
        )

    def log_gamma(self, points: FloatArray) -> FloatArray:
        """Evaluate the target alone, (n,), and count it as one density a chain."""
        value, _ = self.target.log_density(points)
        self.cost.densities += len(points)
        # NaN compares as false with everything; outside the support it is refused as it should be.
        return np.where(np.isnan(value), -np.inf, value)

    def log_density(self, state: State, inv_temp: npt.ArrayLike) -> FloatArray:
        """Log gamma_beta of each chain at its inverse temperature, (n,) or one for all.

        At beta = 0 it is the base's also where the target's density is zero; what is not a number
        counts as no density at any beta.
        """
        beta = np.asarray(inv_temp, dtype=np.float64)
        possible = np.isfinite(state.log_gamma)
        height = np.where(possible, state.log_gamma, 0.0)
        value = beta * (height - self.base.log_zeta) + (1 - beta) * state.log_base
        at_base = (beta == 0) & (state.log_gamma == -np.inf)
        return np.where(possible, value, np.where(at_base, state.log_base, -np.inf))

    def gradient(self, state: State, inv_temp: npt.ArrayLike) -> FloatArray:
        """Gradient of :meth:`log_density`, shape (n, D)."""
        beta = np.asarray(inv_temp, dtype=np.float64)[..., None]
        # Where the target's density is zero its gradient need not be a number.
        own = state.log_gamma_gradient
        if not np.all(beta > 0):
            own = np.where(beta > 0, own, 0.0)
        slope: FloatArray = beta * own + (1 - beta) * state.log_base_gradient
        return slope

    def delta(self, state: State) -> FloatArray:
        """Delta = log b + log zeta - log gamma of each chain, (n,); +inf outside the support."""
        difference: FloatArray = state.log_base + self.base.log_zeta - state.log_gamma
        return difference

    def base_mass(self, seed: int, rows: int, *, ladder: bool) -> LogMass:
        """Estimate the share of the base's mass that chains along the path reach.

        Parameters
        ----------
        seed
            Seed; the draws of the base have a stream of their own.
        rows
            Points that are evaluated at once.
        ladder
            Whether chains stand at beta = 0 itself, as those on a ladder do: there a target's
            density of zero keeps nobody out, but one that is not a number.
        """
        rng = np.random.default_rng([seed, 6])
        reached = []
        for _ in range(-(-_MASS_DRAWS // rows)):
            value, _ = self.target.log_density(self.base.sample(rng, rows))
            self.cost.densities += rows
            reached.append(np.isfinite(value) | (ladder & (value == -np.inf)))
        inside = np.concatenate(reached)[None]
        if not inside.any():  # chains have started inside, so that it is not none
            return LogMass(float(np.log(0.5 / inside.size)), float(np.sqrt(2)))
        return log_base_mass(inside)

    def base_settings(self, mass: LogMass) -> dict[str, Any]:
        """Return what a fit remembers of the base and of the share that the path reaches."""
        return {
            "normalised_base": True,
            "base": [self.base.mean.tolist(), self.base.cholesky.tolist()],
            "base_mass": [mass.value, mass.mcse],
            # The mean of what is left is that of the whole only where next to nothing is lost.
            "base_mean": self.base.mean.tolist() if mass.nearly_whole else None,
            "log_zeta": self.base.log_zeta,
        }
