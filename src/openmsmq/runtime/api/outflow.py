"""What leaves by one connection of an application, in order; what is long leaves in pieces.

asyncio keeps a copy of what a socket does not take at once, and copies it again while it goes. So
the next piece of something long is handed over when the one before it has left, and most of it is
copied by nobody but the kernel.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

PIECE_BYTES: Final = 1 << 16
"""What is handed over at once of something long. A socket takes three or four of these."""


class Outflow:
    """The bytes that wait for one client, over its transport.

    Whoever is told by the transport to pause and to resume passes it on.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._waiting: deque[bytes | bytearray] = deque()
        self._begin = 0
        """Where the rest of the first one begins."""
        self._waiting_bytes = 0
        self._is_paused = False
        self._at_end: Callable[[], None] | None = None

    def begin(self) -> None:
        """Be told of whatever the transport keeps. It may say at once that it keeps something."""
        # Any rest in the transport is a reason to pause, and none to resume. It is not told to
        # pause with nothing in it, as the one of TLS would be with 0.
        self._transport.set_write_buffer_limits(high=1, low=0)

    @property
    def unsent_bytes(self) -> int:
        """How many bytes the client has yet to take."""
        try:
            return self._waiting_bytes + self._transport.get_write_buffer_size()
        except AttributeError:
            # The TLS transport of asyncio has no size once the one below it is gone.
            return self._waiting_bytes

    @property
    def waiting_count(self) -> int:
        """In how many parts they wait here."""
        return len(self._waiting)

    def write(self, data: bytes) -> None:
        """Let bytes leave behind those before them."""
        waiting = self._waiting
        if not waiting and len(data) <= PIECE_BYTES:
            # The transport collects what is short.
            self._transport.write(data)
            return
        self._waiting_bytes += len(data)
        last = waiting[-1] if len(waiting) > 1 else b""
        if len(data) > PIECE_BYTES:
            waiting.append(data)
        elif isinstance(last, bytearray):
            # Many short ones cost no more than they are. Nobody looks at this one yet.
            last += data
        else:
            waiting.append(bytearray(data))
        self._send()

    def pause(self) -> None:
        """Hand nothing over for now."""
        self._is_paused = True

    def resume(self) -> None:
        """Go on."""
        self._is_paused = False
        self._send()

    def end(self, then: Callable[[], None]) -> None:
        """Call something when all was handed over, perhaps now; nothing is written after this."""
        self._at_end = then
        self._send()

    def drop(self) -> None:
        """Forget what waits: nobody will take it."""
        self._waiting.clear()
        self._begin = 0
        self._waiting_bytes = 0
        self._at_end = None

    def _send(self) -> None:
        waiting, transport = self._waiting, self._transport
        while waiting and not self._is_paused:
            if transport.is_closing():
                self.drop()
                return
            data = waiting[0]
            stop = min(self._begin + PIECE_BYTES, len(data))
            piece = memoryview(data)[self._begin : stop]
            # Before it is written: the transport may ask for more in the middle of that.
            if stop == len(data):
                waiting.popleft()
                self._begin = 0
            else:
                self._begin = stop
            self._waiting_bytes -= len(piece)
            transport.write(piece)
        if not waiting and self._at_end is not None:
            then, self._at_end = self._at_end, None
            then()
