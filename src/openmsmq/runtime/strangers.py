"""What strangers have sent, until their time has come.

A turn takes it in, all together, so that strangers share its commit. While known peers send too,
strangers have a part of the time: `TimeShares` says when that is used up. Then they wait, and so do
they when one turn would take too long. Of who waits nothing more is read, so TCP makes him wait at
his end; nothing of his is acknowledged before it is durable, like everybody's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from openmsmq.runtime.clocks import elapsed_ns
from openmsmq.runtime.limits import STRANGERS_TIME_AT_ONCE_MS
from openmsmq.runtime.server import Pump

_NS_PER_MS: Final = 1_000_000

Stranger = TypeVar("Stranger")


class Strangers(Generic[Stranger]):
    """Keeps what has come of each stranger; who came first is first."""

    def __init__(
        self,
        pump: Pump,
        *,
        take: Callable[[Stranger, bytes], bool],
        hold: Callable[[Stranger], None],
        let_go: Callable[[Stranger], None],
    ) -> None:
        """`take` hands bytes in, and says whether the turn can take more.

        `hold` is called for who has to wait, before `let_go`, when his bytes are taken.
        """
        self._pump = pump
        self._take = take
        self._hold = hold
        self._let_go = let_go
        self._waiting: dict[Stranger, list[bytes]] = {}
        self._held: set[Stranger] = set()
        self._pause: asyncio.TimerHandle | None = None

    def came(self, stranger: Stranger, data: bytes) -> None:
        """Keep bytes for the next turn that is the strangers' too."""
        self._waiting.setdefault(stranger, []).append(data)
        if self._pause is None:
            self._pump.schedule_for_strangers()
        else:
            self._make_wait(stranger)

    def waiting_bytes(self, stranger: Stranger) -> int:
        """How many bytes of one wait."""
        return sum(map(len, self._waiting.get(stranger, ())))

    def forget(self, stranger: Stranger) -> None:
        """One is gone; what he sent last was never acknowledged."""
        self._waiting.pop(stranger, None)
        self._held.discard(stranger)

    def close(self) -> None:
        """Take nothing any more."""
        self._waiting.clear()
        self._held.clear()
        if self._pause is not None:
            self._pause.cancel()
            self._pause = None

    def take(self) -> bool:
        """Hand in what waits, if it may be now, and as much as a turn takes; say if any was."""
        if not self._waiting or self._pause is not None:
            return False
        now_ns = elapsed_ns()
        pause_ms = self._pump.times.pause_ms(now_ns)
        if not pause_ms:
            self._take_from(now_ns)
        if self._waiting:
            for stranger in self._waiting:
                self._make_wait(stranger)
            if pause_ms:
                loop = asyncio.get_running_loop()
                self._pause = loop.call_later(pause_ms / 1000, self._pause_is_over)
            else:
                self._pump.schedule_for_strangers()
        return not pause_ms

    def _take_from(self, now_ns: int) -> None:
        """Take what waits of one after the other, until the time or the turn is full."""
        until_ns = now_ns + STRANGERS_TIME_AT_ONCE_MS * _NS_PER_MS
        while self._waiting:
            began_ns = now_ns
            stranger = next(iter(self._waiting))
            pieces = self._waiting.pop(stranger)
            if stranger in self._held:
                self._held.discard(stranger)
                self._let_go(stranger)
            has_room = self._take(stranger, b"".join(pieces))
            now_ns = elapsed_ns()
            self._pump.times.stranger_took(began_ns, now_ns)
            if not has_room or now_ns >= until_ns:
                break

    def _make_wait(self, stranger: Stranger) -> None:
        if stranger not in self._held:
            self._held.add(stranger)
            self._hold(stranger)

    def _pause_is_over(self) -> None:
        self._pause = None
        self._pump.schedule_for_strangers()
