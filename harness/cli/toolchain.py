"""The command that checks what compiles and runs Stan programs: doctor."""

from __future__ import annotations

import click

from harness.cli.options import ONE_OBJECT


@click.command()
@click.option("--build", is_flag=True, help="Assemble CmdStan in the cache folder now.")
@click.option("--install", is_flag=True, help="Install CmdStan with CmdStanPy's own installer.")
@click.option(
    "--clear-cache", is_flag=True, help="First remove everything that harness keeps in its cache."
)
@ONE_OBJECT
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
