"""The extended Hamiltonian of Gobbo and Leimkuhler (2015): a control variable sets beta.

References
----------
Gobbo, G. and Leimkuhler, B. J. (2015). Extended Hamiltonian approach to continuous tempering.
Physical Review E 91, 061301.

Graham, M. M. and Storkey, A. J. (2017). Continuously tempered Hamiltonian Monte Carlo.
Uncertainty in Artificial Intelligence: section 4 and eq. 13.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from harness.arrays import FloatArray
from harness.errors import DataError, SamplingError
from harness.fit import Fit, build_fit, target_draws
from harness.forms.common import Run, VariantRun, run_attributes
from harness.forms.form import Form
from harness.forms.method import form_method
from harness.model import Model
from harness.path.data import TemperedPath


@dataclass(frozen=True)
class ExtendedHamiltonian(Form):
    """The joint density of x and a control variable u, which sets the inverse temperature.

    It is the density of eq. 13 without momenta,
    log p(x, u) = log gamma_beta(u)(x) + log g(beta(u)) - omega(u).  Here beta(u) = 1 on the plateau
    |u| <= theta_1 and falls smoothly to s at |u| = theta_2.  omega is 0 up to there and a quadratic
    wall beyond.  Draws on the plateau are draws of the target, all with the same weight; other
    draws do not count.

    The path's g biases u; its knots reach from s to 1.  If log g is -log Z(beta), from a pilot, u
    is spread evenly over |u| < theta_2.  Gobbo and Leimkuhler learn such a bias during the run
    instead.

    In a fit ``extended`` holds x, ``u``, ``inv_temp`` and ``log_w1``, which is 0 on the plateau and
    -inf off it.  Expectations are means over the plateau, with the error of that ratio.
    ``posterior`` resamples the draws on the plateau within each chain.  There is no estimate of
    log Z.

    Attributes
    ----------
    theta
        Thresholds (theta_1, theta_2) for |u|; their common scale does not affect how x is
        distributed.
    lowest_inv_temp
        The inverse temperature s beyond theta_2, between 0 and 1.
    """

    theta: tuple[float, float] = (1.0, 2.0)
    lowest_inv_temp: float = 0.1

    name = "extended_hamiltonian"
    label = "Extended Hamiltonian"
    weighting = "across draws"

    def data(self, model: Model, path: TemperedPath | None) -> dict[str, Any]:
        """Return the data that the program takes in addition to the model's own.

        Raises
        ------
        DataError
            If the thresholds are not positive and ascending, s does not lie between 0 and 1, or the
            knots of log g do not start at s; see also :func:`harness.path.data.path_data`.
        """
        path, lowest = path or TemperedPath(), self.lowest_inv_temp
        theta = np.asarray(self.theta, dtype=np.float64)
        if not (theta.shape == (2,) and np.all(np.isfinite(theta)) and 0 < theta[0] < theta[1]):
            raise DataError(
                f"theta must be two thresholds, 0 < theta_1 < theta_2; got {self.theta}"
            )
        if not 0 < lowest < 1:
            raise DataError(
                f"the lowest inverse temperature s must lie strictly between 0 and 1; got {lowest}"
            )
        data = path.data(model, lowest)
        if data["g_knot"][0] != lowest:
            raise DataError(
                f"the knots of log g must start at the lowest inverse temperature, {lowest:g}; "
                f"they start at {data['g_knot'][0]:g}"
            )
        return data | {"theta": theta}

    def fit(self, model: Model, path: TemperedPath | None, run: Run, ran: VariantRun) -> Fit:
        """Keep the draws on the plateau and make a fit.

        Raises
        ------
        SamplingError
            If a chain has no draw on the plateau.
        """
        path = path or TemperedPath()
        variables = ran.run.variables
        raw = {name: variables[name] for name in model.parameters}
        extended = raw | {name: variables[name] for name in ("u", "inv_temp")}
        extended["log_w1"] = variables["log_weight"]
        _require_plateau(extended["log_w1"], model)
        rng = np.random.default_rng(run.seed)
        settings = path.settings(model, self.lowest_inv_temp)
        settings |= {"theta": list(self.theta), "lowest_inv_temp": self.lowest_inv_temp}
        return build_fit(
            posterior=target_draws(raw, extended["log_w1"], self.weighting, rng),
            extended=extended,
            sample_stats=ran.run.sample_stats,
            constant_data=model.data,
            attrs=run_attributes(self.name, model, ran, settings, run.seed),
            weighting=self.weighting,
            pseudo_samples=False,
        )


def _require_plateau(log_weight: FloatArray, model: Model) -> None:
    """Raise an error if one of the chains tells nothing about the target."""
    missing = [str(chain + 1) for chain, row in enumerate(log_weight) if np.all(np.isneginf(row))]
    if missing:
        raise SamplingError(
            f"{model.name}: no draw of chain {', '.join(missing)} is on the plateau "
            f"|u| <= theta_1, where draws belong to the target; raise lowest_inv_temp or theta_1, "
            f"or give a log_g that offsets log Z(beta)"
        )


EXTENDED_HAMILTONIAN = form_method(ExtendedHamiltonian)
