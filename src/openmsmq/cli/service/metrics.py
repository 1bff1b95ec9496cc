"""`openmsmq metrics`: what a queue manager tells, as Prometheus reads it."""

from __future__ import annotations

import typer

from openmsmq.cli.options.connecting import connected


def metrics(context: typer.Context) -> None:
    """Print metrics in the text format of Prometheus, such as for a textfile collector.

    Exit code 4 says that no queue manager answered: then nothing is printed.
    """
    with connected(context) as manager:
        text = manager.metrics()
    typer.echo(text, nl=False)
