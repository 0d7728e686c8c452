"""Errors in what is not needed: the draws are there even so."""

from __future__ import annotations

import logging

from harness.engine.signals import is_from_signal
from harness.errors import FAILURES

_log = logging.getLogger(__name__)


def tolerate(error: Exception, what: str) -> None:
    """Go on after an error in what is not needed: log it if it is a fault of ours.

    Raises
    ------
    Exception
        The error itself, if a signal ended the step.
    """
    if is_from_signal(error):
        raise error
    if not isinstance(error, FAILURES):
        _log.error("%s Please report this:", what, exc_info=error)
