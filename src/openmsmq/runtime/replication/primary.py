"""A primary: each turn goes to the log before it goes to the store, and nothing is said before.

One record is on its way at a time; what comes meanwhile becomes the next turn, which is the larger
the longer the database takes. Meanwhile, too, the record before it goes to the disk of this
computer: whoever was told of it has it on two machines by then, and a start finds it in the log.
While the lease may have ended nothing is answered, and everything goes on when it is renewed.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from openmsmq.api.messages import Replication
from openmsmq.protocol.replication.log import (
    Answer,
    Ask,
    Durable,
    Ended,
    Promoted,
    Request,
    Trim,
)
from openmsmq.protocol.replication.tenure import Tenure
from openmsmq.runtime.clocks import since_boot_ms
from openmsmq.runtime.config.file import ServerConfig
from openmsmq.runtime.logs import Event, EventLog, LimitedLog
from openmsmq.runtime.replication.database import DatabaseLog
from openmsmq.runtime.replication.watching import StandbyWatch
from openmsmq.runtime.replication.wire import LogFailed
from openmsmq.runtime.vitals import VitalSigns
from openmsmq.storage.engine import JournaledStore
from openmsmq.storage.port import Batch, StoreError
from openmsmq.storage.replication.prepared import Prepared, seal

Done = Callable[[StoreError | None], None]

CATCH_UP_S: Final = 0.02
"""What others have goes to the disk of this computer so late: all of that time with one sync, which
goes to the same disk as those of a database that is here, too."""

CATCH_UP_BYTES: Final = 1 << 20
"""If it is so much, it goes earlier, while the next record is on its way."""


class Primary:
    """One epoch of a queue manager; `begin` comes when it has a pump."""

    def __init__(
        self,
        database: DatabaseLog,
        promoted: Promoted,
        store: JournaledStore,
        log: EventLog,
        identifier: str,
    ) -> None:
        """`identifier` is that of the log in the database."""
        self.store = store
        self._identifier = identifier
        self.may_go_on: Callable[[], None] = lambda: None
        """Is called when answers may leave again."""
        self.ended: Callable[[Ended], None] = lambda _: None
        """Is called when it is not the primary any more."""
        self.over: Ended | None = None
        """Why it is not, if it is not: that may come before anybody is called."""
        self._database = database
        self._log = log
        self._limited = LimitedLog(log)
        now_ms = since_boot_ms()
        self._tenure = Tenure(promoted, store.sequence, database.times, now_ms)
        self._prepared: Prepared | None = None
        self._done: Done | None = None
        self._was_silent = False
        self._watch: StandbyWatch | None = None
        self._idle = asyncio.Event()
        self._idle.set()
        self._left = asyncio.Event()
        """Whether nothing more is asked."""
        self._loop = asyncio.get_running_loop()
        self._wake_up: asyncio.TimerHandle | None = None
        self._wake_up_ms = 0
        self._late: asyncio.TimerHandle | None = None
        """When the disk of this computer gets what was shown since it had the last."""
        self._loop.call_soon(self._wake)

    def may_answer(self) -> bool:
        """Whether nobody else can be primary yet."""
        may = self._tenure.may_answer(since_boot_ms())
        if not may and not self._was_silent and not self._tenure.is_over:
            self._was_silent = True
            self._log.warning(Event.REPLICATION_SILENT, epoch=self._tenure.epoch)
        return may

    def commit(self, batch: Batch, done: Done) -> bool:
        """Make a batch durable; return whether it is. If not, `done` says so later.

        Raise `StoreFull` or another `StoreError` if that is known at once.
        """
        prepared = self.store.prepare(batch)
        if not prepared.payload:
            self.store.finish(prepared)
            return True
        self._prepared, self._done = prepared, done
        if self.over is None:
            self._idle.clear()
        record = seal(prepared.record(), self._identifier, self._tenure.number + 1)
        self._tenure.append(record, since_boot_ms())
        self._carry_out()
        if self.store.shown_bytes >= CATCH_UP_BYTES:
            # Behind what is sent now.
            self._loop.call_soon(self._catch_up)
        return False

    def backed_up(self, number: int) -> None:
        """Hear that there is a back-up with everything up to a record."""
        self._tenure.backed_up(number)

    async def settled(self) -> None:
        """Wait until no record is on its way."""
        await self._idle.wait()

    async def settled_soon(self) -> None:
        """Do the same, but no longer than a lease: a database that is away keeps nobody running."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._database.times.lease_ms / 1000):
                await self.settled()

    def watch(self, config: ServerConfig, vitals: VitalSigns) -> None:
        """Look from now on who follows."""

        def take(found: Replication) -> None:
            vitals.replication = found

        names = (self._database.name, config.replication.own_name)
        self._watch = StandbyWatch(config.replication, names, Path(config.data), take)

    async def leave(self) -> None:
        """Let somebody else take over at once."""
        self._tenure.leave(since_boot_ms())
        self._carry_out()
        # The lease ends by itself if the database is away.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._database.times.lease_ms / 1000):
                await self._left.wait()
        await self.close()

    async def close(self) -> None:
        """End without a word."""
        if self._watch is not None:
            await self._watch.close()
        self._left.set()
        for timer in (self._wake_up, self._late):
            if timer is not None:
                timer.cancel()
        self._database.close()

    def _wake(self) -> None:
        """Look what is due."""
        self._wake_up = None
        self._guarded(partial(self._tenure.wake, since_boot_ms()))

    def _heard(self, end: Answer | Exception) -> None:
        """Take what the database says."""
        if isinstance(end, Answer):
            self._guarded(partial(self._tenure.answered, end, since_boot_ms()))
        elif isinstance(end, LogFailed):
            self._limited.warning(Event.REPLICATION_FAILED, reason=str(end))
            self._guarded(partial(self._tenure.failed, since_boot_ms()))
        else:
            self._fail(end)

    def _guarded(self, step: Callable[[], None]) -> None:
        if self._left.is_set():
            return
        try:
            step()
            self._carry_out()
        except Exception as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        self._left.set()
        self._end(Ended(f"a defect of its own: {error!r}", is_damage=True))

    def _end(self, ended: Ended) -> None:
        self.over = ended
        self._idle.set()
        self.ended(ended)

    def _carry_out(self) -> None:
        """Do what the machine wants, until it wants nothing more for now.

        The next turn begins in the middle of it, where the one before is done: its record, which is
        all that it can want, leaves there.
        """
        while outputs := self._tenure.take_outputs():
            for output in outputs:
                match output:
                    case Ask(request):
                        self._ask(request)
                    case Durable():
                        self._finish()
                    case Ended():
                        self._left.set()
                        self._end(output)
                        return
        if self.may_answer() and self._was_silent:
            self._was_silent = False
            self._log.info(Event.REPLICATION_HEARD, epoch=self._tenure.epoch)
            self.may_go_on()
        self._arm()

    def _ask(self, request: Request) -> None:
        if isinstance(request, Trim) and not self._catch_up():
            # What it says of this computer would not be true.
            self._tenure.failed(since_boot_ms())
        else:
            self._database.begin(request, self._heard)

    def _finish(self) -> None:
        """Show what the log has, and say so."""
        prepared, done = self._prepared, self._done
        assert prepared is not None, "nothing was on its way"
        assert done is not None, "nobody waits for it"
        self._prepared = self._done = None
        self._idle.set()
        error: StoreError | None = None
        try:
            self.store.show(prepared)
        except StoreError as failure:
            error = failure
        done(error)
        if self._late is None and self.store.shown_bytes:
            self._late = self._loop.call_later(CATCH_UP_S, self._catch_up_late)

    def _catch_up_late(self) -> None:
        self._late = None
        self._catch_up()

    def _catch_up(self) -> bool:
        """Bring to the disk of this computer what only others have; return whether it is there."""
        try:
            self.store.catch_up()
        except StoreError as error:
            if self.over is None:
                self._end(Ended(f"the disk of this computer fails: {error}", is_damage=True))
            return False
        except Exception as error:
            # The loop calls this, and would only log it.
            self._fail(error)
            return False
        return True

    def _arm(self) -> None:
        """Wake up when something is due."""
        due_ms = self._tenure.next_wake_ms
        if due_ms is None:
            return
        if self._wake_up is not None:
            if self._wake_up_ms <= due_ms:
                # It comes too early, which harms nothing.
                return
            self._wake_up.cancel()
        self._wake_up_ms = due_ms
        pause_s = max(0, due_ms - since_boot_ms()) / 1000
        self._wake_up = self._loop.call_later(pause_s, self._wake)
