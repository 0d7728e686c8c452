"""Exact sums over the 2^d_b states of a Boltzmann machine, and exact draws from them.

The state is split as s = (u, v, w) into a half u and two quarters v and w.  Given u, the quarters
interact only through one small table P(v, w), and every sum over the states becomes a matrix
product with it: for each u, the sum over (v, w) of P(v, w) exp(h_v(u)'v) exp(h_w(u)'w).  So only
2^(d_b/2) (2^(d_b/4) + ...) exponentials are needed instead of 2^d_b, and 2^30 states take a
fraction of a second.  All terms are positive, so nothing cancels.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.evidence import draw_index

MOST_UNITS = 30
"""Largest d_b.  Every two additional units take four times as long and twice the memory."""

_BLOCK = 4096  # values of u at a time; tables are then at most 4096 x 256, 8 MB each
_WIDEST_TABLE = 500.0  # nats between smallest and largest log P; beyond it, sums may underflow


@dataclass(frozen=True)
class ExactStates:
    """Normalising constant and moments of a Boltzmann machine, summed over all its states.

    Attributes
    ----------
    log_z
        log Z_b, in nats, where Z_b is the sum over s of exp(s'Ws/2 + b's).
    expected_s
        E[s], shape (d_b,).
    expected_ss
        E[ss'], shape (d_b, d_b).
    """

    log_z: float
    expected_s: FloatArray
    expected_ss: FloatArray
    _split: _Split
    _probability: FloatArray

    def draw(self, count: int, rng: np.random.Generator) -> FloatArray:
        """Draw states independently from the machine: u, then v given u, then w given both.

        Parameters
        ----------
        count
            Number of draws.
        rng
            Source of randomness.

        Returns
        -------
        FloatArray
            Entries -1 and 1, shape (count, d_b).
        """
        split = self._split
        u = split.u[rng.choice(len(split.u), size=count, p=self._probability)]
        drawn = []
        for half in _blocks(u):
            of_v, of_w = split.factors(half)
            v = _draw_column(of_v * (of_w @ split.table.T), rng)
            w = _draw_column(split.table[v] * of_w, rng)
            drawn.append(np.hstack([half, split.v[v], split.w[w]]))
        return np.concatenate(drawn) if drawn else np.empty((0, len(self.expected_s)))


def sum_states(weights: FloatArray, biases: FloatArray) -> ExactStates:
    """Sum over all states of the Boltzmann machine exp(s'Ws/2 + b's), s in {-1, 1}^d_b.

    Parameters
    ----------
    weights
        Symmetric matrix W with zero diagonal, shape (d_b, d_b).
    biases
        Shape (d_b,).

    Raises
    ------
    DataError
        If d_b > 30, or the weights are so large that the sum would underflow.
    """
    if len(biases) > MOST_UNITS:
        raise DataError(
            f"the states of a Boltzmann machine are summed up to d_b = {MOST_UNITS}; "
            f"got {len(biases)} units, that is 2^{len(biases)} states"
        )
    split = _Split(weights, biases)
    u, v, w = split.u, split.v, split.w
    log_bound = split.log_bound - split.log_bound.max()
    row = np.empty(len(u))  # sums over (v, w), relative to the largest bound
    pair = np.zeros_like(split.table)  # sums over u
    u_v, u_w = np.zeros((u.shape[1], v.shape[1])), np.zeros((u.shape[1], w.shape[1]))
    done = 0
    for half in _blocks(u):
        here = slice(done, done + len(half))
        done = here.stop
        of_v, of_w = split.factors(half)
        of_v *= np.exp(log_bound[here, None])
        joint_v = of_v * (of_w @ split.table.T)
        row[here] = joint_v.sum(axis=1)
        u_v += half.T @ (joint_v @ v)
        u_w += half.T @ ((of_w * (of_v @ split.table)) @ w)
        pair += of_v.T @ of_w
    total = float(row.sum())
    probability, rest = row / total, (pair * split.table / total).ravel()
    v_w = np.hstack([np.repeat(v, len(w), axis=0), np.tile(w, (len(v), 1))])
    across = np.hstack([u_v, u_w]) / total
    second = np.block(
        [
            [u.T @ (probability[:, None] * u), across],
            [across.T, v_w.T @ (rest[:, None] * v_w)],
        ]
    )
    first = np.concatenate([probability @ u, rest @ v_w])
    log_z = float(np.log(total) + split.log_bound.max())
    return ExactStates(log_z, first, second, split, probability)


class _Split:
    """The three parts of the state, their own log weights, and the coupling between them."""

    def __init__(self, weights: FloatArray, biases: FloatArray) -> None:
        d_b = len(biases)
        half, quarter = d_b // 2, (d_b - d_b // 2) // 2
        first, second = slice(0, half), slice(half, half + quarter)
        third = slice(half + quarter, d_b)
        self.u, self.v, self.w = (_states(n) for n in (half, quarter, d_b - half - quarter))
        self._to_v, self._to_w = weights[first, second], weights[first, third]
        log_table = (
            _log_weight(self.v, weights[second, second], biases[second])[:, None]
            + _log_weight(self.w, weights[third, third], biases[third])
            + self.v @ weights[second, third] @ self.w.T
        )
        if np.ptp(log_table) > _WIDEST_TABLE:
            raise DataError(
                "the weights of this Boltzmann machine are too large to sum over its states: "
                f"half its units alone span {np.ptp(log_table):.0f} nats"
            )
        self.table = np.exp(log_table - log_table.max())
        # For each u: its own weight, times the largest value that the other factors could take.
        coupling = np.abs(self.u @ self._to_v).sum(axis=1) + np.abs(self.u @ self._to_w).sum(axis=1)
        own = _log_weight(self.u, weights[first, first], biases[first])
        self.log_bound: FloatArray = own + coupling + log_table.max()

    def factors(self, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return exp(h_v'v) and exp(h_w'w) for each u, relative to their largest values."""
        of_v, of_w = u @ self._to_v, u @ self._to_w
        return (
            np.exp(of_v @ self.v.T - np.abs(of_v).sum(axis=1, keepdims=True)),
            np.exp(of_w @ self.w.T - np.abs(of_w).sum(axis=1, keepdims=True)),
        )


def _states(units: int) -> FloatArray:
    """Return all states of some units, shape (2^units, units)."""
    bits = (np.arange(2**units)[:, None] >> np.arange(units)) & 1
    return np.asarray(1 - 2 * bits, dtype=np.float64)


def _log_weight(states: FloatArray, weights: FloatArray, biases: FloatArray) -> FloatArray:
    """Return s'Ws/2 + b's of each state."""
    value: FloatArray = np.sum((0.5 * states @ weights + biases) * states, axis=1)
    return value


def _blocks(rows: FloatArray) -> Iterator[FloatArray]:
    return (rows[i : i + _BLOCK] for i in range(0, len(rows), _BLOCK))


def _draw_column(weight: FloatArray, rng: np.random.Generator) -> npt.NDArray[np.intp]:
    """Draw a column in each row with probabilities proportional to the row's entries."""
    with np.errstate(divide="ignore"):  # a state whose weight underflows is not drawn
        return draw_index(np.log(weight), rng)
