"""Joint continuous tempering by HMC with trajectories of fixed length, as it was published.

References
----------
Graham, M. M. and Storkey, A. J. (2017). Continuously tempered Hamiltonian Monte Carlo.
Uncertainty in Artificial Intelligence, sections 5 and 7.2.
"""

from __future__ import annotations

import numpy as np

from harness.arrays import FloatArray, LogDensity
from harness.errors import DataError
from harness.evidence import inv_temp_log_conditionals
from harness.fit import Fit
from harness.forms.method import python_method
from harness.model import Model
from harness.model.python_target import Target, function_target, target_of
from harness.path.gaussian import GaussianBase, gaussian_base
from harness.samplers.geometric_path import GeometricPath
from harness.samplers.kernels import Hmc, StepSizes
from harness.samplers.result import weighted_fit

METHOD = "joint_hmc"
_FLAT = np.array([[0.0, 0.0], [1.0, 0.0]])
_LARGEST_U = 30.0  # beta = logistic(u) differs from 0 and 1 by 1e-13 there


def joint_density(target: LogDensity, path: GeometricPath) -> LogDensity:
    """Make the log density of (x, u), with its gradient; beta = 1 / (1 + exp(-u)) and g = 1.

    log p(x, u) = beta (log gamma - log zeta) + (1 - beta) log b + log beta + log(1 - beta), where
    the last two terms are the Jacobian (Graham and Storkey 2017, eq. 16).

    Parameters
    ----------
    target
        Log densities (n,) and gradients (n, D) of gamma at points (n, D).
    path
        The path, whose base is used.

    Returns
    -------
    LogDensity
        Log densities and gradients at points (n, D + 1), whose last coordinate is u.
    """
    base = path.base

    def density(points: FloatArray) -> tuple[FloatArray, FloatArray]:
        x, u = points[:, :-1], points[:, -1]
        log_gamma, gradient = target(x)
        log_base, base_gradient = base.log_density(x), base.log_density_gradient(x)
        beta = 1 / (1 + np.exp(-np.clip(u, -700, 700)))
        rise = log_gamma - base.log_zeta - log_base
        value = log_base + beta * rise - np.logaddexp(0, u) - np.logaddexp(0, -u)
        slope = beta * (1 - beta) * rise + 1 - 2 * beta
        along = beta[:, None] * gradient + (1 - beta)[:, None] * base_gradient
        return value, np.hstack([along, slope[:, None]])

    return density


def joint_hmc(
    what: Model | Target,
    base: GaussianBase,
    *,
    chains: int = 10,
    draws: int = 1000,
    warmup: int = 500,
    kernel: Hmc | None = None,
    step_size: float | None = None,
    seed: int,
) -> Fit:
    """Sample (x, u) together by HMC with an identity mass matrix.

    Parameters
    ----------
    what
        Model or target.
    base
        Base at beta = 0, with a guess at log Z.  Chains start at draws of it, and u at standard
        normal ones.
    chains, draws, warmup
        Number of chains, which run side by side, iterations that are kept, and those before.
    kernel
        HMC; by default with 20 leapfrog steps, as published.
    step_size
        In units of x and of u, which share it; if not given, warm-up tunes it.
    seed
        Seed; the same seed gives the same fit.

    Returns
    -------
    Fit
        A fit like that of a continuously tempered run with g = 1.

    Raises
    ------
    DataError
        If a count is too small, the base does not have the target's dimension, or the target's
        density is not usable at draws of the base.
    """
    if chains < 1 or draws < 1 or warmup < 0:
        raise DataError(
            "joint tempering needs one chain and one draw or more, and no negative warm-up; got "
            f"{chains}, {draws} and {warmup}"
        )
    kernel = kernel or Hmc(leapfrog_steps=20)
    target = target_of(what)
    path, rng = GeometricPath(target, base), np.random.default_rng(seed)
    dimension = target.dimension
    # The joint density is the far end of another path, whose base only provides the unit metric.
    joint = GeometricPath(
        function_target(target.name, joint_density(target.log_density, path), dimension + 1),
        gaussian_base(np.zeros(dimension + 1), np.eye(dimension + 1)),
    )
    start = path.start_at_base(rng, chains).points
    state = joint.start(np.hstack([start, rng.standard_normal((chains, 1))]))
    steps = StepSizes(1, step_size or 0.1, kernel.target_acceptance)
    group = np.zeros(chains, dtype=np.intp)
    kept = np.empty((chains, draws, dimension + 1))
    acceptance = np.empty((chains, draws))
    for iteration in range(warmup + draws):
        learning = iteration < warmup and step_size is None
        size = steps.current(group) if learning else steps.tuned(group)
        moved = kernel.move(joint, state, 1.0, size, rng)
        state = moved.state
        if learning:
            steps.learn(group, moved.acceptance)
        if iteration >= warmup:
            kept[:, iteration - warmup] = state.points
            acceptance[:, iteration - warmup] = moved.acceptance
    x, u = kept[..., :-1], np.clip(kept[..., -1], -_LARGEST_U, _LARGEST_U)
    # Draw after draw, because the density of a chain's points may depend on which chain it is.
    flat = path.state(np.swapaxes(x, 0, 1).reshape(-1, dimension))
    delta = path.delta(flat).reshape(draws, chains).T
    log_w1, log_w0 = inv_temp_log_conditionals(delta, _FLAT, ladder=False)
    # Evaluating the kept draws again is not part of the run's cost.
    path.cost.gradients = joint.cost.gradients + chains
    return weighted_fit(
        METHOD,
        path,
        np.ascontiguousarray(x),
        {"inv_temp": 1 / (1 + np.exp(-u)), "delta": delta, "log_w1": log_w1, "log_w0": log_w0},
        settings={
            **path.base_settings(path.base_mass(seed, chains, ladder=False)),
            "log_g": _FLAT.tolist(),
            "ladder": False,
            "kernel": repr(kernel),
            "chains": chains,
            "draws": draws,
            "warmup": warmup,
            "step_size": step_size,
        },
        seed=seed,
        stats={
            "lp": flat.log_gamma.reshape(draws, chains).T,
            "acceptance_rate": acceptance,
        },
        found={"tuned_step_size": float(steps.tuned(group)[0])},
    )


JOINT_HMC = python_method(METHOD, joint_hmc)
