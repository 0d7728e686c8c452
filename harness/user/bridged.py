"""Bridges from draws of a posterior: fit proposals to one half, evaluate on the other, and judge.

Three proposals are tried: a Gaussian; the same with the posterior reflected at its mean, which
removes its skewness (Warp-III); and a mixture of Gaussians where the draws ask for more than one.
Where none of them is precise, a Gaussian copula is the fourth, with margins of any shape: each of
many parameters may have two values, say.  Each proposal is fitted twice, to either half of every
chain, and bridges to the half that it has not seen.

References
----------
Meng, X.-L. and Schilling, S. (2002). Warp bridge sampling. Journal of Computational and Graphical
Statistics 11, 552-586.

Wang, L., Jones, D. E. and Meng, X.-L. (2022). Warp bridge sampling: the next generation. Journal
of the American Statistical Association 117, 835-851.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from harness import evidence
from harness.arrays import Counted, FloatArray, LogDensity, values_of
from harness.engine.timed import seconds_a_point
from harness.errors import DataError, SamplingError
from harness.evidence import BridgeEstimate, Reshuffled
from harness.path import GaussianBase
from harness.path.copula import Copula, fitted_copula
from harness.path.proposals import PARTS, Mixture, fitted_mixture, fitted_proposal
from harness.user.bridges import Bridged, Bridges, Proposal, disagreements

_USUAL: tuple[Proposal, ...] = ("gaussian", "warp3", "mixture")
_ELSE: tuple[Proposal, ...] = ("copula",)
_PRECISE = 0.02
"""Standard error in nats, of a bridge without problems, with which no copula is tried."""

FEWEST_DRAWS = 100
"""Draws in each half below which nothing is estimated."""
_BASE_DRAWS, _MANY_BASE_DRAWS = 2, 16
"""Draws of a proposal for each draw of the posterior in the other half, and where densities are so
fast that many cost little.  They are independent, so that log Z rests less on the posterior's draws
and on how well their autocorrelation is known."""
_BASE_SHARE = 0.2
"""Share of the time that many draws of all proposals may take."""
_EVALUATIONS_A_DRAW = 16
"""Densities evaluated for each draw: at draws, proposals, reflections, and again for reshuffled
blocks."""
_MOST_DRAWS = 10_000
"""Draws of which a bridge in time is built at most: more would only take longer, because fitting
its proposals takes longer than the densities of a fast program."""
_FEW, _FEW_A_DIMENSION, _FEW_DRAWS = 0.15, 10, 1000
"""Share of the draws that there is time for with which a bridge in time begins at most, draws for
each dimension that it begins with at least, and how many it usually needs."""
_FEW_PRECISE = 0.01
"""Standard error in nats with which these few are enough."""
_RESHUFFLES, _BLOCKS = 10, 10
"""Reshuffled bridges, and blocks of each chain."""
_RESHUFFLED_DRAWS = 1000
"""Draws that a reshuffled bridge evaluates again at most, by leaving out others evenly."""


def bridged(
    density: LogDensity,
    draws: FloatArray,
    *,
    most_seconds: float = math.inf,
    seed: int,
    draws_alone: bool = False,
) -> Bridges:
    """Estimate the log integral of a density from draws of it.

    There may be fewer draws than dimensions: the Gaussian then has its correlations from the
    density's curvature (:func:`harness.path.proposals.fitted_proposal`).

    Parameters
    ----------
    density
        Log density on the unconstrained space, all its constants included.
    draws
        Shape (chains, draws, D).
    most_seconds
        Seconds of wall time, roughly: whether a fourth proposal is tried, and how many
        reshuffled draws, depends on what the others leave.
    seed
        Seed of the proposals' draws.  The same seed gives the same estimate, if time is not short.
    draws_alone
        Whether the estimate should rest on the draws as far as possible: what they lack, and the
        proposals reach, is then missing in it.  Otherwise more draws are taken of the proposals.

    Raises
    ------
    DataError
        If there are too few draws, or one of them has no density.
    SamplingError
        If no proposal can be fitted.
    """
    until = time.monotonic() + most_seconds
    return _Bridging(density, draws, seed, until, draws_alone=draws_alone).bridges()


class Bridge(NamedTuple):
    """A bridge from draws that were thinned for the time that there is.

    Attributes
    ----------
    bridges
        The bridges.
    evaluations
        Densities that were evaluated.
    """

    bridges: Bridges
    evaluations: int


def bridged_in_time(
    density: LogDensity,
    draws: FloatArray,
    *,
    most_seconds: float,
    seed: int,
    draws_alone: bool = False,
) -> Bridge:
    """Do as :func:`bridged` with as many of the draws as there is time for, roughly, and no more.

    Nor does it use more than a precise estimate needs: it tries with a few first.

    Parameters
    ----------
    density, draws, seed, draws_alone
        As for :func:`bridged`.
    most_seconds
        Seconds of wall time.

    Raises
    ------
    DataError, SamplingError
        As :func:`bridged`.
    """
    counted, until = Counted(density), time.monotonic() + most_seconds
    chains, count, dimension = draws.shape
    affordable = most_seconds / (seconds_a_point(counted.values, draws[0]) * _EVALUATIONS_A_DRAW)
    thin = math.ceil(chains * count / min(affordable, _MOST_DRAWS))
    few = max(min(_FEW * affordable, _FEW_DRAWS), _FEW_A_DIMENSION * dimension, 2 * FEWEST_DRAWS)
    thin_first = int(chains * count / few)
    if thin_first >= 2 * thin:
        with suppress(DataError, SamplingError):
            first = bridged(
                *(counted, draws[:, ::thin_first]),
                most_seconds=most_seconds,
                seed=seed,
                draws_alone=draws_alone,
            )
            if first.sound and first.log_evidence.mcse <= _FEW_PRECISE:
                return Bridge(first, counted.gradients)
    left = max(until - time.monotonic(), 0.0)
    made = bridged(counted, draws[:, ::thin], most_seconds=left, seed=seed, draws_alone=draws_alone)
    return Bridge(made, counted.gradients)


class _Bridging:
    def __init__(
        self,
        density: LogDensity,
        draws: FloatArray,
        seed: int,
        until: float,
        *,
        draws_alone: bool,
    ) -> None:
        chains, count, _ = draws.shape
        if chains * (count // 2) < FEWEST_DRAWS:
            raise DataError(
                f"a bridge needs {2 * FEWEST_DRAWS} draws or more; got {chains} x {count}"
            )
        self._density, self._draws, self._seed, self._until = density, draws, seed, until
        self._values = values_of(density)
        self._parts: Sequence[int] = PARTS
        began = time.monotonic()
        self._log_density = self._value(draws)
        # Once for the Gaussian, once for its reflection, and once for the mixture.
        many = 3 * _MANY_BASE_DRAWS * (time.monotonic() - began)
        left = until - time.monotonic()
        fast = many < _BASE_SHARE * left
        self._base_draws = _MANY_BASE_DRAWS if fast and not draws_alone else _BASE_DRAWS
        if not np.all(np.isfinite(self._log_density)):
            missing = int(np.sum(~np.isfinite(self._log_density)))
            raise DataError(
                f"{missing} of the {chains * count:,} draws have no density under this program"
            )

    def bridges(self) -> Bridges:
        rng = np.random.default_rng([self._seed, 11])
        began = time.monotonic()
        each = self._of_halves(_USUAL, rng)
        took = time.monotonic() - began
        precise = any(one.log_evidence.mcse <= _PRECISE and not one.problems() for one in each)
        if not precise and time.monotonic() + took < self._until:  # it takes longer than they do
            with suppress(SamplingError):  # of scores that lie in a plane
                each += self._of_halves(_ELSE, rng)
        chosen = min(each, key=lambda one: (bool(one.problems()), one.log_evidence.mcse))
        problems = chosen.problems()
        reshuffled = None
        if not problems:
            problems += disagreements(chosen, each)
            reshuffled = self._reshuffled(chosen.proposal)
            if reshuffled is not None and reshuffled.ratio > 3 and reshuffled.too_wide:
                problems.append(
                    "bridges from reshuffled blocks of the draws spread "
                    f"{reshuffled.ratio:.1f} times as widely as their errors say"
                )
        return Bridges(tuple(each), chosen, reshuffled, tuple(problems))

    def _of_halves(
        self, proposals: Collection[Proposal], rng: np.random.Generator
    ) -> list[Bridged]:
        """Return the bridges by those proposals that could be fitted to either half."""
        count = self._draws.shape[1]
        first, second = np.arange(count // 2), np.arange(count // 2, count)
        estimates: dict[Proposal, list[BridgeEstimate]] = {}
        for fit, use in ((first, second), (second, first)):
            for proposal, estimate in self._estimates(proposals, fit, use, rng).items():
                estimates.setdefault(proposal, []).append(estimate)
        each = []
        for proposal, found in estimates.items():
            if len(found) == 2:
                joined = evidence.joined_halves(found[0], found[1], self._fitted(proposal))
                each.append(
                    Bridged(proposal, joined.log_evidence, (found[0], found[1]), joined.score)
                )
        return each

    def _fitted(self, proposal: Proposal) -> float:
        """How many numbers of a proposal count; mixtures and margins have two parts or more."""
        dimension = int(self._draws.shape[2])
        covariance = dimension * (dimension + 1) / 2
        return {
            "gaussian": covariance + dimension,
            "warp3": covariance,
            "mixture": 2 * (covariance + dimension),
            "copula": covariance + 5 * dimension,
        }[proposal]

    def _estimates(
        self,
        proposals: Collection[Proposal],
        fit: npt.NDArray[np.intp],
        use: npt.NDArray[np.intp],
        rng: np.random.Generator,
        *,
        again: bool = False,
        thin: int = 1,
    ) -> dict[Proposal, BridgeEstimate]:
        """Return the bridges to the draws ``use`` from proposals fitted to the draws ``fit``.

        How many effective draws count as used is by those that the proposal was fitted to.

        ``again`` stands for reshuffled draws: they take as many draws of the proposal as there are,
        and need no search for a mixture's number of parts.
        """
        fitted, used = self._draws[:, fit], self._draws[:, use[::thin]]
        known = self._log_density[:, use[::thin]]
        others = fit[::thin]
        number = known.size if again else max(self._base_draws * known.size, 4)
        found: dict[Proposal, BridgeEstimate] = {}
        if "gaussian" in proposals or "warp3" in proposals:
            gaussian = fitted_proposal(fitted, self._density)
            base = gaussian.sample(rng, number)
            at_base, of_base = self._value(base), gaussian.log_density(base)
            of_used = gaussian.log_density(used)
            effective = self._effective(gaussian, others)
            if "gaussian" in proposals:
                found["gaussian"] = evidence.bridge_sampling(
                    known - of_used, at_base - of_base, effective=effective
                )
            if "warp3" in proposals:
                found["warp3"] = evidence.bridge_sampling(
                    self._reflected(gaussian, used, known) - of_used,
                    self._reflected(gaussian, base, at_base) - of_base,
                    effective=effective,
                )
        if "mixture" in proposals:
            parts = fitted_mixture(fitted, self._seed, parts=self._parts if again else PARTS)
            if parts is not None:
                self._parts = (len(parts.parts),)
                found["mixture"] = self._from(parts, used, known, others, number, rng)
        if "copula" in proposals:
            copula = fitted_copula(fitted)
            found["copula"] = self._from(copula, used, known, others, number, rng)
        return found

    def _from(
        self,
        proposal: Mixture | Copula,
        used: FloatArray,
        known: FloatArray,
        others: npt.NDArray[np.intp],
        number: int,
        rng: np.random.Generator,
    ) -> BridgeEstimate:
        base = proposal.sample(rng, number)
        return evidence.bridge_sampling(
            known - proposal.log_density(used),
            self._value(base) - proposal.log_density(base),
            effective=self._effective(proposal, others),
        )

    def _effective(
        self, proposal: GaussianBase | Mixture | Copula, draws: npt.NDArray[np.intp]
    ) -> float:
        """Return how many effective draws some of the draws of each chain count as."""
        of_draws = proposal.log_density(self._draws[:, draws])
        return evidence.effective_in_bridge(self._log_density[:, draws] - of_draws)

    def _reflected(self, centre: GaussianBase, points: FloatArray, known: FloatArray) -> FloatArray:
        """Return the log of the mean of the densities at points and at their reflections."""
        mirrored = self._value(2 * centre.mean - points)
        value: FloatArray = np.logaddexp(known, mirrored) - math.log(2)
        return value

    def _reshuffled(self, proposal: Proposal) -> Reshuffled | None:
        """Return the spread of bridges whose proposals are fitted to random halves of blocks."""
        chains, count, _ = self._draws.shape
        thin = max(1, chains * count // 2 // _RESHUFFLED_DRAWS)
        size = count // _BLOCKS // thin * thin  # so that the same draws of a block are always kept
        if size < 4:
            return None
        rng = np.random.default_rng([self._seed, 12])
        blocks = np.arange(size * _BLOCKS).reshape(_BLOCKS, size)
        estimates = []
        for _ in range(_RESHUFFLES):
            if self._is_late:
                break
            order = rng.permutation(_BLOCKS)
            fit, use = (blocks[np.sort(half)].ravel() for half in (order[::2], order[1::2]))
            try:
                found = self._estimates((proposal,), fit, use, rng, again=True, thin=thin)
            except (DataError, SamplingError):
                continue
            if proposal in found:
                estimates.append(found[proposal])
        return evidence.reshuffled_spread(estimates) if len(estimates) >= _RESHUFFLES // 2 else None

    @property
    def _is_late(self) -> bool:
        return time.monotonic() > self._until

    def _value(self, points: FloatArray) -> FloatArray:
        """Return log densities at points (..., D); shape (...)."""
        flat = np.ascontiguousarray(points.reshape(-1, points.shape[-1]))
        value: FloatArray = self._values(flat).reshape(points.shape[:-1])
        return value
