"""Annealed importance sampling of Potts models from J = 0, by Gibbs sweeps or Swendsen-Wang.

Runs start from uniform states and visit couplings 0 = J_0 < J_1 < ... < J_K; with U edges whose
ends differ, log w = -sum_k (J_{k+1} - J_k) U(s_k), where s_k follows one update at J_k.  The mean
of q^n w estimates Z_P(J_K) without bias, if each update leaves the model at its coupling as it is.

References
----------
Neal, R. M. (2001). Annealed importance sampling. Statistics and Computing 11, 125-139.

Murray, I. (2007). Advances in Markov chain Monte Carlo methods. PhD thesis, University College
London: sections 2.5.3 and 4.8.3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.evidence import LogEvidence, log_mean_weight
from harness.lattice.gibbs import gibbs_sweep
from harness.lattice.graph import Graph
from harness.lattice.potts import States, agreeing, uniform_states
from harness.lattice.swendsen_wang import swendsen_wang_step

Kernel = Literal["gibbs", "swendsen_wang"]
"""What moves states at one coupling."""


@dataclass(frozen=True)
class LatticeAnnealed:
    """What independent runs leave behind.

    Attributes
    ----------
    log_z
        Log Z_P at the last coupling, from the mean weight, with its error by the delta method,
        which is too small where few runs have most of the weight.
    log_weight
        Log weights, shape (R,), without the q^n.
    states
        Last states, shape (R, n).
    """

    log_z: LogEvidence
    log_weight: FloatArray
    states: States


def annealed_lattice(
    graph: Graph,
    colours: int,
    couplings: npt.ArrayLike,
    runs: int,
    kernel: Kernel,
    rng: np.random.Generator,
) -> LatticeAnnealed:
    """Anneal many lattices at once.

    Parameters
    ----------
    graph
        The graph.
    colours
        Number of colours q.
    couplings
        J_0 = 0, ..., J_K, ascending, shape (K + 1,); one update at each of J_1, ..., J_{K-1}.
    runs
        Number of runs R.
    kernel
        What moves states.
    rng
        Source of randomness.

    Raises
    ------
    DataError
        If couplings do not ascend from 0, there is no run, or colours are too few or too many.
    """
    ladder = np.asarray(couplings, dtype=np.float64)
    if ladder.ndim != 1 or ladder.size < 2 or ladder[0] != 0 or np.any(np.diff(ladder) <= 0):
        raise DataError("the couplings of annealing ascend from 0, and there are 2 or more")
    if runs < 1:
        raise DataError(f"annealing needs a run; got {runs}")
    states = uniform_states(graph, colours, runs, rng)
    log_weight = np.zeros(runs)
    for k, step in enumerate(np.diff(ladder)):
        if k > 0:
            if kernel == "gibbs":
                gibbs_sweep(graph, states, colours, ladder[k], rng)
            else:
                states, _ = swendsen_wang_step(graph, states, colours, ladder[k], rng)
        log_weight += step * (agreeing(graph, states).sum(axis=1) - graph.size)
    base = LogEvidence(graph.nodes * math.log(colours), 0.0)
    return LatticeAnnealed(base.plus(log_mean_weight(log_weight)), log_weight, states)
