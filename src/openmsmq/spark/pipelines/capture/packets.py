"""One packet or datagram of a capture as a row: what it says, under the names of the columns."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from openmsmq.analysis.comparison import placed
from openmsmq.analysis.events import DatagramItem, HttpItem, PacketItem
from openmsmq.analysis.sequences import acknowledgment
from openmsmq.analysis.traffic import datagram_kind
from openmsmq.model.identity import NIL_GUID, MessageId
from openmsmq.model.message import NO_CORRELATION, message_class_name
from openmsmq.spark.pipelines.capture.rows import PacketRow, Row, time_us
from openmsmq.wire.bodies.acknowledgments import FinalAck
from openmsmq.wire.datagrams import PingPacket
from openmsmq.wire.headers import queue_names
from openmsmq.wire.headers.queue_names import PrivateOnDestination
from openmsmq.wire.headers.session import SessionHeader
from openmsmq.wire.headers.user import UserHeader
from openmsmq.wire.packets import SessionAck, UserMessage
from openmsmq.wire.text import summaries
from openmsmq.wire.text.tree import Kind, view

_MALFORMED: Final = "malformed"
_US_PER_S: Final = 1_000_000


def packet_row(item: PacketItem, file: str, frame: int, session: str) -> Row:
    """Return the row of a packet of a session."""
    facts: dict[str, Any] = {}
    match item.packet:
        case None:
            facts = {"problem": item.problem}
        case UserMessage() as message:
            facts = _message_facts(message)
            if message.session is not None:
                facts |= _session_facts(message.session)
        case SessionAck() as ack:
            facts = _session_facts(ack.session)
        case other:
            facts = {"refused": other.internal.refused}
    if item.packet is not None:
        facts["explanation"] = summaries.summary(item.packet)
    return _row(
        item,
        file,
        frame,
        protocol="TCP",
        session=session,
        stream_offset=item.offset,
        packet=_MALFORMED if item.packet is None else summaries.name(item.packet),
        **facts,
    )


def datagram_row(item: DatagramItem, file: str, frame: int) -> Row:
    """Return the row of a datagram."""
    kind = datagram_kind(item)
    shown = view(item.data, kind)
    is_sound_ping = kind is Kind.PING and not shown.problem
    return _row(
        item,
        file,
        frame,
        protocol=item.protocol.name,
        packet=shown.name,
        explanation=shown.summary or None,
        problem=shown.problem or None,
        refused=is_sound_ping and PingPacket.decode(item.data).refused,
    )


def http_row(item: HttpItem, file: str, frame: int, session: str | None) -> Row:
    """Return the row of a request or answer of HTTP, or of a message of multicast."""
    shown = view(item.data, item.kind)
    facts: dict[str, Any] = {}
    if item.message is not None and item.post is not None:
        facts = _message_facts(item.message)
        facts["destination"] = item.post.envelope.to
        receipt = item.post.envelope.stream_receipt
        if receipt is not None:
            facts["sequence_id"] = f"{receipt.sequence:#x}"
            facts["sequence_number"] = receipt.last
        if item.message.user.source == NIL_GUID:
            # Whoever is no queue manager says neither who sent a message nor which it is.
            facts["message_id"] = facts["source_qm"] = None
    return _row(
        item,
        file,
        frame,
        protocol="PGM" if item.connection is None else "HTTP",
        session=session,
        stream_offset=item.offset,
        packet=_MALFORMED if item.problem else shown.name,
        explanation=shown.summary or None,
        problem=item.problem or None,
        **facts,
    )


def _row(item: PacketItem | DatagramItem | HttpItem, file: str, frame: int, **facts: Any) -> Row:
    return PacketRow(
        file=file,
        frame=frame,
        time=time_us(item.time_ns),
        refused=facts.pop("refused", False),
        source_address=item.source.host,
        source_port=item.source.port,
        destination_address=item.destination.host,
        destination_port=item.destination.port,
        size_bytes=len(item.data),
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
    place = placed(packet)
    if place is not None:
        facts |= msgspec.structs.asdict(place)
    body = acknowledgment(packet)
    if isinstance(body, FinalAck):
        facts["acknowledged_message_id"] = str(body.message)
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


def _destination(header: UserHeader) -> str | None:
    match header.destination:
        case None:
            return None
        case PrivateOnDestination(number):
            return f"PRIVATE={header.destination_manager}\\{number:x}"
        case name:
            return queue_names.describe(name)
