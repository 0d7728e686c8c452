"""Commands for a program of your own: temper and sample."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal, get_args

import click

from harness.cli.options import (
    CHAINS,
    DRAWS,
    ENGINE,
    FORCE,
    INCLUDE_PATHS,
    MODEL,
    ONE_OBJECT,
    SEED,
    TIME_LIMIT,
    WARMUP,
    Engine,
    What,
)
from harness.cli.streams import output_is_for_results

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


@click.command()
@MODEL
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


@click.command()
@MODEL
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
    "NUTS misses part of the posterior, and parallel_tempering, then NUTS in each mode, if doubts "
    "are left; nuts: plain NUTS; parallel_tempering: replicas that swap between prior and "
    "posterior; nested_sampling: particles of the prior that climb the likelihood; otherwise the "
    "form to run.",
)
@CHAINS
@WARMUP
@DRAWS
@SEED
@click.option(
    "--target-accept",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    help="Acceptance rate that NUTS aims at.  [default: 0.8; on a tempered path: 0.95]",
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
    help="Write the fit to this NetCDF file.  Until then each run that has finished is kept beside "
    "it, and the same command goes on from there if it is stopped.",
)
@click.option(
    "--report",
    "page",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write a page about the fit to this HTML file.",
)
@FORCE
@TIME_LIMIT
@ONE_OBJECT
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
    engine: Engine,
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
    from harness.user.unfinished import unfinished_files

    fits = [] if out is None else [out, *unfinished_files(out)]
    outputs = [
        *(fit_output("--out", each) for each in fits),
        *([] if page is None else [page_output("--report", page)]),
    ]
    given = [each for each in (data, tempered) if each is not None]
    inputs = [*program_inputs(model, include_paths), *given] if outputs else []
    check_outputs(outputs, inputs, force=force)
    with output_is_for_results(), stoppable(time_limit):
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
            out=out,
        )
        if page is not None:
            result.report(page)
    if as_json:
        click.echo(json.dumps(result.as_json(), indent=2, allow_nan=False))
        return
    click.echo(result.as_text())
    for label, path in (("Fit", out), ("Report", page)):
        if path is not None:
            click.echo(f"{label}: {path}")
