"""The command line: each command reads its options, calls one function and prints the result."""

from __future__ import annotations

import click

from harness.cli import evidence, experiments, sample, toolchain
from harness.engine.signals import exit_status, interrupted_by_signals
from harness.errors import HarnessError


class HarnessGroup(click.Group):
    """A group whose commands end with one clear message after an error that a user can correct."""

    def invoke(self, ctx: click.Context) -> object:
        """Run the command; any other exception is a bug of ours, so it keeps its traceback."""
        try:
            with interrupted_by_signals():
                return super().invoke(ctx)
        except HarnessError as error:
            _say(f"harness: {error}", error)
            ctx.exit(1)
        except KeyboardInterrupt as interrupt:
            _say(str(interrupt) or "interrupted", interrupt)
            ctx.exit(exit_status())


def _say(message: str, error: BaseException) -> None:
    """Print why a command ended, and the notes that the error has."""
    click.echo("\n".join([message, *getattr(error, "__notes__", [])]), err=True)


@click.group(cls=HarnessGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="harness", message="harness %(version)s")
def main() -> None:
    """Sample Stan models that have several modes, and estimate their evidence."""


for command in (
    *(toolchain.doctor, sample.temper, sample.sample, evidence.evidence, evidence.compare),
    *(experiments.run, experiments.report, experiments.status),
    *(experiments.list_experiments, experiments.clean),
):
    main.add_command(command)
