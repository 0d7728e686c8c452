"""Walkers that precondition each other: the ensemble quasi-Newton sampler, step by step.

``roots`` and ``preconditioner`` make the matrix B from the other walkers, ``step`` integrates and
decides, ``walkers`` runs groups in turn.  The methods for models are in
:mod:`harness.samplers.ensemble_quasi_newton`.

References
----------
Leimkuhler, B., Matthews, C. and Weare, J. (2018). Ensemble preconditioning for Markov chain Monte
Carlo simulation. Statistics and Computing 28, 277-290.
"""

from harness.samplers.ensemble.preconditioner import LocalPreconditioner
from harness.samplers.ensemble.roots import FixedRoot, LowRankRoot, covariance_root
from harness.samplers.ensemble.settings import EnsembleSettings
from harness.samplers.ensemble.step import Place, decide, one_step
from harness.samplers.ensemble.walkers import EnsembleRun, run_ensemble

__all__ = [
    "EnsembleRun",
    "EnsembleSettings",
    "FixedRoot",
    "LocalPreconditioner",
    "LowRankRoot",
    "Place",
    "covariance_root",
    "decide",
    "one_step",
    "run_ensemble",
]
