"""Bounds on the marginal density of the inverse temperature, from two divergences.

With gamma / zeta on one end of the path, the base b on the other, and g = 1, the marginal density
of beta is z(beta) / (C zeta^beta), where z(beta) is the mass of gamma^beta b^(1 - beta).  Graham
and Storkey (2017) bound it from above by (Z / zeta)^beta / C, and from below by that times
exp(-beta d_bt) (eqs. 23 and 40) and times exp(-(1 - beta) d_tb) (eq. 43), where d_bt and d_tb are
the divergences from base to target and from target to base.  The better of the two lower bounds is
worst where they cross, at exp(-d_bt d_tb / (d_bt + d_tb)).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from harness.arrays import FloatArray
from harness.model import Model
from harness.models.boltzmann import BoltzmannRelaxation, relaxation_of
from harness.path import GaussianBase

_DRAWS = 20_000
_REACH, _NODES = 9.0, 2001  # of the rule for expectations under a standard normal

_KNOWN: dict[tuple[bytes, float], Bounds] = {}


@dataclass(frozen=True)
class Bounds:
    """What bounds the marginal density of the inverse temperature.

    Attributes
    ----------
    log_ratio
        log Z - log zeta, the slope of the upper bound's logarithm.
    base_to_target, target_to_base
        The two Kullback-Leibler divergences, in nats.
    target_to_base_se
        Standard error of the second, which comes from exact draws of the target.
    """

    log_ratio: float
    base_to_target: float
    target_to_base: float
    target_to_base_se: float

    @property
    def deepest(self) -> float:
        """How far the lower bound falls below the upper one where it falls most, in nats."""
        return (
            self.base_to_target * self.target_to_base / (self.base_to_target + self.target_to_base)
        )

    def log_density(self, inv_temp: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the log lower and the log upper bound, without -log C, at inverse temperatures."""
        upper = inv_temp * self.log_ratio
        fall = np.minimum(inv_temp * self.base_to_target, (1 - inv_temp) * self.target_to_base)
        return upper - fall, upper


def bounds(relaxation: BoltzmannRelaxation, base: GaussianBase, rng: np.random.Generator) -> Bounds:
    """Return the bounds for a relaxation and a base.

    The divergence from the base is a sum of integrals in one dimension, since q_k'x is Gaussian
    under the base; the one from the target is a mean over exact draws.
    """
    exact = relaxation.exact()
    log_z = exact.log_z
    centre = relaxation.q @ base.mean + relaxation.machine.biases
    spread = np.linalg.norm(relaxation.q @ base.cholesky, axis=1)
    node = np.linspace(-_REACH, _REACH, _NODES)
    weight = np.exp(-0.5 * node**2)
    y = centre[:, None] + spread[:, None] * node
    log_cosh = np.logaddexp(y, -y) - np.log(2)
    second = np.trace(base.covariance) + base.mean @ base.mean
    log_gamma = float((log_cosh @ weight).sum() / weight.sum() - 0.5 * second)
    log_det = 2 * np.log(np.diag(base.cholesky)).sum()
    log_base = -0.5 * float(base.mean.size * (1 + np.log(2 * np.pi)) + log_det)
    x = exact.draw(_DRAWS, rng)
    rise = relaxation.log_density_and_gradient(x)[0] - base.log_density(x)
    return Bounds(
        log_ratio=log_z - base.log_zeta,
        base_to_target=log_base - log_gamma + log_z,
        target_to_base=float(rise.mean()) - log_z,
        target_to_base_se=float(rise.std(ddof=1) / np.sqrt(_DRAWS)),
    )


def bounds_of(model: Model, base: GaussianBase) -> Bounds:
    """Return the bounds for a model of a relaxation; they are computed only once."""
    q, biases = (np.asarray(model.data[name], dtype=np.float64) for name in ("Q", "b"))
    arrays = q, biases, base.mean, base.cholesky
    key = b"".join(each.tobytes() for each in arrays), base.log_zeta
    if key not in _KNOWN:
        _KNOWN[key] = bounds(relaxation_of(q, biases), base, np.random.default_rng(0))
    return _KNOWN[key]
