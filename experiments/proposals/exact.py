"""What Metropolis-Hastings on Student's t is worth, by quadrature instead of a chain."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from .targets import log_student_t


class Exact(NamedTuple):
    """Properties of a chain in equilibrium."""

    effective: float
    """Effective samples of x for each proposal, 1 / tau."""
    acceptance: float
    """Share of accepted proposals."""


@cache
def metropolis_on_t(sd: float, *, end: float = 160.0, width: float = 0.1) -> Exact:
    """Solve Poisson's equation of Metropolis-Hastings with N(x, sd^2) proposals for f(x) = x.

    With g - P g = x, the autocorrelation time is 2 E[x g] / E[x^2] - 1.  The solution is odd, so
    that the half line is enough, with the kernel's image subtracted.

    Parameters
    ----------
    sd
        Width of the proposals.
    end
        Where the line is cut off; at 80 in place of 160 the result for sd = 1 is 1% larger.
    width
        Distance of the points of the midpoint rule.
    """
    x = np.arange(width / 2, end, width)
    log_p = log_student_t(x[:, None])
    accept = np.exp(np.minimum(0.0, log_p[None] - log_p[:, None]))
    scale = width / (sd * np.sqrt(2 * np.pi))
    straight = scale * np.exp(-0.5 * np.square((x[None] - x[:, None]) / sd)) * accept
    across = scale * np.exp(-0.5 * np.square((x[None] + x[:, None]) / sd)) * accept
    moved = (straight + across).sum(axis=1)
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    g = np.linalg.solve(np.diag(moved) - straight + across, x)
    time = 2 * float((p * x * g).sum() / (p * x * x).sum()) - 1
    return Exact(1 / time, float(moved @ p))
