"""Pings: who would take a session, and who is still waiting to hear it. [MQQB 2.1.2, 3.1.7.6-9]

Questions and answers look alike. Only where a datagram arrives tells them apart: questions come to
the ping port, answers to the port from which the question went, which must be another one. An
answer that is taken for a question would be answered, and so on for ever.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

import msgspec

from openmsmq.model.clock import Instant
from openmsmq.model.identity import Guid
from openmsmq.model.limits import PING_RESPONSE_MS
from openmsmq.wire.datagrams import PingPacket
from openmsmq.wire.errors import DecodeError

PINGS_MAX_COUNT: Final = 4_096
"""Pings that wait for an answer at a time; beyond it the oldest one counts as not answered."""

_COOKIE_MASK: Final = 0xFFFFFFFF


class PingAnswered(msgspec.Struct, frozen=True):
    """A ping has its result: hand it to the waiter."""

    waiter: Hashable
    address: str
    accepted: bool


class _Asked(msgspec.Struct, frozen=True):
    waiter: Hashable
    address: str
    due_ms: int


class PingTable:
    """The pings of a queue manager that wait for an answer, by their cookies (C-35)."""

    def __init__(self, local: Guid) -> None:
        self._local = local
        self._cookie = 0
        # Every ping waits equally long, so the order of asking is the order of giving up.
        self._asked: dict[int, _Asked] = {}
        self._outputs: list[PingAnswered] = []

    def __len__(self) -> int:
        return len(self._asked)

    def ask(self, address: str, waiter: Hashable, now: Instant) -> bytes:
        """Note a question and give its datagram. [MQQB 3.1.7.6]"""
        if len(self._asked) >= PINGS_MAX_COUNT:
            self._finish(next(iter(self._asked)), accepted=False)
        self._cookie = (self._cookie + 1) & _COOKIE_MASK
        self._asked[self._cookie] = _Asked(waiter, address, now.ticks_ms + PING_RESPONSE_MS)
        return PingPacket(self._local, self._cookie).encode()

    def received(self, data: bytes, now: Instant) -> None:
        """Take a datagram that came to the port of the questions. [MQQB 3.1.7.8]

        An answer that comes too late is worth nothing, whether `wake` was called or not.
        """
        self.wake(now)
        try:
            answer = PingPacket.decode(data)
        except DecodeError:
            return
        if answer.cookie in self._asked:
            self._finish(answer.cookie, accepted=not answer.refused)

    def wake(self, now: Instant) -> None:
        """Give up the questions that were not answered in time. [MQQB 3.1.6.8]"""
        late = []
        for cookie, asked in self._asked.items():
            if asked.due_ms > now.ticks_ms:
                break
            late.append(cookie)
        for cookie in late:
            self._finish(cookie, accepted=False)

    @property
    def next_wake_ms(self) -> int | None:
        """When the oldest question is given up."""
        return next((asked.due_ms for asked in self._asked.values()), None)

    def take_outputs(self) -> list[PingAnswered]:
        """Return the results since the last call, in order."""
        outputs, self._outputs = self._outputs, []
        return outputs

    def _finish(self, cookie: int, *, accepted: bool) -> None:
        asked = self._asked.pop(cookie)
        self._outputs.append(PingAnswered(asked.waiter, asked.address, accepted))


def answer(data: bytes, local: Guid, refuse: bool) -> bytes | None:
    """Answer a datagram that came to the ping port; None when it is no ping. [MQQB 3.1.7.7]"""
    try:
        return PingPacket.decode(data).answer(local, refuse=refuse).encode()
    except DecodeError:
        return None
