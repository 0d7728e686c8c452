"""Draws along the whole path from base to target, from two kinds of runs.

A continuously tempered run draws (x, beta) from the path itself.  In a pseudo-extended run the
pseudo-samples that are not the chosen ones follow the path, so each pseudo-sample counts with the
probability 1 - w_i that it is not chosen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from harness import evidence
from harness.arrays import FloatArray
from harness.errors import DataError
from harness.evidence import (
    NORMALISED,
    WHOLE_BASE,
    LogEvidence,
    LogG,
    LogMass,
    TwoSidedLogEvidence,
)
from harness.fit.weighting import Weighting

PSEUDO_SAMPLE = "pseudo_sample"
"""Name of the axis over pseudo-samples in a fit's ``extended`` group."""


@dataclass(frozen=True)
class TemperedDraws:
    """Weighted draws along the path; shapes (chains, draws), or (chains, draws, N).

    Attributes
    ----------
    delta, inv_temp
        Delta = log b + log zeta - log gamma, and the inverse temperatures drawn with it.
    log_weight
        Log weights that turn these into draws of the path; 0 for a continuously tempered run.
    log_w1, log_w0
        Log weights that turn them into draws of the target and of the base; they include
        ``log_weight``.
    log_zeta, log_g, ladder
        The path's guess at log Z, and its g: the knots of log g, or the rungs of a ladder.
    normalised_base
        Whether the base is known to integrate to one, so that log Z can be estimated.
    base_mass
        Share of the base's mass that the path reaches; every estimate of log Z accounts for it.
        Draws outside it (:class:`~harness.path.TemperedPath`, ``positive_only``) have weight 0.
    log_factor
        Log of a factor that every estimate of log Z counts beyond the ratio of normalising
        constants along the path; None if it is not known.
    log_mean_w1, log_mean_w0
        Logs of the mean weights of each draw and those before it that thinning has left out, from
        which log Z is estimated; None without thinning, where they are the draws' own.
    """

    delta: FloatArray
    inv_temp: FloatArray
    log_weight: FloatArray
    log_w1: FloatArray
    log_w0: FloatArray
    log_zeta: float
    log_g: LogG
    ladder: bool
    normalised_base: bool
    base_mass: LogMass = WHOLE_BASE
    log_factor: LogEvidence | None = NORMALISED
    log_mean_w1: FloatArray | None = None
    log_mean_w0: FloatArray | None = None

    def log_evidence(self) -> LogEvidence:
        """Estimate log Z from all draws (see :func:`harness.evidence.log_evidence`).

        Raises
        ------
        DataError
            If the base is not known to be normalised.
        """
        factor = self._known_factor()
        found = evidence.log_evidence(
            *self._mean_weights, log_zeta=self.log_zeta, log_g_ratio=self._log_g_ratio
        )
        return self.base_mass.added_to(found.plus(factor))

    def log_evidence_by_parts(self) -> FloatArray:
        """Estimate log Z from the first part of each chain, for twelve growing parts, shape (12,).

        See :func:`harness.evidence.log_evidence_by_parts`.

        Raises
        ------
        DataError
            If the base is not known to be normalised.
        """
        factor = self._known_factor()
        parts = evidence.log_evidence_by_parts(
            *self._mean_weights, log_zeta=self.log_zeta, log_g_ratio=self._log_g_ratio
        )
        return parts + self.base_mass.value + factor.value

    def two_sided(self) -> TwoSidedLogEvidence | None:
        """Estimate log Z from both sides (see :func:`harness.evidence.two_sided_log_evidence`).

        Raises
        ------
        DataError
            If the base is not known to be normalised.
        """
        factor = self._known_factor()
        both = evidence.two_sided_log_evidence(
            self.delta,
            self.inv_temp,
            log_zeta=self.log_zeta,
            log_g=self.log_g,
            ladder=self.ladder,
            log_weight=self.log_weight,
        )
        if both is None:
            return None
        # Both sides start from the same cut base, so the gap between them does not change.
        forward, backward = (
            self.base_mass.added_to(each.plus(factor)) for each in (both.forward, both.backward)
        )
        return TwoSidedLogEvidence(forward, backward, both.gap)

    @property
    def _mean_weights(self) -> tuple[FloatArray, FloatArray]:
        """Log weights of the target and of the base, means over what thinning has left out."""
        if self.log_mean_w1 is None or self.log_mean_w0 is None:
            return self.log_w1, self.log_w0
        return self.log_mean_w1, self.log_mean_w0

    @property
    def _log_g_ratio(self) -> float:
        """Log g(1) - log g(0): the weights include g at the two ends, and this takes it out."""
        return self.log_g[-1][1] - self.log_g[0][1]

    def _known_factor(self) -> LogEvidence:
        """Return the log of the factor beyond the path, or refuse an estimate of log Z."""
        if self.log_factor is None:
            raise DataError(
                "log Z needs the integral of the path's base, which is not known: give the path "
                "its logarithm (TemperedPath(log_factor=...)), or a Gaussian base"
            )
        if not self.normalised_base:
            raise DataError(
                "log Z of a pseudo-extended run needs a normalised base: run it with a "
                "Gaussian base (base=gaussian_base(mean, covariance))"
            )
        return self.log_factor


def follows_path(extended: xr.Dataset | None) -> bool:
    """Whether a fit's ``extended`` group has inverse temperatures and Delta."""
    return extended is not None and {"delta", "inv_temp"} <= set(extended)


def tempered_draws(
    extended: xr.Dataset | None, weighting: Weighting, settings: Mapping[str, Any], method: str
) -> TemperedDraws:
    """Return a fit's draws along the path.

    Parameters
    ----------
    extended
        The fit's ``extended`` group.
    weighting
        How its draws are weighted.
    settings, method
        What the fit records about its run.

    Raises
    ------
    DataError
        If the run's draws do not follow a path: the target itself was sampled, inverse
        temperatures were fixed, tied to each other or kept within a part of the path, or there is
        a single pseudo-sample.
    """
    if extended is None or not follows_path(extended):
        raise DataError(f"a {method} fit has no draws along a path from a base to the target")
    if settings.get("inv_temp") is not None:
        raise DataError(
            "inverse temperatures were fixed, so the draws do not follow the whole path: "
            "run with inv_temp=None"
        )
    log_g: LogG = [(float(beta), float(value)) for beta, value in settings["log_g"]]
    whole = [log_g[0][0], log_g[-1][0]]
    if any(list(each) != whole for each in settings.get("inv_temp_ranges", ())):
        raise DataError(
            "the inverse temperatures of some pseudo-samples were kept within a part of the path, "
            "so the draws do not follow all of it: give all of them the whole range"
        )
    ladder = bool(settings.get("ladder", False))
    factor = settings.get("log_factor", NORMALISED)
    shape = (*("chain", "draw"), *((PSEUDO_SAMPLE,) if PSEUDO_SAMPLE in extended.sizes else ()))
    delta, inv_temp = (
        extended[name].transpose(*shape).to_numpy() for name in ("delta", "inv_temp")
    )
    across = weighting == "across draws"
    if across:
        log_weight = np.zeros(delta.shape)
        log_w1, log_w0 = (extended[name].to_numpy() for name in ("log_w1", "log_w0"))
        if settings.get("positive_only", False):
            elsewhere = delta == np.inf
            log_weight, log_w0 = (np.where(elsewhere, -np.inf, w) for w in (log_weight, log_w0))
    else:
        log_weight = _path_log_weight(extended, settings, inv_temp)
        log_w1, log_w0 = (
            log_weight + height + evidence.log_path_weight(delta, end, log_g, ladder=ladder)
            for end, height in ((1.0, log_g[-1][1]), (0.0, log_g[0][1]))
        )
    return TemperedDraws(
        delta,
        inv_temp,
        log_weight,
        log_w1,
        log_w0,
        log_zeta=float(settings["log_zeta"]),
        log_g=log_g,
        ladder=ladder,
        normalised_base=across or bool(settings["normalised_base"]),
        base_mass=LogMass(*settings.get("base_mass", ())),
        log_factor=None if factor is None else LogEvidence(*factor),
        **{
            name: extended[name].to_numpy()
            for name in ("log_mean_w1", "log_mean_w0")
            if name in extended
        },
    )


def _path_log_weight(
    extended: xr.Dataset, settings: Mapping[str, Any], inv_temp: FloatArray
) -> FloatArray:
    """Return log weights that turn pseudo-samples into draws of the path."""
    if settings.get("g_correlation", 0.0):
        raise DataError(
            "the inverse temperatures were tied to each other (g_correlation), so single "
            "pseudo-samples do not follow the path: run with g_correlation=0"
        )
    log_weight = extended["log_weight"].transpose("chain", "draw", PSEUDO_SAMPLE).to_numpy()
    complement = evidence.complement_log_weight(log_weight)
    a, b = settings.get("g_shape", (1.0, 1.0))
    if (a, b) == (1.0, 1.0):
        return complement
    # This divides out the factor beta^(a - 1) (1 - beta)^(b - 1) of g, whose integral has no closed
    # form.
    beta = np.clip(inv_temp, np.finfo(float).tiny, np.nextafter(1, 0))  # rounding may reach an end
    shaped: FloatArray = complement - (a - 1) * np.log(beta) - (b - 1) * np.log1p(-beta)
    return shaped
