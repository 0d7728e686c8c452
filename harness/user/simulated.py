"""Independent draws of a program's prior by simulation, checked against the prior's own density."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from harness.arrays import FloatArray
from harness.engine.batched import BatchedDensity
from harness.engine.program import StanProgram
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
    overflow are left out with them.  What this cannot show, a
    wrong generator or a wrong part of a distribution that a constraint cuts, is up to
    :mod:`harness.temper.simulate`.

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
    rng = np.random.default_rng([seed, 29])
    part = GaussianPart(density, model.not_simulated, rng) if model.not_simulated else None
    program = model.program(PRIOR_SIMULATION)
    if density.engine == "stanli":
        stanli_source(program, model.data).instance()  # a library would have to be compiled
    simulation = BatchedDensity(program, model.data)
    change = BatchedDensity(model.program(CHANGE_OF_VARIABLES), model.data)
    kept, difference, size = [], [], []
    tried = found = lost = evaluations = 0
    while found < draws:
        late = tried == _MOST_BATCHES * draws
        expected = found / max(tried, 1) * _MOST_BATCHES
        if late or (tried >= _FIRST * draws and expected < _HOPELESS):
            raise SamplingError(
                f"{program.name}: the prior rejects {1 - found / tried:.1%} of its draws"
            )
        batch = np.empty((draws, 0)), derived_seed(seed, tried)
        made = simulation.constrain(batch[0], seed=batch[1], rejected="nan")
        tried, evaluations = tried + draws, evaluations + draws
        log_simulated = _log_simulated(model, program, made)
        lost += int(np.isnan(log_simulated).sum())
        if lost > _MOST_LOST * tried:
            simulation.constrain(batch[0], seed=batch[1])  # raises Stan's own message
            raise SamplingError(f"{program.name}: draws overflow")
        possible = np.isfinite(log_simulated)
        if not possible.any():
            continue
        made = {name: each[possible] for name, each in made.items()}
        log_simulated = log_simulated[possible]
        points = density.unconstrain_draws(made | _zeros(model, made))
        if part is not None:
            points, log_density, spent = part.drawn(points, rng)
            log_simulated += log_density
            evaluations += spent
        written, jacobian = density.values(points), change.values(points)
        with np.errstate(invalid="ignore"):
            apart = written - jacobian - log_simulated
        inside = written != -np.inf
        finite = np.all(np.isfinite(points), axis=1)
        sound = finite & (np.isfinite(apart) | ~inside)
        lost += int((~sound).sum())
        if lost > _MOST_LOST * tried:
            raise SamplingError(f"{program.name}: a draw has no value, or overflows")
        inside &= sound
        difference.append(apart[inside])
        size.append((1 + np.abs(written) + np.abs(jacobian))[inside])
        kept.append(points[inside])
        found += int(inside.sum())
    constants = np.concatenate(difference)
    middle = float(np.median(constants))
    if np.any(np.abs(constants - middle) > _ROUNDING * np.concatenate(size)):
        raise DataError(f"{program.name}: the density of its draws is not that of the prior")
    share = found / tried
    integral = LogEvidence(float(middle + np.log(share)), float(np.sqrt((1 - share) / found)))
    known = LOG_PRIOR in model.aliases[PRIOR_SIMULATION]
    return Simulated(np.concatenate(kept)[:draws], integral if known else None, evaluations)


def _zeros(model: Model, made: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    """Return zeros for the parameters that are not simulated."""
    return {name: np.zeros_like(made[name]) for name in model.not_simulated if name in made}


def _log_simulated(
    model: Model, program: StanProgram, made: Mapping[str, FloatArray]
) -> FloatArray:
    (name,) = model.aliases[PRIOR_SIMULATION].values()
    if name not in made:
        raise SamplingError(f"{program.name}: its generated quantities cannot be evaluated")
    return made[name]
