"""Pseudo-extended MCMC (Nemeth et al. 2019): N pseudo-samples, each at its own temperature."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from harness.arrays import FloatArray
from harness.engine.compile import CompiledProgram
from harness.engine.nuts import NutsSettings
from harness.errors import DataError
from harness.evidence import LogG, LogMass
from harness.fit import Fit, build_fit, in_extended, target_draws
from harness.forms.common import (
    Engine,
    Inits,
    Sampling,
    run_attributes,
    run_variant,
)
from harness.forms.method import Method
from harness.model import Model
from harness.path import GaussianBase
from harness.path.data import (
    UNIFORM,
    TemperedForm,
    knots,
    path_data,
    path_settings,
    require_finite_mass,
)

VARIANT = "pseudo_extended"
COLLAPSED_VARIANT = "collapsed_pseudo_extended"

Shape = tuple[float, float]
"""(a, b) of a factor beta^(a - 1) (1 - beta)^(b - 1) in a density of inverse temperatures."""


def pseudo_extended_data(
    model: Model,
    num_pseudo_samples: int,
    inv_temp: float | Sequence[float] | None = None,
    *,
    base: GaussianBase | None = None,
    log_zeta: float = 0.0,
    log_g: LogG = UNIFORM,
    g_shape: Shape = (1.0, 1.0),
    g_correlation: float = 0.0,
    log_pi: LogG | None = None,
    pi_shape: Shape = (1.0, 1.0),
) -> dict[str, Any]:
    """Return the data that a pseudo-extended program takes besides the model's own.

    The parameters are those of :func:`sample_pseudo_extended`.

    Raises
    ------
    DataError
        If N < 1, a fixed value lies outside [0, 1], a ladder has not N values, a shape is not
        positive or makes a density infinite at a fixed value, the correlation is out of its range,
        pi and g start at different inverse temperatures, or pseudo-samples that share parameters
        are given a Gaussian base; see also :func:`path_data`.
    """
    if base is not None and model.shared:
        raise DataError(
            f"pseudo-samples of {model.name} share {', '.join(model.shared)}, so they take no "
            "Gaussian base: leave it out, or use the form that shares nothing"
        )
    data = path_data(model, base, log_zeta, log_g) | {"N": _checked_num(num_pseudo_samples)}
    ladder = _checked_ladder(num_pseudo_samples, inv_temp)
    start = data["g_knot"][0]
    if num_pseudo_samples > 1:  # one is the target itself
        lowest, power = (start, g_shape[0]) if inv_temp is None else (ladder.min(), 0.0)
        require_finite_mass(model, base, lowest, power)
    flat = ((start, 0.0), (1.0, 0.0))
    pi_knot, pi_value = knots(flat if log_pi is None else log_pi, "log pi")
    if pi_knot[0] != start:
        raise DataError(
            f"pi(beta) and g(beta) must start at one inverse temperature; got {pi_knot[0]:g} and "
            f"{start:g}"
        )
    for name, shape in (("g_shape", g_shape), ("pi_shape", pi_shape)):
        if not (len(shape) == 2 and all(np.isfinite(part) and part > 0 for part in shape)):
            raise DataError(f"{name} is two positive numbers (a, b); got {shape}")
        at_an_end = (ladder == 0) & (shape[0] != 1) | (ladder == 1) & (shape[1] != 1)
        if np.any(at_an_end):
            raise DataError(f"with {name} {shape} no inverse temperature can be fixed to 0 or 1")
    lowest = -1 / max(num_pseudo_samples - 1, 1)
    if not lowest < g_correlation < 1:
        raise DataError(
            f"the correlation of {num_pseudo_samples} inverse temperatures lies between "
            f"{lowest:.3g} and 1; got {g_correlation}"
        )
    if g_correlation and inv_temp is not None:
        raise DataError("fixed inverse temperatures have no correlation")
    return data | {
        "sample_inv_temp": int(inv_temp is None),
        "fixed_inv_temp": ladder,
        "g_shape": np.asarray(g_shape, dtype=np.float64),
        "g_correlation": float(g_correlation),
        "P": len(pi_knot),
        "pi_knot": pi_knot,
        "log_pi": pi_value,
        "pi_shape": np.asarray(pi_shape, dtype=np.float64),
    }


def _checked_num(num_pseudo_samples: int) -> int:
    if num_pseudo_samples < 1:
        raise DataError(
            f"pseudo-extended MCMC needs N >= 1 pseudo-samples; got N = {num_pseudo_samples}"
        )
    return num_pseudo_samples


def _checked_ladder(
    num_pseudo_samples: int, inv_temp: float | Sequence[float] | None
) -> FloatArray:
    """Return the fixed inverse temperatures, shape (N,), or (0,) where they are sampled."""
    if inv_temp is None:
        return np.empty(0)
    given = np.asarray(inv_temp, dtype=np.float64)
    if given.ndim > 1 or given.shape not in ((), (num_pseudo_samples,)):
        raise DataError(
            f"inv_temp is one inverse temperature or one for each of the "
            f"{num_pseudo_samples} pseudo-samples; got shape {given.shape}"
        )
    if not np.all((given >= 0) & (given <= 1)):
        raise DataError(f"fixed inverse temperatures lie in [0, 1]; got {inv_temp}")
    return np.broadcast_to(given, num_pseudo_samples).copy()


def sample_pseudo_extended(
    model: Model,
    *,
    num_pseudo_samples: int = 2,
    inv_temp: float | Sequence[float] | None = None,
    base: GaussianBase | None = None,
    log_zeta: float = 0.0,
    log_g: LogG = UNIFORM,
    g_shape: Shape = (1.0, 1.0),
    g_correlation: float = 0.0,
    log_pi: LogG | None = None,
    pi_shape: Shape = (1.0, 1.0),
    base_mass: LogMass | None = None,
    nuts: NutsSettings | None = None,
    seed: int,
    inits: Inits = None,
    inv_metric: FloatArray | None = None,
    compiled: CompiledProgram | None = None,
    engine: Engine = "auto",
) -> Fit:
    """Run Stan's NUTS on the pseudo-extended target of a model (paper, eq. 8).

    Parameters
    ----------
    model
        Target density with its data.
    num_pseudo_samples
        N; with N = 1 the target itself is sampled.
    inv_temp
        None to sample the inverse temperatures beta_1..N; one value to fix all to it; N
        values for a fixed ladder.  Fixed to 0, the instrumental distribution is the base itself.
    base, log_zeta
        Gaussian base, or None for the model's own, often pure tempering (paper, eq. 6); and a
        guess at log Z, used with the model's own base.
    log_g
        Knots of log g(beta); inverse temperatures lie between its first knot and 1.
    g_shape
        (a, b) of a factor beta^(a - 1) (1 - beta)^(b - 1) in g: with a flat ``log_g`` g is a
        Beta(a, b) density.
    g_correlation
        Correlation of a Gaussian copula over the inverse temperatures, between -1 / (N - 1)
        and 1; just above the lower end it spreads them out (paper, section 5).
    log_pi, pi_shape
        The same for pi(beta), the density of the chosen pseudo-sample's inverse temperature;
        uniform if not given.
    base_mass
        Share of the base's mass that the path reaches, for log Z: see
        :mod:`harness.evidence.base_mass`.  If not given, all of it; of a Gaussian base in a model
        with bounds, what lies within them.
    nuts
        Settings of NUTS; Stan's defaults if not given.
    seed
        Seed, 0 to 2^32 - 1; same seed, same draws, the choice among pseudo-samples included.
    inits
        Initial values as CmdStanPy takes them; Stan's own random ones if not given.
    inv_metric
        Inverse metric that NUTS keeps; see :func:`harness.engine.nuts.run_nuts`.
    compiled
        The model's compiled ``pseudo_extended.stan``, if it is at hand.
    engine
        What runs NUTS; see :data:`harness.forms.common.Engine`.

    Returns
    -------
    Fit
        ``extended`` holds the pseudo-samples, ``inv_temp``, ``delta`` and ``log_weight`` with
        the last axis over pseudo-samples; ``posterior`` one pseudo-sample a draw, chosen with
        probability its weight.

    Raises
    ------
    DataError
        If a setting does not make sense; see :func:`pseudo_extended_data`.
    """
    data = pseudo_extended_data(
        model,
        num_pseudo_samples,
        inv_temp,
        base=base,
        log_zeta=log_zeta,
        log_g=log_g,
        g_shape=g_shape,
        g_correlation=g_correlation,
        log_pi=log_pi,
        pi_shape=pi_shape,
    )
    settings = path_settings(model, base, log_zeta, log_g) | {
        "num_pseudo_samples": num_pseudo_samples,
        "inv_temp": None if inv_temp is None else data["fixed_inv_temp"].tolist(),
        "g_shape": list(g_shape),
        "g_correlation": g_correlation,
        "log_pi": None if log_pi is None else np.asarray(log_pi, dtype=np.float64).tolist(),
        "pi_shape": list(pi_shape),
    }
    sampling = Sampling(nuts, seed, inits, compiled, engine, inv_metric)
    form = TemperedForm("pseudo_extended", VARIANT, base, base_mass)
    return _sample(form, model, data, settings, sampling)


def sample_collapsed_pseudo_extended(
    model: Model,
    *,
    num_pseudo_samples: int = 2,
    base: GaussianBase | None = None,
    log_zeta: float = 0.0,
    log_g: LogG = UNIFORM,
    ladder: bool = False,
    base_mass: LogMass | None = None,
    nuts: NutsSettings | None = None,
    seed: int,
    inits: Inits = None,
    inv_metric: FloatArray | None = None,
    compiled: CompiledProgram | None = None,
    engine: Engine = "auto",
) -> Fit:
    """Run Stan's NUTS on the pseudo-extended target with each beta_i integrated out of its q.

    Parameters
    ----------
    ladder
        Whether beta takes the values of the knots of ``log_g`` alone, with log weights the
        values there (from a pilot, -log Z(beta_k)), so that the integral is a sum.
    model, num_pseudo_samples, base, log_zeta, log_g, base_mass, nuts, seed, inits, inv_metric,
    compiled, engine
        As for :func:`sample_pseudo_extended`.

    Returns
    -------
    Fit
        As for :func:`sample_pseudo_extended`; ``inv_temp`` is drawn from its conditional under
        each pseudo-sample's own q.

    Raises
    ------
    DataError
        If a setting does not make sense.
    """
    data = path_data(model, base, log_zeta, log_g)
    if num_pseudo_samples > 1:
        require_finite_mass(model, base, data["g_knot"][0], power=0.0 if ladder else 1.0)
    data |= {"N": _checked_num(num_pseudo_samples), "ladder": int(ladder)}
    settings = path_settings(model, base, log_zeta, log_g)
    settings |= {"num_pseudo_samples": num_pseudo_samples, "ladder": ladder}
    sampling = Sampling(nuts, seed, inits, compiled, engine, inv_metric)
    form = TemperedForm("collapsed_pseudo_extended", COLLAPSED_VARIANT, base, base_mass)
    return _sample(form, model, data, settings, sampling)


def _sample(
    form: TemperedForm,
    model: Model,
    data: dict[str, Any],
    settings: dict[str, Any],
    sampling: Sampling,
) -> Fit:
    """Run a variant and choose a pseudo-sample in each draw."""
    if model.pseudo_axis == "first":
        sampling = replace(sampling, inits=_axis_first(model, sampling.inits))
    ran = run_variant(model, form.variant, data, sampling)
    generated = {name: ran.run.variables[name] for name in ("inv_temp", "delta", "log_weight")}
    num = generated["inv_temp"].shape[-1]
    parameters = {
        name: np.repeat(draws[..., None], num, axis=-1) if name in model.shared else draws
        for name, draws in ran.parameters.items()
    }
    shapes = {name: draws.shape[2:-1] for name, draws in parameters.items()}
    settings |= form.base_settings(model, shapes)
    # A stream of its own: the sampler's chains use (seed, chain) in Stan's generator.
    rng = np.random.default_rng(sampling.seed)
    return build_fit(
        posterior=target_draws(parameters, generated["log_weight"], "within draws", rng),
        extended=in_extended(parameters) | generated,
        sample_stats=ran.run.sample_stats,
        constant_data=model.data,
        attrs=run_attributes(form.method, model, ran, settings, sampling.seed),
        weighting="within draws",
    )


def _axis_first(model: Model, inits: Inits) -> Inits:
    """Put the axis over pseudo-samples of initial values first; it is the last."""
    if isinstance(inits, (list, tuple)):
        return [_axis_first(model, each) for each in inits]
    if not isinstance(inits, Mapping):
        return inits
    return {
        name: np.moveaxis(np.asarray(value), -1, 0) if name in model.parameters else value
        for name, value in inits.items()
    }


PSEUDO_EXTENDED = Method("pseudo_extended", VARIANT, sample_pseudo_extended)
COLLAPSED_PSEUDO_EXTENDED = Method(
    "collapsed_pseudo_extended", COLLAPSED_VARIANT, sample_collapsed_pseudo_extended
)
