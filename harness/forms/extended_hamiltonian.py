"""The extended Hamiltonian of Gobbo and Leimkuhler (2015): a control variable sets beta.

References
----------
Gobbo, G. and Leimkuhler, B. J. (2015). Extended Hamiltonian approach to continuous tempering.
Physical Review E 91, 061301.

Graham, M. M. and Storkey, A. J. (2017). Continuously tempered Hamiltonian Monte Carlo.
Uncertainty in Artificial Intelligence: section 4 and eq. 13.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.arrays import FloatArray
from harness.engine.compile import CompiledProgram
from harness.engine.nuts import NutsSettings
from harness.errors import DataError, SamplingError
from harness.evidence import LogG
from harness.fit import Fit, build_fit, target_draws
from harness.forms.common import Engine, Inits, Sampling, run_attributes, run_variant
from harness.forms.method import Method
from harness.model import Model
from harness.path import GaussianBase
from harness.path.data import path_data, path_settings

VARIANT = "extended_hamiltonian"


def extended_hamiltonian_data(
    model: Model,
    *,
    theta: tuple[float, float] = (1.0, 2.0),
    lowest_inv_temp: float = 0.1,
    base: GaussianBase | None = None,
    log_zeta: float = 0.0,
    log_g: LogG | None = None,
) -> dict[str, Any]:
    """Return the data that an extended-Hamiltonian program takes besides the model's own.

    Parameters
    ----------
    model, theta, lowest_inv_temp, base, log_zeta, log_g
        See :func:`sample_extended_hamiltonian`.

    Raises
    ------
    DataError
        If the thresholds do not ascend from above 0, s does not lie between 0 and 1, the knots
        of log g do not start at s; see also :func:`harness.path.data.path_data`.
    """
    thresholds = np.asarray(theta, dtype=np.float64)
    if not (
        thresholds.shape == (2,)
        and np.all(np.isfinite(thresholds))
        and 0 < thresholds[0] < thresholds[1]
    ):
        raise DataError(f"theta is two thresholds, 0 < theta_1 < theta_2; got {theta}")
    if not 0 < lowest_inv_temp < 1:
        raise DataError(
            f"the lowest inverse temperature s lies between 0 and 1, reaching neither; got "
            f"{lowest_inv_temp}"
        )
    data = path_data(model, base, log_zeta, _flat(lowest_inv_temp) if log_g is None else log_g)
    if data["g_knot"][0] != lowest_inv_temp:
        raise DataError(
            f"the knots of log g must start at the lowest inverse temperature, "
            f"{lowest_inv_temp:g}; they start at {data['g_knot'][0]:g}"
        )
    return data | {"theta": thresholds}


def sample_extended_hamiltonian(
    model: Model,
    *,
    theta: tuple[float, float] = (1.0, 2.0),
    lowest_inv_temp: float = 0.1,
    base: GaussianBase | None = None,
    log_zeta: float = 0.0,
    log_g: LogG | None = None,
    nuts: NutsSettings | None = None,
    seed: int,
    inits: Inits = None,
    compiled: CompiledProgram | None = None,
    engine: Engine = "auto",
) -> Fit:
    """Run Stan's NUTS on x and a control variable u that sets the inverse temperature.

    The density is that of eq. 13 without momenta,
    log p(x, u) = log gamma_beta(u)(x) + log g(beta(u)) - omega(u), where beta(u) = 1 on the
    plateau |u| <= theta_1 and falls smoothly to s at |u| = theta_2, and omega is 0 up to there
    and a quadratic wall beyond.  Draws on the plateau are draws of the target and count alike;
    the others do not count.

    Parameters
    ----------
    model
        Target density with its data.
    theta
        Thresholds (theta_1, theta_2) of u, in units of u; the scale drops out of the law of x.
    lowest_inv_temp
        s, between 0 and 1, the inverse temperature beyond theta_2.
    base
        Gaussian base, or None for pure tempering, gamma_beta = gamma^beta.
    log_zeta
        Guess at log Z, used where there is no Gaussian base.
    log_g
        Knots (beta, log g(beta)) from beta = s to 1 of a bias of u, flat if not given.  With
        -log Z(beta), from a pilot, u is spread evenly over |u| < theta_2; Gobbo and Leimkuhler
        learn such a bias during the run instead.
    nuts
        Settings of NUTS; Stan's defaults if not given.
    seed
        Seed, 0 to 2^32 - 1; same seed, same draws.
    inits
        Initial values as CmdStanPy takes them; Stan's own random ones if not given.
    compiled
        The model's compiled ``extended_hamiltonian.stan``, if it is at hand.
    engine
        What runs NUTS; see :data:`harness.forms.common.Engine`.

    Returns
    -------
    Fit
        ``extended`` holds x, ``u``, ``inv_temp`` and ``log_w1``, 0 on the plateau and -inf off
        it; expectations are means over the plateau, with the error of that ratio.
        ``posterior`` resamples the plateau's draws within each chain.  There is no estimate of
        log Z.

    Raises
    ------
    DataError
        If a setting does not make sense; see :func:`extended_hamiltonian_data`.
    SamplingError
        If a chain has no draw on the plateau.
    """
    data = extended_hamiltonian_data(
        model,
        theta=theta,
        lowest_inv_temp=lowest_inv_temp,
        base=base,
        log_zeta=log_zeta,
        log_g=log_g,
    )
    ran = run_variant(model, VARIANT, data, Sampling(nuts, seed, inits, compiled, engine))
    variables = ran.run.variables
    extended = {name: variables[name] for name in (*model.parameters, "u", "inv_temp")}
    extended["log_w1"] = variables["log_weight"]
    _require_plateau(extended["log_w1"], model)
    raw = {name: extended[name] for name in model.parameters}
    rng = np.random.default_rng(seed)
    bias = _flat(lowest_inv_temp) if log_g is None else log_g
    settings = path_settings(model, base, log_zeta, bias)
    settings |= {"theta": list(theta), "lowest_inv_temp": lowest_inv_temp}
    return build_fit(
        posterior=target_draws(raw, extended["log_w1"], "across draws", rng),
        extended=extended,
        sample_stats=ran.run.sample_stats,
        constant_data=model.data,
        attrs=run_attributes("extended_hamiltonian", model, ran, settings, seed),
        weighting="across draws",
        pseudo_samples=False,
    )


def _flat(lowest_inv_temp: float) -> LogG:
    return ((lowest_inv_temp, 0.0), (1.0, 0.0))


def _require_plateau(log_weight: FloatArray, model: Model) -> None:
    """Refuse a run of which a chain says nothing about the target."""
    missing = [str(chain + 1) for chain, row in enumerate(log_weight) if np.all(np.isneginf(row))]
    if missing:
        raise SamplingError(
            f"{model.name}: no draw of chain {', '.join(missing)} is on the plateau "
            f"|u| <= theta_1, where draws are of the target; raise lowest_inv_temp or theta_1, "
            f"or give a log_g that offsets log Z(beta)"
        )


EXTENDED_HAMILTONIAN = Method("extended_hamiltonian", VARIANT, sample_extended_hamiltonian)
