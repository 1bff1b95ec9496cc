"""What reading along gives: packets, datagrams, anomalies, fates of messages, and sessions."""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeAlias, TypeVar

import msgspec

from openmsmq.analysis.kinds import AnomalyKind, Fate, Handshake
from openmsmq.capture.link_layers import Endpoint, Protocol
from openmsmq.capture.tcp_streams import Connection, Ending
from openmsmq.wire.packets import Packet, UserMessage
from openmsmq.wire.text.posts import Post
from openmsmq.wire.text.tree import Kind

T = TypeVar("T")


class Moment(NamedTuple):
    """When something was seen: in which frame of the capture, and at what time."""

    frame: int
    time_ns: int


class PacketItem(msgspec.Struct, frozen=True, gc=False):
    """One packet of a session."""

    frame: int
    """The frame with its last byte."""
    time_ns: int
    source: Endpoint
    destination: Endpoint
    data: bytes
    connection: Connection
    offset: int
    """Where in the stream the packet starts."""
    number: int
    """Counted from 1; by it the fate of a message is told."""
    packet: Packet | None
    """None when it does not decode."""
    problem: str = ""
    """Why not."""


class DatagramItem(msgspec.Struct, frozen=True, gc=False):
    """One UDP datagram, or one packet of multicast."""

    frame: int
    time_ns: int
    source: Endpoint
    destination: Endpoint
    data: bytes
    protocol: Protocol = Protocol.UDP


class HttpItem(msgspec.Struct, frozen=True, gc=False):
    """One request or answer of HTTP, or the message that packets of multicast have carried."""

    frame: int
    """The frame with its last byte."""
    time_ns: int
    source: Endpoint
    destination: Endpoint
    data: bytes
    kind: Kind
    number: int
    """Counted from 1 with the packets of sessions."""
    post: Post | None = None
    """What it says, if it is a message that decodes."""
    message: UserMessage | None = None
    """The message as queues have it."""
    problem: str = ""
    """Why it does not decode."""
    connection: Connection | None = None
    """None for multicast."""
    offset: int | None = None


class Anomaly(msgspec.Struct, frozen=True, gc=False):
    """Something that is wrong, with the traffic or with the capture of it."""

    kind: AnomalyKind
    description: str
    frame: int
    time_ns: int
    connection: Connection | None = None
    message_id: str | None = None
    source: Endpoint | None = None
    """Whose bytes it is about, if it is about bytes."""
    destination: Endpoint | None = None
    data: bytes = b""
    """The first of those bytes."""
    offset: int | None = None
    """Where in the stream they start."""


class Settled(msgspec.Struct, Generic[T], frozen=True):
    """What became of a message in its session."""

    message: T
    """As whoever reads along named it when it was sent."""
    fate: Fate
    sent_ns: int
    acknowledged_ns: int | None = None


class SideSummary(msgspec.Struct):
    """What one side of a session has said, as far as it was seen."""

    qm: str | None = None
    """Which queue manager it is, as it said in the handshake."""
    window: int | None = None
    messages: int = 0
    bytes: int = 0
    acks: int = 0
    missing_bytes: int = 0


class SessionSummary(msgspec.Struct, frozen=True):
    """How a session went."""

    connection: Connection
    first: Moment
    last: Moment
    handshake: Handshake
    ending: Ending
    client: SideSummary
    server: SideSummary
    order_acks: int
    final_acks: int
    ack_timeout_ms: int | None
    unacknowledged: int
    malformed: int


Item: TypeAlias = PacketItem | DatagramItem | HttpItem | Anomaly
Event: TypeAlias = Item | Settled[int] | SessionSummary
