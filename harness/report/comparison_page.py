"""A page that compares models: their evidence, Bayes factors, probabilities and predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pandas as pd

from harness.diagnosis import Finding
from harness.plan.spec import Figure
from harness.report.pages import render
from harness.report.style import COLOURS, new_figure, to_image

_MARKERS = "os^vD<>"


@dataclass(frozen=True)
class ModelNotes:
    """What there is to know about one model.

    Attributes
    ----------
    name
        Its name.
    findings
        About its log evidence, the worst first.
    refusals
        Why its bridge was not used; empty if it was.
    bridges
        Log Z by each proposal; None if there is no bridge.
    program
        Text of its program.
    """

    name: str
    findings: Sequence[Finding]
    refusals: Sequence[str]
    bridges: pd.DataFrame | None
    program: str


@dataclass(frozen=True)
class ComparisonPage:
    """Everything that the page shows.

    Attributes
    ----------
    title, opening
        Heading, and a sentence that says what was compared.
    summary
        Sentences that say the result.
    models, models_caption
        A row for each model.
    factors, factors_caption
        A row for each pair of models; None if there is none.
    sensitivity
        Captions and tables for other values of a data variable.
    figures
        Figures of the sensitivity.
    notes
        About each model.
    """

    title: str
    opening: str
    summary: Sequence[str]
    models: pd.DataFrame
    models_caption: str
    factors: pd.DataFrame | None
    factors_caption: str
    sensitivity: Sequence[tuple[str, pd.DataFrame]] = field(default=())
    figures: Sequence[Figure] = field(default=())
    notes: Sequence[ModelNotes] = field(default=())


def render_comparison_page(page: ComparisonPage) -> str:
    """Return the page as HTML: one file that needs no others."""
    return render("comparison.html", page=page, trail=())


def sensitivity_figure(
    variable: str,
    names: Sequence[str],
    values: Sequence[float],
    log_evidence: Sequence[Sequence[float]],
    errors: Sequence[Sequence[float]],
    probability: Sequence[Sequence[float]],
) -> Figure:
    """Draw log evidences and model probabilities against a data variable.

    Parameters
    ----------
    variable
        Its name.
    names
        The models.
    values
        Values of the variable, ascending.
    log_evidence, errors, probability
        For each model a number for each value; NaN where there is none.
    """
    figure, (left, right) = new_figure(columns=2, height=3.0)
    for index, name in enumerate(names):
        colour, marker = COLOURS[index % len(COLOURS)], _MARKERS[index % len(_MARKERS)]
        left.errorbar(
            values,
            log_evidence[index],
            yerr=[2 * each for each in errors[index]],
            color=colour,
            marker=marker,
            label=name,
        )
        right.plot(values, probability[index], color=colour, marker=marker, label=name)
    for axis, label in ((left, "log evidence"), (right, "posterior probability")):
        axis.set_xlabel(variable)
        axis.set_ylabel(label)
        if min(values) > 0 and max(values) / min(values) > 8:
            axis.set_xscale("log")
    right.set_ylim(-0.03, 1.03)
    right.legend(fontsize=8)
    return Figure(
        f"sensitivity-{variable}",
        f"Log evidence with two standard errors, and probability of each model, by {variable}. "
        "Where the order of the models changes with a value that you could as well have chosen, "
        "the data alone do not decide between them.",
        f"Lines for {', '.join(names)} against {variable}: log evidence on the left, posterior "
        "probability on the right; the tables below hold the numbers.",
        to_image(figure),
    )
