"""`openmsmq backup` and `openmsmq restore`: copies of a whole queue manager."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
import typer

from openmsmq.api.program import BackupPhase
from openmsmq.cli.options.connecting import connected
from openmsmq.cli.options.reading import JsonOption
from openmsmq.cli.service.store import stop_with
from openmsmq.cli.views.console import fail
from openmsmq.cli.views.output import (
    JsonObject,
    count_text,
    print_facts,
    print_json,
    print_result,
    progress,
    size_text,
    time_text,
)

if TYPE_CHECKING:
    from openmsmq.api.messages import BackupState
    from openmsmq.client.blocking import QueueManager

_POLL_S: Final = 0.1
_TOKENS: Final = "tokens.json"


def backup(
    context: typer.Context,
    directory: Annotated[
        str,
        typer.Argument(
            metavar="[DIRECTORY]",
            help="New directory for the back-up: an absolute path on the computer of the queue "
            "manager. Without it, how far the last back-up is.",
        ),
    ] = "",
    data: Annotated[
        str,
        typer.Option(
            "--data",
            metavar="DIRECTORY",
            help="Data directory of a queue manager that is stopped; without, the running one "
            "makes the back-up.",
        ),
    ] = "",
    json: JsonOption = False,
) -> None:
    """Back up a queue manager, while it runs: messages, queues, identity, keys, tokens.

    The back-up shows one moment, and everything that was acknowledged before it. It is checked
    before it gets its name. If you interrupt this command, the back-up goes on.
    """
    if data:
        _back_up_stopped(data, directory, json=json)
        return
    if directory and not os.path.isabs(directory):
        fail(
            f"{directory} is no absolute path, and the queue manager may be on another computer: "
            f"if it is on this one, give {Path(directory).absolute()}."
        )
    with connected(context) as manager:
        if not directory:
            _show(manager.backup(), json=json)
            return
        done = _watch(manager, manager.begin_backup(directory))
    if done.state == BackupPhase.FAILED.value:
        stop_with(done.problem)
    if done.state != BackupPhase.DONE.value:
        stop_with(f"the queue manager knows nothing of a back-up into {directory} any more")
    print_result(_object(done), _sentence(done.directory, done.total_bytes), json=json)


def _watch(manager: QueueManager, state: BackupState) -> BackupState:
    """Wait for the end of a back-up, and show how far it is."""
    number = state.number
    with progress(f"Backing up into {state.directory}", state.total_bytes) as bar:
        try:
            while state.number == number and not BackupPhase(state.state).is_over:
                time.sleep(_POLL_S)
                state = manager.backup()
                bar.show(state.copied_bytes, state.total_bytes)
        except KeyboardInterrupt:
            stop_with("the back-up goes on; `openmsmq backup` says how far it is")
    return state


def _back_up_stopped(data: str, directory: str, *, json: bool) -> None:
    # Other commands do not pay for loading the store.
    from openmsmq.runtime.api.connection import SOFTWARE
    from openmsmq.runtime.backups.making import back_up_stopped
    from openmsmq.runtime.operating_system.identity import read_identity
    from openmsmq.runtime.start_errors import StartError
    from openmsmq.storage.backups.manifest import BackupOwner
    from openmsmq.storage.port import StoreError, StoreInUse

    if not directory:
        fail("where is the back-up to go? Name a new directory.")
    target = str(Path(directory).absolute())
    try:
        identity = read_identity(Path(data))
        owner = BackupOwner("", "", SOFTWARE)
        if identity is not None:
            owner = BackupOwner(identity.name, identity.id, SOFTWARE)
        with progress(f"Backing up into {target}") as bar:
            manifest = back_up_stopped(Path(data), target, owner, bar.show)
    except StoreInUse as error:
        stop_with(f"{error}, or leave out --data: a queue manager that runs is backed up, too")
    except (StoreError, StartError) as error:
        stop_with(str(error))
    facts: JsonObject = {
        "directory": target,
        "size_bytes": manifest.size_bytes,
        "taken_time": time_text(manifest.taken_time_s),
    }
    print_result(facts, _sentence(target, manifest.size_bytes), json=json)


def restore(
    source: Annotated[
        str, typer.Argument(metavar="BACKUP", help="Directory that `openmsmq backup` has made.")
    ],
    data: Annotated[
        str,
        typer.Option(
            "--data",
            metavar="DIRECTORY",
            help="Data directory that the queue manager is to have; missing or empty.",
        ),
    ],
    replace: Annotated[
        bool,
        typer.Option(
            "--replace",
            help="Move what is in the data directory into a folder of it, before-restore-TIME.",
        ),
    ] = False,
    without_tokens: Annotated[
        bool,
        typer.Option(
            "--without-tokens",
            help="Leave out the tokens: some may have been revoked since the back-up.",
        ),
    ] = False,
    json: JsonOption = False,
) -> None:
    """Put a back-up into a data directory, from which `openmsmq serve` starts.

    Everything is verified before anything is put in its place. The queue manager keeps its name and
    identifier: never start it beside the one that was backed up.
    """
    from openmsmq.runtime.clocks import read_clocks
    from openmsmq.storage.backups.restoring import Restoring
    from openmsmq.storage.port import StoreError

    try:
        with progress(f"Restoring {data}") as bar:
            report = Restoring(Path(source), Path(data), replace=replace).run(
                leave_out=(_TOKENS,) if without_tokens else (),
                progress=bar.show,
                now_s=read_clocks().unix_s,
            )
    except StoreError as error:
        stop_with(str(error))
    found: JsonObject = msgspec.to_builtins(report)
    found["taken_time"] = time_text(report.taken_time_s)
    del found["taken_time_s"]
    print_result(
        found,
        f"{report.path} has {report.name or 'the queue manager'} as of "
        f"{time_text(report.taken_time_s)} ({count_text(report.file_count, 'file')}, "
        f"{size_text(report.size_bytes)})",
        json=json,
    )
    if report.before and not json:
        typer.echo(f"what was there before is in {report.before}")


def _sentence(directory: str, size_bytes: int) -> str:
    return f"{directory} has a back-up of {size_text(size_bytes)}, and is checked"


def _object(state: BackupState) -> JsonObject:
    return {
        "directory": state.directory,
        "state": state.state,
        "copied_bytes": state.copied_bytes,
        "size_bytes": state.total_bytes,
        "taken_time": time_text(state.begun_time_s) if state.number else None,
        "ended_time": time_text(state.ended_time_s) if state.ended_time_s else None,
        "problem": state.problem or None,
    }


def _show(state: BackupState, *, json: bool) -> None:
    if json:
        print_json(_object(state))
    elif not state.number:
        typer.echo("there was no back-up since the queue manager has started")
    else:
        facts = [
            ("state", state.state),
            ("copied", f"{size_text(state.copied_bytes)} of {size_text(state.total_bytes)}"),
            ("of the moment", time_text(state.begun_time_s)),
        ]
        if state.ended_time_s:
            facts.append(("ended", time_text(state.ended_time_s)))
        if state.problem:
            facts.append(("problem", state.problem))
        print_facts(state.directory, facts)
