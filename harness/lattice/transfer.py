"""Exact log Z of small Potts models: transfer matrices, Kaufman's closed form, enumeration.

Rows of a grid taken as one variable make a chain, whose sum is a product of matrices.

References
----------
Kaufman, B. (1949). Crystal statistics. II. Partition function evaluated by spinor analysis.
Physical Review 76, 1232-1243.

Murray, I. (2007). Advances in Markov chain Monte Carlo methods. PhD thesis, University College
London: section 1.1.4.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.lattice.graph import Graph, grid, torus
from harness.lattice.potts import all_states, checked_colours, log_weight

_MOST_STATES = {True: 4096, False: 2**18}
"""States of a row: of a torus, whose matrix is diagonalised, and of a grid, where it is applied."""


def enumerated_log_z(graph: Graph, colours: int, coupling: npt.ArrayLike) -> float:
    """Return log Z_P as a sum over all states.

    Parameters
    ----------
    graph
        A graph of few nodes.
    colours
        Number of colours q.
    coupling
        J, one number or one for each edge, shape (E,).
    """
    return float(logsumexp(log_weight(graph, all_states(graph.nodes, colours), coupling)))


def transfer_log_z(
    rows: int, columns: int, colours: int, coupling: float, *, periodic: bool
) -> float:
    """Return log Z_P of a grid or a torus, as a product of matrices over rows.

    Parameters
    ----------
    rows
        Number of rows, as large as you like.
    columns
        Number of columns, with colours^columns at most 4096 on a torus, and 2^18 on a grid.
    colours
        Number of colours q.
    coupling
        J.
    periodic
        Whether opposite borders meet, as in :func:`harness.lattice.graph.torus`, or are free.

    Raises
    ------
    DataError
        If the rows are too long, or a side of a torus is shorter than 2.
    """
    checked_colours(colours)
    if colours**columns > _MOST_STATES[periodic]:
        raise DataError(
            f"a row of {columns} nodes has {colours}^{columns} states, more than "
            f"{_MOST_STATES[periodic]}; swap rows and columns, or take a smaller model"
        )
    lattice = torus(rows, columns) if periodic else grid(rows, columns)
    # The edges of one row, which come first.
    within = Graph(columns, lattice.edges[: lattice.size][_in_first_row(lattice, columns)])
    states = all_states(columns, colours)
    inside = log_weight(within, states, coupling)
    if periodic:
        half = np.exp(0.5 * inside)
        differ = (states[:, None] != states[None]).sum(axis=-1)
        matrix = half[:, None] * np.exp(-coupling * differ) * half
        value = np.linalg.eigvalsh(matrix)
        largest = np.abs(value).max()
        return float(rows * np.log(largest) + np.log(np.sum((value / largest) ** rows)))
    log_total, vector = 0.0, np.exp(inside)
    between = np.exp(-coupling * (1 - np.eye(colours)))
    for _ in range(rows - 1):
        vector = np.exp(inside) * _to_next_row(vector, between, columns)
        log_total += math.log(vector.sum())
        vector /= vector.sum()
    return log_total + math.log(vector.sum())


def _in_first_row(graph: Graph, columns: int) -> npt.NDArray[np.bool_]:
    """Return which edges lie within the first row, including one that goes round."""
    return np.asarray((graph.edges < columns).all(axis=1))


def _to_next_row(vector: FloatArray, between: FloatArray, columns: int) -> FloatArray:
    """Apply the matrix between two rows, a product over columns, one column after the other."""
    table = vector.reshape((len(between),) * columns)
    for axis in range(columns):
        table = np.moveaxis(np.tensordot(between, table, axes=(1, axis)), 0, axis)
    return table.ravel()


def kaufman_log_z(rows: int, columns: int, coupling: float) -> float:
    """Return log Z_P of the Ising model (q = 2) on a torus, in closed form.

    With K = J / 2 and n columns, cosh g_l = cosh^2(2K) / sinh(2K) - cos(pi l / n), except
    g_0 = 2K + log tanh K; four products of 2 cosh or 2 sinh of m g_l / 2 over even or odd l add up
    (Kaufman 1949, eq. 61).

    Parameters
    ----------
    rows, columns
        Sides m and n, 2 or longer.
    coupling
        J, above 0, in the convention of eq. 1.4: twice the theta of exp(theta sum y_i y_j).

    Raises
    ------
    DataError
        If the coupling is not positive, or a side is shorter than 2.
    """
    if not coupling > 0 or min(rows, columns) < 2:
        raise DataError(
            f"Kaufman's sum needs J above 0 and sides of 2 or longer; got {coupling:g}, "
            f"{rows} x {columns}"
        )
    k = 0.5 * coupling
    level = np.arange(2 * columns)
    cosh = math.cosh(2 * k) ** 2 / math.sinh(2 * k) - np.cos(np.pi * level / columns)
    gamma = np.arccosh(np.maximum(cosh, 1.0))
    gamma[0] = 2 * k + math.log(math.tanh(k))
    half = 0.5 * rows * gamma
    log_terms, sign = [], []
    for some in (half[1::2], half[::2]):
        log_terms.append(np.sum(np.logaddexp(some, -some)))
        sign.append(1.0)
        size = np.abs(some)
        with np.errstate(divide="ignore"):
            log_terms.append(np.sum(size + np.log(-np.expm1(-2 * size))))
        sign.append(float(np.prod(np.sign(some))))
    nodes = rows * columns
    total = float(logsumexp(log_terms, b=sign))
    log_ising = -math.log(2) + 0.5 * nodes * math.log(2 * math.sinh(2 * k)) + total
    return log_ising - k * 2 * nodes
