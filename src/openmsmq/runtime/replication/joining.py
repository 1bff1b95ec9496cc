"""Whether a store and a log belong together, and the way from there to a primary."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable
from pathlib import Path

from openmsmq.runtime.config.file import ServerConfig
from openmsmq.runtime.logs import Event, EventLog
from openmsmq.runtime.operating_system.identity import Leave
from openmsmq.runtime.replication.database import DatabaseLog
from openmsmq.runtime.replication.primary import Primary
from openmsmq.runtime.replication.standby import Standby, run_hook
from openmsmq.runtime.replication.wire import LogFailed
from openmsmq.runtime.start_errors import NotYet, StartError
from openmsmq.storage.engine import JournaledStore
from openmsmq.storage.files import FileOps
from openmsmq.storage.layout import read_format
from openmsmq.storage.port import Batch
from openmsmq.storage.records import REPLICATION_KEY


async def join(
    config: ServerConfig,
    store: JournaledStore,
    log: EventLog,
    *,
    creates: bool,
    follows: Callable[[int], None],
) -> Primary:
    """Follow the log until this computer is the primary; raise one of the errors of a start.

    `creates` begins the log if there is none. `follows` hears from which record on it follows.
    """
    database = DatabaseLog(config.replication, config.manager_name)
    try:
        identifier = await _belong_together(config, database, store, creates=creates)
        member = config.replication.own_name
        holder = f"{member} {secrets.token_hex(8)}"
        log.info(Event.REPLICATION_STANDBY, member=member, record=store.sequence)
        follows(store.sequence)
        standby = Standby(database, store, log, (member, holder), Path(config.data))
        promoted = await standby.follow(identifier)
    except LogFailed as error:
        database.close()
        raise NotYet(f"[replication] {error}") from None
    except BaseException:
        database.close()
        raise
    log.info(Event.REPLICATION_PRIMARY, epoch=promoted.epoch, record=store.sequence)
    primary = Primary(database, promoted, store, log, identifier)
    try:
        await run_hook(config.replication.on_promotion, config.manager_name)
        if store.get(REPLICATION_KEY) is None:
            primary.commit(Batch([(REPLICATION_KEY, identifier.encode())]), lambda _: None)
            await primary.settled()
    except BaseException:
        await primary.leave()
        raise
    return primary


async def _belong_together(
    config: ServerConfig, database: DatabaseLog, store: JournaledStore, *, creates: bool
) -> str:
    """Return the log of a store; begin it if that is wanted."""
    description = read_format(FileOps(), config.store_path)
    assert description is not None, "an open store has a format"
    mark = description.mark.hex()
    belongs = store.get(REPLICATION_KEY)
    found = await database.find()
    if found is None:
        if belongs is not None:
            raise StartError(
                f"the store in {config.data} belongs to a log that the database of [replication] "
                f"does not have under the name {config.manager_name}: look whether it is the "
                "right database"
            )
        if not creates:
            raise NotYet(
                f"the database of [replication] has no log of {config.manager_name} yet: start "
                "the first computer without --standby"
            )
        await database.create(secrets.token_hex(16), mark, store.sequence)
        found = await database.find()
        assert found is not None, "the log was begun"
    state, first_mark = found
    if belongs is None and (mark != first_mark or store.sequence != state.first - 1):
        raise StartError(
            f"the store in {config.data} is no part of the log that the database has of "
            f"{config.manager_name}: restore a back-up that was made while it was replicated"
        )
    # What a store says is right: the machine compares it with the log.
    return state.log if belongs is None else belongs.decode()


def require_room_to_join(config: ServerConfig, leave: Leave) -> None:
    """Refuse what cannot be meant for a queue manager on several computers."""
    if not config.replication.database:
        raise StartError("--standby needs a table [replication] in the configuration file")
    if leave.rename or leave.new_store:
        raise StartError(
            "with [replication], --rename and --new-store would part this computer from the "
            "others: leave them out"
        )
    program = config.replication.on_promotion
    if program and shutil.which(program) is None:
        # Otherwise that would be found out when the primary is lost.
        raise StartError(
            f"on_promotion: {program} is not there, or may not be run by this user: name a program "
            "by its whole path, and make it executable"
        )
