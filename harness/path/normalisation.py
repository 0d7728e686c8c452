"""What log Z counts beyond the ratio of normalising constants along a path."""

from __future__ import annotations

from harness.evidence import NORMALISED, LogEvidence
from harness.model import Model


def divisor(model: Model, integral: LogEvidence | None) -> LogEvidence | None:
    """Return the log of what an integral of the program's density is divided by to give Z.

    That is the integral of the prior.  If all of the program is tempered it has no prior, and a
    base that is flat between bounds is a device only: Z is the integral itself.

    Parameters
    ----------
    model
        The tempered model.
    integral
        Log of the integral of its own base as it is written; None if it is not known.
    """
    return NORMALISED if model.tempered_whole else integral


def log_factor(
    model: Model, integral: LogEvidence | None, *, from_own_base: bool
) -> LogEvidence | None:
    """Return what has to be added to the log of a ratio along a path to give log Z.

    The ratio is that of the integral of the program's density and of the path's normalised base.

    Parameters
    ----------
    model, integral
        As for :func:`divisor`.
    from_own_base
        Whether the path starts from the model's own base, and not from a Gaussian.

    Returns
    -------
    LogEvidence or None
        None if that needs the integral.
    """
    if from_own_base:
        return integral if model.tempered_whole else NORMALISED
    divided_by = divisor(model, integral)
    return None if divided_by is None else NORMALISED.minus(divided_by)


def written_integral(model: Model) -> LogEvidence:
    """Return the log of a prior's integral that the text shows, 0 if it shows none."""
    shown = model.log_prior_integral if model.own_base == "prior" else None
    return LogEvidence(shown or 0.0, 0.0)
