"""Continuously tempered HMC (Graham and Storkey 2017), joint or with the temperature collapsed."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.arrays import FloatArray
from harness.engine.compile import CompiledProgram
from harness.engine.nuts import NutsSettings
from harness.errors import DataError, SamplingError
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
    path_data,
    path_settings,
    require_finite_mass,
)

JOINT_VARIANT = "continuously_tempered"
COLLAPSED_VARIANT = "collapsed_tempered"
ZERO_LIKELIHOOD_VARIANT = "collapsed_tempered_zero_likelihood"
"""The same for a likelihood that is zero in places; see :mod:`harness.temper.twice`."""


def tempering_data(
    model: Model,
    base: GaussianBase | None = None,
    log_zeta: float = 0.0,
    log_g: LogG = UNIFORM,
) -> dict[str, Any]:
    """Return :func:`path_data` of a g that reaches from the base to the target.

    Raises
    ------
    DataError
        If the first knot of log g is not at 0; see also :func:`path_data`.
    """
    data = path_data(model, base, log_zeta, log_g)
    if data["g_knot"][0] != 0:
        raise DataError(
            "continuous tempering weighs draws by the base, so the knots of log g must start at "
            f"beta = 0; got {data['g_knot'][0]:g}"
        )
    require_finite_mass(model, base, 0.0)
    return data


def sample_continuously_tempered(
    model: Model,
    *,
    base: GaussianBase | None = None,
    log_zeta: float = 0.0,
    log_g: LogG = UNIFORM,
    inv_temp: float | None = None,
    base_mass: LogMass | None = None,
    nuts: NutsSettings | None = None,
    seed: int,
    inits: Inits = None,
    inv_metric: FloatArray | None = None,
    compiled: CompiledProgram | None = None,
    engine: Engine = "auto",
) -> Fit:
    """Run Stan's NUTS on the continuously tempered target of a model (paper, eq. 16).

    Parameters
    ----------
    model
        Target density with its data.
    base, log_zeta, log_g
        See :func:`tempering_data`.
    inv_temp
        None to sample the inverse temperature beta; a value to fix it, for looks along the
        path (expectations and log Z then have no meaning).
    base_mass
        Share of the base's mass that the path reaches, for log Z: see
        :mod:`harness.evidence.base_mass`.  If not given, all of it; of a Gaussian base in a model
        with bounds, what lies within them.
    nuts
        Settings of NUTS; Stan's defaults if not given.
    seed
        Seed, 0 to 2^32 - 1.
    inits
        Initial values as CmdStanPy takes them; Stan's own random ones if not given.
    inv_metric
        Inverse metric that NUTS keeps; see :func:`harness.engine.nuts.run_nuts`.
    compiled
        The model's compiled program, if it is at hand.
    engine
        What runs NUTS; see :data:`harness.forms.common.Engine`.

    Raises
    ------
    DataError
        If a setting does not make sense; see :func:`tempering_data`.

    Returns
    -------
    Fit
        ``extended`` holds x, ``inv_temp``, ``delta`` and the log conditional densities
        ``log_w1`` and ``log_w0`` of beta = 1 and beta = 0; ``posterior`` draws resampled within
        each chain with probabilities proportional to w1.
    """
    data = tempering_data(model, base, log_zeta, log_g)
    if inv_temp is not None and not 0 <= inv_temp <= 1:
        raise DataError(f"a fixed inverse temperature lies in [0, 1]; got {inv_temp}")
    data |= {
        "sample_inv_temp": int(inv_temp is None),
        "fixed_inv_temp": np.empty(0) if inv_temp is None else np.array([inv_temp]),
    }
    settings = path_settings(model, base, log_zeta, log_g) | {"inv_temp": inv_temp}
    sampling = Sampling(nuts, seed, inits, compiled, engine, inv_metric)
    form = TemperedForm("continuous_tempering", JOINT_VARIANT, base, base_mass)
    return _sample(form, model, data, settings, sampling)


def sample_collapsed_tempered(
    model: Model,
    *,
    base: GaussianBase | None = None,
    log_zeta: float = 0.0,
    log_g: LogG = UNIFORM,
    ladder: bool = False,
    zero_likelihood: bool = False,
    base_mass: LogMass | None = None,
    nuts: NutsSettings | None = None,
    seed: int,
    inits: Inits = None,
    inv_metric: FloatArray | None = None,
    compiled: CompiledProgram | None = None,
    engine: Engine = "auto",
) -> Fit:
    """Run Stan's NUTS on the continuously tempered target with beta integrated out.

    NUTS moves in x alone, on log b(x) + log integral of g(beta) exp(-beta Delta(x)); the
    inverse temperature is then drawn from its exact conditional given each x.

    Parameters
    ----------
    ladder
        Whether beta takes the values of the knots of ``log_g`` alone, with log weights the
        values there (from a pilot, -log Z(beta_k)), so that the integral is a sum.
    zero_likelihood
        Whether to run the form in which NUTS passes, at a rung at beta = 0, where the likelihood
        is zero, although its gradient there is not a number.  A gradient costs up to twice as
        much; only programs written by :mod:`harness.temper` have this form.
    model, base, log_zeta, log_g, base_mass, nuts, seed, inits, inv_metric, compiled, engine
        As for :func:`sample_continuously_tempered`, and so is what is returned.  On a ladder with
        a rung at 0 the path reaches all of the base where the likelihood is zero but has a
        gradient, and also where it has none with ``zero_likelihood``.

    Raises
    ------
    SamplingError
        If a chain has no draw at which the likelihood is above zero.
    """
    data = tempering_data(model, base, log_zeta, log_g) | {"ladder": int(ladder)}
    settings = path_settings(model, base, log_zeta, log_g)
    settings |= {"ladder": ladder, "zero_likelihood": zero_likelihood}
    sampling = Sampling(nuts, seed, inits, compiled, engine, inv_metric)
    variant = ZERO_LIKELIHOOD_VARIANT if zero_likelihood else COLLAPSED_VARIANT
    form = TemperedForm("collapsed_tempering", variant, base, base_mass)
    return _sample(form, model, data, settings, sampling)


def _sample(
    form: TemperedForm,
    model: Model,
    data: dict[str, Any],
    settings: dict[str, Any],
    sampling: Sampling,
) -> Fit:
    """Run a variant and weigh its draws."""
    ran = run_variant(model, form.variant, data, sampling)
    shapes = {name: draws.shape[2:] for name, draws in ran.parameters.items()}
    settings |= form.base_settings(model, shapes)
    variables = ran.run.variables
    extended = in_extended(ran.parameters)
    extended |= {name: variables[name] for name in ("inv_temp", "delta")}
    extended |= {f"log_w{1 - i}": variables["log_weight"][..., i] for i in (0, 1)}
    _require_target(extended["log_w1"], model)
    rng = np.random.default_rng(sampling.seed)
    return build_fit(
        posterior=target_draws(ran.parameters, extended["log_w1"], "across draws", rng),
        extended=extended,
        sample_stats=ran.run.sample_stats,
        constant_data=model.data,
        attrs=run_attributes(form.method, model, ran, settings, sampling.seed),
        weighting="across draws",
        pseudo_samples=False,
    )


def _require_target(log_w1: FloatArray, model: Model) -> None:
    """Refuse a run of which a chain says nothing about the target."""
    missing = [str(chain + 1) for chain, row in enumerate(log_w1) if np.all(np.isneginf(row))]
    if missing:
        raise SamplingError(
            f"{model.name}: at every draw of chain {', '.join(missing)} the likelihood is zero; "
            "start chains where it is not, or take a g with more mass near beta = 1"
        )


CONTINUOUS_TEMPERING = Method("continuous_tempering", JOINT_VARIANT, sample_continuously_tempered)
COLLAPSED_TEMPERING = Method("collapsed_tempering", COLLAPSED_VARIANT, sample_collapsed_tempered)
