"""Weights over bands of the likelihood: from nested sampling first, then from histograms.

The multicanonical density b(x) exp(h(l(x))) depends on x through the base b and the log likelihood
l alone.  The bands cut the range of l.  If X_j is the base's mass in band j and q_j the share of
the draws that the band should get, then h = log q_j - log X_j in the middle of the band.  Between
the middles h is linear, and it is constant beyond the first and the last.

References
----------
Berg, B. A. and Neuhaus, T. (1992). Multicanonical ensemble: a new approach to simulate first-order
phase transitions. Physical Review Letters 68, 9-12.

Berg, B. A. (1996). Multicanonical recursions. Journal of Statistical Physics 82, 323-342.

Brewer, B. J., Partay, L. B. and Csanyi, G. (2011). Diffusive nested sampling. Statistics and
Computing 21, 649-656 (bands that have equal shares of the log volume).

Murray, I. (2007). Advances in Markov chain Monte Carlo methods. PhD thesis, University College
London, sections 4.3 and 4.8.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray
from harness.errors import DataError

Flat = Literal["energy", "volume"]
"""What the draws are spread over evenly: the log likelihood, or the log of the prior volume."""

_CUT_OFF = 0.05
"""Share of the base below the energies over which draws are spread."""


@dataclass(frozen=True)
class BandWeights:
    """Log weights over bands of the log likelihood.

    Attributes
    ----------
    edge
        Edges of the bands, finite and ascending, shape (B + 1,).  What lies beyond an end belongs
        to the band there.
    share
        Share of the draws that each band should get, shape (B,); they sum to 1.
    log_weight
        h in the middle of each band, shape (B,), up to a constant.
    known
        How many draws stand behind each difference of neighbouring log weights, shape (B - 1,):
        n m / (n + m) with n and m draws in the two bands, the inverse variance of log(n / m).

    Raises
    ------
    DataError
        If shapes do not match, there are fewer than 2 bands, or numbers are out of range.
    """

    edge: FloatArray
    share: FloatArray
    log_weight: FloatArray
    known: FloatArray

    def __post_init__(self) -> None:
        size = self.share.size
        if size < 2 or self.edge.shape != (size + 1,) or self.log_weight.shape != (size,):
            raise DataError(
                "weights over bands need 2 bands or more, with one edge more; got "
                f"{self.edge.shape}, {self.share.shape} and {self.log_weight.shape}"
            )
        finite = np.isfinite(self.edge).all() and np.isfinite(self.log_weight).all()
        if not (finite and np.all(np.diff(self.edge) > 0)):
            raise DataError("edges of bands ascend, and log weights are finite")
        if np.any(self.share <= 0) or abs(self.share.sum() - 1) > 1e-9:
            raise DataError("shares of bands are positive and sum to 1")
        if self.known.shape != (size - 1,) or np.any(self.known < 0):
            raise DataError(f"there are {size - 1} differences of log weights of {size} bands")

    def band(self, log_likelihood: FloatArray) -> npt.NDArray[np.intp]:
        """Return the band of each log likelihood, counted from 0; -inf is in the first."""
        place = np.searchsorted(self.edge, log_likelihood, side="right") - 1
        return np.clip(place, 0, self.share.size - 1)

    def height(self, log_likelihood: FloatArray) -> FloatArray:
        """Return h at each log likelihood, which may be -inf."""
        low = np.maximum(log_likelihood, self.edge[0])
        return np.asarray(np.interp(low, self._middle, self.log_weight), dtype=np.float64)

    def slope(self, log_likelihood: FloatArray) -> FloatArray:
        """Return dh / dl, the inverse temperature there; 0 beyond the first and last middle."""
        middle = self._middle
        steepness = np.diff(self.log_weight) / np.diff(middle)
        padded = np.concatenate([[0.0], steepness, [0.0]])
        low = np.maximum(log_likelihood, self.edge[0])
        slope: FloatArray = padded[np.searchsorted(middle, low, side="right")]
        return slope

    def counts(self, log_likelihood: FloatArray) -> FloatArray:
        """Return the number of log likelihoods in each band, shape (B,)."""
        bands = self.band(log_likelihood.ravel())
        return np.bincount(bands, minlength=self.share.size).astype(np.float64)

    def after(self, counts: FloatArray) -> BandWeights:
        """Return better weights, given how many draws under these ones were in each band, (B,).

        A difference of neighbouring log weights is corrected by the log of the ratio of their
        counts, to an extent that is the share of these draws in all that are behind it (Berg 1996).
        Where either band is empty, the difference stays as it is.
        """
        here, there = counts[:-1], counts[1:]
        seen = (here > 0) & (there > 0)
        new = np.divide(here * there, here + there, out=np.zeros_like(here), where=seen)
        known = self.known + new
        extent = np.divide(new, known, out=np.zeros_like(new), where=seen)
        rise = np.log(np.divide(there, here, out=np.ones_like(here), where=seen))
        change = extent * (np.log(self.share[1:] / self.share[:-1]) - rise)
        log_weight = self.log_weight + np.concatenate([[0.0], np.cumsum(change)])
        return replace(self, log_weight=log_weight, known=known)

    @property
    def _middle(self) -> FloatArray:
        middle: FloatArray = (self.edge[1:] + self.edge[:-1]) / 2
        return middle


def nested_weights(
    log_likelihood: FloatArray,
    log_volume: FloatArray,
    *,
    bands: int,
    flat: Flat = "energy",
    last: int = 1,
) -> BandWeights:
    """Make bands and weights from the particles of nested sampling.

    Each band has the same share of the log volume, as far as equal log likelihoods allow.  Its mass
    is the difference of the volumes at its edges (Murray 2007, section 4.8.2, with a band for each
    particle).

    Parameters
    ----------
    log_likelihood
        Of the particles, ascending, shape (S,).
    log_volume
        Log of the base's mass above each, descending, shape (S,); see
        :func:`harness.samplers.nested_volumes.mean_log_volume`.
    bands
        Number of bands, 2 or more; there are fewer if log likelihoods are equal.
    flat
        ``energy``: the share of a band is its width in the log likelihood.  Of the first band,
        only the part above the lowest twentieth of the base counts.  ``volume``: all bands have
        the same share.
    last
        Number of particles that at least are in the last band.

    Raises
    ------
    DataError
        If there are fewer than 2 bands, or too few different log likelihoods for 2.
    """
    if bands < 2 or flat not in get_args(Flat):
        raise DataError(
            f"bands of the likelihood are 2 or more, flat in {' or '.join(get_args(Flat))}; got "
            f"{bands} and {flat!r}"
        )
    finite = np.isfinite(log_likelihood)
    value, volume = log_likelihood[finite], log_volume[finite]
    most = value.size - max(last, 1)
    if most < 1:
        raise DataError(f"{value.size} particles are too few for bands of the likelihood")
    place = np.linspace(0.0, volume[most - 1], bands + 1)[1:-1]
    inner = np.unique(value[np.minimum(np.searchsorted(-volume, -place), most)])
    low = value[min(int(np.searchsorted(-volume, -np.log1p(-_CUT_OFF))), most)]
    inner = inner[(inner > low) & (inner < value[-1])]
    if not inner.size:
        raise DataError("the likelihood has too few different values for two bands")
    edge = np.concatenate([[low], inner, [value[-1]]])
    # What lies at an edge or above is what lies above the last particle below it.
    above = volume[np.searchsorted(value, inner) - 1]
    mass = np.exp(np.append(0.0, above)) - np.exp(np.append(above, -np.inf))
    width = np.diff(edge) if flat == "energy" else np.ones(edge.size - 1)
    share = width / width.sum()
    number = np.histogram(value, np.concatenate([[-np.inf], inner, [np.inf]]))[0].astype(np.float64)
    known = number[1:] * number[:-1] / (number[1:] + number[:-1])
    return BandWeights(edge, share, np.log(share) - np.log(mass), known)
