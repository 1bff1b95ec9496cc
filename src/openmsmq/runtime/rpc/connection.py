"""One connection of a client of RPC: its socket, its time and its limits."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING, cast

from openmsmq.protocol.rpc.association import Association
from openmsmq.protocol.rpc.states import Proved, Refused
from openmsmq.remote.conversation import Conversation
from openmsmq.runtime.api.outflow import Outflow
from openmsmq.runtime.clocks import read_clocks
from openmsmq.runtime.limits import RPC_KEEPALIVE_S, RPC_LINGER_MS, RPC_UNPROVED_MS
from openmsmq.runtime.logs import Event
from openmsmq.security.access.callers import anonymous

if TYPE_CHECKING:
    from openmsmq.runtime.rpc.server import RpcDoor


class RpcConnection(asyncio.Protocol):
    """One connection, from its acceptance to its loss."""

    def __init__(self, door: RpcDoor, number: int, address: str) -> None:
        self._door = door
        self.number = number
        self._address = address
        self.peer = address
        """Who is at the other end, for the log."""
        self._prover = door.proofs.of_connection(address)
        association = Association(
            door.facts, door.groups, number, anonymous(address), self._prover.begin
        )
        self._conversation = Conversation(association, number, door.desk, self)
        self._transport: asyncio.Transport
        self._outflow: Outflow
        self._is_proved = False
        self._is_over = False
        self._counted_bytes = 0
        """What the limits know to be held for it."""
        self._heard_ms = read_clocks().ticks_ms
        self._timer: asyncio.TimerHandle | None = None

    # What the loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast(asyncio.Transport, transport)
        self._outflow = Outflow(self._transport)
        self._outflow.begin()
        name = transport.get_extra_info("peername")
        self.peer = f"{name[0]}:{name[1]}" if name else self._address
        _keep_alive(cast("socket.socket", transport.get_extra_info("socket")))
        self._door.connections[self.number] = self
        self._look_later()

    def data_received(self, data: bytes) -> None:
        """Take bytes."""
        if self._is_over:
            return
        self._heard_ms = read_clocks().ticks_ms
        try:
            self._conversation.received(data)
        except Exception as error:
            # A mistake of ours with what one client sent costs that client, and nobody else.
            self.note_defect(error)
            self.abort()

    def pause_writing(self) -> None:
        """Let what is to leave wait, and read no more calls."""
        self._outflow.pause()
        self._transport.pause_reading()

    def resume_writing(self) -> None:
        """Go on."""
        self._outflow.resume()
        if not self._outflow.unsent_bytes and not self._transport.is_closing():
            self._transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone."""
        self._is_over = True
        self._outflow.drop()
        if self._timer is not None:
            self._timer.cancel()
        self._conversation.lost(self._door.groups)
        self._door.lost(self, "" if exc is None else str(exc))

    # What its conversation calls.

    def write(self, data: bytes) -> None:
        """Send bytes."""
        self._outflow.write(data)

    def cut(self, reason: str) -> None:
        """End the connection of a client that may not stay."""
        if not self._is_over:
            self._door.note_broken(self.peer, reason)
            self.finish()

    def note_defect(self, error: Exception) -> None:
        """Log a mistake of ours."""
        self._door.note_defect(self.peer, error)

    def finish(self) -> None:
        """End the connection when all was written, or when that takes too long."""
        self._is_over = True
        self._outflow.end(self._transport.close)
        if self._timer is not None:
            self._timer.cancel()
        later = asyncio.get_running_loop().call_later
        self._timer = later(RPC_LINGER_MS / 1000, self._transport.abort)

    def abort(self) -> None:
        """End the connection now."""
        self._is_over = True
        self._transport.abort()

    @property
    def is_still_good(self) -> bool:
        """Whether those who have proved to be somebody here still are."""
        return self._prover.is_still_good

    @property
    def unsent_bytes(self) -> int:
        """How many bytes that were written for the client it has yet to take."""
        return self._outflow.unsent_bytes

    def proved(self, proved: Proved) -> None:
        """Somebody has proved to be somebody."""
        self._is_proved = True
        self._door.limits.established(self.number)
        self._door.log.debug(
            Event.CONNECTED,
            peer=self.peer,
            door=self._door.name,
            caller=proved.caller.name,
            by=proved.kind.name.lower(),
            level=proved.level.name.lower(),
        )

    def refused(self, refused: Refused) -> None:
        """Somebody has not proved enough."""
        self._door.note_refusal(self.peer, refused)

    def closed(self, sentence: str) -> None:
        """End, because of what the client did."""
        if not self._is_over:
            self._door.note_broken(self.peer, sentence)
            self.finish()

    def settled(self) -> None:
        """Let the door know what is held for this client."""
        association = self._conversation.association
        if self._door.is_public and association.is_bound:
            self._door.limits.established(self.number)
        size = association.held_bytes + self.unsent_bytes
        if size == self._counted_bytes:
            return
        self._counted_bytes = size
        heavy = self._door.limits.buffered(self.number, size, read_clocks())
        if heavy is not None:
            self._door.cut(heavy, "too many bytes are held for it")

    # Those who prove nothing and say nothing.

    def _look_later(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(RPC_UNPROVED_MS / 1000, self._look)

    def _look(self) -> None:
        self._timer = None
        if self._is_proved or self._is_over:
            return
        if read_clocks().ticks_ms - self._heard_ms >= RPC_UNPROVED_MS:
            self.cut(f"it has proved nothing, and said nothing for {RPC_UNPROVED_MS} ms")
        else:
            self._look_later()


def _keep_alive(connection: socket.socket | None) -> None:
    """Have the system notice when a client is gone without a word: its locks are given back."""
    if connection is None:
        return
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, RPC_KEEPALIVE_S)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, RPC_KEEPALIVE_S // 4)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 4)
