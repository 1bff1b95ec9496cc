"""Carries out `BackUp` for a running queue manager, which goes on meanwhile.

What is slow is done in a thread, which copies, and in a process, which checks. Only the moment
itself is fixed here, between two turns: a snapshot of the store holds it. A back-up goes on if
whoever asked for it is gone, and is given up and removed when the queue manager stops.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from openmsmq.api.program import BackupPhase
from openmsmq.manager.outputs import BackupProgress
from openmsmq.model.errors import InsufficientResources, InvalidParameter, MsmqError
from openmsmq.runtime.backups.making import Making
from openmsmq.runtime.backups.place import NoRoom, PlaceRefused
from openmsmq.runtime.clocks import elapsed_ns, read_clocks
from openmsmq.runtime.logs import Event, EventLog
from openmsmq.runtime.server import Pump
from openmsmq.storage.backups.manifest import BackupOwner, Manifest
from openmsmq.storage.backups.snapshot import Snapshot
from openmsmq.storage.engine import JournaledStore
from openmsmq.storage.port import Store, StoreError, StoreFull

TELL_PAUSE_NS: Final = 200_000_000
"""How often the queue manager hears how far a back-up is."""

REST_SHARE: Final = 1.0
"""How long a copier rests, as a share of the time that it took: the disk is also for commits."""

REST_MAX_S: Final = 0.5
"""The longest rest; a disk that hangs is no reason to wait longer."""


class BackupKeeper:
    """Makes back-ups; the queue manager asks for one at a time."""

    def __init__(
        self, data: Path, owner: BackupOwner, store: Store, pump: Pump, log: EventLog
    ) -> None:
        self._data = data
        self._owner = owner
        self._store = store
        self._pump = pump
        self._log = log
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[None] | None = None
        self._making: Making | None = None
        self.done: Callable[[int], None] = lambda _: None
        """Hears of each back-up up to which batch it goes."""
        self._told_ns = 0
        self._rested_ns = 0

    def begin(self, directory: str) -> None:
        """Begin a back-up."""
        making = self._making = Making(self._data, directory, self._owner)
        self._task = self._loop.create_task(self._run(making, directory))

    async def _run(self, making: Making, directory: str) -> None:
        try:
            manifest = await self._make(making)
        except Exception as error:
            # Whatever it is, the queue manager itself has nothing to do with it.
            await asyncio.to_thread(making.give_up)
            self._log.error(Event.BACKUP_FAILED, directory=directory, reason=str(error))
            self._tell(BackupProgress(BackupPhase.FAILED, error=_meaning(error)))
            return
        size_bytes = manifest.size_bytes
        self._log.info(
            Event.BACKUP_DONE, directory=directory, files=len(manifest.files), bytes=size_bytes
        )
        self.done(manifest.sequence)
        self._tell(BackupProgress(BackupPhase.DONE, size_bytes, size_bytes))

    async def _make(self, making: Making) -> Manifest:
        if not isinstance(self._store, JournaledStore):
            raise PlaceRefused("this queue manager keeps nothing on a disk")
        await asyncio.to_thread(making.begin)
        snapshot = Snapshot(self._store)
        taken_time_s = read_clocks().unix_s
        try:
            await asyncio.to_thread(making.require_room, snapshot.total_bytes)
            self._log.info(
                Event.BACKUP_BEGUN, directory=str(making.target), bytes=snapshot.total_bytes
            )
            self._tell(BackupProgress(BackupPhase.COPYING, 0, snapshot.total_bytes))
            await asyncio.to_thread(self._copy, making, snapshot)
        finally:
            snapshot.release()
        total = making.total_bytes
        self._tell(BackupProgress(BackupPhase.CHECKING, total, total))
        return await asyncio.to_thread(making.finish, taken_time_s, snapshot.sequence)

    def _copy(self, making: Making, snapshot: Snapshot) -> None:
        self._rested_ns = elapsed_ns()
        making.copy(snapshot.parts(), self._show)

    def _show(self, done: int, total: int) -> None:
        """Tell how far it is, from the thread that copies, and not too often; then rest."""
        now_ns = elapsed_ns()
        time.sleep(min(REST_MAX_S, max(0, now_ns - self._rested_ns) * REST_SHARE / 1_000_000_000))
        self._rested_ns = elapsed_ns()
        if now_ns - self._told_ns >= TELL_PAUSE_NS:
            self._told_ns = now_ns
            progress = BackupProgress(BackupPhase.COPYING, done, total)
            self._loop.call_soon_threadsafe(self._tell, progress)

    def _tell(self, progress: BackupProgress) -> None:
        self._pump.put_in(self._pump.engine.backup_told, progress)

    def stop(self) -> None:
        """Give up what is under way."""
        if self._making is not None:
            self._making.is_wanted = False

    async def close(self) -> None:
        """Wait until what is under way is done or removed."""
        self.stop()
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)


def _meaning(error: Exception) -> MsmqError:
    if isinstance(error, PlaceRefused):
        return InvalidParameter(str(error))
    if isinstance(error, NoRoom | StoreFull):
        return InsufficientResources(str(error))
    return MsmqError(str(error) if isinstance(error, StoreError | OSError) else repr(error))
