"""What must hold for whatever comes to a multicast address."""

from __future__ import annotations

from random import Random
from typing import Final

from openmsmq.analysis.events import Anomaly, Moment
from openmsmq.analysis.multicast import HELD_BYTES_MAX, MulticastReader
from openmsmq.capture.link_layers import Endpoint, PgmDatagram
from openmsmq.protocol.pgm import limits
from openmsmq.protocol.pgm.outputs import Delivered, Group, Profile
from openmsmq.protocol.pgm.receiver import Receiver
from openmsmq.wire.errors import DecodeError
from openmsmq.wire.pgm.packets import Packet, decode
from tests.fuzz.registry import Target

GROUP: Final = Group("234.1.1.1", 8001)
ADDRESS: Final = "192.0.2.1"
STEP_MS: Final = 700
_FROM: Final = Endpoint(bytes((192, 0, 2, 1)), 1)
_TO: Final = Endpoint(bytes((234, 1, 1, 1)), 8001)


def multicast_packets(data: bytes) -> None:
    """Bytes are a packet or refused."""
    _packet(data)


def multicast_streams(data: bytes) -> None:
    """A receiver bears packets of two bytes of length each, one after the other."""
    now_ms = 0
    receiver = Receiver(Profile(), Random(1), now_ms)
    receiver.listen(GROUP)
    while len(data) > 2:
        size = int.from_bytes(data[:2], "big")
        piece, data = data[2 : 2 + size], data[2 + size :]
        packet = _packet(piece)
        now_ms += STEP_MS
        if packet is not None:
            receiver.received(packet, ADDRESS, GROUP, now_ms)
        receiver.wake(now_ms)
        assert 0 <= receiver.held_bytes <= limits.PGM_SOURCES_MAX_BYTES
        assert receiver.sources_count <= limits.PGM_SOURCES_PER_ADDRESS_MAX_COUNT
        for output in receiver.take_outputs():
            if isinstance(output, Delivered):
                assert len(output.payload) <= limits.PGM_PAYLOAD_MAX_BYTES


def multicast_captures(data: bytes) -> None:
    """Who reads along bears the same, and gives no more messages than there are packets."""
    reader = MulticastReader()
    packets = messages = 0
    while len(data) > 2:
        size = int.from_bytes(data[:2], "big")
        piece, data = data[2 : 2 + size], data[2 + size :]
        packets += 1
        for found in reader.take(PgmDatagram(_FROM, _TO, piece), Moment(packets, packets)):
            messages += not isinstance(found, Anomaly)
            assert str(found)
        assert 0 <= len(reader) <= HELD_BYTES_MAX
    assert messages <= packets
    for missing in reader.finish():
        assert missing.description
    assert len(reader) == 0


def _packet(data: bytes) -> Packet | None:
    try:
        return decode(data)
    except DecodeError:
        return None


TARGETS: Final[dict[str, Target]] = {
    "multicast-packets": multicast_packets,
    "multicast-streams": multicast_streams,
    "multicast-captures": multicast_captures,
}
