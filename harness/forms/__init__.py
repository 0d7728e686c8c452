"""Forms: what Stan's NUTS samples in a target's place, and the one call that samples them.

>>> from harness.forms import PseudoExtended, Run, sample
>>> fit = sample(model, PseudoExtended(5), None, Run(seed=1))

One module a form; it knows no experiment.
"""

from harness.forms.bootstrap import bootstrap_base
from harness.forms.common import Run
from harness.forms.continuous_tempering import CollapsedTempering, ContinuousTempering
from harness.forms.extended_hamiltonian import ExtendedHamiltonian
from harness.forms.folded import Folded
from harness.forms.form import Form, sample
from harness.forms.from_approximation import Bootstrap, FromApproximation
from harness.forms.from_pilot import FromPilot
from harness.forms.pseudo_extended import CollapsedPseudoExtended, PseudoExtended
from harness.forms.target import Target

__all__ = [
    "Bootstrap",
    "CollapsedPseudoExtended",
    "CollapsedTempering",
    "ContinuousTempering",
    "ExtendedHamiltonian",
    "Folded",
    "Form",
    "FromApproximation",
    "FromPilot",
    "PseudoExtended",
    "Run",
    "Target",
    "bootstrap_base",
    "sample",
]
