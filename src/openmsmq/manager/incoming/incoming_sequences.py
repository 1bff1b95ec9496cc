"""Sequences that other queue managers send here: how far each has come. [MQQB 3.1.5.8.6]

A sequence is known by its source and by the destination as its messages name it. One queue may have
two names, and a sender numbers the messages to each of them on its own. It goes on only by packets
of its own sender: each record says where that one is, or that others vouch for him.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from typing import Final

from msgspec import structs

from openmsmq.manager.incoming.effects import (
    RejectionsCounted,
    SequenceAdvanced,
    SequencePassed,
)
from openmsmq.manager.incoming.sequence_records import SequenceRecords
from openmsmq.manager.peers.claims import Claims
from openmsmq.manager.peers.identities import Identities
from openmsmq.manager.peers.peering import Peer, Word
from openmsmq.manager.queues.totals import Totals
from openmsmq.manager.turn.foundation import Foundation
from openmsmq.manager.turn.timers import Timers
from openmsmq.model.clock import Instant
from openmsmq.model.identity import Guid, SequenceId
from openmsmq.model.limits import INCOMING_SEQUENCES_CACHED_COUNT, SEQUENCES_LOOKED_THROUGH_MS
from openmsmq.model.names.parts import fold
from openmsmq.protocol.incoming_sequence import IncomingSequence
from openmsmq.storage import records
from openmsmq.storage.records import IncomingRecord
from openmsmq.wire import message_bytes
from openmsmq.wire.bodies.order_packets import ReturnAddress
from openmsmq.wire.headers import queue_names, user
from openmsmq.wire.outline import Outline
from openmsmq.wire.srmp.urls import is_url

_DIGEST_BYTES: Final = 16
_DIRECT: Final = 7
_OVER_HTTP: Final = 8
_RECORDS: Final = 10_000_000


class Flow:
    """What one sender sends to one destination: its sequence, and the way back to the sender."""

    __slots__ = (
        "advance",
        "claimed_at",
        "counted_at",
        "destination",
        "direct_address",
        "has_rejected",
        "heard",
        "key",
        "place",
        "poster",
        "seen_at",
        "sequence",
        "source",
    )

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
        self.place: str | None = None
        """Where its sender is, by his own word; empty where others vouch for him."""
        self.claimed_at = ""
        """Where the claims have him for this flow; empty if they do not."""
        self.counted_at = ""
        """The address that has one record more by it; empty if others know its sender."""
        self.seen_at = ""
        """Where he was himself when his last message came, whoever vouches for him; empty if
        somebody else brought it."""
        self.poster = ""
        """Who brings its messages over HTTP, by his certificate; empty without one."""
        self.heard: Instant | None = None
        self.advance: SequenceAdvanced | None = None
        """How far it comes in this turn, to be written at its end."""
        self.has_rejected = False
        """Whether messages of it were dropped in this turn, which is written at its end."""

    @property
    def is_http(self) -> bool:
        """Whether its messages come over HTTP; then `direct_address` is the URL for receipts."""
        return is_url(self.direct_address)

    def brought_by(self, poster: str, address: str, url: str) -> None:
        """Note who brings its messages over HTTP; a URL is where receipts go from now on."""
        self.poster = poster
        # A certificate vouches for its senders, as a way does in sessions.
        self.counted_at = "" if poster else address
        self.direct_address = url or self.direct_address

    @property
    def return_address(self) -> ReturnAddress:
        """Where acknowledgments go: to the source, or to the address the messages came from."""
        return self.direct_address or self.source

    def record_at(self, sequence: SequenceId, number: int) -> IncomingRecord:
        """Return what is stored of it when it has come so far."""
        return IncomingRecord(
            int(sequence),
            number,
            self.destination,
            self.direct_address,
            self.sequence.rejected_count,
            self.sequence.last_access_time_s,
            self.place,
            self.counted_at if self.is_http else self.claimed_at,
            self.poster,
        )

    def begin_advance(self, advance: SequenceAdvanced) -> None:
        """Let what comes in this turn be written as one."""
        self.advance = advance

    def end_advance(self) -> None:
        """Let what comes from now on be written anew."""
        self.advance = None

    def count_rejections(self, *, are_noted: bool) -> None:
        """Note whether this turn will write how many messages were dropped."""
        self.has_rejected = are_noted

    def record_now(self) -> IncomingRecord:
        """Return what is known of it now, whether it is stored or not."""
        found = self.record_at(self.sequence.id, self.sequence.number)
        return found if self.claimed_at else structs.replace(found, seen_at=self.seen_at)

    def take_back(self) -> None:
        """Go back to what is durable: the disk refused the rest."""
        self.end_advance()
        self.sequence.forget_assumed()


class IncomingSequences:
    """The sequences of all senders; those in use are at hand, the others in the store."""

    def __init__(
        self, base: Foundation, totals: Totals, identities: Identities, claims: Claims
    ) -> None:
        self._config = base.config.transfer
        self._ledger = base.ledger
        self._reader = base.reader
        self._identities = identities
        self._claims = claims
        self._claimed: set[bytes] = set()
        """The records of sequences for which the claims have their senders somewhere."""
        self._at_hand: OrderedDict[bytes, Flow] = OrderedDict()
        self.timers: Timers[Flow] = Timers()
        self.records = SequenceRecords(totals, self._forget)
        self._look_through_ms = base.started.ticks_ms + SEQUENCES_LOOKED_THROUGH_MS
        """When to look for sequences that nobody uses."""
        self._take_up()

    def _take_up(self) -> None:
        """Go on from what the store has: of two places of one sender, the later one counts."""
        start, stop = records.kind_range(b"I")
        found: list[tuple[int, bytes, str, str]] = []
        for key, value in self._reader.scan(start, stop, _RECORDS):
            record = records.decode_record(value, records.IncomingRecord)
            place, claimed_at = _places(record)
            found.append((record.last_access_time_s, key, place, claimed_at))
        found.sort(key=lambda each: each[:2])
        for used_s, key, place, claimed_at in found:
            self.records.used(key, place, used_s)
            if claimed_at:
                self._claims.restore(records.source_of(key), claimed_at)
                self._claimed.add(key)

    @property
    def next_wake_ms(self) -> int | None:
        """When `wake` has something to do."""
        return self._look_through_ms if len(self.records) else None

    def wake(self, now: Instant) -> None:
        """Time has passed: forget what nobody has used for long."""
        if self._look_through_ms <= now.ticks_ms:
            self._look_through_ms = now.ticks_ms + SEQUENCES_LOOKED_THROUGH_MS
            self.records.expire(now)

    def of(
        self, packet: bytes, found: Outline, peer: Peer, word: Word, now: Instant, *, durably: bool
    ) -> Flow | str:
        """Find the flow that a transactional message of a peer belongs to.

        Gives a word why not, if it is not the peer's or if there is no room for one more.
        """
        source = Guid(message_bytes.source(packet))
        place = peer.place if word is Word.OWN else ""
        if word is Word.FOREIGN:
            return "foreign-source"
        # Who is brought may be invented: whatever its way vouches for, it makes records.
        is_counted = place or self._identities.is_outsider_of(peer, source)
        counted_at = peer.place if is_counted else ""
        key = _key(packet, found)
        flow = self._known(source, key)
        if flow is not None and flow.is_http:
            return "foreign-sequence"
        if word is Word.BROUGHT and not self._goes_on(flow):
            return "foreign-source"
        if durably and key not in self.records and not self.records.has_room(counted_at, now):
            return "too-many-sequences"
        if flow is None:
            name = queue_names.describe(found.destination_name)
            flow = Flow(key, source, name, "", self._new())
            self._keep(flow)
        elif place and flow.place == "" and not self._is_silent(flow, now):
            return "foreign-sequence"
        elif not place and flow.place and self._identities.disowns(peer, source, flow.place):
            flow.sequence = self._new()
        flow.place = place
        flow.counted_at = counted_at
        flow.seen_at = peer.place if peer.remote == source else ""
        direct = found.flags >> user.DESTINATION_SHIFT & 7 == _DIRECT
        flow.direct_address = peer.engine.address if direct else ""
        return flow

    def of_post(
        self, packet: bytes, found: Outline, poster: str, address: str, now: Instant
    ) -> Flow | str:
        """Find the flow of a message that came over HTTP; give a word why there is none.

        Nothing but a certificate says who its sender is. A flow that somebody with one has brought
        is nobody else's.
        """
        source = Guid(message_bytes.source(packet))
        key = _key(packet, found)
        flow = self._known(source, key)
        if key not in self.records and not self.records.has_room("" if poster else address, now):
            return "too-many-sequences"
        if flow is None:
            name = queue_names.describe(found.destination_name)
            flow = Flow(key, source, name, "", self._new())
            self._keep(flow)
        elif flow.poster not in ("", poster) or (flow.sequence.number and not flow.is_http):
            return "foreign-sequence"
        flow.place = ""
        return flow

    def is_begun_by_another(self, flow: Flow, address: str, url: str, now: Instant) -> bool:
        """Whether somebody else begins a flow over HTTP anew while its sender is still heard.

        A number above all would end it for ever. Its sender comes from where he came before, or
        names the URL for receipts that he did: only its receiver was told the word in it.
        """
        return (
            flow.sequence.assumed[1] > 0
            and address != flow.counted_at
            and url != flow.direct_address
            and not self._is_silent(flow, now)
        )

    def _goes_on(self, flow: Flow | None) -> bool:
        """Whether a flow has come over ways only, before its sender's name was used elsewhere.

        Who claims the name later does not keep him out. A rule does: it says where he is.
        """
        return (
            flow is not None
            and flow.place == ""
            and not flow.claimed_at
            and not self._identities.is_settled(flow.source)
        )

    def _new(self) -> IncomingSequence:
        return IncomingSequence(self._config, SequenceId(0, 0), 0)

    def _is_silent(self, flow: Flow, now: Instant) -> bool:
        """Whether those who vouch for a sender have brought nothing for so long that he may come
        himself."""
        silent_s = now.unix_s - flow.sequence.last_access_time_s
        return silent_s >= self._config.peers.silence_s

    def find(self, source: Guid, packet: bytes, found: Outline) -> Flow | None:
        """Find a flow that is known already."""
        return self._known(source, _key(packet, found))

    def _known(self, source: Guid, key: bytes) -> Flow | None:
        flow = self._at_hand.get(key)
        if flow is not None:
            return flow
        value = self._reader.get(key)
        if value is None:
            return None
        record = records.decode_record(value, records.IncomingRecord)
        sequence = IncomingSequence(
            self._config,
            SequenceId.from_int(record.sequence),
            record.number,
            rejected_count=record.rejected_count,
            last_access_time_s=record.last_access_time_s,
        )
        flow = Flow(key, source, record.destination, record.direct_address, sequence)
        flow.place = record.place
        flow.counted_at, flow.claimed_at = _places(record)
        flow.poster = record.poster
        self._keep(flow)
        return flow

    def accept(
        self, flow: Flow, sequence: SequenceId, number: int, *, durably: bool = True
    ) -> None:
        """Go on from a message that is accepted in this turn."""
        if not durably:
            self._ledger.add(SequencePassed(self, flow, sequence, number))
        elif flow.advance is not None:
            flow.advance.go_on(sequence, number)
        else:
            self._ledger.add_growing(SequenceAdvanced(self, flow, sequence, number))
            self._note_use(flow)

    def reject(self, flow: Flow) -> None:
        """Drop a message for a gap, and count it: the count survives a restart. [MQQB 3.1.1.3.1]

        That of a flow of which nothing is stored begins with what is: no stranger gets a record
        for messages that are not taken.
        """
        flow.sequence.reject()
        if not flow.has_rejected and flow.key in self.records:
            self._ledger.add_growing(RejectionsCounted(self, flow))

    def record_of_rejected(self, flow: Flow) -> IncomingRecord | None:
        """Return what is stored when messages were dropped; None if the flow has no record."""
        # What an earlier turn has taken may be on its way to the disk; this one falls with it.
        return flow.record_at(*flow.sequence.assumed) if flow.key in self.records else None

    def settle(self, flow: Flow, sequence: SequenceId, number: int) -> None:
        """A message is taken for good, and with it all before it."""
        flow.sequence.settle(sequence, number)
        self.timers.set(flow, flow.sequence.next_wake_ms)

    def _note_use(self, flow: Flow) -> None:
        """A flow has, or will have, a record: its sender is where he is now."""
        self.records.used(flow.key, flow.counted_at, flow.sequence.last_access_time_s)
        # Who is on the way from him says nothing about where he is himself.
        place = "" if flow.is_http else flow.place or flow.seen_at
        if not place or place == flow.claimed_at or flow.heard is None:
            return
        self._claims.begin(flow.source, place, flow.heard)
        self._claimed.add(flow.key)
        if flow.claimed_at:
            self._claims.end(flow.source)
        flow.claimed_at = place

    def _forget(self, key: bytes) -> None:
        """Let a record go."""
        self._ledger.delete(key)
        self.records.drop(key)
        if key in self._claimed:
            self._claimed.discard(key)
            self._claims.end(records.source_of(key))
        flow = self._at_hand.pop(key, None)
        if flow is not None:
            flow.end_advance()
            self.timers.set(flow, None)

    def heard(self, flow: Flow, now: Instant) -> None:
        """A message of the flow came: its sender will hear how far it has come."""
        flow.heard = now
        if flow.claimed_at:
            self._claims.heard(flow.source, flow.place or flow.claimed_at, now)
        flow.sequence.heard(now)
        self.timers.set(flow, flow.sequence.next_wake_ms)

    def statuses(self) -> list[Flow]:
        """Return the sequences at hand, for management."""
        return list(self._at_hand.values())

    def after(self, key: bytes, count: int) -> list[tuple[bytes, IncomingRecord]]:
        """Return up to so many sequences behind a key, in the order of their keys."""
        start, stop = records.kind_range(b"I")
        start = max(start, key + b"\0")
        stored = self._reader.scan(start, stop, count)
        if len(stored) == count:
            stop = stored[-1][0] + b"\0"
        found = {
            key: records.decode_record(value, IncomingRecord)
            for key, value in stored
            if key not in self._at_hand
        }
        # What is at hand is newer, and may have no record: nothing of it was taken yet.
        for key, flow in self._at_hand.items():
            if start <= key < stop:
                found[key] = flow.record_now()
        return sorted(found.items())[:count]

    @property
    def count(self) -> int:
        """How many there are, with those of which nothing was taken yet."""
        return len(self.records) + sum(key not in self.records for key in self._at_hand)

    def _keep(self, flow: Flow) -> None:
        self._at_hand[flow.key] = flow
        while len(self._at_hand) > INCOMING_SEQUENCES_CACHED_COUNT:
            oldest = next(iter(self._at_hand.values()))
            if oldest.advance is not None or oldest.sequence.next_wake_ms is not None:
                # It is in use: look at another one next time.
                self._at_hand.move_to_end(oldest.key)
                return
            del self._at_hand[oldest.key]
            self.timers.set(oldest, None)


def _places(record: IncomingRecord) -> tuple[str, str]:
    """Return the address that has a record more by it, and where the claims have its sender."""
    if is_url(record.direct_address):
        return record.seen_at, ""
    return record.place or "", record.place or record.seen_at


def _key(packet: bytes, found: Outline) -> bytes:
    form, name = found.flags >> user.DESTINATION_SHIFT & 7, found.destination
    if found.flags & user.OVER_HTTP:
        # What comes through sessions under such a name is another flow. A URL that is spelt in
        # another way is none: whoever changes it on the way would have everything taken twice.
        form |= _OVER_HTTP
        text = queue_names.describe(found.destination_name)
        name = fold(text.replace("\\", "/")).encode("utf-8", "surrogatepass")
    digest = hashlib.blake2b(
        bytes((form,)) + message_bytes.destination_manager(packet) + name,
        digest_size=_DIGEST_BYTES,
    )
    return records.incoming_key(message_bytes.source(packet), digest.digest())
