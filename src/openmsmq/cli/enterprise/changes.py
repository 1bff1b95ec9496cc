"""Changing a directory from the command line: the differences first, then a question."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import typer

from openmsmq.cli.views.console import Printer, safe
from openmsmq.cli.views.output import JsonObject, count_text, print_json

if TYPE_CHECKING:
    from openmsmq.client.blocking import QueueManager
    from openmsmq.directory.diff import DiffLine
    from openmsmq.directory.image import DirectoryImage
    from openmsmq.model.directory import Change

_SIGN_STYLES: Final = {"+": "green", "~": "yellow", "-": "red"}


def make_changes(
    manager: QueueManager,
    image: DirectoryImage,
    changes: Sequence[Change],
    *,
    dry_run: bool,
    yes: bool,
    json: bool,
) -> None:
    """Show changes, see that they can be made, ask, and have the queue manager make them.

    It passes them on to the original of the directory.
    """
    from openmsmq.directory.diff import describe
    from openmsmq.directory.rules import check

    lines = describe(changes, image)
    for line in lines:
        if json:
            print_json(_line_object(line))
        else:
            _print_line(line)
    if not lines:
        if not json:
            typer.echo("nothing to change: the directory is like that already")
        return
    check(image, changes)
    if dry_run:
        if not json:
            typer.echo(f"{_counted(lines)}; nothing was changed, because of --dry-run")
        return
    if not yes:
        _ask(f"{_counted(lines)}. Change the directory?")
    manager.write_directory(changes)
    if not json:
        typer.echo(f"changed: {_counted(lines)}")


def _ask(question: str) -> None:
    """Stop unless a person agrees. Nothing goes to the results, which a program may be reading."""
    typer.echo(f"{question} [y/N] ", nl=False, err=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise typer.Abort


def _counted(lines: Sequence[DiffLine]) -> str:
    signs = [line.sign.value for line in lines]
    words = (("+", "added"), ("~", "changed"), ("-", "removed"))
    parts = [f"{signs.count(sign)} {word}" for sign, word in words if sign in signs]
    return f"{count_text(len(lines), 'object')} ({', '.join(parts)})"


def _print_line(line: DiffLine) -> None:
    printer = Printer()
    first, *rest = str(line).split("\n")
    printer.line((safe(first), _SIGN_STYLES[line.sign.value]))
    for text in rest:
        printer.line((safe(text), ""))


def _line_object(line: DiffLine) -> JsonObject:
    return {
        "change": line.sign.name.lower(),
        "kind": line.kind.value,
        "name": line.name,
        "fields": {field.key: {"old": field.old, "new": field.new} for field in line.fields},
    }
