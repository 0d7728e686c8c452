"""The modes of a posterior: regions of its draws with barriers between them.

This room takes draws of several methods and a log density, and returns a table: where the modes
are, their probabilities with errors, which methods saw each of them, and which are copies of one
another.

References
----------
Nocedal, J. and Wright, S. J. (2006). Numerical Optimization, second edition. Springer.

Stephens, M. (2000). Dealing with label switching in mixture models. Journal of the Royal
Statistical Society B 62(4), 795-809.
"""

from harness.modes.by_mass import ShareByMass
from harness.modes.find import FoundModes, find_modes
from harness.modes.table import Mode, ModeTable
from harness.modes.target import Target
from harness.modes.visits import Visits

__all__ = ["FoundModes", "Mode", "ModeTable", "ShareByMass", "Target", "Visits", "find_modes"]
