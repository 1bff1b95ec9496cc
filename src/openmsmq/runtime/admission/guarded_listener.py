"""A listener of TCP with its limits: who comes is counted, numbered, and let in or refused.

With TLS, a peer counts as one whose handshake is under way from the moment it connects, so that
those who begin TLS and do not end it are bounded too.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import msgspec

from openmsmq.runtime.admission.peer_limits import PeerLimits
from openmsmq.runtime.admission.tcp_listener import TcpListener
from openmsmq.runtime.clocks import read_clocks
from openmsmq.runtime.limits import PEER_NUMBER_STEP

_GAVE_WAY = "it gave way to a newer connection"


class ListenerPort(msgspec.Struct, frozen=True, kw_only=True):
    """What a listener is told about those who come."""

    make: Callable[[int, str], asyncio.BaseProtocol]
    """Makes the protocol of a connection that is let in, by its number and address."""
    cut: Callable[[int, str], None]
    """Ends a connection that was let in before, by its number; it is no longer counted."""
    note: Callable[[str, str], None]
    """Hears of an address that was refused, and why."""
    is_stopping: Callable[[], bool] = lambda: False
    is_exempt: Callable[[str], bool] = lambda _: False
    """Says of which addresses nothing is counted here."""
    why_not: Callable[[str], str] = lambda _: ""
    """Says why an address may not come in here at all."""
    option_prefix: str = ""
    """How the options of this listener begin."""


class Arrivals:
    """Those who are on their way in, by number; listeners that share limits share this, too."""

    def __init__(self) -> None:
        self.last = 0
        self.tasks: dict[int, asyncio.Task[None]] = {}


class GuardedListener:
    """Lets in whom the limits let in. Connections are numbered evenly, from 2 on."""

    def __init__(
        self,
        listening: list[socket.socket],
        limits: PeerLimits,
        keeper: ListenerPort,
        *,
        context: ssl.SSLContext | None = None,
        handshake_s: float | None = None,
        arrivals: Arrivals | None = None,
        take_up: Callable[[int, socket.socket, str], Coroutine[Any, Any, None]] | None = None,
    ) -> None:
        """`take_up` brings a connection in instead of the loop, by its number, and owns it."""
        self._limits = limits
        self._keeper = keeper
        self._context = context
        self._handshake_s = handshake_s
        self._arrivals = arrivals or Arrivals()
        self._arriving = self._arrivals.tasks
        self._bring_in = take_up or self._connect
        self._door = TcpListener(listening, self._arrived)
        self._door.open()

    @property
    def endpoints(self) -> list[tuple[str, int]]:
        """The addresses and ports on which it listens."""
        return self._door.endpoints

    def close(self) -> None:
        """Let nobody in any more."""
        self._door.close()

    def call_off(self) -> None:
        """Give up those whose connection is not quite there yet."""
        for task in self._arriving.values():
            task.cancel()

    def cut(self, number: int, reason: str) -> None:
        """End a connection, wherever it is on its way."""
        arriving = self._arriving.get(number)
        if arriving is not None:
            arriving.cancel()
        self._keeper.cut(number, reason)

    def _arrived(self, made: socket.socket, address: str) -> None:
        number = self._arrivals.last + PEER_NUMBER_STEP
        refused = self._reason_to_refuse(number, address)
        if refused:
            self._keeper.note(address, refused)
            made.close()
            return
        self._arrivals.last = number
        task = asyncio.get_running_loop().create_task(self._bring_in(number, made, address))
        self._arriving[number] = task
        # A task that is called off before its first step could not do this itself.
        task.add_done_callback(partial(self._taken_up, number, made))

    def use_context(self, context: ssl.SSLContext | None) -> None:
        """Greet those who come from now on with other certificates."""
        self._context = context

    def _reason_to_refuse(self, number: int, address: str) -> str:
        keeper = self._keeper
        if keeper.is_stopping():
            return "the queue manager is stopping"
        unwanted = keeper.why_not(address)
        if unwanted:
            return unwanted
        if keeper.is_exempt(address):
            return ""
        verdict = self._limits.arrived(number, address, read_clocks())
        for other in verdict.giving_way:
            self.cut(other, _GAVE_WAY)
        if verdict.refusal is None:
            return ""
        return verdict.refusal.because(self._limits.bounds, keeper.option_prefix)

    async def _connect(self, number: int, made: socket.socket, address: str) -> None:
        await asyncio.get_running_loop().connect_accepted_socket(
            lambda: self._keeper.make(number, address),
            made,
            ssl=self._context,
            ssl_handshake_timeout=self._handshake_s,
        )

    def _taken_up(self, number: int, made: socket.socket, task: asyncio.Task[None]) -> None:
        del self._arriving[number]
        error = None if task.cancelled() else task.exception()
        if task.cancelled() or error is not None:
            made.close()
            self._limits.left(number, read_clocks())
        if error is not None and not isinstance(error, OSError):
            # Who is gone already, or does not speak TLS, is an `OSError`.
            raise error
