"""Pseudo-extended MCMC (Nemeth et al. 2019): N pseudo-samples, each with its own temperature."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.evidence import LogG
from harness.fit import Fit, build_fit, in_extended, target_draws
from harness.forms.common import Inits, Run, VariantRun, run_attributes
from harness.forms.form import Form
from harness.forms.method import form_method
from harness.model import Model
from harness.path.data import TemperedPath, knots, require_finite_mass

BELOW_ONE = "pseudo_extended_below_one"
"""Variant of a model's programs whose inverse temperatures end below 1."""

Shape = tuple[float, float]
"""(a, b) of a factor beta^(a - 1) (1 - beta)^(b - 1) in a density of inverse temperatures."""


class _PseudoSamples(Form):
    """What the two forms share: N pseudo-samples, of which one is chosen in each draw.

    In their fits ``extended`` holds the pseudo-samples, ``inv_temp``, ``delta`` and ``log_weight``,
    with a last axis over pseudo-samples.  ``posterior`` holds one pseudo-sample of each draw,
    chosen with its weight as probability.
    """

    weighting = "within draws"
    whole_path = True

    @property
    @abstractmethod
    def points(self) -> int:
        """Number of pseudo-samples."""

    @abstractmethod
    def settings(self, model: Model, path: TemperedPath) -> dict[str, Any]:
        """Return what a fit records about the form and its path, as plain values."""

    def started(self, model: Model, run: Run) -> Run:
        """Move the axis over pseudo-samples of initial values to where the program has it."""
        if model.pseudo_axis != "first":
            return run
        return replace(run, inits=_axis_first(model, run.inits))

    def fit(self, model: Model, path: TemperedPath | None, run: Run, ran: VariantRun) -> Fit:
        """Choose a pseudo-sample in each draw and make a fit."""
        path = path or TemperedPath()
        generated = {name: ran.run.variables[name] for name in ("inv_temp", "delta", "log_weight")}
        num = generated["inv_temp"].shape[-1]
        parameters = {
            name: np.repeat(draws[..., None], num, axis=-1) if name in model.shared else draws
            for name, draws in ran.parameters.items()
        }
        shapes = {name: draws.shape[2:-1] for name, draws in parameters.items()}
        settings = self.settings(model, path) | path.reached(model, shapes)
        # The choice has its own stream; the chains use (seed, chain) in Stan's generator.
        rng = np.random.default_rng(run.seed)
        return build_fit(
            posterior=target_draws(parameters, generated["log_weight"], self.weighting, rng),
            extended=in_extended(parameters) | generated,
            sample_stats=ran.run.sample_stats,
            constant_data=model.data,
            attrs=run_attributes(self.name, model, ran, settings, run.seed),
            weighting=self.weighting,
        )


@dataclass(frozen=True)
class PseudoExtended(_PseudoSamples):
    """The pseudo-extended target of a model (paper, eq. 8).

    Attributes
    ----------
    num_pseudo_samples
        N; with N = 1 the target itself is sampled.
    inv_temp
        None to sample the inverse temperatures beta_1..N; one value to fix all of them to it; N
        values for a fixed ladder.  If all are 0, the instrumental distribution is the base itself.
    g_shape
        (a, b) of a factor beta^(a - 1) (1 - beta)^(b - 1) in g: if the path's ``log_g`` is flat, g
        is a Beta(a, b) density.  Inverse temperatures lie between the first knot and 1.
    g_correlation
        Correlation of a Gaussian copula over the inverse temperatures, between -1 / (N - 1)
        and 1; a value just above the lower end spreads them out (paper, section 5).
    log_pi, pi_shape
        The same for pi(beta), the density of the chosen pseudo-sample's inverse temperature;
        uniform if not given.
    highest_inv_temp
        Where sampled inverse temperatures end, both under g and under pi.  Below 1 it needs the
        model's program ``pseudo_extended_below_one``, and log Z cannot be estimated.
    """

    num_pseudo_samples: int = 2
    inv_temp: float | Sequence[float] | None = None
    g_shape: Shape = (1.0, 1.0)
    g_correlation: float = 0.0
    log_pi: LogG | None = None
    pi_shape: Shape = (1.0, 1.0)
    highest_inv_temp: float = 1.0

    name = "pseudo_extended"
    label = "Pseudo-extended"

    @property
    def program(self) -> str:
        """The model's program, which is another one if inverse temperatures end below 1."""
        return self.name if self.highest_inv_temp == 1 else BELOW_ONE

    @property
    def points(self) -> int:
        """Number of pseudo-samples."""
        return self.num_pseudo_samples

    def data(self, model: Model, path: TemperedPath | None) -> dict[str, Any]:
        """Return the data that a pseudo-extended program takes in addition to the model's own.

        Raises
        ------
        DataError
            If N < 1, a fixed value lies outside [0, 1], a ladder does not have N values, a shape is
            not positive or makes a density infinite at a fixed value, the correlation is out of its
            range, pi and g start at different inverse temperatures, inverse temperatures end below
            where they start, or below 1 although they are fixed or have a correlation, or
            pseudo-samples that share parameters are given a Gaussian base; see also
            :func:`harness.path.data.path_data`.
        """
        path = path or TemperedPath()
        num, inv_temp = self.num_pseudo_samples, self.inv_temp
        if path.base is not None and model.shared:
            raise DataError(
                f"pseudo-samples of {model.name} share {', '.join(model.shared)}, so they take no "
                "Gaussian base: leave it out, or use the form that shares nothing"
            )
        data = path.data(model) | {"N": _checked_num(num)}
        ladder = _checked_ladder(num, inv_temp)
        start = data["g_knot"][0]
        if num > 1:  # with a single pseudo-sample, the target itself is sampled
            lowest, power = (start, self.g_shape[0]) if inv_temp is None else (ladder.min(), 0.0)
            require_finite_mass(model, path.base, lowest, power)
        flat = ((start, 0.0), (1.0, 0.0))
        pi_knot, pi_value = knots(flat if self.log_pi is None else self.log_pi, "log pi")
        if pi_knot[0] != start:
            raise DataError(
                f"pi(beta) and g(beta) must start at the same inverse temperature; got "
                f"{pi_knot[0]:g} and {start:g}"
            )
        for name, shape in (("g_shape", self.g_shape), ("pi_shape", self.pi_shape)):
            if not (len(shape) == 2 and all(np.isfinite(part) and part > 0 for part in shape)):
                raise DataError(f"{name} must be two positive numbers (a, b); got {shape}")
            at_an_end = (ladder == 0) & (shape[0] != 1) | (ladder == 1) & (shape[1] != 1)
            if np.any(at_an_end):
                raise DataError(
                    f"with {name} {shape} no inverse temperature can be fixed to 0 or 1"
                )
        lowest = -1 / max(num - 1, 1)
        if not lowest < self.g_correlation < 1:
            raise DataError(
                f"the correlation of {num} inverse temperatures must lie between {lowest:.3g} and "
                f"1; got {self.g_correlation}"
            )
        if self.g_correlation and inv_temp is not None:
            raise DataError("fixed inverse temperatures have no correlation")
        highest = self.highest_inv_temp
        if not start < highest <= 1:
            raise DataError(
                f"inverse temperatures start at {start:g}, so they end above it and up to 1; got "
                f"{highest}"
            )
        if highest < 1:
            if self.g_correlation or inv_temp is not None:
                raise DataError(
                    "inverse temperatures that end below 1 are sampled without a correlation"
                )
            data["highest_inv_temp"] = float(highest)
        return data | {
            "sample_inv_temp": int(inv_temp is None),
            "fixed_inv_temp": ladder,
            "g_shape": np.asarray(self.g_shape, dtype=np.float64),
            "g_correlation": float(self.g_correlation),
            "P": len(pi_knot),
            "pi_knot": pi_knot,
            "log_pi": pi_value,
            "pi_shape": np.asarray(self.pi_shape, dtype=np.float64),
        }

    def settings(self, model: Model, path: TemperedPath) -> dict[str, Any]:
        """Return what a fit records about the form and its path, as plain values."""
        num, log_pi = self.num_pseudo_samples, self.log_pi
        fixed = None if self.inv_temp is None else _checked_ladder(num, self.inv_temp).tolist()
        kept = path.settings(model)
        if self.highest_inv_temp < 1:
            kept["inv_temp_ranges"] = [[kept["log_g"][0][0], self.highest_inv_temp]] * num
        return kept | {
            "num_pseudo_samples": num,
            "inv_temp": fixed,
            "g_shape": list(self.g_shape),
            "g_correlation": self.g_correlation,
            "log_pi": None if log_pi is None else np.asarray(log_pi, dtype=np.float64).tolist(),
            "pi_shape": list(self.pi_shape),
        }


@dataclass(frozen=True)
class CollapsedPseudoExtended(_PseudoSamples):
    """The pseudo-extended target with each beta_i integrated out of its q.

    A fit's ``inv_temp`` is drawn from its conditional under each pseudo-sample's own q.

    Attributes
    ----------
    num_pseudo_samples
        N; with N = 1 the target itself is sampled.
    """

    num_pseudo_samples: int = 2

    name = "collapsed_pseudo_extended"
    label = "Collapsed pseudo-extended"
    has_ladder = True

    @property
    def points(self) -> int:
        """Number of pseudo-samples."""
        return self.num_pseudo_samples

    def data(self, model: Model, path: TemperedPath | None) -> dict[str, Any]:
        """Return the data that the program takes in addition to the model's own.

        Raises
        ------
        DataError
            If N < 1; see also :func:`harness.path.data.path_data`.
        """
        path = path or TemperedPath()
        data = path.data(model)
        if self.num_pseudo_samples > 1:
            power = 0.0 if path.ladder else 1.0
            require_finite_mass(model, path.base, data["g_knot"][0], power=power)
        return data | {"N": _checked_num(self.num_pseudo_samples), "ladder": int(path.ladder)}

    def settings(self, model: Model, path: TemperedPath) -> dict[str, Any]:
        """Return what a fit records about the form and its path, as plain values."""
        own = {"num_pseudo_samples": self.num_pseudo_samples, "ladder": path.ladder}
        return path.settings(model) | own


def _checked_num(num_pseudo_samples: int) -> int:
    if num_pseudo_samples < 1:
        raise DataError(
            f"pseudo-extended MCMC needs N >= 1 pseudo-samples; got N = {num_pseudo_samples}"
        )
    return num_pseudo_samples


def _checked_ladder(
    num_pseudo_samples: int, inv_temp: float | Sequence[float] | None
) -> FloatArray:
    """Return the fixed inverse temperatures, shape (N,), or (0,) if they are sampled."""
    if inv_temp is None:
        return np.empty(0)
    given = np.asarray(inv_temp, dtype=np.float64)
    if given.ndim > 1 or given.shape not in ((), (num_pseudo_samples,)):
        raise DataError(
            f"inv_temp must be one inverse temperature, or one for each of the "
            f"{num_pseudo_samples} pseudo-samples; got shape {given.shape}"
        )
    if not np.all((given >= 0) & (given <= 1)):
        raise DataError(f"fixed inverse temperatures must lie in [0, 1]; got {inv_temp}")
    return np.broadcast_to(given, num_pseudo_samples).copy()


def _axis_first(model: Model, inits: Inits) -> Inits:
    """Move the axis over pseudo-samples of initial values from the last place to the first."""
    if isinstance(inits, (list, tuple)):
        return [_axis_first(model, each) for each in inits]
    if not isinstance(inits, Mapping):
        return inits
    return {
        name: np.moveaxis(np.asarray(value), -1, 0) if name in model.parameters else value
        for name, value in inits.items()
    }


PSEUDO_EXTENDED = form_method(PseudoExtended)
PSEUDO_EXTENDED_BELOW_ONE = form_method(PseudoExtended, program=BELOW_ONE)
COLLAPSED_PSEUDO_EXTENDED = form_method(CollapsedPseudoExtended)
