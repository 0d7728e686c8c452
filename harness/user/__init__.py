"""Sample a user's Stan program: one call from program and data to draws, log Z and a diagnosis.

>>> from harness.user import sample
>>> result = sample("model.stan", "data.json", method="auto", seed=1)
>>> result.report("report.html")
"""

from harness.user.evidence_result import GivenEvidence
from harness.user.given_evidence import evidence_from_fit
from harness.user.model_comparison import ModelComparisons, compare_models
from harness.user.result import UserFit
from harness.user.sample import Method, sample
from harness.user.unit_cube import UnitCube

__all__ = [
    "GivenEvidence",
    "Method",
    "ModelComparisons",
    "UnitCube",
    "UserFit",
    "compare_models",
    "evidence_from_fit",
    "sample",
]
