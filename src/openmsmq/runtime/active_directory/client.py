"""Active Directory as a directory port: one connection at a time, the next server when it fails."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

import msgspec

from openmsmq.model.directory import Change, DirectoryChanges, Position
from openmsmq.model.errors import MsmqError, NoDirectory
from openmsmq.model.identity import NIL_GUID
from openmsmq.model.topology import QueueManagerInfo
from openmsmq.runtime.active_directory.config import ActiveDirectoryConfig
from openmsmq.runtime.active_directory.connection import parse_server
from openmsmq.runtime.active_directory.failures import NOT_MATCHING
from openmsmq.runtime.active_directory.mapping.entries import child_name
from openmsmq.runtime.active_directory.mapping.image import (
    Entries,
    Objects,
    changes_between,
    read_all,
)
from openmsmq.runtime.active_directory.mapping.managers import MANAGER_ENTRY
from openmsmq.runtime.active_directory.reader import (
    has_changed,
    read_changes,
    read_everything,
)
from openmsmq.runtime.active_directory.session import Session
from openmsmq.runtime.active_directory.writer import Writer

PROBLEMS_MAX_COUNT: Final = 100
"""Entries that could not be read, of which the reasons are kept. [ours]"""

LOOK_S: Final = 5
"""How often a server is asked for the number of its last change. [ours]"""

LOOKS_COUNT: Final = 12
"""So often before somebody asks anew whether to go on. [ours]"""

_ONLY_HERE: Final = (
    "addresses", "connected_networks", "domain", "last_domain", "directory_servers",
    "directory_integrated", "http_transfer", "multicast_transfer", "hardened",
    "initialization_retry_s",
)  # fmt: skip
"""What a queue manager knows of itself that Active Directory has no place for."""


class _Known(msgspec.Struct, frozen=True):
    """What was read last, so that the next answer can be what has changed."""

    position: Position
    entries: Entries
    objects: Objects


class ActiveDirectory:
    """A directory port. All of its methods may be called at any time; they take turns."""

    def __init__(self, config: ActiveDirectoryConfig, look_s: float = LOOK_S) -> None:
        self._config = config
        self._look_s = look_s
        self._servers = [parse_server(text, config.protection) for text in config.servers]
        self._session: Session | None = None
        self._known: _Known | None = None
        self._turn = asyncio.Lock()
        self._problems: tuple[str, ...] = ()

    @property
    def problems(self) -> tuple[str, ...]:
        """Why entries were passed over when the directory was last read, one sentence each."""
        return self._problems

    @property
    def server(self) -> str:
        """The server that answers at present; empty while none does."""
        return "" if self._session is None else self._session.server.text

    async def changes(self, position: Position) -> DirectoryChanges:
        """Ask what has changed since a copy was at `position`.

        Change numbers are those of one server. Where the copy is not at the place up to which this
        object has read that server (it is new, the server is another one, or was restored from a
        backup), the answer is the whole directory.
        """
        async with self._ready() as (session, number):
            now = Position(session.incarnation, number)
            if now == position:
                return DirectoryChanges(now)
            known = self._known
            if known is None or known.position != position or position.number > number:
                known = None
                entries = await read_everything(session)
            else:
                entries = await read_changes(session, known.entries, position.number)
            # Many objects take a while to make, and other work goes on beside it.
            reading = await asyncio.to_thread(read_all, entries, session.forest)
            self._problems = reading.problems[:PROBLEMS_MAX_COUNT]
            self._known = _Known(now, entries, reading.objects)
            if known is None:
                return DirectoryChanges(now, tuple(reading.objects.values()), is_complete=True)
            return DirectoryChanges(now, changes_between(known.objects, reading.objects))

    async def moved(self, position: Position) -> bool:
        """Look every few seconds whether something of ours has changed since `position`.

        The server's number grows with everything that happens in its domain, so only what has
        changed since the last look is asked for. What was deleted, and members of groups that have
        come or gone, are not found like that; `changes` finds them.
        """
        seen = position.number
        for _ in range(LOOKS_COUNT):
            await asyncio.sleep(self._look_s)
            async with self._ready() as (session, number):
                if session.incarnation != position.incarnation or number < seen:
                    return True
                if number > seen and await has_changed(session, seen):
                    return True
                seen = number
        return False

    async def write(self, changes: Sequence[Change]) -> tuple[Change, ...]:
        """Change objects, in order, until one is refused; give them as they are there now."""
        async with self._ready() as (session, _):
            return await Writer(session, self._config.lists_container).write(changes)

    async def register(self, manager: QueueManagerInfo) -> QueueManagerInfo:
        """Publish a queue manager below the account of its computer. [MQDSSM 3.1.6.1.1]

        Gives it with the identifier that it has in the directory, which is another one than before
        if it was created now. Where the directory has one for this computer with another
        identifier, it belongs to another installation: the error is MQ_ERROR_GUID_NOT_MATCHING,
        and nothing is changed. [MQOD 2.7.6] A queue manager without an identifier takes it over.
        """
        async with self._ready() as (session, _):
            writer = Writer(session, self._config.lists_container)
            computer = await writer.computer_of(manager.computer_name)
            there = await session.get(child_name(MANAGER_ENTRY, computer.name))
            wanted = manager
            if there is not None:
                if manager.identifier not in (NIL_GUID, there.identifier):
                    raise MsmqError.from_code(
                        NOT_MATCHING,
                        f"{there.name} has the identifier {there.identifier}, the queue manager "
                        f"of {manager.computer_name} has {manager.identifier}; delete that object "
                        "if it is left over from an earlier installation",
                    )
                wanted = msgspec.structs.replace(manager, identifier=there.identifier)
            (written,) = await writer.write([wanted])
            assert isinstance(written, QueueManagerInfo)
            kept = {name: getattr(manager, name) for name in _ONLY_HERE}
            return msgspec.structs.replace(written, **kept)

    async def close(self) -> None:
        """End the connection; it is made again when it is needed."""
        async with self._turn:
            self._drop()

    def _drop(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.close()

    @asynccontextmanager
    async def _ready(self) -> AsyncIterator[tuple[Session, int]]:
        """Yield a session that has just answered, and the number of its server's last change."""
        async with self._turn:
            session, number = await self._answering()
            try:
                yield session, number
            except (NoDirectory, asyncio.CancelledError):
                # An answer may still be under way, so the connection is of no use any more.
                self._drop()
                raise

    async def _answering(self) -> tuple[Session, int]:
        if self._session is not None:
            try:
                return self._session, await self._session.highest_change()
            except NoDirectory:
                # Servers end connections that were idle for some minutes.
                self._drop()
        reasons = []
        for _ in self._servers:
            try:
                session = await Session.open(self._config, self._servers[0])
                self._session = session
                return session, await session.highest_change()
            except NoDirectory as problem:
                self._drop()
                reasons.append(problem.detail)
                # The one that failed is tried last from now on.
                self._servers.append(self._servers.pop(0))
        raise NoDirectory("; ".join(reasons))
