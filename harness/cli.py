"""The command line: each command reads its options, calls one function and prints the result."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, Literal, get_args

import click

from harness.engine.signals import exit_status, interrupted_by_signals
from harness.errors import HarnessError

Profile = Literal["smoke", "quick", "paper"]

# As in harness.user and harness.temper, which are imported where they are needed.
Tempered = Literal["collapsed_tempering", "joint_tempering", "pseudo_extended"]
Written = Literal[
    "collapsed_tempering",
    "collapsed_tempering_zero_likelihood",
    "joint_tempering",
    "pseudo_extended",
    "collapsed_pseudo_extended",
    "prior",
    "target",
]
SampleMethod = Literal["auto", "nuts", "parallel_tempering", "nested_sampling"] | Tempered
What = Literal["likelihood", "all"]


class HarnessGroup(click.Group):
    """A group whose commands end with one clear message after an error that a user can correct."""

    def invoke(self, ctx: click.Context) -> object:
        """Run the command; any other exception is a bug of ours, so it keeps its traceback."""
        try:
            with interrupted_by_signals():
                return super().invoke(ctx)
        except HarnessError as error:
            click.echo(f"harness: {error}", err=True)
            ctx.exit(1)
        except KeyboardInterrupt as interrupt:
            click.echo(str(interrupt) or "interrupted", err=True)
            ctx.exit(exit_status())


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


class Seconds(click.FloatRange):
    """A number of seconds that a clock can wait for; "nan" is none, although it is in no range."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Refuse what is not a number."""
        seconds = float(super().convert(value, param, ctx))
        if math.isnan(seconds):
            self.fail("nan is no number of seconds.", param, ctx)
        return seconds


SECONDS = Seconds(min=0, min_open=True, max=1e6)


@click.group(cls=HarnessGroup, context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Sample Stan models that have several modes, and estimate their evidence."""


@main.command()
@click.option("--build", is_flag=True, help="Assemble CmdStan in the cache folder now.")
@click.option("--install", is_flag=True, help="Install CmdStan with CmdStanPy's own installer.")
@click.option(
    "--clear-cache", is_flag=True, help="First remove everything that harness keeps in its cache."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_context
def doctor(
    ctx: click.Context, *, build: bool, install: bool, clear_cache: bool, as_json: bool
) -> None:
    """Check CmdStan, the C++ compiler and make.

    If something is missing, this says what to do about it.
    """
    # Imported here so that `harness --help` stays quick.
    from harness.engine.processes import children_end_with_us
    from harness.engine.toolchain import doctor as checks
    from harness.engine.toolchain.assemble import ensure_assembled
    from harness.engine.toolchain.clear import clear_cache as clear

    if build and install:
        raise click.UsageError("--build and --install cannot be used together.")
    if clear_cache:
        click.echo(f"Freed {clear():,} bytes of the cache.", err=as_json)
    if install:
        with children_end_with_us():
            checks.install()
    if build:
        ensure_assembled()
    facts = checks.gather()
    click.echo(checks.as_json(facts) if as_json else checks.as_text(facts))
    if not facts.ready:
        ctx.exit(1)


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
FORCE = click.option(
    "--force", is_flag=True, help="Replace existing files that harness did not write."
)
INCLUDE_PATHS = click.option(
    "--include-path",
    "include_paths",
    multiple=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder to search for #include files.  May be given several times.",
)
CHAINS = click.option(
    "--chains",
    type=click.IntRange(1, 1000),
    default=4,
    show_default=True,
    help="Number of chains.",
)
WARMUP = click.option(
    "--warmup",
    type=click.IntRange(20, 10_000_000),
    default=1000,
    show_default=True,
    help="Warm-up iterations per chain.",
)
DRAWS = click.option(
    "--draws",
    type=click.IntRange(4, 10_000_000),
    default=1000,
    show_default=True,
    help="Draws per chain.",
)
SEED = click.option(
    "--seed",
    type=click.IntRange(0, 2**32 - 1),
    default=1,
    show_default=True,
    help="Seed of all random numbers.",
)
ENGINE = click.option(
    "--engine",
    type=click.Choice(["auto", "cmdstan", "stanli"]),
    default="auto",
    show_default=True,
    help="auto: CmdStan, or stanli where there is no C++ compiler.",
)
TIME_LIMIT = click.option(
    "--time-limit",
    type=SECONDS,
    metavar="SECONDS",
    help="Stop the whole command after this many seconds; nothing is written then.",
)
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@main.command()
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


@main.command()
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


@main.command()
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


@main.command()
@click.argument("model", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--method",
    type=click.Choice(get_args(Written)),
    default="collapsed_tempering",
    show_default=True,
    help="joint_tempering samples an inverse temperature, collapsed_tempering integrates it out "
    "(..._zero_likelihood: for a likelihood that is zero in places); prior: only what is not "
    "tempered; target: the program itself with all constants.",
)
@click.option(
    "--temper",
    "what",
    type=click.Choice(["likelihood", "all"]),
    default="likelihood",
    show_default=True,
    help="What is tempered.  likelihood: the base is the prior; all: the base is flat.",
)
@INCLUDE_PATHS
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File to write.  [default: standard output]",
)
@FORCE
def temper(
    model: Path,
    method: Written,
    what: What,
    include_paths: tuple[Path, ...],
    output: Path | None,
    force: bool,
) -> None:
    """Write a tempered form of the Stan program MODEL.

    Standard error says which statements are tempered and why.  If you know better, write a comment
    `// temper: yes` or `// temper: no` on the statement's line.
    """
    from harness.files import write_text
    from harness.temper import as_table, temper

    if output is not None:
        from harness.user.outputs import check_outputs, program_inputs, program_output

        inputs = program_inputs(model, include_paths)
        check_outputs([program_output("-o", output)], inputs, force=force)
    program = temper(model, method=method, what=what, include_paths=include_paths)
    click.echo(as_table(program), err=True)
    if output is None:
        click.echo(program.text, nl=False)
    else:
        write_text(output, program.text)


@main.command()
@click.argument("model", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--data",
    type=click.Path(path_type=Path, dir_okay=False),
    help="JSON file with the program's data.",
)
@click.option(
    "--method",
    type=click.Choice(
        ["auto", "nuts", *get_args(Tempered), "parallel_tempering", "nested_sampling"]
    ),
    default="auto",
    show_default=True,
    help="auto: plain NUTS, then pilots that look for further modes, then collapsed_tempering if "
    "NUTS misses part of the posterior, and parallel_tempering if doubts are left; nuts: plain "
    "NUTS; parallel_tempering: replicas that swap between prior and posterior; nested_sampling: "
    "particles of the prior that climb the likelihood; otherwise the form to run.",
)
@CHAINS
@WARMUP
@DRAWS
@SEED
@click.option(
    "--target-accept",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    help="Acceptance rate that NUTS aims at.  [default: 0.8; pseudo_extended: 0.95]",
)
@click.option("--max-treedepth", type=click.IntRange(1, 30), default=10, show_default=True)
@click.option(
    "--pseudo-samples",
    "num_pseudo_samples",
    type=click.IntRange(2, 1000),
    default=2,
    show_default=True,
    help="Number of pseudo-samples of pseudo_extended.",
)
@click.option(
    "--explorer",
    type=click.Choice(["auto", "hmc", "slice", "both"]),
    default="auto",
    show_default=True,
    help="What moves the replicas of parallel_tempering: Hamiltonian Monte Carlo, slice sampling "
    "or both in turn; auto: slice sampling where trajectories are not accepted.  Particles of "
    "nested_sampling move by slice (auto) or hmc.",
)
@click.option(
    "--references",
    type=click.IntRange(1, 2),
    default=2,
    show_default=True,
    help="Ladders of parallel_tempering: from the prior and from Gaussians near the posterior, or "
    "from the prior alone.",
)
@click.option(
    "--temper",
    "what",
    type=click.Choice(["likelihood", "all"]),
    default="likelihood",
    show_default=True,
    help="What is tempered.  likelihood: the path starts from the prior; all: the path starts from "
    "a wide Gaussian.",
)
@click.option(
    "--tempered",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Run this tempered program, which harness temper wrote from MODEL and which you edited.",
)
@INCLUDE_PATHS
@ENGINE
@click.option(
    "--budget",
    type=click.FloatRange(min=0, min_open=True),
    default=120.0,
    show_default=True,
    metavar="SECONDS",
    help="Time for all pilots, which look for further modes and estimate log Z, and for what "
    "follows them; of parallel_tempering and nested_sampling, for the run.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the fit to this NetCDF file.",
)
@click.option(
    "--report",
    "page",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write a page about the fit to this HTML file.",
)
@FORCE
@TIME_LIMIT
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def sample(
    model: Path,
    data: Path | None,
    method: SampleMethod,
    chains: int,
    warmup: int,
    draws: int,
    seed: int,
    target_accept: float | None,
    max_treedepth: int,
    num_pseudo_samples: int,
    explorer: Literal["auto", "hmc", "slice", "both"],
    references: Literal[1, 2],
    what: What,
    tempered: Path | None,
    include_paths: tuple[Path, ...],
    engine: Literal["auto", "cmdstan", "stanli"],
    budget: float,
    out: Path | None,
    page: Path | None,
    force: bool,
    time_limit: float | None,
    as_json: bool,
) -> None:
    """Sample the Stan program MODEL, tempered if that is needed.

    The result has draws with the program's own names, its transformed parameters and generated
    quantities, log evidence and a diagnosis.
    """
    from harness.user import sample
    from harness.user.deadline import stoppable
    from harness.user.outputs import check_outputs, fit_output, page_output, program_inputs

    outputs = [
        *([] if out is None else [fit_output("--out", out)]),
        *([] if page is None else [page_output("--report", page)]),
    ]
    given = [each for each in (data, tempered) if each is not None]
    inputs = [*program_inputs(model, include_paths), *given] if outputs else []
    check_outputs(outputs, inputs, force=force)
    with stoppable(time_limit):
        result = sample(
            model,
            data,
            method=method,
            seed=seed,
            chains=chains,
            warmup=warmup,
            draws=draws,
            target_accept=target_accept,
            max_treedepth=max_treedepth,
            num_pseudo_samples=num_pseudo_samples,
            explorer=explorer,
            references=references,
            what=what,
            tempered=tempered,
            include_paths=include_paths,
            engine=engine,
            budget=budget,
        )
        if out is not None:
            result.save(out)
        if page is not None:
            result.report(page)
    if as_json:
        click.echo(json.dumps(result.as_json(), indent=2, allow_nan=False))
        return
    click.echo(result.as_text())
    for label, path in (("Fit", out), ("Report", page)):
        if path is not None:
            click.echo(f"{label}: {path}")


@main.command()
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
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
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
    engine: Literal["auto", "cmdstan", "stanli"],
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

    with stoppable(time_limit):
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


@main.command()
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
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
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
    engine: Literal["auto", "cmdstan", "stanli"],
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
    with stoppable(time_limit):
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


@main.command(name="list")
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


@main.command()
@EXPERIMENTS
@STORE
@click.confirmation_option("--yes", prompt="Remove these results?")
def clean(experiments: tuple[str, ...], store: Path) -> None:
    """Remove the results of EXPERIMENTS, or of all.

    This also removes the report.
    """
    from harness.experiment.session import clean_session

    click.echo(f"Freed {clean_session(experiments, store) / 1e6:.1f} MB.")
