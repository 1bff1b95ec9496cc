"""`openmsmq config`: check a configuration file, show what is in force, read it again."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Final

import typer

from openmsmq.cli.options.connecting import EXIT_FAILED, connected
from openmsmq.cli.options.reading import JsonOption
from openmsmq.cli.views.console import EXIT_BAD_INPUT, say_error
from openmsmq.cli.views.output import Columns, JsonObject, print_json, print_list

if TYPE_CHECKING:
    from openmsmq.api.messages import Reloaded, Setting

_ANY_DATA: Final = "."
"""Stands for the data directory while a file without one is checked."""

app: Final = typer.Typer(
    help="The configuration of a queue manager: check it, show what is in force, read it again.",
    no_args_is_help=True,
)


@app.command()
def check(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Configuration file, in TOML.")],
    json: JsonOption = False,
) -> None:
    """Check a configuration file without starting anything.

    All mistakes are told, each with its line. Exit code 2 says that openmsmq serve would not take
    the file. Variables of the environment count as they would there; whether the files are there
    that it names is not looked at.
    """
    from openmsmq.runtime.config.checking import check as find_problems

    problems = find_problems(file, os.environ, data=_ANY_DATA)
    if json:
        for each in problems:
            print_json(
                {"key": each.key or None, "line": each.line or None, "problem": each.sentence}
            )
    else:
        for each in problems:
            place = f"line {each.line}: " if each.line else ""
            say_error(f"{place}{each.sentence}")
    if problems:
        raise typer.Exit(EXIT_BAD_INPUT)
    if not json:
        typer.echo(f"{file} is in order")


@app.command()
def show(
    context: typer.Context,
    changed: Annotated[
        bool, typer.Option("--changed", help="Only what is not as by default.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Show the configuration that is in force, and where each value comes from.

    For administrators. Secrets are left out. What the last reload has found and needs a restart
    stands beside the value that counts.
    """
    with connected(context) as manager:
        found = manager.configuration()
    shown = [each for each in found.settings if not (changed and each.is_default)]
    columns: Columns = {
        "Key": "key",
        "Value": "value",
        "From": "source",
        "After a restart": "after_restart",
    }
    if not any(each.waiting for each in shown):
        columns = {name: key for name, key in columns.items() if key != "after_restart"}
    if found.file and not json:
        typer.echo(f"file: {found.file}\n")
    print_list(map(_object, shown), columns, "everything is as by default", json=json)


@app.command()
def reload(context: typer.Context, json: JsonOption = False) -> None:
    """Have the configuration, certificates and tokens read again, as SIGHUP does.

    What needs a restart is listed, and nothing is stopped. What is wrong stays as it was, and
    makes the exit code 1. For administrators.
    """
    with connected(context) as manager:
        told = manager.reload()
    if json:
        print_json(
            {
                "read": [part.what for part in told.parts if not part.problem],
                "failed": {part.what: part.problem for part in told.parts if part.problem},
                "changed": told.changed,
                "need_restart": told.waiting,
            }
        )
    else:
        _print_told(told)
    if any(part.problem for part in told.parts):
        raise typer.Exit(EXIT_FAILED)


def _print_told(told: Reloaded) -> None:
    for part in told.parts:
        if part.problem:
            say_error(f"{part.what}: {part.problem}; what was there before counts.")
        else:
            typer.echo(f"read again: {part.what}")
    if told.changed:
        typer.echo(f"changed: {', '.join(told.changed)}")
    if told.waiting:
        typer.echo(f"needs a restart: {', '.join(told.waiting)}")


def _object(found: Setting) -> JsonObject:
    return {
        "key": found.key,
        "value": found.value,
        "source": found.source,
        "needs_restart": found.needs_restart,
        "after_restart": found.waiting or None,
    }
