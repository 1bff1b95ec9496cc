"""One packet or datagram of a capture as a row: what it says, under the names of the columns."""

from __future__ import annotations

import ipaddress
from typing import Any, Final

import msgspec

from openmsmq.capture.link_layers import Endpoint
from openmsmq.model.identity import MessageId
from openmsmq.model.message import NO_CORRELATION, message_class_name
from openmsmq.spark.pipelines.capture.rows import PacketRow, time_us
from openmsmq.wire.bodies.acknowledgments import FinalAck, OrderAck
from openmsmq.wire.datagrams import PingPacket
from openmsmq.wire.headers import queue_names
from openmsmq.wire.headers.queue_names import PrivateOnDestination
from openmsmq.wire.headers.session import SessionHeader
from openmsmq.wire.headers.user import UserHeader
from openmsmq.wire.packets import Packet, SessionAck, UserMessage
from openmsmq.wire.text import summaries
from openmsmq.wire.text.bodies import known_body
from openmsmq.wire.text.tree import Kind, guess_kind, view

MALFORMED: Final = "malformed"
DISCOVERY_PORT: Final = 1801
_US_PER_S: Final = 1_000_000


class Place(msgspec.Struct, frozen=True, gc=False):
    """Where in the captures something was seen."""

    file: str
    frame: int
    time_ns: int

    @property
    def time(self) -> int | None:
        """When, as tables have it."""
        return time_us(self.time_ns)


class Way(msgspec.Struct, frozen=True, gc=False):
    """Who sends to whom."""

    source_address: str
    source_port: int
    destination_address: str
    destination_port: int

    @classmethod
    def between(cls, source: Endpoint, destination: Endpoint) -> Way:
        """Return the way from one endpoint to another."""
        return cls(
            address_text(source.address),
            source.port,
            address_text(destination.address),
            destination.port,
        )


def address_text(address: bytes) -> str:
    """Return an IP address as people write it."""
    return str(ipaddress.ip_address(address))


def packet_row(
    packet: Packet, size_bytes: int, way: Way, place: Place, session: str, offset: int
) -> PacketRow:
    """Return the row of a packet of a session."""
    facts: dict[str, Any] = {}
    if isinstance(packet, UserMessage):
        facts = _message_facts(packet)
        if packet.session is not None:
            facts |= _session_facts(packet.session)
    elif isinstance(packet, SessionAck):
        facts = _session_facts(packet.session)
    else:
        facts = {"refused": packet.internal.refused}
    return _row(
        way,
        place,
        protocol="TCP",
        session=session,
        stream_offset=offset,
        packet=summaries.name(packet),
        size_bytes=size_bytes,
        explanation=summaries.summary(packet),
        **facts,
    )


def malformed_row(
    problem: str, size_bytes: int, way: Way, place: Place, session: str, offset: int
) -> PacketRow:
    """Return the row of a packet that does not decode."""
    return _row(
        way,
        place,
        protocol="TCP",
        session=session,
        stream_offset=offset,
        packet=MALFORMED,
        size_bytes=size_bytes,
        problem=problem,
    )


def datagram_row(data: bytes, way: Way, place: Place) -> PacketRow:
    """Return the row of a datagram."""
    shown = view(data, guess_kind(data) or _kind_by_port(way))
    return _row(
        way,
        place,
        protocol="UDP",
        packet=shown.name,
        size_bytes=len(data),
        explanation=shown.summary or None,
        problem=shown.problem or None,
        refused=_is_refusal(data),
    )


def _row(way: Way, place: Place, **facts: Any) -> PacketRow:
    return PacketRow(
        file=place.file,
        frame=place.frame,
        time=place.time,
        source_address=way.source_address,
        source_port=way.source_port,
        destination_address=way.destination_address,
        destination_port=way.destination_port,
        **facts,
    )


def _message_facts(packet: UserMessage) -> dict[str, Any]:
    header, properties = packet.user, packet.properties
    facts: dict[str, Any] = {
        "message_id": str(MessageId(header.source, header.message_number)),
        "source_qm": str(header.source),
        "message_class": properties.message_class,
        "message_class_name": message_class_name(properties.message_class),
        "label": properties.label_text or None,
        "destination": _destination(header),
        "priority": packet.base.priority,
        "recoverable": header.recoverable,
        "transactional": packet.transaction is not None,
        "traced": packet.base.traced,
        "encrypted": packet.security is not None and packet.security.body_encrypted,
        "hop_count": header.hop_count,
        "body_size_bytes": properties.body_size,
        "sent_time": header.sent_time_s * _US_PER_S,
    }
    if properties.correlation_id != NO_CORRELATION:
        facts["correlation_id"] = str(MessageId.from_bytes(properties.correlation_id))
    if packet.transaction is not None:
        facts["sequence_id"] = _sequence_text(int(packet.transaction.sequence))
        facts["sequence_number"] = packet.transaction.number
        facts["previous_number"] = packet.transaction.previous_number
    match known_body(packet):
        case OrderAck(sequence, number, previous):
            facts["sequence_id"] = _sequence_text(int(sequence))
            facts["sequence_number"] = number
            facts["previous_number"] = previous
        case FinalAck(sequence, number, previous, message):
            facts["sequence_id"] = _sequence_text(int(sequence))
            facts["sequence_number"] = number
            facts["previous_number"] = previous
            facts["acknowledged_message_id"] = str(message)
        case _:
            pass
    return facts


def _session_facts(header: SessionHeader) -> dict[str, Any]:
    return {
        "received_count": header.received_count,
        "stored_base": header.stored_base,
        "stored_bits": header.stored_bits,
        "sent_count": header.sent_count,
        "recoverable_sent_count": header.recoverable_sent_count,
        "window": header.window,
    }


def _sequence_text(sequence: int) -> str:
    """The 64 bits as text: the upper half of them has no place in a signed number."""
    return f"{sequence:#x}"


def _destination(header: UserHeader) -> str | None:
    match header.destination:
        case None:
            return None
        case PrivateOnDestination(number):
            return f"PRIVATE={header.destination_manager}\\{number:x}"
        case name:
            return queue_names.describe(name)


def _kind_by_port(way: Way) -> Kind:
    """What a datagram without a signature should be, so that it can be said what is wrong."""
    is_discovery = DISCOVERY_PORT in (way.source_port, way.destination_port)
    return Kind.DISCOVERY if is_discovery else Kind.PING


def _is_refusal(data: bytes) -> bool:
    return guess_kind(data) is Kind.PING and PingPacket.decode(data).refused
