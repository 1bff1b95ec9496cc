"""One connection of a client of RPC: what is held for it is counted, and told when it changes."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from openmsmq.model.clock import Instant
from openmsmq.protocol.rpc.groups import Groups
from openmsmq.protocol.rpc.states import Door
from openmsmq.remote.clerks import Clerk, Counter, Desk
from openmsmq.runtime.rpc.connection import RpcConnection
from openmsmq.security.access.callers import Caller
from openmsmq.wire.rpc.pdus import WHOLE, Header, PduType

NUMBER = 7


class Wire(asyncio.Transport):
    """A transport whose client takes nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.unsent_bytes = 0
        self.is_aborted = False

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("192.0.2.1", 1000) if name == "peername" else default

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return self.unsent_bytes

    def abort(self) -> None:
        self.is_aborted = True


def _no_counter(_clerk: Clerk, _caller: Caller, _peer: str) -> Counter:
    raise AssertionError


class Doorway:
    """The door of a connection: it takes down what is held, and cuts from a number of bytes on."""

    def __init__(self, most_bytes: int) -> None:
        self.counted: list[int] = []
        self.cut_for = ""
        self._most_bytes = most_bytes
        self.connections: dict[int, RpcConnection] = {}
        self.facts = Door(2103, {})
        self.groups = Groups()
        self.desk = Desk({}, _no_counter)
        self.is_public = False
        begin = SimpleNamespace(begin=lambda _kind: None)
        self.proofs = SimpleNamespace(of_connection=lambda _address: begin)
        self.limits = self

    def buffered(self, number: int, size_bytes: int, _now: Instant) -> int | None:
        self.counted.append(size_bytes)
        return number if size_bytes > self._most_bytes else None

    def cut(self, number: int, reason: str) -> None:
        self.cut_for = reason
        self.connections[number].abort()


def test_what_is_held_for_a_client_is_told_whenever_it_changes() -> None:
    async def work() -> None:
        door = Doorway(most_bytes=1_000)
        wire = Wire()
        connection = RpcConnection(door, NUMBER, "192.0.2.1")  # type: ignore[arg-type]
        connection.connection_made(wire)
        whole = Header(PduType.BIND, WHOLE, 2_000, 0, 1).encode() + bytes(1_984)
        connection.data_received(whole[:300])
        connection.settled()
        connection.data_received(whole[300:900])
        assert door.counted == [300, 900]
        wire.unsent_bytes = 50
        connection.settled()
        assert (door.counted, door.cut_for) == ([300, 900, 950], "")
        connection.data_received(whole[900:1_100])
        assert (door.counted[-1], wire.is_aborted) == (1_150, True)
        assert door.cut_for

    asyncio.run(work())
