"""`openmsmq failover`: who has the log of a queue manager, and another primary if wanted."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Annotated

import typer

from openmsmq.cli.options.connecting import EXIT_FAILED
from openmsmq.cli.service.serve import CONFIG_VARIABLE
from openmsmq.cli.views.console import fail, say_error
from openmsmq.runtime.start_errors import StartError

if TYPE_CHECKING:
    from openmsmq.protocol.replication.log import LogState
    from openmsmq.runtime.replication.database import DatabaseLog, Follower


def failover(
    config: Annotated[
        str,
        typer.Option(
            "--config", metavar="FILE", help="Configuration of one of the computers; with --name."
        ),
    ] = "",
    name: Annotated[
        str, typer.Option("--name", help="Name of the queue manager, if the file does not say it.")
    ] = "",
    show: Annotated[bool, typer.Option("--show", help="Only show who has which records.")] = False,
) -> None:
    """Let a standby take over a queue manager that is on several computers.

    The primary finishes what is under way, gives its lease back and ends with exit code 75, so that
    a supervisor starts it again as a standby. Run it on any of the computers.
    """
    # Other commands do not pay for loading a server.
    from openmsmq.runtime.config.errors import ConfigError
    from openmsmq.runtime.config.loading import load

    try:
        flags = {"name": name or None, "data": None}
        given = load(flags, {"OPENMSMQ_DATA": ".", **os.environ}, config or _variable()).config
    except ConfigError as error:
        fail(f"{error}.")
    if not given.replication.database:
        fail("the configuration has no [replication]: this queue manager is on one computer.")
    try:
        from openmsmq.runtime.replication.database import DatabaseLog
        from openmsmq.runtime.replication.wire import LogFailed
    except ModuleNotFoundError:
        fail("[replication] needs psycopg: pip install 'openmsmq[database]'.")
    database = DatabaseLog(given.replication, given.manager_name)
    try:
        told = asyncio.run(_tell(database, show=show))
    except (LogFailed, StartError) as error:
        say_error(f"{error}.")
        raise typer.Exit(EXIT_FAILED) from None
    typer.echo(told)


def _variable() -> str | None:
    return os.environ.get(CONFIG_VARIABLE)


async def _tell(database: DatabaseLog, *, show: bool) -> str:
    try:
        return await (_show(database) if show else _hand_over(database))
    finally:
        database.close()


async def _hand_over(database: DatabaseLog) -> str:
    from openmsmq.runtime.replication.watching import STANDBY_SILENT_S

    state, followers = await _look(database)
    primary = _member(state)
    there = [
        each for each in followers if each.name != primary and each.silent_s < STANDBY_SILENT_S
    ]
    if state.lease_ended:
        return f"{database.name} has no primary: a standby takes over as soon as one runs"
    if not there:
        raise StartError(
            f"no standby follows {database.name}, so nobody would take it over from {primary}: "
            "start one with openmsmq serve --standby"
        )
    await database.hand_over()
    behind = state.last - max(each.number for each in there)
    return (
        f"{primary} hands {database.name} over to a standby, which has all records but "
        f"{max(0, behind)}"
    )


async def _show(database: DatabaseLog) -> str:
    state, followers = await _look(database)
    primary = "nobody" if state.lease_ended else _member(state)
    lines = [f"primary {primary}, epoch {state.epoch}, records {state.first} to {state.last}"]
    lines += [f"{each.name} has {each.number}, {each.silent_s} s ago" for each in followers]
    return "\n".join(lines)


async def _look(database: DatabaseLog) -> tuple[LogState, list[Follower]]:
    found = await database.find()
    if found is None:
        raise StartError(
            f"the database of [replication] has no log of {database.name}: look whether it is the "
            "right database, and the right name"
        )
    return found[0], await database.followers()


def _member(state: LogState) -> str:
    """Return what the computer is called that has the lease; a name may have spaces."""
    return state.holder.rpartition(" ")[0]
