"""Ways to where alarms are told: each place has its own, and a slow one keeps no other waiting."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeAlias

from openmsmq.runtime.alarms.notices import AlarmNotice
from openmsmq.runtime.logs import Event, EventLog

WAITING_MAX_COUNT: Final = 100
"""Notices that wait for one place; a further one is not told there, and logged as such."""

PAUSES_S: Final = (2.0, 15.0)
"""How long to wait before the second try, and before the third; there is none after that."""


class NotTold(Exception):
    """A place could not be told; the reason has no secrets in it."""

    def __init__(self, reason: str, *, may_try_again: bool = False) -> None:
        super().__init__(reason)
        self.may_try_again = may_try_again


Send: TypeAlias = Callable[[AlarmNotice], Awaitable[None]]


class Lane:
    """Tells one place of one alarm after the other."""

    def __init__(
        self, place: str, send: Send, log: EventLog, pauses_s: Sequence[float] = PAUSES_S
    ) -> None:
        self._place = place
        self._send = send
        self._log = log
        self._pauses_s = pauses_s
        self._waiting: asyncio.Queue[AlarmNotice] = asyncio.Queue(WAITING_MAX_COUNT)
        self._is_telling = False
        self._is_retired = False
        self._task = asyncio.get_running_loop().create_task(self._run())

    def put(self, notice: AlarmNotice) -> None:
        """Have a notice told, when its turn comes."""
        try:
            self._waiting.put_nowait(notice)
        except asyncio.QueueFull:
            self._failed(notice, f"{WAITING_MAX_COUNT} others wait to be told there")

    def retire(self) -> None:
        """Tell what is to be told already, and then no more."""
        self._is_retired = True
        if not self._is_telling and self._waiting.empty():
            self._task.cancel()

    @property
    def is_over(self) -> bool:
        """Whether nothing is told here any more."""
        return self._task.done()

    async def close(self) -> None:
        """Give up what has not been told."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while not (self._is_retired and self._waiting.empty()):
            notice = await self._waiting.get()
            self._is_telling = True
            try:
                await self._tell(notice)
            except NotTold as error:
                self._failed(notice, str(error))
            self._is_telling = False

    async def _tell(self, notice: AlarmNotice) -> None:
        for pause_s in self._pauses_s:
            try:
                return await self._send(notice)
            except NotTold as error:
                if not error.may_try_again:
                    raise
            await asyncio.sleep(pause_s)
        return await self._send(notice)

    def _failed(self, notice: AlarmNotice, reason: str) -> None:
        self._log.error(
            Event.ALARM_NOT_TOLD,
            alarm=notice.alarm,
            state=notice.state,
            place=self._place,
            reason=reason,
        )
