"""`openmsmq definitions`: the queues of a queue manager, with properties and rights, as a file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from openmsmq.cli.options.connecting import EXIT_FAILED, connected
from openmsmq.cli.options.reading import JsonOption
from openmsmq.cli.views.console import YesOption, ask_before, fail, is_asked, safe, say_error
from openmsmq.cli.views.output import count_text, print_json, print_result
from openmsmq.model.errors import MsmqError

if TYPE_CHECKING:
    from openmsmq.client.blocking import QueueManager
    from openmsmq.client.operating.definitions.file import Definitions
    from openmsmq.client.operating.definitions.importing import Comparison, Step

STANDARD: Final = "-"

app: Final = typer.Typer(
    help="All queues with their properties and rights: to a file, and from one.",
    no_args_is_help=True,
)


@app.command()
def export(
    context: typer.Context,
    file: Annotated[
        str, typer.Argument(metavar="[FILE]", help="A new file; without, standard output.")
    ] = STANDARD,
    without_rights: Annotated[
        bool, typer.Option("--without-rights", help="Say nothing about who may do what.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
) -> None:
    """Write the queues, their properties and rights as JSON; messages are not in it.

    The order is always the same, and nothing is in it that changes by itself: two exports of the
    same queues are the same file.
    """
    # Other commands do not pay for loading the client.
    from openmsmq.client.operating.definitions.file import write_definitions
    from openmsmq.client.operating.definitions.importing import export_definitions

    with connected(context) as manager:
        found = export_definitions(manager, with_rights=not without_rights)
    data = write_definitions(found)
    if file == STANDARD:
        typer.echo(data.decode(), nl=False)
        return
    try:
        with open(file, "wb" if force else "xb") as opened:
            opened.write(data)
    except FileExistsError:
        fail(f"{file} exists already: give the name of a new file, or --force.")
    except OSError as error:
        fail(f"{file} cannot be written: {error.strerror}.")
    typer.echo(f"wrote {count_text(len(found.queues), 'queue')} to {file}")


@app.command("import")
def import_(
    context: typer.Context,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A file of `definitions export`; - for stdin.")
    ],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")
    ] = False,
    prune: Annotated[
        bool,
        typer.Option(
            "--prune",
            help="Delete queues that are not in the file, with their messages; in a script only "
            "with --yes.",
        ),
    ] = False,
    yes: YesOption = False,
    json: JsonOption = False,
) -> None:
    """Create and change queues until they are as a file says; at a terminal, ask first.

    A second time there is nothing to do. A queue is created together with its rights, so that it
    is open to nobody else even for a moment. If a queue cannot become what the file says, because
    one is transactional and the other is not, nothing is done at all.
    """
    # Other commands do not pay for loading the client.
    from openmsmq.client.operating.definitions.importing import compare

    wanted = _read(file)
    if prune and not dry_run and not yes and not is_asked(yes=False):
        fail("--prune deletes queues, and there is nobody to ask: give --yes, or --dry-run first.")
    with connected(context) as manager:
        compared = compare(manager, wanted, prune=prune)
        if compared.conflicts:
            for sentence in compared.conflicts:
                say_error(sentence)
            say_error("nothing was done.")
            raise typer.Exit(EXIT_FAILED)
        is_shown = dry_run or (bool(compared.steps) and is_asked(yes=yes))
        if is_shown:
            for step in compared.steps:
                _show(step, json=json, is_done=False)
        if dry_run:
            _finish(compared, done_count=0, failed_count=0, dry_run=True, json=json)
            return
        if compared.steps:
            ask_before(_question(compared), yes=yes)
        failed_count = _carry_out(manager, compared, json=json)
    done_count = len(compared.steps) - failed_count
    _finish(compared, done_count=done_count, failed_count=failed_count, dry_run=False, json=json)
    if failed_count:
        raise typer.Exit(EXIT_FAILED)


def _read(file: str) -> Definitions:
    from openmsmq.client.operating.definitions.file import (
        DEFINITIONS_MAX_BYTES,
        BadDefinitions,
        read_definitions,
    )

    try:
        if file == STANDARD:
            data = sys.stdin.buffer.read(DEFINITIONS_MAX_BYTES + 1)
        else:
            with Path(file).open("rb") as opened:
                data = opened.read(DEFINITIONS_MAX_BYTES + 1)
    except OSError as error:
        fail(f"{file} cannot be read: {error.strerror}.")
    try:
        return read_definitions(data)
    except BadDefinitions as error:
        fail(f"{file}: {error}.")


def _question(compared: Comparison) -> str:
    deleted = [step for step in compared.steps if step.action == "delete"]
    question = f"Do {count_text(len(compared.steps), 'of these thing')}?"
    if deleted:
        messages = count_text(sum(step.message_count for step in deleted))
        question = f"{question} {count_text(len(deleted), 'queue')} would be gone, with {messages}."
    return question


def _carry_out(manager: QueueManager, compared: Comparison, *, json: bool) -> int:
    """Do all steps; what deletes comes last, and only if nothing else has failed."""
    from openmsmq.client.operating.definitions.importing import carry_out

    failed_count = 0
    for step in compared.steps:
        if step.action == "delete" and failed_count:
            say_error(f"{step.path} was not deleted, because something before it has failed.")
            failed_count += 1
            continue
        try:
            carry_out(manager, step)
        except MsmqError as error:
            failed_count += 1
            say_error(f"{step.path}: {error}")
        else:
            _show(step, json=json, is_done=True)
    return failed_count


_DONE: Final = {"create": "created", "change": "changed", "delete": "deleted"}


def _show(step: Step, *, json: bool, is_done: bool) -> None:
    if json:
        print_json(
            {
                "action": step.action,
                "queue": step.path,
                "done": is_done,
                "changes": {name: list(map(_json, pair)) for name, pair in step.changes.items()},
                "messages": step.message_count,
            }
        )
        return
    verb = _DONE[step.action] if is_done else f"would {step.action}"
    with_messages = f", with {count_text(step.message_count)}" if step.action == "delete" else ""
    typer.echo(safe(f"{verb} {step.path}{with_messages}"))
    if not is_done:
        for name, (old, new) in step.changes.items():
            typer.echo(f"  {safe(_change_text(step, name, old, new))}")


def _change_text(step: Step, name: str, old: object, new: object) -> str:
    if name == "rights":
        return (
            f"rights: {_rights_text(old)} -> {_rights_text(new)}"
            if old
            else (f"rights: {_rights_text(new)}")
        )
    return f"{name}: {new!r}" if step.action == "create" else f"{name}: {old!r} -> {new!r}"


def _rights_text(rights: object) -> str:
    from openmsmq.client.operating.definitions.file import RightsDefinition

    assert isinstance(rights, RightsDefinition)
    said = [
        f"{entry.who} {'denied' if entry.denied else 'allowed'} {', '.join(entry.rights) or '-'}"
        for entry in rights.entries
    ]
    return "; ".join([f"owner {rights.owner or 'nobody'}", *said])


def _json(value: object) -> object:
    import msgspec

    return msgspec.to_builtins(value)


def _finish(
    compared: Comparison, *, done_count: int, failed_count: int, dry_run: bool, json: bool
) -> None:
    found = {
        "steps": len(compared.steps),
        "done": done_count,
        "failed": failed_count,
        "same": compared.same_count,
        "dry_run": dry_run,
    }
    same = count_text(compared.same_count, "queue")
    if not compared.steps:
        sentence = f"nothing to do: {same} as the file says"
    elif dry_run:
        sentence = (
            f"{count_text(len(compared.steps), 'thing')} to do, nothing was done; {same} as is"
        )
    else:
        failed = f", {failed_count} failed" if failed_count else ""
        sentence = f"{done_count} done{failed}; {same} were as the file says"
    print_result(found, sentence, json=json)
