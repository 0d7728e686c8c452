"""The bootstrap: from a continuously tempered fit to the base of the next one."""

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
    in base coordinates, and log zeta its estimate of log Z (Graham and Storkey 2017, 7.3).

    Parameters
    ----------
    model
        The model that was fitted.
    fit
        Fit with the inverse temperature sampled or integrated out.

    Raises
    ------
    DataError
        If the fit is not of a continuously tempered run or not of this model, or its weights
        leave too few effective draws for a covariance.
    """
    fitted, extended = fit.tree.attrs["model"], fit.extended
    if fitted != model.name:
        raise DataError(f"the fit is of the model {fitted}, not of {model.name}")
    if extended is None or fit.weighting != "across draws":
        raise DataError(f"a {fit.tree.attrs['method']} fit was not continuously tempered")
    log_evidence = fit.log_evidence  # refuses a fixed inverse temperature
    draws = {str(name): extended[name].to_numpy() for name in extended.data_vars}
    points = flatten(model, draws, leading=2)
    return weighted_base(
        points.reshape(-1, model.dimension),
        fit.log_weight.ravel(),
        log_zeta=log_evidence.value,
    )
