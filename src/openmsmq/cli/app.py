"""The `openmsmq` command: its groups, and what happens when one fails."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Final

import typer

from openmsmq import __version__
from openmsmq.cli import packet
from openmsmq.cli.console import say_error

EXIT_UNEXPECTED: Final = 70
DEBUG_VARIABLE: Final = "OPENMSMQ_DEBUG"

app: Final = typer.Typer(
    name="openmsmq",
    help="Microsoft Message Queuing on Linux and anywhere Python runs.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(packet.app, name="packet")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"openmsmq {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and stop."
        ),
    ] = False,
) -> None:
    """Microsoft Message Queuing on Linux and anywhere Python runs."""


def main() -> None:
    """Run the command line; a person never sees a traceback unless they ask for it."""
    for output in (sys.stdout, sys.stderr):
        # What a terminal cannot show becomes a question mark, not a failure.
        output.reconfigure(errors="replace")  # type: ignore[union-attr]
    try:
        app(prog_name="openmsmq")
    except Exception as error:
        if os.environ.get(DEBUG_VARIABLE):
            raise
        say_error(
            f"this should not have happened ({type(error).__name__}: {error}). Please report it "
            f"with what you did and the output of the same command with {DEBUG_VARIABLE}=1."
        )
        sys.exit(EXIT_UNEXPECTED)


if __name__ == "__main__":
    main()
