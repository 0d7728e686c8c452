"""Forms: the densities that Stan's NUTS samples in place of a target, and the call that does it.

>>> from harness.forms import PseudoExtended, Run, sample
>>> fit = sample(model, PseudoExtended(5), None, Run(seed=1))

Each form has its own module, which depends on no experiment.
"""

from harness.forms.bootstrap import bootstrap_base
from harness.forms.common import Run
from harness.forms.continuous_tempering import CollapsedTempering, JointTempering
from harness.forms.extended_hamiltonian import ExtendedHamiltonian
from harness.forms.folded import Folded
from harness.forms.form import Form, sample
from harness.forms.from_approximation import Bootstrap, FromApproximation
from harness.forms.from_pilot import FromPilot
from harness.forms.nuts import Nuts
from harness.forms.pseudo_extended import CollapsedPseudoExtended, PseudoExtended

__all__ = [
    "Bootstrap",
    "CollapsedPseudoExtended",
    "CollapsedTempering",
    "ExtendedHamiltonian",
    "Folded",
    "Form",
    "FromApproximation",
    "FromPilot",
    "JointTempering",
    "Nuts",
    "PseudoExtended",
    "Run",
    "bootstrap_base",
    "sample",
]
