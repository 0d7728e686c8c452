"""Boltzmann machines and their Gaussian mixture relaxations, with exact moments and draws.

References
----------
Graham, M. M. and Storkey, A. J. (2017). Continuously tempered Hamiltonian Monte Carlo.
Uncertainty in Artificial Intelligence, section 7.2 and appendix B.
Nemeth, C., Lindsten, F., Filippone, M. and Hensman, J. (2019). Pseudo-extended Markov chain
Monte Carlo. Advances in Neural Information Processing Systems 32, section 4.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.folders import shipped
from harness.model import Model, TrueValue, Truth
from harness.model.truth import Expectations, without_error
from harness.models.boltzmann_diagonal import optimal_diagonal
from harness.models.boltzmann_states import ExactStates, sum_states

RELATIVE_RANK = 1e-7
"""Eigenvalues of W + D below this share of the largest count as zero, which reduces d."""

_FACTORS = 512  # so many factors between 1 and 2 have a finite product, so one log serves for all


@dataclass(frozen=True)
class BoltzmannMachine:
    """Distribution proportional to exp(s'Ws/2 + b's) on s in {-1, 1}^d_b.

    Attributes
    ----------
    weights
        W, symmetric with zero diagonal, shape (d_b, d_b).
    biases
        b, shape (d_b,).

    Raises
    ------
    DataError
        If shapes do not match, a number is not finite, or W is not symmetric with zero diagonal.
    """

    weights: FloatArray
    biases: FloatArray

    def __post_init__(self) -> None:
        units = self.biases.size
        if self.biases.shape != (units,) or units == 0 or self.weights.shape != (units, units):
            raise DataError(
                "a Boltzmann machine needs weights (d_b, d_b) and biases (d_b,); got shapes "
                f"{self.weights.shape} and {self.biases.shape}"
            )
        if not (np.all(np.isfinite(self.weights)) and np.all(np.isfinite(self.biases))):
            raise DataError("a weight or bias of the Boltzmann machine is not finite")
        if np.any(np.diag(self.weights) != 0):
            raise DataError("the weights of a Boltzmann machine must have a zero diagonal")
        if not np.allclose(self.weights, self.weights.T, rtol=1e-10, atol=1e-12):
            raise DataError("the weights of a Boltzmann machine must be symmetric")


@dataclass(frozen=True)
class BoltzmannRelaxation:
    """Density on R^d proportional to exp(-x'x/2) prod_k cosh(q_k'x + b_k); made by :func:`relax`.

    If s is drawn from the machine and x | s ~ N(Q's, I), it is the marginal density of x: a
    mixture of 2^d_b Gaussians (Graham and Storkey 2017, eq. 50).

    Attributes
    ----------
    machine
        The Boltzmann machine.
    diagonal
        Diagonal of D, shape (d_b,).
    q
        Q with QQ' = W + D, shape (d_b, d): the eigenvectors times the square roots of the
        eigenvalues, in descending order, so that the first coordinates of x are the leading
        directions.
    """

    machine: BoltzmannMachine
    diagonal: FloatArray
    q: FloatArray

    def model(self, name: str) -> Model:
        """Return the relaxation as a model, with :attr:`truth`."""
        data: dict[str, Any] = {
            "D": self.q.shape[1],
            "D_b": self.q.shape[0],
            "Q": self.q,
            "b": self.machine.biases,
        }
        return Model(
            name,
            shipped("stan") / "boltzmann",
            data,
            ("x",),
            self.q.shape[1],
            own_base="improper",
            log_density=self.log_density_and_gradient,
            truth=self.truth,
        )

    def log_density_and_gradient(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return log densities and gradients at many points (eq. 51), for Python-driven samplers.

        Parameters
        ----------
        points
            Shape (n, d).

        Returns
        -------
        tuple of FloatArray
            sum_k log cosh(q_k'x + b_k) - x'x / 2, shape (n,), and its gradients, shape (n, d).
        """
        y = points @ self.q.T
        y += self.machine.biases
        # log cosh y = |y| + log(1 + exp(-2 |y|)) - log 2, which is precise for large y of any sign.
        size = np.abs(y)
        decay = np.exp(-2 * size)
        factor = 1 + decay
        value = size.sum(axis=1) - 0.5 * np.einsum("ij,ij->i", points, points)
        for first in range(0, factor.shape[1], _FACTORS):
            value += np.log(factor[:, first : first + _FACTORS].prod(axis=1))
        slope = np.copysign((1 - decay) / factor, y)  # tanh y
        gradient: FloatArray = slope @ self.q - points
        return value - factor.shape[1] * np.log(2), gradient

    def log_z_from(self, machine_log_z: float) -> float:
        """Return the log Z that belongs to the machine's log Z_b or to a bound on it (eq. 52)."""
        d_b, d = self.q.shape
        constant = (self.diagonal.sum() + d * np.log(2 * np.pi)) / 2 - d_b * np.log(2)
        return machine_log_z + float(constant)

    @cached_property
    def truth(self) -> Truth:
        """Log Z; ``x``: E[x], shape (d,); ``x_outer``: E[xx'], shape (d, d).

        They are of the density with these Q and b, that is of W + D = QQ' without the eigenvalues
        that were dropped.
        """
        return Truth("sum over all states", self._log_evidence, self._expectations)

    @cached_property
    def _answers(self) -> tuple[float, FloatArray, FloatArray]:
        exact = relaxation_of(self.q, self.machine.biases).exact()
        # The tables over states are not kept: they would hold memory for nothing.
        return exact.log_z, exact.expected_x, exact.expected_xx

    def _log_evidence(self) -> TrueValue[float]:
        return TrueValue(self._answers[0], 0.0)

    def _expectations(self) -> Expectations:
        _, first, second = self._answers
        return {"x": without_error(first), "x_outer": without_error(second)}

    def exact(self) -> ExactRelaxation:
        """Return exact moments and draws, by a sum over all states of the machine.

        Raises
        ------
        DataError
            If d_b > 30; see :func:`harness.models.boltzmann_states.sum_states`.
        """
        return ExactRelaxation(self, sum_states(self.machine.weights, self.machine.biases))


@dataclass(frozen=True)
class ExactRelaxation:
    """Exact normalising constant, moments and draws of a relaxation.

    Attributes
    ----------
    relaxation
        The relaxation.
    states
        Sums over the states of the machine itself.
    """

    relaxation: BoltzmannRelaxation
    states: ExactStates

    @property
    def log_z(self) -> float:
        """Log Z of exp(-x'x/2) prod_k cosh(q_k'x + b_k), in nats (eq. 52)."""
        return self.relaxation.log_z_from(self.states.log_z)

    @property
    def expected_x(self) -> FloatArray:
        """E[x] = Q'E[s], shape (d,) (eq. 53)."""
        moment: FloatArray = self.relaxation.q.T @ self.states.expected_s
        return moment

    @property
    def expected_xx(self) -> FloatArray:
        """E[xx'] = Q'E[ss']Q + I, shape (d, d) (eq. 54)."""
        q = self.relaxation.q
        moment: FloatArray = q.T @ self.states.expected_ss @ q + np.eye(q.shape[1])
        return moment

    @property
    def covariance(self) -> FloatArray:
        """Covariance of x, shape (d, d)."""
        covariance: FloatArray = self.expected_xx - np.outer(self.expected_x, self.expected_x)
        return covariance

    def draw(self, count: int, rng: np.random.Generator) -> FloatArray:
        """Draw x independently from the relaxation, shape (count, d): s exactly, then x | s."""
        mean = self.states.draw(count, rng) @ self.relaxation.q
        draws: FloatArray = mean + rng.standard_normal(mean.shape)
        return draws


def relaxation_of(q: FloatArray, biases: FloatArray) -> BoltzmannRelaxation:
    """Return the relaxation whose density has these data, with W + D = QQ'.

    Parameters
    ----------
    q
        Q, shape (d_b, d).
    biases
        b, shape (d_b,).
    """
    factor = np.ascontiguousarray(q)
    product = factor @ factor.T
    diagonal = np.diag(product).copy()
    np.fill_diagonal(product, 0)
    return BoltzmannRelaxation(
        BoltzmannMachine((product + product.T) / 2, biases), diagonal, factor
    )


def generate(
    num_units: int,
    rng: np.random.Generator,
    *,
    eigenvalue_scale: float = 6.0,
    eigenvalue_slope: float = 2.0,
    bias_sd: float = 0.1,
) -> BoltzmannMachine:
    """Draw a machine by the papers' recipe (Graham and Storkey 2017, appendix B).

    W is R diag(e) R' with its diagonal set to zero.  R is a uniformly distributed orthogonal
    matrix, e_i = scale tanh(slope eta_i) with eta_i ~ N(0, 1), and b_i ~ N(0, sd^2).

    Parameters
    ----------
    num_units
        Number d_b of units, 2 or more.
    rng
        Source of randomness, from which R, eta and b are drawn in this order.
    eigenvalue_scale, eigenvalue_slope, bias_sd
        The constants of the recipe; the defaults are those of the papers.

    Raises
    ------
    DataError
        If there are fewer than 2 units.
    """
    if num_units < 2:
        raise DataError(f"a Boltzmann machine needs 2 units or more; got {num_units}")
    # Uniform except for the signs of its columns, which cancel in W.
    rotation = np.linalg.qr(rng.standard_normal((num_units, num_units)))[0]
    eigenvalue = eigenvalue_scale * np.tanh(eigenvalue_slope * rng.standard_normal(num_units))
    weights = (rotation * eigenvalue) @ rotation.T
    weights = (weights + weights.T) / 2
    np.fill_diagonal(weights, 0)
    return BoltzmannMachine(weights, bias_sd * rng.standard_normal(num_units))


def relax(machine: BoltzmannMachine, diagonal: npt.ArrayLike | None = None) -> BoltzmannRelaxation:
    """Return the relaxation of a machine.

    Parameters
    ----------
    machine
        The Boltzmann machine.
    diagonal
        Diagonal of D, shape (d_b,), for which W + D is positive semi-definite.  If not given, the
        one that minimises the largest eigenvalue of W + D.

    Raises
    ------
    DataError
        If the diagonal does not have this shape or W + D has a negative eigenvalue, or if all
        weights are zero.
    """
    if diagonal is None:
        chosen = optimal_diagonal(machine.weights).diagonal
    else:
        chosen = np.array(diagonal, dtype=np.float64)
    if chosen.shape != machine.biases.shape or not np.all(np.isfinite(chosen)):
        raise DataError(
            f"the diagonal needs {machine.biases.size} finite values; got shape {chosen.shape}"
        )
    eigenvalue, vector = np.linalg.eigh(machine.weights + np.diag(chosen))
    eigenvalue, vector = eigenvalue[::-1], vector[:, ::-1]
    threshold = RELATIVE_RANK * max(eigenvalue[0], 0.0)
    if eigenvalue[0] <= 0 or eigenvalue[-1] < -threshold:
        raise DataError(
            "W + D must be positive semi-definite and not zero; its eigenvalues reach from "
            f"{eigenvalue[-1]:.3g} to {eigenvalue[0]:.3g}: raise the diagonal"
        )
    kept = eigenvalue > threshold
    q = vector[:, kept] * np.sqrt(eigenvalue[kept])
    q *= np.sign(q[np.abs(q).argmax(axis=0), np.arange(q.shape[1])])  # LAPACK's signs vary
    return BoltzmannRelaxation(machine, chosen, q)
