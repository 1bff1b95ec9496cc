"""Sequences that other queue managers send here: how far each has come. [MQQB 3.1.5.8.6]

A sequence is known by its source and by the destination as its messages name it. One queue may have
two names, and a sender numbers the messages to each of them on its own.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from typing import Final

from openmsmq.manager.ledger import Ledger
from openmsmq.manager.timers import Timers
from openmsmq.model.clock import Instant
from openmsmq.model.identity import Guid, SequenceId
from openmsmq.model.limits import INCOMING_SEQUENCES_CACHED_COUNT
from openmsmq.protocol.config import TransferConfig
from openmsmq.protocol.incoming_sequence import IncomingSequence
from openmsmq.storage import records
from openmsmq.storage.port import StoreReader
from openmsmq.storage.records import IncomingRecord
from openmsmq.wire.headers import queue_names, user
from openmsmq.wire.order_packets import ReturnAddress
from openmsmq.wire.outline import Outline

_DIGEST_BYTES: Final = 16
_DIRECT: Final = 7


class Stream:
    """One sender's sequence to one destination, and the way back to the sender."""

    __slots__ = ("changed", "destination", "direct_address", "key", "sequence", "source")

    def __init__(
        self,
        key: bytes,
        source: Guid,
        destination: str,
        direct_address: str,
        sequence: IncomingSequence,
    ) -> None:
        self.key = key
        self.source = source
        self.destination = destination
        self.direct_address = direct_address
        self.sequence = sequence
        self.changed: tuple[SequenceId, int] | None = None
        """The last message accepted in this turn, to be written at its end."""

    @property
    def return_address(self) -> ReturnAddress:
        """Where acknowledgments go: to the source, or to the address the messages came from."""
        return self.direct_address or self.source


class IncomingStreams:
    """The sequences of all senders; those in use are at hand, the others in the store."""

    def __init__(self, config: TransferConfig, ledger: Ledger, reader: StoreReader) -> None:
        self._config = config
        self._ledger = ledger
        self._reader = reader
        self._at_hand: OrderedDict[bytes, Stream] = OrderedDict()
        self.timers: Timers[Stream] = Timers()

    def of(self, packet: bytes, found: Outline, address: str) -> Stream:
        """Find the stream a transactional message belongs to, and note where it came from."""
        source = Guid(packet[16:32])
        direct = found.flags >> user.DESTINATION_SHIFT & 7 == _DIRECT
        stream = self.find(source, packet, found)
        if stream is None:
            key = _key(packet, found)
            sequence = IncomingSequence(self._config, SequenceId(0, 0), 0)
            stream = Stream(key, source, queue_names.describe(found.destination_name), "", sequence)
            self._keep(stream)
        stream.direct_address = address if direct else ""
        return stream

    def find(self, source: Guid, packet: bytes, found: Outline) -> Stream | None:
        """Find a stream that is known already."""
        key = _key(packet, found)
        stream = self._at_hand.get(key)
        if stream is not None:
            return stream
        value = self._reader.get(key)
        if value is None:
            return None
        record = records.decode_incoming(value)
        sequence = IncomingSequence(
            self._config, SequenceId.from_int(record.sequence), record.number
        )
        sequence.rejected_count = record.rejected_count
        sequence.last_access_time_s = record.last_access_time_s
        stream = Stream(key, source, record.destination, record.direct_address, sequence)
        self._keep(stream)
        return stream

    def accept(
        self, stream: Stream, sequence: SequenceId, number: int, *, durably: bool = True
    ) -> None:
        """Go on from a message that is accepted in this turn."""
        stream.sequence.assume(sequence, number)
        if not durably:
            self._ledger.when_done(
                lambda: self._settle(stream, sequence, number), lambda _: _take_back(stream)
            )
            return
        first = stream.changed is None
        stream.changed = sequence, number
        if first:
            self._ledger.before_seal(lambda: self._write(stream))
            self._ledger.when_done(lambda: None, lambda _: _take_back(stream))

    def _write(self, stream: Stream) -> None:
        """Write once per turn where the sequence stands then."""
        if stream.changed is None:
            return
        sequence, number = stream.changed
        stream.changed = None
        engine = stream.sequence
        record = IncomingRecord(
            int(sequence),
            number,
            stream.destination,
            stream.direct_address,
            engine.rejected_count,
            engine.last_access_time_s,
        )
        self._ledger.put(stream.key, records.encode_record(record))

        self._ledger.when_done(lambda: self._settle(stream, sequence, number), lambda _: None)

    def _settle(self, stream: Stream, sequence: SequenceId, number: int) -> None:
        stream.sequence.settle(sequence, number)
        self.timers.set(stream, stream.sequence.next_wake_ms)

    def heard(self, stream: Stream, now: Instant) -> None:
        """A message of the stream came: its sender will hear how far it has come."""
        stream.sequence.heard(now)
        self.timers.set(stream, stream.sequence.next_wake_ms)

    def statuses(self) -> list[Stream]:
        """Give the streams at hand, for management."""
        return list(self._at_hand.values())

    def _keep(self, stream: Stream) -> None:
        self._at_hand[stream.key] = stream
        while len(self._at_hand) > INCOMING_SEQUENCES_CACHED_COUNT:
            oldest = next(iter(self._at_hand.values()))
            if oldest.changed is not None or oldest.sequence.next_wake_ms is not None:
                # It is in use: look at another one next time.
                self._at_hand.move_to_end(oldest.key)
                return
            del self._at_hand[oldest.key]
            self.timers.set(oldest, None)


def _take_back(stream: Stream) -> None:
    stream.changed = None
    stream.sequence.forget_assumed()


def _key(packet: bytes, found: Outline) -> bytes:
    form = found.flags >> user.DESTINATION_SHIFT & 7
    digest = hashlib.blake2b(
        bytes((form,)) + packet[32:48] + found.destination, digest_size=_DIGEST_BYTES
    )
    return records.incoming_key(packet[16:32], digest.digest())
