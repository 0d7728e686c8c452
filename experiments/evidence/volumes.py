"""Prior volumes of nested sampling alone, without moves: errors of integrating over them, plateaus.

New particles are exact draws here, so that all that is left to err are the volumes (Murray 2007,
sections 4.4.5 and 4.4.6).
"""

from __future__ import annotations

import math
from functools import cache
from typing import Literal

import numpy as np
import pandas as pd

from harness.arrays import FloatArray
from harness.samplers.nested_particles import Floor
from harness.samplers.nested_volumes import log_widths, mean_log_volume

DIMENSION, SIDE = 40, 100.0
PARTICLES, REMOVED = 10, 2000
CUBE_LOG_Z = 0.5 * DIMENSION * math.log(2 * math.pi) - DIMENSION * math.log(SIDE)
"""Log Z of a Gaussian likelihood in the cube, whose walls are 50 standard deviations away."""
_FEW, _MANY, _POOL, _CHUNK = 12, 1200, 12_000, 2400

PLATEAU_PARTICLES, PLATEAU = 100, 0.1
Rule = Literal["ties by keys", "strict", "not strict"]
PLATEAU_COUNTS: dict[Rule, float] = {
    "ties by keys": PLATEAU_PARTICLES * math.log(1 / PLATEAU),
    "strict": PLATEAU_PARTICLES * (1 - PLATEAU),
    "not strict": PLATEAU_PARTICLES * (1 - PLATEAU) / PLATEAU,
}
"""Expected numbers of iterations that leave no particle on the lower plateau.

With keys the log volume falls by a Poisson process of rate N.  If new particles lie strictly above,
each of those that started on the plateau goes once; if they need not, each of these has 1 / 0.1
successors on average.
"""


def cube_log_likelihood(log_volume: FloatArray) -> FloatArray:
    """Return log L at a prior volume of the hypercube, that of a ball about its centre.

    The ball fits into the cube below a log volume of -47, and the posterior lies near -127.
    """
    log_ball = 0.5 * DIMENSION * math.log(math.pi) - math.lgamma(DIMENSION / 2 + 1)
    radius = SIDE * np.exp((log_volume - log_ball) / DIMENSION)
    return np.asarray(-0.5 * np.square(radius))


@cache
def volume_errors(experiments: int) -> pd.DataFrame:
    """Return errors of the mean of log Z over volumes in simulated runs, by how it is found.

    Each run has its own true volumes, N = 10 and S = 2,000.  The mean that the approximations are
    compared with is of 12,000 sequences of volumes; the samples are some of them, so that the
    errors of 1,200 come out 5 % too small.

    Returns
    -------
    DataFrame
        By approximation: ``mean`` and ``sd`` of its errors over the runs, in nats; in the last row
        ``sd`` is the width of log Z itself, over volumes, and ``mean`` the mean error of log Z.
    """
    rng = np.random.default_rng(10)
    true = -np.cumsum(rng.standard_exponential((experiments, REMOVED)) / PARTICLES, axis=1)
    likelihood = np.exp(cube_log_likelihood(true)).T
    drawn = []
    for _ in range(_POOL // _CHUNK):
        path = -np.cumsum(rng.standard_exponential((_CHUNK, REMOVED)) / PARTICLES, axis=1)
        drawn.append(np.log(np.exp(log_widths(path)) @ likelihood))
    log_z = np.concatenate(drawn)
    reference = log_z.mean(axis=0)
    alive = np.full(REMOVED, PARTICLES, dtype=np.intp)
    geometric = np.log(np.exp(log_widths(mean_log_volume(alive))) @ likelihood)
    found = {"geometric path": geometric - reference}
    for size in (_FEW, _MANY):
        chosen = [log_z[rng.permutation(_POOL)[:size], k].mean() for k in range(experiments)]
        found[f"{size:,} sequences"] = np.array(chosen) - reference
    rows = {name: {"mean": error.mean(), "sd": error.std(ddof=1)} for name, error in found.items()}
    rows["log Z itself"] = {
        "mean": float((reference - CUBE_LOG_Z).mean()),
        "sd": float(log_z.std(axis=0).mean()),
    }
    return pd.DataFrame(rows).T


@cache
def plateau_counts(runs: int) -> pd.DataFrame:
    """Return iterations until no particle is on the lower plateau: mean, error and what is right.

    The likelihood is 0.5 for volumes below 0.1 and 0.01 above; there are 100 particles.
    """
    rng = np.random.default_rng(11)
    rows = {}
    for rule, expected in PLATEAU_COUNTS.items():
        counts = np.array([_leave_plateau(rule, rng) for _ in range(runs)])
        rows[rule] = {
            "mean": counts.mean(),
            "error": counts.std(ddof=1) / math.sqrt(runs),
            "expected": expected,
        }
    return pd.DataFrame(rows).T


def _leave_plateau(rule: Rule, rng: np.random.Generator) -> int:
    """Run nested sampling from exact draws; return the iterations that it takes."""
    log_likelihood = np.log(np.where(rng.random(PLATEAU_PARTICLES) < PLATEAU, 0.5, 0.01))
    key = rng.random(PLATEAU_PARTICLES)
    plateaus, mass = np.log([0.5, 0.01]), np.array([PLATEAU, 1 - PLATEAU])
    iterations = 0
    while log_likelihood.min() < plateaus[0]:
        lowest = np.lexsort((key, log_likelihood))[0]
        floor = Floor(np.full(2, log_likelihood[lowest]), np.full(2, key[lowest]))
        allowed = np.array([1.0, 0.0] if rule == "strict" else [1.0, 1.0])
        if rule == "ties by keys":
            allowed = np.exp(floor.log_share(plateaus))
        share = mass * allowed
        which = int(rng.random() >= share[0] / share.sum())
        log_likelihood[lowest] = plateaus[which]
        keyed = rule == "ties by keys"
        key[lowest] = floor.draw_key(plateaus, rng)[which] if keyed else rng.random()
        iterations += 1
    return iterations
