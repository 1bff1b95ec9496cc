"""A standby: it stores the records of the log as they come, until it is the primary."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Final

from openmsmq.protocol.replication.follower import Follower
from openmsmq.protocol.replication.log import Apply, Ask, Ended, LogState, Promoted, Read
from openmsmq.runtime.clocks import since_boot_ms
from openmsmq.runtime.logs import Event, EventLog, LimitedLog
from openmsmq.runtime.replication.database import DatabaseLog
from openmsmq.runtime.replication.files import LOOK_S, differing, digests
from openmsmq.runtime.replication.wire import LogFailed
from openmsmq.runtime.start_errors import NotYet, StartError
from openmsmq.storage.backups.manifest import BackupError
from openmsmq.storage.engine import JournaledStore
from openmsmq.storage.port import StoreDamaged
from openmsmq.storage.replication.prepared import decode_batch, unseal

TWIN_PATIENCE_MS: Final = 60_000
"""So much longer than a lease a primary of our own name may be a start of ours that has ended."""

HOOK_TIMEOUT_S: Final = 60
"""A program that is to take over an address has so long."""


class Standby:
    """Follows the log into a store."""

    def __init__(
        self,
        database: DatabaseLog,
        store: JournaledStore,
        log: EventLog,
        names: tuple[str, str],
        data: Path,
    ) -> None:
        """`names` are that of this computer, and one that no start has had before."""
        self._data = data
        self._identifier = ""
        self._files_due_ms = 0
        self._twin: tuple[str, int] | None = None
        """A primary of our own name that we are not, and since when it was seen."""
        self._differing: list[str] = []
        self._database = database
        self._store = store
        self._log = log
        self._limited = LimitedLog(log)
        self._member, self._holder = names

    async def follow(self, identifier: str) -> Promoted:
        """Follow the log until this computer is the primary; raise `StartError` or `StoreError`."""
        self._identifier = identifier
        follower = Follower(
            identifier,
            self._member,
            self._holder,
            self._store.sequence,
            self._database.times,
            since_boot_ms(),
        )
        while True:
            follower.wake(since_boot_ms())
            outputs = follower.take_outputs()
            for output in outputs:
                if isinstance(output, Promoted):
                    return output
                await self._carry_out(follower, output)
            if not outputs:
                due_ms = follower.next_wake_ms
                assert due_ms is not None, "a standby waits for nothing"
                await asyncio.sleep(max(1, due_ms - since_boot_ms()) / 1000)

    async def _carry_out(self, follower: Follower, output: Ask | Apply | Ended) -> None:
        match output:
            case Ask(request):
                try:
                    answer = await self._database.ask(request)
                except LogFailed as error:
                    self._limited.warning(Event.REPLICATION_FAILED, reason=str(error))
                    follower.failed(since_boot_ms())
                else:
                    follower.answered(answer, since_boot_ms())
                    if isinstance(request, Read):
                        self._look_for_twin(answer.state, since_boot_ms())
                        await self._compare_files(answer.state.log)
            case Apply(records):
                for number, record in records:
                    self._apply(number, unseal(record, self._identifier, number))
                    # The loop has others, too: a signal that stops us.
                    await asyncio.sleep(0)
                follower.applied(self._store.sequence)
            case Ended(why, is_damage):
                raise StartError(why) if is_damage else NotYet(why)

    def _look_for_twin(self, state: LogState, now_ms: int) -> None:
        """Refuse to follow one of our own name: the log would be trimmed as if we had it."""
        member = state.holder.rpartition(" ")[0]
        if member != self._member or state.holder == self._holder or state.lease_ended:
            self._twin = None
        elif self._twin is None or self._twin[0] != state.holder:
            self._twin = state.holder, now_ms
        elif now_ms - self._twin[1] > self._database.times.lease_ms + TWIN_PATIENCE_MS:
            raise StartError(
                f"the primary is called {member}, as this computer is: give each computer a member "
                "of its own in [replication]"
            )

    async def _compare_files(self, log: str) -> None:
        """Say which files are not as the primary has them, when that changes."""
        now_ms = since_boot_ms()
        if now_ms < self._files_due_ms:
            return
        self._files_due_ms = now_ms + LOOK_S * 1000
        try:
            own = await asyncio.to_thread(digests, self._data, log)
            await self._database.tell_files(self._member, own)
            found = differing(own, await self._database.files_of_primary())
        except (LogFailed, StartError, BackupError, OSError) as error:
            self._limited.warning(Event.REPLICATION_FAILED, reason=str(error))
            return
        if found != self._differing:
            self._differing = found
            if found:
                self._log.warning(Event.REPLICATION_FILES, differing=", ".join(found))

    def _apply(self, number: int, record: bytes) -> None:
        self._store.commit(decode_batch(record))
        if self._store.sequence != number:
            raise StoreDamaged(
                f"record {number} of the log became batch {self._store.sequence} of the store: "
                "begin from a back-up of the primary"
            )


async def run_hook(program: str, name: str) -> None:
    """Run an operator's program, such as one that takes over an address."""
    if not program:
        return
    try:
        process = await asyncio.create_subprocess_exec(program, name)
    except OSError as error:
        raise StartError(f"on_promotion: cannot run {program} ({error.strerror})") from None
    try:
        async with asyncio.timeout(HOOK_TIMEOUT_S):
            status = await process.wait()
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        raise NotYet(f"on_promotion: {program} has not ended within {HOOK_TIMEOUT_S} s") from None
    if status:
        raise NotYet(f"on_promotion: {program} has ended with status {status}")
