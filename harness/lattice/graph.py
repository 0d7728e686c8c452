"""Graphs of a lattice model: edges, neighbours, and groups of nodes without edges between them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from harness.errors import DataError

# Numbers of nodes, edges or rows.
IntArray = npt.NDArray[np.intp]


class Group(NamedTuple):
    """Nodes without edges between them, which can be updated at once."""

    members: IntArray
    """Shape (m,)."""
    neighbours: IntArray
    """Their neighbours, shape (d, m) with d the largest degree; a node with fewer neighbours has
    the number of nodes in place of the missing ones, which come first."""
    edges: IntArray
    """The edges to these, shape (d, m), and the number of edges where there is none."""


@dataclass(frozen=True, eq=False)
class Graph:
    """An undirected graph.

    Attributes
    ----------
    nodes
        Number of nodes n.
    edges
        Pairs of different nodes, shape (E, 2).  A pair may occur more than once.

    Raises
    ------
    DataError
        If an edge joins a node that does not exist, or a node with itself.
    """

    nodes: int
    edges: IntArray

    def __post_init__(self) -> None:
        edges = np.asarray(self.edges, dtype=np.intp).reshape(-1, 2)
        if self.nodes < 1 or np.any(edges < 0) or np.any(edges >= self.nodes):
            raise DataError(f"the edges of a graph join nodes 0 to {self.nodes - 1}")
        if np.any(edges[:, 0] == edges[:, 1]):
            raise DataError("an edge of a graph joins two different nodes")
        object.__setattr__(self, "edges", edges)

    @property
    def size(self) -> int:
        """Number of edges E."""
        return len(self.edges)

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """The nodes in groups without edges within them, found greedily: two for a checkerboard."""
        at: list[list[tuple[int, int]]] = [[] for _ in range(self.nodes)]
        for edge, (a, b) in enumerate(self.edges.tolist()):
            at[a].append((b, edge))
            at[b].append((a, edge))
        group = _greedy([[other for other, _ in each] for each in at])
        degree = max(map(len, at))
        neighbours = np.full((degree, self.nodes), self.nodes, dtype=np.intp)
        edges = np.full((degree, self.nodes), self.size, dtype=np.intp)
        for node, each in enumerate(at):
            for place, (other, edge) in enumerate(each, start=degree - len(each)):
                neighbours[place, node], edges[place, node] = other, edge
        members = [np.flatnonzero(group == k) for k in range(int(group.max()) + 1)]
        return tuple(Group(each, neighbours[:, each], edges[:, each]) for each in members)


def _greedy(neighbours: list[list[int]]) -> IntArray:
    """Give each node, in the order in which a walk over the graph meets it, the lowest free group.

    Such a walk needs two groups for a connected graph without odd circles.
    """
    group = np.full(len(neighbours), -1, dtype=np.intp)
    for start in range(len(neighbours)):
        waiting = [start] if group[start] < 0 else []
        while waiting:
            node = waiting.pop(0)
            if group[node] >= 0:
                continue
            taken = {int(group[other]) for other in neighbours[node]}
            group[node] = next(k for k in range(len(taken) + 1) if k not in taken)
            waiting += [other for other in neighbours[node] if group[other] < 0]
    return group


def torus(rows: int, columns: int) -> Graph:
    """Return a grid whose opposite borders meet: periodic boundaries, 2 edges a node.

    A side of length 2 joins its two nodes twice.

    Raises
    ------
    DataError
        If a side is shorter than 2.
    """
    if min(rows, columns) < 2:
        raise DataError(f"the sides of a torus are 2 or longer; got {rows} x {columns}")
    node = np.arange(rows * columns).reshape(rows, columns)
    right = np.stack([node, np.roll(node, -1, axis=1)], axis=-1)
    down = np.stack([node, np.roll(node, -1, axis=0)], axis=-1)
    return Graph(rows * columns, np.concatenate([right.reshape(-1, 2), down.reshape(-1, 2)]))


def grid(rows: int, columns: int) -> Graph:
    """Return a grid with free boundaries.

    Raises
    ------
    DataError
        If it has no node.
    """
    if min(rows, columns) < 1:
        raise DataError(f"the sides of a grid are 1 or longer; got {rows} x {columns}")
    node = np.arange(rows * columns).reshape(rows, columns)
    right = np.stack([node[:, :-1], node[:, 1:]], axis=-1).reshape(-1, 2)
    down = np.stack([node[:-1], node[1:]], axis=-1).reshape(-1, 2)
    return Graph(rows * columns, np.concatenate([right, down]))
