"""The page of a comparison of models."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from harness import evidence
from harness.files import write_text
from harness.plan.spec import Figure
from harness.report.comparison_page import (
    ComparisonPage,
    ModelNotes,
    render_comparison_page,
    sensitivity_figure,
)
from harness.user.model_comparison import (
    SOURCE,
    TWO_QUESTIONS,
    ComparedModel,
    ModelComparison,
    ModelComparisons,
    cells,
    factor_text,
)

_HEAD = ("log evidence", "error", "probability", "interval", "best", "elpd LOO", "s.e.", "by")
_CAPTION = (
    "Log evidence with its Monte Carlo error; posterior probability with an interval for that "
    "error; probability that the model is the most probable one; leave-one-out elpd with its "
    "standard error."
)


def save_comparison(compared: ModelComparisons, path: Path) -> None:
    """Write a page about a comparison: one HTML file that needs no others.

    Raises
    ------
    StoreError
        If the file cannot be written.
    """
    write_text(path, render_comparison_page(comparison_page(compared)))


def comparison_page(compared: ModelComparisons) -> ComparisonPage:
    """Return what the page of a comparison shows."""
    main = compared.main
    names = [each.name for each in main.models]
    return ComparisonPage(
        title=f"Comparison: {', '.join(names)}",
        opening=_opening(main),
        summary=_summary(main),
        models=_models(main),
        models_caption=_CAPTION,
        factors=_factors(main),
        factors_caption=(
            f"Bayes factors with {evidence.LEVEL:.0%} intervals for the Monte Carlo error, and the "
            f"strength of the evidence in the words of {SOURCE}."
        ),
        sensitivity=[
            (f"{each.setting[0]} = {each.setting[1]:g}", _models(each))
            for each in compared.sensitivity
            if each.setting is not None
        ],
        figures=_figures(compared.sensitivity),
        notes=[_notes(each) for each in main.models],
    )


def _opening(main: ModelComparison) -> str:
    total = sum(main.prior)
    odds = ", ".join(
        f"{each.name} {share / total:.3g}"
        for each, share in zip(main.models, main.prior, strict=True)
    )
    return f"{len(main.models)} models of the same data. Prior probabilities: {odds}."


def _summary(main: ModelComparison) -> list[str]:
    said = []
    pairs = main.pairs()
    if pairs:
        one, other = pairs[0]
        found = main.factor(one, other)
        said.append(
            f"{main.models[one].name} has the largest evidence. Against "
            f"{main.models[other].name}, which comes next, the evidence is {found.words}: the "
            f"Bayes factor is {factor_text(found.log.value)}."
        )
    if main.odds is None:
        said.append(
            "There are no probabilities of the models, because one of them has no log evidence."
        )
    if any(each.loo is not None for each in main.models):
        said.append(TWO_QUESTIONS)
    return said


def _models(compared: ModelComparison) -> pd.DataFrame:
    return pd.DataFrame(
        [cells(row) for row in compared.rows()],
        columns=list(_HEAD),
        index=pd.Index([each.name for each in compared.models], name="model"),
    )


def _factors(compared: ModelComparison) -> pd.DataFrame | None:
    pairs = compared.pairs()
    if not pairs:
        return None
    found = [compared.factor(one, other) for one, other in pairs]
    return pd.DataFrame(
        {
            "log Bayes factor": [f"{each.log.value:.3f}" for each in found],
            "error": [f"{each.log.mcse:.3f}" for each in found],
            "Bayes factor": [factor_text(each.log.value) for each in found],
            "interval": [" to ".join(map(factor_text, each.interval)) for each in found],
            "evidence": [each.words for each in found],
        },
        index=[
            f"{compared.models[one].name} over {compared.models[other].name}"
            for one, other in pairs
        ],
    )


def _figures(comparisons: Sequence[ModelComparison]) -> list[Figure]:
    shown = sorted(
        (each for each in comparisons if each.setting is not None),
        key=lambda each: each.setting[1] if each.setting is not None else 0.0,
    )
    if len(shown) < 2 or shown[0].setting is None:
        return []
    names = [each.name for each in shown[0].models]
    rows = [each.rows() for each in shown]

    def column(name: str) -> list[list[float]]:
        return [
            [math.nan if row[i][name] is None else float(row[i][name]) for row in rows]
            for i in range(len(names))
        ]

    values = [each.setting[1] for each in shown if each.setting is not None]
    return [
        sensitivity_figure(
            shown[0].setting[0],
            names,
            values,
            column("log_evidence"),
            column("mcse"),
            column("probability"),
        )
    ]


def _notes(model: ComparedModel) -> ModelNotes:
    found = model.evidence
    bridges = None
    if found.bridges is not None:
        bridges = pd.DataFrame(
            {
                "log integral": [f"{e.log_evidence.value:.4f}" for e in found.bridges.each],
                "error": [f"{e.log_evidence.mcse:.4f}" for e in found.bridges.each],
                "overlap": [f"{e.overlap:.3f}" for e in found.bridges.each],
                "used": ["yes" if e is found.bridges.chosen else "" for e in found.bridges.each],
            },
            index=[e.label for e in found.bridges.each],
        )
    tempered = [] if found.tempered is None else found.tempered.diagnosis
    return ModelNotes(
        model.name,
        [*tempered, *found.findings],
        found.refusals,
        bridges,
        model.path.read_text(encoding="utf-8"),
    )
