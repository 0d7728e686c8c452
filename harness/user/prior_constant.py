"""The integral of a prior as the program writes it: shown by the program, or by pilots to it."""

from __future__ import annotations

from typing import NamedTuple

from harness import evidence
from harness.errors import SamplingError
from harness.evidence import LogEvidence
from harness.model import Model
from harness.user.compare import Population, compare
from harness.user.legs import CLOSE, NEAR, fitted_gaussians, run_leg
from harness.user.prior import PriorDraws, known_integral


class PriorConstant(NamedTuple):
    """Log of the integral of a prior as the program writes it, and the gradients that it took."""

    log_integral: LogEvidence
    gradients: int


def prior_constant(
    model: Model, prior: PriorDraws, *, most_seconds: float, seed: int
) -> PriorConstant:
    """Return the integral of the prior that the program or its simulation shows, or run pilots.

    Raises
    ------
    DataError, SamplingError
        As :func:`harness.user.legs.run_leg`, or if draws of the prior disagree with each other, or
        with the pilots' particles.
    """
    known = known_integral(model, prior)
    if known is not None:
        return PriorConstant(known, 0)
    if not prior.reliable:
        raise SamplingError(f"draws of the prior disagree (R-hat {prior.r_hat:.2f})")
    flat = prior.points.reshape(-1, prior.points.shape[2])
    leg = run_leg(
        prior.density,
        fitted_gaussians(flat, NEAR),
        origin="a Gaussian fitted to draws of the prior",
        most_seconds=most_seconds,
        seed=seed,
        gradients=CLOSE,
    )
    # On the unconstrained space, so that all coordinates are compared alike.
    compared = compare({"x": prior.points}, Population({"x": leg.particles}, leg.log_weight))
    apart = compared.missed_by_other or compared.missed_by_nuts or compared.differs
    if apart is not None:
        raise SamplingError(
            "pilots from a Gaussian to the prior, which may have a funnel, give a part of it "
            f"probability {apart.other:.2f}, and draws of it {apart.nuts:.2f}"
        )
    return PriorConstant(evidence.combined_log_evidence(leg.estimates).estimate, leg.gradients)
