"""Requests and replies of the application interface that carry messages in and out of queues."""

from __future__ import annotations

from typing import Final

import msgspec

from openmsmq.api.base import Done, Number, Octets, Reply, Request, Several, Text
from openmsmq.api.facts import KNOWN, OWN, Facts, Repeats

OWN_TRANSACTION: Final = -1
"""In a `Send`: the packets are a transaction of their own, committed with the call."""

ARRIVAL_MASK: Final = (1 << 56) - 1


class Sent(Reply, frozen=True, tag="sent"):
    """The numbers under which the packets are known, and when they were sent."""

    numbers: list[int]
    sent_time_s: int


class Send(Request[Sent], frozen=True, tag="send"):
    """Put packets into a queue, all or none; in `transaction` they appear when it commits.

    `transaction` may be `OWN_TRANSACTION`.
    """

    facts = Facts(OWN, Repeats.SOMETIMES)

    handle: Number
    packets: Several[bytes]
    transaction: Number = 0

    @property
    def may_repeat(self) -> bool:
        """Whether the end of the connection undoes it, with its transaction."""
        return self.transaction > 0


class Voucher(Reply, frozen=True, tag="voucher"):
    """What was sent under a key; `before` says that it was there already."""

    number: int
    sent_time_s: int
    queue: str
    """The name of the queue, as it was opened."""
    until_s: int
    """As long as this the key is remembered, unless room is needed."""
    before: bool = False


class SendOnce(Request[Voucher], frozen=True, tag="send-once"):
    """Put a packet into a queue, unless the caller has done so before under the same key.

    `digest` stands for what is sent: something else under the same key is refused. A repetition may
    name another handle of the queue. `transaction` is 0 or `OWN_TRANSACTION`.
    """

    facts = Facts(KNOWN, Repeats.ALWAYS)

    handle: Number
    packet: bytes
    key: Text
    digest: Octets
    transaction: Number = 0


class GetVoucher(Request[Voucher], frozen=True, tag="get-voucher"):
    """Ask what the caller has sent under a key; what is told is durable."""

    facts = Facts(KNOWN, Repeats.ALWAYS)

    key: Text


class Entry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A message in its place in a queue."""

    lookup_id: int
    arrived_time_s: int
    abort_count: int
    move_count: int
    packet: bytes
    moved_time_s: int = 0
    """When it was last moved; 0 if never."""

    @property
    def arrival_number(self) -> int:
        """When it became available, as a number: what `FetchRange` goes by."""
        return self.lookup_id & ARRIVAL_MASK


class Entries(Reply, frozen=True, tag="entries"):
    """The messages asked for, in their order."""

    entries: list[Entry]


class Receive(Request[Entries], frozen=True, tag="receive"):
    """Take up to `count` messages from the front, waiting up to `timeout_ms` for the first.

    With `peek` they stay. With a `cursor` it is the message at the cursor, and `next` moves the
    cursor on first. A `timeout_ms` of None waits for ever. With `lock` they stay too, but nobody
    else gets them before an `EndReceive`. A body above `body_max_bytes` is an error, and its
    message stays.
    """

    facts = Facts(OWN, Repeats.SOMETIMES, waits=True, is_heavy=True)

    handle: Number
    count: Number = 1
    timeout_ms: Number | None = 0
    peek: bool = False
    cursor: Number = 0
    next: bool = False
    transaction: Number = 0
    bytes_max: Number = 1 << 20
    body_max_bytes: Number | None = None
    lock: bool = False

    @property
    def may_repeat(self) -> bool:
        """Whether it took nothing that the end of its connection does not give back."""
        return self.peek or self.transaction != 0 or self.lock

    @property
    def patience_ms(self) -> int | None:
        """How long it waits for a message; None for ever."""
        return self.timeout_ms


class Seek(Request[Entries], frozen=True, tag="seek"):
    """Take or peek the message at a lookup identifier, or beside it; never waits.

    `action` is the value of a `SeekAction`. With `allow_peek`, others may look at a message that
    a transaction takes until that commits. The rest is as in `Receive`.
    """

    facts = Facts(OWN, Repeats.SOMETIMES, is_heavy=True)

    handle: Number
    action: Text
    lookup_id: Number = 0
    peek: bool = False
    transaction: Number = 0
    allow_peek: bool = False
    body_max_bytes: Number | None = None
    lock: bool = False

    may_repeat = Receive.may_repeat


class Find(Request[Entries], frozen=True, tag="find"):
    """Take or peek the first message with this identifier or correlation identifier."""

    facts = Facts(OWN, Repeats.SOMETIMES, waits=True, is_heavy=True)

    handle: Number
    message_id: Octets | None = None
    correlation_id: Octets | None = None
    timeout_ms: Number | None = 0
    peek: bool = False
    transaction: Number = 0
    body_max_bytes: Number | None = None
    lock: bool = False

    may_repeat = Receive.may_repeat
    patience_ms = Receive.patience_ms


class EndReceive(Request[Done], frozen=True, tag="end-receive"):
    """End a read with `lock`: take the message out, or give it back to the other readers."""

    facts = Facts(OWN, Repeats.SOMETIMES)

    handle: Number
    lookup_id: Number
    remove: bool

    @property
    def may_repeat(self) -> bool:
        """Whether the message only goes back to its queue, as it would with the connection."""
        return not self.remove


class Removed(Reply, frozen=True, tag="removed"):
    """How many messages were taken out, and where to go on; 0 if there are no more."""

    count: int
    next_start: int = 0


class Purge(Request[Removed], frozen=True, tag="purge"):
    """Delete all messages of an open queue."""

    facts = Facts(OWN, Repeats.NEVER, is_audited=True)

    handle: Number

    @property
    def patience_ms(self) -> int | None:
        """There may be very many messages: it takes as long as it takes."""
        return None


class Move(Request[Done], frozen=True, tag="move"):
    """Move a message between a queue and its subqueues; `target` is a handle open for moving."""

    facts = Facts(OWN, Repeats.SOMETIMES)

    handle: Number
    lookup_id: Number
    target: Number
    transaction: Number = 0

    @property
    def may_repeat(self) -> bool:
        """Whether the end of the connection undoes it, with its transaction."""
        return self.transaction > 0
