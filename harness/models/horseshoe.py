"""Logistic regression with the regularised horseshoe prior: data for ``stan/horseshoe``.

The coefficients are beta_j = z_j lambda~_j tau with lambda~_j^2 = c^2 lambda_j^2 /
(c^2 + tau^2 lambda_j^2), z_j ~ N(0, 1), lambda_j ~ C+(0, 1), tau ~ C+(0, tau_0) and
c^2 ~ Inv-Gamma(slab_df / 2, slab_df slab_scale^2 / 2).

References
----------
Piironen, J. and Vehtari, A. (2017). Sparsity information and regularization in the horseshoe
and other shrinkage priors. Electronic Journal of Statistics 11(2), 5018-5051.

Nemeth, C., Lindsten, F., Filippone, M. and Hensman, J. (2019). Pseudo-extended Markov chain
Monte Carlo. Advances in Neural Information Processing Systems 32, section 4.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.folders import shipped
from harness.model import Model

Form = Literal["full", "shared_scales"]

SCALES = ("lambda", "tau", "c2")
PARAMETERS = ("beta0", "z", *SCALES)


@dataclass(frozen=True)
class Classification:
    """Predictors and classes of n observations.

    Attributes
    ----------
    x
        Predictors, shape (n, d).
    y
        Classes, 0 or 1, shape (n,).

    Raises
    ------
    DataError
        If shapes do not match, a predictor is not finite, or a class is neither 0 nor 1.
    """

    x: FloatArray
    y: NDArray[np.int64]

    def __post_init__(self) -> None:
        if self.x.ndim != 2 or 0 in self.x.shape or self.y.shape != self.x.shape[:1]:
            raise DataError(
                f"classification needs predictors (n, d) and classes (n,), none empty; got "
                f"{self.x.shape} and {self.y.shape}"
            )
        if not np.all(np.isfinite(self.x)):
            bad = np.count_nonzero(~np.isfinite(self.x))
            raise DataError(f"{bad} values of the predictors are not finite; impute or drop them")
        if not np.all(np.isin(self.y, (0, 1))):
            raise DataError(f"classes must be 0 or 1; got {np.unique(self.y).tolist()[:5]}")

    def split(
        self, rng: np.random.Generator, *, test_fraction: float = 0.2, standardise: bool = True
    ) -> tuple[Classification, Classification]:
        """Split the observations at random into training and test data.

        Parameters
        ----------
        rng
            Source of randomness, from which one permutation of n is taken.
        test_fraction
            Share of the observations to hold out, rounded to whole observations.
        standardise
            Whether every predictor is given mean 0 and standard deviation 1 over the *training*
            data.  The test data get the same shift and scale, so that nothing about them leaks.
            The prior's scale tau_0 assumes it.  A predictor that does not vary over the training
            data tells nothing about its coefficient, and becomes 0 in both.

        Raises
        ------
        DataError
            If either part would be empty.
        """
        count = len(self.y)
        held_out = round(test_fraction * count)
        if not 0 < held_out < count:
            raise DataError(
                f"holding out a share of {test_fraction} of {count} observations leaves "
                f"{count - held_out} to train on and {held_out} to test"
            )
        order = rng.permutation(count)
        test, train = order[:held_out], order[held_out:]
        x = self.x
        if standardise:
            centre, scale = x[train].mean(axis=0), x[train].std(axis=0)
            # Rounding of the mean is enough to give a constant column a tiny spread.
            varies = np.ptp(x[train], axis=0) > 0
            x = np.where(varies, (x - centre) / np.where(varies, scale, 1), 0.0)
        return Classification(x[train], self.y[train]), Classification(x[test], self.y[test])

    def model(
        self,
        name: str,
        *,
        scale_global: float,
        scale_icept: float = 10.0,
        slab_scale: float = 2.0,
        slab_df: float = 3.0,
        form: Form = "full",
    ) -> Model:
        """Return the logistic regression of these data as a model.

        Parameters
        ----------
        name
            Name of the target with these data.
        scale_global
            Scale tau_0 of the global scale; :func:`global_scale` gives it from a guess at the
            number of relevant predictors.
        scale_icept
            Standard deviation of the intercept's prior.
        slab_scale, slab_df
            Scale and degrees of freedom of the slab.
        form
            What its pseudo-extended program extends.  ``"full"``: everything; every pseudo-sample
            has its own scales.  ``"shared_scales"``: as Nemeth et al. (2019) ran it, lambda, tau
            and c are shared, and each pseudo-sample has its own z and intercept.  That form is not
            exact: its scales do not have their posterior distribution (see
            ``stan/horseshoe/pseudo_extended_shared.stan``), so it is only for comparison.

        Raises
        ------
        DataError
            If a scale or the degrees of freedom are not positive and finite, or the form is
            unknown.
        """
        scales = {
            "scale_global": scale_global,
            "scale_icept": scale_icept,
            "slab_scale": slab_scale,
            "slab_df": slab_df,
        }
        for label, value in scales.items():
            if not 0 < value < np.inf:
                raise DataError(f"{label} must be positive and finite; got {value}")
        if form not in ("full", "shared_scales"):
            raise DataError(f"the form must be 'full' or 'shared_scales'; got '{form}'")
        n, d = self.x.shape
        data: dict[str, Any] = {"n": n, "d": d, "X": self.x, "y": self.y, **scales}
        shared = form == "shared_scales"
        # The shared form has no collapsed variant, so asking for one raises an error.
        extended = ("pseudo_extended", "collapsed_pseudo_extended") if shared else ()
        return Model(
            name,
            shipped("stan") / "horseshoe",
            data,
            PARAMETERS,
            2 * d + 3,
            transforms=dict.fromkeys(SCALES, "log"),
            shared=SCALES if shared else (),
            stems={variant: f"{variant}_shared" for variant in extended},
            own_base="prior",
        )


def global_scale(relevant: float, predictors: int, observations: int) -> float:
    """Return the scale tau_0 = p0 / (d - p0) * 2 / sqrt(n) of the global scale's prior.

    Parameters
    ----------
    relevant
        Guess p0 at the number of relevant predictors.
    predictors
        Number d of predictors.
    observations
        Number n of observations that the model is fitted to.

    Raises
    ------
    DataError
        If p0 does not lie between 0 and d, or n < 1.

    References
    ----------
    Piironen and Vehtari (2017), with the pseudo standard deviation 2 of a logistic regression
    with balanced classes.
    """
    if not 0 < relevant < predictors:
        raise DataError(
            f"the number of relevant predictors must lie between 0 and {predictors}, the number "
            f"of all; got {relevant}"
        )
    if observations < 1:
        raise DataError(f"the global scale needs 1 observation or more; got {observations}")
    return relevant / (predictors - relevant) * 2 / float(np.sqrt(observations))


def coefficients(
    z: npt.ArrayLike, local: npt.ArrayLike, tau: npt.ArrayLike, c2: npt.ArrayLike
) -> FloatArray:
    """Return the coefficients beta_j = z_j lambda~_j tau of draws, for predictions and pictures.

    Parameters
    ----------
    z, local
        Standardised coefficients and local scales lambda, shape (..., d).
    tau, c2
        Global scale and squared slab width, shape (...).
    """
    tau, c2 = (np.asarray(each, dtype=np.float64)[..., None] for each in (tau, c2))
    unbounded = tau * np.asarray(local, dtype=np.float64)
    width: FloatArray = unbounded / np.sqrt(1 + np.square(unbounded) / c2)
    beta: FloatArray = np.asarray(z, dtype=np.float64) * width
    return beta


class PredictiveDensity(NamedTuple):
    """Log predictive density of held-out observations, in nats."""

    joint: float
    """log of the mean over draws of p(y_1, ..., y_m | beta0, beta)."""
    pointwise: FloatArray
    """log of the mean over draws of p(y_k | beta0, beta) for each observation, shape (m,)."""


def log_predictive_density(
    beta0: npt.ArrayLike,
    beta: npt.ArrayLike,
    held_out: Classification,
    *,
    log_weight: npt.ArrayLike | None = None,
) -> PredictiveDensity:
    """Return the log predictive density of held-out data under draws of a logistic regression.

    Parameters
    ----------
    beta0
        Intercepts, one for each draw, shape (...).
    beta
        Coefficients, shape (..., d).
    held_out
        Observations that were not used for the draws.
    log_weight
        Log weights of the draws up to a constant, shape (...); equal weights if not given.

    Raises
    ------
    DataError
        If shapes do not match, there is no draw, or a draw is not finite.
    """
    intercept = np.asarray(beta0, dtype=np.float64)
    slope = np.asarray(beta, dtype=np.float64)
    d = held_out.x.shape[1]
    if slope.shape != (*intercept.shape, d) or intercept.size == 0:
        raise DataError(
            f"draws need intercepts (...) and coefficients (..., {d}); got {intercept.shape} "
            f"and {slope.shape}"
        )
    if not (np.all(np.isfinite(intercept)) and np.all(np.isfinite(slope))):
        raise DataError("a draw of the intercept or of the coefficients is not finite")
    log_w = np.zeros(intercept.shape) if log_weight is None else np.asarray(log_weight)
    if log_w.shape != intercept.shape:
        raise DataError(
            f"draws of shape {intercept.shape} need as many log weights; got {log_w.shape}"
        )
    log_share = log_w.ravel() - np.logaddexp.reduce(log_w, axis=None)
    linear = intercept.reshape(-1, 1) + slope.reshape(-1, d) @ held_out.x.T
    # log p(y) of a Bernoulli: -log(1 + exp(-eta)) for y = 1 and -log(1 + exp(eta)) for y = 0.
    log_p = -np.logaddexp(0, np.where(held_out.y == 1, -linear, linear))
    return PredictiveDensity(
        float(np.logaddexp.reduce(log_share + log_p.sum(axis=1))),
        np.logaddexp.reduce(log_share[:, None] + log_p, axis=0),
    )
