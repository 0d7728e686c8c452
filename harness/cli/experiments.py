"""Commands for the experiments: run, report, status, list and clean."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

import click

from harness.cli.options import JSON, SECONDS

Profile = Literal["smoke", "quick", "paper"]


def _factors(
    ctx: click.Context, parameter: click.Parameter, value: tuple[str, ...]
) -> tuple[dict[str, str], ...]:
    """Read ``method=PE,N=2`` as a mapping."""
    chosen = []
    for text in value:
        pairs = [part.partition("=") for part in text.split(",")]
        if not all(name and sign and wanted for name, sign, wanted in pairs):
            raise click.BadParameter(f"'{text}' must have the form FACTOR=VALUE[,FACTOR=VALUE]")
        chosen.append({name.strip(): wanted.strip() for name, _, wanted in pairs})
    return tuple(chosen)


EXPERIMENTS = click.argument("experiments", nargs=-1)
PROFILE = click.option(
    "--profile",
    type=click.Choice(["smoke", "quick", "paper"]),
    default="quick",
    show_default=True,
    help="smoke: takes seconds, checks that it works; quick: takes minutes; paper: as published.",
)
STORE = click.option(
    "--store",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("results"),
    show_default=True,
    help="Folder for fits, tables and the report.",
)
ONLY = click.option(
    "--only",
    multiple=True,
    metavar="FACTOR=VALUE[,...]",
    callback=_factors,
    help="Only these cells, for example method=PE,N=2.  May be given several times.",
)
DATA_DIR = click.option(
    "--data-dir",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder with data of your own, for those parts of experiments that need it.",
)


@click.command()
@EXPERIMENTS
@PROFILE
@STORE
@ONLY
@DATA_DIR
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    default=None,
    help="Number of CmdStan processes at once.  [default: one per core]",
)
@click.option(
    "--scheduler", metavar="tcp://HOST:PORT", help="Send the tasks to this Dask scheduler."
)
@click.option("--retry-failed", is_flag=True, help="Run tasks again that failed before.")
@click.option(
    "--keep",
    type=click.Choice(["draws", "summaries"]),
    default="draws",
    show_default=True,
    help="summaries: keep at most 1,000 draws per chain once the metrics are computed.",
)
@click.option(
    "--time-limit",
    type=SECONDS,
    metavar="SECONDS",
    help="Stop a task's CmdStan after this many seconds and count the task as failed.",
)
@JSON
@click.pass_context
def run(
    ctx: click.Context,
    experiments: tuple[str, ...],
    profile: Profile,
    store: Path,
    only: tuple[dict[str, str], ...],
    data_dir: Path | None,
    workers: int | None,
    scheduler: str | None,
    retry_failed: bool,
    keep: Literal["draws", "summaries"],
    time_limit: float | None,
    as_json: bool,
) -> None:
    """Run EXPERIMENTS, or all, and write the report.

    Fits that are in the store are not made again, so you can continue a run that was stopped.  The
    exit status is 1 if a task has failed, now or before.
    """
    # Imported here, as below, so that `harness --help` stays quick.
    from harness.experiment.session import FAILED, Selection, run_session

    summary = run_session(
        Selection(experiments, profile, store, only, data_dir),
        workers=workers,
        scheduler=scheduler,
        retry_failed=retry_failed,
        keep=keep,
        time_limit=time_limit,
    )
    failed = sum(each.get(state, 0) for each in summary.counts.values() for state in FAILED)
    if as_json:
        told = {"report": str(summary.page), "bytes": summary.store_bytes, "tasks": summary.counts}
        click.echo(json.dumps(told, indent=2))
        ctx.exit(1 if failed else 0)
    for name, counts in summary.counts.items():
        told_counts = ", ".join(f"{number} {what}" for what, number in sorted(counts.items()))
        click.echo(f"{name}: {told_counts or 'nothing to do'}")
    click.echo(f"Store: {store} ({summary.store_bytes / 1e6:.1f} MB)")
    click.echo(f"Report: {summary.page}")
    if failed:
        click.echo(
            f"harness: {failed} tasks failed; the report says why, and --retry-failed runs them "
            "again",
            err=True,
        )
        ctx.exit(1)


@click.command()
@EXPERIMENTS
@PROFILE
@STORE
@ONLY
@DATA_DIR
@click.option(
    "--format",
    "form",
    type=click.Choice(["html", "md"]),
    default="html",
    show_default=True,
    help="html: a site with a page per experiment and per fit; md: one Markdown file without fits.",
)
@click.option(
    "--fits",
    type=click.Choice(["one", "all"]),
    default="one",
    show_default=True,
    help="Fits that get a page: each cell's first run, or all runs.",
)
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Number of processes that write the pages of fits.",
)
def report(
    experiments: tuple[str, ...],
    profile: Profile,
    store: Path,
    only: tuple[dict[str, str], ...],
    data_dir: Path | None,
    form: Literal["html", "md"],
    fits: Literal["one", "all"],
    workers: int,
) -> None:
    """Write the report from the fits in the store.

    This writes the tables too, and runs nothing.
    """
    from harness.experiment.session import ReportSettings, Selection, report_session

    selection = Selection(experiments, profile, store, only, data_dir)
    page = report_session(selection, ReportSettings(form, fits, workers))
    click.echo(f"Report: {page}")


@click.command()
@EXPERIMENTS
@PROFILE
@STORE
@ONLY
@DATA_DIR
@JSON
def status(
    experiments: tuple[str, ...],
    profile: Profile,
    store: Path,
    only: tuple[dict[str, str], ...],
    data_dir: Path | None,
    as_json: bool,
) -> None:
    """Count finished, failed and other tasks.

    Other tasks of EXPERIMENTS, or of all, have a damaged result or are still to be done.
    """
    from harness.experiment.session import Selection, status_session

    tables = status_session(Selection(experiments, profile, store, only, data_dir))
    if as_json:
        told = {name: table.to_dict(orient="index") for name, table in tables.items()}
        click.echo(json.dumps(told, indent=2))
        return
    for table in tables.values():
        click.echo(table.to_string())


@click.command(name="list")
@JSON
def list_experiments(as_json: bool) -> None:
    """List the experiments that can be run."""
    from harness.plan.catalogue import experiment_names, load_experiment

    titles = {name: load_experiment(name).title for name in experiment_names()}
    if as_json:
        click.echo(json.dumps(titles, indent=2))
        return
    for name, title in titles.items():
        click.echo(f"{name}: {title}")


@click.command()
@EXPERIMENTS
@STORE
@click.confirmation_option("--yes", prompt="Remove these results?")
def clean(experiments: tuple[str, ...], store: Path) -> None:
    """Remove the results of EXPERIMENTS, or of all.

    This also removes the report.
    """
    from harness.experiment.session import clean_session

    click.echo(f"Freed {clean_session(experiments, store) / 1e6:.1f} MB.")
