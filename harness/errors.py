"""The errors a user can cause: every one says what happened, where, and what to do.

The command line prints the message of a :class:`HarnessError` in one or two lines and exits
with status 1; any other exception is a bug of ours and keeps its traceback.
"""

from __future__ import annotations


class HarnessError(Exception):
    """Base class of the errors that a user can cause and put right."""


class ToolchainError(HarnessError):
    """CmdStan, the C++ compiler or make is missing, broken or cannot be built here."""


class CompileError(HarnessError):
    """A Stan program does not compile; the message carries Stan's own text."""


class RewriteError(HarnessError):
    """A valid Stan program cannot be rewritten: a fault of ours, which its user can go round."""


class DataError(HarnessError):
    """Data or settings given to a model or a method do not fit it."""


class NotEnoughMemory(DataError):
    """A program with its data needs more memory than there is."""


class SamplingError(HarnessError):
    """CmdStan ended a run without the draws that were asked for."""


class SomeChainsError(SamplingError):
    """Some chains of a run ended without their draws, and the others did not.

    ``why`` is what Stan said, without the program's name.
    """

    def __init__(self, message: str, why: str = "") -> None:
        super().__init__(message)
        self.why = why or message


class WorkersError(HarnessError):
    """The cluster that a run's tasks were sent to is gone."""


class StoreError(HarnessError):
    """A stored result cannot be read or written."""


FAILURES = (HarnessError, ValueError, ArithmeticError)
"""What computations on somebody's density may raise, linear algebra included, where a result is
there already and is kept."""


def one_line(error: BaseException) -> str:
    """Return what an error says as one line, as part of another sentence."""
    return " ".join(str(error).split())
