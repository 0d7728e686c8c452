"""The bootstrap: make the next run's base from a continuously tempered fit."""

from __future__ import annotations

from harness.errors import DataError
from harness.fit import Fit
from harness.model import Model
from harness.model.coordinates import flatten
from harness.path.gaussian import GaussianBase
from harness.path.moments import weighted_base


def bootstrap_base(model: Model, fit: Fit) -> GaussianBase:
    """Make the next base from a continuously tempered fit.

    Its mean and covariance are the fit's estimates under the target, E[f] = sum w_1 f / sum w_1
    in base coordinates, and its log zeta is the fit's log Z (Graham and Storkey 2017, 7.3).

    Parameters
    ----------
    model
        The model that was fitted.
    fit
        A fit whose inverse temperature was sampled or integrated out.

    Raises
    ------
    DataError
        If the fit comes from another model or was not continuously tempered, or its weights leave
        too few effective draws for a covariance.
    """
    fitted, extended = fit.tree.attrs["model"], fit.extended
    if fitted != model.name:
        raise DataError(f"the fit is one of the model {fitted}, not of {model.name}")
    if extended is None or fit.weighting != "across draws":
        raise DataError(f"a {fit.tree.attrs['method']} fit was not continuously tempered")
    log_evidence = fit.log_evidence  # raises an error if the inverse temperature was fixed
    draws = {str(name): extended[name].to_numpy() for name in extended.data_vars}
    points = flatten(model, draws, leading=2)
    return weighted_base(
        points.reshape(-1, model.dimension),
        fit.log_weight.ravel(),
        log_zeta=log_evidence.value,
    )
