"""The directory of another queue manager, reached over the application interface.

Any of its servers answers questions. Changes go to whichever can be reached: one that has a copy
passes them on to the original. Servers that were searched for are searched for again from time to
time: there may be new ones, and some may be gone for good. [MQDMPR 3.1.3]
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeAlias, TypeVar

import msgspec

from openmsmq import aio
from openmsmq.model.clock import Instant
from openmsmq.model.directory import NOWHERE, Change, DirectoryChanges, Position
from openmsmq.model.errors import MsmqError, NoDirectory
from openmsmq.runtime.clocks import read_clocks
from openmsmq.runtime.limits import (
    DIRECTORY_CALL_MS,
    DIRECTORY_SERVERS_RENEW_S,
    DIRECTORY_WAIT_S,
)

Find: TypeAlias = Callable[[], Awaitable[tuple[str, ...]]]
_Result = TypeVar("_Result")
_Ask: TypeAlias = Callable[[aio.QueueManager], Awaitable[_Result]]

_UNREACHABLE: Final = (aio.ConnectionLost, NoDirectory, OSError, TimeoutError, ValueError)


class EmbeddedDirectory:
    """A directory port. Without servers of its own it looks for some with `find`."""

    def __init__(
        self,
        servers: Sequence[str],
        *,
        token: str = "",
        tls: bool | str = False,
        find: Find | None = None,
        timeout_ms: int = DIRECTORY_CALL_MS,
        clock: Callable[[], Instant] = read_clocks,
    ) -> None:
        self._servers = list(servers)
        self._settings = aio.Settings(
            token=token,
            tls=tls,
            connect_timeout_s=timeout_ms / 1000,
            call_timeout_s=timeout_ms / 1000,
            start_wait_s=0,
            reconnect_within_s=0,
        )
        self._find = find
        self._clock = clock
        self._renew_at_ms = 0
        self._manager: aio.QueueManager | None = None
        self._turn = asyncio.Lock()

    async def changes(self, position: Position = NOWHERE) -> DirectoryChanges:
        """Ask what has changed since a copy was at `position`."""
        return await self._ask(lambda manager: manager.directory_changes(position))

    async def moved(self, position: Position) -> bool:
        """Wait at the server that has answered last until the directory is no longer there.

        Other questions go over the same connection meanwhile.
        """
        manager = self._manager
        if manager is None:
            raise NoDirectory("no directory server has answered yet")
        try:
            return await manager.wait_for_directory(position, DIRECTORY_WAIT_S)
        except _UNREACHABLE as error:
            raise NoDirectory(_reason(error)) from None

    async def write(self, changes: Sequence[Change]) -> tuple[Change, ...]:
        """Change objects, all or none; give them as they are there now."""
        return await self._ask(lambda manager: manager.write_directory(changes))

    async def close(self) -> None:
        """End the connection; it is made again when it is needed."""
        async with self._turn:
            await self._drop()

    async def _ask(self, ask: _Ask[_Result]) -> _Result:
        async with self._turn:
            await self._renew_servers()
            problems: list[str] = []
            # The connection that is there may be a dead one, so its server gets a second chance.
            for address in [*self._servers[:1], *self._servers]:
                try:
                    return await ask(await self._connected(address))
                except aio.OutcomeUnknown as error:
                    await self._drop()
                    self._put_last(address)
                    raise NoDirectory(
                        f"{address} did not say whether it has made the change: {error}"
                    ) from None
                except _UNREACHABLE as error:
                    problems.append(f"{address}: {_reason(error)}")
                    await self._drop()
                    self._put_last(address)
            if self._find is not None:
                self._servers = []
            raise NoDirectory(_all_in_vain(problems))

    async def _renew_servers(self) -> None:
        """Search for servers if there are none, or if the search was long ago."""
        now_ms = self._clock().ticks_ms
        if self._find is None or (self._servers and now_ms < self._renew_at_ms):
            return
        found = list(await self._find())
        self._renew_at_ms = now_ms + DIRECTORY_SERVERS_RENEW_S * 1000
        if found and self._servers[:1] != found[:1]:
            await self._drop()
        # Those that are known go on to be of use if nobody answers a search.
        self._servers = found or self._servers

    async def _connected(self, address: str) -> aio.QueueManager:
        if self._manager is None:
            settings = msgspec.structs.replace(self._settings, address=address)
            self._manager = await aio.connect(settings)
        return self._manager

    def _put_last(self, address: str) -> None:
        """Begin with another server the next time."""
        self._servers.remove(address)
        self._servers.append(address)

    async def _drop(self) -> None:
        manager, self._manager = self._manager, None
        if manager is not None:
            await manager.close()


def _reason(error: Exception) -> str:
    if isinstance(error, MsmqError):
        return error.detail or str(error)
    return str(error) or type(error).__name__


def _all_in_vain(problems: Sequence[str]) -> str:
    if not problems:
        return "no directory server was found"
    return "no directory server answers: " + "; ".join(dict.fromkeys(problems))
