"""Sample one mode by itself: short runs of NUTS that start in it, and its mass by a bridge.

Points around its peak weigh a mode that the draws lack if it looks like a Gaussian there
(:mod:`harness.modes.local_mass`).  A ring, a crescent or a mode with a long tail does not.  NUTS
that starts in such a mode stays in it, and a bridge tells what its draws stand for.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from harness import evidence
from harness.arrays import FloatArray, LogDensity
from harness.engine.batched import BatchedDensity
from harness.engine.nuts import NutsSettings
from harness.engine.short_nuts import affordable, run_short_nuts
from harness.errors import HarnessError
from harness.evidence import (
    NEGLIGIBLE_AT_MOST,
    LogEvidence,
    log_masses_at_most,
    shares_at_most,
)
from harness.model import Model
from harness.path import starting_values
from harness.seeds import derived_seed
from harness.user.bridged import bridged_in_time
from harness.user.compare import unconstrained
from harness.user.mode_metric import in_metric, mixes, mode_metric
from harness.user.neighbourhood import Neighbourhood
from harness.user.one_copy import InOneCopy

_SETTINGS = NutsSettings(chains=4, warmup=300, draws=500, parallel_chains=2)
_MOST_SECONDS = 10.0
_LEAST_OUTSIDE = 0.5
"""Share of its draws without earlier draws nearby, below which NUTS has left the mode."""


class Alone(NamedTuple):
    """A mode that was sampled by itself.

    Attributes
    ----------
    log_mass
        Log of the integral of the density in it; None if NUTS does not mix within it, or if a
        bridge from its draws cannot be relied on.
    points
        Draws in it, shape (n, D).
    left
        Whether NUTS that starts in it leaves it for where there are draws.
    at_most
        If NUTS does not mix within it, log of the integral over what its chains have seen, at most.
    """

    log_mass: LogEvidence | None
    points: FloatArray
    left: bool = False
    at_most: float = np.inf


class Walks(NamedTuple):
    """Draws of short runs of NUTS.

    Attributes
    ----------
    values
        Of the parameters, shape (chains, draws, ...).
    gradients
        Gradients that they took.
    """

    values: dict[str, FloatArray]
    gradients: int


class ModesAlone:
    """Masses of modes that draws lack, and of what the draws stand for.

    Parameters
    ----------
    model
        From :func:`harness.temper.tempered_model`.
    density
        Its density with all constants.
    draws
        The draws on the unconstrained space, shape (chains, draws, D).
    variant
        The program whose density and draws these are.
    in_one_copy
        The copy that the draws are in, if all are in one of several; so are the masses.
    most_seconds
        Seconds of wall time for each run and each bridge, roughly; ten at most.
    seed
        Seed.

    Attributes
    ----------
    gradients
        Gradients and densities that have been evaluated.
    """

    def __init__(
        self,
        model: Model,
        density: BatchedDensity,
        draws: FloatArray,
        *,
        variant: str = "target",
        in_one_copy: InOneCopy | None = None,
        most_seconds: float,
        seed: int,
    ) -> None:
        self._model, self._density, self._draws = model, density, draws
        self._variant, self._in_one_copy = variant, in_one_copy
        self._most_seconds, self._seed = min(most_seconds, _MOST_SECONDS), seed
        self.gradients = 0
        self._visited: Neighbourhood | None = None
        self._whole: LogEvidence | None = None
        self._sampled = 0

    def of_draws(self) -> LogEvidence | None:
        """Return the log of the integral of the density where the draws are.

        It is None if a bridge from the draws cannot be relied on.
        """
        if self._whole is None:
            self._whole = self._bridge(self._draws, self._seed)
        return self._whole

    def of_mode(self, points: FloatArray) -> LogEvidence | None:
        """Return the log of the integral of the density in a mode, as :meth:`sampled` does.

        It is that of 0 if NUTS leaves the mode.  If chains do not mix in it, but have hardly any
        probability at most, that is its value and its error.
        """
        alone = self.sampled(points)
        if alone is None:
            return None
        if alone.left:
            return LogEvidence(-np.inf, 0.0)
        whole = self.of_draws() if np.isfinite(alone.at_most) else None
        if whole is not None and shares_at_most(alone.at_most, whole) < NEGLIGIBLE_AT_MOST:
            return LogEvidence(alone.at_most, 1.0)
        return alone.log_mass

    def sampled(self, points: FloatArray) -> Alone | None:
        """Sample a mode by itself.

        Parameters
        ----------
        points
            Points in it, shape (n, D).

        Returns
        -------
        Alone or None
            None if NUTS fails.
        """
        # With one seed, modes alike would have one error.
        self._sampled += 1
        seed = derived_seed(self._seed, self._sampled)
        draws = self._mixed_draws_of(points, seed)
        if draws is None:
            return None
        if self._visited is None:
            self._visited = Neighbourhood(self._draws.reshape(-1, self._draws.shape[2]))
        flat = draws.reshape(-1, draws.shape[2])
        outside = ~self._visited.holds(flat)
        if outside.mean() < _LEAST_OUTSIDE:
            return Alone(None, flat[outside], left=True)
        if not mixes(draws, None):
            return Alone(None, flat[outside], at_most=self._at_most(draws))
        mass = self._bridge(draws, seed)
        if mass is None:
            return Alone(None, flat[outside])
        # Chains that also visit the draws' part of the posterior stand for that part, too.
        share = evidence.expectation(outside.reshape(draws.shape[:2]).astype(np.float64))
        relative = 0.0 if outside.all() else float(share.mcse) / float(share.value)
        value, mcse = mass.value + float(np.log(share.value)), float(np.hypot(mass.mcse, relative))
        return Alone(LogEvidence(value, mcse), flat[outside])

    def _mixed_draws_of(self, points: FloatArray, seed: int) -> FloatArray | None:
        """Return draws of NUTS in the metric of the points, if there are enough.

        The points may correlate, and tell it badly.  If chains disagree in it, they run once more
        and adapt their own.
        """
        metric = mode_metric(points)
        draws = self._draws_of(points, metric, seed)
        if metric is None or draws is None or mixes(draws, metric):
            return draws
        return self._draws_of(points, None, seed)

    def _draws_of(
        self, points: FloatArray, metric: FloatArray | None, seed: int
    ) -> FloatArray | None:
        """Return draws of NUTS that starts at some of the points; None if that fails."""
        try:
            values, gradients = walks(
                self._model,
                self._density,
                points,
                _SETTINGS,
                variant=self._variant,
                inv_metric=metric,
                most_seconds=self._most_seconds,
                seed=seed,
            )
            self.gradients += gradients
            points = unconstrained(values, 2, self._density)
            return points if self._in_one_copy is None else self._in_one_copy.brought(points)
        except HarnessError:
            return None

    def _at_most(self, draws: FloatArray) -> float:
        """Return the log of the integral over what chains (chains, n, D) have seen, at most."""
        heights = self._density.values(draws.reshape(-1, draws.shape[2])).reshape(draws.shape[:2])
        self.gradients += heights.size
        return float(np.logaddexp.reduce(log_masses_at_most(heights, draws)))

    def _bridge(self, draws: FloatArray, seed: int) -> LogEvidence | None:
        density = self._density if self._in_one_copy is None else self._in_one_copy
        found, evaluations = mass_by_bridge(
            density, draws, most_seconds=self._most_seconds, seed=seed
        )
        self.gradients += evaluations
        return found


def mass_by_bridge(
    density: LogDensity, draws: FloatArray, *, most_seconds: float, seed: int
) -> tuple[LogEvidence | None, int]:
    """Return the log integral of a density where draws are, by the best bridge from them.

    Another bridge that differs widens its error.

    Parameters
    ----------
    density
        The density.
    draws
        On the unconstrained space, shape (chains, draws, D).
    most_seconds
        Seconds of wall time, roughly.
    seed
        Seed.

    Returns
    -------
    tuple
        The log integral, or None if no bridge can be relied on; and how many densities it took.
    """
    try:
        # Proposals may reach other modes, which do not count.
        found, evaluations = bridged_in_time(
            density, draws, most_seconds=most_seconds, seed=seed, draws_alone=True
        )
    except HarnessError:
        return None, 0
    if found.chosen.problems():
        return None, evaluations
    value, mcse = found.log_evidence
    others = [each.log_evidence.value for each in found.each if not each.problems()]
    apart = max(abs(other - value) for other in others) if found.problems else 0.0
    return LogEvidence(value, max(float(mcse), apart)), evaluations


def walks(
    model: Model,
    density: BatchedDensity,
    points: FloatArray,
    settings: NutsSettings,
    *,
    variant: str = "target",
    inv_metric: FloatArray | None = None,
    most_seconds: float,
    seed: int,
) -> Walks:
    """Run NUTS from points, each chain from another one if there are enough.

    Parameters
    ----------
    model
        From :func:`harness.temper.tempered_model`.
    density
        Its density.
    points
        On the unconstrained space, shape (n, D).
    settings
        Of the run; it is shorter if there is no time.
    variant
        The program whose density it is.
    inv_metric
        Inverse metric that NUTS keeps; by default, it adapts one.
    most_seconds
        Seconds of wall time, roughly.
    seed
        Seed, of the choice among the points as well.

    Returns
    -------
    Walks
        Its draws.

    Raises
    ------
    HarnessError
        If the run fails.
    """
    rng = np.random.default_rng([seed, 15])
    few = len(points) < settings.chains
    chosen = points[rng.choice(len(points), size=settings.chains, replace=few)]
    run = run_short_nuts(
        model.program(variant),
        model.data,
        affordable(in_metric(settings, inv_metric), density, most_seconds, points=points),
        seed,
        inits=starting_values(density.constrain(chosen), chains=settings.chains),
        inv_metric=inv_metric,
        most_seconds=most_seconds,
    )
    values = {name: run.variables[name] for name in density.shapes}
    return Walks(values, int(run.gradients.sum()))
