"""A page for one fit: its diagnosis, figures of its draws, and what made it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import arviz_stats
import numpy as np
import pandas as pd
import xarray as xr

from harness import evidence
from harness.diagnosis import Finding, diagnose
from harness.engine.program import StanProgram
from harness.errors import DataError
from harness.files import write_text
from harness.fit import Fit
from harness.modes import ModeTable
from harness.modes.words import remarks
from harness.modes.words import rows as mode_rows
from harness.plan.spec import Figure
from harness.report.columns import labelled, worst_columns
from harness.report.draw_figures import draw_figures
from harness.report.pages import render
from harness.report.path_figures import path_figures
from harness.report.program_text import ProgramText, kept_programs, program_text
from harness.report.style import method_style

_ROWS_OF_SUMMARY = 40
_ROWS_OF_SNIPPET = 8
_COORDINATES_DRAWN = 3
_FEWEST_FOR_SUMMARY = 4
_FEWEST_FOR_R_HAT = 8
_LONGEST_SETTING = 200
_PHASES = {
    "pilot": "pilot",
    "warmup": "warm-up",
    "sampling": "sampling",
    "modes": "table of modes",
}
# Shown elsewhere on the page, or of no use to readers.
_NOT_PROVENANCE = (
    *("settings", "format", "program", "gradients_", "seconds_", "log_evidence"),
    *("findings", "parameters", "modes"),
)


@dataclass(frozen=True)
class FitPage:
    """Everything that a fit's page shows.

    Attributes
    ----------
    title, opening
        Heading, and a sentence that says what was run.
    findings
        The fit's diagnosis, worst first.
    evidence
        Log Z in words; empty if there is none.
    summary, summary_caption
        ArviZ's summary, and what it describes.
    modes, mode_remarks
        The table of modes, empty if there is only one or they were not looked for, and sentences
        about what it does not show.
    draw_figures, path_figures
        Figures of the target's draws, and of the path from base to target.
    cost
        Gradients and seconds by phase.
    settings, provenance
        Names and values, as text.
    programs
        The Stan programs: what was sampled, or the user's own and its tempered form.
    command
        Command that runs it again; empty if it is not known.
    """

    title: str
    opening: str
    findings: Sequence[Finding]
    evidence: str
    summary: pd.DataFrame
    summary_caption: str
    modes: pd.DataFrame
    mode_remarks: Sequence[str]
    draw_figures: Sequence[Figure]
    path_figures: Sequence[Figure]
    cost: pd.DataFrame
    settings: dict[str, str]
    provenance: dict[str, str]
    programs: Sequence[ProgramText]
    command: str = ""


def build_fit_page(
    fit: Fit,
    *,
    title: str = "",
    program: StanProgram | None = None,
    command: str = "",
    pictures: bool = True,
    rows: int = _ROWS_OF_SUMMARY,
    labels: Mapping[str, Sequence[str]] | None = None,
) -> FitPage:
    """Evaluate a fit for its page; parts that the fit lacks are left out.

    Parameters
    ----------
    fit
        Result of any method.
    title
        Heading; by default method and model.
    program
        The Stan program, if it is not one of those that are shipped.
    command
        Command that runs it again.
    pictures
        Whether to draw figures.
    rows
        Largest number of coordinates in the summary; those with the largest R-hat are shown.
    labels
        Names of entries of parameters; see :func:`harness.report.columns.labelled`.
    """
    attrs = fit.tree.attrs
    posterior = labelled(fit.posterior, labels or {})
    quantities = fit.quantities
    parameters = [name for name in map(str, posterior) if name not in quantities]
    summary, caption = _summary(posterior, rows, parameters)
    if fit.chains_interact:
        summary, caption = _of_walkers(summary)
    if fit.weighed_modes is not None:
        summary, caption = _of_weighed_modes(summary)
    modes, mode_remarks = _modes(fit)
    drawn = pictures and posterior.sizes["draw"] > 1
    return FitPage(
        title=title or f"{method_style(attrs['method']).label}: {attrs.get('model', 'a model')}",
        opening=_opening(fit),
        findings=diagnose(fit),
        evidence=_evidence(fit),
        summary=summary,
        summary_caption=caption,
        modes=modes,
        mode_remarks=mode_remarks,
        draw_figures=(
            draw_figures(
                # Not of quantities: ranks of whole numbers have ties.
                worst_columns(posterior[parameters], _COORDINATES_DRAWN),
                chains_interact=fit.chains_interact,
            )
            if drawn
            else ()
        ),
        path_figures=path_figures(fit) if drawn else (),
        cost=_cost(fit),
        settings=_flat(fit.settings),
        provenance=_provenance(fit),
        programs=_programs(fit, program) if pictures else (),
        command=command,
    )


def render_fit_page(page: FitPage, trail: Sequence[tuple[str, str]] = ()) -> str:
    """Return the page as HTML.

    Parameters
    ----------
    page
        What it shows.
    trail
        Names and addresses of the pages above it.
    """
    return render("fit.html", page=page, trail=trail)


@dataclass(frozen=True)
class FitReport:
    """A fit's report: a page of its own, and a summary for notebooks.

    Attributes
    ----------
    fit
        Result of any method.
    title
        Heading; by default method and model.
    """

    fit: Fit
    title: str = ""

    def save(self, path: Path | str) -> None:
        """Write a page about the fit: one HTML file that needs no others.

        Parameters
        ----------
        path
            File of the page.

        Raises
        ------
        StoreError
            If the file cannot be written.
        """
        page = build_fit_page(self.fit, title=self.title)
        write_text(Path(path), render_fit_page(page))

    def _repr_html_(self) -> str:
        """Return a summary of the fit for notebooks."""
        page = build_fit_page(self.fit, title=self.title, pictures=False, rows=_ROWS_OF_SNIPPET)
        return render("snippet.html", page=page)


def _opening(fit: Fit) -> str:
    attrs, sizes = fit.tree.attrs, fit.posterior.sizes
    chains = "1 chain" if sizes["chain"] == 1 else f"{sizes['chain']} chains"
    sentence = (
        f"{method_style(attrs['method']).label} on {attrs.get('model', 'a model')}: {chains} of "
        f"{sizes['draw']:,} draws"
    )
    seed, every = (fit.attribute(name, int) for name in ("seed", "kept_every"))
    if seed is not None:
        sentence += f", seed {seed}"
    if every is not None and every > 1:
        sentence += f"; one of every {every} draws was kept"
    return f"{sentence}. {fit.gradients:,} gradients in {fit.seconds:,.1f} s."


def _evidence(fit: Fit) -> str:
    try:
        found = fit.log_evidence
    except DataError:
        return ""
    sentence = f"log Z = {found.text} (Monte Carlo standard error)"
    try:
        both = fit.two_sided_log_evidence
    except DataError:
        both = None
    if both is None:
        return f"{sentence}."
    return (
        f"{sentence}; {both.forward.value:.3f} from the base's side, {both.backward.value:.3f} "
        "from the target's."
    )


def _summary(
    posterior: xr.Dataset, rows: int, parameters: Sequence[str]
) -> tuple[pd.DataFrame, str]:
    columns = worst_columns(posterior, rows, parameters).in_order(posterior)
    caption = "ArviZ's summary of the unweighted draws of the target."
    if len(columns.names) < columns.total:
        caption += (
            f" It shows the {len(columns.names)} of {columns.total:,} coordinates with the largest "
            "R-hat"
        )
        quantities = len(parameters) < len(posterior)
        caption += ", of parameters before those of other quantities." if quantities else "."
    if posterior.sizes["draw"] < _FEWEST_FOR_SUMMARY:
        mean = columns.values.mean(axis=(0, 1))
        return pd.DataFrame({"mean": mean}, index=list(columns.names)), caption
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        summary: pd.DataFrame = arviz_stats.summary(columns.dataset(), round_to="none")
    if posterior.sizes["chain"] == 1 and posterior.sizes["draw"] >= _FEWEST_FOR_R_HAT:
        # ArviZ computes no R-hat for a single chain; our diagnosis compares its halves, too.
        summary["r_hat"] = evidence.r_hat(columns.values)
        caption += " R-hat compares the halves of the single chain."
    return summary, caption


def _of_walkers(summary: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """Return a summary without the columns that take chains as independent, and its caption."""
    caption = (
        "ArviZ's summary of the draws of all walkers. They depend on each other, so it has no "
        "R-hat, no effective sample sizes and no errors; the findings say what the means are worth."
    )
    return _without_errors(summary), caption


def _of_weighed_modes(summary: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """Return a summary without the columns that take the draws' shares of modes as they are."""
    caption = (
        "ArviZ's summary of the unweighted draws of the target, in which each mode has its "
        "probability by its mass. ArviZ's R-hat, effective sample sizes and errors do not know "
        "that, so they are left out; the findings have those within modes."
    )
    return _without_errors(summary), caption


def _without_errors(summary: pd.DataFrame) -> pd.DataFrame:
    """Return ArviZ's summary without what it says about the errors of means."""
    return summary[[name for name in summary if not str(name).startswith(("ess", "mcse", "r_hat"))]]


def _modes(fit: Fit) -> tuple[pd.DataFrame, Sequence[str]]:
    """Return the table of modes and remarks; both empty if modes were not looked for."""
    table = fit.attribute("modes", ModeTable.from_json)
    if table is None:
        return pd.DataFrame(), ()
    columns: dict[int, dict[str, object]] = {}
    shown = mode_rows(table)
    copies = any(each.copy_of for each in shown)
    for each in shown:
        columns[each.number] = {
            "probability": each.probability,
            "standard error": each.error,
            "seen by": each.seen_by,
            **({"copy of": each.copy_of} if copies else {}),
            **dict(zip(table.shown, each.place, strict=True)),
        }
    frame = pd.DataFrame.from_dict(columns, orient="index")
    frame.index.name = "mode"
    return frame, remarks(table)


def _cost(fit: Fit) -> pd.DataFrame:
    attrs = fit.tree.attrs
    phases = {
        label: [float(np.sum(attrs[f"{kind}_{phase}"])) for kind in ("gradients", "seconds")]
        for phase, label in _PHASES.items()
        if f"gradients_{phase}" in attrs and f"seconds_{phase}" in attrs
    }
    phases["in all"] = [float(fit.gradients), fit.seconds]
    return pd.DataFrame.from_dict(phases, orient="index", columns=["gradients", "seconds"])


def _provenance(fit: Fit) -> dict[str, str]:
    return {
        key.replace("_", " ").replace("sha256", "SHA-256"): _shown(value)
        for key, value in fit.provenance().items()
        if not key.startswith(_NOT_PROVENANCE)
    }


def _programs(fit: Fit, program: StanProgram | None) -> Sequence[ProgramText]:
    one = program_text(fit, program)
    return kept_programs(fit) if one is None else (one,)


def _flat(settings: dict[str, Any], above: str = "") -> dict[str, str]:
    """Flatten nested settings to names such as ``nuts.chains``."""
    flat: dict[str, str] = {}
    for name, value in settings.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{above}{name}.")
        else:
            flat[f"{above}{name}"] = _shown(value)
    return flat


def _shown(value: Any) -> str:
    """Write a value as text; for a long array, its shape."""
    if value is None:
        return "none"
    if isinstance(value, float):
        return f"{value:.6g}"
    if not isinstance(value, list):
        return str(value)
    parts = ", ".join(_shown(part) for part in value)
    if len(parts) <= _LONGEST_SETTING:
        return f"[{parts}]"
    try:
        shape = " × ".join(map(str, np.shape(value)))
    except ValueError:
        return f"{len(value)} arrays"
    return f"an array of {shape} numbers"
