"""What only a comparison of sessions shows: messages sent again, lost, or out of sequence.

Sessions end and others go on where they stopped. Messages are compared between the same two
addresses, so that one that is passed on is not taken for one sent again. The sentences are those
of Spark's pipeline, too, which compares more messages than fit into a memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from openmsmq.analysis.events import Anomaly, Event, HttpItem, PacketItem, Settled
from openmsmq.analysis.kinds import AnomalyKind, Fate
from openmsmq.analysis.sequences import Sequence, acknowledgment
from openmsmq.capture.link_layers import Endpoint
from openmsmq.capture.tcp_streams import Connection
from openmsmq.model.identity import NIL_GUID, MessageId
from openmsmq.wire.bodies.acknowledgments import OrderAck
from openmsmq.wire.packets import UserMessage

MESSAGES_MAX: Final = 200_000
"""How many messages are remembered; beyond it the one seen longest ago is forgotten."""
SEQUENCES_MAX: Final = 20_000
"""How many sequences are remembered, in the same way."""

_LINK: Final = ("source_address", "destination_address")
SENTENCES: Final[dict[AnomalyKind, tuple[str, ...]]] = {
    AnomalyKind.RESENT_MESSAGE: (
        "message %s went from %s to %s again: copy %s",
        "message_id",
        *_LINK,
        "copy",
    ),
    AnomalyKind.UNACKNOWLEDGED_MESSAGE: (
        "message %s from %s to %s was not acknowledged before its session ended",
        "message_id",
        *_LINK,
    ),
    AnomalyKind.SEQUENCE_GAP: (
        "message %s is number %s of sequence %s and follows %s, but the last one seen was %s",
        "message_id",
        "sequence_number",
        "sequence_id",
        "previous_number",
        "sent_before",
    ),
    AnomalyKind.ORDER_ACK_BACK: (
        "%s acknowledged sequence %s up to %s after it had acknowledged it up to %s",
        "source_address",
        "sequence_id",
        "sequence_number",
        "acked_before",
    ),
}
"""What is said of each, and the columns that are said."""


class Placed(msgspec.Struct, frozen=True, gc=False):
    """A place in a sequence: that of a message, or the one that it acknowledges."""

    sequence_id: str
    """The 64 bits as text: the upper half of them has no place in a signed number."""
    sequence_number: int
    previous_number: int


def placed(packet: UserMessage) -> Placed | None:
    """Return the place that a message has, or that an acknowledgment tells of."""
    place = packet.transaction
    if place is not None:
        return Placed(f"{int(place.sequence):#x}", place.number, place.previous_number)
    body = acknowledgment(packet)
    if body is not None:
        return Placed(f"{int(body.sequence):#x}", body.number, body.previous_number)
    return None


class _Copy(msgspec.Struct, frozen=True):
    """One packet with a message, without its bytes."""

    number: int
    frame: int
    time_ns: int
    source: Endpoint
    destination: Endpoint
    connection: Connection | None
    message_id: MessageId


class _Message(msgspec.Struct):
    """All copies of a message that went from one address to another."""

    last: _Copy
    copies: int = 0
    acknowledged: bool = False
    fate: Fate | None = None
    """That of the last copy."""


class Comparison:
    """Remembers messages and sequences between addresses, and what became of them."""

    def __init__(
        self, *, messages_max: int = MESSAGES_MAX, sequences_max: int = SEQUENCES_MAX
    ) -> None:
        self._messages_max = messages_max
        self._sequences_max = sequences_max
        # By the hash of what identifies them: names may be long, and somebody may mean harm.
        self._messages: dict[int, _Message] = {}
        self._sequences: dict[int, Sequence[None]] = {}
        self._under_way: dict[int, _Message] = {}
        """By the number of the packet; sessions settle each of them."""

    def with_findings(self, events: Iterable[Event]) -> Iterator[Event]:
        """Yield events, each followed by what it shows together with those before."""
        for event in events:
            yield event
            if isinstance(event, PacketItem) and isinstance(event.packet, UserMessage):
                yield from self._seen(event, event.packet)
            elif isinstance(event, HttpItem) and event.message is not None:
                if event.message.user.source != NIL_GUID:
                    yield from self._seen(event, event.message)
            elif isinstance(event, Settled):
                self._settled(event)

    def finish(self) -> Iterator[Anomaly]:
        """Yield what is wrong with messages of which nothing more comes."""
        for message in self._messages.values():
            yield from _unacknowledged(message)

    def _settled(self, event: Settled[int]) -> None:
        message = self._under_way.pop(event.message, None)
        if message is None:
            # A message over HTTP that does not say who it is.
            return
        message.acknowledged = message.acknowledged or event.fate is Fate.ACKNOWLEDGED
        if message.last.number == event.message:
            message.fate = event.fate

    def _seen(self, item: PacketItem | HttpItem, packet: UserMessage) -> Iterator[Anomaly]:
        header = packet.user
        copy = _Copy(
            item.number,
            item.frame,
            item.time_ns,
            item.source,
            item.destination,
            item.connection,
            MessageId(header.source, header.message_number),
        )
        # A message to several queues of one computer has the same identifier in each.
        flow = hash(
            (
                item.source.address,
                item.destination.address,
                header.source,
                header.destination_manager,
                header.destination,
            )
        )
        key = hash((flow, header.message_number))
        message = self._messages.pop(key, None) or _Message(copy)
        self._messages[key] = message
        if item.connection is not None:
            # Nobody says what became of multicast.
            self._under_way[item.number] = message
        message.last, message.fate = copy, None
        message.copies += 1
        if message.copies > 1:
            yield _finding(AnomalyKind.RESENT_MESSAGE, copy, copy=message.copies)
        else:
            yield from self._first_seen(flow, copy, packet)
        if len(self._messages) > self._messages_max:
            yield from _unacknowledged(self._messages.pop(next(iter(self._messages))))

    def _first_seen(self, flow: int, copy: _Copy, packet: UserMessage) -> Iterator[Anomaly]:
        place = placed(packet)
        if place is None:
            return
        key = hash((flow, place.sequence_id))
        sequence = self._sequences.pop(key, None) or Sequence()
        self._sequences[key] = sequence
        number = place.sequence_number
        if packet.transaction is not None:
            before = sequence.sent(number, place.previous_number)
            if before is not None:
                yield _finding(AnomalyKind.SEQUENCE_GAP, copy, place, sent_before=before)
        elif isinstance(acknowledgment(packet), OrderAck):
            before = sequence.acknowledged(number)
            if before is not None:
                yield _finding(AnomalyKind.ORDER_ACK_BACK, copy, place, acked_before=before)
        if len(self._sequences) > self._sequences_max:
            del self._sequences[next(iter(self._sequences))]


def _unacknowledged(message: _Message) -> Iterator[Anomaly]:
    if message.fate is Fate.UNACKNOWLEDGED and not message.acknowledged:
        yield _finding(AnomalyKind.UNACKNOWLEDGED_MESSAGE, message.last)


def _finding(kind: AnomalyKind, seen: _Copy, place: Placed | None = None, **facts: int) -> Anomaly:
    message_id = str(seen.message_id)
    known = {
        "message_id": message_id,
        "source_address": seen.source.host,
        "destination_address": seen.destination.host,
        **({} if place is None else msgspec.structs.asdict(place)),
        **facts,
    }
    sentence, *names = SENTENCES[kind]
    description = sentence % tuple(known[name] for name in names)
    return Anomaly(kind, description, seen.frame, seen.time_ns, seen.connection, message_id)
