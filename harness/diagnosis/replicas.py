"""Whether the replicas of parallel tempering travel between their references and the target."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from harness.diagnosis.finding import Finding, Severity
from harness.fit import Fit
from harness.samplers.tempering_run import FEW_TRIPS

_LONGER = (
    "Take more warm-up and more draws. If that does not help, give the parameters less vague "
    "priors, or move the replicas in another way (slice sampling)."
)


def replicas(fit: Fit) -> Iterable[Finding]:
    """Count the replicas' round trips, if parallel tempering made the draws."""
    attrs = fit.tree.attrs
    if "round_trips" not in attrs:
        return
    first = np.atleast_1d(attrs["round_trips"])
    trips = first + np.atleast_1d(attrs.get("round_trips_2", 0))
    total, none = int(trips.sum()), int(np.count_nonzero(trips == 0))
    if total < FEW_TRIPS or none:
        stuck = f", and none in {none} of {len(trips)} chains" if none else ""
        yield Finding(
            Severity.PROBLEM,
            "The draws may miss a mode, or give modes wrong probabilities, because replicas hardly "
            f"travel between reference and target: they make {total} round trips in all{stuck}.",
            _LONGER,
        )
    elif first.sum() < FEW_TRIPS or first.min() == 0:
        yield Finding(
            Severity.WARNING,
            "A mode far from the fitted Gaussians may be missing, because replicas hardly travel "
            f"from the other reference: they make {int(first.sum())} round trips from there, and "
            f"{total - int(first.sum()):,} from the Gaussians.",
            _LONGER,
        )
    else:
        yield Finding(
            Severity.FINE,
            f"Replicas make {trips.mean():,.0f} round trips per chain between reference and "
            "target.",
        )
