"""Whether the replicas of parallel tempering travel between their references and the target."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np

from harness.diagnosis.finding import Finding, Severity
from harness.fit import Fit
from harness.samplers.tempering_run import FEW_TRIPS, MOST_DIVERGENT

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
    yield from _divergent(attrs)
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


def _divergent(attrs: Mapping[Hashable, Any]) -> Iterable[Finding]:
    """Report trajectories that diverge at the target, and whether slice sampling helps there."""
    share = float(attrs.get("divergent_at_target", 0))
    if share <= MOST_DIVERGENT:
        return
    if np.asarray(attrs["also_sliced"])[-1]:
        yield Finding(
            Severity.FINE,
            "Slice sampling moves the replicas at the target as well, because "
            f"{share:.2%} of the trajectories there diverge, as in the neck of a funnel.",
        )
    else:
        yield Finding(
            Severity.WARNING,
            "The draws may miss parts of the target, such as the neck of a funnel, because "
            f"{share:.2%} of the trajectories there diverge.",
            "Move the replicas by slice sampling as well (--explorer auto, after a longer warm-up, "
            "or both).",
        )
