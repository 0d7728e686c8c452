"""Bases from Stan's own approximations of a target: ADVI, Pathfinder and Laplace.

Each runs CmdStan on the model's compiled ``target`` program and returns a Gaussian in base
coordinates whose log zeta is the approximation's estimate of log Z.  Stan fits on its
unconstrained space with the Jacobian, and keeps the constants of everything that the program
adds with ``target +=``, so these are estimates of the program's own Z.

References
----------
Kucukelbir, A., Tran, D., Ranganath, R., Gelman, A. and Blei, D. M. (2017). Automatic
differentiation variational inference. Journal of Machine Learning Research 18(14).

Zhang, L., Carpenter, B., Gelman, A. and Vehtari, A. (2022). Pathfinder: parallel quasi-Newton
variational inference. Journal of Machine Learning Research 23(306).
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import cmdstanpy
import numpy as np

from harness.arrays import FloatArray
from harness.engine.compile import CompiledProgram, compile_programs
from harness.engine.staging import temporary_folder
from harness.engine.stan_data import plain_data
from harness.engine.toolchain import require_cmdstan
from harness.engine.why_ended import stan_message
from harness.errors import DataError, SamplingError
from harness.model import Model
from harness.model.coordinates import StanCoordinates, flatten
from harness.path.gaussian import GaussianBase, gaussian_base
from harness.path.moments import mixed_base, weighted_base, without_duplicates
from harness.seeds import derived_seeds

# Enough digits for every double to survive a file unchanged.
_EXACT_DIGITS = 17
# Stan's message about a variational fit that ran out of iterations.
_NOT_CONVERGED = "The algorithm may not have converged"
_DRAWS_OF_A_LAPLACE_IN_A_BOX = 10_000


@dataclass(frozen=True)
class Advi:
    """A variational fit.

    Attributes
    ----------
    base
        Gaussian base with the moments of the fit's draws and its final ELBO as log zeta.
    iteration
        Iterations at which Stan evaluated the ELBO, shape (n,).
    elbo
        The evidence lower bound there, in nats, shape (n,); each value is a Monte Carlo estimate.
    converged
        Whether Stan found that the ELBO had converged.  If it had not, the base costs efficiency,
        not correctness.
    """

    base: GaussianBase
    iteration: FloatArray
    elbo: FloatArray
    converged: bool


def advi(
    model: Model,
    *,
    full_rank: bool = False,
    draws: int | None = None,
    elbo_draws: int = 1000,
    iterations: int = 10_000,
    tolerance: float = 0.01,
    seed: int,
    compiled: CompiledProgram | None = None,
) -> Advi:
    """Fit a Gaussian by automatic differentiation variational inference.

    The base has the mean and covariance of draws from the fit; for a mean-field fit only the
    variances are kept.  The expectation of the final ELBO is a lower bound of log Z.

    Parameters
    ----------
    model
        Target density with its data.
    full_rank
        Whether the Gaussian has correlations.
    draws
        Number of draws from the fit that the moments are computed from; by default 4000, or 20 for
        each dimension if that is more.
    elbo_draws
        Number of draws for each evaluation of the ELBO.
    iterations
        Largest number of iterations of the optimisation.
    tolerance
        Relative change of the ELBO at which the optimisation ends.  The default is Stan's, with
        which it often ends several nats below the best fit of the family.
        ends several nats below the best of the family.
    seed
        Seed, 0 to 2^32 - 1.
    compiled
        The model's compiled ``target.stan``; it is compiled if not given.

    Raises
    ------
    DataError
        If there are too few draws for the covariance.
    SamplingError
        If Stan does not finish.
    """
    number = _enough_draws(model, draws)
    with _cmdstan(model, compiled) as run:
        fit = run.program.variational(
            **run.common,
            seed=seed,
            algorithm="fullrank" if full_rank else "meanfield",
            draws=number,
            elbo_samples=elbo_draws,
            iter=iterations,
            tol_rel_obj=tolerance,
            save_diagnostics=True,
            require_converged=False,
        )
        console = Path(fit.runset.stdout_files[0]).read_text(errors="replace")
        drawn = {name: fit.stan_variable(name, mean=False) for name in model.parameters}
        trace = np.loadtxt(fit.runset.diagnostic_files[0], delimiter=",", comments="#", ndmin=2)
    iteration, elbo = trace[:, 0], trace[:, 2]
    base = weighted_base(flatten(model, drawn, leading=1), log_zeta=float(elbo[-1]))
    if not full_rank:
        variance = np.diag(np.diag(base.covariance))
        base = gaussian_base(base.mean, variance, log_zeta=base.log_zeta)
    return Advi(base, iteration, elbo, _NOT_CONVERGED not in console)


def pathfinder_base(
    model: Model,
    *,
    draws: int | None = None,
    init_radius: float = 2.0,
    seed: int,
    compiled: CompiledProgram | None = None,
) -> GaussianBase:
    """Fit a Gaussian along one optimisation path.

    The base has the mean and covariance of draws from the fit q.  Its log zeta is the importance
    sampling estimate of log Z from these draws, the log of the mean of p / q.

    Parameters
    ----------
    model
        Target density with its data.
    draws
        Number of draws from the fit; by default 4000, or 20 for each dimension if that is more.
    init_radius
        The path starts uniformly in (-radius, radius) in each unconstrained parameter.
    seed
        Seed, 0 to 2^32 - 1.
    compiled
        The model's compiled ``target.stan``; it is compiled if not given.

    Raises
    ------
    DataError
        If there are too few draws for the covariance.
    SamplingError
        If Stan does not finish, or the density is not positive at any draw.
    """
    number = _enough_draws(model, draws)
    with _cmdstan(model, compiled) as run:
        fit = run.program.pathfinder(
            **run.common,
            seed=seed,
            inits=init_radius,
            num_paths=1,
            draws=number,
            num_single_draws=number,
            psis_resample=False,
        )
        drawn = {name: fit.stan_variable(name) for name in model.parameters}
        method = fit.method_variables()
    log_ratio = np.asarray(method["lp__"] - method["lp_approx__"], dtype=np.float64)
    log_ratio = log_ratio[np.isfinite(log_ratio)]
    if not log_ratio.size:
        raise SamplingError(
            f"Pathfinder found no draw of {model.name} with a positive density (seed {seed})"
        )
    # A draw whose density is zero has a weight of 0.
    log_zeta = float(np.logaddexp.reduce(log_ratio) - np.log(number))
    return weighted_base(flatten(model, drawn, leading=1), log_zeta=log_zeta)


def laplace_base(
    model: Model,
    *,
    init_radius: float = 2.0,
    seed: int,
    compiled: CompiledProgram | None = None,
) -> GaussianBase:
    """Fit a Gaussian at a mode of the target on Stan's unconstrained space.

    With H the Hessian of log p there, the covariance is -H^-1, and log zeta is the Laplace
    approximation log p(mode) + D/2 log 2 pi - 1/2 log det(-H).  A parameter with two bounds is
    Gaussian on the logit scale; the base then has the moments of draws that are mapped into the
    box.

    Parameters
    ----------
    model
        Target density with its data.
    init_radius
        The search starts uniformly in (-radius, radius) in each unconstrained parameter.
    seed
        Seed, 0 to 2^32 - 1.
    compiled
        The model's compiled ``target.stan``; it is compiled if not given.

    Raises
    ------
    SamplingError
        If Stan finds no mode, or log p is not concave there.
    """
    with _cmdstan(model, compiled) as run:
        found = run.program.optimize(
            **run.common, seed=seed, inits=init_radius, jacobian=True, iter=10_000
        )
        # Not stan_variable, which turns a vector of one element into a float.
        described, mode_row = found.metadata.stan_vars, found.optimized_params_np
        at_mode = {name: described[name].extract_reshape(mode_row) for name in model.parameters}
        curvature = run.curvature(Path(found.runset.csv_files[0]))
    shapes = {name: np.shape(value) for name, value in at_mode.items()}
    coordinates = StanCoordinates(model, shapes)
    mode = coordinates.to_stan(flatten(model, at_mode, leading=0))
    precision = -np.asarray(curvature["Hessian"], dtype=np.float64)
    try:
        root = np.linalg.cholesky(0.5 * (precision + precision.T))
    except np.linalg.LinAlgError:
        raise SamplingError(
            f"the log density of {model.name} is not concave where the search for a mode ended "
            f"(seed {seed}): there is no Laplace approximation"
        ) from None
    half_log_det = float(np.log(np.diag(root)).sum())
    log_zeta = float(curvature["lp_mode"]) + 0.5 * mode.size * np.log(2 * np.pi) - half_log_det
    inverse_root = np.linalg.inv(root)
    covariance = np.asarray(inverse_root.T @ inverse_root, dtype=np.float64)
    fit = gaussian_base(mode, covariance, log_zeta=log_zeta)
    if not model.bounds:
        return fit
    rng = np.random.default_rng(seed)
    points = coordinates.to_base(fit.sample(rng, _DRAWS_OF_A_LAPLACE_IN_A_BOX))
    return weighted_base(points, log_zeta=log_zeta)


def local_fits(
    model: Model,
    *,
    starts: int = 20,
    method: Literal["laplace", "pathfinder"] = "laplace",
    init_radius: float = 2.0,
    separation: float = 1.0,
    seed: int,
    compiled: CompiledProgram | None = None,
) -> list[GaussianBase]:
    """Fit Gaussians from many random starts and keep one for each mode.

    Parameters
    ----------
    model
        Target density with its data.
    starts
        Number of starts.
    method
        How each Gaussian is fitted: by :func:`laplace_base` or :func:`pathfinder_base`.
    init_radius
        Starts are uniform in (-radius, radius) in each unconstrained parameter.  Choose it wide
        enough to reach every mode.
    separation
        See :func:`harness.path.without_duplicates`.
    seed
        Seed, from which each start derives its own.
    compiled
        The model's compiled ``target.stan``; it is compiled if not given.

    Returns
    -------
    list[GaussianBase]
        The fits, those with the most evidence first.  A mode that no start reached is missing.

    Raises
    ------
    DataError
        If there are no starts or the method is unknown.
    SamplingError
        If no start led to a fit; the message is that of the last start.
    """
    if starts < 1:
        raise DataError(f"local fits need one start or more; got {starts}")
    if method not in ("laplace", "pathfinder"):
        raise DataError(f"local fits are made by 'laplace' or 'pathfinder'; got '{method}'")
    without_duplicates([], separation=separation)  # raises an error if the separation is unusable
    fitted = laplace_base if method == "laplace" else pathfinder_base
    compiled = compiled or _compiled_target(model)
    fits: list[GaussianBase] = []
    failure: SamplingError | None = None
    for own in derived_seeds(starts, seed):
        try:
            fits.append(fitted(model, init_radius=init_radius, seed=own, compiled=compiled))
        except SamplingError as error:  # this start leads to no fit
            failure = error
    if failure is not None and not fits:
        raise SamplingError(f"none of {starts} starts led to a fit; the last: {failure}")
    return without_duplicates(fits, separation=separation)


def local_base(model: Model, **settings: Any) -> GaussianBase:
    """Match one Gaussian to the mixture of :func:`local_fits`, which takes the same settings.

    Its log zeta is the log of the sum of the local evidences.
    """
    return mixed_base(local_fits(model, **settings))


@dataclass(frozen=True)
class _CmdStanRun:
    """A compiled program and its data, in a folder of their own."""

    program: cmdstanpy.CmdStanModel
    data: Path
    folder: Path

    @property
    def common(self) -> dict[str, Any]:
        """Arguments that are common to all of CmdStanPy's methods."""
        return {
            "data": str(self.data),
            "output_dir": str(self.folder),
            "sig_figs": _EXACT_DIGITS,
        }

    def curvature(self, mode: Path) -> Mapping[str, Any]:
        """Return log density, gradient and Hessian at a mode, from CmdStan's laplace method.

        CmdStanPy does not ask for that file, so we call CmdStan here.
        """
        diagnostics = self.folder / "curvature.json"
        command = [
            str(self.program.exe_file),
            *("laplace", f"mode={mode}", "jacobian=1", "draws=1"),
            *("data", f"file={self.data}"),
            *("output", f"file={self.folder / 'laplace.csv'}", f"diagnostic_file={diagnostics}"),
            f"sig_figs={_EXACT_DIGITS}",
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        written = sorted(self.folder.glob("curvature*.json"))
        if done.returncode != 0 or not written:
            said = (done.stderr.strip() or done.stdout.strip()).splitlines()
            raise RuntimeError(" ".join(said[-3:]) or "CmdStan wrote no Hessian at the mode")
        curvature: dict[str, Any] = json.loads(written[0].read_text())
        return curvature


@contextmanager
def _cmdstan(model: Model, compiled: CompiledProgram | None) -> Iterator[_CmdStanRun]:
    """Prepare a run of a model's target; Stan's errors inside it become a SamplingError."""
    compiled = compiled or _compiled_target(model)
    with temporary_folder() as folder:
        data = folder / "data.json"
        cmdstanpy.write_stan_json(str(data), plain_data(model.data))
        try:
            yield _CmdStanRun(cmdstanpy.CmdStanModel(exe_file=str(compiled.exe)), data, folder)
        except (RuntimeError, ValueError) as error:
            raise SamplingError(
                f"{compiled.program.name}: CmdStan did not finish: {stan_message(folder, error)}"
            ) from error


def _compiled_target(model: Model) -> CompiledProgram:
    program = model.program("target")
    return compile_programs([program], require_cmdstan())[program]


def _enough_draws(model: Model, draws: int | None) -> int:
    number = max(4000, 20 * model.dimension) if draws is None else draws
    if number < 10 * model.dimension or number < 100:
        raise DataError(
            f"the covariance of a base in {model.dimension} dimensions needs "
            f"{max(100, 10 * model.dimension)} draws or more; got {number}"
        )
    return number
