"""What a queue manager keeps, as keys and values of a store.

The first byte of a key is its kind. Keys are big-endian, so that the order of bytes is the order
of numbers: the entries of a queue lie together, in the order in which they are received.

======  ==========================  ==================================================
kind    rest of the key             value
======  ==========================  ==================================================
``M``                               `MachineRecord`: identity and counters
``Q``   queue u32                   `QueueRecord`: the queue's properties
``C``   queue u32                   how many durable entries it has, and their bytes
``E``   queue u32, lookup id u64    an entry: `EntryFacts`, then the packet
``D``   deadline u32, queue, lookup nothing: the entry expires then
``T``   unit of work, 16 bytes      `TransactionRecord`: prepared, waits for its outcome
``X``   queue u32                   nothing: the queue was deleted, its entries may remain
``O``   queue u32                   `OutgoingRecord`: the sequence of an outgoing queue
``I``   source, destination digest  `IncomingRecord`: how far a sender's sequence has come
``H``   number u64                  message identifiers received, against duplicates
``F``   message number u32          where the message is whose final acknowledgment is awaited
``R``   queue u32                   `ReservationRecord`: messages that one reader has for itself
``L``   queue u32                   `ReadersRecord`: how far readers by arrival number have come
``B``   name of a query             `BatchRecord`: the last batch that the query committed
``K``   digest of owner and key     `VoucherRecord`: what was sent under a key of its sender
``G``   kind u8, identifier         an object of the directory: its last change u64, its bytes
``P``                               `PositionRecord`: how far the copy of the directory has come
``J``                               the log in a database that has its turns, if there is one
``S``                               the security descriptor of the queue manager, if it has its own
======  ==========================  ==================================================
"""

from __future__ import annotations

import struct
from typing import Any, Final, TypeAlias, TypeVar

import msgspec

from openmsmq.model.identity import NIL_GUID, Guid
from openmsmq.model.limits import INFINITE_S
from openmsmq.model.queue import QueueProperties, QueueRole
from openmsmq.model.transaction import Xid

SCHEMA_VERSION: Final = 1

MACHINE_KEY: Final = b"M"
POSITION_KEY: Final = b"P"
REPLICATION_KEY: Final = b"J"
MANAGER_SECURITY_KEY: Final = b"S"
LOOKUP_MAX: Final = (1 << 64) - 1
ARRIVAL_MASK: Final = (1 << 56) - 1
"""The part of a lookup identifier below the priority: the arrival number."""

_QUEUE: Final = struct.Struct(">cI")
_ENTRY: Final = struct.Struct(">cIQ")
_DEADLINE: Final = struct.Struct(">cIIQ")
_NUMBER: Final = struct.Struct("<Q")
_HISTORY: Final = struct.Struct(">cQ")
_PLACE_OF_ENTRY: Final = struct.Struct("<IQ")
_COUNTS: Final = struct.Struct("<QQ")
_FACTS: Final = struct.Struct("<IIIHBB")
ASKS_OFFSET: Final = 15
"""Where in an entry stands what its end has to cause."""
_PLACE: Final = struct.Struct("<I8xHB")
FACTS_BYTES: Final = _FACTS.size


def encode_hook(value: Any) -> Any:
    """Write what MessagePack has no word for."""
    if isinstance(value, Guid):
        return bytes(value)
    raise TypeError(f"{type(value).__name__} is not stored")


def decode_hook(kind: type, value: Any) -> Any:
    """Read what MessagePack has no word for."""
    return kind(value)


class EpochRecord(msgspec.Struct, frozen=True):
    """One life of the queue manager, from a start on."""

    identifier: str
    """A random word: a store that was put back to an older state does not have it."""
    first: int
    """The first arrival number that this life could give."""


class MachineRecord(msgspec.Struct, frozen=True):
    """Who the queue manager is, and how far its counters may have come.

    Counters are reserved in blocks: numbers below a limit may have been used, so that after a
    crash none is given twice.
    """

    identifier: Guid
    name: str
    arrival_limit: int = 1
    message_limit: int = 1
    transaction_limit: int = 1
    next_queue: int = 16
    schema: int = SCHEMA_VERSION
    sequence_time_s: int = 0
    """The time stamp of the youngest transactional sequence; it never goes back, so that younger
    ones compare greater."""
    epochs: list[EpochRecord] = []
    """The last lives of the queue manager, the oldest first."""


class QueueRecord(msgspec.Struct, frozen=True):
    """A queue: its properties, and the queue it is the journal or a subqueue of."""

    properties: QueueProperties
    role: QueueRole = QueueRole.APPLICATION
    parent: int = 0
    guest: str = ""
    """For whom there is an outgoing queue that no application has asked for."""
    reports: bool = False
    """Whether it was made for acknowledgments and reports."""


class StagedSend(msgspec.Struct, frozen=True, gc=False):
    """A message that a transaction will put into a queue."""

    queue: int
    packet: bytes
    deadline_s: int = INFINITE_S
    asks: int = 0


class HeldEntry(msgspec.Struct, frozen=True, gc=False):
    """An entry that a transaction takes out, or moves to another queue."""

    queue: int
    lookup_id: int
    target: int = 0
    """The queue it moves to; 0 when it is received."""


class AsideRun(msgspec.Struct, frozen=True, gc=False):
    """Messages of a prepared transaction that are set aside, one behind the other."""

    queue: int
    count: int
    size: int
    """The bytes of their packets."""


class TransactionRecord(msgspec.Struct, frozen=True):
    """A prepared transaction."""

    sends: list[StagedSend]
    """What it sends, unless that is set aside."""
    held: list[HeldEntry]
    prepared_time_s: int
    query: str = ""
    batch: int = 0
    owner: str = ""
    """Who may end it, as `Caller.owner_name`; empty for administrators only."""
    aside: list[AsideRun] = []
    """What is set aside under the transaction's key, in its order."""
    xid: Xid | None = None
    """What its coordinator calls it."""


class ReservationRecord(msgspec.Struct, frozen=True):
    """Which messages of a queue, by arrival number, are kept for one reader."""

    reader: str
    start: int
    stop: int
    owner: str = ""
    """Whose reader it is, as `Caller.owner_name`; empty for administrators only."""
    checkpoint: str = ""
    """For which query of this reader they are; empty if it did not say."""
    is_read: bool = True
    """Whether the query may have fetched some. Older versions did not note it."""


class ReaderRecord(msgspec.Struct, frozen=True):
    """The query that reads a queue under a name, and how far it has come."""

    checkpoint: str
    completed: int
    """It is done with all messages below this arrival number."""
    used_time_s: int
    owner: str = ""
    """Whose query it is, as `Caller.owner_name`; empty for administrators only."""


class ReadersRecord(msgspec.Struct, frozen=True):
    """The readers of a queue, by name."""

    readers: dict[str, ReaderRecord]


class BatchRecord(msgspec.Struct, frozen=True):
    """The last batch that a query committed, and when."""

    batch: int
    committed_time_s: int
    owner: str = ""
    """Whose query it is, as `Caller.owner_name`; empty for administrators only."""
    checkpoint: str = ""
    """The identity of what numbered the batch; empty if that was not told."""
    row_count: int = -1
    """How many rows it had; -1 if that was not told."""
    end: str = ""
    """Where it ended; empty if that was not told."""


class VoucherRecord(msgspec.Struct, frozen=True, gc=False):
    """What was sent under a key of its sender."""

    owner: str
    """Who has sent it, as `Caller.owner_name`."""
    number: int
    """The number in the identifier of the message."""
    sent_time_s: int
    queue: str
    """The name of the queue, as it was opened."""
    digest: bytes
    """Of what was sent: another message under the same key is a mistake."""


class PositionRecord(msgspec.Struct, frozen=True):
    """How far the copy of the directory has come."""

    incarnation: Guid
    number: int
    floor: int = 0
    """Removals up to this change are not remembered any more."""
    is_original: bool = False
    """Whether changes are made here; a copy that becomes the original begins a new count."""


class OutgoingRecord(msgspec.Struct, frozen=True):
    """How far the numbering of transactional messages to a queue has come. [MQQB 3.1.1.5]"""

    sequence: int = 0
    """The 64-bit form of its identifier; 0 before the first transactional message."""
    last_number: int = 0
    paused: bool = False
    reached: Guid = NIL_GUID
    """Who was at the other end of its last session; nil while nobody was."""
    reached_at: str = ""
    """Where that was, if nobody but himself vouches for him."""
    receipts_token: bytes = b""
    """The word in the URL for receipts, if the messages leave over HTTP."""


class IncomingRecord(msgspec.Struct, frozen=True):
    """The last message accepted of a sender's sequence, and the way back. [MQQB 3.1.5.8.6]"""

    sequence: int
    number: int
    destination: str
    direct_address: str = ""
    """The address its messages came from when they name their queue directly (C-72); over HTTP, the
    URL for receipts."""
    rejected_count: int = 0
    last_access_time_s: int = 0
    place: str | None = None
    """Where its sender is, by his own word; empty where others vouch for him, None if that was not
    noted."""
    seen_at: str = ""
    """Where he was seen himself, whoever vouches for him."""
    poster: str = ""
    """Who brought its messages over HTTP, by his certificate; empty without one."""


class EntryFacts(msgspec.Struct, frozen=True, gc=False):
    """What is known of an entry beside its packet."""

    arrived_time_s: int
    deadline_s: int = INFINITE_S
    """When it expires, by the wall clock; `INFINITE_S` is never."""
    moved_time_s: int = 0
    abort_count: int = 0
    move_count: int = 0
    asks: int = 0
    """What its end has to cause, as bits of `ASKS_*`: most messages ask for nothing."""


ASKS_RECEIVE_REPORT: Final = 0x01
"""An administration queue wants to hear that it was received, or why it was not."""
ASKS_DEAD_LETTER: Final = 0x02
"""If nobody receives it, it goes to a dead-letter queue."""

ASKS_FINAL_ACK: Final = 0x04
"""Its source queue manager wants to hear how it ended, whatever the end."""

SENT_HERE: Final = 0x08
"""An application of this computer sent it, with a wish for a journal; a packet cannot say so."""

_ENCODER: Final = msgspec.msgpack.Encoder(enc_hook=encode_hook)

AnyRecord: TypeAlias = (
    MachineRecord
    | QueueRecord
    | TransactionRecord
    | ReservationRecord
    | ReadersRecord
    | BatchRecord
    | VoucherRecord
    | PositionRecord
    | OutgoingRecord
    | IncomingRecord
)

Record = TypeVar("Record", bound=msgspec.Struct)


def encode_record(record: AnyRecord) -> bytes:
    """Return a record's bytes."""
    return _ENCODER.encode(record)


def decode_record(value: bytes, kind: type[Record]) -> Record:
    """Read a record of that kind."""
    return msgspec.msgpack.decode(value, type=kind, dec_hook=decode_hook)


def decode_readers(value: bytes) -> dict[str, ReaderRecord]:
    """Read who reads a queue by arrival numbers."""
    return decode_record(value, ReadersRecord).readers


def object_key(kind: int, identifier: bytes) -> bytes:
    """Where an object of the directory is; kinds are numbered."""
    return bytes((0x47, kind)) + identifier


def encode_object_row(number: int, data: bytes) -> bytes:
    """Return an object and the number of its last change; no bytes for one that was removed."""
    return _NUMBER.pack(number) + data


def decode_object_row(value: bytes) -> tuple[int, bytes]:
    """Read the number of an object's last change, and the object's bytes."""
    return _NUMBER.unpack_from(value)[0], value[_NUMBER.size :]


def outgoing_key(queue: int) -> bytes:
    """Where the sequence of an outgoing queue is."""
    return _QUEUE.pack(b"O", queue)


INCOMING_KEY_BYTES: Final = 33
"""The length of such a key: its kind, the sender, and a digest of the destination."""


def incoming_key(source: bytes, destination: bytes) -> bytes:
    """Where the sequence is that a sender sends to a destination, given as its digest."""
    return b"I" + source + destination


def source_of(key: bytes) -> bytes:
    """Who sends such a sequence."""
    return key[1:17]


def history_key(number: int) -> bytes:
    """Where a group of received message identifiers is."""
    return _HISTORY.pack(b"H", number)


def history_of(key: bytes) -> int:
    """The number of such a group."""
    return int.from_bytes(key[1:], "big")


def final_key(message_number: int) -> bytes:
    """Where it is noted which entry waits for the final acknowledgment of a message."""
    return _QUEUE.pack(b"F", message_number)


def encode_place(queue: int, lookup_id: int) -> bytes:
    """Return the place of an entry as a value."""
    return _PLACE_OF_ENTRY.pack(queue, lookup_id)


def decode_place(value: bytes) -> tuple[int, int]:
    """Read the place of an entry: queue and lookup identifier."""
    queue, lookup_id = _PLACE_OF_ENTRY.unpack(value)
    return queue, lookup_id


def reservation_key(queue: int) -> bytes:
    """Where it is noted which messages of a queue are reserved."""
    return _QUEUE.pack(b"R", queue)


def readers_key(queue: int) -> bytes:
    """Where it is noted how far the readers of a queue have come."""
    return _QUEUE.pack(b"L", queue)


def batch_key(query: str) -> bytes:
    """Where the last batch of a query is noted."""
    return b"B" + query.encode()


def batch_of(key: bytes) -> str:
    """The name of the query in such a key."""
    return key[1:].decode()


def voucher_key(place: bytes) -> bytes:
    """Where it is noted what was sent under a key, given as its digest."""
    return b"K" + place


def queue_key(queue: int) -> bytes:
    """Where a queue's properties are."""
    return _QUEUE.pack(b"Q", queue)


def counts_key(queue: int) -> bytes:
    """Where a queue's counts are."""
    return _QUEUE.pack(b"C", queue)


def deleted_key(queue: int) -> bytes:
    """Where it is noted that a deleted queue's entries are still to be removed."""
    return _QUEUE.pack(b"X", queue)


def queue_of(key: bytes) -> int:
    """Which queue a key of kind Q, C, X or E belongs to."""
    return int.from_bytes(key[1:5], "big")


def entry_key(queue: int, lookup_id: int) -> bytes:
    """Where an entry is."""
    return _ENTRY.pack(b"E", queue, lookup_id)


def lookup_of(key: bytes) -> int:
    """The lookup identifier in an entry's key."""
    return int.from_bytes(key[5:], "big")


def entries_end(queue: int) -> bytes:
    """The first key behind all entries of a queue."""
    return _QUEUE.pack(b"E", queue + 1)


def deadline_key(deadline_s: int, queue: int, lookup_id: int) -> bytes:
    """Where it is noted that an entry expires."""
    return _DEADLINE.pack(b"D", deadline_s, queue, lookup_id)


def read_deadline_key(key: bytes) -> tuple[int, int, int]:
    """Return deadline, queue and lookup identifier of such a note."""
    _, deadline_s, queue, lookup_id = _DEADLINE.unpack(key)
    return deadline_s, queue, lookup_id


def transaction_key(unit_of_work: bytes) -> bytes:
    """Where a prepared transaction is."""
    return b"T" + unit_of_work


def kind_range(kind: bytes) -> tuple[bytes, bytes]:
    """The bounds of all keys of one kind."""
    return kind, bytes((kind[0] + 1,))


def encode_counts(count: int, size: int) -> bytes:
    """Return the value of a queue's counts."""
    return _COUNTS.pack(count, size)


def decode_counts(value: bytes) -> tuple[int, int]:
    """Read a queue's counts: entries, bytes."""
    count, size = _COUNTS.unpack(value)
    return count, size


def encode_facts(facts: EntryFacts) -> bytes:
    """Return what stands before the packet of an entry."""
    return _FACTS.pack(
        facts.arrived_time_s,
        facts.deadline_s,
        facts.moved_time_s,
        facts.abort_count,
        facts.move_count,
        facts.asks,
    )


def encode_entry(facts: EntryFacts, packet: bytes) -> bytes:
    """Return the value of an entry."""
    return encode_facts(facts) + packet


def decode_facts(value: bytes) -> EntryFacts:
    """Read what is known of an entry; its packet is what follows `FACTS_BYTES`."""
    return EntryFacts(*_FACTS.unpack_from(value))


def place_of(value: bytes) -> tuple[int, int, int]:
    """When an entry arrived, and how often it was given back and moved."""
    return _PLACE.unpack_from(value)


def asks_of(value: bytes) -> int:
    """What an entry's end has to cause."""
    return value[ASKS_OFFSET]


def deadline_of(value: bytes) -> int:
    """When an entry expires."""
    return int.from_bytes(value[4:8], "little")
