"""What strangers have sent, while it is not their time.

While known peers send too, strangers have a part of the time: `TimeShares` says when that is used
up. Then they wait, and so do they when one turn would take too long; a later turn takes in what
waits, all together, so that it shares one commit. Of who waits nothing more is read, so TCP makes
him wait at his end; nothing of his is acknowledged before it is durable, like everybody's.
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
        self._spent_ns: int | None = None
        """What strangers have had of the turn that comes; none if it has nothing of theirs."""
        self._is_full = False
        """Whether it takes no more of theirs."""

    def came(self, stranger: Stranger, data: bytes) -> None:
        """Hand in bytes, or keep them until it is the strangers' time."""
        now_ns = elapsed_ns()
        if self._waiting or self._is_full or self._must_pause(now_ns):
            self._waiting.setdefault(stranger, []).append(data)
            if stranger not in self._held:
                self._held.add(stranger)
                self._hold(stranger)
        else:
            self._hand_in(stranger, data, now_ns)
        if self._pause is None:
            self._pump.schedule_for_strangers()

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
        """Begin a turn: take what waits, if it may be now; say if it has anything of strangers."""
        now_ns = elapsed_ns() if self._waiting else 0
        while self._waiting and not self._is_full and not self._must_pause(now_ns):
            stranger = next(iter(self._waiting))
            data = b"".join(self._waiting.pop(stranger))
            self._held.discard(stranger)
            self._let_go(stranger)
            now_ns = self._hand_in(stranger, data, now_ns)
        has_any = self._spent_ns is not None
        self._spent_ns = None
        self._is_full = False
        if self._waiting and self._pause is None:
            self._pump.schedule_for_strangers()
        return has_any

    def _must_pause(self, now_ns: int) -> bool:
        """Return whether it is not their time; then a turn comes when it is."""
        if self._pause is None:
            pause_ms = self._pump.times.pause_ms(now_ns)
            if pause_ms:
                loop = asyncio.get_running_loop()
                self._pause = loop.call_later(pause_ms / 1000, self._pause_is_over)
        return self._pause is not None

    def _hand_in(self, stranger: Stranger, data: bytes, began_ns: int) -> int:
        has_room = self._take(stranger, data)
        now_ns = elapsed_ns()
        self._pump.times.stranger_took(began_ns, now_ns)
        self._spent_ns = (self._spent_ns or 0) + now_ns - began_ns
        self._is_full = not has_room or self._spent_ns >= STRANGERS_TIME_AT_ONCE_MS * _NS_PER_MS
        return now_ns

    def _pause_is_over(self) -> None:
        self._pause = None
        self._pump.schedule_for_strangers()
