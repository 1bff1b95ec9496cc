"""Looks who follows the primary, how far, and with which files: for status, metrics and alarms.

It has a connection of its own, so that no turn waits for it and no lease depends on it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Final

from openmsmq.api.messages import Replication, StandbyStatus
from openmsmq.runtime.clocks import read_clocks
from openmsmq.runtime.config.services.replication_table import ReplicationTable
from openmsmq.runtime.replication.database import DatabaseLog, Follower
from openmsmq.runtime.replication.files import LOOK_S, decode_digests, differing, digests
from openmsmq.runtime.replication.lags import Lags
from openmsmq.runtime.replication.wire import LogFailed
from openmsmq.runtime.start_errors import StartError
from openmsmq.storage.backups.manifest import BackupError

STANDBY_SILENT_S: Final = 15
"""A standby says every two seconds how far it is; one that is silent for so long is none."""

STANDBYS_MAX_COUNT: Final = 16
"""Standbys that are told of; of more those that spoke last."""


class StandbyWatch:
    """Looks again and again, as long as this computer is the primary."""

    def __init__(
        self,
        table: ReplicationTable,
        names: tuple[str, str],
        data: Path,
        take: Callable[[Replication], None],
    ) -> None:
        """`names` are those of the queue manager and of this computer."""
        name, self._member = names
        self._database = DatabaseLog(table, name)
        self._data = data
        self._take = take
        self._lags = Lags()
        self._began_s = read_clocks().unix_s
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        """Look no more."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self._database.close()

    async def _run(self) -> None:
        while True:
            try:
                found = await self._look()
            except (LogFailed, StartError, BackupError, OSError, TimeoutError) as error:
                found = Replication(self._member, problem=str(error) or "no answer in time")
            self._take(found)
            await asyncio.sleep(LOOK_S)

    async def _look(self) -> Replication:
        database, now_s = self._database, read_clocks().unix_s
        async with asyncio.timeout(LOOK_S):
            found = await database.find()
            if found is None:
                raise LogFailed("the database has no log of this queue manager any more")
            # Its settings can change while we are connected.
            await database.require_safe()
            state, _ = found
            own = await asyncio.to_thread(digests, self._data, state.log)
            await database.tell_files(self._member, own)
            followers = await database.followers()
        self._lags.note(state.last, now_s)
        others = sorted(
            (each for each in followers if each.name != self._member),
            key=lambda each: each.silent_s,
        )
        return Replication(
            self._member,
            state.epoch,
            state.last,
            state.last - state.first + 1,
            [
                StandbyStatus(
                    each.name,
                    each.number,
                    self._lags.lag_s(each.number, now_s),
                    each.silent_s,
                    differing(own, decode_digests(each.files)),
                )
                for each in others[:STANDBYS_MAX_COUNT]
            ],
            self._lag_s(others, now_s),
        )

    def _lag_s(self, others: list[Follower], now_s: int) -> int:
        """Return how far the one is that could take over best; how long there is none."""
        there = [each for each in others if each.silent_s < STANDBY_SILENT_S]
        if there:
            return min(self._lags.lag_s(each.number, now_s) for each in there)
        silent_s = min((each.silent_s for each in others), default=now_s)
        return max(1, min(silent_s, now_s - self._began_s))
