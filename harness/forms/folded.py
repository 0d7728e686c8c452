"""A folded target, and importance sampling from the same mixture of Gaussians.

See :mod:`harness.path.fold`.  The pseudo-samples of other forms are here the F places that the
mixture folds onto one y.  Each has a probability proportional to w_f exp(D_f(y)), and every
expectation is averaged over them exactly.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from typing import Any

import numpy as np

from harness import evidence
from harness.arrays import FloatArray
from harness.engine.compile import CompiledProgram
from harness.engine.nuts import NutsSettings
from harness.errors import DataError
from harness.evidence.bridge import bridge_sampling
from harness.fit import Fit, build_fit, evidence_attributes, target_draws
from harness.forms.common import Engine, Run, VariantRun, run_attributes
from harness.forms.form import Form, sample
from harness.forms.from_pilot import scout
from harness.forms.method import Method, form_method
from harness.model import Model
from harness.model.numpy_density import target_density
from harness.model.python_target import Target, target_of
from harness.path import GaussianBase, PilotSettings
from harness.path.data import TemperedPath
from harness.path.fold import Fold
from harness.path.modes import FoldSettings, fit_fold


@dataclass(frozen=True)
class Folded(Form):
    """A model's target, folded by a mixture of Gaussians; the model needs a ``folded.stan``.

    In a fit ``extended`` holds the places of each y, with a last axis over the F components, and
    ``log_weight``.  ``posterior`` holds one place of each draw, chosen with its probability.  Log Z
    is estimated by bridge sampling.  Gradients in its cost are those of the folded density, each of
    which takes F gradients of the target.  Chains start at draws of N(0, I) unless initial values
    are given.

    Attributes
    ----------
    fold
        The mixture, in base coordinates.
    bridge_draws
        Number of draws of N(0, I) from which, with those of NUTS, bridge sampling estimates log Z.
    """

    fold: Fold
    bridge_draws: int = 1000

    name = "folded"
    label = "Folded"
    weighting = "within draws"

    def data(self, model: Model, path: TemperedPath | None) -> dict[str, Any]:
        """Return the data that the program takes in addition to the model's own.

        Raises
        ------
        DataError
            If the fold does not have the model's dimension, there are fewer than 4 bridge draws, or
            a path is given.
        """
        if path is not None:
            raise DataError("a folded target follows no path: give None for the path")
        if self.fold.mean.shape[1] != model.dimension:
            raise DataError(
                f"the fold has dimension {self.fold.mean.shape[1]}, but {model.name} has "
                f"{model.dimension}"
            )
        if self.bridge_draws < 4:
            raise DataError(f"bridge sampling needs 4 draws or more; got {self.bridge_draws}")
        return self.fold.data()

    def started(self, model: Model, run: Run) -> Run:
        """Start chains at draws of N(0, I), unless initial values are given."""
        if run.inits is not None:
            return run
        rng, size = _stream(run), (run.nuts.chains, model.dimension)
        return replace(run, inits=[{"y": y.tolist()} for y in rng.standard_normal(size)])

    def fit(self, model: Model, path: TemperedPath | None, run: Run, ran: VariantRun) -> Fit:
        """Place the draws, choose a place for each of them, and estimate log Z."""
        started = time.perf_counter()
        fold, chains = self.fold, run.nuts.chains
        rng = _stream(run)
        if run.inits is None:  # the starting points were taken from the stream first
            rng.standard_normal((chains, model.dimension))
        target = target_of(model)
        log_weight = ran.run.variables["log_weight"]
        of_base = fold.log_weight(
            rng.standard_normal((self.bridge_draws, model.dimension)), target.log_density
        )
        log_evidence = bridge_sampling(
            np.logaddexp.reduce(log_weight, axis=-1), np.logaddexp.reduce(of_base, axis=-1)
        ).log_evidence
        places = _parameters(target, fold, ran.run.variables["y"])
        settings = {"fold": _plain(fold), "bridge_draws": self.bridge_draws}
        attrs = run_attributes(self.name, model, ran, settings, run.seed)
        spent = time.perf_counter() - started
        attrs["gradients_sampling"] = attrs["gradients_sampling"] + _share(
            self.bridge_draws, chains
        )
        attrs["seconds_sampling"] = attrs["seconds_sampling"] + _share(spent, chains)
        choice = np.random.default_rng(run.seed)
        return build_fit(
            posterior=target_draws(places, log_weight, self.weighting, choice),
            extended={**places, "log_weight": log_weight},
            sample_stats=ran.run.sample_stats,
            constant_data=model.data,
            attrs=attrs | evidence_attributes(log_evidence),
            weighting=self.weighting,
        )


def _stream(run: Run) -> np.random.Generator:
    """Return the stream of random numbers for starting points and bridge draws, in that order."""
    return np.random.default_rng([run.seed, 2])


def sample_folded_from_pilot(
    model: Model,
    *,
    base: GaussianBase,
    settings: PilotSettings | None = None,
    fold: FoldSettings | None = None,
    bridge_draws: int = 1000,
    nuts: NutsSettings | None = None,
    seed: int,
    compiled: CompiledProgram | None = None,
    engine: Engine = "auto",
) -> Fit:
    """Run a pilot, fit a mixture of Gaussians to its particles, and sample the folded target.

    Parameters
    ----------
    base, settings
        The base that the pilot starts from, and the pilot's settings.
    fold
        How the mixture is fitted.
    model, nuts, seed, compiled, engine
        The model; the others are the same as for :class:`harness.forms.common.Run`.
    bridge_draws
        The same as for :class:`Folded`.

    Returns
    -------
    Fit
        A fit as :class:`Folded` makes it.  ``gradients_pilot``, which counts gradients of the
        target itself, and ``seconds_pilot`` are the cost of the pilot and of fitting the mixture.
    """
    found, cost = _scouted_fold(model, base, settings, fold, seed)
    run = Run(seed=seed, nuts=nuts or NutsSettings(), compiled=compiled, engine=engine)
    fit = sample(model, Folded(found, bridge_draws), None, run)
    fit.tree.attrs |= cost
    return fit.with_settings(**_pilot_settings(settings, fold))


def sample_fold_importance(
    model: Model,
    *,
    base: GaussianBase,
    settings: PilotSettings | None = None,
    fold: FoldSettings | None = None,
    draws: int = 1000,
    groups: int = 16,
    nuts: object = None,
    seed: int,
    compiled: object = None,
) -> Fit:
    """Run a pilot, fit a mixture of Gaussians to its particles, and use it for importance sampling.

    Draws y of N(0, I) are placed in all frames of the mixture, and each place has the weight
    w_f exp(D_f(y)).  There is no Markov chain; :class:`Folded` is to be compared with this.

    Parameters
    ----------
    model, seed
        Target density with its data, and seed.
    base, settings, fold
        The same as for :func:`sample_folded_from_pilot`.
    draws
        Number of draws of y in each group; each y has F places.
    groups
        Number of groups of draws, which are the chains of the fit.
    nuts, compiled
        Not used; every method takes them.

    Raises
    ------
    DataError
        If there are fewer than 4 draws or there is no group.
    """
    if draws < 4 or groups < 1:
        raise DataError(f"this needs 4 draws and 1 group at least; got {draws} and {groups}")
    found, cost = _scouted_fold(model, base, settings, fold, seed)
    started = time.perf_counter()
    target = target_of(model)
    rng = np.random.default_rng([seed, 2])
    y = rng.standard_normal((groups, draws, model.dimension))
    log_weight = found.log_weight(y.reshape(-1, model.dimension), target.log_density)
    log_weight = log_weight.reshape(groups, draws, -1)
    log_ratio = np.logaddexp.reduce(log_weight, axis=-1)
    total = float(np.logaddexp.reduce(log_ratio, axis=None) - np.log(log_ratio.size))
    error = evidence.standard_error(np.exp(log_ratio - total))
    places = _parameters(target, found, y)
    # First a place is chosen for each y, and then values of y are resampled by their weights.
    one_place = target_draws(places, log_weight, "within draws", rng)
    return build_fit(
        posterior=target_draws(one_place, log_ratio, "across draws", rng),
        extended={**places, "log_w1": log_weight},
        sample_stats={"lp": log_ratio},
        constant_data=model.data,
        attrs={
            "method": "fold_importance",
            "engine": target.engine,
            "model": model.name,
            "program": model.name,
            "settings": {"fold": _plain(found), "draws": draws, "groups": groups}
            | _pilot_settings(settings, fold),
            "seed": seed,
            "gradients_warmup": np.zeros(groups),
            "gradients_sampling": _share(draws * groups, groups),
            "seconds_warmup": np.zeros(groups),
            "seconds_sampling": _share(time.perf_counter() - started, groups),
            "harness_version": version("harness"),
        }
        | cost
        | evidence_attributes(evidence.LogEvidence(total, error)),
        weighting="across draws",
    )


def _scouted_fold(
    model: Model,
    base: GaussianBase,
    settings: PilotSettings | None,
    fold: FoldSettings | None,
    seed: int,
) -> tuple[Fold, dict[str, float]]:
    """Return the mixture, and what it cost as attributes of a fit."""
    scouted = scout(model, base, settings=settings, seed=seed)
    started = time.perf_counter()
    fitted = fit_fold(scouted.found.points, target_density(model), settings=fold)
    return fitted.fold, {
        "gradients_pilot": scouted.gradients + fitted.gradients,
        "seconds_pilot": scouted.seconds + time.perf_counter() - started,
    }


def _parameters(target: Target, fold: Fold, y: FloatArray) -> dict[str, FloatArray]:
    """Return parameters at every place, (chains, draws, ..., F), of y, (chains, draws, D)."""
    parameters = target.parameters(fold.points(y))
    return {name: np.moveaxis(np.asarray(value), 2, -1) for name, value in parameters.items()}


def _share(total: float, chains: int) -> FloatArray:
    return np.full(chains, total / chains)


def _plain(fold: Fold) -> dict[str, Any]:
    return {name: value.tolist() for name, value in vars(fold).items()}


def _pilot_settings(settings: PilotSettings | None, fold: FoldSettings | None) -> dict[str, Any]:
    return {
        "pilot": asdict(settings or PilotSettings()),
        "fit_fold": asdict(fold or FoldSettings()),
    }


FOLDED = form_method(Folded, path=None)
FOLDED_FROM_PILOT = Method(
    "folded_from_pilot", Folded.name, sample_folded_from_pilot, driven_by="python"
)
FOLD_IMPORTANCE = Method("fold_importance", None, sample_fold_importance, driven_by="python")
