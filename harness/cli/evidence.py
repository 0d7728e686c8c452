"""Commands for log Z of fits and for comparisons of models: evidence and compare."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

import click

from harness.cli.options import (
    CHAINS,
    DRAWS,
    ENGINE,
    FORCE,
    INCLUDE_PATHS,
    ONE_OBJECT,
    SEED,
    TIME_LIMIT,
    WARMUP,
    Engine,
)
from harness.cli.streams import output_is_for_results


@click.command()
@click.argument("fit", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--model",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="Stan program that the fit is of.",
)
@click.option(
    "--data",
    type=click.Path(path_type=Path, dir_okay=False),
    help="JSON file with the program's data.",
)
@click.option(
    "--temper",
    "tempering",
    type=click.Choice(["no", "auto"]),
    default="no",
    show_default=True,
    help="auto: go on with a tempered run where the bridge cannot be trusted.",
)
@click.option(
    "--error",
    type=click.FloatRange(min=0, min_open=True),
    metavar="NATS",
    help="Say how many draws an error of log Z of this size takes.",
)
@CHAINS
@WARMUP
@DRAWS
@SEED
@INCLUDE_PATHS
@ENGINE
@click.option(
    "--budget",
    type=click.FloatRange(min=0, min_open=True),
    default=120.0,
    show_default=True,
    metavar="SECONDS",
    help="Time for the pilots of a tempered run.",
)
@TIME_LIMIT
@ONE_OBJECT
@click.pass_context
def evidence(
    ctx: click.Context,
    fit: tuple[Path, ...],
    model: Path,
    data: Path | None,
    tempering: Literal["no", "auto"],
    error: float | None,
    chains: int,
    warmup: int,
    draws: int,
    seed: int,
    include_paths: tuple[Path, ...],
    engine: Engine,
    budget: float,
    time_limit: float | None,
    as_json: bool,
) -> None:
    """Estimate log Z of a Stan program from a FIT that you already have.

    FIT is CmdStan's CSV files, one for each chain, or a NetCDF file of ArviZ or harness.  Without
    it the program is sampled first.  Where log Z would be wrong it is refused with the reason, and
    the status is 1.
    """
    from harness.user import evidence_from_fit
    from harness.user.deadline import stoppable

    with output_is_for_results(), stoppable(time_limit):
        found = evidence_from_fit(
            list(fit) or None,
            model,
            data,
            temper=tempering,
            error=error,
            seed=seed,
            chains=chains,
            warmup=warmup,
            draws=draws,
            include_paths=include_paths,
            engine=engine,
            budget=budget,
        )
    told = json.dumps(found.as_json(), indent=2, allow_nan=False) if as_json else found.as_text()
    click.echo(told)
    if found.log_evidence is None:
        ctx.exit(1)


def _odds(
    ctx: click.Context, parameter: click.Parameter, value: str | None
) -> tuple[float, ...] | None:
    """Read ``1,2,1`` as numbers."""
    try:
        return None if value is None else tuple(float(part) for part in value.split(","))
    except ValueError:
        raise click.BadParameter(f"'{value}' must be numbers with commas: 1,2,1") from None


def _changed(
    ctx: click.Context, parameter: click.Parameter, value: str | None
) -> tuple[str, tuple[float, ...]] | None:
    """Read ``sigma_prior=1,2,5`` as a name and numbers."""
    if value is None:
        return None
    name, _, numbers = value.partition("=")
    try:
        found = tuple(float(part) for part in numbers.split(","))
    except ValueError:
        found = ()
    if not name.strip() or not found:
        raise click.BadParameter(f"'{value}' must have the form NAME=VALUE,VALUE,...")
    return name.strip(), found


@click.command()
@click.argument("models", nargs=-1, required=True, type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--data",
    type=click.Path(path_type=Path, dir_okay=False),
    help="JSON file with the data of all programs; each takes what it declares.",
)
@click.option(
    "--prior-odds",
    metavar="ODDS,ODDS,...",
    callback=_odds,
    help="Prior odds of the models, one for each.  [default: equal]",
)
@click.option(
    "--sensitivity",
    metavar="NAME=VALUE,...",
    callback=_changed,
    help="Repeat the comparison for values of a data variable, such as the scale of a prior.",
)
@click.option(
    "--temper",
    "tempering",
    type=click.Choice(["auto", "no"]),
    default="auto",
    show_default=True,
    help="auto: go on with a tempered run where the bridge cannot be trusted.",
)
@CHAINS
@WARMUP
@DRAWS
@SEED
@INCLUDE_PATHS
@ENGINE
@click.option(
    "--budget",
    type=click.FloatRange(min=0, min_open=True),
    default=120.0,
    show_default=True,
    metavar="SECONDS",
    help="Time for the pilots of each tempered run.",
)
@click.option(
    "--report",
    "page",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write a page with the comparison to this HTML file.",
)
@click.option(
    "--csv",
    "table",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the tables to this CSV file.",
)
@FORCE
@TIME_LIMIT
@ONE_OBJECT
@click.pass_context
def compare(
    ctx: click.Context,
    models: tuple[Path, ...],
    data: Path | None,
    prior_odds: tuple[float, ...] | None,
    sensitivity: tuple[str, tuple[float, ...]] | None,
    tempering: Literal["no", "auto"],
    chains: int,
    warmup: int,
    draws: int,
    seed: int,
    include_paths: tuple[Path, ...],
    engine: Engine,
    budget: float,
    page: Path | None,
    table: Path | None,
    force: bool,
    time_limit: float | None,
    as_json: bool,
) -> None:
    """Compare Stan programs of the same data by their evidence.

    This samples each of the MODELS and prints log Z, probabilities of the models and Bayes
    factors, and leave-one-out cross-validation of programs that generate log_lik.  The status is 1
    if a model has no log Z.
    """
    from harness.files import write_text
    from harness.user import compare_models
    from harness.user.comparison_report import save_comparison
    from harness.user.deadline import stoppable
    from harness.user.outputs import check_outputs, page_output, program_inputs, table_output

    outputs = [
        *([] if page is None else [page_output("--report", page)]),
        *([] if table is None else [table_output("--csv", table)]),
    ]
    inputs = [each for model in models for each in program_inputs(model, include_paths)]
    check_outputs(outputs, inputs + ([] if data is None else [data]), force=force)
    with output_is_for_results(), stoppable(time_limit):
        compared = compare_models(
            models,
            data,
            prior_odds=prior_odds,
            sensitivity=sensitivity,
            temper=tempering,
            seed=seed,
            chains=chains,
            warmup=warmup,
            draws=draws,
            include_paths=include_paths,
            engine=engine,
            budget=budget,
        )
        if page is not None:
            save_comparison(compared, page)
        if table is not None:
            write_text(table, compared.as_csv())
    if as_json:
        click.echo(json.dumps(compared.as_json(), indent=2, allow_nan=False))
    else:
        click.echo(compared.as_text())
        for label, path in (("Report", page), ("Table", table)):
            if path is not None:
                click.echo(f"{label}: {path}")
    if compared.main.odds is None:
        ctx.exit(1)
