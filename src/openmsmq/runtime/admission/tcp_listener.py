"""A listener of TCP: a few are let in at a time, and who is refused is refused cheaply.

Who is refused costs one call of the system and no more: no transport is made for him. That, and
the few per turn, is what leaves those who are in their time while others knock.
"""

from __future__ import annotations

import asyncio
import resource
import socket
from collections.abc import Callable
from typing import Any, Final

from openmsmq.runtime.addresses import target
from openmsmq.runtime.limits import (
    ACCEPT_BACKLOG_COUNT,
    ACCEPT_PAUSE_MS,
    ACCEPTS_PER_TURN_MAX_COUNT,
    DESCRIPTORS_SPARE_COUNT,
)


class TcpListener:
    """Listens, and hands on the sockets of those who come, with their addresses."""

    def __init__(
        self, listening: list[socket.socket], arrived: Callable[[socket.socket, str], None]
    ) -> None:
        self.endpoints: Final[list[tuple[str, int]]] = [one.getsockname()[:2] for one in listening]
        self._listening = listening
        self._arrived = arrived
        self._loop = asyncio.get_running_loop()
        self._pauses: dict[socket.socket, asyncio.TimerHandle] = {}

    def open(self) -> None:
        """Let others in from now on."""
        for one in self._listening:
            self._loop.add_reader(one, self._accept, one)

    def close(self) -> None:
        """Let nobody in any more."""
        for pause in self._pauses.values():
            pause.cancel()
        self._pauses.clear()
        for one in self._listening:
            self._loop.remove_reader(one)
            one.close()
        self._listening = []

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(ACCEPTS_PER_TURN_MAX_COUNT):
            try:
                made, address = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError:
                # The system has no more sockets; whoever waits is asked in a moment.
                self._pause(listening)
                return
            made.setblocking(False)
            self._arrived(made, str(address[0]))

    def _pause(self, listening: socket.socket) -> None:
        self._loop.remove_reader(listening)
        self._pauses[listening] = self._loop.call_later(
            ACCEPT_PAUSE_MS / 1000, self._go_on, listening
        )

    def _go_on(self, listening: socket.socket) -> None:
        del self._pauses[listening]
        self._loop.add_reader(listening, self._accept, listening)


async def listening_sockets(address: str, port: int) -> list[socket.socket]:
    """Listen on all addresses of a host name, or on one address; or raise `OSError`."""
    literal = target(address, port)
    if literal is not None:
        places: list[tuple[int, Any]] = [(literal.family, literal.address)]
    else:
        found = await asyncio.get_running_loop().getaddrinfo(
            address, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        places = list(dict.fromkeys((family, where) for family, *_, where in found))
    made: list[socket.socket] = []
    try:
        for family, where in places:
            one = socket.socket(family, socket.SOCK_STREAM)
            made.append(one)
            one.setblocking(False)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            one.bind(where)
            one.listen(ACCEPT_BACKLOG_COUNT)
    except OSError:
        for one in made:
            one.close()
        raise
    return made


def connections_possible(wanted: int, others: int) -> int:
    """See to it that the process may open so many sockets beside others; give how many it may.

    Without a descriptor left, the store could not open its files, and the queue manager would end.
    """
    needed = wanted + others + DESCRIPTORS_SPARE_COUNT
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return wanted
    # Connections to others need descriptors too, as many as there are neighbours.
    raised = needed if hard == resource.RLIM_INFINITY else hard
    resource.setrlimit(resource.RLIMIT_NOFILE, (raised, hard))
    return max(1, min(wanted, raised - others - DESCRIPTORS_SPARE_COUNT))
