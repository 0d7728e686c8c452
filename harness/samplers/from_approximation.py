"""Annealed importance sampling from a base that one of Stan's approximations makes."""

from __future__ import annotations

from typing import Any

from harness.fit import Fit
from harness.forms.from_approximation import Approximation, approximate
from harness.forms.method import Method
from harness.model import Model
from harness.samplers.annealed_importance import annealed_importance
from harness.seeds import derived_seed


def sample_annealed_importance_from_approximation(
    model: Model,
    *,
    approximation: Approximation = "mean_field",
    nuts: object = None,
    seed: int,
    compiled: object = None,
    **settings: Any,
) -> Fit:
    """Make a base and run :func:`~harness.samplers.annealed_importance.annealed_importance`.

    Parameters
    ----------
    model
        Target density with its data.
    approximation
        How the base is made.  Its cost becomes the run's ``gradients_pilot`` and ``seconds_pilot``.
    nuts, compiled
        Not used; every method takes them.
    seed
        Seed; the approximation uses its own stream.
    **settings
        ``ladder``, which is required, and other settings of annealed importance sampling.

    Raises
    ------
    DataError, SamplingError
        For the same reasons as in both of these functions.
    """
    made = approximate(model, approximation, seed=derived_seed(seed, 2))
    fit = annealed_importance(model, made.base, seed=seed, **settings)
    fit.tree.attrs |= {
        "gradients_pilot": made.gradients,
        "seconds_pilot": made.seconds,
        "approximation_log_zeta": made.base.log_zeta,
    }
    return fit.with_settings(approximation=approximation)


ANNEALED_IMPORTANCE_FROM_APPROXIMATION = Method(
    "annealed_importance_from_approximation",
    None,
    sample_annealed_importance_from_approximation,
    driven_by="python",
)
