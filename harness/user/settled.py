"""Whether pilots agree so well with NUTS that more of them would tell nothing new.

Most posteriors have one mode, which NUTS has found.  There one pilot from the prior ends where
NUTS's draws are, and its log Z is that of a bridge from these draws.
"""

from __future__ import annotations

from harness.evidence import LogEvidence
from harness.user.compare import Comparison
from harness.user.two_estimates import agree

_MATTERS = 0.3
"""Error of the pilots' log Z, or its difference from a bridge, in nats, that leaves doubts: a mode
with a quarter of the probability changes log Z by as much."""


def settles(compared: Comparison, found: LogEvidence, bridge: LogEvidence) -> bool:
    """Whether pilots settle that NUTS has seen the posterior.

    Parameters
    ----------
    compared
        NUTS's draws against their particles.
    found
        Their log Z.
    bridge
        Log Z by a bridge from NUTS's draws.
    """
    apart = (
        compared.missed_by_nuts,
        compared.missed_by_other,
        compared.differs,
        compared.unsure,
    )
    if compared.chains_disagree or any(each is not None for each in apart):
        return False
    near = bool(max(found.mcse, abs(found.minus(bridge).value)) <= _MATTERS)
    return near and agree(found, bridge)
