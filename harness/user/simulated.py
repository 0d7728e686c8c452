"""Independent draws of a program's prior by simulation, checked against the prior's own density."""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

from harness.arrays import FloatArray
from harness.engine.batched import BatchedDensity
from harness.engine.stanli_package import stanli_source
from harness.errors import DataError, SamplingError
from harness.evidence import LogEvidence
from harness.model import Model
from harness.seeds import derived_seed
from harness.temper.model import CHANGE_OF_VARIABLES, PRIOR_SIMULATION
from harness.temper.simulate import LOG_PRIOR
from harness.user.gaussian_part import GaussianPart

_MOST_BATCHES = 100
"""Batches of as many draws as are wanted, of which rejected ones are left out."""
_FIRST, _HOPELESS = 10, 0.5
"""Batches after which no more are made if all of them would give less than this share of the draws.
"""
_MOST_LOST = 1e-3
"""Share of draws that may have no value, because a number overflows, and are left out, too."""
_PRECISE, _MORE_SECONDS = 5e-3, 2.0
"""Error of the log of the share of draws that are left, in nats, and seconds for further batches
that lower it so far."""
_ROUNDING = 1e-6
"""Differences of log densities, relative to their size, that rounding explains."""


class Simulated(NamedTuple):
    """Draws of a prior by simulation."""

    points: FloatArray
    """Independent draws on Stan's unconstrained space, shape (n, D), all finite."""
    log_integral: LogEvidence | None
    """Log of the integral of the prior as the program writes it; None if it is not known."""
    evaluations: int
    """Evaluations of the prior's density, with or without its gradient."""


def can_be_simulated(model: Model) -> bool:
    """Whether a program that simulates the prior has been written."""
    return PRIOR_SIMULATION in model.aliases


def simulated_prior(model: Model, density: BatchedDensity, draws: int, seed: int) -> Simulated:
    """Simulate the prior of a tempered model, and check the draws.

    Parameters that the simulation leaves out are drawn where the prior is Gaussian in them; see
    :mod:`harness.user.gaussian_part`.

    The simulation sums up the log density of what it draws from.  If that is the prior, it differs
    from the prior's own density by the same number at all draws, up to rounding.  Draws where the
    prior is zero, because the program rejects them or a number is outside of its constraint, are
    left out; the share of the others is a factor of the prior's integral.  A few whose numbers
    overflow are left out with them.  What this cannot show, a wrong generator or a wrong part of a
    distribution that a constraint cuts, is up to :mod:`harness.temper.simulate`.

    Parameters
    ----------
    model
        From :func:`harness.temper.tempered_model`.
    density
        The log density of the prior, as its program computes it, on Stan's unconstrained space.
    draws
        Number of draws n that are wanted.
    seed
        Seed, 0 to 2^32 - 1.

    Raises
    ------
    DataError
        If there is no simulation, it cannot be run without a compiler as the prior is, or its draws
        are not those of the prior.
    SamplingError
        If the simulation rejects a draw, or the prior rejects nearly all of them.
    """
    if not can_be_simulated(model):
        raise DataError(f"the prior of {model.name} cannot be simulated")
    simulation = _Simulation(model, density, draws, seed)
    while simulation.found < draws:
        simulation.refuse_hopeless()
        simulation.add()
    ends = time.perf_counter() + _MORE_SECONDS
    while simulation.mcse > _PRECISE and simulation.shows_integral and time.perf_counter() < ends:
        simulation.add()
    return simulation.result()


class _Simulation:
    """Draws by simulation, batch after batch.

    Parameters
    ----------
    model, density, seed
        As :func:`simulated_prior` has them.
    each
        Draws of a batch, and how many are wanted.

    Attributes
    ----------
    found
        Draws that are not left out.
    """

    def __init__(self, model: Model, density: BatchedDensity, each: int, seed: int) -> None:
        self._model, self._density, self._each, self._seed = model, density, each, seed
        self._rng = np.random.default_rng([seed, 29])
        self._part = (
            GaussianPart(density, model.not_simulated, self._rng) if model.not_simulated else None
        )
        self._program = model.program(PRIOR_SIMULATION)
        if density.engine == "stanli":
            # A library would have to be compiled.
            stanli_source(self._program, model.data).instance()
        self._simulation = BatchedDensity(self._program, model.data)
        self._change = BatchedDensity(model.program(CHANGE_OF_VARIABLES), model.data)
        self._kept: list[FloatArray] = []
        self._difference: list[FloatArray] = []
        self._size: list[FloatArray] = []
        self._tried = self._lost = self._evaluations = 0
        self.found = 0

    @property
    def shows_integral(self) -> bool:
        """Whether the density that the draws are from has all its constants."""
        return LOG_PRIOR in self._model.aliases[PRIOR_SIMULATION]

    @property
    def mcse(self) -> float:
        """Standard error of the log of the share of draws that are not left out."""
        return float(np.sqrt((1 - self.found / self._tried) / self.found))

    def refuse_hopeless(self) -> None:
        """Raise an error if so many draws are left out that there will not be enough."""
        late = self._tried == _MOST_BATCHES * self._each
        expected = self.found / max(self._tried, 1) * _MOST_BATCHES
        if late or (self._tried >= _FIRST * self._each and expected < _HOPELESS):
            raise SamplingError(
                f"{self._program.name}: the prior rejects {1 - self.found / self._tried:.1%} of "
                "its draws"
            )

    def add(self) -> None:
        """Make one more batch."""
        made = self._made()
        if not len(made.log_density):
            return
        points = self._density.unconstrain_draws(made.values)
        log_simulated = made.log_density
        if self._part is not None:
            points, log_density, spent = self._part.drawn(points, self._rng)
            log_simulated = log_simulated + log_density
            self._evaluations += spent
        written, jacobian = self._density.values(points), self._change.values(points)
        with np.errstate(invalid="ignore"):
            apart = written - jacobian - log_simulated
        inside = written != -np.inf
        sound = np.all(np.isfinite(points), axis=1) & (np.isfinite(apart) | ~inside)
        self._lose(int((~sound).sum()), "a draw has no value, or overflows")
        inside &= sound
        self._difference.append(apart[inside])
        self._size.append((1 + np.abs(written) + np.abs(jacobian))[inside])
        if self.found < self._each:
            self._kept.append(points[inside])
        self.found += int(inside.sum())

    def _made(self) -> _Made:
        """Simulate a batch; return those draws that are within their constraints."""
        nothing, seed = np.empty((self._each, 0)), derived_seed(self._seed, self._tried)
        made = self._simulation.constrain(nothing, seed=seed, rejected="nan")
        self._tried, self._evaluations = self._tried + self._each, self._evaluations + self._each
        (name,) = self._model.aliases[PRIOR_SIMULATION].values()
        if name not in made:
            raise SamplingError(
                f"{self._program.name}: its generated quantities cannot be evaluated"
            )
        lost = int(np.isnan(made[name]).sum())
        if self._lost + lost > _MOST_LOST * self._tried:
            self._simulation.constrain(nothing, seed=seed)  # raises Stan's own message
        self._lose(lost, "draws overflow")
        possible = np.isfinite(made[name])
        values = {key: each[possible] for key, each in made.items()}
        values |= {
            key: np.zeros_like(values[key]) for key in self._model.not_simulated if key in values
        }
        return _Made(values, made[name][possible])

    def _lose(self, count: int, why: str) -> None:
        """Count draws without a value, and refuse them if they are many."""
        self._lost += count
        if self._lost > _MOST_LOST * self._tried:
            raise SamplingError(f"{self._program.name}: {why}")

    def result(self) -> Simulated:
        """Return the draws, checked."""
        constants = np.concatenate(self._difference)
        middle = float(np.median(constants))
        if np.any(np.abs(constants - middle) > _ROUNDING * np.concatenate(self._size)):
            raise DataError(
                f"{self._program.name}: the density of its draws is not that of the prior"
            )
        integral = LogEvidence(middle + float(np.log(self.found / self._tried)), self.mcse)
        points = np.concatenate(self._kept)[: self._each]
        return Simulated(points, integral if self.shows_integral else None, self._evaluations)


class _Made(NamedTuple):
    """A batch of draws."""

    values: dict[str, FloatArray]
    """By parameter; zero for those that are not simulated."""
    log_density: FloatArray
    """Log density of each draw, shape (n,), up to a constant."""
