"""Raw sockets of multicast on a network of their own: who hears which packets."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

import pytest

from openmsmq.protocol.pgm.outputs import Transmit
from openmsmq.runtime.multicast.sockets import PgmSockets
from openmsmq.wire.pgm.packets import Data, Nak, Packet, PacketType, SourceId, decode
from tests.runtime.computers import wait_for
from tests.runtime.namespaces import Host, required_laboratory

GROUP: Final = "239.1.1.1"
SOURCE: Final = SourceId(b"others", 2_000)
DATA: Final = Packet(SOURCE, 8_001, Data(1, 1, b"data")).encode()
REPAIR: Final = Packet(SOURCE, 8_001, Data(1, 1, b"data", is_repair=True)).encode()
QUESTION: Final = Packet(
    SOURCE, 8_001, Nak(PacketType.NAK, 1, bytes((10, 97, 6, 2)), bytes((239, 1, 1, 1)))
).encode()


@pytest.fixture(scope="module")
def hosts() -> Iterator[tuple[Host, Host]]:
    with required_laboratory("lan") as lab:
        yield lab.host("ours", lan="10.97.6.1"), lab.host("theirs", lan="10.97.6.2")


def kinds(host: Host, sockets: PgmSockets) -> list[int]:
    """The types of all packets that have come, up to a question."""
    found: list[int] = []

    def look() -> bool:
        while (heard := host.do(sockets.receive)) is not None:
            body = decode(heard[0]).body
            if isinstance(body, Data):
                found.append(PacketType.RDATA if body.is_repair else PacketType.ODATA)
            elif isinstance(body, Nak):
                found.append(body.kind)
        return PacketType.NAK in found

    wait_for(look)
    return found


def test_data_are_heard_only_where_somebody_listens(hosts: tuple[Host, Host]) -> None:
    here, there = hosts
    ours, theirs = (host.do(partial(PgmSockets, "lan", 1)) for host in hosts)
    try:
        here.do(partial(ours.join, GROUP))

        def all_are_sent() -> None:
            for packet in (DATA, REPAIR, QUESTION):
                there.do(partial(theirs.send, Transmit(packet, GROUP)))

        all_are_sent()
        assert kinds(here, ours) == [PacketType.NAK]
        here.do(partial(ours.hear_data, wanted=True))
        all_are_sent()
        assert kinds(here, ours) == [PacketType.ODATA, PacketType.RDATA, PacketType.NAK]
        here.do(partial(ours.hear_data, wanted=False))
        all_are_sent()
        assert kinds(here, ours) == [PacketType.NAK]
    finally:
        here.do(ours.close)
        there.do(theirs.close)
