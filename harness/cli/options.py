"""Options that several commands have, and the kinds of values that they take."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Literal

import click

Engine = Literal["auto", "cmdstan", "stanli"]
What = Literal["likelihood", "all"]


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
    help="Warm-up iterations per chain. Stan adapts the metric only if there are 150 or more.",
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
    help="Stop the whole command after this many seconds; no result is written then.",
)
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
ONE_OBJECT = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
MODEL = click.argument("model", type=click.Path(path_type=Path, dir_okay=False))
