"""Population Monte Carlo with proposals of several widths: a control that is expected to fail.

Each particle proposes from a Gaussian around itself, all proposals are importance samples, and the
population is drawn anew from them.  Estimates are those of importance sampling, which is only as
good as the Gaussians are wide: on a funnel they fail (Murray 2007, section 3.1).

References
----------
Cappé, O., Guillin, A., Marin, J.-M. and Robert, C. P. (2004). Population Monte Carlo. Journal of
Computational and Graphical Statistics 13, 907-929.

Robert, C. P. and Casella, G. (2004). Monte Carlo Statistical Methods, second edition.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.evidence import normalised_weights
from harness.proposals.chains import Density
from harness.proposals.proposal import mixture_log_density, spherical_log_density


@dataclass(frozen=True)
class Widths:
    """Standard deviations of the proposals, and how a width is chosen and counted.

    Attributes
    ----------
    sd
        Shape (W,).
    adapted
        Whether a width is chosen in proportion to how many of its proposals were drawn into the
        last population (Cappé et al. 2004); otherwise uniformly.
    combined
        Whether the weight of a proposal has the density of the mixture over widths (Robert and
        Casella 2004); otherwise that of the width that was chosen.
    floor
        Least probability of a width that adapts, which keeps it from dying out.

    Raises
    ------
    DataError
        If a width is not positive, or the floor not between 0 and 1 / W.
    """

    sd: tuple[float, ...]
    adapted: bool = True
    combined: bool = False
    floor: float = 0.01

    def __post_init__(self) -> None:
        if not self.sd or min(self.sd) <= 0:
            raise DataError(f"proposals need one positive width or more; got {self.sd}")
        if not 0 <= self.floor * len(self.sd) <= 1:
            raise DataError(
                f"the least probability of {len(self.sd)} widths lies between 0 and "
                f"{1 / len(self.sd):.3g}; got {self.floor}"
            )


class Population(NamedTuple):
    """K particles, and the probabilities of the widths."""

    points: FloatArray
    """Shape (K, D)."""
    probability: FloatArray
    """Shape (W,)."""


class PopulationStep(NamedTuple):
    """A step of a population."""

    proposed: FloatArray
    """Importance samples, shape (K, D)."""
    log_weight: FloatArray
    """Their log weights, shape (K,), on one scale over all steps."""
    after: Population
    """The population that was drawn from them, which is no unbiased sample of the target."""


def start_population(points: FloatArray, widths: Widths) -> Population:
    """Return a population at points (K, D), with all widths equally probable."""
    return Population(points, np.full(len(widths.sd), 1 / len(widths.sd)))


def move_population(
    density: Density, widths: Widths, population: Population, rng: np.random.Generator
) -> PopulationStep:
    """Propose from every particle, weigh, and draw the next population.

    Murray (2007), Algorithm 3.1.

    Parameters
    ----------
    density
        Log density of the target, up to a constant.
    widths
        Widths of the proposals.
    population
        Where the particles are.
    rng
        Source of randomness.

    Raises
    ------
    DataError
        If no proposal has a density above zero.
    """
    sd, count = np.asarray(widths.sd), len(population.points)
    chosen = _draw(population.probability, count, rng)
    step = sd[chosen][:, None] * rng.standard_normal(population.points.shape)
    proposed = population.points + step
    if widths.combined:
        log_share = np.log(population.probability)[None]
        log_q = mixture_log_density(step, sd, log_share)
    else:
        log_q = spherical_log_density(step, sd[chosen])
    log_weight = density(proposed) - log_q
    if np.isneginf(log_weight).all():
        raise DataError("no proposal of the population has a density above zero")
    index = _draw(normalised_weights(log_weight), count, rng)
    probability = population.probability
    if widths.adapted:
        share = np.bincount(chosen[index], minlength=len(sd)) / count
        probability = widths.floor + (1 - len(sd) * widths.floor) * share
    return PopulationStep(proposed, log_weight, Population(proposed[index], probability))


def _draw(probability: FloatArray, count: int, rng: np.random.Generator) -> npt.NDArray[np.intp]:
    """Draw indices with replacement."""
    cumulative = probability.cumsum()
    cumulative /= cumulative[-1]
    return np.searchsorted(cumulative, rng.random(count), side="right")
