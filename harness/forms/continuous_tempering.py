"""Continuously tempered HMC (Graham and Storkey 2017), joint or with the temperature collapsed."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from harness.arrays import FloatArray
from harness.errors import DataError, SamplingError
from harness.evidence import LogG
from harness.fit import Fit, build_fit, in_extended, target_draws
from harness.forms.common import Run, VariantRun, run_attributes
from harness.forms.form import Form
from harness.forms.method import form_method
from harness.model import Model
from harness.path import GaussianBase
from harness.path.data import UNIFORM, TemperedPath, path_data, require_finite_mass

ZERO_LIKELIHOOD = "collapsed_tempering_zero_likelihood"
"""Variant of collapsed tempering for likelihoods that are zero in places: :mod:`harness.temper`."""


def tempering_data(
    model: Model,
    base: GaussianBase | None = None,
    log_zeta: float = 0.0,
    log_g: LogG = UNIFORM,
) -> dict[str, Any]:
    """Return :func:`path_data` for a g that reaches all the way from the base to the target.

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


class _Tempered(Form):
    """What the two forms share: draws along the path, weighted by p(beta = 1 | x).

    In their fits ``extended`` holds x, ``inv_temp``, ``delta`` and the log conditional densities
    ``log_w1`` and ``log_w0`` of beta = 1 and beta = 0.  ``posterior`` holds draws that are
    resampled within each chain with probabilities proportional to w1.
    """

    weighting = "across draws"
    whole_path = True

    @abstractmethod
    def settings(self, path: TemperedPath) -> dict[str, Any]:
        """Return what a fit records about the form in addition to its path, as plain values."""

    def fit(self, model: Model, path: TemperedPath | None, run: Run, ran: VariantRun) -> Fit:
        """Weigh the draws and make a fit.

        Raises
        ------
        SamplingError
            If a chain has no draw at which the likelihood is positive.
        """
        path = path or TemperedPath()
        shapes = {name: draws.shape[2:] for name, draws in ran.parameters.items()}
        settings = path.settings(model) | self.settings(path) | path.reached(model, shapes)
        variables = ran.run.variables
        extended = in_extended(ran.parameters)
        extended |= {name: variables[name] for name in ("inv_temp", "delta")}
        extended |= {f"log_w{1 - i}": variables["log_weight"][..., i] for i in (0, 1)}
        _require_target(extended["log_w1"], model)
        rng = np.random.default_rng(run.seed)
        return build_fit(
            posterior=target_draws(ran.parameters, extended["log_w1"], self.weighting, rng),
            extended=extended,
            sample_stats=ran.run.sample_stats,
            constant_data=model.data,
            attrs=run_attributes(self.name, model, ran, settings, run.seed),
            weighting=self.weighting,
            pseudo_samples=False,
        )


@dataclass(frozen=True)
class JointTempering(_Tempered):
    """The continuously tempered target of a model, with x and beta sampled jointly (paper, eq. 16).

    Attributes
    ----------
    inv_temp
        None to sample the inverse temperature beta.  A value fixes it, to look at one place along
        the path (expectations and log Z then have no meaning).
    """

    inv_temp: float | None = None

    name = "joint_tempering"
    label = "Joint tempering"

    def data(self, model: Model, path: TemperedPath | None) -> dict[str, Any]:
        """Return the data that the program takes in addition to the model's own.

        Raises
        ------
        DataError
            If a setting makes no sense; see :func:`tempering_data`.
        """
        data = _tempering_data(model, path)
        inv_temp = self.inv_temp
        if inv_temp is not None and not 0 <= inv_temp <= 1:
            raise DataError(f"a fixed inverse temperature must lie in [0, 1]; got {inv_temp}")
        return data | {
            "sample_inv_temp": int(inv_temp is None),
            "fixed_inv_temp": np.empty(0) if inv_temp is None else np.array([inv_temp]),
        }

    def settings(self, path: TemperedPath) -> dict[str, Any]:
        """Return what a fit records about the form in addition to its path, as plain values."""
        return {"inv_temp": self.inv_temp}


@dataclass(frozen=True)
class CollapsedTempering(_Tempered):
    """The continuously tempered target with beta integrated out.

    NUTS moves in x alone, on log b(x) + log integral of g(beta) exp(-beta Delta(x)); the inverse
    temperature is then drawn from its exact conditional given each x.  On a ladder with a rung at 0
    the path can also pass where the likelihood is zero, if the likelihood has a gradient there.
    With ``zero_likelihood`` it can pass even where there is no gradient.

    Attributes
    ----------
    zero_likelihood
        Whether to run the variant in which NUTS, with a rung at beta = 0, can pass where the
        likelihood is zero although its gradient there is not a number.  A gradient costs up to
        twice as much.  Only programs written by :mod:`harness.temper` have this variant.
    """

    zero_likelihood: bool = False

    name = "collapsed_tempering"
    label = "Collapsed tempering"
    has_ladder = True

    @property
    def program(self) -> str:
        """The variant of a model's Stan programs that these settings need."""
        return ZERO_LIKELIHOOD if self.zero_likelihood else self.name

    def data(self, model: Model, path: TemperedPath | None) -> dict[str, Any]:
        """Return the data that the program takes in addition to the model's own.

        Raises
        ------
        DataError
            If a setting makes no sense; see :func:`tempering_data`.
        """
        ladder = path is not None and path.ladder
        return _tempering_data(model, path) | {"ladder": int(ladder)}

    def settings(self, path: TemperedPath) -> dict[str, Any]:
        """Return what a fit records about the form in addition to its path, as plain values."""
        return {"ladder": path.ladder, "zero_likelihood": self.zero_likelihood}


def _tempering_data(model: Model, path: TemperedPath | None) -> dict[str, Any]:
    path = path or TemperedPath()
    return tempering_data(model, path.base, path.log_zeta, path.knots())


def _require_target(log_w1: FloatArray, model: Model) -> None:
    """Raise an error if one of the chains tells nothing about the target."""
    missing = [str(chain + 1) for chain, row in enumerate(log_w1) if np.all(np.isneginf(row))]
    if missing:
        raise SamplingError(
            f"{model.name}: at every draw of chain {', '.join(missing)} the likelihood is zero; "
            "start chains where it is positive, or use a g with more mass near beta = 1"
        )


JOINT_TEMPERING = form_method(JointTempering)
COLLAPSED_TEMPERING = form_method(CollapsedTempering)
