"""Findings about a user's program itself, which do not depend on the method that samples it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from harness.diagnosis import Finding, Severity
from harness.fit import Fit
from harness.model import Model
from harness.user.generated import absent, not_numbers
from harness.user.program import UserProgram

_ROUNDING = 1e-9


def about_program(program: UserProgram, fit: Fit) -> list[Finding]:
    """Return the findings about a program that another method would not change.

    Parameters
    ----------
    program
        The program.
    fit
        A fit of it, which shows what of its quantities is not a number, or absent.
    """
    model = program.model
    has_prior = not model.tempered_whole and model.own_base != "improper"
    return [
        *(
            [tempered_whole(without_likelihood=program.without_likelihood)]
            if model.tempered_whole
            else []
        ),
        *about_unit_vectors(program.unit_vectors, has_prior=has_prior),
        *open_questions(model),
        *not_numbers(fit, program.names),
        *absent(fit, program.names, program.containers, program.left_out),
    ]


def tempered_whole(*, without_likelihood: bool) -> Finding:
    """Report that everything is tempered, because no statement gives data a density or at will."""
    if without_likelihood:
        why = "No statement of the program gives data a density, so all of its density is tempered"
    else:
        why = "All of the program's density is tempered"
    return Finding(Severity.FINE, f"{why}, and log Z is the log of its integral.")


def about_unit_vectors(vectors: Sequence[slice], *, has_prior: bool) -> list[Finding]:
    """Report what Stan's density of unit vectors adds to an integral over directions.

    Behind a unit vector of n entries are n coordinates with the factor exp(-r^2 / 2) for their
    length r, which integrates to 2^(n/2 - 1) Gamma(n/2) for each unit of the sphere's surface.

    Parameters
    ----------
    vectors
        The coordinates behind each unit vector; see :mod:`harness.engine.unit_vectors`.
    has_prior
        Whether log Z is for the prior divided by its integral, which counts the lengths, too.
    """
    sizes = [each.stop - each.start for each in vectors]
    excess = sum((n / 2 - 1) * math.log(2) + math.lgamma(n / 2) for n in sizes)
    if abs(excess) < _ROUNDING:
        return []
    means = (
        f"the integral of the program's density is exp({excess:.3f}) times that over directions "
        "alone; log Z does not depend on this"
        if has_prior
        else f"log Z is that of the integral over directions alone plus {excess:.3f}"
    )
    return [Finding(Severity.FINE, f"Stan's density of unit vectors counts lengths, so {means}.")]


def open_questions(model: Model) -> list[Finding]:
    """Report what may belong to the prior or to the likelihood."""
    return [
        Finding(
            Severity.WARNING,
            "Something may belong to the prior or to the likelihood, and log Z depends on which: "
            f"{each}.",
        )
        for each in model.questions
    ]
