"""The wire codec: what it costs to decode, encode and outline a user message."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

from bench.measure import Effort, Figure, Timing, ratio, time_in_turn
from openmsmq.model.identity import Guid, SequenceId
from openmsmq.wire import packets
from openmsmq.wire.headers import base, message_properties, security, user
from openmsmq.wire.headers.message_properties import MessageProperties
from openmsmq.wire.headers.queue_names import DirectName
from openmsmq.wire.headers.security import SecurityHeader
from openmsmq.wire.headers.transaction import TransactionHeader
from openmsmq.wire.headers.user import UserHeader
from openmsmq.wire.outline import outline
from openmsmq.wire.packet_buffer import PacketBuffer
from openmsmq.wire.packets import UserMessage

DECODE_BAR: Final = 25.0
ENCODE_BAR: Final = 25.0
OUTLINE_BAR: Final = 5.0

UNIT: Final = "x unpack_from"
CHUNK_BYTES: Final = 65_536

MESSAGE: Final = UserMessage(
    UserHeader(
        Guid(range(16)),
        sent_time_s=1_700_000_000,
        message_number=7,
        flags=user.RECOVERABLE,
        destination=DirectName(r"OS:host\private$\orders"),
    ),
    MessageProperties.of(bytes(1024), "order 17", body_type=8209),
)
"""1 KiB to a direct destination, with a label, recoverable: the everyday message."""

STATEMENTS: Final = {
    "bare": "unpack_from(data)",
    "decode": "decode(data)",
    "encode": "encode(message)",
    "outline": "outline(data)",
    "decode full": "decode(full)",
    "framing": "frame_chunk(chunk)",
}


def fixed_fields(data: bytes) -> struct.Struct:
    """Return one structure over all fixed fields of a user message, at their places.

    This is the least that reading a message can cost in Python: one call into C, one tuple.
    """
    names = outline(data).properties_offset - base.SIZE - user.FIXED_SIZE
    layouts = (base.LAYOUT, user.LAYOUT, message_properties.LAYOUT)
    first, second, third = (layout.format.removeprefix("<") for layout in layouts)
    return struct.Struct(f"<{first}{second}{names}x{third}")


def full_message() -> UserMessage:
    """The everyday message in a transaction, signed and with a certificate."""
    return UserMessage(
        MESSAGE.user,
        MESSAGE.properties,
        transaction=TransactionHeader(SequenceId(1, 1_700_000_000), number=1),
        security=SecurityHeader(
            sender_id=bytes(28),
            signature=bytes(128),
            sender_certificate=bytes(700),
            flags=security.SenderKind.SID | security.ITEMS_ANNOUNCED,
        ),
    )


def frame_chunk(chunk: bytes) -> int:
    """Cut one chunk of a stream into its packets; give how many."""
    return sum(len(run) for run in PacketBuffer().feed(chunk) if isinstance(run, list))


def run(effort: Effort) -> Iterator[Figure]:
    """Decode, encode and outline a 1 KiB user message, against one bare struct.unpack_from."""
    data = packets.encode(MESSAGE)
    chunk = (data * (CHUNK_BYTES // len(data) + 1))[:CHUNK_BYTES]
    timings = time_in_turn(
        STATEMENTS,
        {
            "data": data,
            "message": MESSAGE,
            "full": packets.encode(full_message()),
            "chunk": chunk,
            "unpack_from": fixed_fields(data).unpack_from,
            "decode": packets.decode,
            "encode": packets.encode,
            "outline": outline,
            "frame_chunk": frame_chunk,
        },
        effort,
    )
    bare = timings["bare"]
    yield ratio("decode", UNIT, timings["decode"], bare, DECODE_BAR)
    yield ratio("encode", UNIT, timings["encode"], bare, ENCODE_BAR)
    yield ratio("outline", UNIT, timings["outline"], bare, OUTLINE_BAR)
    yield ratio("decode with transaction and security", UNIT, timings["decode full"], bare)
    framed = Timing([taken / frame_chunk(chunk) for taken in timings["framing"].rounds_ns])
    yield ratio("framing of a 64 KiB chunk, per packet", UNIT, framed, bare)
    yield Figure("one bare unpack_from", bare.best_ns, "ns")
    for name in ("decode", "encode", "outline"):
        yield Figure(f"{name}, on one core", 1e9 / timings[name].best_ns, "messages/s")
